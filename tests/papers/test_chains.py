"""Traces of chains, and the step bound: Theorem 2 of Roy, Wang and Tewari 2024."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpsubset import ArgumentError, Bounds, best_subset, mixing_steps, traces_not_private
from dpsubset.papers.chains import f_scores

BOUNDS = Bounds(x=(-1, 1), y=(-1, 1))


def table(n: int = 300, p: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(n, p))
    y = 0.5 * x[:, 1] + 0.3 * x[:, 4] - 0.2 * x[:, 7] + rng.uniform(-0.02, 0.02, n)
    return x, np.clip(y, -1, 1)


def traces(**stated: Any) -> Any:
    x, y = table()
    stated = {"k": 3, "epsilon": 300, "steps": 2000, "seed": 1, **stated}
    return traces_not_private(
        x, y=y, bounds=BOUNDS, constraint="l1", radius=2.0, neighbours="add-remove", **stated
    )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_chains_find_the_signal(lazy: bool, intercept: bool) -> None:
    found = traces(chains=4, truth=[1, 4, 7], lazy=lazy, intercept=intercept)
    assert found.steps[0] == 0
    assert found.steps[-1] == 2000
    assert found.supports.shape == (4, 101, 3)
    assert found.f_truth.shape == found.f_best.shape == found.explained.shape == (4, 101)
    assert found.best == (1, 4, 7)
    np.testing.assert_array_equal(found.f_truth, found.f_best)
    assert (found.f_truth[:, -1] == 1).all()
    assert found.f_truth[:, 0].mean() < 1
    # Starts are independent, hence different.
    assert len({tuple(row) for row in found.supports[:, 0].tolist()}) > 1
    # The share of y that is explained, by projection.
    x, y = table()
    for one, i in ((0, 0), (2, 3), (3, 100)):
        columns = np.column_stack([x[:, found.supports[one, i]], np.full(len(x), intercept)])
        fitted = columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        assert found.explained[one, i] == pytest.approx(fitted @ fitted / (y @ y), abs=1e-3)


def test_each_step_exchanges_at_most_one_variable() -> None:
    found = traces(chains=2, steps=150, every=1, epsilon=1)
    assert list(found.steps) == list(range(151))
    for walk in found.supports.tolist():
        shared = [len(set(a) & set(b)) for a, b in pairwise(walk)]
        assert set(shared) == {2, 3}


def test_the_best_is_the_best_seen_unless_it_is_given() -> None:
    x, y = table()
    certified = best_subset(x, y=y, bounds=BOUNDS, k=3, constraint="l1", radius=2.0).support
    assert traces(best=certified, chains=1).best == certified == (1, 4, 7)
    short = traces(chains=1, steps=1, epsilon=1e-9)
    assert short.f_best.max() == 1  # of itself
    assert short.f_truth is None
    np.testing.assert_array_equal(short.steps, [0, 1])


def test_names_stand_for_columns_and_seeds_repeat() -> None:
    x, y = table()
    schema = BOUNDS.schema([f"v{j}" for j in range(12)], "y")
    found = traces_not_private(x, schema, y=y, k=3, epsilon=5, steps=50, chains=2, seed=4,
                               truth=["v1", "v4", "v7"])  # fmt: skip
    again = traces_not_private(x, schema, y=y, k=3, epsilon=5, steps=50, chains=2, seed=4,
                               truth=[1, 4, 7])  # fmt: skip
    np.testing.assert_array_equal(found.supports, again.supports)
    np.testing.assert_array_equal(found.f_truth, again.f_truth)


@pytest.mark.parametrize(
    "wrong",
    [
        {"chains": 0},
        {"steps": 0},
        {"every": 0},
        {"every": 2001},
        {"epsilon": 0},
        {"truth": []},
        {"truth": [12]},
        {"truth": [-1]},
        {"best": ["nobody"]},
        {"sensitivity": "none"},
    ],
)
def test_arguments_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        traces(**wrong)


def test_traces_do_not_print_themselves() -> None:
    assert "array" not in repr(traces(chains=1, steps=5))


def test_f_scores() -> None:
    supports = np.array([[[0, 1], [2, 3]], [[1, 2], [0, 3]]])
    np.testing.assert_allclose(f_scores(supports, [1, 2]), [[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(f_scores(supports, [1]), [[2 / 3, 0], [2 / 3, 0]])


STATED: dict[str, Any] = {
    "p": 2000, "k": 4, "n": 900, "epsilon": 3, "distance": 1e-6,
    "kappa_minus": 0.2, "kappa_plus": 0.5, "b_max": 1.5, "sigma": 0.1,
}  # fmt: skip


def test_the_bound_of_theorem_2() -> None:
    psi = (1 + 2.5 * 1.5 + 0.5) ** 2
    wanted = 2000 * 16 * (900 * 3 * 0.5 * 2.25 / psi + math.log(1e6))
    assert mixing_steps(**STATED) == math.ceil(wanted)
    assert mixing_steps(**STATED, constant=2.0) == math.ceil(2 * wanted)
    # More variables, larger sets, more rows, a nearer target: more steps.
    for name, more in (("p", 2001), ("k", 5), ("n", 901), ("epsilon", 3.1), ("distance", 1e-7)):
        assert mixing_steps(**{**STATED, name: more}) > mixing_steps(**STATED)


@pytest.mark.parametrize(
    "wrong",
    [{"p": 0}, {"n": 2.5}, {"distance": 0}, {"kappa_plus": 0.1}, {"sigma": -1}, {"b_max": "x"}],
)
def test_the_bound_refuses_nonsense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        mixing_steps(**{**STATED, **wrong})
