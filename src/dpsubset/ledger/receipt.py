"""Receipt: the entry of a release, and the ledger's sums when it was made. Public."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..base.errors import DpsubsetError
from .composition import Limit, Totals
from .entry import Entry
from .left import Left
from .standing import Declaration


@dataclass(frozen=True)
class Receipt:
    """The receipt of a debit, which becomes part of the release. Public.

    Attributes
    ----------
    declaration : Declaration
        The declaration of the ledger.
    ledger : str
        The key of the ledger.
    reserved : Entry
        The debit, as it was reserved.
    limit : Limit
    before, lifetime_before : Totals
        What was spent before: since the rows were last declared new, and ever.
    cost : Totals
        The cost of this release.
    """

    declaration: Declaration
    ledger: str
    reserved: Entry
    limit: Limit
    before: Totals
    lifetime_before: Totals
    cost: Totals

    @property
    def entry(self) -> str:
        """The id of the entry, which is also that of the release."""
        return self.reserved.id

    @property
    def claim(self) -> str:
        """The claim of the process that reads; it stays in the ledger."""
        return self.reserved.claim

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "release_id": self.entry,
            "data_set": self.declaration.data_set,
            "ledger": self.ledger,
            "sequence": self.reserved.sequence,
            "reserved_at": self.reserved.time,
            "owner": self.declaration.owner,
            "actor": self.reserved.actor,
            "identity": self.reserved.identity.to_dict(),
            "purpose": self.reserved.purpose,
            "relation": self.declaration.relation,
            "limit": self.limit.to_dict(),
            "spent_before": self.before.to_dict(),
            "spent_before_ever": self.lifetime_before.to_dict(),
            "cost": self.cost.to_dict(),
        }

    def __str__(self) -> str:
        return str(KeptReceipt(self.to_dict()))


@dataclass(frozen=True)
class KeptReceipt:
    """The receipt in a release file. Public."""

    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(self.facts)

    def __str__(self) -> str:
        text = f"entry {self.facts.get('release_id')} of the ledger of {self.facts.get('data_set')}"
        with suppress(DpsubsetError, LookupError, TypeError, ValueError):
            limit = Limit.from_dict(self.facts["limit"])
            before, cost = (Totals.from_dict(self.facts[key]) for key in ("spent_before", "cost"))
            spent = before + cost
            proviso = f". {spent.proviso}" if spent.assumes else ""
            return (
                f"{text}; spent with this: {limit.shown(spent)} of {limit}; left: "
                f"{Left.of(limit, spent)}{proviso}"
            )
        return text
