"""Sentences with names in them, before anybody knows what they will be written in.

A name of a column may hold anything, and every form of a statement guards against it in its own
way. So a sentence keeps apart what is ours and what comes from outside, by characters that
`text.visible` leaves in no name. A form is chosen last: Markdown, HTML or plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from ..base.text import code, escape_for_terminal, markdown

_NAME, _WORDS, _END = "\ue000", "\ue001", "\ue002"
_PIECE = re.compile(f"{_NAME}([^{_END}]*){_END}|{_WORDS}([^{_END}]*){_END}|([^{_NAME}{_WORDS}]+)")


def name(text: str) -> str:
    """A name from outside, or something to be typed: shown as code."""
    return f"{_NAME}{escape_for_terminal(text)}{_END}"


def said(text: str) -> str:
    """Words from outside."""
    return f"{_WORDS}{escape_for_terminal(text)}{_END}"


def as_markdown(sentence: str) -> str:
    """With names as inline code and words escaped."""
    return _rendered(sentence, code, markdown, str)


def as_html(sentence: str) -> str:
    """All of it escaped, whoever wrote it."""
    return _rendered(sentence, lambda text: f"<code>{escape(text)}</code>", escape, escape)


def as_plain(sentence: str) -> str:
    """Nothing but the text."""
    return _rendered(sentence, str, str, str)


def _rendered(
    sentence: str,
    of_name: Callable[[str], str],
    of_words: Callable[[str], str],
    of_ours: Callable[[str], str],
) -> str:
    parts = []
    for piece in _PIECE.finditer(sentence):
        named, words, ours = piece.groups()
        if named is not None:
            parts.append(of_name(named))
        elif words is not None:
            parts.append(of_words(words))
        else:
            parts.append(of_ours(ours))
    return "".join(parts)
