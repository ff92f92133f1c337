"""Noise that falls with the largest entry, from the operating system, against its closed form.

Every test draws afresh and fails by chance with probability 1e-9 (see gtest.py).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.privacy import sup_norm
from dpsubset.privacy.random import Randomness, SystemSource
from support.gtest import LEVEL, g_test, miss
from support.sup_norms import log_weights

pytestmark = pytest.mark.statistical

DRAWS = 40_000


def shells(d: int, eta: float, most: int) -> np.ndarray:
    weights = np.array(log_weights(d, eta, most))
    found = np.exp(weights - weights.max())
    return found / found.sum()


@pytest.mark.parametrize(
    ("d", "eta"),
    [(1, Fraction(1, 3)), (3, Fraction(1, 2)), (8, Fraction(1, 5)), (20, Fraction(1, 20))],
)
def test_the_largest_entry_has_its_law_and_no_other(d: int, eta: Fraction) -> None:
    most = 60 + 8 * int(d / eta)
    rng = Randomness(SystemSource())
    drawn = Counter((max(map(abs, sup_norm.draw(d, eta, rng))),) for _ in range(DRAWS))
    names = [(m,) for m in range(most + 1)]
    right = shells(d, float(eta), most)
    assert g_test(drawn, names, right) >= LEVEL
    wrong = shells(d, float(eta) * 1.1, most)
    assert miss(right, wrong, DRAWS) < LEVEL
    assert g_test(drawn, names, wrong) < LEVEL


def test_vectors_of_a_shell_are_equally_likely() -> None:
    d, eta, most = 2, Fraction(1), 12
    rng = Randomness(SystemSource())
    drawn = Counter(tuple(sup_norm.draw(d, eta, rng)) for _ in range(DRAWS))
    names = [(a, b) for a in range(-most, most + 1) for b in range(-most, most + 1)]
    drawn = Counter({z: count for z, count in drawn.items() if z in set(names)})
    right = np.array([np.exp(-float(max(abs(a), abs(b)))) for a, b in names])
    assert g_test(drawn, names, right / right.sum()) >= LEVEL
    # Independent entries of the same size are another law.
    wrong = np.array([np.exp(-0.75 * (abs(a) + abs(b))) for a, b in names])
    assert g_test(drawn, names, wrong / wrong.sum()) < LEVEL


def test_where_it_is_used_entries_deviate_as_stated() -> None:
    """d = 40 and eta = 1e-9, as in a fit: mean square of the entries, in 400 draws."""
    d, eta = 40, Fraction(1, 10**9)
    rng = Randomness(SystemSource())
    squares = [np.mean(np.square(sup_norm.draw(d, eta, rng), dtype=float)) for _ in range(400)]
    ratio = np.sqrt(np.mean(squares)) / sup_norm.deviation(d, eta)
    assert abs(ratio - 1) < 7 * np.std(squares) / np.mean(squares) / 40
