"""Envelopes: integer masses of the supports of a region, never below the mechanism's weights.

    mass(S) >= 2**bits * q_S,   q_S = exp(-eta (f~(S) - ref))   for every S of the region

A modular bound gives every free feature an integer weight W_j >= exp(eta g_j) (up to a common
factor), and a support the product of its features' weights. The sum over a region is an elementary
symmetric polynomial, and a draw in proportion to mass is an exact integer draw. The leading weights
enter the polynomial exactly. The many small ones enter as if they could be picked repeatedly, which
only increases the sum; a draw that repeats a feature is discarded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..privacy.random import Randomness
from ..privacy.random.draws import exp_interval
from . import envelope_kernels
from .bounds import kernels
from .bounds.base import BoundOracle, Node
from .region import Region

#: Weights of features are integers of about this many bits.
WEIGHT_BITS = 40

#: Block and support envelopes are not used if their masses take more bits than this.
LONG_BITS = 8192

#: If more than one in so many supports of a flat leaf is excluded, the others are listed: uniform
#: draws would be rejected too often.
_MIN_SPARSITY = 4

Support = tuple[int, ...]


class MassScale:
    """What all masses of a race have in common: the mass 2**bits stands for a score of ``ref``."""

    def __init__(self, eta: Fraction, score_step: Fraction, ref: int, bits: int) -> None:
        self.weight = eta * score_step  # in the exponent, for one step of the score
        self.rate = float(self.weight)
        self.eta = float(eta)
        self.score_step = float(score_step)
        self.ref = ref
        self.bits = bits

    def exp2_rounded_up(self, log2: float) -> int:
        """An integer not below 2**log2, accurate to about nine digits where it is large."""
        log2 += abs(log2) * 2.0**-45 + 2.0**-32
        whole = math.floor(log2)
        mantissa = int(2.0 ** (log2 - whole) * 2.0**53) + 2
        return mantissa << (whole - 53) if whole >= 53 else (mantissa >> (53 - whole)) + 1

    def mass_of(self, score: int) -> int:
        """2**bits * q for a known score, rounded up by at most one."""
        if score >= self.ref:
            return exp_interval(self.weight * (score - self.ref), self.bits)[1]
        # Better than the reference: the inverse of a number that is rounded down.
        exponent = self.weight * (self.ref - score)
        precision = math.ceil(3 * exponent) + self.bits + 64
        low, _ = exp_interval(exponent, precision)
        return -(-(1 << (self.bits + precision)) // low)


class ModularEnvelope:
    """Masses of the supports of a region, by its modular bound."""

    def __init__(self, bound_oracle: BoundOracle, bound: Node, scale: MassScale) -> None:
        region = bound.region
        g = bound_oracle.gains(bound)
        log2 = scale.bits - scale.eta * (bound.base - scale.ref * scale.score_step) / math.log(2)
        self._members = [int(j) for j in region.members]
        self._pools = []
        for pool, m in enumerate(region.picks):
            if m:
                part = _Pool(g, region, pool, m, scale)
                log2 += part.log2
                self._pools.append(part)
        # Allows for the rounding of sums that cancel: see proofs/bounds.md.
        self._factor = scale.exp2_rounded_up(log2 + scale.bits * 2.0**-48)
        self.total = self._factor * math.prod(pool.total for pool in self._pools)
        #: No support of the region has a larger 2**bits * q.
        self.peak = self._factor * math.prod(pool.peak for pool in self._pools)

    def draw(self, rng: Randomness) -> tuple[Support, int] | None:
        """A support in proportion to its mass, and its mass; None if a feature repeats."""
        chosen = list(self._members)
        mass = self._factor
        for pool in self._pools:
            picked = pool.draw(rng.below(pool.total))
            if picked is None:
                return None
            features, product = picked
            chosen += features
            mass *= product
        return tuple(sorted(chosen)), mass


class Subsets:
    """Integer weights, and draws of t of their indices in proportion to the product of weights.

    ``sums[t]`` is the sum of these products, an elementary symmetric polynomial, for t up to
    ``most``.
    """

    def __init__(self, weights: Sequence[int], most: int) -> None:
        self.weights, self._most = weights, most
        self.sums = [1] + [0] * most
        for weight in weights:
            for t in range(most, 0, -1):
                self.sums[t] += weight * self.sums[t - 1]
        self._steps: list[list[int]] = []

    def peak(self, t: int) -> int:
        """The largest product of t weights."""
        return math.prod(sorted(self.weights, reverse=True)[:t])

    def draw(self, at: int, t: int) -> tuple[list[int], int]:
        """The t indices that a uniform number below sums[t] selects, and their product."""
        if not self._steps:
            self._step()
        places, product, i = [], 1, len(self.weights)
        while t:
            i -= 1
            step = self._steps[i][t]
            if at < step:
                weight = self.weights[i]
                places.append(i)
                product *= weight
                at //= weight
                t -= 1
            else:
                at -= step
        return places, product

    def _step(self) -> None:
        """steps[i][t]: the part of sums[t] over the first i + 1 weights that contains the i-th."""
        table = [1] + [0] * self._most
        for weight in self.weights:
            step = [0, *(weight * table[t] for t in range(self._most))]
            self._steps.append(step)
            table = [below + more for below, more in zip(table, step, strict=True)]


class _Pool:
    """Integer weights of one pool, and draws of m features in proportion to their product.

    Sums and masses count ordered picks: m! times the symmetric polynomial. Weights are relative to
    the m-th largest: the m largest together then have the mass that the bound gives them, and what
    is rounded up to 1 is small in comparison.
    """

    def __init__(
        self, g: NDArray[np.float64], region: Region, pool: int, m: int, scale: MassScale
    ) -> None:
        top = np.empty(min(3 * m + 8, region.sizes[pool]), dtype=np.int64)
        kernels.top_choices(g, region.status, pool, len(top), top)
        eta, middle = scale.eta, float(g[top[m - 1]])
        self._weights = np.empty(len(g), dtype=np.int64)
        capped = np.minimum(g, middle)
        rest = int(
            envelope_kernels.integer_weights(
                capped, region.status, pool, eta, middle, WEIGHT_BITS, self._weights
            )
        )
        self._top = top.tolist()
        leading = self._weights[top].tolist()
        self._rest = rest - sum(leading)
        self._weights[top] = 0
        self._sums: NDArray[np.int64] | None = None
        self._m, self._orders = m, math.factorial(m)
        # Divides out the common factor: weights contain 2**WEIGHT_BITS exp(-eta middle) each, and
        # ordered picks m!.
        self.log2 = m * (eta * middle / math.log(2) - WEIGHT_BITS) - math.log2(math.factorial(m))
        # The part above the middle. Beyond so many bits all supports without this feature are
        # negligible: enlarge the common factor instead of using longer integers.
        most = region.count().bit_length() + WEIGHT_BITS
        for i, j in enumerate(self._top[: m - 1]):
            lift = eta * (float(g[j]) - middle) / math.log(2)
            if lift > 0.0:
                leading[i] = scale.exp2_rounded_up(WEIGHT_BITS + min(lift, most))
                self.log2 += max(lift - most, 0.0)
        self._subsets = Subsets(leading, m)
        table = self._subsets.sums
        power, self._parts = 1, []
        for t in range(m, -1, -1):  # t from the leading ones, m - t from the rest
            self._parts.append(math.perm(m, t) * table[t] * power)
            power *= self._rest
        self.total = sum(self._parts)
        self.peak = math.factorial(m) * self._subsets.peak(m)

    def draw(self, at: int) -> tuple[list[int], int] | None:
        """The picks that a uniform number below the total selects, and their mass.

        After each step the rest of the number is uniform again, below the sum of the steps to come:
        of a uniform number below a * b, the quotient by b and the remainder are both uniform.
        """
        t = self._m
        for part in self._parts:
            if at < part:
                break
            at -= part
            t -= 1
        chosen, product = [], self._orders
        if t < self._m:
            if self._sums is None:
                self._sums = np.cumsum(self._weights)
            for _ in range(self._m - t):
                at, pick = divmod(at, self._rest)
                j = int(np.searchsorted(self._sums, pick, side="right"))
                chosen.append(j)
                product *= int(self._weights[j])
            if len(set(chosen)) < len(chosen):
                return None
        places, part = self._subsets.draw(at // math.perm(self._m, t), t)
        return chosen + [self._top[i] for i in places], product * part


class FlatEnvelope:
    """Equal masses of the supports of a region, except a few that are excluded."""

    def __init__(
        self, region: Region, score: int, without: frozenset[Support], scale: MassScale
    ) -> None:
        self._region, self._without = region, without
        count = region.count()
        self._listed: list[Support] = []
        if count < _MIN_SPARSITY * len(without):
            everything = map(tuple, region.supports().tolist())
            self._listed = [support for support in everything if support not in without]
        self.peak = scale.mass_of(score)
        self.total = self.peak * (count - len(without))

    def draw(self, rng: Randomness) -> tuple[Support, int]:
        """A uniform support, and its mass."""
        if self._listed:
            return self._listed[rng.below(len(self._listed))], self.peak
        while (support := self._region.draw(rng)) in self._without:
            pass
        return support, self.peak


class ExactEnvelope:
    """Masses of supports with known scores: exact up to rounding up by one."""

    def __init__(
        self, supports: Sequence[Support], scores: Sequence[int], scale: MassScale
    ) -> None:
        self._supports = supports
        self.masses = [scale.mass_of(score) for score in scores]
        self.total = sum(self.masses)
        self.peak = max(self.masses, default=0)

    def draw(self, rng: Randomness) -> tuple[Support, int]:
        """A support in proportion to its mass, and its mass."""
        at = rng.below(self.total)
        for support, mass in zip(self._supports, self.masses, strict=True):
            if at < mass:
                return support, mass
            at -= mass
        raise AssertionError("masses sum to their total")
