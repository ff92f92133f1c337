"""The engine against outside solvers: the 20 best of 50 problems with 20 to 60 variables.

And enumeration against them, on 300 small problems with an intercept or groups.
"""

from __future__ import annotations

import pytest

from dpsubset.search.solvers import SOLVERS
from support.solver_cases import Instance, agree, answers_of_its_own, layouts_for, needs


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


# -- intercept and groups -----------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("solver", SOLVERS)
def test_intercept_and_groups_equal_enumeration_on_300_problems(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(solver)
    recipes = layouts_for(solver)
    assert len(recipes) >= 300
    answers_of_its_own(solver, recipes, monkeypatch)
