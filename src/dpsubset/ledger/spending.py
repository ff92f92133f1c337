"""The debit around a release: reserved before a value is read, closed before anybody has it.

    with debited(ledger, event) as debit:     reserved, on disk
        ...                                   values are read, draws are made
        return debit.signed(release)          noted with its digest, on disk; then returned

Whatever ends the block otherwise leaves a debit that counts. Without a ledger nothing is noted.
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

#: Names the ledger of calls that say nothing of one.
VARIABLE = "DPSUBSET_LEDGER"

Released = TypeVar("Released", bound=Any)


def in_force(ledger: LedgerLike) -> bool:
    """Whether there is a ledger to debit."""
    return ledger is not False and (ledger is not None or bool(os.environ.get(VARIABLE)))


def opened(ledger: LedgerLike) -> Ledger | None:
    """The ledger that is meant; None if there is none."""
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
    """A debit that is open, or none at all.

    Attributes
    ----------
    receipt : Receipt, optional
        None without a ledger.
    """

    def __init__(self, ledger: Ledger | None = None, receipt: Receipt | None = None) -> None:
        self._ledger = ledger
        self.receipt = receipt
        self._open = receipt is not None

    def checked(self, guarantee: Guarantee) -> Guarantee:
        """A guarantee that costs no more than was reserved, or an error: before each draw.

        A file may have other rows than it says, and what a release costs may depend on them.
        """
        if self.receipt is not None:
            relation = self.receipt.declaration.relation
            cost = guarantee.costs.get(relation)
            assumed = guarantee.assumes
            if cost is None or not Totals.of(cost, assumed) <= self.receipt.cost:
                raise LedgerError(
                    "with the number of rows that the table has, this release costs more than was "
                    "reserved for it. Nothing is released, and what was reserved is spent"
                )
        return guarantee

    def signed(self, release: Released) -> Released:
        """The release with its receipt, once the ledger has its digest."""
        if self._ledger is None or self.receipt is None:
            return release
        signed: Released = replace(release, receipt=self.receipt)
        self._ledger.release(self.receipt, sha256_of_facts(signed.to_dict()))
        self._open = False
        return signed

    def lost(self) -> None:
        """Note that there is no release. What was reserved is spent with or without the note."""
        if self._open and self._ledger is not None and self.receipt is not None:
            self._open = False
            with suppress(LedgerError):
                self._ledger.lose(self.receipt)


@contextmanager
def debited(ledger: LedgerLike, event: Callable[[], Event]) -> Iterator[Debit]:
    """Reserve what a release costs, then let it be made."""
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
    """A pure cost as one term: for a release whose steps will share it in a way not yet known."""
    if cost.kind != "pure" or any(term.kind != "pure" for term in terms_of(cost)):
        raise LedgerError(
            "how this release divides its budget depends on the number of rows, which the file "
            "does not tell before it is read: take response_range='declared' or a ResponseRange, "
            "or a Parquet file"
        )
    return Cost(cost.epsilon)
