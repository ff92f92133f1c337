"""Utility on real tables: ``python -m benchmarks.real [--quick] [--only A,B] [--split S]``.

For each table and in the mean: several k and epsilon, replace-one, several settings side by side.
Prints tables and writes real.csv. A table that fails becomes a row that says so. The split `report`
is for one last look, when nothing is left to choose.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import dpsubset as dps

from .settings import SETTINGS, SLOW, Asked, Drawn
from .tables import BY_NAME, ROWS, load, made_up
from .utility import judge

KS, EPSILONS = "3,5", "0.5,1,3"
DRAWS, QUICK_DRAWS = 10, 3
QUICK_TABLES = 4

#: Of the table where there is no terminal to ask.
_WIDTH = 200

Also = tuple[Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Line:
    """One cell of the result: a setting on a table.

    ``utility`` and ``share`` (of the best set's fit) are means over the draws, ``worst`` is the
    least utility of one, and ``outside`` is the mean utility on rows that models have not seen.
    ``first`` is the seconds of the first draw, ``mean`` of all. All are None where nothing was
    drawn, and ``note`` says why.
    """

    table: str
    n: int = 0
    p: int = 0
    columns: int = 0
    labels: bool = False
    k: int = 0
    setting: str = ""
    epsilon: float | None = None
    draws: int = 0
    utility: float | None = None
    worst: float | None = None
    share: float | None = None
    outside: float | None = None
    first: float | None = None
    mean: float | None = None
    slow: bool = False
    exhaustive: bool = False
    note: str = ""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.real", description="Utility on real tables.")
    parser.add_argument("--quick", action="store_true",
                        help=f"{QUICK_TABLES} tables, {QUICK_DRAWS} draws, k = 3")  # fmt: skip
    parser.add_argument("--only", help="tables to run, by commas; they must be of the split")
    parser.add_argument("--settings", help=f"of {', '.join(SETTINGS)}: those to run, by commas")
    parser.add_argument("--split", choices=("choose", "report"), default="choose",
                        help="report: one third of the tables, to be looked at once")  # fmt: skip
    parser.add_argument("--k", help=f"by commas; {KS} by default")
    parser.add_argument("--epsilons", default=EPSILONS,
                        help=f"by commas, `none` is no noise; {EPSILONS} by default")  # fmt: skip
    parser.add_argument("--draws", type=int, help=f"draws in each cell; {DRAWS} by default")
    parser.add_argument("--limit", type=float, default=10.0, help="most seconds of a search")
    parser.add_argument("--also", default="", help="what to say to `defaults` beside, such as "
                        "intercept=true,prediction_bound=1.25; a response_range is private, "
                        "declared, or quantiles by +, width_factor, budget_fraction: "
                        "0.1+0.9/0.5/0.1")  # fmt: skip
    parser.add_argument("--also-labels", default="", help="the same where the response has labels")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the file")
    options = parser.parse_args(arguments)
    names = [row.name for row in ROWS if row.split == options.split]
    if options.only:
        asked = listed(options.only)
        if unknown := [name for name in asked if name not in BY_NAME]:
            parser.error(f"no table named {', '.join(unknown)}")
        # A glance at a table of the other third must be asked for by its name and by its split.
        if others := [name for name in asked if name not in names]:
            parser.error(f"not of the split {options.split}: {', '.join(others)}")
        names = asked
    elif options.quick:
        names = names[:QUICK_TABLES]
    settings = listed(options.settings) if options.settings else list(SETTINGS)
    if unknown := [name for name in settings if name not in SETTINGS]:
        parser.error(f"no setting named {', '.join(unknown)}")
    try:
        ks = [int(k) for k in listed(options.k or (KS[:1] if options.quick else KS))]
        epsilons = [None if e == "none" else float(e) for e in listed(options.epsilons)]
        also = said(options.also), said(options.also_labels)
    except ValueError as error:
        parser.error(str(error))
    draws = options.draws or (QUICK_DRAWS if options.quick else DRAWS)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    options.out.mkdir(parents=True, exist_ok=True)
    warm_up(settings, also)
    lines: list[Line] = []
    cells = [Asked(k, epsilon, draws, options.limit, also) for k in ks for epsilon in epsilons]
    for name in names:
        start = time.perf_counter()
        lines += measure(name, settings, cells)
        write(lines, options.out / "real.csv")  # what is measured is kept, whatever happens next
        console.print(f"{name}: {time.perf_counter() - start:.0f} s", style="dim", highlight=False)
    for cell in cells:
        console.print(table(lines, cell, settings, options.split))
    if options.also or options.also_labels:
        beside = f"{options.also or 'nothing'}; of labels: {options.also_labels or 'nothing'}"
        console.print(f"said to defaults beside: {beside}", highlight=False)
    for text in remarks(lines):
        console.print(escape(text), highlight=False)
    return 0


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",")]


def said(text: str) -> dict[str, Any]:
    """Arguments from ``name=value,...``."""
    found: dict[str, Any] = {}
    for part in listed(text) if text else []:
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not of the form name=value")
        words = {"true": True, "false": False}
        if name == "response_range" and "/" in value:
            shares, widening, share = value.split("/")
            parts = tuple(Fraction(part) for part in shares.split("+"))
            rule = dps.QuantileRule(parts, width_factor=Fraction(widening))
            found[name] = dps.ResponseRange(rule, budget_fraction=Fraction(share))
        elif value in words:
            found[name] = words[value]
        else:
            found[name] = float(value) if value.replace(".", "", 1).isdigit() else value
    return found


def warm_up(settings: Iterable[str], also: Also = ({}, {})) -> None:
    """Have numba compile, or load, what is used: its seconds are not those of a draw."""
    # Large enough for a search to split, and with and without groups, which take other ways.
    for labels, texts, epsilon in itertools.product((False, True), (False, True), (1.0, None)):
        small = made_up(labels, 12, 3000, texts)
        for setting in settings:
            SETTINGS[setting](small, Asked(3, epsilon, 1, 60.0, also))


def measure(name: str, settings: Iterable[str], cells: Iterable[Asked]) -> list[Line]:
    """All cells of one table; its failure is a line too."""
    lines: list[Line] = []
    try:
        lines.extend(_measured(name, settings, cells))
    except Exception as error:
        traceback.print_exc()
        lines.append(Line(name, note=f"{type(error).__name__}: {error}"))
    return lines


def _measured(name: str, settings: Iterable[str], cells: Iterable[Asked]) -> Iterator[Line]:
    loaded = load(name)
    for asked in cells:
        for setting in settings:
            try:
                drawn = SETTINGS[setting](loaded, asked)
            except Exception as error:
                traceback.print_exc()
                drawn = Drawn(note=f"{type(error).__name__}: {error}")
            yield _line(name, setting, asked, drawn)


def _line(name: str, setting: str, asked: Asked, drawn: Drawn) -> Line:
    loaded, judged, k = load(name), judge(name), asked.k
    # A draw that released nothing helps as much as a random set.
    utilities = [judged.utility(chosen, k) if chosen else 0.0 for chosen in drawn.sets]
    shares = [judged.share(chosen, k) if chosen else 0.0 for chosen in drawn.sets]
    outside = [judged.utility_outside(chosen, k) if chosen else 0.0 for chosen in drawn.sets]
    return Line(
        name, loaded.n, loaded.p, loaded.x.shape[1], loaded.labels, k, setting, asked.epsilon,
        len(drawn.sets),
        utility=float(np.mean(utilities)) if utilities else None,
        worst=min(utilities, default=None),
        share=float(np.mean(shares)) if shares else None,
        outside=float(np.mean(outside)) if outside else None,
        first=drawn.first, mean=drawn.mean, slow=drawn.slow,
        exhaustive=judged.ends(k).exhaustive, note=drawn.note,
    )  # fmt: skip


def table(lines: list[Line], asked: Asked, settings: list[str], split: str) -> Table:
    """Utilities at one k and epsilon, with the seconds of the first draw beside them."""
    noise = _noise(asked.epsilon)
    shape = Table(title=f"split {split}, k = {asked.k}, {noise}, {asked.draws} draws; utility, "
                        f"seconds of the first draw, ! above {SLOW:g}")  # fmt: skip
    shape.add_column("table", no_wrap=True)
    for heading in ("n", "p", "cols"):
        shape.add_column(heading, justify="right", no_wrap=True)
    for setting in settings:
        shape.add_column(setting, no_wrap=True)
    here = [line for line in lines if (line.k, line.epsilon) == (asked.k, asked.epsilon)]
    failed = {line.table: line.note for line in lines if not line.setting}
    for name in dict.fromkeys(line.table for line in lines):
        of_table = {line.setting: line for line in here if line.table == name}
        if not of_table:
            shape.add_row(name, "", "", "", escape(failed.get(name, "")))
            continue
        first = next(iter(of_table.values()))
        shown = f"{name} *" if first.labels else name
        cells = [cell(of_table[setting]) for setting in settings]
        shape.add_row(shown, f"{first.n:,}", str(first.p), str(first.columns), *cells)
    shape.add_section()
    for heading, some, summary in summaries(here, settings):
        values = ([x.utility for x in some if x.setting == setting and x.utility is not None]
                  for setting in settings)  # fmt: skip
        shape.add_row(heading, "", "", "", *(short(summary(v)) if v else "-" for v in values))
    for labels, heading in ((False, "out of sample, numbers"), (True, "out of sample, labels *")):
        values = ([x.outside for x in here if x.labels == labels and x.setting == setting
                   and x.outside is not None] for setting in settings)  # fmt: skip
        shape.add_row(heading, "", "", "", *(short(_mean(v)) if v else "-" for v in values))
    # Means of different settings are of the same tables only where these counts are equal.
    shape.add_row("tables done", "", "", "", *(done(here, setting) for setting in settings))
    return shape


def summaries(
    lines: list[Line], settings: list[str]
) -> Iterator[tuple[str, list[Line], Callable[[list[float]], float]]]:
    """Numbers and labels apart, and the tables on which every setting drew something."""
    numbers = [line for line in lines if not line.labels]
    labels = [line for line in lines if line.labels]
    yield "mean, numbers", numbers, _mean
    yield "worst, numbers", numbers, min
    yield "mean, labels *", labels, _mean
    yield "worst, labels *", labels, min
    drawn = {name: [x.setting for x in lines if x.table == name and x.utility is not None]
             for name in {line.table for line in lines}}  # fmt: skip
    same = [line for line in lines if set(drawn[line.table]) == set(settings)]
    yield f"mean of {len({line.table for line in same})} that all did", same, _mean


def cell(line: Line) -> str:
    """Utility and seconds; a dash where nothing was drawn."""
    utility = "   -" if line.utility is None else short(line.utility)
    seconds = "" if line.first is None else f"{line.first:5.1f}"
    return f"{utility} {seconds}{'!' * line.slow}"


def done(lines: Iterable[Line], setting: str) -> str:
    """On how many tables something was drawn."""
    return str(sum(x.setting == setting and x.utility is not None for x in lines)).rjust(4)


def short(value: float) -> str:
    """Two decimals, without a leading zero."""
    text = f"{value:.2f}"
    return (text.replace("0.", ".", 1) if abs(value) < 1 else text).rjust(4)


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _noise(epsilon: float | None) -> str:
    return "no noise" if epsilon is None else f"epsilon {epsilon:g}"


def remarks(lines: list[Line]) -> Iterator[str]:
    """The labels' share of the best fit, and what was slow or did not go as it should."""
    for setting in dict.fromkeys(line.setting for line in lines if line.setting):
        shares = [line.share for line in lines
                  if line.setting == setting and line.labels and line.epsilon == 1.0
                  and line.share is not None]  # fmt: skip
        if shares:
            share = f"{_mean(shares):.2f}"
            yield f"labels, epsilon 1, share of the best set's deviance: {setting} {share}"
    for line in lines:
        if not (line.slow or line.note):
            continue
        where = (
            f"{line.setting}, k = {line.k}, {_noise(line.epsilon)}" if line.setting else "failed"
        )
        slow = f"SLOW, above {SLOW:g} s: first {line.first:.1f} s; " if line.slow else ""
        yield f"{line.table}, {where}: {slow}{line.note}".rstrip("; ")


def write(lines: list[Line], path: Path) -> None:
    """For other programs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(Line(""))))
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
