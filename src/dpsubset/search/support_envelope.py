"""Envelope of a region by one bound for each support: see `bounds.support_bounds`.

Only sums over supports with the same first pick are kept. A draw recomputes the sums over the next
picks.
"""

from __future__ import annotations

import bisect
import itertools
import math

from ..privacy.random import Randomness
from .bounds.base import Node
from .bounds.support_bounds import SupportBounds
from .bounds.support_kernels import BITS
from .envelope import LONG_BITS, MassScale, Support

#: Most sums that are cached, beside those by the first pick.
_MAX_CACHED = 32


class SupportEnvelope:
    """Masses of the supports of a region with one pool, by their gains."""

    def __init__(
        self, solved: SupportBounds, bound: Node, scale: MassScale, penalty: float
    ) -> None:
        self._solved, self._eta = solved, scale.eta
        self._members = [int(j) for j in bound.region.members]
        self._cache: dict[tuple[int, ...], list[int]] = {}
        #: 0 if the supports have no usable weights.
        self.total = self.peak = 0
        weights = solved.weights_by_first_pick(scale.eta, bound.yy, penalty, scale.score_step)
        if weights is None:
            return
        below = scale.eta * (solved.base - solved.top - scale.ref * scale.score_step)
        if not abs(below) <= LONG_BITS * math.log(2):  # or is not a number
            return
        self._sums = list(itertools.accumulate(weights.tolist()))
        log2 = float(scale.bits - BITS) - below / math.log(2)
        # Allows for the rounding of sums that cancel: see proofs/bounds.md.
        self._factor = scale.exp2_rounded_up(log2 + scale.bits * 2.0**-48)
        self.total = self._factor * self._sums[-1]
        #: No support of the region has a larger 2**bits * q, or a larger mass.
        self.peak = self._factor * solved.heaviest

    def draw(self, rng: Randomness) -> tuple[Support, int]:
        """A support in proportion to its mass, and its mass."""
        solved, sums = self._solved, self._sums
        at = rng.below(sums[-1])
        picks: tuple[int, ...] = ()
        while True:
            i = bisect.bisect_right(sums, at)
            before = sums[i - 1] if i else 0
            at, here, picks = at - before, sums[i] - before, (*picks, i)
            if len(picks) == solved.m:
                chosen = [*self._members, *(int(solved.free[i]) for i in picks)]
                return tuple(sorted(chosen)), self._factor * here
            sums = self._sums_after(picks)
            assert sums[-1] == here  # the same floats, in the same order

    def _sums_after(self, picks: tuple[int, ...]) -> list[int]:
        """Cumulative sums over the supports that start with these picks, by the next pick."""
        sums = self._cache.get(picks)
        if sums is None:
            if len(self._cache) == _MAX_CACHED:
                self._cache.clear()
            weights = self._solved.weights_after(picks, self._eta)
            sums = self._cache[picks] = list(itertools.accumulate(weights.tolist()))
        return sums
