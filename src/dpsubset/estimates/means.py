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

from ..arguments import choice, whole
from ..errors import ArgumentError
from ..privacy.budget import RECORDS, Budget
from ..privacy.guarantee import PUBLIC_N, RELATIONS, Guarantee
from ..privacy.random import Randomness, SystemSource
from ..privacy.scale import ScaleRule, ScaleSampler
from ..public.plan import exact_delta, exact_epsilon
from ..public.problem import Neighbours
from ..public.suggested import narrowed, readable, usual_rule
from ..release.estimate import Estimate
from ..release.scale import ReleasedScale
from ..table.door import STEPS
from ..table.histograms import count_columns
from ..table.listing import Listing, list_columns
from ..table.sources import Progress
from .peeling import Peel
from .sums import Sums, check_plain, deviation_of, mean_of

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

    listing: Listing
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
        Called with the fraction of the table read so far.
    """
    planned = _plan(data, within, epsilon, delta, columns, neighbours, truncation)
    width = len(planned.listing.columns)
    budget = Budget.of(planned.rest, planned.delta, width + planned.counts_rows)
    listing, guarantee = _truncated(planned, budget, data)
    sums = Sums.read(listing, data, progress)
    noisy = budget.values(_values(sums, range(width), planned), planned.change)
    totals, n = noisy[:width], _rows(sums, noisy, planned)
    deviation = budget.deviation(width + planned.counts_rows, planned.change)
    return Estimate(
        "Means",
        tuple(column.name for column in listing.columns),
        tuple(mean_of(c, total, n) for c, total in zip(listing.columns, totals, strict=True)),
        tuple(deviation_of(column, deviation, n) for column in listing.columns),
        guarantee,
        listing.unit,
    )


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
) -> Estimate:
    """Means of the s columns that differ most from the middle of their bounds, with noise.

    Parameters
    ----------
    s : int
        How many columns are picked.
    share : number
        Of the budget, for picks; the rest is for values.
    data, within, epsilon, delta, columns, neighbours, truncation, progress
        As for :func:`private_mean`.
    """
    planned = _plan(data, within, epsilon, delta, columns, neighbours, truncation)
    width, s = len(planned.listing.columns), whole(s, "s")
    if not 1 <= s <= width:
        raise ArgumentError(f"s must lie between 1 and {width}, the number of columns")
    peel = Peel.of(planned.rest, planned.delta, s, share, more=int(planned.counts_rows))
    listing, guarantee = _truncated(planned, peel.budget, data)
    sums = Sums.read(listing, data, progress)
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
    return Estimate(
        "Sparse means", names, tuple(middles), tuple(noise), guarantee, listing.unit, tuple(picked)
    )


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
    choice(neighbours, RELATIONS, "neighbours")
    choice(truncation, ("declared", "private"), "truncation")
    listing = list_columns(data, within, columns)
    check_plain(listing.columns)
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


def _truncated(planned: _Plan, budget: Budget, data: Any) -> tuple[Listing, Guarantee]:
    """The columns with the bounds to clip to, and what all of it costs."""
    listing, means = planned.listing, _of_totals(budget, planned.neighbours)
    rows = listing.rows_per_unit
    if planned.truncation == "declared":
        return listing, means.of_rows(rows)
    each = planned.levels_epsilon / len(listing.columns)
    counts, n = count_columns(listing.open(data), listing.columns)
    rule = usual_rule(each, n if planned.neighbours in PUBLIC_N else None)
    found = []
    rng = Randomness(SystemSource())
    for column, of_column in zip(listing.columns, counts, strict=True):
        scale = ScaleSampler(of_column, rule, each, planned.neighbours).draw(rng)
        low, high = readable(*ReleasedScale(rule, scale, column).clipped, column)
        found.append(narrowed(column, low, high))
    levels = _levels(rule, planned)
    total = Guarantee.of_parts({LEVELS: levels, MEANS: means})
    return replace(listing, columns=tuple(found)), total.of_rows(rows)


def _of_totals(budget: Budget, neighbours: Neighbours) -> Guarantee:
    """Of totals with noise. Under replace-one the number of rows is public and part of the answer,
    so nothing is said of tables that differ in it.
    """
    covered = PUBLIC_N if neighbours in PUBLIC_N else RELATIONS
    costs = budget.costs(neighbours)
    return Guarantee(neighbours, {relation: costs[relation] for relation in covered})


def _levels(rule: ScaleRule, planned: _Plan) -> Guarantee:
    """Of the quantiles of all columns together."""
    width = len(planned.listing.columns)
    each = rule.guarantee(planned.levels_epsilon / width, planned.neighbours)
    found = Guarantee.of_parts({str(j): each for j in range(width)})
    return replace(found, parts=())


def _values(sums: Sums, columns: Iterable[int], planned: _Plan) -> list[int]:
    """Totals, and the number of rows in the same units where it is private."""
    totals = [sums.totals[j] for j in columns]
    return [*totals, sums.n * STEPS] if planned.counts_rows else totals


def _rows(sums: Sums, noisy: list[int], planned: _Plan) -> int:
    """The number of rows that means are divided by: public, or with noise."""
    return max(1, round(noisy[-1] / STEPS)) if planned.counts_rows else sums.n
