"""The rational path: minima that are known beforehand, by either proposal, up to k = 1000.

Every c = H b + m, with b on the bound and m pointing out of C there, makes b a minimiser: any H
serves, singular or not, and the minimum is an exact rational that no solver was asked for.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset.base.errors import TableError
from dpsubset.constraints import CONSTRAINTS as SETS
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.objective.losses import barrier, certified
from dpsubset.objective.losses.certified import bracket, minimum
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.objective.losses.quadratic import Quadratic
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from support.recipes import CONSTRAINTS

#: Vectors whose l2 norm is rational, by length.
LENGTHS = {1: (1,), 2: (3, 4), 3: (2, 3, 6), 4: (1, 1, 5, 3)}


def no_points(*_: object) -> tuple[()]:
    return ()


def value(h: list[list[Fraction]], c: list[Fraction], yy: Fraction, b: list[Fraction]) -> Fraction:
    """q(b), entry by entry."""
    total = yy
    for i, x in enumerate(b):
        total -= 2 * c[i] * x
        for j, y in enumerate(b):
            total += h[i][j] * x * y
    return total


@st.composite
def known(draw: st.DrawFn) -> tuple[Quadratic, str, float, Fraction]:
    """A quadratic, its constraint and radius, and its minimum."""
    constraint = draw(st.sampled_from(CONSTRAINTS))
    k = draw(st.integers(1, 4))
    radius = draw(st.sampled_from([2.0**-20, 0.25, 1.0, 48.0]))
    push = draw(st.sampled_from([Fraction(0), Fraction(1, 10**9), Fraction(1), Fraction(10**9)]))
    signs = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=k, max_size=k))
    shares = draw(st.lists(st.integers(1, 9), min_size=k, max_size=k))
    if constraint == "box":  # at a bound where the sign is not 0, else off it
        b = [Fraction(s or Fraction(a, 10)) for s, a in zip(signs, shares, strict=True)]
        m = [push * s * a for s, a in zip(signs, shares, strict=True)]
    elif constraint == "ball":
        size = {1: 1, 2: 5, 3: 7, 4: 6}[k]
        b = [Fraction((s or 1) * x, size) for s, x in zip(signs, LENGTHS[k], strict=True)]
        m = [push * x for x in b]
    else:
        total = sum(a for s, a in zip(signs, shares, strict=True) if s)
        b = [Fraction(s * a, total or 1) for s, a in zip(signs, shares, strict=True)]
        m = [push * (s or Fraction(a, 10)) for s, a in zip(signs, shares, strict=True)]
        if not total:
            m = [Fraction(0)] * k
    b = [x * Fraction(radius) for x in b]
    entries = st.lists(st.integers(-4, 4), min_size=k, max_size=k)
    rows = draw(st.lists(entries, min_size=0, max_size=5))
    weight = draw(st.sampled_from([Fraction(1), Fraction(2**33), Fraction(1, 3)]))
    h = [[weight * sum(r[i] * r[j] for r in rows) for j in range(k)] for i in range(k)]
    c = [sum((u * x for u, x in zip(h[i], b, strict=True)), m[i]) for i in range(k)]
    yy = draw(st.sampled_from([Fraction(0), Fraction(5, 7), Fraction(2**33)]))
    return Quadratic.of(h, c, yy), constraint, radius, value(h, c, yy, b)


@given(known(), st.sampled_from([Fraction(1), Fraction(1, 2**17), Fraction(1, 2**27)]))
def test_known_minima_lie_in_the_bracket(
    case: tuple[Quadratic, str, float, Fraction], tolerance: Fraction
) -> None:
    q, constraint, radius, true = case
    low, high = minimum(q, SETS[constraint](radius), tolerance)
    assert low <= true <= high <= low + tolerance


@given(known())
def test_known_minima_lie_in_the_bracket_of_the_barrier_alone(
    case: tuple[Quadratic, str, float, Fraction],
) -> None:
    q, constraint, radius, true = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certified, "points", no_points)
        low, high = minimum(q, SETS[constraint](radius), Fraction(1, 2**17))
    assert low <= true <= high <= low + Fraction(1, 2**17)


@given(known(), st.lists(st.fractions(-2, 2, max_denominator=9), min_size=4, max_size=4))
def test_known_minima_lie_in_the_bracket_of_any_point(
    case: tuple[Quadratic, str, float, Fraction], b: list[Fraction]
) -> None:
    q, constraint, radius, true = case
    low, high = bracket(q, SETS[constraint](radius), [x * 2 for x in b[: len(q.c)]])
    assert low <= true <= high


# -- it answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_more_bits_mean_more_newton_steps(constraint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a number of steps that is too small at first, and in the end with one that grows."""
    h = [[Fraction(2**40 * (1 + (i == j))) for j in range(3)] for i in range(3)]
    q = Quadratic.of(h, [Fraction(2**41 * (j + 1)) for j in range(3)], Fraction(2**42))
    expected = minimum(q, SETS[constraint](1.0), Fraction(1, 2**16))
    monkeypatch.setattr(certified, "points", no_points)
    proposals = certified._barrier

    def attempts(steps_of: object) -> list[int]:
        seen: list[int] = []

        def counted(*arguments: object) -> list[Fraction]:
            seen.append(arguments[-1])  # type: ignore[arg-type]
            if len(seen) > 5:
                raise RuntimeError("more and more bits, and no progress")
            return proposals(*arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(barrier, "most_steps", steps_of)
            patch.setattr(certified, "_barrier", counted)
            low, high = minimum(q, SETS[constraint](1.0), Fraction(1, 2**16))
        assert high - low <= Fraction(1, 2**16)
        assert max(low, expected[0]) <= min(high, expected[1])
        return seen

    with pytest.raises(RuntimeError):
        attempts(lambda bits: 1)
    assert len(attempts(lambda bits: bits // 128)) > 1
    assert len(attempts(barrier.most_steps)) <= 2
    assert all(barrier.most_steps(2 * bits) >= 2 * barrier.most_steps(bits) for bits in (128, 999))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("size", [Fraction(10**400), Fraction(1, 10**400)])
def test_numbers_beyond_float64_are_answered(constraint: str, size: Fraction) -> None:
    q = Quadratic.of([[size, size], [size, size]], [size, size], size)
    low, high = minimum(q, SETS[constraint](0.25), size / 10**6)
    assert high - low <= size / 10**6
    prediction_bound = {"box": 0.5, "ball": 2**-1.5, "l1": 0.25}[constraint]
    assert float(low / size) == pytest.approx((1 - prediction_bound) ** 2, abs=2e-6)


@pytest.mark.parametrize("ridge", [0.0, 1e-300, 1e15])
def test_no_data_and_any_ridge(ridge: float) -> None:
    moments = Moments(np.zeros((4, 4), dtype=np.int64), 0, "none")
    for constraint in CONSTRAINTS:
        problem = Problem.create(3, 3, constraint=constraint, ridge=ridge)
        assert Scorer(moments, problem, Fraction(1, 2**10)).exact_score([0, 1, 2]) == 0


# -- many variables -----------------------------------------------------------------------------


def thousand(constraint: str) -> tuple[Moments, Problem, Fraction]:
    """1000 variables of rank 128, some equal, 2**30 records, and the score of all of them.

    Columns are +-2**14 and the minimiser is a multiple of 2**-20, so that c is whole.
    """
    k, rank, times = 1000, 128, 2**23
    rng = np.random.default_rng(6)
    x = rng.choice([-1.0, 1.0], (rank, k)) * 2**14
    x[:, 1::7] = x[:, ::7][:, : x[:, 1::7].shape[1]]
    g = (x.T @ x).astype(np.int64)
    sign = rng.choice([-1, 1], k)
    b = sign * rng.integers(1, 2**6, k)  # in units of 2**-20
    if constraint == "box":
        bound = np.arange(k) % 2 == 0
        b[bound] = 2**6 * sign[bound]
        radius, m = 2.0**-14, np.where(bound, sign * 10**15, 0)
    elif constraint == "ball":
        b = np.where(np.arange(k) < 900, 64 * sign, 0)
        radius, m = 30 * 2.0**-14, b * 10**13
    else:
        inside = np.arange(k) % 3 > 0
        b[inside] = 0
        radius, m = float(np.abs(b).sum()) * 2.0**-20, sign * np.where(inside, 5, 9) * 10**14
    c = (g @ b) * (times // 2**20) + m
    yy = (2 * b.astype(object) @ c - (b.astype(object) @ g @ b) * (times // 2**20)) // 2**20
    yy = int(yy) + 2**55  # more than the model explains
    products = np.zeros((k + 1, k + 1), dtype=np.int64)
    products[:k, :k], products[:k, k], products[k, :k], products[k, k] = g * times, c, c, yy
    inner = int(b.astype(object) @ g @ b) * times
    true = Fraction(inner - 2 * int(b.astype(object) @ c) * 2**20, 2**40) + yy
    problem = Problem.create(k, k, constraint=constraint, radius=radius)
    return Moments(products, rank * times, "known"), problem, true / STEPS**2


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_thousand_variables_on_the_bound_answer(
    constraint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hours(*_: object) -> None:
        raise AssertionError("the barrier takes hours for so many")

    monkeypatch.setattr(certified, "_barrier", hours)
    moments, problem, true = thousand(constraint)
    unit = Sensitivity.of(problem).score_step
    score = Scorer(moments, problem, unit).exact_score(np.arange(1000))
    assert abs(score * unit - true) <= unit


def test_proposals_are_enough_where_float64_kernels_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the barrier: as many records as there can be, on the bound and off, dependent."""
    monkeypatch.delattr(certified, "_barrier")
    rng = np.random.default_rng(8)
    for kind, constraint, prediction_bound, ridge in itertools.product(
        ("plain", "equal", "near"), CONSTRAINTS, (1e-3, 1.0, 1e5), (0.0, 2.0)
    ):
        x = rng.integers(-STEPS, STEPS + 1, (128, 13))
        if kind == "equal":
            x[:, 6:12] = x[:, :6]
        elif kind == "near":
            x[:, :12] = np.clip(x[:, :1] + rng.integers(-2, 3, (128, 12)), -STEPS, STEPS)
        moments = Moments(x.T @ x * (2**26 - 1), (2**26 - 1) * 128, "many")
        problem = Problem.create(
            12, 12, constraint=constraint, prediction_bound=prediction_bound, ridge=ridge
        )
        unit = Sensitivity.of(problem).score_step
        assert Scorer(moments, problem, unit).exact_score(range(12)) >= 0


@pytest.mark.parametrize("constraint", ["box", "l1"])
def test_a_matrix_of_no_table_ends_with_an_error(constraint: str) -> None:
    """What the check of moments cannot tell from rounding; the minimum may then have no proof."""
    h = [[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]]
    q = Quadratic.of(h, [Fraction(1, 10), Fraction(1, 5)], Fraction(1))
    with pytest.raises(TableError, match="no table"):
        minimum(q, SETS[constraint](1.0), Fraction(1, 1000))
