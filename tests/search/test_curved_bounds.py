"""Bounds of the logistic loss by a parabola: the parabola lies below, and so do the bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.objective.losses import scorer
from dpsubset.objective.losses.base import ENTROPIES, SLOPES
from dpsubset.objective.losses.logistic import parabola
from dpsubset.objective.losses.rows import FromRecords
from dpsubset.search.best import best_in_bucket, best_supports
from dpsubset.search.bounds.base import Node
from dpsubset.search.bounds.curved import CurvedOracle
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.engine import Engine
from dpsubset.search.tuning import Tuning
from support.loss_recipes import LossRecipe, loss_recipes
from support.recipes import CONSTRAINTS
from support.regions import random_region


@pytest.mark.parametrize("prediction_bound", [1e-9, 1e-4, 0.011, 0.1, 1.0, 2.5, 5.0, 8.0])
def test_lines_under_what_the_parabola_leaves(prediction_bound: float) -> None:
    """At 801 points of the whole domain, for slopes all over, and touching it somewhere."""
    omega, table = parabola(prediction_bound)
    assert 0.0 <= omega <= 0.25
    t = prediction_bound * np.linspace(-1, 1, 801)
    psi = np.logaddexp(0.0, -t) - 0.5 * omega * t * t
    nearest = np.inf
    for q in range(0, SLOPES + 1, 32):
        gap = psi + (q / SLOPES) * t - table[q] / ENTROPIES
        assert gap.min() >= 0, q
        nearest = min(nearest, gap.min())
    assert nearest < 1e-6


def walks(
    recipe: LossRecipe, rng: np.random.Generator, anchor: int, omega: float | None = None
) -> Iterator[tuple[CurvedOracle, Node]]:
    oracle = scorer(recipe.digest, recipe.problem, recipe.sensitivity.score_step)
    assert isinstance(oracle, FromRecords)
    eta = float(10 ** rng.uniform(-4, 3))
    tuning = Tuning(anchor=anchor, last_pick=0)
    true, table = parabola(math.nextafter(float(recipe.problem.prediction_bound), math.inf))
    bound_oracle = CurvedOracle(recipe.digest, recipe.problem, oracle, eta, tuning,
                            (true if omega is None else omega, table))  # fmt: skip
    for _ in range(6):
        region = random_region(recipe.problem, rng)
        if region.count() < 2:
            continue
        bound = bound_oracle.root(region, int(rng.integers(0, 9)))
        while True:
            yield bound_oracle, bound
            free = np.flatnonzero(bound.region.status >= FREE)
            halves = [h for h in bound.region.split(int(rng.choice(free))) if h.count() > 1]
            if not halves:
                break
            half = halves[int(rng.integers(len(halves)))]
            bound = bound_oracle.child(bound, half, int(rng.integers(0, 9)))


def highest(recipe: LossRecipe, bound_oracle: CurvedOracle, bound: Node) -> float:
    """Largest excess over a score, exact where float64 cannot tell."""
    supports = bound.region.supports()
    f = bound_oracle._scorer.scores(supports) * float(recipe.sensitivity.score_step)
    g = bound_oracle.gains(bound)
    found = float(bound.lower_bound - f.min())
    for support, score in zip(supports, f, strict=True):
        picked = support[~np.isin(support, bound.region.members)]
        gains = sum((Fraction(float(x)) for x in g[picked]), Fraction(0))
        found = max(found, float(Fraction(bound.base) - gains - Fraction(float(score))))
    return found


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_bounds_are_below_every_score(constraint: str) -> None:
    rng = np.random.default_rng(1)
    tested, tight = 0, np.inf
    for recipe in loss_recipes("logistic", range(2), (constraint,)):
        for bound_oracle, bound in walks(recipe, rng, anchor=int(rng.choice([0, 2]))):
            excess = highest(recipe, bound_oracle, bound)
            assert excess <= 0, recipe
            tight = min(tight, -excess)
            tested += 1
    assert tested > 500
    assert tight < 1e-3  # and not by being idle


def test_too_much_curvature_is_noticed() -> None:
    """With a parabola that the table does not know of, some bounds are too high."""
    rng = np.random.default_rng(2)
    above = 0
    for recipe in loss_recipes("logistic", range(1)):
        above += sum(
            highest(recipe, *pair) > 0 for pair in walks(recipe, rng, anchor=0, omega=0.25)
        )
    assert above > 0


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_searches_that_turn_to_curvature_find_the_same(constraint: str) -> None:
    rng = np.random.default_rng(3)
    splits = 0
    for recipe in loss_recipes("logistic", range(4, 6), (constraint,)):
        tuning = Tuning(short=int(rng.integers(1, 4)), listable=4, last_pick=0, anchor=0,
                        hard_after_records=(1,), warm_start_size=0)  # fmt: skip
        ranking, problem = recipe.ranking, recipe.problem
        searcher = Engine(recipe.digest, problem, recipe.sensitivity.score_step, 1e3, tuning=tuning)
        count = int(rng.integers(1, len(ranking) + 1))
        assert best_supports(searcher, count) == ranking[:count], recipe
        anchor = tuple(sorted(rng.choice(problem.p, problem.k, replace=False)))
        for mistakes in range(problem.k + 1):
            found = best_in_bucket(searcher, anchor, mistakes)
            bucket = (e for e in ranking if len(set(e[1]) - set(anchor)) == mistakes)
            assert found == next(bucket, None), (recipe, anchor, mistakes)
        splits += searcher.nodes
    assert splits > 100
