"""Arrays and lists: X of shape (n, p), columns in the order of the schema, and y of shape (n,).

An array has a type and a shape, and both are checked. A list has neither: it is a list of records,
and each of them is read by itself. A record that has not p cells is one whose cells are all bad,
as in a text file; a bare cell is a record of one. Nothing in a list is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TableError
from .cells import quietly


def is_list(x: Any) -> bool:
    """Whether these are records or cells without a type, to be taken one by one."""
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes)) and not hasattr(x, "dtype")


def as_matrix(x: Any, p: int | None = None) -> NDArray[Any]:
    """A two-dimensional array; looks at type and shape only, and of lists at the length of records.

    A list of records has p columns; if no p is declared, as many as most of its records have.
    """
    if hasattr(x, "toarray"):
        raise TableError("sparse X is not supported: pass a dense array")
    if not is_list(x):
        return _real(x, "X", 2)
    records = _records(x)
    if p is None:
        p = max(Counter(map(len, records)).items(), key=lambda item: item[::-1], default=(0, 0))[0]
    bad = [None] * p
    cells = chain.from_iterable(cells if len(cells) == p else bad for cells in records)
    return _numbers_or_objects(list(cells)).reshape(len(records), p)


def is_ragged(x: Any) -> bool:
    """Whether this is a list whose records are not all of one length."""
    return is_list(x) and len(set(map(len, _records(x)))) > 1


def as_vector(y: Any) -> NDArray[Any]:
    """A one-dimensional array; a single column will do, in a list a record of one cell."""
    if is_list(y):
        rows = zip(_records(y), y, strict=True)
        return _numbers_or_objects([row[0] if len(row) == 1 else cell for row, cell in rows])
    array = _array(y)
    if array is not None and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    return _real(array, "y", 1)


def _records(x: Sequence[Any]) -> list[Sequence[Any]]:
    with quietly():
        return [_cells(record) for record in x]


def _cells(record: Any) -> Sequence[Any]:
    """The cells of one record of a list, whatever it is; text is a bare cell."""
    kind = type(record)
    if issubclass(kind, (str, bytes, bytearray)):
        return [record]
    with suppress(Exception):  # an object's own methods may raise anything
        if issubclass(kind, (list, tuple)):  # not by its own iterator, if it has one
            return list((list if issubclass(kind, list) else tuple).__iter__(record))
        if issubclass(kind, Sequence):
            return list(record)
        array = record if issubclass(kind, np.ndarray) else None
        if array is None and hasattr(kind, "__array__"):
            array = np.asarray(record)
        if array is not None and array.ndim == 1:
            return list(array)
    return [record]


def _numbers_or_objects(cells: list[Any]) -> NDArray[Any]:
    """Cells as they are; plain numbers in less space, with the values that they are read as."""
    if set(map(type, cells)) <= {float, int, bool}:
        with suppress(OverflowError):
            return np.array(cells, dtype=np.float64)
    return np.fromiter(cells, dtype=object, count=len(cells))


def _array(values: Any) -> NDArray[Any] | None:
    if isinstance(values, np.ma.MaskedArray):
        return values
    with suppress(Exception):
        return np.asarray(values)
    return None


def _real(values: Any, what: str, dimensions: int) -> NDArray[Any]:
    array = _array(values)
    if array is None or array.ndim != dimensions:
        shape = "two-dimensional, one row a record" if dimensions == 2 else "one-dimensional"
        raise TableError(f"{what} must be {shape}. Reshape your data and try again")
    if array.dtype.kind not in "biufOSUT":
        # The wording after the colon is the one scikit-learn's own checks look for.
        reason = "Complex data not supported" if array.dtype.kind == "c" else array.dtype.name
        raise TableError(f"{what} must hold real numbers: {reason}")
    return array
