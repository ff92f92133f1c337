"""From a solver's bounds to the R best supports: the loop that both formulations share.

Supports are found by any means and scored by the package's own `Scorer`. A relaxation must then
show that no support outside a list has f(S) below a limit. The list contains every known support
that the limit does not rule out, each excluded by a no-good cut

    sum over j in S of z_j <= k - 1.

The limit is the R-th best score, plus the error of a score, plus the effect of the solver's
tolerances. If no other support lies below it, order and ties among the known ones are final.
Supports that the solver returns instead of a proof are scored, and the loop repeats.

The proof assumes that the solver keeps ten times its tolerances. Without a proof the result is
`SolverError`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...base.errors import DpsubsetError, SearchLimitError
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses import scorer
from ...objective.problem import Problem
from ..best import Ranked
from ..engine import Limits, Support

#: How many times its tolerance a solver may exceed.
TOLERANCE_FACTOR = 10.0


class SolverError(DpsubsetError, RuntimeError):
    """A solver is missing, or could not certify an answer. Nothing is returned."""


class Relaxation(ABC):
    """A formulation on a solver, with f(S) in units of ``scale``."""

    scale: float
    #: The Python package of the solver, the extra that installs it, and who needs it.
    package: ClassVar[str]
    extra: ClassVar[str] = "solvers"
    needs: ClassVar[str]

    def __init__(self, gram: GramData, problem: Problem, limits: Limits) -> None:
        self._solver = self._import()
        self._problem, self._limits = problem, limits
        self._deadline = time.monotonic() + limits.seconds
        self._nodes = 0

    @staticmethod
    @abstractmethod
    def _module() -> Any:
        """Import the package."""

    @classmethod
    def _import(cls) -> Any:
        try:
            return cls._module()
        except ImportError:
            raise SolverError(
                f"{cls.needs} the package {cls.package}: pip install 'dpsubset[{cls.extra}]'"
            ) from None

    @classmethod
    def check(cls) -> None:
        """Raise `SolverError` if the solver is not installed or has no licence."""
        cls._import()

    @property
    @abstractmethod
    def slack(self) -> float:
        """A bound on the effect of the solver's tolerances on a lower bound."""

    def _seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise limit_passed("time")
        return left

    @abstractmethod
    def beyond(self, limit: float, without: Sequence[Support]) -> list[Support]:
        """Supports that may lie below the limit, except those in ``without``; none is a proof."""


class Certified:
    """The R best supports, certified by a relaxation."""

    def __init__(
        self, gram: GramData, problem: Problem, score_step: Fraction, count: int, limits: Limits
    ) -> None:
        self._problem = problem
        self._score_step = float(score_step)
        self._wanted = min(count, problem.supports)
        self._scorer = scorer(gram, problem, score_step)
        self._scores: dict[Support, int] = {}
        self._searched: set[Support] = set()
        self._deadline = time.monotonic() + limits.seconds
        # The first incumbent: the largest marginal gains.
        gain = gram.c.astype(np.float64) ** 2 / np.maximum(
            gram.diagonal + problem.ridge * STEPS**2, 1.0
        )
        gain = problem.layout.of_choices(gain)
        gain[list(problem.always_include)] = math.inf
        self._incumbent: Support = tuple(
            sorted(np.argsort(-gain, kind="stable")[: problem.k].tolist())
        )

    def find(self, relaxation: Relaxation) -> list[Ranked]:
        """Scores and supports, best first, certified."""
        self._score_new([self._incumbent])
        offered: set[Support] = set()
        while True:
            self._local_search()
            if time.monotonic() > self._deadline:
                raise limit_passed("time")
            limit, without = self._exclusion_problem(relaxation)
            fresh = relaxation.beyond(limit, sorted({*without, *offered}))
            if not fresh:
                return self._best()
            if offered.intersection(fresh):
                raise SolverError("the solver returned a support that a no-good cut forbids: it "
                                  "does not keep its tolerances on this problem")  # fmt: skip
            offered.update(fresh)
            self._score_new(fresh)

    def _best(self) -> list[Ranked]:
        return sorted((score, support) for support, score in self._scores.items())[: self._wanted]

    def _exclusion_problem(self, relaxation: Relaxation) -> tuple[float, list[Support]]:
        """A limit in the relaxation's units, and the known supports that may lie below it."""
        # A score is within one step of f, so a support that ties with the last one has f of at most
        # one step more. The second step covers the rounding of this line.
        worst = self._best()[-1][0] + 2
        limit = worst * self._score_step / relaxation.scale + relaxation.slack
        # The solver may also underestimate a support.
        top = worst + 2 + 2 * relaxation.slack * relaxation.scale / self._score_step
        return limit, [support for support, score in self._scores.items() if score <= top]

    def _score_new(self, supports: Iterable[Support]) -> None:
        new = sorted({s for s in supports if s not in self._scores})
        if new:
            scores = self._scorer.scores(np.array(new, dtype=np.int64))
            self._scores.update(zip(new, map(int, scores), strict=True))

    def _local_search(self) -> None:
        """Score all swaps of the best known supports until the best ones do not change."""
        while time.monotonic() <= self._deadline:
            ahead = [support for _, support in self._best() if support not in self._searched]
            if not ahead:
                return
            self._searched.add(ahead[0])
            self._score_new(map(tuple, self._swaps(ahead[0]).tolist()))

    def _swaps(self, support: Support) -> NDArray[np.int64]:
        inside = [j for j in support if j not in self._problem.always_include]
        outside = sorted(set(range(self._problem.p)) - set(support))
        rows = [
            [*(i for i in support if i != removed), added]
            for removed in inside
            for added in outside
        ]
        return np.sort(np.array(rows, dtype=np.int64).reshape(-1, self._problem.k), axis=1)


def limit_passed(what: str) -> SearchLimitError:
    """The error for an exceeded node or time limit."""
    return SearchLimitError(f"the solver passed its {what} limit; nothing is certified")


def chosen(z: Sequence[float] | NDArray[np.float64], k: int) -> Support:
    """The support of a solver's binary vector."""
    support = tuple(np.flatnonzero(np.asarray(z) > 0.5).tolist())
    if len(support) != k:
        raise SolverError(f"the solver returned {len(support)} variables instead of {k}: it does "
                          "not keep its tolerances on this problem")  # fmt: skip
    return support


def power_of_two(value: float) -> float:
    """The smallest power of two that is at least ``value``; dividing by it is exact."""
    return 2.0 ** math.ceil(math.log2(value)) if value > 0 else 1.0
