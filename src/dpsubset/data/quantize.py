"""The quantizer: converts the values of a record to integers, within public bounds.

A record arrives as the values of its cells: a number for each feature, or the position of a level,
and a number for the response; NaN for a cell that is missing or unreadable. It becomes integers q
with |q| <= 32767, one for each column of the model:

- a *value* is clipped to the feature's public bounds, transformed as declared, mapped affinely to
  [-1, 1] and rounded to a multiple of 1/32767; NaN becomes the value that the rule of the feature,
  or else of the schema, says;
- a *level* is 1 if the feature has that level, and else 0;
- *missing* is 1 if the cell is NaN, and else 0;
- the intercept's column, if there is one, holds its constant;
- the response, which a schema may lack, is a value. A map of its integers may follow, given by a
  range that was released before.

A record whose response is NaN becomes 0 in every column, the intercept's included, unless the
response declares a rule for missing values: it adds nothing to any sum of products.

The integers of a record depend on its own cells and on public facts alone, and no cell raises an
error.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.kernels.compiled import threaded_kernel
from ..base.kernels.logarithm import logarithm
from ..schema.column import SMALLEST_HALF_WIDTH
from ..schema.encoding import Design, ModelColumn
from ..schema.labels import canonical
from ..schema.layout import STEPS
from ..schema.schema import AnySchema, Column

__all__ = ["STEPS", "ColumnQuantizer", "Quantizer"]

#: How a column of the model is computed.
_VALUE, _LOG, _SQRT, _EQUAL = range(4)
_TRANSFORMS: dict[str | None, tuple[int, Callable[[float], float]]] = {
    None: (_VALUE, float),
    "log": (_LOG, logarithm),
    "sqrt": (_SQRT, math.sqrt),
}

#: The integer that NaN becomes, by the rule.
_FILLS = {"middle": 0, "low": -STEPS, "high": STEPS, "indicator": 0, "drop": 0}


class ColumnQuantizer:
    """Quantizes a column with bounds by itself, as the quantizer does with a response."""

    def __init__(self, column: Column) -> None:
        self._maps = _maps([ModelColumn(0, "value")], [column], "drop")
        missing = column.missing
        # With the rule "value", a bad cell is a value like others.
        self._has_bad = missing is None or missing.rule != "value"

    def quantize(self, values: NDArray[Any], out: NDArray[Any]) -> None:
        """Quantize ``values`` into ``out``, both of shape (rows,)."""
        _quantize(_as_floats(values).reshape(-1, 1), *self._maps, out[:, None])

    def bad(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the values are bad cells."""
        return np.isnan(values) if self._has_bad else np.zeros(len(values), dtype=bool)


class Quantizer:
    """Quantizes records into the columns of a model, the intercept and the response, in this order.

    ``constant`` is the intercept's value in steps; 0 for a model without an intercept, which has no
    such column. ``images`` is a map of the response: ``images[q + STEPS]`` replaces the integer q.
    Bad cells stay bad. A record becomes ``width`` integers.
    """

    def __init__(
        self, schema: AnySchema, constant: int = 0, images: NDArray[np.int16] | None = None
    ) -> None:
        self._schema, self.constant, self._images = schema, constant, images
        columns = Design.of(schema).columns
        self._columns = len(columns)
        self._features = _maps(columns, schema.features, schema.bad_cells)
        self.width = self._columns + (constant != 0)
        self._response: ColumnQuantizer | None = None
        if schema.response is not None:
            self.width += 1
            self._response = ColumnQuantizer(schema.response)
            self._drops_rows = schema.response.drops_rows

    @property
    def fingerprint(self) -> str:
        """Identifies the schema and, if there is one, the map of the response."""
        found = self._schema.fingerprint()
        if self._images is None:
            return found
        return hashlib.sha256(found.encode() + self._images.tobytes()).hexdigest()

    def features(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Quantize x (rows, features) into ``out``, of shape (rows, model columns)."""
        _quantize(_as_floats(x), *self._features, out)

    def records(self, x: NDArray[Any], y: NDArray[Any], out: NDArray[Any]) -> None:
        """Quantize x (rows, features) and y (rows,) into ``out`` (rows, width).

        Values are real numbers of any type, NaN for bad cells. ``out`` may be float64 (for exact
        products) or int16, in any memory order.
        """
        assert self._response is not None
        y = _as_floats(y)
        self.features(x, out[:, : self._columns])
        if self.constant:
            out[:, self._columns] = self.constant
        self._response.quantize(y, out[:, -1])
        if self._images is not None:
            mapped = self._images[out[:, -1].astype(np.int64) + STEPS]
            out[:, -1] = np.where(self._response.bad(y), out[:, -1], mapped)
        if self._drops_rows:
            out[np.isnan(y)] = 0


#: For each model column: its feature, kind, lo, hi, centre, steps a unit, and image of NaN.
_Maps = tuple[NDArray[Any], ...]


def _maps(columns: Sequence[ModelColumn], features: Sequence[Column], bad_cells: str) -> _Maps:
    rows = [_map(column, features[column.feature], bad_cells) for column in columns]
    kinds, lo, hi, low, high, fill = np.array(rows, dtype=np.float64).T.copy()
    half = np.maximum(high / 2 - low / 2, SMALLEST_HALF_WIDTH)
    feature = np.array([column.feature for column in columns], dtype=np.int64)
    maps = (feature, kinds.astype(np.int64), lo, hi, low / 2 + high / 2, STEPS / half)
    # A value that replaces missing cells is quantized as any other.
    replacements = np.array([[_replacement(f) for f in features]])
    if np.isnan(replacements).all():
        return *maps, fill
    images = np.empty((1, len(columns)))
    _quantize(replacements, *maps, fill, images)
    return *maps, images[0]


def _map(column: ModelColumn, feature: Column, bad_cells: str) -> tuple[float, ...]:
    """One model column: kind, bounds before and after the transform, and image of NaN."""
    if column.kind == "level":
        return _EQUAL, column.level, 0, 0, 1, 0
    if column.kind == "missing":
        return _EQUAL, np.nan, 0, 0, 1, STEPS
    lo, hi = feature.ends
    kind, apply = _TRANSFORMS[feature.transform]
    rule = None if feature.missing is None else feature.missing.rule
    return kind, lo, hi, apply(lo), apply(hi), _FILLS.get(rule or bad_cells, 0)


def _replacement(feature: Column) -> float:
    """The value that replaces a missing cell, a number or the position of a level; NaN for none."""
    if feature.missing is None or feature.missing.rule != "value":
        return np.nan
    value = feature.missing.value
    assert value is not None
    if feature.levels is None:
        return float(value)
    return [canonical(level) for level in feature.levels].index(canonical(value))


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    # No warning for a long double beyond float64, which becomes inf and is clipped.
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64)


@threaded_kernel
def _quantize(
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
    # Tiles of rows suit both memory orders of ``out``.
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
