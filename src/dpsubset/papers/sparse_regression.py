"""sparse_regression: noisy hard thresholding with the coefficients of every round released.

    u = b - step / rows * (X'X b - X'y + ridge b),   S = noisy top k of |u|,   b_S = u_S + noise

Cai, Wang and Zhang's Algorithm 4, as `mechanisms.hard_thresholding` has it: exact integers from
moments, coefficients on a grid. There the last round names a support; here its coefficients are
released too, and every round is paid for alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from ..api.request import SelectionRequest, build_request, open_table_of
from ..base.errors import ArgumentError
from ..data.gram import GramData
from ..data.type_checks import type_mismatches, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited
from ..mechanisms import Data
from ..mechanisms.published.hard_thresholding import Coefficients, HardThresholding
from ..mechanisms.shared.base import Setting
from ..mechanisms.shared.gradient import Gradient
from ..mechanisms.shared.rounds import Rounds
from ..privacy.guarantee import Guarantee
from ..privacy.relations import PUBLIC_N
from ..release.estimate import Estimate
from ..schema.schema import Bounds, Column, Schema

__all__ = ["sparse_regression"]

#: What the constant is called among the coefficients.
INTERCEPT = "(intercept)"


class ReleasedRounds(Rounds):
    """Rounds of picks, each of which is followed by values."""

    @classmethod
    def _shared(
        cls,
        measure: Literal["pure", "zcdp"],
        total: Fraction,
        rounds: int,
        share: Fraction,
    ) -> ReleasedRounds:
        return cls(measure, rounds, share * total / rounds, (1 - share) * total / rounds)

    @property
    def total(self) -> Fraction:
        """Of all rounds."""
        return self.rounds * (self.picks + self.values)


@dataclass(frozen=True)
class Descent:
    """Hard thresholding in one setting. Public.

    Attributes
    ----------
    mechanism : HardThresholding
        Its steps; the budget is shared out anew.
    setting : Setting
    """

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
        gradient = Gradient(data.digest, Fraction(problem.radius), problem.ridge)
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
            deviation = float(scale * mechanism.worth(setting, b))
            b = mechanism.settled(setting, b, columns, noisy)
        return support, b, deviation * (2**0.5 if rounds.measure == "pure" else 1.0)


def sparse_regression(
    data: Any,
    schema: Schema | str | Path | None = None,
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
    """
    asked: dict[str, Any] = {} if radius is None else {"radius": radius}
    options = {"iterations": iterations, "step": step, "share": share, "rows": rows}
    planned = build_request(
        data, schema, k=k, epsilon=epsilon, delta=delta, y=y, bounds=bounds,
        mechanism="hard-thresholding", options=options, intercept=intercept,
        neighbours=neighbours, response_range="declared", **asked,
    )  # fmt: skip
    _check_numbers(planned.stated.schema)
    table = open_table_of(planned, data, y)
    warn_of_types(type_mismatches(data, planned.stated.schema, y))
    with debited(ledger, lambda: event_of(planned, _price(planned))) as debit:
        digest = table.read(planned.setting.problem)
        counted = planned.with_rows(digest.n)
        guarantee = debit.checked(_price(counted))
        return debit.signed(_estimate(counted, guarantee, digest))


def _price(planned: SelectionRequest) -> Guarantee:
    """What it costs a unit: rounds of this budget, however many rows there are."""
    mechanism = planned.mechanism
    assert isinstance(mechanism, HardThresholding)
    rounds = Descent(mechanism, planned.setting).rounds
    guarantee = rounds.guarantee(planned.setting, seeded=False)
    if mechanism.rows is None:
        # The number of rows scales the steps.
        guarantee = guarantee.limited_to(PUBLIC_N)
    return guarantee.group_privacy(planned.stated.schema.rows_per_unit)


def event_of(planned: SelectionRequest, guarantee: Guarantee) -> Event:
    """What a ledger notes, before a value is read."""
    schema, problem = planned.stated.schema, planned.setting.problem
    return Event.of(
        "sparse_regression",
        planned.mechanism.name,
        guarantee,
        unit=schema.privacy_unit,
        rows_per_unit=schema.rows_per_unit,
        schema=schema.fingerprint(),
        options={"k": problem.k, "declared": problem.neighbours, **planned.mechanism.options()},
    )


def _estimate(planned: SelectionRequest, guarantee: Guarantee, digest: GramData) -> Estimate:
    mechanism, declared = planned.mechanism, planned.stated.schema
    assert isinstance(mechanism, HardThresholding)
    support, b, noise = Descent(mechanism, planned.setting).draw(Data(digest))
    scaled = float(planned.setting.problem.radius) / mechanism.GRID
    names, values = _own_units(
        declared, {j: value * scaled for j, value in b.items()}, planned.setting
    )
    half = _ends(declared.response)[1]
    deviations = [
        noise * scaled * half / _ends(column)[1] if j in support else 0.0
        for j, column in enumerate(declared.features)
    ]
    return Estimate(
        "Coefficients",
        names,
        values,
        # The intercept's is made of all the others', and of none if there is no such name.
        (*deviations, noise * scaled * half)[: len(names)],
        guarantee,
        declared.protected,
        support,
    )


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
    middle, half = _ends(schema.response)
    slopes, constant = [], middle
    for j, column in enumerate(schema.features):
        centre, width = _ends(column)
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


def _ends(column: Column) -> tuple[float, float]:
    low, high = column.span
    assert low is not None
    assert high is not None
    return low / 2 + high / 2, high / 2 - low / 2
