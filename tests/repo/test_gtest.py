"""The G-test that the statistical suite relies on: right level, right power."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from support.gtest import LEAST, g_test, miss, pool


def counts(numbers: np.ndarray) -> Counter[tuple[int, ...]]:
    return Counter({(i,): int(number) for i, number in enumerate(numbers)})


def distribution(cells: int, scale: float) -> np.ndarray:
    weights = np.exp(-scale * np.random.default_rng(cells).random(cells))
    return weights / weights.sum()


@pytest.mark.parametrize(("cells", "scale", "draws"), [(2, 1, 200), (5, 1, 2000), (40, 6, 2000)])
def test_false_alarms_are_as_rare_as_stated(cells: int, scale: float, draws: int) -> None:
    rng = np.random.default_rng(0)
    p = distribution(cells, scale)
    supports = [(i,) for i in range(cells)]
    runs = 4000
    values = np.array([g_test(counts(rng.multinomial(draws, p)), supports, p) for _ in range(runs)])
    for level in (0.3, 0.1, 0.01):
        slack = 5 * np.sqrt(level / runs)
        assert abs((values < level).mean() - level) < slack


@pytest.mark.parametrize("draws", [500, 2000])
def test_the_power_is_as_stated(draws: int) -> None:
    rng = np.random.default_rng(1)
    truth = distribution(12, 2)
    claimed = truth**1.25 / (truth**1.25).sum()
    supports = [(i,) for i in range(12)]
    level, runs = 0.01, 2000
    kept = [
        g_test(counts(rng.multinomial(draws, truth)), supports, claimed) >= level
        for _ in range(runs)
    ]
    assert np.mean(kept) == pytest.approx(miss(truth, claimed, draws, level), abs=0.06)


def test_pools_are_large_enough_and_keep_large_cells_apart() -> None:
    expected = np.array([0.1, 40.0, 3.0, 6.0, 2.0, 30.0, 0.0, 9.0])
    cells = pool(expected)
    sums = np.bincount(cells, expected)
    assert (sums >= LEAST).all()
    assert cells[1] != cells[5]
    assert len(sums) == 3
    # Too few draws for two cells.
    assert set(pool(np.array([1.0, 2.0, 12.0]))) == {0}


def test_what_cannot_happen_is_rejected_at_once() -> None:
    p = np.array([0.5, 0.5])
    assert g_test(Counter({(7,): 1, (0,): 50, (1,): 50}), [(0,), (1,)], p) == 0
    assert g_test(counts(np.array([50, 50])), [(0,), (1,)], p) > 0.9
    certain = np.array([1.0, 0.0])
    assert g_test(counts(np.array([100, 0])), [(0,), (1,)], certain) == 1
