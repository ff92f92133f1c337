"""fit_released: a model of variables that an earlier release has named. Only the fit is spent.

The names, and the scale of the response where there is one, are public by then. What both releases
cost together is stated, under the neighbours of the earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_progress, check_seed
from ..data.moments import Moments
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..data.type_checks import type_mismatches, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited
from ..models.entries import Entries, of_support
from ..models.rule import FitRule
from ..privacy.guarantee import Guarantee
from ..privacy.random import Randomness, SeededSource, SystemSource
from ..privacy.relations import PUBLIC_N
from ..release.files import digest
from ..release.fitted import check_units
from ..release.notices import versions
from ..release.reading import OTHER_SCHEMA
from ..release.release import Release
from ..schema.dates import today
from ..schema.encoding import Design
from ..schema.schema import Bounds, Schema
from .fit import FIT, LARGEST_FIT, Noise, OnSupport, choose_noise, fit_support, model_on
from .problem_spec import settle_schema, with_keywords_of
from .request import SELECTION, exact_delta, exact_epsilon
from .select import Price, warn_of_counts
from .sensitive_table import SensitiveTable

__all__ = ["fit_released", "price_released"]


@dataclass(frozen=True)
class FitReleasedRequest:
    """A fit on an earlier release, ready for a table. Public."""

    release: Release
    schema: Schema
    support: tuple[int, ...]
    rule: FitRule
    noise: Noise
    seed: int | None
    date: str = field(default_factory=today, compare=False)

    @property
    def part(self) -> Schema:
        """Of the columns that are fitted, and the response."""
        return of_support(self.schema, Design.of(self.schema), self.support)

    def on_support(self, n: int | None) -> OnSupport:
        """For a table of n rows, where their number is public."""
        scale = self.release.scale
        return OnSupport(
            self.schema, Design.of(self.schema), self.release.problem.neighbours, n,
            None if scale is None else scale.rule, self.rule, self.noise, Fraction(1),
        )  # fmt: skip

    def own_price(self) -> Guarantee:
        """What the fit costs a unit."""
        last = self.noise.guarantee(seeded=self.seed is not None)
        return last.group_privacy(self.schema.rows_per_unit)

    def price(self) -> Guarantee:
        """What the earlier release and this one cost a unit together."""
        earlier = self.release.guarantee
        parts = dict(earlier.parts) or {SELECTION: earlier}
        return Guarantee.compose({**parts, FIT: self.own_price()})

    def event(self) -> Event:
        """What a ledger notes: the earlier release has an entry of its own."""
        return Event.of(
            "fit-released",
            self.noise.name,
            self.own_price(),
            unit=self.schema.privacy_unit,
            rows_per_unit=self.schema.rows_per_unit,
            schema=self.schema.fingerprint(),
            options={
                "earlier": digest(self.release.to_dict()),
                "declared": self.release.problem.neighbours,
            },
        )


def build_released_request(
    release: Release | str | Path,
    data: Any,
    schema: Schema | str | Path | None = None,
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
    declared = settle_schema(data, y, schema, bounds)
    if isinstance(release, (str, Path)):
        release = Release.load(release, declared)
    support = _fit_for_a_model(release, declared)
    rule = rule.of_loss(release.problem.loss)
    rows = declared.rows_per_unit
    if rows > 1 and chance:
        raise ArgumentError("rows_per_unit is above 1: leave delta at 0")
    check_units(declared)
    design = Design.of(of_support(declared, Design.of(declared), support))
    columns = Entries.of(design, counted=False, empty=not support).m
    if columns > LARGEST_FIT:
        raise ArgumentError(
            f"a model of these variables has {columns} columns, more than the {LARGEST_FIT} that "
            "can be fitted"
        )
    if rule.mechanism == "gaussian-ols":
        raise ArgumentError("gaussian-ols has no proven guarantee that could be added to another")
    if rule.mechanism == "objective-perturbation" and chance:
        raise ArgumentError("objective-perturbation has no use for a delta: leave it at 0")
    noise = choose_noise(
        rule, release.problem, declared.response, budget / rows, chance, columns,
        summed=isinstance(data, Moments), seeded=seed is not None,
    )  # fmt: skip
    return FitReleasedRequest(release, declared, support, rule, noise, seed)


def _fit_for_a_model(release: Any, schema: Schema) -> tuple[int, ...]:
    """The support of a release that may be built upon, or a clear error."""
    if not isinstance(release, Release):
        raise ArgumentError("the earlier release must be a dpsubset.Release or a release file")
    if release.schema.fingerprint() != schema.fingerprint():
        raise ArgumentError(OTHER_SCHEMA)
    if release.guarantee.seeded:
        raise ArgumentError("this release was made with a seed, so it is not private: make another")
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
    schema: Schema | str | Path | None = None,
    *,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    **asked: Any,
) -> Release:
    """Fit a linear model on the variables of an earlier release. Costs epsilon more.

    Parameters
    ----------
    release : Release or path of a release file
        Of :func:`dpsubset.select`, from a table of the same schema.
    data : path, data frame, array or Moments
        The sensitive table: usually the one that the release was made from.
    schema : Schema or path of a bounds file, optional
        The table's public description, unchanged; by default that of a `Release`.
    epsilon : number
        What the fit costs; what the earlier release has cost comes on top.
    delta : number
        With one the noise is Gaussian where that is less.
    y, bounds
        As for :func:`dpsubset.select`.
    rule : FitRule, optional
        How wide the fit clips the response; its share has no meaning here.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        Where what the fit costs is debited before a value is read; as for
        :func:`dpsubset.select`.

    Returns
    -------
    Release
        The earlier one with a ``model``, and with the guarantee of both together; ``earlier`` is
        the digest of that release.
    """
    check_progress(progress)
    planned = build_released_request(release, data, schema, **asked)
    guarantee, earlier = planned.price(), planned.release
    table = SensitiveTable(data, planned.schema, asked.get("y"))
    told = type_mismatches(data, planned.part, asked.get("y"))
    warn_of_types(told)
    # Moments have no response that could be scaled anew.
    scale = None if earlier.scale is None or isinstance(data, Moments) else earlier.scale.exact
    n_is_public = earlier.problem.neighbours in PUBLIC_N
    n = table.rows if n_is_public else None
    rng = Randomness(SystemSource() if planned.seed is None else SeededSource(planned.seed))
    with debited(ledger, planned.event) as debit:
        counting = n is None and scale is not None and n_is_public
        passes = Passes(progress, n_is_public, 2 if counting else 1)
        if counting:
            _, n = table.count_response(passes)
        step = planned.on_support(n)
        fitted = fit_support(step, table, rng, planned.support, scale, passes)
        made = debit.signed(
            replace(
                earlier,
                guarantee=guarantee,
                model=model_on(step, fitted, str(guarantee)),
                fit=fitted,
                earlier=digest(earlier.to_dict()),
                rows=earlier.rows if fitted.n is None else fitted.n,
                date=planned.date,
                versions=versions(),
                column_warnings=tuple(dict.fromkeys((*earlier.column_warnings, *told))),
                receipt=None,
                diagnostics=None,
            )
        )
    warn_of_counts(made)
    return made


@with_keywords_of(build_released_request)
def event_of_released(
    release: Release | str | Path,
    data: Any,
    schema: Schema | str | Path | None = None,
    **asked: Any,
) -> Event:
    """What a ledger would note of :func:`fit_released` with these arguments. Reads no value."""
    return build_released_request(release, data, schema, **asked).event()


@with_keywords_of(build_released_request)
def price_released(
    release: Release | str | Path,
    data: Any = None,
    schema: Schema | str | Path | None = None,
    **asked: Any,
) -> Price:
    """What :func:`fit_released` with these arguments would cost, the earlier release included."""
    planned = build_released_request(release, data, schema, **asked)
    declared = planned.schema
    if data is not None:
        SensitiveTable(data, declared, asked.get("y"))
    told = () if data is None else type_mismatches(data, planned.part, asked.get("y"))
    names = planned.part.feature_names
    return Price(
        planned.price(), planned.noise.name, (*names, declared.response.name), declared.protected,
        told,
    )  # fmt: skip
