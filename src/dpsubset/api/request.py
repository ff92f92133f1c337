"""Everything about a selection that is public, checked once, before a value is read.

arguments           -> SelectionRequest   schema, problem, scale, mechanism, budget, limits
SelectionRequest, n -> Guarantee          the price, known before anything is drawn
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Unpack

from ..base.errors import ArgumentError
from ..base.validation import as_decimal_fraction, check_seed
from ..data.moments import Moments
from ..mechanisms import Mechanism, Setting
from ..mechanisms import mechanism as find_mechanism
from ..objective.losses import loss_of
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Guarantee
from ..privacy.missing_counts import ReadableCheck, readable_fraction
from ..privacy.random import Randomness, SeededSource, SystemSource
from ..privacy.relations import PUBLIC_N
from ..privacy.response_range import (
    RangeOption,
    ResponseRange,
    check_response_range,
    default_response_range,
)
from ..schema.dates import today
from ..schema.schema import Schema
from .problem_spec import ProblemOptions, ProblemSpec, build_problem_spec
from .sensitive_table import SensitiveTable

SMALLEST_EPSILON = Fraction(1, 10**9)

#: The steps of a release that has a scale, as guarantees name them.
SCALE, SELECTION = "the scale of the response", "the selection"
#: The counts of cells without a value, where these were asked for.
CHECK = "the count of unreadable cells"

#: How far one row moves the scores.
Rule = Literal["sharp", "published", "lemma-2"]


class SelectionOptions(ProblemOptions, total=False):
    """What may be said of a selection beside k and epsilon; see :func:`dpsubset.select`."""

    delta: float | Fraction | Decimal
    mechanism: str | Mechanism
    options: Mapping[str, Any] | None
    allow_unproven: bool
    sensitivity: Rule
    response_range: Literal["private", "declared"] | ResponseRange | None
    check_readable: bool | float | Fraction | Decimal | None
    seed: int | None


@dataclass(frozen=True)
class SelectionRequest:
    """A selection, ready for a table. Public.

    Attributes
    ----------
    setting : Setting
        What the mechanism is told. Its epsilon is what is left for the selection, of one row.
    epsilon : Fraction
        Of scale and selection, for one row: a unit of so many rows has as many times that.
    asked : ResponseRange, "private" or None
        Which scale of the response is released first.
    by_rows : bool
        Whether the number of rows decides on that scale: then nothing is promised to tables that
        differ in it.
    check : ReadableCheck, optional
        Which cells without a value are counted, at a price of their own.
    given : bool
        Whether that scale is released by a step before this selection, which pays for it.
    date : str
        The day on which it was made, in UTC. No value has been read by then, so that no release
        says how long anything took.
    """

    stated: ProblemSpec
    mechanism: Mechanism
    setting: Setting
    seed: int | None
    epsilon: Fraction
    asked: RangeOption = None
    by_rows: bool = False
    check: ReadableCheck | None = None
    given: bool = False
    date: str = field(default_factory=today, compare=False)

    @property
    def randomness(self) -> Randomness:
        """Where the noise comes from. Opened anew each time: one selection asks once."""
        return Randomness(SystemSource() if self.seed is None else SeededSource(self.seed))

    @property
    def records_for(self) -> str | None:
        """Who needs the records themselves; None if moments are enough."""
        return self.mechanism.name if self.mechanism.needs_records else self.stated.records_for

    def with_rows(self, n: int | None) -> SelectionRequest:
        """The same for a table of n rows, where their number is public."""
        if not self.setting.problem.n_is_public:
            return self
        return replace(self, setting=replace(self.setting, n=n))._divide()

    @property
    def scale(self) -> ResponseRange | None:
        """What is released of the response before the selection."""
        if self.asked != "private":
            return self.asked
        return default_response_range(self.epsilon, self.setting.n, self.setting.problem.k)

    def with_scale_settled(self) -> SelectionRequest:
        """The same for good: rows counted once more must not change what has been drawn."""
        return replace(self, asked=self.scale)

    def with_scale(self, scale: ResponseRange) -> SelectionRequest:
        """The same with this scale in place of the usual one."""
        return replace(self, asked=scale)._divide()

    def with_scale_given(self) -> SelectionRequest:
        """The same for a scale that a step before it releases, and pays for."""
        return replace(self, given=True)._divide()

    def with_check(self, epsilon: Fraction, data: Any) -> SelectionRequest:
        """The same with counts of cells without a value, which cost one row so much besides."""
        if not epsilon:
            return self
        if isinstance(data, Moments):
            raise ArgumentError("check_readable needs the table: moments have no cells any more")
        neighbours = self.setting.problem.neighbours
        return replace(self, check=ReadableCheck.of(self.stated.schema, epsilon, neighbours))

    def _divide(self) -> SelectionRequest:
        """With what the scale leaves of epsilon for the selection, and the reach that it asks for,
        unless somebody has said how large predictions may be.
        """
        scale, setting = self.scale, self.setting
        if scale is None:
            return replace(self, setting=replace(setting, epsilon=self.epsilon))
        if not self.stated.sized:
            problem = self.stated.problem.with_prediction_bound(scale.prediction_bound)
            sensitivity = Sensitivity.of(problem, setting.sensitivity.rule)
            setting = replace(setting, problem=problem, sensitivity=sensitivity)
        share = 0 if self.given else scale.budget_fraction
        return replace(self, setting=replace(setting, epsilon=self.epsilon * (1 - share)))

    @property
    def divided(self) -> bool:
        """Whether it is known how epsilon is divided, which may depend on the number of rows."""
        counted = self.setting.n is not None or not self.setting.problem.n_is_public
        return counted or self.asked != "private"

    @property
    def priced(self) -> bool:
        """Whether all is known that the price depends on, which may be the number of rows."""
        return self.setting.n is not None or not self.mechanism.priced_by_rows(self.setting)

    def price(self) -> Guarantee:
        """What a release costs a unit, computed from the constants that its draws use."""
        parts = self.parts()
        found = Guarantee.compose(parts) if len(parts) > 1 else parts[SELECTION]
        return found.group_privacy(self.stated.schema.rows_per_unit)

    def parts(self) -> dict[str, Guarantee]:
        """What each step costs one row: scale and check, if asked for, and the selection."""
        seeded = self.seed is not None
        selection = {SELECTION: self.mechanism.guarantee(self.setting, seeded=seeded)}
        if self.check is not None:
            selection = {CHECK: self.check.noise.guarantee(seeded=seeded), **selection}
        if self.scale is None or self.given:
            return selection
        neighbours = self.setting.problem.neighbours
        first = self.scale.rule.guarantee(self.scale_epsilon, neighbours, seeded=seeded)
        if self.by_rows:
            first = first.limited_to(PUBLIC_N)
        return {SCALE: first, **selection}

    @property
    def scale_epsilon(self) -> Fraction:
        """What the scale may cost one row."""
        return self.epsilon - self.setting.epsilon


def build_request(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    delta: float | Fraction | Decimal = 0,
    mechanism: str | Mechanism = "permute-and-flip",
    options: Mapping[str, Any] | None = None,
    allow_unproven: bool = False,
    sensitivity: Rule = "sharp",
    response_range: Literal["private", "declared"] | ResponseRange | None = None,
    check_readable: bool | float | Fraction | Decimal | None = None,
    seed: int | None = None,
    **stated: Unpack[ProblemOptions],
) -> SelectionRequest:
    """Check everything that can be checked without opening the table."""
    budget, chance = exact_epsilon(epsilon), exact_delta(delta)
    chosen = find_mechanism(mechanism, options)
    if seed is not None:
        seed = check_seed(seed)
        if not chosen.seedable:
            raise ArgumentError(f"{chosen.name} takes noise from OpenDP, which has no seeds")
    if not chosen.proven and allow_unproven is not True:
        raise ArgumentError(
            f"{chosen.name} with these options has no privacy guarantee. To run it all the same, "
            "on data that are not sensitive, pass allow_unproven=True"
        )
    settled = build_problem_spec(data, schema, k=k, **stated)
    problem = settled.problem
    chosen = chosen.named(settled.design.position)
    budget = _of_one_row(budget, chance, settled.schema.rows_per_unit)
    share = readable_fraction(check_readable)
    counted, budget = budget * share, budget * (1 - share)
    asked = check_response_range(
        response_range,
        labels=settled.schema.response.labels is not None or loss_of(problem).labels,
        moments=isinstance(data, Moments),
    )
    setting = Setting(problem, Sensitivity.of(problem, sensitivity), budget, chance)
    by_rows = asked == "private" and problem.n_is_public
    planned = SelectionRequest(settled, chosen, setting, seed, budget, asked, by_rows)._divide()
    planned = planned.with_check(counted, data)
    chosen.check(planned.setting)
    return planned


def open_table_of(plan: SelectionRequest, data: Any, y: Any = None) -> SensitiveTable:
    """The table of a plan: names and types of its columns have been looked at."""
    return SensitiveTable(data, plan.stated.schema, y, records_for=plan.records_for)


def _of_one_row(epsilon: Fraction, delta: Fraction, rows: int) -> Fraction:
    """What one row may cost, if a unit with so many of them may cost epsilon."""
    if rows > 1 and delta:
        raise ArgumentError(
            "rows_per_unit is above 1: for several rows together a delta grows faster than their "
            "number, and nothing here accounts for that. Take a purely private mechanism, with "
            "delta = 0"
        )
    if epsilon < SMALLEST_EPSILON * rows:
        raise ArgumentError("epsilon must be at least 1e-9 for each of rows_per_unit rows")
    return epsilon / rows


def exact_epsilon(value: Any) -> Fraction:
    """Epsilon as the exact rational that was written; a float stands for its shortest decimal."""
    epsilon = as_decimal_fraction(value)
    if epsilon is None:  # also what is too long or too far from 1 to be written out
        raise ArgumentError("epsilon must be a finite number. It must lie between 1e-9 and 1e6")
    if epsilon <= 0:
        raise ArgumentError("epsilon must be a finite number greater than 0")
    # Beyond these no guarantee is worth its name, and float64 bounds no longer guide the search.
    if not SMALLEST_EPSILON <= epsilon <= 10**6:
        raise ArgumentError("epsilon must lie between 1e-9 and 1e6")
    return epsilon


def exact_delta(value: Any) -> Fraction:
    """Delta, likewise; 0 for pure privacy."""
    delta = as_decimal_fraction(value)
    if delta is None or not 0 <= delta < 1:
        raise ArgumentError("delta must be a number from 0 to below 1: much below 1/n, or 0")
    if 0 < delta < Fraction(1, 10**100):
        raise ArgumentError("delta must be 0 or at least 1e-100")
    return delta
