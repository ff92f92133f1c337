"""Scores: certified to one unit, against exact rationals and against scipy."""

from __future__ import annotations

import itertools
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from dpsubset.audit.exact import moments_of_records
from dpsubset.constraints import CONSTRAINTS as SETS
from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.objective.losses import least_squares
from dpsubset.objective.losses.certified import bracket, minimum
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.objective.losses.quadratic import Quadratic
from dpsubset.objective.losses.quadratic_kernels import score_all
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.enumerate import list_supports
from support.recipes import CONSTRAINTS

P = 5


def shape(kind: str, records: np.ndarray) -> np.ndarray:
    """Make columns depend on each other in one of the ways that break naive solvers."""
    records = records.copy()
    if kind == "duplicate":
        records[:, 1] = records[:, 0]
        records[:, 2] = -records[:, 0]
    elif kind == "constant":
        records[:, 0] = STEPS
        records[:, 1] = 0
        records[:, 2] = 1
    elif kind == "collinear":
        records[:, 2] = (records[:, 0] + records[:, 1]) // 2
        records[:, 3] = np.clip(records[:, 0] + 1, -STEPS, STEPS)
    elif kind == "signal":
        records[:, -1] = np.clip(records[:, 0] + records[:, 1] // 2, -STEPS, STEPS)
    elif kind == "corners":
        records = np.sign(records) * STEPS
    return records


KINDS = ["plain", "duplicate", "constant", "collinear", "signal", "corners"]


@st.composite
def records(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(0, 12))
    entries = st.one_of(
        st.integers(-STEPS, STEPS), st.sampled_from([-STEPS, 0, STEPS]), st.integers(-3, 3)
    )
    rows = [draw(st.lists(entries, min_size=P + 1, max_size=P + 1)) for _ in range(n)]
    table = np.array(rows, dtype=np.int64).reshape(n, P + 1)
    return shape(draw(st.sampled_from(KINDS)), table)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    return Problem.create(
        P,
        draw(st.integers(1, 4)),
        constraint=draw(st.sampled_from(CONSTRAINTS)),
        # From always active to never.
        prediction_bound=draw(st.sampled_from([1e-6, 0.05, 0.5, 1.0, 1.5, 40.0, 1e4])),
        ridge=draw(st.sampled_from([0.0, 1e-9, 0.5, 300.0])),
    )


def exactly(moments: Moments, problem: Problem, support: np.ndarray, tolerance: Fraction
            ) -> tuple[Fraction, Fraction]:  # fmt: skip
    """A bracket of f(S) in rational arithmetic."""
    q = Scorer(moments, problem, Fraction(1)).objective(problem.layout.of_support(support))
    low, high = minimum(q, problem.coefficients, tolerance)
    assert 0 <= high - low <= tolerance
    return low, high


def by_scipy(table: np.ndarray, problem: Problem, support: np.ndarray) -> float:
    """f(S) from the records themselves, by solvers that share nothing with ours."""
    x = table[:, support] / STEPS
    y = table[:, -1] / STEPS
    k, r = len(support), problem.radius
    a = np.vstack([x, np.sqrt(problem.ridge) * np.eye(k)])
    target = np.append(y, np.zeros(k))
    if problem.constraint == "box":
        b = lsq_linear(a, target, bounds=(-r, r), method="bvls", tol=1e-14).x
    elif problem.constraint == "ball":
        # Along the path of ridges |b| falls; bisection on the ridge that meets the radius.
        h, c = a.T @ a, a.T @ target

        def path(mu: float) -> np.ndarray:
            return np.linalg.lstsq(h + mu * np.eye(k), c, rcond=None)[0]

        low, high = 0.0, 1.0 + np.linalg.norm(c) / r
        b = path(low)
        if np.linalg.norm(b) > r:
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if np.linalg.norm(path(middle)) > r else (low, middle)
            b = path(high)
    elif np.abs(b := np.linalg.lstsq(a, target, rcond=None)[0]).sum() > r:
        # b = u - v with u, v >= 0 and sum(u + v) <= r, in units of the radius.
        both = np.hstack([a, -a]) * r
        found = minimize(
            lambda w: ((both @ w - target) ** 2).sum(),
            np.full(2 * k, 0.1 / k),
            jac=lambda w: 2 * both.T @ (both @ w - target),
            bounds=[(0, 1)] * (2 * k),
            constraints={
                "type": "ineq", "fun": lambda w: 1 - w.sum(), "jac": lambda w: -np.ones(2 * k)
            },
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-15},
        )  # fmt: skip
        b = (found.x[:k] - found.x[k:]) * r
    return float(((x @ b - y) ** 2).sum() + problem.ridge * (b**2).sum())


def assert_certified(moments: Moments, problem: Problem) -> None:
    """|score * unit - f| <= unit, in exact arithmetic, for every support."""
    unit = Sensitivity.of(problem).score_step
    supports = list_supports(problem)
    scores = Scorer(moments, problem, unit).scores(supports)
    for support, score in zip(supports, scores, strict=True):
        low, high = exactly(moments, problem, support, unit / 1000)
        assert high - unit <= int(score) * unit <= low + unit


@given(records(), problems())
@example(np.zeros((0, P + 1), dtype=np.int64), Problem.create(P, 3))
@example(np.zeros((0, P + 1), dtype=np.int64), Problem.create(P, 2, constraint="l1", ridge=1.0))
@example(np.full((12, P + 1), STEPS), Problem.create(P, 4, constraint="ball", prediction_bound=0.5))
def test_every_score_is_certified(table: np.ndarray, problem: Problem) -> None:
    assert_certified(moments_of_records(table), problem)


@given(records(), problems())
def test_the_exact_path_alone_is_certified(table: np.ndarray, problem: Problem) -> None:
    unit = Sensitivity.of(problem).score_step
    moments = moments_of_records(table)
    support = list_supports(problem)[0]
    score = Scorer(moments, problem, unit).exact_score(support)
    low, high = exactly(moments, problem, support, unit / 1000)
    assert high - unit <= score * unit <= low + unit


@given(records(), problems())
def test_exact_minimum_agrees_with_scipy(table: np.ndarray, problem: Problem) -> None:
    assume(problem.constraint != "l1" or problem.radius < 50)  # beyond, SLSQP stops early
    moments = moments_of_records(table)
    yy = float(moments.products[-1, -1]) / STEPS**2
    for support in list_supports(problem)[:2]:
        low, _ = exactly(moments, problem, support, Fraction(1, 10**9))
        found = by_scipy(table, problem, support)
        # scipy's solution is feasible up to rounding, so its value is never below the minimum.
        assert float(low) - 1e-9 * (1 + yy) <= found <= float(low) + 2e-6 * (1 + yy)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_agree_with_scipy_active_and_not(constraint: str, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    table = shape(kind, rng.integers(-STEPS, STEPS + 1, size=(40, P + 1)))
    moments = moments_of_records(table)
    active = set()
    for prediction_bound, ridge, k in itertools.product((0.05, 0.7, 30.0), (0.0, 2.0), (1, 3)):
        problem = Problem.create(
            P, k, constraint=constraint, prediction_bound=prediction_bound, ridge=ridge
        )
        unit = Sensitivity.of(problem).score_step
        free = Problem.create(P, k, constraint=constraint, radius=1e9, ridge=ridge)
        supports = list_supports(problem)
        scores = Scorer(moments, problem, unit).scores(supports)
        for support, score in zip(supports, scores, strict=True):
            f = by_scipy(table, problem, support)
            assert abs(float(int(score) * unit) - f) <= float(unit) + 1e-6
            loose, _ = exactly(moments, free, support, Fraction(1, 10**6))
            active.add(f > float(loose) + 1e-3)
    if kind in ("signal", "corners", "plain"):
        assert active == {True, False}


@given(records(), problems())
def test_scores_are_a_function_of_moments_and_support(table: np.ndarray, problem: Problem) -> None:
    """One by one, in another order, from a copy: the same integers."""
    unit = Sensitivity.of(problem).score_step
    moments = moments_of_records(table)
    supports = list_supports(problem)
    together = Scorer(moments, problem, unit).scores(supports)
    copy = Moments(np.asfortranarray(moments.products.copy()), moments.n, "other")
    backwards = Scorer(copy, problem, unit).scores(np.ascontiguousarray(supports[::-1]))
    np.testing.assert_array_equal(together, backwards[::-1])
    one_by_one = [Scorer(moments, problem, unit).scores(s[None])[0] for s in supports]
    np.testing.assert_array_equal(together, one_by_one)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_float64_carries_the_load(constraint: str) -> None:
    """The exact path is for the odd case: of these supports at most one in a hundred needs it."""
    rng = np.random.default_rng(3)
    certified = []
    p = 8
    for kind, n, k in itertools.product(KINDS, (3, 60, 10_000), (1, 3, 6)):
        table = shape(kind, rng.integers(-STEPS, STEPS + 1, size=(n, p + 1)))
        moments = moments_of_records(table)
        for prediction_bound, ridge in itertools.product((0.1, 1.0, 5.0), (0.0, 1.0)):
            problem = Problem.create(
                p, k, constraint=constraint, prediction_bound=prediction_bound, ridge=ridge
            )
            supports = list_supports(problem)
            certified.append(floats_certify(moments, problem, supports).mean())
    assert np.mean(certified) > 0.999
    assert min(certified) > 0.9


def floats_certify(moments: Moments, problem: Problem, supports: np.ndarray) -> np.ndarray:
    unit = float(Sensitivity.of(problem).score_step)
    scores = np.empty(len(supports), dtype=np.int64)
    digest = GramData.from_moments(moments)
    return score_all(digest.products, digest.c, digest.yy, supports, problem.coefficients,
                     problem.ridge, float(STEPS) ** 2, unit, scores)  # fmt: skip


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_five_million_rows_stay_in_float64(constraint: str) -> None:
    rng = np.random.default_rng(4)
    table = shape("signal", rng.integers(-STEPS, STEPS + 1, size=(500, P + 1)))
    problem = Problem.create(P, 3, constraint=constraint)
    moments = moments_of_records(table, 10_000)
    assert floats_certify(moments, problem, list_supports(problem)).all()


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", ["plain", "duplicate", "signal"])
def test_huge_tables_take_the_exact_path(constraint: str, kind: str) -> None:
    # 12 records 2**20 * 600 times each: nearly as many as the moments can hold, far more than
    # float64 can certify.
    rng = np.random.default_rng(5)
    table = shape(kind, rng.integers(-STEPS, STEPS + 1, size=(12, P + 1)))
    table[:, -1] = STEPS
    moments = moments_of_records(table, 600 * 2**20)
    problem = Problem.create(P, 2, constraint=constraint, prediction_bound=0.7)
    assert not floats_certify(moments, problem, list_supports(problem)).all()
    with mock.patch.object(least_squares, "minimum", wraps=minimum) as called:
        assert_certified(moments, problem)
    assert called.call_count > 0


def test_a_tiny_reach_on_a_huge_table_stays_within_int64() -> None:
    # The unit follows the range of the loss, down to where scores would overflow.
    moments = moments_of_records([[STEPS, 0, STEPS]], 2**33 - 1)
    problem = Problem.create(2, 1, radius=1e-9)
    unit = Sensitivity.of(problem).score_step
    scores = Scorer(moments, problem, unit).scores(list_supports(problem))
    assert abs(int(scores[1]) * unit - (2**33 - 1)) <= unit


# -- the certificate itself ---------------------------------------------------------------------

RATIONALS = st.fractions(-3, 3, max_denominator=50)


@given(
    st.lists(st.lists(RATIONALS, min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(RATIONALS, min_size=3, max_size=3),
    st.lists(RATIONALS, min_size=3, max_size=3),
    st.sampled_from(CONSTRAINTS),
    st.sampled_from([0.25, 1.0, 7.0]),
)
def test_a_bracket_holds_the_minimum_from_any_point(
    factor: list[list[Fraction]], c: list[Fraction], b: list[Fraction], constraint: str,
    radius: float,
) -> None:  # fmt: skip
    """Any point gives a bracket; brackets from different points must overlap."""
    h = [[sum(row[i] * row[j] for row in factor) for j in range(3)] for i in range(3)]
    q = Quadratic.of(h, c, Fraction(10))
    low, high = bracket(q, SETS[constraint](radius), b)
    tight_low, tight_high = minimum(q, SETS[constraint](radius), Fraction(1, 10**12))
    assert low <= tight_high
    assert tight_low <= high
    assert low <= high


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_minimum_at_any_precision(constraint: str) -> None:
    # A singular H with a minimum known in closed form: (1 - b_0 - b_1)^2 over sum |b| <= 1/2 etc.
    one = Fraction(1)
    q = Quadratic.of([[one, one], [one, one]], [one, one], one)
    prediction_bound = {"box": Fraction(1, 2), "l1": Fraction(1, 4)}.get(constraint)
    for digits in (3, 30, 90):
        tolerance = Fraction(1, 10**digits)
        low, high = minimum(q, SETS[constraint](0.25), tolerance)
        assert high - low <= tolerance
        if prediction_bound is not None:
            assert low <= (1 - prediction_bound) ** 2 <= high
        else:  # reach sqrt(2)/4: the minimum is 1 + 1/8 - sqrt(2)/2
            assert (Fraction(9, 8) - high) ** 2 <= Fraction(1, 2) <= (Fraction(9, 8) - low) ** 2
