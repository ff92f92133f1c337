"""Draws of OpenDP, and of the mechanisms built on them, against closed forms, with power.

OpenDP has no seeds, so every test draws afresh: level 1e-9 each (see gtest.py).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.audit.exact import moments_of_records
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import Data, Mechanism, Setting
from dpsubset.mechanisms.published.frank_wolfe import FrankWolfe
from dpsubset.mechanisms.published.hard_thresholding import HardThresholding
from dpsubset.mechanisms.published.peeling import Peeling
from dpsubset.mechanisms.shared.rounds import Rounds
from dpsubset.objective.problem import Problem
from dpsubset.privacy import noise
from dpsubset.privacy.random import Randomness, SystemSource
from support.cases import data
from support.gtest import LEVEL, g_test, miss

pytestmark = pytest.mark.statistical

SCORES = [0, 700, 1000, 1000, 1500]
SENSITIVITY = 100
WRONG = (Fraction(9, 10), Fraction(11, 10))
#: Picks are slow to draw, and each tells little.
WRONG_FOR_PICKS = (Fraction(4, 5), Fraction(6, 5))


def in_order(measure: str, scores: list[int], k: int, scale: Fraction) -> dict[tuple, float]:
    """Probabilities of all ordered picks, one after the other among those left."""
    rounds = Rounds(measure, 1, Fraction(1), Fraction(0))  # type: ignore[arg-type]
    found = {}
    for picks in itertools.permutations(range(len(scores)), k):
        left, log = list(range(len(scores))), 0.0
        for i in picks:
            log += float(rounds.log_pick([scores[j] for j in left], scale)[left.index(i)])
            left.remove(i)
        found[picks] = math.exp(log)
    return found


@pytest.mark.parametrize("measure", ["pure", "zcdp"])
@pytest.mark.parametrize("k", [1, 2])
def test_picks_come_one_after_the_other_at_the_scale_that_is_paid_for(measure: str, k: int) -> None:
    draws = 10_000
    if measure == "pure":
        draw, scale_of, budget = noise.noisy_top, noise.top_scale, Fraction(k, 2)
    else:
        draw, scale_of, budget = noise.noisy_top_zcdp, noise.top_scale_zcdp, Fraction(k, 32)
    counts = Counter(tuple(draw(SCORES, k, budget, sensitivity=SENSITIVITY)) for _ in range(draws))
    scale = scale_of(k, budget, sensitivity=SENSITIVITY)
    right = in_order(measure, SCORES, k, scale)
    assert sum(right.values()) == pytest.approx(1)
    chances = np.array(list(right.values()))
    assert g_test(counts, list(right), chances) >= LEVEL
    for factor in WRONG_FOR_PICKS:
        wrong = np.array(list(in_order(measure, SCORES, k, factor * scale).values()))
        assert miss(chances, wrong, draws) < LEVEL
        assert g_test(counts, list(right), wrong) < LEVEL


def test_pure_picks_are_not_those_of_the_exponential_mechanism() -> None:
    draws, scale = 10_000, Fraction(400)
    counts = Counter(
        tuple(noise.noisy_top(SCORES, 1, Fraction(1, 2), sensitivity=SENSITIVITY))
        for _ in range(draws)
    )
    pure, other = (in_order(m, SCORES, 1, scale) for m in ("pure", "zcdp"))
    assert miss(np.array(list(pure.values())), np.array(list(other.values())), draws) < LEVEL
    assert g_test(counts, list(pure), np.array(list(pure.values()))) >= LEVEL
    assert g_test(counts, list(pure), np.array(list(other.values()))) < LEVEL


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(7, 10), Fraction(10, 3), Fraction(15)], ids=str)
def test_integer_noise_has_its_distribution_and_no_other(kind: str, scale: Fraction) -> None:
    draws, shift = 50_000, 10**15
    draw = noise.discrete_laplace if kind == "laplace" else noise.discrete_gaussian
    counts = Counter((value - shift,) for value in draw([shift] * draws, scale))
    prediction_bound = math.ceil(60 * scale) + 60
    cells = [(z,) for z in range(-prediction_bound, prediction_bound + 1)]

    def chances(s: float) -> np.ndarray:
        z = np.abs(np.arange(-prediction_bound, prediction_bound + 1)) / s
        weights = np.exp(-z if kind == "laplace" else -(z**2) / 2)
        return np.asarray(weights / weights.sum())

    right = chances(float(noise.float_scale(scale)))
    assert g_test(counts, cells, right) >= LEVEL
    for factor in WRONG:
        wrong = chances(float(factor * scale))
        assert miss(right, wrong, draws) < LEVEL
        assert g_test(counts, cells, wrong) < LEVEL


class Coarse(HardThresholding):
    """On a grid so coarse that the closed form can be listed."""

    GRID = 2


# Where twice the budget would show.
CASES = [
    (Peeling(), 5, 2, Fraction(2), Fraction(0), "replace-one"),
    (Peeling(), 6, 3, Fraction(1), Fraction(1, 10), "add-remove"),
    (FrankWolfe(2), 4, 2, Fraction(1), Fraction(0), "add-remove"),
    (FrankWolfe(2), 4, 2, Fraction(2), Fraction(1, 10), "replace-one"),
    (Coarse(2, step=3, rows=40), 4, 1, Fraction(2), Fraction(0), "add-remove"),
    (Coarse(2, step=3, rows=40), 3, 2, Fraction(8), Fraction(0), "replace-one"),
]


@pytest.mark.parametrize(("chosen", "p", "k", "epsilon", "delta", "neighbours"), CASES)
def test_mechanisms_draw_from_their_closed_form(
    chosen: Mechanism, p: int, k: int, epsilon: Fraction, delta: Fraction, neighbours: str
) -> None:
    draws = 3000
    problem = Problem.create(p, k, prediction_bound=0.5, neighbours=neighbours)
    records = data(p, 40, p, "plain", 0.8)
    table = Data(GramData.from_moments(moments_of_records(records)))
    setting = Setting.of(problem, epsilon, delta)
    supports, logs = chosen.outcomes(table, setting)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-9)
    sampler, rng = chosen.prepare(table, setting), Randomness(SystemSource())
    counts = Counter(sampler.draw(rng) for _ in range(draws))
    assert g_test(counts, supports, np.exp(logs)) >= LEVEL
    _, louder = chosen.outcomes(table, Setting.of(problem, 2 * epsilon, delta))
    assert miss(np.exp(logs), np.exp(louder), draws) < LEVEL
    assert g_test(counts, supports, np.exp(louder)) < LEVEL
