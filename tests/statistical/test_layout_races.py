"""The race with an intercept, levels and groups against closed forms, on trees that split."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.mechanisms import PLAIN, Data, Setting
from dpsubset.mechanisms.published.metropolis import Metropolis
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.schema.layout import STEPS, Layout
from support.gtest import LEVEL, g_test, miss
from support.races import agree_with_closed_form

pytestmark = pytest.mark.statistical

DRAWS = 12_000

#: A number, three levels, a number with an indicator, a number, a group of four, two numbers, a
#: group of a number and three levels.
LAYOUT = Layout.of([1, 3, 2, 1, 4, 1, 1, 4], [1, 1, 1, 1, 4, 1, 1, 2])


def records(problem: Problem, seed: int) -> GramData:
    rng, n = np.random.default_rng(seed), 160
    x = rng.uniform(-1, 1, (n, 12))
    x[:, 4] = -x[:, 3]  # ties
    level, other = (rng.integers(-1, 3, n) for _ in range(2))
    gone = rng.random(n) < 0.2
    columns = [
        x[:, 0],
        *(np.where(level == i, 1.0, 0.0) for i in range(3)),
        np.where(gone, 0.0, x[:, 1]),
        np.where(gone, 1.0, 0.0),
        x[:, 2],
        *x[:, 3:7].T,
        x[:, 7],
        (x[:, 0] + x[:, 7]) / 2,
        x[:, 8],
        *(np.where(other == i, 1.0, 0.0) for i in range(3)),
        np.full(n, float(problem.layout.intercept_value)),
    ]
    y = 0.5 * x[:, 0] + 0.8 * (level == 1) + 0.4 * x[:, 3] + 0.5 * rng.normal(size=n)
    y = np.where(y > -0.2, 1.0, -1.0)
    cells = np.rint(np.column_stack([*columns, y]).T * STEPS)
    return GramData.of_cells(np.asarray(cells, dtype=np.int16, order="C"), "test")


def state(loss: str, constraint: str) -> Problem:
    return Problem.create(8, 3, loss=loss, constraint=constraint, ridge=float(constraint == "ball"),
                         intercept=True, layout=LAYOUT,
                         always_include=[6] if constraint == "ball" else [])  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(
    ("loss", "constraint", "epsilon"),
    [
        ("least-squares", "box", "6"),
        ("logistic", "ball", "6"),
        ("hinge", "l1", "4"),
        ("huber", "ball", "3"),
    ],
)
def test_the_race_agrees_with_the_closed_form(
    name: str, loss: str, constraint: str, epsilon: str
) -> None:
    problem = state(loss, constraint)
    agree_with_closed_form(name, problem, records(problem, len(loss)), epsilon, DRAWS)


@pytest.mark.parametrize("lazy", [False, True])
def test_the_walk_agrees_with_its_transition_matrix(lazy: bool) -> None:
    problem = state("least-squares", "box")
    walk = Metropolis(steps=25, lazy=lazy)
    setting = Setting.of(problem, 40, Fraction(1, 100))
    data = Data(records(problem, 5))
    found = walk.outcomes(data, setting)
    assert found is not None
    sampler, rng = walk.prepare(data, setting), Randomness(SystemSource())
    counts = Counter(sampler.draw(rng) for _ in range(DRAWS))
    right = np.exp(found[1])
    assert g_test(counts, found[0], right) >= LEVEL
    other = Metropolis(steps=12, lazy=lazy).outcomes(data, setting)
    assert other is not None
    wrong = np.exp(other[1])
    assert miss(right, wrong, DRAWS) < LEVEL
    assert g_test(counts, other[0], wrong) < LEVEL
