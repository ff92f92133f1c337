"""Utility on real tables: ``python -m benchmarks.real [--quick] [--only A,B] [--split S]``.

For each table and in the mean: k = 3 and 5, epsilon 0.5, 1, 3 and no noise, replace-one, several
settings side by side. Prints tables and writes real.csv. A table that fails becomes a row that
says so. The split `report` is for one last look, when nothing is left to choose.
"""

from __future__ import annotations

import argparse
import csv
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import dpsubset as dps

from .settings import SETTINGS, SLOW, Asked, Drawn
from .tables import BY_NAME, ROWS, load
from .utility import judge

KS = (3, 5)
EPSILONS: tuple[float | None, ...] = (0.5, 1.0, 3.0, None)
DRAWS, QUICK_DRAWS = 10, 3
QUICK_TABLES = 4

#: Of the table where there is no terminal to ask.
_WIDTH = 150


@dataclass(frozen=True)
class Line:
    """One cell of the result: a setting on a table.

    ``utility`` and ``share`` (of the best set's fit) are means over the draws, ``worst`` is the
    least utility of one. ``first`` has the reading of the table in it. All are None where nothing
    was drawn, and ``note`` says why.
    """

    table: str
    n: int = 0
    p: int = 0
    labels: bool = False
    k: int = 0
    setting: str = ""
    epsilon: float | None = None
    draws: int = 0
    utility: float | None = None
    worst: float | None = None
    share: float | None = None
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
    parser.add_argument("--draws", type=int, help=f"draws in each cell; {DRAWS} by default")
    parser.add_argument("--limit", type=float, default=10.0, help="most seconds of a search")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the file")
    options = parser.parse_args(arguments)
    names = [row.name for row in ROWS if row.split == options.split]
    if options.only:
        asked = [name.strip() for name in options.only.split(",")]
        if unknown := [name for name in asked if name not in BY_NAME]:
            parser.error(f"no table named {', '.join(unknown)}")
        # A glance at a table of the other third must be asked for by its name and by its split.
        if others := [name for name in asked if name not in names]:
            parser.error(f"not of the split {options.split}: {', '.join(others)}")
        names = asked
    elif options.quick:
        names = names[:QUICK_TABLES]
    settings = list(SETTINGS)
    if options.settings:
        settings = [name.strip() for name in options.settings.split(",")]
        if unknown := [name for name in settings if name not in SETTINGS]:
            parser.error(f"no setting named {', '.join(unknown)}")
    draws = options.draws or (QUICK_DRAWS if options.quick else DRAWS)
    ks = KS[:1] if options.quick else KS
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    options.out.mkdir(parents=True, exist_ok=True)
    warm_up(settings)
    lines: list[Line] = []
    for name in names:
        start = time.perf_counter()
        lines += measure(name, settings, ks, draws, options.limit)
        write(lines, options.out / "real.csv")  # what is measured is kept, whatever happens next
        console.print(f"{name}: {time.perf_counter() - start:.0f} s", style="dim", highlight=False)
    for k in ks:
        console.print(table(lines, k, settings, options.split, draws))
    for text in remarks(lines):
        console.print(escape(text), highlight=False)
    return 0


def warm_up(settings: Iterable[str]) -> None:
    """Have numba compile, or load, what is used: its seconds are not those of a draw."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(200, 8))
    y = x[:, 0] + rng.uniform(-1, 1, size=200)
    for bounds, response in (
        (dps.Bounds(x=1, y=2), y),
        (dps.Bounds(x=1, labels=(0, 1)), (y > 0).astype(float)),
    ):
        for epsilon in (1.0, 1e6):
            for always in ([], [0]):
                dps.simulate(x, y=response, bounds=bounds, k=3, epsilon=epsilon, draws=3,
                             always_include=always)  # fmt: skip
    if "peeling" in settings:
        dps.simulate(x, y=y, bounds=dps.Bounds(x=1, y=2), k=3, epsilon=1, mechanism="peeling",
                     draws=1)  # fmt: skip


def measure(
    name: str, settings: Iterable[str], ks: Iterable[int], draws: int, limit: float
) -> list[Line]:
    """All cells of one table; its failure is a line too."""
    lines: list[Line] = []
    try:
        lines.extend(_measured(name, settings, ks, draws, limit))
    except Exception as error:
        traceback.print_exc()
        lines.append(Line(name, note=f"{type(error).__name__}: {error}"))
    return lines


def _measured(
    name: str, settings: Iterable[str], ks: Iterable[int], draws: int, limit: float
) -> Iterator[Line]:
    loaded = load(name)
    for k in ks:
        for setting in settings:
            for epsilon in EPSILONS:
                try:
                    drawn = SETTINGS[setting](loaded, Asked(k, epsilon, draws, limit))
                except Exception as error:
                    traceback.print_exc()
                    drawn = Drawn(note=f"{type(error).__name__}: {error}")
                yield _line(name, k, setting, epsilon, drawn)


def _line(name: str, k: int, setting: str, epsilon: float | None, drawn: Drawn) -> Line:
    loaded, judged = load(name), judge(name)
    # A draw that released nothing helps as much as a random set.
    utilities = [judged.utility(chosen) if chosen else 0.0 for chosen in drawn.sets]
    shares = [judged.share(chosen) if chosen else 0.0 for chosen in drawn.sets]
    return Line(
        name, loaded.n, loaded.p, loaded.labels, k, setting, epsilon, len(drawn.sets),
        utility=float(np.mean(utilities)) if utilities else None,
        worst=min(utilities, default=None),
        share=float(np.mean(shares)) if shares else None,
        first=drawn.first, mean=drawn.mean, slow=drawn.slow,
        exhaustive=judged.ends(k).exhaustive, note=drawn.note,
    )  # fmt: skip


def table(lines: list[Line], k: int, settings: list[str], split: str, draws: int) -> Table:
    """Utilities at one k, four to a cell: one for each epsilon."""
    epsilons = ", ".join("no noise" if e is None else f"{e:g}" for e in EPSILONS)
    shape = Table(title=f"split {split}, k = {k}, {draws} draws; utility at epsilon {epsilons}")
    shape.add_column("table", no_wrap=True)
    for heading in ("n", "p"):
        shape.add_column(heading, justify="right", no_wrap=True)
    for setting in settings:
        shape.add_column(setting, no_wrap=True)
    at_k = [line for line in lines if line.k == k]
    failed = {line.table: line.note for line in lines if not line.setting}
    for name in dict.fromkeys(line.table for line in lines):
        of_table = [line for line in at_k if line.table == name]
        if not of_table:
            shape.add_row(name, "", "", escape(failed.get(name, "")))
            continue
        first = of_table[0]
        shown = f"{name} *" if first.labels else name
        cells = [shown_row(of_table, setting, _mean) for setting in settings]
        shape.add_row(shown, f"{first.n:,}", str(first.p), *cells)
    shape.add_section()
    for heading, some in (
        ("mean, numbers", [line for line in at_k if not line.labels]),
        ("mean, labels *", [line for line in at_k if line.labels]),
        ("mean of all", at_k),
    ):
        shape.add_row(heading, "", "", *(shown_row(some, setting, _mean) for setting in settings))
    lowest = [shown_row(at_k, setting, min) for setting in settings]
    shape.add_row("worst table", "", "", *lowest)
    # Means of different settings are of the same tables only where these counts are equal.
    shape.add_row("tables done", "", "", *(done(at_k, setting) for setting in settings))
    return shape


def shown_row(lines: Iterable[Line], setting: str, summary: Callable[[list[float]], float]) -> str:
    """One number for each epsilon; a dash where nothing was drawn."""
    cells = []
    for epsilon in EPSILONS:
        values = [line.utility for line in lines
                  if line.setting == setting and line.epsilon == epsilon
                  and line.utility is not None]  # fmt: skip
        cells.append(short(summary(values)) if values else "   -")
    return " ".join(cells)


def done(lines: Iterable[Line], setting: str) -> str:
    """On how many tables something was drawn, for each epsilon."""
    of_setting = [x for x in lines if x.setting == setting and x.utility is not None]
    return " ".join(f"{sum(x.epsilon == epsilon for x in of_setting):4d}" for epsilon in EPSILONS)


def short(value: float) -> str:
    """Two decimals, without a leading zero."""
    text = f"{value:.2f}"
    return (text.replace("0.", ".", 1) if abs(value) < 1 else text).rjust(4)


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def remarks(lines: list[Line]) -> Iterator[str]:
    """What the means leave out, the labels' share of the best fit, and what was slow."""
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
        noise = "no noise" if line.epsilon is None else f"epsilon {line.epsilon:g}"
        where = f"{line.setting}, k = {line.k}, {noise}" if line.setting else "failed"
        seconds = f"SLOW, above {SLOW:g} s: {line.first:.1f} s; " if line.slow else ""
        yield f"{line.table}, {where}: {seconds}{line.note}".rstrip("; ")


def write(lines: list[Line], path: Path) -> None:
    """For other programs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(Line(""))))
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
