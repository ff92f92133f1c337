"""What a statement says, gathered once for all of its forms.

Made of the release, of what the caller declares and of the ledger's receipt; nothing else. Where
caller and ledger differ, both are stated: neither can be checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...base.errors import DpsubsetError
from ...ledger.composition import Limit, Totals
from ...ledger.identity import Identity
from ...ledger.left import Left
from ...privacy.guarantee import Guarantee
from ...privacy.relations import RELATIONS, Neighbours
from ..about import About
from ..files import FileDigests
from .columns import DeclaredColumn, columns_with_sources
from .posterior import Posterior

if TYPE_CHECKING:
    from ..release import Release

SEEDED_WARNING = (
    "This draw was made with a fixed seed. A person who knows the seed can repeat the noise, so "
    "the release is NOT PRIVATE. Seeds are for tests and simulation only."
)

UNPROVEN_WARNING = (
    "This mechanism has NO PRIVACY GUARANTEE: a person who sees the release may learn about single "
    "rows."
)

MADE_IN_SEARCH = (
    "Made within a search, a cross-validation, a calibration or a stacking of scikit-learn. The "
    "guarantee is that of this release alone. Scores and predictions of held-out rows, and what "
    "was chosen or fitted by them, come from rows without noise and are NOT PRIVATE."
)

#: Nobody has approved a release before the statement is signed.
APPROVER = "To be approved by"

CALLER, LEDGER, RELEASE = "declared by the caller", "from the ledger", "of the release"
DIGEST = "content digest, computed by 'dpsubset verify'"


@dataclass(frozen=True)
class RecordEntry:
    """An entry of the record; without a value, a line to fill in by hand."""

    key: str
    title: str
    value: str | None = None
    source: str | None = None
    #: What the caller says, where the ledger says something else.
    disputed: str | None = None


@dataclass(frozen=True)
class LedgerSums:
    """The ledger's sums before this release and with it, as text."""

    limit: str
    left: str
    before: str
    after: str
    ever: str
    relation: Neighbours
    #: From everything that was spent, this release included, where epsilon is what is counted.
    posterior: Posterior | None
    #: What the sums assume, with this release; and the same of all sums ever, as a sentence.
    assumes: str | None
    proviso: str
    #: Of the receipt, for machines.
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Content:
    """Everything that a statement is made of. Public."""

    warnings: tuple[str, ...]
    guarantee: Guarantee
    record: tuple[RecordEntry, ...]
    posteriors: tuple[Posterior, ...]
    rows: int | None
    #: Whether a ledger has an entry of the release, and its sums if the receipt can be read.
    debited: bool
    ledger: LedgerSums | None
    columns: tuple[DeclaredColumn, ...]
    proofs: tuple[str, ...]
    audits: tuple[str, ...]
    about: About
    files: FileDigests

    @property
    def promised(self) -> bool:
        """Whether there is a guarantee, and no seed that voids it."""
        return self.guarantee.proven and not self.guarantee.seeded

    def value(self, key: str) -> str | None:
        """Return the value of an entry of the record."""
        return next(entry.value for entry in self.record if entry.key == key)


def warnings_of_guarantee(g: Guarantee) -> list[str]:
    """List why a release is not private, or what its guarantee assumes."""
    found = [SEEDED_WARNING] if g.seeded else []
    if not g.proven:
        found.append(UNPROVEN_WARNING)
    if g.assumes:
        found.append(
            f"The guarantee holds only if {g.assumes}. This has not been checked and may be false."
        )
    return found


def content_of(release: Release, about: About | None, files: FileDigests) -> Content:
    """Gather the content of a release's statement."""
    about, g = about or About(), release.stated
    names = _proofs_and_audits(release)
    return Content(
        (*warnings_of_guarantee(g), *([MADE_IN_SEARCH] if release.made_in_search else [])),
        g,
        _record(release, about),
        _posteriors(g),
        release.rows,
        release.receipt is not None,
        _ledger_sums(release),
        columns_with_sources(release.schema),
        tuple(f"dpsubset/proofs/{proof}.md" for proof, _ in names if proof),
        tuple(f"dpsubset audit {audit}" for _, audit in names if audit),
        about,
        files,
    )


def _record(release: Release, about: About) -> tuple[RecordEntry, ...]:
    kept: Mapping[str, Any] = {} if release.receipt is None else release.receipt.to_dict()
    entry, reserved = kept.get("release_id"), kept.get("reserved_at")
    date = (str(reserved)[:10], LEDGER) if reserved else (release.date, RELEASE)
    return (
        RecordEntry("date", "Date", date[0], date[1] if date[0] else None),
        RecordEntry(
            "release_id", "Release", str(entry) if entry else release.content_digest,
            LEDGER if entry else DIGEST,
        ),
        _record_entry("data_set", "Data set", about.data_set, kept.get("data_set")),
        _record_entry("version", "Version of the data set", about.version),
        _record_entry("curator", "Curator of the data set", about.curator, kept.get("owner")),
        _operator_entry(about.operator, kept),
        _record_entry("purpose", "Purpose", about.purpose, kept.get("purpose")),
        _record_entry("recipient", "Recipient", about.recipient),
        _record_entry("approver", APPROVER, about.approver),
    )  # fmt: skip


def _record_entry(key: str, title: str, caller: str | None, ledger: Any = None) -> RecordEntry:
    if ledger:
        disputed = caller if caller != ledger else None
        return RecordEntry(key, title, str(ledger), LEDGER, disputed)
    return RecordEntry(key, title, caller, None if caller is None else CALLER)


def _operator_entry(caller: str | None, kept: Mapping[str, Any]) -> RecordEntry:
    """Name who made the release, and how the ledger established that."""
    entry = _record_entry("operator", "Released by", caller, kept.get("actor"))
    with suppress(DpsubsetError):
        if source := Identity.from_dict(kept.get("identity", {})).source(str(kept.get("actor"))):
            return replace(entry, source=f"{LEDGER}: {source}")
    return entry


def _posteriors(g: Guarantee) -> tuple[Posterior, ...]:
    """The declared relation first; empty if there is no guarantee."""
    if g.seeded or not g.proven:
        return ()
    order = sorted(RELATIONS, key=lambda relation: relation != g.neighbours)
    return tuple(
        Posterior(relation, cost.epsilon, cost.delta)
        for relation in order
        if (cost := g.costs.get(relation))
    )


def _ledger_sums(release: Release) -> LedgerSums | None:
    """Read the receipt; None if there is none, or if a file holds one that cannot be read."""
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
        return LedgerSums(
            str(limit),
            str(Left.of(limit, before + cost)),
            limit.shown(before),
            limit.shown(before + cost),
            limit.shown(total),
            relation,
            Posterior(relation, *spent) if counted and spent else None,
            (before + cost).assumed,
            total.proviso,
            {key: kept[key] for key in ("limit", "spent_before", "spent_before_ever", "cost")},
        )
    return None


def _proofs_and_audits(release: Release) -> list[tuple[str | None, str | None]]:
    """List a proof and an audit, or one of them, for each step of a release."""
    fit, tuned = release.fit, release.tuned
    steps: list[tuple[str | None, str | None]] = [
        (release.mechanism.replace("-", "_"), release.mechanism), ("scores", None)
    ]  # fmt: skip
    steps += [("scale", "scale")] if release.scale is not None else []
    steps += [("class_share", "class-share")] if release.class_share is not None else []
    steps += [("readable", "readable")] if release.readable is not None else []
    if fit is not None:
        for part in fit.released_fits:
            audited = part.mechanism == "noisy-moments"
            steps.append((part.mechanism, part.mechanism if audited else None))
    steps += [("private_search", "private-search")] if tuned is not None else []
    composed = release.guarantee.parts or tuned is not None
    steps += [("composition", None)] if composed else []
    return steps
