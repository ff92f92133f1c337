"""The tables and methods of the experiments on Cai, Wang and Zhang 2021."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from experiments import cai, cai_comparisons, cai_sparsity

import dpsubset as dps
from dpsubset.privacy.guarantee import Cost


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


@pytest.mark.parametrize("n", [100, 2000])
def test_cross_validation_is_paid_for(n: int):
    """All that a row takes part in, added up by the package; not so if fits are for nothing."""
    delta = cai.delta_of(n)
    rng = np.random.default_rng(0)
    x = (rng.random((50, 50)) < 0.15).astype(float)

    def total(budgets: cai_sparsity.Budgets) -> Cost:
        last = _fitted(x, cai.S, *budgets.last)
        fits = [_fitted(x, 2 * cai.S, *budgets.fit)] * (cai_sparsity.FOLDS - 1)
        return sum([*fits, last, Cost(Fraction(budgets.choice), bounded_range=True)])

    cost = total(cai_sparsity.Budgets.concentrated(0.5, delta))
    assert cost.delta == Fraction(str(delta))  # as it is written
    assert 0.49 < cost.epsilon <= 0.5
    assert total(cai_sparsity.Budgets.unpaid(0.5, delta)).epsilon > 0.7
    added = cai_sparsity.Budgets.added(0.5, delta)
    assert 4 * added.fit[0] + added.choice + added.last[0] == pytest.approx(0.5)
    assert 4 * added.fit[1] + added.last[1] <= delta


def _fitted(x: np.ndarray, s: int, epsilon: float, delta: float) -> Cost:
    """What one of the two kinds of fits costs; they cost the same."""
    means = dps.sparse_mean(x, (-5, 5), s=s, epsilon=epsilon, delta=delta).guarantee
    fits = dps.sparse_regression(
        x, y=x[:, 0], bounds=dps.Bounds(x=1, y=10), k=s, epsilon=epsilon, delta=delta,
        intercept=False, radius=0.1, iterations=2, step=3,
    ).guarantee  # fmt: skip
    found = [guarantee.costs["replace-one"] for guarantee in (means, fits)]
    assert found[0].rho == pytest.approx(found[1].rho)
    return max(found, key=lambda cost: cost.rho)


@pytest.mark.parametrize("problem", cai.SPARSE)
def test_a_row_moves_held_out_errors_no_further_than_is_paid_for(problem: str):
    """Extreme rows in place of others, against the spread that the draw is scaled by."""
    rng = np.random.default_rng(0)
    table = cai.make(problem, 40, 60, seed=0)
    fitted = rng.normal(0, 1, 60)
    candidates = [cai.largest(fitted, s) for s in cai_sparsity.GRID]
    most = cai_sparsity.most(problem, table, candidates)
    fold = np.arange(8)
    farthest = 0.0
    before = cai_sparsity.held_out(problem, table, candidates, fold)
    for side in (-1, 1):
        x, y = table.x.copy(), table.y.copy()
        x[0] = side * np.sign(fitted) * 100 if problem == "sparse mean" else rng.random(60) < 0.5
        y[0] = side * 100
        after = cai_sparsity.held_out(problem, replace(table, x=x, y=y), candidates, fold)
        moved = after - before
        farthest = max(farthest, moved.max() - moved.min())
    assert farthest <= most
    if problem == "sparse mean":
        # A row from one extreme to the other moves them by all of it.
        extreme = replace(table, x=np.tile(100 * np.sign(fitted), (40, 1)))
        other = replace(table, x=np.vstack([-extreme.x[:1], extreme.x[1:]]))
        pair = [cai_sparsity.held_out(problem, t, candidates, fold) for t in (extreme, other)]
        moved = pair[1] - pair[0]
        assert moved.max() - moved.min() == pytest.approx(most)


def test_cross_validation_finds_the_number_without_noise():
    table = cai.make("sparse mean", 1000, 100, seed=0, epsilon=1e4)
    budgets = cai_sparsity.Budgets.added(table.epsilon, table.delta)
    rng = np.random.default_rng(0)
    assert cai_sparsity.cross_validated("sparse mean", table, "published", budgets, rng) == cai.S
