"""How the cost of a selection from scratch grows with n, p, k and epsilon, and memory with p."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsubset.search.engine import SearchLimitError

from . import memory, ours
from .data import SETTINGS, Shape

#: The point all curves pass through.
BASE = Shape(3000, 1000)
EPSILON = 1.0

#: The correlation of neighbouring columns on the curve of columns that are alike.
ALIKE = 0.9
COLLINEAR = f"box, correlation {ALIKE:g}"

#: Seconds after which a point of a curve counts as not finished.
LIMIT = 30.0


@dataclass(frozen=True)
class Curves:
    """Which points to measure."""

    base: Shape = BASE
    n: tuple[int, ...] = (300, 700, 1500, 3000, 7000, 15_000, 30_000)
    p: tuple[int, ...] = (30, 100, 300, 1000, 3000, 10_000)
    k: tuple[int, ...] = (1, 2, 3, 5, 8, 12, 20)
    epsilon: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    memory_p: tuple[int, ...] = (100, 300, 1000, 3000, 10_000, 30_000)
    repeats: int = 5


QUICK = Curves(
    n=(300, 3000, 10_000), p=(30, 300, 3000), k=(2, 5, 10), epsilon=(0.1, 1.0, 10.0),
    memory_p=(300, 3000), repeats=1,
)  # fmt: skip


def run(folder: Path, quick: bool = False) -> list[Path]:
    """Measure, write growth.csv and memory.csv, draw growth.png if matplotlib is there."""
    curves = QUICK if quick else Curves()
    points, peaks = list(costs(curves)), list(memories(curves))
    written = [_write(folder / "growth.csv", points), _write(folder / "growth-memory.csv", peaks)]
    try:
        import matplotlib
    except ImportError:
        return written  # the extra `plot`
    matplotlib.use("Agg")
    return [*written, draw(folder / "growth.png", points, peaks, curves)]


def costs(curves: Curves) -> Iterator[dict[str, Any]]:
    """A row a point: seconds of reading and of searching, medians."""
    base = curves.base
    sweeps: dict[str, list[tuple[float, Shape, float]]] = {
        "n": [(n, replace(base, n=n), EPSILON) for n in curves.n],
        "p": [(p, replace(base, p=p), EPSILON) for p in curves.p],
        "k": [(k, replace(base, k=k), EPSILON) for k in curves.k],
        "epsilon": [(epsilon, base, epsilon) for epsilon in curves.epsilon],
    }
    for axis, points in sweeps.items():
        for value, shape, epsilon in points:
            for rho in (shape.rho, ALIKE):
                x, y = replace(shape, rho=rho).make()
                for name in SETTINGS if rho != ALIKE else ("box",):
                    yield {
                        "axis": axis, "value": value, "n": shape.n, "p": shape.p,
                        "setting": name if rho != ALIKE else COLLINEAR, "k": shape.k,
                        "epsilon": epsilon,
                        **_point(x, y, shape.k, epsilon, SETTINGS[name], curves.repeats),
                    }  # fmt: skip


def _point(
    x: Any, y: Any, k: int, epsilon: float, setting: dict[str, Any], repeats: int
) -> dict[str, Any]:
    try:
        runs = [ours.cold_draw(x, y, k, epsilon, LIMIT, **setting) for _ in range(repeats)]
    except SearchLimitError:
        return {"read_s": None, "search_s": None, "splits": None, "finished": False}
    return {
        "read_s": statistics.median(r.read for r in runs),
        "search_s": statistics.median(r.search for r in runs),
        "splits": statistics.median(r.splits for r in runs),
        "finished": True,
    }


def memories(curves: Curves) -> Iterator[dict[str, Any]]:
    """A row a point: peak memory of a fresh process, the table included."""
    for p in curves.memory_p:
        shape = replace(curves.base, p=p)
        got = memory.measure(shape, SETTINGS["box"])
        yield {
            "n": shape.n, "p": p, "setting": "box", "peak_bytes": got["peak"],
            "table_bytes": got["table"], "matrix_bytes": 8 * p * p,
        }  # fmt: skip


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


#: Colour says which constraint, the dash which stage.
_COLOURS = {"box": "#0072b2", "ball": "#d55e00", COLLINEAR: "#009e73"}
_STAGES = {"read_s": ("--", "s", "reading the table"), "search_s": ("-", "o", "search and draw")}
_LABELS = {
    "n": "rows n", "p": "variables p", "k": "variables to select k", "epsilon": "epsilon",
}  # fmt: skip


def draw(
    path: Path, points: list[dict[str, Any]], peaks: list[dict[str, Any]], curves: Curves
) -> Path:
    """Four panels of cost, one of memory, and the legend."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(12, 7), layout="constrained")
    panels = dict(zip(_LABELS, (axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]), strict=True))
    base = {"n": curves.base.n, "p": curves.base.p, "k": curves.base.k, "epsilon": EPSILON}
    for axis, panel in panels.items():
        for name, colour in _COLOURS.items():
            for stage, (dash, marker, label) in _STAGES.items():
                rows = [
                    r for r in points
                    if r["axis"] == axis and r["setting"] == name and r["finished"]
                ]  # fmt: skip
                panel.loglog(
                    [r["value"] for r in rows], [r[stage] for r in rows], dash, marker=marker,
                    color=colour, markersize=4, label=f"{name}: {label}",
                )  # fmt: skip
            lost = [
                r["value"]
                for r in points
                if r["axis"] == axis and r["setting"] == name and not r["finished"]
            ]
            if lost:
                panel.plot(lost, [LIMIT] * len(lost), "x", color=colour,
                           label=f"{name}: not finished")  # fmt: skip
        rest = ", ".join(f"{other} {base[other]:,g}" for other in base if other != axis)
        panel.set_title(rest, fontsize=9)
        panel.set_xlabel(_LABELS[axis])
        panel.set_ylabel("seconds")
        panel.grid(alpha=0.3, which="major")
    panels["k"].set_xticks(curves.k, [str(k) for k in curves.k])
    panels["k"].minorticks_off()
    # One scale of seconds for all four, so that panels compare.
    low = min(panel.get_ylim()[0] for panel in panels.values())
    high = max(panel.get_ylim()[1] for panel in panels.values())
    for panel in panels.values():
        panel.set_ylim(low, high)
    memory_panel, legend = axes[0, 2], axes[1, 2]
    p = [r["p"] for r in peaks]
    for key, style, label in (
        ("peak_bytes", "o-k", "peak of the whole process"),
        ("table_bytes", ":k", "the table in float64"),
        ("matrix_bytes", "--", "a p x p matrix in float64"),
    ):
        colour = {} if style.endswith("k") else {"color": "grey"}
        memory_panel.loglog(p, [r[key] / 1e9 for r in peaks], style, markersize=4, label=label,
                            **colour)  # fmt: skip
    memory_panel.set_title(f"box, n {curves.base.n:,g}", fontsize=9)
    memory_panel.set_xlabel(_LABELS["p"])
    memory_panel.set_ylabel("GB")
    memory_panel.grid(alpha=0.3, which="major")
    memory_panel.legend(fontsize=8)
    legend.axis("off")
    known: dict[str, Any] = {}
    for panel in panels.values():
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    legend.legend(known.values(), known.keys(), loc="center", fontsize=9, frameon=False)
    figure.suptitle("Cost of one private selection from scratch")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path
