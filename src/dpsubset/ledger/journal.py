"""Journal: the lines of one data set, within a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, String, bindparam, or_, select

from ..base.errors import LedgerError
from .chain import Row
from .tables import JOURNAL, LEDGERS

# Built once: SQLAlchemy takes longer to build them than SQLite to run them.
_NAME = bindparam("name", type_=String)
HEAD = select(LEDGERS).where(or_(_NAME.is_(None), LEDGERS.c.data_set == _NAME))
LOCK = HEAD.with_for_update()
_OF_LEDGER = select(JOURNAL).where(JOURNAL.c.data_set == _NAME).order_by(JOURNAL.c.sequence)
_OF_NUMBER = _OF_LEDGER.where(JOURNAL.c.sequence == bindparam("value"))
_OF_ENTRY = _OF_LEDGER.where(JOURNAL.c.entry == bindparam("value"))
_ADD = JOURNAL.insert()
_MOVE = (
    LEDGERS.update()
    .where(LEDGERS.c.data_set == _NAME)
    .values(sequence=bindparam("last"), hash=bindparam("digest"))
)


class Journal:
    """The journal of a data set within a transaction.

    Attributes
    ----------
    data_set : str
    sequence, hash
        Number and hash of the last line, as the table of ledgers has them.
    session_user : str, optional
        The user who logged in to the server; None for a file.
    """

    def __init__(
        self,
        connection: Connection,
        data_set: str,
        sequence: int,
        hash: str,
        session_user: str | None = None,
    ) -> None:
        self._connection = connection
        self.data_set = data_set
        self.sequence = sequence
        self.hash = hash
        self.session_user = session_user

    def last(self) -> Row:
        """Return the last line, which must be intact and as the table of ledgers names it."""
        found = self._rows(_OF_NUMBER, self.sequence)
        if not found or found[0].hash != self.hash or not found[0].intact:
            raise LedgerError(
                "the ledger's last line is missing or was changed: 'dpsubset ledger verify' says "
                "more. Nothing was spent"
            )
        return found[0]

    def first(self) -> Row:
        """Return the line that opened the ledger."""
        found = self._rows(_OF_NUMBER, 1)
        if not found or not found[0].intact:
            raise LedgerError("the ledger's first line is missing or was changed")
        return found[0]

    def of_entry(self, entry: str) -> list[Row]:
        """Return all lines of an entry."""
        return self._rows(_OF_ENTRY, entry)

    def of_batch(self, batch: str) -> list[Row]:
        """Return all lines of entries that were reserved together."""
        return self._rows(
            _OF_LEDGER.where(JOURNAL.c.entry.startswith(f"{batch}.", autoescape=True))
        )

    def all(self) -> Iterator[Row]:
        """Iterate over all lines in order, in batches."""
        found = self._connection.execution_options(yield_per=1000).execute(
            _OF_LEDGER, {"name": self.data_set}
        )
        for row in found.mappings():
            yield Row(**row)

    def others(self) -> int:
        """Count lines of data sets that have no ledger."""
        known = select(LEDGERS.c.data_set)
        query = select(JOURNAL.c.sequence).where(JOURNAL.c.data_set.not_in(known))
        return len(self._connection.execute(query).all())

    def add(self, rows: Sequence[Row]) -> None:
        """Append lines."""
        if not rows:
            return
        self._connection.execute(_ADD, [row.to_dict() for row in rows])
        self.sequence, self.hash = rows[-1].sequence, rows[-1].hash
        moved = {"name": self.data_set, "last": self.sequence, "digest": self.hash}
        self._connection.execute(_MOVE, moved)

    def _rows(self, query: Any, value: Any = None) -> list[Row]:
        asked = (
            {"name": self.data_set} if value is None else {"name": self.data_set, "value": value}
        )
        return [Row(*row) for row in self._connection.execute(query, asked)]
