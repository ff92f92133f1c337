"""Dates as days since 1970-01-01, with times of day as fractions of days.

A time with a zone is converted to universal time; one without a zone is taken as written. Times are
truncated to microseconds, so that a moment is the same number in every unit.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.kernels.compiled import kernel

#: 1970-01-01, as `datetime` counts days.
_ORIGIN = datetime.date(1970, 1, 1).toordinal()

#: Number of units in a second.
_OF_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15,
                "as": 10**18}  # fmt: skip

#: Number of units in a day.
_OF_A_DAY = {"D": 1, "h": 24, "m": 1440}

#: In years. Dates beyond it are clipped to it, well before integers overflow.
_FAR = 10**6

_NOT_A_TIME = np.iinfo(np.int64).min


class DateReader:
    """Reads the cells of a column of dates."""

    takes = frozenset({"date"})

    @staticmethod
    def numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A number is not a date: 20200101 may mean a day, or days, or seconds."""
        return np.full(values.shape, np.nan)

    @staticmethod
    def texts(column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert ISO 8601 with dashes, 2020-01-31, with or without a time of day and a zone."""
        values = np.full(len(column), np.nan)
        offsets, held = column.buffers()[1:]
        if offsets is None or held is None or not len(column):
            return values
        edges = np.frombuffer(offsets, np.int64, len(column) + 1, 8 * column.offset)
        _iso_days_of_all(np.frombuffer(held, np.uint8), edges, values)
        values[~np.asarray(column.is_valid(), dtype=bool)] = np.nan
        return values

    @staticmethod
    def days(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values


DATES = DateReader()


def days_of_counts(counts: NDArray[np.int64], unit: str, multiple: int = 1) -> NDArray[np.float64]:
    """Days from counts of a unit since 1970; the smallest integer is missing, as in NumPy."""
    missing = counts == _NOT_A_TIME
    if multiple != 1:
        most = np.iinfo(np.int64).max // multiple
        counts = np.clip(counts, -most, most) * multiple
    if unit in ("Y", "M"):
        most = _FAR * (12 if unit == "M" else 1)
        near = np.clip(counts, -most, most).astype(f"M8[{unit}]")
        days = near.astype("M8[D]").view(np.int64).astype(np.float64)
    elif unit == "W":
        days = counts.astype(np.float64) * 7
    elif unit in _OF_A_DAY:
        days = counts / _OF_A_DAY[unit]
    elif unit in _OF_A_SECOND:
        seconds, rest = np.divmod(counts, _OF_A_SECOND[unit])
        finer = _OF_A_SECOND[unit] // 10**6
        micros = rest // finer if finer else rest * (10**6 // _OF_A_SECOND[unit])
        # Exact up to the division, for all dates within float64's whole numbers of microseconds.
        days = np.where(micros == 0, seconds / 86400, (seconds * 1e6 + micros) / 8.64e10)
    else:
        days = np.full(counts.shape, np.nan)
    days[missing] = np.nan
    return days


def days_of_numpy(values: NDArray[Any]) -> NDArray[np.float64]:
    """Days of an array of datetime64."""
    unit, multiple = np.datetime_data(values.dtype)
    native = values.astype(values.dtype.newbyteorder("="))
    return days_of_counts(native.view(np.int64), unit, multiple)


def days_of_arrow(column: pa.Array) -> NDArray[np.float64]:
    """Days of an array of dates or timestamps; those with a zone are in universal time."""
    if pa.types.is_date32(column.type):
        counts, unit = column.view(pa.int32()).cast(pa.int64()), "D"
    else:
        counts = column.view(pa.int64())
        unit = "ms" if pa.types.is_date64(column.type) else column.type.unit
    return days_of_counts(counts.fill_null(_NOT_A_TIME).to_numpy(zero_copy_only=False), unit)


def is_temporal(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds dates."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


# A time zone is an object of its own class: if it raises, the cell is unreadable.


def days_of_date(cell: Any) -> float:
    """Days of a `datetime.date`."""
    return float(datetime.date.toordinal(cell) - _ORIGIN)


def days_of_datetime(cell: Any) -> float:
    """Days of a `datetime.datetime`."""
    days = datetime.date.toordinal(cell) - _ORIGIN
    total = ((days * 24 + cell.hour) * 60 + cell.minute) * 60 + cell.second
    micro, offset = cell.microsecond, datetime.datetime.utcoffset(cell)
    if offset is not None:
        behind = (offset.days * 86400 + offset.seconds) * 10**6 + offset.microseconds
        total, micro = divmod(total * 10**6 + micro - behind, 10**6)
    return float(total / 86400 if micro == 0 else (total * 1e6 + micro) / 8.64e10)


def days_of_scalar(cell: Any) -> float:
    """Days of a `numpy.datetime64`."""
    return float(days_of_numpy(np.array([cell]))[0])


@kernel
def read_digits(data: NDArray[np.uint8], at: int, stop: int, digits: int) -> int:
    """The number that so many digits spell; -1 if there are other characters."""
    if at + digits > stop:
        return -1
    found = 0
    for i in range(at, at + digits):
        if data[i] < 48 or data[i] > 57:
            return -1
        found = 10 * found + (data[i] - 48)
    return found


@kernel
def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a day of the Gregorian calendar."""
    shifted = year - (month <= 2)  # years that begin in March
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    era = shifted // 400
    years = shifted - era * 400
    return era * 146097 + years * 365 + years // 4 - years // 100 + of_year - 719468


@kernel
def _iso_days(data: NDArray[np.uint8], at: int, stop: int) -> float:
    """Days of one text, NaN if it is not a date."""
    while at < stop and (data[at] == 32 or data[at] == 9):
        at += 1
    while at < stop and (data[stop - 1] == 32 or data[stop - 1] == 9):
        stop -= 1
    year, month = read_digits(data, at, stop, 4), read_digits(data, at + 5, stop, 2)
    day = read_digits(data, at + 8, stop, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or data[at + 4] != 45 or data[at + 7] != 45:
        return np.nan
    following = day_number(year + month // 12, month % 12 + 1, 1)
    days = day_number(year, month, day)
    if days >= following:
        return np.nan
    at += 10
    if at == stop:
        return float(days)
    if data[at] != 84 and data[at] != 32:  # T or a blank
        return np.nan
    hour, minute, second, micro = (
        read_digits(data, at + 1, stop, 2),
        read_digits(data, at + 4, stop, 2),
        0,
        0,
    )
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or data[at + 3] != 58:
        return np.nan
    at += 6
    if at < stop and data[at] == 58:
        second = read_digits(data, at + 1, stop, 2)
        if second < 0 or second > 59:
            return np.nan
        at += 3
        if at < stop and (data[at] == 46 or data[at] == 44):  # a point or a comma
            at, size, first = at + 1, 100_000, at + 1
            while at < stop and 48 <= data[at] <= 57:
                micro += size * (data[at] - 48)
                size //= 10
                at += 1
            if at == first:
                return np.nan
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    if at < stop and data[at] == 90:  # Z
        at += 1
    elif at < stop and (data[at] == 43 or data[at] == 45):  # + or -
        sign = 1 if data[at] == 43 else -1
        hour, minute = read_digits(data, at + 1, stop, 2), 0
        at += 3
        if hour >= 0 and at < stop:
            at += data[at] == 58
            minute = read_digits(data, at, stop, 2)
            at += 2
        if hour < 0 or hour > 23 or minute < 0 or minute > 59:
            return np.nan
        seconds -= sign * (hour * 3600 + minute * 60)
    if at != stop:
        return np.nan
    days_and_time: float = seconds / 86400 if micro == 0 else (seconds * 1e6 + micro) / 8.64e10
    return days_and_time


@kernel
def _iso_days_of_all(
    data: NDArray[np.uint8], edges: NDArray[np.int64], values: NDArray[np.float64]
) -> None:
    for i in range(values.shape[0]):
        values[i] = _iso_days(data, edges[i], edges[i + 1])
