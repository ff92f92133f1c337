"""Draws of Top-R, Mistakes and penalised selection against their closed forms, with power."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.audit.exact import moments_of_records
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import Data, Mechanism, Outcome, Setting
from dpsubset.mechanisms.penalised import Penalised
from dpsubset.mechanisms.published.mistakes import Mistakes
from dpsubset.mechanisms.published.top_r import TopR
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from support.gtest import LEVEL, g_test, miss
from support.recipes import CONSTRAINTS, DESIGNS, Recipe

pytestmark = pytest.mark.statistical

MECHANISMS: list[Mechanism] = [
    TopR(R=20, form="permute-and-flip"),
    TopR(R=20, T=2),
    Mistakes(),
    Mistakes(anchor=(0, 3, 5), form="permute-and-flip"),
    Penalised(phi=Fraction(1, 10)),
    Penalised(phi=0, form="permute-and-flip"),
]


def drawn(mechanism: Mechanism, data: Data, setting: Setting, draws: int) -> Counter[Outcome]:
    sampler, rng = mechanism.prepare(data, setting), Randomness(SystemSource())
    return Counter(sampler.draw(rng) for _ in range(draws))


def closed_form(
    mechanism: Mechanism, data: Data, setting: Setting
) -> tuple[list[Outcome], np.ndarray]:
    found = mechanism.outcomes(data, setting)
    assert found is not None
    return found[0], np.exp(found[1])


def test_top_r_on_two_hundred_problems() -> None:
    kinds = itertools.cycle(itertools.product(DESIGNS, CONSTRAINTS, ("tight", "wide"), (0.0, 2.5)))
    least = 1.0
    for i, kind in zip(range(200), kinds, strict=False):
        recipe = Recipe(*kind, seed=900 + i)
        mechanism = TopR(R=1 + i % 15)
        data = Data(GramData.from_moments(recipe.moments))
        setting = Setting.of(recipe.problem, Fraction(1 + i % 20), n=recipe.moments.n)
        outcomes, right = closed_form(mechanism, data, setting)
        least = min(least, g_test(drawn(mechanism, data, setting, 2000), outcomes, right))
    assert least >= LEVEL


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_draws_agree_with_the_closed_form_and_no_other(
    mechanism: Mechanism, constraint: str
) -> None:
    rng = np.random.default_rng(7)
    cells = rng.integers(-32767, 32768, size=(60, 8))
    graded = cells[:, :7] @ np.array([0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0])
    cells[:, 7] = np.clip(graded + cells[:, 7] // 12, -32767, 32767)
    problem = Problem.create(7, 3, constraint=constraint, prediction_bound=1.0, intercept=False)
    data = Data(GramData.from_moments(moments_of_records(cells)))
    setting = Setting.of(problem, Fraction(10), n=60)
    outcomes, right = closed_form(mechanism, data, setting)
    counts = drawn(mechanism, data, setting, 20_000)
    assert g_test(counts, outcomes, right) >= LEVEL
    wrong = closed_form(mechanism, data, Setting.of(problem, Fraction(20), n=60))[1]
    assert miss(right, wrong, 20_000) < LEVEL
    assert g_test(counts, outcomes, wrong) < LEVEL
