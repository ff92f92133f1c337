"""Outside solvers give the engine's answer or none; their cuts lie below every score."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.solvers import Published

from dpsubset import Bounds, SearchLimitError, best_subset, top_supports
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.base.errors import ArgumentError
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search import solvers
from dpsubset.search.best import best_supports
from dpsubset.search.engine import Engine, Limits
from dpsubset.search.enumerate import enumerate_supports
from dpsubset.search.solvers import SolverError, certify, solve
from dpsubset.search.solvers.cuts import Cuts, planes
from dpsubset.search.solvers.quiet import silent_stderr
from support.layouts import layout_recipes
from support.recipes import DESIGNS, Recipe
from support.solver_cases import CONES, Instance, answers_of_its_own, layouts_for, needs

PACKAGES = {
    "highs": "highspy",
    "scip": "pyscipopt",
    "gurobi": "gurobipy",
    "gurobi-cones": "gurobipy",
}
SOLVERS = tuple(PACKAGES)
OUTER = ("highs", "gurobi")
BOUNDS = Bounds(x=1.0, y=1.0)
RECORD_LOSSES = ("logistic", "hinge", "huber")
LOSSES = ("least-squares", *RECORD_LOSSES)


def table(p: int = 15, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(p)
    x = rng.uniform(-1, 1, (n, p))
    return x, np.clip(x[:, :3].sum(axis=1) / 4 + rng.normal(0, 0.3, n), -1, 1)


def answer(solver: str, recipe: Recipe, count: int) -> list[tuple[int, tuple[int, ...]]]:
    digest = GramData.from_moments(recipe.moments)
    return solve(solver, digest, recipe.problem, recipe.sensitivity.score_step, count, Limits())


def records(
    loss: str, constraint: str, prediction_bound: float, seed: int
) -> tuple[GramData, Problem]:
    """A table with correlated columns, and a problem for a loss that is summed over records."""
    rng = np.random.default_rng(seed)
    n, p = 120, 8
    x = np.clip(rng.uniform(-1, 1, (n, 1)) / 2 + rng.uniform(-1, 1, (n, p)) / 2, -1, 1)
    y = np.clip(x[:, :3].sum(axis=1) / 2 + rng.normal(0, 0.4, n), -1, 1)
    cells = np.rint(np.column_stack([x, y]) * STEPS).astype(np.int16)
    digest = GramData.of_cells(np.ascontiguousarray(cells.T), "made up")
    always = [5] if seed % 2 else []
    threshold = 0.1 if loss == "huber" and seed % 2 else None
    return digest, Problem.create(
        p,
        3,
        constraint=constraint,
        prediction_bound=prediction_bound,
        ridge=2.5,
        loss=loss,
        always_include=always,
        threshold=threshold,
    )


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("solver", OUTER)
def test_outer_approximation_equals_enumeration(solver: str, kind: str, constraint: str) -> None:
    needs(solver)
    for seed, size in enumerate(("tight", "wide", "tight", "wide")):
        recipe = Recipe(kind, constraint, size, 2.5, seed + 1)
        for count in (1, 5, len(recipe.ranking) + 3):
            assert answer(solver, recipe, count) == recipe.ranking[:count], (recipe, count)


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("kind", DESIGNS)
@pytest.mark.parametrize("solver", ["scip", "gurobi-cones"])
def test_cone_programs_equal_enumeration(solver: str, kind: str, constraint: str) -> None:
    needs(solver)
    recipe = Recipe(kind, constraint, "wide", 0.0, 1)
    assert answer(solver, recipe, 3) == recipe.ranking[:3], recipe


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("kind", DESIGNS)
def test_cuts_lie_below_every_score_and_touch(kind: str, constraint: str) -> None:
    for seed in range(4):
        for size in ("tight", "wide"):
            recipe = Recipe(kind, constraint, size, 2.5, seed)
            p, unit = recipe.problem.p, float(recipe.sensitivity.score_step)
            cuts = Cuts(GramData.from_moments(recipe.moments), recipe.problem)
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


def refuses_to_be_read(*_: object) -> None:
    raise AssertionError("a value was read")


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_missing_solver_says_what_to_install_before_a_value_is_read(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[solver], None)
    monkeypatch.setattr(SensitiveTable, "read", refuses_to_be_read)
    x, y = table()
    with pytest.raises(SolverError, match=r"pip install 'dpsubset\[(solvers|gurobi)\]'"):
        best_subset(x, y=y, bounds=BOUNDS, k=3, constraint="ball", ridge=20.0, solver=solver)


@pytest.mark.parametrize("solver", ["gurobi", "gurobi-cones"])
@pytest.mark.parametrize("licence", [None, "EXPIRATION=2020-01-01"])
def test_without_a_licence_nothing_is_read(
    solver: str, licence: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gurobipy", reason="gurobipy is not installed")
    if licence is not None:
        (tmp_path / "gurobi.lic").write_text(licence)
    monkeypatch.setenv("GRB_LICENSE_FILE", str(tmp_path / "gurobi.lic"))
    monkeypatch.setattr(SensitiveTable, "read", refuses_to_be_read)
    x, y = table()
    with pytest.raises(SolverError, match="no valid licence") as caught:
        best_subset(x, y=y, bounds=BOUNDS, k=3, constraint="ball", ridge=20.0, solver=solver)
    assert caught.value.__context__ is None


def test_a_problem_beyond_the_licence_is_an_error_without_the_words_of_gurobi() -> None:
    """Or an answer, with a licence that has no limit."""
    needs("gurobi-cones")
    x, y = table(80, 100)
    stated = {"y": y, "bounds": BOUNDS, "k": 2, "constraint": "ball", "ridge": 20.0}
    try:
        assert best_subset(x, solver="gurobi-cones", **stated) == best_subset(x, **stated)
    except SolverError as error:
        assert "size-limited" in str(error)  # noqa: PT017
        assert error.__context__ is None  # noqa: PT017


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"solver": "cplex"}, "solver must be one of engine, highs, scip, gurobi, gurobi-cones"),
        ({"solver": "scip", "constraint": "l1"}, "the box and the ball"),
        ({"solver": "highs", "constraint": "ball"}, "ridge > 0"),
        ({"solver": "gurobi", "constraint": "ball"}, "ridge > 0"),
        ({"solver": "scip", "loss": "logistic"}, "least squares only"),
        ({"solver": "gurobi-cones", "loss": "huber"}, "least squares only"),
    ],
)
def test_what_a_solver_cannot_do_is_refused(stated: dict[str, str], message: str) -> None:
    x, y = table()
    with pytest.raises(ArgumentError, match=message):
        best_subset(x, y=y, bounds=BOUNDS, k=3, **stated)


@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("loss", RECORD_LOSSES)
def test_cuts_of_records_lie_below_every_score_and_touch(loss: str, constraint: str) -> None:
    for seed, prediction_bound in enumerate((0.5, 3.0)):
        digest, problem = records(loss, constraint, prediction_bound, seed)
        unit = Sensitivity.of(problem).score_step
        scored = enumerate_supports(digest, problem, unit)
        rng, p = np.random.default_rng(seed), problem.p
        every = [np.array(scored.support(i)) for i in range(len(scored))]
        cuts = planes(digest, problem)
        for i in (0, 3, len(every) - 1):
            whole = np.zeros(p)
            whole[every[i]] = 1.0
            for z in (whole, rng.dirichlet(np.ones(p)), rng.random(p)):
                base, gains = cuts.at(z)
                for score, s in zip(scored.scores, every, strict=True):
                    # A score is within one unit of f.
                    assert base - gains[s].sum() <= (score + 1) * float(unit) + 1e-9
            base, gains = cuts.at(whole)
            missing = scored.scores[i] * float(unit) - (base - gains @ whole)
            assert missing <= 1e-6 * digest.n, (i, missing)


@pytest.mark.parametrize("solver", OUTER)
@pytest.mark.parametrize("constraint", ["box", "ball"])
@pytest.mark.parametrize("loss", RECORD_LOSSES)
def test_other_losses_equal_the_engine(loss: str, constraint: str, solver: str) -> None:
    needs(solver)
    for seed, prediction_bound in enumerate((0.5, 3.0)):
        digest, problem = records(loss, constraint, prediction_bound, seed)
        unit = Sensitivity.of(problem).score_step
        ours = best_supports(Engine(digest, problem, unit, math.inf), 5)
        assert solve(solver, digest, problem, unit, 5, Limits()) == ours, (seed, prediction_bound)


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_print_nothing_and_leave_no_file(
    solver: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(solver)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    # On this one SCIP's linear programs ask for a tolerance that they then complain about.
    instance = Instance(41)
    problem = instance.problem
    solve(solver, instance.digest, problem, Sensitivity.of(problem).score_step, 3, Limits())
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_what_is_printed_afterwards_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    with silent_stderr():
        os.write(2, b"lost")
    os.write(2, b"seen")
    assert capfd.readouterr().err == "seen"


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

    digest = GramData.from_moments(recipe.moments)
    search = certify.Certified(digest, recipe.problem, recipe.sensitivity.score_step, 1, Limits())
    with pytest.raises(SolverError, match="no-good"):
        search.find(Stubborn())


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_worst_first_incumbent_is_put_right_by_the_solver(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without swaps the answer has to come from the solver: its bounds are not vacuously high."""
    needs(solver)
    monkeypatch.setattr(certify.Certified, "_local_search", lambda self: None)
    recipes = [Recipe("AR 0.9", "ball", "wide", 2.5, seed) for seed in range(1, 4)]
    for recipe in (*recipes, *(Recipe(kind, "box", "wide", 2.5, 1) for kind in DESIGNS)):
        digest, problem = GramData.from_moments(recipe.moments), recipe.problem
        search = certify.Certified(digest, problem, recipe.sensitivity.score_step, 1, Limits())
        search._incumbent = recipe.ranking[-1][1]
        found = search.find(solvers.SOLVERS[solver](digest, problem, Limits()))
        assert found == recipe.ranking[:1], recipe


# -- intercept and groups -----------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_intercept_and_groups_equal_enumeration(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a part of the 300 problems that the statistical suite has."""
    needs(solver)
    recipes = layouts_for(solver)
    assert len(recipes) >= 300
    answers_of_its_own(solver, recipes[:: 6 if solver in CONES else 2], monkeypatch)


@pytest.mark.parametrize("loss", LOSSES)
def test_cuts_by_columns_lie_below_every_score_and_touch(loss: str) -> None:
    for recipe in layout_recipes((loss,), range(200, 206)):
        problem, unit = recipe.problem, float(recipe.sensitivity.score_step)
        if problem.constraint == "l1" or (problem.constraint == "ball" and problem.ridge == 0):
            continue
        cuts, rng, p = planes(recipe.digest, problem), np.random.default_rng(recipe.seed), problem.p
        score, support = recipe.ranking[recipe.seed % len(recipe.ranking)]
        whole = np.zeros(p)
        whole[list(support)] = 1.0
        for z in (whole, rng.dirichlet(np.ones(p)), rng.random(p)):
            base, gains = cuts.at(z)
            assert gains.shape == (p,)
            for other, s in recipe.ranking:
                assert base - gains[list(s)].sum() <= (other + 1) * unit + 1e-9, recipe
        base, gains = cuts.at(whole)
        missing = score * unit - (base - gains @ whole)
        assert missing <= 2 * unit + 1e-5 * recipe.digest.n, recipe


@pytest.mark.parametrize("kind", DESIGNS)
def test_the_published_loop_of_the_bench_finds_an_optimum(kind: str) -> None:
    needs("highs")
    recipe = Recipe(kind, "ball", "wide", 2.5, 3)  # nothing is always in
    loop = Published(GramData.from_moments(recipe.moments), recipe.problem, 60.0)
    (found,) = loop.solve()
    assert found in recipe.ranking
    assert found[0] <= recipe.ranking[0][0] * (1 + 2e-4)
    assert loop.rounds > 1
