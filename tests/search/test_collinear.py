"""Columns that are alike: bounds never above a score, searches and draws equal to enumeration.

8 designs x 3 coefficient sets x tight or wide x 2 ridges x with and without groups and intercept.
Bounds are compared on 60,000 regions in all, a few thousand of them outside of the statistical
suite; a failing test prints what reproduces it. Draws are judged as in tests/statistical.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dpsubset.mechanisms import PLAIN
from dpsubset.search.best import best_in_bucket, best_supports
from dpsubset.search.bounds.base import BoundOracle, Node
from dpsubset.search.engine import Engine
from dpsubset.search.tuning import Tuning
from support.collinear import DESIGNS, LAYOUTS, Collinear, CollinearWalk, collinear, walk
from support.plain_draws import agree
from support.recipes import CONSTRAINTS, REACHES, RIDGES
from support.regions import worst

#: Regions a problem, of which there are 16 a seed in each of 24 tests.
REGIONS = 9
QUICK, MORE = range(1), range(1, 18)
LEAST, MOST = 3_000, 55_000


def check(kind: str, constraint: str, seeds: range) -> int:
    """How many regions were looked at."""
    seen = 0
    for recipe in collinear((kind,), (constraint,), seeds):
        steps, about = walk(recipe)
        for number, bound in enumerate(steps.bounds(REGIONS)):
            assert worst(bound, steps.bound_oracle, steps.scorer) <= 0, f"{about} region {number}"
            seen += 1
    return seen


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_no_bound_lies_above_a_score(kind: str, constraint: str) -> None:
    assert check(kind, constraint, QUICK) >= LEAST // 24


@pytest.mark.statistical
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_no_bound_lies_above_a_score_on_many_regions(kind: str, constraint: str) -> None:
    assert check(kind, constraint, MORE) >= MOST // 24


def test_the_columns_are_alike_and_the_settings_differ() -> None:
    table = list(collinear(DESIGNS, CONSTRAINTS, QUICK))
    assert len(table) == 8 * 3 * 16
    for kind in DESIGNS:
        # Levels of a category are not alike one by one: they add up to a constant.
        least = 0.0 if kind == "one-hot" else 0.7
        assert np.median([r.alike() for r in table if r.design == kind]) > least, kind
    choices = {len(recipe.sizes) for recipe in table}
    assert (min(choices), max(choices)) == (6, 12)
    assert any(recipe.problem.always_include for recipe in table)
    walks = [about for _, about in map(walk, table)]
    assert 100 < sum("lazy=True" in about for about in walks) < len(table) - 100


# -- tests that must bite -----------------------------------------------------------------------


def test_bounds_without_their_margin_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundOracle, "_rounding_margin", lambda *_: 0.0)
    above = 0
    for recipe in collinear(DESIGNS, ("box", "ball"), range(1), ("plain", "grouped")):
        steps, _ = walk(recipe)
        above += sum(worst(b, steps.bound_oracle, steps.scorer) > 0 for b in steps.bounds(9))
    assert above > 0


def twin(steps: CollinearWalk, bound: Node, error: float) -> Node:
    """The same dual point, every u_j off by a relative error towards smaller gains."""
    w = bound.c - bound.u
    bound.u += error * np.abs(bound.u) * np.sign(w)
    steps.bound_oracle._ascend_dual = lambda *_: None  # type: ignore[method-assign]
    try:
        return steps.bound_oracle.evaluate(bound, 0)
    finally:
        del steps.bound_oracle._ascend_dual  # type: ignore[method-assign]


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_dual_point_whose_products_are_a_little_off_is_noticed(constraint: str) -> None:
    """By a millionth. After many rounds bounds are almost exact; many records make units small."""
    above = seen = 0
    for few in collinear(DESIGNS, (constraint,), QUICK, ("plain",)):
        recipe = replace(few, copies=400, ridge=400 * few.ridge)
        rng = np.random.default_rng([recipe.seed, 5])
        tuning = Tuning(last_pick=0, small=0)
        steps = CollinearWalk(recipe, rng, 1.0, lazy=False, tuning=tuning)
        steps.bound_oracle.eta = 1e9  # every gain is worth another round
        for bound in steps.bounds(6):
            steps.bound_oracle.evaluate(bound, 400)
            assert worst(bound, steps.bound_oracle, steps.scorer) <= 0, recipe
            same = twin(steps, bound.inherited(bound.region), 0.0)
            assert abs(same.base - bound.base) <= 1e-9 * abs(bound.base)
            off = twin(steps, bound.inherited(bound.region), 1e-6)
            above += worst(off, steps.bound_oracle, steps.scorer) > 0
            seen += 1
    assert seen > 150
    assert above > 5


# -- consumers ----------------------------------------------------------------------------------

#: Each problem in one of its sizes, ridges and layouts, all of which occur.
_TURNS = list(itertools.product(REACHES, RIDGES, LAYOUTS))


def turns(constraint: str, seeds: range) -> list[Collinear]:
    """One problem a design and seed."""
    found = []
    for number, (kind, seed) in enumerate(itertools.product(DESIGNS, seeds)):
        size, ridge, layout = _TURNS[(5 * number + seed) % len(_TURNS)]
        found.append(Collinear(kind, constraint, size, ridge, layout, 100_000 + 100 * number))
    return found


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_every_search_equals_enumeration(constraint: str) -> None:
    """The R best and the best of every bucket, ties included."""
    splits = 0
    for recipe in turns(constraint, range(3)):
        rng = np.random.default_rng([recipe.seed, 6])
        tuning = Tuning(
            short=int(rng.integers(1, 4)),
            last_pick=int(rng.choice([0, 4096])),
            listable=int(rng.choice([1, 4, 2000])),
            small=int(rng.choice([0, 100])),
            hard_after=((2, 4), (40, 80))[int(rng.integers(2))],
            working_set=int(rng.choice([2, 100])),
            warm_start_size=int(rng.choice([0, 100_000])),
            fix_variables=bool(rng.random() < 0.5),
        )
        eta, lazy = float(10 ** rng.uniform(-4, 6)), bool(rng.random() < 0.4)
        about = f"{recipe} {tuning} eta={eta!r} lazy={lazy}"
        data = recipe.lazy() if lazy else recipe.whole()
        ranking, unit = recipe.ranking, recipe.sensitivity.score_step
        engine = Engine(data, recipe.problem, unit, eta, tuning=tuning)
        for count in (1, int(rng.integers(2, len(ranking) + 1))):
            assert best_supports(engine, count) == ranking[:count], (about, count)
        anchor = ranking[int(rng.integers(min(20, len(ranking))))][1]
        for mistakes in range(recipe.problem.k + 1):
            bucket = (e for e in ranking if len(set(e[1]) - set(anchor)) == mistakes)
            found = best_in_bucket(engine, anchor, mistakes)
            assert found == next(bucket, None), (about, anchor, mistakes)
        splits += engine.nodes
    assert splits > 300


#: As many splits as there can be; and none but those that permute-and-flip cannot do without.
SPLITTING = Tuning(short=1, listable=1, last_pick=0, patience=0.0)
KEEPING = replace(SPLITTING, patience=1e300)


@pytest.mark.statistical
@pytest.mark.parametrize("tuning", [SPLITTING, KEEPING], ids=["splitting", "keeping"])
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_draws_agree_with_the_closed_form(constraint: str, name: str, tuning: Tuning) -> None:
    for recipe in turns(constraint, range(1)):
        splits = agree(recipe, name, tuning, lazy=recipe.layout == "intercept")
        if tuning is SPLITTING:
            assert splits > 0, recipe
        elif name == "exponential":
            assert splits == 0, recipe
