"""The bars of the logistic and the hinge loss: draws, best supports, buckets, many variables.

Labels are the signs of the response of the other bars. "Default box" has reach 2, the default of
these losses, "box" reach 1; "ball" is the setting of the other bars (reach 2.46), "papers' ball"
the published setting for labels (reach 1.23, see `PAPERS_BALL`). None has an intercept. The floor
is X'X in float64 as elsewhere, though these losses need no such product: it says what machine this
is.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from . import memory, ours
from .data import PAPERS_BALL, PUBLISHED, SETTINGS, Shape
from .rows import Row, bare_product
from .runs import GIGA, PRODUCT, Caught, Run, selected, short

LOSSES = ("hinge", "logistic")
CHOICES: dict[str, dict[str, Any]] = {
    "default box": {**PUBLISHED, "constraint": "box", "prediction_bound": 2.0},
    "box": {**PUBLISHED, "constraint": "box", "prediction_bound": 1.0},
    "ball": SETTINGS["ball"],
    "papers' ball": PAPERS_BALL,
}

BASE = Shape(3000, 1000)
WIDE = (Shape(3000, 10_000), Shape(6000, 10_000))

#: Where a draw is hardest: the true support's probability is neither near 0 nor near 1. Chosen
#: from three to five values of n at the setting's own ridge, or of the ridge at n = 3,000. A row's
#: note gives the probability on its own data; two rows lie beyond, at the n of the other bars.
TRANSITIONS: tuple[tuple[Shape, str, float | None, float], ...] = (
    (Shape(2750, 1000), "ball", None, 2.0),
    (Shape(3000, 1000), "ball", None, 2.0),
    (Shape(1500, 1000), "papers' ball", None, 2.0),
    (Shape(3000, 1000), "papers' ball", 1500.0, 2.0),
    (Shape(3000, 1000), "papers' ball", None, 2.0),
    (Shape(1000, 1000), "default box", None, 1.0),
    (Shape(3000, 1000), "default box", None, 1.0),
    (Shape(800, 1000), "box", None, 1.0),
    (Shape(3000, 1000), "box", 1750.0, 1.0),
    (Shape(3000, 1000), "box", None, 1.0),
    (Shape(2300, 100), "ball", None, 0.050),
    (Shape(1100, 100), "papers' ball", None, 0.050),
    (Shape(700, 100), "default box", None, 0.050),
    (Shape(600, 100), "box", None, 0.050),
)

_STEEP: dict[str, Any] = {**PUBLISHED, "prediction_bound": 2.5, "ridge": 1.0}

#: Every draw of these has a goal. Up to reach 1 the hinge is a line, beyond it is not.
HARD: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("default box", 0.9, CHOICES["default box"]),
    ("box", 0.9, CHOICES["box"]),
    ("ball", 0.9, SETTINGS["ball"]),
    ("papers' ball", 0.9, PAPERS_BALL),
    ("box, reach 2.5, ridge 1", 0.1, _STEEP),
    ("box, reach 2.5, ridge 1", 0.9, _STEEP),
    ("ball, reach 2.5, ridge 1", 0.1, {**_STEEP, "constraint": "ball"}),
    ("ball, reach 2.5, ridge 1", 0.9, {**_STEEP, "constraint": "ball"}),
)


def b13(
    run: Run, cases: tuple[tuple[Shape, str, float | None, float], ...] = TRANSITIONS
) -> Iterator[Row]:
    """A draw under the logistic loss, from the data, at the transition and beyond it."""
    for shape, name, ridge, goal in cases:
        x, y = shape.make()
        setting = {"loss": "logistic", **CHOICES[name]}
        if ridge is not None:
            setting["ridge"] = ridge
        row = selected(
            "B13", f"logistic, {shape}, {name}, ridge {setting.get('ridge', 0):g}, eps 1", x, y,
            shape.k, 1.0, setting, bare_product(x, 5), goal, "measured", run.repeats(11, 3),
            run.limit(goal),
        )  # fmt: skip
        if not row.failed:
            row = replace(row, note=f"{row.note}; {_recovery(x, y, shape, setting, run)}")
        yield row


def _recovery(x: np.ndarray, y: np.ndarray, shape: Shape, setting: dict[str, Any], run: Run) -> str:
    draws = run.repeats(400, 100)
    drawn = ours.draws(x, y, shape.k, 1.0, draws, run.limit(60.0), **setting)
    return f"true support in {drawn.count(shape.truth)} of {draws} draws"


def b14(run: Run, shape: Shape = BASE) -> Iterator[Row]:
    """Best supports without noise: of all buckets, the 100 best, the k (p - k) + 2 best."""
    x, y = shape.make()
    floor = bare_product(x)
    many = shape.k * (shape.p - shape.k) + 2
    searches: tuple[tuple[str, Callable[..., ours.Staged], int, float], ...] = (
        (f"best of {shape.k + 1} buckets", ours.buckets, shape.k + 1, 0.5),
        ("100 best", ours.best, 100, 1.0),
        (f"{many:,} best", ours.best, many, 5.0),
    )
    for loss in LOSSES:
        for what, search, count, seconds in searches:
            for name, setting in CHOICES.items():
                goal = seconds if loss == "hinge" else None  # the other is only shown
                limit = run.limit(seconds)
                sizes = (count,) if search is ours.best else ()
                case = f"{loss}, {shape}, {name}: {what}"
                with Caught("B14", case, goal, limit) as caught:
                    runs = [search(x, y, shape.k, *sizes, limit, loss=loss, **setting)]
                    if runs[0].whole < limit / 12:
                        runs += [
                            search(x, y, shape.k, *sizes, limit, loss=loss, **setting)
                            for _ in range(run.repeats(4, 0))
                        ]
                    assert len(runs[0].found) == count
                    caught.row = Row(
                        "B14", case, statistics.median(r.whole for r in runs), "s", floor, PRODUCT,
                        goal, note=f"{len(runs)} runs, {runs[0].splits:,} splits",
                    )  # fmt: skip
                yield caught.row


def b15(run: Run, shape: Shape = BASE) -> Iterator[Row]:
    """The slowest of several draws under the hinge loss, on designs that are hard for it."""
    goal = 5.0
    for name, rho, setting in HARD:
        case = f"hinge, {replace(shape, rho=rho)}, {name}, eps 1: slowest draw"
        limit = run.limit(goal)
        times: list[float] = []
        with Caught("B15", case, goal, limit) as caught:
            seeds, draws = run.repeats(4, 2), run.repeats(3, 1)
            for seed in range(seeds):
                x, y = replace(shape, rho=rho, seed=seed).make()
                times += [
                    ours.cold_draw(x, y, shape.k, 1.0, limit, loss="hinge", **setting).whole
                    for _ in range(draws)
                ]
            caught.row = Row(
                "B15", case, max(times), "s", bare_product(x), PRODUCT, goal,
                note=f"of {draws} draws on each of {seeds} data sets; "
                f"median {short(statistics.median(times))}",
            )  # fmt: skip
        yield caught.row


def b16(run: Run, shapes: tuple[Shape, ...] = WIDE) -> Iterator[Row]:
    """Ten thousand variables: time of a draw and peak memory of a fresh process."""
    goal = 120.0
    for shape in shapes[:1] if run.quick else shapes:
        for loss in LOSSES:
            for name, setting in CHOICES.items():
                case = f"{loss}, {shape}, {name}, eps 1"
                with Caught("B16", case, goal, goal) as caught:
                    got = memory.measure(shape, {"loss": loss, **setting}, limit=goal)
                    caught.row = Row(
                        "B16", case, got["seconds"], "s", got["read_once"], "X'y, reading X once",
                        goal, note="one draw",
                    )  # fmt: skip
                    yield Row(
                        "B16", f"{case}: peak memory", got["peak"] / GIGA, "GB",
                        got["table"] / GIGA, "the table in float64", 8.0,
                        note="whole process, table included",
                    )  # fmt: skip
                yield caught.row
