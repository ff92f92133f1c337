"""The default response range: a public rule of epsilon, the number of rows and k."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset.privacy.quantiles import QuantileRule, RangeInSteps
from dpsubset.privacy.response_range import default_response_range
from dpsubset.schema.layout import STEPS

DECILES = (Fraction(1, 10), Fraction(9, 10))
FEW = 1800
sizes = st.integers(FEW, 10**9)
ks = st.integers(1, 40)


def rule(epsilon: float, n: int | None, k: int) -> tuple[float, float, float]:
    """Half-width in half-distances, prediction bound and fraction of epsilon."""
    found = default_response_range(Fraction(epsilon), n, k)
    assert found.rule.probs == DECILES
    return float(found.rule.width_factor), found.prediction_bound, float(found.budget_fraction)


@pytest.mark.parametrize(
    ("known", "k", "width", "bound", "fraction"),
    [
        (1800, 3, 5 / 16, 1.25, 0.23),
        (2000, 3, 3 / 8, 1.25, 0.2),
        (4000, 3, 1 / 2, 1.25, 0.1),
        (5000, 3, 1 / 2, 1.25, 0.1),
        (30_000, 5, 1 / 2, 1.25, 0.1),
        (50_000, 3, 1 / 2, 1.25, 0.1),
        (75_000, 3, 27 / 16, 1.25, 0.1),
        (800_000, 3, 19 / 4, 9 / 4, 0.1),
        (10**6, 5, 5, 43 / 16, 0.1),
    ],
)
def test_some_values(known: int, k: int, width: float, bound: float, fraction: float) -> None:
    assert rule(1, known, k) == (width, bound, fraction)


@given(sizes, sizes, ks)
def test_the_rule_grows_with_epsilon_n(one: int, other: int, k: int) -> None:
    low, high = (rule(1, n, k) for n in sorted((one, other)))
    assert low[0] <= high[0]
    assert low[1] <= high[1]
    # The fraction falls, but what it buys does not.
    assert low[2] >= high[2]
    assert low[2] * min(one, other) <= high[2] * max(one, other) * 1.1


@given(sizes, ks)
def test_the_rule_is_continuous_up_to_rounding(n: int, k: int) -> None:
    here, there = rule(1, n, k), rule(1, math.ceil(1.01 * n), k)
    # No part of it grows faster than the third power.
    assert there[0] - here[0] <= 0.031 * here[0] + 1.5 / 16
    assert there[1] - here[1] <= 0.004 * here[1] + 1.5 / 16
    assert here[2] - there[2] <= 0.01 * here[2] + 0.01


@given(st.fractions(Fraction(1, 100), 100), st.integers(1, 10**6), ks)
def test_only_the_product_of_epsilon_and_n_counts(epsilon: Fraction, n: int, k: int) -> None:
    assert default_response_range(epsilon, 7 * n, k) == default_response_range(7 * epsilon, n, k)


def test_a_small_table_has_a_median_unless_the_fraction_is_given() -> None:
    for n in (0, 1, FEW - 1):
        few = default_response_range(Fraction(1), n, 3)
        assert few.rule == QuantileRule.median(least=1)
        assert (few.budget_fraction, few.prediction_bound) == (Fraction(1, 20), 1.0)
        given = default_response_range(Fraction(1), n, 3, Fraction(1, 4))
        assert (given.rule.probs, given.budget_fraction) == (DECILES, Fraction(1, 4))


def test_a_private_number_of_rows_has_a_fixed_range() -> None:
    found = {default_response_range(Fraction(e), None, k) for e in (1, 10**6) for k in (1, 9)}
    (fixed,) = found
    assert (fixed.rule.width_factor, fixed.prediction_bound) == (Fraction(1, 2), 1.25)


@given(st.tuples(*[st.integers(-STEPS, STEPS)] * 2), st.fractions(Fraction(1, 16), 10**5))
def test_a_range_is_no_wider_than_the_declared_bounds_need(
    quantiles: tuple[int, int], width: Fraction
) -> None:
    found = QuantileRule(DECILES, width).range_of(quantiles)
    wanted = max(width * Fraction(abs(quantiles[1] - quantiles[0]), 2), Fraction(1))
    low, high = found.centre - found.half_width, found.centre + found.half_width
    assert found.centre == Fraction(sum(quantiles), 2)
    # Either as wide as the rule says, or just so wide that it contains all values.
    assert found.half_width <= wanted
    if found.half_width < wanted:
        assert (min(-low, high), max(-low, high) >= STEPS) == (STEPS, True)


def test_a_wide_range_of_symmetric_quantiles_is_the_declared_one() -> None:
    found = QuantileRule(DECILES, Fraction(10**6)).range_of((-5, 5))
    assert found == RangeInSteps(Fraction(0), Fraction(STEPS))
