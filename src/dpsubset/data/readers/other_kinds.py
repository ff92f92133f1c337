"""What is not read as a table, and what to pass instead: one table of kinds.

A kind is recognised by the module and the name of a class alone: looking at anything else of a lazy
object could compute it.
"""

from __future__ import annotations

from pathlib import Path
from re import match
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of object that is not read."""

    #: The packages that define it and the names of its classes; without names all classes.
    packages: tuple[str, ...]
    classes: tuple[str, ...]
    name: str
    #: What to pass.
    instead: str
    #: Whether its values have yet to be computed.
    lazy: bool = False
    #: Whether it is refused as a table alone, and read as a response.
    is_column: bool = False
    #: Whether it is refused as a response alone, and read as a table.
    is_table: bool = False


_ITERATORS = (
    "generator", "map", "filter", "zip", "enumerate", "reversed", "list_iterator",
    "tuple_iterator", "dict_keyiterator", "dict_valueiterator", "dict_itemiterator", "dict_values",
    "dict_keys", "dict_items",
)  # fmt: skip

#: The other way out of queries that `dpsubset.moments` runs.
_MOMENTS = ", or of dpsubset.moments(data, schema), which reads it once and costs nothing"

KINDS = (
    Kind(("polars",), ("LazyFrame",), "a lazy frame of polars",
         f"Collect it first and pass the result of collect(){_MOMENTS}", lazy=True),
    Kind(("pyarrow",), ("RecordBatchReader",), "a reader of Arrow record batches",
         f"Pass the result of its read_all(){_MOMENTS}", lazy=True),
    Kind(("pyarrow",), ("Dataset",), "an Arrow dataset",
         "Pass an array or a column", is_table=True),
    Kind(("pyarrow",), ("Scanner", "TableGroupBy"), "a scanner of an Arrow dataset",
         "Pass the dataset, or the result of its to_table()", lazy=True),
    Kind(("pyarrow",), ("ParquetFile", "ParquetDataset"), "an open Parquet file",
         "Pass the path of the file"),
    Kind(("duckdb", "_duckdb"), (), "a DuckDB relation or connection",
         f"Pass the result of its to_arrow_table(){_MOMENTS}", lazy=True),
    Kind(("dask", "dask_expr"), (), "a Dask collection",
         "Pass the result of its compute()", lazy=True),
    Kind(("pyspark",), (), "a Spark data frame",
         "Pass the result of its toPandas() or toArrow()", lazy=True),
    Kind(("ibis",), (), "an Ibis expression",
         f"Pass the result of its to_pyarrow(){_MOMENTS}", lazy=True),
    Kind(("modin", "cudf"), (), "a data frame of another library",
         "Pass it as a pandas frame"),
    Kind(("pandas",), ("TextFileReader",), "a reader of parts of a text file",
         "Pass the path of the file", lazy=True),
    Kind(("pandas", "polars"), ("Series",), "a single column",
         "Reshape your data: its to_frame() is a table of one column", is_column=True),
    Kind(("builtins",), ("dict",), "a dict",
         "Make a data frame of it, such as pandas.DataFrame(data) for a dict of columns"),
    Kind(("builtins",), ("set", "frozenset"), "a set", "Pass a list of records"),
    Kind(("builtins", "itertools", "_csv"), (*_ITERATORS, "chain", "islice", "reader"),
         "an iterator", "Pass a list of its records: list(...)", lazy=True),
    Kind(("_io", "gzip", "bz2", "tempfile"), (), "an open file", "Pass the path of the file"),
    Kind(("dpsubset",), ("Release",), "a release, which does not hold the table",
         "Pass the table first. dpsubset.fit_released(release, data, ...) fits a model on the "
         "variables of a release"),
    Kind(("dpsubset",), ("Schema", "Bounds"), "the description of a table",
         "Pass the table first, as in select(data, schema, ...)"),
)  # fmt: skip

_LAZY = (
    "{what} is {name}, which may have yet to compute its values. That could fail because of one "
    "record, and an error of that kind is an answer that no guarantee covers. {instead}. The "
    "ledger does not cover that computation. Write a table that is larger than memory to a "
    "Parquet file and pass its path"
)


def message_of_kind(data: Any, what: str) -> str | None:
    """Return why an object of a known kind is refused and what to pass instead, or None.

    ``what`` is the argument: "y" for a response.
    """
    for base in type(data).__mro__:
        package, name = str(base.__module__).partition(".")[0], str(base.__name__)
        for kind in KINDS:
            if package not in kind.packages or (kind.classes and name not in kind.classes):
                continue
            if (kind.is_column and what == "y") or (kind.is_table and what != "y"):
                continue
            if kind.lazy:
                return _LAZY.format(what=what, name=kind.name, instead=kind.instead)
            return f"{what} is {kind.name}. {kind.instead}"
    return None


def is_file(path: Path) -> bool:
    """Return whether a path is that of a file; no text is too long to ask for."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # no file can have this name, which the error quotes
        return False


def is_url(path: Path) -> bool:
    """Return whether a path is the address of a file elsewhere."""
    return match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)) is not None


def is_text(path: Path) -> bool:
    """Return whether this cannot be a path, because of control characters or its length."""
    return any(ord(sign) < 32 or sign == "\x7f" for sign in str(path)) or len(path.name) > 255


def message_of_path(path: Path) -> str:
    """Return why a path that is not a file cannot be read as a table, and what to pass instead."""
    if is_text(path):
        return (
            "this is text, which may be the table itself, and not the path of a file. Write it to "
            "a file and pass its path, or pass a data frame"
        )
    if is_url(path):
        return (
            "this is a URL, and only local files are read. Download the file and pass its path, or "
            "pass a data frame that another library has read from it"
        )
    return f"there is no file {path.name}"
