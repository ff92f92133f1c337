"""Errors of released models against n: ``python -m benchmarks.prediction [--quick]``.

The setting of Prastakos, Behdin and Mazumder 2025, "prediction accuracy and utility loss": p = 1000
normal variables with correlation 0.1 between neighbours, k = 5 of which explain y at a
signal-to-noise ratio of 5, epsilon = 2 for everything together, replace-one. Bounds are public and
rather wide: 2 for the variables, 10 for a response of deviation 1.1. A new table for each repeat.

- *ours*: all defaults: permute-and-flip and noisy sums;
- *ours, objective perturbation*: permute-and-flip, and the fit that the others have;
- *top-r, mistakes, sample-aggregate, metropolis*: each with objective perturbation, the same
  shares of epsilon and the same scale of the response. Mistakes takes its anchor from a private
  draw; metropolis has a delta and assumes that its chain has mixed;
- *not private*: the best support, and least squares on it.

Two figures of each: the *test error*, the mean square of what a model misses on 20,000 new rows
over the variance of the response there; and the *objective gap*, by how much the mean square on
the table itself is above that of the best support's least squares, over the latter.

Prints means and writes prediction.csv and prediction.png to the folder.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dpsubset as dps

from .data import Shape

SHAPE = Shape(1000, 1000)
EPSILON, DELTA = 2, 1e-6
BOUNDS = dps.Bounds(x=2, y=10)
ROWS, QUICK_ROWS = (1500, 2500, 4000, 6000, 10_000), (2500, 6000)
REPEATS, QUICK_REPEATS = 10, 2
NEW_ROWS = 20_000

Floats = np.ndarray
Predict = Callable[[Floats], Floats]


def least_squares(x: Floats, y: Floats, k: int) -> Predict:
    """Of the best support, without noise."""
    support = list(dps.best_subset(x, y=y, bounds=BOUNDS, k=k).support)
    design = np.column_stack([x[:, support], np.ones(len(x))])
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    return lambda new: new[:, support] @ found[:-1] + found[-1]


def released(x: Floats, y: Floats, k: int, *, fit: str, mechanism: str, **more: Any) -> Predict:
    """A release, and its predictions."""
    rule = dps.FitRule(mechanism=fit)
    release = dps.fit(
        x, y=y, bounds=BOUNDS, k=k, epsilon=EPSILON, mechanism=mechanism, rule=rule, **more
    )
    assert release.model is not None
    return release.model.predict


_PERTURBED = "objective-perturbation"
METHODS: dict[str, Callable[[Floats, Floats, int], Predict]] = {
    "not private": least_squares,
    "ours": partial(released, fit="noisy-moments", mechanism="permute-and-flip"),
    "ours, objective perturbation": partial(
        released, fit=_PERTURBED, mechanism="permute-and-flip"
    ),
    **{
        name: partial(released, fit=_PERTURBED, mechanism=name)
        for name in ("top-r", "mistakes", "sample-aggregate")
    },
    "metropolis": partial(
        released, fit=_PERTURBED, mechanism="metropolis", options={"steps": 20_000}, delta=DELTA
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One point of a figure."""

    n: int
    method: str
    repeats: int
    test_error: float
    test_deviation: float
    gap: float
    gap_deviation: float


def measure(rows: tuple[int, ...], repeats: int) -> Iterator[Line]:
    """All points."""
    for n in rows:
        errors: dict[str, list[float]] = {name: [] for name in METHODS}
        gaps: dict[str, list[float]] = {name: [] for name in METHODS}
        for seed in range(repeats):
            x, y = replace(SHAPE, n=n, seed=seed).make()
            new_x, new_y = replace(SHAPE, n=NEW_ROWS, seed=10_000 + seed).make()
            least = math.nan
            for name, method in METHODS.items():
                predict = method(x, y, SHAPE.k)
                missed = float(np.mean((y - predict(x)) ** 2))
                least = missed if name == "not private" else least
                errors[name].append(float(np.mean((new_y - predict(new_x)) ** 2) / new_y.var()))
                gaps[name].append(missed / least - 1)
        for name in METHODS:
            yield Line(
                n, name, repeats, float(np.mean(errors[name])), float(np.std(errors[name])),
                float(np.mean(gaps[name])), float(np.std(gaps[name])),
            )  # fmt: skip


def picture(lines: list[Line], path: Path) -> None:
    """Both figures."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4))
    for panel, of, title in zip(
        panels, ("test_error", "gap"), ("test error", "objective gap"), strict=True
    ):
        for i, method in enumerate(dict.fromkeys(line.method for line in lines)):
            points = [line for line in lines if line.method == method]
            if of == "gap" and method == "not private":
                continue  # 0
            values = [getattr(p, of) for p in points]
            panel.plot([p.n for p in points], values, "o-", label=method, color=f"C{i}")
        panel.set(title=title, xlabel="n", yscale="log")
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.prediction")
    parser.add_argument("--quick", action="store_true", help="two sizes and two repeats")
    parser.add_argument("--repeats", type=int, help=f"{REPEATS} by default")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the files")
    options = parser.parse_args(arguments)
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    options.out.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    with (options.out / "prediction.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*Line.__dataclass_fields__])
        writer.writeheader()
        for line in measure(QUICK_ROWS if options.quick else ROWS, repeats):
            lines.append(line)
            writer.writerow(asdict(line))
            text = f"n {line.n:6} {line.method:30}"
            print(f"{text} test error {line.test_error:7.3f} gap {line.gap:8.3f}", flush=True)
    picture(lines, options.out / "prediction.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
