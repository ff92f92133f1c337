"""read_sample: show how public sample rows are read, cell by cell. NOT PRIVATE.

This tests a schema before it is used on the sensitive table. A text file has no types, so only its
cells show whether they are written as the schema declares. Cells are shown as they are, so the rows
must be public or simulated. They are read and quantized as in a selection.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.text import escape_for_terminal
from ..data.quantize import ColumnQuantizer
from ..data.readers import open_table, read_schema, sample_cells
from ..release.response_range import value_of
from ..schema.dates import iso_text
from ..schema.schema import Column, Schema, SchemaLike

__all__ = ["Sample", "SampleCell", "read_sample"]

NOT_PRIVATE = (
    "NOT PRIVATE: cells are shown as they are. Use this on public or simulated sample rows only, "
    "never on the sensitive table."
)


@dataclass(frozen=True)
class SampleCell:
    """One cell of a sample, and how it is read.

    Attributes
    ----------
    row : int
        Counted from 1.
    column : str
    text : str
        The cell as it is written.
    reads_as : {"number", "date", "level", "label", "missing", "unreadable"}
        A cell is missing if it is empty or has a declared code.
    value : number or str, optional
        The value that is read; a date as text in ISO 8601.
    counts_as : number or str, optional
        The value after clipping to the bounds, if clipping changes it.
    """

    row: int
    column: str
    text: str
    reads_as: str
    value: float | str | None = None
    counts_as: float | str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        clipped = self.counts_as is not None
        return {**self.__dict__, "value": _plain(self.value), "clipped": clipped}

    def __str__(self) -> str:
        shown = self.reads_as if self.value is None else f"{self.reads_as} {_shown(self.value)}"
        shown = shown.upper() if self.reads_as == "unreadable" else shown
        clipped = "" if self.counts_as is None else f", clipped to {_shown(self.counts_as)}"
        return f"{self.column} = {self.text!r}: {shown}{clipped}"


@dataclass(frozen=True)
class Sample:
    """How sample rows are read. NOT PRIVATE: it holds the cells."""

    cells: tuple[SampleCell, ...]
    columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"warning": NOT_PRIVATE, "cells": [cell.to_dict() for cell in self.cells]}

    def __str__(self) -> str:
        lines, row = [NOT_PRIVATE], 0
        for cell in self.cells:
            if cell.row != row:
                row = cell.row
                lines.append(f"Row {row}")
            lines.append(f"  {cell}")
        lines.append("In all")
        read = Counter(c.column for c in self.cells if c.value is not None)
        lost = Counter(c.column for c in self.cells if c.reads_as == "unreadable")
        for name in self.columns:
            unreadable = f", {lost[name]} UNREADABLE" * bool(lost[name])
            lines.append(f"  {name}: {read[name]} of {row} cells hold a value{unreadable}")
        return "\n".join(map(escape_for_terminal, lines))


def read_sample(data: Any, schema: SchemaLike, rows: int = 20) -> Sample:
    """Show how public sample rows are read, cell by cell. NOT PRIVATE, and costs nothing.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset or data frame
        Public or simulated rows in the format of the sensitive table. Never pass the table itself,
        because its cells would be shown.
    schema : Schema, path of a bounds file or dict of the same form
        The description of the table.
    rows : int
        Largest number of rows to show.

    Returns
    -------
    Sample
        Print it, or see its ``cells``.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name in the table is wrong.

    Examples
    --------
    >>> import pandas as pd, dpsubset as dps
    >>> schema = dps.Schema.from_bounds({"age": (0, 110)}, ("cost", 0, 1000))
    >>> sample = dps.read_sample(pd.DataFrame({"age": ["41", "?"], "cost": [300, 20]}), schema)
    >>> [cell.reads_as for cell in sample.cells if cell.column == "age"]
    ['number', 'unreadable']
    """
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise ArgumentError("rows must be a whole number, at least 1")
    schema = read_schema(schema, data)
    used = (*schema.features, schema.response)
    bare = replace(
        schema,
        columns=tuple(replace(c, missing=None) for c in schema.columns),
        response=replace(schema.response, missing=None),
    )
    values, uncoded = _values(data, schema, rows), _values(data, bare, rows)
    images = _images(schema, values)
    texts = sample_cells(data, schema, len(values))
    cells = [
        _cell(i + 1, column, texts[i][j], values[i, j], uncoded[i, j], images[i, j])
        for i in range(len(values))
        for j, column in enumerate(used)
    ]
    return Sample(tuple(cells), tuple(column.name for column in used))


def _values(data: Any, schema: Schema, rows: int) -> NDArray[np.float64]:
    """Values of cells, the response last; NaN for cells without a value."""
    # A block has at least one row.
    found = [np.column_stack([x, y]) for x, y in islice(open_table(data, schema).blocks(), rows)]
    width = len(schema.features) + 1
    return np.vstack([np.empty((0, width)), *found])[:rows]


def _images(schema: Schema, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantized values, column by column; NaN for levels."""
    found = np.full(values.shape, np.nan)
    for j, column in enumerate(schema.columns_read):
        if column.levels is None:
            by_itself = replace(column, role="feature", group=None, missing=None)
            ColumnQuantizer(by_itself).quantize(values[:, j], found[:, j])
    return found


def _cell(
    row: int, column: Column, text: Any, value: float, bare: float, image: float
) -> SampleCell:
    shown_text = _text(text)
    if math.isnan(value):
        codes = () if column.missing is None else column.missing.codes
        coded = not math.isnan(bare) or shown_text.strip() in map(str, codes)
        missing = (
            text is None or not shown_text.strip() or coded or shown_text in ("nan", "NaT", "<NA>")
        )
        return SampleCell(row, column.name, shown_text, "missing" if missing else "unreadable")
    if column.labels is not None:
        return SampleCell(row, column.name, shown_text, "label", str(column.labels[int(value > 0)]))
    if column.levels is not None:
        return SampleCell(row, column.name, shown_text, "level", str(column.levels[int(value)]))
    low, high = column.span
    assert low is not None
    assert high is not None
    date = column.kind == "date"
    instead = None
    if not low <= value <= high:
        kept = value_of(column, Fraction(int(image)))
        instead = iso_text(round(kept, 6)) if date else kept
    shown = iso_text(value) if date and math.isfinite(value) else value
    kind = "date" if date else "number"
    return SampleCell(row, column.name, shown_text, kind, shown, instead)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def _plain(value: float | str | None) -> float | str | None:
    """Return a value that JSON can represent: infinities become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
