"""Private search against fixed sizes: ``python -m benchmarks.real.tuned [--split S]``.

R2 of the released model's predictions / R2 of least squares on all columns, at the same total
epsilon, replace-one: ``dps.fit`` with a fixed k, with ``k="auto"`` and with `choose-size`, and
``dps.tune`` over a grid of k. Tables that have fewer columns than the largest k are left out. The
split `report` is for one last look.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import dpsubset as dps

from .models import explained
from .tables import ROWS, Loaded, load

SIZES = [1, 2, 3, 5, 8]


def fixed(k: int) -> Callable[[Loaded, float, float], dps.Release]:
    """``dps.fit`` with one k."""
    return lambda table, epsilon, limit: dps.fit(
        table.frame, table.schema, k=k, epsilon=epsilon, time_limit=limit, ledger=False
    )


def chosen_size(table: Loaded, epsilon: float, limit: float) -> dps.Release:
    """``dps.fit`` with up to the largest k, as many as `choose-size` takes."""
    return dps.fit(
        table.frame, table.schema, k=SIZES[-1], epsilon=epsilon, mechanism="choose-size",
        time_limit=limit, ledger=False,
    )  # fmt: skip


def auto(most: int) -> Callable[[Loaded, float, float], dps.Release]:
    """``dps.fit`` with a number of variables that is chosen privately."""
    return lambda table, epsilon, limit: dps.fit(
        table.frame, table.schema, max_k=most, epsilon=epsilon, time_limit=limit, ledger=False
    )


def tuned(eta: Fraction, runs: int) -> Callable[[Loaded, float, float], dps.Release]:
    """``dps.tune`` over the sizes."""
    return lambda table, epsilon, limit: dps.tune(
        table.frame, table.schema, grid={"k": SIZES}, epsilon=epsilon, time_limit=limit, eta=eta,
        runs=runs, ledger=False,
    )  # fmt: skip


WAYS: dict[str, Callable[[Loaded, float, float], dps.Release]] = {
    "k = 1": fixed(1),
    "k = 3": fixed(3),
    "k = 5": fixed(5),
    "k = 8": fixed(8),
    "auto, 3": auto(3),
    "auto, 5": auto(5),
    "auto, 8": auto(8),
    "choose-size": chosen_size,
    "tune -3/4": tuned(Fraction(-3, 4), 4),
    "tune -1/2": tuned(Fraction(-1, 2), 5),
    "tune 0": tuned(Fraction(0), 8),
    "tune 1": tuned(Fraction(1), 10),
}


def of_all_columns(table: Loaded) -> float:
    """R2 of least squares on all columns."""
    x = np.where(np.isnan(table.x), np.nanmean(table.x, axis=0), table.x)
    x = np.column_stack([x, np.ones(table.n)])
    y = table.y - table.y.mean()
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(1 - rest @ rest / (y @ y))


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.real.tuned")
    parser.add_argument("--split", choices=("choose", "report"), default="choose")
    parser.add_argument("--only", help="tables to run, by commas; they must be of the split")
    parser.add_argument("--ways", default=";".join(WAYS), help="by semicolons")
    parser.add_argument("--epsilons", default="1,3", help="by commas")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--limit", type=float, default=10.0, help="most seconds of a search")
    parser.add_argument("--enough", type=float, default=10.0, help="most seconds of a cell")
    options = parser.parse_args(arguments)
    names = [row.name for row in ROWS if row.split == options.split]
    if options.only:
        names = [name for name in options.only.split(",") if name in names]
    ways = options.ways.split(";")
    means: dict[tuple[float, str], list[float]] = {}
    print(f"split {options.split}: R2 / R2 of all columns; {', '.join(ways)}", flush=True)
    for name in names:
        table = load(name)
        if table.p < SIZES[-1]:
            continue
        y = 2 * table.y - 1 if table.labels else table.y
        whole = of_all_columns(table)
        for epsilon in map(float, options.epsilons.split(",")):
            cells = []
            for way in ways:
                found: list[float] = []
                start = time.perf_counter()
                while len(found) < options.draws:
                    try:
                        release = WAYS[way](table, epsilon, options.limit)
                    except dps.SearchLimitError:
                        break
                    model = release.model
                    share = 0.0 if model is None else explained(model, table.frame, y) / whole
                    found.append(share)
                    if time.perf_counter() - start > options.enough:
                        break
                cells.append(float(np.mean(found)) if found else None)
            if None not in cells:
                for way, cell in zip(ways, cells, strict=True):
                    means.setdefault((epsilon, way), []).append(float(cell or 0.0))
            shown = " ".join("    -" if cell is None else f"{cell:5.2f}" for cell in cells)
            print(f"  {name:22s} n {table.n:6d} epsilon {epsilon:g}: {shown}", flush=True)
    for (epsilon, way), each in means.items():
        print(f"  mean of {len(each)} tables, epsilon {epsilon:g}, {way}: {np.mean(each):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
