"""The door: the only way in for raw values.

A record comes as what its cells read as: a number for each feature, or the position of a level, and
a number for the response; NaN is a cell that is missing or unreadable. It leaves as integers q with
|q| <= 32767, one for each column of the model:

- a *value* is clipped to the feature's public bounds, transformed as declared, mapped affinely to
  [-1, 1] and rounded to a multiple of 1/32767; NaN goes where the rule of the feature says, or of
  the schema;
- a *level* is 1 where the feature has that level, and else 0;
- *missing* is 1 where the cell is NaN, and else 0;
- the column of the intercept, if there is one, holds its constant.

A record whose response is NaN becomes 0 in every column, the intercept's included, unless the
response declares where a missing value goes: it then adds nothing to any sum of products, and no
model tells it from another such record.

One record in, one record out: a record's image depends on its own cells and on the schema, on
nothing else, and no cell can make the door fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.kernels.compiled import threaded_kernel
from ..base.kernels.logarithm import logarithm
from ..schema.column import SMALLEST_HALF_WIDTH
from ..schema.encoding import Design, ModelColumn
from ..schema.labels import reading
from ..schema.layout import STEPS
from ..schema.schema import Column, Schema

__all__ = ["STEPS", "Quantizer"]

#: How a column of the model comes about.
_VALUE, _LOG, _SQRT, _EQUAL = range(4)
_TRANSFORMS: dict[str | None, tuple[int, Callable[[float], float]]] = {
    None: (_VALUE, float),
    "log": (_LOG, logarithm),
    "sqrt": (_SQRT, math.sqrt),
}

#: Where NaN goes, by the rule.
_FILLS = {"middle": 0, "low": -STEPS, "high": STEPS, "indicator": 0, "drop": 0}


class Quantizer:
    """Quantiser for the columns of a schema's model, the intercept and the response, in this order.

    Parameters
    ----------
    schema : Schema
    constant : int
        The intercept's value in every record that counts, in steps; 0 if there is none, nor a
        column for it.

    Attributes
    ----------
    width : int
        How many integers a record becomes.
    """

    def __init__(self, schema: Schema, constant: int = 0) -> None:
        design = Design.of(schema)
        self.constant = constant
        self._columns = len(design.columns)
        self.width = self._columns + (constant != 0) + 1
        self._features = _maps(design.columns, design.features, schema.bad_cells)
        self._response = _maps([ModelColumn(0, "value")], [design.response], "drop")
        self._drops = design.response.drops_rows

    def records(self, x: NDArray[Any], y: NDArray[Any], out: NDArray[Any]) -> None:
        """Quantise x (rows, features) and y (rows,) into ``out`` (rows, width).

        They are real numbers of any type, NaN for bad cells. ``out`` may be float64 (for exact
        products) or int16, with records or columns together.
        """
        y = _floats(y)
        _quantise(_floats(x), *self._features, out[:, : self._columns])
        if self.constant:
            out[:, self._columns] = self.constant
        self.response(y, out[:, -1])
        if self._drops:
            out[np.isnan(y)] = 0

    def response(self, y: NDArray[Any], out: NDArray[Any]) -> None:
        """Quantise y alone into ``out`` (rows,)."""
        _quantise(_floats(y).reshape(-1, 1), *self._response, out[:, None])


#: For each column: its feature, how it comes about, lo, hi, centre, scale, and where NaN goes.
_Maps = tuple[NDArray[Any], ...]


def _maps(columns: Sequence[ModelColumn], features: Sequence[Column], bad_cells: str) -> _Maps:
    rows = [_map(column, features[column.feature], bad_cells) for column in columns]
    kinds, lo, hi, low, high, fill = np.array(rows, dtype=np.float64).T.copy()
    half = np.maximum(high / 2 - low / 2, SMALLEST_HALF_WIDTH)
    feature = np.array([column.feature for column in columns], dtype=np.int64)
    maps = (feature, kinds.astype(np.int64), lo, hi, low / 2 + high / 2, STEPS / half)
    # What stands for a missing cell goes in by the same door.
    instead = np.array([[_instead(f) for f in features]])
    if np.isnan(instead).all():
        return *maps, fill
    images = np.empty((1, len(columns)))
    _quantise(instead, *maps, fill, images)
    return *maps, images[0]


def _map(column: ModelColumn, feature: Column, bad_cells: str) -> tuple[float, ...]:
    """Of one column: how, bounds before and after the transform, and where NaN goes."""
    if column.kind == "level":
        return _EQUAL, column.level, 0, 0, 1, 0
    if column.kind == "missing":
        return _EQUAL, np.nan, 0, 0, 1, STEPS
    lo, hi = feature.span
    assert lo is not None
    assert hi is not None
    how, apply = _TRANSFORMS[feature.transform]
    rule = None if feature.missing is None else feature.missing.rule
    return how, lo, hi, apply(lo), apply(hi), _FILLS.get(rule or bad_cells, 0)


def _instead(feature: Column) -> float:
    """What a missing cell is taken for, a number or the position of a level; NaN if for nothing."""
    if feature.missing is None or feature.missing.rule != "value":
        return np.nan
    value = feature.missing.value
    assert value is not None
    if feature.levels is None:
        return float(value)
    return [reading(level) for level in feature.levels].index(reading(value))


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    # A long double beyond float64 becomes inf, which is clipped: nothing to warn of, nor is a
    # NaN that signals.
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64)


@threaded_kernel
def _quantise(
    values: NDArray[np.float64],
    feature: NDArray[np.int64],
    kind: NDArray[np.int64],
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    centre: NDArray[np.float64],
    scale: NDArray[np.float64],
    fill: NDArray[np.float64],
    out: NDArray[Any],
) -> None:
    rows = values.shape[0]
    # Tiles of rows: both layouts of ``out``, records or columns together, are then written in turn.
    for start in range(0, rows, 32):
        stop = min(start + 32, rows)
        for j in range(feature.shape[0]):
            f, how, nothing = feature[j], kind[j], fill[j]
            if how == _EQUAL:
                for i in range(start, stop):
                    v = values[i, f]
                    out[i, j] = nothing if v != v else (32767.0 if v == lo[j] else 0.0)
                continue
            least, most, middle, steps = lo[j], hi[j], centre[j], scale[j]
            for i in range(start, stop):
                v = values[i, f]
                if v != v:
                    q = nothing
                else:
                    # Clipping first keeps infinities out of the arithmetic; clamping last keeps
                    # the promise |q| <= STEPS whatever the rounding of centre and scale.
                    v = min(max(v, least), most)
                    if how != _VALUE:
                        v = logarithm(v) if how == _LOG else np.sqrt(v)
                    q = np.rint((v - middle) * steps)
                    q = min(max(q, -32767.0), 32767.0)
                out[i, j] = q
