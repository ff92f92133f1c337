"""Coefficients by noisy hard thresholding: against closed forms, audited with a twin."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.audit.exact import random_pairs, worst_case_pairs
from dpsubset.mechanisms import Setting
from dpsubset.mechanisms.published.hard_thresholding import HardThresholding
from dpsubset.mechanisms.shared.gradient import Gradient
from dpsubset.mechanisms.shared.rounds import Rounds
from dpsubset.objective.problem import Problem
from dpsubset.papers.sparse_regression import INTERCEPT, Descent, ReleasedRounds

EPSILON = Fraction(1)


def table(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-1, 1, (n, 6)), columns=[f"v{j}" for j in range(6)])
    frame["v1"] = 50 + 40 * frame["v1"]
    frame["y"] = 3 + 0.05 * frame["v1"] - 2 * frame["v4"] + rng.normal(0, 0.1, n)
    return frame


SCHEMA = dps.Schema.from_bounds(
    {f"v{j}": (0, 100) if j == 1 else (-1, 1) for j in range(6)}, ("y", -5, 15)
)


def test_without_noise_it_is_least_squares_on_the_right_columns() -> None:
    frame = table()
    found = dps.sparse_regression(
        frame, SCHEMA, k=2, epsilon=10**6, iterations=60, step=1.5, radius=1
    )
    assert sorted(found.picked or ()) == [1, 4]
    design = np.column_stack([frame["v1"], frame["v4"], np.ones(len(frame))])
    expected = np.linalg.lstsq(design, frame["y"], rcond=None)[0]
    by_name = dict(zip(found.names, found.values, strict=True))
    got = [by_name["v1"], by_name["v4"], by_name[INTERCEPT]]
    assert got == pytest.approx(expected, abs=0.05)
    assert by_name["v0"] == 0


@pytest.mark.parametrize("delta", [0, 1e-5])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_guarantees_are_those_that_were_asked_for(neighbours: Any, delta: float) -> None:
    rows = 4000 if neighbours == "add-remove" else None
    found = dps.sparse_regression(
        table(), SCHEMA, k=2, epsilon=2, delta=delta, neighbours=neighbours, rows=rows, iterations=9
    )
    g = found.guarantee
    assert g.private
    assert g.epsilon is not None
    assert Fraction(199, 100) < g.epsilon <= 2
    # The number of rows scales the steps, unless a guess was given.
    assert len(g.costs) == (1 if rows is None else 2)
    assert all(d > 0 for j, d in enumerate(found.deviations[:6]) if j in (found.picked or ()))


def worst(descent: Descent, rounds: Rounds, problem: Problem) -> float:
    """One round: log ratios of picks and of values add up, as values are noise on what was picked.

    Orders are summed over, so that this is no more than what the draws tell.
    """
    mechanism, setting = descent.mechanism, descent.setting
    found = 0.0
    rng = np.random.default_rng(1)
    for pair in [*worst_case_pairs(problem, 200), *random_pairs(problem, 30, rng)]:
        targets = [
            mechanism.targets(
                Gradient(data.gram, Fraction(problem.radius), problem.ridge), setting, {}
            )
            for data in pair.data(mechanism)
        ]
        change = mechanism.sensitivity(setting, {})
        scale = float(rounds.value_scale(problem.k, change))
        picks = rounds.pick_scale(problem.k, change)
        logs = [rounds.log_sets([abs(t) for t in each], problem.k, picks) for each in targets]
        for chosen, log in logs[0].items():
            values = sum(abs(targets[0][j] - targets[1][j]) for j in chosen) / scale
            found = max(found, abs(log - logs[1][chosen]) + values)
    return found


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_neighbours_contradict_a_round(neighbours: Any) -> None:
    problem = Problem.create(5, 2, prediction_bound=1.0, neighbours=neighbours)
    setting = Setting.of(problem, EPSILON)
    descent = Descent(HardThresholding(iterations=1, rows=100), setting)
    rounds = descent.rounds
    assert rounds.total == EPSILON
    found = worst(descent, rounds, problem)
    assert 0.45 * float(EPSILON) < found <= float(EPSILON) + 1e-9
    # Who pays for picks alone, and releases values at the same price again, is caught.
    unpaid = ReleasedRounds("pure", 1, EPSILON, EPSILON)
    assert unpaid.total == 2 * EPSILON
    assert worst(descent, unpaid, problem) > 0.9 * found * 2


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows_give_an_answer(n: int) -> None:
    found = dps.sparse_regression(table(n), SCHEMA, k=2, epsilon=1)
    assert len(found.picked or ()) == 2
    assert np.isfinite(found.array).all()


def test_without_an_intercept_there_is_none() -> None:
    found = dps.sparse_regression(table(), SCHEMA, k=1, epsilon=1, intercept=False)
    assert INTERCEPT not in found.names
    assert len(found.deviations) == len(found.values) == 6


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"a": {"levels": ["x", "y"]}}, "numbers"),
        ({"a": {"lo": 1, "hi": 9, "transform": "log"}}, "numbers"),
        ({"a": {"lo": 1, "hi": 9, "group": "g"}}, "numbers"),
    ],
)
def test_columns_must_be_numbers(columns: dict[str, Any], match: str) -> None:
    schema = dps.Schema.from_bounds(columns, ("y", 0, 1))
    frame = pd.DataFrame({"a": [1.0], "y": [1.0]})
    with pytest.raises(dps.ArgumentError, match=match):
        dps.sparse_regression(frame, schema, k=1, epsilon=1)
