"""Columns of pandas, read by their dtype."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .cells import Reader, Takes, from_array, from_objects, quietly
from .columns import Cells, Typed, arrow_cells, object_cells


def pandas_cells(series: Any, takes: Takes) -> Typed:
    """Return the reader of a pandas column, and the name of its dtype."""
    kind, name = series.dtype, str(series.dtype).partition("[")[0]
    if isinstance(kind, pd.CategoricalDtype):
        return _category_cells(series) if _is_own(kind.categories.dtype) else None, name
    if not _is_own(kind):
        return None, name  # its values may have yet to be computed
    if isinstance(kind, pd.ArrowDtype):
        return arrow_cells(series.array.__arrow_array__(), takes)
    if isinstance(kind, pd.StringDtype) and kind.storage == "pyarrow":
        return arrow_cells(series.array.__arrow_array__(), takes)
    if kind.kind in "biuf":
        held = "boolean" if kind.kind == "b" else "number"
        return _number_cells(series) if held in takes else None, name
    if kind.kind == "M" and "date" in takes and isinstance(kind, (np.dtype, pd.DatetimeTZDtype)):
        return _date_cells(series), name
    if kind.kind in "cmM" or isinstance(kind, (pd.PeriodDtype, pd.IntervalDtype)):
        return None, name
    return object_cells(lambda start, stop: list(series.iloc[start:stop].array)), name


def _is_own(kind: Any) -> bool:
    """Whether a dtype is of NumPy or pandas, whose columns hold their values."""
    return isinstance(kind, np.dtype) or type(kind).__module__.partition(".")[0] == "pandas"


def _number_cells(series: Any) -> Cells:
    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        part = series.iloc[start:stop]
        if isinstance(part.dtype, np.dtype):
            return from_array(part.to_numpy(), read)
        with quietly():  # nullable or sparse
            return read.numbers(part.to_numpy(dtype=np.float64, na_value=np.nan))

    return cells


def _date_cells(series: Any) -> Cells:
    zone = getattr(series.dtype, "tz", None)

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        part = series.iloc[start:stop].array
        # In universal time, in which pandas stores it.
        return from_array(np.asarray(part if zone is None else part.tz_convert(None)), read)

    return cells


def _category_cells(series: Any) -> Cells:
    """Each category is read by itself, as an object, whatever type the categories share."""

    @functools.cache
    def categories_and_codes() -> tuple[list[Any], NDArray[Any]]:
        return list(series.cat.categories), series.cat.codes.to_numpy()

    def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
        categories, codes = categories_and_codes()
        used, places = np.unique(codes[start:stop], return_inverse=True)
        # The code -1 is a missing cell.
        values = from_objects([None if code < 0 else categories[code] for code in used], read)
        return values[places]

    return cells
