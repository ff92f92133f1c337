"""suggest_bounds: bounds of columns from private quantiles, with their price.

Bounds must not be computed from the rows without noise. Where public knowledge gives only wide
bounds, a part of the budget may go to two quantiles of each column, drawn by the exact mechanism of
`privacy.quantiles` within the wide bounds. The epsilons of the columns add up: a row is in all of
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_seed
from ..data.column_selection import ColumnSelection, select_columns
from ..data.histograms import count_columns
from ..data.readers import Progress, Table
from ..data.type_checks import type_mismatches_of
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..privacy.bound_quantiles import default_bounds_rule, round_outward, with_bounds
from ..privacy.guarantee import Guarantee
from ..privacy.quantiles import QuantileRule, QuantileSampler
from ..privacy.random import Randomness
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from ..release.bounds import SuggestedBounds
from ..release.response_range import ReleasedRange
from ..schema.bounds_file import template_facts
from ..schema.entries import entry_of_column
from ..schema.provenance import KEY, PaidBounds
from ..schema.schema import Column
from .driver import Execution, Request, make_release
from .problem_spec import with_keywords_of
from .request import exact_epsilon

__all__ = ["BoundsRequest", "build_bounds_request", "draw_bounds", "suggest_bounds"]

#: A histogram takes half a megabyte, and so many columns leave each next to nothing of epsilon.
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class BoundsRequest(Request[Table, SuggestedBounds]):
    """Bounds to be released, and their price. Public; no value has been read.

    Attributes
    ----------
    selection : ColumnSelection
        The columns, with the wide bounds that were declared.
    epsilon : Fraction
        The budget of all of them together, for one row.
    neighbours : {"replace-one", "add-remove"}
    seed : int, optional
    rule : QuantileRule
        Which quantiles are released of each column.
    rule_by_rows : bool
        Whether the rule follows the public number of rows. Nothing is promised to tables with
        another number then.
    """

    selection: ColumnSelection
    epsilon: Fraction
    neighbours: Neighbours
    seed: int | None
    rule: QuantileRule
    rule_by_rows: bool

    @property
    def n_is_public(self) -> bool:
        return self.neighbours in PUBLIC_N

    @property
    def column_epsilon(self) -> Fraction:
        """The budget of one column, for one row."""
        return self.epsilon / len(self.selection.columns)

    def with_rows(self, n: int | None) -> BoundsRequest:
        if not self.rule_by_rows or n is None:
            return self
        rule = default_bounds_rule(self.column_epsilon, n)
        return self if rule == self.rule else replace(self, rule=rule)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What it costs a unit; no rule costs more or less than another under these neighbours."""
        seeded = self.seed is not None
        of_column = self.rule.guarantee(self.column_epsilon, self.neighbours, seeded=seeded)
        if self.rule_by_rows:
            of_column = of_column.limited_to(PUBLIC_N)
        parts = {f"bounds of {column.name}": of_column for column in self.selection.columns}
        return Guarantee.compose(parts).group_privacy(self.selection.rows_per_unit)

    def open(self, data: Any, y: Any = None) -> Table:
        return self.selection.open(data)

    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        return type_mismatches_of(self.selection.columns, self.selection.kinds)

    def describe(self, guarantee: Guarantee) -> Event:
        selection = self.selection
        names = [column.name for column in selection.columns]
        return Event.of(
            "suggest_bounds",
            "quantiles",
            guarantee,
            unit=selection.privacy_unit,
            rows_per_unit=selection.rows_per_unit,
            schema=selection.fingerprint,
            options={"columns": names, "declared": self.neighbours},
        )

    def run(self, execution: Execution[Table]) -> SuggestedBounds:
        """Count the values of each column, and draw its quantiles."""
        counts, n = count_columns(execution.table, self.selection.columns, execution.passes)
        request = self.with_rows(n)
        guarantee = execution.check(request.guarantee)
        narrow, ranges = draw_bounds(
            request.selection.columns, counts, request.rule, request.column_epsilon,
            request.neighbours, execution.rng,
        )  # fmt: skip
        facts = _facts(request, narrow, guarantee)
        return SuggestedBounds(
            narrow, ranges, guarantee, self.selection.protected, facts,
            column_warnings=execution.column_warnings,
        )  # fmt: skip


def draw_bounds(
    columns: Iterable[Column],
    counts: Iterable[Any],
    rule: QuantileRule,
    epsilon: Fraction,
    neighbours: Neighbours,
    rng: Randomness,
) -> tuple[tuple[Column, ...], tuple[ReleasedRange, ...]]:
    """Draw quantiles of columns from their histograms, at this price for one column and one row.

    Returns the columns with the bounds that follow, and what was released of each.
    """
    narrow, ranges = [], []
    for column, of_column in zip(columns, counts, strict=True):
        drawn = QuantileSampler(of_column, rule, epsilon, neighbours).draw(rng)
        released = ReleasedRange(rule, drawn, column)
        narrow.append(with_bounds(column, *round_outward(*released.clipped, column)))
        ranges.append(released)
    return tuple(narrow), tuple(ranges)


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
    selection = select_columns(data, within, columns, separator)
    if len(selection.columns) > _MOST_COLUMNS:
        raise ArgumentError(f"bounds are suggested for at most {_MOST_COLUMNS} columns at a time")
    row_epsilon = budget / selection.rows_per_unit
    by_rows = rule is None and neighbours in PUBLIC_N
    if rule is None:
        rule = default_bounds_rule(row_epsilon / len(selection.columns), None)
    return BoundsRequest(selection, row_epsilon, neighbours, seed, rule, by_rows)


@with_keywords_of()
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
    within : pair, mapping, Schema, path of a bounds file or dict of the same form
        Where values can lie at all, from public knowledge: ``(lo, hi)`` for all columns, ``{"age":
        (0, 200), ...}``, or a schema with wide bounds. The grid has 65535 values between them, so
        bounds that are a thousand times too wide leave 65 values to choose from. A transform
        (``{"lo": 1, "hi": 1e9, "transform": "log"}``) gives small values a finer grid.
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
        The bounds, what they cost, and the contents of a bounds file.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the ledger has no room for the release, or cannot be used.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.random.default_rng(0).normal(50, 5, (10_000, 2))
    >>> bounds = dps.suggest_bounds(X, (0, 1000), epsilon=1)
    >>> [column.name for column in bounds.columns], bounds.guarantee.epsilon
    (['x0', 'x1'], Fraction(1, 1))
    """
    request = build_bounds_request(
        data, within, epsilon=epsilon, columns=columns, neighbours=neighbours, rule=rule, seed=seed,
        separator=separator,
    )  # fmt: skip
    return make_release(request, data, progress=progress, ledger=ledger)


def _facts(
    request: BoundsRequest, narrow: Iterable[Column], guarantee: Guarantee
) -> dict[str, Any]:
    """The contents of a bounds file with the released bounds and their price."""
    assert guarantee.epsilon is not None
    by_name = {column.name: column for column in narrow}
    paid = PaidBounds(tuple(by_name), guarantee.epsilon, request.neighbours, guarantee.seeded)
    selection, schema = request.selection, request.selection.schema
    if schema is None:
        facts = template_facts(selection.names, selection.kinds, selection.separator)
        response, columns = facts.pop("response"), facts.pop("columns")
        columns |= {name: entry_of_column(column) for name, column in by_name.items()}
        return {**facts, KEY: [paid.entry()], "response": response, "columns": columns}
    columns = tuple(by_name.get(column.name, column) for column in schema.columns)
    response = by_name.get(schema.response.name, schema.response)
    return replace(schema, columns=columns, response=response, paid=(*schema.paid, paid)).to_dict()
