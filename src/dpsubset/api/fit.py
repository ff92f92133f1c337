"""fit: a scale, a selection and a model of the selected variables, in one release.

Three steps, each at its share of epsilon, and their costs add up: the scale of the response, the
selection in that scale, and a fit of the selected columns, in a wider one: sums of their products
with noise, or coefficients. What follows is made of these: intervals, R2, predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from ..base.errors import ArgumentError
from ..base.validation import check_progress
from ..data.moments import Moments
from ..data.quantize import STEPS
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..data.type_checks import type_mismatches, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited
from ..mechanisms import mechanism as find_mechanism
from ..models.entries import Entries, of_support
from ..models.gaussian_ols import GaussianOls
from ..models.noisy_moments import NoisyMoments
from ..models.objective_perturbation import ObjectivePerturbation, margins
from ..models.rule import FitRule
from ..models.smooth import smooth
from ..models.solve import Solution, of_coefficients, solve
from ..objective.problem import Problem
from ..privacy.guarantee import Guarantee
from ..privacy.missing_counts import readable_fraction
from ..privacy.quantiles import QuantileRule, RangeInSteps
from ..privacy.random import Randomness
from ..privacy.relations import PUBLIC_N, Neighbours
from ..release.fitted import ReleasedFit, check_units, model_of, units_of
from ..release.model import Model
from ..release.release import Release
from ..schema.encoding import Design
from ..schema.schema import Column, Schema
from .problem_spec import build_problem_spec, with_keywords_of
from .request import (
    SelectionOptions,
    SelectionRequest,
    build_request,
    exact_delta,
    exact_epsilon,
    open_table_of,
)
from .select import (
    Price,
    draw_check,
    draw_support,
    event_of,
    make_release,
    passes_of,
    priced,
    warn_of_counts,
)
from .sensitive_table import SensitiveTable

__all__ = ["fit", "price_fit"]

#: The step's name in guarantees.
FIT = "the fit"

Noise = NoisyMoments | ObjectivePerturbation | GaussianOls

#: Most columns of a model that is fitted: noise grows with the square of their number.
LARGEST_FIT = 300


@dataclass(frozen=True)
class OnSupport:
    """What a fit on a support needs to know: public, once there is one.

    Attributes
    ----------
    schema, design : Schema and Design
        Of the table, with all of its columns.
    n : int, optional
        The number of rows, where it is public.
    scale_rule : QuantileRule, optional
        Which quantiles of the response were released.
    """

    schema: Schema
    design: Design
    neighbours: Neighbours
    n: int | None
    scale_rule: QuantileRule | None
    rule: FitRule
    noise: Noise
    share: Fraction


@dataclass(frozen=True)
class FitRequest:
    """A release with a model, ready for a table. Public."""

    selection: SelectionRequest
    rule: FitRule
    noise: Noise

    def with_selection(self, selection: SelectionRequest) -> FitRequest:
        """The same with another plan of the selection, which knows more of the table."""
        return replace(self, selection=selection)

    @property
    def on_support(self) -> OnSupport:
        """The last step."""
        selection = self.selection
        stated, setting = selection.stated, selection.setting
        scale_rule = None if selection.scale is None else selection.scale.rule
        n = setting.n if setting.problem.n_is_public else None
        return OnSupport(
            stated.schema, stated.design, setting.problem.neighbours, n, scale_rule,
            self.rule, self.noise, self.rule.budget_fraction,
        )  # fmt: skip

    def price_of(self, selection: SelectionRequest) -> Guarantee:
        """The price with another plan of the selection."""
        return self.with_selection(selection).price()

    def price(self) -> Guarantee:
        """What a release costs a unit: all three steps."""
        selection = self.selection
        last = self.noise.guarantee(seeded=selection.seed is not None)
        found = Guarantee.compose({**selection.parts(), FIT: last})
        return found.group_privacy(selection.stated.schema.rows_per_unit)


def build_fit_request(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    **asked: Unpack[SelectionOptions],
) -> FitRequest:
    """Check everything that can be checked without opening the table."""
    rule = FitRule() if rule is None else rule
    if not isinstance(rule, FitRule):
        raise ArgumentError("rule must be a dpsubset.FitRule")
    if asked.get("intercept", True) is not True:
        raise ArgumentError("fit makes models with an intercept: leave intercept at True")
    budget, chance = exact_epsilon(epsilon), exact_delta(asked.get("delta", 0))
    chosen = find_mechanism(asked.get("mechanism", "permute-and-flip"), asked.get("options"))
    # A mechanism without a delta leaves it to the fit, unless that has none either.
    of_fit = chance if chosen.takes_delta == "no" else chance / 2
    rule = rule.of_loss(asked.get("loss"))
    if rule.mechanism == "objective-perturbation":
        if chance and chosen.takes_delta == "no":
            raise ArgumentError(
                "objective-perturbation, which fits the logistic loss, has no use for a delta: "
                "leave it at 0, or name another fit, as in rule=FitRule(mechanism='noisy-moments')"
            )
        of_fit = Fraction(0)
    asked = {**asked, "delta": chance - of_fit}
    # The check has its share of everything; scale, selection and fit divide what is left.
    counted = budget * readable_fraction(asked.get("check_readable"))
    budget -= counted
    asked["check_readable"] = None
    planned = build_request(data, schema, k=k, epsilon=budget * (1 - rule.budget_fraction), **asked)
    planned = planned.with_check(counted / planned.stated.schema.rows_per_unit, data)
    check_units(planned.stated.schema)
    if planned.asked == "private":
        planned = planned.with_scale(rule.default_response_range())
    problem, rows = planned.setting.problem, planned.stated.schema.rows_per_unit
    if rows > 1 and of_fit:
        raise ArgumentError("rows_per_unit is above 1: leave delta at 0")
    if problem.most_columns > LARGEST_FIT + 1:
        raise ArgumentError(
            f"a model of k = {problem.k} choices could have {problem.most_columns - 1} columns, "
            f"more than the {LARGEST_FIT} that can be fitted: take a smaller k"
        )
    noise = choose_noise(
        rule, problem, planned.stated.schema.response, budget * rule.budget_fraction / rows, of_fit,
        problem.most_columns - 1, summed=isinstance(data, Moments), seeded=planned.seed is not None,
    )  # fmt: skip
    if isinstance(noise, GaussianOls) and asked.get("allow_unproven") is not True:
        raise ArgumentError(
            "gaussian-ols is private only for tables whose columns go well together, which nobody "
            "checks. To run it all the same, on data that are not sensitive, pass "
            "allow_unproven=True"
        )
    return FitRequest(planned, rule, noise)


def choose_noise(
    rule: FitRule,
    problem: Problem,
    response: Column,
    epsilon: Fraction,
    delta: Fraction,
    columns: int,
    *,
    summed: bool,
    seeded: bool,
) -> Noise:
    """How a model of at most so many columns is fitted, at which price; errors for what cannot be.

    ``summed``: there are moments instead of records.
    """
    if rule.mechanism == "objective-perturbation":
        loss = smooth(problem.loss, response.labels is not None)
        if summed:
            raise ArgumentError("objective-perturbation needs the records: moments are not enough")
        if loss.labels and response.labels is None:
            raise ArgumentError(
                f"a {loss.name} model is of two labels: declare those of the response, take "
                "loss='least-squares', or fit it by least squares with "
                "rule=FitRule(mechanism='noisy-moments')"
            )
        return ObjectivePerturbation(epsilon, problem.neighbours, loss)
    if rule.mechanism == "gaussian-ols":
        if not delta or not problem.n_is_public or seeded:
            raise ArgumentError(
                "gaussian-ols needs a delta, replace-one neighbours, and no seed: its noise comes "
                "from OpenDP"
            )
        return GaussianOls(epsilon, delta)
    noise = NoisyMoments(epsilon, delta, problem.neighbours, columns)
    if noise.gaussian and seeded:
        raise ArgumentError("Gaussian noise comes from OpenDP, which has no seeds: leave delta out")
    return noise


@with_keywords_of(build_request, build_problem_spec)
def fit(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    **asked: Unpack[SelectionOptions],
) -> Release:
    """Select k variables and fit a linear model on them, under differential privacy.

    Takes the arguments of :func:`dpsubset.select`; epsilon is of everything together. With a
    ``delta`` the noise of the fit is Gaussian where that is less. ``release.model`` is the model.

    Parameters
    ----------
    data : path, data frame, array or Moments
        The sensitive table.
    schema : Schema or path of a bounds file, optional
        The table's public description.
    k : int
        How many variables to select.
    epsilon : number
        The privacy budget of scale, selection and fit together; taken exactly as given.
    rule : FitRule, optional
        How the model is fitted, how much of epsilon that takes, and how wide it clips the
        response.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        Where the cost of everything together is debited before a value is read; as for
        :func:`dpsubset.select`.

    Returns
    -------
    Release
        Its ``model`` is None only if the mechanism released no support.
    """
    check_progress(progress)
    planned = build_fit_request(data, schema, k=k, epsilon=epsilon, rule=rule, **asked)
    table = open_table_of(planned.selection, data, asked.get("y"))
    planned = planned.with_selection(planned.selection.with_rows(table.rows))
    if planned.selection.priced:
        planned.price()  # whatever it refuses is refused before a value is read
    told = type_mismatches(data, planned.selection.stated.schema, asked.get("y"))
    warn_of_types(told)
    rng = planned.selection.randomness
    with debited(ledger, lambda: event_of("fit", planned.selection, planned.price_of)) as debit:

        def checked(known: FitRequest) -> Guarantee:
            return debit.checked(known.price())

        passes = passes_of(planned.selection, progress, more=1)
        first, readable = draw_check(
            planned.selection, table, rng, passes, lambda s: checked(planned.with_selection(s))
        )
        release = make_fit(planned.with_selection(first), table, rng, passes, checked)
        release = debit.signed(replace(release, column_warnings=told, readable=readable))
    warn_of_counts(release)
    return release


def make_fit(
    planned: FitRequest,
    table: SensitiveTable,
    rng: Randomness,
    passes: Passes,
    price: Callable[[FitRequest], Guarantee],
    scale: RangeInSteps | None = None,
) -> Release:
    """Draw a scale, a support and a fit, and make the release of them.

    ``price`` is what the release that this is, or is a part of, costs; it refuses what was not
    paid for. ``scale`` is one that was released before, where the plan is for such.
    """
    drawn = draw_support(
        planned.selection, table, rng, passes,
        lambda known: price(planned.with_selection(known)), scale,
    )  # fmt: skip
    settled = planned.with_selection(drawn.planned)
    fitted = None
    if drawn.outcome is not None:
        fitted = fit_support(settled.on_support, table, rng, drawn.outcome, drawn.scale, passes)
    guarantee = price(settled)
    model = None if fitted is None else model_on(settled.on_support, fitted, str(guarantee))
    release = make_release(drawn.planned, guarantee, drawn.outcome, drawn.scale, {})
    return replace(release, model=model, fit=fitted)


@with_keywords_of(build_request, build_problem_spec)
def event_of_fit(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    **asked: Unpack[SelectionOptions],
) -> Event:
    """What a ledger would note of :func:`fit` with these arguments. Reads no value."""
    planned = build_fit_request(data, schema, k=k, epsilon=epsilon, rule=rule, **asked)
    counted = planned.selection
    if data is not None:
        counted = counted.with_rows(open_table_of(counted, data, asked.get("y")).rows)
    return event_of("fit", counted, planned.price_of)


def fit_support(
    planned: OnSupport,
    table: SensitiveTable,
    rng: Randomness,
    support: tuple[int, ...],
    scale: RangeInSteps | None,
    passes: Passes,
) -> ReleasedFit:
    """Read the selected columns in the scale of the fit, and release their sums."""
    noise = planned.noise
    part = of_support(planned.schema, planned.design, support)
    counted = planned.neighbours not in PUBLIC_N or part.response.drops_rows
    entries = Entries.of(Design.of(part), counted, empty=not support)
    size = entries.d if isinstance(noise, NoisyMoments) else entries.m + 1
    clip = planned.rule.scale(
        scale, planned.scale_rule, planned.n, size, noise.epsilon, planned.neighbours
    )
    images = None if clip is None else clip.images(STEPS)
    if isinstance(noise, ObjectivePerturbation):
        cells = table.read_records(part, STEPS, passes, images)
        released = noise.draw(*margins(entries, cells, noise.loss), rng)
        return ReleasedFit(
            part, entries, tuple(released), planned.n, clip, noise.deviation(size), noise.summary(),
            planned.share, noise.name, noise.step, noise.loss.name, float(noise.ridge(size)),
        )  # fmt: skip
    moments = table.read_support(part, STEPS, passes, images)
    sums = entries.values(moments.products)
    n = moments.n if planned.neighbours in PUBLIC_N else None
    if isinstance(noise, GaussianOls):
        return ReleasedFit(
            part, entries, tuple(noise.draw(entries, sums, moments.n)), n, clip,
            noise.deviation(size, moments.n), noise.summary(), planned.share, noise.name,
            noise.step, by_opendp=True,
        )  # fmt: skip
    return ReleasedFit(
        part, entries, tuple(noise.draw(sums, rng)), n, clip, noise.deviation(size),
        noise.summary(), planned.share, by_opendp=noise.gaussian,
    )  # fmt: skip


def solution_of(fitted: ReleasedFit) -> Solution:
    """What is made of the released sums or coefficients: post-processing."""
    units, _ = units_of(fitted)
    if fitted.step is not None:
        # What a push does to a minimum depends on the curvature there, which was not released.
        known = None if fitted.ridge else fitted.deviation
        return of_coefficients(fitted.theta, known, units)
    return solve(fitted.entries, list(fitted.released), fitted.n, fitted.deviation, units)


def model_on(planned: OnSupport, fitted: ReleasedFit, guarantee: str) -> Model:
    """The model of released sums, in the user's units."""
    whole = planned.schema.feature_names
    positions = [whole.index(name) for name in fitted.schema.feature_names]
    return model_of(fitted, solution_of(fitted), tuple(positions), len(whole), guarantee)


@with_keywords_of(build_request, build_problem_spec)
def price_fit(
    data: Any = None,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    **asked: Unpack[SelectionOptions],
) -> Price:
    """What :func:`fit` with these arguments would cost. Costs nothing: no value is read."""
    planned = build_fit_request(data, schema, k=k, epsilon=epsilon, rule=rule, **asked)
    selection = planned.selection
    if data is not None:
        selection = selection.with_rows(open_table_of(selection, data, asked.get("y")).rows)
    guarantee = planned.price_of(selection) if selection.priced else None
    found = priced(selection, data, guarantee, asked.get("y"))
    return replace(found, mechanism=f"{found.mechanism}, fitted by {planned.noise.name}")
