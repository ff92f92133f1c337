"""Envelope of a region by its block bound: see `bounds.block_bound`, and `envelope` for masses.

In a block, q picks have the product of their weights of class q as their mass; the constant of the
class is spread evenly over the picks. Sums over m picks are products of polynomials, one for each
block. Columns outside all blocks enter as if they could be picked repeatedly, as in a pool.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.kernels.arrays import Array
from ..privacy.random import Randomness
from . import envelope_kernels
from .bounds.block_bound import CLASSES, BlockBound
from .bounds.kernels import FREE
from .envelope import WEIGHT_BITS, MassScale, Subsets, Support
from .region import Region

#: Numbers of picks below this have their own weights.
_SHARED_FROM = 8


class BlockEnvelope:
    """Masses of the supports of a region with one pool, by its block bound."""

    def __init__(self, bound: BlockBound, region: Region, scale: MassScale) -> None:
        m = self._m = max(region.picks)
        self._members = [int(j) for j in region.members]
        # Weights are relative to the last of m good picks from different blocks, or to the largest
        # of the rest: smaller ones are rounded up to 1, which must be small beside good supports.
        inside = [c for c in range(len(bound.columns)) if bound.free[c].any()]
        alone = sorted(
            (float(lifted(bound, c, 1)[bound.free[c]].max()) for c in inside), reverse=True
        )
        middle = alone[min(m, len(alone)) - 1] if alone else 0.0
        middle = max(middle, float(bound.rest_gains.max(initial=0.0)))
        self._blocks = [_Block(bound, c, middle, m, scale) for c in inside]
        self._rest = np.zeros(len(bound.rest), dtype=np.int64)
        together = int(
            envelope_kernels.integer_weights(
                bound.rest_gains, np.full(len(bound.rest), FREE, dtype=np.int8), 0, scale.eta,
                middle, WEIGHT_BITS, self._rest,
            )
        )  # fmt: skip
        self._together, self._sums = together, np.cumsum(self._rest)
        log2 = scale.bits - scale.eta * (bound.base - scale.ref * scale.score_step) / math.log(2)
        log2 += m * (scale.eta * middle / math.log(2) - WEIGHT_BITS) - math.log2(math.factorial(m))
        self._factor = scale.exp2_rounded_up(log2 + scale.bits * 2.0**-48)
        # before[c][t]: sum over t picks from the blocks before c; best: the largest product
        # instead.
        self._before = [[1] + [0] * m]
        best = [1] + [0] * m
        for block in self._blocks:
            before, sums, peaks = self._before[-1], block.sums, block.peaks
            most = len(sums)
            self._before.append(
                [
                    sum(before[t - q] * sums[q] for q in range(min(t + 1, most)))
                    for t in range(m + 1)
                ]
            )
            best = [
                max(best[t - q] * peaks[q] for q in range(min(t + 1, most))) for t in range(m + 1)
            ]
        largest = sorted(self._rest.tolist(), reverse=True)
        power, peak, self._parts = 1, 0, []
        for t in range(m, -1, -1):  # t from blocks, m - t from the rest
            self._parts.append(math.perm(m, t) * self._before[-1][t] * power)
            power *= together
            if m - t <= len(largest):
                peak = max(peak, best[t] * math.prod(largest[: m - t]))
        self._whole = sum(self._parts)
        self.total = self._factor * self._whole
        #: No support of the region has a larger 2**bits * q.
        self.peak = self._factor * math.factorial(m) * peak
        self._names = bound.rest

    def draw(self, rng: Randomness) -> tuple[Support, int] | None:
        """A support in proportion to its mass, and its mass; None if a feature repeats."""
        at, t = rng.below(self._whole), self._m
        for part in self._parts:
            if at < part:
                break
            at -= part
            t -= 1
        chosen, mass = list(self._members), self._factor * math.factorial(self._m)
        repeated = []
        for _ in range(self._m - t):
            at, pick = divmod(at, self._together)
            i = int(np.searchsorted(self._sums, pick, side="right"))
            repeated.append(int(self._names[i]))
            mass *= int(self._rest[i])
        if len(set(repeated)) < len(repeated):
            return None
        chosen += repeated
        at //= math.perm(self._m, t)
        for block, before in zip(self._blocks[::-1], self._before[-2::-1], strict=True):
            if not t:
                break
            for q, total in enumerate(block.sums[: t + 1]):
                part = before[t - q] * total
                if at < part:
                    break
                at -= part
            if q:
                at, inside = divmod(at, total)
                columns, product = block.draw(inside, q)
                chosen += columns
                mass *= product
                t -= q
        return tuple(sorted(chosen)), mass


class _Block:
    """Sums, largest products and draws of q picks from a block."""

    def __init__(self, bound: BlockBound, c: int, middle: float, m: int, scale: MassScale) -> None:
        places = np.flatnonzero(bound.free[c])
        self._columns = bound.columns[c, places].tolist()
        most = min(m, len(places))
        self._subsets = []
        self.sums, self.peaks = [1], [1]
        for q in range(1, most + 1):
            if q <= _SHARED_FROM:
                gains = lifted(bound, c, q)[places] - middle
                log2 = scale.eta * gains / math.log(2) + WEIGHT_BITS
                weights = [scale.exp2_rounded_up(value) for value in log2.tolist()]
                subsets = Subsets(weights, q if q < _SHARED_FROM else most)
            self._subsets.append(subsets)
            self.sums.append(subsets.sums[q])
            self.peaks.append(subsets.peak(q))

    def draw(self, at: int, q: int) -> tuple[list[int], int]:
        """The q picks that a uniform number below sums[q] selects, and the product of weights."""
        places, product = self._subsets[q - 1].draw(at, q)
        return [self._columns[i] for i in places], product


def lifted(bound: BlockBound, c: int, q: int) -> Array:
    """Gains of a block with q picks, each with its part of the constant of the class.

    From `_SHARED_FROM` picks on all numbers of picks have the same gains; q of them add up to no
    less.
    """
    kind = min(q, CLASSES - 1)
    added = float(bound.consts[c, kind] - bound.consts[c, 0])
    if q == _SHARED_FROM:
        added = max(added, 0.0)
    return np.asarray(bound.gains[c, kind] + added / q)
