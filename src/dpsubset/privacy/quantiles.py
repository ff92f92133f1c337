"""Private quantiles of integers by the exponential mechanism, drawn exactly; ranges made of them.

A quantized column is a histogram: `counts` has one count for each value -m, ..., m of the grid. For
a quantile of probability p = a / (a + b), a value v with L records below it, E at it and G above it
has the *rank error*

    s(v) = max(0, b L - a (E + G), a G - b (L + E)),

in multiples of 1 / (a + b) records: how far p n lies outside [L, L + E]. It is 0 if v is the
quantile, however many records are at v, and it does not need n. A value is released with
probability proportional to exp(-weight * s(v) / (a + b)). All values of the grid are candidates,
whatever the records are.

One record moves rank errors relative to each other by at most (in records, `rank_error_range`):

=============  ========================================================
replace-one    2 for each quantile
add-remove     sum of max(p, 1 - p) + max(sum of p, sum of (1 - p))
=============  ========================================================

The sums are over all quantiles that are released together. A release costs weight times this range.
`proofs/scale.md` has the proofs.

*Why not permute-and-flip?* It is never worse, and has up to half the rank error if one value holds
much of the data. But it gains at most log 2 in weight * s, out of the log 65535 that a useful
quantile needs, and nothing among many values of nearly equal rank. A draw of the exponential
mechanism needs one pass over the values (`_ShellSampler`), and its proof has a few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.renamed import renamed_arguments
from ..base.validation import as_decimal_fraction, check_choice, check_fraction
from ..schema.layout import STEPS
from .guarantee import Cost, Guarantee
from .random import Randomness
from .relations import RELATIONS, Neighbours

#: Largest denominator of a probability. A table has fewer than 2**33 records, so that rank errors
#: stay below 2**43, and their products with a rate of `_RATE_BITS` bits below 2**62.
LARGEST_DENOMINATOR = 2**10
_RATE_BITS = 19

#: Number of shells of a `_ShellSampler`: beyond the last, weights are below 2**-64 of the largest.
_DEEPEST = 64

#: A little less than 1 / log(2), which is 1.44269504...
_BITS_A_UNIT = Fraction(1_442_695, 10**6)


@renamed_arguments(shares="probs", widening="width_factor", least="min_half_width")
@dataclass(frozen=True)
class QuantileRule:
    """Which quantiles are released, and the range that is made of them. Public.

    Attributes
    ----------
    probs : tuple of one or two Fractions
        Probabilities of the quantiles: a half is the median.
    width_factor : Fraction
        Half-width of the range, in multiples of half the distance of the two quantiles. The range
        is never wider than it has to be to contain the declared bounds.
    min_half_width : Fraction
        The smallest half-width, in steps of the grid; with one quantile it is the half-width. It
        gives a range to a column most of whose values are equal.
    """

    probs: tuple[Fraction, ...]
    width_factor: Fraction = Fraction(1)
    min_half_width: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "probs", _check_probs(self.probs))
        for name in ("width_factor", "min_half_width"):
            number = _exact_fraction(getattr(self, name), name)
            if number <= 0:
                raise ArgumentError(f"{name} must be greater than 0")
            object.__setattr__(self, name, number)
        if len(self.probs) > 2:
            raise ArgumentError("a range is made of one or two quantiles")

    @classmethod
    def median(cls, least: Any = 1) -> QuantileRule:
        """The median alone, with a public width."""
        return cls((Fraction(1, 2),), min_half_width=least)

    @classmethod
    def quartiles(cls, widening: Any = 1, least: Any = 1) -> QuantileRule:
        """Both quartiles: the range is their middle plus and minus a multiple of their distance."""
        return cls((Fraction(1, 4), Fraction(3, 4)), widening, least)

    def weight(self, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """Weight of a rank error of one record, for a release that costs epsilon."""
        return _check_epsilon(epsilon) / rank_error_range(self.probs, neighbours)

    def guarantee(
        self, epsilon: Fraction, neighbours: Neighbours, *, seeded: bool = False
    ) -> Guarantee:
        """Guarantee of the release, which does not depend on the data."""
        weight = self.weight(epsilon, neighbours)
        costs = {
            relation: Cost(weight * rank_error_range(self.probs, relation), bounded_range=True)
            for relation in RELATIONS
        }
        return Guarantee(neighbours, costs, seeded)

    def range_of(self, quantiles: Sequence[int]) -> RangeInSteps:
        """The range that is made of released quantiles, and of nothing else that is private."""
        # With noise they may be in the wrong order.
        low, high = min(quantiles), max(quantiles)
        width = max(self.min_half_width, self.width_factor * Fraction(high - low, 2))
        centre = Fraction(low + high, 2)
        # A range that contains the declared bounds clips nothing. If it were still wider, the
        # values would only be smaller parts of it.
        return RangeInSteps(centre, min(width, STEPS + abs(centre)), tuple(quantiles))


@dataclass(frozen=True)
class RangeInSteps:
    """A range of a column, in steps of the grid. Public."""

    #: The middle of the range; a multiple of 1/2 if it was made of quantiles.
    centre: Fraction
    #: Distance of both ends from the centre; greater than 0.
    half_width: Fraction
    #: The released quantiles, in the order of the rule's probabilities. Not compared by ``==``.
    quantiles: tuple[int, ...] = field(default=(), compare=False)

    def images(self, steps: int) -> NDArray[np.int16]:
        """The map of the grid -steps, ..., steps that clips to this range and scales it to the
        grid.

        (q - centre) * steps / half_width, to the nearest integer, clipped to the grid. Halves are
        rounded away from the centre. Computed in integers, so that it is equal on all machines.
        """
        low, high = ceil(self.centre - self.half_width), floor(self.centre + self.half_width)
        within = range(max(low, -steps), min(high, steps) + 1)
        above, below = (steps / self.half_width).as_integer_ratio()
        first, rest = self.centre.as_integer_ratio()
        bottom = 2 * rest * below
        # Python's integers where int64 could not hold the products.
        small = 2 * above * (rest * steps + abs(first)) + bottom < 2**62
        values = np.arange(within.start, max(within.start, within.stop), dtype=np.int64)
        tops = 2 * above * (rest * values.astype(np.int64 if small else object) - first)
        nearest = (abs(tops) + bottom // 2) // bottom * np.where(tops > 0, 1, -1)
        found = np.full(2 * steps + 1, steps, dtype=np.int16)
        found[: within.start + steps] = -steps
        found[within.start + steps : within.stop + steps] = nearest
        return found


class QuantileSampler:
    """Draws ranges of one column, each at the cost of a release. Contains private data.

    ``counts`` is the histogram of the column: how many records have each value of the grid. A draw
    costs ``epsilon`` under ``neighbours``.
    """

    def __init__(
        self,
        counts: NDArray[np.int64],
        rule: QuantileRule,
        epsilon: Fraction,
        neighbours: Neighbours,
    ) -> None:
        counts, weight = _check_counts(counts), rule.weight(epsilon, neighbours)
        self._rule, self._steps = rule, len(counts) // 2
        self._shells = [_sampler(counts, prob, weight) for prob in rule.probs]

    def __repr__(self) -> str:
        return f"QuantileSampler({self._rule}, private values hidden)"

    def draw(self, rng: Randomness) -> RangeInSteps:
        """Draw one range: each quantile is drawn independently."""
        return self._rule.range_of([shells.draw(rng) - self._steps for shells in self._shells])


def log_probabilities(
    counts: NDArray[np.int64], prob: Fraction, weight: Fraction
) -> NDArray[np.float64]:
    """Logarithms of the probabilities of one quantile, over all values of the grid: for audits."""
    (prob,) = _check_probs((prob,))
    errors = rank_errors(_check_counts(counts), prob)
    exponents = errors * float(weight / prob.denominator)
    return np.asarray(-exponents - np.log(np.exp(-exponents).sum()))


def rank_error_range(probs: Sequence[Fraction], neighbours: Neighbours) -> Fraction:
    """How far one record moves rank errors relative to each other, summed over the quantiles.

    In records. Rank errors are in multiples of 1 / (a + b) records.
    """
    # Checked, since a misspelt relation must not be treated as the cheaper one.
    if check_choice(neighbours, RELATIONS, "neighbours") == "replace-one":
        return Fraction(2 * len(probs))
    up = sum((max(p, 1 - p) for p in probs), Fraction(0))
    # The worst record lies below all quantiles, or above all of them.
    down = max(sum((1 - p for p in probs), Fraction(0)), sum(probs, Fraction(0)))
    return up + down


def rank_errors(counts: NDArray[np.int64], prob: Fraction) -> NDArray[np.int64]:
    """The rank error s(v) of every value v of the grid; the smallest is 0."""
    a, b = prob.numerator, prob.denominator - prob.numerator
    up_to = np.cumsum(counts)
    below, above = up_to - counts, up_to[-1] - up_to
    over = b * below - a * (above + counts)
    under = a * above - b * (below + counts)
    return np.asarray(np.maximum(np.maximum(over, under), 0))


def histogram(values: NDArray[Any], steps: int) -> NDArray[np.int64]:
    """Counts of integers from -steps to steps, by value."""
    found = np.bincount(np.asarray(values, dtype=np.int64) + steps, minlength=2 * steps + 1)
    return np.asarray(found, dtype=np.int64)


def _sampler(counts: NDArray[np.int64], prob: Fraction, weight: Fraction) -> _ShellSampler:
    """A sampler of one quantile, as an index of ``counts``."""
    return _ShellSampler(rank_errors(counts, prob), weight / prob.denominator)


class _ShellSampler:
    """Draws index i with probability proportional to exp(-eta * errors[i]), by rejection.

    Indices are grouped by weight: in shell j, exp(-eta * errors[i]) <= 2**-j, and nearly equal to
    it within a factor of about 2. An index is proposed with a probability proportional to 2**-j,
    which needs integers alone, and accepted with probability 2**j exp(-eta * errors[i]), about one
    half.

    Errors are not negative, and the smallest is 0. ``deepest`` is the number of the last shell. The
    distribution does not depend on it; tests use few shells.
    """

    def __init__(self, errors: NDArray[np.int64], eta: Fraction, deepest: int = _DEEPEST) -> None:
        self._errors, self._eta, self._deepest = errors, eta, deepest
        # rate / 2**shift is at most eta / log 2, so that the bound of each shell holds, and close
        # to it, so that shells are narrow. If eta exceeds the bits of a rate, shells are wider than
        # necessary: an error of 1 is in the last shell then.
        bits = eta * _BITS_A_UNIT
        size = bits.numerator.bit_length() - bits.denominator.bit_length()
        shift = max(0, _RATE_BITS - 1 - size)
        rate = min(int(bits * 2**shift), 2**_RATE_BITS - 1)
        # Products are below 2**62, so a shift by 63 gives 0, as any longer one would.
        self._shells = np.minimum((errors * rate) >> min(shift, 63), deepest)
        self._sizes = np.bincount(self._shells, minlength=deepest + 1).tolist()
        self._total = 0  # each value of shell j has the mass 2**(deepest - j)
        for size in self._sizes:
            self._total = 2 * self._total + size

    def __repr__(self) -> str:
        return f"_ShellSampler({len(self._errors)} values, private errors hidden)"

    def draw(self, rng: Randomness) -> int:
        """One index."""
        while True:
            j, place = self._located(rng.below(self._total))
            i = int(np.flatnonzero(self._shells == j)[place])
            error = int(self._errors[i])
            if error == 0 or rng.uniform().below_exp(self._eta * error, j):
                return i

    def _located(self, mass: int) -> tuple[int, int]:
        """The shell that contains a mass below the total, and the place in it of the index."""
        for j, size in enumerate(self._sizes):
            held = size << self._deepest - j
            if mass < held:
                return j, mass >> self._deepest - j
            mass -= held
        raise AssertionError("a mass is below the total")


def _check_probs(probs: Sequence[Any]) -> tuple[Fraction, ...]:
    """Check probabilities of quantiles, and sort them."""
    found = tuple(sorted(_exact_fraction(prob, "a probability") for prob in probs))
    if not found or not all(0 < prob < 1 for prob in found):
        raise ArgumentError("probabilities of quantiles lie between 0 and 1")
    if max(prob.denominator for prob in found) > LARGEST_DENOMINATOR:
        raise ArgumentError(f"the denominator of a probability is at most {LARGEST_DENOMINATOR}")
    return found


def _exact_fraction(value: Any, what: str) -> Fraction:
    """A rational number. A float stands for its shortest decimal: 0.1 is one tenth."""
    found = as_decimal_fraction(value)
    return check_fraction(value, what) if found is None else found


def _check_epsilon(epsilon: Fraction) -> Fraction:
    epsilon = check_fraction(epsilon, "epsilon")
    if epsilon <= 0:
        raise ArgumentError("epsilon must be greater than 0")
    return epsilon


def _check_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Check type and shape of a histogram, which are public."""
    if counts.ndim != 1 or counts.dtype != np.int64 or len(counts) % 2 == 0:
        raise ArgumentError("counts are int64, one for each value from -m to m")
    return counts
