"""Utility against epsilon n on each table: ``python -m benchmarks.real.growth [--split S]``.

Rows are drawn with replacement from each table with a numeric response, up to 10^6 of them, and the
defaults select from them at one epsilon. Utility is that on the table itself. Writes growth.csv and
a picture with one panel a table, for which matplotlib is needed (the extra `plot`). The split
`report` is for one last look.

A table is quantized once. Rows that are drawn are weights of its rows: their moments are sums of
integers, and exact. A draw has the steps of `dps.select`: the default response range is drawn from
the weighted histogram, and the support by `dps.simulate` from moments in that range.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpsubset as dps
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS, Quantizer
from dpsubset.data.readers import open_table
from dpsubset.privacy.quantiles import QuantileSampler
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.privacy.response_range import default_response_range

from .tables import BY_NAME, ROWS, load
from .utility import judge

#: Numbers of rows.
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
KS = (3, 5)
DRAWS = 10

#: Wide tables, left out unless they are named: a search on them takes seconds.
SLOW = ("ames", "loans_full_schema", "RandHIE")

_PANELS_A_ROW = 4


@dataclass(frozen=True)
class Point:
    """One point of a curve: utilities over the draws."""

    table: str
    k: int
    epsilon: float
    n: int
    mean: float
    worst: float
    draws: int


class Resampled:
    """A table that is quantized once, and drawn from with replacement."""

    def __init__(self, name: str) -> None:
        table = load(name)
        self.name, self.schema = name, table.schema
        quantizer = Quantizer(table.schema, constant=1)
        parts = []
        for x, y in open_table(table.frame, table.schema).blocks():
            parts.append(np.empty((len(y), quantizer.width)))
            quantizer.records(x, y, parts[-1])
        records = np.concatenate(parts)
        self._x, self._y = records[:, :-1], records[:, -1].astype(np.int64) + STEPS
        self._rng = Randomness(SystemSource())

    def weights(self, n: int) -> NDArray[np.float64]:
        """How often each row is drawn: the same for the same n."""
        rows = len(self._y)
        return np.random.default_rng(n).multinomial(n, np.full(rows, 1 / rows)).astype(np.float64)

    def draw(self, weights: NDArray[np.float64], k: int, epsilon: Fraction) -> tuple[int, ...]:
        """One set, as the defaults draw it from n rows under replace-one."""
        n = int(weights.sum())
        chosen = default_response_range(epsilon, n, k)
        counts = np.bincount(self._y, weights, 2 * STEPS + 1).astype(np.int64)
        for_range = epsilon * chosen.budget_fraction
        sampler = QuantileSampler(counts, chosen.rule, for_range, "replace-one")
        images = sampler.draw(self._rng).images(STEPS)
        (found,) = dps.simulate(
            self._moments(weights, images), self.schema, k=k, epsilon=epsilon - for_range, draws=1,
            response_range="declared", prediction_bound=chosen.prediction_bound,
        )  # fmt: skip
        return found or ()

    def _moments(self, weights: NDArray[np.float64], images: NDArray[np.int16]) -> Moments:
        # Exact: sums of at most 2^22 products of two integers of 15 bits.
        records = np.column_stack([self._x, images[self._y]])
        products = (records * weights[:, None]).T @ records
        return Moments(products.astype(np.int64), int(weights.sum()), self.schema.fingerprint(), 1)


def measure(name: str, sizes: Iterable[int], epsilon: float, draws: int) -> list[Point]:
    """The curves of one table."""
    table, judged, points = Resampled(name), judge(name), []
    for n in sizes:
        weights = table.weights(n)
        for k in KS:
            sets = [table.draw(weights, k, Fraction(str(epsilon))) for _ in range(draws)]
            utilities = [judged.utility(chosen, k) for chosen in sets]
            mean, worst = float(np.mean(utilities)), min(utilities)
            points.append(Point(name, k, epsilon, n, mean, worst, draws))
    return points


def picture(points: list[Point], path: Path) -> None:
    """One panel a table, and one for the mean."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = [*dict.fromkeys(point.table for point in points), "mean"]
    rows = -(-len(names) // _PANELS_A_ROW)
    figure, axes = plt.subplots(rows, _PANELS_A_ROW, figsize=(11, 2.1 * rows), sharex=True,
                                sharey=True, squeeze=False)  # fmt: skip
    for axis, name in zip(axes.flat, names, strict=False):
        for k in KS:
            drawn = curve([p for p in points if p.k == k and name in (p.table, "mean")])
            axis.semilogx(*drawn, marker="o", markersize=3, label=f"k = {k}")
        axis.set(title=name, ylim=(-0.25, 1.05))
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    axes.flat[0].legend()
    figure.supxlabel("epsilon n")
    figure.supylabel("utility")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def curve(points: list[Point]) -> tuple[list[float], list[float]]:
    """Epsilon n, and the mean utility of all points there."""
    at: dict[float, list[float]] = {}
    for point in points:
        at.setdefault(point.epsilon * point.n, []).append(point.mean)
    return sorted(at), [float(np.mean(at[x])) for x in sorted(at)]


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, draw."""
    parser = argparse.ArgumentParser(prog="benchmarks.real.growth")
    parser.add_argument("--split", choices=("choose", "report"), default="choose")
    parser.add_argument("--only", help="tables to run, by commas; they must be of the split")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="rows, by commas")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws at each point")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the files")
    options = parser.parse_args(arguments)
    names = [r.name for r in ROWS if r.split == options.split and r.labels is None]
    if options.only:
        if others := [name for name in options.only.split(",") if name not in names]:
            parser.error(f"no tables with numeric responses of the split: {', '.join(others)}")
        names = options.only.split(",")
    else:
        names = [name for name in names if name not in SLOW and load(name).p > max(KS)]
    sizes = [int(size) for size in options.sizes.split(",")]
    options.out.mkdir(parents=True, exist_ok=True)
    points: list[Point] = []
    for name in names:
        points += measure(name, sizes, options.epsilon, options.draws)
        print(f"{BY_NAME[name].package} {name}", *(
            f"{p.n}: {p.mean:.2f}" for p in points if p.table == name and p.k == KS[0]
        ), flush=True)  # fmt: skip
        write(points, options.out / "growth.csv")
    picture(points, options.out / "growth.png")
    return 0


def write(points: list[Point], path: Path) -> None:
    """For other programs."""
    rows: list[dict[str, Any]] = [asdict(point) for point in points]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    raise SystemExit(main())
