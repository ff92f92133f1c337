"""What defaults are chosen by: ``python -m benchmarks.real.sweep [--only PART] [--big]``.

Utility of the defaults on the tables of the split `choose`, and of settings that differ from one in
one thing: what is released of the response and what is made of it, the reach, the level of the
intercept, and for labels the loss. Prints mean and worst table, and writes sweep.csv. The last
third of the tables is not read.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import dpsubset as dps
from dpsubset.objective import problem
from dpsubset.schema.layout import STEPS

from . import __main__ as suite
from .settings import Asked

KS = (3, 5)
EPSILONS = (0.5, 1.0, 3.0)
DRAWS = 5

#: Seconds of a search after which its cell is empty: a sweep has to end.
LIMIT = 5.0

#: Slow tables, left out unless asked for.
BIG = ("ames", "loans_full_schema", "Caravan")


@dataclass(frozen=True)
class Tried:
    """What is said beside the defaults, and another level of the intercept, by k."""

    also: Mapping[str, Any] = field(default_factory=dict)
    level: Callable[[int], Fraction] | None = None

    def applied(self) -> AbstractContextManager[Any]:
        """Where the level is the one asked for."""
        level = self.level
        if level is None:
            return nullcontext()
        return mock.patch.object(
            problem, "intercept_constant", lambda k, labels: round(STEPS * min(level(k), 1))
        )


def scaled(scale: dps.ResponseRange) -> Tried:
    """A scale of the response, with its reach."""
    return Tried({"response_range": scale})


OUTER, QUARTILES = ("1/10", "9/10"), ("1/4", "3/4")


def clip(widening: str, shares: tuple[str, str] = OUTER) -> dps.QuantileRule:
    """Two quantiles, and a clip at so many half-distances."""
    return dps.QuantileRule(tuple(Fraction(share) for share in shares), Fraction(widening))


#: The rule for an epsilon n of some thousand, everywhere: the others differ from it in one thing.
START = dps.ResponseRange(clip("1/2"))
MEDIAN = dps.ResponseRange(dps.QuantileRule.median(least=1), Fraction(1, 20), Fraction(1))

NUMBERS: dict[str, Tried] = {
    "defaults: by epsilon n": Tried(),
    "defaults, level k / 18": Tried(level=lambda k: Fraction(k, 18)),
    "defaults, level 2 k / 9": Tried(level=lambda k: Fraction(2 * k, 9)),
    "defaults, no intercept": Tried({"intercept": False}),
    "declared bounds, reach 1": Tried({"response_range": "declared", "prediction_bound": 1}),
    "start": scaled(START),
    "median, 5 %, reach 1": scaled(MEDIAN),
    "median, 5 %, reach 1.25": scaled(replace(MEDIAN, prediction_bound=Fraction(5, 4))),
    "quartiles": scaled(replace(START, rule=clip("1/2", QUARTILES))),
    "quartiles, clip 1": scaled(replace(START, rule=clip("1", QUARTILES))),
    "clip 0.25": scaled(replace(START, rule=clip("1/4"))),
    "clip 0.75": scaled(replace(START, rule=clip("3/4"))),
    "clip 1": scaled(replace(START, rule=clip("1"))),
    "share 5 %": scaled(replace(START, budget_fraction=Fraction(1, 20))),
    "share 20 %": scaled(replace(START, budget_fraction=Fraction(1, 5))),
    "reach 1": scaled(replace(START, prediction_bound=Fraction(1))),
    "reach 1.5": scaled(replace(START, prediction_bound=Fraction(3, 2))),
}

LABELS: dict[str, Tried] = {
    "defaults": Tried(),
    "reach 1": Tried({"prediction_bound": 1}),
    "reach 1.5": Tried({"prediction_bound": 1.5}),
    "reach 2": Tried({"prediction_bound": 2}),
    "reach 3": Tried({"prediction_bound": 3}),
    "level 0.5": Tried(level=lambda k: Fraction(1, 2)),
    "no intercept": Tried({"intercept": False}),
    "hinge, reach 1": Tried({"loss": "hinge", "prediction_bound": 1}),
    "hinge, reach 2": Tried({"loss": "hinge", "prediction_bound": 2}),
    "logistic, reach 2": Tried({"loss": "logistic", "prediction_bound": 2}),
    "logistic, reach 3.5": Tried({"loss": "logistic", "prediction_bound": 3.5}),
}

#: Whether a part is of labels, and its settings by name.
PARTS: dict[str, tuple[bool, dict[str, Tried]]] = {
    "numbers": (False, NUMBERS),
    "labels": (True, LABELS),
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.real.sweep")
    parser.add_argument("--only", choices=PARTS, help="one part of the sweep")
    parser.add_argument("--settings", help="part of the names of those to run")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws in each cell")
    parser.add_argument("--limit", type=float, default=LIMIT, help="most seconds of a search")
    parser.add_argument("--big", action="store_true", help=f"with {', '.join(BIG)}: slow")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the file")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    suite.warm_up(["defaults"])
    with (options.out / "sweep.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["part", "tried", *asdict(suite.Line(""))])
        writer.writeheader()
        for part, (labels, settings) in PARTS.items():
            if options.only not in (None, part):
                continue
            tables = names(labels, options.big)
            at = ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
            print(f"{part}: {len(tables)} tables, {options.draws} draws; mean | worst at epsilon "
                  f"{at}, k = 3 and then 5")  # fmt: skip
            for label, tried in settings.items():
                if options.settings and options.settings not in label:
                    continue
                lines = measure(tables, tried, options.draws, options.limit)
                writer.writerows({"part": part, "tried": label, **asdict(x)} for x in lines)
                file.flush()  # what is measured is kept, whatever happens next
                print(f"  {label:26s}", shown(lines, len(tables)), flush=True)
    return 0


def names(labels: bool, big: bool) -> list[str]:
    """Tables to choose by."""
    return [
        row.name
        for row in suite.ROWS
        if row.split == "choose" and (row.labels is not None) == labels
        and (big or row.name not in BIG)
    ]  # fmt: skip


def measure(tables: Iterable[str], tried: Tried, draws: int, limit: float) -> list[suite.Line]:
    """All cells of one setting, a line each."""
    also = tried.also, tried.also
    cells = [Asked(k, epsilon, draws, limit, also) for k in KS for epsilon in EPSILONS]
    with tried.applied():
        return [line for name in tables for line in suite.measure(name, ["defaults"], cells)]


def shown(lines: list[suite.Line], tables: int) -> str:
    """Means and worst tables; behind a slash, of how many tables, where some are missing."""
    cells = []
    for k in KS:
        by_epsilon = [
            [x.utility for x in lines if (x.k, x.epsilon) == (k, e) and x.utility is not None]
            for e in EPSILONS
        ]
        for summary in (np.mean, np.min):
            cells.append(" ".join(
                f"{suite.short(float(summary(found))):>5s}" if found else "    -"
                for found in by_epsilon
            ))  # fmt: skip
        done = [len(found) for found in by_epsilon]
        if min(done) < tables:
            cells[-1] += f" / {', '.join(map(str, done))}"
    return "  |  ".join(cells)


if __name__ == "__main__":
    raise SystemExit(main())
