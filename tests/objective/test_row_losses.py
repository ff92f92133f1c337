"""Losses of records against enumeration and oracles: scores, bounds, searches, labels, range."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.audit.exact import audit_exact, random_pairs, worst_case_pairs
from dpsubset.base.errors import ArgumentError
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN
from dpsubset.objective.losses import LOSSES, scorer
from dpsubset.objective.losses.certified_rows import minimum
from dpsubset.objective.losses.row_kernels import certify, scaled_rows
from dpsubset.objective.losses.rows import FromRecords
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.best import best_in_bucket, best_supports
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import enumerate_supports, list_supports
from dpsubset.search.tuning import USUAL, Tuning
from support.loss_recipes import LossRecipe, digest_of, loss_recipes
from support.recipes import CONSTRAINTS
from support.regions import random_path, random_region
from support.samples import one_in

ROW_LOSSES = [name for name, loss in LOSSES.items() if loss.needs_records]
each_loss = pytest.mark.parametrize("loss", ROW_LOSSES)


# -- scores ---------------------------------------------------------------------------------------


def losses_at(loss: str, y: np.ndarray, t: np.ndarray) -> np.ndarray:
    """By their definitions, in plain numpy."""
    if loss == "huber":
        r, d = np.abs(y - t), 0.25
        return np.where(r <= d, r**2, 2 * d * r - d**2)
    margin = np.where(y < 0, -1.0, 1.0) * t
    return np.logaddexp(0, -margin) if loss == "logistic" else np.maximum(0.0, 1 - margin)


def into(b: np.ndarray, problem: Problem) -> np.ndarray:
    """Shrink a point into C."""
    order = {"box": np.inf, "ball": 2, "l1": 1}[problem.constraint]
    return b / max(1.0, np.linalg.norm(b, order) / problem.radius)


@each_loss
def test_no_allowed_point_beats_a_score_and_the_oracle_agrees(loss: str) -> None:
    rng = np.random.default_rng(0)
    for number, recipe in enumerate(loss_recipes(loss, range(1))):
        problem, unit = recipe.problem, recipe.sensitivity.score_step
        cells = recipe.records / STEPS
        i = int(rng.integers(len(recipe.scored)))
        support = recipe.scored.supports[i]
        score = int(recipe.scored.scores[i])
        for scale in (0.1, 1.0, 10.0):
            b = into(rng.normal(size=(problem.k,)) * scale * problem.radius, problem)
            value = losses_at(loss, cells[:, -1], cells[:, support] @ b).sum()
            value += problem.ridge * (b @ b)
            assert value >= (score - 1) * float(unit) - 1e-9, recipe
        if number % 5:
            continue  # the oracle takes its time
        oracle = scorer(recipe.digest, problem, unit)
        assert isinstance(oracle, FromRecords)
        low, high = minimum(
            oracle.objective(problem.layout.of_support(support)), problem.coefficients, unit / 4
        )
        assert high - low <= unit / 4
        assert low - unit <= score * unit <= high + unit, recipe


@each_loss
def test_certificates_hold_at_any_point(loss: str) -> None:
    """Whatever a solver proposes, the minimum lies within the width of the value."""
    rng = np.random.default_rng(6)
    wide = 0
    for recipe in loss_recipes(loss, range(1))[::4]:
        problem, unit = recipe.problem, float(recipe.sensitivity.score_step)
        i = int(rng.integers(len(recipe.scored)))
        support, score = recipe.scored.supports[i], int(recipe.scored.scores[i]) * unit
        one = scorer(recipe.digest, problem, recipe.sensitivity.score_step)
        assert isinstance(one, FromRecords)
        row_loss = one.row_loss
        z, o = np.empty((len(recipe.records), problem.k)), np.empty(len(recipe.records))
        digest = recipe.digest
        every, ones = np.arange(len(o)), np.ones(len(o))
        scaled_rows(
            digest.records, digest.response, support, every, row_loss.labels, float(STEPS), z, o
        )
        zero = float(row_loss.at_zero(digest.response))
        for _ in range(4):
            b = rng.normal(size=problem.k) * problem.radius * 10 ** rng.uniform(-3, 1)
            if loss == "hinge":  # slopes of lines, from outside of where there are any, too
                o[:] = rng.choice([0.0, 1.0, 0.5, -0.1, 1.1], len(o))
            value, width = certify(row_loss, problem.coefficients, z, o, ones, problem.ridge, b)
            value += zero
            assert value - width <= score + unit, recipe
            assert score - unit <= value + width, recipe
            wide += width > unit
    assert wide  # wrong points are not taken for right ones


@each_loss
def test_scores_do_not_depend_on_company(loss: str) -> None:
    recipe = LossRecipe("AR 0.9", "box", "wide", 0.0, 4, 9, loss)
    one = scorer(recipe.digest, recipe.problem, recipe.sensitivity.score_step)
    supports = recipe.scored.supports
    alone = [int(one.scores(supports[i : i + 1])[0]) for i in range(len(supports))]
    assert alone == recipe.scored.scores.tolist()


@each_loss
def test_a_table_that_float64_cannot_certify_is_scored_all_the_same(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten records at a unit far below what float64 can tell: the rational path answers."""
    recipe = LossRecipe("n < p", "ball", "wide", 0.0, 5, 0, loss)
    unit = Fraction(1, 2**52)
    one = scorer(recipe.digest, recipe.problem, unit)
    assert isinstance(one, FromRecords)
    called = []
    exact = FromRecords._exactly
    monkeypatch.setattr(FromRecords, "_exactly", lambda self, s: called.append(1) or exact(self, s))
    support = recipe.scored.supports[:1]
    fine = int(one.scores(support)[0]) * unit
    assert called
    rough = int(recipe.scored.scores[0]) * recipe.sensitivity.score_step
    assert abs(fine - rough) <= recipe.sensitivity.score_step + unit


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_labels_are_signs_and_the_middle_is_above(loss: str) -> None:
    rng = np.random.default_rng(3)
    records = rng.integers(-STEPS, STEPS + 1, (30, 6))
    signs = records.copy()
    records[:5, -1] = 0
    signs[:, -1] = np.where(records[:, -1] < 0, -STEPS, STEPS)
    problem = Problem.create(5, 2, loss=loss, prediction_bound=3)
    unit = Sensitivity.of(problem).score_step
    both = [enumerate_supports(digest_of(r), problem, unit).scores for r in (records, signs)]
    assert np.array_equal(*both)


# -- bounds and searches --------------------------------------------------------------------------


@each_loss
def test_bounds_are_below_every_score(loss: str) -> None:
    rng = np.random.default_rng(1)
    tested, tight = 0, np.inf
    for recipe in loss_recipes(loss, range(1)):
        unit = float(recipe.sensitivity.score_step)
        scores = {recipe.scored.support(i): int(s) for i, s in enumerate(recipe.scored.scores)}
        searcher = Engine(recipe.digest, recipe.problem, recipe.sensitivity.score_step,
                          float(10 ** rng.uniform(-4, 3)), tuning=Tuning(last_pick=0))  # fmt: skip
        for _ in range(6):
            region = random_region(recipe.problem, rng)
            rounds = int(rng.integers(0, 30))
            for bound in random_path(searcher.bound_oracle, region, rng, rounds):
                g = searcher.bound_oracle.gains(bound)
                for support in map(tuple, bound.region.supports().tolist()):
                    picked = [j for j in support if bound.region.status[j] >= FREE]
                    own = bound.base - g[picked].sum()
                    if support not in scores:  # without a column that is always included
                        score = searcher.score(support)
                    else:
                        score = scores[support]
                    slack = score * unit - own
                    assert slack >= 0.0, (recipe, support)
                    assert bound.lower_bound <= own + 1e-9 * (1 + abs(own))
                    tight = min(tight, slack)
                    tested += 1
    assert tested > 3000
    assert tight < 1e-3  # and not by being idle


@one_in(5)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@each_loss
def test_every_search_equals_enumeration(loss: str, constraint: str, every: int) -> None:
    """72 problems a case, 216 a loss; short lists are turned down so that searches do search."""
    rng = np.random.default_rng(2)
    splits = 0
    for recipe in loss_recipes(loss, range(3), (constraint,))[::every]:
        tuning = Tuning(
            short=int(rng.integers(1, 4)),
            last_pick=int(rng.choice([0, 4096])),
            listable=int(rng.choice([1, 4, 2000])),
            warm_start_size=USUAL.warm_start_size if recipe.seed % 2 else 0,
        )
        eta = float(10 ** rng.uniform(-5, 5))
        ranking, problem = recipe.ranking, recipe.problem
        for count in {1, int(rng.integers(1, len(ranking) + 1)), len(ranking) + 3}:
            unit = recipe.sensitivity.score_step
            searcher = Engine(recipe.digest, problem, unit, eta, tuning=tuning)
            assert best_supports(searcher, count) == ranking[:count], (recipe, count)
            splits += searcher.nodes
        anchor = tuple(sorted(rng.choice(problem.p, problem.k, replace=False)))
        for mistakes in range(problem.k + 1):
            found = best_in_bucket(searcher, anchor, mistakes)
            bucket = (e for e in ranking if len(set(e[1]) - set(anchor)) == mistakes)
            assert found == next(bucket, None), (recipe, anchor, mistakes)
    assert splits > 300 / every


# -- range and audit ------------------------------------------------------------------------------


@pytest.mark.parametrize("prediction_bound", [0.4, 1.0, 2.5])
@each_loss
def test_the_range_is_never_passed_and_not_idle(loss: str, prediction_bound: float) -> None:
    """One record more: changes of all scores lie between the extremes of its own loss."""
    problem = Problem.create(
        4, 2, loss=loss, prediction_bound=prediction_bound, neighbours="add-remove"
    )
    s = Sensitivity.of(problem)
    pairs = [*random_pairs(problem, 40, np.random.default_rng(4)),
             *worst_case_pairs(problem, 4000)]  # fmt: skip
    largest = 0.0
    for pair in pairs:
        assert pair.records is not None
        both = [
            enumerate_supports(digest_of(r), problem, s.score_step).scores for r in pair.records
        ]
        change = (both[1] - both[0]) * float(s.score_step)
        y = pair.records[1][-1, -1] / STEPS
        at = losses_at(
            loss, np.full(2001, y), np.linspace(-prediction_bound, prediction_bound, 2001)
        )
        error = 2 * float(s.tau) + 1e-6
        assert change.min() >= at.min() - error, pair.label
        assert change.max() <= at.max() + error, pair.label
        largest = max(largest, float(np.ptp(change)))
    assert largest <= float(s.score_range("add-remove"))
    assert largest >= 0.9 * float(s.range)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@each_loss
def test_the_audit_passes_and_catches_half_a_sensitivity(loss: str, neighbours: str) -> None:
    problem = Problem.create(4, 2, loss=loss, prediction_bound=1.5, neighbours=neighbours)
    epsilon = Fraction(1)
    pairs = [*random_pairs(problem, 20, np.random.default_rng(5)),
             *worst_case_pairs(problem, 4000)]  # fmt: skip
    right = Sensitivity.of(problem)
    for name in PLAIN:
        audit = audit_exact(PLAIN[name](), problem, epsilon, pairs)
        assert audit.passed, audit
        assert audit.worst >= 0.8
        twin = audit_exact(
            PLAIN[name](),
            problem,
            epsilon,
            pairs,
            sensitivity=replace(right, range=right.range / 2),
        )
        assert not twin.passed


def test_ranges_are_those_of_the_formulas() -> None:
    for prediction_bound in (Fraction(1, 3), Fraction(1), Fraction(9, 4)):
        t = np.linspace(-float(prediction_bound), float(prediction_bound), 20001)
        for loss in ROW_LOSSES:
            ys = (-1.0, 1.0) if loss != "huber" else np.linspace(-1, 1, 41)
            found = max(np.ptp(losses_at(loss, np.full_like(t, y), t)) for y in ys)
            assert float(LOSSES[loss].ranges["sharp"](prediction_bound)) == pytest.approx(
                found, abs=1e-6
            )


# -- the way in -----------------------------------------------------------------------------------


def test_moments_are_not_enough() -> None:
    recipe = LossRecipe("orthogonal", "box", "wide", 0.0, 1)
    with pytest.raises(ArgumentError, match="needs the records"):
        enumerate_supports(recipe.moments, recipe.problem, recipe.sensitivity.score_step)


@each_loss
def test_a_problem_without_records_is_scored(loss: str) -> None:
    problem = Problem.create(5, 2, loss=loss, neighbours="add-remove")
    empty = digest_of(np.empty((0, 6), dtype=np.int16))
    scored = enumerate_supports(empty, problem, Sensitivity.of(problem).score_step)
    assert not scored.scores.any()
    assert len(scored) == len(list_supports(problem))
