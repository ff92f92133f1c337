"""Passes over a table, and the progress that is reported of them.

Progress may be logged or shown to anyone, so the reported fractions must be equal for neighbouring
tables. Three facts are private: the number of rows under add-remove; and under either relation the
number of bytes of a row in a file and how a file is cut into batches, which depends on its cells.
The reports on a pass are therefore:

- if the number of rows is public and known before the pass (arrays, frames, Parquet files, and
  other files from their second pass on, under replace-one): 1/100, 2/100, ..., 1, each once;
- otherwise only its end.

The fractions do not depend on the table. The times of the reports do, as all running times do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from . import Progress

#: Largest number of reports on a pass.
_STEPS = 100

#: A batch of records: features and response, some columns, or one column.
Piece = TypeVar("Piece", bound=Sized)


class Passes:
    """Consecutive passes over one table.

    ``progress`` is called with the completed fraction of all ``count`` passes. ``n_is_public`` says
    whether neighbouring tables have the same number of rows.
    """

    def __init__(self, progress: Progress | None, n_is_public: bool, count: int = 1) -> None:
        self._progress, self._public, self.count = progress, n_is_public, count
        self._done = 0
        self._counted: int | None = None

    def over(self, pieces: Iterable[Piece], rows: int | None) -> Iterator[Piece]:
        """Yield the pieces and report progress; ``rows`` is their number of records, if known."""
        if rows is None:
            rows = self._counted
        if not self._public:
            rows = None
        read = reported = 0
        for piece in pieces:
            yield piece
            read += _records(piece)
            if rows:
                last = min(_STEPS - 1, _STEPS * read // rows)
                self._report(range(reported + 1, last + 1))
                reported = max(reported, last)
        self._counted = read
        self._report(range(_STEPS if rows is None else reported + 1, _STEPS + 1))
        self._done += 1

    def skip(self, rows: int | None) -> None:
        """Count a pass over data that is in memory already."""
        for _ in self.over((), rows):
            pass

    def _report(self, steps: range) -> None:
        if self._progress is not None:
            for step in steps:
                self._progress((self._done * _STEPS + step) / (self.count * _STEPS))


def over(passes: Passes | None, pieces: Iterable[Piece], rows: int | None) -> Iterator[Piece]:
    """Yield the pieces; report progress if there are ``passes``."""
    return iter(pieces) if passes is None else passes.over(pieces, rows)


def _records(piece: Any) -> int:
    return len(piece[-1]) if isinstance(piece, tuple) else len(piece)
