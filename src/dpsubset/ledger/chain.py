"""The journal's rows, and the chain of hashes that joins them.

    hash_i = SHA-256(canonical JSON of all fields of row i, the hash of row i - 1 included)

A row that was changed has another hash than the one it states; a row that was taken out or moved
leaves a gap in the numbers, or a row whose predecessor has another hash. Whoever can write to the
database can make the whole chain anew: against that there are exported heads, kept elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .canonical import sha256_of_facts

Kind = Literal["open", "reserve", "read", "release", "lose", "void", "refresh", "limit"]

#: What stands before the first row.
START = "0" * 64


@dataclass(frozen=True)
class Row:
    """One line of a journal.

    Attributes
    ----------
    data_set : str
    sequence : int
        From 1, without gaps.
    kind : str
        What happened.
    entry : str
        Of which entry; empty for rows that are about the ledger.
    time : str
        UTC, to the minute: 2024-05-17T09:30Z. Empty where it would tell how long something took.
    actor : str
    body : str
        Facts of the kind, as canonical JSON.
    totals : str
        What is spent after this row, as canonical JSON.
    previous : str
        Hash of the row before.
    hash : str
    """

    data_set: str
    sequence: int
    kind: str
    entry: str
    time: str
    actor: str
    body: str
    totals: str
    previous: str
    hash: str

    @classmethod
    def after(
        cls,
        last: Row | None,
        *,
        data_set: str,
        kind: Kind,
        entry: str,
        time: str,
        actor: str,
        body: str,
        totals: str,
    ) -> Row:
        """The row that follows; its facts are canonical JSON."""
        sequence, previous = (1, START) if last is None else (last.sequence + 1, last.hash)
        facts: dict[str, Any] = {
            "data_set": data_set,
            "sequence": sequence,
            "kind": kind,
            "entry": entry,
            "time": time,
            "actor": actor,
            "body": body,
            "totals": totals,
            "previous": previous,
        }
        return cls(**facts, hash=sha256_of_facts(facts))

    @property
    def intact(self) -> bool:
        """Whether it has the hash that it states."""
        facts = self.to_dict()
        stated = facts.pop("hash")
        return bool(sha256_of_facts(facts) == stated)

    def to_dict(self) -> dict[str, Any]:
        """As a row of the table."""
        return dict(self.__dict__)
