"""Walks from the operating system's randomness against powers of the transition matrix."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.mechanisms import PLAIN, Data, Setting
from dpsubset.mechanisms.published.metropolis import Metropolis
from dpsubset.mechanisms.shared.chain import distribution_after
from dpsubset.privacy.random import Randomness, SystemSource
from support.cases import CASES, UNIFORM, Case
from support.gtest import LEVEL, g_test, miss

pytestmark = pytest.mark.statistical

DRAWS = 12_000
DELTA = Fraction(1, 10**6)
each_kind = pytest.mark.parametrize("lazy", [False, True])

#: Every case in one of four ways: lazy or not, from 64 bits or from 8. Unit tests have the others.
WAYS = [(case, i % 2 == 1, 8 if i % 4 > 1 else 64) for i, case in enumerate(CASES)]


def name(way: tuple[Case, bool, int]) -> str:
    case, lazy, bits = way
    return f"{case.name}, {'lazy, ' if lazy else ''}{bits} bits"


class Heavier(Metropolis):
    """Twice the weight of the scores: must be told from the right one."""

    def eta(self, setting: Setting) -> Fraction:
        return 2 * super().eta(setting)


def ends(case: Case, mechanism: Metropolis, start_bits: int = 64) -> Counter[tuple[int, ...]]:
    setting = Setting.of(case.problem, case.epsilon, DELTA)
    sampler = mechanism.prepare(Data(GramData.from_moments(case.moments)), setting)
    rng = Randomness(SystemSource(), start_bits)
    return Counter(sampler.draw(rng) for _ in range(DRAWS))  # type: ignore[misc]


def closed(case: Case, mechanism: Metropolis) -> np.ndarray:
    setting = Setting.of(case.problem, case.epsilon, DELTA)
    return distribution_after(mechanism.matrix(case.scored, setting), mechanism.steps)


@pytest.mark.parametrize("way", WAYS, ids=name)
def test_a_few_steps_agree_with_the_matrix_and_no_other(way: tuple[Case, bool, int]) -> None:
    case, lazy, start_bits = way
    steps = 20 if lazy else 10
    right, wrong = closed(case, Metropolis(steps, lazy)), closed(case, Heavier(steps, lazy))
    counts = ends(case, Metropolis(steps, lazy), start_bits)
    assert g_test(counts, case.supports, right) >= LEVEL
    assert miss(right, wrong, DRAWS) < LEVEL
    assert g_test(counts, case.supports, wrong) < LEVEL


@pytest.mark.parametrize(
    ("case", "lazy"),
    [(case, i % 2 == 1) for i, case in enumerate(CASES[::2])],
    ids=lambda value: value.name if isinstance(value, Case) else "lazy" if value else "plain",
)
def test_many_steps_agree_with_the_exponential_mechanism(case: Case, lazy: bool) -> None:
    mechanism = Metropolis(400 if lazy else 200, lazy)
    target = case.probabilities(PLAIN["exponential"]())
    # Verified by the matrix: in so few draws nobody could see the difference.
    assert np.abs(closed(case, mechanism) - target).sum() / 2 < 1e-6
    counts = ends(case, mechanism)
    assert g_test(counts, case.supports, target) >= LEVEL
    for factor in (Fraction(4, 5), Fraction(6, 5)):
        wrong = case.probabilities(PLAIN["exponential"](), factor)
        assert miss(target, wrong, DRAWS) < LEVEL
        assert g_test(counts, case.supports, wrong) < LEVEL


@each_kind
@pytest.mark.parametrize("case", UNIFORM, ids=lambda case: case.name)
def test_supports_that_tie_are_equally_likely(case: Case, lazy: bool) -> None:
    flat = np.full(len(case.supports), 1 / len(case.supports))
    assert g_test(ends(case, Metropolis(5, lazy)), case.supports, flat) >= LEVEL


@each_kind
def test_a_walk_with_twice_the_weight_is_caught(lazy: bool) -> None:
    case, steps = CASES[4], 20
    right = closed(case, Metropolis(steps, lazy))
    assert miss(closed(case, Heavier(steps, lazy)), right, DRAWS) < LEVEL
    assert g_test(ends(case, Heavier(steps, lazy)), case.supports, right) < LEVEL
