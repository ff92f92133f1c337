"""Plans against direct simulations: tables made row by row, and `dpsubset.simulate` on each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dpsubset.power.population import Population

import dpsubset as dps

#: n, p, k, epsilon, snr, rho and what is asked. Most were drawn once at random, and
#: epsilon was set by the planner so that something is to be seen; peeling and the last four were
#: written by hand, for what the draw had left out or what takes too long to search.
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
    (700, 30, 3, 1.3, 1.0, 0.0, {"intercept": False, "prediction_bound": 0.8}),
]  # fmt: skip

#: Tables and draws of the direct simulation, and tables of simulated plans.
TABLES, DRAWS, PLANNED = 100, 3, 100

#: Standard errors of a difference that are allowed: 4e-8 by chance, 8e-7 for 20 settings. With 100
#: tables on either side they are about 0.2 of probability for one setting, which half or twice of
#: epsilon passes, and about 0.04 for the mean over all settings.
ALLOWED = 5.5


def directly(population: Population, n: int, epsilon: float, asked: dict[str, Any]) -> Any:
    """The shares of draws that name the truth, of many tables."""
    response = {"labels": (-1, 1)} if population.labels else {"y": population.y_bound}
    bounds = dps.Bounds(x=population.x_bound, **response)
    shares = []
    for _ in range(TABLES):
        x, y = population.table(n, np.random.default_rng())
        found = dps.simulate(
            x, y=y, bounds=bounds, k=population.k, epsilon=epsilon, draws=DRAWS, **asked
        )
        shares.append(found[population.truth] / DRAWS)
    return np.array(shares)


def squared_error(mean: float, variance: float, tables: int) -> float:
    """Of a mean, with what is not seen where all tables agree: as if two more had differed."""
    return max(variance, 2 * mean * (1 - mean) / tables, 2 / tables**2) / tables


@pytest.mark.statistical
def test_plans_agree_with_direct_simulations() -> None:
    differences, errors, caught = [], [], 0
    for n, p, k, epsilon, snr, rho, asked in SETTINGS:
        plain = {"n": n, "p": p, "k": k, "snr": snr, "rho": rho, **asked}
        found = dps.plan(**plain, epsilon=epsilon, seconds=2.0)
        tables, simulated = found.estimate.tables, found.estimate.simulated
        shares = directly(found.assumed, n, epsilon, asked)
        mean, low, high = found.probability, *found.interval
        error = squared_error(float(shares.mean()), float(shares.var(ddof=1)), TABLES)
        band = 0.0
        if simulated:  # its interval is of 1.96 standard errors, or wider
            error += ((high - low) / 2 / 1.96) ** 2
        else:
            band = max(mean - low, high - mean)
        away = float(shares.mean()) - mean
        shown = f"{n, p, k, epsilon, snr, rho, asked}: {mean} by {tables} tables, {shares.mean()}"
        print(shown, round(away / np.sqrt(error), 2))
        assert abs(away) <= band + ALLOWED * np.sqrt(error), shown
        differences.append(away)
        errors.append(error)
        if not simulated:  # the twin: a plan for another epsilon is off
            wrong = dps.plan(**plain, epsilon=2 * epsilon)
            away = float(shares.mean()) - wrong.probability
            width = max(wrong.probability - wrong.interval[0], 0.0)
            caught += abs(away) > width + ALLOWED * np.sqrt(error)
    # Errors of either sign cancel, and a bias does not.
    spread = np.sqrt(np.sum(errors)) / len(errors)
    print("mean difference", np.mean(differences), "standard error", spread, "caught", caught)
    assert abs(np.mean(differences)) <= 0.02 + ALLOWED * spread
    assert caught >= 3
