"""What a schema declares of its columns, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...schema.dates import iso_text as date_or_number
from ...schema.schema import Column, Schema
from .escape import escape

#: Levels of a column, and columns, that a statement for people lists. The schema's fingerprint
#: covers all of them.
MAX_LEVELS, MAX_COLUMNS = 20, 50


@dataclass(frozen=True)
class DeclaredColumn:
    """A column with its role, and who answers for its bounds."""

    column: Column
    role: str
    source: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        low, high = bounds_of(self.column)
        return {
            "name": self.column.name,
            "role": self.role,
            "low": low or None,
            "high": high or None,
            "also_declared": other_facts_of(self.column) or None,
            "source": self.source,
        }


def columns_with_sources(schema: Schema) -> tuple[DeclaredColumn, ...]:
    """List all columns of a schema, the response last."""
    paid = {column: each for each in schema.paid for column in each.columns}

    def source(column: Column) -> str:
        if (each := paid.get(column.name)) is None:
            return "given by the caller"
        if each.seeded:
            return "according to the schema, released before WITH A SEED, hence not privately"
        return (
            f"according to the schema, released before for epsilon = {each.epsilon} under "
            f"{each.neighbours}"
        )

    roles = [*((column, "feature") for column in schema.features), (schema.response, "response")]
    return tuple(DeclaredColumn(column, role, source(column)) for column, role in roles)


def columns_table(schema: Schema) -> str:
    """Write a table of what was declared, with a last column only where it has entries."""
    columns = _shown_columns(schema)
    rows = [[column.name, *bounds_of(column), other_facts_of(column)] for column in columns]
    head = ["variable", "low", "high", "also declared"]
    if not declares_more(schema):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return markdown_table(head, rows)


def markdown_table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table; its cells are untrusted text."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *(map(escape, row) for row in rows))]
    return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]])


def declares_more(schema: Schema) -> bool:
    """Whether anything but bounds was declared of a listed column."""
    return any(map(other_facts_of, _shown_columns(schema)))


def _shown_columns(schema: Schema) -> list[Column]:
    return [*schema.features[:MAX_COLUMNS], schema.response]


def bounds_of(column: Column) -> list[str]:
    """Write the bounds or labels of a column as its author did; empty texts for a category."""
    if column.levels is not None:
        return ["", ""]
    return _as_declared(column, column.span if column.labels is None else column.labels)


def other_facts_of(column: Column) -> str:
    """Describe everything that is declared of a column besides its bounds or labels."""
    parts = []
    if column.levels is not None:
        levels = ", ".join(map(str, column.levels[:MAX_LEVELS]))
        parts.append(f"levels {levels}" + ", ..." * bool(column.levels[MAX_LEVELS:]))
    if column.transform is not None:
        parts.append({"log": "by its logarithm", "sqrt": "by its square root"}[column.transform])
    if column.format is not None:
        parts.append(f"text of cells written like {column.format}")
    if column.group is not None:
        parts.append(f"part of the group {column.group}")
    if column.missing is not None:
        codes, rule = column.missing.codes, column.missing.rule
        if codes:
            parts.append(f"missing if {', '.join(_as_declared(column, codes))}")
        if rule == "indicator":
            parts.append("an added column indicates where it is missing")
        elif rule == "value":
            (value,) = _as_declared(column, [column.missing.value])
            parts.append(f"missing counts as {value}")
        elif rule == "drop":
            parts.append("a row where it is missing contributes nothing")
        elif rule is not None and column.labels is None:
            parts.append(f"missing counts as the {rule}")
    if column.levels is not None and (column.missing is None or column.missing.rule is None):
        parts.append("none of them where it is missing")
    return "; ".join(parts)


def _as_declared(column: Column, values: Iterable[Any]) -> list[str]:
    """Write values of a column as its author did: dates as dates."""
    if column.kind == "date":
        values = [date_or_number(v) if isinstance(v, (int, float)) else v for v in values]
    return [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
