"""The project's side of a measurement: select, the stages of a draw, the R best."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpsubset as dps
from dpsubset.api.problem_spec import build_problem_spec
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import Data, Sampler, Setting
from dpsubset.mechanisms.permute_and_flip import PermuteAndFlip
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.best import best_in_bucket, best_supports
from dpsubset.search.engine import Engine, Limits

from .data import BOUNDS, PUBLISHED, SETTINGS, WIDE, Shape

#: Seconds after which a search counts as not finished.
TIME_LIMIT = 60.0

#: Bounds that care about nothing but the optimum.
_OPTIMUM = 1e9

Ranked = list[tuple[int, tuple[int, ...]]]


def select(
    x: np.ndarray, y: np.ndarray, k: int, epsilon: float = 1.0, bounds: dps.Bounds = BOUNDS,
    limit: float = TIME_LIMIT, **setting: Any,
) -> tuple[int, ...]:  # fmt: skip
    """A whole private selection from an array."""
    release = dps.select(
        x, y=y, bounds=bounds, k=k, epsilon=epsilon, time_limit=limit, ledger=False, **setting
    )
    return tuple(release.support)


def read(
    x: np.ndarray, y: np.ndarray, k: int, *, response_range: str = "declared", **setting: Any
) -> tuple[GramData, Problem]:
    """What select makes of its arguments, and of the table where its scale is known."""
    assert response_range == "declared"
    stated = build_problem_spec(x, y=y, bounds=BOUNDS, k=k, **setting)
    table = SensitiveTable(x, stated.schema, y, records_for=stated.records_for)
    return table.read(stated.problem), stated.problem


def sampler(
    digest: GramData, problem: Any, epsilon: float, limit: float = TIME_LIMIT
) -> tuple[Engine, Sampler]:
    """The engine and the race that select and simulate use."""
    setting = Setting.of(problem, epsilon)
    chosen = PermuteAndFlip()
    eta = chosen.eta(setting)
    engine = Data(digest, Limits(seconds=limit)).engine(setting, eta)
    return engine, chosen.race(engine, eta)


def randomness() -> Randomness:
    """What an unseeded draw uses."""
    return Randomness(SystemSource())


@dataclass(frozen=True)
class Staged:
    """Seconds of reading and of searching, and what was found."""

    read: float
    search: float
    splits: int
    found: Ranked

    @property
    def whole(self) -> float:
        """Reading and searching."""
        return self.read + self.search


def cold_draw(
    x: np.ndarray, y: np.ndarray, k: int, epsilon: float, limit: float, **setting: Any
) -> Staged:
    """One private draw from scratch, in stages."""
    start = time.perf_counter()
    digest, problem = read(x, y, k, **setting)
    middle = time.perf_counter()
    engine, race = sampler(digest, problem, epsilon, limit)
    support = race.draw(randomness())
    end = time.perf_counter()
    return Staged(middle - start, end - middle, engine.nodes, [(0, support)])


def draws(
    x: np.ndarray, y: np.ndarray, k: int, epsilon: float, count: int, limit: float, **setting: Any
) -> list[tuple[int, ...]]:
    """What several draws on one table select; they share their work."""
    digest, problem = read(x, y, k, **setting)
    _, race = sampler(digest, problem, epsilon, limit)
    rng = randomness()
    return [tuple(race.draw(rng) or ()) for _ in range(count)]


def best(
    x: np.ndarray, y: np.ndarray, k: int, count: int, limit: float = TIME_LIMIT, **setting: Any
) -> Staged:
    """The R best supports, certified, in stages."""
    return _searched(lambda engine: best_supports(engine, count), x, y, k, limit, setting)


def buckets(
    x: np.ndarray, y: np.ndarray, k: int, limit: float = TIME_LIMIT, **setting: Any
) -> Staged:
    """The optimum and the best support of each bucket of mistakes around it, in stages."""

    def all_of(engine: Engine) -> Ranked:
        anchor = best_supports(engine, 1)[0][1]
        found = (best_in_bucket(engine, anchor, mistakes) for mistakes in range(k + 1))
        return [ranked for ranked in found if ranked is not None]

    return _searched(all_of, x, y, k, limit, setting)


def _searched(
    search: Callable[[Engine], Ranked], x: np.ndarray, y: np.ndarray, k: int, limit: float,
    setting: dict[str, Any],
) -> Staged:  # fmt: skip
    start = time.perf_counter()
    digest, problem = read(x, y, k, **setting)
    middle = time.perf_counter()
    unit = Sensitivity.of(problem).score_step
    engine = Engine(digest, problem, unit, _OPTIMUM, Limits(seconds=limit))
    found = search(engine)
    end = time.perf_counter()
    return Staged(middle - start, end - middle, engine.nodes, found)


def warm_up() -> None:
    """Have numba compile, or load, what the bars use, and BLAS take its buffers."""
    for p in (40, 1600):  # the Gram matrix whole, and by columns on demand
        x, y = Shape(400, p, k=3).make()
        settings = [*SETTINGS.values(), {**PUBLISHED, "constraint": "ball", "radius": 1.1}]
        if p == 40:  # these have no Gram matrix
            settings += [{**PUBLISHED, "loss": "hinge"}, {**PUBLISHED, "loss": "logistic"}]
        for setting in settings:
            best(x, y, 3, 3, **setting)
            for epsilon in (1.0, 100.0):
                select(x, y, 3, epsilon, **setting)
        for epsilon in (1.0, 100.0):
            select(x, y, 3, epsilon, WIDE)
    x, y = Shape(200, 60, k=6, rho=0.9).make()  # hard ones
    for setting in settings[:2]:
        select(x, y, 6, 1000.0, **{**setting, "ridge": 0.0})
