"""Intercept and groups in every mechanism: closed forms against enumeration, draws against both.

The problems are those of `layouts`: 336 for mechanisms of any loss, and 300 of least squares for
the others. Closed forms are made of scores of an oracle that knows columns alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from dpsubset.base.errors import ArgumentError
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import MECHANISMS, PLAIN, Data, Mechanism, Setting, mechanism
from dpsubset.mechanisms.penalised import Penalised
from dpsubset.mechanisms.published.metropolis import Metropolis
from dpsubset.mechanisms.published.mistakes import Mistakes, bucketed
from dpsubset.mechanisms.shared.gradient import Gradient, max_inner_product, record_change
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.schema.layout import STEPS, Layout
from dpsubset.search.enumerate import ScoredSupports, list_supports
from support.layouts import LayoutRecipe, layout_recipes
from support.samples import one_in

LOSSES = ("least-squares", "logistic", "hinge", "huber")
RECIPES = list(layout_recipes(LOSSES, range(14)))
SQUARES = list(layout_recipes(LOSSES[:1], range(100, 150)))
#: Of one test, as in the statistical suite.
LEVEL = 1e-9
BINS = 20

#: Small enough for closed forms.
OPTIONS: dict[str, dict[str, object]] = {
    "top-r": {"R": 2},
    "metropolis": {"steps": 7},
    "hard-thresholding": {"iterations": 1},
    "frank-wolfe": {"iterations": 2},
    "sample-aggregate": {"blocks": 2},
    "stability": {"blocks": 3},
}


def setting_of(recipe: LayoutRecipe, chosen: Mechanism, epsilon: Fraction) -> Setting:
    delta = Fraction(0) if chosen.takes_delta == "no" else Fraction(1, 50)
    return Setting.of(recipe.problem, epsilon, delta, recipe.digest.n)


def scored_by_columns(recipe: LayoutRecipe) -> ScoredSupports:
    """In lexicographic order, by the oracle."""
    ranking = sorted(recipe.ranking, key=lambda entry: entry[1])
    supports = np.array([support for _, support in ranking], dtype=np.int64)
    scores = np.array([score for score, _ in ranking], dtype=np.int64)
    return ScoredSupports(supports, scores, recipe.sensitivity.score_step)


@one_in(5)
@pytest.mark.parametrize("loss", LOSSES)
def test_closed_forms_are_those_of_enumeration_by_columns(loss: str, every: int) -> None:
    for recipe in [recipe for recipe in RECIPES if recipe.loss == loss][::every]:
        data, scored = Data(recipe.digest), scored_by_columns(recipe)
        listed = [scored.support(i) for i in range(len(scored))]
        assert [tuple(row) for row in list_supports(recipe.problem).tolist()] == listed
        anchor = listed[len(listed) // 2]
        epsilon = Fraction(2 + recipe.seed % 20)
        for plain in PLAIN.values():
            setting = setting_of(recipe, plain(), epsilon)
            eta = plain().eta(setting)
            expected = plain().log_probabilities(scored, eta)
            same(plain(), data, setting, listed, expected)
            public = Mistakes(anchor, form=plain.name)
            same(public, data, setting, listed,
                 plain().log_probabilities(bucketed(scored, anchor), eta))  # fmt: skip
        if loss == "least-squares":
            walk = Metropolis(steps=7, lazy=bool(recipe.seed % 2))
            setting = setting_of(recipe, walk, epsilon)
            at = np.full(len(listed), 1 / len(listed))
            for _ in range(7):
                at = at @ walk.matrix(scored, setting)
            same(walk, data, setting, listed, np.log(at))


def same(
    chosen: Mechanism,
    data: Data,
    setting: Setting,
    listed: list[tuple[int, ...]],
    expected: np.ndarray,
) -> None:
    found = chosen.outcomes(data, setting)
    assert found is not None
    assert found[0] == listed
    np.testing.assert_allclose(found[1], expected, rtol=1e-9, atol=1e-12)


def test_penalised_counts_choices_not_columns() -> None:
    chosen = Penalised(phi=Fraction(1, 8))
    for recipe in RECIPES[::5]:
        setting = setting_of(recipe, chosen, Fraction(3))
        found = chosen.outcomes(Data(recipe.digest), setting)
        assert found is not None
        logs = dict(zip(found[0], found[1], strict=True))
        penalty, unit = chosen.penalty(setting), float(setting.sensitivity.score_step)
        weight = float(chosen.eta(setting)) * unit
        ranks = recipe.ranking
        # Of full size all pay the same; what is smaller pays less, however many columns it has.
        for score, support in ranks:
            behind = (score - ranks[0][0]) * weight
            assert np.isclose(logs[ranks[0][1]] - logs[support], behind, atol=1e-9)
        for size in range(len(recipe.problem.always_include), recipe.problem.k):
            best = best_of_size(recipe, size)
            saved = (recipe.problem.k - size) * penalty
            gap = logs[best[1]] - logs[ranks[0][1]]
            assert np.isclose(gap, (ranks[0][0] - best[0] + saved) * weight, atol=1e-9), recipe


def best_of_size(recipe: LayoutRecipe, size: int) -> tuple[int, tuple[int, ...]]:
    """Of the supports of another size, by the oracle, with the recipe's own coefficient set."""
    other = LayoutRecipe(recipe.loss, recipe.constraint, recipe.intercept, recipe.seed)
    known = {name: getattr(recipe, name) for name in ("kinds", "digest", "sensitivity")}
    other.__dict__.update(known, problem=replace(recipe.problem, k=size))
    return other.ranking[0]


# -- draws --------------------------------------------------------------------------------------


def places(
    chosen: Mechanism, recipes: list[LayoutRecipe], draws: int, told: Fraction = Fraction(1)
) -> Iterator[float]:
    """Where draws fall in the closed form: uniform, if they are from it.

    Likely outcomes come first, so that too much and too little noise both show. ``told`` times the
    epsilon of the draws is that of the closed form.
    """
    rng, uniform = Randomness(SystemSource()), np.random.default_rng()
    for recipe in recipes:
        epsilon = Fraction(1 + recipe.seed % 12)
        setting = setting_of(recipe, chosen, epsilon)
        data = Data(recipe.digest)
        found = chosen.outcomes(data, replace(setting, epsilon=told * epsilon))
        if found is None:
            continue
        order = sorted(range(len(found[0])), key=lambda i: -found[1][i])
        size = np.exp(found[1])[order]
        start = dict(zip((found[0][i] for i in order), np.cumsum(size) - size, strict=True))
        width = {found[0][i]: share for i, share in zip(order, size, strict=True)}
        sampler = chosen.prepare(data, setting)
        for _ in range(draws):
            drawn = sampler.draw(rng)
            yield start[drawn] + uniform.random() * width[drawn]


def uniformity(found: list[float]) -> float:
    """p-value of a chi-square test."""
    counts = np.histogram(np.clip(found, 0, 1 - 1e-12), BINS, (0, 1))[0]
    expected = len(found) / BINS
    return float(chi2.sf(((counts - expected) ** 2).sum() / expected, BINS - 1))


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_agree_with_closed_forms_on_300_problems(name: str) -> None:
    chosen = mechanism(name, OPTIONS.get(name, {}))
    recipes = RECIPES if chosen.any_loss else SQUARES
    recipes = recipes if not chosen.needs_records else [few_records(one) for one in recipes]
    assert len(recipes) >= 300
    found = list(places(chosen, recipes, 12))
    assert len(found) >= (3000 if name != "frank-wolfe" else 1000)
    assert uniformity(found) >= LEVEL


@pytest.mark.statistical
def test_a_draw_with_too_much_noise_is_told_apart() -> None:
    for name in PLAIN:
        found = list(places(PLAIN[name](), RECIPES, 24, told=Fraction(2)))
        assert uniformity(found) < LEVEL


def few_records(recipe: LayoutRecipe) -> LayoutRecipe:
    """With so few records that all blocks can be listed."""
    other = LayoutRecipe(recipe.loss, recipe.constraint, recipe.intercept, recipe.seed)
    cells = np.vstack([recipe.digest.records, recipe.digest.response[None]])
    few = GramData.of_cells(np.ascontiguousarray(cells[:, :6]), "test")
    other.__dict__.update(digest=few)
    return other


# -- what calibrates gradients ------------------------------------------------------------------


@pytest.mark.parametrize("recipe", SQUARES[::6], ids=str)
def test_no_record_moves_a_gradient_by_more_and_one_by_as_much(recipe: LayoutRecipe) -> None:
    problem, rng = recipe.problem, np.random.default_rng(recipe.seed)
    layout, radius, parts = problem.layout, problem.prediction_bound, 16
    chosen = layout.of_support(recipe.ranking[0][1]).tolist()
    rows = list(recipe.digest.records.T.astype(np.int64))
    anything = {j: int(rng.integers(-parts, parts + 1)) for j in chosen}
    above = {j: int(rng.integers(1, parts + 1)) for j in chosen}
    for m in (anything, above):
        m = {j: weight for j, weight in m.items() if weight}
        largest, bound = 0, record_change(layout, radius, m, parts)
        for row in [*rows, furthest(recipe, above)]:
            assert abs(sum(int(row[j]) * weight for j, weight in m.items())) <= max_inner_product(
                layout, m
            )
            for y in (-STEPS, STEPS):
                one = GramData.of_cells(np.array([[*row, y]], dtype=np.int16).T.copy(), "test")
                largest = max(largest, *map(abs, Gradient(one, radius, 0.0).at(m, parts)))
        assert largest <= bound
    assert largest == bound


def furthest(recipe: LayoutRecipe, m: dict[int, int]) -> np.ndarray:
    """The row of the quantizer that predicts most, with no weight below 0."""
    layout, row = recipe.problem.layout, []
    for j, (kind, size) in enumerate(recipe.kinds):
        weights = [m.get(int(layout.starts[j]) + i, 0) for i in range(size)]
        one = kind in ("levels", "indicator")  # of its columns at most
        on = [int(np.argmax(weights))] if one else range(size)
        row += [STEPS if i in on else 0 for i in range(size)]
    return np.array(row + ([layout.constant] if recipe.intercept else []), dtype=np.int64)


# -- mechanisms that know neither ---------------------------------------------------------------


def test_who_does_not_speak_of_them_is_refused_before_a_value_is_read() -> None:
    class Simple(PLAIN["exponential"]):  # type: ignore[misc, name-defined]
        name = "simple"
        takes_groups = takes_intercept = False

    levels = Problem.create(3, 1, layout=Layout.of([2, 2, 2], [1, 1, 1]), intercept=False)
    with pytest.raises(ArgumentError, match=r"simple scores single columns.*permute-and-flip"):
        Simple().check(Setting.of(levels, 1))
    with pytest.raises(ArgumentError, match="simple does not support an intercept"):
        Simple().check(Setting.of(Problem.create(3, 1, intercept=True), 1))
    Simple().check(Setting.of(Problem.create(3, 1, intercept=False), 1))
    assert not Mechanism.takes_groups
    assert not Mechanism.takes_intercept


@pytest.mark.parametrize("name", MECHANISMS)
def test_statements_say_what_becomes_of_them(name: str) -> None:
    chosen = mechanism(name, OPTIONS.get(name, {}))
    told = {}
    for intercept, layout in ((False, None), (True, None), (False, Layout.of([3, 2], [1, 1]))):
        problem = Problem.create(2, 1, intercept=intercept, layout=layout)
        delta = 0 if chosen.takes_delta == "no" else Fraction(1, 100)
        told[intercept, layout] = " ".join(chosen.details(Setting.of(problem, 1, delta, 9)))
    plain, intercept, groups = told.values()
    assert "intercept" not in plain
    assert "intercept" in intercept
    assert "columns" in groups
    assert chosen.on_groups
    assert chosen.on_intercept
