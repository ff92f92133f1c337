"""The audit by draws keeps its level, and sees what costs more than it says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from scipy.stats import binom

from dpsubset.audit.cases import RECIPES, Recipe
from dpsubset.audit.empirical import audit_empirical
from dpsubset.audit.exact import worst_case_pairs
from dpsubset.mechanisms import MECHANISMS, Cost, mechanism
from dpsubset.objective.problem import Problem

pytestmark = pytest.mark.statistical

LEVEL = 1e-9


def test_a_promise_that_holds_is_contradicted_no_more_often_than_stated() -> None:
    # With two columns the log ratio is epsilon, and the event with it is likely: the worst case.
    # The level is made large, and the audits small, for contradictions to be seen.
    problem = Problem.create(2, 1, prediction_bound=0.5, neighbours="add-remove", intercept=False)
    pairs = list(worst_case_pairs(problem, 100))[:1]
    chosen = mechanism("permute-and-flip")
    level, audits = 0.2, 300
    found = [
        audit_empirical(chosen, problem, Fraction(1), pairs, runs=400, level=level).lower
        for _ in range(audits)
    ]
    assert sum(lower > 1 for lower in found) <= binom.isf(LEVEL, audits, level)
    # And the bound is no idle one: much less than epsilon would be contradicted most of the time.
    assert sum(lower > 0.1 for lower in found) > 0.9 * audits


#: Several times what is promised; rounds of noise hide more of it than a single one.
BUDGET = 4
LARGER_BUDGETS = {"mistakes": 10, "hard-thresholding": 30, "frank-wolfe": 12}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_budget_larger_than_promised_is_seen(name: str) -> None:
    # The first recipe, but for stability: two blocks can only break its delta.
    recipe = RECIPES.get(name, (Recipe(),))[name == "stability"]
    p, k, prediction_bound = recipe.shapes[0]
    problem = Problem.create(
        p, k, prediction_bound=prediction_bound, neighbours="replace-one", intercept=False
    )
    chosen = mechanism(name, recipe.options)
    delta = recipe.delta or Fraction(1, 1000) * (chosen.takes_delta == "must")
    promised = Cost(Fraction(1), delta)
    budget = LARGER_BUDGETS.get(name, BUDGET)
    audit = audit_empirical(
        chosen, problem, Fraction(budget), recipe.pairs(problem),
        delta=delta, promised=promised, runs=6000,
    )  # fmt: skip
    print(f"\n{name} at {budget}: epsilon is at least {audit.lower:.3f}, {audit.runs} draws")
    assert audit.contradicted
