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

from .errors import ArgumentError
from .intake import Intake, take_in
from .mechanisms import Mechanism, Sampler, mechanism
from .moments import Moments
from .problem import DEFAULT_REACH, whole
from .random import Randomness, SeededSource, SystemSource
from .release import Release
from .schema import Bounds, Schema
from .search.engine import Engine, Limits
from .sensitivity import Sensitivity
from .sources import Progress, Table

__all__ = ["DEFAULT_REACH", "select", "simulate"]


@dataclass(frozen=True)
class _Plan:
    """Everything about a selection that is public and settled before values are read."""

    intake: Intake
    table: Table | Moments
    sensitivity: Sensitivity
    mechanism: Mechanism
    epsilon: Fraction
    seed: int | None
    limits: Limits

    @property
    def randomness(self) -> Randomness:
        return Randomness(SystemSource() if self.seed is None else SeededSource(self.seed))

    def engine(self, progress: Progress | None) -> tuple[Engine, Sampler]:
        problem = self.intake.problem
        eta = self.mechanism.eta(problem, self.sensitivity, self.epsilon)
        gram = self.intake.read(self.table, progress)
        engine = Engine(gram, problem, self.sensitivity.unit, float(eta), self.limits)
        return engine, self.mechanism.race(engine, eta)

    def release(self, support: tuple[int, ...], diagnostics: dict[str, int] | None) -> Release:
        schema, problem = self.intake.schema, self.intake.problem
        return Release(
            support=support,
            features=[schema.feature_names[j] for j in support],
            guarantee=self.mechanism.guarantee(
                problem, self.sensitivity, self.epsilon, seeded=self.seed is not None
            ),
            mechanism=self.mechanism.name,
            mechanism_summary=self.mechanism.summary,
            schema=schema,
            problem=problem,
            sensitivity=self.sensitivity,
            diagnostics=diagnostics,
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
    node_limit: int | None = None,
    time_limit: float | None = None,
    diagnostics: str | None = None,
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
    node_limit : int, optional
    time_limit : float, optional
        Most splits of the search, most seconds it may take. Passing one raises `SearchLimitError`:
        nothing is released, and because the event depends on the data, what this release would
        have cost must be counted as spent.
    diagnostics : "not-private", optional
        Attach counts of the search to the release object. They depend on the data, are never
        written to a file, and are not to be passed on.
    progress : callable, optional
        Called with the fraction of the table read so far.

    Returns
    -------
    Release
    """
    if diagnostics not in (None, "not-private"):
        raise ArgumentError("diagnostics must be None or 'not-private', which says what they are")
    plan = _prepare(
        data, schema, y, bounds, always_include, seed, epsilon, mechanism, sensitivity,
        Limits.of(node_limit, time_limit), k=k, loss=loss, constraint=constraint, reach=reach,
        radius=radius, ridge=ridge, neighbours=neighbours,
    )  # fmt: skip
    engine, sampler = plan.engine(progress)
    support = sampler.draw(plan.randomness)
    return plan.release(support, engine.diagnostics() if diagnostics else None)


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
    node_limit: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Counter[tuple[int, ...]]:
    """How often each support would be released. NOT PRIVATE: each draw costs epsilon.

    For synthetic data, planning and tests. Takes the arguments of :func:`select`, and how many
    ``draws`` to make.
    """
    if whole(draws, "draws") < 1:
        raise ArgumentError("draws must be at least 1")
    plan = _prepare(
        data, schema, y, bounds, always_include, seed, epsilon, mechanism, sensitivity,
        Limits.of(node_limit, time_limit), k=k, loss=loss, constraint=constraint, reach=reach,
        radius=radius, ridge=ridge, neighbours=neighbours,
    )  # fmt: skip
    _, sampler = plan.engine(progress)
    rng = plan.randomness
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
    limits: Limits,
    **stated: Any,
) -> _Plan:
    """Check everything that can be checked without reading values."""
    exact = exact_epsilon(epsilon)
    chosen = mechanism(mechanism_name)
    if seed is not None:
        seed = whole(seed, "seed")
    intake = take_in(data, schema, y, bounds, always_include, **stated)
    spread = Sensitivity.of(intake.problem, rule)
    return _Plan(intake, intake.open(), spread, chosen, exact, seed, limits)


def exact_epsilon(value: Any) -> Fraction:
    """Epsilon as the exact rational that was given; a float stands for its own binary value."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal)):
        try:
            value = float(value) if hasattr(value, "dtype") else None
        except (TypeError, ValueError):
            value = None
    if value is None or (isinstance(value, Decimal) and value.is_nan()) or not value > 0:
        raise ArgumentError("epsilon must be a finite number greater than 0")
    # Beyond these no guarantee is worth its name, and float64 bounds no longer guide the search.
    if not 1e-9 <= value <= 1e6:
        raise ArgumentError("epsilon must lie between 1e-9 and 1e6")
    return Fraction(value)
