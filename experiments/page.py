"""One page with every figure beside what was published: docs/experiments.

The page shows the fuller one of two files for each experiment: what a run has just measured, and
what is published already. So a quick run never takes the place of a full one.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from .experiment import Claim, Experiment, Lines
from .results import Results
from .running import figure

DOCS = Path(__file__).resolve().parents[1] / "docs" / "experiments"

#: Of the page: the papers by year, then ours.
ORDER = (
    "cai_truncation", "cai_sparsity", "cai_comparisons", "cai_data",
    "behdin_recovery", "behdin_enumeration",
    "roy_table", "roy_traces",
    "prastakos_recovery", "prastakos_labels", "prastakos_prediction", "prastakos_ablations",
    "exactness", "mechanisms", "real_tables", "planner",
)  # fmt: skip

TITLE = "The papers' experiments, and ours"
INTRODUCTION = (
    "This page reproduces every figure and table of the papers on which this package is based. "
    "Each section states what was published and what was found here. Code checks the claims "
    "against the files of results; claims that do not hold are listed with the reason. All tables "
    "are simulated or public. `make experiments` runs quick versions of all experiments and "
    "renews this page; `python -m experiments.NAME` runs one of them in full. Captions describe "
    "the full runs; the line below each table says how much of the full run was made."
)


def publish(experiments: Sequence[Experiment], out: Path, docs: Path) -> Path:
    """Copy results that are fuller than the published ones, draw, write the page."""
    docs.mkdir(parents=True, exist_ok=True)
    shown: list[tuple[Experiment, Lines]] = []
    for experiment in experiments:
        new, old = (folder / f"{experiment.name}.csv" for folder in (out, docs))
        if new.exists() and _trials(experiment, new) >= _trials(experiment, old):
            shutil.copyfile(new, old)
        lines = Results(old).lines
        if not lines:
            continue
        figure(experiment, lines, docs / f"{experiment.name}.png")
        shown.append((experiment, lines))
    (docs / "README.md").write_text(_markdown(shown), encoding="utf-8")
    page = docs / "index.html"
    page.write_text(_html(shown), encoding="utf-8")
    return page


def _trials(experiment: Experiment, path: Path) -> int:
    """How many trials of the full run a file has."""
    trials = experiment.trials(False)
    return len(trials) - len(Results(path).missing(trials))


def extent(experiment: Experiment, lines: Lines) -> str:
    """How much of the full run was run, and how long it takes."""
    trials = experiment.trials(False)
    results = Results.of(lines)
    done = len(trials) - len(results.missing(trials))
    minutes = sum(line.get("trial_seconds") or 0.0 for line in lines) / 60
    spent = f"{minutes:.1f} minutes of one process"
    if done == len(trials):
        return f"Full run, {done} trials, {spent}; a full run takes {experiment.full}."
    return (
        f"{done} of the {len(trials)} trials of the full run, {spent}; all take {experiment.full}."
    )


Row = tuple[str, str, str, str]


def judged(experiment: Experiment, lines: Lines) -> list[Row]:
    """For each claim: its text, whether it holds, the figures, and the reason if it does not."""
    return [_judge(claim, lines) for claim in experiment.claims]


def _judge(claim: Claim, lines: Lines) -> Row:
    verdict = claim.check(lines)
    reason = "" if verdict.holds else claim.reason or "not known; look at the figure"
    return claim.text, "yes" if verdict.holds else "no", verdict.figures, reason


def _failed(shown: Sequence[tuple[Experiment, Lines]]) -> list[tuple[str, Row]]:
    return [
        (experiment.title, row)
        for experiment, lines in shown
        for row in judged(experiment, lines)
        if row[1] == "no"
    ]


def _markdown(shown: Sequence[tuple[Experiment, Lines]]) -> str:
    parts = [f"# {TITLE}", INTRODUCTION, "[The same as a page for a browser](index.html)."]
    parts += ["## Claims that do not hold here", _failures(shown)]
    for experiment, lines in shown:
        name = experiment.name
        parts += [
            f"## {experiment.title}",
            f"*{experiment.source}*",
            f"**Published.** {experiment.published}",
            f"![{experiment.title}]({name}.png)",
            f"**Here.** {experiment.caption}",
            _table(judged(experiment, lines)),
            f"{extent(experiment, lines)} `python -m experiments.{name}`, [results]({name}.csv).",
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = ["| claim | holds | figures |", "|---|---|---|"]
    for text, holds, figures, reason in rows:
        told = f"{figures}. {reason}" if reason else figures
        lines.append(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in (text, holds, told)) + " |"
        )
    return "\n".join(lines)


def _failures(shown: Sequence[tuple[Experiment, Lines]]) -> str:
    failed = _failed(shown)
    if not failed:
        return "None."
    return "\n".join(
        f"- *{title}*: {text} ({figures}) {reason}" for title, (text, _, figures, reason) in failed
    )


def _html(shown: Sequence[tuple[Experiment, Lines]]) -> str:
    contents = "".join(
        f'<li><a href="#{experiment.name}">{_inline(experiment.title)}</a> '
        f"<small>{_inline(experiment.source)}</small></li>"
        for experiment, _ in shown
    )
    failures = "".join(
        f"<li><em>{_inline(title)}</em>: {_inline(f'{text} ({figures}) {reason}')}</li>"
        for title, (text, _, figures, reason) in _failed(shown)
    )
    sections = "".join(_section(experiment, lines) for experiment, lines in shown)
    failed = f"<ul>{failures}</ul>" if failures else "<p>None.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{TITLE}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{TITLE}</h1><p>{_inline(INTRODUCTION)}</p><nav><ol>{contents}</ol></nav>"
        f"<h2>Claims that do not hold here</h2>{failed}{sections}</main></body></html>\n"
    )


def _section(experiment: Experiment, lines: Lines) -> str:
    name = experiment.name
    rows = "".join(
        f'<tr><td>{_inline(text)}</td><td class="{holds}">{holds}</td><td>{_inline(figures)}'
        + (f"<br>{_inline(reason)}" if reason else "")
        + "</td></tr>"
        for text, holds, figures, reason in judged(experiment, lines)
    )
    table = (
        f"<table><thead><tr><th>claim</th><th>holds</th><th>figures</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        if rows
        else ""
    )
    return (
        f'<section id="{name}"><h2>{_inline(experiment.title)}</h2>'
        f'<p class="source">{_inline(experiment.source)}</p>'
        f"<p><strong>Published.</strong> {_inline(experiment.published)}</p>"
        f'<figure><a href="{name}.png"><img src="{name}.png" alt="{_inline(experiment.title)}" '
        f'loading="lazy"></a><figcaption><strong>Here.</strong> {_inline(experiment.caption)}'
        f"</figcaption></figure>{table}"
        f'<p class="run">{_inline(extent(experiment, lines))} <code>python -m experiments.{name}'
        f'</code>, <a href="{name}.csv">results</a>.</p></section>'
    )


_MARKS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (r"`([^`]+)`", lambda found: f"<code>{found[1]}</code>"),
    (r"\*\*([^*]+)\*\*", lambda found: f"<strong>{found[1]}</strong>"),
    (r"\*([^*]+)\*", lambda found: f"<em>{found[1]}</em>"),
    (r"\[([^\]]+)\]\(([^)\s]+)\)", lambda found: f'<a href="{found[2]}">{found[1]}</a>'),
)


def _inline(text: str) -> str:
    """Code, emphasis and links; all else as it is."""
    done = html.escape(text)
    for pattern, made in _MARKS:
        done = re.sub(pattern, made, done)
    return done


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #666; --line: #ddd; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #a5a5a5; --line: #444; --paper: #16181c; }
  img { background: #fff; border-radius: 4px; }
}
body { color: var(--ink); background: var(--paper); margin: 0;
  font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; display: block; }
figcaption { margin-top: .6rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: 1rem 0; }
th { white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
td.yes, td.no { white-space: nowrap; overflow-wrap: normal; }
td:first-child { width: 34%; }
td.yes { color: #1a7f37; } td.no { color: #cf4a22; font-weight: bold; }
small, .source, .run { color: var(--soft); }
code { font-size: .92em; overflow-wrap: anywhere; }
nav ol { padding-left: 2rem; }
"""
