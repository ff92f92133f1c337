"""Lines alone: they never tell of a score what is not so, and mostly they tell what is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.data.quantize import STEPS
from dpsubset.objective.losses import LOSSES, scorer
from dpsubset.objective.losses.base import ABOVE, SLOPES
from dpsubset.objective.losses.cutoff_kernels import lower_bound, quantized_slopes
from dpsubset.objective.losses.rows import FromRecords
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.best import best_supports
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import list_supports
from support.loss_recipes import digest_of, loss_recipes
from support.recipes import CONSTRAINTS

ROW_LOSSES = [name for name, loss in LOSSES.items() if loss.needs_records]
each_loss = pytest.mark.parametrize("loss", ROW_LOSSES)


def scorer_of(recipe: object) -> FromRecords:
    one = scorer(recipe.digest, recipe.problem, recipe.sensitivity.score_step)  # type: ignore[attr-defined]
    assert isinstance(one, FromRecords)
    return one


def above(x: Fraction) -> float:
    """The next float, or x itself."""
    return float(x) if Fraction(float(x)) >= x else math.nextafter(float(x), math.inf)


@pytest.mark.statistical  # certified minima in rational numbers take long
@each_loss
def test_any_lines_at_any_point_are_below_the_minimum(loss: str) -> None:
    rng = np.random.default_rng(0)
    for recipe in loss_recipes(loss, range(1)):
        one, problem = scorer_of(recipe), recipe.problem
        row, c, n = one.row_loss, problem.coefficients, len(one.response)
        zero = row.at_zero(one.response)
        support = np.array(recipe.scored.supports[rng.integers(len(recipe.scored))])
        columns = problem.layout.of_support(support)
        _, high = one._minimum(columns)
        for trial in range(20):
            b = rng.uniform(-c.radius, c.radius, len(columns)) * rng.choice([0.0, 0.3, 1.0])
            t = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
            if trial < 10:
                t = one.records[columns].T @ b / STEPS
            q = np.empty(n, dtype=np.int16)
            const = quantized_slopes(t, one.response, row, float(STEPS),
                                     float(rng.choice([1e-9, 0.1])), 0.0,
                                     row.conjugates(), q)  # fmt: skip
            assert np.abs(q.astype(int)).max() <= SLOPES
            low = lower_bound(one.records, columns, row, c, problem.ridge, float(STEPS), const, q,
                        n * row.largest(), float(zero), b, np.empty(len(columns)))  # fmt: skip
            assert Fraction(low) + zero <= high


@pytest.mark.statistical
@each_loss
def test_what_is_not_above_is_never_told_to_be(loss: str) -> None:
    """With guesses that are as good as they get: the bound then all but touches the minimum."""
    told, asked = 0, 0
    for recipe in loss_recipes(loss, range(2)):
        one = scorer_of(recipe)
        zero, n = one.row_loss.at_zero(one.response), len(one.response)
        for support in recipe.scored.supports[:: max(1, len(recipe.scored) // 5)]:
            columns = recipe.problem.layout.of_support(support)
            low, high = one._minimum(columns)
            for _ in range(3):
                assert not one._above(columns[None], above(high - zero)).any()
            told += int(one._above(columns[None], float(low - zero) - 0.02 * n).sum())
            asked += 1
    assert told > 0.9 * asked


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 20.0])
@each_loss
def test_cutoffs_change_no_score_that_they_do_not_reach(
    loss: str, ridge: float, constraint: str
) -> None:
    """Whatever was scored before: what a scorer remembers are guesses."""
    rng = np.random.default_rng(4)
    x = np.clip(rng.normal(size=(400, 8)), -0.6, 0.6) / 0.6  # many cells at the ends
    y = np.sign(x @ rng.normal(size=8) + rng.normal(size=400))
    records = np.rint(np.column_stack([x, y]) * STEPS)
    problem = Problem.create(
        8,
        3,
        loss=loss,
        constraint=constraint,
        prediction_bound=2,
        ridge=ridge,
        intercept=False,
    )
    unit = Sensitivity.of(problem).score_step
    supports = list_supports(problem)
    scores = scorer(digest_of(records), problem, unit).scores(supports)
    one, left_out = scorer(digest_of(records), problem, unit), 0
    for cutoff in rng.permutation(np.sort(scores)[::14]).tolist():
        order = rng.permutation(len(supports))
        found = one.scores(supports[order], cutoff)
        assert (found[found != ABOVE] == scores[order][found != ABOVE]).all()
        assert (scores[order][found == ABOVE] > cutoff).all()
        left_out += int((found == ABOVE).sum())
    assert left_out > 0


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_curvatures_that_are_next_to_nothing_raise_nothing(constraint: str) -> None:
    """Margins near 745: the logistic loss has denormal curvature there, whose parts are 0."""
    problem = Problem.create(
        16, 3, loss="logistic", constraint=constraint, prediction_bound=2000, intercept=False
    )
    for seed in range(24, 36):
        rng = np.random.default_rng([seed, 9])
        x = np.sign(rng.uniform(-1, 1, (int(rng.choice([2, 5, 20])), 16)))
        x[:, 6:] = rng.uniform(-1, 1, (len(x), 10))
        digest = digest_of(np.rint(np.column_stack([x, x[:, 0]]) * STEPS))
        engine = Engine(digest, problem, Sensitivity.of(problem).score_step, math.inf)
        assert len(best_supports(engine, 3)) == 3
