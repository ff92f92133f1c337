"""Columns of X'X on demand, with room for few: a dual ascent ends, and asks for few at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.layout import STEPS
from dpsubset.search.best import best_supports
from dpsubset.search.bounds.base import Node
from dpsubset.search.bounds.quadratic import QuadraticOracle
from dpsubset.search.engine import Engine, Limits, SearchLimitError
from dpsubset.search.region import Region
from dpsubset.search.tuning import Tuning


def digest_of(x: np.ndarray, y: np.ndarray) -> GramData:
    cells = np.rint(np.vstack([x, np.clip(y, -1, 1)]) * STEPS)
    return GramData.of_cells(np.asarray(cells, dtype=np.int16, order="C"), "test")


def engine_of(digest: GramData, problem: Problem, eta: float = 1e3) -> Engine:
    tuning = Tuning(whole=0, last_pick=0, listable=1)  # as where all columns together have no room
    unit = Sensitivity.of(problem).score_step
    return Engine(digest, problem, unit, eta, Limits(nodes=15), tuning=tuning)


@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_an_ascent_with_room_for_few_columns_ends(
    constraint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves in more columns than there is room for, and must not fetch them turn by turn."""
    fetch, ascend, asked = GramData.fetch, QuadraticOracle._ascend_once, 0

    def counted(self: GramData, features: Sequence[int]) -> None:
        nonlocal asked
        asked += 1
        assert asked < 100, "it fetches for ever"
        fetch(self, features)

    def anew(self: QuadraticOracle, bound: Node, rounds: int) -> float:
        nonlocal asked
        asked = 0
        return ascend(self, bound, rounds)

    monkeypatch.setattr(GramData, "fetch", counted)
    monkeypatch.setattr(QuadraticOracle, "_ascend_once", anew)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(200, 60))
        x /= np.abs(x).max()
        truth = rng.normal(size=200) * (rng.random(200) < 0.5)
        digest = digest_of(x, truth @ x / 3)
        digest.cache_bytes = int(rng.integers(5, 70)) * digest.p * 8
        problem = Problem.create(
            200,
            3,
            constraint=constraint,
            prediction_bound=float(rng.choice([0.3, 5.0])),
            intercept=False,
        )
        engine = engine_of(digest, problem, float(10 ** rng.uniform(-2, 3)))
        engine.bound_oracle.widen()
        with contextlib.suppress(SearchLimitError):
            best_supports(engine, 1)


@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_columns_that_are_the_same_are_not_all_asked_for(
    constraint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1500 that are equally far from where they should be, as many as move at a time."""
    fetch, together = GramData.fetch, [0]

    def noted(self: GramData, features: Sequence[int]) -> None:
        together.append(sum(self.slot[j] < 0 for j in set(features)))
        fetch(self, features)

    monkeypatch.setattr(GramData, "fetch", noted)
    rng = np.random.default_rng(0)
    base = rng.uniform(-1, 1, (3, 60))
    digest = digest_of(base[np.arange(1500) % 3], base[0] + base[1] - base[2])
    problem = Problem.create(1500, 5, constraint=constraint, intercept=False)
    engine = engine_of(digest, problem)
    bound = engine.bound_oracle.root(Region.whole(problem))
    # 3k + 16 movers, and so many that lead.
    assert 0 < max(together) <= 2 * (3 * 5 + 16)
    assert np.isfinite(bound.lower_bound)
