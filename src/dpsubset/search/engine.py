"""The search engine: one loop over a partition of all supports into leaves, refined on demand.

A *leaf* is a node of the search tree (a region with a bound), a list of scored supports, or a
region in which all supports have the same score. A consumer (the race, the R best, the best of a
bucket) inspects the leaves and names the next node to branch on, or none when it is done; the
engine branches and hands over the parts. Bounds decide how soon a consumer finishes, never what it
finds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, SearchLimitError
from ..base.validation import check_int, check_positive
from ..data.gram import GramData
from ..data.moments import Moments
from ..objective.losses import scorer
from ..objective.losses.base import ABOVE
from ..objective.problem import Problem
from .bounds.base import Node
from .bounds.choose import bound_oracle
from .region import Region
from .tuning import USUAL, Tuning

Support = tuple[int, ...]

#: Most scores that are cached; long searches score many supports only once.
_MAX_CACHED_SCORES = 2**17


@dataclass(frozen=True)
class Limits:
    """Most nodes to branch on and most seconds; exceeding one raises `SearchLimitError`."""

    nodes: float = math.inf
    seconds: float = math.inf

    @classmethod
    def of(cls, nodes: int | None, seconds: float | None) -> Limits:
        """Check the values of a user; None means no limit."""
        if nodes is not None:
            nodes = check_int(nodes, "node_limit")
            if nodes < 1:
                raise ArgumentError("node_limit must be at least 1")
        if seconds is not None:
            seconds = check_positive(seconds, "time_limit")
        return cls(math.inf if nodes is None else nodes, math.inf if seconds is None else seconds)


@dataclass
class Listed:
    """A leaf with a list of supports and their scores, in lexicographic order."""

    supports: list[Support] = field(repr=False)  # which are listed depends on the data
    scores: list[int] = field(repr=False)


class IncompleteSearch(Protocol):
    """A search for one score that has bracketed it so far."""

    @property
    def low(self) -> int:
        """A lower bound on the score, in units."""

    @property
    def high(self) -> int:
        """An upper bound on the score, in units."""

    @property
    def done(self) -> bool:
        """Whether both bounds equal the score."""

    def narrow(self) -> None:
        """Continue the search for a while."""


@dataclass
class Flat:
    """A leaf whose supports all have the same score: a region without a few excluded supports.

    The score is ``score``, or the result of ``search``, which may not have finished.
    """

    region: Region = field(repr=False)
    score: int = field(default=0, repr=False)
    without: frozenset[Support] = field(default=frozenset(), repr=False)
    search: IncompleteSearch | None = field(default=None, repr=False)

    @property
    def low(self) -> int:
        """The score, or a lower bound on it."""
        return self.score if self.search is None else self.search.low

    @property
    def open(self) -> bool:
        """Whether the score is not known yet."""
        return self.search is not None and not self.search.done

    def narrow(self) -> None:
        """Continue the search for the score for a while."""
        if self.search is not None:
            self.search.narrow()


Leaf = Node | Listed | Flat


class Consumer(Protocol):
    """The purpose of a search: decides where to branch, and when to stop."""

    def start(self, leaves: Sequence[Leaf]) -> None:
        """Receive the first partition."""

    def next_leaf(self) -> Node | None:
        """The node to branch on next, or None when the answer is known."""

    def replace(self, leaf: Node, parts: Sequence[Leaf]) -> None:
        """Replace a node, which was branched on, by its parts."""


class Engine:
    """Regions, bounds and scores of one problem on one data set.

    ``eta`` is the weight of the scores at which bounds should be good, large for optimisation;
    ``penalty`` is added to the score for every variable of a support, in units.
    """

    def __init__(
        self,
        data: Moments | GramData,
        problem: Problem,
        score_step: Fraction,
        eta: float,
        limits: Limits | None = None,
        penalty: int = 0,
        tuning: Tuning = USUAL,
    ) -> None:
        self.problem = problem
        self.score_step = score_step
        self.tuning = tuning
        gram = GramData.of(data, problem.layout.constant)
        self._scorer = scorer(gram, problem, score_step, penalty)
        self.bound_oracle = bound_oracle(gram, problem, self._scorer, eta, tuning)
        self._scores: dict[Support, int] = {}
        self._limits = limits or Limits()
        self._deadline = time.monotonic() + self._limits.seconds
        self.nodes = 0

    def score(self, support: Support) -> int:
        """f~(S) / score_step, cached."""
        return self.scores([support])[0]

    def scores(self, supports: Sequence[Support]) -> list[int]:
        """f~(S) / score_step of several supports, cached."""
        missing = [support for support in supports if support not in self._scores]
        if missing:
            if len(self._scores) > _MAX_CACHED_SCORES:
                self._scores.clear()
                missing = list(supports)
            for size in {len(support) for support in missing}:  # several with penalised sizes only
                same_size = [support for support in missing if len(support) == size]
                self._scores.update(
                    zip(same_size, self.score_all(np.array(same_size)), strict=True)
                )
        return [self._scores[support] for support in supports]

    def score_all(self, supports: NDArray[np.int64], cutoff: int = ABOVE) -> list[int]:
        """Scores of the rows, not cached; a score above the cutoff may be reported as `ABOVE`."""
        return [int(score) for score in self._scorer.scores(supports, cutoff)]

    def leaf(self, region: Region, parent: Node | None = None) -> Leaf:
        """A region as a leaf: a list if it has few supports, a node otherwise."""
        if region.count() <= self.tuning.short:
            return self.listed(region)
        if parent is None:
            return self.bound_oracle.root(region)
        node = self.bound_oracle.child(parent, region)
        if parent.block_bound is not None:
            self.bound_oracle.add_block_bound(node, parent)
        if parent.support_bounds is not None:
            node.support_bounds = self.bound_oracle.bound_each_support(node)
        return node

    def listed(self, region: Region) -> Listed:
        """A region as a list of scored supports."""
        supports = region.supports()
        return Listed([tuple(row) for row in supports.tolist()], self.score_all(supports))

    def cache_scores(self, leaf: Listed) -> None:
        self._scores.update(zip(leaf.supports, leaf.scores, strict=True))

    def run(self, consumer: Consumer) -> None:
        """Branch until the consumer is done."""
        while (leaf := consumer.next_leaf()) is not None:
            self.check_limits()
            self.nodes += 1
            if self.nodes == self.bound_oracle.wide_after:
                self.bound_oracle.widen()
            if self.nodes in self.bound_oracle.hard_after:
                self.bound_oracle.strengthen(sweeps=self.nodes == max(self.bound_oracle.hard_after))
            parts = [self.leaf(half, leaf) for half in leaf.region.split(leaf.branch_on)]
            consumer.replace(leaf, parts)

    def diagnostics(self) -> dict[str, int]:
        """Counts of the search so far. They depend on the data: NOT PRIVATE."""
        return {"splits": self.nodes, "scores_remembered": len(self._scores)}

    def check_limits(self) -> None:
        """Raise if a limit has been exceeded.

        Consumers call this wherever they spend time themselves.
        """
        limit = None
        if self.nodes >= self._limits.nodes:
            limit = "node limit"
        elif time.monotonic() > self._deadline:
            limit = "time limit"
        if limit:
            raise SearchLimitError(
                f"the search passed its {limit} and stopped; nothing is released. Whether a limit "
                "is passed depends on the data, so what this release would have cost is spent"
            )
