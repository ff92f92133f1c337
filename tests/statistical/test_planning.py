"""Power analyses against an independent implementation.

The tables of the other side are drawn here, with NumPy alone, and `dpsubset.simulate` draws from
them as it would from any array: nothing of `dpsubset.power_analysis` takes part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpsubset as dps

#: n, p, k, epsilon, snr, rho and options. Most were drawn at random once, with an epsilon at which
#: recovery is neither certain nor impossible; peeling and the last five were written by hand. Of
#: the very last one, sums are rescaled.
SETTINGS: list[tuple[int, int, int, float, float, float, dict[str, Any]]] = [
    (587, 27, 2, 0.57, 5.73, 0.0, {"neighbours": "add-remove", "response_range": "declared"}),
    (559, 24, 5, 4.5, 3.59, 0.0, {"constraint": "ball"}),
    (759, 23, 4, 7.6, 3.34, 0.6,
     {"mechanism": "exponential", "constraint": "l1", "response_range": "declared"}),
    (911, 17, 2, 1.1, 7.22, 0.0,
     {"mechanism": "exponential", "constraint": "l1", "response_range": "declared"}),
    (1331, 13, 3, 1.6, 0.69, 0.0, {"constraint": "l1"}),
    (1202, 28, 3, 1.9, 1.69, 0.6,
     {"mechanism": "exponential", "constraint": "ball", "neighbours": "add-remove",
      "response_range": "declared"}),
    (2009, 12, 3, 0.24, 3.15, 0.0, {"mechanism": "exponential"}),
    (494, 23, 4, 4.5, 0.68, 0.3,
     {"mechanism": "exponential", "neighbours": "add-remove", "response_range": "declared"}),
    (1785, 14, 5, 3.8, 1.59, 0.3,
     {"mechanism": "exponential", "constraint": "l1", "response_range": "declared"}),
    (451, 25, 2, 0.95, 0.86, 0.0, {"mechanism": "exponential", "constraint": "ball"}),
    (388, 27, 5, 11.0, 1.93, 0.3,
     {"constraint": "ball", "neighbours": "add-remove", "response_range": "declared"}),
    (1039, 19, 5, 4.5, 3.18, 0.6,
     {"mechanism": "choose-size", "constraint": "ball", "neighbours": "add-remove",
      "response_range": "declared"}),
    (999, 10, 3, 0.7, 1.57, 0.0,
     {"mechanism": "peeling", "response_range": "declared", "intercept": False}),
    (322, 26, 1, 0.48, 5.97, 0.0,
     {"mechanism": "exponential", "loss": "huber", "response_range": "declared"}),
    (611, 16, 2, 0.48, 0.58, 0.3,
     {"constraint": "l1", "neighbours": "add-remove", "loss": "huber"}),
    (488, 20, 3, 0.67, 1.87, 0.0,
     {"mechanism": "exponential", "neighbours": "add-remove", "loss": "logistic"}),
    (814, 12, 2, 0.6, 3.71, 0.3, {"constraint": "ball", "loss": "logistic"}),
    (400, 10, 2, 1.0, 3.16, 0.6, {"loss": "hinge"}),
    (1500, 20, 2, 0.2, 2.0, 0.0, {"ridge": 20.0, "neighbours": "add-remove"}),
    (60_000, 60, 3, 0.016, 2.0, 0.3, {"response_range": "declared"}),
    (700, 30, 3, 1.3, 1.0, 0.0, {"intercept": False, "prediction_bound": 0.8}),
]  # fmt: skip

#: Tables and draws of the direct simulation, and tables of a power analysis.
TABLES, DRAWS, SIMULATED = 100, 3, 300

#: Standard errors of a difference that are allowed: 4e-8 by chance, 8e-7 for 21 settings. They
#: are about 0.2 of probability for one setting, and about 0.04 for the mean over all settings.
ALLOWED = 5.5


def table(n: int, p: int, k: int, snr: float, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Correlated Gaussian columns; a response of variance 1 made of every second column."""
    rng = np.random.default_rng()
    places = np.arange(p)
    covariance = float(rho) ** np.abs(places[:, None] - places)
    x = rng.multivariate_normal(np.zeros(p), covariance, n, method="cholesky")
    true = places[: 2 * k : 2]
    signal = x[:, true].sum(axis=1)
    variance = covariance[np.ix_(true, true)].sum()
    y = signal / np.sqrt(variance) * np.sqrt(snr) + rng.standard_normal(n)
    return x, y / np.sqrt(1 + snr)


def directly(
    n: int, p: int, k: int, epsilon: float, snr: float, rho: float, options: dict[str, Any]
) -> np.ndarray:
    """The frequency of the truth among some draws, for each of many tables."""
    labels = options.get("loss") in ("logistic", "hinge")
    bounds = dps.Bounds(x=3, labels=(-1, 1)) if labels else dps.Bounds(x=3, y=3)
    truth = tuple(range(0, 2 * k, 2))
    found = []
    for _ in range(TABLES):
        x, y = table(n, p, k, snr, rho)
        drawn = dps.simulate(
            x, y=np.where(y < 0, -1.0, 1.0) if labels else y, bounds=bounds, k=k, epsilon=epsilon,
            draws=DRAWS, **options,
        )  # fmt: skip
        found.append(drawn[truth] / DRAWS)
    return np.array(found)


def squared_error(mean: float, variance: float, tables: int) -> float:
    """Of a mean, with what is not seen where all tables agree: as if two more had differed."""
    return max(variance, 2 * mean * (1 - mean) / tables, 2 / tables**2) / tables


@pytest.mark.statistical
def test_power_analyses_agree_with_direct_simulations() -> None:
    differences, errors, caught = [], [], 0
    for n, p, k, epsilon, snr, rho, options in SETTINGS:
        plain: dict[str, Any] = {"n": n, "p": p, "k": k, "snr": snr, "rho": rho, **options}
        found = dps.power(**plain, epsilon=epsilon, tables=SIMULATED)
        seen = directly(n, p, k, epsilon, snr, rho, options)
        error = squared_error(float(seen.mean()), float(seen.var(ddof=1)), TABLES)
        mean = (found.recovery.successes + 1) / (SIMULATED + 2)  # never 0 or 1
        error += mean * (1 - mean) / SIMULATED
        away = float(seen.mean()) - found.probability
        shown = f"{n, p, k, epsilon, snr, rho, options}: {found.probability}, {seen.mean()}"
        print(shown, round(away / np.sqrt(error), 2))
        assert abs(away) <= ALLOWED * np.sqrt(error), shown
        differences.append(away)
        errors.append(error)
        # The twin: a power analysis for another epsilon is off.
        wrong = dps.power(**plain, epsilon=3 * epsilon, tables=SIMULATED).probability
        caught += abs(float(seen.mean()) - wrong) > ALLOWED * np.sqrt(error)
    # Errors of either sign cancel, and a bias does not.
    spread = np.sqrt(np.sum(errors)) / len(errors)
    print("mean difference", np.mean(differences), "standard error", spread, "caught", caught)
    assert abs(np.mean(differences)) <= ALLOWED * spread
    assert caught >= 3
