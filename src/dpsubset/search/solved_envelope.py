"""Masses over a region whose supports are weighed one by one: see `bounds.solved`.

Kept are sums over supports with the same first pick. A draw adds up again what is behind it.
"""

from __future__ import annotations

import bisect
import itertools
import math

from ..privacy.random import Randomness
from .bounds.base import Bounded
from .bounds.solved import Solved
from .bounds.solved_kernels import BITS
from .envelope import LONG_BITS, Scale, Support

#: Most sums that are remembered, beside those by the first pick.
_REMEMBERED = 32


class SolvedEnvelope:
    """Masses over a region of one pool by the gains of its supports."""

    def __init__(self, solved: Solved, bound: Bounded, scale: Scale, penalty: float) -> None:
        self._solved, self._eta = solved, scale.eta
        self._members = [int(j) for j in bound.region.members]
        self._known: dict[tuple[int, ...], list[int]] = {}
        #: 0 if the supports have no weights.
        self.total = self.peak = 0
        weights = solved.weigh(scale.eta, bound.yy, penalty, scale.unit)
        if weights is None:
            return
        below = scale.eta * (solved.base - solved.top - scale.ref * scale.unit)
        if not abs(below) <= LONG_BITS * math.log(2):  # nor if it is no number
            return
        self._sums = list(itertools.accumulate(weights.tolist()))
        log2 = float(scale.bits - BITS) - below / math.log(2)
        # With room for the rounding of sums that cancel: see proofs/bounds.md.
        self._factor = scale.at_least(log2 + scale.bits * 2.0**-48)
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
            sums = self._behind(picks)
            assert sums[-1] == here  # the same floats, in the same order

    def _behind(self, picks: tuple[int, ...]) -> list[int]:
        """Sums over the supports with these first picks, by the one that follows."""
        sums = self._known.get(picks)
        if sums is None:
            if len(self._known) == _REMEMBERED:
                self._known.clear()
            weights = self._solved.following(picks, self._eta)
            sums = self._known[picks] = list(itertools.accumulate(weights.tolist()))
        return sums
