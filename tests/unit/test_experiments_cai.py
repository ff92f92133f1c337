"""The tables and methods of the experiments on Cai, Wang and Zhang 2021."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import cai, cai_comparisons


def test_every_method_of_every_problem_gives_numbers():
    for problem, methods in cai.METHODS.items():
        d = 160 if problem in cai.SPARSE else cai.LOW_D
        trial = {"problem": problem, "n": 80, "d": d, "seed": 0}
        lines = cai_comparisons.measure(trial)
        assert [line["method"] for line in lines] == list(methods)
        assert all(np.isfinite(line["error"]) for line in lines)


def test_competitors_come_to_the_truth_without_noise():
    """At an enormous epsilon, on many rows: else a comparison would flatter ours."""
    rng = np.random.default_rng(0)
    for problem, names in {
        "mean": ("ours", "published", "noisy gradient"),
        "regression": ("noisy-moments", "objective-perturbation", "published", "gaussian-ols",
                       "noisy gradient"),
    }.items():  # fmt: skip
        table = cai.make(problem, 4000, 20, seed=0, epsilon=1e5)
        plain = cai.METHODS[problem]["not private"](table, rng)
        for name in names:
            error = float(np.linalg.norm(cai.METHODS[problem][name](table, rng) - plain))
            # What is clipped, or left after ten gradient steps; the truth is sqrt(20) away from 0.
            least = 0.5 if (problem, name) == ("regression", "noisy gradient") else 0.1
            assert error < least, f"{problem}, {name}: {error}"


def test_sparse_methods_come_to_the_truth_without_noise():
    rng = np.random.default_rng(0)
    means = cai.make("sparse mean", 2000, 100, seed=0, epsilon=1e5)
    for name in ("ours", "published", "not private"):
        assert cai.error(means, cai.METHODS["sparse mean"][name](means, rng)) < 0.3
    table = cai.make("sparse regression", 2000, 100, seed=0, epsilon=1e5)
    plain = cai.METHODS["sparse regression"]["not private"](table, rng)
    assert cai.error(table, plain) < 0.3
    # Few rounds of steps with a mean that was not taken off: on the way there, no more.
    for name in ("ours", "published"):
        assert cai.error(table, cai.METHODS["sparse regression"][name](table, rng)) < 4


def test_the_largest_are_kept():
    kept = cai.largest(np.array([1.0, -3.0, 2.0, -2.0]), 2)
    np.testing.assert_array_equal(kept, [0, -3, 2, 0])


@pytest.mark.parametrize("problem", cai.METHODS)
def test_tables_are_as_published(problem: str):
    table = cai.make(problem, 4000, 60, seed=1)
    again = cai.make(problem, 4000, 60, seed=1)
    np.testing.assert_array_equal(table.x, again.x)
    assert table.truth.sum() == (cai.S if problem in cai.SPARSE else 60)
    if problem in cai.MEANS:
        assert table.x.mean(axis=0) == pytest.approx(table.truth, abs=0.1)
    else:
        assert table.x.mean() == pytest.approx(0.15, abs=0.005)
        assert (table.y - table.x @ table.truth).std() == pytest.approx(0.5, abs=0.03)
