"""Arrays: X of shape (n, p), columns in the order of the schema, and y of shape (n,)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TableError
from ..moments import Block
from ..schema import Schema
from . import Progress, batch_rows
from .cells import NUMBERS, Reader, reader


def as_matrix(x: Any) -> NDArray[Any]:
    """A real two-dimensional array, or a clear error; looks at type and shape only."""
    if hasattr(x, "toarray"):
        raise TableError("sparse X is not supported: pass a dense array")
    return _real(x, "X", 2)


def as_vector(y: Any) -> NDArray[Any]:
    """A real one-dimensional array, or a clear error; a single column will do."""
    array = _array(y)
    if array is not None and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    elif array is not None and array.ndim == 1 and array.dtype == object and isinstance(y, list):
        # A single column of lists, one record of which is no such list: the others still are.
        cells = (c[0] if type(c) in (list, tuple) and len(c) == 1 else c for c in array)
        array = np.fromiter(cells, dtype=object, count=len(array))
    return _real(array, "y", 1)


def _array(values: Any) -> NDArray[Any] | None:
    # NumPy's errors are about cells: one that is a list, bytes that are no text, a huge integer.
    with suppress(Exception):
        array = np.asarray(values)
        if array.dtype.kind in "biuf" or hasattr(values, "dtype"):
            return array
    # A list of mixed cells: NumPy would turn all of them into text because one is, so that one
    # record changes how the others are read. Cell by cell instead.
    with suppress(Exception):
        return np.array(values, dtype=object)
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


class ArrayTable:
    """X and y in memory."""

    def __init__(self, x: Any, schema: Schema, y: Any) -> None:
        self._x = as_matrix(x)
        if y is None:
            raise TableError("an array X needs its response: pass y=")
        self._y = as_vector(y)
        p = len(schema.features)
        if self._x.shape[1] != p:
            raise TableError(f"X has {self._x.shape[1]} columns, the schema declares {p}")
        if self._x.shape[0] != self._y.shape[0]:
            raise TableError("X and y must have the same number of rows")
        self._read = reader(schema.response)

    @property
    def rows(self) -> int:
        """Number of records."""
        return int(self._x.shape[0])

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Slices of X and y; numbers are not copied."""
        n, step = self.rows, batch_rows(self._x.shape[1])
        for start in range(0, n, step):
            part = slice(start, start + step)
            yield floats(self._x[part]), floats(self._y[part], self._read)
            if progress:
                progress(min(1.0, (start + step) / n))


def floats(values: NDArray[Any], read: Reader = NUMBERS) -> NDArray[Any]:
    """Numbers as they are, or as they count; anything else cell by cell."""
    if values.dtype.kind in "biuf":
        return read.from_numbers(values)
    return read.from_objects(values.ravel().tolist()).reshape(values.shape)
