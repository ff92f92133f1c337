"""The ends of a race: coarse masses, the last moments of the clock, enormous epsilon.

With two bits for the masses everything that happens with probability 2**-100 otherwise happens all
the time: masses are far too large, and the clock stops short of its end. The distribution must not
notice. Draws are seeded: a test passes always or never.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from dpsubset.mechanisms import PLAIN
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.engine import Engine
from dpsubset.search.envelope import MassScale
from dpsubset.search.race import Race
from dpsubset.search.tuning import USUAL, Tuning
from support.gtest import g_test
from support.recipes import CONSTRAINTS, Recipe

LEVEL = 1e-6
DRAWS = 6000


def engine_of(recipe: Recipe, eta: Fraction, tuning: Tuning = USUAL) -> Engine:
    unit = recipe.sensitivity.score_step
    return Engine(recipe.moments, recipe.problem, unit, float(eta), tuning=tuning)


def counted(race: Race, seed: int, draws: int) -> Counter[tuple[int, ...]]:
    rng = Randomness(SeededSource(seed))
    return Counter(race.draw(rng) for _ in range(draws))


@pytest.mark.parametrize("short", [1, 64])
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_coarse_masses_do_not_move_the_distribution(constraint: str, name: str, short: int) -> None:
    tuning = Tuning(short=short, first_bits=2)
    recipe = Recipe("AR 0.9", constraint, "tight", 0.0, 4, p=8)
    mechanism = PLAIN[name]()
    scored = recipe.scored
    for eta in (Fraction(1), Fraction(8)):
        race = mechanism.race(engine_of(recipe, eta, tuning), eta)
        assert isinstance(race, Race)
        counts = counted(race, 5, DRAWS)
        supports = [scored.support(i) for i in range(len(scored))]
        assert g_test(counts, supports, mechanism.probabilities(scored, eta)) > LEVEL


def test_the_clock_gets_past_rounded_masses() -> None:
    """With the worst support as the reference 4 * max q is rounded up: time ends too early."""
    recipe = Recipe("AR 0.9", "box", "tight", 0.0, 4, p=8)
    scored = recipe.scored
    supports = [scored.support(i) for i in range(len(scored))]
    mechanism = PLAIN["permute-and-flip"]()
    eta = Fraction(3)
    race = Race(engine_of(recipe, eta), eta, permute_and_flip=True)
    race._scale = MassScale(eta, recipe.sensitivity.score_step, int(scored.scores.max()), 2)
    race._set_leaf(race._leaves[0], 0)
    counts = counted(race, 6, DRAWS)
    assert race._scale.bits > 2  # more of them were needed
    assert g_test(counts, supports, mechanism.probabilities(scored, eta)) > LEVEL


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_an_enormous_epsilon_finds_the_optimum(constraint: str, name: str) -> None:
    """Masses of 2**(10**12) cannot be written down; leaves that would need them are split."""
    for seed in range(1, 5):
        recipe = Recipe("orthogonal", constraint, "tight", 0.0, seed, p=9)
        eta = Fraction(10**12)
        race = PLAIN[name]().race(engine_of(recipe, eta, Tuning(short=4)), eta)
        best = recipe.ranking[0][0]
        tied = {support for score, support in recipe.ranking if score == best}
        assert race.draw(Randomness(SeededSource(seed))) in tied
