"""Problems for outside solvers, and comparisons of their answers with the engine's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from dpsubset.base.errors import SearchLimitError
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.best import best_supports
from dpsubset.search.engine import Engine, Limits
from dpsubset.search.solvers import SOLVERS, SolverError, certify, solve
from support.layouts import LayoutRecipe, layout_recipes

COUNT = 20
LOSSES = ("least-squares", "logistic", "hinge", "huber")
#: Those that know the cone program.
CONES = ("scip", "gurobi-cones")


@dataclass(frozen=True)
class Instance:
    """All there is to a problem: it prints and reproduces itself."""

    seed: int
    loss: str = "least-squares"

    @property
    def problem(self) -> Problem:
        p = 20 + 40 * self.seed // 49
        return Problem.create(p, 2 + self.seed % 2, constraint="ball", radius=1.1,
                             ridge=(5.0, 50.0, 500.0)[self.seed % 3], loss=self.loss)  # fmt: skip

    @property
    def digest(self) -> GramData:
        p, rng = self.problem.p, np.random.default_rng(self.seed)
        n, rho = 300 + 20 * p, (0.1, 0.5)[self.seed // 2 % 2]
        x = rng.normal(size=(n, p))
        for j in range(1, p):
            x[:, j] = rho * x[:, j - 1] + math.sqrt(1 - rho**2) * x[:, j]
        y = x[:, ::2][:, : self.problem.k].sum(axis=1) + rng.normal(size=n)
        cells = np.rint(np.clip(np.column_stack([x, y]) / 2, -1, 1) * STEPS).astype(np.int16)
        digest = GramData.of_cells(np.ascontiguousarray(cells.T), "made up")
        digest.fetch(range(p))
        return digest


def agree(solver: str, instance: Instance) -> None:
    digest, problem = instance.digest, instance.problem
    unit = Sensitivity.of(problem).score_step
    ours = best_supports(Engine(digest, problem, unit, math.inf), COUNT)
    theirs = solve(solver, digest, problem, unit, COUNT, Limits())
    assert theirs == ours, f"{solver} disagrees on {instance}: {theirs} instead of {ours}"


def needs(solver: str) -> None:
    """Skip where a solver is not installed, or its licence has run out."""
    try:
        SOLVERS[solver].check()
    except SolverError as error:
        pytest.skip(str(error))


def layouts_for(solver: str) -> list[LayoutRecipe]:
    """300 problems that the solver takes, with an intercept or groups of columns or both."""
    losses = LOSSES[:1] if solver in CONES else LOSSES
    found = []
    for recipe in layout_recipes(losses, range(200, 350 if len(losses) == 1 else 250)):
        problem = recipe.problem
        ridge = problem.constraint == "box" or problem.ridge > 0 or solver in CONES
        if problem.constraint != "l1" and ridge and problem.columns != problem.p:
            found.append(recipe)
    return found[:: max(1, len(found) // 300)]


def answers_of_its_own(
    solver: str, recipes: Sequence[LayoutRecipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the worst first guess and without swaps, so that the answer is the solver's own.

    There may be none in time: linear programs of SCIP have been seen to take minutes.
    """
    monkeypatch.setattr(certify.Certified, "_local_search", lambda self: None)
    late = 0
    for recipe in recipes:
        digest, problem, ranking = recipe.digest, recipe.problem, recipe.ranking
        count, limits = 1 + recipe.seed % 3, Limits(seconds=15.0)
        search = certify.Certified(digest, problem, recipe.sensitivity.score_step, count, limits)
        search._score_new([support for _, support in ranking[-count:]])
        search._incumbent = ranking[-1][1]
        try:
            found = search.find(SOLVERS[solver](digest, problem, limits))
        except SearchLimitError:
            late += 1
            continue
        assert found == ranking[:count], recipe
    assert late <= len(recipes) // 50
