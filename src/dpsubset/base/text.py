"""Escape untrusted text, such as column names, for terminals and Markdown.

A name may contain anything: escape sequences that move a terminal's cursor, characters that reverse
the direction of the text that follows, or a bar that ends a cell of a table.
"""

from __future__ import annotations

import re
import unicodedata


def escape_for_terminal(text: str) -> str:
    r"""Write control and invisible characters as escapes: ``\x1b``, ``\n``."""
    return text if text.isprintable() else "".join(map(_written_out, text))


def markdown(text: str) -> str:
    """Escape text for Markdown, within a line or a table cell."""
    escaped = re.sub(r"([\\`*|<>&~\[\]])", r"\\\1", escape_for_terminal(text))
    # An underscore within a word needs no escape, and many names have one.
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)


def code(text: str) -> str:
    """Format text as inline code of Markdown, outside of tables."""
    text = escape_for_terminal(text)
    fence = "`"
    while fence in text:
        fence += "`"
    # Renderers remove one blank from both ends.
    pad = " " if text[:1] in ("`", " ") or text[-1:] in ("`", " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _written_out(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] != "C" and category not in ("Zl", "Zp"):
        return character
    return character.encode("unicode_escape").decode("ascii")
