"""Convert the statement's Markdown to one page of HTML, and to lines of plain text.

The page requests nothing: its styles are inside, there are no scripts, fonts or pictures, and its
own policy forbids them. It follows the reader's choice of light or dark, and prints.
"""

from __future__ import annotations

from html import escape as escape_html
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from .escape import inline_text, parser

if TYPE_CHECKING:
    from markdown_it.token import Token

#: Where something is to be filled in by hand.
BLANK = "_" * 24

#: Classes of sections in the style sheet. Lists of these are pairs of a title and a value.
_CLASSES = {"In plain words": "plain", "Record": "record", "Signature": "signature"}
_WITH_FIELDS = ("record", "signature")

_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'">
"""


def html_page(title: str, markdown: str) -> str:
    """Convert a statement to a page. The title is that of the document."""
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    tokens = parser().parse(markdown)
    starts = [i for i, token in enumerate(tokens) if (token.type, token.tag) == _SECTION]
    head, *sections = (
        tokens[i:j] for i, j in zip([0, *starts], [*starts, len(tokens)], strict=True)
    )
    body = _html(head) + "".join(map(_section, sections))
    return (
        f"{_HEAD}<title>{escape_html(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


_SECTION = ("heading_open", "h2")


def _section(tokens: list[Token]) -> str:
    kind = _CLASSES.get(tokens[1].content)
    if kind in _WITH_FIELDS:
        _lists_to_fields(tokens)
    start = f'<section class="{kind}">' if kind else "<section>"
    return f"{start}\n{_html(tokens)}</section>\n"


def _html(tokens: list[Token]) -> str:
    for token in tokens:
        if token.type == "blockquote_open":
            token.attrs = {"class": "alarm", "role": "alert"}
        elif token.type == "th_open":
            token.attrs = {"scope": "col"}
    html = cast(str, parser().renderer.render(tokens, parser().options, {}))
    # Reached by the keyboard too, where it is wider than the screen. Text has no tags left.
    box = '<div class="wide" role="region" aria-label="Table" tabindex="0"><table>'
    return html.replace("<table>", box).replace("</table>", "</table></div>")


def _lists_to_fields(tokens: list[Token]) -> None:
    """Make lists of "Title: value" lists of terms and descriptions."""
    names = {"bullet_list": "dl", "list_item": "div"}
    inside = False
    for token in tokens:
        kind = token.type.removesuffix("_open").removesuffix("_close")
        token.tag = names.get(kind, token.tag)
        inside = token.type != "bullet_list_close" and (inside or token.type == "bullet_list_open")
        if inside and token.type == "inline":
            _split_field(token)


def _split_field(line: Token) -> None:
    children = line.children or []
    title, _, value = children[0].content.partition(": ")
    children[0].content = value
    blank = ' class="blank"' if value == BLANK else ""
    start, end = _raw(f"<dt>{escape_html(title)}</dt><dd{blank}>"), _raw("</dd>")
    line.children = [start, *([] if blank else children), end]


def _raw(html: str) -> Token:
    from markdown_it.token import Token

    return Token("html_inline", "", 0, content=html)


def text_lines(markdown: str) -> list[str]:
    """Return paragraphs, list items and rows of tables as plain text, without blanks to fill in."""
    lines: list[str] = []
    row: list[str] | None = None
    skip = False
    for token in parser().parse(markdown):
        if token.type in ("heading_open", "thead_open"):
            skip = True
        elif token.type in ("heading_close", "thead_close"):
            skip = False
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row and not skip:
            lines.append(", ".join(filter(None, row)))
        elif token.type == "table_close":
            row = None
        elif token.type == "inline" and not skip:
            text = inline_text(token)
            if row is not None:
                row.append(text)
            elif not text.endswith(f": {BLANK}"):
                lines.append(text)
    return lines
