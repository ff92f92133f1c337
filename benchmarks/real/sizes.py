"""How many variables: ``python -m benchmarks.real.sizes [--split S]``.

The number of variables chosen privately, by `choose-size` and `penalised`, against fixed numbers.
For each way: R2 (for labels the share of the deviance) of the drawn set in sample and out of
sample, both / that of the best set of the largest size in sample; how many variables are named,
how many of them are worth less than a hundredth of the best fit, and how often none is named.
Prints means over the tables and writes sizes.csv. The split `report` is for one last look.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

import dpsubset as dps

from .sweep import BIG
from .tables import ROWS, Loaded, load
from .utility import Judge, Set, judge

EPSILONS = "0.5,1,3"
MOST = 8
DRAWS = 5

#: What is said to ``dps.simulate`` about the number of variables.
WAYS: dict[str, dict[str, Any]] = {
    "k = 3": {"k": 3},
    "k = 5": {"k": 5},
    "k = 8": {"k": 8},
    "auto, 5": {"max_k": 5},
    "auto, 8": {"max_k": 8},
    "choose-size, 8": {"max_k": 8, "mechanism": "choose-size"},
}

MEASURES = ("fit", "outside", "variables", "useless", "empty")


def drawn(
    table: Loaded, said: dict[str, Any], epsilon: float, draws: int, limit: float
) -> list[Set]:
    """Sets of one way; the size is at most the number of choices."""
    said = {**said, **{name: min(said[name], table.p) for name in ("k", "max_k") if name in said}}
    counts = dps.simulate(
        table.frame, table.schema, epsilon=epsilon, draws=draws, time_limit=limit, **said
    )
    return [chosen or () for chosen in counts.elements()]


def judged(by: Judge, chosen: Set) -> tuple[float, ...]:
    """What `MEASURES` names."""
    best = by.ends(min(MOST, by.p))
    lost = [by.fit(chosen) - by.fit(set(chosen) - {j}) for j in chosen]
    return (
        by.fit(chosen) / best.best_fit,
        by.fit_outside(chosen) / best.best_fit,
        len(chosen),
        sum(loss < best.best_fit / 100 for loss in lost),
        not chosen,
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.real.sizes")
    parser.add_argument("--split", choices=("choose", "report"), default="choose")
    parser.add_argument("--only", help="tables to run, by commas; they must be of the split")
    parser.add_argument("--ways", default=";".join(WAYS), help="by semicolons")
    parser.add_argument("--epsilons", default=EPSILONS, help="by commas")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--limit", type=float, default=5.0, help="most seconds of a search")
    parser.add_argument("--out", default="bench-output", type=Path)
    options = parser.parse_args(arguments)
    names = [row.name for row in ROWS if row.split == options.split and row.name not in BIG]
    if options.only:
        names = [name for name in options.only.split(",") if name in names]
    ways = options.ways.split(";")
    options.out.mkdir(parents=True, exist_ok=True)
    means: dict[tuple[bool, float, str], list[Any]] = {}
    with (options.out / "sizes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "labels", "epsilon", "way", *MEASURES])
        for name in names:
            table, by = load(name), judge(name)
            for epsilon in map(float, options.epsilons.split(",")):
                for way in ways:
                    try:
                        sets = drawn(table, WAYS[way], epsilon, options.draws, options.limit)
                    except dps.SearchLimitError:
                        print(f"{name}, epsilon {epsilon:g}, {way}: over the limit", flush=True)
                        continue
                    found = np.mean([judged(by, chosen) for chosen in sets], axis=0)
                    writer.writerow([name, table.labels, epsilon, way, *found])
                    means.setdefault((table.labels, epsilon, way), []).append(found)
            file.flush()
            print(name, flush=True)
    for (labels, epsilon, way), each in means.items():
        shown = ", ".join(
            f"{what} {value:.2f}"
            for what, value in zip(MEASURES, np.mean(each, axis=0), strict=True)
        )
        kind = "labels" if labels else "numbers"
        print(f"{kind}, {len(each)} tables, epsilon {epsilon:g}, {way}: {shown}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
