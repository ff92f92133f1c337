"""Quantiles drawn from the operating system's randomness, against their closed form.

Every test draws afresh and fails by chance with probability 1e-9 (see gtest.py).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.privacy.quantiles import (
    QuantileRule,
    QuantileSampler,
    _ShellSampler,
    histogram,
    log_probabilities,
    rank_error_range,
    rank_errors,
)
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.privacy.relations import RELATIONS, Neighbours
from support.gtest import LEVEL, g_test, miss
from support.quantiles import quantile

pytestmark = pytest.mark.statistical

DRAWS = 20_000
WRONG = (Fraction(4, 5), Fraction(5, 4))
#: Small ones, with runs and ties; then one that fills several shells.
TABLES = {
    "runs": np.array([3, 0, 1, 0, 0, 2, 1, 0, 4], dtype=np.int64),
    "ties": np.array([0, 0, 7, 0, 9], dtype=np.int64),
    "many": np.array([5, 9, 0, 0, 14, 3, 8, 8, 0, 2, 0, 0, 1, 21, 4], dtype=np.int64),
}
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)


@each_relation
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("start_bits", [64, 8])
def test_draws_agree_with_the_closed_form_and_no_other(
    neighbours: Neighbours, name: str, share: Fraction, start_bits: int
) -> None:
    counts, epsilon = TABLES[name], Fraction(1)
    steps = len(counts) // 2
    rng = Randomness(SystemSource(), start_bits)
    drawn = Counter((quantile(counts, share, epsilon, neighbours, rng),) for _ in range(DRAWS))
    weight = epsilon / rank_error_range((share,), neighbours)
    values = [(v,) for v in range(-steps, steps + 1)]
    right = np.exp(log_probabilities(counts, share, weight))
    assert g_test(drawn, values, right) >= LEVEL
    for factor in WRONG:
        wrong = np.exp(log_probabilities(counts, share, factor * weight))
        seen = miss(right, wrong, DRAWS) < LEVEL
        # Errors of 20 and more tell a wrong weight from the right one; small tables may not.
        assert seen or name != "many"
        assert not seen or g_test(drawn, values, wrong) < LEVEL


def test_the_whole_grid_agrees_with_the_closed_form() -> None:
    """In 64 cells of 1024 values."""
    steps = 2**15 - 1
    y = np.random.default_rng(0).normal(size=400) / 4
    counts = histogram(np.rint(np.clip(y, -1, 1) * steps), steps)
    share, epsilon = Fraction(1, 4), Fraction(1, 5)
    rng = Randomness(SystemSource())
    weight = epsilon / rank_error_range((share,), "add-remove")
    # As `quantile` does, but with the shells made once.
    shells = _ShellSampler(rank_errors(counts, share), weight / share.denominator)
    drawn = Counter((shells.draw(rng) // 1024,) for _ in range(DRAWS))
    cells = np.arange(2 * steps + 1) // 1024
    right = np.bincount(cells, np.exp(log_probabilities(counts, share, weight)))
    wrong = np.bincount(cells, np.exp(log_probabilities(counts, share, weight * WRONG[0])))
    names = [(i,) for i in range(len(right))]
    assert g_test(drawn, names, right) >= LEVEL
    assert miss(right, wrong, DRAWS) < LEVEL
    assert g_test(drawn, names, wrong) < LEVEL


@each_relation
def test_two_quartiles_are_drawn_independently(neighbours: Neighbours) -> None:
    counts, rule = TABLES["many"], QuantileRule.quartiles(least=Fraction(1, 2))
    steps = len(counts) // 2
    weight = rule.weight(Fraction(2), neighbours)
    first, second = (np.exp(log_probabilities(counts, s, weight)) for s in rule.probs)
    drawn: Counter[tuple[int, ...]] = Counter()
    probabilities: dict[tuple[int, ...], float] = {}
    for i, p in enumerate(first):
        for j, q in enumerate(second):
            scale = rule.range_of([i - steps, j - steps])
            key = (int(2 * scale.centre), int(2 * scale.half_width))
            probabilities[key] = probabilities.get(key, 0.0) + p * q
    rng = Randomness(SystemSource())
    for _ in range(DRAWS):
        scale = QuantileSampler(counts, rule, Fraction(2), neighbours).draw(rng)
        drawn[int(2 * scale.centre), int(2 * scale.half_width)] += 1
    assert g_test(drawn, list(probabilities), np.array(list(probabilities.values()))) >= LEVEL
