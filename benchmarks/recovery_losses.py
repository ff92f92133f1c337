"""How often the true support is released under each loss: ``python -m benchmarks.recovery_losses``.

Labels are the signs of the response of `recovery`: correlated normal variables, k = 5 of which
explain it at a signal-to-noise ratio of 5, clipped at 0.5; epsilon = 1, replace-one. Prastakos,
Behdin and Mazumder 2025 do not say how their labels were made; signs are the usual way. Three
losses: hinge, logistic, and least squares on the labels as -1 and 1. Four parts:

- *published*: the ball and the ridge of the published hinge figure (`PAPERS_BALL`), with the
  published mechanisms beside ours;
- *curves*: the box without ridge, of reach 1, of reach 2, and of the
  reach that is best for the loss at this correlation, where the sweep has it;
- *weak*: the same at a signal-to-noise ratio of 1;
- *sweep*: reaches and ridges for each loss, which is where the best reaches come from. The
  curves are measured on other data than the sweep.

Each figure is the mean over data sets of the share of draws that are the true support.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dpsubset.mechanisms import Data, Setting, mechanism
from dpsubset.search.engine import Limits, SearchLimitError

from . import ours
from .data import PAPERS_BALL, PUBLISHED, Shape, labels

EPSILON, K = 1, 5
LOSSES = ("logistic", "hinge", "least-squares")
OURS = "permute-and-flip"

#: Seconds for all draws on one data set, after which a point counts as not finished.
LIMIT = 60.0

#: By p and correlation: where the curves rise.
ROWS: dict[tuple[int, float], tuple[int, ...]] = {
    (100, 0.1): (300, 500, 700, 1000, 1500),
    (100, 0.5): (500, 700, 1000, 1500, 3000),
    (100, 0.8): (1000, 1500, 2000, 3000, 6000),
    (1000, 0.1): (500, 700, 1000, 1500),
    (1000, 0.5): (700, 1000, 1500, 3000),
    (1000, 0.8): (1500, 3000, 6000),
}
WEAK_ROWS = {0.1: (1000, 1500), 0.5: (1500, 3000), 0.8: (3000, 6000)}
PUBLISHED_ROWS = (700, 1000, 1500, 2000, 3000, 4500, 6000)

#: The papers' mechanisms, and where they are measured: at a transition, and where ours is sure.
PAPERS_OWN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("top-r", {"R": 100}),
    ("mistakes", {"anchor": "data"}),
)
PAPERS_OWN_ROWS = (1500, 3000)

REACHES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
RIDGES = (0.0, 10.0, 50.0)
SWEPT_ROWS = {0.1: (500, 700), 0.5: (700, 1500)}

#: The reach with the best mean over both n of the sweep, by correlation, without ridge: none did
#: better by more than the sweep can tell.
BEST: dict[float, dict[str, float]] = {
    0.1: {"logistic": 0.5, "hinge": 1.5, "least-squares": 0.5},
    0.5: {"logistic": 1.5, "hinge": 2.0, "least-squares": 1.0},
}

_WORDS = ("part", "setting", "loss", "mechanism")
COLUMNS = (
    "part", "setting", "loss", "mechanism", "p", "rho", "snr", "n", "data_sets", "draws",
    "probability", "lowest", "highest", "first_draw_ms",
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One figure to measure."""

    part: str
    loss: str
    setting: str
    shape: Shape
    arguments: dict[str, Any]
    mechanism: str = OURS
    options: dict[str, Any] = field(default_factory=dict)
    seeds: range = range(10)
    draws: int = 100

    def measure(self) -> dict[str, Any]:
        """The share of draws that are the true support, and what the first draw costs."""
        shares: list[float] = []
        times: list[float] = []
        finished = True
        for seed in self.seeds:
            try:
                share, seconds = self._on(replace(self.shape, seed=seed))
            except SearchLimitError:
                finished = False
                break
            shares.append(share)
            times.append(seconds)
        known = finished and bool(shares)
        return {
            "part": self.part, "setting": self.setting, "loss": self.loss,
            "mechanism": self.mechanism, "p": self.shape.p, "rho": self.shape.rho,
            "snr": self.shape.snr, "n": self.shape.n, "data_sets": len(self.seeds),
            "draws": self.draws,
            "probability": round(statistics.mean(shares), 4) if known else None,
            "lowest": min(shares) if known else None, "highest": max(shares) if known else None,
            "first_draw_ms": round(1e3 * statistics.median(times), 1) if known else None,
        }  # fmt: skip

    def _on(self, shape: Shape) -> tuple[float, float]:
        x, y = shape.make()
        start = time.perf_counter()
        asked = {**PUBLISHED, **self.arguments}
        digest, problem = ours.read(x, labels(y), K, loss=self.loss, **asked)
        data = Data(digest, Limits(seconds=LIMIT))
        setting = Setting.of(problem, EPSILON, n=shape.n)
        sampler = mechanism(self.mechanism, self.options).prepare(data, setting)
        rng = ours.randomness()
        drawn = [sampler.draw(rng)]
        seconds = time.perf_counter() - start
        drawn += [sampler.draw(rng) for _ in range(self.draws - 1)]
        return drawn.count(shape.truth) / self.draws, seconds


def published(seeds: range = range(10), draws: int = 100) -> Iterator[Point]:
    """The published setting: ours for every loss, the exponential mechanism, the papers' own."""
    for p, rho, n, loss in itertools.product((100, 1000), (0.1, 0.5), PUBLISHED_ROWS, LOSSES):
        shape = Shape(n, p, K, rho)
        for name in (OURS, "exponential"):
            yield Point("published", loss, "papers' ball", shape, PAPERS_BALL, name,
                        seeds=seeds, draws=draws)  # fmt: skip
    # The p of the published figure.
    for n in (1500, 2000, 3000):
        yield Point("published", "hinge", "papers' ball", Shape(n, 10_000, K), PAPERS_BALL,
                    seeds=seeds[: len(seeds) // 2], draws=draws // 2)  # fmt: skip
    # Were the ridge meant without its half, it would be twice as large.
    doubled = {**PAPERS_BALL, "ridge": 2 * PAPERS_BALL["ridge"]}
    for n in PUBLISHED_ROWS:
        yield Point("published", "hinge", "ridge 400", Shape(n, 1000, K), doubled, seeds=seeds,
                    draws=draws)  # fmt: skip
    for n, loss in itertools.product(PAPERS_OWN_ROWS, ("hinge", "logistic")):
        for name, options in PAPERS_OWN:
            yield Point("published", loss, "papers' ball", Shape(n, 100, K), PAPERS_BALL, name,
                        options, seeds, draws)  # fmt: skip


def curves(seeds: range = range(100, 110), draws: int = 100) -> Iterator[Point]:
    """Reach 1, reach 2 and the best of each loss, against n."""
    for ((p, rho), rows), loss in itertools.product(ROWS.items(), LOSSES):
        named = {"reach 1": 1.0}
        if rho in BEST:
            named["best"] = BEST[rho][loss]
        if loss != "least-squares":  # which finds little there
            named["reach 2"] = 2.0
        for n, (name, reach) in itertools.product(rows, named.items()):
            # Of many variables each draw takes longer.
            yield Point("curves", loss, name, Shape(n, p, K, rho), {"reach": reach}, seeds=seeds,
                        draws=draws if p <= 100 else draws // 2)  # fmt: skip


def weak(seeds: range = range(100, 110), draws: int = 100) -> Iterator[Point]:
    """The curves' settings where noise and signal are alike."""
    for (rho, rows), loss in itertools.product(WEAK_ROWS.items(), LOSSES):
        reaches = {"reach 1": 1.0} if loss == "least-squares" else {"reach 1": 1.0, "reach 2": 2.0}
        for n, (name, reach) in itertools.product(rows, reaches.items()):
            yield Point("weak", loss, name, Shape(n, 100, K, rho, snr=1.0), {"reach": reach},
                        seeds=seeds, draws=draws)  # fmt: skip


def sweep(seeds: range = range(10), draws: int = 100) -> Iterator[Point]:
    """Reaches and ridges for each loss, at two n of the transition for each correlation."""
    for (rho, rows), loss in itertools.product(SWEPT_ROWS.items(), LOSSES):
        for n, reach, ridge in itertools.product(rows, REACHES, RIDGES):
            yield Point("sweep", loss, f"reach {reach:g}, ridge {ridge:g}", Shape(n, 100, K, rho),
                        {"reach": reach, "ridge": ridge}, seeds=seeds, draws=draws)  # fmt: skip


PARTS = {"published": published, "curves": curves, "weak": weak, "sweep": sweep}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.recovery_losses")
    parser.add_argument("--draws", type=int, default=100, help="draws on each data set")
    parser.add_argument("--seeds", type=int, default=10, help="data sets for each figure")
    parser.add_argument("--only", choices=PARTS, help="one part; the others are kept as they are")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the files")
    options = parser.parse_args(arguments)
    console = Console(width=132)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "recovery-losses.csv"
    lines = [line for line in read(path) if options.only and line["part"] != options.only]
    warm_up()
    for name, part in PARTS.items():
        if options.only in (None, name):
            done: list[dict[str, Any]] = []
            # The curves have data sets of their own.
            first = 0 if name == "sweep" else 100
            for point in part(range(first, first + options.seeds), options.draws):
                done.append(point.measure())
                write(path, [*lines, *done])
            lines += done
            console.print(table(name, done))
    try:
        import matplotlib
    except ImportError:
        return 0  # the extra `plot`
    matplotlib.use("Agg")
    draw(options.out / "recovery-losses.png", read(path))
    return 0


def warm_up() -> None:
    """Have numba compile, or load, what is timed."""
    for loss, arguments in itertools.product(LOSSES, ({}, PAPERS_BALL, {"reach": 2.0})):
        Point("", loss, "", Shape(60, 20), arguments, seeds=range(1), draws=2).measure()


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """For other programs."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def read(path: Path) -> list[dict[str, Any]]:
    """What was written, with numbers as numbers; nothing if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: cell if name in _WORDS else float(cell) if cell else None
             for name, cell in line.items()}
            for line in csv.DictReader(file)
        ]  # fmt: skip


def table(title: str, lines: list[dict[str, Any]]) -> Table:
    """For the eyes: a line a curve, a column an n."""
    rows = sorted({line["n"] for line in lines})
    shape = Table("p", "rho", "setting", "loss", "mechanism", *(f"{n:g}" for n in rows), "ms",
                  title=title)  # fmt: skip
    for curve, points in _grouped(lines):
        at = {line["n"]: line for line in points}
        times = [line["first_draw_ms"] for line in points if line["first_draw_ms"] is not None]
        cells = [
            "" if n not in at else "-" if at[n]["probability"] is None
            else f"{at[n]['probability']:.2f}"
            for n in rows
        ]  # fmt: skip
        p, rho, *words = curve
        shape.add_row(f"{p:g}", f"{rho:g}", *words, *cells, f"{max(times):.0f}" if times else "-")
    return shape


def _grouped(
    lines: Iterable[dict[str, Any]],
) -> Iterator[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    curves: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in lines:
        key = tuple(line[name] for name in ("p", "rho", "setting", "loss", "mechanism"))
        curves.setdefault(key, []).append(line)
    yield from curves.items()


#: Colour says which loss; dash and marker say which mechanism, or which reach.
_COLOURS = {"logistic": "#0072b2", "hinge": "#d55e00", "least-squares": "#009e73"}
_STYLES: dict[tuple[str, str], tuple[str, str, str]] = {
    ("papers' ball", OURS): ("-", "o", OURS),
    ("papers' ball", "exponential"): (":", ".", "exponential"),
    ("papers' ball", "top-r"): ("none", "^", "top-r, R = 100"),
    ("papers' ball", "mistakes"): ("none", "s", "mistakes as published: no guarantee"),
    ("reach 1", OURS): ("-", "o", "box, reach 1"),
    ("reach 2", OURS): ("--", "D", "box, reach 2"),
}
_PANELS = (
    ("papers' ball", 0.1), ("papers' ball", 0.5), ("box", 0.1), ("box", 0.5), ("box", 0.8),
)  # fmt: skip


def draw(path: Path, lines: list[dict[str, Any]]) -> Path:
    """A row of panels for each p, a panel for each setting and correlation."""
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    sizes = (100, 1000)
    figure, axes = pyplot.subplots(
        len(sizes), len(_PANELS), figsize=(14, 6.4), sharey=True, layout="constrained"
    )
    for (row, p), (column, (title, rho)) in itertools.product(enumerate(sizes), enumerate(_PANELS)):
        panel = axes[row, column]
        for (_, _, setting, loss, name), points in _grouped(lines):
            here = [
                line
                for line in points
                if (line["p"], line["rho"]) == (p, rho)
                and line["probability"] is not None
                and line["part"] != "weak"
            ]
            style = _STYLES.get((setting, name))
            if style is None or (setting == "papers' ball") != (title == "papers' ball"):
                continue
            dash, marker, _ = style
            panel.plot(
                [line["n"] for line in here], [line["probability"] for line in here],
                linestyle=dash, marker=marker, color=_COLOURS[loss], markersize=4, alpha=0.85,
            )  # fmt: skip
        panel.set_title(f"{title}, rho {rho:g}, p {p:,}", fontsize=9)
        panel.set_xscale("log")
        panel.set_xlim(270, 6600)
        ticks = (300, 1000, 3000, 6000)
        panel.set_xticks(ticks, [f"{n:,}" for n in ticks], fontsize=8)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    for panel in axes[-1]:
        panel.set_xlabel("rows n")
    for panel in axes[:, 0]:
        panel.set_ylabel("true support released")
    keys = [Line2D([], [], color=colour, label=loss) for loss, colour in _COLOURS.items()]
    keys += [
        Line2D([], [], color="grey", linestyle=dash, marker=marker, markersize=4, label=label)
        for dash, marker, label in _STYLES.values()
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.suptitle(f"Recovery of {K} variables from labels, epsilon {EPSILON}")
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
