"""How often each mechanism names the true support: ``python -m benchmarks.recovery``.

The setting of the published figures: n rows of p = 100 correlated normal variables, k = 5 of which
explain y at a signal-to-noise ratio of 5, clipped at 0.5, epsilon = 1, replace-one. With the
papers' ball, ridge and sensitivity; with boxes, the scale of y known and no intercept; and with all
defaults on, where nothing is said but bounds for y that are several times too wide. Two more
choices have correlated variables that count unequally. Ten data sets for each n. Each figure is the
mean over data sets of the share of draws that are the true support.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import dpsubset as dps
from dpsubset.mechanisms import Mechanism, mechanism

from .data import BOUNDS, SETTINGS, WIDE, Shape

P, K, EPSILON, DELTA = 100, 5, 1, 1e-6
EQUAL, UNEQUAL = Shape(1000, P, K), Shape(3000, P, K, rho=0.6, least=0.5)


@dataclass(frozen=True)
class Choice:
    """What is said to a selection, and on which tables."""

    setting: dict[str, Any] = field(default_factory=dict)
    bounds: dps.Bounds = BOUNDS
    rows: tuple[int, ...] = (750, 1000, 1500, 3000)
    shape: Shape = EQUAL


#: Around where the defaults come to know.
NEAR = (1000, 1100, 1250, 1500)
CHOICES: dict[str, Choice] = {
    "papers' ball": Choice({**SETTINGS["ball"], "sensitivity": "published"}),
    "box, reach 1": Choice(SETTINGS["box"], rows=(750, *NEAR, 3000)),
    "box, reach 0.5": Choice({**SETTINGS["box"], "reach": 0.5}),
    "all defaults": Choice(bounds=WIDE, rows=NEAR),
    "unequal, box, reach 1": Choice(SETTINGS["box"], rows=(3000,), shape=UNEQUAL),
    "unequal, all defaults": Choice(bounds=WIDE, rows=(3000,), shape=UNEQUAL),
}

#: A name for the table, the mechanism, its delta, and of how many draws to take one.
CASES: list[tuple[str, str, dict[str, Any], float, int]] = [
    ("permute-and-flip", "permute-and-flip", {}, 0, 1),
    ("exponential", "exponential", {}, 0, 1),
    ("top-r, R = 100", "top-r", {"R": 100}, 0, 1),
    ("top-r, R = k(p-k)+2", "top-r", {}, 0, 1),
    ("mistakes, private anchor", "mistakes", {}, 0, 4),
    ("mistakes, published (no guarantee)", "mistakes", {"anchor": "data"}, 0, 1),
    ("metropolis, 5,000 steps", "metropolis", {"steps": 5000}, DELTA, 4),
    ("sample-aggregate", "sample-aggregate", {}, 0, 20),
    ("peeling", "peeling", {}, 0, 1),
    ("hard-thresholding", "hard-thresholding", {}, DELTA, 4),
    ("frank-wolfe", "frank-wolfe", {}, DELTA, 4),
]


def share(chosen: Mechanism, delta: float, n: int, seed: int, draws: int, choice: Choice) -> float:
    """Share of draws that are the true support, on one data set."""
    x, y = replace(choice.shape, n=n, seed=seed).make()
    counts = dps.simulate(
        x, y=y, bounds=choice.bounds, k=K, epsilon=EPSILON, delta=delta, mechanism=chosen,
        draws=draws, allow_unproven=True, **choice.setting,
    )  # fmt: skip
    return counts[choice.shape.truth] / draws


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.recovery")
    parser.add_argument("--draws", type=int, default=200, help="draws on each data set")
    parser.add_argument("--seeds", type=int, default=10, help="data sets for each n")
    parser.add_argument("--only", help="part of the name of a mechanism")
    parser.add_argument("--choice", choices=CHOICES, help="one choice alone")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the file")
    options = parser.parse_args(arguments)
    console = Console(width=132)
    options.out.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    for title, choice in CHOICES.items():
        if options.choice not in (None, title):
            continue
        table = Table("mechanism", *(f"n = {n}" for n in choice.rows), "seconds", title=title)
        for label, name, given, delta, every in CASES:
            if options.only and options.only not in label:
                continue
            started, cells = time.perf_counter(), []
            draws = max(1, options.draws // every)
            for n in choice.rows:
                shares = [
                    share(mechanism(name, given), delta, n, seed, draws, choice)
                    for seed in range(options.seeds)
                ]
                cells.append(f"{np.mean(shares):.3f}")
                lines.append({"setting": title, "mechanism": label, "n": n, "draws": draws,
                              "probability": float(np.mean(shares)),
                              "lowest": min(shares), "highest": max(shares)})  # fmt: skip
            table.add_row(label, *cells, f"{time.perf_counter() - started:.1f}")
        console.print(table)
        with (options.out / "recovery.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
