"""Draws from the operating system's randomness against closed forms, with power.

Every test draws afresh, so it can fail by chance: at level 1e-9 each, below 1e-6 for a whole run
(see gtest.py). The tests that must reject fail to do so with probability below 1e-9 each.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN
from dpsubset.privacy.random import Randomness, SystemSource
from support.cases import CASES, UNIFORM, Case
from support.gtest import LEVEL, g_test, miss

pytestmark = pytest.mark.statistical

DRAWS = 50_000
WRONG = (Fraction(9, 10), Fraction(11, 10))
each_mechanism = pytest.mark.parametrize("name", PLAIN)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each_mechanism
@each_case
@pytest.mark.parametrize("start_bits", [64, 8])
def test_draws_agree_with_the_closed_form_and_no_other(
    name: str, case: Case, start_bits: int
) -> None:
    """From 64 bits on float64 decides nearly all; from 8 bits on every refinement happens."""
    mechanism = PLAIN[name]()
    right = case.probabilities(mechanism)
    assert right.sum() == pytest.approx(1, abs=1e-9)
    counts = case.draw(mechanism, Randomness(SystemSource(), start_bits), DRAWS)
    assert g_test(counts, case.supports, right) >= LEVEL
    for factor in WRONG:
        wrong = case.probabilities(mechanism, factor)
        assert miss(right, wrong, DRAWS) < LEVEL
        assert g_test(counts, case.supports, wrong) < LEVEL


@each_mechanism
@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
@pytest.mark.parametrize("factor", WRONG, ids=str)
def test_a_sampler_with_eta_wrong_by_a_tenth_is_caught(
    name: str, case: Case, factor: Fraction
) -> None:
    mechanism = PLAIN[name]()
    claimed = case.probabilities(mechanism)
    assert miss(case.probabilities(mechanism, factor), claimed, DRAWS) < LEVEL
    counts = case.draw(mechanism, Randomness(SystemSource()), DRAWS, factor)
    assert g_test(counts, case.supports, claimed) < LEVEL


@each_mechanism
@pytest.mark.parametrize("case", UNIFORM, ids=lambda case: case.name)
@pytest.mark.parametrize("start_bits", [64, 8])
def test_supports_that_tie_are_equally_likely(name: str, case: Case, start_bits: int) -> None:
    mechanism = PLAIN[name]()
    flat = np.full(len(case.supports), 1 / len(case.supports))
    np.testing.assert_allclose(case.probabilities(mechanism), flat, rtol=1e-3)
    counts = case.draw(mechanism, Randomness(SystemSource(), start_bits), DRAWS)
    assert g_test(counts, case.supports, case.probabilities(mechanism)) >= LEVEL


def test_one_mechanism_is_not_taken_for_the_other() -> None:
    case = CASES[0]
    em, pf = PLAIN["exponential"](), PLAIN["permute-and-flip"]()
    assert miss(case.probabilities(em), case.probabilities(pf), DRAWS) < LEVEL
    counts = case.draw(em, Randomness(SystemSource()), DRAWS)
    assert g_test(counts, case.supports, case.probabilities(pf)) < LEVEL


@each_case
def test_a_case_is_what_its_name_says(case: Case) -> None:
    """Whether the constraint binds on the best support."""
    scored = case.scored
    best = scored.support(int(np.argmin(scored.scores)))
    products = case.moments.products / float(STEPS) ** 2
    h = products[np.ix_(best, best)] + case.problem.ridge * np.eye(len(best))
    b = np.linalg.lstsq(h, products[list(best), -1], rcond=None)[0]
    size = {"box": np.abs(b).max(), "ball": np.linalg.norm(b), "l1": np.abs(b).sum()}
    binds = size[case.problem.constraint] > case.problem.radius
    assert case.active is None or binds == case.active
    assert case.problem.p <= 10
    assert case.problem.k <= 4
