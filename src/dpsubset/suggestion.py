"""suggest_bounds: bounds of columns from private quantiles, paid for and said so.

Bounds must not be read off the rows. Where nobody knows better than "somewhere between 0 and a
million", a part of the budget may go to two quantiles of each column, by the exact mechanism of
`privacy.scale` within the wide bounds. Epsilons of the columns add up: a row is in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from .arguments import choice, seed_number
from .errors import ArgumentError, SchemaError, TableError, did_you_mean
from .privacy.guarantee import PUBLIC_N, RELATIONS, Guarantee
from .privacy.random import Randomness, SeededSource, SystemSource
from .privacy.scale import ScaleRule, ScaleSampler
from .public.bounds_file import blank
from .public.entries import column as column_of
from .public.entries import entry as entry_of
from .public.plan import exact_epsilon
from .public.problem import Neighbours
from .public.provenance import KEY, PaidBounds
from .public.schema import Column, Schema
from .public.suggested import readable, usual_rule
from .release.bounds import SuggestedBounds
from .release.scale import ReleasedScale
from .table.histograms import count_columns, reading
from .table.sources import Progress, column_names, open_table, read_schema
from .table.types import sorts

__all__ = ["BoundsPlan", "plan_bounds", "suggest_bounds"]

#: A histogram takes half a megabyte, and so many columns leave each next to nothing of epsilon.
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class BoundsPlan:
    """Which bounds will be released, and at what price. Public; no value has been read.

    Attributes
    ----------
    columns : tuple of Column
        Those to be released, with the wide bounds that were declared.
    epsilon : Fraction
        Of all of them together, for one row.
    rule : ScaleRule, optional
        Which quantiles; None until the number of rows is known, if that is public.
    by_rows : bool
        Whether that number decides on the rule: then nothing is promised to tables that differ in
        it.
    schema : Schema, optional
        Where the wide bounds come from; else ``names`` are the columns of the table.
    """

    columns: tuple[Column, ...]
    epsilon: Fraction
    neighbours: Neighbours
    rule: ScaleRule | None
    by_rows: bool
    schema: Schema | None
    names: tuple[str, ...]
    kinds: Mapping[str, str]
    unit: str
    rows_per_unit: int
    seed: int | None

    @property
    def share(self) -> Fraction:
        """Of one column, for one row."""
        return self.epsilon / len(self.columns)

    def with_rows(self, n: int | None) -> BoundsPlan:
        """The same for a table of n rows, where their number is public."""
        if self.rule is not None or n is None:
            return self
        return replace(self, rule=usual_rule(self.share, n))

    def price(self) -> Guarantee:
        """What it costs a unit; no rule costs more or less than another under these neighbours."""
        rule = self.rule or usual_rule(self.share, None)
        of_column = rule.guarantee(self.share, self.neighbours, seeded=self.seed is not None)
        if self.by_rows:
            cost = of_column.costs[self.neighbours]
            of_column = replace(of_column, costs={self.neighbours: cost})
        parts = {f"bounds of {column.name}": of_column for column in self.columns}
        return Guarantee.of_parts(parts).of_rows(self.rows_per_unit)


def plan_bounds(
    data: Any,
    within: Any,
    *,
    epsilon: float | Fraction | Decimal,
    columns: Iterable[str] | None = None,
    neighbours: Neighbours = "replace-one",
    rule: ScaleRule | None = None,
    seed: int | None = None,
) -> BoundsPlan:
    """Check the arguments of :func:`suggest_bounds`. Of the table, names and types are read."""
    budget = exact_epsilon(epsilon)
    choice(neighbours, RELATIONS, "neighbours")
    if rule is not None and (not isinstance(rule, ScaleRule) or len(rule.shares) != 2):
        raise ArgumentError("rule must be a ScaleRule of two quantiles")
    seed = None if seed is None else seed_number(seed)
    asked = None if columns is None else _listed(columns)
    names, kinds = tuple(column_names(data)), sorts(data)
    schema = None
    if isinstance(within, (str, Path)):
        schema = read_schema(within, data)
    elif isinstance(within, Schema):
        schema = within
    if schema is not None:
        wide = _of_schema(schema, asked)
    else:
        wide = _of_bounds(within, asked, names, kinds)
    if not wide:
        raise ArgumentError("there is no column of numbers or dates to suggest bounds for")
    if len(wide) > _MOST_COLUMNS:
        raise ArgumentError(f"bounds are suggested for at most {_MOST_COLUMNS} columns at a time")
    rows = 1 if schema is None else schema.rows_per_unit
    by_rows = rule is None and neighbours in PUBLIC_N
    if rule is None and not by_rows:
        rule = usual_rule(budget / rows / len(wide), None)
    return BoundsPlan(
        wide, budget / rows, neighbours, rule, by_rows, schema, names, kinds,
        unit="one row" if schema is None else schema.protected, rows_per_unit=rows, seed=seed,
    )  # fmt: skip


def suggest_bounds(
    data: Any,
    within: Any,
    *,
    epsilon: float | Fraction | Decimal,
    columns: Iterable[str] | None = None,
    neighbours: Neighbours = "replace-one",
    rule: ScaleRule | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> SuggestedBounds:
    """Release bounds of columns: two private quantiles of each. Costs epsilon in all.

    Parameters
    ----------
    data : path or data frame
        The sensitive table, with names.
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
    rule : ScaleRule, optional
        Which two quantiles, and how much wider than they are the bounds; by default a public rule
        of epsilon, the number of columns and, under replace-one, that of rows.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private.
    progress : callable, optional
        Called with the fraction of the table read so far.

    Returns
    -------
    SuggestedBounds
    """
    planned = plan_bounds(
        data, within, epsilon=epsilon, columns=columns, neighbours=neighbours, rule=rule, seed=seed
    )
    return release_bounds(planned, data, progress)


def release_bounds(
    planned: BoundsPlan, data: Any, progress: Progress | None = None
) -> SuggestedBounds:
    """Read the columns of a plan, and draw. From here on nothing fails because of a value."""
    wide = planned.columns
    table = open_table(data, reading(wide, _beside(planned)))
    counts, n = count_columns(table, wide, progress)
    planned = planned.with_rows(n)
    assert planned.rule is not None
    guarantee = planned.price()
    rng = Randomness(SystemSource() if planned.seed is None else SeededSource(planned.seed))
    scales, found = [], []
    for column, of_column in zip(wide, counts, strict=True):
        sampler = ScaleSampler(of_column, planned.rule, planned.share, planned.neighbours)
        scale = ReleasedScale(planned.rule, sampler.draw(rng), column)
        low, high = readable(*scale.clipped, column)
        scales.append(scale)
        found.append(replace(column, lo=low, hi=high, missing=_kept_missing(column, low, high)))
    facts = _facts(planned, found, guarantee)
    return SuggestedBounds(tuple(found), tuple(scales), guarantee, planned.unit, facts)


def _listed(columns: Any) -> list[str]:
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError("columns must be names, one or more")
    if len(set(names)) < len(names):
        raise ArgumentError("columns names one of them twice: it would be paid for twice")
    return names


def _bounded(column: Column) -> bool:
    return (
        column.role != "ignored"
        and column.levels is None
        and column.labels is None
        and column.kind != "boolean"
    )


def _of_schema(schema: Schema, asked: list[str] | None) -> tuple[Column, ...]:
    known = {column.name: column for column in (*schema.columns, schema.response)}
    if asked is None:
        return tuple(column for column in known.values() if _bounded(column))
    for name in asked:
        if name not in known:
            hint = did_you_mean(name, known)
            raise SchemaError(f"the schema declares no column {name!r}{hint}")
        if not _bounded(known[name]):
            raise SchemaError(f"column {name!r} has no bounds that could be suggested")
    return tuple(known[name] for name in asked)


def _of_bounds(
    within: Any, asked: list[str] | None, names: tuple[str, ...], kinds: Mapping[str, str]
) -> tuple[Column, ...]:
    if isinstance(within, Mapping):
        declared = {str(name): entry for name, entry in within.items()}
        if asked is not None and (lacking := [name for name in asked if name not in declared]):
            raise ArgumentError(f"within says nothing of the column {lacking[0]!r}")
    else:
        if asked is None and not kinds:
            raise ArgumentError(
                "this table has no types that tell numbers from text: name the columns, since each "
                "of them costs a part of epsilon"
            )
        chosen = asked or [name for name in names if kinds.get(name) == "number"]
        declared = dict.fromkeys(chosen, within)
    for name in declared:
        if name not in names:
            raise TableError(f"the table has no column {name!r}{did_you_mean(name, declared)}")
    chosen = list(declared) if asked is None else asked
    found = tuple(_wide(name, declared[name]) for name in chosen)
    if other := [column.name for column in found if not _bounded(column)]:
        raise ArgumentError(f"column {other[0]!r}: within must be bounds, lo and hi")
    return found


def _wide(name: str, entry: Any) -> Column:
    if isinstance(entry, Mapping):
        return column_of(name, entry)
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        return Column(name, *entry)
    raise ArgumentError("within must be a pair (lo, hi), a mapping, a Schema or a bounds file")


def _beside(planned: BoundsPlan) -> Column:
    """Another column of the table, which a schema needs beside a single one; it is not read."""
    first = planned.columns[0].name
    if planned.schema is not None:
        known = (*planned.schema.features, planned.schema.response)
        other = next(column for column in known if column.name != first)
        return other if other.labels is None else Column(other.name, levels=other.labels)
    others = [name for name in planned.names if name != first]
    if not others:
        raise TableError("a table of one column has nothing to select from")
    # Of a type that can be read as something, though it is not.
    plain = [name for name in others if planned.kinds.get(name) != "other"]
    name = (plain or others)[0]
    if planned.kinds.get(name) == "date":
        return Column(name, 0, 1, kind="date")
    return Column(name, levels=("0", "1"))


def _kept_missing(column: Column, low: float, high: float) -> Any:
    """What stands for missing cells must lie within narrower bounds, too."""
    missing = column.missing
    if missing is None or missing.rule != "value" or not isinstance(missing.value, (int, float)):
        return missing
    return replace(missing, value=min(max(float(missing.value), low), high))


def _facts(planned: BoundsPlan, found: list[Column], guarantee: Guarantee) -> dict[str, Any]:
    assert guarantee.epsilon is not None
    names = tuple(column.name for column in found)
    paid = PaidBounds(names, guarantee.epsilon, planned.neighbours, guarantee.seeded)
    schema = planned.schema
    if schema is None:
        facts = blank(planned.names, planned.kinds)
        response, columns = facts.pop("response"), facts.pop("columns")
        columns |= {column.name: entry_of(column) for column in found}
        return {**facts, KEY: [paid.entry()], "response": response, "columns": columns}
    by_name = {column.name: column for column in found}
    narrow = tuple(by_name.get(column.name, column) for column in schema.columns)
    explained = by_name.get(schema.response.name, schema.response)
    paid_for = (*schema.paid, paid)
    return replace(schema, columns=narrow, response=explained, paid=paid_for).to_dict()
