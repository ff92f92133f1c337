"""Arrays and lists: X of shape (n, p), columns in the order of the schema, and y of shape (n,).

An array has a type and a shape, and both are checked. A list has neither: it is a list of records,
and each of them is read by itself. A record that has not p cells is one whose cells are all bad,
as in a text file; a bare cell is a record of one. Nothing in a list is an error.
"""

from __future__ import annotations

import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TableError
from .cells import NUMBERS, Takes, quietly

#: Sequences of one type of cell, which NumPy knows.
_TYPED = (str, bytes, bytearray, memoryview, array.array)


#: Kinds of NumPy's types by what they hold; text and objects may hold anything.
_KINDS = {"boolean": "b", "number": "iuf", "date": "M"}
_ANYTHING = "OSUT"


def is_list(x: Any) -> bool:
    """Whether these are records or cells without a type, to be taken one by one."""
    return isinstance(x, Sequence) and not isinstance(x, _TYPED) and not hasattr(x, "dtype")


def as_matrix(x: Any, p: int | None = None) -> Any:
    """A two-dimensional array; looks at type and shape only, and of lists at the length of records.

    A list of records has p columns, which have to be declared. A sparse matrix stays one, by rows.
    """
    if hasattr(x, "toarray"):
        return _compressed(x)
    if not is_list(x):
        return _typed(x, "X", 2, frozenset(_KINDS))
    if p is None:
        raise ValueError("the width of a list has to be declared")
    with quietly():
        bad = [None] * p
        cells: list[Any] = []
        for record in x:
            found = _cells(record, p)
            cells.extend(bad if found is None else found)
    return _numbers_or_objects(cells).reshape(len(x), p)


def is_ragged(x: Any) -> bool:
    """Whether this is a list whose records are not all of one length."""
    return is_list(x) and len(set(map(_length, x))) > 1


def _compressed(x: Any) -> Any:
    """A sparse matrix of SciPy's, by rows; only its entries take memory."""
    from scipy import sparse

    if not sparse.issparse(x):
        raise TableError("X is a matrix of an unknown kind: pass an array, or a matrix of SciPy's")
    _check(x, "X", 2, frozenset({"boolean", "number"}))
    # SciPy has no arithmetic for half floats. Singles hold them.
    return (x.astype(np.float32) if x.dtype == np.float16 else x).tocsr()


def as_vector(y: Any, takes: Takes = NUMBERS.takes) -> NDArray[Any]:
    """A one-dimensional array; a single column will do, in a list a record of one cell."""
    if is_list(y):
        with quietly():
            rows = ((_cells(cell, 1), cell) for cell in y)
            return _numbers_or_objects([cell if row is None else row[0] for row, cell in rows])
    values = _array(y)
    if values is not None and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return _typed(values, "y", 1, takes)


def _length(record: Any) -> int:
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


def _cells(record: Any, p: int) -> list[Any] | None:
    """The p cells of one record of a list; None if it has not so many, and nothing is unfolded."""
    if _length(record) != p:
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


def _array(values: Any) -> NDArray[Any] | None:
    if isinstance(values, np.ma.MaskedArray):
        return values
    with suppress(Exception):
        return np.asarray(values)
    return None


def _typed(values: Any, what: str, dimensions: int, takes: Takes) -> NDArray[Any]:
    found = _array(values)
    _check(found, what, dimensions, takes)
    assert found is not None
    return found


def _check(found: Any, what: str, dimensions: int, takes: Takes) -> None:
    if found is None or found.ndim != dimensions:
        shape = "two-dimensional, one row a record" if dimensions == 2 else "one-dimensional"
        raise TableError(f"{what} must be {shape}. Reshape your data and try again")
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
