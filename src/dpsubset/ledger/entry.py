"""Entry: one debit and its later states, from its lines in the journal.

    reserve -> [read] -> release | lose
    reserve -> void                      only if nothing was read
    debit -> [void]                      spending from outside, entered by a person

A debit counts from its reservation on, whatever follows. A process claims the entry before it
reads, by the reservation itself or by a separate line, and an entry can be claimed once: every draw
has a debit of its own. An entry that no process has claimed may become void, and so may spending
from outside, if it was entered by mistake.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from ..base.errors import LedgerError
from .chain import Row
from .event import Event
from .identity import Identity

State = Literal["reserved", "reading", "released", "lost", "entered", "void"]

#: Kinds of lines that start an entry.
STARTS = ("reserve", "debit")

#: The facts of an identity, in lines of this version.
_IDENTITY = "identity"


@dataclass(frozen=True)
class Entry:
    """A debit. Public.

    Attributes
    ----------
    id : str
        Its key: two reservations under one key are one debit.
    event : Event
    state : {"reserved", "reading", "released", "lost", "entered", "void"}
        All but the last count as spent. Spending from outside is entered.
    sequence : int
        Number of its first line.
    time, actor, purpose : str
        When it was reserved, to the minute, by whom and for what; the reason of spending from
        outside.
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
    identity : Identity
        The accounts that wrote its first line.
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
    identity: Identity = field(default_factory=Identity)

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
            "identity": self.identity.to_dict(),
            "purpose": self.purpose,
            "release_content_digest": self.release or None,
            "void_because": self.reason or None,
            "event": (self.made or self.event).to_dict(),
        }


def body_of(row: Row, keys: set[str]) -> dict[str, Any]:
    """Return the facts of a line: exactly these, beside the identity of its writer."""
    facts = _facts_of(row)
    facts.pop(_IDENTITY, None)
    if set(facts) != keys:
        raise LedgerError(f"line {row.sequence} of the ledger cannot be read")
    return facts


def with_identity(facts: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """Add the identity of its writer to the facts of a line."""
    return {**facts, _IDENTITY: identity.to_dict()}


def identity_of(row: Row) -> Identity:
    """Return the accounts that wrote a line; an empty identity for lines of earlier versions."""
    return Identity.from_dict(_facts_of(row).get(_IDENTITY, {}))


def _facts_of(row: Row) -> dict[str, Any]:
    try:
        facts = json.loads(row.body)
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise LedgerError(f"line {row.sequence} of the ledger cannot be read")
    return facts


def entry_of_first_row(row: Row, epoch: int) -> Entry:
    """Return the entry that a line starts: a reservation, or spending from outside."""
    if row.kind == "debit":
        facts = body_of(row, {"event", "reason", "already_spent"})
        state, claim, purpose = "entered", "", facts["reason"]
    else:
        facts = body_of(row, {"event", "purpose", "claim"})
        claim, purpose = str(facts["claim"]), facts["purpose"]
        state = "reading" if claim else "reserved"
    return Entry(
        row.entry,
        Event.from_dict(facts["event"]),
        cast(State, state),
        row.sequence,
        row.time,
        row.actor,
        str(purpose),
        epoch,
        claim,
        identity=identity_of(row),
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
    elif row.kind == "void" and entry.state in ("reserved", "entered"):
        reason = str(body_of(row, {"reason"})["reason"])
        return replace(entry, state="void", reason=reason)
    raise LedgerError(
        f"line {row.sequence} of the ledger, {row.kind}, cannot follow: the entry is {entry.state}"
    )


def entry_of_rows(rows: Sequence[Row], epoch: int = 0) -> Entry | None:
    """Return an entry from all of its lines; None if there are none."""
    if not rows:
        return None
    if rows[0].kind not in STARTS:
        raise LedgerError(f"line {rows[0].sequence} of the ledger is of no entry")
    entry = entry_of_first_row(rows[0], epoch)
    for row in rows[1:]:
        entry = entry_after(entry, row)
    return entry
