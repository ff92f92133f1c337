"""X as an array or a list of records, columns in the order of the schema, and y beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import Schema
from ..moments import Block
from . import batch_rows
from .arrays import array_of, by_rows, check_kind, is_list, is_sparse, length, part_of, unfolded
from .cells import NUMBERS, from_array, readers
from .columns import in_parts, response_cells


class MatrixTable:
    """X and y in memory."""

    def __init__(self, x: Any, schema: Schema, y: Any) -> None:
        self._names = schema.feature_names
        self._listed = is_list(x)
        self._x = x if self._listed else array_of(x)
        if y is None:
            raise TableError(
                "an array or a list of records needs its response beside it: pass y=, also where "
                "records are mappings that hold it"
            )
        *self._readers, self._read = readers(schema)
        self._response, rows = response_cells(y, schema.response.name, self._read.takes)
        p = len(self._names)
        if not self._listed:  # the cells of a list have no type but their own
            if self._x.shape[1] != p:
                raise TableError(f"X has {self._x.shape[1]} columns, the schema declares {p}")
            for takes in {read.takes for read in self._readers}:
                check_kind(self._x, "X", takes)
        if self.rows != rows:
            raise TableError("X and y must have the same number of rows")
        self._plain = all(read is NUMBERS for read in self._readers)

    @property
    def rows(self) -> int:
        """Number of records."""
        return length(self._x) if self._listed else int(self._x.shape[0])

    def blocks(self) -> Iterator[Block]:
        """Slices of X and y; float64 is not copied."""
        n, step = self.rows, batch_rows(len(self._names))
        self._x = by_rows(self._x)
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield self._features(start, stop), self._response(start, stop, self._read)

    def responses(self) -> Iterator[NDArray[np.float64]]:
        """Slices of y."""
        return in_parts(self._response, self.rows, self._read)

    def _features(self, start: int, stop: int) -> NDArray[np.float64]:
        if self._listed:
            part = unfolded(part_of(self._x, start, stop), self._names)
        else:
            part = self._x[start:stop]
            if is_sparse(part):  # these few rows alone
                part = part.toarray()
        if self._plain:
            return from_array(part)
        return np.column_stack([from_array(part[:, j], r) for j, r in enumerate(self._readers)])
