"""Intervals of released models cover as often as they say: 2,000 releases in each setting.

Two kinds: of the table's own least squares coefficient (noise alone), over releases from one table;
and of the population's (noise and sampling), over tables. Where noise may have made all that tells
a column apart intervals are infinite, and cover more; they must never cover less, however narrow
a column is within its bounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.models.entries import LARGEST, Entries
from dpsubset.models.noisy_moments import NoisyMoments
from dpsubset.models.solve import solve
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.schema.encoding import Design

pytestmark = pytest.mark.statistical

RELEASES = 2000
BETA = np.array([1.0, -0.5, 0.7])


def table(
    n: int, rho: float, rng: np.random.Generator, widths: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)
) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns with these deviations, of bounds -1 and 1; some half is explained."""
    root = np.linalg.cholesky(rho * np.ones((3, 3)) + (1 - rho) * np.eye(3))
    normal = rng.normal(size=(n, 3)) @ root.T
    y = normal @ BETA / 3 + rng.normal(0, 0.35, n)
    return np.clip(normal * widths, -1, 1), np.clip(y / 4, -1, 1)


def sums(x: np.ndarray, y: np.ndarray) -> tuple[Entries, list[int]]:
    schema = dps.Bounds(x=1, y=1).schema(["a", "b", "c"])
    entries = Entries.of(Design.of(schema), counted=False)
    columns = np.column_stack([x, np.ones(len(x)), y])
    products = np.rint(columns.T @ columns * LARGEST).astype(np.int64)
    return entries, entries.values(products)


def covered(ends: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return (ends[:, 0] <= truth) & (truth <= ends[:, 1])


USUAL, NARROW, TINY = (1 / 3, 1 / 3, 1 / 3), (0.3, 0.3, 0.05), (0.3, 0.1, 0.02)

#: n, epsilon of the fit, correlation, and how wide the columns are within their bounds.
SETTINGS = [
    (50_000, 0.6, 0.0, USUAL), (50_000, 0.6, 0.5, USUAL), (50_000, 0.6, 0.8, USUAL),
    (50_000, 2.4, 0.8, USUAL), (50_000, 0.6, 0.3, NARROW), (50_000, 2.4, 0.3, TINY),
    (1_000, 1.2, 0.0, USUAL), (1_000, 2.4, 0.0, USUAL), (1_000, 6.0, 0.0, USUAL),
    (1_000, 1.2, 0.5, USUAL), (1_000, 2.4, 0.5, USUAL), (1_000, 6.0, 0.5, USUAL),
    (1_000, 6.0, 0.8, USUAL),
    (1_000, 12.0, 0.8, USUAL), (1_000, 60.0, 0.3, NARROW),
]  # fmt: skip

#: Where many intervals are infinite.
HIDDEN = [
    (1_000, 0.3, 0.0, USUAL), (1_000, 0.6, 0.0, USUAL), (1_000, 0.6, 0.5, USUAL),
    (1_000, 2.4, 0.8, USUAL), (1_000, 2.4, 0.3, NARROW),
    (1_000, 12.0, 0.3, NARROW), (1_000, 0.6, 0.3, TINY), (1_000, 12.0, 0.3, TINY),
    (50_000, 0.6, 0.3, TINY),
]  # fmt: skip


def rates(
    n: int, epsilon: float, rho: float, widths: tuple[float, ...], off: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """How often intervals cover the table's own coefficients, and how often they end."""
    x, y = table(n, rho, np.random.default_rng(n), widths)
    entries, values = sums(x, y)
    truth = np.linalg.lstsq(np.column_stack([x, np.ones(n)]), y, rcond=None)[0]
    noise = NoisyMoments(Fraction(str(epsilon)), Fraction(0), "replace-one", 3)
    rng, hits, ended = Randomness(SystemSource()), np.zeros(4), np.zeros(4)
    for _ in range(RELEASES):
        found = solve(entries, noise.draw(values, rng), n, off * noise.deviation(entries.d))
        hits += covered(found.of_table, truth)
        ended += np.isfinite(found.of_table).all(axis=1)
    print(f"table n={n} epsilon={epsilon} rho={rho} widths={widths}:", hits / RELEASES,
          "finite:", ended / RELEASES)  # fmt: skip
    return hits / RELEASES, ended / RELEASES


@pytest.mark.parametrize(("n", "epsilon", "rho", "widths"), SETTINGS)
def test_the_tables_own_coefficients_are_covered(
    n: int, epsilon: float, rho: float, widths: tuple[float, ...]
) -> None:
    hits, ended = rates(n, epsilon, rho, widths)
    # By chance alone 2,000 releases may be off by 0.027: more than five deviations.
    assert (hits >= 0.943 - 0.027).all()
    assert (hits[:3] <= 0.963 + 0.024).all()
    assert (ended > 0.92).all()


@pytest.mark.parametrize(("n", "epsilon", "rho", "widths"), HIDDEN)
def test_intervals_of_what_noise_hides_are_infinite_and_never_too_short(
    n: int, epsilon: float, rho: float, widths: tuple[float, ...]
) -> None:
    hits, ended = rates(n, epsilon, rho, widths)
    assert (hits >= 0.927 - 0.029).all()
    assert ended.min() < 0.95


def test_the_clip_of_a_default_release_is_covered_too() -> None:
    """The whole way, of the coefficients of the response as it was clipped."""
    rng = np.random.default_rng(2)
    x, y = table(3_000, 0.5, rng)
    y = y * 6 + rng.standard_t(2, len(y))  # long tails: there is something to clip
    bounds, hits, ended = dps.Bounds(x=1, y=100), np.zeros(3), 0
    for _ in range(RELEASES):
        model = dps.fit(x, y=y, bounds=bounds, k=3, epsilon=4).model
        assert model is not None
        low, high = model.clipped
        design = np.column_stack([x, np.ones(len(x))])
        truth = np.linalg.lstsq(design, np.clip(y, low, high), rcond=None)[0]
        ends = np.array(list(model.table_intervals.values()))
        hits += covered(ends, truth[:3])
        ended += int(np.isfinite(ends).all())
    print("clip:", hits / RELEASES, "finite:", ended / RELEASES)
    assert (hits / RELEASES >= 0.943 - 0.027).all()
    assert (hits / RELEASES <= 0.963 + 0.024).all()


@pytest.mark.parametrize(("n", "epsilon", "rho"), [(1_000, 6.0, 0.0), (1_000, 6.0, 0.5),
                                                   (5_000, 2.4, 0.5)])  # fmt: skip
def test_the_populations_coefficients_are_covered(n: int, epsilon: float, rho: float) -> None:
    rng, bits = np.random.default_rng(), Randomness(SystemSource())
    noise = NoisyMoments(Fraction(str(epsilon)), Fraction(0), "replace-one", 3)
    hits = np.zeros(3)
    for _ in range(RELEASES):
        entries, values = sums(*table(n, rho, rng))
        found = solve(entries, noise.draw(values, bits), n, noise.deviation(entries.d))
        hits += covered(found.of_both[:3], BETA / 4)
    print(f"population n={n} epsilon={epsilon} rho={rho}:", hits / RELEASES)
    # Clipping at three deviations moves the population's coefficients by less than a hundredth.
    assert (hits / RELEASES >= 0.92).all()
    assert (hits / RELEASES).mean() <= 0.98


def test_intervals_for_half_the_noise_are_caught() -> None:
    """The twin."""
    hits, _ = rates(50_000, 0.6, 0.5, USUAL, off=0.5)
    assert (hits < 0.8).all()
