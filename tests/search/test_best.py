"""The optimum, the R best and the best of every bucket against enumeration: equal, ties included.

6 designs x 3 coefficient sets x tight or wide x 2 ridges x 8 seeds: 576 problems, a third of them
outside of the statistical suite. Small problems
end before they search, so what lists short regions or closes the last pick is turned down or off.
A failing test prints its `Recipe` and its settings; both together reproduce it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpsubset.search.best import Best, best_in_bucket, best_supports
from dpsubset.search.engine import Engine, Limits, SearchLimitError
from dpsubset.search.region import Region
from dpsubset.search.tuning import Tuning
from support.recipes import CONSTRAINTS, DESIGNS, Recipe, recipes
from support.samples import one_in

SEEDS = range(8)


@dataclass(frozen=True)
class Settings:
    """How the engine is made to work on a problem that it could list."""

    tuning: Tuning
    eta: float
    lazy: bool

    @classmethod
    def draw(cls, recipe: Recipe) -> Settings:
        rng = np.random.default_rng([recipe.seed, 1, int(recipe.ridge > 0)])
        tuning = Tuning(
            short=int(rng.integers(1, 4)),
            last_pick=int(rng.choice([0, 4096])),
            listable=int(rng.choice([1, 4, 2000])),
            small=100 if rng.random() < 0.5 else 0,
            hard_after=((2, 4), (40, 80))[int(rng.integers(2))],
        )
        return cls(tuning, float(10 ** rng.uniform(-6, 6)), bool(rng.random() < 0.3))

    def plain(self) -> Settings:
        """The same, without what spares a search most of its work."""
        return replace(self, tuning=replace(self.tuning, warm_start_size=0, fix_variables=False))

    def engine(self, recipe: Recipe) -> Engine:
        data = recipe.lazy() if self.lazy else recipe.moments
        unit = recipe.sensitivity.score_step
        return Engine(data, recipe.problem, unit, self.eta, tuning=self.tuning)


def check(recipe: Recipe, settings: Settings) -> int:
    """All three consumers on one problem; returns how many splits they took."""
    about = f"{recipe} {settings}"
    ranking, problem = recipe.ranking, recipe.problem
    rng = np.random.default_rng([recipe.seed, 2])
    splits = 0
    for count in {1, int(rng.integers(1, len(ranking) + 1)), len(ranking), len(ranking) + 3}:
        searcher = settings.engine(recipe)
        assert best_supports(searcher, count) == ranking[:count], (about, count)
        splits += searcher.nodes
    anchors = [ranking[0][1], tuple(sorted(rng.choice(problem.p, problem.k, replace=False)))]
    searcher = settings.engine(recipe)
    for anchor in anchors:
        for mistakes in range(problem.k + 1):
            found = best_in_bucket(searcher, anchor, mistakes)
            bucket = (e for e in ranking if len(set(e[1]) - set(anchor)) == mistakes)
            assert found == next(bucket, None), (about, anchor, mistakes)
    return splits + searcher.nodes


@one_in(3)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_every_search_equals_enumeration(kind: str, constraint: str, every: int) -> None:
    """With what spares a search most of its work, and without."""
    splits = 0
    for recipe in list(recipes((kind,), (constraint,), SEEDS))[::every]:
        settings = Settings.draw(recipe)
        check(recipe, settings)
        splits += check(recipe, settings.plain())
    assert splits > 500 / every  # the searches did search


def test_there_are_enough_problems_of_every_kind() -> None:
    table = list(recipes(DESIGNS, CONSTRAINTS, SEEDS))
    assert len(table) >= 500
    assert len({recipe.seed for recipe in table}) >= 100
    always = [len(recipe.problem.always_include) for recipe in table]
    assert sum(count > 0 for count in always) > 100
    assert sum(recipe.problem.k == count for recipe, count in zip(table, always, strict=True)) > 10
    # Ties among the best five, where the order has to break them.
    tied = [
        recipe
        for recipe in table
        if len({score for score, _ in recipe.ranking[:5]}) < len(recipe.ranking[:5])
    ]
    assert len(tied) > 100
    settings = [Settings.draw(recipe) for recipe in table]
    assert len({s.lazy for s in settings}) > 1
    for name in ("short", "last_pick", "listable", "small", "hard_after"):
        assert len({getattr(s.tuning, name) for s in settings}) > 1


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("room", [1, 30, 40])
def test_columns_on_demand_give_the_same_answers(constraint: str, room: int) -> None:
    """40 columns of which a search asks for some at a time; room for so many."""
    tuning = Tuning(short=3, last_pick=0)
    for seed in (3, 6, 9, 12):
        recipe = Recipe("AR 0.9", constraint, "tight", 0.0, seed, p=40)
        lazy = recipe.lazy()
        lazy.cache_bytes = room * 40 * 8
        for data in (lazy, lazy, recipe.moments):
            unit = recipe.sensitivity.score_step
            searcher = Engine(data, recipe.problem, unit, 1e3, tuning=tuning)
            assert best_supports(searcher, 20) == recipe.ranking[:20], recipe
        assert (lazy.slot >= 0).any()


def test_a_search_that_a_limit_stopped_has_lost_nothing() -> None:
    """Whoever goes on with it must not take what it has found so far for certified."""
    tuning = Tuning(short=2, listable=2)
    stopped = 0
    for recipe in recipes(DESIGNS, ("ball", "l1"), range(20, 26)):
        unit, limits = recipe.sensitivity.score_step, Limits(nodes=1)
        limited = Engine(recipe.moments, recipe.problem, unit, math.inf, limits, tuning=tuning)
        search = Best(limited, Region.whole(recipe.problem))
        try:
            search.find()
        except SearchLimitError:
            stopped += 1
            assert not search.done
            assert search.low <= recipe.ranking[0][0] <= search.high
        else:
            assert search.high == recipe.ranking[0][0]
    assert stopped > 20
