"""The bars: one function each, from what to measure to rows of the table.

Every row is a ratio within the same run: against the bare float64 product X'X of the same data
unless it says otherwise. Where the goal is a time, the ratio says what machine it was measured on.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpsubset import Bounds

from . import alike, losses, memory, moments, ours, peers, solvers
from .data import BOUNDS, SETTINGS, WIDE, Shape, real, scaled
from .rows import Row, bare_product
from .runs import GIGA, PRODUCT, Caught, Run, selected, short

#: A case where nothing is said but bounds, which are wide ones.
DEFAULTS = "defaults"


def moment_rows(run: Run) -> Iterator[Row]:
    """Reading a table (the bar of the moments, not of the search)."""
    for row in moments.rows():
        memory_row = "bytes" in row["benchmark"]
        scale = 1 / GIGA if memory_row else 1.0
        yield Row(
            "moments", row["benchmark"].rsplit(":", 1)[0] + (", extra memory" * memory_row),
            row["ours"] * scale, "GB" if memory_row else "s", row["peer"] * scale,
            row["peer is"], row["goal"], "ratio",
        )  # fmt: skip


def b1(run: Run) -> Iterator[Row]:
    """A whole selection at p = 10,000."""
    cases = (("box", 1.3), ("ball", 1.3), (DEFAULTS, 0.2))
    yield from _against_product("B1", Shape(5000, 10_000), cases, run)


def b2(run: Run) -> Iterator[Row]:
    """The same near the transition, the hardest regime."""
    yield from _against_product("B2", Shape(3000, 10_000), (("ball", 2.0),), run)
    yield from _against_product("B2", Shape(700, 10_000), (("box", 2.0),), run)


def _against_product(
    bar: str, shape: Shape, cases: tuple[tuple[str, float], ...], run: Run
) -> Iterator[Row]:
    """Products before and after the selections, so that a busy machine slows both."""
    x, y = shape.make()
    floors = [bare_product(x, 1)]
    rows = [
        selected(
            bar, f"{shape}, {name}, eps 1", x, y, shape.k, 1.0, SETTINGS.get(name, {}), 0.0,
            goal, "ratio", run.repeats(5, 2), ours.TIME_LIMIT,
            WIDE if name == DEFAULTS else BOUNDS,
        )
        for name, goal in cases
    ]  # fmt: skip
    floors.append(bare_product(x, 1))
    for row in rows:
        yield row if row.failed else replace(row, reference=statistics.median(floors))


def b3(run: Run) -> Iterator[Row]:
    """Small problems: a warm selection, and a further draw of a simulation."""
    for name, n in (("ball", 3000), ("box", 1000)):
        shape = Shape(n, 100)
        x, y = shape.make()
        case = f"{shape}, {name}, eps 1"
        ours.select(x, y, shape.k, **SETTINGS[name])
        product = bare_product(x, 21)
        row = selected(
            "B3", f"{case}: warm select", x, y, shape.k, 1.0, SETTINGS[name], product, 0.010,
            "measured", run.repeats(41, 11), run.limit(0.010),
        )  # fmt: skip
        yield row
        digest, problem = ours.read(x, y, shape.k, **SETTINGS[name])
        _, race = ours.sampler(digest, problem, 1.0)
        rng = ours.randomness()
        settle, draws = 2000, run.repeats(2000, 1000)
        for _ in range(settle):  # the partition is fine enough after these
            race.draw(rng)
        start = time.perf_counter()
        for _ in range(draws):
            race.draw(rng)
        each = (time.perf_counter() - start) / draws
        matrix, vector = digest.columns[:100, :100].astype(np.float64), np.ones(100)
        start = time.perf_counter()
        for _ in range(draws):
            matrix @ vector
        floor = (time.perf_counter() - start) / draws
        yield Row(
            "B3", f"{case}: further draw", 1e3 * each, "ms", 1e3 * floor, "one product with X'X",
            0.1, note=f"mean of {draws:,} draws after {settle:,}",
        )  # fmt: skip


def b4(run: Run) -> Iterator[Row]:
    """The R best, as many as Behdin, Prastakos and Mazumder 2024 list in minutes."""
    yield from _top("B4", Shape(2000, 250, 7), 100, 0.5, run.repeats(3), run)


def b5(run: Run) -> Iterator[Row]:
    """The R best, with R = k (p - k) + 2."""
    shape = Shape(3000, 1000)
    yield from _top("B5", shape, shape.k * (shape.p - shape.k) + 2, 10.0, 1, run)


def _top(bar: str, shape: Shape, count: int, goal: float, repeats: int, run: Run) -> Iterator[Row]:
    x, y = shape.make()
    floor = bare_product(x)
    for name, setting in SETTINGS.items():
        case = f"{shape}, {name}: {count:,} best"
        with Caught(bar, case, goal, run.limit(goal)) as caught:
            runs = [
                ours.best(x, y, shape.k, count, run.limit(goal), **setting) for _ in range(repeats)
            ]
            assert len(runs[0].found) == count
            read = statistics.median(r.read for r in runs)
            caught.row = Row(
                bar, case, statistics.median(r.whole for r in runs), "s", floor, PRODUCT, goal,
                note=f"of which moments {short(read)}; {runs[0].splits:,} splits",
            )  # fmt: skip
        yield caught.row


def b6(run: Run) -> Iterator[Row]:
    """Collinear tables from practice."""
    settings: tuple[tuple[str, dict[str, Any], float], ...] = (
        ("box", SETTINGS["box"], 0.2),
        ("ball, ridge 1", {**SETTINGS["ball"], "ridge": 1.0}, 2.0),
    )
    for table, (x, y) in real().items():
        floor = bare_product(x, 21)
        for name, setting, goal in settings:
            for epsilon in (1.0, 10.0, 100.0):
                yield selected(
                    "B6", f"{table} (n {x.shape[0]:,}, p {x.shape[1]}), k 8, {name}, "
                    f"eps {epsilon:g}", x, y, 8, epsilon, setting, floor, goal, "measured",
                    run.repeats(7, 2), run.limit(goal), Bounds(x=1.0, y=1.0),
                )  # fmt: skip


def b7(run: Run) -> Iterator[Row]:
    """Fewer rows than variables, no ridge."""
    shape = Shape(600, 1000, rho=0.5)
    x, y = shape.make()
    floor = bare_product(x, 5)
    for name, setting, goal in (
        ("box", SETTINGS["box"], 0.5),
        ("ball", {**SETTINGS["ball"], "ridge": 0.0}, 2.0),
    ):
        yield selected(
            "B7", f"{shape}, {name}, ridge 0, eps 1", x, y, shape.k, 1.0, setting, floor, goal,
            "measured", run.repeats(5, 2), run.limit(goal),
        )  # fmt: skip


def b8(run: Run) -> Iterator[Row]:
    """Strongly correlated."""
    shape = Shape(1000, 1000, rho=0.9)
    x, y = shape.make()
    floor = bare_product(x, 5)
    for name, setting in SETTINGS.items():
        for ridge in (0.0, 20.0):
            for epsilon in (1.0, 10.0):
                yield selected(
                    "B8", f"{shape}, {name}, ridge {ridge:g}, eps {epsilon:g}", x, y, shape.k,
                    epsilon, {**setting, "ridge": ridge}, floor, 5.0,
                    "measured", run.repeats(3), run.limit(5.0),
                )  # fmt: skip


def b9(run: Run) -> Iterator[Row]:
    """A hundred thousand variables: time and peak memory of a fresh process."""
    shape = Shape(2000, 100_000)
    for name in ("box",) if run.quick else SETTINGS:
        case = f"{shape}, {name}, eps 1"
        with Caught("B9", case, 60.0, ours.TIME_LIMIT) as caught:
            got = memory.measure(shape, SETTINGS[name])
            caught.row = Row(
                "B9", case, got["seconds"], "s", got["read_once"], "X'y, reading X once", 60.0
            )
            yield Row(
                "B9", f"{case}: peak memory", got["peak"] / GIGA, "GB", got["table"] / GIGA,
                "the table in float64", 4.0, note="whole process, table included",
            )  # fmt: skip
        yield caught.row


def b10(run: Run) -> Iterator[Row]:
    """The optimum alone, against OKRidge, which certifies it, and abess, which does not."""
    cases = ((Shape(3000, 1000), 480.0), (Shape(3000, 1000, rho=0.5), 480.0),
             (Shape(1000, 1000, rho=0.5), 20.0))  # fmt: skip
    limit = 10.0 if run.quick else 120.0
    for shape, ridge in cases[:1] if run.quick else cases:
        x, y = shape.make()
        sx, sy = scaled(x), scaled(y)
        # The papers' ball does not bind at the optimum (a ball of radius 10 has the same value), so
        # the peers, which know no ball, have the same problem.
        runs = [
            ours.best(x, y, shape.k, 1, **{**SETTINGS["ball"], "ridge": ridge})
            for _ in range(run.repeats(5, 3))
        ]
        search = statistics.median(r.search for r in runs)
        whole = statistics.median(r.whole for r in runs)
        support = list(runs[0].found[0][1])
        case = f"{shape}, ridge {ridge:g}"
        for peer in ("okridge", "abess"):
            with Caught("B10", f"{case}: {peer}", None, ours.TIME_LIMIT) as caught:
                theirs = peers.run(peer, sx, sy, shape.k, ridge, limit, run.peers_python)
                if "missing" in theirs:
                    caught.row = Row("B10", f"{case}: against {peer}", whole, against=peer,
                                     note=f"peer not installed ({theirs['missing']})")  # fmt: skip
                    yield caught.row
                    continue
                goal = 1 / 20 if peer == "okridge" else 3.0
                note = _agreement(theirs, support, limit, peer)
                yield Row("B10", f"{case}: from the data", whole, "s", theirs["whole"], peer, goal,
                          "ratio", note=note)  # fmt: skip
                caught.row = Row("B10", f"{case}: after X'X", search, "s", theirs["search"], peer,
                                 goal, "ratio")  # fmt: skip
            yield caught.row
        box = ours.best(x, y, shape.k, 1, **SETTINGS["box"])
        same = "the same support" if list(box.found[0][1]) == support else "another support"
        yield Row("B10", f"{case}: our box, ridge 0, after X'X", box.search, "s", box.read,
                  "our moments", note=f"certified, {same}; no peer has the box")  # fmt: skip


def _agreement(theirs: dict[str, Any], support: list[int], limit: float, peer: str) -> str:
    agree = "same support" if theirs["support"] == support else "ANOTHER SUPPORT"
    if peer == "okridge":
        proof = "certified" if theirs["certified"] else f"no proof in {limit:g} s, a lower bound"
        return f"{agree}, okridge: {proof} (gap {theirs['gap']:.1g}), {theirs['threads']}"
    same = "same support" if theirs["support_with_ridge"] == support else "another support"
    return f"{agree}, abess without ridge; with it {same}, {short(theirs['whole_with_ridge'])}"


def b11(run: Run) -> Iterator[Row]:
    """Many variables to select."""
    shape = Shape(20_000, 500, 20)
    x, y = shape.make()
    floor = bare_product(x, 5)
    for name, setting in SETTINGS.items():
        yield selected(
            "B11", f"{shape}, {name}, eps 1", x, y, shape.k, 1.0, setting, floor, 10.0,
            "measured", run.repeats(3), run.limit(10.0),
        )  # fmt: skip


def b12(run: Run) -> Iterator[Row]:
    """The optimum alone, against published formulations on outside solvers."""
    yield from solvers.rows("B12", run.repeats(5, 2), run.limit(60.0))


WARM = (Shape(1000, 100), Shape(1000, 1000))


def b17(run: Run, shapes: tuple[Shape, ...] = WARM) -> Iterator[Row]:
    """What defaults cost: a warm selection beside one in the papers' setting, by turns."""
    unit, limit, goal = Bounds(x=1.0, y=1.0), run.limit(1.0), 1.5
    tables = [(str(shape), *shape.make(), shape.k, WIDE, BOUNDS) for shape in shapes]
    x, y = real()["breast cancer"]
    tables.append((f"breast cancer (n {x.shape[0]}, p {x.shape[1]}), k 5", x, y, 5, unit, unit))
    for about, x, y, k, wide, known in tables:
        case = f"{about}, {DEFAULTS}, eps 1: warm select"
        with Caught("B17", case, goal, limit) as caught:
            mine: list[float] = []
            theirs: list[float] = []
            for _ in range(1 + run.repeats(41, 11)):
                for times, bounds, setting in (
                    (mine, wide, {}), (theirs, known, SETTINGS["box"])
                ):  # fmt: skip
                    start = time.perf_counter()
                    ours.select(x, y, k, 1.0, bounds, limit, **setting)
                    times.append(time.perf_counter() - start)
            # The first of each warms up.
            caught.row = Row(
                "B17", case, statistics.median(mine[1:]), "s", statistics.median(theirs[1:]),
                "no intercept, scale known", goal, "ratio",
                note=f"{len(mine) - 1} draws, slowest {short(max(mine[1:]))}",
            )  # fmt: skip
        yield caught.row


#: In the order of the table.
BARS: dict[str, Callable[[Run], Iterator[Row]]] = {
    "moments": moment_rows, "B1": b1, "B2": b2, "B3": b3, "B4": b4, "B5": b5, "B6": b6, "B7": b7,
    "B8": b8, "B9": b9, "B10": b10, "B11": b11, "B12": b12, "B13": losses.b13, "B14": losses.b14,
    "B15": losses.b15, "B16": losses.b16, "B17": b17, "B18": alike.b18, "B19": alike.b19,
    "B20": alike.b20, "B21": alike.b21,
}  # fmt: skip
