"""The door: the only way in for raw values.

Every cell, whatever it holds, becomes an integer q with |q| <= 32767: clip to the column's public
bounds, map affinely to [-1, 1], round to a multiple of 1/32767. NaN (which is also what sources
make of missing and unreadable cells) goes where the schema's rule says. One record in, one record
out: a cell's image depends on that cell and on the schema, on nothing else, and no cell can make
the door fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import threaded_kernel
from ..public.design import Design
from ..public.layout import STEPS
from ..public.schema import Schema

__all__ = ["STEPS", "Door"]


class Door:
    """Quantiser for the p variables and the response (last column) of a schema."""

    def __init__(self, schema: Schema) -> None:
        design = Design.of(schema)
        self.width = len(design.columns) + 1
        lo, hi = design.lows, design.highs
        self._lo, self._hi = lo, hi
        self._centre = lo / 2 + hi / 2
        self._scale = STEPS / (hi / 2 - lo / 2)
        self._fill = {"middle": 0.0, "low": -STEPS, "high": STEPS}[schema.bad_cells]

    def enter(self, values: NDArray[Any], out: NDArray[Any], first: int = 0) -> None:
        """Quantise ``values``, columns ``first, first + 1, ...`` of the schema, into ``out``.

        ``values`` are real numbers of any type, NaN for bad cells. ``out`` holds whole records; it
        may be float64 (for exact products) or int16.
        """
        # A long double beyond float64 becomes inf, which is clipped: nothing to warn of, nor is a
        # NaN that signals.
        with np.errstate(all="ignore"):
            values = np.asarray(values, dtype=np.float64)
        last = first + values.shape[1]
        _quantise(
            values,
            self._lo[first:last],
            self._hi[first:last],
            self._centre[first:last],
            self._scale[first:last],
            self._fill,
            out[:, first:last],
        )


@threaded_kernel
def _quantise(
    values: NDArray[np.float64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    centre: NDArray[np.float64],
    scale: NDArray[np.float64],
    fill: float,
    out: NDArray[Any],
) -> None:
    rows, columns = values.shape
    # Tiles of rows: both layouts of ``out``, records or columns together, are then written in turn.
    for start in range(0, rows, 32):
        for j in range(columns):
            for i in range(start, min(start + 32, rows)):
                v = values[i, j]
                if v != v:
                    q = fill
                else:
                    # Clipping first keeps infinities out of the arithmetic; clamping last keeps
                    # the promise |q| <= STEPS whatever the rounding of centre and scale.
                    v = min(max(v, lo[j]), hi[j])
                    q = np.rint((v - centre[j]) * scale[j])
                    q = min(max(q, -32767.0), 32767.0)
                out[i, j] = q
