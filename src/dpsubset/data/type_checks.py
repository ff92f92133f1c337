"""Compares the storage types of a table's columns with a schema.

Types of columns are public, as their names are; no value is read. Text files and columns of Python
objects have no types.

Readers refuse a table with a column none of whose cells can be read as declared (`Reader.takes` in
`readers.cells`). This module finds columns of which only some cells can be read, for a warning.
Both depend on types and schema alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.errors import ColumnTypeWarning
from ..base.text import escape_for_terminal
from ..schema.labels import Label, canonical
from ..schema.schema import Column, Schema
from .readers.cells import reader

if TYPE_CHECKING:
    import pyarrow as pa

    from .readers.parts import Part

#: What a storage type holds, as far as a schema distinguishes it.
ColumnKind = Literal["number", "boolean", "text", "category", "date", "other"]

_DESCRIPTIONS = {
    "number": "a column of numbers",
    "boolean": "a column of booleans",
    "text": "text",
    "category": "a category",
    "date": "a column of dates",
    "other": "neither numbers nor text nor dates",
}


def column_kinds(data: Any) -> dict[str, ColumnKind]:
    """What each column of a file or frame holds, in order, if its type says so.

    Of several files, the columns that all of them have; a column of different types counts as text.
    Empty for tables without types: text files and arrays.
    """
    from .readers.frames import is_frame
    from .readers.parts import parts_of

    parts = parts_of(data)
    if parts is not None:
        return _common_kinds([_types_of_part(part) for part in parts])
    return _kinds_of_frame(data) if is_frame(data) else {}


def response_kind(y: Any) -> str | None:
    """What the type of a response y says it holds: "boolean", "integer", "float" or "text".

    None for lists, objects and categories.
    """
    import narwhals.stable.v2 as nw

    from .readers.arrays import is_array, is_list, of_library
    from .readers.columns import series_of

    if is_array(y):
        kinds = {"b": "boolean", "i": "integer", "u": "integer", "f": "float", "U": "text"}
        return kinds.get("U" if y.dtype.kind in "ST" else y.dtype.kind)
    series = series_of(y) if of_library(y) and not is_list(y) else None
    if series is None or str(getattr(series.to_native(), "dtype", "")) == "object":
        return None
    kind = series.dtype
    if isinstance(kind, (nw.Boolean, nw.String)):
        return "boolean" if isinstance(kind, nw.Boolean) else "text"
    if kind.is_integer():
        return "integer"
    return "float" if kind.is_float() else None


def type_mismatches(data: Any, schema: Schema, y: Any = None) -> tuple[str, ...]:
    """List declared columns whose storage type does not match the declaration.

    Most of their cells would be read as missing. ``y`` is a response that is passed by itself.
    Moments, which have no cells, have no mismatches.
    """
    from .readers.arrays import is_array, is_sparse
    from .readers.frames import is_frame
    from .readers.parts import parts_of

    parts = parts_of(data, y)
    if parts is not None:
        each = (
            type_mismatches_of(schema.columns_read, _kinds_of_types(_types_of_part(part)))
            for part in parts
        )
        return tuple(dict.fromkeys(text for found in each for text in found))
    found = _kinds_of_frame(data) if is_frame(data) else {}
    if (is_array(data) or is_sparse(data)) and data.ndim == 2:
        found = _kinds_of_array(data, schema.feature_names)
    if y is not None:
        found |= _kind_of_response(y, schema.response.name)
    return type_mismatches_of(schema.columns_read, found)


def warn_of_types(mismatches: Iterable[str], stacklevel: int = 4) -> None:
    """Warn of mismatches. To be called before a debit, since warnings may be turned into errors."""
    for text in mismatches:
        warnings.warn(escape_for_terminal(text), ColumnTypeWarning, stacklevel=stacklevel)


def type_mismatches_of(columns: Iterable[Column], found: Mapping[str, Any]) -> tuple[str, ...]:
    """List mismatches of some columns; ``found`` says what their types hold."""
    each = [(column, found[column.name]) for column in columns if column.name in found]
    return tuple(
        f"column {column.name!r} is {_DESCRIPTIONS[kind]}, declared as {_declared(column)}: "
        f"{reason}"
        for column, kind in each
        if (reason := _mismatch(column, kind)) is not None
    )


def _mismatch(column: Column, kind: ColumnKind) -> str | None:
    """Why a column of this kind does not match its declaration; None if it does."""
    if kind == "other":
        return "it cannot be read (role: ignored leaves it out)"
    labels = column.labels if column.levels is None else column.levels
    if labels is not None:
        return _mismatch_of_labels(labels, kind)
    if kind in ("text", "category"):
        if column.format is not None:
            return None
        if column.kind == "date":
            return (
                "a cell that is not written like 1990-01-31 counts as missing (format: declares "
                "another format)"
            )
        if column.kind == "boolean":
            return None  # the words true and false are read
        return (
            "every cell that does not spell a number counts as missing (a category has levels; "
            "format: declares separators and currency signs)"
        )
    if kind == "number" and column.kind == "date" and "number" in reader(column).takes:
        return None  # read by its digits
    if (kind == "date") != (column.kind == "date"):
        instead = "kind: date, with dates as bounds" if kind == "date" else "bounds of numbers"
        return f"no cell can be read as one (declare {instead})"
    return None


def _mismatch_of_labels(labels: Sequence[Label], kind: ColumnKind) -> str | None:
    """The same for levels or labels; text and categories may hold any of them."""
    if kind in ("text", "category"):
        return None
    forms = [canonical(label) for label in labels] if kind != "date" else []
    possible = [form for form in forms if isinstance(form, float)]
    if kind == "boolean":
        possible = [form for form in possible if form in (0.0, 1.0)]
    if len(possible) == len(labels):
        return None
    if possible:
        return "some of them no cell can have"
    return "every cell would count as missing"


def _declared(column: Column) -> str:
    if column.labels is not None:
        return "labels"
    if column.levels is not None:
        return "levels"
    return f"a {column.kind}"


def _types_of_part(part: Part) -> pa.Schema | None:
    from .readers.files import check_unique

    types = part.types()
    if types is not None:
        check_unique(types.names, Path(part.name).name)
    return types


def _kinds_of_types(types: pa.Schema | None) -> dict[str, ColumnKind]:
    return {} if types is None else {each.name: _kind_of_arrow(each.type) for each in types}


def _common_kinds(each: Sequence[pa.Schema | None]) -> dict[str, ColumnKind]:
    """What the columns hold that all parts have; empty if a part has no types."""
    known = [types for types in each if types is not None]
    if len(known) < len(each):
        return {}
    common = set[str].intersection(*(set(types.names) for types in known))
    found: dict[str, ColumnKind] = {}
    for name in known[0].names:
        if name in common:
            types = [part.field(name).type for part in known]
            # A part without any value in a column, of type null, says nothing of the others.
            kinds = {_kind_of_arrow(kind) for kind in types if str(kind) != "null"} or {"number"}
            found[name] = kinds.pop() if len(kinds) == 1 else "text"
    return found


def _kind_of_arrow(type_: Any) -> ColumnKind:
    from pyarrow import types

    from .readers.arrow import is_text

    if types.is_dictionary(type_):
        return "category"
    tests: Mapping[ColumnKind, Any] = {
        "boolean": types.is_boolean,
        "number": lambda kind: (
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_decimal(kind)
            or types.is_null(kind)  # all cells are missing, as with any type
        ),
        "text": is_text,
        "date": lambda kind: types.is_date(kind) or types.is_timestamp(kind),
    }
    return next((kind for kind, test in tests.items() if test(type_)), "other")


def _kinds_of_frame(data: Any) -> dict[str, ColumnKind]:
    from .readers.columns import to_narwhals
    from .readers.frames import names_of_frame

    names = names_of_frame(data)  # refuses a lazy frame
    frame = to_narwhals(data).head(0)  # without rows: narwhals infers the type of objects
    found: dict[str, ColumnKind] = {}
    for name, series in zip(names, frame.iter_columns(), strict=True):
        kind = _kind_of_series(series)
        if kind is not None:
            found[name] = kind
    return found


def _kind_of_series(series: Any) -> ColumnKind | None:
    """What a column without rows holds by its type."""
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if str(getattr(series.to_native(), "dtype", "")) == "object":
        return None
    if isinstance(kind, nw.Boolean):
        return "boolean"
    if kind.is_numeric():
        return "number"
    if isinstance(kind, (nw.Categorical, nw.Enum)):
        return "category"
    if isinstance(kind, nw.String):
        return "text"
    if isinstance(kind, (nw.Date, nw.Datetime)):
        return "date"
    return "other" if kind.is_nested() or kind.is_temporal() else None


#: What NumPy's kinds of types hold; objects may hold anything.
_KINDS: dict[str, ColumnKind] = {
    "b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date", "U": "text",
    "S": "text", "T": "text",
}  # fmt: skip


def _kinds_of_array(values: Any, names: Iterable[str]) -> dict[str, ColumnKind]:
    kind = _KINDS.get(getattr(values.dtype, "kind", ""))
    return {} if kind is None else dict.fromkeys(names, kind)


def _kind_of_response(y: Any, name: str) -> dict[str, ColumnKind]:
    """What a response holds by its type, if it has one. Lazy objects are not computed."""
    import pyarrow as pa

    from .readers.arrays import is_array, of_library
    from .readers.columns import series_of

    if is_array(y):
        return _kinds_of_array(y, [name])
    if issubclass(type(y), (pa.Array, pa.ChunkedArray)):
        return {name: _kind_of_arrow(y.type)}
    series = series_of(y) if of_library(y) else None
    kind = None if series is None else _kind_of_series(series.head(0))
    return {} if kind is None else {name: kind}
