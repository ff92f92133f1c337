"""Losses through `select`: records are kept, labels come from the bounds, the rest is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import Bounds, Schema, best_subset, select, simulate
from dpsubset.audit.exact import audit_exact, random_pairs, worst_case_pairs
from dpsubset.base.errors import ArgumentError
from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import MECHANISMS, PLAIN
from dpsubset.objective.losses import loss_of, scorer
from dpsubset.objective.losses.certified_rows import minimum
from dpsubset.objective.losses.huber import Huber
from dpsubset.objective.losses.rows import FromRecords
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.best import best_supports
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import enumerate_supports
from dpsubset.search.tuning import Tuning
from support.regions import random_region

ROW_LOSSES = ["logistic", "hinge", "huber"]


def table(n: int = 300, p: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, p))
    return x, (x[:, 3] + x[:, min(7, p - 2)] + 0.3 * rng.normal(size=n) > 0).astype(float)


BOUNDS = Bounds(x=(-1, 1), y=(0, 1))


@pytest.mark.parametrize("loss", ROW_LOSSES)
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_a_large_epsilon_finds_the_best_support(loss: str, constraint: str) -> None:
    x, y = table()
    stated = {
        "k": 2,
        "y": y,
        "bounds": BOUNDS,
        "loss": loss,
        "constraint": constraint,
        "prediction_bound": 3,
    }
    assert best_subset(x, **stated).support == (3, 7)
    release = select(x, epsilon=1000, **stated)
    assert release.support == (3, 7)
    assert release.guarantee.private
    assert loss in release.statement()


@pytest.mark.parametrize("mechanism", ["exponential", "top-r", "mistakes", "penalised"])
def test_mechanisms_of_scores_take_any_loss(mechanism: str) -> None:
    x, y = table(100, 6)
    counts = simulate(x, y=y, bounds=BOUNDS, k=2, epsilon=100, draws=5, loss="logistic",
                      mechanism=mechanism)  # fmt: skip
    assert sum(counts.values()) == 5


def test_other_mechanisms_refuse_other_losses() -> None:
    x, y = table(100, 6)
    refused = []
    for name, cls in MECHANISMS.items():
        if cls.any_loss:
            continue
        refused.append(name)
        delta = 1e-6 if cls.takes_delta == "must" else 0
        with pytest.raises(ArgumentError, match="least squares"):
            select(x, y=y, bounds=BOUNDS, k=2, epsilon=1, loss="hinge", mechanism=name,
                   delta=delta, allow_unproven=True)  # fmt: skip
    assert {"metropolis", "peeling", "frank-wolfe", "hard-thresholding"} <= set(refused)


def test_moments_are_refused_before_anything_is_read() -> None:
    x, y = table(50, 4)
    schema = Schema.from_bounds({f"x{j}": (-1, 1) for j in range(4)}, ("y", 0, 1))
    moments = Moments.from_blocks(schema, [(x, y)])
    with pytest.raises(ArgumentError, match="needs the records"):
        select(moments, schema, k=2, epsilon=1, loss="logistic")
    with pytest.raises(ArgumentError, match="needs the records"):
        best_subset(moments, schema, k=2, loss="huber")


def test_an_empty_table_is_an_ordinary_one_under_add_remove() -> None:
    release = select(np.empty((0, 5)), y=np.empty(0), bounds=BOUNDS, k=2, epsilon=1,
                     loss="hinge", neighbours="add-remove")  # fmt: skip
    assert release.support is not None


# -- the threshold of the Huber loss --------------------------------------------------------------

THRESHOLDS = [0.01, 0.1, 0.25, 0.6, 1.0]


def huber(r: Fraction, d: Fraction) -> Fraction:
    return r**2 if abs(r) <= d else 2 * d * abs(r) - d**2


def huber_problem(threshold: float, **stated: object) -> Problem:
    asked = {
        "p": 4,
        "k": 2,
        "loss": "huber",
        "threshold": threshold,
        "prediction_bound": 1.5,
        "intercept": False,
        **stated,
    }
    return Problem.create(**asked)  # type: ignore[arg-type]


@given(
    st.floats(0.01, 1),
    st.floats(1e-3, 5),
    st.fractions(-1, 1),
    st.lists(st.fractions(-1, 1), min_size=1, max_size=5),
)
def test_the_range_of_any_threshold_is_attained_and_never_passed(
    threshold: float, prediction_bound: float, y: Fraction, ts: list[Fraction]
) -> None:
    problem = huber_problem(threshold, prediction_bound=prediction_bound)
    d, bound = Fraction(threshold), problem.prediction_bound
    sharp = Sensitivity.of(problem).range
    values = [huber(y - t * bound, d) for t in ts]
    assert max(values) - min(values) <= sharp
    # At y = 1 the ends, and the point nearest to y, attain it: exactly, for the float as it is.
    ends = [huber(1 - t, d) for t in (-bound, min(Fraction(1), bound))]
    assert max(ends) - min(ends) == sharp


def test_a_large_threshold_has_the_range_of_least_squares_where_residuals_stay_below() -> None:
    # Residuals are at most 1 + B; beyond d = 1 only the reach itself is left over.
    tiny = huber_problem(1.0, prediction_bound=1e-6)
    squares = Sensitivity.of(Problem.create(4, 2, prediction_bound=1e-6, intercept=False)).range
    assert float(Sensitivity.of(tiny).range) == pytest.approx(float(squares), rel=1e-5)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("threshold", [0.05, 1.0])
def test_no_neighbour_passes_the_spread_and_audits_pass(threshold: float, neighbours: str) -> None:
    problem = huber_problem(threshold, neighbours=neighbours)
    right = Sensitivity.of(problem)
    pairs = [*random_pairs(problem, 20, np.random.default_rng(5)),
             *worst_case_pairs(problem, 4000)]  # fmt: skip
    spread = float(right.score_range(problem.neighbours))
    moved = 0.0
    for pair in pairs:
        assert pair.records is not None
        grams = [
            GramData.of_cells(np.asarray(r.T, dtype=np.int16, order="C"), "") for r in pair.records
        ]
        first, second = (enumerate_supports(g, problem, right.score_step).scores for g in grams)
        moved = max(moved, float(np.ptp(second - first)) * float(right.score_step))
    assert 0.8 * spread <= moved <= spread
    audit = audit_exact(PLAIN["permute-and-flip"](), problem, Fraction(1), pairs)
    assert audit.passed, audit
    assert audit.worst >= 0.75
    # The range of another threshold would not do.
    other = huber_problem(threshold / 2, neighbours=neighbours)
    wrong = replace(right, range=Sensitivity.of(other).range)
    twin = audit_exact(PLAIN["permute-and-flip"](), problem, Fraction(1), pairs, sensitivity=wrong)
    assert not twin.passed


@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_scores_and_searches_take_the_threshold(threshold: float, constraint: str) -> None:
    """Certified scores against ball arithmetic, searches against enumeration."""
    rng = np.random.default_rng(7)
    records = rng.integers(-STEPS, STEPS + 1, (40, 8)).astype(np.int16)
    records[:20, -1] = np.clip(records[:20, 1].astype(int) + records[:20, 4], -STEPS, STEPS)
    problem = huber_problem(threshold, p=7, constraint=constraint)
    digest, unit = (
        GramData.of_cells(np.ascontiguousarray(records.T), ""),
        Sensitivity.of(problem).score_step,
    )
    one = scorer(digest, problem, unit)
    assert isinstance(one, FromRecords)
    assert one.row_loss == Huber(float(threshold))
    scored = enumerate_supports(digest, problem, unit)
    for i in rng.choice(len(scored), 3, replace=False):
        total = one.objective(scored.supports[i])
        assert total.loss == one.row_loss
        low, high = minimum(total, problem.coefficients, unit / 64)
        assert low - unit <= int(scored.scores[i]) * unit <= high + unit
    ranking = sorted(zip(scored.scores.tolist(), map(tuple, scored.supports.tolist()), strict=True))
    for eta in (0.1, 100.0):
        assert best_supports(Engine(digest, problem, unit, eta), 5) == ranking[:5]


@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
@pytest.mark.parametrize("threshold", [0.01, 0.7, 1.0])
def test_bounds_of_any_threshold_are_below_every_score(threshold: float, constraint: str) -> None:
    rng = np.random.default_rng(9)
    records = rng.choice([-STEPS, -3000, 0, 500, STEPS], (60, 8)).astype(np.int16)
    problem = huber_problem(threshold, p=7, constraint=constraint, prediction_bound=2.0, ridge=0.5)
    digest, unit = (
        GramData.of_cells(np.ascontiguousarray(records.T), ""),
        Sensitivity.of(problem).score_step,
    )
    searcher = Engine(digest, problem, unit, 0.3, tuning=Tuning(last_pick=0))
    tight = np.inf
    for _ in range(12):
        region = random_region(problem, rng)
        bound = searcher.bound_oracle.root(region, int(rng.integers(0, 30)))
        g = searcher.bound_oracle.gains(bound)
        for support in map(tuple, region.supports().tolist()):
            picked = [j for j in support if region.status[j] >= FREE]
            slack = searcher.score(support) * float(unit) - (bound.base - g[picked].sum())
            assert slack >= 0, support
            tight = min(tight, slack)
    assert tight < 0.5  # and not by being idle


def test_the_threshold_is_public_settled_and_part_of_the_release() -> None:
    x, y = table(60, 4)
    asked = {"y": y, "bounds": BOUNDS, "k": 1, "epsilon": 1, "loss": "huber"}
    plain, other = select(x, **asked), select(x, threshold=Fraction(1, 3), **asked)
    assert plain.problem.threshold == 0.25
    assert other.problem.threshold == 1 / 3  # the float that the kernels take
    assert other.to_dict()["parameters"]["threshold"] == 1 / 3
    assert "threshold 0.333333" in other.statement()
    assert other.sensitivity.range != plain.sensitivity.range
    rows = loss_of(other.problem).rows
    assert rows is not None
    assert rows(other.problem.prediction_bound) == Huber(1 / 3)
    assert "threshold" not in select(x, **{**asked, "loss": "hinge"}).statement()
    assert simulate(x, draws=3, threshold=0.5, **asked)
    assert best_subset(x, y=y, bounds=BOUNDS, k=1, loss="huber", threshold=0.5).support
    for wrong in (0.001, 1.5):
        with pytest.raises(ArgumentError, match=r"between 0\.01 and 1"):
            best_subset(x, y=y, bounds=BOUNDS, k=1, loss="huber", threshold=wrong)
    with pytest.raises(ArgumentError, match="threshold goes with loss='huber'"):
        best_subset(x, y=y, bounds=BOUNDS, k=1, threshold=0.5)
