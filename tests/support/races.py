"""Races on small problems, made to search although they could list, or to search badly.

Everything here may cost time and must not move the distribution: regions are split down to two
supports, bounds made loose by random amounts, splits made at random times on random features.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.mechanisms import PLAIN, ScoreMechanism, Setting
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.bounds.base import BoundOracle, Node
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import enumerate_supports
from dpsubset.search.race import Race
from dpsubset.search.tuning import Tuning
from support.cases import Case
from support.gtest import LEVEL, g_test, miss

#: Lists are short, and the last pick is searched for like the others.
SEARCHING = Tuning(short=2, last_pick=0)


def loosen(monkeypatch: pytest.MonkeyPatch, eta: float) -> None:
    """Every bound is lowered by a random amount, every gain raised by one, of a few 1/eta."""
    rng = np.random.default_rng()
    settle, gains = BoundOracle.evaluate, BoundOracle.gains
    noise: dict[int, np.ndarray] = {}

    def loose_gains(self: BoundOracle, bound: Node) -> np.ndarray:
        p = self.problem.p
        return gains(self, bound) + noise.setdefault(p, rng.exponential(1 / eta, p))

    def loose_settle(self: BoundOracle, bound: Node, *arguments: Any) -> Node:
        settle(self, bound, *arguments)
        down = float(rng.exponential(2 / eta))
        bound.base -= down
        bound.lower_bound -= down
        return bound

    monkeypatch.setattr(BoundOracle, "gains", loose_gains)
    monkeypatch.setattr(BoundOracle, "evaluate", loose_settle)


def split_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any free feature may be branched on, after any rejected proposal."""
    rng = np.random.default_rng()
    settle, waste = BoundOracle.evaluate, Race._add_rejection

    def random_lead(self: BoundOracle, bound: Node, *arguments: Any) -> Node:
        settle(self, bound, *arguments)
        bound.branch_on = int(rng.choice(np.flatnonzero(bound.region.status >= FREE)))
        return bound

    def random_time(self: Race, place: int, chance: float) -> Node | None:
        waste(self, place, chance)
        leaf = self._leaves[place]
        return leaf if isinstance(leaf, Node) and rng.random() < 0.3 else None

    monkeypatch.setattr(BoundOracle, "evaluate", random_lead)
    monkeypatch.setattr(Race, "_add_rejection", random_time)


@dataclass
class Tally:
    """Draws, and how many splits they took."""

    counts: Counter[tuple[int, ...]]
    splits: int


def race(
    case: Case,
    mechanism: ScoreMechanism,
    rng: Randomness,
    draws: int,
    *,
    factor: Fraction = Fraction(1),
    fresh_after: int = 10**9,
    tuning: Tuning = SEARCHING,
) -> Tally:
    """Draws at ``factor`` times the right eta, with a fresh tree after every so many."""
    eta = factor * case.eta(mechanism)
    unit = case.sensitivity.score_step
    engine = Engine(case.moments, case.problem, unit, float(eta), tuning=tuning)
    counts: Counter[tuple[int, ...]] = Counter()
    for done in range(draws):
        if done % fresh_after == 0:
            sampler = mechanism.race(engine, eta)
        counts[sampler.draw(rng)] += 1
    return Tally(counts, engine.nodes)


def agree_with_closed_form(
    name: str, problem: Problem, digest: GramData, epsilon: str, draws: int
) -> None:
    """Draws of a plain mechanism's race have its distribution, and not that at 3/2 of eta."""
    mechanism, setting = PLAIN[name](), Setting.of(problem, epsilon)
    unit, eta = setting.sensitivity.score_step, mechanism.eta(setting)
    scored = enumerate_supports(digest, problem, unit)
    supports = [scored.support(i) for i in range(len(scored))]
    engine = Engine(digest, problem, unit, float(eta), tuning=SEARCHING)
    rng = Randomness(SystemSource())
    sampler = mechanism.race(engine, eta)
    counts = Counter(sampler.draw(rng) for _ in range(draws))
    assert engine.nodes > 0
    right = mechanism.probabilities(scored, eta)
    assert g_test(counts, supports, right) >= LEVEL
    wrong = mechanism.probabilities(scored, eta * Fraction(3, 2))
    assert miss(right, wrong, draws) < LEVEL
    assert g_test(counts, supports, wrong) < LEVEL
