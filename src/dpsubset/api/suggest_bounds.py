"""suggest_bounds: bounds of columns from private quantiles, and their cost.

Bounds must not be computed from the rows without noise. Where public knowledge gives only wide
bounds, a part of the budget can pay for two quantiles of each column, which `privacy.quantiles`
draws within the wide bounds. The epsilons of the columns add up, because every row has a cell in
each of them.
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

#: A histogram takes half a megabyte, and with so many columns each has a very small epsilon.
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class BoundsRequest(Request[Table, SuggestedBounds]):
    """A request for bounds of columns. Public."""

    #: The columns, with the declared wide bounds.
    selection: ColumnSelection
    #: The budget of all of them together, for one row.
    epsilon: Fraction
    neighbours: Neighbours
    seed: int | None
    #: Which quantiles of each column are released.
    rule: QuantileRule
    #: Whether the rule depends on the public number of rows. The guarantee then does not cover
    #: tables with different numbers of rows.
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
        """The guarantee for one unit. All rules cost the same under these neighbours."""
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
    """Draw quantiles of columns from their histograms, at this epsilon for one column and one row.

    Returns the columns with the resulting bounds, and the released quantiles of each.
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
    """Check the arguments of :func:`suggest_bounds`. Of the table, only names and types are
    read.
    """
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
    """Release bounds of columns from two private quantiles of each. Costs epsilon in total.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame or array
        The sensitive table.
    within : pair, mapping, Schema, path of a bounds file or dict of the same form
        The possible range of values, from public knowledge: ``(lo, hi)`` for all columns, ``{"age":
        (0, 200), ...}``, or a schema with wide bounds. The grid has 65535 values between them, so
        bounds that are a thousand times too wide leave 65 values to choose from. A transform
        (``{"lo": 1, "hi": 1e9, "transform": "log"}``) gives small values a finer grid.
    epsilon : number
        The privacy budget of all bounds together, divided equally among the columns.
    columns : names, optional
        The columns for which bounds are released: by default those of a mapping, all columns of a
        schema that have bounds, or all columns with a numeric type.
    neighbours : {"replace-one", "add-remove"}
        The neighbour relation, as for :func:`dpsubset.select`.
    rule : QuantileRule, optional
        Which two quantiles are released, and by which factor the bounds are wider than their
        distance. The default is a public rule, which depends on epsilon, the number of columns and,
        under replace-one, the number of rows.
    seed : int, optional
        For tests only: with a seed the draw is reproducible and therefore not private.
    progress : callable, optional
        Called with the fraction of the work done so far; as for :func:`dpsubset.select`.
    ledger : path, URL or Ledger, optional
        The ledger to which the cost is debited before a value is read; as for
        :func:`dpsubset.select`.
    separator : {",", ";", "|", "\\t"}, optional
        The column separator of a text file, if its extension does not imply it. A schema
        declares its own separator.

    Returns
    -------
    SuggestedBounds
        The bounds, their cost, and the contents of a bounds file.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the release, or the ledger cannot be used.

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
    """Return the contents of a bounds file with the released bounds and their cost."""
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
