"""The best supports: the optimum, the R best in order, the best of every mistake bucket.

Best-first branch and bound. It ends when no leaf can contain a support that belongs among the R
best found, so the result is certified. Ties in the score go to the support that comes first in
lexicographic order, so the result is a function of the scores.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..objective.losses.base import ABOVE
from .bounds.base import Node
from .bounds.kernels import FREE
from .engine import Engine, Flat, Leaf, Listed, Support
from .envelope_kernels import likely_supports
from .region import Region

#: How many nodes the first call of `Best.narrow` branches on.
_FIRST_NODES = 32

#: How many supports are scored against the same cutoff.
_BATCH_SIZE = 256

#: Most bisections for the sum of gains that R supports reach.
_MAX_BISECTIONS = 40

Ranked = tuple[int, Support]


class Best:
    """The R best supports of a region, in order: a consumer of the engine."""

    def __init__(self, engine: Engine, region: Region, count: int = 1) -> None:
        self._engine = engine
        self._wanted = min(count, region.count())
        self._incumbents: list[Ranked] = []
        self._supports: set[Support] = set()
        self._heap: list[tuple[float, int, Node]] = []
        self._nodes_left = math.inf  # nodes to branch on before `narrow` returns
        self._next_nodes = _FIRST_NODES
        self._low = -1  # scores are at least -tau
        self._serial = 0  # nodes of equal bound are taken in order of creation
        self._warm_started: set[Support] = set()  # scored before the search
        root = engine.leaf(region)
        self.start([root])
        if isinstance(root, Node) and 1 < self._wanted <= engine.tuning.warm_start_size:
            self._warm_start(root)

    def find(self) -> list[Ranked]:
        """Scores and supports, best first, certified."""
        self._nodes_left = math.inf
        self._engine.run(self)
        return self._incumbents

    def narrow(self) -> None:
        """Continue for a number of nodes that doubles with each call."""
        self._nodes_left = self._next_nodes
        self._next_nodes *= 2
        self._engine.run(self)
        if self._heap:
            reached = math.floor(self._heap[0][0] / float(self._engine.score_step))
            # A child may have a weaker bound than its parent: keep the best lower bound.
            self._low = max(self._low, reached)

    @property
    def high(self) -> int:
        """The best score found so far."""
        return self._incumbents[0][0]

    @property
    def low(self) -> int:
        """A lower bound on the scores of the region."""
        return min(self.high, self._low) if self._heap else self.high

    @property
    def done(self) -> bool:
        """Whether the supports found are certified."""
        return not self._heap

    def start(self, leaves: Sequence[Leaf]) -> None:
        for leaf in leaves:
            assert not isinstance(leaf, Flat)
            if isinstance(leaf, Listed):
                for support, score in zip(leaf.supports, leaf.scores, strict=True):
                    self._offer(score, support)
            else:
                incumbent = leaf.incumbent()
                self._offer(self._engine.score(incumbent), incumbent)
                self._serial += 1
                heapq.heappush(self._heap, (leaf.lower_bound, self._serial, leaf))

    def next_leaf(self) -> Node | None:
        """The node with the lowest bound, unless it can be enumerated or pruned."""
        while self._heap and self._nodes_left:
            bound, _, leaf = self._heap[0]
            if bound > self._cutoff():
                self._heap.clear()
            elif self._score_candidates(leaf):
                heapq.heappop(self._heap)
            else:
                if self._engine.tuning.fix_variables:
                    self._fix_variables(leaf)
                # Kept in the queue until it is replaced, so that a limit does not lose it.
                return leaf
        return None

    def replace(self, leaf: Node, parts: Sequence[Leaf]) -> None:
        heapq.heappop(self._heap)
        self._nodes_left -= 1
        self.start(parts)

    def _cutoff(self) -> float:
        """A node with a larger lower bound is pruned: it cannot even contain a tie."""
        if len(self._incumbents) < self._wanted:
            return math.inf
        return self._incumbents[-1][0] * float(self._engine.score_step)

    def _offer(self, score: int, support: Support) -> None:
        entry = (score, support)
        full = len(self._incumbents) == self._wanted
        if support in self._supports or (full and entry > self._incumbents[-1]):
            return
        self._supports.add(support)
        bisect.insort(self._incumbents, entry)
        if full:
            self._supports.discard(self._incumbents.pop()[1])

    def _fix_variables(self, leaf: Node) -> None:
        """Force out the features that no support within the cutoff contains."""
        slack = self._cutoff() - leaf.lower_bound
        if math.isinf(slack):
            return
        region = leaf.region
        g = self._engine.bound_oracle.gains(leaf)
        out = np.zeros(len(g), dtype=np.bool_)
        for pool, m in enumerate(region.picks):
            if m:
                # In the best support with such a feature it replaces the smallest gain of a pick.
                free = region.status == FREE + pool
                smallest = np.partition(g[free], -m)[-m]
                out |= free & (g < smallest - slack)
        if out.any():
            leaf.region = region.without(out)

    def _warm_start(self, leaf: Node) -> None:
        """Score the R supports with the lowest bounds, for a good cutoff from the start."""
        if min(leaf.region.picks) != 0:
            return
        free, g = self._sorted_gains(leaf)
        m = max(leaf.region.picks)
        picked = np.empty((2 * self._wanted, m), dtype=np.int64)
        # Bisect for a sum of gains that so many supports reach.
        high, low = float(g[:m].sum()), 0.0
        for _ in range(_MAX_BISECTIONS):
            need = (low + high) / 2
            count = likely_supports(g, m, need, picked)
            if count >= self._wanted:
                break
            low, high = (need, high) if count < 0 else (low, need)
        if count > 0:
            self._warm_started.update(self._score_picks(leaf, free[picked[:count]], math.inf) or ())

    def _score_candidates(self, leaf: Node) -> bool:
        """Score every support of the node that its bound does not rule out, if they are few.

        Returns whether it did.
        """
        cutoff = self._cutoff()
        region = leaf.region
        if math.isinf(cutoff) or min(region.picks) != 0:
            return False
        free, g = self._sorted_gains(leaf)
        # Allows for the rounding of the difference and of the partial sums of the gains.
        need = leaf.base - cutoff - 1e-9 * abs(leaf.base) - len(g) * 2.0**-51 * float(g.sum())
        # Allow more supports when branching has not helped.
        engine = self._engine
        most = min(engine.tuning.listable, engine.bound_oracle.max_listed + 8 * engine.nodes)
        picked = np.empty((most + len(self._warm_started), max(region.picks)), dtype=np.int64)
        count = likely_supports(g, max(region.picks), need, picked)
        return count >= 0 and self._score_picks(leaf, free[picked[:count]], most) is not None

    def _sorted_gains(self, leaf: Node) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The free features of the pool that is picked from, and their gains, largest first."""
        free = leaf.region.pool(int(np.argmax(leaf.region.picks)))
        g = self._engine.bound_oracle.gains(leaf)[free]
        order = np.argsort(-g, kind="stable")
        return free[order], g[order]

    def _score_picks(
        self, leaf: Node, picks: NDArray[np.int64], most: float
    ) -> list[Support] | None:
        """Score the supports with these picks that are new; None if they are more than ``most``."""
        members = leaf.region.members
        supports = np.empty((len(picks), leaf.region.size), dtype=np.int64)
        supports[:, : len(members)] = members
        supports[:, len(members) :] = picks
        supports.sort(axis=1)
        new = [row for row in map(tuple, supports.tolist()) if row not in self._warm_started]
        if len(new) > most:
            return None
        # In batches: the better the cutoff, the sooner the other supports are rejected.
        for first in range(0, len(new), _BATCH_SIZE):
            some = new[first : first + _BATCH_SIZE]
            full = len(self._incumbents) == self._wanted
            cutoff = self._incumbents[-1][0] if full else ABOVE
            scores = self._engine.score_all(np.array(some), cutoff)
            for support, score in zip(some, scores, strict=True):
                if score <= cutoff:
                    self._offer(score, support)
        return new


def best_supports(engine: Engine, count: int) -> list[Ranked]:
    """The R best supports of the problem in order, certified."""
    return Best(engine, Region.whole(engine.problem), count).find()


def best_in_bucket(engine: Engine, anchor: Sequence[int], mistakes: int) -> Ranked | None:
    """The best support with this many mistakes against an anchor, certified.

    None if there is no such support.
    """
    region = Region.bucket(engine.problem, anchor, mistakes)
    return None if region is None else Best(engine, region).find()[0]
