"""private_mean and sparse_mean: means of columns as noisy totals over the number of rows.

    mean_j = middle_j + half-range_j * (total_j + z_j) / (n STEPS)

`private_mean` releases every column: Laplace noise, or Gaussian where a delta is given and that is
less. `sparse_mean` is Cai, Wang and Zhang's Algorithm 3: it picks the s columns whose means are,
with noise, farthest from the middle of their bounds, and releases these; every other column is
reported at its middle. Clipping to the bounds is their truncation f_T; with
``truncation="private"`` each column is clipped between two quantiles that are released first (their
Section 5.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from ..api.driver import Execution, Request, make_release
from ..api.problem_spec import with_keywords_of
from ..api.request import exact_delta, exact_epsilon
from ..api.suggest_bounds import draw_bounds
from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_int
from ..data.column_selection import ColumnSelection, select_columns
from ..data.histograms import count_columns
from ..data.quantize import STEPS
from ..data.readers import Progress, Table
from ..data.sums import Sums, check_no_transform, deviation_of, mean_of
from ..data.type_checks import type_mismatches_of
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..privacy.bound_quantiles import default_bounds_rule
from ..privacy.budget import RECORDS, Budget
from ..privacy.guarantee import Guarantee
from ..privacy.quantiles import QuantileRule
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from ..release.estimate import Estimate
from .peeling_steps import Peel

__all__ = ["private_mean", "sparse_mean"]

Truncation = Literal["declared", "private"]

#: The share of epsilon for the quantiles of private truncation.
TRUNCATION_SHARE = Fraction(1, 5)

#: Most columns that are truncated privately: a histogram takes half a megabyte.
_MOST_LEVELS = 1000

#: The steps of a release with truncation, as guarantees name them.
LEVELS, MEANS = "the truncation levels", "the means"


@dataclass(frozen=True)
class OpenColumns:
    """A table of which some columns will be read; no value has been."""

    data: Any = field(repr=False)
    table: Table = field(repr=False)

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known before values are read."""
        return self.table.rows


@dataclass(frozen=True)
class MeanRequest(Request[OpenColumns, Estimate]):
    """Means of columns, ready for a table. Public."""

    columns: ColumnSelection
    #: The budget of one row.
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    truncation: Truncation
    #: All noise comes from the operating system.
    seed: None = None
    #: Which columns are picked, for a sparse mean.
    picks: Peel | None = None
    #: Which quantiles are the truncation levels: a public rule, of the number of rows where that is
    #: public.
    truncation_rule: QuantileRule | None = None

    @property
    def n_is_public(self) -> bool:
        return self.neighbours in PUBLIC_N

    @property
    def truncation_epsilon(self) -> Fraction:
        """The budget of the truncation levels."""
        return self.epsilon * (TRUNCATION_SHARE if self.truncation == "private" else 0)

    @property
    def column_epsilon(self) -> Fraction:
        """The budget of the truncation levels of one column."""
        return self.truncation_epsilon / len(self.columns.columns)

    @property
    def mean_epsilon(self) -> Fraction:
        return self.epsilon - self.truncation_epsilon

    @property
    def change(self) -> int:
        """How far neighbours move a total."""
        return RECORDS[self.neighbours] * STEPS

    @property
    def noisy_values(self) -> int:
        """The number of released totals: the columns, and the rows where these are private."""
        return len(self.columns.columns) + (not self.n_is_public)

    @cached_property
    def budget(self) -> Budget:
        """The measure and the amount of noise of the means."""
        if self.picks is not None:
            return self.picks.budget
        return Budget.of(self.mean_epsilon, self.delta, self.noisy_values)

    @property
    def pass_count(self) -> int:
        """One pass for the means, and one for truncation levels."""
        return 2 if self.truncation == "private" else 1

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all of it costs a unit.

        Every rule of truncation costs the same under the declared relation. Under replace-one the
        number of rows is public and part of the answer, so that nothing is stated of tables that
        differ in it.
        """
        covered = PUBLIC_N if self.n_is_public else RELATIONS
        means = Guarantee(self.neighbours, self.budget.costs(self.neighbours)).limited_to(covered)
        if self.truncation == "private":
            means = Guarantee.compose({LEVELS: self._levels(), MEANS: means})
        return means.group_privacy(self.columns.rows_per_unit)

    def _levels(self) -> Guarantee:
        """What the quantiles of all columns together cost."""
        assert self.truncation_rule is not None
        each = self.truncation_rule.guarantee(self.column_epsilon, self.neighbours)
        names = map(str, range(len(self.columns.columns)))
        return replace(Guarantee.compose(dict.fromkeys(names, each)), parts=())

    def with_rows(self, n: int | None) -> MeanRequest:
        if self.truncation == "declared" or n is None or not self.n_is_public:
            return self
        rule = default_bounds_rule(self.column_epsilon, n)
        return self if rule == self.truncation_rule else replace(self, truncation_rule=rule)

    def open(self, data: Any, y: Any = None) -> OpenColumns:
        return OpenColumns(data, self.columns.open(data))

    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        return type_mismatches_of(self.columns.columns, self.columns.kinds)

    def describe(self, guarantee: Guarantee) -> Event:
        columns, picks = self.columns, self.picks
        return Event.of(
            "private_mean" if picks is None else "sparse_mean",
            "noisy-sums" if picks is None else "peeling",
            guarantee,
            unit=columns.privacy_unit,
            rows_per_unit=columns.rows_per_unit,
            schema=columns.fingerprint,
            options={
                "columns": [column.name for column in columns.columns],
                "truncation": self.truncation,
                "declared": self.neighbours,
                **({} if picks is None else {"s": picks.k}),
            },
        )

    def run(self, execution: Execution[OpenColumns]) -> Estimate:
        """Read the columns, clip them, and release their means with noise."""
        clipped, guarantee = self._truncate(execution)
        sums = Sums.read(clipped, execution.table.data, execution.passes)
        count = [] if self.n_is_public else [sums.n * STEPS]
        if self.picks is None:
            picked = list(range(len(sums.totals)))
            noisy = self.budget.values([*sums.totals, *count], self.change)
            deviation = self.budget.deviation(self.noisy_values, self.change)
        else:
            picked, noisy = self.picks.draw(sums.totals, self.change, count)
            deviation = self.picks.deviation(self.change)
        n = sums.n if self.n_is_public else max(1, round(noisy[-1] / STEPS))
        means = [mean_of(column, 0, 1) for column in clipped.columns]
        deviations = [0.0] * len(means)
        for j, total in zip(picked, noisy, strict=False):  # the last one may be the number of rows
            means[j] = mean_of(clipped.columns[j], total, n)
            deviations[j] = deviation_of(clipped.columns[j], deviation, n)
        return Estimate(
            "Means" if self.picks is None else "Sparse means",
            tuple(column.name for column in clipped.columns),
            tuple(means),
            tuple(deviations),
            guarantee,
            clipped.protected,
            None if self.picks is None else tuple(picked),
        )

    def _truncate(self, execution: Execution[OpenColumns]) -> tuple[ColumnSelection, Guarantee]:
        """The columns with the bounds to clip to, and the checked price of the whole release."""
        if self.truncation == "declared":
            return self.columns, execution.check(self.guarantee)
        columns, table = self.columns.columns, execution.table.table
        counts, n = count_columns(table, columns, execution.passes)
        request = self.with_rows(n)
        guarantee, rule = execution.check(request.guarantee), request.truncation_rule
        assert rule is not None
        narrow, _ = draw_bounds(
            columns, counts, rule, self.column_epsilon, self.neighbours, execution.rng
        )
        return replace(self.columns, columns=narrow), guarantee


def _build_mean_request(
    data: Any,
    within: Any,
    epsilon: Any,
    delta: Any,
    columns: Any,
    neighbours: Any,
    truncation: Any,
) -> MeanRequest:
    """Check the arguments that both functions share."""
    budget, chance = exact_epsilon(epsilon), exact_delta(delta)
    check_choice(neighbours, RELATIONS, "neighbours")
    check_choice(truncation, ("declared", "private"), "truncation")
    selection = select_columns(data, within, columns)
    check_no_transform(selection.columns)
    if truncation == "private" and len(selection.columns) > _MOST_LEVELS:
        raise ArgumentError(
            f"private truncation is for at most {_MOST_LEVELS} columns: with more, each would have "
            "next to nothing of epsilon. Declare bounds"
        )
    rows = selection.rows_per_unit
    if rows > 1 and chance:
        raise ArgumentError(
            "rows_per_unit is above 1: for several rows together a delta grows faster than their "
            "number. Leave delta at 0"
        )
    request = MeanRequest(selection, budget / rows, chance, neighbours, truncation)
    if truncation == "declared":
        return request
    return replace(request, truncation_rule=default_bounds_rule(request.column_epsilon, None))


@with_keywords_of()
def private_mean(
    data: Any,
    within: Any,
    *,
    epsilon: float | Fraction | Decimal,
    delta: float | Fraction | Decimal = 0,
    columns: Iterable[str] | None = None,
    neighbours: Neighbours = "replace-one",
    truncation: Truncation = "declared",
    progress: Progress | None = None,
    ledger: LedgerLike = None,
) -> Estimate:
    """Means of columns, with noise: pure epsilon, or (epsilon, delta) where that is less noise.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame or array
        The sensitive table.
    within : pair, mapping, Schema, path of a bounds file or dict of the same form
        Public bounds, to which values are clipped: ``(lo, hi)`` for all columns, or by name.
    epsilon, delta : number
        The budget of the whole release. With a delta noise is Gaussian, if that is less.
    columns : names, optional
        Which columns; by default those that have bounds, or whose type is a number.
    neighbours : {"replace-one", "add-remove"}
        Under add-remove the number of rows is private, and takes a share of the budget.
    truncation : {"declared", "private"}
        "private": a fifth of epsilon goes to two quantiles of each column, between which it is
        clipped; for bounds that are far wider than the values.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        Where the cost is debited before a value is read; as for :func:`dpsubset.select`.

    Returns
    -------
    Estimate
        One mean for each column, with the standard deviation of its noise.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the release, or the ledger cannot be used.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(0, 100, (10_000, 2))
    >>> means = dps.private_mean(X, (0, 100), epsilon=1)
    >>> [round(value, -1) for value in means.values]
    [50.0, 50.0]
    """
    request = _build_mean_request(data, within, epsilon, delta, columns, neighbours, truncation)
    return make_release(request, data, progress=progress, ledger=ledger)


@with_keywords_of()
def sparse_mean(
    data: Any,
    within: Any,
    *,
    s: int,
    epsilon: float | Fraction | Decimal,
    delta: float | Fraction | Decimal = 0,
    columns: Iterable[str] | None = None,
    neighbours: Neighbours = "replace-one",
    truncation: Truncation = "declared",
    share: Any = Fraction(1, 2),
    progress: Progress | None = None,
    ledger: LedgerLike = None,
) -> Estimate:
    """Means of the s columns that differ most from the middle of their bounds, with noise.

    Parameters
    ----------
    s : int
        How many columns are picked.
    share : number
        The share of the budget for picks; the rest is for values.
    data, within, epsilon, delta, columns, neighbours, truncation, progress, ledger
        As for :func:`private_mean`.

    Returns
    -------
    Estimate
        The means of the picked columns, and the middle of the bounds for all others.

    Raises
    ------
    ArgumentError, SchemaError, TableError, BudgetExceeded, LedgerError
        As for :func:`private_mean`.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.column_stack([np.full(10_000, 90.0), np.full(10_000, 50.0)])
    >>> means = dps.sparse_mean(X, (0, 100), s=1, epsilon=1)
    >>> means.picked, round(means.values[0])
    ((0,), 90)
    """
    request = _build_mean_request(data, within, epsilon, delta, columns, neighbours, truncation)
    width, s = len(request.columns.columns), check_int(s, "s")
    if not 1 <= s <= width:
        raise ArgumentError(f"s must lie between 1 and {width}, the number of columns")
    more = int(not request.n_is_public)
    picks = Peel.of(request.mean_epsilon, request.delta, s, share, more=more)
    return make_release(replace(request, picks=picks), data, progress=progress, ledger=ledger)
