"""The race against closed forms, with power, on trees that really split.

15 problems x both mechanisms; fresh randomness from the operating system. Every G-test has level
1e-9 (see gtest.py), so a run raises a false alarm with probability below 1e-6; the tests that must
reject fail to do so with probability below 1e-9 each. Neither loose bounds nor random splits nor a
start from 8 bits may move the distribution; broken races must be caught.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsubset.audit.exact import moments_of_records
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search import race as race_module
from dpsubset.search.bounds.base import BoundOracle, Node
from dpsubset.search.tuning import Tuning
from support.cases import CASES, UNIFORM, Case
from support.gtest import LEVEL, g_test, miss
from support.races import SEARCHING, loosen, race, split_at_random

pytestmark = pytest.mark.statistical

#: Draws, and the relative error of eta that so many draws tell.
MANY, TENTH = 50_000, Fraction(1, 10)
SOME, FIFTH = 20_000, Fraction(1, 5)
FEW, HALF = 2_000, Fraction(1, 2)

each_mechanism = pytest.mark.parametrize("name", PLAIN)


def suspect() -> Case:
    """A case that once drew a p-value of 0.0006: duplicates, a constant, one column always in."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (40, 9))
    x[:, 1], x[:, 2] = x[:, 0], 1.0
    y = np.clip(0.5 * x[:, 0] + 0.4 * x[:, 4] + rng.uniform(-0.4, 0.4, 40), -1, 1)
    records = np.rint(np.column_stack([x, y]) * STEPS).astype(np.int64)
    problem = Problem.create(
        9, 3, constraint="ball", ridge=5.0, always_include=(5,), intercept=False
    )
    return Case("suspect", moments_of_records(records), problem, Fraction(20), None)


SUSPECT = suspect()
ALL = [*CASES, SUSPECT]


def each_case(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def system(start_bits: int = 64) -> Randomness:
    return Randomness(SystemSource(), start_bits)


def judge(case: Case, name: str, tally: Any, error: Fraction) -> None:
    """Draws agree with the closed form, and not with that of an eta off by ``error``."""
    mechanism = PLAIN[name]()
    right = case.probabilities(mechanism)
    draws = tally.counts.total()
    assert g_test(tally.counts, case.supports, right) >= LEVEL
    for factor in (1 - error, 1 + error):
        wrong = case.probabilities(mechanism, factor)
        assert miss(right, wrong, draws) < LEVEL
        assert g_test(tally.counts, case.supports, wrong) < LEVEL


@each_mechanism
@each_case(ALL)
def test_the_race_agrees_with_the_closed_form(name: str, case: Case) -> None:
    tally = race(case, PLAIN[name](), system(), MANY)
    assert tally.splits > 0
    judge(case, name, tally, TENTH)


@each_mechanism
@each_case([*CASES[1::3], SUSPECT])
def test_precision_does_not_move_the_distribution(name: str, case: Case) -> None:
    """From 8 bits on ball arithmetic decides, after refinements of every kind."""
    judge(case, name, race(case, PLAIN[name](), system(8), SOME), FIFTH)


@each_mechanism
@each_case([*CASES[::3], SUSPECT])
def test_loose_envelopes_do_not_move_the_distribution(
    name: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regions are loose in a new way every 40 draws."""
    loosen(monkeypatch, float(case.eta(PLAIN[name]())))
    judge(case, name, race(case, PLAIN[name](), system(), SOME, fresh_after=40), FIFTH)


@each_mechanism
@each_case([*CASES[2::3], SUSPECT])
def test_random_splits_do_not_move_the_distribution(
    name: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On any feature, after any rejection; a fresh tree every 40 draws, or it would be complete."""
    split_at_random(monkeypatch)
    tally = race(case, PLAIN[name](), system(), SOME, fresh_after=40)
    judge(case, name, tally, FIFTH)


@each_mechanism
@each_case([CASES[3], CASES[5], CASES[8], SUSPECT])
def test_splits_during_a_draw_do_not_move_the_distribution(
    name: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree for one draw only, a little loose, split at random: all splits are made mid-draw."""
    loosen(monkeypatch, 4 * float(case.eta(PLAIN[name]())))
    split_at_random(monkeypatch)
    # A leaf whose supports are weighed one by one would not be split.
    splitting = replace(SEARCHING, solvable=0)
    tally = race(case, PLAIN[name](), system(), FEW, fresh_after=1, tuning=splitting)
    assert tally.splits > FEW / 4
    judge(case, name, tally, HALF)


@each_mechanism
@each_case(UNIFORM)
def test_ties_are_broken_evenly(name: str, case: Case) -> None:
    tally = race(case, PLAIN[name](), system(), SOME, fresh_after=20)
    assert g_test(tally.counts, case.supports, case.probabilities(PLAIN[name]())) >= LEVEL


def test_the_suspect_is_cleared() -> None:
    """200,000 draws of the exponential mechanism: eta is right within 5 %."""
    tally = race(SUSPECT, PLAIN["exponential"](), system(), 200_000)
    judge(SUSPECT, "exponential", tally, Fraction(1, 20))


# -- broken twins, which must be caught -------------------------------------------------------


@each_mechanism
@each_case(CASES[1::4])
@pytest.mark.parametrize("factor", [1 - TENTH, 1 + TENTH], ids=str)
def test_a_race_with_eta_wrong_by_a_tenth_is_caught(
    name: str, case: Case, factor: Fraction
) -> None:
    mechanism = PLAIN[name]()
    claimed = case.probabilities(mechanism)
    assert miss(case.probabilities(mechanism, factor), claimed, MANY) < LEVEL
    tally = race(case, mechanism, system(), MANY, factor=factor)
    assert g_test(tally.counts, case.supports, claimed) < LEVEL


def test_envelopes_that_are_too_low_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal accepted with probability above 1 is an error, not a draw.

    One free pick, so that bounds are exact; masses too low by one part in 100,000.
    """
    case, mechanism = CASES[4], PLAIN["exponential"]()
    settle = BoundOracle.evaluate
    up = 1e-5 / float(case.eta(mechanism))

    def high(self: BoundOracle, bound: Node, *arguments: Any) -> Node:
        settle(self, bound, *arguments)
        bound.base += up
        return bound

    monkeypatch.setattr(BoundOracle, "evaluate", high)
    with pytest.raises(AssertionError, match="an envelope lies below"):
        race(case, mechanism, system(), SOME, tuning=Tuning(short=2))


def test_a_clock_that_forgets_thinning_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of constant intensity make permute-and-flip an exponential mechanism."""
    case = CASES[0]

    class Forgetful(race_module.Acceptance):
        def __init__(self, scale: Any, score: int, mass: int, moment: Any = None) -> None:
            super().__init__(scale, score, mass)

    monkeypatch.setattr(race_module, "Acceptance", Forgetful)
    flip, exponential = PLAIN["permute-and-flip"](), PLAIN["exponential"]()
    right, wrong = case.probabilities(flip), case.probabilities(exponential)
    assert miss(wrong, right, MANY) < LEVEL
    tally = race(case, flip, system(), MANY)
    assert g_test(tally.counts, case.supports, right) < LEVEL
    assert g_test(tally.counts, case.supports, wrong) >= LEVEL


@each_mechanism
def test_a_race_that_accepts_everything_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then supports are drawn from the envelope, which is not the mechanism."""
    case = CASES[7]
    monkeypatch.setattr(race_module.Acceptance, "flip", lambda self, rng: True)
    tally = race(case, PLAIN[name](), system(), MANY)
    assert g_test(tally.counts, case.supports, case.probabilities(PLAIN[name]())) < LEVEL
