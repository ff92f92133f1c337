"""Reading a table, whole or one row of it, and what must be the same."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dpsubset import Schema, TableError
from dpsubset.data.gram import GramData
from dpsubset.data.readers import open_table
from support.containers import Container


@dataclass(frozen=True)
class Drawn:
    """Rows of one table, one to stand in for another, and rows that stand in front."""

    rows: list[Any]
    other: Any
    place: int
    pad: Any
    how: Any
    schema: Schema


@st.composite
def tables(draw: st.DrawFn, container: Container, schemas: Sequence[Schema] = ()) -> Drawn:
    """Rows of all kinds, or in columns that have no type of one kind, as some library expects."""
    row = draw(st.sampled_from([container.row, *container.families]))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    other = draw(row | container.row)
    pad = draw(row if container.missing is None else row | st.just(container.missing))
    place = draw(st.integers(0, len(rows) - 1))
    schema = draw(st.sampled_from([*(schemas or SCHEMAS)]))
    return Drawn(rows, other, place, pad, draw(container.how), schema)


DATES = (datetime.date(1990, 1, 1), datetime.date(2020, 12, 31))
COLUMNS = {"a": (-5, 5), "b": (0, 1)}
SCHEMAS = [
    Schema.from_bounds(COLUMNS, ("y", -2, 2)),
    Schema.from_bounds(COLUMNS, "y", labels=(0, 1)),
    Schema.from_bounds(COLUMNS, "y", labels=("no", "yes"), bad_cells="low"),
    Schema.from_bounds(dict.fromkeys("ab", DATES), ("y", *DATES)),
]

#: With more columns of the model than the table has.
LEVELS = {"levels": ["yes", "1", 0.1, "word", '"1"', "true day"], "missing": {"as": "indicator"}}
LOG = {"lo": 0.001, "hi": 5, "transform": "log"}
CODED = {"codes": [1, "word"], "as": "value", "value": 2}
MONEY = {"thousands": ",", "currency": "$", "parentheses": True}
DATED = {"lo": DATES[0], "hi": DATES[1], "missing": {"codes": ["2000-01-01"], "as": "indicator"}}
RICH = [
    Schema.from_bounds(
        {"a": LEVELS, "b": LOG | {"missing": CODED}},
        {"name": "y", "lo": 0, "hi": 3, "transform": "sqrt", "missing": {"codes": [0]}},
        bad_cells="high",
    ),
    Schema.from_bounds({"a": {"kind": "boolean"}, "b": DATED}, "y", labels=(False, True)),
    # Text in declared formats.
    Schema.from_bounds(
        {
            "a": {"lo": -5, "hi": 5, "format": MONEY, "missing": {"codes": ["$1"], "as": "high"}},
            "b": {"lo": DATES[0], "hi": DATES[1], "format": "%m/%d/%Y"},
        },
        {
            "name": "y",
            "lo": 0,
            "hi": 3,
            "format": {"thousands": ".", "decimal": ",", "parentheses": True},
        },
    ),
    Schema.from_bounds(
        {
            "a": {"lo": DATES[0], "hi": DATES[1], "format": "%Y%m%d"},
            "b": {"lo": DATES[0], "hi": DATES[1], "format": "%d %b %Y %H:%M"},
        },
        ("y", -2, 2),
    ),
]


@dataclass(frozen=True)
class Reading:
    """What the rows of a table read as: before the quantizer, and behind it."""

    values: np.ndarray
    records: np.ndarray

    def __getitem__(self, rows: Any) -> Reading:
        return Reading(self.values[rows], self.records[rows])

    def same(self, other: Reading) -> bool:
        """Bit for bit, but for the kind of a NaN."""
        return np.array_equal(self.values, other.values, equal_nan=True) and np.array_equal(
            self.records, other.records
        )


def read(
    container: Container, rows: Sequence[Any], how: Any, schema: Schema, folder: Path
) -> Reading | str:
    """The rows' reading, or the text of the error if such tables are refused.

    Anything else, a warning among it, is an event that a cell has caused.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what builds the table
        data, y = container.build(rows, how, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            blocks = list(open_table(data, schema, y).blocks())
            digest = GramData.from_records(schema, blocks)
        except TableError as refused:
            return str(refused)
    values = [np.column_stack([*x.T, y]).astype(np.float64) for x, y in blocks]
    records = np.vstack([digest.records, digest.response[None]]).T
    return Reading(np.vstack([np.empty((0, 3)), *values]), records)


def check(container: Container, drawn: Drawn, count: int, folder: Path) -> None:
    """Each row reads as it does alone, and replacing one changes no other."""
    table = [*[drawn.pad] * count, *drawn.rows]
    at = count + drawn.place
    changed = [*table[:at], drawn.other, *table[at + 1 :]]
    whole, swapped, *alone = (
        read(container, part, drawn.how, drawn.schema, folder)
        for part in (table, changed, [drawn.pad], *([row] for row in drawn.rows))
    )
    refusals = {reading if isinstance(reading, str) else None
                for reading in (whole, swapped, *alone)}  # fmt: skip
    assert len(refusals) == 1, "refused or not, by its type alone and whatever it holds"
    if isinstance(whole, str):
        return
    assert len(whole.values) == len(whole.records) == len(table)
    assert whole[:count].same(alone[0][[0] * count])
    for i, reading in enumerate(alone[1:]):
        assert whole[count + i : count + i + 1].same(reading), f"row {i}"
    others = np.arange(len(table)) != at
    assert whole[others].same(swapped[others]), f"replacing row {drawn.place}"
