"""What a schema declares of a column, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..schema.dates import iso_text
from ..schema.schema import Column

#: Levels of a column that a statement lists; the schema's fingerprint stands for all.
MOST_LEVELS = 20


def ends(column: Column) -> list[str]:
    """Its bounds or labels as somebody wrote them."""
    return _written(column, column.span if column.labels is None else column.labels)


def also(column: Column) -> str:
    """What is declared of a column beside its bounds or labels."""
    parts = []
    if column.levels is not None:
        shown = ", ".join(map(str, column.levels[:MOST_LEVELS]))
        parts.append(f"levels {shown}" + ", ..." * bool(column.levels[MOST_LEVELS:]))
    if column.transform is not None:
        parts.append({"log": "by its logarithm", "sqrt": "by its square root"}[column.transform])
    if column.format is not None:
        parts.append(f"text of cells written like {column.format}")
    if column.group is not None:
        parts.append(f"part of the group {column.group}")
    if column.missing is not None:
        codes, rule = column.missing.codes, column.missing.rule
        if codes:
            parts.append(f"missing if {', '.join(_written(column, codes))}")
        if rule == "indicator":
            parts.append("a column beside it says where it is missing")
        elif rule == "value":
            (value,) = _written(column, [column.missing.value])
            parts.append(f"missing counts as {value}")
        elif rule == "drop":
            parts.append("a row where it is missing contributes nothing")
        elif rule is not None and column.labels is None:
            parts.append(f"missing counts as the {rule}")
    if column.levels is not None and (column.missing is None or column.missing.rule is None):
        parts.append("none of them where it is missing")
    return "; ".join(parts)


def _written(column: Column, values: Iterable[Any]) -> list[str]:
    """Values of a column as somebody wrote them: dates as dates."""
    if column.kind == "date":
        values = [iso_text(v) if isinstance(v, (int, float)) else v for v in values]
    return [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
