"""choose-reach: a reach from a public grid, then a set. Definition, draws, price, twins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.audit.exact import (
    Pair,
    audit_exact,
    moments_of_records,
    random_pairs,
    worst_case_pairs,
)
from dpsubset.audit.pairs import flattening_pairs
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN, Data
from dpsubset.mechanisms.choose_reach import ChooseReach
from dpsubset.mechanisms.shared.base import Setting
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.privacy.relations import RELATIONS
from dpsubset.search.enumerate import enumerate_supports
from support.recipes import DESIGNS, REACHES, Recipe

FORMS = ("exponential", "permute-and-flip")
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)


def recipe() -> Recipe:
    return Recipe(DESIGNS[0], "box", next(iter(REACHES)), 0.0, 2)


def test_by_its_definition() -> None:
    """Reaches by their best scores and what noise costs there, then sets: from plain weights."""
    one = recipe()
    mechanism = ChooseReach(form="exponential", share=Fraction(1, 3))
    setting = Setting.of(one.problem, 3)
    found = mechanism.outcomes(Data(GramData.from_moments(one.moments)), setting)
    assert found is not None
    supports, logs = found
    assert np.exp(logs).sum() == pytest.approx(1)
    expected: Counter[Any] = Counter()
    worth, sets = [], []
    for factor in (0.8, 1.0, 1.5):
        problem = one.problem.with_prediction_bound(float(one.problem.prediction_bound) * factor)
        at = Setting.of(problem, 2)  # two thirds of 3
        eta = 2 / float(at.sensitivity.score_range(problem.neighbours))
        scored = enumerate_supports(one.moments, problem, at.sensitivity.score_step)
        values = scored.scores * float(scored.unit)
        worth.append(values.min() + math.log(problem.supports) / eta)
        weights = np.exp(-eta * (values - values.min()))
        sets.append({scored.support(i): w for i, w in enumerate(weights / weights.sum())})
        widest = at.sensitivity
    first = 1 / float(widest.score_range(one.problem.neighbours) + 2 * widest.score_step)
    chances = np.exp(-first * (np.array(worth) - min(worth)))
    for chance, each in zip(chances / chances.sum(), sets, strict=True):
        for support, weight in each.items():
            expected[support] += chance * weight
    for support, log in zip(supports, logs, strict=True):
        assert math.exp(log) == pytest.approx(expected[support], rel=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_draws_follow_the_closed_form(form: str) -> None:
    one = recipe()
    setting, mechanism = Setting.of(one.problem, 3), ChooseReach(form=form)
    data = Data(GramData.from_moments(one.moments))
    found = mechanism.outcomes(data, setting)
    assert found is not None
    sampler, rng, draws = mechanism.prepare(data, setting), Randomness(SeededSource(5)), 4000
    seen = Counter(sampler.draw(rng) for _ in range(draws))
    for support, chance in zip(found[0], np.exp(found[1]).tolist(), strict=True):
        slack = 6 * math.sqrt(draws * chance * (1 - chance)) + 1
        assert abs(seen[support] - draws * chance) < slack


@each_relation
@pytest.mark.parametrize("loss", ["least-squares", "huber", "logistic"])
def test_no_neighbours_contradict_it(neighbours: Any, loss: str) -> None:
    problem = Problem.create(4, 1, prediction_bound=1.0, neighbours=neighbours, loss=loss)
    pairs = [*random_pairs(problem, 30, np.random.default_rng(0)),
             *worst_case_pairs(problem, 50)]  # fmt: skip
    pairs = [pair for pair in pairs if loss == "least-squares" or pair.records is not None]
    mechanism = ChooseReach(factors=(Fraction(1, 2), 1, 2), share=Fraction(1, 2))
    found = audit_exact(mechanism, problem, Fraction(1), pairs)
    assert found.passed
    assert found.worst > 0.3


class _Free(ChooseReach):
    """The reach comes free: the set has all of epsilon, and so has the reach."""

    def settings(self, setting: Setting) -> list[Setting]:
        return [replace(at, epsilon=setting.epsilon) for at in super().settings(setting)]

    def first_eta(self, setting: Setting) -> Fraction:
        return 20 * super().first_eta(setting)


class _Narrow(ChooseReach):
    """The weight of the smallest reach for all of them."""

    def eta(self, setting: Setting) -> Fraction:
        return setting.sensitivity.eta(setting.epsilon, setting.problem.neighbours) * 8


def together(mechanism: ChooseReach, setting: Setting, moments: dps.Moments) -> np.ndarray:
    """Logarithms of the probabilities of reach and set, which the price is of."""
    plain, at = PLAIN[mechanism.form](), mechanism.settings(setting)
    parts = [enumerate_supports(moments, one.problem, one.sensitivity.score_step) for one in at]
    reaches = mechanism._of_reaches(at, [int(part.scores.min()) for part in parts])
    first = plain.log_probabilities(reaches, mechanism.first_eta(setting))
    sets = [
        plain.log_probabilities(part, mechanism.eta(one))
        for part, one in zip(parts, at, strict=True)
    ]
    return first[:, None] + np.array(sets)


def turned(problem: Problem) -> Iterator[Pair]:
    """All records want the largest reach, and one is the worse off the larger it is."""
    rows = np.full((300, problem.p + 1), 2 * STEPS // 3)
    rows[:, -1] = STEPS
    against = np.full((1, problem.p + 1), STEPS)
    against[:, -1] = -STEPS
    last = rows[:1] if problem.n_is_public else rows[:0]
    yield Pair(
        moments_of_records(np.vstack([rows, last])), moments_of_records(np.vstack([rows, against])),
        "turned",
    )  # fmt: skip


@each_relation
def test_reach_and_set_together_keep_the_price(neighbours: Any) -> None:
    problem = Problem.create(12, 1, prediction_bound=1.0, neighbours=neighbours)
    setting = Setting.of(problem, 1)
    pairs = [*flattening_pairs(problem), *worst_case_pairs(problem),
             *random_pairs(problem, 30, np.random.default_rng(0)),
             *turned(problem)]  # fmt: skip

    def worst(mechanism: ChooseReach) -> float:
        return max(
            float(np.abs(together(mechanism, setting, pair.first)
                         - together(mechanism, setting, pair.second)).max())
            for pair in pairs
        )  # fmt: skip

    for share in (Fraction(1, 10), Fraction(9, 10)):
        assert 0.2 < worst(ChooseReach(share=share)) <= 1 + 1e-9
    for broken in (_Free(), _Narrow()):
        assert worst(broken) > 1.1


@each_relation
def test_it_costs_what_it_was_given(neighbours: Any) -> None:
    for share in (Fraction(1, 10), Fraction(1, 2)):
        setting = Setting.of(Problem.create(9, 3, neighbours=neighbours), 2)
        found = ChooseReach(share=share).guarantee(setting)
        assert found.epsilon == 2
        assert set(found.costs) == set(RELATIONS)


def test_larger_reaches_are_taken_where_they_explain_more() -> None:
    """Of a response that is all signal, at an epsilon for which that counts."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 5))
    digests = [
        dps.Moments.from_blocks(dps.Bounds(x=1, y=1).schema(list("abcde")), [(x, y)], 0)
        for y in (x[:, 1], 0.05 * rng.normal(size=4000))
    ]
    setting = Setting.of(Problem.create(5, 1, prediction_bound=0.4), 2)
    mechanism = ChooseReach(factors=(1, 2.5))
    chosen = []
    for moments in digests:
        at = mechanism.settings(setting)
        best = [
            int(enumerate_supports(moments, one.problem, one.sensitivity.score_step).scores.min())
            for one in at
        ]
        scored = mechanism._of_reaches(at, best)
        chosen.append(int(np.argmin(scored.scores)))
    assert chosen == [1, 0]


@pytest.mark.parametrize(
    "wrong",
    [{"factors": ()}, {"factors": (1, 1)}, {"factors": (0,)}, {"factors": "x"}, {"share": 1},
     {"form": "none"}, {"factors": tuple(range(1, 40))}],
    ids=str,
)  # fmt: skip
def test_wrong_options_are_refused(wrong: Any) -> None:
    with pytest.raises(dps.ArgumentError):
        ChooseReach(**wrong)


def test_a_reach_that_is_impossible_is_refused_before_a_value_is_read() -> None:
    x = np.zeros((3, 2))
    with pytest.raises(dps.ArgumentError, match="radius"):
        dps.select(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1, radius=1e9,
                   mechanism="choose-reach", options={"factors": (100,)})  # fmt: skip


def test_a_fit_takes_it() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (200, 4))
    release = dps.fit(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=200,
                      mechanism="choose-reach", options={"factors": (1, 1.5)})  # fmt: skip
    assert release.features == ["x0"]
    assert release.guarantee.epsilon == 200
