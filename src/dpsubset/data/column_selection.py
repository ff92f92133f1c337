"""Some columns of a table with public bounds, without a response or a model.

For what is released of columns alone, quantiles or means. Names and types of the table's columns
are looked at, values are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, SchemaError, TableError, did_you_mean
from ..schema.bounds_file import check_separator
from ..schema.entries import column as column_of
from ..schema.schema import Column, Schema
from .histograms import reading
from .readers import Table, column_names, open_table, read_schema
from .readers.arrays import check_held, held, is_array
from .type_checks import sorts


@dataclass(frozen=True)
class ColumnSelection:
    """Columns of a table. Public.

    Attributes
    ----------
    columns : tuple of Column
        Those that are asked for, with their bounds.
    schema : Schema, optional
        Where the bounds come from, if from a schema.
    names : tuple of str
        All columns of the table.
    kinds : mapping
        What their types hold, where these are known.
    separator : str, optional
        Of the columns of a text file, where that is declared.
    """

    columns: tuple[Column, ...]
    schema: Schema | None
    names: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None

    @property
    def unit(self) -> str:
        """Whom a guarantee protects, in words."""
        return "one row" if self.schema is None else self.schema.protected

    @property
    def bare_unit(self) -> str:
        """The unit alone, without its rows."""
        return "one row" if self.schema is None else self.schema.unit

    @property
    def fingerprint(self) -> str:
        """Of the schema, or of the one that these columns make."""
        return (self.reading if self.schema is None else self.schema).fingerprint()

    @property
    def rows_per_unit(self) -> int:
        """Of the schema; 1 without one."""
        return 1 if self.schema is None else self.schema.rows_per_unit

    @property
    def reading(self) -> Schema:
        """What makes a source read these columns; see `histograms.reading`."""
        return replace(reading(self.columns, self._beside()), separator=self.separator)

    def open(self, data: Any) -> Table:
        """The table, with these columns alone."""
        if not is_array(data):
            return open_table(data, self.reading)
        places = [self.names.index(column.name) for column in self.columns]
        x = held(data, "the table")[:, places]
        # The schema has another column before a single one: its own copy will do.
        return open_table(x[:, :-1] if len(places) > 1 else x, self.reading, x[:, -1])

    def _beside(self) -> Column:
        """Another column of the table, which a schema needs beside a single one; it is not read."""
        first = self.columns[0].name
        if self.schema is not None:
            known = (*self.schema.features, self.schema.response)
            other = next(column for column in known if column.name != first)
            return other if other.labels is None else Column(other.name, levels=other.labels)
        others = [name for name in self.names if name != first]
        # Of a type that can be read as something, though it is not.
        plain = [name for name in others if self.kinds.get(name) != "other"]
        name = (*plain, *others, f"beside {first}")[0]
        if self.kinds.get(name) == "date":
            return Column(name, 0, 1, kind="date")
        return Column(name, 0, 1) if not self.kinds else Column(name, levels=("0", "1"))


def select_columns(
    data: Any, within: Any, asked: Any = None, separator: str | None = None
) -> ColumnSelection:
    """Which columns, with which bounds.

    Parameters
    ----------
    data : path, data frame or array
        Columns of an array are called x0, x1, ...
    within : pair, mapping, Schema or path of a bounds file
        Bounds: ``(lo, hi)`` for all, ``{"age": (0, 110)}`` by name, or a schema.
    asked : names, optional
        Which columns; by default those of the mapping or the schema that have bounds, or all whose
        type is a number.
    separator : str, optional
        Of the columns of a text file; a schema says it itself.
    """
    chosen = None if asked is None else _listed(asked)
    check_held(data, "the table")
    schema = None
    if isinstance(within, (str, Path)):
        schema = read_schema(within, data)
    elif isinstance(within, Schema):
        schema = within
    if schema is not None and separator is not None:
        raise ArgumentError("separator goes with bounds; a schema declares it itself")
    separator = check_separator(separator) if schema is None else schema.separator
    names, kinds = _named(data, separator)
    if schema is not None:
        columns = _of_schema(schema, chosen)
    else:
        columns = _of_bounds(within, chosen, names, kinds)
    if not columns:
        raise ArgumentError("there is no column of numbers or dates")
    return ColumnSelection(columns, schema, names, kinds, separator)


def _named(data: Any, separator: str | None) -> tuple[tuple[str, ...], Mapping[str, str]]:
    if not is_array(data):
        return tuple(column_names(data, separator)), sorts(data)
    array = held(data, "the table")
    if array.ndim != 2:
        raise TableError("an array must have two dimensions: rows and columns")
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    return names, dict.fromkeys(names, "number")


def _listed(asked: Any) -> list[str]:
    names = [asked] if isinstance(asked, str) else list(asked)
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
            raise SchemaError(f"column {name!r} is not declared as a number or date with bounds")
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
    found = tuple(_with_bounds(name, declared[name]) for name in chosen)
    if other := [column.name for column in found if not _bounded(column)]:
        raise ArgumentError(f"column {other[0]!r}: within must be bounds, lo and hi")
    return found


def _with_bounds(name: str, entry: Any) -> Column:
    if isinstance(entry, Mapping):
        return column_of(name, entry)
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        return Column(name, *entry)
    raise ArgumentError("within must be a pair (lo, hi), a mapping, a Schema or a bounds file")
