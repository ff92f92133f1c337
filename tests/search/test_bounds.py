"""Bounds of 20,000 random regions against every support in them: never above, compared exactly.
A third of the regions is looked at outside of the statistical suite.

    base - sum of the gains of S's picks <= f~(S) * unit   and   flat <= min f~ * unit

for every S of the region, with and without what makes a bound exact or strong: closing the last
pick, a diagonal of the region's own, a stronger diagonal half way down a path, a diagonal for the
region's supports only, columns on demand.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dpsubset.data.quantize import STEPS
from dpsubset.search.bounds import diagonal_kernels
from dpsubset.search.bounds.base import BoundOracle, Node
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.tuning import Tuning
from support.recipes import CONSTRAINTS, DESIGNS, Recipe, recipes
from support.regions import Walk, worst
from support.samples import one_in

#: Regions a problem; there are 4 * 8 problems a test, 18 tests.
REGIONS = 45
SEEDS = range(20, 28)
LEAST = 20_000

#: Nothing but the diagonals for a region's own supports.
SPARSE = Tuning(small=0, anchor=0, last_pick=0)


def walk(recipe: Recipe) -> tuple[Walk, str]:
    rng = np.random.default_rng([recipe.seed, 3, int(recipe.ridge > 0), int(recipe.size == "wide")])
    tuning = Tuning(
        small=int(rng.choice([0, 0, 100])),
        anchor=int(rng.choice([0, 2])),
        last_pick=int(rng.choice([0, 4096])),
    )
    eta, lazy = float(10 ** rng.uniform(-6, 6)), bool(rng.random() < 0.2)
    steps = Walk(recipe, rng, eta, lazy=lazy, tuning=tuning)
    return steps, f"{recipe} {tuning} eta={eta!r} lazy={lazy}"


@one_in(3)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_no_bound_lies_above_a_score(kind: str, constraint: str, every: int) -> None:
    seen = 0
    for recipe in list(recipes((kind,), (constraint,), SEEDS))[::every]:
        steps, about = walk(recipe)
        if recipe.problem.supports < 2:
            continue
        for number, bound in enumerate(steps.bounds(REGIONS)):
            assert worst(bound, steps.bound_oracle, steps.scorer) <= 0, f"{about} region {number}"
            seen += 1
    assert seen > LEAST / 18 / every


def focused(recipe: Recipe, rng: np.random.Generator, count: int) -> Iterator[tuple[Walk, Node]]:
    """Bounds with diagonals for the region's supports, whether or not they are the better ones."""
    steps = Walk(recipe, rng, 1.0, lazy=False, tuning=SPARSE)
    steps.bound_oracle.strengthen(sweeps=False)
    for bound in steps.bounds(count):
        if bound.exact_gains is None and steps.bound_oracle.diagonal_rule.restrict_to_core(bound):
            yield steps, steps.bound_oracle.evaluate(bound, int(rng.integers(0, 9)))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_diagonals_for_sparse_supports_are_valid(constraint: str) -> None:
    """On the core and any so many others: by eigenvalues, and by the bounds that follow."""
    rng = np.random.default_rng(7)
    seen = large = 0
    for recipe in recipes(DESIGNS, (constraint,), range(30, 34)):
        for steps, bound in focused(recipe, rng, 12):
            assert worst(bound, steps.bound_oracle, steps.scorer) <= 0, recipe
            p = recipe.problem.p
            h = recipe.moments.products[:p, :p] / STEPS**2 + recipe.problem.ridge * np.eye(p)
            for support in bound.region.supports()[:40]:
                at = np.union1d(np.flatnonzero(bound.core), support)
                left = h[np.ix_(at, at)] - np.diag(bound.d[at])
                assert np.linalg.eigvalsh(left)[0] >= -1e-12 * np.trace(h), (recipe, support)
            picks = bound.d[bound.region.status >= FREE]
            seen += 1
            large += bool(np.median(picks) > 0.2 * np.median(np.diag(h)) + recipe.problem.ridge)
    assert seen > 100
    assert large > 20  # and not by taking nothing out


def test_a_diagonal_that_forgets_how_features_are_alike_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    true = diagonal_kernels.nearest_columns
    monkeypatch.setattr(
        diagonal_kernels, "nearest_columns", lambda *args: tuple(a * 0 for a in true(*args))
    )
    rng = np.random.default_rng(8)
    above = sum(
        worst(bound, steps.bound_oracle, steps.scorer) > 0
        for recipe in recipes(DESIGNS, CONSTRAINTS, range(30, 34))
        for steps, bound in focused(recipe, rng, 12)
    )
    assert above > 0


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_bound_that_is_a_little_too_high_is_noticed(constraint: str) -> None:
    """Where the last pick is known the bound is almost exact: one unit more is too much."""
    closed = 0
    for recipe in recipes(("AR 0.9",), (constraint,), range(2)):
        if recipe.problem.supports < 2:
            continue
        steps = Walk(recipe, np.random.default_rng(0), 1.0, lazy=False)
        for bound in steps.bounds(40):
            if bound.exact_gains is not None:
                base = bound.base
                assert worst(bound, steps.bound_oracle, steps.scorer) <= 0
                bound.base += steps.scorer.score_step_float
                assert worst(bound, steps.bound_oracle, steps.scorer) > 0
                bound.base = base  # a child inherits it
                closed += 1
    assert closed > 10


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_bounds_are_worth_something(constraint: str) -> None:
    """Without this, minus infinity would pass. Median slack in units of y'y, no last pick."""
    slacks = []
    for recipe in recipes(("orthogonal", "AR 0.9"), (constraint,), range(4)):
        if recipe.problem.supports < 2:
            continue
        steps = Walk(recipe, np.random.default_rng(1), 1e3, lazy=False)
        for bound in steps.bounds(10):
            f = steps.scorer.scores(bound.region.supports()) * steps.scorer.score_step_float
            slacks.append((float(f.min()) - bound.lower_bound) / steps.bound_oracle.yy)
    assert np.median(slacks) < 0.05


def test_bounds_without_their_margin_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores round to a grid; a bound that forgets this is above some of them."""
    monkeypatch.setattr(BoundOracle, "_rounding_margin", lambda *_: 0.0)
    above = 0
    for recipe in recipes(DESIGNS, CONSTRAINTS, range(20, 21)):
        if recipe.problem.supports < 2:
            continue
        steps, _ = walk(recipe)
        above += sum(worst(b, steps.bound_oracle, steps.scorer) > 0 for b in steps.bounds(20))
    assert above > 0
