"""suggest_bounds: bounds of columns from private quantiles, paid for and said so.

Bounds must not be read off the rows. Where nobody knows better than "somewhere between 0 and a
million", a part of the budget may go to two quantiles of each column, by the exact mechanism of
`privacy.scale` within the wide bounds. Epsilons of the columns add up: a row is in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_progress, check_seed
from ..data.column_selection import ColumnSelection, select_columns
from ..data.histograms import count_columns
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..data.type_checks import type_mismatches_of, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited
from ..privacy.bound_quantiles import default_bounds_rule, round_outward, with_bounds
from ..privacy.guarantee import Guarantee
from ..privacy.quantiles import QuantileRule, QuantileSampler
from ..privacy.random import Randomness, SeededSource, SystemSource
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from ..release.bounds import SuggestedBounds
from ..release.scale import ReleasedRange
from ..schema.bounds_file import template_facts
from ..schema.entries import entry_of_column
from ..schema.provenance import KEY, PaidBounds
from ..schema.schema import Column
from .request import exact_epsilon

__all__ = ["BoundsRequest", "build_bounds_request", "suggest_bounds"]

#: A histogram takes half a megabyte, and so many columns leave each next to nothing of epsilon.
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class BoundsRequest:
    """Which bounds will be released, and at what price. Public; no value has been read.

    Attributes
    ----------
    listing : ColumnSelection
        The columns, with the wide bounds that were declared.
    epsilon : Fraction
        Of all of them together, for one row.
    rule : QuantileRule, optional
        Which quantiles; None until the number of rows is known, if that is public.
    by_rows : bool
        Whether that number decides on the rule: then nothing is promised to tables that differ in
        it.
    """

    listing: ColumnSelection
    epsilon: Fraction
    neighbours: Neighbours
    rule: QuantileRule | None
    by_rows: bool
    seed: int | None

    @property
    def share(self) -> Fraction:
        """Of one column, for one row."""
        return self.epsilon / len(self.listing.columns)

    def with_rows(self, n: int | None) -> BoundsRequest:
        """The same for a table of n rows, where their number is public."""
        if self.rule is not None or n is None:
            return self
        return replace(self, rule=default_bounds_rule(self.share, n))

    def price(self) -> Guarantee:
        """What it costs a unit; no rule costs more or less than another under these neighbours."""
        rule = self.rule or default_bounds_rule(self.share, None)
        of_column = rule.guarantee(self.share, self.neighbours, seeded=self.seed is not None)
        if self.by_rows:
            of_column = of_column.limited_to(PUBLIC_N)
        parts = {f"bounds of {column.name}": of_column for column in self.listing.columns}
        return Guarantee.compose(parts).group_privacy(self.listing.rows_per_unit)


def build_bounds_request(
    data: Any,
    within: Any,
    *,
    epsilon: float | Fraction | Decimal,
    columns: Iterable[str] | None = None,
    neighbours: Neighbours = "replace-one",
    rule: QuantileRule | None = None,
    seed: int | None = None,
    separator: str | None = None,
) -> BoundsRequest:
    """Check the arguments of :func:`suggest_bounds`. Of the table, names and types are read."""
    budget = exact_epsilon(epsilon)
    check_choice(neighbours, RELATIONS, "neighbours")
    if rule is not None and (not isinstance(rule, QuantileRule) or len(rule.probs) != 2):
        raise ArgumentError("rule must be a QuantileRule of two quantiles")
    seed = None if seed is None else check_seed(seed)
    listing = select_columns(data, within, columns, separator)
    if len(listing.columns) > _MOST_COLUMNS:
        raise ArgumentError(f"bounds are suggested for at most {_MOST_COLUMNS} columns at a time")
    of_row = budget / listing.rows_per_unit
    by_rows = rule is None and neighbours in PUBLIC_N
    if rule is None and not by_rows:
        rule = default_bounds_rule(of_row / len(listing.columns), None)
    return BoundsRequest(listing, of_row, neighbours, rule, by_rows, seed)


def suggest_bounds(
    data: Any,
    within: Any,
    *,
    epsilon: float | Fraction | Decimal,
    columns: Iterable[str] | None = None,
    neighbours: Neighbours = "replace-one",
    rule: QuantileRule | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    separator: str | None = None,
) -> SuggestedBounds:
    """Release bounds of columns: two private quantiles of each. Costs epsilon in all.

    Parameters
    ----------
    data : path, data frame or array
        The sensitive table.
    within : pair, mapping, Schema or path of a bounds file
        Where values can lie at all, from public knowledge: ``(lo, hi)`` for all columns, ``{"age":
        (0, 200), ...}``, or a schema with wide bounds. The grid has 65535 values between them, so
        bounds that are a thousand times too wide leave 65 values to tell apart; a transform
        (``{"lo": 1, "hi": 1e9, "transform": "log"}``) makes them as fine as one likes.
    epsilon : number
        What all bounds cost together; each column has an equal part.
    columns : names, optional
        For which to suggest bounds: by default those of a mapping, all columns of a schema that
        have bounds, or all columns whose type is a number.
    neighbours : {"replace-one", "add-remove"}
        Whose data the guarantee protects against.
    rule : QuantileRule, optional
        Which two quantiles, and how much wider than they are the bounds; by default a public rule
        of epsilon, the number of columns and, under replace-one, that of rows.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        Where the cost is debited before a value is read; as for :func:`dpsubset.select`.
    separator : {",", ";", "|", "\\t"}, optional
        What separates the columns of a text file, if not what its ending says; a schema says it
        itself.

    Returns
    -------
    SuggestedBounds
    """
    planned = build_bounds_request(
        data, within, epsilon=epsilon, columns=columns, neighbours=neighbours, rule=rule, seed=seed,
        separator=separator,
    )  # fmt: skip
    return release_bounds(planned, data, progress, ledger)


def release_bounds(
    planned: BoundsRequest, data: Any, progress: Progress | None = None, ledger: LedgerLike = None
) -> SuggestedBounds:
    """Debit what a plan costs, read its columns, and draw."""
    check_progress(progress)
    listing = planned.listing
    table = listing.open(data)
    told = type_mismatches_of(listing.columns, listing.kinds)
    warn_of_types(told)
    with debited(ledger, lambda: event_of_bounds(planned)) as debit:
        passes = Passes(progress, planned.neighbours in PUBLIC_N)
        counts, n = count_columns(table, planned.listing.columns, passes)
        counted = planned.with_rows(n)
        released = _drawn(counted, counts, debit.checked(counted.price()))
        return debit.signed(replace(released, column_warnings=told))


def event_of_bounds(planned: BoundsRequest) -> Event:
    """What a ledger notes of a plan, before a value is read."""
    listing, names = planned.listing, [column.name for column in planned.listing.columns]
    return Event.of(
        "suggest_bounds",
        "quantiles",
        planned.price(),
        unit=listing.privacy_unit,
        rows_per_unit=listing.rows_per_unit,
        schema=listing.fingerprint,
        options={"columns": names, "declared": planned.neighbours},
    )


def _drawn(
    planned: BoundsRequest, counts: Iterable[NDArray[np.int64]], guarantee: Guarantee
) -> SuggestedBounds:
    """From here on nothing fails because of a value."""
    wide = planned.listing.columns
    assert planned.rule is not None
    rng = Randomness(SystemSource() if planned.seed is None else SeededSource(planned.seed))
    scales, found = [], []
    for column, of_column in zip(wide, counts, strict=True):
        sampler = QuantileSampler(of_column, planned.rule, planned.share, planned.neighbours)
        scale = ReleasedRange(planned.rule, sampler.draw(rng), column)
        low, high = round_outward(*scale.clipped, column)
        scales.append(scale)
        found.append(with_bounds(column, low, high))
    facts = _facts(planned, found, guarantee)
    return SuggestedBounds(tuple(found), tuple(scales), guarantee, planned.listing.protected, facts)


def _facts(planned: BoundsRequest, found: list[Column], guarantee: Guarantee) -> dict[str, Any]:
    assert guarantee.epsilon is not None
    names = tuple(column.name for column in found)
    paid = PaidBounds(names, guarantee.epsilon, planned.neighbours, guarantee.seeded)
    listing, schema = planned.listing, planned.listing.schema
    if schema is None:
        facts = template_facts(listing.names, listing.kinds, listing.separator)
        response, columns = facts.pop("response"), facts.pop("columns")
        columns |= {column.name: entry_of_column(column) for column in found}
        return {**facts, KEY: [paid.entry()], "response": response, "columns": columns}
    by_name = {column.name: column for column in found}
    narrow = tuple(by_name.get(column.name, column) for column in schema.columns)
    explained = by_name.get(schema.response.name, schema.response)
    paid_for = (*schema.paid, paid)
    return replace(schema, columns=narrow, response=explained, paid=paid_for).to_dict()
