"""Entry: one debit and its later states, from its lines in the journal.

    reserve -> [read] -> release | lose
    reserve -> void                      only if nothing was read

A debit counts from its reservation on, whatever follows. A process claims the entry before it
reads, by the reservation itself or by a separate line, and an entry can be claimed once: every draw
has a debit of its own. An entry that no process has claimed may become void.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..base.errors import LedgerError
from .chain import Row
from .event import Event

State = Literal["reserved", "reading", "released", "lost", "void"]


@dataclass(frozen=True)
class Entry:
    """A debit. Public.

    Attributes
    ----------
    id : str
        Its key: two reservations under one key are one debit.
    event : Event
    state : {"reserved", "reading", "released", "lost", "void"}
        All but the last count as spent.
    sequence : int
        Number of its first line.
    time, actor, purpose : str
        When it was reserved, to the minute, by whom and for what.
    epoch : int
        How often the rows had been declared new before.
    claim : str
        Drawn by the process that reads; empty if none has.
    release : str
        Content digest of the release; empty before there is one.
    reason : str
        Why it is void.
    made : Event, optional
        The release that claimed this reservation; its cost is at most the reserved one.
    """

    id: str
    event: Event
    state: State
    sequence: int
    time: str
    actor: str
    purpose: str
    epoch: int
    claim: str = ""
    release: str = ""
    reason: str = ""
    made: Event | None = None

    @property
    def counts(self) -> bool:
        """Whether the debit is spent."""
        return self.state != "void"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "id": self.id,
            "state": self.state,
            "sequence": self.sequence,
            "time": self.time,
            "actor": self.actor,
            "purpose": self.purpose,
            "release_content_digest": self.release or None,
            "void_because": self.reason or None,
            "event": (self.made or self.event).to_dict(),
        }


def body_of(row: Row, keys: set[str]) -> dict[str, Any]:
    """Return the facts of a line, which has exactly these keys."""
    try:
        facts = json.loads(row.body)
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or set(facts) != keys:
        raise LedgerError(f"line {row.sequence} of the ledger cannot be read")
    return facts


def entry_of_reservation(row: Row, epoch: int) -> Entry:
    """Return the entry that a line reserves."""
    facts = body_of(row, {"event", "purpose", "claim"})
    claim = str(facts["claim"])
    return Entry(
        row.entry,
        Event.from_dict(facts["event"]),
        "reading" if claim else "reserved",
        row.sequence,
        row.time,
        row.actor,
        str(facts["purpose"]),
        epoch,
        claim,
    )


def entry_after(entry: Entry, row: Row) -> Entry:
    """Return an entry after one more of its lines; an error if that line cannot follow."""
    if row.kind == "read" and entry.state == "reserved":
        facts = body_of(row, {"claim", "event"})
        if claim := str(facts["claim"]):
            # What is read for may cost less than was reserved, which stays debited.
            made = Event.from_dict(facts["event"])
            return replace(entry, state="reading", claim=claim, made=made)
    elif row.kind == "release" and entry.state == "reading":
        release = str(body_of(row, {"sha256"})["sha256"])
        return replace(entry, state="released", release=release)
    elif row.kind == "lose" and entry.state == "reading":
        body_of(row, set())
        return replace(entry, state="lost")
    elif row.kind == "void" and entry.state == "reserved":
        reason = str(body_of(row, {"reason"})["reason"])
        return replace(entry, state="void", reason=reason)
    raise LedgerError(
        f"line {row.sequence} of the ledger, {row.kind}, cannot follow: the entry is {entry.state}"
    )


def entry_of_rows(rows: Sequence[Row], epoch: int = 0) -> Entry | None:
    """Return an entry from all of its lines; None if there are none."""
    if not rows:
        return None
    if rows[0].kind != "reserve":
        raise LedgerError(f"line {rows[0].sequence} of the ledger is of no entry")
    entry = entry_of_reservation(rows[0], epoch)
    for row in rows[1:]:
        entry = entry_after(entry, row)
    return entry
