"""Mistake buckets with columns of X'X on demand: both pools get the columns they need."""

from __future__ import annotations

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.schema import Schema
from dpsubset.search.best import best_in_bucket
from dpsubset.search.engine import Engine

P = 60


@pytest.mark.parametrize("room", [30, 1000])
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_an_anchor_that_explains_nothing(constraint: str, room: int) -> None:
    """All gains of the anchor's pool lie below those of 40 others, whose columns come first."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, P))
    block = (x, np.clip(x[:, 5:45].sum(axis=1) / 6, -1, 1))
    schema = Schema.from_bounds({f"x{j}": (-1, 1) for j in range(P)}, ("y", -1, 1))
    problem = Problem.create(P, 4, constraint=constraint, intercept=False)
    unit = Sensitivity.of(problem).score_step
    lazy = GramData.from_records(schema, [block])
    lazy.cache_bytes = room * P * 8
    found = []
    for data in (lazy, Moments.from_blocks(schema, [block])):
        engine = Engine(data, problem, unit, 1e3)
        found.append([best_in_bucket(engine, (0, 1, 2, 3), m) for m in range(4)])
    assert found[0] == found[1]
