"""Cells of a response with labels: -1, 1, or NaN for a cell that has neither, each by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..labels import IMAGES, WORDS, Label, reading
from .cells import decoded, from_arrow, is_text, sorted_out


class LabelReader:
    """Reads the cells of a column with these two labels, as `cells.NumberReader` reads numbers."""

    def __init__(self, labels: tuple[Label, Label]) -> None:
        images = list(zip(map(reading, labels), IMAGES, strict=True))
        self._numbers = [(read, image) for read, image in images if isinstance(read, float)]
        self._texts = [(_exactly(read), image) for read, image in images if isinstance(read, str)]
        # Which of the two words can matter.
        values = {number for number, _ in self._numbers}
        self._words = [(_word(w), value) for w, value in WORDS.items() if value in values]

    def from_numbers(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Real numbers of any type."""
        # As float64, as all sources have them; a long double beyond would warn of a cell.
        with np.errstate(all="ignore"):
            numbers = np.asarray(values, dtype=np.float64)
        images = np.full(numbers.shape, np.nan)
        for number, image in self._numbers:
            images[numbers == number] = image
        return images

    def from_arrow(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
        """An Arrow column of a readable type."""
        column = decoded(column)
        if not is_text(column.type):
            return self.from_numbers(from_arrow(column))
        images = np.full(len(column), np.nan)
        if self._numbers:
            numbers = from_arrow(column).copy()  # Arrow's own memory is read-only
            for pattern, value in self._words:
                numbers[_matches(column, pattern)] = value
            images = self.from_numbers(numbers)
        for pattern, image in self._texts:
            images[_matches(column, pattern)] = image
        return images

    def from_objects(self, cells: Iterable[Any]) -> NDArray[np.float64]:
        """Python objects of any kind."""
        numbers, texts = sorted_out(cells)
        images = self.from_numbers(numbers)
        if texts:
            images[list(texts)] = self.from_arrow(pa.array(list(texts.values()), pa.large_binary()))
        return images


def _exactly(text: str) -> str:
    """A pattern for this text and blanks around it, byte by byte."""
    return r"^[ \t]*" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + r"[ \t]*$"


def _word(text: str) -> str:
    return rf"^[ \t]*(?i:{text})[ \t]*$"


def _matches(column: pa.Array | pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    # Text of any encoding is bytes here, so that no cell is an error.
    found = pc.fill_null(pc.match_substring_regex(column, pattern), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)
