"""The certified best supports of a table. NOT PRIVATE: for synthetic data, planning and tests.

A private mechanism tends to the best support as epsilon grows. Comparisons with other solvers need
it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from ..base.errors import ArgumentError
from ..base.validation import check_int, check_progress
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..schema.schema import Schema
from ..search.best import Ranked, best_supports
from ..search.best import best_in_bucket as search_bucket
from ..search.engine import Engine
from ..search.solvers import check, solve
from .problem_spec import ProblemOptions, build_problem_spec, with_keywords_of


@dataclass(frozen=True)
class ScoredSupport:
    """A support with its objective in scaled units, |y - X b|^2 + ridge |b|^2. NOT PRIVATE.

    X has the columns of the variables in the support, and the intercept's where there is one.
    """

    support: tuple[int, ...]
    features: tuple[str, ...]
    objective: float


class _Search:
    """A problem on a table, ready to be searched without noise."""

    def __init__(
        self,
        data: Any,
        schema: Schema | str | Path | None,
        k: int,
        y: Any,
        options: ProblemOptions,
        progress: Progress | None,
        solver: str = "engine",
    ) -> None:
        check_progress(progress)
        spec = build_problem_spec(data, schema, k=k, y=y, **options)
        self.problem, self._spec, self._solver = spec.problem, spec, solver
        self._unit = spec.sensitivity.score_step
        if solver != "engine":
            check(solver, self.problem)
        table = spec.open(data, y)
        self._gram = table.read(self.problem, Passes(progress, self.problem.n_is_public))

    @cached_property
    def engine(self) -> Engine:
        """The search engine. Without noise its bounds should suit the largest weight."""
        return Engine(self._gram, self.problem, self._unit, math.inf, self._spec.limits)

    def best(self, count: int) -> list[Ranked]:
        """The best supports in order, by the chosen solver."""
        if self._solver == "engine":
            return best_supports(self.engine, count)
        return solve(self._solver, self._gram, self.problem, self._unit, count, self._spec.limits)

    def named(self, ranked: Ranked) -> ScoredSupport:
        score, support = ranked
        return ScoredSupport(
            support, tuple(self._spec.design.names(support)), float(score * self._unit)
        )


@with_keywords_of(build_problem_spec)
def top_supports(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    count: int,
    progress: Progress | None = None,
    solver: str = "engine",
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> list[ScoredSupport]:
    """The ``count`` best supports in order, certified: nothing better was missed. NOT PRIVATE.

    Takes the arguments of :func:`dpsubset.select` that state the problem (``constraint``,
    ``prediction_bound``, ``radius``, ``ridge``, ``loss``, ``threshold``). Equal scores are ordered
    lexicographically.

    ``solver`` is "engine", or one of :mod:`dpsubset.search.solvers` to check it with: "highs",
    "scip", "gurobi" or "gurobi-cones" give the same answer, later, or raise `SolverError`.
    """
    if check_int(count, "count") < 1:
        raise ArgumentError("count must be at least 1")
    search = _Search(data, schema, k, y, options, progress, solver)
    return [search.named(ranked) for ranked in search.best(count)]


@with_keywords_of(build_problem_spec)
def best_subset(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    progress: Progress | None = None,
    solver: str = "engine",
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> ScoredSupport:
    """The best support, certified. NOT PRIVATE. Takes the arguments of :func:`top_supports`."""
    search = _Search(data, schema, k, y, options, progress, solver)
    return search.named(search.best(1)[0])


@with_keywords_of(build_problem_spec)
def best_in_bucket(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    anchor: Sequence[int],
    mistakes: int,
    progress: Progress | None = None,
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> ScoredSupport | None:
    """The best support that shares all but ``mistakes`` variables with an anchor. NOT PRIVATE.

    None if no support has that many mistakes.
    """
    anchor = tuple(sorted({check_int(j, "anchor") for j in anchor}))
    if len(anchor) != check_int(k, "k"):
        raise ArgumentError("anchor must list k different positions of variables")
    if not 0 <= check_int(mistakes, "mistakes") <= k:
        raise ArgumentError("mistakes must lie between 0 and k")
    search = _Search(data, schema, k, y, options, progress)
    if anchor[0] < 0 or anchor[-1] >= search.problem.p:
        raise ArgumentError(f"anchor lists positions of variables, 0 to {search.problem.p - 1}")
    ranked = search_bucket(search.engine, anchor, mistakes)
    return None if ranked is None else search.named(ranked)
