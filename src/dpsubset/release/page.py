"""The statement as one page of HTML: light or dark as the reader has it, narrow, or printed.

It asks nobody for anything: styles are inside, there are no scripts, fonts or pictures, and its
own policy forbids them. Everything from outside is escaped.
"""

from __future__ import annotations

from html import escape

from ..base.text import escape_for_terminal
from .facts import Facts
from .marked import as_html
from .words import Block, Fields, Items, Section, Table

_STYLE = """\
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2329; --faint: #5a6570; --rule: #d5dae0; --wash: #f3f5f7;
  --accent: #1f5f8b; --alarm: #9b1c1c; --alarm-wash: #fdecec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --ink: #e4e8ec; --faint: #9aa5b0; --rule: #343c44; --wash: #1e242a;
    --accent: #7cb8e4; --alarm: #ff9c9c; --alarm-wash: #3a1a1a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 46rem; padding: 2rem 1.25rem 3rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 1rem; }
h2 {
  font-size: 1.15rem; line-height: 1.3; margin: 2rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 1px solid var(--rule);
}
p { margin: .6rem 0; }
ul { margin: .6rem 0; padding-left: 1.2rem; }
li { margin: .35rem 0; }
li::marker { color: var(--faint); }
code {
  font: .88em ui-monospace, "DejaVu Sans Mono", Consolas, monospace;
  background: var(--wash); padding: .1em .3em; border-radius: .2rem;
}
.alarm {
  margin: 1rem 0; padding: .8rem 1rem; font-weight: 600; color: var(--alarm);
  background: var(--alarm-wash); border: 2px solid var(--alarm); border-radius: .3rem;
}
.plain {
  margin: 1.5rem 0; padding: .1rem 1.1rem .7rem; background: var(--wash);
  border-left: 4px solid var(--accent); border-radius: .2rem;
}
.plain h2 { border: 0; margin: .8rem 0 .2rem; }
dl {
  display: grid; grid-template-columns: minmax(9rem, 13rem) 1fr; gap: .35rem 1.2rem;
  margin: .8rem 0;
}
dt { color: var(--faint); }
dd { margin: 0; }
dd.blank { border-bottom: 1px solid var(--faint); min-height: 1.6em; }
.signature dl { row-gap: 1.4rem; margin-top: 1.6rem; align-items: end; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; }
th {
  color: var(--faint); font-weight: 600; border-bottom: 1px solid var(--faint);
  overflow-wrap: normal;
}
td { border-bottom: 1px solid var(--rule); min-width: 4rem; white-space: pre-wrap; }
td:first-child { min-width: 7rem; }
@media (max-width: 32rem) {
  body { padding: 1.25rem .9rem 2rem; }
  h1 { font-size: 1.5rem; }
  dl { grid-template-columns: 1fr; row-gap: 0; }
  dd { margin-bottom: .6rem; }
  table { font-size: .85em; }
}
@media print {
  :root {
    color-scheme: light;
    --paper: #ffffff; --ink: #000000; --faint: #444444; --rule: #bbbbbb; --wash: #ffffff;
    --accent: #000000; --alarm: #000000; --alarm-wash: #ffffff;
  }
  @page { size: A4; margin: 18mm 16mm; }
  body { max-width: none; padding: 0; font-size: 10pt; line-height: 1.4; }
  h1 { font-size: 18pt; }
  h2 { font-size: 12pt; margin-top: 5mm; break-after: avoid; }
  li, tr, dt, dd, .alarm { break-inside: avoid; }
  p { orphans: 3; widows: 3; }
  thead { display: table-header-group; }
  .wide { overflow: visible; }
  .signature { break-inside: avoid; }
  code { padding: 0; }
}
"""

#: Sections that are set apart.
_CLASSES = {"In plain words": "plain", "Signature": "signature"}


def page(facts: Facts, sections: tuple[Section, ...]) -> str:
    """The whole document."""
    title = "Privacy statement"
    if not facts.promised:
        title += ": NOT PRIVATE"
    alarms = "".join(f'<p class="alarm" role="alert">{escape(w)}</p>\n' for w in facts.warnings)
    body = "".join(map(_section, sections))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{alarms}{body}</main>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    kind = _CLASSES.get(section.title)
    heading = f"<h2>{escape(section.title)}</h2>\n" if section.title else ""
    opened = f'<section class="{kind}">' if kind else "<section>"
    return f"{opened}\n{heading}{''.join(map(_block, section.blocks))}</section>\n"


def _block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{as_html(block)}</p>\n"
    if isinstance(block, Items):
        items = "".join(f"<li>{as_html(line)}</li>\n" for line in block.lines)
        return f"<ul>\n{items}</ul>\n"
    if isinstance(block, Fields):
        return f"<dl>\n{''.join(_field(*line) for line in block.lines)}</dl>\n"
    return _table(block)


def _field(title: str, value: str | None) -> str:
    if value is None:
        return f'<dt>{escape(title)}</dt><dd class="blank"></dd>\n'
    return f"<dt>{escape(title)}</dt><dd>{as_html(value)}</dd>\n"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(escape_for_terminal(cell))}</td>' for cell in row)}</tr>\n"
        for row in table.rows
    )
    # Reached by the keyboard too, where it is wider than the screen.
    return (
        f'<div class="wide" role="region" aria-label="Table" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
