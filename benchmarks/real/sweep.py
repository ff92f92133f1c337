"""What defaults are chosen by: ``python -m benchmarks.real.sweep [--only PART] [--big]``.

Mean and worst utility over the tables of the split `choose`, for settings of the response's scale,
the reach and the intercept, each varied around one. k = 3 and 5, epsilon 0.5, 1, 3 and no noise,
replace-one, permute-and-flip. The last third of the tables is not read. Prints, and writes
sweep.csv.
"""

from __future__ import annotations

import argparse
import csv
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpsubset.table.door import STEPS

from .prototype import Prepared, draws, judge, prepared, quantile, range_of, scores, supports
from .tables import ROWS, Floats

KS = (3, 5)
EPSILONS: tuple[float | None, ...] = (0.5, 1.0, 3.0, None)

#: Draws in a cell, and noisy scales among which they are divided.
DRAWS, SCALES = 120, 6

#: Slow tables, left out unless asked for.
BIG = ("ames", "loans_full_schema", "Caravan")


@dataclass(frozen=True)
class Setting:
    """What is spent on the response's scale, what is made of it, and the coefficient set.

    Attributes
    ----------
    shares : tuple of one or two numbers
        Which quantiles of the response are released. Labels need none.
    widening : float
        With two, the half-width in half-distances.
    least : float
        The least half-width, as a part of half the declared range. With one quantile it is the
        half-width; 0 is one step of the grid: all but ties are at -1 or 1.
    spent : float
        Of epsilon, for these quantiles.
    reach : float
        Of the intercept with k choices.
    part : float
        The intercept's, of the reach: v / (k + v).
    logistic : bool
        Whether the loss is logistic; it is least squares otherwise. For labels.
    """

    shares: tuple[float, ...] = (0.1, 0.9)
    widening: float = 0.5
    least: float = 0.0
    spent: float = 0.1
    reach: float = 1.25
    part: float = 0.1
    logistic: bool = False

    def v(self, k: int) -> float:
        """The constant value of the intercept's column; above 1 it takes several columns."""
        return self.part * k / (1 - self.part)

    def target(self, table: Prepared, epsilon: float | None, rng: np.random.Generator) -> Floats:
        """The response as it counts, in [-1, 1]."""
        if table.labels:
            return table.y / STEPS
        weight = None
        if epsilon is not None:
            weight = self.spent * epsilon / (2 * len(self.shares))
        found = [
            quantile(table.y, Fraction(share).limit_denominator(100), weight, rng)
            for share in self.shares
        ]
        low, high = min(found), max(found)
        width = max(1.0, self.least * STEPS, self.widening * (high - low) / 2)
        return np.clip((table.y - (low + high) / 2) / width, -1, 1)


NUMBERS, LABELS = Setting(), Setting(part=0.25)


#: A setting, or a public rule for it: of epsilon (None is no noise) and n.
Rule = Callable[[float | None, int], Setting]


def by_rows(epsilon: float | None, n: int) -> Setting:
    """The recommended rule for numbers.

    Tail quantiles have a rank error of about 440 / epsilon records at 10 % of epsilon: with few
    records they say nothing, and the median has to do. With many, more of a response's size is
    worth its sensitivity.
    """
    if epsilon is not None and epsilon * n < 2_000:
        return Setting(shares=(0.5,), spent=0.05, reach=1.0)
    if epsilon is not None and epsilon * n < 10_000:
        return NUMBERS
    return replace(NUMBERS, widening=0.75, reach=1.5)


def _around(start: Setting, **values: tuple[Any, ...]) -> dict[str, Setting]:
    """The start with one field changed at a time."""
    changed = {"start": start}
    for field, some in values.items():
        changed |= {f"{field} {value}": replace(start, **{field: value}) for value in some}
    return changed


#: For each part of the sweep, whether it is of labels, and its settings by name.
PARTS: dict[str, tuple[bool, Mapping[str, Setting | Rule]]] = {
    "rule": (False, {"by rows": by_rows}),
    "numbers": (False, _around(
        NUMBERS,
        shares=((0.05, 0.95), (0.08, 0.92), (0.12, 0.88), (0.15, 0.85), (0.2, 0.8), (0.25, 0.75)),
        widening=(0.1, 0.25, 0.75, 1.0, 1.5),
        spent=(0.05, 0.15, 0.2),
        reach=(0.5, 0.75, 1.0, 1.5, 2.0),
        part=(0.05, 0.15, 0.2, 0.25),
    )),
    "median": (False, _around(
        Setting(shares=(0.5,), spent=0.05, part=0.15),
        spent=(0.02, 0.03, 0.1),
        reach=(0.75, 1.0, 1.5, 2.0),
        part=(0.05, 0.1, 0.2, 0.3),
        least=(0.02, 0.05, 0.1, 0.2),
        shares=((0.6,), (0.7,), (0.8,)),
    )),
    "labels": (True, _around(
        LABELS, reach=(0.5, 1.0, 1.5, 2.0, 3.0), part=(0.1, 0.15, 0.4, 0.5, 0.6)
    )),
    "logistic": (True, _around(
        replace(LABELS, reach=3.5, logistic=True), reach=(1.0, 2.0, 3.0, 4.0, 5.0)
    )),
}  # fmt: skip


def utility(name: str, k: int, epsilon: float | None, asked: Setting | Rule) -> float:
    """Mean over draws, of which some share a noisy scale."""
    table, sets, judged = prepared(name), supports(name, k), judge(name, k)
    setting = asked if isinstance(asked, Setting) else asked(epsilon, table.n)
    # The same noise for each setting: differences are then less noisy than the figures.
    rng = np.random.default_rng(zlib.crc32(f"{name} {k} {epsilon}".encode()))
    v, spent = setting.v(k), 0.0 if table.labels else setting.spent
    repeats = 1 if epsilon is None or table.labels else SCALES
    eta = None
    if epsilon is not None:
        eta = epsilon * (1 - spent) / (2 * range_of(setting.reach, setting.logistic))
    found = []
    for _ in range(repeats):
        target = setting.target(table, epsilon, rng)
        score = scores(table, sets.sets, target, setting.reach / (k + v), v, setting.logistic)
        found.append(judged.utilities(draws(score, sets.weight, eta, DRAWS // repeats, rng)))
    return float(np.concatenate(found).mean())


def names(labels: bool, big: bool = True) -> list[str]:
    """Tables to choose by."""
    return [
        row.name
        for row in ROWS
        if row.split == "choose" and (row.labels is not None) == labels
        and (big or row.name not in BIG)
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.real.sweep")
    parser.add_argument("--only", choices=PARTS, help="one part of the sweep")
    parser.add_argument("--big", action="store_true", help=f"with {' and '.join(BIG)}: slow")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the file")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "sweep.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("part", "setting", "k", "epsilon", "table", "utility"))
        for part, (labels, settings) in PARTS.items():
            if options.only not in (None, part):
                continue
            tables = names(labels, options.big)
            at = ", ".join("no noise" if e is None else f"{e:g}" for e in EPSILONS)
            print(f"{part}: {len(tables)} tables; k = 3, then 5: mean | worst at epsilon {at}")
            for label, setting in settings.items():
                cells = []
                for k in KS:
                    by_epsilon = []
                    for epsilon in EPSILONS:
                        found = [utility(name, k, epsilon, setting) for name in tables]
                        by_epsilon.append(found)
                        writer.writerows(
                            (part, label, k, epsilon, name, value)
                            for name, value in zip(tables, found, strict=True)
                        )
                    cells += [" ".join(f"{np.mean(found):.2f}" for found in by_epsilon),
                              " ".join(f"{min(found):5.2f}" for found in by_epsilon)]  # fmt: skip
                file.flush()  # what is measured is kept, whatever happens next
                print(f"  {label:22s}", "  |  ".join(cells), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
