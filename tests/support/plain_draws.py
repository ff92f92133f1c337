"""Draws of the plain mechanisms against their closed form, by G-tests with known power."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from dpsubset.mechanisms import PLAIN, Setting
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.engine import Engine
from dpsubset.search.tuning import Tuning
from support.collinear import Collinear
from support.gtest import LEVEL, g_test, miss

DRAWS, FRESH = 12_000, 60
#: The relative error of eta that so many draws tell.
ERROR = Fraction(1, 3)


def telling(recipe: Collinear, name: str) -> Fraction:
    """The least epsilon, of powers of two, at which the draws have power; by the closed form."""
    mechanism = PLAIN[name]()
    for power in range(-2, 24):
        epsilon = Fraction(2) ** power
        eta = mechanism.eta(Setting.of(recipe.problem, epsilon))
        right = mechanism.probabilities(recipe.scored, eta)
        wrong = [mechanism.probabilities(recipe.scored, eta * (1 + by)) for by in (-ERROR, ERROR)]
        if all(miss(right, other, DRAWS) < LEVEL for other in wrong):
            return epsilon
    raise AssertionError(f"no epsilon tells: {recipe}")


def agree(recipe: Collinear, name: str, tuning: Tuning, *, lazy: bool = False) -> int:
    """Draws against the closed form, and against twins with another eta; splits they took.

    Levels and power are as in tests/statistical: each test of the two kinds fails below 1e-9.
    """
    mechanism, rng = PLAIN[name](), Randomness(SystemSource())
    setting = Setting.of(recipe.problem, telling(recipe, name))
    eta, unit = mechanism.eta(setting), setting.sensitivity.score_step
    scored = recipe.scored
    supports = [scored.support(i) for i in range(len(scored))]
    counts: Counter[tuple[int, ...]] = Counter()
    splits = 0
    data = recipe.lazy() if lazy else recipe.whole()
    # Every draw may split: a fresh tree, or it would soon be complete.
    for _ in range(DRAWS // FRESH):
        engine = Engine(data, recipe.problem, unit, float(eta), tuning=tuning)
        sampler = mechanism.race(engine, eta)
        counts.update(sampler.draw(rng) for _ in range(FRESH))
        splits += engine.nodes
    assert g_test(counts, supports, mechanism.probabilities(scored, eta)) >= LEVEL, recipe
    for by in (-ERROR, ERROR):
        wrong = mechanism.probabilities(scored, eta * (1 + by))
        assert g_test(counts, supports, wrong) < LEVEL, (recipe, by)
    return splits


class Chosen:
    """A source that gives the number it is told to."""

    def __init__(self) -> None:
        self.at, self.bound = 0, 1

    def below(self, bound: int) -> int:
        self.bound = bound
        return self.at
