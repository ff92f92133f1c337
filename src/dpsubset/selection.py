"""select and simulate: the way of the data from a table to a release.

All arguments are checked first, then names and types of the table's columns; only then are values
read. From there on nothing fails because of a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from .errors import ArgumentError, TableError
from .mechanisms import Mechanism, Sampler, mechanism
from .moments import Moments
from .problem import DEFAULT_REACH, Problem, whole
from .random import Randomness, SeededSource, SystemSource
from .release import Release
from .schema import Bounds, Schema
from .search.enumerate import check_size, enumerate_supports
from .sensitivity import Sensitivity
from .sources import Progress, open_table

__all__ = ["DEFAULT_REACH", "select", "simulate"]


@dataclass(frozen=True)
class _Plan:
    """Everything about a selection that is public and settled before values are read."""

    schema: Schema
    problem: Problem
    sensitivity: Sensitivity
    mechanism: Mechanism
    epsilon: Fraction
    seed: int | None

    @property
    def randomness(self) -> Randomness:
        return Randomness(SystemSource() if self.seed is None else SeededSource(self.seed))

    def sampler(self, moments: Moments) -> Sampler:
        if moments.fingerprint != self.schema.fingerprint():
            raise ArgumentError("these moments come from another schema")
        if moments.n == 0 and self.problem.neighbours == "replace-one":
            # n is public under replace-one, so this may be said.
            raise TableError(
                "the table has no rows. (With neighbours='add-remove' the number of rows is "
                "private and an empty table is an ordinary one)"
            )
        scored = enumerate_supports(moments, self.problem, self.sensitivity.unit)
        eta = self.mechanism.eta(self.problem, self.sensitivity, self.epsilon)
        return self.mechanism.sampler(scored, eta)

    def release(self, support: tuple[int, ...]) -> Release:
        return Release(
            support=support,
            features=[self.schema.feature_names[j] for j in support],
            guarantee=self.mechanism.guarantee(
                self.problem, self.sensitivity, self.epsilon, seeded=self.seed is not None
            ),
            mechanism=self.mechanism.name,
            mechanism_summary=self.mechanism.summary,
            schema=self.schema,
            problem=self.problem,
            sensitivity=self.sensitivity,
        )


def select(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    y: Any = None,
    bounds: Bounds | None = None,
    mechanism: str = "permute-and-flip",
    loss: str = "least-squares",
    constraint: str = "box",
    reach: float | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    neighbours: str = "replace-one",
    sensitivity: str = "sharp",
    always_include: Iterable[int | str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Select k of p variables under pure epsilon-differential privacy.

    Parameters
    ----------
    data : path, data frame, array or Moments
        The sensitive table: a CSV or Parquet file, a pandas or polars frame, an array X.
    schema : Schema or path of a bounds file, optional
        The table's public description. Arrays may give ``bounds`` instead.
    k : int
        How many variables to select, those always included among them.
    epsilon : number
        The privacy budget this release may cost; taken exactly as given.
    y : array, optional
        The response, for arrays and for frames that do not hold it.
    bounds : Bounds, optional
        Public bounds of X and y, instead of a schema.
    mechanism : {"permute-and-flip", "exponential"}
        How the support is drawn.
    loss : {"least-squares"}
        What a support is judged by.
    constraint : {"box", "ball", "l1"}
        Which coefficients are allowed.
    reach, radius : float, optional
        Size of the coefficient set: the largest prediction, in units of the response's half-range,
        or the set's own radius. Reach 1 by default.
    ridge : float
        Weight of the squared coefficients, in scaled units.
    neighbours : {"replace-one", "add-remove"}
        Whose data the guarantee protects against: a row replaced (n is public), or a row added or
        removed (n is private).
    sensitivity : {"sharp", "published", "lemma-2"}
        How far one row moves the scores; all but "sharp" are looser and reproduce published
        figures.
    always_include : names or positions
        Variables that are part of every support.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private, and the release says so.
    progress : callable, optional
        Called with the fraction of the table read so far.

    Returns
    -------
    Release
    """
    plan, table = _prepare(
        data, schema, y, bounds, always_include, seed, epsilon, mechanism, sensitivity,
        k=k, loss=loss, constraint=constraint, reach=reach, radius=radius, ridge=ridge,
        neighbours=neighbours,
    )  # fmt: skip
    moments = _moments(table, plan.schema, progress)
    return plan.release(plan.sampler(moments).draw(plan.randomness))


def simulate(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    draws: int = 1000,
    y: Any = None,
    bounds: Bounds | None = None,
    mechanism: str = "permute-and-flip",
    loss: str = "least-squares",
    constraint: str = "box",
    reach: float | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    neighbours: str = "replace-one",
    sensitivity: str = "sharp",
    always_include: Iterable[int | str] = (),
    seed: int | None = None,
    progress: Progress | None = None,
) -> Counter[tuple[int, ...]]:
    """How often each support would be released. NOT PRIVATE: each draw costs epsilon.

    For synthetic data, planning and tests. Takes the arguments of :func:`select`, and how many
    ``draws`` to make.
    """
    if whole(draws, "draws") < 1:
        raise ArgumentError("draws must be at least 1")
    plan, table = _prepare(
        data, schema, y, bounds, always_include, seed, epsilon, mechanism, sensitivity,
        k=k, loss=loss, constraint=constraint, reach=reach, radius=radius, ridge=ridge,
        neighbours=neighbours,
    )  # fmt: skip
    sampler, rng = plan.sampler(_moments(table, plan.schema, progress)), plan.randomness
    return Counter(sampler.draw(rng) for _ in range(draws))


def _prepare(
    data: Any,
    schema: Schema | str | Path | None,
    y: Any,
    bounds: Bounds | None,
    always_include: Iterable[int | str],
    seed: int | None,
    epsilon: Any,
    mechanism_name: str,
    rule: str,
    **stated: Any,
) -> tuple[_Plan, Any]:
    """Check everything that can be checked without reading values."""
    exact = exact_epsilon(epsilon)
    chosen = mechanism(mechanism_name)
    if seed is not None:
        seed = whole(seed, "seed")
    if isinstance(always_include, str):
        always_include = (always_include,)
    schema = _settle_schema(data, y, schema, bounds)
    if schema is None:
        raise ArgumentError("pass a schema (or, for arrays, bounds): bounds are public knowledge "
                            "and are never read from the data")  # fmt: skip
    always = {*schema.always_include, *(_position(name, schema) for name in always_include)}
    problem = Problem.state(len(schema.features), always_include=always, **stated)
    plan = _Plan(schema, problem, Sensitivity.of(problem, rule), chosen, exact, seed)
    check_size(problem)
    table = data if isinstance(data, Moments) else open_table(data, schema, y)
    return plan, table


def _moments(table: Any, schema: Schema, progress: Progress | None) -> Moments:
    if isinstance(table, Moments):
        return table
    return Moments.from_blocks(schema, table.blocks(progress))


def exact_epsilon(value: Any) -> Fraction:
    """Epsilon as the exact rational that was given; a float stands for its own binary value."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal)):
        try:
            value = float(value) if hasattr(value, "dtype") else None
        except (TypeError, ValueError):
            value = None
    if value is None or (isinstance(value, Decimal) and value.is_nan()) or not value > 0:
        raise ArgumentError("epsilon must be a finite number greater than 0")
    # Beyond these a float cannot show it, and an exact rational of it may not fit in memory.
    if not 1e-300 <= value <= 1e300:
        raise ArgumentError("epsilon must lie between 1e-300 and 1e300")
    return Fraction(value)


def _settle_schema(
    data: Any, y: Any, schema: Schema | str | Path | None, bounds: Bounds | None
) -> Schema | None:
    if isinstance(schema, (str, Path)):
        schema = Schema.read(schema)
    if schema is not None and not isinstance(schema, Schema):
        raise ArgumentError("schema must be a dpsubset.Schema or the path of a bounds file")
    if bounds is None:
        return schema
    if schema is not None:
        raise ArgumentError("pass a schema or bounds, not both")
    if not isinstance(bounds, Bounds):
        raise ArgumentError("bounds must be dpsubset.Bounds(x=..., y=...)")
    if isinstance(data, (str, Path, Moments)):
        raise ArgumentError("bounds go with arrays and frames; a file or moments need a schema")
    from .sources.arrays import as_matrix
    from .sources.frames import column_names, is_frame

    if is_frame(data):
        if y is None:
            raise ArgumentError("bounds go with X and y=; a frame that holds its response as a "
                                "column needs a schema")  # fmt: skip
        names, response = column_names(data), "y"
        while response in names:
            response += "_"
        return bounds.schema(names, response)
    return bounds.schema([f"x{j}" for j in range(as_matrix(data).shape[1])])


def _position(name: int | str, schema: Schema) -> int:
    if isinstance(name, str):
        if name not in schema.feature_names:
            raise ArgumentError(f"always_include: the schema declares no feature {name!r}")
        return schema.feature_names.index(name)
    return whole(name, "always_include")
