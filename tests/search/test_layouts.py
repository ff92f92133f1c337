"""Intercept and groups: scores, bounds, searches and envelopes against enumeration by columns.

4 losses x 3 coefficient sets x with and without intercept x 14 seeds: 336 problems, a third of them
outside of the statistical suite, with groups of
1 to 6 columns, levels and indicators. The oracle knows of columns alone.
"""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from dpsubset.base.rounding import ball
from dpsubset.schema.layout import STEPS
from dpsubset.search.best import best_in_bucket, best_supports
from dpsubset.search.engine import Engine
from dpsubset.search.envelope import MassScale, ModularEnvelope
from dpsubset.search.region import Region
from dpsubset.search.tuning import Tuning
from support.layouts import LayoutRecipe, layout_recipes
from support.regions import random_region
from support.samples import one_in

SEEDS = range(14)
LOSSES = ("least-squares", "logistic", "hinge", "huber")
RECIPES = list(layout_recipes(LOSSES, SEEDS))


def engine_of(recipe: LayoutRecipe, rng: np.random.Generator) -> Engine:
    """One that searches where it could list."""
    tuning = Tuning(
        short=int(rng.integers(1, 3)),
        last_pick=int(rng.choice([0, 4096])),
        listable=int(rng.choice([1, 2000])),
        listable_records=1,
        small=int(rng.choice([0, 100])),
        anchor=int(rng.choice([0, 2])),
        hard_after=((1, 2), (40, 80))[int(rng.integers(2))],
        hard_after_records=((1, 2), (40, 80))[int(rng.integers(2))],
    )
    eta = float(10 ** rng.uniform(-3, 4))
    return Engine(recipe.digest, recipe.problem, recipe.sensitivity.score_step, eta, tuning=tuning)


def of_kind(loss: str, constraint: str) -> list[LayoutRecipe]:
    return [r for r in RECIPES if (r.loss, r.constraint) == (loss, constraint)]


@one_in(3)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_every_search_equals_enumeration_by_columns(loss: str, constraint: str, every: int) -> None:
    """Scores, the R best, and the best of every bucket; ties included."""
    for recipe in of_kind(loss, constraint)[::every]:
        rng = np.random.default_rng([recipe.seed, 3])
        ranking, problem = recipe.ranking, recipe.problem
        searcher = engine_of(recipe, rng)
        supports = np.array([support for _, support in ranking])
        found = dict(zip(map(tuple, supports.tolist()), searcher.score_all(supports), strict=True))
        assert all(found[support] == score for score, support in ranking), recipe
        count = int(rng.integers(1, len(ranking) + 1))
        assert best_supports(searcher, count) == ranking[:count], recipe
        anchor = ranking[int(rng.integers(len(ranking)))][1]
        for mistakes in range(problem.k + 1):
            bucket = (e for e in ranking if len(set(e[1]) - set(anchor)) == mistakes)
            assert best_in_bucket(searcher, anchor, mistakes) == next(bucket, None), recipe


@one_in(3)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_no_bound_is_above_a_score_and_no_mass_below_a_weight(
    loss: str, constraint: str, every: int
) -> None:
    compared = 0
    for recipe in of_kind(loss, constraint)[::every]:
        rng = np.random.default_rng([recipe.seed, 4])
        searcher = engine_of(recipe, rng)
        unit, bound_oracle = recipe.sensitivity.score_step, searcher.bound_oracle
        eta = Fraction(float(10 ** rng.uniform(-2, 1)))
        scale = MassScale(eta, unit, recipe.ranking[0][0], 200)
        for step in range(6):
            region = random_region(recipe.problem, rng) if step else Region.whole(recipe.problem)
            if region.count() < 2:
                continue
            if step == 3:
                bound_oracle.strengthen(sweeps=bool(rng.random() < 0.5))
            bound = bound_oracle.root(region)
            gains, supports = bound_oracle.gains(bound), region.supports()
            scores = searcher.score_all(supports)
            picked = [[j for j in row if j not in region.members] for row in supports.tolist()]
            floor = [
                Fraction(bound.base) - sum((Fraction(float(gains[j])) for j in free), Fraction(0))
                for free in picked
            ]
            excess = max(low - score * unit for low, score in zip(floor, scores, strict=True))
            assert excess <= 0, (recipe, region.status)
            assert Fraction(bound.lower_bound) <= min(scores) * unit
            envelope = ModularEnvelope(bound_oracle, bound, scale)
            if envelope.total.bit_length() < 4000:
                with flint.ctx.workprec(400):
                    best = min(scores)
                    weight = (ball(eta * unit * (scale.ref - best))).exp() * 2**scale.bits
                    assert bool(weight <= envelope.peak), recipe
            compared += len(scores)
    assert compared > 300 / every


def test_the_problems_are_of_every_kind() -> None:
    kinds = {kind for recipe in RECIPES for kind, _ in recipe.kinds}
    sizes = {size for recipe in RECIPES for _, size in recipe.kinds}
    assert len(RECIPES) >= 300
    assert kinds == {"number", "levels", "indicator", "group"}
    assert sizes == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize("recipe", RECIPES[::7], ids=str)
def test_no_prediction_passes_the_reach_and_one_comes_near_it(recipe: LayoutRecipe) -> None:
    """The largest |x'b| over rows that the quantizer can make and over the coefficient set."""
    problem = recipe.problem
    layout, prediction_bound = problem.layout, float(problem.prediction_bound)
    # Rows at their ends: every number at 1, one level on, a value or its indicator.
    sizes = [(kind, size) for kind, size in recipe.kinds]
    order = sorted(
        (j for j in range(problem.p) if j not in problem.always_include),
        key=lambda j: -(sizes[j][1] if sizes[j][0] == "group" else 1),
    )
    support = sorted([*problem.always_include, *order[: problem.picks]])
    row: list[float] = []
    for j in support:
        kind, size = sizes[j]
        row += [1.0] * size if kind == "group" else [1.0] + [0.0] * (size - 1)
    if recipe.intercept:
        row.append(layout.constant / STEPS)
    x = np.array(row)
    assert len(x) == len(layout.of_support(support))
    most = {
        "box": problem.radius * np.abs(x).sum(),
        "ball": problem.radius * math.sqrt(x @ x),
        "l1": problem.radius * np.abs(x).max(),
    }[problem.constraint]
    assert most <= prediction_bound * (1 + 1e-12)
    assert most >= 0.9 * prediction_bound
