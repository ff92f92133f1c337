"""fit: a scale, a selection and a model of the selected variables, in one release.

Three steps, each at its share of epsilon, and their costs add up: the scale of the response, the
selection in that scale, and sums of products of the selected columns with noise, in a wider one.
What follows is made of these: coefficients, intervals, R2, predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from .errors import ArgumentError
from .mechanisms import mechanism as find_mechanism
from .models.entries import Entries, of_support
from .models.noisy_moments import NoisyMoments
from .models.rule import FitRule
from .models.solve import Solution, solve
from .privacy.guarantee import PUBLIC_N, Guarantee
from .privacy.random import Randomness
from .privacy.scale import Scale, ScaleRule
from .public.design import Design
from .public.plan import Plan, SelectionArguments, exact_delta, exact_epsilon, plan, seal
from .public.problem import Neighbours
from .public.schema import Schema
from .public.stated import state, takes
from .release.fitted import ReleasedFit, check_units, model_of, units_of
from .release.model import Model
from .release.release import Release
from .selection import Price, draw_support, make_release, priced
from .table.door import STEPS
from .table.sealed import SealedTable
from .table.sources import Progress

__all__ = ["fit", "price_fit"]

#: The step's name in guarantees.
FIT = "the fit"

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
    scale_rule : ScaleRule, optional
        Which quantiles of the response were released.
    """

    schema: Schema
    design: Design
    neighbours: Neighbours
    n: int | None
    scale_rule: ScaleRule | None
    rule: FitRule
    noise: NoisyMoments
    share: Fraction


@dataclass(frozen=True)
class FitPlan:
    """A release with a model, ready for a table. Public."""

    selection: Plan
    rule: FitRule
    noise: NoisyMoments

    def with_selection(self, selection: Plan) -> FitPlan:
        """The same with another plan of the selection, which knows more of the table."""
        return replace(self, selection=selection)

    @property
    def on_support(self) -> OnSupport:
        """The last step."""
        selection = self.selection
        stated, setting = selection.stated, selection.setting
        scale_rule = None if selection.scale is None else selection.scale.rule
        return OnSupport(
            stated.schema, stated.design, setting.problem.neighbours, setting.n, scale_rule,
            self.rule, self.noise, self.rule.share,
        )  # fmt: skip

    def price(self) -> Guarantee:
        """What a release costs a unit: all three steps."""
        selection = self.selection
        last = self.noise.guarantee(seeded=selection.seed is not None)
        found = Guarantee.of_parts({**selection.parts(), FIT: last})
        return found.of_rows(selection.stated.schema.rows_per_unit)


def plan_fit(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    **asked: Unpack[SelectionArguments],
) -> FitPlan:
    """Check everything that can be checked without opening the table."""
    rule = FitRule() if rule is None else rule
    if not isinstance(rule, FitRule):
        raise ArgumentError("rule must be a dpsubset.FitRule")
    if asked.get("intercept", True) is not True:
        raise ArgumentError("fit makes models with an intercept: leave intercept at True")
    budget, chance = exact_epsilon(epsilon), exact_delta(asked.get("delta", 0))
    chosen = find_mechanism(asked.get("mechanism", "permute-and-flip"), asked.get("options"))
    # A mechanism without a delta leaves it to the fit.
    of_fit = chance if chosen.takes_delta == "no" else chance / 2
    asked = {**asked, "delta": chance - of_fit}
    planned = plan(data, schema, k=k, epsilon=budget * (1 - rule.share), **asked)
    check_units(planned.stated.schema)
    if planned.asked == "private":
        planned = planned.with_scale(rule.usual_scale())
    problem, rows = planned.setting.problem, planned.stated.schema.rows_per_unit
    if rows > 1 and of_fit:
        raise ArgumentError("rows_per_unit is above 1: leave delta at 0")
    if problem.most_columns > LARGEST_FIT + 1:
        raise ArgumentError(
            f"a model of k = {problem.k} choices could have {problem.most_columns - 1} columns, "
            f"more than the {LARGEST_FIT} that can be fitted: take a smaller k"
        )
    noise = NoisyMoments(
        budget * rule.share / rows, of_fit, problem.neighbours, problem.most_columns - 1
    )
    if noise.gaussian and planned.seed is not None:
        raise ArgumentError("Gaussian noise comes from OpenDP, which has no seeds: leave delta out")
    return FitPlan(planned, rule, noise)


@takes(plan, state)
def fit(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    progress: Progress | None = None,
    **asked: Unpack[SelectionArguments],
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
        How much of epsilon the fit takes, and how wide it clips the response.
    progress : callable, optional
        Called with the fraction of the work done so far.

    Returns
    -------
    Release
        Its ``model`` is None only if the mechanism released no support.
    """
    planned = plan_fit(data, schema, k=k, epsilon=epsilon, rule=rule, **asked)
    table = seal(planned.selection, data, asked.get("y"))
    planned = planned.with_selection(planned.selection.with_rows(table.rows))
    if planned.selection.priced:
        planned.price()  # whatever it refuses is refused before a value is read
    rng = planned.selection.randomness

    def price(selection: Plan) -> Guarantee:
        return planned.with_selection(selection).price()

    drawn = draw_support(planned.selection, table, rng, progress, price, passes=3)
    planned = planned.with_selection(drawn.planned)
    fitted = None
    if drawn.outcome is not None:
        told = None if progress is None else lambda f: progress((2 + f) / 3)
        fitted = fit_support(planned.on_support, table, rng, drawn.outcome, drawn.scale, told)
    guarantee = planned.price()
    model = None if fitted is None else model_on(planned.on_support, fitted, str(guarantee))
    release = make_release(drawn.planned, guarantee, drawn.outcome, drawn.scale, {})
    return replace(release, model=model, fit=fitted)


def fit_support(
    planned: OnSupport,
    table: SealedTable,
    rng: Randomness,
    support: tuple[int, ...],
    scale: Scale | None,
    progress: Progress | None,
) -> ReleasedFit:
    """Read the selected columns in the scale of the fit, and release their sums."""
    noise, n = planned.noise, planned.n
    part = of_support(planned.schema, planned.design, support)
    counted = planned.neighbours not in PUBLIC_N
    entries = Entries.of(Design.of(part), counted, empty=not support)
    clip = planned.rule.scale(
        scale, planned.scale_rule, n, entries.d, noise.epsilon, planned.neighbours
    )
    images = None if clip is None else clip.images(STEPS)
    moments = table.read_support(part, STEPS, progress, images)
    released = noise.draw(entries.values(moments.products, moments.n), rng)
    return ReleasedFit(
        part, entries, tuple(released), None if counted else moments.n, clip,
        noise.deviation(entries.d), noise.summary(), planned.share,
    )  # fmt: skip


def solution_of(fitted: ReleasedFit) -> Solution:
    """What is made of the released sums: post-processing."""
    units, _ = units_of(fitted)
    return solve(fitted.entries, list(fitted.released), fitted.n, fitted.deviation, units)


def model_on(planned: OnSupport, fitted: ReleasedFit, guarantee: str) -> Model:
    """The model of released sums, in the user's units."""
    whole = planned.schema.feature_names
    positions = [whole.index(name) for name in fitted.schema.feature_names]
    return model_of(fitted, solution_of(fitted), tuple(positions), len(whole), guarantee)


@takes(plan, state)
def price_fit(
    data: Any = None,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    **asked: Unpack[SelectionArguments],
) -> Price:
    """What :func:`fit` with these arguments would cost. Costs nothing: no value is read."""
    planned = plan_fit(data, schema, k=k, epsilon=epsilon, rule=rule, **asked)
    selection = planned.selection
    if data is not None:
        selection = selection.with_rows(seal(selection, data, asked.get("y")).rows)
    guarantee = planned.with_selection(selection).price() if selection.priced else None
    return priced(selection, data, guarantee)
