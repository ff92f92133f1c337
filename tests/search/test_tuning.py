"""A tuning reaches every part of a search, through an engine and through a mechanism's data."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsubset.base.errors import ArgumentError
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN, Data, Setting, mechanism
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.best import best_supports
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import enumerate_supports
from dpsubset.search.race import Race
from dpsubset.search.region import Region
from dpsubset.search.tuning import USUAL, Tuning
from support.gtest import g_test

P, K = 7, 3
#: Searches where 35 supports would be listed, as long as there is anything to split.
EAGER = Tuning(short=1, listable=1, last_pick=0, patience=0.0, warm_start_size=0)


@cache
def digest() -> GramData:
    rng = np.random.default_rng(0)
    cells = rng.integers(-STEPS, STEPS + 1, (P + 1, 80))
    cells[-1] = np.where(cells[0] + cells[3] // 2 + cells[-1] > 0, STEPS, -STEPS)
    return GramData.of_cells(cells.astype(np.int16), "test")


@pytest.mark.parametrize(
    "wrong",
    [
        {"short": 0}, {"short": -1}, {"listable": 0}, {"listable_records": 0}, {"working_set": 0},
        {"first_bits": 0}, {"last_pick": -1}, {"patience": float("nan")}, {"hard_after": (4, -1)},
    ],
    ids=str,
)  # fmt: skip
def test_values_with_which_a_search_would_not_end_are_refused(wrong: dict[str, Any]) -> None:
    """With short = 0 a region of one support was split again and again."""
    (name,) = wrong
    with pytest.raises(ArgumentError, match=f"{name} of a Tuning must be at least"):
        Tuning(**wrong)


@pytest.mark.parametrize("name", ["permute-and-flip", "exponential", "top-r", "penalised"])
def test_data_hands_it_to_the_engine_of_a_mechanism(name: str) -> None:
    problem = Problem.create(P, K, prediction_bound=2.0, intercept=False)
    options: dict[str, Any] = {"R": 4} if name == "top-r" else {}
    chosen, setting = mechanism(name, options), Setting.of(problem, 20)
    splits = []
    for tuning in (USUAL, EAGER):
        sampler = chosen.prepare(Data(digest(), tuning=tuning), setting)
        rng = Randomness(SeededSource(1))
        for _ in range(30):
            sampler.draw(rng)
        splits.append(sampler.diagnostics()["splits"])
    assert splits[0] == 0
    assert splits[1] > 0


@pytest.mark.parametrize("loss", ["least-squares", "logistic", "hinge", "huber"])
@pytest.mark.parametrize("name", PLAIN)
def test_it_decides_how_long_a_search_takes_and_not_what_it_finds(name: str, loss: str) -> None:
    problem = Problem.create(P, K, loss=loss, prediction_bound=2.0, intercept=False)
    setting = Setting.of(problem, 8)
    unit, eta = setting.sensitivity.score_step, PLAIN[name]().eta(setting)
    scored = enumerate_supports(digest(), problem, unit)
    supports = [scored.support(i) for i in range(len(scored))]
    ranking = sorted(zip(scored.scores.tolist(), supports, strict=True))
    for tuning in (USUAL, EAGER):
        engine = Engine(digest(), problem, unit, float(eta), tuning=tuning)
        assert best_supports(engine, 9) == ranking[:9]
        race, rng = PLAIN[name]().race(engine, eta), Randomness(SeededSource(2))
        assert isinstance(race, Race)
        counts = Counter(race.draw(rng) for _ in range(1000))
        assert g_test(counts, supports, PLAIN[name]().probabilities(scored, eta)) > 1e-6
        assert (engine.nodes > 0) is (tuning is EAGER)


@pytest.mark.parametrize("last_pick", [P - 1, P])
@pytest.mark.parametrize("last_pick_records", [P - 1, P])
@pytest.mark.parametrize("loss", ["least-squares", "logistic"])
def test_the_last_pick_is_closed_up_to_its_limits(
    loss: str, last_pick: int, last_pick_records: int
) -> None:
    """Up to the smaller of both where a score takes a pass over the records."""
    problem = Problem.create(P, 1, loss=loss, intercept=False)
    unit = Setting.of(problem, 1).sensitivity.score_step
    tuning = Tuning(last_pick=last_pick, last_pick_records=last_pick_records)
    bound_oracle = Engine(digest(), problem, unit, 1.0, tuning=tuning).bound_oracle
    limit = last_pick if loss == "least-squares" else min(last_pick, last_pick_records)
    assert (bound_oracle.root(Region.whole(problem)).exact_gains is not None) is (limit == P)
