"""Text in a declared format: numbers with separators and currency signs, dates of another order.

Each cell by itself, by its bytes and the format alone. What is not written so is unreadable, also
where it would be read without the format: "1.5" is 1.5 or unreadable or 15, as declared, and never
depends on the cells beside it.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...base.kernels.compiled import kernel
from ...schema.formats import NumberFormat, parts
from .cells import NUMBERS
from .dates import _day, _number

#: Blanks between a number and its currency sign; bytes of a cell are compared, in any encoding.
_SPACE = "(?:[ \t]|\u00a0|\u202f)*"


class FormattedNumbers:
    """Reads the text of a column of numbers by its format; typed numbers as they are."""

    takes = NUMBERS.takes
    numbers = staticmethod(NUMBERS.numbers)
    days = staticmethod(NUMBERS.days)

    def __init__(self, form: NumberFormat) -> None:
        self._form = form
        point, groups = re.escape(form.decimal), "[0-9]+"
        if form.thousands is not None:
            groups = f"(?:[0-9]{{1,3}}(?:{re.escape(form.thousands)}[0-9]{{3}})+|[0-9]+)"
        amount = f"(?:{groups}(?:{point}[0-9]*)?|{point}[0-9]+)"
        before = behind = ""
        if form.currency is not None:
            sign = re.escape(form.currency)
            before, behind = f"(?:{sign}{_SPACE})?", f"(?:{_SPACE}{sign})?"
        written = [f"[+-]?{before}{amount}", f"{before}[+-]{amount}", f"[+-]?{amount}{behind}"]
        negative = [
            rf"{before}\({amount}\)", rf"\({before}{amount}\)", rf"\({amount}{behind}\)",
            rf"\({amount}\){behind}",
        ]  # fmt: skip
        if form.parentheses:
            written += negative
        self._written, self._negative = (
            f"^[ \t]*(?:{'|'.join(each)})[ \t]*$" for each in (written, negative)
        )

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Text that is written so: what stands in it beside digits is taken out, then it is read
        as any other number.
        """
        form = self._form
        is_number = pc.fill_null(pc.match_substring_regex(column, self._written), False)
        bare = pc.if_else(is_number, column, pa.scalar(None, pa.large_binary()))
        negative = None
        if form.parentheses:
            negative = pc.fill_null(pc.match_substring_regex(bare, self._negative), False)
        out = [form.currency, form.thousands, "\u00a0", "\u202f", "(", ")", " ", "\t"]
        for sign in out:
            if sign is not None:
                bare = pc.replace_substring(bare, sign, "")
        values = NUMBERS.texts(pc.replace_substring(bare, form.decimal, "."))
        if negative is not None:
            below = np.asarray(negative.to_numpy(zero_copy_only=False), dtype=bool)
            values = np.where(below, -values, values)
        return values


#: What stands at a place of a date: a byte, or one of these parts.
_BYTE, _YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND, _FRACTION, _SHORT, _LONG = range(10)
_CODES = {
    "%Y": _YEAR, "%m": _MONTH, "%d": _DAY, "%H": _HOUR, "%M": _MINUTE, "%S": _SECOND,
    "%f": _FRACTION, "%b": _SHORT, "%B": _LONG,
}  # fmt: skip
_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_LETTERS = np.zeros((12, 9), dtype=np.uint8)
for _row, _name in zip(_LETTERS, _NAMES, strict=True):
    _row[: len(_name)] = np.frombuffer(_name.encode(), np.uint8)


class FormattedDates:
    """Reads the text of a column of dates by its format; typed dates as they are.

    Where the format is digits alone, as ``%Y%m%d`` is, whole numbers are read by their digits too.
    """

    def __init__(self, form: str) -> None:
        self._program = _program(form)
        kinds = self._program[:, 0]
        fixed = bool(((kinds >= _YEAR) & (kinds <= _SECOND)).all())
        # Digits of a whole number, zeros in front that it does not show among them.
        self._width = int(2 * len(kinds) + 2) if fixed else 0
        self.takes = frozenset({"date", "number"} if fixed else {"date"})

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Whole numbers whose digits are a date, where the format has digits alone."""
        found = np.full(values.shape, np.nan)
        if self._width:
            with np.errstate(all="ignore"):
                whole = (values >= 0) & (values < 10.0**self._width) & (values == np.floor(values))
            sizes = 10 ** np.arange(self._width - 1, -1, -1, dtype=np.int64)
            digits = values[whole].astype(np.int64)[..., None] // sizes % 10 + 48
            text = np.ascontiguousarray(digits, dtype=np.uint8).ravel()
            read = np.empty(len(digits))
            edges = np.arange(len(digits) + 1, dtype=np.int64) * self._width
            _read_texts(text, edges, self._program, _LETTERS, read)
            found[whole] = read
        return found

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Text that is written so, blanks around it allowed."""
        values = np.full(len(column), np.nan)
        offsets, held = column.buffers()[1:]
        if offsets is None or held is None or not len(column):
            return values
        edges = np.frombuffer(offsets, np.int64, len(column) + 1, 8 * column.offset)
        _read_texts(np.frombuffer(held, np.uint8), edges, self._program, _LETTERS, values)
        values[~np.asarray(column.is_valid(), dtype=bool)] = np.nan
        return values

    @staticmethod
    def days(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Dates, as they are."""
        return values


def _program(form: str) -> NDArray[np.int64]:
    """Place by place: what stands there, and of a byte its value, else whether it must have all of
    its digits, since digits stand beside it.
    """
    steps: list[tuple[int, int]] = []
    for part in parts(form, "format"):
        if part in _CODES:
            steps.append((_CODES[part], 0))
        else:
            steps += [(_BYTE, byte) for byte in part.replace("%%", "%").encode()]

    def is_digits(place: int) -> bool:
        if not 0 <= place < len(steps):
            return False
        kind, value = steps[place]
        return 48 <= value <= 57 if kind == _BYTE else kind <= _FRACTION

    beside = [is_digits(i - 1) or is_digits(i + 1) for i in range(len(steps))]
    found = [(k, v if k == _BYTE else int(b)) for (k, v), b in zip(steps, beside, strict=True)]
    return np.array(found, dtype=np.int64)


@kernel
def _month(
    data: NDArray[np.uint8], at: int, stop: int, whole: bool, letters: NDArray[np.uint8]
) -> tuple[int, int]:
    """The month whose name stands here, in any case, and how long that is; 0 if there is none."""
    for month in range(12):
        size = 0
        while size < letters.shape[1] and letters[month, size] and (whole or size < 3):
            if at + size >= stop or (data[at + size] | 32) != letters[month, size]:
                size = -1
                break
            size += 1
        if size > 0:
            return month + 1, size
    return 0, 0


@kernel
def _read_text(
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    program: NDArray[np.int64],
    letters: NDArray[np.uint8],
) -> float:
    """Days of one text, NaN if it is not written so."""
    while at < stop and (data[at] == 32 or data[at] == 9):
        at += 1
    while at < stop and (data[stop - 1] == 32 or data[stop - 1] == 9):
        stop -= 1
    found = np.array([0, 0, 1, 1, 0, 0, 0, 0], dtype=np.int64)  # by kind; micros last
    for i in range(program.shape[0]):
        kind, value = program[i, 0], program[i, 1]
        if kind == _BYTE:
            if at >= stop or data[at] != value:
                return np.nan
            at += 1
        elif kind == _FRACTION:
            size, first = 100_000, at
            while at < stop and 48 <= data[at] <= 57:
                found[_FRACTION] += size * (data[at] - 48)
                size //= 10
                at += 1
            if at == first:
                return np.nan
        elif kind >= _SHORT:
            month, width = _month(data, at, stop, kind == _LONG, letters)
            if month == 0:
                return np.nan
            found[_MONTH] = month
            at += width
        else:
            width = 4 if kind == _YEAR else 2
            number = _number(data, at, stop, width)
            if number < 0 and value == 0 and kind != _YEAR:
                width = 1
                number = _number(data, at, stop, width)
            if number < 0:
                return np.nan
            found[kind] = number
            at += width
    year, month, day = found[_YEAR], found[_MONTH], found[_DAY]
    if at != stop or year < 1 or month < 1 or month > 12 or day < 1:
        return np.nan
    if found[_HOUR] > 23 or found[_MINUTE] > 59 or found[_SECOND] > 59:
        return np.nan
    days = _day(year, month, day)
    if days >= _day(year + month // 12, month % 12 + 1, 1):
        return np.nan
    seconds = ((days * 24 + found[_HOUR]) * 60 + found[_MINUTE]) * 60 + found[_SECOND]
    micro = found[_FRACTION]
    moment: float = seconds / 86400 if micro == 0 else (seconds * 1e6 + micro) / 8.64e10
    return moment


@kernel
def _read_texts(
    data: NDArray[np.uint8],
    edges: NDArray[np.int64],
    program: NDArray[np.int64],
    letters: NDArray[np.uint8],
    values: NDArray[np.float64],
) -> None:
    for i in range(values.shape[0]):
        values[i] = _read_text(data, edges[i], edges[i + 1], program, letters)
