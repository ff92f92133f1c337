"""Reading a table, whole or one row of it, and what must be the same."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from differential.containers import Container
from dpsubset import Schema, TableError
from dpsubset.gram import Gram
from dpsubset.sources import open_table

COLUMNS = {"a": (-5, 5), "b": (0, 1)}
SCHEMAS = [
    Schema.from_bounds(COLUMNS, ("y", -2, 2)),
    Schema.from_bounds(COLUMNS, "y", labels=(0, 1)),
    Schema.from_bounds(COLUMNS, "y", labels=("no", "yes"), bad_cells="low"),
]


@dataclass(frozen=True)
class Reading:
    """What the rows of a table read as: before the door, and behind it."""

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
            gram = Gram.from_records(schema, blocks)
        except TableError as refused:
            return str(refused)
    values = [np.column_stack([*x.T, y]).astype(np.float64) for x, y in blocks]
    records = np.vstack([gram.records, gram.response[None]]).T
    return Reading(np.vstack([np.empty((0, 3)), *values]), records)


def check(
    container: Container, rows: Sequence[Any], before: tuple[int, Any], place: int, other: Any,
    how: Any, schema: Schema, folder: Path,
) -> None:  # fmt: skip
    """Each row reads as it does alone, and replacing one changes no other; ``before`` are more."""
    count, pad = before
    table = [*[pad] * count, *rows]
    changed = [*table]
    changed[count + place] = other
    whole, swapped, *alone = (
        read(container, part, how, schema, folder)
        for part in (table, changed, [pad], *([row] for row in rows))
    )
    if any(isinstance(reading, str) for reading in (whole, swapped, *alone)):
        # Refused: by its type alone, so whatever it holds.
        assert all(reading == whole for reading in (swapped, *alone))
        return
    assert len(whole.values) == len(whole.records) == len(table)
    assert whole[:count].same(alone[0][[0] * count])
    for i, reading in enumerate(alone[1:]):
        assert whole[count + i : count + i + 1].same(reading), f"row {i}"
    others = np.arange(len(table)) != count + place
    assert whole[others].same(swapped[others]), f"replacing row {place}"
