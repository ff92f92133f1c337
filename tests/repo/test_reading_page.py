"""The tables of docs/reading.md, run."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpsubset.data.moments import LARGEST_N
from dpsubset.data.readers.arrow import is_readable
from dpsubset.data.readers.cells import LONGEST_TEXT, from_objects, reader
from dpsubset.data.readers.dates import DATES
from dpsubset.data.readers.delimited import LONGEST_HEADER, LONGEST_LINE
from dpsubset.schema.column import Column

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reading.md").read_text(encoding="utf-8")
NAMES = {
    "Decimal": Decimal, "Fraction": Fraction, "datetime": datetime, "np": np, "pa": pa, "pd": pd,
    "inf": math.inf,
}  # fmt: skip


def table(heading: str) -> list[tuple[str, str]]:
    """The rows of the table of two columns with this heading."""
    rows = PAGE[PAGE.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [(first, second) for _, first, second, _ in (re.split(r" ?\| ?", row) for row in rows)]


def code(text: str) -> Any:
    found = re.fullmatch(r"`(.*)`", text)
    assert found is not None, text
    return eval(found[1], dict(NAMES))


@pytest.mark.parametrize(("cell", "value"), table("| cell | reads as |"))
def test_cells_without_a_type(cell: str, value: str) -> None:
    wanted = math.nan if value == "bad" else code(value)
    np.testing.assert_array_equal(from_objects([code(cell)]), [wanted])


@pytest.mark.parametrize(("cell", "value"), table("| cell | days |"))
def test_dates(cell: str, value: str) -> None:
    wanted = math.nan if value == "bad" else code(value)
    np.testing.assert_array_equal(from_objects([code(cell)], DATES), [wanted])


@pytest.mark.parametrize(("given", "value"), table("| format and cell | read so |"))
def test_formats(given: str, value: str) -> None:
    form, cell = code(given)
    bounds = ("1970-01-01", "2000-01-01") if isinstance(form, str) else (-1e6, 1e6)
    read = reader(Column("a", *bounds, format=form))
    wanted = math.nan if value == "bad" else code(value)
    np.testing.assert_array_equal(from_objects([cell], read), [wanted])


def test_types_of_dates() -> None:
    for kind in (pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("s", "Asia/Tokyo")):
        assert is_readable(kind, DATES.takes)
        assert not is_readable(kind)
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.duration("s"), pa.time32("s")):
        assert not is_readable(kind, DATES.takes)
    for kind in (pa.string(), pa.binary(), pa.null(), pa.dictionary(pa.int8(), pa.string())):
        assert is_readable(kind, DATES.takes)
        assert is_readable(kind)


@pytest.mark.parametrize(("kind", "cells"), table("| Arrow type | cells |"))
def test_types(kind: str, cells: str) -> None:
    assert is_readable(code(kind)) == (cells != "refused")


def test_limits() -> None:
    limits = {
        "text of a cell": f"{LONGEST_TEXT:,} bytes",
        "line of a text file": f"{LONGEST_LINE // 2**20} MiB",
        "header line of a text file": f"{LONGEST_HEADER // 2**20} MiB",
        "records": "2^33 - 1",
    }
    assert LARGEST_N == 2**33 - 1
    for what, limit in limits.items():
        assert f"| {what} | {limit} |" in PAGE
