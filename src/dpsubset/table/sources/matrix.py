"""X as an array or a list of records, columns in the order of the schema, and y beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TableError
from ...public.schema import Schema
from ..moments import Block
from . import Progress, batch_rows
from .arrays import as_matrix
from .cells import from_array, reader
from .columns import in_parts, response_cells


class MatrixTable:
    """X and y in memory."""

    def __init__(self, x: Any, schema: Schema, y: Any) -> None:
        p = len(schema.features)
        self._x = as_matrix(x, p)
        if y is None:
            raise TableError("an array X needs its response: pass y=")
        self._response, rows = response_cells(y, schema.response.name)
        if self._x.shape[1] != p:
            raise TableError(f"X has {self._x.shape[1]} columns, the schema declares {p}")
        if self._x.shape[0] != rows:
            raise TableError("X and y must have the same number of rows")
        self._read = reader(schema.response)

    @property
    def rows(self) -> int:
        """Number of records."""
        return int(self._x.shape[0])

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Slices of X and y; float64 is not copied."""
        n, step = self.rows, batch_rows(self._x.shape[1])
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield from_array(self._x[start:stop]), self._response(start, stop, self._read)
            if progress:
                progress(stop / n)

    def responses(self, progress: Progress | None = None) -> Iterator[NDArray[np.float64]]:
        """Slices of y."""
        return in_parts(self._response, self.rows, self._read, progress)
