"""What a cell reads as: one function of one cell.

A cell becomes a float64, or NaN if it is missing or unreadable, and what it becomes depends on that
cell and on what is declared: the schema, and the type of its column where the table has one. It
never depends on another cell. Numbers of any type stay numbers, rounded to the nearest float64;
booleans become 0 and 1; text is read as a decimal number; everything else (missing, words, dates,
complex numbers off the real line, objects) is NaN. Columns with levels, labels or codes and those
of booleans have readers of their own, in `labelled`, those of dates in `dates`, and those with a
declared format in `formatted`.

Columns that have a type are converted by that type (numbers here, Arrow's types in `arrow`). Cells
without one, in lists and in columns of objects, are taken one by one, whatever stands beside them.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import functools
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...schema.formats import Format
from ...schema.labels import NUMBER, reading
from ...schema.schema import Column, Schema
from . import dates

#: In bytes. Longer text is unreadable: no number or label is that long, and it bounds the memory
#: that a cell can take.
LONGEST_TEXT = 2**12

#: Objects whose text is gathered before it is read.
_OBJECTS = 2**14

_NUMBER = f"^{NUMBER}$"


#: Types of columns, by what they hold: "number", "boolean" and "date". Text may spell any of them.
Takes = frozenset[str]


class Reader(Protocol):
    """Makes float64 of the cells of one column, each by itself."""

    @property
    def takes(self) -> Takes:
        """Which types of columns, beside text, hold cells that it may read as a value."""

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers, NaN for cells that are missing or hold none; may return ``values`` itself."""

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Text of at most `LONGEST_TEXT` bytes, as bytes of any encoding, nulls among it."""

    def days(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Dates, in days, NaN for none; may return ``values`` itself."""


class NumberReader:
    """Reads the cells of a column with bounds."""

    takes: Takes = frozenset({"number", "boolean"})

    @staticmethod
    def numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers, as they are."""
        return values

    @staticmethod
    def texts(column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Text that spells a decimal number, blanks around it allowed."""
        is_number = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
        spelled = pc.if_else(is_number, column, None).cast(pa.large_string())
        values = pc.ascii_trim_whitespace(spelled).cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)

    @staticmethod
    def days(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A date is no number."""
        return np.full(values.shape, np.nan)


NUMBERS = NumberReader()


def readers(schema: Schema) -> list[Reader]:
    """What reads the cells of each feature and, last, of the response."""
    return [reader(column) for column in (*schema.features, schema.response)]


def reader(column: Column) -> Reader:
    """What reads the cells of a column."""
    from .labelled import BooleanReader, CodedReader, LabelReader, LevelReader

    # What has no level or label is missing anyway: codes only say that it may be there.
    if column.labels is not None:
        return LabelReader(column.labels)
    if column.levels is not None:
        return LevelReader(column.levels)
    kinds: dict[str, Reader] = {"boolean": BooleanReader(), "date": dates.DATES}
    read = kinds.get(column.kind, NUMBERS)
    if column.format is not None:
        read = _formatted(column.format)
    # Text that spells no number, or date, is missing without being called so.
    codes = [] if column.missing is None else map(reading, column.missing.codes)
    numbers = [value for code in codes if not math.isnan(value := _code(code, read))]
    return CodedReader(read, numbers) if numbers else read


def _formatted(form: Format) -> Reader:
    from .formatted import FormattedDates, FormattedNumbers

    return FormattedDates(form) if isinstance(form, str) else FormattedNumbers(form)


def _code(code: float | str, read: Reader) -> float:
    """What a code for missing cells reads as; as text it may be written in the column's format."""
    if isinstance(code, float):
        return code
    return float(read.texts(pa.array([code.encode()], pa.large_binary()))[0])


@contextmanager
def quietly() -> Iterator[None]:
    """No warning is about a cell: a long double beyond float64, a NaN that signals, odd objects."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def from_array(values: NDArray[Any], read: Reader = NUMBERS) -> NDArray[np.float64]:
    """The cells of an array, of any shape: by its type, or one by one where it has objects or text.

    A masked cell is missing.
    """
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    cells = np.asarray(values)
    if cells.dtype.kind == "M":
        moments = dates.of_numpy(cells)
        if mask is not None:
            moments[mask] = np.nan
        return read.days(moments)
    if cells.dtype.kind not in "biuf":
        if cells.dtype.kind == "U":
            cells = _characters(cells)
        objects = cells.ravel().tolist()
        if mask is not None:
            hidden = mask.ravel()
            objects = [None if hidden[i] else cell for i, cell in enumerate(objects)]
        return from_objects(objects, read).reshape(cells.shape)
    with quietly():
        numbers = cells.astype(np.float64, copy=mask is not None)
    if mask is not None:
        numbers[mask] = np.nan
    return read.numbers(numbers)


def _characters(cells: NDArray[np.str_]) -> NDArray[np.str_]:
    """The same, empty where a cell holds what is no character: Python would not take it."""
    flat = np.array(cells, dtype=cells.dtype.newbyteorder("=")).ravel()
    if flat.dtype.itemsize:
        codes = flat.view(np.uint32).reshape(flat.size, -1)
        codes[(codes > 0x10FFFF).any(axis=1)] = 0
    return flat.reshape(cells.shape)


def from_objects(cells: Sequence[Any], read: Reader = NUMBERS) -> NDArray[np.float64]:
    """Python objects of any kind."""
    values = np.empty(len(cells))
    for start in range(0, len(cells), _OBJECTS):
        part = slice(start, start + _OBJECTS)
        numbers, texts, moments = _sorted_out(cells[part])
        values[part] = read.numbers(numbers)
        if texts:
            column = pa.array(list(texts.values()), pa.large_binary())
            values[[start + i for i in texts]] = read.texts(column)
        if moments:
            days = np.array(list(moments.values()), dtype=np.float64)
            values[[start + i for i in moments]] = read.days(days)
    return values


def _sorted_out(
    cells: Sequence[Any],
) -> tuple[NDArray[np.float64], dict[int, bytes], dict[int, _Days]]:
    """Python objects that are numbers, NaN for all others; and by position, texts and dates."""
    values = np.full(len(cells), np.nan)
    texts: dict[int, bytes] = {}
    moments: dict[int, _Days] = {}
    converters: dict[int, Converter | None] = {}
    with quietly():
        for i, cell in enumerate(cells):
            # By type(cell), not isinstance: an object may lie about, or choke on, its __class__.
            kind = type(cell)
            if id(kind) not in converters:
                converters[id(kind)] = _converter(kind)
            convert = converters[id(kind)]
            if convert is None:
                continue
            found = None
            with suppress(Exception):
                found = convert(cell)
            if isinstance(found, bytes):
                texts[i] = found
            elif isinstance(found, _Days):
                moments[i] = found
            elif found is not None:
                values[i] = found
    return values, texts, moments


class _Days(float):
    """The number of a date."""


#: From a cell to its number, its text or its days; None for text that is too long.
Converter = Callable[[Any], float | bytes | None]


def _converter(kind: type) -> Converter | None:
    """What a type of cell is read by; None for types that hold no numbers, text or dates.

    By the identity of its bases, since a class may have any idea of its equals. A subclass is read
    as its base is: its own methods may do anything, and libraries that type a column do not ask
    them.
    """
    bases = type.__dict__["__mro__"].__get__(kind)

    def is_a(*wanted: type) -> bool:
        return any(base is one for base in bases for one in wanted)

    if is_a(np.timedelta64):  # which NumPy counts among its integers
        return None
    if is_a(datetime.date):
        return _of_date(bases)
    for base, convert in _CONVERTERS:
        if is_a(base):
            return convert
    if is_a(np.integer, np.floating, np.bool_):
        own = next(base for base in bases if any(base is one for one in _SCALARS))
        return functools.partial(_scalar, own)
    if is_a(np.complexfloating):
        return _real
    return None


def _of_date(bases: Sequence[type]) -> Converter | None:
    """The same for dates; pandas counts what is no time among them, and has some of its own."""
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if any(base is type(pandas.NaT) for base in bases):
            return None
        if any(base is pandas.Timestamp for base in bases):
            # It may be outside of the years that its base has.
            exact = pandas.Timestamp.to_datetime64
            return lambda cell: _Days(dates.of_scalar(exact(cell)))
    if any(base is datetime.datetime for base in bases):
        return lambda cell: _Days(dates.of_datetime(cell))
    return lambda cell: _Days(dates.of_date(cell))


def _whole(cell: Any) -> float:
    try:
        return int.__float__(cell)
    except OverflowError:
        return math.inf if int.__gt__(cell, 0) else -math.inf


def _decimal(cell: Any) -> float:
    return math.nan if decimal.Decimal.is_nan(cell) else decimal.Decimal.__float__(cell)


def _fraction(cell: Any) -> float:
    above, below = (part.__get__(cell) for part in _PARTS)
    try:
        return float(above / below)
    except OverflowError:
        return math.inf if above > 0 else -math.inf


def _scalar(own: Any, cell: Any) -> float:
    return float(own.__float__(cell))


def _real(cell: Any) -> float:
    """A complex number on the real line is that real number.

    pandas makes all categories of a column complex if one of them is: 1 has to stay 1.
    """
    base: Any = complex if isinstance(cell, complex) else np.generic
    real, imaginary = base.real.__get__(cell), base.imag.__get__(cell)
    return float(real) if imaginary == 0 else math.nan


def _text(kind: type[str] | type[bytes], cell: Any) -> bytes | None:
    """As bytes, None if it is too long; by the methods of ``kind``, which no subclass changes."""
    if kind.__len__(cell) > LONGEST_TEXT:  # not even copied
        return None
    if kind is str:
        text = str.encode(cell, "utf-8", "surrogatepass")
    else:
        text = bytes.__getitem__(cell, slice(None))
    return text if len(text) <= LONGEST_TEXT else None


def _str(cell: Any) -> bytes | None:
    return _text(str, cell)


def _bytes(cell: Any) -> bytes | None:
    return _text(bytes, cell)


#: Numerator and denominator, as no subclass has changed them.
_PARTS: Any = (fractions.Fraction.numerator, fractions.Fraction.denominator)

#: NumPy's own types of scalars.
_SCALARS = tuple(set(np.sctypeDict.values()))

#: What a type and those made from it are read by: the first that fits.
_CONVERTERS: tuple[tuple[type, Converter], ...] = (
    (float, float.__float__),
    (int, _whole),
    (decimal.Decimal, _decimal),
    (fractions.Fraction, _fraction),
    (complex, _real),
    (str, _str),
    (bytes, _bytes),
    (np.datetime64, lambda cell: _Days(dates.of_scalar(cell))),
)
