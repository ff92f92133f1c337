"""How far one record can move the scores, as exact rationals.

Adding a record z = (x, y) changes f(S) by something between the least and the largest loss
l(y, t) over |t| <= B, whatever S is. Selection is unchanged when all scores move together, and y
is the same for every S, so what counts is the *spread* of the changes over the supports: at most

    range = max over y of (max over |t| <= B of l(y, t) - min over |t| <= B of l(y, t))

for a record added or removed, twice that for a record replaced.

The program does not see f but f~, an integer multiple of ``unit`` with |f~ - f| <= tau = unit. On
two neighbours the errors differ by at most 2 tau either way, so they add 4 tau to the spread. A
mechanism that is eta * spread private in the spread then satisfies epsilon for

    eta = epsilon / spread,   spread = range + 4 tau (add-remove) or 2 range + 4 tau (replace-one).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..base.errors import ArgumentError
from ..privacy.relations import Neighbours
from .losses import loss_of
from .problem import Problem

#: The grid of scores is this many bits finer than the range of the loss, unless the reach is tiny.
#: The error of a score costs at most 4 * 2**-16 of epsilon, and the rounding of float64 leaves room
#: for tables of about 10**8 rows: for losses of records at any reach, for least squares at a reach
#: of about 1 or more. Every bit more would halve that number.
_GRID_BITS = 16

#: 0 <= f(S) <= n < 2**33 (at b = 0 no loss passes 1), so that scores in this unit fit in int64 for
#: every table.
_SMALLEST_UNIT = Fraction(1, 2**29)


@dataclass(frozen=True)
class Sensitivity:
    """Exact constants of a problem; everything here is public.

    Attributes
    ----------
    range : Fraction
        How far one record, added or removed, moves scores relative to each other.
    score_step : Fraction
        The grid of the scores: they are integer multiples of it. Not the unit of privacy, which is
        the schema's.
    rule : str
        Which rule the range follows.
    """

    range: Fraction
    score_step: Fraction
    rule: str

    @classmethod
    def of(cls, problem: Problem, rule: str = "sharp") -> Sensitivity:
        """Sensitivity by the sharp rule, or by a published looser one."""
        rules = loss_of(problem).ranges
        if not isinstance(rule, str) or rule not in rules:
            raise ArgumentError(
                f"sensitivity must be one of {', '.join(rules)} for the {problem.loss} loss"
            )
        sharp = rules["sharp"](problem.prediction_bound)
        # A power of two, so that scores convert between floats and integers without rounding. It
        # follows the sharp range, so that a score does not depend on the rule.
        exponent = (sharp.numerator.bit_length() - sharp.denominator.bit_length()) - 1
        score_step = max(Fraction(2) ** (exponent - _GRID_BITS), _SMALLEST_UNIT)
        return cls(rules[rule](problem.prediction_bound), score_step, rule)

    @property
    def tau(self) -> Fraction:
        """Certified bound on the numerical error of a score."""
        return self.score_step

    def score_range(self, neighbours: Neighbours) -> Fraction:
        """Largest difference, over supports, of how far one record moves their scores."""
        factor = {"replace-one": 2, "add-remove": 1}[neighbours]
        return factor * self.range + 4 * self.tau

    def eta(self, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """Weight of a score in a mechanism whose privacy loss is eta times the spread."""
        return epsilon / self.score_range(neighbours)
