"""Columns of polars, by their type, by way of Arrow."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from .arrow import from_arrow, is_readable
from .cells import NUMBERS, Reader, Takes
from .columns import Typed, object_cells


def polars_cells(series: Any, takes: Takes = NUMBERS.takes) -> Typed:
    """A column of polars."""
    kind = type(series.dtype).__name__
    if kind not in ("Object", "Unknown"):
        with suppress(pa.ArrowException):
            typed = _folded(series, 0, 0).type  # of no cell

            def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
                return from_arrow(_folded(series, start, stop), read)

            return (cells if is_readable(typed, takes) else None), kind
    if "number" not in takes and kind not in ("Object", "Unknown"):
        return None, kind
    # Objects, and numbers that Arrow has no type for (of 128 bits).
    return object_cells(lambda start, stop: series.slice(start, stop - start).to_list()), kind


def _folded(series: Any, start: int, stop: int) -> pa.Array:
    """With text as views, of which many may be of one long text."""
    return series.slice(start, stop - start).to_arrow(compat_level=pl.CompatLevel.newest())
