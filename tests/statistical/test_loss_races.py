"""The race under losses of records against closed forms, on trees that really split."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN, Setting
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import enumerate_supports
from support.gtest import LEVEL, g_test, miss
from support.races import SEARCHING

pytestmark = pytest.mark.statistical

DRAWS = 12_000


def records(seed: int) -> GramData:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (160, 8))
    x[:, 4] = -x[:, 1]  # ties
    x[:, 5] = (x[:, 0] + x[:, 2]) / 2
    y = np.where(x[:, 0] + 0.6 * x[:, 1] + 0.5 * rng.normal(size=160) > 0, 1.0, -1.0)
    cells = np.rint(np.column_stack([x, y]).T * STEPS)
    return GramData.of_cells(np.asarray(cells, dtype=np.int16, order="C"), "test")


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
@pytest.mark.parametrize(
    ("constraint", "prediction_bound", "ridge", "epsilon"),
    [("box", 2.0, 0.0, "3"), ("ball", 3.0, 2.0, "3"), ("l1", 1.5, 0.0, "0.4")],
)
def test_the_race_agrees_with_the_closed_form(
    name: str,
    loss: str,
    constraint: str,
    prediction_bound: float,
    ridge: float,
    epsilon: str,
) -> None:
    problem = Problem.create(
        8,
        3,
        loss=loss,
        constraint=constraint,
        prediction_bound=prediction_bound,
        ridge=ridge,
        always_include=[6] if constraint == "ball" else [],
        intercept=False,
    )
    mechanism, setting = PLAIN[name](), Setting.of(problem, epsilon)
    digest, unit = records(len(loss)), setting.sensitivity.score_step
    eta = mechanism.eta(setting)
    scored = enumerate_supports(digest, problem, unit)
    supports = [scored.support(i) for i in range(len(scored))]
    engine = Engine(digest, problem, unit, float(eta), tuning=SEARCHING)
    rng = Randomness(SystemSource())
    sampler = mechanism.race(engine, eta)
    counts = Counter(sampler.draw(rng) for _ in range(DRAWS))
    assert engine.nodes > 0
    assert g_test(counts, supports, mechanism.probabilities(scored, eta)) >= LEVEL
    # With power: half as much again of eta is told apart.
    wrong = mechanism.probabilities(scored, eta * Fraction(3, 2))
    assert miss(mechanism.probabilities(scored, eta), wrong, DRAWS) < LEVEL
    assert g_test(counts, supports, wrong) < LEVEL
