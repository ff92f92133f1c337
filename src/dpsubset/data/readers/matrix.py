"""X as an array or a list of records, with columns in the order of the schema, and y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import TableError
from ...schema.schema import AnySchema
from ..moments import Block
from . import ALL, Table, batch_rows
from .arrays import array_of, by_rows, check_kind, is_list, is_sparse, records_of_list
from .cells import NUMBERS, from_array, readers
from .columns import Cells, in_parts, response_cells


class MatrixTable(Table):
    """X and y in memory. A list has no shape or type to check: its records are read one by one."""

    def __init__(self, x: Any, schema: AnySchema, y: Any) -> None:
        super().__init__(schema)
        self._names = schema.feature_names
        self._is_list = is_list(x)
        self._x = x if self._is_list else array_of(x)
        if schema.response is not None and y is None:
            raise TableError(
                "an array or a list of records needs a response: pass it as y, also if the records "
                "are mappings that hold it. A list of files is a list of Path objects, or of text "
                "that ends in an extension of a table, such as .parquet"
            )
        self._readers = readers(schema)
        self._response: Cells | None = None
        p, rows = len(self._names), self.rows
        if schema.response is not None:
            takes = self._readers[-1].takes
            self._response, rows = response_cells(y, schema.response.name, takes)
        if not self._is_list:
            if self._x.shape[1] != p:
                raise TableError(f"X has {self._x.shape[1]} columns, the schema declares {p}")
            for takes in {read.takes for read in self._readers[:p]}:
                check_kind(self._x, "X", takes)
        if self.rows != rows:
            raise TableError("X and y must have the same number of rows")
        self._is_plain = all(read is NUMBERS for read in self._readers[:p])

    @property
    def rows(self) -> int:
        return len(self._x) if self._is_list else int(self._x.shape[0])

    def columns(self, which: slice = ALL) -> Iterator[list[NDArray[np.float64]]]:
        for start, stop in self._slices():
            x = self._part(start, stop)
            cells = [np.ascontiguousarray(x[:, j]) for j in range(x.shape[1])]
            yield [*cells, *self._response_part(start, stop)][which]

    def blocks(self) -> Iterator[Block]:
        """Slices of X and y; float64 is not copied."""
        for start, stop in self._slices():
            (y,) = self._response_part(start, stop)
            yield self._part(start, stop), y

    def features(self) -> Iterator[NDArray[np.float64]]:
        for start, stop in self._slices():
            yield self._part(start, stop)

    def responses(self) -> Iterator[NDArray[np.float64]]:
        assert self._response is not None
        return in_parts(self._response, self.rows, self._readers[-1])

    def _response_part(self, start: int, stop: int) -> list[NDArray[np.float64]]:
        return [] if self._response is None else [self._response(start, stop, self._readers[-1])]

    def _slices(self) -> Iterator[tuple[int, int]]:
        n, step = self.rows, batch_rows(len(self._names))
        self._x = by_rows(self._x)
        for start in range(0, n, step):
            yield start, min(start + step, n)

    def _part(self, start: int, stop: int) -> NDArray[np.float64]:
        part = self._x[start:stop]
        if self._is_list:
            part = records_of_list(part, self._names)
        elif is_sparse(part):  # only these rows become dense
            part = part.toarray()
        if self._is_plain:
            return from_array(part)
        features = self._readers[: len(self._names)]
        return np.column_stack([from_array(part[:, j], read) for j, read in enumerate(features)])
