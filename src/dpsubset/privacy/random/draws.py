"""Random draws with exact distributions.

Uniform integers and subsets come from integer arithmetic. Real-valued events (does U fall below
exp(-x)?) come from lazily refined uniforms: U is known as an interval that shrinks as bits are
added, exp(-x) as an interval that shrinks with the working precision, and the event is decided
when the intervals are disjoint. Float64 with generous error bounds decides almost always; ball
arithmetic (python-flint) decides the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import flint

from ...base.rounding import ball
from .source import Source

#: Bits drawn for a uniform before its first comparison.
START_BITS = 64

#: Relative error granted to math.exp; real libraries stay below 2**-51.
_EXP_ERROR = 2.0**-45


class Randomness:
    """Exact draws from a source of bits.

    ``start_bits`` are the bits and the working precision of a first comparison. The distribution
    does not depend on it; tests use 8 to make every refinement happen.
    """

    def __init__(self, source: Source, start_bits: int = START_BITS) -> None:
        self.source = source
        self.start_bits = start_bits

    def below(self, n: int) -> int:
        """A uniform integer in [0, n)."""
        count = (n - 1).bit_length()
        while True:
            value = self.source.bits(count)
            if value < n:
                return value

    def subset(self, n: int, m: int) -> list[int]:
        """A uniform m-subset of range(n), sorted (Floyd's algorithm)."""
        chosen: set[int] = set()
        for top in range(n - m, n):
            pick = self.below(top + 1)
            chosen.add(top if pick in chosen else pick)
        return sorted(chosen)

    def permutation(self, n: int) -> Iterator[int]:
        """The numbers below n in uniformly random order, drawn lazily."""
        moved: dict[int, int] = {}
        for left in range(n, 0, -1):
            pick = self.below(left)
            yield moved.get(pick, pick)
            moved[pick] = moved.get(left - 1, left - 1)

    def uniform(self) -> LazyUniform:
        """A uniform on (0, 1), known to ``start_bits`` bits so far."""
        return LazyUniform(self)

    def bernoulli_exp(self, weight: Fraction, times: int = 1) -> bool:
        """True with probability exp(-x), x = weight * times >= 0 (exact; multiplied if needed)."""
        if times == 0 or weight == 0:
            return True
        u = self.uniform()
        if u.coarse:
            exponent = float(weight) * times
            chance = math.exp(-exponent) if exponent < 600.0 else 0.0
            verdict = u.below_float(chance, chance * (1.0 + exponent) * _EXP_ERROR + 2.0**-800)
            if verdict is not None:
                return verdict
        return u.below_exp(weight * times)

    def poisson_one(self) -> int:
        """A Poisson count with mean 1, by inversion of its distribution function."""
        u = self.uniform()
        count = 0
        if u.coarse:
            for bound in _POISSON:
                verdict = u.below_float(bound, 2.0**-48)
                if verdict is None:
                    break
                if verdict:
                    return count
                count += 1
        while True:
            verdict = u.below_ball(_poisson_sum(count, u.bits + 16))
            if verdict is None:
                u.refine()
            elif verdict:
                return count
            else:
                count += 1


class LazyUniform:
    """A uniform U on (0, 1) with value <= U * 2**bits < value + 1; sorts by its value."""

    def __init__(self, rng: Randomness) -> None:
        self._source = rng.source
        self.bits = rng.start_bits
        self.value = self._source.bits(self.bits)

    def refine(self) -> None:
        """Double the number of known bits."""
        self.value = (self.value << self.bits) | self._source.bits(self.bits)
        self.bits *= 2

    @property
    def coarse(self) -> bool:
        """Whether a first comparison in float64 is useful."""
        return self.bits == START_BITS

    def below_float(self, x: float, error: float) -> bool | None:
        """Whether U lies below x, known up to an error; None if float64 cannot decide."""
        u = math.ldexp(self.value, -self.bits)
        slack = error + u * 2.0**-50 + 2.0**-START_BITS
        if u + slack < x:
            return True
        if u - slack > x:
            return False
        return None

    def below_ball(self, x: flint.arb) -> bool | None:
        """Whether U lies below a number known as a ball; None if the intervals overlap."""
        # The default precision would round off the deciding bits.
        with flint.ctx.workprec(self.bits + 64):
            scaled = x * flint.arb(2) ** self.bits
            if scaled >= self.value + 1:
                return True
            if scaled <= self.value:
                return False
            return None

    def below_exp(self, x: Fraction, j: int = 0) -> bool:
        """Whether U < 2**j exp(-x), for x > 0. U is refined until this is decided."""
        while True:
            low, high = exp_interval(x, self.bits + 16 + j)
            if (self.value + 1) << 16 <= low:
                return True
            if self.value << 16 >= high:
                return False
            self.refine()

    def ball(self) -> flint.arb:
        """U as a ball, at the working precision of the moment (at least ``bits``)."""
        half = flint.arb(1) / 2
        return (self.value + flint.arb(half, half)) / flint.arb(2) ** self.bits

    def __lt__(self, other: LazyUniform) -> bool:
        while True:
            if (self.value + 1) << other.bits <= other.value << self.bits:
                return True
            if (other.value + 1) << self.bits <= self.value << other.bits:
                return False
            (self if self.bits <= other.bits else other).refine()


class Categorical:
    """Draws of index i with probability proportional to exp(-x_i), x_i = eta * d_i >= 0.

    By inversion: a lazily refined uniform times the total falls between two partial sums.
    """

    def __init__(self, differences: Sequence[int], eta: Fraction) -> None:
        self._differences = [int(d) for d in differences]
        self._eta = eta
        self._sums: dict[int, tuple[list[int], list[int]]] = {}

    def draw(self, rng: Randomness) -> int:
        """One index."""
        u = rng.uniform()
        while True:
            low, high = self._partial_sums(u.bits)
            # U * total lies in [value * total_low, (value + 1) * total_high) / 2**bits.
            start = u.value * low[-1]
            end = (u.value + 1) * high[-1]
            i = _first_above(high, start, u.bits)
            if (i == 0 or high[i - 1] << u.bits <= start) and end <= low[i] << u.bits:
                return i
            u.refine()

    def _partial_sums(self, bits: int) -> tuple[list[int], list[int]]:
        """Lower and upper partial sums of the weights, in multiples of 2**-precision."""
        if bits not in self._sums:
            precision = bits + len(self._differences).bit_length() + 8
            known: dict[int, tuple[int, int]] = {}
            low, high, below, above = [], [], 0, 0
            for d in self._differences:
                if d not in known:
                    known[d] = exp_interval(self._eta * d, precision)
                below += known[d][0]
                above += known[d][1]
                low.append(below)
                high.append(above)
            self._sums[bits] = (low, high)
        return self._sums[bits]


def _first_above(sums: list[int], target: int, bits: int) -> int:
    """The first i with sums[i] * 2**bits > target."""
    left, right = 0, len(sums) - 1
    while left < right:
        middle = (left + right) // 2
        if sums[middle] << bits > target:
            right = middle
        else:
            left = middle + 1
    return left


def exp_interval(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers low <= exp(-x) * 2**precision <= high, about one apart."""
    if x > precision + 1:  # exp(-x) < 2**-x
        return 0, 1
    saved = flint.ctx.prec
    flint.ctx.prec = precision + 16
    try:
        scaled = (-ball(x)).exp() * flint.arb(2) ** precision
        return int(scaled.lower().floor().fmpz()), int(scaled.upper().ceil().fmpz())
    finally:
        flint.ctx.prec = saved


def _poisson_sum(count: int, precision: int) -> flint.arb:
    """P(N <= count) for a Poisson variable with mean 1."""
    with flint.ctx.workprec(precision):
        terms = sum(Fraction(1, math.factorial(i)) for i in range(count + 1))
        return ball(Fraction(terms)) * flint.arb(-1).exp()


_POISSON = [math.exp(-1) * sum(1 / math.factorial(i) for i in range(n + 1)) for n in range(12)]
