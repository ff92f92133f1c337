"""The engine against outside solvers: the 20 best of 50 problems with 20 to 60 variables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpsubset.privacy.sensitivity import Sensitivity
from dpsubset.public.problem import Problem
from dpsubset.search.best import best_supports
from dpsubset.search.engine import Engine, Limits
from dpsubset.solvers import SOLVERS, SolverError, solve
from dpsubset.table.digest import Digest
from dpsubset.table.door import STEPS

COUNT = 20


@dataclass(frozen=True)
class Instance:
    """All there is to a problem: it prints and reproduces itself."""

    seed: int
    loss: str = "least-squares"

    @property
    def problem(self) -> Problem:
        p = 20 + 40 * self.seed // 49
        return Problem.state(p, 2 + self.seed % 2, constraint="ball", radius=1.1,
                             ridge=(5.0, 50.0, 500.0)[self.seed % 3], loss=self.loss)  # fmt: skip

    @property
    def digest(self) -> Digest:
        p, rng = self.problem.p, np.random.default_rng(self.seed)
        n, rho = 300 + 20 * p, (0.1, 0.5)[self.seed // 2 % 2]
        x = rng.normal(size=(n, p))
        for j in range(1, p):
            x[:, j] = rho * x[:, j - 1] + math.sqrt(1 - rho**2) * x[:, j]
        y = x[:, ::2][:, : self.problem.k].sum(axis=1) + rng.normal(size=n)
        cells = np.rint(np.clip(np.column_stack([x, y]) / 2, -1, 1) * STEPS).astype(np.int16)
        digest = Digest.of_cells(np.ascontiguousarray(cells.T), "made up")
        digest.fetch(range(p))
        return digest


def agree(solver: str, instance: Instance) -> None:
    digest, problem = instance.digest, instance.problem
    unit = Sensitivity.of(problem).unit
    ours = best_supports(Engine(digest, problem, unit, math.inf), COUNT)
    theirs = solve(solver, digest, problem, unit, COUNT, Limits())
    assert theirs == ours, f"{solver} disagrees on {instance}: {theirs} instead of {ours}"


def needs(solver: str) -> None:
    """Skip where a solver is not installed, or its licence has run out."""
    try:
        SOLVERS[solver]().check()
    except SolverError as error:
        pytest.skip(str(error))


@pytest.mark.statistical
@pytest.mark.parametrize("solver", SOLVERS)
def test_agreement(solver: str) -> None:
    needs(solver)
    # The cones are SCIP's, too: a fifth of the problems will do.
    for seed in range(0, 50, 5 if solver == "gurobi-cones" else 1):
        agree(solver, Instance(seed))


@pytest.mark.statistical
@pytest.mark.parametrize("solver", ["highs", "gurobi"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_agreement_on_other_losses(loss: str, solver: str) -> None:
    needs(solver)
    for seed in range(0, 50, 7):
        agree(solver, Instance(seed, loss))
