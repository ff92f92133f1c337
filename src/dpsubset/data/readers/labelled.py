"""Readers of cells that are compared with declared levels, labels and codes.

A cell has a level, a label or a code if both have the same canonical form; see
:mod:`dpsubset.schema.labels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...schema.labels import BLANKS, IMAGES, WORDS, Label, canonical
from .cells import NUMBERS, Reader, Takes


class LevelReader:
    """Reads a cell of a column with levels as the position of its level, or as NaN.

    ``images`` are values of the levels that replace their positions.
    """

    def __init__(self, levels: Sequence[Label], images: Sequence[float] | None = None) -> None:
        counted = range(len(levels)) if images is None else images
        pairs = list(zip(map(canonical, levels), counted, strict=True))
        numbers = sorted((read, image) for read, image in pairs if isinstance(read, float))
        texts = [(read, image) for read, image in pairs if isinstance(read, str)]
        self._numbers = np.array([read for read, _ in numbers])
        self._images = np.array([image for _, image in numbers], dtype=np.float64)
        self._encoded = [read.encode() for read, _ in texts]
        # The last entry is for text that is none of the levels.
        self._text_images = np.array([image for _, image in texts] + [np.nan], dtype=np.float64)
        able = {"number"} if numbers else set()
        able |= {"boolean"} if {0.0, 1.0} & {read for read, _ in numbers} else set()
        self.takes: Takes = frozenset(able)
        # Only words whose value is a level matter.
        self._words = [word for word, value in WORDS.items() if value in self._numbers]

    @cached_property
    def _texts(self) -> pa.LargeBinaryArray:
        """Levels that are text. Made when cells are read: it imports pandas if that is there."""
        return pa.array(self._encoded, pa.large_binary())

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert numbers that are a level."""
        if not len(self._numbers):
            return np.full(values.shape, np.nan)
        nearest = np.searchsorted(self._numbers, values)
        nearest[nearest == len(self._numbers)] = 0
        found: NDArray[np.float64] = np.where(
            self._numbers[nearest] == values, self._images[nearest], np.nan
        )
        return found

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert text that is a level, or spells one that is a number."""
        images = np.full(len(column), np.nan)
        if len(self._numbers):
            images = self.numbers(_spelled(column, self._words))
        if len(self._texts):
            places = pc.index_in(_trimmed(column), value_set=self._texts)
            places = np.asarray(pc.fill_null(places, len(self._texts)))
            # No text is both: levels that are numbers are not among the texts.
            images = np.where(places < len(self._texts), self._text_images[places], images)
        return images

    @staticmethod
    def days(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(values.shape, np.nan)


class LabelReader(LevelReader):
    """Reads a cell of a response with two labels as -1 or 1, or as NaN if it has neither."""

    def __init__(self, labels: tuple[Label, Label]) -> None:
        super().__init__(labels, IMAGES)


class BooleanReader:
    """Reads numbers, and the words true and false, in any case, as 1 and 0."""

    takes = NUMBERS.takes
    numbers = staticmethod(NUMBERS.numbers)
    days = staticmethod(NUMBERS.days)

    @staticmethod
    def texts(column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert text that is such a word, or spells a decimal number."""
        return _spelled(column, WORDS)


class CodedReader:
    """Reads cells with another reader; a cell whose value is one of the codes is missing."""

    def __init__(self, read: Reader, codes: Sequence[float]) -> None:
        self._read, self._codes, self.takes = read, np.array(codes), read.takes

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert numbers that are not a code."""
        return self._without(self._read.numbers(values))

    def texts(self, column: pa.LargeBinaryArray) -> NDArray[np.float64]:
        """Convert text that does not spell a code."""
        return self._without(self._read.texts(column))

    def days(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert dates that are not a code."""
        return self._without(self._read.days(values))

    def _without(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.where(np.isin(values, self._codes), np.nan, values)
        return found


def _spelled(column: pa.LargeBinaryArray, words: Iterable[str]) -> NDArray[np.float64]:
    """The numbers that text spells, where some words count as numbers."""
    numbers = NUMBERS.texts(column).copy()  # Arrow's own memory is read-only
    for word in words:
        # As bytes, so that no encoding is an error.
        found = pc.fill_null(pc.match_substring_regex(column, rf"^[ \t]*(?i:{word})[ \t]*$"), False)
        numbers[np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)] = WORDS[word]
    return numbers


def _trimmed(column: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Text without the blanks around it, whatever its encoding."""
    count = len(column)
    text = pa.Array.from_buffers(
        pa.large_string(), count, column.buffers(), column.null_count, column.offset
    )
    bare = pc.ascii_trim(text, BLANKS)
    return pa.Array.from_buffers(
        pa.large_binary(), count, bare.buffers(), bare.null_count, bare.offset
    )
