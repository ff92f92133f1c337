"""Files of facts: JSON with a name for its format and a SHA-256 of everything else.

The SHA-256 detects damage and careless edits. It is not a signature: whoever forges a file can
forge its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, TableError
from ..ledger.canonical import sha256_of_facts

#: The key of the SHA-256 in a file.
SHA256 = "sha256"


def facts_to_json(facts: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Write the text of a file."""
    whole = {**facts, SHA256: sha256_of_facts(facts)}
    return json.dumps(whole, indent=2, ensure_ascii=ascii_only)


def facts_from_json(text: str | bytes, form: str, what: str) -> dict[str, Any]:
    """Read the facts of a file of this format; refuse any other file, or one that was changed."""
    facts: Any = None
    with suppress(ValueError, RecursionError):
        facts = json.loads(text)
    if not isinstance(facts, dict) or facts.get("format") != form:
        raise ArgumentError(f"this is no {what} file of dpsubset, or one of another version")
    if facts.pop(SHA256, None) != sha256_of_facts(facts):
        raise ArgumentError(
            f"this {what} file was changed after it was written: its digest does not fit"
        )
    return facts


def read_bytes(path: str | Path, what: str) -> bytes:
    """Read a file, or raise an error that names it."""
    try:
        return Path(path).read_bytes()
    except OSError:
        raise TableError(f"there is no {what} file {Path(path).name}") from None
