"""private_mean and sparse_mean: noisy totals over the number of rows.

    mean_j = middle_j + half-range_j * (total_j + z_j) / (n STEPS)

`private_mean` releases every column: Laplace noise, or Gaussian where a delta is given and that is
less. `sparse_mean` is Cai, Wang and Zhang's Algorithm 3: the s columns whose means are, with noise,
farthest from the middle of their bounds are picked and released, all others are said to be there.
Clipping to the bounds is their truncation f_T; with ``truncation="private"`` each column is clipped
between two quantiles that are released first (their Section 5.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from ..api.request import exact_delta, exact_epsilon
from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_int, check_progress
from ..data.column_selection import ColumnSelection, select_columns
from ..data.histograms import count_columns
from ..data.quantize import STEPS
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..data.sums import Sums, check_no_transform, deviation_of, mean_of
from ..data.type_checks import type_mismatches_of, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited
from ..privacy.bound_quantiles import default_bounds_rule, round_outward, with_bounds
from ..privacy.budget import RECORDS, Budget
from ..privacy.guarantee import Guarantee
from ..privacy.quantiles import QuantileRule, QuantileSampler
from ..privacy.random import Randomness, SystemSource
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from ..release.estimate import Estimate
from ..release.scale import ReleasedRange
from .peeling_steps import Peel

__all__ = ["private_mean", "sparse_mean"]

Truncation = Literal["declared", "private"]

#: Of epsilon, for the quantiles of private truncation.
TRUNCATION_SHARE = Fraction(1, 5)

#: Of more columns no levels are released: a histogram takes half a megabyte.
_MOST_LEVELS = 1000

#: The steps of a release with truncation, as guarantees name them.
LEVELS, MEANS = "the truncation levels", "the means"


@dataclass(frozen=True)
class _Plan:
    """A mean, ready for a table. Public."""

    listing: ColumnSelection
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    truncation: Truncation

    @property
    def levels_epsilon(self) -> Fraction:
        """For truncation levels."""
        share = TRUNCATION_SHARE if self.truncation == "private" else Fraction(0)
        return self.epsilon * share

    @property
    def level_epsilon(self) -> Fraction:
        """For those of one column."""
        return self.levels_epsilon / len(self.listing.columns)

    @property
    def rest(self) -> Fraction:
        """For the means."""
        return self.epsilon - self.levels_epsilon

    @property
    def change(self) -> int:
        """How far neighbours move a total."""
        return RECORDS[self.neighbours] * STEPS

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is private, and released with noise like a total."""
        return self.neighbours not in PUBLIC_N

    def passes(self, progress: Progress | None) -> Passes:
        """Over the table: truncation levels take one more."""
        count = 2 if self.truncation == "private" else 1
        return Passes(progress, self.neighbours in PUBLIC_N, count)


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
    data : path, data frame or array
        The sensitive table.
    within : pair, mapping, Schema or path of a bounds file
        Public bounds, to which values are clipped: ``(lo, hi)`` for all columns, or by name.
    epsilon, delta : number
        The budget of the whole release. With a delta noise is Gaussian, if that is less.
    columns : names, optional
        Which; by default those that have bounds, or whose type is a number.
    neighbours : {"replace-one", "add-remove"}
        Under add-remove the number of rows is private, and takes a share of the budget.
    truncation : {"declared", "private"}
        "private": a fifth of epsilon goes to two quantiles of each column, between which it is
        clipped; for bounds that are far wider than the values.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        Where the cost is debited before a value is read; as for :func:`dpsubset.select`.
    """
    check_progress(progress)
    planned = _plan(data, within, epsilon, delta, columns, neighbours, truncation)
    width = len(planned.listing.columns)
    budget = Budget.of(planned.rest, planned.delta, width + planned.counts_rows)
    with debited(ledger, lambda: _event("private_mean", planned, budget)) as debit:
        passes = planned.passes(progress)
        listing, guarantee = _truncated(planned, budget, data, passes)
        debit.checked(guarantee)
        sums = Sums.read(listing, data, passes)
        noisy = budget.values(_values(sums, range(width), planned), planned.change)
        totals, n = noisy[:width], _rows(sums, noisy, planned)
        deviation = budget.deviation(width + planned.counts_rows, planned.change)
        estimate = Estimate(
            "Means",
            tuple(column.name for column in listing.columns),
            tuple(mean_of(c, total, n) for c, total in zip(listing.columns, totals, strict=True)),
            tuple(deviation_of(column, deviation, n) for column in listing.columns),
            guarantee,
            listing.protected,
        )
        return debit.signed(estimate)


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
        Of the budget, for picks; the rest is for values.
    data, within, epsilon, delta, columns, neighbours, truncation, progress, ledger
        As for :func:`private_mean`.
    """
    check_progress(progress)
    planned = _plan(data, within, epsilon, delta, columns, neighbours, truncation)
    width, s = len(planned.listing.columns), check_int(s, "s")
    if not 1 <= s <= width:
        raise ArgumentError(f"s must lie between 1 and {width}, the number of columns")
    peel = Peel.of(planned.rest, planned.delta, s, share, more=int(planned.counts_rows))
    with debited(ledger, lambda: _event("sparse_mean", planned, peel.budget, s)) as debit:
        passes = planned.passes(progress)
        listing, guarantee = _truncated(planned, peel.budget, data, passes)
        debit.checked(guarantee)
        sums = Sums.read(listing, data, passes)
        more = [sums.n * STEPS] if planned.counts_rows else []
        picked, noisy = peel.draw(sums.totals, planned.change, more)
        n = _rows(sums, noisy, planned)
        deviation = peel.deviation(planned.change)
        middles = [mean_of(column, 0, 1) for column in listing.columns]
        noise = [0.0] * width
        for j, total in zip(picked, noisy, strict=False):
            middles[j] = mean_of(listing.columns[j], total, n)
            noise[j] = deviation_of(listing.columns[j], deviation, n)
        names = tuple(column.name for column in listing.columns)
        told = (guarantee, listing.protected, tuple(picked))
        return debit.signed(Estimate("Sparse means", names, tuple(middles), tuple(noise), *told))


def _plan(
    data: Any,
    within: Any,
    epsilon: Any,
    delta: Any,
    columns: Any,
    neighbours: Any,
    truncation: Any,
) -> _Plan:
    budget, chance = exact_epsilon(epsilon), exact_delta(delta)
    check_choice(neighbours, RELATIONS, "neighbours")
    check_choice(truncation, ("declared", "private"), "truncation")
    listing = select_columns(data, within, columns)
    check_no_transform(listing.columns)
    warn_of_types(type_mismatches_of(listing.columns, listing.kinds), stacklevel=5)
    if truncation == "private" and len(listing.columns) > _MOST_LEVELS:
        raise ArgumentError(
            f"private truncation is for at most {_MOST_LEVELS} columns: with more, each would have "
            "next to nothing of epsilon. Declare bounds"
        )
    rows = listing.rows_per_unit
    if rows > 1 and chance:
        raise ArgumentError(
            "rows_per_unit is above 1: for several rows together a delta grows faster than their "
            "number. Leave delta at 0"
        )
    return _Plan(listing, budget / rows, chance, neighbours, truncation)


def _event(what: str, planned: _Plan, budget: Budget, s: int | None = None) -> Event:
    """What a ledger notes, before a value is read."""
    listing = planned.listing
    return Event.of(
        what,
        "noisy-sums" if s is None else "peeling",
        _price(planned, budget, default_bounds_rule(planned.level_epsilon, None)),
        unit=listing.privacy_unit,
        rows_per_unit=listing.rows_per_unit,
        schema=listing.fingerprint,
        options={
            "columns": [column.name for column in listing.columns],
            "truncation": planned.truncation,
            "declared": planned.neighbours,
            **({} if s is None else {"s": s}),
        },
    )


def _price(planned: _Plan, budget: Budget, rule: QuantileRule) -> Guarantee:
    """What all of it costs; of truncation levels, every rule costs the same under the declared
    neighbours, and where the number of rows decides on it the means promise nothing else.
    """
    means = _of_totals(budget, planned.neighbours)
    if planned.truncation == "private":
        means = Guarantee.compose({LEVELS: _levels(rule, planned), MEANS: means})
    return means.group_privacy(planned.listing.rows_per_unit)


def _truncated(
    planned: _Plan, budget: Budget, data: Any, passes: Passes
) -> tuple[ColumnSelection, Guarantee]:
    """The columns with the bounds to clip to, and what all of it costs."""
    listing, each = planned.listing, planned.level_epsilon
    if planned.truncation == "declared":
        return listing, _price(planned, budget, default_bounds_rule(each, None))
    counts, n = count_columns(listing.open(data), listing.columns, passes)
    rule = default_bounds_rule(each, n if planned.neighbours in PUBLIC_N else None)
    found = []
    rng = Randomness(SystemSource())
    for column, of_column in zip(listing.columns, counts, strict=True):
        scale = QuantileSampler(of_column, rule, each, planned.neighbours).draw(rng)
        low, high = round_outward(*ReleasedRange(rule, scale, column).clipped, column)
        found.append(with_bounds(column, low, high))
    return replace(listing, columns=tuple(found)), _price(planned, budget, rule)


def _of_totals(budget: Budget, neighbours: Neighbours) -> Guarantee:
    """Of totals with noise. Under replace-one the number of rows is public and part of the answer,
    so nothing is said of tables that differ in it.
    """
    covered = PUBLIC_N if neighbours in PUBLIC_N else RELATIONS
    return Guarantee(neighbours, budget.costs(neighbours)).limited_to(covered)


def _levels(rule: QuantileRule, planned: _Plan) -> Guarantee:
    """Of the quantiles of all columns together."""
    width = len(planned.listing.columns)
    each = rule.guarantee(planned.level_epsilon, planned.neighbours)
    found = Guarantee.compose({str(j): each for j in range(width)})
    return replace(found, parts=())


def _values(sums: Sums, columns: Iterable[int], planned: _Plan) -> list[int]:
    """Totals, and the number of rows in the same units where it is private."""
    totals = [sums.totals[j] for j in columns]
    return [*totals, sums.n * STEPS] if planned.counts_rows else totals


def _rows(sums: Sums, noisy: list[int], planned: _Plan) -> int:
    """The number of rows that means are divided by: public, or with noise."""
    return max(1, round(noisy[-1] / STEPS)) if planned.counts_rows else sums.n
