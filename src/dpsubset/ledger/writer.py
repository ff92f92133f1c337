"""The part of a ledger that appends lines, and what a person declares in them.

A person may enter spending from outside, cancel a debit for which no value was read, declare the
rows new, and change the limit. Each such line has a name and a reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, BudgetExceeded, LedgerError
from ..base.validation import as_decimal_fraction
from ..privacy.guarantee import Cost
from .canonical import canonical
from .chain import Kind, Row
from .composition import Accounting, Limit
from .entry import Entry, entry_of_rows, with_identity
from .identity import Identity, account
from .journal import Journal
from .reader import LedgerReader, opening_of
from .replay import standing_after, standing_of
from .standing import LONGEST_NAME, Declaration, Standing, check_text, minute

#: The delta at which spending in rho is also stated, where only its rho counts.
_STATED_AT = Fraction(1, 10**6)


class LedgerWriter(LedgerReader):
    """The part of a ledger that appends lines. `Ledger` adds the debits of releases.

    Parameters
    ----------
    address : str or Path
    patience : float
        Seconds to wait for other processes.
    actor : str, optional
        Who writes; by default the account of the process.
    """

    def __init__(self, address: str | Path, patience: float, actor: str | None) -> None:
        self._account = own_account()
        self.actor = check_text(self._account if actor is None else actor, "actor", LONGEST_NAME)
        super().__init__(address, patience)

    def debit(
        self,
        *,
        reason: str,
        name: str | None = None,
        epsilon: Any = None,
        delta: Any = 0,
        rho: Any = None,
        already_spent: bool = False,
    ) -> Entry:
        """Enter spending from outside: by another tool, or by a release before this ledger.

        The cost is that under the ledger's relation, for its unit of privacy. An entry made by
        mistake can be cancelled with `void`.

        Parameters
        ----------
        reason, name : str
            What it was spent on, and who enters it; both stay in the ledger.
        epsilon, delta, rho : number
            The cost, taken exactly as a decimal: epsilon, or epsilon and delta, or rho of
            zero-concentrated privacy. A rho has a delta only under a limit with basic accounting,
            where it counts as the epsilon that follows from it at that delta.
        already_spent : bool
            Whether it has been spent. Then it is entered even if the limit is exceeded by it, and
            every release is refused from then on.

        Returns
        -------
        Entry

        Raises
        ------
        BudgetExceeded
            If the limit is exceeded by it and it has not been spent.
        ArgumentError, LedgerError

        Examples
        --------
        >>> import dpsubset as dps
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ledger = dps.Ledger.create(
        ...         f"{folder}/study.db", data_set="study", owner="A. Keeper",
        ...         purpose="cost drivers", epsilon=3,
        ...     )
        ...     entry = ledger.debit(epsilon=0.7, reason="table of 2023", name="B. Officer")
        ...     print(entry.state, ledger.standing().left)
        ...     ledger.close()
        entered epsilon = 2.3
        """
        check_text(reason, "the reason")
        key = uuid.uuid4().hex

        def lines(journal: Journal, last: Row, declared: Declaration) -> list[Row]:
            before = standing_after(last, journal.all).at(minute())
            event = declared.outside(cost_from_numbers(epsilon, delta, rho, before.limit))
            costs = [declared.cost_of(event)]
            (after,) = before.added(costs)
            if not already_spent:
                try:
                    before.debited(costs, declared.data_set, "debit")
                except (BudgetExceeded, LedgerError) as refusal:
                    raise type(refusal)(f"{refusal}. {_ALREADY_SPENT}") from None
            body = {"event": event.to_dict(), "reason": reason, "already_spent": already_spent}
            return [self._row(journal, last, "debit", key, body, after, after.time, name)]

        self._append(lines)
        return self.entry(key)

    def void(self, key: str, *, reason: str, name: str | None = None) -> Entry:
        """Cancel a debit for which no value was read, or spending that was entered by mistake.

        All other debits stay.

        Parameters
        ----------
        key : str
            The entry's id.
        reason, name : str
            The reason, and who gives it; both stay in the ledger.
        """
        check_text(reason, "the reason")

        def lines(journal: Journal, last: Row, declared: Declaration) -> list[Row]:
            found = journal.of_entry(key)
            entry = entry_of_rows(found)
            if entry is None:
                raise LedgerError(f"the ledger has no entry {key!r}")
            if entry.state not in ("reserved", "entered"):
                why = {
                    "void": "it is void already",
                    "reading": "values may have been read for it, whatever came of that",
                    "lost": "values may have been read for it, and how it ended can depend on them",
                    "released": "it was released",
                }[entry.state]
                raise LedgerError(f"entry {key!r} stays as it is: {why}")
            epoch = standing_of(found[0]).epoch
            standing = standing_after(last, journal.all).at(minute())
            standing = standing.credited(declared.cost_of(entry.event), epoch)
            body = {"reason": reason}
            return [self._row(journal, last, "void", key, body, standing, standing.time, name)]

        self._append(lines)
        return self.entry(key)

    def refresh(self, *, reason: str, name: str | None = None) -> None:
        """Reset the sums because all rows are new; the reason stays in the ledger.

        Sums over the whole life of the ledger go on, and are always shown as well.
        """
        check_text(reason, "the reason why the rows are new")
        self._note("refresh", {"reason": reason}, lambda standing: standing.refreshed(), name)

    def change_limit(
        self,
        *,
        reason: str,
        name: str | None = None,
        epsilon: Any = None,
        delta: Any = 0,
        rho: Any = None,
        accounting: Accounting | None = None,
    ) -> Limit:
        """Set another limit, not below what is spent, and return the limit before.

        It must be of the same kind as the limit before: an epsilon, an epsilon with a delta, or a
        rho. The accounting does not change either. An analyst who could change them after looking
        at releases would be bounded by neither. The reason stays in the ledger.
        """
        check_text(reason, "the reason for another limit")
        same = self.standing().limit.accounting if accounting is None else accounting
        limit = limit_from_numbers(epsilon, delta, rho, same)
        replaced: list[Limit] = []

        def settle(standing: Standing) -> Standing:
            before = standing.limit
            if limit.measure != before.measure:
                counted = f", with {before.accounting} accounting" * (before.kind == "approximate")
                raise LedgerError(
                    "the kind of limit (epsilon, epsilon with delta, or rho) and the accounting "
                    f"are fixed when a ledger is made. Here the limit is {before}{counted}: give "
                    "another limit of that kind, or make a new ledger"
                )
            if not limit.admits(standing.current):
                raise LedgerError(
                    f"more than this limit, {limit}, is spent already: "
                    f"{limit.shown(standing.current)}. The limit stays {before}"
                )
            replaced[:] = [before]
            return replace(standing, limit=limit)

        self._note("limit", {"reason": reason, "limit": limit.to_dict()}, settle, name)
        return replaced[0]

    def _append(self, lines: Callable[[Journal, Row, Declaration], list[Row]]) -> list[Row]:
        """Append the lines that a function makes from the last one, in one transaction."""
        with self._store.writing() as journal:
            if self._opening is None:
                self._opening = opening_of(journal)
            rows = lines(journal, journal.last(), self._opening[0])
            journal.add(rows)
        return rows

    def _row(
        self,
        journal: Journal,
        last: Row,
        kind: Kind,
        entry: str,
        body: dict[str, Any],
        standing: Standing,
        time: str = "",
        name: str | None = None,
    ) -> Row:
        actor = self.actor if name is None else check_text(name, "name", LONGEST_NAME)
        return Row.after(
            last,
            kind,
            data_set=last.data_set,
            entry=entry,
            time=time,
            actor=actor,
            body=canonical(with_identity(body, self._identity(journal.session_user))),
            totals=canonical(standing.to_dict()),
        )

    def _identity(self, session_user: str | None) -> Identity:
        return Identity(self._account, session_user)

    def _note(
        self,
        kind: Kind,
        body: dict[str, Any],
        settle: Callable[[Standing], Standing],
        name: str | None,
    ) -> None:
        def lines(journal: Journal, last: Row, declared: Declaration) -> list[Row]:
            standing = settle(standing_after(last, journal.all).at(minute()))
            return [self._row(journal, last, kind, "", body, standing, standing.time, name)]

        self._append(lines)


_ALREADY_SPENT = (
    "If it has been spent already, enter it with already_spent=True (--already-spent): then every "
    "release is refused until the limit allows for it"
)


def own_account() -> str:
    """Return the account of this process; "unknown" if the system does not provide it."""
    with suppress(OSError):
        return account()
    return "unknown"


def limit_from_numbers(epsilon: Any, delta: Any, rho: Any, accounting: Accounting) -> Limit:
    """Return a limit; its numbers are taken as exact decimals."""
    return Limit(
        None if epsilon is None else _budget_fraction(epsilon, "epsilon"),
        _budget_fraction(delta, "delta"),
        None if rho is None else _budget_fraction(rho, "rho"),
        accounting,
    )


def cost_from_numbers(epsilon: Any, delta: Any, rho: Any, limit: Limit) -> Cost:
    """Return the cost of spending from outside; its numbers are taken as exact decimals."""
    if (epsilon is None) == (rho is None):
        raise ArgumentError("give epsilon, with or without a delta, or rho")
    part = _budget_fraction(delta, "delta")
    spent = _budget_fraction(epsilon if rho is None else rho, "epsilon" if rho is None else "rho")
    if spent < 0 or not 0 <= part < 1 or not (spent or part):
        raise ArgumentError("what was spent must be greater than 0, and delta less than 1")
    if rho is None:
        return Cost(spent, part)
    counts = limit.kind == "approximate" and limit.accounting == "basic"
    if counts != bool(part):
        raise ArgumentError(
            "with basic accounting a rho needs a delta, at which it counts as an epsilon"
            if counts
            else "a rho has a delta only under a limit with basic accounting: leave delta out"
        )
    return Cost.concentrated(spent, part or _STATED_AT)


def _budget_fraction(value: Any, what: str) -> Fraction:
    found = as_decimal_fraction(value)
    if found is None:
        raise ArgumentError(f"{what} must be a finite number")
    return found
