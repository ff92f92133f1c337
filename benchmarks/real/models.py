"""R2 of released models on real tables: ``python -m benchmarks.real.models [--split S]``.

R2 of the released model's own predictions / R2 of the best set of k choices by least squares, for
``dps.fit`` with a table, a schema, k and epsilon and nothing else said: scale, selection and fit
together, replace-one. Labels count as -1 and 1, also for the best set. Prints a line a table and
means, and writes models.csv. The split `report` is for one last look.
"""

from __future__ import annotations

import argparse
import csv
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import dpsubset as dps

from .tables import ROWS, Floats, load
from .utility import best_linear, judge

EPSILONS = (1.0, 2.0, 4.0)
DRAWS = 10

#: Seconds after which a cell gets no more draws, as in the suite.
ENOUGH = 30.0


def explained(model: dps.Model, table: Floats, y: Floats) -> float:
    """R2 of the predictions."""
    predicted = model.scores(table) if model.schema.response.labels else model.predict(table)
    return float(1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def best(name: str, k: int) -> float:
    """R2 of the best set by least squares; of labels too, as numbers."""
    judged = judge(name)
    if not load(name).labels:
        return judged.ends(k).best_fit
    chosen, _ = best_linear(judged._linear, k)
    return float(judged._linear(np.array([chosen]))[0])


def measure(
    name: str, k: int, epsilon: float, draws: int, limit: float, rule: dps.FitRule
) -> tuple[list[float], str]:
    """Shares of the best R2, one a release; and a remark."""
    loaded = load(name)
    y = 2 * loaded.y - 1 if loaded.labels else loaded.y
    found: list[float] = []
    start = time.perf_counter()
    for _ in range(draws):
        try:
            release = dps.fit(
                loaded.frame,
                loaded.schema,
                k=k,
                epsilon=epsilon,
                time_limit=limit,
                rule=rule,
                ledger=False,
            )
        except dps.SearchLimitError:
            return found, f"not done in {limit:g} s"
        assert release.model is not None
        found.append(explained(release.model, loaded.frame, y) / best(name, k))
        if time.perf_counter() - start > ENOUGH:
            break
    return found, ""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.real.models")
    parser.add_argument("--split", choices=("choose", "report"), default="choose")
    parser.add_argument("--only", help="tables to run, by commas; they must be of the split")
    parser.add_argument("--k", default="3", help="by commas")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--fit", help="the mechanism of the fit; by default that of dps.fit")
    parser.add_argument("--width", help="of the clip, in half-distances of the deciles")
    parser.add_argument("--limit", type=float, default=10.0, help="most seconds of a search")
    parser.add_argument("--out", default="bench-output", type=Path)
    options = parser.parse_args(arguments)
    names = [row.name for row in ROWS if row.split == options.split]
    if options.only:
        asked = options.only.split(",")
        if others := [name for name in asked if name not in names]:
            parser.error(f"not of the split {options.split}: {', '.join(others)}")
        names = asked
    options.out.mkdir(parents=True, exist_ok=True)
    rule = dps.FitRule(mechanism=options.fit, width=options.width and Fraction(options.width))
    lines = []
    for k in map(int, options.k.split(",")):
        at = ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
        print(f"split {options.split}, k = {k}: R2 / best R2 at epsilon {at}", flush=True)
        for name in names:
            cells, note = [], ""
            for epsilon in EPSILONS:
                found, note = measure(name, k, epsilon, options.draws, options.limit, rule)
                cells.append(float(np.mean(found)) if found else None)
                lines.append((name, load(name).labels, k, epsilon, len(found), cells[-1], note))
            shown = "  ".join("    -" if cell is None else f"{cell:5.2f}" for cell in cells)
            print(f"  {name + ' *' * load(name).labels:22s} {shown}  {note}", flush=True)
        for what, some in (("numbers", (False,)), ("labels *", (True,)), ("all", (False, True))):
            means = [
                [x[5] for x in lines if x[1] in some and x[2:4] == (k, e) and x[5] is not None]
                for e in EPSILONS
            ]  # fmt: skip
            if all(means):
                print(f"  mean, {what:16s}", "  ".join(f"{np.mean(m):5.3f}" for m in means))
    with (options.out / "models.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "labels", "k", "epsilon", "draws", "share_of_best_r2", "note"])
        writer.writerows(lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
