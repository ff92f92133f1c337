"""Cells to float64, each by itself: the value of one cell never depends on another.

Numbers stay numbers, booleans become 0 and 1, text is read as a decimal number; everything else
(missing, words, dates, objects) is NaN. A response with labels has a reader of its own, in
`labelled`.
"""

from __future__ import annotations

import decimal
import fractions
import math
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..labels import NUMBER
from ..schema import Column

#: Real numbers; NumPy counts time differences among its integers, and its float() refuses them.
_NUMBERS = (
    bool, int, float, np.integer, np.floating, np.bool_, decimal.Decimal, fractions.Fraction
)  # fmt: skip

_NUMBER = f"^{NUMBER}$"


class Reader(Protocol):
    """Makes float64 of the cells of one column, each by itself."""

    def from_numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        """Real numbers of any type."""

    def from_arrow(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
        """An Arrow column of a readable type."""

    def from_objects(self, cells: Iterable[Any]) -> NDArray[np.float64]:
        """Python objects of any kind."""


class NumberReader:
    """Reads the cells of a column with bounds."""

    @staticmethod
    def from_numbers(values: NDArray[Any]) -> NDArray[Any]:
        """Real numbers of any type, as they are."""
        return values

    @staticmethod
    def from_arrow(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
        """An Arrow column of a readable type."""
        return from_arrow(column)

    @staticmethod
    def from_objects(cells: Iterable[Any]) -> NDArray[np.float64]:
        """Python objects of any kind."""
        return from_objects(cells)


NUMBERS = NumberReader()


def reader(column: Column) -> Reader:
    """What reads the cells of a column."""
    if column.labels is None:
        return NUMBERS
    from .labelled import LabelReader

    return LabelReader(column.labels)


def is_readable(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type can hold numbers."""
    if pa.types.is_dictionary(kind):
        return is_readable(kind.value_type)
    return (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
        or is_text(kind)
    )


def from_arrow(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """An Arrow column of a readable type as float64."""
    column = decoded(column)
    if is_text(column.type):
        column = _read_text(column)
    elif not pa.types.is_float64(column.type):
        # Unsafe casts round where safe ones raise (integers beyond 2**53).
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A dictionary as the values that it stands for, and text as bytes of any encoding."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return column
    # As binary: bytes that are not UTF-8 are unreadable cells, not errors.
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    return column.cast(pa.large_binary() if large else pa.binary())


def from_objects(cells: Iterable[Any]) -> NDArray[np.float64]:
    """Python objects of any kind as float64."""
    values, texts = sorted_out(cells)
    if texts:
        values[list(texts)] = from_arrow(pa.array(list(texts.values()), pa.large_binary()))
    return values


def sorted_out(cells: Iterable[Any]) -> tuple[NDArray[np.float64], dict[int, bytes]]:
    """Python objects that are numbers, NaN for all others; and by position, those that are text."""
    values: list[float] = []
    texts: dict[int, bytes] = {}
    # A long double beyond float64 would warn, and the warning would be about a cell.
    with np.errstate(all="ignore"):
        for i, cell in enumerate(cells):
            # By type(cell), not isinstance: an object may lie about, or choke on, its __class__.
            kind = type(cell)
            values.append(_number(cell) if issubclass(kind, _NUMBERS) else math.nan)
            if issubclass(kind, str):
                texts[i] = str.encode(cell, "utf-8", "surrogatepass")
            elif issubclass(kind, bytes):
                texts[i] = cell
    return np.array(values, dtype=np.float64), texts


def _number(cell: Any) -> float:
    try:
        try:
            return float(cell)
        except OverflowError:  # an integer or a fraction beyond float64
            return math.inf if cell > 0 else -math.inf
    except Exception:  # a subclass's own __float__ may raise anything
        return math.nan


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds text, or bytes that may be text."""
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or kind in (pa.string_view(), pa.binary_view())
    )


def _read_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    large = pa.types.is_large_binary(column.type)
    is_number = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
    kept = pc.if_else(is_number, column, None)
    text = kept.cast(pa.large_string() if large else pa.string())
    return pc.ascii_trim_whitespace(text).cast(pa.float64())
