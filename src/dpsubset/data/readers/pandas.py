"""Columns of pandas, by their dtype."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .cells import NUMBERS, Reader, Takes, from_array, from_objects, quietly
from .columns import Cells, Typed, arrow_cells, object_cells


def pandas_cells(series: Any, takes: Takes = NUMBERS.takes) -> Typed:
    """A column of pandas."""
    kind, name = series.dtype, str(series.dtype).partition("[")[0]
    if isinstance(kind, pd.CategoricalDtype):
        return _categorical(series) if _is_own(kind.categories.dtype) else None, name
    if not _is_own(kind):
        return None, name  # its cells may have yet to be computed
    if isinstance(kind, pd.ArrowDtype):
        return arrow_cells(series.array.__arrow_array__(), takes)
    if isinstance(kind, pd.StringDtype) and kind.storage == "pyarrow":
        return arrow_cells(series.array.__arrow_array__(), takes)
    if kind.kind in "biuf":
        sort = "boolean" if kind.kind == "b" else "number"
        return _numbers(series) if sort in takes else None, name
    if kind.kind == "M" and "date" in takes and isinstance(kind, (np.dtype, pd.DatetimeTZDtype)):
        return _dates(series), name
    if kind.kind in "cmM" or isinstance(kind, (pd.PeriodDtype, pd.IntervalDtype)):
        return None, name
    return object_cells(lambda start, stop: list(series.iloc[start:stop].array)), name


def _is_own(kind: Any) -> bool:
    """Whether a dtype is one of NumPy's or pandas' own, whose columns hold their values."""
    return isinstance(kind, np.dtype) or type(kind).__module__.partition(".")[0] == "pandas"


def _numbers(series: Any) -> Cells:
    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        part = series.iloc[start:stop]
        if isinstance(part.dtype, np.dtype):
            return from_array(part.to_numpy(), read)
        with quietly():  # nullable or sparse
            return read.numbers(part.to_numpy(dtype=np.float64, na_value=np.nan))

    return cells


def _dates(series: Any) -> Cells:
    zone = getattr(series.dtype, "tz", None)

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        part = series.iloc[start:stop].array
        # In universal time, in which it is kept.
        return from_array(np.asarray(part if zone is None else part.tz_convert(None)), read)

    return cells


def _categorical(series: Any) -> Cells:
    """Each category is a cell: it is read by itself, as an object, whatever type they share."""

    @functools.cache
    def unfolded() -> tuple[list[Any], NDArray[Any]]:
        return list(series.cat.categories), series.cat.codes.to_numpy()

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        categories, codes = unfolded()
        used, places = np.unique(codes[start:stop], return_inverse=True)
        # No category has the code -1: the cell is missing.
        values = from_objects([None if code < 0 else categories[code] for code in used], read)
        return values[places]

    return cells
