"""The rows of a journal, and the chain of hashes that links them.

    hash_i = SHA-256(canonical JSON of all fields of row i, the hash of row i - 1 included)

A changed row does not have the hash that it states. A row that was removed or moved leaves a gap in
the numbers, or a row whose predecessor has another hash. A person who can write to the database can
rebuild the whole chain; heads that were exported and kept elsewhere detect that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from .canonical import sha256_of_facts

Kind = Literal["open", "reserve", "read", "release", "lose", "debit", "void", "refresh", "limit"]

#: Stands for the hash before the first row.
START = "0" * 64


@dataclass(frozen=True)
class Row:
    """One line of a journal. Public.

    Attributes
    ----------
    data_set : str
    sequence : int
        From 1, without gaps.
    kind : str
        The kind of event.
    entry : str
        The id of an entry; empty for rows about the ledger itself.
    time : str
        UTC, to the minute: 2024-05-17T09:30Z. Empty where it would reveal the duration of a run.
    actor : str
    body : str
        Facts of the event, as canonical JSON.
    totals : str
        Limit and sums after this row, as canonical JSON.
    previous : str
        The hash of the row before.
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
    def after(cls, last: Row | None, kind: Kind, **facts: str) -> Row:
        """Return the row that follows; body and totals are canonical JSON."""
        sequence, previous = (1, START) if last is None else (last.sequence + 1, last.hash)
        row = cls(sequence=sequence, kind=kind, previous=previous, hash="", **facts)
        return replace(row, hash=row._computed_hash())

    @property
    def intact(self) -> bool:
        """Whether the row has the hash that it states."""
        return self._computed_hash() == self.hash

    def to_dict(self) -> dict[str, Any]:
        """As a row of the table of lines."""
        return dict(self.__dict__)

    def _computed_hash(self) -> str:
        facts = self.to_dict()
        del facts["hash"]
        return sha256_of_facts(facts)
