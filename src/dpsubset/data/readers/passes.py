"""Passes: what a caller is told of how far the reading of a table is.

Progress may be logged or shown to anyone, so the numbers that are told must be the same for
neighbouring tables. Three things are private: under add-remove the number of rows; under either
relation how many bytes a row takes in a file, and how a file is cut into batches, which depends on
its cells. What is told of a pass:

- where the number of rows is public and known before the pass (arrays, frames, Parquet files, and
  text files from their second pass on, under replace-one): 1/100, 2/100, ..., 1 of it, each once;
- everywhere else: its end.

The numbers do not depend on the table. *When* they are told does, as all running times do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from . import Progress

#: How often a pass is told of, at most.
_STEPS = 100

#: Features and response of some records, or one column of them.
Piece = TypeVar("Piece", bound=Sized)


class Passes:
    """Some passes over one table, one after another.

    Parameters
    ----------
    progress : callable, optional
        Called with the fraction of all passes that is done.
    n_is_public : bool
        Whether neighbouring tables have the same number of rows.
    count : int
        How many passes there will be.
    """

    def __init__(self, progress: Progress | None, n_is_public: bool, count: int = 1) -> None:
        self._progress, self._public, self.count = progress, n_is_public, count
        self._done = 0
        self._counted: int | None = None

    def over(self, pieces: Iterable[Piece], rows: int | None) -> Iterator[Piece]:
        """The same pieces; ``rows`` is how many records they have together, if that is known."""
        if rows is None:
            rows = self._counted
        if not self._public:
            rows = None
        read = told = 0
        for piece in pieces:
            yield piece
            read += _records(piece)
            if rows:
                last = min(_STEPS - 1, _STEPS * read // rows)
                self._tell(range(told + 1, last + 1))
                told = max(told, last)
        self._counted = read
        self._tell(range(_STEPS if rows is None else told + 1, _STEPS + 1))
        self._done += 1

    def skip(self, rows: int | None) -> None:
        """A pass over what is in memory already."""
        for _ in self.over((), rows):
            pass

    def _tell(self, steps: range) -> None:
        if self._progress is not None:
            for step in steps:
                self._progress((self._done * _STEPS + step) / (self.count * _STEPS))


def over(passes: Passes | None, pieces: Iterable[Piece], rows: int | None) -> Iterator[Piece]:
    """The same, for those who may be asked to tell nothing."""
    return iter(pieces) if passes is None else passes.over(pieces, rows)


def _records(piece: Any) -> int:
    return len(piece[-1]) if isinstance(piece, tuple) else len(piece)
