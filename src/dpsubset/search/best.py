"""The best supports: the optimum, the R best in order, the best of every mistake bucket.

Best-first search on the lower bounds of the leaves. It ends when no leaf can hold a support that
belongs among the R best found: a certificate, not a time-out. Ties in the score go to the support
that comes first in lexicographic order, so the answer is a function of the scores.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..objective.losses.base import ABOVE
from .bounds.base import Bounded
from .bounds.kernels import FREE
from .engine import Engine, Flat, Leaf, Listed, Support
from .envelope_kernels import likely_supports
from .region import Region

#: What `Best.narrow` does the first time.
_FIRST_SPLITS = 32

#: How many supports are scored against the same cutoff.
_AT_A_TIME = 256

#: How closely the sum of gains is sought that R supports reach.
_HALVINGS = 40

Ranked = tuple[int, Support]


class Best:
    """The R best supports of a region, in order: a consumer of the engine."""

    def __init__(self, engine: Engine, region: Region, count: int = 1) -> None:
        self._engine = engine
        self._wanted = min(count, region.count())
        self._found: list[Ranked] = []
        self._known: set[Support] = set()
        self._heap: list[tuple[float, int, Bounded]] = []
        self._left = math.inf  # splits to go
        self._effort = _FIRST_SPLITS
        self._low = -1  # scores are not below -tau
        self._serial = 0  # leaves of equal bound in the order of their making
        self._sown: set[Support] = set()  # scored and offered before the search
        root = engine.leaf(region)
        self.start([root])
        if isinstance(root, Bounded) and 1 < self._wanted <= engine.tuning.most_sown:
            self._sow(root)

    def find(self) -> list[Ranked]:
        """Scores and supports, best first."""
        self._left = math.inf
        self._engine.run(self)
        return self._found

    def narrow(self) -> None:
        """Go on for a while, longer each time."""
        self._left = self._effort
        self._effort *= 2
        self._engine.run(self)
        if self._heap:
            reached = math.floor(self._heap[0][0] / float(self._engine.unit))
            # A part may have a weaker bound than the whole had: what is known stays known.
            self._low = max(self._low, reached)

    @property
    def high(self) -> int:
        """The best score found so far."""
        return self._found[0][0]

    @property
    def low(self) -> int:
        """What no score of the region is below."""
        return min(self.high, self._low) if self._heap else self.high

    @property
    def done(self) -> bool:
        """Whether what was found is certified."""
        return not self._heap

    def start(self, leaves: Sequence[Leaf]) -> None:
        """Take in leaves."""
        for leaf in leaves:
            assert not isinstance(leaf, Flat)
            if isinstance(leaf, Listed):
                for support, score in zip(leaf.supports, leaf.scores, strict=True):
                    self._offer(score, support)
            else:
                guess = leaf.guess()
                self._offer(self._engine.score(guess), guess)
                self._serial += 1
                heapq.heappush(self._heap, (leaf.flat, self._serial, leaf))

    def next_leaf(self) -> Bounded | None:
        """The leaf with the lowest bound, unless it can be listed or is beaten."""
        while self._heap and self._left:
            flat, _, leaf = self._heap[0]
            if flat > self._cutoff():
                self._heap.clear()
            elif self._list(leaf):
                heapq.heappop(self._heap)
            else:
                if self._engine.tuning.trim:
                    self._trim(leaf)
                # It stays until it is replaced: a search that a limit stopped has not lost it.
                return leaf
        return None

    def replace(self, leaf: Bounded, parts: Sequence[Leaf]) -> None:
        """Take in the parts of a leaf."""
        heapq.heappop(self._heap)
        self._left -= 1
        self.start(parts)

    def _cutoff(self) -> float:
        """A leaf whose bound lies above cannot matter: not even a tie is possible there."""
        if len(self._found) < self._wanted:
            return math.inf
        return self._found[-1][0] * float(self._engine.unit)

    def _offer(self, score: int, support: Support) -> None:
        entry = (score, support)
        full = len(self._found) == self._wanted
        if support in self._known or (full and entry > self._found[-1]):
            return
        self._known.add(support)
        bisect.insort(self._found, entry)
        if full:
            self._known.discard(self._found.pop()[1])

    def _trim(self, leaf: Bounded) -> None:
        """Leave out the features that no support within the cutoff picks."""
        room = self._cutoff() - leaf.flat
        if math.isinf(room):
            return
        region = leaf.region
        g = self._engine.bounder.gains(leaf)
        out = np.zeros(len(g), dtype=np.bool_)
        for pool, m in enumerate(region.picks):
            if m:
                # In the best support with another feature it takes the place of the last leader.
                free = region.status == FREE + pool
                last = np.partition(g[free], -m)[-m]
                out |= free & (g < last - room)
        if out.any():
            leaf.region = region.without(out)

    def _sow(self, leaf: Bounded) -> None:
        """Score the R supports that the bound thinks best: a good cutoff from the start."""
        if min(leaf.region.picks) != 0:
            return
        free, g = self._ranked(leaf)
        m = max(leaf.region.picks)
        picked = np.empty((2 * self._wanted, m), dtype=np.int64)
        # Somewhere between all leaders and nothing lies a sum that so many supports reach.
        high, low = float(g[:m].sum()), 0.0
        for _ in range(_HALVINGS):
            need = (low + high) / 2
            count = likely_supports(g, m, need, picked)
            if count >= self._wanted:
                break
            low, high = (need, high) if count < 0 else (low, need)
        if count > 0:
            self._sown.update(self._score(leaf, free[picked[:count]], math.inf) or ())

    def _list(self, leaf: Bounded) -> bool:
        """Score every support of the leaf whose own bound does not rule it out, if they are few."""
        cutoff = self._cutoff()
        region = leaf.region
        if math.isinf(cutoff) or min(region.picks) != 0:
            return False
        free, g = self._ranked(leaf)
        # Slack for rounding: of the difference, and of running sums over all gains.
        need = leaf.base - cutoff - 1e-9 * abs(leaf.base) - len(g) * 2.0**-51 * float(g.sum())
        # Where splits have not helped much, more of them are unlikely to.
        engine = self._engine
        most = min(engine.tuning.listable, engine.bounder.most_listed + 8 * engine.splits)
        picked = np.empty((most + len(self._sown), max(region.picks)), dtype=np.int64)
        count = likely_supports(g, max(region.picks), need, picked)
        return count >= 0 and self._score(leaf, free[picked[:count]], most) is not None

    def _ranked(self, leaf: Bounded) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The free features of the pool that is picked from, and their gains, largest first."""
        free = leaf.region.pool(int(np.argmax(leaf.region.picks)))
        g = self._engine.bounder.gains(leaf)[free]
        order = np.argsort(-g, kind="stable")
        return free[order], g[order]

    def _score(self, leaf: Bounded, picks: NDArray[np.int64], most: float) -> list[Support] | None:
        """Score the supports with these picks that were not sown; None if they are too many."""
        members = leaf.region.members
        supports = np.empty((len(picks), leaf.region.size), dtype=np.int64)
        supports[:, : len(members)] = members
        supports[:, len(members) :] = picks
        supports.sort(axis=1)
        new = [row for row in map(tuple, supports.tolist()) if row not in self._sown]
        if len(new) > most:
            return None
        # Some at a time: the better they are, the sooner the others can be told to be worse.
        for first in range(0, len(new), _AT_A_TIME):
            some = new[first : first + _AT_A_TIME]
            full = len(self._found) == self._wanted
            cutoff = self._found[-1][0] if full else ABOVE
            scores = self._engine.score_all(np.array(some), cutoff)
            for support, score in zip(some, scores, strict=True):
                if score <= cutoff:
                    self._offer(score, support)
        return new


def best_supports(engine: Engine, count: int) -> list[Ranked]:
    """The R best supports of the problem in order, certified."""
    return Best(engine, Region.whole(engine.problem), count).find()


def best_in_bucket(engine: Engine, anchor: Sequence[int], mistakes: int) -> Ranked | None:
    """The best support with this many mistakes against an anchor, certified; None without any."""
    region = Region.bucket(engine.problem, anchor, mistakes)
    return None if region is None else Best(engine, region).find()[0]
