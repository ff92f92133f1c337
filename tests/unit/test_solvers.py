"""Outside solvers give the engine's answer or none; their cuts lie below every score."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from conformance.recipes import DESIGNS, Recipe
from dpsubset import Bounds, SearchLimitError, best_subset, solvers, top_supports
from dpsubset.errors import ArgumentError
from dpsubset.gram import Gram
from dpsubset.search.engine import Limits
from dpsubset.solvers import SolverError, certify, solve
from dpsubset.solvers.cuts import Cuts

PACKAGES = {"highs": "highspy", "scip": "pyscipopt"}
SOLVERS = tuple(PACKAGES)
BOUNDS = Bounds(x=1.0, y=1.0)


def needs(solver: str) -> None:
    pytest.importorskip(PACKAGES[solver], reason=f"{PACKAGES[solver]} is not installed")


def table(p: int = 15, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(p)
    x = rng.uniform(-1, 1, (n, p))
    return x, np.clip(x[:, :3].sum(axis=1) / 4 + rng.normal(0, 0.3, n), -1, 1)


def answer(solver: str, recipe: Recipe, count: int) -> list[tuple[int, tuple[int, ...]]]:
    gram = Gram.from_moments(recipe.moments)
    return solve(solver, gram, recipe.problem, recipe.sensitivity.unit, count, Limits())


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("kind", DESIGNS)
def test_highs_equals_enumeration(kind: str, constraint: str) -> None:
    needs("highs")
    for seed, size in enumerate(("tight", "wide", "tight", "wide")):
        recipe = Recipe(kind, constraint, size, 2.5, seed + 1)
        for count in (1, 5, len(recipe.ranking) + 3):
            assert answer("highs", recipe, count) == recipe.ranking[:count], (recipe, count)


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("kind", DESIGNS)
def test_scip_equals_enumeration(kind: str, constraint: str) -> None:
    needs("scip")
    recipe = Recipe(kind, constraint, "wide", 0.0, 1)
    assert answer("scip", recipe, 3) == recipe.ranking[:3], recipe


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("kind", DESIGNS)
def test_cuts_lie_below_every_score_and_touch(kind: str, constraint: str) -> None:
    for seed in range(4):
        for size in ("tight", "wide"):
            recipe = Recipe(kind, constraint, size, 2.5, seed)
            p, unit = recipe.problem.p, float(recipe.sensitivity.unit)
            cuts = Cuts(Gram.from_moments(recipe.moments), recipe.problem)
            rng = np.random.default_rng(seed)
            score, support = recipe.ranking[seed % len(recipe.ranking)]
            whole = np.zeros(p)
            whole[list(support)] = 1.0
            for z in (whole, rng.dirichlet(np.ones(p)), rng.random(p)):
                base, gains = cuts.at(z)
                for other, s in recipe.ranking:
                    # A score is within one unit of f.
                    assert base - gains[list(s)].sum() <= (other + 1) * unit + 1e-9, recipe
            base, gains = cuts.at(whole)
            assert base - gains @ whole >= (score - 2) * unit - 1e-6, recipe


@pytest.mark.parametrize("solver", SOLVERS)
def test_behind_the_public_functions(solver: str) -> None:
    needs(solver)
    x, y = table()
    stated = {"y": y, "bounds": BOUNDS, "k": 3, "constraint": "ball", "ridge": 20.0}
    always = {"always_include": [7]}
    assert best_subset(x, solver=solver, **stated) == best_subset(x, **stated)
    ours = top_supports(x, count=4, **always, **stated)
    assert top_supports(x, count=4, solver=solver, **always, **stated) == ours


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_missing_solver_says_what_to_install(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[solver], None)
    x, y = table()
    with pytest.raises(SolverError, match=r"dpsubset\[solvers\]"):
        best_subset(x, y=y, bounds=BOUNDS, k=3, constraint="ball", ridge=20.0, solver=solver)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"solver": "gurobi"}, "solver must be one of engine, highs, scip"),
        ({"solver": "scip", "constraint": "l1"}, "the box and the ball"),
        ({"solver": "highs", "constraint": "ball"}, "ridge > 0"),
    ],
)
def test_what_a_solver_cannot_do_is_refused(stated: dict[str, str], message: str) -> None:
    x, y = table()
    with pytest.raises(ArgumentError, match=message):
        best_subset(x, y=y, bounds=BOUNDS, k=3, **stated)


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_leave_no_answer(solver: str) -> None:
    needs(solver)
    x, y = table(30, 60)
    stated = {"y": y, "bounds": BOUNDS, "k": 4, "constraint": "ball", "ridge": 0.1}
    with pytest.raises(SearchLimitError):
        best_subset(x, solver=solver, time_limit=1e-9, **stated)
    with pytest.raises(SearchLimitError):
        best_subset(x, solver=solver, node_limit=1, **stated)


def test_a_solver_that_breaks_its_no_good_cuts_is_caught() -> None:
    recipe = Recipe("AR 0.9", "box", "wide", 2.5, 1)

    class Stubborn:
        scale, slack = 1.0, 0.0

        def beyond(self, limit: float, without: object) -> list[tuple[int, ...]]:
            return [recipe.ranking[0][1]]

    gram = Gram.from_moments(recipe.moments)
    search = certify.Certified(gram, recipe.problem, recipe.sensitivity.unit, 1, Limits())
    with pytest.raises(SolverError, match="no-good"):
        search.find(Stubborn())


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_worst_first_guess_is_put_right_by_the_solver(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without swaps the answer has to come from the solver: its bounds are not vacuously high."""
    needs(solver)
    monkeypatch.setattr(certify.Certified, "_search", lambda self: None)
    for seed in range(1, 6):
        recipe = Recipe("AR 0.9", "ball", "wide", 2.5, seed)
        gram, problem = Gram.from_moments(recipe.moments), recipe.problem
        search = certify.Certified(gram, problem, recipe.sensitivity.unit, 1, Limits())
        search._guess = recipe.ranking[-1][1]
        found = search.find(solvers.SOLVERS[solver](gram, problem, Limits()))
        assert found == recipe.ranking[:1], recipe
