"""Untrusted text, such as names of columns, on a terminal.

A name may hold anything: escape sequences that move a terminal's cursor, characters that reverse
the direction of the text after them.
"""

from __future__ import annotations

import unicodedata


def escape_for_terminal(text: str) -> str:
    r"""Write control and invisible characters as escapes: ``\x1b``, ``\n``."""
    return text if text.isprintable() else "".join(map(_written_out, text))


def _written_out(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] != "C" and category not in ("Zl", "Zp"):
        return character
    return character.encode("unicode_escape").decode("ascii")
