"""A private scale of the response: quantiles of integers by the exponential mechanism, exactly.

Behind the door a response is an integer, so a table's responses are a histogram: `counts`, one
count for each value -m, ..., m of the grid. For a share p = a / (a + b) a value v with L records
below it, E at it and G above it has the *rank error*

    s(v) = max(0, b L - a (E + G), a G - b (L + E)),

in multiples of 1 / (a + b) records: how far p n lies outside [L, L + E]. It is 0 where v holds the
quantile, for as many records at v as there may be, and it needs no n. A value is released with
probability proportional to exp(-weight * s(v) / (a + b)). All values of the grid are candidates,
whatever the records are.

How far one record moves rank errors relative to each other, in records (`spread`):

=============  ========================================================
replace-one    2 for each quantile
add-remove     sum of max(p, 1 - p) + max(sum of p, sum of (1 - p))
=============  ========================================================

The sums are over all quantiles that are released together. A release costs weight * spread.
`proofs/scale.md` has the proofs.

*Why not permute-and-flip.* It is never worse, and better where one value holds much of the data:
up to half the rank error there. Its gain is worth log 2 in weight * s at most, where log 65535 is
what it takes to be right at all; among many values of nearly the same rank the two agree. What the
exponential mechanism has is this: its draw needs one pass over the values, whatever they are
(`_Shells`), with a proof of a few lines.
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
from .guarantee import Cost, Guarantee
from .random import Randomness
from .random.draws import LazyUniform, exp_interval
from .relations import RELATIONS, Neighbours

#: Largest denominator of a share. A table has fewer than 2**33 records, so that rank errors stay
#: below 2**43, and their products with a rate of `_RATE_BITS` bits below 2**62.
LARGEST_DENOMINATOR = 2**10
_RATE_BITS = 19

#: Shells of `_Shells`: beyond the last, weights are below 2**-64 of the largest.
_DEEPEST = 64

#: A little less than 1 / log(2), which is 1.44269504...
_BITS_A_UNIT = Fraction(1_442_695, 10**6)


@renamed_arguments(shares="probs", widening="width_factor", least="min_half_width")
@dataclass(frozen=True)
class QuantileRule:
    """What is released of a response's scale: one quantile, or two. Public.

    Attributes
    ----------
    probs : tuple of one or two Fractions
        Which quantiles: a half is the median.
    width_factor : Fraction
        With two quantiles, the half-width in multiples of half their distance.
    min_half_width : Fraction
        The least half-width, in steps of the grid; with one quantile it is the half-width. It keeps
        a response most of whose values are equal from having no width at all.
    """

    probs: tuple[Fraction, ...]
    width_factor: Fraction = Fraction(1)
    min_half_width: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "probs", _shares(self.probs))
        for name in ("width_factor", "min_half_width"):
            number = _written(getattr(self, name), name)
            if number <= 0:
                raise ArgumentError(f"{name} must be greater than 0")
            object.__setattr__(self, name, number)
        if len(self.probs) > 2:
            raise ArgumentError("a scale is made of one quantile or two")

    @classmethod
    def median(cls, least: Any = 1) -> QuantileRule:
        """The median alone, and a width that is public."""
        return cls((Fraction(1, 2),), min_half_width=least)

    @classmethod
    def quartiles(cls, widening: Any = 1, least: Any = 1) -> QuantileRule:
        """Both quartiles: their middle, and a multiple of their distance."""
        return cls((Fraction(1, 4), Fraction(3, 4)), widening, least)

    def weight(self, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """Of a rank error of one record, for a release that costs epsilon."""
        return _budget(epsilon) / rank_error_range(self.probs, neighbours)

    def guarantee(
        self, epsilon: Fraction, neighbours: Neighbours, *, seeded: bool = False
    ) -> Guarantee:
        """What the release costs; it is known before any value is."""
        weight = self.weight(epsilon, neighbours)
        costs = {
            relation: Cost(weight * rank_error_range(self.probs, relation), bounded_range=True)
            for relation in RELATIONS
        }
        return Guarantee(neighbours, costs, seeded)

    def scale(self, quantiles: Sequence[int]) -> Scale:
        """What follows from the released quantiles. It uses nothing else that is private."""
        # Noise may have crossed them.
        low, high = min(quantiles), max(quantiles)
        width = max(self.min_half_width, self.width_factor * Fraction(high - low, 2))
        return Scale(Fraction(low + high, 2), width, tuple(quantiles))


@dataclass(frozen=True)
class Scale:
    """A released scale, in steps of the grid: public.

    Attributes
    ----------
    centre : Fraction
        The middle of the response; a multiple of 1/2.
    half_width : Fraction
        Where it is clipped, on either side of the centre; greater than 0.
    quantiles : tuple of int
        What they were made of, in the order of the rule's shares. Scales that do the same to a
        response are equal, whatever they were made of.
    """

    centre: Fraction
    half_width: Fraction
    quantiles: tuple[int, ...] = field(default=(), compare=False)

    def images(self, steps: int) -> NDArray[np.int16]:
        """What each value of the grid -steps, ..., steps counts as in this scale.

        (q - centre) * steps / half_width, to the nearest integer, clipped to the same grid: in
        integers, so that it is the same everywhere. Halves are rounded away from the centre.
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


def private_scale(
    counts: NDArray[np.int64],
    rule: QuantileRule,
    epsilon: Fraction,
    neighbours: Neighbours,
    rng: Randomness,
) -> tuple[Scale, Guarantee]:
    """Release the scale of a response, and what it costs.

    Parameters
    ----------
    counts : array of int64
        The histogram of the response: how many records have each value of the grid. Private.
    rule : QuantileRule
        What is released.
    epsilon : Fraction
        What the whole release costs under ``neighbours``.
    neighbours : {"replace-one", "add-remove"}
        Which tables count as neighbours.
    rng : Randomness
        Where the noise comes from.
    """
    guarantee = rule.guarantee(epsilon, neighbours, seeded=not rng.source.secure)
    return QuantileSampler(counts, rule, epsilon, neighbours).draw(rng), guarantee


class QuantileSampler:
    """Draws scales of one response, as often as asked. Private data inside.

    See `private_scale` for the arguments, and for what each draw costs.
    """

    def __init__(
        self,
        counts: NDArray[np.int64],
        rule: QuantileRule,
        epsilon: Fraction,
        neighbours: Neighbours,
    ) -> None:
        counts, weight = _checked(counts), rule.weight(epsilon, neighbours)
        self._rule, self._steps = rule, len(counts) // 2
        self._shells = [_shells(counts, share, weight) for share in rule.probs]

    def __repr__(self) -> str:
        return f"QuantileSampler({self._rule}, private values hidden)"

    def draw(self, rng: Randomness) -> Scale:
        """One scale: one draw a quantile, each of its own."""
        return self._rule.scale([shells.draw(rng) - self._steps for shells in self._shells])


def quantile(
    counts: NDArray[np.int64],
    share: Fraction,
    epsilon: Fraction,
    neighbours: Neighbours,
    rng: Randomness,
) -> int:
    """One private quantile: a value of the grid -m, ..., m, where ``counts`` has 2 m + 1 entries.

    It costs epsilon under ``neighbours``; see `private_scale` for the arguments.
    """
    (share,) = _shares((share,))
    weight = _budget(epsilon) / rank_error_range((share,), neighbours)
    return _shells(_checked(counts), share, weight).draw(rng) - len(counts) // 2


def log_probabilities(
    counts: NDArray[np.int64], share: Fraction, weight: Fraction
) -> NDArray[np.float64]:
    """Closed form of one quantile, in logarithms, over all values of the grid: for audits."""
    (share,) = _shares((share,))
    errors = rank_errors(_checked(counts), share)
    exponents = errors * float(weight / share.denominator)
    return np.asarray(-exponents - np.log(np.exp(-exponents).sum()))


def rank_error_range(shares: Sequence[Fraction], neighbours: Neighbours) -> Fraction:
    """How far one record moves rank errors relative to each other, summed over the quantiles.

    In records: rank errors, which count multiples of 1 / (a + b), move (a + b) times as far.
    """
    # A word that is neither must not be taken for the relation that costs less.
    if check_choice(neighbours, RELATIONS, "neighbours") == "replace-one":
        return Fraction(2 * len(shares))
    up = sum((max(p, 1 - p) for p in shares), Fraction(0))
    # A record below all quantiles, or above all of them. Between them it does less.
    down = max(sum((1 - p for p in shares), Fraction(0)), sum(shares, Fraction(0)))
    return up + down


def rank_errors(counts: NDArray[np.int64], share: Fraction) -> NDArray[np.int64]:
    """s(v) for every value v of the grid; the least is 0."""
    a, b = share.numerator, share.denominator - share.numerator
    up_to = np.cumsum(counts)
    below, above = up_to - counts, up_to[-1] - up_to
    over = b * below - a * (above + counts)
    under = a * above - b * (below + counts)
    return np.asarray(np.maximum(np.maximum(over, under), 0))


def histogram(values: NDArray[Any], steps: int) -> NDArray[np.int64]:
    """How many of some integers from -steps to steps have each value."""
    found = np.bincount(np.asarray(values, dtype=np.int64) + steps, minlength=2 * steps + 1)
    return np.asarray(found, dtype=np.int64)


def _shells(counts: NDArray[np.int64], share: Fraction, weight: Fraction) -> _Shells:
    """For draws of one quantile, as an index of ``counts``."""
    return _Shells(rank_errors(counts, share), weight / share.denominator)


class _Shells:
    """Draws index i with probability proportional to exp(-eta * errors[i]), by rejection.

    Shell j holds indices with 2**-j >= exp(-eta * errors[i]). An index is proposed with a
    probability proportional to 2**-j, which is a matter of integers, and accepted with probability
    2**j exp(-eta * errors[i]). Shells are so narrow that about one in two is accepted.

    Parameters
    ----------
    errors : array of int64
        Not negative, the least is 0.
    eta : Fraction
        Greater than 0.
    deepest : int
        The number of the last shell. The distribution does not depend on it; tests use few, so that
        every way of a draw can be followed.
    """

    def __init__(self, errors: NDArray[np.int64], eta: Fraction, deepest: int = _DEEPEST) -> None:
        self._errors, self._eta, self._deepest = errors, eta, deepest
        # rate / 2**shift is at most eta / log 2, so shells are right; and nearly that, so they are
        # narrow. An eta beyond the bits of a rate makes them wider than they could be: an error of
        # 1 is in the last shell then.
        bits = eta * _BITS_A_UNIT
        size = bits.numerator.bit_length() - bits.denominator.bit_length()
        shift = max(0, _RATE_BITS - 1 - size)
        rate = min(int(bits * 2**shift), 2**_RATE_BITS - 1)
        # Products are below 2**62: a shift by 63 leaves nothing of them, like any longer one.
        self._shells = np.minimum((errors * rate) >> min(shift, 63), deepest)
        self._sizes = np.bincount(self._shells, minlength=deepest + 1).tolist()
        self._total = sum(size << deepest - j for j, size in enumerate(self._sizes))

    def __repr__(self) -> str:
        return f"_Shells({len(self._errors)} values, private errors hidden)"

    def draw(self, rng: Randomness) -> int:
        """One index."""
        while True:
            j, place = self._located(rng.below(self._total))
            i = int(np.flatnonzero(self._shells == j)[place])
            error = int(self._errors[i])
            if error == 0 or _below_exp(rng.uniform(), self._eta * error, j):
                return i

    def _located(self, mass: int) -> tuple[int, int]:
        """The shell into which a mass below the total falls, and which of its indices it hits."""
        for j, size in enumerate(self._sizes):
            held = size << self._deepest - j
            if mass < held:
                return j, mass >> self._deepest - j
            mass -= held
        raise AssertionError("a mass is below the total")


def _below_exp(u: LazyUniform, x: Fraction, j: int) -> bool:
    """Whether U < 2**j exp(-x), for x > 0; U is refined as far as that takes."""
    while True:
        low, high = exp_interval(x, u.bits + 16 + j)
        if (u.value + 1) << 16 <= low:
            return True
        if u.value << 16 >= high:
            return False
        u.refine()


def _shares(shares: Sequence[Any]) -> tuple[Fraction, ...]:
    """Shares of quantiles, in ascending order."""
    found = tuple(sorted(_written(share, "a share") for share in shares))
    if not found or not all(0 < share < 1 for share in found):
        raise ArgumentError("shares of quantiles lie between 0 and 1")
    if max(share.denominator for share in found) > LARGEST_DENOMINATOR:
        raise ArgumentError(f"the denominator of a share is at most {LARGEST_DENOMINATOR}")
    return found


def _written(value: Any, what: str) -> Fraction:
    """A float stands for its shortest decimal: 0.1 is one tenth, whose denominator is small."""
    found = as_decimal_fraction(value)
    return check_fraction(value, what) if found is None else found


def _budget(epsilon: Fraction) -> Fraction:
    epsilon = check_fraction(epsilon, "epsilon")
    if epsilon <= 0:
        raise ArgumentError("epsilon must be greater than 0")
    return epsilon


def _checked(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """A histogram of the right shape, which is public."""
    if counts.ndim != 1 or counts.dtype != np.int64 or len(counts) % 2 == 0:
        raise ArgumentError("counts are int64, one for each value from -m to m")
    return counts
