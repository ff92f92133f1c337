"""The ends of a race: coarse masses, the last moments of the clock, enormous epsilon.

With two bits for the masses everything that happens with probability 2**-100 otherwise happens all
the time: masses are far too large, and the clock stops short of its end. The distribution must not
notice. Draws are seeded: a test passes always or never.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from conformance.recipes import CONSTRAINTS, Recipe
from dpsubset.mechanisms import PLAIN
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search import engine as engine_module
from dpsubset.search import race as race_module
from dpsubset.search.engine import Engine
from dpsubset.search.envelope import Scale
from dpsubset.search.race import Race
from statistical.gtest import g_test

LEVEL = 1e-6
DRAWS = 6000


def counted(race: Race, seed: int, draws: int) -> Counter[tuple[int, ...]]:
    rng = Randomness(SeededSource(seed))
    return Counter(race.draw(rng) for _ in range(draws))


@pytest.mark.parametrize("short", [1, 64])
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_coarse_masses_do_not_move_the_distribution(
    constraint: str, name: str, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_module, "_first_bits", lambda problem, supports: 2)
    monkeypatch.setattr(engine_module, "_SHORT", short)
    recipe = Recipe("AR 0.9", constraint, "tight", 0.0, 4, p=8)
    mechanism = PLAIN[name]()
    scored = recipe.scored
    for eta in (Fraction(1), Fraction(8)):
        engine = Engine(recipe.moments, recipe.problem, recipe.sensitivity.unit, float(eta))
        race = mechanism.race(engine, eta)
        assert isinstance(race, Race)
        counts = counted(race, 5, DRAWS)
        supports = [scored.support(i) for i in range(len(scored))]
        assert g_test(counts, supports, mechanism.probabilities(scored, eta)) > LEVEL


def test_the_clock_gets_past_rounded_masses(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the worst support as the reference 4 * max q is rounded up: time ends too early."""
    recipe = Recipe("AR 0.9", "box", "tight", 0.0, 4, p=8)
    scored = recipe.scored
    supports = [scored.support(i) for i in range(len(scored))]
    mechanism = PLAIN["permute-and-flip"]()
    eta = Fraction(3)
    engine = Engine(recipe.moments, recipe.problem, recipe.sensitivity.unit, float(eta))
    race = Race(engine, eta, permute_and_flip=True)
    race._scale = Scale(eta, recipe.sensitivity.unit, int(scored.scores.max()), 2)
    race._put(race._leaves[0], 0)
    sharpened: list[int] = []
    sharpen = race._sharpen
    monkeypatch.setattr(race, "_sharpen", lambda: (sharpened.append(1), sharpen()))
    counts = counted(race, 6, DRAWS)
    assert sharpened
    assert g_test(counts, supports, mechanism.probabilities(scored, eta)) > LEVEL


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_an_enormous_epsilon_finds_the_optimum(
    constraint: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masses of 2**(10**12) cannot be written down; leaves that would need them are split."""
    monkeypatch.setattr(engine_module, "_SHORT", 4)
    for seed in range(1, 5):
        recipe = Recipe("orthogonal", constraint, "tight", 0.0, seed, p=9)
        eta = Fraction(10**12)
        engine = Engine(recipe.moments, recipe.problem, recipe.sensitivity.unit, float(eta))
        race = PLAIN[name]().race(engine, eta)
        best = recipe.ranking[0][0]
        tied = {support for score, support in recipe.ranking if score == best}
        assert race.draw(Randomness(SeededSource(seed))) in tied
