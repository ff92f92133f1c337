"""Hostile cells: what somebody's row may hold, whatever the column was meant for."""

from __future__ import annotations

import datetime
import enum
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies as st

#: Beyond the longest text that is read, and long enough to make dictionaries overflow.
LONG = "1" * 2**15

#: Long texts by short names, which is how failures show them.
_LONG_TEXTS = {"<just fits>": "1" + "0" * 4095, "<too long>": "0" * 4096 + "1", "<long>": LONG}


def spelled_out(text: str) -> str:
    """A text, or the long one that it is the name of."""
    return _LONG_TEXTS.get(text, text)


class One(NamedTuple):
    """A row of one cell."""

    cell: Any


class Two(NamedTuple):
    """A row of two."""

    first: Any
    second: Any


class Grumbler(float):
    """A number that warns, and whose float is not quite a float."""

    def __float__(self) -> float:
        return Grumbler(1.0)


class Refuser(int):
    """A number that does not want to be one."""

    def __float__(self) -> float:
        raise RuntimeError("no")


class Nowhere(datetime.tzinfo):
    """A zone that does not know where it is."""

    def utcoffset(self, _: datetime.datetime | None) -> datetime.timedelta:
        raise RuntimeError("no")


class Shade(enum.IntEnum):
    """A number with a name."""

    DARK = 1


def signalling(kind: type[np.floating[Any]]) -> Any:
    """A NaN that signals: to convert it is an invalid operation."""
    bits: Any = {np.float16: np.uint16(0x7C01), np.float32: np.uint32(0x7F800001),
                 np.float64: np.uint64(0x7FF0000000000001)}[kind]  # fmt: skip
    return bits.view(kind)


def is_hashable(cell: Any) -> bool:
    """Whether it can be a key."""
    try:
        return hash(cell) is not None
    except (TypeError, ValueError):
        return False


FLOATS = st.sampled_from([0.0, 1.0, -0.0, 0.1, 0.5, 1 / 3, -2.0, 1e308, float("nan"), float("inf")])
FLOATS |= st.floats(-5, 5)
INTEGERS = st.sampled_from(
    [0, 1, -1, 2, 20000131, 2**53 + 1, 2**63, -(2**63), 2**64 - 1, 10**400, -(10**400)]
)
DECIMALS = st.sampled_from([
    Decimal(0), Decimal(1), Decimal("1.0"), Decimal("0.12345678901"), Decimal("0.1"),
    Decimal("1E+3"), Decimal("1E-300"), Decimal("1E+999999"), Decimal("NaN"), Decimal("sNaN"),
    Decimal("-Infinity"), Decimal("0.333333333333333333333333333333333333333333"),
]) | st.decimals(-2, 2, places=11)  # fmt: skip
TEXTS = (
    st.sampled_from([
        "", " ", "0", "1", " 1.0\t", "1e0", "yes", "no", "YES", "true", "False", "nan", "inf",
        "1e400", "-1e-400", "1,5", "1_0", "0x1", "word", "\u0661", "\ud800", "1\n", '"1"',
        "2000-02-29", "2001-02-29", "2000-01-01T12:00", " 2000-01-01 23:59:59.9-12:30",
        "0000-01-01", "$1", "-$1,234.5", "($1)", "1.234,5", "01/31/2000", "2/30/2000", "20000131",
        "31 Jan 2000 23:59", *_LONG_TEXTS,
    ]).map(spelled_out)
    | st.text(max_size=3)
    | st.floats(-5, 5).map(str)
)  # fmt: skip
BYTES = st.sampled_from(["", "1", "yes", "1\x00", "<long>"]).map(
    lambda text: spelled_out(text).encode()
)
BYTES |= st.just(b"\xff") | st.binary(max_size=3)
TIMES = st.sampled_from([
    datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 1), datetime.timedelta(1),
    datetime.time(1), np.datetime64("2000-01-01"), np.timedelta64(1, "s"),
    np.datetime64("NaT"), pd.Timestamp(0), pd.Timestamp(0, tz="UTC"), pd.Timedelta(1), pd.NaT,
    pd.Period("2000"), pd.Interval(0, 1), datetime.date.max, datetime.datetime.min,
    datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=23))),
    np.datetime64(2**62, "Y"), np.datetime64(-(2**62), "ns"), np.datetime64(2**62, "25s"),
    np.datetime64("NaT", "D"), np.datetime64("20000-01-01", "s"),
    pd.Timestamp(np.datetime64("20000-01-01", "s")),
])  # fmt: skip
COMPLEX = st.sampled_from([1j, complex(1, 0), complex(float("nan"), 0), np.complex64(1 + 1j)])
SCALARS = st.sampled_from([
    np.float16(0.1), np.float16(0.5), np.float32(0.1), np.float64(0.1), np.longdouble(1) / 3,
    np.finfo(np.longdouble).max, signalling(np.float16), signalling(np.float32),
    signalling(np.float64), np.int8(1), np.uint64(2**64 - 1), np.True_, np.str_("1"),
    np.bytes_(b"1"), np.array(1.0), np.ma.masked,
])  # fmt: skip
ODD = st.sampled_from([
    None, True, False, pd.NA, Fraction(1, 3), Fraction(10) ** 400, Shade.DARK, Grumbler(0.5),
    Refuser(1), object(), float, ..., [], [1.0], (1.0,), [1.0, 2.0], {"a": 1.0}, {1.0}, range(1),
    One(1.0), Two(1.0, 0.0), np.array([1.0]), np.array([1.0, 2.0]), np.array(["1"]),
    np.ma.array([1.0], mask=[True]), bytearray(b"1"), memoryview(b"1"), pd.Series([1.0]),
])  # fmt: skip

#: Not even hypothesis can hash it.
UNHASHABLE = st.builds(np.timedelta64, st.just(1))
UNHASHABLE |= st.builds(datetime.datetime, st.just(2000), st.just(1), st.just(1),
                        tzinfo=st.builds(Nowhere))  # fmt: skip

#: What can be a key.
HASHABLE = st.one_of(FLOATS, INTEGERS, DECIMALS, TEXTS, BYTES, TIMES, COMPLEX, SCALARS).filter(
    is_hashable
)

#: Anything.
ANY = st.one_of(FLOATS, INTEGERS, DECIMALS, TEXTS, BYTES, TIMES, COMPLEX, SCALARS, ODD, UNHASHABLE)

#: Cells of one kind, and some that are missing: a library may take such a column for a typed one.
FAMILIES = [
    st.none() | family
    for family in (FLOATS, INTEGERS, DECIMALS, TEXTS, BYTES, TIMES, COMPLEX, SCALARS, ODD)
]

#: A cell of a response, bare or as a row of its own.
ROWS_OF_ONE = st.one_of(
    FLOATS, ANY, ANY.map(One), ANY.map(lambda cell: [cell]), ANY.map(lambda cell: (cell,)),
    FLOATS.map(lambda cell: np.array([cell])), st.tuples(ANY, ANY),
)  # fmt: skip

#: A record of two cells, as it should be or not.
RECORDS = st.one_of(
    st.tuples(ANY, ANY), st.lists(ANY, min_size=2, max_size=2), st.builds(Two, ANY, ANY),
    st.tuples(FLOATS, FLOATS).map(np.array), st.lists(ANY, max_size=4), ANY,
)  # fmt: skip
