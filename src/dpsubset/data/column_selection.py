"""Selected columns of a table with public bounds, for releases about columns: quantiles and means.

Names and types of the table's columns are looked at; values are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, SchemaError, TableError, did_you_mean
from ..schema.bounds_file import check_separator
from ..schema.entries import column_of_entry
from ..schema.schema import Column, FeatureSchema, Schema
from .histograms import by_itself
from .readers import Table, column_names, open_table, read_schema
from .readers.arrays import check_held, held, is_array
from .type_checks import column_kinds


@dataclass(frozen=True)
class ColumnSelection:
    """Columns of a table with their bounds. Public."""

    #: The selected columns.
    columns: tuple[Column, ...]
    #: The source of the bounds, if it was a schema.
    schema: Schema | None
    #: All columns of the table.
    names: tuple[str, ...]
    #: What the types of the columns hold, where these are known.
    kinds: Mapping[str, str] = field(default_factory=dict)
    #: Declared column separator of a text file.
    separator: str | None = None

    @property
    def protected(self) -> str:
        """Whom a guarantee protects, in words."""
        return "one row" if self.schema is None else self.schema.protected

    @property
    def privacy_unit(self) -> str:
        """The privacy unit, without its number of rows."""
        return "one row" if self.schema is None else self.schema.privacy_unit

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the schema, or of the columns if there is none."""
        return (self.schema or self.reading).fingerprint()

    @property
    def rows_per_unit(self) -> int:
        """Largest number of rows of a privacy unit; 1 without a schema."""
        return 1 if self.schema is None else self.schema.rows_per_unit

    @property
    def reading(self) -> FeatureSchema:
        """The schema with which a table is opened to read these columns alone."""
        return FeatureSchema(
            tuple(map(by_itself, self.columns)),
            "middle" if self.schema is None else self.schema.bad_cells,
            self.separator,
        )

    def open(self, data: Any) -> Table:
        if is_array(data):
            places = [self.names.index(column.name) for column in self.columns]
            data = held(data, "the table")[:, places]
        return open_table(data, self.reading)


def select_columns(
    data: Any, within: Any, names: Any = None, separator: str | None = None
) -> ColumnSelection:
    """Select columns and find their bounds.

    ``within`` has the bounds: ``(lo, hi)`` for all, ``{"age": (0, 110)}`` by name, a schema, the
    path of a bounds file or a dict of its form. ``names`` are by default those that have
    bounds there, or all whose type is a number. Columns of an array are called x0, x1, ...
    ``separator`` is that of a text file; a schema declares its own.
    """
    wanted = None if names is None else _checked_names(names)
    check_held(data, "the table")
    schema = read_schema(within, data) if _is_schema(within) else None
    if schema is not None and separator is not None:
        raise ArgumentError("separator goes with bounds; a schema declares it itself")
    separator = check_separator(separator) if schema is None else schema.separator
    present, kinds = _names_and_kinds(data, separator)
    if schema is not None:
        columns = _columns_of_schema(schema, wanted)
    else:
        columns = _columns_of_bounds(within, wanted, present, kinds)
    if not columns:
        raise ArgumentError("there is no column of numbers or dates")
    return ColumnSelection(columns, schema, present, kinds, separator)


def _is_schema(within: Any) -> bool:
    """Whether bounds are a schema; a mapping is one if it has the keys of a bounds file."""
    if not isinstance(within, Mapping):
        return isinstance(within, (Schema, str, Path))
    return "columns" in within and "name" in (_mapping(within.get("response")))


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _names_and_kinds(data: Any, separator: str | None) -> tuple[tuple[str, ...], Mapping[str, str]]:
    if not is_array(data):
        return tuple(column_names(data, separator)), column_kinds(data)
    array = held(data, "the table")
    if array.ndim != 2:
        raise TableError("an array must have two dimensions: rows and columns")
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    return names, dict.fromkeys(names, "number")


def _checked_names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError("columns must be names, one or more")
    if len(set(names)) < len(names):
        raise ArgumentError("columns names one column twice, and its cost would count twice")
    return names


def _has_bounds(column: Column) -> bool:
    return (
        column.role != "ignored"
        and column.levels is None
        and column.labels is None
        and column.kind != "boolean"
    )


def _columns_of_schema(schema: Schema, wanted: list[str] | None) -> tuple[Column, ...]:
    known = {column.name: column for column in (*schema.columns, schema.response)}
    if wanted is None:
        return tuple(column for column in known.values() if _has_bounds(column))
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known)
            raise SchemaError(f"the schema declares no column {name!r}{hint}")
        if not _has_bounds(known[name]):
            raise SchemaError(f"column {name!r} is not declared as a number or date with bounds")
    return tuple(known[name] for name in wanted)


def _columns_of_bounds(
    within: Any, wanted: list[str] | None, names: tuple[str, ...], kinds: Mapping[str, str]
) -> tuple[Column, ...]:
    if isinstance(within, Mapping):
        declared = {str(name): entry for name, entry in within.items()}
        if wanted is not None and (lacking := [name for name in wanted if name not in declared]):
            raise ArgumentError(f"within has no bounds of the column {lacking[0]!r}")
    else:
        if wanted is None and not kinds:
            raise ArgumentError(
                "this table has no types, so numbers cannot be distinguished from text: name the "
                "columns, since each of them takes a part of epsilon"
            )
        chosen = wanted or [name for name in names if kinds.get(name) == "number"]
        declared = dict.fromkeys(chosen, within)
    for name in declared:
        if name not in names:
            raise TableError(f"the table has no column {name!r}{did_you_mean(name, declared)}")
    chosen = list(declared) if wanted is None else wanted
    found = tuple(_with_bounds(name, declared[name]) for name in chosen)
    if other := [column.name for column in found if not _has_bounds(column)]:
        raise ArgumentError(f"column {other[0]!r}: within must be bounds, lo and hi")
    return found


def _with_bounds(name: str, entry: Any) -> Column:
    if isinstance(entry, Mapping):
        return column_of_entry(name, entry)
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        return Column(name, *entry)
    raise ArgumentError("within must be a pair (lo, hi), a mapping, a Schema or a bounds file")
