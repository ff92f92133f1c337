"""The adapter to OpenDP: costs against OpenDP's own maps, scales, arguments, silence."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsubset.privacy.noise as noise
from dpsubset import ArgumentError

BUDGETS = st.fractions(Fraction(1, 10**9), 10**6)
SENSITIVITIES = st.integers(1, noise.LARGEST_SENSITIVITY)
COUNTS = st.integers(1, 60)
HUGE = Fraction(10**6)


@given(COUNTS, BUDGETS, SENSITIVITIES)
def test_scales_of_picks_keep_the_budget_and_waste_none(
    k: int, budget: Fraction, sensitivity: int
) -> None:
    for measure, scale_of, cost_of in (
        ("pure", noise.top_scale, noise.top_cost),
        ("zcdp", noise.top_scale_zcdp, noise.top_cost_zcdp),
    ):
        scale = scale_of(k, budget, sensitivity=sensitivity)
        assert Fraction(float(scale)) == scale
        cost = cost_of(k, scale, sensitivity=sensitivity)
        # The map rounds up, so that it lies above the exact cost, and both within the budget.
        opendp = Fraction(noise._top_k(measure, k, float(scale)).map(sensitivity))
        assert cost <= opendp <= budget
        assert cost > budget * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("k", [1, 3])
def test_costs_are_what_opendp_says(k: int) -> None:
    # Powers of two: its map rounds nothing.
    assert noise._top_k("pure", k, 16.0).map(4) == k * 8 / 16
    assert noise.top_cost(k, Fraction(16), sensitivity=4) == Fraction(k * 8, 16)
    assert noise._top_k("zcdp", k, 16.0).map(4) == k * (8 / 16) ** 2 / 8
    assert noise.top_cost_zcdp(k, Fraction(16), sensitivity=4) == Fraction(k * 8**2, 16**2 * 8)
    assert noise._additive("laplace", 16.0).map(4) == 4 / 16
    assert noise._additive("gaussian", 16.0).map(4.0) == (4 / 16) ** 2 / 2


@pytest.mark.parametrize("top", [noise.noisy_top, noise.noisy_top_zcdp])
def test_without_noise_to_speak_of_the_largest_are_found_in_order(
    top: Callable[..., list[int]],
) -> None:
    scores = [3, -(2**61), 2**61, 10**15, 3 * 10**15, 0]
    assert top(scores, 3, HUGE, sensitivity=1) == [2, 4, 3]
    assert top(scores, 0, HUGE, sensitivity=1) == []
    assert sorted(top(scores, 6, Fraction(1, 10**9), sensitivity=2**60)) == list(range(6))


@pytest.mark.parametrize("huge", [2**62 + 1, 2**63 - 1, 2**64, 10**40])
def test_numbers_beyond_int64_are_clipped(huge: int) -> None:
    assert noise.noisy_top([0, huge, -huge], 2, HUGE, sensitivity=1) == [1, 0]
    assert noise.discrete_laplace([huge, -huge], Fraction(1, 10**6)) == [2**62, -(2**62)]
    assert noise.discrete_gaussian([huge, -huge], Fraction(1, 10**6)) == [2**62, -(2**62)]


def test_noise_is_whole_and_of_the_right_size() -> None:
    assert noise.discrete_laplace([], Fraction(1)) == []
    for draw in (noise.discrete_laplace, noise.discrete_gaussian):
        drawn = draw([7] * 400, Fraction(10**9))
        assert all(type(value) is int for value in drawn)
        # All 400 within a tenth of the scale has probability below 1e-300; so has one beyond 800.
        assert 10**8 < max(abs(value - 7) for value in drawn) < 800 * 10**9


@given(st.fractions(Fraction(1, 10**12), 10**30))
def test_scales_are_rounded_up_to_a_float(scale: Fraction) -> None:
    rounded = noise.float_scale(scale)
    assert Fraction(math.nextafter(float(rounded), 0.0)) < scale <= rounded
    assert Fraction(float(rounded)) == rounded


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"k": 4}, "at most as many"),
        ({"k": -1}, "negative"),
        ({"epsilon": Fraction(0)}, "greater than 0"),
        ({"epsilon": Fraction(-1)}, "greater than 0"),
        ({"sensitivity": -1}, "sensitivity"),
        ({"sensitivity": 2**60 + 1}, "sensitivity"),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {"k": 2, "epsilon": Fraction(1), "sensitivity": 1}
    noise.noisy_top([1, 2, 3], **right)
    with pytest.raises(ArgumentError, match=words):
        noise.noisy_top([1, 2, 3], **(right | wrong))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2) ** 1001])
def test_scales_that_are_none_are_refused(scale: Fraction) -> None:
    with pytest.raises(ArgumentError, match="scale"):
        noise.discrete_laplace([1], scale)


def test_what_opendp_says_about_values_does_not_get_out() -> None:
    measurement = noise._top_k("pure", 1, 1.0)
    # Unclipped, its own error quotes the value.
    with pytest.raises(ValueError, match=str(2**70)):
        measurement([2**70])
    with pytest.raises(RuntimeError) as caught:
        noise._invoke(measurement, [2**70])
    assert str(2**70) not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
