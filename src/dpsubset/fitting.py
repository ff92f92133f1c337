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
from .ledger.event import Event
from .ledger.spending import LedgerLike, debited
from .mechanisms import Outcome
from .mechanisms import mechanism as find_mechanism
from .models.entries import Entries, of_support
from .models.noisy_moments import NoisyMoments
from .models.rule import FitRule
from .models.solve import Solution, solve
from .privacy.guarantee import Guarantee
from .privacy.random import Randomness
from .privacy.scale import Scale
from .public.design import Design
from .public.plan import Plan, SelectionArguments, exact_delta, exact_epsilon, plan, seal
from .public.schema import Schema
from .public.stated import state, takes
from .release.fitted import ReleasedFit, model_of, units_of
from .release.model import Model
from .release.release import Release
from .selection import Price, draw_support, event_of, make_release, priced
from .table.door import STEPS
from .table.sealed import SealedTable
from .table.sources import Progress

__all__ = ["fit", "price_fit"]

#: The step's name in guarantees.
FIT = "the fit"

#: Most columns of a model that is fitted: noise grows with the square of their number.
LARGEST_FIT = 300


@dataclass(frozen=True)
class FitPlan:
    """A release with a model, ready for a table. Public."""

    selection: Plan
    rule: FitRule
    noise: NoisyMoments

    def with_selection(self, selection: Plan) -> FitPlan:
        """The same with another plan of the selection, which knows more of the table."""
        return replace(self, selection=selection)

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
    ledger: LedgerLike = None,
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
    ledger : path, URL or Ledger, optional
        Where the cost of everything together is debited before a value is read; as for
        :func:`dpsubset.select`.

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

    with debited(ledger, lambda: event_of("fit", planned.selection, price)) as debit:
        drawn = draw_support(
            planned.selection, table, rng, progress, lambda p: debit.checked(price(p)), passes=3
        )
        settled = planned.with_selection(drawn.planned)
        fitted = None
        if drawn.outcome is not None:
            told = None if progress is None else lambda f: progress((2 + f) / 3)
            fitted = _fitted(settled, table, rng, drawn.outcome, drawn.scale, told)
        guarantee = settled.price()
        model = None if fitted is None else _model(settled, fitted, str(guarantee))
        release = make_release(drawn.planned, guarantee, drawn.outcome, drawn.scale, {})
        return debit.signed(replace(release, model=model, fit=fitted))


@takes(plan, state)
def event_of_fit(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    rule: FitRule | None = None,
    **asked: Unpack[SelectionArguments],
) -> Event:
    """What a ledger would note of :func:`fit` with these arguments. Reads no value."""
    planned = plan_fit(data, schema, k=k, epsilon=epsilon, rule=rule, **asked)
    counted = planned.selection
    if data is not None:
        counted = counted.with_rows(seal(counted, data, asked.get("y")).rows)
    return event_of("fit", counted, lambda p: planned.with_selection(p).price())


def _fitted(
    planned: FitPlan,
    table: SealedTable,
    rng: Randomness,
    support: Outcome,
    scale: Scale | None,
    progress: Progress | None,
) -> ReleasedFit:
    """Read the selected columns in the scale of the fit, and release their sums."""
    assert support is not None
    selection, noise = planned.selection, planned.noise
    stated, problem = selection.stated, selection.setting.problem
    part = of_support(stated.schema, stated.design, support)
    entries = Entries.of(Design.of(part), not problem.n_is_public, empty=not support)
    n = selection.setting.n if problem.n_is_public else None
    rule = None if selection.scale is None else selection.scale.rule
    clip = planned.rule.scale(scale, rule, n, entries.d, noise.epsilon, problem.neighbours)
    images = None if clip is None else clip.images(STEPS)
    moments = table.read_support(part, STEPS, progress, images)
    released = noise.draw(entries.values(moments.products, moments.n), rng)
    return ReleasedFit(
        part, entries, tuple(released), n, clip, noise.deviation(entries.d), noise.summary(),
        planned.rule.share,
    )  # fmt: skip


def solution_of(fitted: ReleasedFit) -> Solution:
    """What is made of the released sums: post-processing."""
    units, _ = units_of(fitted)
    return solve(fitted.entries, list(fitted.released), fitted.n, fitted.deviation, units)


def _model(planned: FitPlan, fitted: ReleasedFit, guarantee: str) -> Model:
    whole = planned.selection.stated.schema.feature_names
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
