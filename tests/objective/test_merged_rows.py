"""Tables of categories: records that are the same count as one row, and searches end soon."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.data.quantize import STEPS
from dpsubset.objective.losses import LOSSES, scorer
from dpsubset.objective.losses.base import ABOVE
from dpsubset.objective.losses.hinge import Hinge
from dpsubset.objective.losses.huber import Huber
from dpsubset.objective.losses.logistic import Logistic
from dpsubset.objective.losses.row_kernels import certify, merge_rows
from dpsubset.objective.losses.rows import FromRecords
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.best import _BATCH_SIZE, best_in_bucket, best_supports
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import enumerate_supports, list_supports
from dpsubset.search.region import Region
from dpsubset.search.tuning import Tuning
from support.loss_recipes import digest_of
from support.recipes import CONSTRAINTS

ROW_LOSSES = [name for name, loss in LOSSES.items() if loss.needs_records]
each_loss = pytest.mark.parametrize("loss", ROW_LOSSES)


def dummies(rng: np.random.Generator, n: int, p: int, rare: float) -> np.ndarray:
    """Columns of 0 and 1, a few of -1 and 1, and labels of which one is rare."""
    x = np.where(rng.random((n, p)) < rng.uniform(0.1, 0.9, p), STEPS, 0)
    x[:, ::3] = 2 * x[:, ::3] - STEPS
    score = x @ rng.normal(size=p) / STEPS + rng.normal(size=n)
    y = np.where(score > np.quantile(score, 1.0 - rare), STEPS, -STEPS)
    return np.column_stack([x, y])


@pytest.mark.parametrize("labels", [True, False])
def test_the_same_records_are_one_row_and_no_others(labels: bool) -> None:
    rng = np.random.default_rng(0)
    merged = 0
    for _ in range(300):
        n, k = int(rng.integers(1, 200)), int(rng.integers(1, 5))
        largest = int(rng.choice([1, 2, STEPS]))
        cells = rng.integers(-largest, largest + 1, (n, k + 1)).astype(np.int16)
        records, response = np.ascontiguousarray(cells[:, :k].T), cells[:, k].copy()
        size = 1 << n.bit_length()
        which, counts = np.empty(n, dtype=np.int64), np.empty(n)
        order = rng.permutation(k)
        m = merge_rows(
            records, response, order, labels, np.empty(size, dtype=np.int64), which, counts
        )
        sign = np.where(cells[:, k] < 0, -1, 1)[:, None] if labels else 1
        rows = [tuple(row) for row in (cells[:, :k] * sign).tolist()]
        if not labels:
            rows = [(*row, y) for row, y in zip(rows, response.tolist(), strict=True)]
        times = Counter(rows)
        assert counts[:m].sum() == n
        if m == n:
            assert which.tolist() == list(range(n))
            assert (counts == 1).all()
            continue
        merged += 1
        assert [rows[i] for i in which[:m]] == list(times)  # in the order in which they come
        assert counts[:m].tolist() == list(times.values())
        assert all(rows.index(rows[i]) == i for i in which[:m])
    assert merged > 50


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@each_loss
def test_scores_of_merged_records_are_within_a_unit(loss: str, constraint: str) -> None:
    """And by float64: ball arithmetic is only the oracle."""
    rng = np.random.default_rng(1)
    for rare in (0.05, 0.4):
        records = dummies(rng, 400, 4, rare)
        for prediction_bound in (0.7, 2.0):
            problem = Problem.create(
                4,
                2,
                loss=loss,
                constraint=constraint,
                prediction_bound=prediction_bound,
                intercept=False,
            )
            unit = Sensitivity.of(problem).score_step
            one = scorer(digest_of(records), problem, unit)
            assert isinstance(one, FromRecords)
            supports = list_supports(problem)[::2]
            found = np.empty(len(supports), dtype=np.int64)
            assert one._score(supports, ABOVE, found).all()
            assert found.tolist() == one.scores(supports).tolist()
            for support, score in zip(supports, found, strict=True):
                low, high = one._minimum(np.array(support))
                assert low - unit <= int(score) * unit <= high + unit


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@each_loss
def test_a_cutoff_takes_nothing_that_is_not_above_it(loss: str, constraint: str) -> None:
    rng = np.random.default_rng(2)
    above = 0
    for penalty in (0, 12345):
        records = dummies(rng, 300, 7, 0.3)
        records[:, 1] = rng.integers(-STEPS, STEPS + 1, len(records))
        problem = Problem.create(
            7, 3, loss=loss, constraint=constraint, prediction_bound=2, intercept=False
        )
        unit = Sensitivity.of(problem).score_step
        one = scorer(digest_of(records), problem, unit, penalty)
        supports = list_supports(problem)
        scores = one.scores(supports)
        for cutoff in (*np.sort(scores)[[0, 3, len(scores) // 2]].tolist(), -1):
            found = one.scores(supports, cutoff)
            left_out = found == ABOVE
            assert (found[~left_out] == scores[~left_out]).all()  # what is scored, is scored alike
            assert (scores[left_out] > cutoff).all()
            above += int(left_out.sum())
    assert above > 0


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_searches_among_categories_equal_enumeration(loss: str, constraint: str) -> None:
    """Many ties: where one label is rare, most sets explain nothing under the hinge."""
    rng = np.random.default_rng(3)
    for rare in (0.05, 0.3):
        digest = digest_of(dummies(rng, 200, 9, rare))
        problem = Problem.create(
            9, 3, loss=loss, constraint=constraint, prediction_bound=2, intercept=False
        )
        unit = Sensitivity.of(problem).score_step
        scored = enumerate_supports(digest, problem, unit)
        ranking = sorted((int(s), scored.support(i)) for i, s in enumerate(scored.scores.tolist()))
        tuning = Tuning(
            short=2, listable=8, last_pick=0, warm_start_size=int(rng.choice([0, 1000]))
        )
        engine = Engine(digest, problem, unit, float(10 ** rng.uniform(-2, 3)), tuning=tuning)
        for count in (1, 7, 40):
            assert best_supports(engine, count) == ranking[:count]
        for mistakes in range(4):
            bucket = (e for e in ranking if len(set(e[1]) - {0, 4, 8}) == mistakes)
            assert best_in_bucket(engine, (0, 4, 8), mistakes) == next(bucket)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_long_lists_are_scored_to_their_end(loss: str) -> None:
    """Longer than what is scored at a time, so that cutoffs fall in between."""
    rng = np.random.default_rng(3)
    for rare in (0.05, 0.3):
        digest = digest_of(dummies(rng, 150, 15, rare))
        problem = Problem.create(15, 4, loss=loss, prediction_bound=2, intercept=False)
        unit = Sensitivity.of(problem).score_step
        scored = enumerate_supports(digest, problem, unit)
        assert len(scored) > 2 * _BATCH_SIZE
        ranking = sorted((int(scored.scores[i]), scored.support(i)) for i in range(len(scored)))
        for count in (1, 40, 400, 900):
            engine = Engine(digest, problem, unit, 0.01, tuning=Tuning(short=2, last_pick=0))
            assert best_supports(engine, count) == ranking[:count], (rare, count)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize(
    "loss", [Hinge(), Logistic(), Huber(0.25)], ids=lambda loss: type(loss).__name__
)
def test_what_rounding_may_have_done_is_counted_by_records(loss: Any, constraint: str) -> None:
    """At b = 0 the slopes of mirrored rows cancel, so that nothing but rounding is allowed for."""
    coefficients = Problem.create(
        3,
        3,
        loss="hinge",
        constraint=constraint,
        prediction_bound=0.5,
        intercept=False,
    ).coefficients
    z = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    z, counts = np.vstack([z, -z]), np.tile([3.0, 500.0, 40.0, 1000.0], 2)
    o = np.ones(8) if loss.is_kinked() else np.zeros(8)
    which = np.repeat(np.arange(8), counts.astype(int))
    merged = certify(loss, coefficients, z, o, counts, 0.0, np.zeros(3))
    each = certify(loss, coefficients, z[which], o[which], np.ones(len(which)), 0.0, np.zeros(3))
    assert merged == pytest.approx(each, rel=1e-9, abs=0)


def categories(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels of seven categories and five numbers; one label in fourteen is the other."""
    levels = [np.eye(m)[rng.integers(0, m, n)] for m in (2, 3, 5, 8, 4, 2, 6)]
    x = np.column_stack([*levels, rng.uniform(0, 1, (n, 5))])
    return x, np.where(x[:, 2] + rng.normal(size=n) > 2, 1.0, -1.0)


def test_the_dual_ascent_gets_near_the_relaxation() -> None:
    """One label is rare, and no set beats a constant: the first bound is to know it, nearly."""
    x, y = categories(np.random.default_rng(5), 4000)
    records = np.rint(np.column_stack([np.ones(len(y)), 2 * x - 1, y]) * STEPS)
    problem = Problem.create(
        36, 4, loss="hinge", prediction_bound=2, always_include=(0,), intercept=False
    )
    unit = Sensitivity.of(problem).score_step
    engine = Engine(digest_of(records), problem, unit, 0.1)
    assert engine.bound_oracle.root(Region.whole(problem)).lower_bound > 0.93 * 2 * (y > 0).sum()
    ((score, _),) = best_supports(engine, 1)
    assert score * unit == 2 * (y > 0).sum()


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_draw_from_a_table_of_categories_ends(loss: str) -> None:
    x, y = categories(np.random.default_rng(5), 4000)
    bounds = dps.Bounds(x=(0, 1), y=(-1, 1))
    for k in (3, 6):
        found = dps.simulate(x, y=y, bounds=bounds, k=k, epsilon=1.0, draws=2, loss=loss,
                             node_limit=500)  # fmt: skip
        assert sum(found.values()) == 2
