"""Arrays and lists: X of shape (n, p), columns in the order of the schema, and y of shape (n,).

An array has a type and a shape, and both are checked. It also holds its values: what has yet to
compute them could fail because of one record, and is refused by its type (`array_of`). A list has
no type: it is a list of records, each of which is read by itself, once values may be read. A record
that has not p cells is one whose cells are all bad, as in a text file; a bare cell is a record of
one; a mapping has its cells by name. Nothing in a list is an error.
"""

from __future__ import annotations

import array
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import TableError
from .cells import NUMBERS, Takes, quietly

#: Sequences of one type of cell, which NumPy knows.
_TYPED = (str, bytes, bytearray, memoryview, array.array)

#: Libraries whose frames and columns hold their values, those that say themselves that they are
#: lazy aside.
_LIBRARIES = ("pandas", "polars", "pyarrow", "narwhals")

#: Kinds of NumPy's types by what they hold; text and objects may hold anything.
_KINDS = {"boolean": "b", "number": "iuf", "date": "M"}
_ANYTHING = "OSUT"

_REFUSED = (
    "has to hold its values, and an object of type {kind} may have yet to compute them: that could "
    "fail because of one record, which would be an answer that no guarantee covers. Collect it "
    "first and pass the result: a NumPy array (numpy.asarray), a sparse matrix of SciPy's, a list "
    "of records, or a frame of pandas, polars or PyArrow (polars: collect(), Dask: compute(), "
    "DuckDB: to_arrow_table()). What that computes is not covered by the ledger. A table that is "
    "larger than memory can be written to a Parquet file, whose path is passed"
)


def refusal(data: Any, what: str) -> TableError:
    """Of a table or column that may have yet to be computed."""
    return TableError(f"{what} {_REFUSED.format(kind=type(data).__name__)}")


def check_held(data: Any, what: str, *others: type) -> None:
    """Refuse what is no path, nothing of ``others`` and no table that holds its values.

    By its type alone: to ask an object for its class or its attributes may compute it.
    """
    known = issubclass(type(data), (type(None), Path, *_TYPED, *others))
    if not (known or is_list(data) or is_array(data) or is_sparse(data) or of_library(data)):
        raise refusal(data, what)


def is_list(x: Any) -> bool:
    """Whether these are records or cells without a type, to be taken one by one."""
    return issubclass(type(x), (list, tuple, range))


def is_array(x: Any) -> bool:
    """Whether this is an array of NumPy's, by its type: an object may lie about its class."""
    return issubclass(type(x), np.ndarray)


def is_sparse(x: Any) -> bool:
    """Whether this is a sparse matrix of SciPy's."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and issubclass(type(x), (sparse.sparray, sparse.spmatrix))


def is_mapping(x: Any) -> bool:
    """Whether this has cells by name; some sparse matrices are dictionaries too."""
    return issubclass(type(x), dict) and not is_sparse(x)


def of_library(data: Any) -> bool:
    """Whether a library knows this whose frames and columns hold their values; by its type."""
    bases = type.__dict__["__mro__"].__get__(type(data))
    return any(str(base.__module__).partition(".")[0] in _LIBRARIES for base in bases)


def array_of(x: Any) -> Any:
    """X as an array of two dimensions or a sparse matrix; looks at type and shape only."""
    if is_sparse(x):
        _check(x, "X", 2, frozenset({"boolean", "number"}))
        return x
    return _typed(x, "X", 2, frozenset(_KINDS))


def by_rows(x: Any) -> Any:
    """A sparse matrix compressed by rows; only its entries take memory. Others as they are."""
    if not is_sparse(x):
        return x
    # SciPy has no arithmetic for half floats. Singles hold them.
    return (x.astype(np.float32) if x.dtype == np.float16 else x).tocsr()


def part_of(x: Any, start: int, stop: int) -> Any:
    """Some items of a list."""
    return _base(x).__getitem__(x, slice(start, stop))


def length(x: Any) -> int:
    """How many items a list has."""
    return int(_base(x).__len__(x))


def _base(x: Any) -> Any:
    """Whose methods are asked of a list: not its own, if it has some."""
    return next(kind for kind in (list, tuple, range) if issubclass(type(x), kind))


def unfolded(records: Any, names: Sequence[str]) -> NDArray[Any]:
    """Records of a list as an array with a column for each name. Reads values."""
    p = len(names)
    with quietly():
        bad = [None] * p
        cells: list[Any] = []
        for record in _base(records).__iter__(records):
            found = _cells(record, names)
            cells.extend(bad if found is None else found)
    return _numbers_or_objects(cells).reshape(length(records), p)


def unfolded_cells(y: Any) -> NDArray[Any]:
    """The cells of a list, a record of one cell being that cell. Reads values."""
    with quietly():
        rows = ((_items(cell, 1), cell) for cell in _base(y).__iter__(y))
        return _numbers_or_objects([cell if row is None else row[0] for row, cell in rows])


def as_vector(y: Any, takes: Takes = NUMBERS.takes) -> NDArray[Any]:
    """An array of one dimension, or of one column; looks at type and shape only."""
    values = held(y, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return _typed(values, "y", 1, takes)


def cells_of(record: Any) -> int:
    """How many cells a record of a list has, as far as it says so; a bare cell is one."""
    kind = type(record)
    if issubclass(kind, _TYPED):
        return 1
    with suppress(Exception):  # an object's own methods may raise anything
        if issubclass(kind, (list, tuple)):  # not by its own length, if it has one
            return (list if issubclass(kind, list) else tuple).__len__(record)
        if _is_sequence(kind):
            return len(record)
        if not hasattr(kind, "__array__") or issubclass(kind, np.generic):
            return 1
        shape = getattr(record, "shape", None)  # asked first: a range is short, its array is not
        shape = np.asarray(record).shape if shape is None else shape
        if isinstance(shape, tuple) and len(shape) == 1:
            return int(shape[0])
    return 1


def _cells(record: Any, names: Sequence[str]) -> list[Any] | None:
    """The cells of one record of a list, by name or in order; None if it has not so many."""
    if is_mapping(record):
        with suppress(Exception):  # its keys may have any idea of their equals
            return [dict.get(record, name) for name in names]
        return None
    return _items(record, len(names))


def _items(record: Any, p: int) -> list[Any] | None:
    """The p cells of one record in order; None if it has not so many, and nothing is unfolded."""
    if cells_of(record) != p:
        return None
    # Not more than p, and counted again: it may have lied, or never end, or change its mind.
    found = list(islice(_iterated(record), p + 1)) if p else []
    return found if len(found) == p else None


def _iterated(record: Any) -> Iterator[Any]:
    kind = type(record)
    bare = True
    if not issubclass(kind, _TYPED):
        with suppress(Exception):
            held: Any = None
            if issubclass(kind, (list, tuple)):
                held = (list if issubclass(kind, list) else tuple).__iter__(record)
            elif _is_sequence(kind):
                held = iter(record)
            elif hasattr(kind, "__array__") and not issubclass(kind, np.generic):
                array = record if issubclass(kind, np.ndarray) else np.asarray(record)
                held = array if array.ndim == 1 else None
            if held is not None:
                bare = False
                yield from held
    if bare:
        yield record


def _is_sequence(kind: type) -> bool:
    """By the identity of its bases: a class that equals another would spoil what ABCs remember."""
    bases = type.__dict__["__mro__"].__get__(kind)
    return any(base is one for base in bases for one in (Sequence, range, deque))


def _numbers_or_objects(cells: list[Any]) -> NDArray[Any]:
    """Cells as they are; plain numbers in less space, with the values that they are read as."""
    # By identity: a class may have any idea of its equals.
    if {id(type(cell)) for cell in cells} <= {id(float), id(int), id(bool)}:
        with suppress(OverflowError):
            return np.array(cells, dtype=np.float64)
    return np.fromiter(cells, dtype=object, count=len(cells))


def held(values: Any, what: str) -> NDArray[Any]:
    """An array that holds its values, as one of NumPy's own, masked or not."""
    kind = type(values)
    if issubclass(kind, np.ma.MaskedArray):
        return values if kind is np.ma.MaskedArray else np.ma.asarray(values)
    # A subclass is read as its base is: NumPy does not ask it for another array.
    if issubclass(kind, (np.ndarray, *_TYPED)):
        return np.asarray(values)
    if of_library(values):
        raise _misshapen(what, 2 if what == "X" else 1)
    raise refusal(values, what)


def _typed(values: Any, what: str, dimensions: int, takes: Takes) -> NDArray[Any]:
    found = held(values, what)
    _check(found, what, dimensions, takes)
    return found


def _misshapen(what: str, dimensions: int) -> TableError:
    shape = "two-dimensional, one row a record" if dimensions == 2 else "one-dimensional"
    return TableError(f"{what} must be {shape}. Reshape your data and try again")


def _check(found: Any, what: str, dimensions: int, takes: Takes) -> None:
    if found.ndim != dimensions:
        raise _misshapen(what, dimensions)
    check_kind(found, what, takes)


def check_kind(found: Any, what: str, takes: Takes) -> None:
    """Refuse an array by its type, where no cell of it could be read as what is declared."""
    kind = found.dtype.kind
    if kind not in "".join(_KINDS[sort] for sort in takes) + _ANYTHING:
        if kind in "biuf":
            declared = "dates are declared: pass datetime64, text or objects"
            if "date" not in takes:
                declared = (
                    "none of the levels or labels that are declared can stand in such an array, so "
                    "that no cell of it could be read: declare those that can (such as 0 and 1), "
                    "or pass text or objects"
                )
            raise TableError(f"{what} holds {found.dtype.name}, but {declared}")
        # The wording after the colon is the one scikit-learn's own checks look for.
        reason = "Complex data not supported" if kind == "c" else found.dtype.name
        raise TableError(f"{what} must hold real numbers: {reason}")
