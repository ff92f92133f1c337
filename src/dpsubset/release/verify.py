"""Verify a release file: its content digest, its schema, its version, its entry in a ledger.

The ledger has the content digest of the release, recorded before the release was returned. A file
with another digest was changed, or was never debited.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..base.errors import ArgumentError, LedgerError
from ..base.rounding import float_up
from ..ledger.canonical import sha256_of_facts
from .files import pop_digest

if TYPE_CHECKING:
    from ..ledger.ledger import Ledger
    from ..ledger.replay import History

FORMATS = ("dpsubset release 1",)


@dataclass(frozen=True)
class Check:
    """The result of one comparison, in words.

    Attributes
    ----------
    holds : bool, optional
        None if it was not checked.
    says : str
        What was compared.
    lines : tuple of str
        What differs.
    """

    holds: bool | None
    says: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        mark = {True: "ok ", False: "NO ", None: "not checked:"}[self.holds]
        return f"{mark} {self.says}"


def checks(release: str | Path, fingerprint: str, ledger: Ledger | None = None) -> list[Check]:
    """Compare a release file with a schema's fingerprint and with a ledger.

    Raises an error if the file is no release; the checks report everything else.
    """
    facts = _release_facts(release)
    stated, digest = pop_digest(facts), sha256_of_facts(facts)
    found = [
        Check(stated == digest, f"its content digest, {digest}"),
        _check_schema(facts, fingerprint),
    ]
    found += [_check_version(facts), *_check_private(facts), *_check_rows(facts)]
    receipt = facts.get("ledger")
    if ledger is None:
        text = "whether its cost was debited, since no ledger was given"
        if isinstance(receipt, dict):
            text = f"{text}; it names entry {receipt.get('release_id')}"
        return [*found, Check(None, text)]
    try:
        history = ledger.verify()
    except LedgerError as error:
        return [*found, Check(False, f"the ledger does not hold: {error}")]
    found.append(Check(True, f"the ledger's {history.sequence} lines are as they were written"))
    if proviso := history.standing.lifetime.proviso:
        found.append(Check(True, f"of all that the ledger has counted: {proviso}"))
    return [*found, *_check_entry(facts, receipt, history, fingerprint)]


def _release_facts(path: str | Path) -> dict[str, Any]:
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise ArgumentError(f"{path} cannot be read") from None
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or facts.get("format") not in FORMATS:
        raise ArgumentError(f"{path} is not a release file of dpsubset, or has an unknown format")
    return facts


def _check_schema(facts: dict[str, Any], fingerprint: str) -> Check:
    if facts.get("schema_sha256") == fingerprint:
        return Check(True, f"made with this schema, whose content digest is {fingerprint}")
    return Check(
        False, f"made with another schema than this one, whose content digest is {fingerprint}"
    )


def _check_version(facts: dict[str, Any]) -> Check:
    versions = facts.get("versions")
    version = versions.get("dpsubset") if isinstance(versions, dict) else None
    if not isinstance(version, str):
        return Check(False, "it does not say which version of dpsubset made it")
    same = "" if version == __version__ else f"; this is {__version__}"
    return Check(True, f"made by dpsubset {version}{same}")


def _check_private(facts: dict[str, Any]) -> list[Check]:
    guarantee = facts.get("guarantee")
    private = isinstance(guarantee, dict) and guarantee.get("private") is True
    return [] if private else [Check(False, "it states that it is not private or has no guarantee")]


def _check_rows(facts: dict[str, Any]) -> list[Check]:
    """Files of earlier versions may state the number of rows and a cost under add-remove."""
    guarantee, stated = facts.get("guarantee"), facts.get("parameters")
    costs = guarantee.get("costs") if isinstance(guarantee, dict) else None
    counted = isinstance(stated, dict) and "rows" in stated
    if not counted or not isinstance(costs, dict) or "add-remove" not in costs:
        return []
    return [Check(False, "it states the number of rows: its cost under add-remove does not hold")]


def _check_entry(
    facts: dict[str, Any], receipt: Any, history: History, fingerprint: str
) -> list[Check]:
    if not isinstance(receipt, dict):
        return [Check(False, "it names no entry in a ledger, so no ledger has counted its cost")]
    if receipt.get("ledger") != history.key:
        return [Check(False, "its entry is in another ledger than this one")]
    entry = history.entries.get(str(receipt.get("release_id")))
    if entry is None:
        return [Check(False, "the ledger has no such entry")]
    if entry.state != "released":
        return [Check(False, f"the ledger's entry {entry.id} is {entry.state}, not released")]
    relation = history.declaration.relation
    stated = _stated_epsilon(facts, relation)
    who = entry.identity.shown(entry.actor)
    return [
        Check(True, f"the ledger has its entry, {entry.id}, of {entry.time} by {who}"),
        Check(
            sha256_of_facts(facts) == entry.release,
            f"its content digest against the ledger's, {entry.release}",
        ),
        Check(entry.event.schema == fingerprint, "the schema of the ledger's entry"),
        Check(
            stated is not None and stated <= float_up(entry.event.cost(relation).epsilon),
            f"the cost that it states under {relation}, against the debit",
        ),
    ]


def _stated_epsilon(facts: dict[str, Any], relation: str) -> float | None:
    guarantee = facts.get("guarantee")
    if "earlier" in facts and isinstance(guarantee, dict):
        # A model on an earlier release states the cost of both; its own is the last part's.
        guarantee = next(reversed(guarantee.get("parts") or [None]))
    key = f"epsilon_if_{relation.replace('-', '_')}"
    value = guarantee.get(key) if isinstance(guarantee, dict) else None
    return value if isinstance(value, float) else None
