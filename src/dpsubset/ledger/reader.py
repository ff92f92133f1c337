"""Read a ledger: limit and sums, entries, and checks of every line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base.errors import LedgerError
from .entry import Entry, body_of, entry_of_rows
from .event import Event
from .journal import Journal
from .replay import History, replay, standing_after
from .standing import Declaration, Standing
from .store import Store

HEAD = "dpsubset ledger head 1"


class LedgerReader:
    """The part of a ledger that reads. `Ledger` adds what spends.

    Parameters
    ----------
    address : str or Path
    patience : float
        Seconds to wait for other processes.
    """

    def __init__(self, address: str | Path, patience: float) -> None:
        self._store = Store(address, patience)
        self.address = self._store.address
        self._opening: tuple[Declaration, str] | None = None

    @property
    def declaration(self) -> Declaration:
        """What the ledger is of."""
        if self._opening is None:
            with self._store.reading() as journal:
                self._opening = opening_of(journal)
        return self._opening[0]

    def standing(self) -> Standing:
        """Return the limit and the present sums."""
        with self._store.reading() as journal:
            return standing_after(journal.last(), journal.all)

    def history(self) -> History:
        """Return all entries, after a check of every line."""
        return self._replayed(())[0]

    def entry(self, key: str) -> Entry:
        """Return one entry by its id."""
        with self._store.reading() as journal:
            found = entry_of_rows(journal.of_entry(key))
        if found is None:
            raise LedgerError(f"the ledger has no entry {key!r}")
        return found

    def check(self, events: Sequence[Event]) -> tuple[Standing, Standing]:
        """Return the standing now and after these releases; an error if the limit refuses them.

        Spends nothing.
        """
        declared, standing = self.declaration, self.standing()
        if not events:
            return standing, standing
        costs = [declared.cost_of(event) for event in events]
        return standing, standing.debited(costs, declared.data_set)[-1]

    def verify(self, heads: Sequence[Any] = ()) -> History:
        """Check every line, and that the ledger goes on from heads that were exported before.

        Parameters
        ----------
        heads : sequence of mappings
            What :meth:`head` gave at earlier times.
        """
        known = [_head(facts) for facts in heads]
        history, found = self._replayed([number for _, number, _ in known])
        for key, number, hash in known:
            if key != history.key:
                raise LedgerError("the exported head is of another ledger")
            if number > history.sequence:
                raise LedgerError(
                    f"the ledger ends at line {history.sequence}, but line {number} was exported: "
                    "it was cut off, or an older copy was put in its place"
                )
            if found[number] != hash:
                raise LedgerError(
                    f"line {number} of the ledger is another one than was exported: it was "
                    "rewritten"
                )
        return history

    def head(self) -> dict[str, Any]:
        """Return number and hash of the last line, with the sums, to be kept elsewhere."""
        history = self.history()
        return {
            "format": HEAD,
            "data_set": history.declaration.data_set,
            "ledger": history.key,
            "sequence": history.sequence,
            "hash": history.hash,
            "standing": history.standing.to_dict(),
            "left": history.standing.left.to_dict(),
            "entries": len(history.entries),
            "entries_from_outside": history.from_outside,
        }

    def _replayed(self, marks: Sequence[int]) -> tuple[History, dict[int, str]]:
        with self._store.reading() as journal:
            history, found = replay(journal.all(), marks)
            if (history.sequence, history.hash) != (journal.sequence, journal.hash):
                raise LedgerError(
                    f"the ledger's last line is {history.sequence}, but it says that it has "
                    f"{journal.sequence}: lines at its end are missing or were changed"
                )
            if journal.others():
                raise LedgerError("the ledger holds lines of a data set that has none")
        return history, found

    def close(self) -> None:
        """Close all connections; the ledger can be used again."""
        self._store.close()


def opening_of(journal: Journal) -> tuple[Declaration, str]:
    """Read the declaration of a ledger, and its key."""
    facts = body_of(journal.first(), {"declaration", "key"})
    return Declaration.from_dict(facts["declaration"]), str(facts["key"])


def _head(facts: Any) -> tuple[str, int, str]:
    wrong = LedgerError("this is not an exported head of a ledger")
    if not isinstance(facts, dict) or facts.get("format") != HEAD:
        raise wrong
    key, number, hash = facts.get("ledger"), facts.get("sequence"), facts.get("hash")
    if not isinstance(key, str) or not isinstance(hash, str) or not isinstance(number, int):
        raise wrong
    if number < 1:
        raise wrong
    return key, number, hash


def read_head(path: str | Path) -> dict[str, Any]:
    """Read an exported head from its file."""
    try:
        facts: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise LedgerError("the exported head cannot be read") from None
    _head(facts)
    found: dict[str, Any] = facts
    return found
