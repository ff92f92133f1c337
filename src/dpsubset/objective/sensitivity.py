"""How far one record can move the scores, as exact rationals.

Adding a record z = (x, y) changes f(S), for every S, by an amount between the smallest and the
largest loss l(y, t) over |t| <= B. A selection does not change when all scores move by the same
amount, and y is the same for every S. What matters is therefore the *score range*: the largest
difference of these changes over the supports. It is at most

    range = max over y of (max over |t| <= B of l(y, t) - min over |t| <= B of l(y, t))

for a record added or removed, and twice that for a record replaced.

The program computes f~, an integer multiple of ``score_step``, with |f~ - f| <= tau = score_step.
On two neighbouring tables the errors differ by at most 2 tau in either direction, which adds 4 tau
to the score range. A mechanism whose privacy loss is at most eta times the score range is
epsilon-private for

    eta = epsilon / score_range,
    score_range = range + 4 tau (add-remove) or 2 range + 4 tau (replace-one).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..base.errors import ArgumentError
from ..privacy.relations import Neighbours
from .losses import loss_of
from .problem import Problem

#: The grid of scores is this many bits finer than the range of the loss, unless B is tiny. The
#: error of a score costs at most 4 * 2**-16 of epsilon, and float64 can certify scores of tables of
#: up to about 10**8 rows: for losses summed over records at any B, for least squares at a B of
#: about 1 or more. Each further bit would halve that number.
_GRID_BITS = 16

#: 0 <= f(S) <= n < 2**33 (at b = 0 no loss exceeds 1), so that scores in steps of at least this
#: size fit in int64 for every table.
_SMALLEST_STEP = Fraction(1, 2**29)


@dataclass(frozen=True)
class Sensitivity:
    """Exact constants of a problem. Public."""

    #: How far one record, added or removed, moves scores relative to each other.
    range: Fraction
    #: The grid of the scores, which are integer multiples of it.
    score_step: Fraction
    #: The rule that the range follows.
    rule: str

    @classmethod
    def of(cls, problem: Problem, rule: str = "sharp") -> Sensitivity:
        """The sensitivity by the sharp rule, or by a looser published one."""
        rules = loss_of(problem).ranges
        if not isinstance(rule, str) or rule not in rules:
            raise ArgumentError(
                f"sensitivity must be one of {', '.join(rules)} for the {problem.loss} loss"
            )
        sharp = rules["sharp"](problem.prediction_bound)
        # A power of two, so that scores convert between floats and integers without rounding. It
        # follows the sharp range, so that a score does not depend on the rule.
        exponent = (sharp.numerator.bit_length() - sharp.denominator.bit_length()) - 1
        score_step = max(Fraction(2) ** (exponent - _GRID_BITS), _SMALLEST_STEP)
        return cls(rules[rule](problem.prediction_bound), score_step, rule)

    @property
    def tau(self) -> Fraction:
        """A certified bound on the numerical error of a score."""
        return self.score_step

    def score_range(self, neighbours: Neighbours) -> Fraction:
        """The largest difference, over supports, of the changes of their scores by one record."""
        factor = {"replace-one": 2, "add-remove": 1}[neighbours]
        return factor * self.range + 4 * self.tau

    def eta(self, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """The weight of scores in a mechanism whose privacy loss is eta times the score range."""
        return epsilon / self.score_range(neighbours)
