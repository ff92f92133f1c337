"""The composed release of a fit, audited by draws: scale, selection and sums with noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import dpsubset as dps
from dpsubset.models.noisy_moments import NoisyMoments, distance

pytestmark = pytest.mark.statistical

DRAWS = 3000
EPSILON = 1.0
LEVEL = 1e-6


def released(y: float, scale: str) -> np.ndarray:
    """A sum with the response, over the draws that selected the first column."""
    x = np.array([[1.0, 0.1], [0.9, 0.0], [1.0, -0.1]])
    found = []
    for _ in range(DRAWS):
        release = dps.fit(
            x, y=np.array([0.9, 0.8, y]), bounds=dps.Bounds(x=1, y=1), k=1, epsilon=EPSILON,
            rule=dps.FitRule(budget_fraction=0.8, mechanism="noisy-moments"), response_range=scale,
        )  # fmt: skip
        entries = release.fit.entries
        total = release.fit.released[2 * entries.m]  # with the response
        found.append(total / distance("replace-one") if release.support == (0,) else -np.inf)
    return np.array(found)


def lower_bound(first: np.ndarray, second: np.ndarray) -> float:
    """On epsilon: an event from one half of the draws, its probabilities bounded by the other."""
    half = len(first) // 2
    grid = np.quantile(first[:half][np.isfinite(first[:half])], np.linspace(0.05, 0.95, 19))

    def ratio(cut: float) -> float:
        return float((first[:half] > cut).mean() / max((second[:half] > cut).mean(), 2 / half))

    cut = max(grid, key=ratio)
    hits, misses = int((first[half:] > cut).sum()), int((second[half:] > cut).sum())
    rest = len(first) - half
    low = beta.ppf(LEVEL, hits, rest - hits + 1) if hits else 0.0
    high = beta.ppf(1 - LEVEL, misses + 1, rest - misses)
    return float(np.log(max(low, 1e-12) / high))


@pytest.mark.parametrize("scale", ["private", "declared"])
def test_draws_do_not_contradict_the_sum(scale: str) -> None:
    assert lower_bound(released(1.0, scale), released(-1.0, scale)) <= EPSILON


def test_a_fit_with_a_tenth_of_its_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = NoisyMoments.eta
    monkeypatch.setattr(NoisyMoments, "eta", property(lambda self: Fraction(10) * right.fget(self)))
    assert lower_bound(released(1.0, "declared"), released(-1.0, "declared")) > EPSILON
