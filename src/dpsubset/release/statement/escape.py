"""Escape untrusted text for Markdown, and read Markdown back.

Names of columns, units and purposes may hold anything. Sentences of a statement are Markdown in
which such text has gone through `escape` or `code_span`: it shows as itself and starts no emphasis,
link, image, tag, cell, list or heading. `parser` is the only parser of this Markdown.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from ...base.text import escape_for_terminal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_PUNCTUATION = re.compile(r"[\\`*|<>&~\[\]]")
#: Underscores within a word are not emphasis, and names are full of them.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
#: What GitHub would make a link of.
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
#: What starts a heading, a list or a rule at the start of a line.
_BLOCK_START = re.compile(r"(\d{1,9})(?=[.)](?:\s|$))|(?=([#+=-])\2*(?:\s|$))")
_OUTER_BLANK = re.compile(r"^\s|\s$")


def escape(text: str) -> str:
    """Write untrusted text as words of Markdown, for any place in a line or a table."""
    text = _PUNCTUATION.sub(r"\\\g<0>", escape_for_terminal(text))
    text = _ADDRESS.sub(r"\\\g<0>", _UNDERSCORE.sub(r"\\_", text))
    if found := _BLOCK_START.match(text):
        text = f"{found[1] or ''}\\{text[found.end() :]}"
    # Cells of tables and paragraphs lose blanks at their ends.
    return _OUTER_BLANK.sub(lambda blank: f"&#{ord(blank[0])};", text)


def code_span(text: str) -> str:
    """Write untrusted text as inline code, for any place in a line outside of tables."""
    text = escape_for_terminal(text)
    fence = "`"
    while fence in text:
        fence += "`"
    # One blank at each end is taken off by a parser, unless there is nothing else.
    outer = text[:1] + text[-1:] if text.strip(" ") else ""
    pad = " " if "`" in outer or " " in outer else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


@cache
def parser() -> MarkdownIt:
    """Parse CommonMark with tables; no HTML, links or images, whatever the text holds."""
    from markdown_it import MarkdownIt  # takes longer to import than a selection needs

    barred = [
        "html_block",
        "html_inline",
        "link",
        "image",
        "autolink",
        "reference",
        "fence",
        "code",
    ]
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(barred)


def plain_text(line: str) -> str:
    """Return what a line of Markdown says, without its marks."""
    (inline,) = parser().parseInline(line)
    return inline_text(inline)


def inline_text(token: Token) -> str:
    """Return what an inline token of the parser says."""
    return "".join(child.content for child in token.children or ())
