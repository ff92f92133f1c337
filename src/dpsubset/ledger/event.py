"""Event: the description and price of a release, written before the release is made.

Costs are exact rationals under both relations, term by term, so that they can be added up in any of
the ways of `composition`. All of it is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from .. import __version__
from ..base.errors import ArgumentError, LedgerError
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.relations import RELATIONS, Neighbours
from .canonical import canonical, parse_rational, without_floats

FORMAT = "dpsubset event 1"

#: Stands for the call of spending that this ledger did not debit.
OUTSIDE = "outside"

_KEYS = {
    "format", "what", "mechanism", "options", "costs", "unit", "rows_per_unit", "schema",
    "assumes", "version",
}  # fmt: skip


@dataclass(frozen=True)
class Event:
    """One release, priced. Public.

    Attributes
    ----------
    what : str
        The call that makes it: "select", "fit", ...; "outside" for spending elsewhere.
    mechanism : str
    options : mapping
        Public options of the mechanism and the problem, as text, integers and booleans.
    costs : mapping from relation to Cost
        There is no guarantee under a relation that is missing here.
    unit : str
        The unit of privacy, in the schema's words.
    rows_per_unit : int
    schema : str
        The fingerprint of the schema.
    assumes : str, optional
        What the guarantee assumes.
    version : str
        The version of the package.
    """

    what: str
    mechanism: str
    options: Mapping[str, Any]
    costs: Mapping[Neighbours, Cost]
    unit: str
    rows_per_unit: int
    schema: str
    assumes: str | None = None
    version: str = field(default=__version__)

    @classmethod
    def of(
        cls,
        what: str,
        mechanism: str,
        guarantee: Guarantee,
        *,
        unit: str,
        rows_per_unit: int,
        schema: str,
        options: Mapping[str, Any] | None = None,
    ) -> Event:
        """Return the event of a guarantee; refuse a seeded release, which is not private."""
        if guarantee.seeded:
            raise ArgumentError(
                "a seeded draw is not private, so it is not written to a ledger: leave the seed "
                "out, or, for simulated data, the ledger (ledger=False, --no-ledger)"
            )
        return cls(
            what,
            mechanism,
            cast(Mapping[str, Any], without_floats(dict(options or {}))),
            dict(guarantee.costs),
            unit,
            rows_per_unit,
            schema,
            guarantee.assumes,
        )

    @classmethod
    def outside(cls, cost: Cost, relation: Neighbours, *, unit: str, rows_per_unit: int) -> Event:
        """Return the event of spending that the ledger did not debit."""
        return cls(OUTSIDE, "unknown", {}, {relation: cost}, unit, rows_per_unit, "")

    @property
    def is_outside(self) -> bool:
        """Whether this is spending that the ledger did not debit."""
        return self.what == OUTSIDE

    def cost(self, relation: Neighbours) -> Cost:
        """Return the cost under a relation; an error if it has none under it."""
        if relation not in self.costs:
            known = "it has no guarantee"
            if self.costs:
                known = (
                    f"it has a cost under {', '.join(self.costs)} alone, since it states the "
                    f"number of rows or depends on it. Use neighbours={relation!r}"
                )
            raise LedgerError(
                f"this release has no guarantee under {relation}, the relation of the ledger: "
                f"{known}"
            )
        return self.costs[relation]

    def to_dict(self) -> dict[str, Any]:
        """As facts: rationals are text."""
        return {
            "format": FORMAT,
            **self.__dict__,
            "options": dict(self.options),
            "costs": {
                relation: [_term_to_dict(term) for term in terms_of(cost)]
                for relation, cost in self.costs.items()
            },
        }

    @classmethod
    def from_dict(cls, facts: Any) -> Event:
        """Read what :meth:`to_dict` wrote."""
        if not isinstance(facts, Mapping) or facts.get("format") != FORMAT:
            raise LedgerError("the ledger contains an event of an unknown format")
        if set(facts) != _KEYS or not isinstance(facts["costs"], Mapping):
            raise LedgerError("the ledger contains an event with other entries than it should have")
        if not set(facts["costs"]) <= set(RELATIONS):
            raise LedgerError("the ledger contains an event with an unknown relation")
        costs = {relation: _sum_of_terms(terms) for relation, terms in facts["costs"].items()}
        rest = {name: facts[name] for name in _KEYS - {"format", "costs"}}
        return cls(costs=cast(Mapping[Neighbours, Cost], costs), **rest)

    def canonical(self) -> str:
        """Canonical JSON, which is the same for equal events."""
        return canonical(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.canonical() == other.canonical()

    def __hash__(self) -> int:
        return hash(self.canonical())


def terms_of(cost: Cost) -> tuple[Cost, ...]:
    """Return the terms of a cost, which may be a single one."""
    return cost.terms or (cost,)


def _term_to_dict(term: Cost) -> dict[str, str]:
    if term.kind == "pure":
        measure = "bounded-range" if term.bounded_range else "pure"
        return {"measure": measure, "epsilon": str(term.epsilon)}
    stated = {"epsilon": str(term.epsilon), "delta": str(term.delta)}
    if term.rho is not None:
        return {"measure": "zcdp", "rho": str(term.rho), **stated}
    return {"measure": "approximate", **stated}


_FIELDS = {
    "pure": {"epsilon"},
    "bounded-range": {"epsilon"},
    "zcdp": {"rho", "epsilon", "delta"},
    "approximate": {"epsilon", "delta"},
}


def _term_from_dict(facts: Any) -> Cost:
    measure = facts.get("measure") if isinstance(facts, Mapping) else None
    if measure not in _FIELDS or set(facts) != {"measure", *_FIELDS[measure]}:
        raise LedgerError("the ledger contains a cost of an unknown measure")
    numbers: dict[str, Any] = {name: parse_rational(facts[name]) for name in _FIELDS[measure]}
    try:
        return Cost(**numbers, bounded_range=measure == "bounded-range")
    except ValueError:
        raise LedgerError("the ledger contains a cost that no release can have") from None


def _sum_of_terms(terms: Any) -> Cost:
    if not isinstance(terms, list) or not terms:
        raise LedgerError("the ledger contains an event without a cost")
    first, *more = map(_term_from_dict, terms)
    return sum(more, start=first)
