"""Files of facts: JSON with a name for its format and a digest of all the rest.

The digest finds damage and careless edits. It is no signature: whoever makes up a whole file can
make up its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError, TableError

#: The key of the digest.
DIGEST = "sha256"


def digest(facts: Mapping[str, Any]) -> str:
    """SHA-256 of the facts, in whatever order a program has copied them."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def written(facts: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """The text of a file."""
    return json.dumps({**facts, DIGEST: digest(facts)}, indent=2, ensure_ascii=ascii_only)


def opened(text: str | bytes, form: str, what: str) -> dict[str, Any]:
    """The facts of a file of this format; an error for anything else, or if it was changed."""
    facts: Any = None
    with suppress(ValueError, RecursionError):
        facts = json.loads(text)
    if not isinstance(facts, dict) or facts.get("format") != form:
        raise ArgumentError(f"this is no {what} file of dpsubset, or one of another version")
    if facts.pop(DIGEST, None) != digest(facts):
        raise ArgumentError(
            f"this {what} file was changed after it was written: its digest does not fit"
        )
    return facts


def loaded(path: str | Path, what: str) -> bytes:
    """What a file holds."""
    try:
        return Path(path).read_bytes()
    except OSError:
        raise TableError(f"there is no {what} file {Path(path).name}") from None
