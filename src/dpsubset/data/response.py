"""The response by itself: counted for a private scale, and then read in that scale.

Both happen behind the door: what is counted, and what is scaled anew, are the integers that the
door makes of cells. A record's new response depends on its own cell and on the released scale, on
nothing else. Bad cells are not counted. In the new scale they are bad cells still: their records
are left out, or they go where the response's own rule says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..privacy.quantiles import histogram
from ..schema.schema import Column, Missing, Schema
from .moments import Block, check_n
from .quantize import STEPS, Quantizer


class ResponseDoor:
    """The last column of the door."""

    def __init__(self, schema: Schema) -> None:
        self._door = Quantizer(schema)
        missing = schema.response.missing
        # A value that stands for missing cells is one like others.
        self._counts_bad = missing is not None and missing.rule == "value"

    def enter(self, y: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Quantised cells, and which of them are bad."""
        found = np.empty(len(y), dtype=np.int16)
        self._door.response(y, found)
        bad = np.zeros(len(y), dtype=bool) if self._counts_bad else np.isnan(y)
        return found.astype(np.int64), bad


def counted(schema: Schema, parts: Iterable[NDArray[np.float64]]) -> tuple[NDArray[np.int64], int]:
    """The histogram of a response without its bad cells; and how many records there are in all."""
    door, n = ResponseDoor(schema), 0
    counts = np.zeros(2 * STEPS + 1, dtype=np.int64)
    for y in parts:
        n += len(y)
        check_n(n)
        values, bad = door.enter(y)
        counts += histogram(values[~bad], STEPS)
    return counts, n


def rescaled_schema(schema: Schema) -> Schema:
    """Of blocks whose response has been rescaled. Its fingerprint is not that of ``schema``."""
    missing = schema.response.missing
    rule = None if missing is None or missing.rule == "value" else Missing(rule=missing.rule)
    response = Column(schema.response.name, -STEPS, STEPS, missing=rule)
    return replace(schema, response=response, unit=f"{schema.unit}, response rescaled")


def rescaled(schema: Schema, blocks: Iterable[Block], images: NDArray[np.int16]) -> Iterator[Block]:
    """Blocks with another response, for the door of `rescaled_schema`.

    Where the value q of the grid was, there is ``images[q + STEPS]``, which that door takes as it
    is. Bad cells stay bad.
    """
    door = ResponseDoor(schema)
    for x, y in blocks:
        values, bad = door.enter(y)
        yield x, np.where(bad, np.nan, images[values + STEPS])
