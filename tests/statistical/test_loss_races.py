"""The race under losses of records against closed forms, on trees that really split."""

from __future__ import annotations

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN
from dpsubset.objective.problem import Problem
from support.races import agree_with_closed_form

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
    )
    agree_with_closed_form(name, problem, records(len(loss)), epsilon, DRAWS)
