"""The certified best supports of a table. NOT PRIVATE: for synthetic data, planning and tests.

As epsilon grows, a private mechanism converges to the best support. It is also needed to compare
the engine with other solvers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

from ..base.errors import ArgumentError
from ..base.validation import check_int, check_progress
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..schema.schema import SchemaLike
from ..search.best import Ranked, best_supports
from ..search.best import best_in_bucket as search_bucket
from ..search.engine import Engine
from ..search.solvers import check, solve
from .problem_spec import ProblemOptions, build_problem_spec, with_keywords_of


@dataclass(frozen=True)
class ScoredSupport:
    """A support with its objective in scaled units, |y - X b|^2 + ridge |b|^2. NOT PRIVATE.

    X has the columns of the variables in the support, and the intercept's column if the model has
    one.
    """

    support: tuple[int, ...]
    features: tuple[str, ...]
    objective: float


class _Search:
    """A problem on a table, ready to be searched without noise."""

    def __init__(
        self,
        data: Any,
        schema: SchemaLike | None,
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
        """Return the search engine. Its bounds are chosen for optimisation, since nothing is
        drawn.
        """
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
    schema: SchemaLike | None = None,
    *,
    k: int,
    count: int,
    progress: Progress | None = None,
    solver: str = "engine",
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> list[ScoredSupport]:
    """Find the ``count`` best supports in order, certified. NOT PRIVATE.

    Equal scores are ordered lexicographically.

    Parameters
    ----------
    data, schema, k, progress
        As for :func:`dpsubset.select`. All its arguments that define the problem, such as ``loss``,
        ``constraint`` and ``ridge``, are accepted as well.
    count : int
        Number of supports to find.
    solver : {"engine", "highs", "scip", "gurobi", "gurobi-cones"}
        The solver. All solvers but "engine" are much slower and exist to check it.

    Returns
    -------
    list of ScoredSupport

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong.
    SearchLimitError
        If a node or time limit is exceeded.
    SolverError
        If another solver cannot solve the problem.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> given = {"y": X[:, 1], "bounds": dps.Bounds(x=1, y=1)}
    >>> [found.features for found in dps.top_supports(X, k=1, count=1, **given)]
    [('x1',)]
    """
    if check_int(count, "count") < 1:
        raise ArgumentError("count must be at least 1")
    search = _Search(data, schema, k, y, options, progress, solver)
    return [search.named(ranked) for ranked in search.best(count)]


@with_keywords_of(build_problem_spec)
def best_subset(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    progress: Progress | None = None,
    solver: str = "engine",
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> ScoredSupport:
    """Find the best support, certified. NOT PRIVATE.

    Parameters
    ----------
    data, schema, k, progress, solver
        As for :func:`top_supports`, and so are all other arguments.

    Returns
    -------
    ScoredSupport

    Raises
    ------
    ArgumentError, SchemaError, TableError, SearchLimitError, SolverError
        As for :func:`top_supports`.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> given = {"y": X[:, 1], "bounds": dps.Bounds(x=1, y=1)}
    >>> dps.best_subset(X, k=1, **given).features
    ('x1',)
    """
    search = _Search(data, schema, k, y, options, progress, solver)
    return search.named(search.best(1)[0])


@with_keywords_of(build_problem_spec)
def best_in_bucket(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    anchor: Sequence[int],
    mistakes: int,
    progress: Progress | None = None,
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> ScoredSupport | None:
    """Find the best support that shares all but ``mistakes`` variables with an anchor. NOT PRIVATE.

    Parameters
    ----------
    data, schema, k, progress
        As for :func:`top_supports`, and so are all other arguments.
    anchor : sequence of int
        Positions of k variables.
    mistakes : int
        How many variables of the support are not in the anchor.

    Returns
    -------
    ScoredSupport or None
        None if no support has that many mistakes.

    Raises
    ------
    ArgumentError, SchemaError, TableError, SearchLimitError
        As for :func:`top_supports`.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> given = {"y": X[:, 1], "bounds": dps.Bounds(x=1, y=1)}
    >>> dps.best_in_bucket(X, k=1, anchor=[0], mistakes=1, **given).features
    ('x1',)
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
