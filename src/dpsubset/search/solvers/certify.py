"""From a solver's bounds to the R best supports: the loop that both formulations share.

Supports are found by any means and scored by the package's own `Scorer`. A relaxation is then asked
whether a support outside a list can have f(S) below a limit. The list holds every known support
that the limit does not rule out, each forbidden by a no-good cut

    sum over j in S of z_j <= k - 1.

The limit is the R-th best score, plus what a score may be off, plus what the solver's tolerances
may hide: if no other support lies below it, order and ties among the known ones are final. What the
solver offers instead of a proof is scored, and the question asked again.

The proof is as good as the solver's word that it kept its tolerances, of which ten times as much is
allowed for. There is no other answer: without a proof, `SolverError`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...base.errors import DpsubsetError, SearchLimitError
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses import scorer
from ...objective.problem import Problem
from ..best import Ranked
from ..engine import Limits, Support

#: How much further than asked for a solver may have strayed.
CAUTION = 10.0


class SolverError(DpsubsetError, RuntimeError):
    """A solver is missing, or could not certify an answer. Nothing is returned."""


class Relaxation(Protocol):
    """A formulation on a solver, with f(S) in units of ``scale``."""

    scale: float

    def __init__(self, digest: GramData, problem: Problem, limits: Limits) -> None: ...

    @staticmethod
    def check() -> None:
        """`SolverError` if the solver is not installed or has no licence."""

    @property
    def slack(self) -> float:
        """By how much the solver's tolerances may have moved a bound."""

    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Supports that may lie below the limit, ``without`` left out; none is a proof."""


class Certified:
    """The R best supports, from a relaxation's word."""

    def __init__(
        self, digest: GramData, problem: Problem, unit: Fraction, count: int, limits: Limits
    ) -> None:
        self._problem = problem
        self._unit = float(unit)
        self._wanted = min(count, problem.supports)
        self._scorer = scorer(digest, problem, unit)
        self._scores: dict[Support, int] = {}
        self._searched: set[Support] = set()
        self._deadline = time.monotonic() + limits.seconds
        # A first guess: the largest marginal gains.
        gain = digest.c.astype(np.float64) ** 2 / np.maximum(
            digest.diagonal + problem.ridge * STEPS**2, 1.0
        )
        gain = problem.layout.of_choices(gain)
        gain[list(problem.always_include)] = math.inf
        self._guess: Support = tuple(sorted(np.argsort(-gain, kind="stable")[: problem.k].tolist()))

    def find(self, relaxation: Relaxation) -> list[Ranked]:
        """Scores and supports, best first, certified."""
        self._offer([self._guess])
        offered: set[Support] = set()
        while True:
            self._search()
            if time.monotonic() > self._deadline:
                raise limit_passed("time")
            limit, without = self._question(relaxation)
            fresh = relaxation.beyond(limit, sorted({*without, *offered}))
            if not fresh:
                return self._best()
            if offered.intersection(fresh):
                raise SolverError("the solver returned a support that a no-good cut forbids: it "
                                  "does not keep its tolerances on this problem")  # fmt: skip
            offered.update(fresh)
            self._offer(fresh)

    def _best(self) -> list[Ranked]:
        return sorted((score, support) for support, score in self._scores.items())[: self._wanted]

    def _question(self, relaxation: Relaxation) -> tuple[float, list[Support]]:
        """A limit in the relaxation's units, and the known supports that may lie below it."""
        # A score is within one unit of f: a support that ties with the last has f of one unit more
        # at most. The second unit is for the rounding of this line.
        worst = self._best()[-1][0] + 2
        limit = worst * self._unit / relaxation.scale + relaxation.slack
        # The solver may think of a support as lower than it is, too.
        top = worst + 2 + 2 * relaxation.slack * relaxation.scale / self._unit
        return limit, [support for support, score in self._scores.items() if score <= top]

    def _offer(self, supports: Iterable[Support]) -> None:
        new = sorted({s for s in supports if s not in self._scores})
        if new:
            scores = self._scorer.scores(np.array(new, dtype=np.int64))
            self._scores.update(zip(new, map(int, scores), strict=True))

    def _search(self) -> None:
        """Score all swaps of the best supports known, as long as that changes which they are."""
        while time.monotonic() <= self._deadline:
            ahead = [support for _, support in self._best() if support not in self._searched]
            if not ahead:
                return
            self._searched.add(ahead[0])
            self._offer(map(tuple, self._swaps(ahead[0]).tolist()))

    def _swaps(self, support: Support) -> NDArray[np.int64]:
        inside = [j for j in support if j not in self._problem.always_include]
        outside = sorted(set(range(self._problem.p)) - set(support))
        rows = [[*(i for i in support if i != gone), came] for gone in inside for came in outside]
        return np.sort(np.array(rows, dtype=np.int64).reshape(-1, self._problem.k), axis=1)


def limit_passed(what: str) -> SearchLimitError:
    """The error for a node or time limit."""
    return SearchLimitError(f"the solver passed its {what} limit; nothing is certified")


def chosen(z: Sequence[float] | NDArray[np.float64], k: int) -> Support:
    """The support of a solver's binary vector."""
    support = tuple(np.flatnonzero(np.asarray(z) > 0.5).tolist())
    if len(support) != k:
        raise SolverError(f"the solver returned {len(support)} variables instead of {k}: it does "
                          "not keep its tolerances on this problem")  # fmt: skip
    return support


def power_of_two(value: float) -> float:
    """The least power of two that is not below, so that dividing by it rounds nothing."""
    return 2.0 ** math.ceil(math.log2(value)) if value > 0 else 1.0
