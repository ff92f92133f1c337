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
from .arrays import as_matrix, check_kind, is_list
from .cells import NUMBERS, from_array, readers
from .columns import in_parts, response_cells


class MatrixTable:
    """X and y in memory."""

    def __init__(self, x: Any, schema: Schema, y: Any) -> None:
        p = len(schema.features)
        self._x = as_matrix(x, p)
        if y is None:
            raise TableError("an array X needs its response: pass y=")
        *self._readers, self._read = readers(schema)
        self._response, rows = response_cells(y, schema.response.name, self._read.takes)
        if self._x.shape[1] != p:
            raise TableError(f"X has {self._x.shape[1]} columns, the schema declares {p}")
        if self._x.shape[0] != rows:
            raise TableError("X and y must have the same number of rows")
        if not is_list(x):  # whose cells have no type but their own
            for takes in {read.takes for read in self._readers}:
                check_kind(self._x, "X", takes)
        self._plain = all(read is NUMBERS for read in self._readers)

    @property
    def rows(self) -> int:
        """Number of records."""
        return int(self._x.shape[0])

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Slices of X and y; float64 is not copied."""
        n, step = self.rows, batch_rows(self._x.shape[1])
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield self._features(start, stop), self._response(start, stop, self._read)
            if progress:
                progress(stop / n)

    def responses(self, progress: Progress | None = None) -> Iterator[NDArray[np.float64]]:
        """Slices of y."""
        return in_parts(self._response, self.rows, self._read, progress)

    def _features(self, start: int, stop: int) -> NDArray[np.float64]:
        part = self._x[start:stop]
        if hasattr(part, "toarray"):  # these few rows alone
            part = part.toarray()
        if self._plain:
            return from_array(part)
        return np.column_stack([from_array(part[:, j], r) for j, r in enumerate(self._readers)])
