"""Text in a declared format: numbers with separators and currency signs, dates of another order.

Each cell is read by its bytes and the format alone. Text in another format is unreadable, even if
it could be read without the format: "1.5" is 1.5, unreadable or 15, as declared.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...base.kernels.compiled import kernel
from ...schema.formats import NumberFormat, date_parts
from .cells import NUMBERS
from .dates import day_number, read_digits

#: Blanks between a number and its currency sign, compared as bytes.
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
        """Convert text in the format: signs are removed, and the rest is read as a plain number."""
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


#: A step of a date's format: a literal byte, or one of these parts.
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

    If the format has only digits, as ``%Y%m%d`` has, whole numbers are read by their digits, too.
    """

    def __init__(self, form: str) -> None:
        self._program = _program(form)
        kinds = self._program[:, 0]
        fixed = bool(((kinds >= _YEAR) & (kinds <= _SECOND)).all())
        # Number of digits, leading zeros included.
        self._width = int(2 * len(kinds) + 2) if fixed else 0
        self.takes = frozenset({"date", "number"} if fixed else {"date"})

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert whole numbers whose digits are a date, if the format has only digits."""
        found = np.full(values.shape, np.nan)
        if self._width:
            with np.errstate(all="ignore"):
                whole = (values >= 0) & (values < 10.0**self._width) & (values == np.floor(values))
            sizes = 10 ** np.arange(self._width - 1, -1, -1, dtype=np.int64)
            digits = values[whole].astype(np.int64)[..., None] // sizes % 10 + 48
            text = np.ascontiguousarray(digits, dtype=np.uint8).ravel()
            read = np.empty(len(digits))
            edges = np.arange(len(digits) + 1, dtype=np.int64) * self._width
            _formatted_days_of_all(text, edges, self._program, _LETTERS, read)
            found[whole] = read
        return found

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert text in the format, with or without blanks around it."""
        values = np.full(len(column), np.nan)
        offsets, held = column.buffers()[1:]
        if offsets is None or held is None or not len(column):
            return values
        edges = np.frombuffer(offsets, np.int64, len(column) + 1, 8 * column.offset)
        _formatted_days_of_all(
            np.frombuffer(held, np.uint8), edges, self._program, _LETTERS, values
        )
        values[~np.asarray(column.is_valid(), dtype=bool)] = np.nan
        return values

    @staticmethod
    def days(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values


def _program(form: str) -> NDArray[np.int64]:
    """The steps of a format: the kind of each, and the value of a byte, or for a part 1 if it needs
    all of its digits because digits precede or follow it.
    """
    steps: list[tuple[int, int]] = []
    for part in date_parts(form, "format"):
        if part in _CODES:
            steps.append((_CODES[part], 0))
        else:
            steps += [(_BYTE, byte) for byte in part.replace("%%", "%").encode()]

    def is_digits(place: int) -> bool:
        if not 0 <= place < len(steps):
            return False
        kind, value = steps[place]
        return 48 <= value <= 57 if kind == _BYTE else kind <= _FRACTION

    full = [is_digits(i - 1) or is_digits(i + 1) for i in range(len(steps))]
    found = [(k, v if k == _BYTE else int(f)) for (k, v), f in zip(steps, full, strict=True)]
    return np.array(found, dtype=np.int64)


@kernel
def _month(
    data: NDArray[np.uint8], at: int, stop: int, whole: bool, letters: NDArray[np.uint8]
) -> tuple[int, int]:
    """The month whose name starts here, in any case, and the length of the name; 0 if none does."""
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
def _formatted_days(
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    program: NDArray[np.int64],
    letters: NDArray[np.uint8],
) -> float:
    """Days of one text, NaN if it is not in the format."""
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
            number = read_digits(data, at, stop, width)
            if number < 0 and value == 0 and kind != _YEAR:
                width = 1
                number = read_digits(data, at, stop, width)
            if number < 0:
                return np.nan
            found[kind] = number
            at += width
    year, month, day = found[_YEAR], found[_MONTH], found[_DAY]
    if at != stop or year < 1 or month < 1 or month > 12 or day < 1:
        return np.nan
    if found[_HOUR] > 23 or found[_MINUTE] > 59 or found[_SECOND] > 59:
        return np.nan
    days = day_number(year, month, day)
    if days >= day_number(year + month // 12, month % 12 + 1, 1):
        return np.nan
    seconds = ((days * 24 + found[_HOUR]) * 60 + found[_MINUTE]) * 60 + found[_SECOND]
    micro = found[_FRACTION]
    moment: float = seconds / 86400 if micro == 0 else (seconds * 1e6 + micro) / 8.64e10
    return moment


@kernel
def _formatted_days_of_all(
    data: NDArray[np.uint8],
    edges: NDArray[np.int64],
    program: NDArray[np.int64],
    letters: NDArray[np.uint8],
    values: NDArray[np.float64],
) -> None:
    for i in range(values.shape[0]):
        values[i] = _formatted_days(data, edges[i], edges[i + 1], program, letters)
