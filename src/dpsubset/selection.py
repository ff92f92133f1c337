"""select and simulate: the way of the data from a table to a release.

All arguments are checked first, then names and types of the table's columns; only then are values
read. From there on nothing fails because of a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from .arguments import exact, seed_number, whole
from .errors import ArgumentError
from .intake import Intake, take_in
from .mechanisms import Data, Mechanism, Outcome, Sampler, Setting, mechanism
from .moments import Moments
from .random import Randomness, SeededSource, SystemSource
from .release import Release
from .schema import Bounds, Schema
from .search.engine import Limits
from .sensitivity import Sensitivity
from .sources import Progress, Table

__all__ = ["select", "simulate"]


@dataclass(frozen=True)
class _Plan:
    """Everything about a selection that is public and settled before values are read."""

    intake: Intake
    table: Table | Moments = field(repr=False)
    mechanism: Mechanism
    setting: Setting
    seed: int | None
    limits: Limits

    @property
    def randomness(self) -> Randomness:
        return Randomness(SystemSource() if self.seed is None else SeededSource(self.seed))

    def read(self, progress: Progress | None) -> tuple[Setting, Sampler]:
        """Read the table and do everything but the draw."""
        gram = self.intake.read(self.table, progress, records=self.mechanism.needs_records)
        setting = self.setting
        if setting.problem.neighbours == "replace-one":
            setting = replace(setting, n=gram.n)  # public under this relation
        return setting, self.mechanism.prepare(Data(gram, self.limits), setting)

    def release(self, setting: Setting, outcome: Outcome, diagnostics: dict[str, int]) -> Release:
        schema, problem, chosen = self.intake.schema, self.intake.problem, self.mechanism
        return Release(
            support=outcome,
            features=[schema.feature_names[j] for j in outcome or ()],
            guarantee=chosen.guarantee(setting, seeded=self.seed is not None),
            mechanism=chosen.name,
            mechanism_summary=chosen.summary,
            schema=schema,
            problem=problem,
            sensitivity=setting.sensitivity,
            options=chosen.options(),
            details=chosen.details(setting),
            randomness=chosen.randomness,
            diagnostics=diagnostics or None,
        )


def select(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    y: Any = None,
    bounds: Bounds | None = None,
    delta: float | Fraction | Decimal = 0,
    mechanism: str | Mechanism = "permute-and-flip",
    options: Mapping[str, Any] | None = None,
    allow_unproven: bool = False,
    loss: str | None = None,
    threshold: float | None = None,
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
    """Select k of p variables under differential privacy; pure epsilon by default.

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
    delta : number
        For mechanisms whose guarantee has one; 0, hence pure privacy, for all others.
    mechanism : str or Mechanism
        How the support is drawn: a name from `dpsubset.MECHANISMS`, or such an object with its
        options. The default is exact, and as good as any at the same epsilon.
    options : mapping, optional
        Options of a mechanism given by its name.
    allow_unproven : bool
        Needed for mechanisms without a privacy guarantee, which exist to reproduce figures.
    loss : {"least-squares", "logistic", "hinge", "huber"}, optional
        What a support is judged by: by default least squares, and where the response has labels
        `dpsubset.losses.CLASSIFICATION`. "logistic" and "hinge" are for labels: where the response
        has bounds, these are the two labels, and a cell counts as the nearer one (the upper one
        from the middle).
    threshold : float, optional
        For "huber" alone, in units of the response's half-range: residuals beyond it count by
        their size, not by their square. From 0.01 to 1; 1/4 by default.
    constraint : {"box", "ball", "l1"}
        Which coefficients are allowed.
    reach, radius : float, optional
        Size of the coefficient set: the largest prediction, in units of the response's half-range,
        or the set's own radius. By default reach 1,
        and reach 2 for losses of labels.
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
        data, schema, y, bounds, always_include, seed, (epsilon, delta), (mechanism, options),
        allow_unproven, sensitivity, Limits.of(node_limit, time_limit), k=k, loss=loss,
        threshold=threshold, constraint=constraint, reach=reach, radius=radius, ridge=ridge,
        neighbours=neighbours,
    )  # fmt: skip
    setting, sampler = plan.read(progress)
    outcome = sampler.draw(plan.randomness)
    counts = sampler.diagnostics() if diagnostics else {}
    return plan.release(setting, outcome, counts)


def simulate(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    draws: int = 1000,
    y: Any = None,
    bounds: Bounds | None = None,
    delta: float | Fraction | Decimal = 0,
    mechanism: str | Mechanism = "permute-and-flip",
    options: Mapping[str, Any] | None = None,
    allow_unproven: bool = False,
    loss: str | None = None,
    threshold: float | None = None,
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
) -> Counter[Outcome]:
    """How often each support would be released. NOT PRIVATE: each draw costs epsilon.

    None stands for a draw that released nothing. For synthetic data, planning and tests. Takes the
    arguments of :func:`select`, and how many ``draws`` to make.
    """
    draws = whole(draws, "draws")
    if draws < 1:
        raise ArgumentError("draws must be at least 1")
    plan = _prepare(
        data, schema, y, bounds, always_include, seed, (epsilon, delta), (mechanism, options),
        allow_unproven, sensitivity, Limits.of(node_limit, time_limit), k=k, loss=loss,
        threshold=threshold, constraint=constraint, reach=reach, radius=radius, ridge=ridge,
        neighbours=neighbours,
    )  # fmt: skip
    _, sampler = plan.read(progress)
    rng = plan.randomness
    return Counter(sampler.draw(rng) for _ in range(draws))


def _prepare(
    data: Any,
    schema: Schema | str | Path | None,
    y: Any,
    bounds: Bounds | None,
    always_include: Iterable[int | str],
    seed: int | None,
    budget: tuple[Any, Any],
    named: tuple[str | Mechanism, Mapping[str, Any] | None],
    allow_unproven: bool,
    rule: str,
    limits: Limits,
    **stated: Any,
) -> _Plan:
    """Check everything that can be checked without reading values."""
    epsilon, delta = exact_epsilon(budget[0]), exact_delta(budget[1])
    chosen = mechanism(*named)
    if seed is not None:
        seed = seed_number(seed)
        if not chosen.seedable:
            raise ArgumentError(f"{chosen.name} takes noise from OpenDP, which has no seeds")
    if not chosen.proven and allow_unproven is not True:
        raise ArgumentError(
            f"{chosen.name} with these options has no privacy guarantee. To run it all the same, "
            "on data that are not sensitive, pass allow_unproven=True"
        )
    intake = take_in(data, schema, y, bounds, always_include, **stated)
    if chosen.needs_records and isinstance(data, Moments):
        raise ArgumentError(f"{chosen.name} needs the records: moments are not enough")
    intake.check_records()
    chosen = chosen.named(intake.position)
    setting = Setting(intake.problem, Sensitivity.of(intake.problem, rule), epsilon, delta)
    chosen.check(setting)
    return _Plan(intake, intake.open(), chosen, setting, seed, limits)


def exact_epsilon(value: Any) -> Fraction:
    """Epsilon as the exact rational that was given; a float stands for its own binary value."""
    epsilon = exact(value)
    if epsilon is None:  # also what is too long or too far from 1 to be written out
        raise ArgumentError("epsilon must be a finite number. It must lie between 1e-9 and 1e6")
    if epsilon <= 0:
        raise ArgumentError("epsilon must be a finite number greater than 0")
    # Beyond these no guarantee is worth its name, and float64 bounds no longer guide the search.
    if not 1e-9 <= epsilon <= 1e6:
        raise ArgumentError("epsilon must lie between 1e-9 and 1e6")
    return epsilon


def exact_delta(value: Any) -> Fraction:
    """Delta, likewise; 0 for pure privacy."""
    delta = exact(value)
    if delta is None or not 0 <= delta < 1:
        raise ArgumentError("delta must be a number from 0 to below 1: much below 1/n, or 0")
    if 0 < delta < 1e-100:
        raise ArgumentError("delta must be 0 or at least 1e-100")
    return delta
