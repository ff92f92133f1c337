"""Concentrated privacy to (epsilon, delta): never too little, never much too much."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dpsubset import ArgumentError
from dpsubset.privacy.accounting import _bound, _good_alpha, epsilon_of, rho_for

RHOS = st.fractions(Fraction(1, 10**6), 100)
EPSILONS = st.fractions(Fraction(1, 10**6), 10**4)
DELTAS = st.integers(1, 60).map(lambda bits: Fraction(1, 2**bits))


@given(RHOS, DELTAS)
def test_the_gaussian_mechanism_keeps_what_is_computed(rho: Fraction, delta: Fraction) -> None:
    """It is rho-zCDP with equality, and its delta at any epsilon is known exactly."""
    epsilon = float(epsilon_of(rho, delta))
    mu = math.sqrt(2 * float(rho))
    first = norm.cdf(mu / 2 - epsilon / mu)
    second = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert first - second <= float(delta) * (1 + 1e-9) + 1e-15


@given(RHOS, DELTAS)
def test_it_is_sharper_than_the_usual_bound(rho: Fraction, delta: Fraction) -> None:
    usual = float(rho) + 2 * math.sqrt(float(rho) * -math.log(delta))
    assert float(epsilon_of(rho, delta)) <= usual * (1 + 1e-12)


@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 2), Fraction(20)])
@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 10**9)])
def test_it_is_sharp_for_the_gaussian_mechanism(rho: Fraction, delta: Fraction) -> None:
    mu = math.sqrt(2 * float(rho))

    def excess(epsilon: float) -> float:
        tail = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        return float(norm.cdf(mu / 2 - epsilon / mu)) - tail - float(delta)

    exact = brentq(excess, 0, 200)
    assert exact < float(epsilon_of(rho, delta)) < 1.3 * exact


@given(EPSILONS, DELTAS)
def test_there_and_back(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_for(epsilon, delta)
    assert rho > 0
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * Fraction(1001, 1000), delta) > epsilon


@given(RHOS, DELTAS)
def test_more_rho_or_less_delta_costs_more(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_of(rho, delta)
    assert epsilon_of(2 * rho, delta) >= epsilon
    assert epsilon_of(rho, delta / 4) >= epsilon


@given(RHOS, DELTAS, st.fractions(Fraction(1001, 1000), 1000))
def test_any_alpha_is_safe_and_the_one_chosen_is_good(
    rho: Fraction, delta: Fraction, alpha: Fraction
) -> None:
    chosen = _bound(rho, delta, _good_alpha(float(rho), float(delta)))
    assert _bound(rho, delta, alpha) >= chosen * (1 - Fraction(1, 10**6)) - Fraction(1, 10**12)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.floats(0.05, 3), DELTAS)
def test_losses_in_an_interval_of_length_e0_are_e0_squared_over_8(
    scores: list[float], e0: float, delta: Fraction
) -> None:
    """The exponential mechanism against the worst change of its scores, as picks use it."""
    weights = np.array(scores)
    moved = np.where(np.arange(len(scores)) % 2 == 0, e0 / 2, -e0 / 2)
    one = np.exp(weights) / np.exp(weights).sum()
    two = np.exp(weights + moved) / np.exp(weights + moved).sum()
    epsilon = float(epsilon_of(Fraction(e0) ** 2 / 8, delta))
    for p, q in ((one, two), (two, one)):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= float(delta) + 1e-12


def test_no_rho_costs_nothing() -> None:
    assert epsilon_of(Fraction(0), Fraction(1, 2)) == 0


@pytest.mark.parametrize("size", [290, 320, 1000])
def test_hardly_any_rho_costs_hardly_anything(size: int) -> None:
    """Also where floats have no such numbers."""
    for delta in (Fraction(1, 2), Fraction(1, 10**100)):
        assert 0 <= epsilon_of(Fraction(1, 10**size), delta) < Fraction(1, 10**30)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_wrong_arguments_are_refused(delta: Fraction) -> None:
    with pytest.raises(ArgumentError):
        epsilon_of(Fraction(1), delta)
    with pytest.raises(ArgumentError):
        rho_for(Fraction(1), delta)
    with pytest.raises(ArgumentError):
        rho_for(Fraction(0), Fraction(1, 10))
    with pytest.raises(ArgumentError):
        epsilon_of(Fraction(-1), Fraction(1, 10))
