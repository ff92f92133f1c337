"""The debit around a release: reserved before a value is read, closed before it is returned.

    with debited(ledger, event) as debit:     reserved, on disk
        ...                                   values are read, draws are made
        release = debit.signed(release)       its digest is noted, on disk

However else the block ends, the debit counts. Without a ledger nothing is noted. Only `api.driver`
calls `debited`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from ..base.errors import ArgumentError, LedgerError
from ..privacy.guarantee import Cost, Guarantee
from .canonical import sha256_of_facts
from .composition import Totals
from .event import Event, terms_of
from .receipt import Receipt

if TYPE_CHECKING:
    from .ledger import Ledger

#: What may be passed as ``ledger=``: False for none, also where the environment names one.
LedgerLike: TypeAlias = "Ledger | str | Path | Literal[False] | None"

#: The environment variable that names the ledger of calls without the argument.
VARIABLE = "DPSUBSET_LEDGER"

Released = TypeVar("Released", bound=Any)


def in_force(ledger: LedgerLike) -> bool:
    """Whether there is a ledger to debit."""
    return ledger is not False and (ledger is not None or bool(os.environ.get(VARIABLE)))


def opened(ledger: LedgerLike) -> Ledger | None:
    """The ledger that the argument or the environment names; None if there is none."""
    if ledger is None:
        ledger = os.environ.get(VARIABLE) or None
    if ledger is None or ledger is False:
        return None
    from .ledger import Ledger  # which imports SQLAlchemy

    if isinstance(ledger, (str, Path)):
        return Ledger(ledger)
    if isinstance(ledger, Ledger):
        return ledger
    raise ArgumentError(
        "ledger must be the path or URL of a ledger, a dpsubset.Ledger, or False for none"
    )


class Debit:
    """An open debit; without a ledger, one that does nothing."""

    def __init__(self, ledger: Ledger | None = None, receipt: Receipt | None = None) -> None:
        self._ledger = ledger
        self._receipt = receipt
        self._open = receipt is not None

    def checked(self, guarantee: Guarantee) -> Guarantee:
        """Return a guarantee that costs no more than was reserved; to be called before each draw.

        A file may have other rows than it says, and what a release costs may depend on them.

        Raises
        ------
        LedgerError
            If it costs more.
        """
        if self._receipt is not None:
            cost = guarantee.costs.get(self._receipt.declaration.relation)
            if cost is None or not Totals.of(cost, guarantee.assumes) <= self._receipt.cost:
                raise LedgerError(
                    "with the number of rows that the table has, this release costs more than was "
                    "reserved for it. Nothing is released, and what was reserved is spent"
                )
        return guarantee

    def signed(self, release: Released) -> Released:
        """Return the release with its receipt, once the ledger has its digest."""
        if self._ledger is None or self._receipt is None:
            return release
        signed: Released = replace(release, receipt=self._receipt)
        self._ledger.release(self._receipt, sha256_of_facts(signed.to_dict()))
        self._open = False
        return signed

    def lost(self) -> None:
        """Note that there is no release. The reserved cost is spent with or without the note."""
        if self._open and self._ledger is not None and self._receipt is not None:
            self._open = False
            with suppress(LedgerError):
                self._ledger.lose(self._receipt)


@contextmanager
def debited(ledger: LedgerLike, event: Callable[[], Event]) -> Iterator[Debit]:
    """Reserve the cost of a release for the duration of the block that makes it."""
    book = opened(ledger)
    if book is None:
        yield Debit()
        return
    debit = Debit(book, book.begin(event()))
    try:
        yield debit
    finally:
        debit.lost()
        if book is not ledger:
            book.close()


def whole_cost(cost: Cost) -> Cost:
    """A pure cost as one term, for a release whose division among steps is not known yet."""
    if cost.kind != "pure" or any(term.kind != "pure" for term in terms_of(cost)):
        raise LedgerError(
            "the division of the budget among the steps depends on the number of rows, which is "
            "not known before the file is read: use response_range='declared' or a "
            "ResponseRange, or a Parquet file"
        )
    return Cost(cost.epsilon)
