"""Columns of polars, read by their type after conversion to Arrow."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from .arrow import from_arrow, is_readable
from .cells import Reader, Takes
from .columns import Typed, object_cells


def polars_cells(series: Any, takes: Takes) -> Typed:
    """Return the reader of a polars column, and the name of its dtype."""
    kind = type(series.dtype).__name__
    if kind not in ("Object", "Unknown"):
        with suppress(pa.ArrowException):
            typed = _arrow_of(series, 0, 0).type  # looks at no cell

            def cells(start: int, stop: int, read: Reader) -> NDArray[np.float64]:
                return from_arrow(_arrow_of(series, start, stop), read)

            return (cells if is_readable(typed, takes) else None), kind
    if "number" not in takes and kind not in ("Object", "Unknown"):
        return None, kind
    # Objects, and numbers of 128 bits, for which Arrow has no type.
    return object_cells(lambda start, stop: series.slice(start, stop - start).to_list()), kind


def _arrow_of(series: Any, start: int, stop: int) -> pa.Array:
    """With text as views, since many cells may share one long text."""
    return series.slice(start, stop - start).to_arrow(compat_level=pl.CompatLevel.newest())
