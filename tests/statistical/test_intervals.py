"""Intervals of released models cover as often as they say: 2,000 releases in each setting.

Two kinds: of the table's own least squares coefficient (noise alone), over releases from one table;
and of the population's (noise and sampling), over tables. Where columns are so correlated that
noise hides what tells them apart, intervals are wide and cover more.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.models.entries import LARGEST, Entries
from dpsubset.models.noisy_moments import NoisyMoments
from dpsubset.models.solve import QUANTILE, solve
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.public.design import Design

pytestmark = pytest.mark.statistical

RELEASES = 2000
BETA = np.array([1.0, -0.5, 0.7])


def table(n: int, rho: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns with a deviation of a third of their bounds; some half is explained."""
    root = np.linalg.cholesky(rho * np.ones((3, 3)) + (1 - rho) * np.eye(3))
    x = np.clip(rng.normal(size=(n, 3)) @ root.T / 3, -1, 1)
    signal = x @ BETA
    y = signal + rng.normal(0, 0.35, n)
    return x, np.clip(y / 4, -1, 1)


def sums(x: np.ndarray, y: np.ndarray) -> tuple[Entries, list[int]]:
    schema = dps.Bounds(x=1, y=1).schema(["a", "b", "c"])
    entries = Entries.of(Design.of(schema), counted=False)
    columns = np.column_stack([x, np.ones(len(x)), y])
    products = np.rint(columns.T @ columns * LARGEST).astype(np.int64)
    return entries, entries.values(products, len(x))


#: n, epsilon of the fit, correlation.
SETTINGS = [
    (50_000, 0.6, 0.0), (50_000, 0.6, 0.5), (50_000, 0.6, 0.8), (50_000, 2.4, 0.8),
    (1_000, 6.0, 0.0), (1_000, 6.0, 0.5), (1_000, 12.0, 0.8),
]  # fmt: skip


@pytest.mark.parametrize(("n", "epsilon", "rho"), SETTINGS)
def test_the_tables_own_coefficients_are_covered(n: int, epsilon: float, rho: float) -> None:
    x, y = table(n, rho, np.random.default_rng(n))
    entries, values = sums(x, y)
    design = np.column_stack([x, np.ones(n)])
    truth = np.linalg.lstsq(design, y, rcond=None)[0]
    noise = NoisyMoments(Fraction(str(epsilon)), Fraction(0), "replace-one", 3)
    rng, hits = Randomness(SystemSource()), np.zeros(4)
    for _ in range(RELEASES):
        found = solve(entries, noise.draw(values, rng), n, noise.deviation(entries.d))
        hits += np.abs(found.plain - truth) <= QUANTILE * found.of_table
    # By chance alone 2,000 releases may be off by 0.02: four deviations.
    print(f"table n={n} epsilon={epsilon} rho={rho}:", hits / RELEASES)
    assert (hits / RELEASES >= 0.93 - 0.005).all()
    assert (hits[:3] / RELEASES).mean() <= 0.975


@pytest.mark.parametrize(("n", "epsilon", "rho"), [(1_000, 6.0, 0.0), (1_000, 6.0, 0.5),
                                                   (5_000, 2.4, 0.5)])  # fmt: skip
def test_the_populations_coefficients_are_covered(n: int, epsilon: float, rho: float) -> None:
    rng, bits = np.random.default_rng(), Randomness(SystemSource())
    noise = NoisyMoments(Fraction(str(epsilon)), Fraction(0), "replace-one", 3)
    hits = np.zeros(3)
    for _ in range(RELEASES):
        entries, values = sums(*table(n, rho, rng))
        found = solve(entries, noise.draw(values, bits), n, noise.deviation(entries.d))
        hits += np.abs(found.plain[:3] - BETA / 4) <= QUANTILE * found.of_both[:3]
    print(f"population n={n} epsilon={epsilon} rho={rho}:", hits / RELEASES)
    # Clipping at three deviations moves the population's coefficients by less than a hundredth.
    assert (hits / RELEASES >= 0.92).all()
    assert (hits / RELEASES).mean() <= 0.98


def test_intervals_for_half_the_noise_are_caught() -> None:
    """The twin."""
    x, y = table(50_000, 0.5, np.random.default_rng(1))
    entries, values = sums(x, y)
    truth = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]
    noise = NoisyMoments(Fraction(3, 5), Fraction(0), "replace-one", 3)
    rng, hits = Randomness(SystemSource()), np.zeros(4)
    for _ in range(500):
        found = solve(entries, noise.draw(values, rng), len(x), noise.deviation(entries.d) / 2)
        hits += np.abs(found.plain - truth) <= QUANTILE * found.of_table
    assert (hits / 500 < 0.8).all()
