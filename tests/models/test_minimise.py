"""Certified minima: losses against their definitions, points against scipy and balls."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from scipy.optimize import minimize

from dpsubset.base.rounding import midpoint
from dpsubset.data.quantize import STEPS
from dpsubset.models import minimise
from dpsubset.models.minimise import Objective
from dpsubset.models.smooth import HINGE, LABEL_SQUARES, LEAST_SQUARES, LOGISTIC, Smooth

LOSSES = (LEAST_SQUARES, LABEL_SQUARES, LOGISTIC, HINGE)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name} {loss.slope}")
GRID = np.linspace(-4, 4, 8001)


def defined(loss: Smooth, o: float, t: float) -> float:
    """The losses once more, from what the page says of them."""
    if loss is LOGISTIC:
        return float(np.log(1 + np.exp(-t)))
    if loss is HINGE:
        return 0.0 if t >= 1.5 else (1.5 - t) ** 2 / 2 if t >= 0.5 else 1 - t
    r, most = abs(t - o), float(loss.slope)
    return r * r / 2 if r <= most else most * r - most**2 / 2


@each_loss
@pytest.mark.parametrize("o", [-1.0, 0.0, 0.3])
def test_losses_are_what_they_say(loss: Smooth, o: float) -> None:
    if loss.labels and o:
        return
    value, slope, curved = loss.floats(np.full(GRID.shape, o), GRID)
    np.testing.assert_allclose(value, [defined(loss, o, t) for t in GRID], atol=1e-12)
    steps = np.diff(value) / np.diff(GRID)
    assert (steps >= slope[:-1] - 1e-9).all()  # convex, with this slope
    assert (steps <= slope[1:] + 1e-9).all()
    assert np.abs(slope).max() <= loss.slope
    assert np.abs(slope).max() > 0.98 * float(loss.slope)
    bends = np.diff(slope) / np.diff(GRID)
    assert bends.min() >= -1e-9
    assert bends.max() <= float(loss.curvature) + 1e-9
    assert bends.max() > 0.99 * float(loss.curvature)
    assert curved.max() <= loss.curvature
    for t in (*GRID[::97], 0.5, 1.5, -1.0, 1.0):
        ball_value, ball_slope = loss.balls(flint.arb(o), flint.arb(float(t)))
        found = loss.floats(np.array([o]), np.array([t]))
        assert float(ball_value.mid()) == pytest.approx(found[0][0], abs=1e-13)
        assert float(ball_slope.mid()) == pytest.approx(found[1][0], abs=1e-13)


def test_slopes_of_the_logistic_loss_are_as_near_as_the_proof_takes_them_to_be() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-40, 40, 10_000), rng.uniform(-1e-3, 1e-3, 2000),
                             rng.uniform(-800, 800, 2000)])  # fmt: skip
    _, slopes, _ = LOGISTIC.floats(np.zeros(len(points)), points)
    worst = max(
        abs(midpoint(LOGISTIC.balls(flint.arb(0), flint.arb(t))[1]) - Fraction(s))
        for t, s in zip(points.tolist(), slopes.tolist(), strict=True)
    )
    assert worst < minimise._SLOPE_ERROR / 4


def objective(loss: Smooth, n: int, ridge: Any = 3, d: int = 3, seed: int = 0) -> Objective:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-STEPS, STEPS + 1, (n, d))
    rows[:, -1] = STEPS
    response = rng.integers(-STEPS, STEPS + 1, n)
    if loss.labels:
        rows, response = rows * np.where(response < 0, -1, 1)[:, None], 0 * response
    linear_term = tuple(Fraction(int(v), 2**20) for v in rng.integers(-(2**22), 2**22, d))
    # Several times as large for some coefficients.
    ridges = tuple(Fraction(ridge) * (1 + 3 * (j % 2)) for j in range(d))
    return Objective(loss, rows.astype(np.int16), response.astype(np.int16), ridges, linear_term)


def whole(of: Objective, b: Any) -> float:
    t = of.rows @ b / STEPS
    losses = [defined(of.loss, o, each) for o, each in zip(of.response / STEPS, t, strict=True)]
    return (
        sum(losses)
        + np.array(of.ridge, dtype=float) @ b**2 / 2
        + np.array(of.linear_term, dtype=float) @ b
    )


@each_loss
@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("ridge", [Fraction(1, 100), 5])
def test_minima_are_where_scipy_finds_them(loss: Smooth, n: int, ridge: Any) -> None:
    of = objective(loss, n, ridge)
    found = np.array([float(v) for v in of.minimum(Fraction(1, 2**28))])
    other = minimize(lambda b: whole(of, b), np.zeros(3), tol=1e-14)
    assert whole(of, found) <= other.fun + 1e-9 * max(1, abs(other.fun))
    np.testing.assert_allclose(found, other.x, rtol=1e-4, atol=1e-3)


@each_loss
@pytest.mark.parametrize("n", [0, 1, 5, 300])
def test_the_distance_is_kept_however_small(loss: Smooth, n: int) -> None:
    """What float64 certifies, and what is left to balls, against a far finer answer."""
    of = objective(loss, n, seed=n)
    fine = of.minimum(Fraction(1, 2**200))
    for distance in (Fraction(1, 16), Fraction(1, 2**28), Fraction(1, 2**80)):
        point = of.minimum(distance)
        far = sum((a - b) ** 2 for a, b in zip(point, fine, strict=True))
        assert far <= (distance + Fraction(1, 2**200)) ** 2


@each_loss
def test_what_float64_counts_for_rounding_is_enough(loss: Smooth) -> None:
    for n, size in ((1, 1.0), (50, 1.0), (50, 1e3), (4000, 0.1)):
        of = objective(loss, n, seed=n)
        point = np.random.default_rng(n).normal(0, size, of.d)
        slope, error = minimise._Floats(of).slope(point)
        with flint.ctx.workprec(256):
            _, balls = minimise._ball_value(of, tuple(Fraction(float(v)) for v in point))
            exact = [midpoint(v) for v in balls]
        worst = max(abs(a - b) for a, b in zip(slope, exact, strict=True))
        assert 0 < worst <= error or not n
        # Generous, but of use.
        assert error < Fraction(n, 10**9)


@each_loss
def test_awkward_tables_have_minima_too(loss: Smooth) -> None:
    rows = np.full((400, 4), STEPS, dtype=np.int16)  # copies of a column, and labels told apart
    for least in (Fraction(1, 10**9), Fraction(10**6)):
        ridge = (2 * least, least, least, 10 * least)
        linear_term = (Fraction(10**7), Fraction(0), Fraction(-1, 3), Fraction(1, 2**60))
        of = Objective(loss, rows, np.zeros(400, dtype=np.int16), ridge, linear_term)
        point = of.minimum(Fraction(1, 2**28))
        with flint.ctx.workprec(512):
            _, slope = minimise._ball_value(of, point)
            assert all(abs(v) <= float(least) * 2.0**-28 * 1.0001 for v in slope)


def test_records_do_not_show() -> None:
    assert "hidden" in repr(objective(LOGISTIC, 3))
