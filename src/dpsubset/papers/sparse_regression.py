"""sparse_regression: noisy hard thresholding with the coefficients of every round released.

    u = b - step / rows * (X'X b - X'y + ridge b),   S = noisy top k of |u|,   b_S = u_S + noise

Cai, Wang and Zhang's Algorithm 4, as in `mechanisms.published.hard_thresholding`: exact integers
from moments, coefficients on a grid. There the last round names a support; here its coefficients
are released too, so that every round has the same price.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from ..api.driver import Execution, make_release
from ..api.problem_spec import with_keywords_of
from ..api.request import SelectionBased, SelectionRequest, build_request
from ..api.sensitive_table import SensitiveTable
from ..base.errors import ArgumentError
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..mechanisms import Data
from ..mechanisms.published.hard_thresholding import Coefficients, HardThresholding
from ..mechanisms.shared.base import Setting
from ..mechanisms.shared.gradient import Gradient
from ..mechanisms.shared.rounds import Rounds
from ..privacy.guarantee import Guarantee
from ..privacy.noise import Measure
from ..privacy.relations import PUBLIC_N
from ..release.estimate import Estimate
from ..schema.schema import Bounds, Schema, SchemaLike

__all__ = ["sparse_regression"]

#: What the constant is called among the coefficients.
INTERCEPT = "(intercept)"


class ReleasedRounds(Rounds):
    """Rounds of picks, each of which is followed by values."""

    @classmethod
    def _split(
        cls, measure: Measure, total: Fraction, rounds: int, pick_fraction: Fraction
    ) -> ReleasedRounds:
        # Unlike in the mechanism, values follow the last round too.
        each = total / rounds
        return cls(measure, rounds, pick_fraction * each, (1 - pick_fraction) * each)

    @property
    def total(self) -> Fraction:
        return self.rounds * (self.picks + self.values)


@dataclass(frozen=True)
class Descent:
    """Hard thresholding in one setting. Public."""

    #: Its steps; the budget is divided among them by `ReleasedRounds`.
    mechanism: HardThresholding
    setting: Setting

    @property
    def rounds(self) -> Rounds:
        """Picks and values of every round."""
        mechanism = self.mechanism
        picks = self.setting.problem.picks
        return ReleasedRounds.of(self.setting, mechanism.iterations, picks, mechanism.share)

    def draw(self, data: Data) -> tuple[tuple[int, ...], Coefficients, float]:
        """The support of the last round, its coefficients in multiples of radius / GRID, and the
        standard deviation of the last noise in the same units: a function of what was released.
        """
        mechanism, setting, rounds = self.mechanism, self.setting, self.rounds
        problem = setting.problem
        gradient = Gradient(data.gram, Fraction(problem.radius), problem.ridge)
        b: Coefficients = {}
        support: tuple[int, ...] = ()
        deviation = 0.0
        for _ in range(mechanism.iterations):
            targets = mechanism.targets(gradient, setting, b)
            sensitivity = mechanism.sensitivity(setting, b)
            sizes = [abs(targets[j]) for j in problem.free]
            picks = rounds.pick(sizes, problem.picks, sensitivity)
            support = problem.support(problem.free[i] for i in picks)
            columns = problem.layout.of_support(support).tolist()
            noisy = rounds.release([targets[i] for i in columns], sensitivity)
            scale = rounds.value_scale(len(columns), sensitivity)
            deviation = float(scale * mechanism.target_step(setting, b))
            b = mechanism.next_coefficients(setting, b, columns, noisy)
        return support, b, deviation * (2**0.5 if rounds.measure == "pure" else 1.0)


@dataclass(frozen=True)
class DescentRequest(SelectionBased[Estimate]):
    """A sparse regression, ready for a table. Public."""

    selection: SelectionRequest

    @property
    def mechanism(self) -> HardThresholding:
        mechanism = self.selection.mechanism
        assert isinstance(mechanism, HardThresholding)
        return mechanism

    @cached_property
    def guarantee(self) -> Guarantee:
        """What it costs a unit: the same number of rounds for any number of rows."""
        setting = self.selection.setting
        guarantee = Descent(self.mechanism, setting).rounds.guarantee(setting, seeded=False)
        if self.mechanism.rows is None:
            # The number of rows scales the steps.
            guarantee = guarantee.limited_to(PUBLIC_N)
        return guarantee.group_privacy(self.selection.spec.schema.rows_per_unit)

    def describe(self, guarantee: Guarantee) -> Event:
        schema, problem = self.selection.spec.schema, self.selection.problem
        return Event.of(
            "sparse_regression",
            self.mechanism.name,
            guarantee,
            unit=schema.privacy_unit,
            rows_per_unit=schema.rows_per_unit,
            schema=schema.fingerprint(),
            options={"k": problem.k, "declared": problem.neighbours, **self.mechanism.options()},
        )

    def run(self, execution: Execution[SensitiveTable]) -> Estimate:
        """Read the table, and draw all rounds."""
        selection, data = self.selection.read(execution.table, execution.passes, None)
        request = self.with_rows(selection.n)
        guarantee = execution.check(request.guarantee)
        return _estimate(request, guarantee, data)


def _estimate(request: DescentRequest, guarantee: Guarantee, data: Data) -> Estimate:
    """Draw, and state the coefficients in the units of the table."""
    mechanism, declared = request.mechanism, request.selection.spec.schema
    setting = request.selection.setting
    support, b, noise = Descent(mechanism, setting).draw(data)
    scaled = float(setting.problem.radius) / mechanism.GRID
    names, values = _own_units(declared, {j: value * scaled for j, value in b.items()}, setting)
    half = declared.response.middle_and_half_width[1]
    deviations = [
        noise * scaled * half / column.middle_and_half_width[1] if j in support else 0.0
        for j, column in enumerate(declared.features)
    ]
    return Estimate(
        "Coefficients",
        names,
        values,
        # The intercept follows from all other coefficients; cut off if there is none.
        (*deviations, noise * scaled * half)[: len(names)],
        guarantee,
        declared.protected,
        support,
    )


@with_keywords_of()
def sparse_regression(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    delta: float | Fraction | Decimal = 0,
    y: Any = None,
    bounds: Bounds | None = None,
    iterations: int = 3,
    step: Any = 2,
    share: Any = Fraction(1, 2),
    rows: int | None = None,
    radius: float | None = None,
    intercept: bool = True,
    neighbours: Literal["replace-one", "add-remove"] = "replace-one",
    ledger: LedgerLike = None,
) -> Estimate:
    """Coefficients of k variables by noisy hard thresholding, in the units of the table.

    Parameters
    ----------
    data, schema, k, epsilon, delta, y, bounds, intercept, neighbours
        As for :func:`dpsubset.select`. Columns are numbers.
    iterations, step, share, rows
        Options of the mechanism `hard-thresholding`; here each round pays for picks and values.
    radius : float, optional
        The largest coefficient, in scaled units.
    ledger : path, URL or Ledger, optional
        Where the cost is debited before a value is read; as for :func:`dpsubset.select`.

    Returns
    -------
    Estimate
        Values are coefficients; all but k of them, and the intercept, are 0. The bounds are the
        truncation levels.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the release, or the ledger cannot be used.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (50_000, 1))
    >>> bounds = dps.Bounds(x=1, y=1)
    >>> found = dps.sparse_regression(
    ...     X, y=X[:, 0], bounds=bounds, k=1, epsilon=10, intercept=False
    ... )
    >>> found.picked
    (0,)
    """
    sized: Any = {} if radius is None else {"radius": radius}
    options = {"iterations": iterations, "step": step, "share": share, "rows": rows}
    selection = build_request(
        data, schema, k=k, epsilon=epsilon, delta=delta, y=y, bounds=bounds,
        mechanism="hard-thresholding", options=options, intercept=intercept,
        neighbours=neighbours, response_range="declared", **sized,
    )  # fmt: skip
    _check_numbers(selection.spec.schema)
    return make_release(DescentRequest(selection), data, y, ledger=ledger)


def _check_numbers(schema: Schema) -> None:
    for column in (*schema.features, schema.response):
        plain = column.levels is None and column.transform is None and not column.has_indicator
        if not plain or column.group is not None:
            raise ArgumentError(
                f"column {column.name!r}: a sparse regression is one of numbers, without levels, "
                "groups, transforms or indicators"
            )


def _own_units(
    schema: Schema, scaled: dict[int, float], setting: Setting
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Coefficients of values in their own units, and the intercept last if there is one."""
    middle, half = schema.response.middle_and_half_width
    slopes, constant = [], middle
    for j, column in enumerate(schema.features):
        centre, width = column.middle_and_half_width
        slope = scaled.get(j, 0.0) * half / width
        slopes.append(slope)
        constant -= slope * centre
    names = list(schema.feature_names)
    layout = setting.problem.layout
    if layout.has_intercept:
        constant += half * scaled.get(len(names), 0.0) * float(layout.intercept_value)
        names.append(INTERCEPT)
        slopes.append(constant)
    return tuple(names), tuple(slopes)
