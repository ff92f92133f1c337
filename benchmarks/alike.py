"""Tables whose columns are alike: the bars of collinear designs, of the l1 ball, of many picks.

A cell is a design, k, epsilon, a constraint and a mechanism, with several draws from scratch. One
row sums up the cells of a design under one constraint and mechanism: the slowest of their medians,
beside X'X in float64. The last rows judge all cells together.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.signal import lfilter
from sklearn.preprocessing import PolynomialFeatures

import dpsubset as dps
from dpsubset import Bounds, SearchLimitError
from dpsubset.schema.column import Column

from . import ours
from .data import PUBLISHED, SNR, Floats, Shape
from .rows import Row, bare_product, clock
from .runs import PRODUCT, Caught, Run, short

#: Columns have variance 1; few of them reach beyond.
UNITS = Bounds(x=2.0, y=2.0)

Rng = np.random.Generator


def genotypes(n: int, rng: Rng) -> Floats:
    """0, 1 or 2 copies of an allele; within a block of 20, neighbours are inherited together."""
    blocks = []
    for _ in range(100):
        cut = rng.normal(0.5, 0.4, 20)
        blocks.append(sum((_chain(n, 20, 0.95, rng) > cut).astype(float) for _ in range(2)))
    return _standard(np.hstack(blocks))


def near_duplicates(n: int, rng: Rng) -> Floats:
    """50 variables, each measured ten times with an error of a tenth."""
    return _standard(
        np.repeat(rng.normal(size=(n, 50)), 10, axis=1) + rng.normal(size=(n, 500)) / 10
    )


def one_hot(n: int, rng: Rng) -> Floats:
    """40 categories of 8 levels, a column a level."""
    levels = [rng.choice(8, n, p=rng.dirichlet(np.full(8, 2.0))) for _ in range(40)]
    return _standard(np.hstack([np.eye(8)[level] for level in levels]))


def trends(n: int, rng: Rng) -> Floats:
    """200 random walks."""
    return _standard(np.cumsum(rng.normal(size=(n, 200)), axis=0))


def polynomials(n: int, rng: Rng, p: int, degree: int) -> Floats:
    """All products of so many variables up to a degree."""
    made = PolynomialFeatures(degree, include_bias=False).fit_transform(rng.uniform(-1, 1, (n, p)))
    return _standard(np.asarray(made))


def _chain(n: int, p: int, rho: float, rng: Rng) -> Floats:
    x = rng.normal(size=(n, p))
    x[:, 1:] *= math.sqrt(1.0 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], x, axis=1))


def _standard(x: Floats) -> Floats:
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


DESIGNS: dict[str, Callable[[int, Rng], Floats]] = {
    "SNP blocks": genotypes,
    "near-duplicates": near_duplicates,
    "one-hot": one_hot,
    "AR 0.99": lambda n, rng: _chain(n, 300, 0.99, rng),
    "trends": trends,
    "AR 0.9": lambda n, rng: _chain(n, 1000, 0.9, rng),
    "degree 2": lambda n, rng: polynomials(n, rng, 20, 2),
    "degree 3": lambda n, rng: polynomials(n, rng, 10, 3),
}
ROWS = 2000


def table(design: str, k: int, n: int = ROWS, seed: int = 0) -> tuple[Floats, Floats]:
    """A design, and a response from k of its columns with weights of either sign."""
    rng = np.random.default_rng(seed)
    x = DESIGNS[design](n, rng)
    active = rng.choice(x.shape[1], k, replace=False)
    signal = x[:, active] @ (rng.uniform(0.5, 1.0, k) * rng.choice([-1.0, 1.0], k))
    y = signal + math.sqrt(float(signal.var()) / SNR) * rng.normal(size=n)
    return x, (y - y.mean()) / y.std()


#: Both mechanisms; the papers' setting, and once the defaults with their intercept and scale.
MECHANISMS = ("permute-and-flip", "exponential")
LIMIT = 20.0


def b18(run: Run) -> Iterator[Row]:
    """Draws on collinear tables."""
    sizes, epsilons = ((5, 20), (1.0, 10.0)) if run.quick else ((5, 10, 20), (1.0, 3.0, 10.0))
    medians: list[float] = []
    slowest: list[tuple[float, str]] = []
    for design in DESIGNS:
        tables = {k: table(design, k) for k in sizes}
        floor = bare_product(tables[sizes[0]][0])
        settings = [
            (f"{constraint}, {mechanism}",
             {**PUBLISHED, "constraint": constraint, "mechanism": mechanism})
            for constraint, mechanism in itertools.product(("box", "ball"), MECHANISMS)
        ]  # fmt: skip
        for name, setting in [*settings, ("defaults", {})]:
            cells = {
                (k, epsilon): _seconds(
                    partial(ours.select, *tables[k], k, epsilon, UNITS, LIMIT, **setting),
                    run.repeats(5, 1),
                )
                for k, epsilon in itertools.product(sizes, epsilons)
            }
            each = {cell: statistics.median(times) for cell, times in cells.items()}
            (k, epsilon), worst = max(each.items(), key=lambda cell: cell[1])
            good = sum(median <= 1.0 for median in each.values())
            longest = max(max(times) for times in cells.values())
            if name != "defaults":
                medians += each.values()
                slowest += [
                    (max(times), f"{design}, {name}, k {k}, eps {epsilon:g}")
                    for (k, epsilon), times in cells.items()
                    if not (design == "SNP blocks" and k == 20)
                ]
            yield Row(
                "B18", f"{design} (p {tables[k][0].shape[1]:,}), {name}: slowest cell", worst, "s",
                floor, PRODUCT,
                note=f"k {k}, eps {epsilon:g}; {good} of {len(each)} cells <= 1 s, slowest draw "
                f"{_shown(longest)}",
            )  # fmt: skip
    late = sum(median > 1.0 for median in medians) / len(medians)
    yield Row("B18", "share of cells with a median above 1 s, defaults apart", late, "", None, "",
              0.05, note=f"{len(medians)} cells")  # fmt: skip
    longest, where = max(slowest)
    yield Row("B18", "slowest draw, SNP blocks with k 20 apart", longest, "s", None, "", 10.0,
              note=where)  # fmt: skip


def _seconds(job: Callable[[], Any], repeats: int) -> list[float]:
    """Of several selections from scratch; one that does not end counts as its limit."""
    times = []
    for _ in range(repeats):
        try:
            times.append(clock(job)[0])
        except SearchLimitError:
            times.append(LIMIT)
    return times


def _shown(seconds: float) -> str:
    return f"not finished after {LIMIT:g} s" if seconds >= LIMIT else short(seconds)


def b19(run: Run) -> Iterator[Row]:
    """The l1 ball of Roy, Wang and Tewari 2024: uniform columns, s = 4, K as in their Table 2."""
    shapes = ((900, 2000), (1000, 1000), (3000, 1000), (3000, 2000))
    for n, p in shapes[:2] if run.quick else shapes:
        for signal in ("strong", "weak"):
            x, y = uniform_design(n, p, strong=signal == "strong")
            most = float(np.abs(y).max())
            floor = bare_product(x)
            for size in (0.5, 2.0, 3.0, 3.5):
                case = f"n {n:,}, p {p:,}, {signal} signal, K {size:g}"
                setting = {**PUBLISHED, "constraint": "l1", "radius": size / most,
                           "neighbours": "add-remove", "mechanism": "exponential"}  # fmt: skip
                bounds, epsilons = Bounds(x=1.0, y=most), (0.5, 1.0, 3.0, 5.0, 10.0)
                times = [
                    _seconds(partial(ours.select, x, y, 4, epsilon, bounds, LIMIT, **setting), 1)[0]
                    for epsilon in epsilons
                ]
                yield Row(
                    "B19", case, statistics.median(times), "s", floor, PRODUCT, 1.0,
                    note=f"median over {len(times)} epsilons, slowest {_shown(max(times))}",
                )  # fmt: skip


def uniform_design(n: int, p: int, *, strong: bool, seed: int = 0) -> tuple[Floats, Floats]:
    """Columns uniform on [-1, 1], four active ones, noise with a variance of 0.1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, p))
    # Twice the detection boundary sqrt(log p / n), or little more than that.
    size = (4.0 if strong else 1.5) * math.sqrt(math.log(p) / n)
    y = x[:, :4] @ (size * rng.choice([-1.0, 1.0], 4)) + math.sqrt(0.1) * rng.normal(size=n)
    return x, y


def b20(run: Run) -> Iterator[Row]:
    """Many picks among independent columns."""
    for k, goal in ((20, 1.0), (50, 10.0)):
        shape = Shape(20_000, 1000, k, rho=0.0)
        x, y = shape.make()
        floor = bare_product(x, 1)
        for constraint in ("box", "ball"):
            setting = {**PUBLISHED, "constraint": constraint}
            case = f"{shape}, {constraint}, eps 1: after reading"
            with Caught("B20", case, goal, LIMIT) as caught:
                runs = [ours.cold_draw(x, y, k, 1.0, LIMIT, **setting)
                        for _ in range(run.repeats(3))]  # fmt: skip
                caught.row = Row(
                    "B20", case, statistics.median(r.search for r in runs), "s", floor, PRODUCT,
                    goal, note=f"{runs[0].splits:,} splits",
                )  # fmt: skip
            yield caught.row


#: Categories, levels of each, and numbers beside them, each as correlated with the next as ALIKE.
CATEGORIES, LEVELS, NUMBERS, ALIKE = 40, 8, 40, 0.9


def b21(run: Run) -> Iterator[Row]:
    """Categories that are picked as a whole, beside numbers that are alike; with an intercept."""
    for k in (5, 10, 20):
        data, schema = categories(k)
        floor = bare_product(_columns(data, schema))
        for constraint, mechanism in itertools.product(("box", "ball"), MECHANISMS):
            asked = {"constraint": constraint, "mechanism": mechanism, "time_limit": LIMIT,
                     "response_range": "declared"}  # fmt: skip
            times = [
                statistics.median(
                    _seconds(
                        partial(dps.select, data, schema, k=k, epsilon=epsilon, **asked),
                        run.repeats(5, 1),
                    )
                )
                for epsilon in (1.0, 3.0, 10.0)
            ]
            yield Row(
                "B21", f"{CATEGORIES} categories of {LEVELS} levels and {NUMBERS} numbers, k {k}, "
                f"{constraint}, {mechanism}", max(times), "s", floor, PRODUCT, 1.0,
                note="slowest of the medians at epsilon 1, 3 and 10",
            )  # fmt: skip


def categories(k: int, n: int = ROWS, seed: int = 0) -> tuple[pa.Table, dps.Schema]:
    """A table whose response follows k of its categories and numbers, and its schema."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(LEVELS, n, p=rng.dirichlet(np.full(LEVELS, 2.0)))
             for _ in range(CATEGORIES)]  # fmt: skip
    x = _chain(n, NUMBERS, ALIKE, rng)
    of_levels = sum(rng.normal(size=LEVELS)[codes[j]]
                    for j in rng.choice(CATEGORIES, k // 2, replace=False))  # fmt: skip
    active = rng.choice(NUMBERS, k - k // 2, replace=False)
    signal = of_levels + x[:, active] @ rng.uniform(0.5, 1.0, len(active))
    y = signal + math.sqrt(float(signal.var()) / SNR) * rng.normal(size=n)
    columns = {f"c{j}": code for j, code in enumerate(codes)}
    columns |= {f"x{j}": x[:, j] for j in range(NUMBERS)}
    described = (
        *(Column(f"c{j}", levels=tuple(range(LEVELS))) for j in range(CATEGORIES)),
        *(Column(f"x{j}", -2, 2) for j in range(NUMBERS)),
    )
    data = pa.table({**columns, "y": (y - y.mean()) / y.std()})
    return data, dps.Schema(described, Column("y", -2, 2))


def _columns(data: pa.Table, schema: dps.Schema) -> Floats:
    """A column a level, for the floor."""
    parts = [
        np.eye(LEVELS)[column] if feature.levels else column[:, None]
        for feature in schema.features
        for column in [data[feature.name].to_numpy()]
    ]
    return np.hstack(parts)
