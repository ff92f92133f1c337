"""fit_released: fit a model on the variables of an earlier release. Only the fit costs budget.

The names, and the response range if one was released, are public by then. The release states the
cost of both releases together, under the relation of the earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..base.errors import ArgumentError
from ..base.validation import check_seed
from ..data.moments import Moments
from ..data.readers import Progress
from ..data.type_checks import type_mismatches
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..models.automatic import AutomaticFit
from ..models.entries import Entries, of_support
from ..models.objective_perturbation import ObjectivePerturbation
from ..models.rule import FitRule
from ..privacy.guarantee import Guarantee
from ..privacy.quantiles import RangeInSteps
from ..privacy.relations import PUBLIC_N, Neighbours
from ..release.fitted import check_units
from ..release.model import Model
from ..release.release import OTHER_SCHEMA, Release, package_versions
from ..schema.dates import today
from ..schema.encoding import Design
from ..schema.schema import Bounds, Schema, SchemaLike
from .driver import Execution, Price, Request, event_of, make_release, price_of
from .fit import FIT, LARGEST_FIT, FitStep, Noise, choose_noise, fit_support, model_on
from .problem_spec import resolve_schema, with_keywords_of
from .request import SELECTION, exact_delta, exact_epsilon
from .sensitive_table import SensitiveTable

__all__ = ["fit_released", "price_released"]


@dataclass(frozen=True)
class FitReleasedRequest(Request[SensitiveTable, Release[Model]]):
    """A fit on an earlier release, whose arguments have been checked. Public.

    Attributes
    ----------
    earlier : Release
    schema : Schema
    design : Design
    support : tuple of int
        The variables that the earlier release names.
    rule : FitRule
    noise : AutomaticFit, NoisyMoments, ObjectivePerturbation or GaussianOls
    scale : RangeInSteps, optional
        The released response range. None if the earlier release has none, or if the table comes as
        moments, which hold the response in its declared range.
    seed : int, optional
    n : int, optional
        The number of rows, where it is public and known.
    date : str
    """

    earlier: Release
    schema: Schema
    design: Design
    support: tuple[int, ...]
    rule: FitRule
    noise: Noise
    scale: RangeInSteps | None
    seed: int | None
    n: int | None = None
    date: str = field(default_factory=today, compare=False)

    @property
    def neighbours(self) -> Neighbours:
        return self.earlier.problem.neighbours

    @property
    def n_is_public(self) -> bool:
        return self.neighbours in PUBLIC_N

    @cached_property
    def part(self) -> Schema:
        """The schema of the columns that are fitted, and the response."""
        return of_support(self.schema, self.design, self.support)

    @property
    def counts_rows_first(self) -> bool:
        """Whether a first pass counts the rows, because the fit or its range depends on their
        public number.
        """
        depends = self.scale is not None or isinstance(
            self.noise, (AutomaticFit, ObjectivePerturbation)
        )
        return self.n_is_public and self.n is None and depends

    @property
    def pass_count(self) -> int:
        """One pass for the fit, and one if rows have to be counted first."""
        return 2 if self.counts_rows_first else 1

    @cached_property
    def debited_guarantee(self) -> Guarantee:
        """The guarantee of the fit alone for one unit: the earlier release has its own ledger
        entry.
        """
        last = self.noise.guarantee(seeded=self.seed is not None)
        return last.group_privacy(self.schema.rows_per_unit)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee for one unit, of the earlier release and this one together."""
        earlier = self.earlier.guarantee
        parts = dict(earlier.parts) or {SELECTION: earlier}
        return Guarantee.compose({**parts, FIT: self.debited_guarantee})

    def with_rows(self, n: int | None) -> FitReleasedRequest:
        return replace(self, n=n) if self.n_is_public and n != self.n else self

    def open(self, data: Any, y: Any = None) -> SensitiveTable:
        return SensitiveTable(data, self.schema, y)

    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        return type_mismatches(data, self.part, y)

    def describe(self, guarantee: Guarantee) -> Event:
        return Event.of(
            "fit-released",
            self.noise.name,
            guarantee,
            unit=self.schema.privacy_unit,
            rows_per_unit=self.schema.rows_per_unit,
            schema=self.schema.fingerprint(),
            options={
                "earlier": self.earlier.content_digest,
                "declared": self.neighbours,
            },
        )

    def run(self, execution: Execution[SensitiveTable]) -> Release[Model]:
        """Read the columns of the support and draw the fit."""
        table, passes, earlier, n = execution.table, execution.passes, self.earlier, self.n
        execution.check(self.debited_guarantee)
        if self.counts_rows_first:
            _, n = table.count_response(passes)
        range_rule = None if earlier.scale is None else earlier.scale.rule
        step = FitStep(
            self.schema, self.design, self.neighbours, n, range_rule, self.rule, self.noise,
            Fraction(1),
        )  # fmt: skip
        fitted = fit_support(step, table, execution.rng, self.support, self.scale, passes)
        mismatches = (*earlier.column_warnings, *execution.column_warnings)
        made = replace(
            earlier,
            guarantee=self.guarantee,
            model=model_on(step, fitted, str(self.guarantee)),
            fit=fitted,
            earlier=earlier.content_digest,
            rows=earlier.rows if fitted.n is None else fitted.n,
            date=self.date,
            versions=package_versions(),
            column_warnings=tuple(dict.fromkeys(mismatches)),
            receipt=None,
            diagnostics=None,
        )
        return cast(Release[Model], made)


def build_released_request(
    release: Release | str | Path,
    data: Any,
    schema: SchemaLike | None = None,
    *,
    epsilon: float | Fraction | Decimal,
    delta: float | Fraction | Decimal = 0,
    y: Any = None,
    bounds: Bounds | None = None,
    rule: FitRule | None = None,
    seed: int | None = None,
) -> FitReleasedRequest:
    """Check everything that can be checked without opening the table."""
    budget, chance = exact_epsilon(epsilon), exact_delta(delta)
    rule = FitRule() if rule is None else rule
    if not isinstance(rule, FitRule):
        raise ArgumentError("rule must be a dpsubset.FitRule")
    seed = None if seed is None else check_seed(seed)
    if schema is None and bounds is None and isinstance(release, Release):
        schema = release.schema
    declared = resolve_schema(data, y, schema, bounds)
    if isinstance(release, (str, Path)):
        release = Release.load(release, declared)
    support = _support_of(release, declared)
    rule = rule.of_loss(release.problem.loss, exact=bool(chance) or isinstance(data, Moments))
    rows = declared.rows_per_unit
    if rows > 1 and chance:
        raise ArgumentError("rows_per_unit is above 1: leave delta at 0")
    check_units(declared)
    design = Design.of(declared)
    fitted = Design.of(of_support(declared, design, support))
    columns = Entries.of(fitted, counted=False, empty=not support).m
    if columns > LARGEST_FIT:
        raise ArgumentError(
            f"a model of these variables has {columns} columns, more than the {LARGEST_FIT} that "
            "can be fitted"
        )
    if rule.mechanism == "gaussian-ols":
        raise ArgumentError(
            "gaussian-ols has no proven guarantee, so its cost cannot be added to "
            "that of another release"
        )
    if rule.mechanism == "objective-perturbation" and chance:
        raise ArgumentError("objective-perturbation does not use a delta: leave it at 0")
    noise = choose_noise(
        rule, release.problem, declared.response, budget / rows, chance, columns,
        summed=isinstance(data, Moments), seeded=seed is not None,
    )  # fmt: skip
    summed = isinstance(data, Moments)
    scale = None if release.scale is None or summed else release.scale.exact
    return FitReleasedRequest(release, declared, design, support, rule, noise, scale, seed)


def _support_of(release: Any, schema: Schema) -> tuple[int, ...]:
    """Return the support of an earlier release, or raise an error if no model can be fitted on
    it.
    """
    if not isinstance(release, Release):
        raise ArgumentError("the earlier release must be a dpsubset.Release or a release file")
    if release.schema.fingerprint() != schema.fingerprint():
        raise ArgumentError(OTHER_SCHEMA)
    if release.guarantee.seeded:
        raise ArgumentError(
            "this release was made with a seed, so it is not private: make a release without a seed"
        )
    if not release.guarantee.proven:
        raise ArgumentError("this release has no privacy guarantee that a fit could be added to")
    if release.model is not None:
        raise ArgumentError("this release has a model already")
    if release.support is None:
        raise ArgumentError("this release names no variables: there is nothing to fit a model on")
    return release.support


@with_keywords_of(build_released_request)
def fit_released(
    release: Release | str | Path,
    data: Any,
    schema: SchemaLike | None = None,
    *,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    y: Any = None,
    **options: Any,
) -> Release[Model]:
    """Fit a linear model on the variables of an earlier release. Costs epsilon more.

    Parameters
    ----------
    release : Release or path of a release file
        A release of :func:`dpsubset.select`, from a table of the same schema.
    data : path, list of paths, pyarrow dataset, data frame, array or Moments
        The sensitive table: usually the one that the release was made from.
    schema : Schema, path of a bounds file or dict of the same form, optional
        The table's public description, unchanged; by default that of a `Release`.
    epsilon : number
        The privacy budget of the fit; the guarantee adds the cost of the earlier release to it.
    delta : number
        With a delta the noise is Gaussian if that has the smaller variance.
    y, bounds
        As for :func:`dpsubset.select`.
    rule : FitRule, optional
        Where the fit clips the response. Its budget_fraction is not used here.
    seed : int, optional
        For tests only: with a seed the draw is reproducible and therefore not private.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        The ledger to which the cost of the fit is debited before a value is read; as for
        :func:`dpsubset.select`.

    Returns
    -------
    Release
        The earlier release with a ``model``, and with the guarantee of both together. Its
        ``earlier`` is the content digest of the earlier release.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong, or if no model can be
        built on the earlier release. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the fit, or the ledger cannot be used.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
    >>> first = dps.select(X, y=X[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=5)
    >>> second = dps.fit_released(first, X, y=X[:, 0], epsilon=3)
    >>> second.features, second.guarantee.epsilon
    (['x0'], Fraction(8, 1))
    """
    request = build_released_request(release, data, schema, y=y, **options)
    return make_release(request, data, y, progress, ledger)


@with_keywords_of(build_released_request)
def event_of_released(
    release: Release | str | Path,
    data: Any,
    schema: SchemaLike | None = None,
    *,
    y: Any = None,
    **options: Any,
) -> Event:
    """Return the ledger entry of :func:`fit_released` with these arguments. Reads no value."""
    return event_of(build_released_request(release, data, schema, y=y, **options), data, y)


@with_keywords_of(build_released_request)
def price_released(
    release: Release | str | Path,
    data: Any = None,
    schema: SchemaLike | None = None,
    *,
    y: Any = None,
    **options: Any,
) -> Price:
    """Return the price of :func:`fit_released` with these arguments, including the earlier
    release.
    """
    request = build_released_request(release, data, schema, y=y, **options)
    return price_of(request, data, y, request.noise.name, request.part)
