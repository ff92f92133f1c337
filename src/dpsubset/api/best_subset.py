"""The certified best supports of a table. NOT PRIVATE: for synthetic data, planning and tests.

What a private mechanism would tend to as epsilon grows without bound, and the floor that a
comparison with other solvers needs.
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
from ..objective.sensitivity import Sensitivity
from ..schema.schema import Schema
from ..search.best import Ranked, best_supports
from ..search.best import best_in_bucket as search_bucket
from ..search.engine import Engine
from ..search.solvers import check, solve
from .problem_spec import ProblemOptions, build_problem_spec, with_keywords_of
from .sensitive_table import SensitiveTable


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
        asked: ProblemOptions,
        progress: Progress | None,
        solver: str = "engine",
    ) -> None:
        check_progress(progress)
        stated = build_problem_spec(data, schema, k=k, **asked)
        self.problem, self._limits, self._solver = stated.problem, stated.limits, solver
        self._design = stated.design
        self._unit = Sensitivity.of(self.problem).score_step
        if solver != "engine":
            check(solver, self.problem)
        table = SensitiveTable(data, stated.schema, asked.get("y"), records_for=stated.records_for)
        self._digest = table.read(self.problem, Passes(progress, self.problem.n_is_public))

    @cached_property
    def engine(self) -> Engine:
        """The engine; without noise, its bounds should be good for the largest weight."""
        return Engine(self._digest, self.problem, self._unit, math.inf, self._limits)

    def best(self, count: int) -> list[Ranked]:
        """The R best, by the solver asked for."""
        if self._solver == "engine":
            return best_supports(self.engine, count)
        return solve(self._solver, self._digest, self.problem, self._unit, count, self._limits)

    def named(self, ranked: Ranked) -> ScoredSupport:
        score, support = ranked
        return ScoredSupport(support, tuple(self._design.names(support)), float(score * self._unit))


@with_keywords_of(build_problem_spec)
def top_supports(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    count: int,
    progress: Progress | None = None,
    solver: str = "engine",
    **asked: Unpack[ProblemOptions],
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
    search = _Search(data, schema, k, asked, progress, solver)
    return [search.named(ranked) for ranked in search.best(count)]


@with_keywords_of(build_problem_spec)
def best_subset(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    progress: Progress | None = None,
    solver: str = "engine",
    **asked: Unpack[ProblemOptions],
) -> ScoredSupport:
    """The best support, certified. NOT PRIVATE. Takes the arguments of :func:`top_supports`."""
    search = _Search(data, schema, k, asked, progress, solver)
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
    **asked: Unpack[ProblemOptions],
) -> ScoredSupport | None:
    """The best support that shares all but ``mistakes`` variables with an anchor. NOT PRIVATE.

    None if no support has that many mistakes.
    """
    anchor = tuple(sorted({check_int(j, "anchor") for j in anchor}))
    if len(anchor) != check_int(k, "k"):
        raise ArgumentError("anchor must list k different positions of variables")
    if not 0 <= check_int(mistakes, "mistakes") <= k:
        raise ArgumentError("mistakes must lie between 0 and k")
    search = _Search(data, schema, k, asked, progress)
    if anchor[0] < 0 or anchor[-1] >= search.problem.p:
        raise ArgumentError(f"anchor lists positions of variables, 0 to {search.problem.p - 1}")
    ranked = search_bucket(search.engine, anchor, mistakes)
    return None if ranked is None else search.named(ranked)
