"""The engine: one loop over a partition of all supports into leaves, refined where a consumer asks.

A *leaf* is a region with a bound, a short list of scored supports, or a region of one score. A
consumer (the race, the R best, the best in a bucket) looks at the leaves and names the next one to
split, or none when it is done; the engine splits it, and hands it the parts. Bounds decide how fast
a consumer ends, never what it finds.
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
from .bounds.base import Bounded
from .bounds.choose import bounder
from .region import Region
from .tuning import USUAL, Tuning

Support = tuple[int, ...]

#: Most scores that are remembered; long searches score many supports that never come again.
_REMEMBERED = 2**17


@dataclass(frozen=True)
class Limits:
    """Most splits and most seconds of a search; passing one raises `SearchLimitError`."""

    nodes: float = math.inf
    seconds: float = math.inf

    @classmethod
    def of(cls, nodes: int | None, seconds: float | None) -> Limits:
        """Check what a user gave; None is no limit."""
        if nodes is not None:
            nodes = check_int(nodes, "node_limit")
            if nodes < 1:
                raise ArgumentError("node_limit must be at least 1")
        if seconds is not None:
            seconds = check_positive(seconds, "time_limit")
        return cls(math.inf if nodes is None else nodes, math.inf if seconds is None else seconds)


@dataclass
class Listed:
    """A leaf whose supports are listed with their scores, in lexicographic order."""

    supports: list[Support] = field(repr=False)  # which are listed depends on the data
    scores: list[int] = field(repr=False)


class Narrowing(Protocol):
    """A search for one score, as far as it has come."""

    @property
    def low(self) -> int:
        """No more than the score, in units."""

    @property
    def high(self) -> int:
        """No less than the score."""

    @property
    def done(self) -> bool:
        """Whether both are the score."""

    def narrow(self) -> None:
        """Go on for a while."""


@dataclass
class Flat:
    """A leaf whose supports all count with the same score: a region, a few supports taken out.

    The score is ``score``, or what a search will find that has come to bounds only so far.
    """

    region: Region = field(repr=False)
    score: int = field(default=0, repr=False)
    without: frozenset[Support] = field(default=frozenset(), repr=False)
    search: Narrowing | None = field(default=None, repr=False)

    @property
    def low(self) -> int:
        """The score, or a lower bound on it."""
        return self.score if self.search is None else self.search.low

    @property
    def open(self) -> bool:
        """Whether the score is not known yet."""
        return self.search is not None and not self.search.done

    def narrow(self) -> None:
        """Let the search go on for a while."""
        if self.search is not None:
            self.search.narrow()


Leaf = Bounded | Listed | Flat


class Consumer(Protocol):
    """What a search is for."""

    def start(self, leaves: Sequence[Leaf]) -> None:
        """Take in the first partition."""

    def next_leaf(self) -> Bounded | None:
        """The leaf to split next, or None when the answer is known."""

    def replace(self, leaf: Bounded, parts: Sequence[Leaf]) -> None:
        """A leaf has been split into parts."""


def _digest(data: Moments | GramData, problem: Problem) -> GramData:
    return (
        GramData.from_moments(data, problem.layout.constant) if isinstance(data, Moments) else data
    )


class Engine:
    """Regions, bounds and scores of one problem on one data set.

    Parameters
    ----------
    eta : float
        Weight of the scores that bounds should be good for; large for optimisation.
    limits : Limits, optional
        When to give up.
    penalty : int
        Added to the score for every variable of a support, in units.
    tuning : Tuning
        How the search spends its time, its consumers' part included.
    """

    def __init__(
        self,
        data: Moments | GramData,
        problem: Problem,
        unit: Fraction,
        eta: float,
        limits: Limits | None = None,
        penalty: int = 0,
        tuning: Tuning = USUAL,
    ) -> None:
        self.problem = problem
        self.unit = unit
        self.tuning = tuning
        digest = _digest(data, problem)
        self._scorer = scorer(digest, problem, unit, penalty)
        self.bounder = bounder(digest, problem, self._scorer, eta, tuning)
        self._scores: dict[Support, int] = {}
        self._limits = limits or Limits()
        self._deadline = time.monotonic() + self._limits.seconds
        self.splits = 0

    def score(self, support: Support) -> int:
        """f~(S) / unit, remembered."""
        return self.scores([support])[0]

    def scores(self, supports: Sequence[Support]) -> list[int]:
        """The same of several supports at once."""
        missing = [support for support in supports if support not in self._scores]
        if missing:
            if len(self._scores) > _REMEMBERED:
                self._scores.clear()
                missing = list(supports)
            for size in {len(support) for support in missing}:  # one, but for penalised sizes
                alike = [support for support in missing if len(support) == size]
                self._scores.update(zip(alike, self.score_all(np.array(alike)), strict=True))
        return [self._scores[support] for support in supports]

    def score_all(self, supports: NDArray[np.int64], cutoff: int = ABOVE) -> list[int]:
        """Scores of the rows, not remembered; `ABOVE` may stand for one above the cutoff."""
        return [int(score) for score in self._scorer.scores(supports, cutoff)]

    def leaf(self, region: Region, parent: Bounded | None = None) -> Leaf:
        """A region as a leaf: listed if it is short, bounded otherwise."""
        if region.count() <= self.tuning.short:
            return self.listed(region)
        if parent is None:
            return self.bounder.root(region)
        bound = self.bounder.child(parent, region)
        if parent.blocks is not None:
            self.bounder.block(bound, parent)
        if parent.solved is not None:
            bound.solved = self.bounder.solve(bound)
        return bound

    def listed(self, region: Region) -> Listed:
        """A region as a list of scored supports."""
        supports = region.supports()
        return Listed([tuple(row) for row in supports.tolist()], self.score_all(supports))

    def remember(self, leaf: Listed) -> None:
        """Keep the scores of a list at hand."""
        self._scores.update(zip(leaf.supports, leaf.scores, strict=True))

    def run(self, consumer: Consumer) -> None:
        """Split leaves until the consumer is done."""
        while (leaf := consumer.next_leaf()) is not None:
            self.check_limits()
            self.splits += 1
            if self.splits == self.bounder.wide_after:
                self.bounder.widen()
            if self.splits in self.bounder.hard_after:
                self.bounder.strengthen(sweeps=self.splits == max(self.bounder.hard_after))
            parts = [self.leaf(half, leaf) for half in leaf.region.split(leaf.lead)]
            consumer.replace(leaf, parts)

    def diagnostics(self) -> dict[str, int]:
        """Counts of the search so far. They depend on the data: NOT PRIVATE."""
        return {"splits": self.splits, "scores_remembered": len(self._scores)}

    def check_limits(self) -> None:
        """Raise if a limit has been passed. Consumers ask wherever they spend time of their own."""
        limit = None
        if self.splits >= self._limits.nodes:
            limit = "node limit"
        elif time.monotonic() > self._deadline:
            limit = "time limit"
        if limit:
            raise SearchLimitError(
                f"the search passed its {limit} and stopped; nothing is released. Whether a limit "
                "is passed depends on the data, so what this release would have cost is spent"
            )
