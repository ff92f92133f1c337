"""Facts: what a statement says, once, for all of its forms.

Made of the release, of what the caller declares and of the ledger's receipt; nothing else. Where
caller and ledger differ, both are told: neither can be checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..base.errors import DpsubsetError
from ..ledger.composition import Limit, Totals
from ..privacy.guarantee import Guarantee
from ..privacy.relations import RELATIONS, Neighbours
from ..schema.schema import Column, Schema
from .about import About
from .belief import percent, sure
from .declared import also, ends
from .files import digest
from .notices import MADE_IN_SEARCH, warnings

if TYPE_CHECKING:
    from .release import Release

CALLER, LEDGER, RELEASE = "declared by the caller", "from the ledger", "of the release"


@dataclass(frozen=True)
class Line:
    """Something that whoever signs wants to read; without a value, to fill in by hand."""

    key: str
    title: str
    value: str | None = None
    source: str | None = None
    #: What the caller says, where the ledger says something else.
    disputed: str | None = None


@dataclass(frozen=True)
class Belief:
    """How sure somebody can become who was 50 % sure, under one relation."""

    relation: Neighbours
    epsilon: Fraction
    delta: Fraction
    share: Fraction

    @property
    def percent(self) -> str:
        """Rounded up."""
        return percent(self.share)


@dataclass(frozen=True)
class Spending:
    """How the ledger stood before this release, and stands with it; for people."""

    limit: str
    before: str
    after: str
    ever: str
    relation: Neighbours
    #: Of everything that was spent, this release included, where epsilon is what is counted.
    belief: Belief | None
    #: What the sums hold only under, in words, with this release and ever.
    assumes: str | None
    proviso: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Bound:
    """What was declared of a column."""

    column: Column
    role: str
    source: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        low, high = ("", "") if self.column.levels is not None else ends(self.column)
        return {
            "name": self.column.name,
            "role": self.role,
            "low": low or None,
            "high": high or None,
            "also_declared": also(self.column) or None,
            "source": self.source,
        }


@dataclass(frozen=True)
class Facts:
    """Everything that a statement is made of. Public."""

    warnings: tuple[str, ...]
    guarantee: Guarantee
    record: tuple[Line, ...]
    beliefs: tuple[Belief, ...]
    rows: int | None
    #: Whether a ledger has an entry of it, and how that one stands.
    debited: bool
    spending: Spending | None
    bounds: tuple[Bound, ...]
    bounds_from: str | None
    proofs: tuple[str, ...]
    audits: tuple[str, ...]
    about: About

    @property
    def promised(self) -> bool:
        """Whether there is a guarantee, and no seed that voids it."""
        return self.guarantee.proven and not self.guarantee.seeded

    def line(self, key: str) -> Line:
        """One of the record."""
        return next(line for line in self.record if line.key == key)


def facts_of(release: Release, about: About | None) -> Facts:
    """Of a release."""
    declared, g = about or About(), release.stated
    return Facts(
        (*warnings(g), *([MADE_IN_SEARCH] if release.made_in_search else [])),
        g,
        _record(release, declared),
        _beliefs(g),
        release.rows,
        release.receipt is not None,
        _spending(release),
        _bounds(release.schema),
        declared.bounds_from,
        _proofs(release),
        _audits(release),
        declared,
    )


def _record(release: Release, about: About) -> tuple[Line, ...]:
    kept: Mapping[str, Any] = {} if release.receipt is None else release.receipt.to_dict()
    entry, reserved = kept.get("release_id"), kept.get("reserved_at")
    date = (str(reserved)[:10], LEDGER) if reserved else (release.date, RELEASE)
    return (
        Line("date", "Date", date[0], date[1] if date[0] else None),
        Line("release_id", "Release", str(entry) if entry else digest(release.to_dict()),
             LEDGER if entry else "SHA-256 of the release file"),
        _line("data_set", "Data set", about.data_set, kept.get("data_set")),
        _line("version", "Version of the data set", about.version),
        _line("curator", "Curator of the data set", about.curator, kept.get("owner")),
        _line("operator", "Released by", about.operator, kept.get("actor")),
        _line("purpose", "Purpose", about.purpose, kept.get("purpose")),
        _line("recipient", "Recipient", about.recipient),
        _line("approver", "Approved by", about.approver),
    )  # fmt: skip


def _line(key: str, title: str, caller: str | None, ledger: Any = None) -> Line:
    if ledger and caller is not None and caller != ledger:
        return Line(key, title, str(ledger), LEDGER, caller)
    if ledger:
        return Line(key, title, str(ledger), LEDGER)
    return Line(key, title, caller, None if caller is None else CALLER)


def _beliefs(g: Guarantee) -> tuple[Belief, ...]:
    """The declared relation first. None at all where nothing is promised."""
    if g.seeded or not g.proven:
        return ()
    order = sorted(RELATIONS, key=lambda relation: relation != g.neighbours)
    return tuple(
        Belief(relation, cost.epsilon, cost.delta, sure(cost.epsilon, cost.delta))
        for relation in order
        if (cost := g.costs.get(relation))
    )


def _spending(release: Release) -> Spending | None:
    """From the receipt; nothing if it was kept in a file that says it otherwise."""
    if release.receipt is None:
        return None
    kept = release.receipt.to_dict()
    with suppress(DpsubsetError, LookupError, TypeError, ValueError):
        limit = Limit.from_dict(kept["limit"])
        before, ever, cost = (
            Totals.from_dict(kept[key]) for key in ("spent_before", "spent_before_ever", "cost")
        )
        total, spent = ever + cost, limit.spent(before + cost)
        relation = {each: each for each in RELATIONS}[kept["relation"]]
        counted = limit.epsilon is not None and spent is not None
        return Spending(
            str(limit),
            limit.shown(before),
            limit.shown(before + cost),
            limit.shown(total),
            relation,
            Belief(relation, *spent, sure(*spent)) if counted and spent else None,
            (before + cost).assumed,
            total.proviso,
            {key: kept[key] for key in ("limit", "spent_before", "spent_before_ever", "cost")},
        )
    return None


def _bounds(schema: Schema) -> tuple[Bound, ...]:
    paid = {column: each for each in schema.paid for column in each.columns}

    def source(column: Column) -> str:
        if (each := paid.get(column.name)) is None:
            return "given by the caller"
        if each.seeded:
            return "according to the schema, released before WITH A SEED, hence not privately"
        return (
            f"according to the schema, released before for epsilon = {each.epsilon} under "
            f"{each.neighbours}"
        )

    roles = [*((column, "feature") for column in schema.features), (schema.response, "response")]
    return tuple(Bound(column, role, source(column)) for column, role in roles)


def _proofs(release: Release) -> tuple[str, ...]:
    """Files of the package: of the mechanism, of its scores, and of what else was released."""
    found = [release.mechanism.replace("-", "_"), "scores"]
    found += ["scale"] if release.scale is not None else []
    found += ["readable"] if release.readable is not None else []
    found += [release.fit.mechanism] if release.fit is not None else []
    found += ["private_search"] if release.tuned is not None else []
    found += ["composition"] if release.guarantee.parts or release.tuned is not None else []
    return tuple(f"dpsubset/proofs/{each}.md" for each in found)


def _audits(release: Release) -> tuple[str, ...]:
    """Commands that try to contradict the guarantee, on made-up data."""
    found = [release.mechanism, *(["scale"] if release.scale is not None else [])]
    found += ["readable"] if release.readable is not None else []
    if release.fit is not None and release.fit.mechanism == "noisy-moments":
        found.append("noisy-moments")
    found += ["private-search"] if release.tuned is not None else []
    return tuple(f"dpsubset audit {each}" for each in found)
