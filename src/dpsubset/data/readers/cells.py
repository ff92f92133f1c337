"""Conversion of cells to float64, each cell by itself.

A cell becomes a float64, or NaN if it is missing or unreadable. The result depends on that cell, on
the schema and on the type of the column, and never on another cell. Numbers of any type are rounded
to the nearest float64; booleans become 0 and 1; text is read as a decimal number; everything else
(missing, words, dates, complex numbers off the real line, objects) is NaN. Other readers are in
`labelled` (levels, labels, codes, booleans), `dates`, and `formatted` (declared formats).

Columns with a type are converted by that type (NumPy's here, Arrow's in `arrow`). Cells without a
type, in lists and in columns of objects, are converted one by one.
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
from ...schema.labels import NUMBER, canonical
from ...schema.schema import AnySchema, Column
from . import dates

#: In bytes. Longer text is unreadable: no number or label is that long, and this bounds the memory
#: of a cell.
LONGEST_TEXT = 2**12

#: Number of objects that are converted at a time.
_OBJECTS = 2**14

_NUMBER = f"^{NUMBER}$"


#: Types of columns by what they hold: "number", "boolean" and "date". Text may spell any of them.
Takes = frozenset[str]


class Reader(Protocol):
    """Converts the cells of one column to float64, each by itself."""

    @property
    def takes(self) -> Takes:
        """Types of columns, besides text, whose cells it may read as a value."""

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert numbers, NaN for missing cells; may return ``values`` itself."""

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert text of at most `LONGEST_TEXT` bytes in any encoding; cells may be null."""

    def days(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert dates, in days, NaN for missing cells; may return ``values`` itself."""


class NumberReader:
    """Reads the cells of a column with bounds."""

    takes: Takes = frozenset({"number", "boolean"})

    @staticmethod
    def numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values

    @staticmethod
    def texts(column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert text that spells a decimal number, with or without blanks around it."""
        is_number = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
        spelled = pc.if_else(is_number, column, None).cast(pa.large_string())
        values = pc.ascii_trim_whitespace(spelled).cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)

    @staticmethod
    def days(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(values.shape, np.nan)


NUMBERS = NumberReader()


def unreadable(takes: Takes) -> str:
    """Explain, in an error message, that no cell of a column's type fits the declaration."""
    if "date" in takes:
        how = "which is not a date, as declared: declare numbers as bounds"
    elif takes == NUMBERS.takes:
        how = "which is not a number: if it holds dates, declare kind: date, with dates as bounds"
    else:
        how = (
            "which can hold none of the declared levels or labels, so that no cell of it could be "
            "read: declare some that it can hold (such as 0 and 1)"
        )
    return f"{how}, convert it, or give it the role 'ignored'"


def readers(schema: AnySchema) -> list[Reader]:
    return [reader(column) for column in schema.columns_read]


def reader(column: Column) -> Reader:
    from .labelled import BooleanReader, CodedReader, LabelReader, LevelReader

    # Codes make no difference with labels or levels: other cells are missing anyway.
    if column.labels is not None:
        return LabelReader(column.labels)
    if column.levels is not None:
        return LevelReader(column.levels)
    kinds: dict[str, Reader] = {"boolean": BooleanReader(), "date": dates.DATES}
    read = kinds.get(column.kind, NUMBERS)
    if column.format is not None:
        read = _formatted(column.format)
    # A code that reads as no number or date is missing anyway.
    codes = [] if column.missing is None else map(canonical, column.missing.codes)
    numbers = [value for code in codes if not math.isnan(value := _code(code, read))]
    return CodedReader(read, numbers) if numbers else read


def _formatted(form: Format) -> Reader:
    from .formatted import FormattedDates, FormattedNumbers

    return FormattedDates(form) if isinstance(form, str) else FormattedNumbers(form)


def _code(code: float | str, read: Reader) -> float:
    """Value of a code for missing cells; as text, it is written in the column's format."""
    if isinstance(code, float):
        return code
    return float(read.texts(pa.array([code.encode()], pa.large_binary()))[0])


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings about cells, such as a long double beyond float64 or a signalling NaN."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def from_array(values: NDArray[Any], read: Reader = NUMBERS) -> NDArray[np.float64]:
    """The values of an array of any shape. Masked cells are missing."""
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    cells = np.asarray(values)
    if cells.dtype.kind == "M":
        moments = dates.days_of_numpy(cells)
        if mask is not None:
            moments[mask] = np.nan
        return read.days(moments)
    if cells.dtype.kind not in "biuf":
        if cells.dtype.kind == "U":
            cells = _without_bad_characters(cells)
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


def _without_bad_characters(cells: NDArray[np.str_]) -> NDArray[np.str_]:
    """Replace cells with code points beyond Unicode, which Python cannot convert, by empty text."""
    flat = np.array(cells, dtype=cells.dtype.newbyteorder("=")).ravel()
    if flat.dtype.itemsize:
        codes = flat.view(np.uint32).reshape(flat.size, -1)
        codes[(codes > 0x10FFFF).any(axis=1)] = 0
    return flat.reshape(cells.shape)


def from_objects(cells: Sequence[Any], read: Reader = NUMBERS) -> NDArray[np.float64]:
    """The values of Python objects of any kind."""
    values = np.empty(len(cells))
    for start in range(0, len(cells), _OBJECTS):
        part = slice(start, start + _OBJECTS)
        numbers, texts, moments = _split_objects(cells[part])
        values[part] = read.numbers(numbers)
        if texts:
            column = pa.array(list(texts.values()), pa.large_binary())
            values[[start + i for i in texts]] = read.texts(column)
        if moments:
            days = np.array(list(moments.values()), dtype=np.float64)
            values[[start + i for i in moments]] = read.days(days)
    return values


def _split_objects(
    cells: Sequence[Any],
) -> tuple[NDArray[np.float64], dict[int, bytes], dict[int, _Days]]:
    """The numbers among Python objects, NaN for others; and texts and dates by their positions."""
    values = np.full(len(cells), np.nan)
    texts: dict[int, bytes] = {}
    moments: dict[int, _Days] = {}
    converters: dict[int, Converter | None] = {}
    with quietly():
        for i, cell in enumerate(cells):
            # By type(cell): isinstance would read cell.__class__. By the identity of the type: a
            # metaclass may define equality and hash, so that one cell would decide for another.
            kind: Any = type(cell)
            if id(kind) not in converters:
                converters[id(kind)] = _converter(kind)
            convert, found = converters[id(kind)], None
            with suppress(Exception):  # a subclass may raise anything
                found = None if convert is None else convert(cell)
            if isinstance(found, bytes):
                texts[i] = found
            elif isinstance(found, _Days):
                moments[i] = found
            elif found is not None:
                values[i] = found
    return values, texts, moments


class _Days(float):
    """A date, as a number of days."""


#: Converts a cell to its number, its text or its days; None for text that is too long.
Converter = Callable[[Any], float | bytes | None]


def _converter(kind: type) -> Converter | None:
    """Return what converts cells of a type; None for types without numbers, text or dates.

    A cell of a subclass is converted as one of the base class, by the methods of the base class, as
    libraries convert it in a typed column. Base classes are compared by identity, since neither a
    metaclass nor an ABC (such as `fractions.Fraction`) may decide what a class is.
    """
    bases = type.__dict__["__mro__"].__get__(kind)

    def is_a(*wanted: type) -> bool:
        return any(base is one for base in bases for one in wanted)

    if is_a(np.timedelta64):  # NumPy counts it among its integers
        return None
    if is_a(datetime.date):
        return _date_converter(kind)
    for base, convert in _CONVERTERS:
        if is_a(base):
            return convert
    if is_a(np.integer, np.floating, np.bool_):
        own = next(base for base in bases if any(base is one for one in _SCALARS))
        return functools.partial(_scalar, own)
    return _real if is_a(np.complexfloating) else None


def _date_converter(kind: type) -> Converter | None:
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if issubclass(kind, type(pandas.NaT)):  # a subclass of datetime
            return None
        if issubclass(kind, pandas.Timestamp):
            # It may lie outside of the years that datetime has.
            exact = pandas.Timestamp.to_datetime64
            return lambda cell: _Days(dates.days_of_scalar(exact(cell)))
    if issubclass(kind, datetime.datetime):
        return lambda cell: _Days(dates.days_of_datetime(cell))
    return lambda cell: _Days(dates.days_of_date(cell))


def _integer(cell: Any) -> float:
    try:
        return int.__float__(cell)
    except OverflowError:
        return math.inf if int.__gt__(cell, 0) else -math.inf


def _decimal(cell: Any) -> float:
    return math.nan if decimal.Decimal.is_nan(cell) else decimal.Decimal.__float__(cell)


def _fraction(cell: Any) -> float:
    above, below = cell.numerator, cell.denominator
    try:
        return float(above / below)
    except OverflowError:
        return math.inf if above > 0 else -math.inf


def _scalar(own: Any, cell: Any) -> float:
    return float(own.__float__(cell))


def _real(cell: Any) -> float:
    """A complex number on the real line is that real number.

    pandas makes all categories of a column complex if one of them is: 1 must stay 1.
    """
    return float(cell.real) if cell.imag == 0 else math.nan


def _text(cell: Any) -> bytes | None:
    if str.__len__(cell) > LONGEST_TEXT:  # not even encoded
        return None
    text = str.encode(cell, "utf-8", "surrogatepass")
    return text if len(text) <= LONGEST_TEXT else None


def _bytes(cell: Any) -> bytes | None:
    return None if bytes.__len__(cell) > LONGEST_TEXT else bytes.__getitem__(cell, slice(None))


#: NumPy's own types of scalars.
_SCALARS = frozenset(np.sctypeDict.values())

#: Converters of types and their subclasses; the first that fits is taken.
_CONVERTERS: tuple[tuple[type, Converter], ...] = (
    (float, float.__float__),
    (int, _integer),
    (decimal.Decimal, _decimal),
    (fractions.Fraction, _fraction),
    (complex, _real),
    (str, _text),
    (bytes, _bytes),
    (np.datetime64, lambda cell: _Days(dates.days_of_scalar(cell))),
)
