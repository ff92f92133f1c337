"""The certified best supports of a table. NOT PRIVATE: for synthetic data, planning and tests.

What a private mechanism would tend to as epsilon grows without bound, and the floor that a
comparison with other solvers needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .errors import ArgumentError
from .intake import take_in
from .problem import whole
from .schema import Bounds, Schema
from .search.best import Ranked, best_supports
from .search.best import best_in_bucket as search_bucket
from .search.engine import Engine, Limits
from .sensitivity import Sensitivity
from .solvers import check, solve
from .sources import Progress


@dataclass(frozen=True)
class ScoredSupport:
    """A support with its objective in scaled units, |y - X b|^2 + ridge |b|^2. NOT PRIVATE."""

    support: tuple[int, ...]
    features: tuple[str, ...]
    objective: float


class _Search:
    """A problem on a table, ready to be searched without noise."""

    def __init__(
        self,
        data: Any,
        schema: Schema | str | Path | None,
        y: Any,
        bounds: Bounds | None,
        always_include: Iterable[int | str],
        limits: Limits,
        progress: Progress | None,
        solver: str = "engine",
        **stated: Any,
    ) -> None:
        intake = take_in(data, schema, y, bounds, always_include, **stated)
        self.problem = intake.problem
        self._names = intake.schema.feature_names
        self._unit = Sensitivity.of(intake.problem).unit
        intake.check_records()
        self._limits, self._solver = limits, solver
        if solver != "engine":
            check(solver, intake.problem)
        self._gram = intake.read(intake.open(), progress)

    @cached_property
    def engine(self) -> Engine:
        """The engine; without noise, its bounds should be good for the largest weight."""
        return Engine(self._gram, self.problem, self._unit, math.inf, self._limits)

    def best(self, count: int) -> list[Ranked]:
        """The R best, by the solver asked for."""
        if self._solver == "engine":
            return best_supports(self.engine, count)
        return solve(self._solver, self._gram, self.problem, self._unit, count, self._limits)

    def named(self, ranked: Ranked) -> ScoredSupport:
        score, support = ranked
        return ScoredSupport(
            support, tuple(self._names[j] for j in support), float(score * self._unit)
        )


def top_supports(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    count: int,
    y: Any = None,
    bounds: Bounds | None = None,
    always_include: Iterable[int | str] = (),
    node_limit: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    solver: str = "engine",
    **stated: Any,
) -> list[ScoredSupport]:
    """The ``count`` best supports in order, certified: nothing better was missed. NOT PRIVATE.

    Takes the arguments of :func:`dpsubset.select` that state the problem (``constraint``,
    ``reach``, ``radius``, ``ridge``, ``loss``, ``threshold``). Equal scores are ordered
    lexicographically.

    ``solver`` is "engine", or one of :mod:`dpsubset.solvers` to check it with: "highs", "scip",
    "gurobi" or "gurobi-cones" give the same answer, later, or raise `SolverError`.
    """
    if whole(count, "count") < 1:
        raise ArgumentError("count must be at least 1")
    search = _Search(data, schema, y, bounds, always_include, Limits.of(node_limit, time_limit),
                     progress, solver, k=k, **stated)  # fmt: skip
    return [search.named(ranked) for ranked in search.best(count)]


def best_subset(data: Any, schema: Any = None, *, k: int, **stated: Any) -> ScoredSupport:
    """The best support, certified. NOT PRIVATE. Takes the arguments of :func:`top_supports`."""
    return top_supports(data, schema, k=k, count=1, **stated)[0]


def best_in_bucket(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    anchor: Sequence[int],
    mistakes: int,
    y: Any = None,
    bounds: Bounds | None = None,
    always_include: Iterable[int | str] = (),
    node_limit: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    **stated: Any,
) -> ScoredSupport | None:
    """The best support that shares all but ``mistakes`` variables with an anchor. NOT PRIVATE.

    None if no support has that many mistakes.
    """
    anchor = tuple(sorted({whole(j, "anchor") for j in anchor}))
    if len(anchor) != whole(k, "k"):
        raise ArgumentError("anchor must list k different positions of columns")
    if not 0 <= whole(mistakes, "mistakes") <= k:
        raise ArgumentError("mistakes must lie between 0 and k")
    search = _Search(data, schema, y, bounds, always_include, Limits.of(node_limit, time_limit),
                     progress, k=k, **stated)  # fmt: skip
    if anchor[0] < 0 or anchor[-1] >= search.problem.p:
        raise ArgumentError(f"anchor lists positions of columns, 0 to {search.problem.p - 1}")
    ranked = search_bucket(search.engine, anchor, mistakes)
    return None if ranked is None else search.named(ranked)
