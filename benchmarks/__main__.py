"""Run the bars and the growth curves: ``python -m benchmarks [--only B1,B4] [--quick] [--out D]``.

Prints a table and writes it as bars.csv and bars.json; growth.csv and growth.png follow. A bar that
fails becomes a row that says so.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import time
import traceback
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import dpsubset

from . import growth, ours
from .bars import BARS, Run
from .rows import Row

GROWTH = "growth"

#: Of the table where there is no terminal to ask.
_WIDTH = 132


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Bars of the search engine.")
    parser.add_argument("--only", help=f"of {', '.join(BARS)}, {GROWTH}: those to run, by commas")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller curves")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the files")
    parser.add_argument("--peers-python", help="the Python that has okridge and abess")
    options = parser.parse_args(arguments)
    wanted = [*BARS, GROWTH]
    if options.only:
        by_name = {name.lower(): name for name in wanted}
        asked = [name.strip().lower() for name in options.only.split(",")]
        if unknown := [name for name in asked if name not in by_name]:
            parser.error(f"no bar named {', '.join(unknown)}")
        wanted = [by_name[name] for name in asked]
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    options.out.mkdir(parents=True, exist_ok=True)
    ours.warm_up()
    run, rows = Run(options.quick, options.peers_python), []
    for name in wanted:
        if name != GROWTH:
            rows += measure(name, run, console)
            write(rows, options.out)  # what is measured is kept, whatever happens next
    if rows:
        console.print(table(rows))
    if GROWTH in wanted:
        start = time.perf_counter()
        for path in growth.run(options.out, run.quick):
            console.print(f"written: {path}")
        console.print(f"growth: {time.perf_counter() - start:.0f} s", style="dim")
    missed = sum(row.verdict == "MISSED" for row in rows)
    console.print(f"{sum(row.verdict == 'met' for row in rows)} met, {missed} missed")
    return 0


def measure(name: str, run: Run, console: Console) -> list[Row]:
    """The rows of one bar; its failure is a row too."""
    rows: list[Row] = []
    start = time.perf_counter()
    try:
        for row in BARS[name](run):
            rows.append(row)
            console.print(f"{row.bar}  {row.case}: {shown(row.measured, row.unit)} {row.verdict}",
                          style="dim", highlight=False)  # fmt: skip
    except Exception as error:
        traceback.print_exc()
        rows.append(Row(name, "", None, failed=True, note=f"{type(error).__name__}: {error}"))
    console.print(f"{name}: {time.perf_counter() - start:.0f} s", style="dim", highlight=False)
    return rows


def table(rows: list[Row]) -> Table:
    """For the eyes."""
    shape = Table(title=f"dpsubset {dpsubset.__version__}, {os.cpu_count()} cores")
    shape.add_column("bar", no_wrap=True)
    shape.add_column("case", ratio=1)
    for heading in ("measured", "goal", "ratio"):
        shape.add_column(heading, justify="right", no_wrap=True)
    shape.add_column("against")
    shape.add_column("", no_wrap=True)
    last = ""
    for row in rows:
        if last and row.bar != last:
            shape.add_section()
        shape.add_row(
            row.bar if row.bar != last else "",
            f"{row.case}\n[dim]{escape(row.note)}[/]" if row.note else row.case,
            shown(row.measured, row.unit),
            goal(row),
            "" if row.ratio is None else times(row.ratio),
            f"{row.against}: {shown(row.reference, row.unit)}" if row.reference else row.against,
            f"[bold red]{row.verdict}[/]" if row.verdict == "MISSED" else row.verdict,
        )
        last = row.bar
    return shape


def shown(value: float | None, unit: str) -> str:
    """A quantity with three digits."""
    if value is None:
        return "-"
    if unit == "s" and value < 1:
        value, unit = 1e3 * value, "ms"
    if unit == "ms" and value < 0.1:
        value, unit = 1e3 * value, "us"
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def times(ratio: float) -> str:
    """A ratio with three digits."""
    return f"{ratio:,.0f} x" if ratio >= 1000 else f"{ratio:.3g} x"


def goal(row: Row) -> str:
    """What was to be reached."""
    if row.goal is None:
        return ""
    return f"<= {row.goal:g} x" if row.judged == "ratio" else f"<= {shown(row.goal, row.unit)}"


def write(rows: list[Row], folder: Path) -> None:
    """For other programs."""
    records = [row.record() for row in rows]
    about = {
        "dpsubset": dpsubset.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "rows": records,
    }
    (folder / "bars.json").write_text(json.dumps(about, indent=1) + "\n")
    with open(folder / "bars.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else ["bar"])
        writer.writeheader()
        writer.writerows(records)


if __name__ == "__main__":
    raise SystemExit(main())
