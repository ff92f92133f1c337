"""Replay a journal from its first line to its last, and check every line.

Checked are the number of a line, its hash, the hash of the line before, its time, that it may
follow the lines before it, and that its sums are those of all lines up to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.errors import BudgetExceeded, LedgerError
from .chain import START, Row
from .composition import Limit
from .entry import STARTS, Entry, body_of, entry_after, entry_of_first_row, identity_of
from .standing import Declaration, Standing


@dataclass
class History:
    """The content of a journal. Public.

    Attributes
    ----------
    declaration : Declaration
    key : str
        Drawn when the ledger was opened: two ledgers of one data set have different keys.
    standing : Standing
        Limit and sums after the last line, with their assumptions.
    entries : dict from id to Entry
        In the order of their reservations.
    sequence, hash
        Number and hash of the last line.
    notes : list of dict
        Who declared the rows new or changed the limit, when and why; the limit before and after.
    complete : bool
        Whether the last line states what its sums assume.
    """

    declaration: Declaration
    key: str
    standing: Standing
    entries: dict[str, Entry] = field(default_factory=dict)
    sequence: int = 0
    hash: str = START
    notes: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = True

    @property
    def from_outside(self) -> int:
        """The number of entries of spending from outside that count."""
        return sum(entry.counts and entry.event.is_outside for entry in self.entries.values())


def replay(rows: Iterable[Row], marks: Iterable[int] = ()) -> tuple[History, dict[int, str]]:
    """Check all lines; return the history, and the hashes of the lines with the given numbers."""
    history, wanted, found = None, set(marks), {}
    for row in rows:
        history = _history_of_first_row(row) if history is None else _history_after(history, row)
        if row.sequence in wanted:
            found[row.sequence] = row.hash
    if history is None:
        raise LedgerError("the ledger has no lines")
    return history, found


def _history_of_first_row(row: Row) -> History:
    _check_chain(row, 0, START)
    if row.kind != "open" or row.entry:
        raise LedgerError("the ledger's first line does not open it")
    facts = body_of(row, {"declaration", "key"})
    declaration = Declaration.from_dict(facts["declaration"])
    if declaration.data_set != row.data_set:
        raise LedgerError("the ledger's first line is of another data set")
    stated = standing_of(row)
    if stated != Standing(stated.limit, time=row.time):
        raise LedgerError("the ledger does not start from nothing")
    standing = replace(stated, complete=True)  # no release, so that nothing is assumed
    return History(
        declaration, str(facts["key"]), standing, sequence=1, hash=row.hash,
        complete=stated.complete,
    )  # fmt: skip


def _history_after(history: History, row: Row) -> History:
    _check_chain(row, history.sequence, history.hash)
    if row.data_set != history.declaration.data_set:
        raise LedgerError(f"line {row.sequence} of the ledger is of another data set")
    standing, stated = _standing_after_row(history, row), standing_of(row)
    if history.complete and not stated.complete:
        raise LedgerError(f"line {row.sequence} of the ledger does not say what its sums assume")
    if stated != (standing if stated.complete else standing.as_written_before()):
        raise LedgerError(f"line {row.sequence} of the ledger has sums that do not add up")
    history.complete = stated.complete
    history.standing = standing
    history.sequence, history.hash = row.sequence, row.hash
    return history


def _standing_after_row(history: History, row: Row) -> Standing:
    standing, entries = history.standing, history.entries
    if row.kind in (*STARTS, "void", "refresh", "limit"):
        if standing.at(row.time).time != row.time:
            raise LedgerError(f"line {row.sequence} of the ledger is older than the one before it")
        standing = replace(standing, time=row.time)
    elif row.time:
        raise LedgerError(f"line {row.sequence} of the ledger has a time")
    if row.kind in STARTS:
        if row.entry in entries or not row.entry:
            raise LedgerError(f"line {row.sequence} of the ledger starts an entry once more")
        entry = entry_of_first_row(row, standing.epoch)
        entries[row.entry] = entry
        cost = history.declaration.cost_of(entry.event)
        if row.kind == "debit" and _is_already_spent(row):
            return standing.added([cost])[0]
        try:
            return standing.debited([cost], row.data_set)[0]
        except BudgetExceeded:
            raise LedgerError(f"line {row.sequence} of the ledger passes its limit") from None
    if row.kind in ("read", "release", "lose", "void"):
        if row.entry not in entries:
            raise LedgerError(f"line {row.sequence} of the ledger is of no entry")
        entry = entries[row.entry] = entry_after(entries[row.entry], row)
        if row.kind == "read" and entry.made is not None:
            reserved = history.declaration.cost_of(entry.event)
            made = history.declaration.cost_of(entry.made)
            # Earlier versions did not compare what the two assume.
            if not replace(made, assumes=()) <= reserved:
                raise LedgerError(f"line {row.sequence} of the ledger costs more than its debit")
        if row.kind != "void":
            return standing
        return standing.credited(history.declaration.cost_of(entry.event), entry.epoch)
    if row.entry:
        raise LedgerError(f"line {row.sequence} of the ledger cannot be read")
    changed: dict[str, Any] = {}
    if row.kind == "refresh":
        reason = body_of(row, {"reason"})["reason"]
        standing = standing.refreshed()
    elif row.kind == "limit":
        facts = body_of(row, {"reason", "limit"})
        reason, limit = facts["reason"], Limit.from_dict(facts["limit"])
        changed = {"before": standing.limit.to_dict(), "after": limit.to_dict()}
        standing = replace(standing, limit=limit)
    else:
        raise LedgerError(f"line {row.sequence} of the ledger has an unknown kind")
    history.notes.append(
        {
            "what": row.kind, "time": row.time, "actor": row.actor,
            "identity": identity_of(row).to_dict(), "reason": str(reason), **changed,
        }
    )  # fmt: skip
    return standing


def _is_already_spent(row: Row) -> bool:
    return body_of(row, {"event", "reason", "already_spent"})["already_spent"] is True


def _check_chain(row: Row, before: int, hash: str) -> None:
    if row.sequence != before + 1:
        raise LedgerError(
            f"the ledger has line {row.sequence} after line {before}: lines are missing or were "
            "moved"
        )
    if not row.intact:
        raise LedgerError(f"line {row.sequence} of the ledger was changed after it was written")
    if row.previous != hash:
        raise LedgerError(f"line {row.sequence} of the ledger does not follow the one before it")


def standing_after(last: Row, rows: Callable[[], Iterable[Row]]) -> Standing:
    """Return limit and sums after the last line, with their assumptions.

    If an earlier version wrote that line, the assumptions follow from all entries.
    """
    stated = standing_of(last)
    return stated if stated.complete else replay(rows())[0].standing


def standing_of(row: Row) -> Standing:
    """Read limit and sums after a line, as the line states them."""
    try:
        facts: Any = json.loads(row.totals)
    except ValueError:
        facts = None
    return Standing.from_dict(facts)
