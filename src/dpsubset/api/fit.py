"""fit: a response range, a selection and a model of the selected variables, in one release.

Each step has a fraction of epsilon, and the costs add up. The fit reads only the selected columns,
clips the response to a range of its own, and releases noisy sums of products or noisy coefficients.
Intervals, R2 and predictions are post-processing of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, Unpack, overload

from ..base.errors import ArgumentError
from ..data.moments import Moments
from ..data.quantize import STEPS
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..mechanisms import Mechanism
from ..models.automatic import AutomaticFit, Parts
from ..models.entries import Entries, of_support, products_of
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
from ..privacy.response_range import ResponseRange, default_response_range
from ..release.fitted import ReleasedFit, check_units, model_of, units_of
from ..release.model import Model
from ..release.release import Release
from ..schema.encoding import Design
from ..schema.schema import Column, Schema, SchemaLike
from .driver import Execution, Price, event_of, make_release, price_of
from .problem_spec import build_problem_spec, with_keywords_of
from .request import (
    DefaultRange,
    MechanismOptions,
    PriceCheck,
    ReleasedFirst,
    SelectionBased,
    SelectionOptions,
    SelectionRequest,
    build_release,
    build_request,
    count_unreadable,
    draw_support,
    exact_delta,
    exact_epsilon,
)
from .sensitive_table import SensitiveTable
from .size import Size, mechanism_of

__all__ = ["fit", "price_fit"]

#: The step's name in guarantees.
FIT = "the fit"

Noise = AutomaticFit | NoisyMoments | ObjectivePerturbation | GaussianOls

#: Mechanisms that release a support in every draw, so that there is always a model.
AlwaysReleases: TypeAlias = Literal[
    "permute-and-flip", "exponential", "peeling", "penalised", "choose-size"
]

#: Largest number of columns of a fitted model: noise grows with the square of their number.
LARGEST_FIT = 300


@dataclass(frozen=True)
class FitStep:
    """The fit on a support. Public.

    Attributes
    ----------
    schema, design : Schema and Design
        The schema and the design of the table, with all of its columns.
    n : int, optional
        The number of rows, where it is public.
    range_rule : QuantileRule, optional
        Which quantiles of the response were released.
    rule : FitRule
    noise : AutomaticFit, NoisyMoments, ObjectivePerturbation or GaussianOls
    budget_fraction : Fraction
        The fraction of epsilon for the fit.
    """

    schema: Schema
    design: Design
    neighbours: Neighbours
    n: int | None
    range_rule: QuantileRule | None
    rule: FitRule
    noise: Noise
    budget_fraction: Fraction


@dataclass(frozen=True)
class FitRequest(SelectionBased[Release]):
    """A selection and a fit whose arguments have been checked. Public."""

    selection: SelectionRequest
    rule: FitRule
    noise: Noise

    @property
    def pass_count(self) -> int:
        """The number of passes: those of the selection, and one for the fit."""
        return self.selection.pass_count + 1

    @cached_property
    def fit_step(self) -> FitStep:
        """The last step."""
        selection = self.selection
        used = selection.response_range
        return FitStep(
            selection.spec.schema, selection.spec.design, selection.neighbours, selection.n,
            used.rule if isinstance(used, ResponseRange) else None, self.rule, self.noise,
            self.rule.budget_fraction,
        )  # fmt: skip

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee for one unit, of response range, selection and fit together."""
        last = self.noise.guarantee(seeded=self.seed is not None)
        whole = Guarantee.compose({**self.selection.parts, FIT: last})
        return whole.group_privacy(self.selection.spec.schema.rows_per_unit)

    def describe(self, guarantee: Guarantee) -> Event:
        return self.selection.describe(guarantee, "fit")

    def run(self, execution: Execution[SensitiveTable]) -> Release:
        """Read the table and draw all steps."""
        request = self

        def check(known: SelectionRequest) -> Guarantee:
            nonlocal request
            request = request.with_selection(known)
            return execution.check(request.guarantee)

        selection, readable = count_unreadable(self.selection, execution, check)
        request = request.with_selection(selection)
        release = draw_fit(request, execution.table, execution.rng, execution.passes, check)
        return replace(release, column_warnings=execution.column_warnings, readable=readable)


def draw_fit(
    request: FitRequest,
    table: SensitiveTable,
    rng: Randomness,
    passes: Passes,
    check: PriceCheck,
    scale: ReleasedFirst = None,
) -> Release:
    """Draw a response range, a support and a fit, and return the release of them.

    ``check`` and ``scale`` are as for `draw_support`.
    """
    drawn = draw_support(request.selection, table, rng, passes, check, scale)
    request = request.with_selection(drawn.request)
    fitted = model = None
    guarantee = check(drawn.request)
    if drawn.outcome is not None:
        step = request.fit_step
        # Labels are fitted as -1 and 1.
        used = drawn.scale if isinstance(drawn.scale, RangeInSteps) else None
        fitted = fit_support(step, table, rng, drawn.outcome, used, passes)
        model = model_on(step, fitted, str(guarantee))
    return build_release(drawn, guarantee, model=model, fit=fitted)


def build_fit_request(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> FitRequest:
    """Check everything that can be checked without opening the table."""
    rule = FitRule() if rule is None else rule
    if not isinstance(rule, FitRule):
        raise ArgumentError("rule must be a dpsubset.FitRule")
    if options.get("intercept", True) is not True:
        raise ArgumentError("fit makes models with an intercept: leave intercept at True")
    budget, chance = exact_epsilon(epsilon), exact_delta(options.get("delta", 0))
    chosen = mechanism_of(k, options.get("max_k"), options.get("mechanism"), options.get("options"))
    # By its type: an object that has yet to be computed may state another class.
    of_moments = issubclass(type(data), Moments)
    # If the mechanism does not use a delta, the fit may; if neither does, it is refused.
    fit_delta = chance if chosen.takes_delta == "no" else chance / 2
    rule = rule.of_loss(options.get("loss"), exact=bool(fit_delta) or of_moments)
    if rule.mechanism == "objective-perturbation":
        if chance and chosen.takes_delta == "no":
            raise ArgumentError(
                "objective-perturbation, which fits the logistic loss, does not use a delta: "
                "leave it at 0, or choose another fit, as in "
                "rule=FitRule(mechanism='noisy-moments')"
            )
        fit_delta = Fraction(0)
    # The counts of unreadable cells have a fraction of the whole budget. Range, selection and fit
    # divide the rest.
    check_epsilon = budget * readable_fraction(options.get("check_readable"))
    budget -= check_epsilon
    options = {**options, "delta": chance - fit_delta, "check_readable": None}
    selection_epsilon = budget * (1 - rule.budget_fraction)
    selection = build_request(data, schema, k=k, epsilon=selection_epsilon, y=y, **options)
    declared, problem = selection.spec.schema, selection.problem
    rows = declared.rows_per_unit
    selection = selection.with_check(check_epsilon / rows, data)
    check_units(declared)
    if isinstance(selection.source, DefaultRange):
        fraction = rule.range_fraction
        default = default_response_range(selection.epsilon, None, problem.k, fraction)
        selection = selection.with_range(DefaultRange(default, fraction))
        problem = selection.problem
    if rows > 1 and fit_delta:
        raise ArgumentError("rows_per_unit is above 1: leave delta at 0")
    if problem.most_columns > LARGEST_FIT + 1:
        raise ArgumentError(
            f"a model of k = {problem.k} choices could have {problem.most_columns - 1} columns, "
            f"more than the {LARGEST_FIT} that can be fitted: choose a smaller k"
        )
    noise = choose_noise(
        rule, problem, declared.response, budget * rule.budget_fraction / rows, fit_delta,
        problem.most_columns - 1, summed=of_moments,
        seeded=selection.seed is not None,
    )  # fmt: skip
    if isinstance(noise, GaussianOls) and options.get("allow_unproven") is not True:
        raise ArgumentError(
            "gaussian-ols is private only for tables with well-conditioned columns, which is not "
            "checked. To use it on data that are not sensitive, pass allow_unproven=True"
        )
    return FitRequest(selection, rule, noise)


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
    """Choose the noise of a model with at most ``most_columns`` columns; refuse models that cannot
    be fitted.

    ``summed``: the table comes as moments instead of records.
    """
    if rule.mechanism == "objective-perturbation":
        loss = smooth(problem.loss, response.labels is not None)
        if summed:
            raise ArgumentError("objective-perturbation needs the records: moments are not enough")
        if loss.labels and response.labels is None:
            raise ArgumentError(
                f"a {loss.name} model needs a response with two labels: declare them, use "
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
    if rule.mechanism is None:
        loss = smooth(problem.loss, response.labels is not None)
        return AutomaticFit(epsilon, problem.neighbours, loss, columns, rule.intervals)
    noise = NoisyMoments(epsilon, delta, problem.neighbours, columns)
    if noise.gaussian and seeded:
        raise ArgumentError("Gaussian noise comes from OpenDP, which has no seeds: leave delta out")
    return noise


@overload
def fit(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    mechanism: AlwaysReleases | None = ...,
    rule: FitRule | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    y: Any = None,
    **options: Unpack[MechanismOptions],
) -> Release[Model]: ...


@overload
def fit(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    mechanism: str | Mechanism,
    rule: FitRule | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    y: Any = None,
    **options: Unpack[MechanismOptions],
) -> Release: ...


@with_keywords_of(build_request, build_problem_spec)
def fit(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Release:
    """Select k variables and fit a linear model on them, under differential privacy.

    All arguments of :func:`dpsubset.select` are accepted; epsilon is the budget of all steps
    together. With a ``delta`` the noise of the fit is Gaussian if that has the smaller variance.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame, array or Moments
        The sensitive table.
    schema : Schema, path of a bounds file or dict of the same form, optional
        The table's public description.
    k : int or "auto"
        How many variables to select; with "auto" their number is chosen privately, up to ``max_k``,
        as for :func:`dpsubset.select`. If none is chosen, the model is its intercept alone.
    epsilon : number
        The privacy budget of response range, selection and fit together; taken exactly as given.
    rule : FitRule, optional
        How the model is fitted, the fraction of epsilon for the fit, and where it clips the
        response.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        The ledger to which the total cost is debited before a value is read; as for
        :func:`dpsubset.select`.

    Returns
    -------
    Release
        Its ``model`` is the fitted model, or None if the mechanism released no support. The default
        mechanism always releases one, and so does ``k="auto"``.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the release, or the ledger cannot be used.
    SearchLimitError
        If a node or time limit is exceeded. Nothing is released, and epsilon is spent.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
    >>> release = dps.fit(X, y=X[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=10)
    >>> list(release.model.coefficients)
    ['x0']
    """
    request = build_fit_request(data, schema, k=k, epsilon=epsilon, rule=rule, y=y, **options)
    return make_release(request, data, y, progress, ledger)


@with_keywords_of(build_request, build_problem_spec)
def event_of_fit(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Event:
    """Return the ledger entry of :func:`fit` with these arguments. Reads no value."""
    request = build_fit_request(data, schema, k=k, epsilon=epsilon, rule=rule, y=y, **options)
    return event_of(request, data, y)


def fit_support(
    step: FitStep,
    table: SensitiveTable,
    rng: Randomness,
    support: tuple[int, ...],
    scale: RangeInSteps | None,
    passes: Passes,
) -> ReleasedFit:
    """Read the selected columns, with the response in the range of the fit, and draw the fit."""
    noise = step.noise
    n = step.n if step.neighbours in PUBLIC_N else None
    part = of_support(step.schema, step.design, support)
    counted = step.neighbours not in PUBLIC_N or part.response.drops_rows
    entries = Entries.of(Design.of(part), counted, empty=not support)
    by_sums, by_minimum = _parts(noise, entries, n)
    size = entries.m + 1
    released_each = size if by_sums is None else entries.d
    clip = step.rule.scale(scale, step.range_rule, n, released_each, noise.epsilon, step.neighbours)
    images = None if clip is None else clip.images(STEPS)
    minimum = None
    if by_minimum is not None:
        by_minimum = replace(by_minimum, n=n)
        cells = table.read_records(part, STEPS, passes, images)
        released = by_minimum.draw(*margins(entries, cells, by_minimum.loss), rng)
        minimum = ReleasedFit(
            part, entries, tuple(released), n, clip, by_minimum.deviation(size),
            by_minimum.summary(), step.budget_fraction, by_minimum.name, by_minimum.step,
            by_minimum.loss.name, float(by_minimum.ridge(size)[0]),
        )  # fmt: skip
        if by_sums is None:
            return minimum
        products, rows = products_of(cells), cells.shape[1]
    else:
        moments = table.read_support(part, STEPS, passes, images)
        products, rows = moments.products, moments.n
    n = rows if step.neighbours in PUBLIC_N else None
    sums = entries.values(products)
    if by_sums is None:
        assert isinstance(noise, GaussianOls)
        return ReleasedFit(
            part, entries, tuple(noise.draw(entries, sums, rows)), n, clip,
            noise.deviation(size, rows), noise.summary(), step.budget_fraction, noise.name,
            noise.step, by_opendp=True,
        )  # fmt: skip
    return ReleasedFit(
        part, entries, tuple(by_sums.draw(sums, rng)), n, clip, by_sums.deviation(entries.d),
        by_sums.summary(), step.budget_fraction, by_opendp=by_sums.gaussian, minimum=minimum,
    )  # fmt: skip


def _parts(noise: Noise, entries: Entries, n: int | None) -> Parts:
    """The sums and the coefficients that a fit releases on a support: neither for gaussian-ols."""
    if isinstance(noise, AutomaticFit):
        return noise.parts(entries, n)
    if isinstance(noise, NoisyMoments):
        return noise, None
    return None, noise if isinstance(noise, ObjectivePerturbation) else None


def solution_of(fitted: ReleasedFit) -> Solution:
    """Compute the solution from released sums or coefficients: post-processing."""
    units, _ = units_of(fitted)
    if fitted.step is not None:
        # How far noise moves a minimum depends on the curvature there, which is not released.
        known = None if fitted.ridge else fitted.deviation
        return of_coefficients(fitted.theta, known, units)
    theta = None if fitted.minimum is None else fitted.minimum.theta
    return solve(fitted.entries, list(fitted.released), fitted.n, fitted.deviation, units, theta)


def model_on(step: FitStep, fitted: ReleasedFit, guarantee: str) -> Model:
    """Return the model of a released fit, in the units of the table."""
    whole = step.schema.feature_names
    positions = [whole.index(name) for name in fitted.schema.feature_names]
    return model_of(fitted, solution_of(fitted), tuple(positions), len(whole), guarantee)


@with_keywords_of(build_request, build_problem_spec)
def price_fit(
    data: Any = None,
    schema: SchemaLike | None = None,
    *,
    k: Size = None,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Price:
    """Price :func:`fit` with these arguments. Costs nothing: no value is read.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame, array or Moments, optional
        A table, whose column names and types are compared with the schema.
    schema, k, epsilon, rule
        As for :func:`fit`. All its other arguments are accepted as well.

    Returns
    -------
    Price

    Raises
    ------
    ArgumentError, SchemaError, TableError
        The errors that :func:`fit` would raise before it reads a value.

    Examples
    --------
    >>> import dpsubset as dps
    >>> schema = dps.Schema.from_bounds({"age": (0, 110), "sex": (0, 1)}, ("cost", 0, 1000))
    >>> [name for name, part in dps.price_fit(None, schema, k=1, epsilon=1).guarantee.parts]
    ['the scale of the response', 'the selection', 'the fit']
    """
    request = build_fit_request(data, schema, k=k, epsilon=epsilon, rule=rule, y=y, **options)
    mechanism = f"{request.selection.mechanism.name}, fitted by {request.noise.name}"
    return price_of(request, data, y, mechanism, request.selection.spec.schema)
