"""Ledger: the budget of one data set, kept on disk, which cannot be overspent.

    ledger = Ledger.create("patients.db", data_set="patients 2024", epsilon=5, ...)
    dpsubset.select(table, schema, k=3, epsilon=1, ledger=ledger)

A debit is on disk before a value is read, and the SHA-256 of a release before it is returned. So
there is no release without a debit. A debit without a release is possible, and counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, LedgerError
from ..privacy.relations import Neighbours
from .canonical import canonical
from .chain import Kind, Row
from .composition import Accounting, Totals
from .entry import Entry, entry_of_first_row, entry_of_rows, with_identity
from .event import Event
from .journal import Journal
from .receipt import Receipt
from .replay import standing_after, standing_of
from .standing import LONGEST_NAME, Declaration, Standing, check_text, minute
from .store import PATIENCE, hidden
from .writer import LedgerWriter, limit_from_numbers


class Ledger(LedgerWriter):
    """The ledger of a data set, in a file or a database.

    A pickle or copy holds its address: estimators with a ledger can be cloned and sent to workers.

    Parameters
    ----------
    address : str or Path
        A SQLite file, or ``postgresql://user@host/database``, followed by ``#name of the data set``
        if it has several.
    actor : str, optional
        Who spends; by default the account of the process. The account is recorded in any case.
    purpose : str, optional
        What the budget is spent on; by default the purpose of the ledger.
    patience : float
        Seconds to wait for other processes that write.
    """

    def __init__(
        self,
        address: str | Path,
        *,
        actor: str | None = None,
        purpose: str | None = None,
        patience: float = PATIENCE,
        batch: str | None = None,
    ) -> None:
        self.purpose = None if purpose is None else check_text(purpose, "purpose")
        self._patience = patience
        self._batch = batch
        super().__init__(address, patience, actor)

    @classmethod
    def create(
        cls,
        address: str | Path,
        *,
        data_set: str,
        owner: str,
        purpose: str,
        epsilon: Any = None,
        delta: Any = 0,
        rho: Any = None,
        accounting: Accounting = "concentrated",
        unit: str = "one row",
        rows_per_unit: int = 1,
        neighbours: Neighbours = "replace-one",
        actor: str | None = None,
    ) -> Ledger:
        """Start a ledger.

        Parameters
        ----------
        address : str or Path
            A file that does not exist yet, or a database without a ledger of this data set.
        data_set, owner, purpose : str
            The data set, who is responsible for it, and what its budget may be spent on.
        epsilon, delta, rho : number
            The limit: epsilon, or epsilon and delta, or rho of zero-concentrated privacy.
        accounting : {"concentrated", "basic"}
            How epsilons and deltas of releases count, with a delta; see `ledger.composition`.
        unit, rows_per_unit
            The unit of privacy, as in the schemas of the data set.
        neighbours : {"replace-one", "add-remove"}
            The relation under which costs are counted.
        actor : str, optional
            Who opens the ledger.
        """
        limit = limit_from_numbers(epsilon, delta, rho, accounting)
        declared = Declaration(data_set, unit, rows_per_unit, neighbours, owner, purpose)
        ledger = cls(address, actor=actor)
        now, key = minute(), uuid.uuid4().hex

        def first_row(session_user: str | None) -> Row:
            body = {"declaration": declared.to_dict(), "key": key}
            return Row.after(
                None,
                "open",
                data_set=data_set,
                entry="",
                time=now,
                actor=ledger.actor,
                body=canonical(with_identity(body, ledger._identity(session_user))),
                totals=canonical(Standing(limit, time=now).to_dict()),
            )

        ledger._store.create(data_set, first_row)
        ledger._opening = declared, key
        return ledger

    def reserve(self, event: Event, key: str | None = None) -> Entry:
        """Debit a release that has not begun, once for each key."""
        (found,) = self.reserve_all([event], None if key is None else [key])
        return found

    def reserve_all(
        self, events: Sequence[Event], keys: Sequence[str] | None = None
    ) -> list[Entry]:
        """Debit several releases, or none of them if the limit does not allow all."""
        return [entry for entry, _ in self._reserve(events, keys, "")]

    def _reserve(
        self, events: Sequence[Event], keys: Sequence[str] | None, claim: str
    ) -> list[tuple[Entry, Standing]]:
        """Reserve releases; return their entries, and the standing after each.

        With a ``claim`` the caller reads at once: such entries never become void.
        """
        fresh = keys is None
        keys = [uuid.uuid4().hex for _ in events] if keys is None else list(keys)
        for key in keys:
            check_text(key, "the key of an entry", LONGEST_NAME)
        if len(set(keys)) < len(keys) or len(keys) != len(events):
            raise ArgumentError("every entry has a key of its own")
        # Done before the transaction, in which other processes have to wait.
        declared = self.declaration
        purpose = self.purpose or declared.purpose
        wanted: dict[str, tuple[Event, Totals, dict[str, Any]]] = {}
        for key, event in zip(keys, events, strict=True):
            body = {"event": event.to_dict(), "purpose": purpose, "claim": claim}
            wanted[key] = event, declared.cost_of(event), body
        found: dict[str, tuple[Entry, Standing]] = {}

        def lines(journal: Journal, last: Row, declared: Declaration) -> list[Row]:
            for key in () if fresh else keys:
                rows = journal.of_entry(key)
                if entry := entry_of_rows(rows):
                    if entry.event != wanted[key][0] or entry.claim or not entry.counts:
                        raise LedgerError(
                            f"the ledger has an entry {key!r} already, of another release or past "
                            "its reservation: take another key"
                        )
                    found[key] = entry, standing_of(rows[0])
            new = [key for key in keys if key not in found]
            standing = standing_after(last, journal.all).at(minute())
            costs = [wanted[key][1] for key in new]
            added: list[Row] = []
            after = standing.debited(costs, declared.data_set) if new else []
            for key, then in zip(new, after, strict=True):
                last = self._row(journal, last, "reserve", key, wanted[key][2], then, then.time)
                added.append(last)
                found[key] = entry_of_first_row(last, then.epoch), then
            return added

        self._append(lines)
        return [found[key] for key in keys]

    def begin(self, event: Event) -> Receipt:
        """Debit a release whose values will be read now, or claim a reservation for it.

        A claimed debit counts for ever and allows one draw.
        """
        if self._batch is not None:
            return self._claim(event, self._batch)
        ((entry, after),) = self._reserve([event], None, uuid.uuid4().hex)
        return self._receipt(entry, after)

    def release(self, receipt: Receipt, sha256: str) -> None:
        """Record the SHA-256 of a release before it is returned to the caller."""
        self._end(receipt, "release", {"sha256": sha256})

    def lose(self, receipt: Receipt) -> None:
        """Record that an entry ended without a release. It counts as spent."""
        self._end(receipt, "lose", {})

    def _end(self, receipt: Receipt, kind: Kind, body: dict[str, Any]) -> None:
        def lines(journal: Journal, last: Row, declared: Declaration) -> list[Row]:
            entry = entry_of_rows(journal.of_entry(receipt.entry))
            if entry is None or entry.state != "reading" or entry.claim != receipt.claim:
                raise LedgerError(
                    f"entry {receipt.entry!r} of the ledger is not open for this release: nothing "
                    "is released"
                )
            standing = standing_after(last, journal.all)
            return [self._row(journal, last, kind, receipt.entry, body, standing)]

        self._append(lines)

    def _claim(self, event: Event, batch: str) -> Receipt:
        """Claim an entry of the batch for a release that costs no more."""
        taken: list[Row] = []
        needed = self.declaration.cost_of(event)

        def suits(entry: Entry | None) -> bool:
            if entry is None or entry.state != "reserved" or entry.event.what != event.what:
                return False
            return needed <= self.declaration.cost_of(entry.event)

        def lines(journal: Journal, last: Row, declared: Declaration) -> list[Row]:
            by_entry: dict[str, list[Row]] = {}
            for row in journal.of_batch(batch):
                by_entry.setdefault(row.entry, []).append(row)
            for key, rows in by_entry.items():
                entry = entry_of_rows(rows)
                if suits(entry):
                    body = {"claim": uuid.uuid4().hex, "event": event.to_dict()}
                    standing = standing_after(last, journal.all)
                    line = self._row(journal, last, "read", key, body, standing)
                    taken[:] = [*rows, line]
                    return [line]
            raise LedgerError(
                "nothing is left of what was reserved for releases like this one: fit once more "
                "within a reservation, or with the ledger itself"
            )

        self._append(lines)
        entry = entry_of_rows(taken)
        assert entry is not None
        return self._receipt(entry, standing_of(taken[0]))

    def _receipt(self, entry: Entry, after: Standing) -> Receipt:
        assert self._opening is not None  # or nothing could have been added
        declared, key = self._opening
        cost = declared.cost_of(entry.event)
        return Receipt(
            declared, key, entry, after.limit, after.current - cost, after.lifetime - cost, cost
        )

    def __repr__(self) -> str:
        return f"Ledger({hidden(self.address)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.address, self.actor, self.purpose, self._patience, self._batch)

    def __deepcopy__(self, memo: Any) -> Ledger:
        return self  # scikit-learn copies parameters

    @property
    def in_batch(self) -> bool:
        """Whether debits are taken from a batch that was reserved before."""
        return self._batch is not None

    def of_batch(self, batch: str | None) -> Ledger:
        """Return this ledger, with debits taken from a batch that was reserved before."""
        return _restored(self.address, self.actor, self.purpose, self._patience, batch)


def _restored(
    address: str, actor: str, purpose: str | None, patience: float, batch: str | None
) -> Ledger:
    return Ledger(address, actor=actor, purpose=purpose, patience=patience, batch=batch)
