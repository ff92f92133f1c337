"""Text from outside, such as names of columns, on a terminal and in Markdown.

A name may hold anything: escape sequences that move a terminal's cursor, characters that turn the
direction of what follows, a bar that ends the cell of a table.
"""

from __future__ import annotations

import re
import unicodedata


def escape_for_terminal(text: str) -> str:
    r"""Control characters, and all that show as nothing, written out: ``\x1b``, ``\n``."""
    return text if text.isprintable() else "".join(map(_written_out, text))


def markdown(text: str) -> str:
    """As ordinary words of Markdown, within a line or a table."""
    escaped = re.sub(r"([\\`*|<>&~\[\]])", r"\\\1", escape_for_terminal(text))
    # Within a word an underscore is only that, and names are full of them.
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)


def code(text: str) -> str:
    """As inline code of Markdown, outside of tables."""
    text = escape_for_terminal(text)
    fence = "`"
    while fence in text:
        fence += "`"
    # Blanks at both ends are taken off again by whoever renders it.
    pad = " " if text[:1] in ("`", " ") or text[-1:] in ("`", " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _written_out(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] != "C" and category not in ("Zl", "Zp"):
        return character
    return character.encode("unicode_escape").decode("ascii")
