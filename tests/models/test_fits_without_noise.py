"""epsilon = infinity: every fit against scikit-learn on the same columns, to 1e-6.

There is no infinite epsilon, so noise is taken out where it is drawn. What is left of objective
perturbation is its ridge, which is scikit-learn's on columns scaled to [-1, 1], the constant among
them; and at the largest epsilon there is, with noise, the ridge is next to nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import dpsubset as dps
from dpsubset.data.quantize import STEPS
from dpsubset.models.noisy_moments import NoisyMoments
from dpsubset.models.objective_perturbation import ObjectivePerturbation
from dpsubset.models.smooth import LEAST_SQUARES
from dpsubset.privacy import noise, sup_norm

N, D = 2000, 4
#: In the user's units: what bounds they have.
LOW, HIGH = np.array([0.0, -5.0, 10.0, -1.0]), np.array([1.0, 5.0, 12.0, 3.0])
MIDDLE, HALF = (LOW + HIGH) / 2, (HIGH - LOW) / 2
FEATURES = {f"x{j}": (LOW[j], HIGH[j]) for j in range(D)}


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cells that the quantizer takes as they are, and a signal in scaled units."""
    rng = np.random.default_rng(seed)
    scaled = rng.integers(-STEPS, STEPS + 1, (N, D)) / STEPS
    signal = scaled @ [0.3, -0.2, 0.1, 0.2] + 0.1
    return scaled, signal + rng.normal(0, 0.05, N)


def users(scaled: np.ndarray) -> np.ndarray:
    return MIDDLE + HALF * scaled


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise of any kind, after the selection."""
    monkeypatch.setattr(sup_norm, "draw", lambda d, eta, rng: [0] * d)
    monkeypatch.setattr(noise, "discrete_gaussian", lambda values, scale: list(values))
    monkeypatch.setattr(NoisyMoments, "deviation", lambda self, d: 0.0)


def fitted(scaled: np.ndarray, y: np.ndarray, rule: dps.FitRule, **more: Any) -> dps.Release:
    asked: dict[str, Any] = {"k": D, "epsilon": 1000, "response_range": "declared", **more}
    schema = dps.Schema.from_bounds(FEATURES, ("y", -2, 2))
    if "loss" in more:
        schema = dps.Schema.from_bounds(FEATURES, "y", labels=(0, 1))
        del asked["response_range"]
    return dps.fit(users(scaled), schema, y=y, rule=rule, **asked)


def scaled_coefficients(release: dps.Release, half: float = 1.0) -> np.ndarray:
    """Of columns scaled to [-1, 1] and a response scaled by its half-range; the constant last."""
    model = release.model
    slopes = np.array(list(model.coefficients.values()))
    return np.append(slopes * HALF, model.intercept + slopes @ MIDDLE) / half


def on_grid(y: np.ndarray) -> np.ndarray:
    return 2 * np.rint(y / 2 * STEPS) / STEPS


@pytest.mark.parametrize(
    ("name", "more"),
    [("noisy-moments", {}), ("gaussian-ols", {"delta": 1e-6, "allow_unproven": True})],
)
def test_linear_regression(silent: None, name: str, more: dict[str, Any]) -> None:
    scaled, y = table()
    release = fitted(scaled, y, dps.FitRule(mechanism=name), **more)
    right = LinearRegression().fit(users(scaled), on_grid(y))
    np.testing.assert_allclose(list(release.model.coefficients.values()), right.coef_, atol=1e-6)
    assert release.model.intercept == pytest.approx(right.intercept_, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_linear_regression_at_the_largest_epsilon(seed: int) -> None:
    """By objective perturbation, with its noise: residuals are within the half-range here."""
    scaled, y = table(seed)
    rule = dps.FitRule(mechanism="objective-perturbation", budget_fraction=Fraction(999, 1000))
    release = fitted(scaled, y, rule, epsilon=10**6, seed=seed)
    right = LinearRegression().fit(scaled, on_grid(y) / 2)
    found = scaled_coefficients(release, 2.0)
    np.testing.assert_allclose(found, [*right.coef_, right.intercept_], atol=1e-6)


@pytest.mark.parametrize("epsilon", [1, 10])
def test_ridge(silent: None, epsilon: int) -> None:
    scaled, y = table()
    rule = dps.FitRule(mechanism="objective-perturbation")
    release = fitted(scaled, y, rule, epsilon=epsilon)
    design = np.column_stack([scaled, np.ones(N)])
    right = Ridge(alpha=release.fit.ridge, fit_intercept=False).fit(design, on_grid(y) / 2)
    np.testing.assert_allclose(scaled_coefficients(release, 2.0), right.coef_, atol=1e-6)
    # The ridge counts: plain least squares is another model.
    plain = LinearRegression(fit_intercept=False).fit(design, on_grid(y) / 2)
    assert np.abs(plain.coef_ - right.coef_).max() > 1e-4


def labels(signal: np.ndarray) -> np.ndarray:
    chances = 1 / (1 + np.exp(-4 * signal))
    return (np.random.default_rng(5).random(N) < chances).astype(int)


@pytest.mark.parametrize("epsilon", [1, 10])
def test_logistic_regression(silent: None, epsilon: int) -> None:
    scaled, signal = table()
    y = labels(signal)
    rule = dps.FitRule(mechanism="objective-perturbation")
    release = fitted(scaled, y, rule, epsilon=epsilon, loss="logistic")
    design = np.column_stack([scaled, np.ones(N)])
    right = LogisticRegression(
        C=1 / release.fit.ridge, fit_intercept=False, tol=1e-12, solver="newton-cholesky"
    ).fit(design, y)
    np.testing.assert_allclose(scaled_coefficients(release), right.coef_[0], atol=1e-6)
    found = release.model.probabilities(users(scaled))
    np.testing.assert_allclose(found, right.predict_proba(design)[:, 1], atol=1e-6)


def test_logistic_regression_at_the_largest_epsilon() -> None:
    scaled, signal = table()
    y = labels(signal)
    rule = dps.FitRule(mechanism="objective-perturbation", budget_fraction=Fraction(999, 1000))
    release = fitted(scaled, y, rule, epsilon=10**6, loss="logistic", seed=1)
    right = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(scaled, y)
    found = scaled_coefficients(release)
    np.testing.assert_allclose(found, [*right.coef_[0], *right.intercept_], atol=1e-6)


def test_the_ridge_of_a_release_is_the_one_that_is_paid_for() -> None:
    scaled, y = table()
    release = fitted(scaled, y, dps.FitRule(mechanism="objective-perturbation"), epsilon=1)
    (_, part) = release.guarantee.parts[-1]
    made = ObjectivePerturbation(part.epsilon, "replace-one", LEAST_SQUARES, n=N)
    assert release.fit.ridge == pytest.approx(float(made.ridge(D + 1)[0]))
