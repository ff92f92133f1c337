"""Types: what a table's columns hold by its own account, compared with what is declared.

Types of columns are public, as their names are; no value is read. Text files have none, and a
column of Python objects says nothing of what they are.

Where no cell of a type can be read as what is declared, the sources refuse the table
(`Reader.takes` in `sources.cells`). Where some may, and much of a column may yet be missing, there
is a warning. Both are functions of types and schema alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ..base.errors import ColumnTypeWarning, TableError
from ..base.text import escape_for_terminal
from ..schema.labels import Label, reading
from ..schema.schema import Column, Schema
from .readers.cells import reader

#: What a type holds, as far as a schema cares.
Sort = Literal["number", "boolean", "text", "category", "date", "other"]

_PARQUET = {".parquet", ".pq"}
_ARROW = {".arrow", ".feather", ".ipc"}

_CALLED = {
    "number": "a column of numbers",
    "boolean": "a column of booleans",
    "text": "text",
    "category": "a category",
    "date": "a column of dates",
    "other": "neither numbers nor text nor dates",
}


def sorts(data: Any) -> dict[str, Sort]:
    """What each column of a file or frame holds, in order, where its type says so.

    Empty for what has no types: text files and arrays.
    """
    if isinstance(data, (str, Path)):
        return _of_file(Path(data))
    from .readers.frames import is_frame

    return _of_frame(data) if is_frame(data) else {}


def sort_of(y: Any) -> str | None:
    """What a response beside X holds by its type: "boolean", "integer", "float" or "text".

    None for what has no type that says so: lists, objects, categories.
    """
    import narwhals.stable.v2 as nw

    from .readers.arrays import is_array, is_list, of_library
    from .readers.columns import column_of

    if is_array(y):
        kinds = {"b": "boolean", "i": "integer", "u": "integer", "f": "float", "U": "text"}
        return kinds.get("U" if y.dtype.kind in "ST" else y.dtype.kind)
    series = column_of(y) if of_library(y) and not is_list(y) else None
    if series is None or str(getattr(series.to_native(), "dtype", "")) == "object":
        return None
    kind = series.dtype
    if isinstance(kind, (nw.Boolean, nw.String)):
        return "boolean" if isinstance(kind, nw.Boolean) else "text"
    if kind.is_integer():
        return "integer"
    return "float" if kind.is_float() else None


def type_mismatches(data: Any, schema: Schema, y: Any = None) -> tuple[str, ...]:
    """What is declared and goes ill with the types of a table: much of it would be missing.

    ``y`` is a response that stands beside. Nothing for moments, which have no cells.
    """
    from .readers.arrays import is_array, is_sparse

    found = dict(sorts(data))
    if (is_array(data) or is_sparse(data)) and data.ndim == 2:
        found = _of_array(data, schema.feature_names)
    if y is not None:
        found |= _of_response(y, schema.response.name)
    return type_mismatches_of((*schema.features, schema.response), found)


def warn_of(told: Iterable[str], stacklevel: int = 4) -> None:
    """Warn before anything is spent: whoever makes errors of warnings has spent nothing."""
    for text in told:
        warnings.warn(escape_for_terminal(text), ColumnTypeWarning, stacklevel=stacklevel)


def type_mismatches_of(columns: Iterable[Column], found: Mapping[str, Any]) -> tuple[str, ...]:
    """The same for some columns, by what their types hold."""
    each = [(column, found[column.name]) for column in columns if column.name in found]
    told = [(column, sort, _doubt(column, sort)) for column, sort in each]
    return tuple(
        f"column {column.name!r} is {_CALLED[sort]}, declared as {_declared(column)}: {doubt}"
        for column, sort, doubt in told
        if doubt is not None
    )


def _doubt(column: Column, sort: Sort) -> str | None:
    if sort == "other":
        return "it cannot be read (role: ignored leaves it out)"
    named = column.labels if column.levels is None else column.levels
    if named is not None:
        return _doubt_names(named, sort)
    if sort in ("text", "category"):
        if column.format is not None:
            return None  # which is about text
        if column.kind == "date":
            return (
                "a cell that is not written like 1990-01-31 counts as missing (format: declares "
                "another way)"
            )
        if column.kind == "boolean":
            return None  # words are read too
        return (
            "every cell that does not spell a number counts as missing (a category has levels; "
            "format: declares separators and currency signs)"
        )
    if sort == "number" and column.kind == "date" and "number" in reader(column).takes:
        return None  # its digits are the date
    if (sort == "date") != (column.kind == "date"):
        instead = "kind: date, with dates as bounds" if sort == "date" else "bounds of numbers"
        return f"no cell can be read as one (declare {instead})"
    return None


def _doubt_names(named: Sequence[Label], sort: Sort) -> str | None:
    """Of levels or labels, which cells of text and categories may have, whatever they are."""
    if sort in ("text", "category"):
        return None
    readings = [reading(label) for label in named]
    able = [read for read in readings if isinstance(read, float)] if sort != "date" else []
    if sort == "boolean":
        able = [read for read in able if read in (0.0, 1.0)]
    if len(able) == len(named):
        return None
    if able:
        return "some of them no cell can have"
    return "every cell would count as missing"


def _declared(column: Column) -> str:
    if column.labels is not None:
        return "labels"
    if column.levels is not None:
        return "levels"
    return f"a {column.kind}"


def _of_file(path: Path) -> dict[str, Sort]:
    ending = path.suffix.lower()
    if ending not in _PARQUET | _ARROW:
        return {}
    import pyarrow as pa

    if not path.is_file():
        raise TableError(f"there is no file {path.name}")
    schema = None
    # The library's own error may quote the file.
    with suppress(pa.ArrowException, OSError, ValueError):
        schema = _parquet(path) if ending in _PARQUET else _arrow(path)
    if schema is None:
        kind = "Parquet" if ending in _PARQUET else "Arrow"
        raise TableError(f"{path.name} is not a {kind} file, or it is damaged")
    if len(set(schema.names)) < len(schema.names):
        raise TableError(f"{path.name} has several columns of one name: names must be unique")
    return {field.name: _of_arrow(field.type) for field in schema}


def _parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.schema_arrow


def _arrow(path: Path) -> Any:
    """Of a file with random access, which Feather files are, or of a stream."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            return pa.ipc.open_file(source).schema
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).schema


def _of_arrow(kind: Any) -> Sort:
    from pyarrow import types

    from .readers.arrow import is_text

    if types.is_dictionary(kind):
        return "category"
    tests: Mapping[Sort, Any] = {
        "boolean": types.is_boolean,
        "number": lambda kind: (
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_decimal(kind)
            or types.is_null(kind)  # nothing that is missing goes ill with anything
        ),
        "text": is_text,
        "date": lambda kind: types.is_date(kind) or types.is_timestamp(kind),
    }
    return next((sort for sort, test in tests.items() if test(kind)), "other")


def _of_frame(data: Any) -> dict[str, Sort]:
    from .readers.columns import known
    from .readers.frames import column_names

    names = column_names(data)  # refuses a lazy frame
    frame = known(data).head(0)  # narwhals would look at objects to say what they are
    found: dict[str, Sort] = {}
    for place, name in enumerate(names):
        sort = _of_series(frame[:, place])
        if sort is not None:
            found[name] = sort
    return found


def _of_series(series: Any) -> Sort | None:
    """Of a column without rows."""
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


#: NumPy's kinds of types; objects say nothing.
_KINDS: dict[str, Sort] = {
    "b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date", "U": "text",
    "S": "text", "T": "text",
}  # fmt: skip


def _of_array(values: Any, names: Iterable[str]) -> dict[str, Sort]:
    sort = _KINDS.get(getattr(values.dtype, "kind", ""))
    return {} if sort is None else dict.fromkeys(names, sort)


def _of_response(y: Any, name: str) -> dict[str, Sort]:
    """Of a response beside X, where it has a type; nothing is asked of objects that may be lazy."""
    import pyarrow as pa

    from .readers.arrays import is_array, of_library
    from .readers.columns import column_of

    if is_array(y):
        return _of_array(y, [name])
    if issubclass(type(y), (pa.Array, pa.ChunkedArray)):
        return {name: _of_arrow(y.type)}
    series = column_of(y) if of_library(y) else None
    sort = None if series is None else _of_series(series.head(0))
    return {} if sort is None else {name: sort}
