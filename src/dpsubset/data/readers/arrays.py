"""Arrays and lists: X of shape (n, p), columns in the order of the schema, and y of shape (n,).

An array has a type and a shape, and both are checked. Objects that may have yet to compute their
values are refused by their type (see `refusal`). A list has no type: it is a list of records, each
read by itself and only when values may be read. A record that does not have p cells has only bad
cells, as in a text file; a bare cell is a record of one cell; a mapping has its cells by name. No
record of a list raises an error.
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
from .cells import Takes, quietly
from .other_kinds import message_of_kind

#: Sequences of one type of cell, which NumPy converts.
_TYPED = (str, bytes, bytearray, memoryview, array.array)

#: Libraries whose frames and columns hold their values, except those that declare to be lazy.
_LIBRARIES = ("pandas", "polars", "pyarrow", "narwhals")

#: NumPy's kinds of types by what they hold; text and objects may hold anything.
_KINDS = {"boolean": "b", "number": "iuf", "date": "M"}
_ANYTHING = "OSUT"

_REFUSED = (
    "must hold its values, and an object of type {kind} may have yet to compute them. That could "
    "fail because of one record, and an error of that kind is an answer that no guarantee covers. "
    "Collect it first and pass the result: a NumPy array (numpy.asarray), a SciPy sparse matrix, a "
    "list of records, or a frame of pandas, polars or PyArrow. The ledger does not cover that "
    "computation. Write a table that is larger than memory to a Parquet file and pass its path. "
    "dpsubset.moments(data, schema) reads Arrow streams and queries"
)


def refusal(data: Any, what: str) -> TableError:
    """The error for a table or column that is not read: it may have yet to be computed."""
    if data is None:
        return TableError(f"{what} is None, which is no {'column' if what == 'y' else 'table'}")
    known = message_of_kind(data, what)
    return TableError(known or f"{what} {_REFUSED.format(kind=type(data).__name__)}")


# Types are tested with issubclass(type(x), ...): isinstance would read x.__class__, which computes
# some lazy objects.


def check_held(data: Any, what: str, *others: type) -> None:
    """Refuse everything but a path, an instance of ``others``, and a table that holds its
    values.
    """
    if issubclass(type(data), (type(None), Path, *_TYPED, *others)):
        return
    if is_list(data) or is_array(data) or is_sparse(data):
        return
    if not of_library(data) or message_of_kind(data, what):
        raise refusal(data, what)


def is_list(x: Any) -> bool:
    """Whether this is a list of records, or of cells, without a type."""
    return issubclass(type(x), (list, tuple, range))


def is_array(x: Any) -> bool:
    return issubclass(type(x), np.ndarray)


def is_sparse(x: Any) -> bool:
    """Whether this is a SciPy sparse matrix."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and issubclass(type(x), (sparse.sparray, sparse.spmatrix))


def is_mapping(x: Any) -> bool:
    """Whether this has cells by name. Some sparse matrices are dictionaries, too."""
    return issubclass(type(x), dict) and not is_sparse(x)


def of_library(data: Any) -> bool:
    """Whether this is an object of a data-frame library."""
    return any(str(base.__module__).partition(".")[0] in _LIBRARIES for base in type(data).__mro__)


def array_of(x: Any) -> Any:
    """X as an array of two dimensions or a sparse matrix. Only type and shape are looked at."""
    if is_sparse(x):
        _check_shape(x, "X", 2, frozenset({"boolean", "number"}))
        return x
    return _checked_array(x, "X", 2, frozenset(_KINDS))


def by_rows(x: Any) -> Any:
    """A sparse matrix compressed by rows: only its entries take memory. Others unchanged."""
    if not is_sparse(x):
        return x
    # SciPy has no arithmetic for half floats; single floats hold them exactly.
    return (x.astype(np.float32) if x.dtype == np.float16 else x).tocsr()


def records_of_list(records: Any, names: Sequence[str]) -> NDArray[Any]:
    """The records of a list as an array with a column for each name. Reads values."""
    p = len(names)
    bad = [None] * p
    cells: list[Any] = []
    with quietly():
        for record in records:
            found = _cells_by_name_or_order(record, names)
            cells.extend(bad if found is None else found)
    return _numbers_or_objects(cells).reshape(len(records), p)


def cells_of_list(y: Any) -> NDArray[Any]:
    """The cells of a list; a record of one cell counts as that cell. Reads values."""
    with quietly():
        rows = ((_cells_in_order(cell, 1), cell) for cell in y)
        return _numbers_or_objects([cell if row is None else row[0] for row, cell in rows])


def as_vector(y: Any, takes: Takes) -> NDArray[Any]:
    """An array of one dimension, or of one column. Only type and shape are looked at."""
    values = held(y, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return _checked_array(values, "y", 1, takes)


def record_length(record: Any) -> int:
    """Return the number of cells of a record of a list, if known; a bare cell is one cell."""
    kind = type(record)
    if issubclass(kind, _TYPED):
        return 1
    with suppress(Exception):  # an object's own methods may raise anything
        if issubclass(kind, (list, tuple)):  # as stored, whatever a subclass says
            return (list if issubclass(kind, list) else tuple).__len__(record)
        if _is_sequence(kind):
            return len(record)
        if not hasattr(kind, "__array__") or issubclass(kind, np.generic):
            return 1
        shape = getattr(record, "shape", None)  # first: some objects are short, but not their array
        shape = np.asarray(record).shape if shape is None else shape
        if isinstance(shape, tuple) and len(shape) == 1:
            return int(shape[0])
    return 1


def _cells_by_name_or_order(record: Any, names: Sequence[str]) -> list[Any] | None:
    """The cells of one record of a list; None if their number is wrong."""
    if is_mapping(record):
        with suppress(Exception):  # comparing its keys may raise anything
            return [dict.get(record, name) for name in names]
        return None
    return _cells_in_order(record, len(names))


def _cells_in_order(record: Any, p: int) -> list[Any] | None:
    """The p cells of one record; None, without iterating over it, if it has another number."""
    if record_length(record) != p:
        return None
    # Counted again, and never more than p + 1: an iterator need not agree with the stated length.
    found = list(islice(_iterate(record), p + 1)) if p else []
    return found if len(found) == p else None


def _iterate(record: Any) -> Iterator[Any]:
    kind = type(record)
    is_bare_cell = True
    if not issubclass(kind, _TYPED):
        with suppress(Exception):
            cells: Any = None
            if issubclass(kind, (list, tuple)):
                cells = (list if issubclass(kind, list) else tuple).__iter__(record)
            elif _is_sequence(kind):
                cells = iter(record)
            elif hasattr(kind, "__array__") and not issubclass(kind, np.generic):
                array = record if issubclass(kind, np.ndarray) else np.asarray(record)
                cells = array if array.ndim == 1 else None
            if cells is not None:
                is_bare_cell = False
                yield from cells
    if is_bare_cell:
        yield record


def _is_sequence(kind: type) -> bool:
    # By identity: an ABC remembers classes by their equality, which a metaclass may define.
    bases = type.__dict__["__mro__"].__get__(kind)
    return any(base is one for base in bases for one in (Sequence, range, deque))


def _numbers_or_objects(cells: list[Any]) -> NDArray[Any]:
    """An array of cells: of float64, to save space, if all are plain numbers, else of objects."""
    # By identity: a type may have no hash, or claim to equal another.
    if {id(type(cell)) for cell in cells} <= {id(float), id(int), id(bool)}:
        with suppress(OverflowError):
            return np.array(cells, dtype=np.float64)
    return np.fromiter(cells, dtype=object, count=len(cells))


def held(values: Any, what: str) -> NDArray[Any]:
    """An array that holds its values as a plain NumPy array, masked or not."""
    kind = type(values)
    if issubclass(kind, np.ma.MaskedArray):
        return values if kind is np.ma.MaskedArray else np.ma.asarray(values)
    # A subclass of ndarray becomes a view; NumPy does not call its __array__.
    if issubclass(kind, (np.ndarray, *_TYPED)):
        return np.asarray(values)
    if of_library(values) and not message_of_kind(values, what):
        raise _wrong_shape(what, 2 if what == "X" else 1)
    raise refusal(values, what)


def _checked_array(values: Any, what: str, dimensions: int, takes: Takes) -> NDArray[Any]:
    found = held(values, what)
    _check_shape(found, what, dimensions, takes)
    return found


def _wrong_shape(what: str, dimensions: int) -> TableError:
    shape = "two-dimensional, one row a record" if dimensions == 2 else "one-dimensional"
    hint = " (reshape(-1, 1) makes one column)" if dimensions == 2 else ""
    return TableError(f"{what} must be {shape}. Reshape your data and try again{hint}")


def _check_shape(found: Any, what: str, dimensions: int, takes: Takes) -> None:
    if found.ndim != dimensions:
        raise _wrong_shape(what, dimensions)
    check_kind(found, what, takes)


def check_kind(found: Any, what: str, takes: Takes) -> None:
    """Refuse an array of a type none of whose cells can be read as declared."""
    kind = found.dtype.kind
    if kind in "".join(_KINDS[each] for each in takes) + _ANYTHING:
        return
    if kind in "biuf":
        declared = "dates are declared: pass datetime64, text or objects"
        if "date" not in takes:
            declared = (
                "such an array can hold none of the declared levels or labels, so that no cell of "
                "it could be read: declare some that it can hold (such as 0 and 1), or pass text "
                "or objects"
            )
        raise TableError(f"{what} holds {found.dtype.name}, but {declared}")
    # scikit-learn's estimator checks look for the wording after the colon.
    reason = "Complex data not supported" if kind == "c" else found.dtype.name
    raise TableError(f"{what} must hold real numbers: {reason}")
