"""The sensitive table: checks names and types of columns, and passes values to the quantizer.

A search or a mechanism has access to a user's data only through this object. Its repr shows no
value, and it cannot be pickled. Only the methods that read and count use values, and none of them
fails because of a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, TableError
from ..data.gram import GramData, with_constant
from ..data.histograms import count_response
from ..data.moments import Block, Moments, check_n
from ..data.readers import Table, open_table
from ..data.readers.passes import Passes, over
from ..objective.problem import Problem
from ..schema.encoding import Design
from ..schema.schema import Schema

#: With more variables than this, columns of X'X are multiplied out on demand ...
_MANY_VARIABLES = 1500
#: ... if the records, at two bytes a cell, fit in this many bytes.
_RECORD_BYTES = 2**32
#: Largest number of bytes of cells that are kept from one pass to the next.
_KEPT_BYTES = 2**28


class SensitiveTable:
    """A table of a schema, private as a whole.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame, array, list or Moments
    schema : Schema
        The schema to which names, types and the number of columns are compared.
    y : array, optional
        The response, if it is passed separately from ``data``.
    records_for : str, optional
        What needs the records, for an error message. Moments are then refused.
    """

    def __init__(
        self, data: Any, schema: Schema, y: Any = None, *, records_for: str | None = None
    ) -> None:
        self._schema = schema
        self._records = records_for is not None
        self._moments: Moments | None = None
        self._kept: list[Block] | None = None
        self._table: Table | None = None
        if isinstance(data, Moments):
            if self._records:
                raise ArgumentError(
                    f"{records_for} needs the records: moments are not enough. Moments can be "
                    "used with loss='least-squares'"
                )
            self._moments = _of_schema(data, schema)
        else:
            self._table = open_table(data, schema, y)

    def __repr__(self) -> str:
        return "SensitiveTable(private values hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a sensitive table cannot be pickled, because it is private")

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known before values are read. Private under add-remove."""
        held = self._table
        if held is not None:
            return held.rows
        return None if self._moments is None else self._moments.n

    def count_response(self, passes: Passes | None = None) -> tuple[NDArray[np.int64], int]:
        """Return the histogram of the quantized response without bad cells, and the number of rows.

        Both are private. Moments have no histogram: requests that need it refuse them before.
        """
        assert self._table is not None
        responses = over(passes, self._table.responses(), self._table.rows)
        return count_response(self._schema.response, responses)

    def count_bad(self, passes: Passes | None = None) -> tuple[list[int], int]:
        """Return the number of bad cells of each feature and, last, of the response; and the number
        of rows. All of them are private. A record counts at most once in each number, by its own
        cell.
        """
        assert self._table is not None
        bad, n = np.zeros(len(self._schema.features) + 1, dtype=np.int64), 0
        for x, y in over(passes, self._table.blocks(), self._table.rows):
            n += len(y)
            check_n(n)
            bad[:-1] += np.isnan(np.asarray(x, dtype=np.float64)).sum(axis=0)
            bad[-1] += np.isnan(y).sum()
        return bad.tolist(), n

    def keep(self, n: int) -> None:
        """Keep the values of the cells in memory for further passes, if n rows are few enough."""
        assert self._table is not None
        if 8 * n * (len(self._schema.features) + 1) <= _KEPT_BYTES:
            self._kept = list(self._table.blocks())

    def read(
        self,
        problem: Problem,
        passes: Passes | None = None,
        images: NDArray[np.int16] | None = None,
    ) -> GramData:
        """Quantize the values. Records are kept if ``records_for`` is set, or if there are many
        columns and the records fit in memory: all products of columns would be more work.

        ``images`` maps the quantized response to its released range.
        """
        constant = problem.layout.constant
        if self._table is None:
            assert self._moments is not None
            if passes is not None:
                passes.skip(self._moments.n)
            return GramData.from_moments(self._moments, constant)
        rows, p, schema = self._table.rows, problem.columns, self._schema
        blocks = self._blocks(passes)
        wide = p > _MANY_VARIABLES
        if wide and rows is None:
            blocks, wide = _read_ahead(blocks, _KEPT_BYTES // (8 * (p + 1)))
        elif wide and rows is not None:
            wide = 2 * rows * (p + 1) <= _RECORD_BYTES
        if self._records or wide:
            return GramData.from_records(schema, blocks, constant, images)
        moments = Moments.from_blocks(schema, blocks, constant, images)
        return GramData.from_moments(moments, constant)

    def read_support(
        self,
        part: Schema,
        constant: int,
        passes: Passes | None = None,
        images: NDArray[np.int16] | None = None,
    ) -> Moments:
        """Return exact sums of products for the features of the schema ``part``. ``images`` maps
        the response, as in `read`.
        """
        if self._moments is not None:
            if passes is not None:
                passes.skip(self._moments.n)
            return _part_of(self._moments, self._schema, self._places(part), constant)
        return Moments.from_blocks(part, self._support(part, passes), constant, images)

    def read_records(
        self,
        part: Schema,
        constant: int,
        passes: Passes | None = None,
        images: NDArray[np.int16] | None = None,
    ) -> NDArray[np.int16]:
        """Return the quantized columns of the schema ``part``, one record per row, with the
        constant and the response last.
        """
        gram = GramData.from_records(part, self._support(part, passes), constant, images)
        return np.concatenate([gram.records, gram.response[None]])

    def _blocks(self, passes: Passes | None) -> Iterator[Block]:
        """Yield all records, from memory if they are kept there."""
        assert self._table is not None
        blocks = self._table.blocks() if self._kept is None else self._kept
        return over(passes, blocks, self._table.rows)

    def _places(self, part: Schema) -> list[int]:
        names = list(self._schema.feature_names)
        return [names.index(name) for name in part.feature_names]

    def _support(self, part: Schema, passes: Passes | None) -> Iterator[Block]:
        """Yield blocks of the features of ``part``."""
        features = self._places(part)
        return ((x[:, features], y) for x, y in self._blocks(passes))


def _read_ahead(blocks: Iterator[Block], rows: int) -> tuple[Iterator[Block], bool]:
    """Return all blocks, and whether they have at most this many records, which are read first."""
    ahead: list[Block] = []
    for x, y in blocks:
        ahead.append((x, y))
        rows -= len(y)
        if rows < 0:
            return chain(ahead, blocks), False
    return iter(ahead), True


def _part_of(moments: Moments, schema: Schema, features: list[int], constant: int) -> Moments:
    """Return the columns of some features, in the order of the schema ``part``."""
    columns = Design.of(schema).columns
    places = [i for i, column in enumerate(columns) if column.feature in features]
    products = with_constant(moments, constant)
    kept = [*places, -2, -1]
    part = products[np.ix_(kept, kept)]
    return Moments(part, moments.n, moments.fingerprint, constant, moments.parts)


def _of_schema(moments: Moments, schema: Schema) -> Moments:
    checked = moments.checked()
    if checked.fingerprint != schema.fingerprint():
        raise ArgumentError("these moments were made with another schema")
    if checked.p != len(Design.of(schema).columns):
        raise TableError("the number of columns of these moments differs from that of their schema")
    if not schema.response.drops_rows and checked.counted not in (None, checked.n):
        raise TableError("these moments leave out records, but with their schema all records count")
    return checked
