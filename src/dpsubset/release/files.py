"""Files of facts: JSON with a name for its format and a content digest of everything else.

A content digest is the SHA-256 of the facts in canonical form. It stays the same if a file is
indented anew, so it differs from the SHA-256 of the file's bytes, which ``sha256sum`` prints. It
detects damage and careless edits. It is not a signature: a person who forges a file can forge its
digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, TableError
from ..ledger.canonical import sha256_of_facts

#: The key of the content digest in a file, and its name in files of earlier versions.
DIGEST, _FORMER_DIGEST = "content_digest", "sha256"


@dataclass(frozen=True)
class FileDigests:
    """SHA-256 of the files that a statement names, as ``sha256sum`` has them; None if unknown."""

    #: Of the release file.
    release: str | None = None
    #: Of the bounds file.
    schema: str | None = None


def facts_to_json(facts: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Write the text of a file."""
    whole = {**facts, DIGEST: sha256_of_facts(facts)}
    return json.dumps(whole, indent=2, ensure_ascii=ascii_only)


def facts_from_json(text: str | bytes, form: str, what: str) -> dict[str, Any]:
    """Read the facts of a file of this format; refuse any other file, or one that was changed."""
    facts: Any = None
    with suppress(ValueError, RecursionError):
        facts = json.loads(text)
    if not isinstance(facts, dict) or facts.get("format") != form:
        raise ArgumentError(f"this is no {what} file of dpsubset, or one of another version")
    if pop_digest(facts) != sha256_of_facts(facts):
        raise ArgumentError(
            f"this {what} file was changed after it was written: its content digest does not fit"
        )
    return facts


def pop_digest(facts: dict[str, Any]) -> Any:
    """Remove the content digest from the facts of a file, and return it."""
    return facts.pop(DIGEST if DIGEST in facts else _FORMER_DIGEST, None)


def sha256_of_file(path: str | Path) -> str | None:
    """Return what ``sha256sum`` prints of a file; None if it cannot be read."""
    with suppress(OSError):
        return sha256_of_bytes(Path(path).read_bytes())
    return None


def sha256_of_bytes(content: bytes) -> str:
    """Return what ``sha256sum`` prints of a file with this content."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: str | Path, what: str) -> bytes:
    """Read a file, or raise an error that names it."""
    if not isinstance(path, (str, PathLike)):
        raise ArgumentError(f"a {what} file must be given as a path, not {type(path).__name__}")
    try:
        return Path(path).read_bytes()
    except OSError:
        raise TableError(f"there is no {what} file {Path(path).name or path}") from None
