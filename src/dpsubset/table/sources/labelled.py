"""Cells of a response with labels: -1, 1, or NaN for a cell that has neither, each by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...public.labels import IMAGES, WORDS, Label, reading
from .cells import NUMBERS


class LabelReader:
    """Reads the cells of a column with these two labels, as `cells.NumberReader` reads numbers."""

    def __init__(self, labels: tuple[Label, Label]) -> None:
        images = list(zip(map(reading, labels), IMAGES, strict=True))
        self._numbers = [(read, image) for read, image in images if isinstance(read, float)]
        self._texts = [(_exactly(read), image) for read, image in images if isinstance(read, str)]
        # Which of the two words can matter.
        values = {number for number, _ in self._numbers}
        self._words = [(_word(w), value) for w, value in WORDS.items() if value in values]

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers that are a label."""
        images = np.full(values.shape, np.nan)
        for number, image in self._numbers:
            images[values == number] = image
        return images

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Text that is a label, or spells one that is a number."""
        images = np.full(len(column), np.nan)
        if self._numbers:
            numbers = NUMBERS.texts(column).copy()  # Arrow's own memory is read-only
            for pattern, value in self._words:
                numbers[_matches(column, pattern)] = value
            images = self.numbers(numbers)
        for pattern, image in self._texts:
            images[_matches(column, pattern)] = image
        return images


def _exactly(text: str) -> str:
    """A pattern for this text and blanks around it, byte by byte."""
    return r"^[ \t]*" + "".join(f"\\x{byte:02x}" for byte in text.encode()) + r"[ \t]*$"


def _word(text: str) -> str:
    return rf"^[ \t]*(?i:{text})[ \t]*$"


def _matches(column: pa.LargeBinaryArray, pattern: str) -> NDArray[np.bool_]:
    # Text of any encoding is bytes here, so that no cell is an error.
    found = pc.fill_null(pc.match_substring_regex(column, pattern), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)
