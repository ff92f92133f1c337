"""A bound from known scores keeps to them when its last pick becomes a member.

Searches list regions of so few supports and never ask for such a bound; whoever does gets a valid
one.
"""

from __future__ import annotations

import numpy as np
import pytest

from support.recipes import CONSTRAINTS, DESIGNS, recipes
from support.regions import Walk


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_halves_of_one_support_have_its_score_as_their_bound(constraint: str) -> None:
    seen = 0
    for recipe in recipes(DESIGNS, (constraint,), range(2)):
        if recipe.problem.supports < 2:
            continue
        steps = Walk(recipe, np.random.default_rng(0), 1.0, lazy=False)
        for bound in steps.bounds(20):
            if bound.exact_gains is None:
                continue
            for half in bound.region.split(bound.branch_on):
                child = steps.bound_oracle.child(bound, half)
                f = steps.scorer.scores(half.supports()) * steps.scorer.score_step_float
                assert child.lower_bound <= f.min()
                if half.count() == 1:
                    slack = float(f[0]) - child.lower_bound
                    assert slack <= 1e-9 * (1 + abs(float(f[0])) + steps.bound_oracle.yy)
                    seen += 1
    assert seen > 50
