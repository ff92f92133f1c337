"""objective-perturbation by draws: its law on a tiny table, and an audit of the whole release.

The law is a G-test, which fails by chance once in 10^9 runs (gtest.py). The audit bounds the
probabilities of an event from both sides at 1e-6, as in test_fit_audit.py.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.data.quantize import STEPS
from dpsubset.models.objective_perturbation import ObjectivePerturbation
from dpsubset.models.smooth import HINGE, LEAST_SQUARES
from dpsubset.privacy.random import Randomness, SystemSource
from models.test_objective_perturbation import COARSE, OUTCOMES, law
from statistical.test_fit_audit import lower_bound
from support.gtest import LEVEL, g_test, miss

pytestmark = pytest.mark.statistical

DRAWS = 20_000
EPSILON = 1.0


def cells(fit: ObjectivePerturbation) -> np.ndarray:
    """The law of ten outcomes at a time, of two records; without the tails."""
    found = np.bincount((OUTCOMES - OUTCOMES[0]) // 10, np.exp(law(fit, [STEPS] * 2, [STEPS, 0])))
    assert found.sum() > 0.99
    return found / found.sum()


def test_draws_have_the_law_that_was_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = ObjectivePerturbation(
        Fraction(4), "replace-one", LEAST_SQUARES, **{**COARSE, "weight": Fraction(1, 2)}
    )
    right = cells(fit)
    rows, o = np.full((2, 1), STEPS, np.int16), np.array([STEPS, 0], np.int16)
    rng = Randomness(SystemSource())
    drawn = np.array([fit.draw(rows, o, rng)[0] for _ in range(DRAWS)])
    kept = drawn[np.abs(drawn) <= OUTCOMES[-1]]
    seen = Counter((int(v),) for v in (kept - OUTCOMES[0]) // 10)
    names = [(i,) for i in range(len(right))]
    assert g_test(seen, names, right) >= LEVEL
    # The twin: a linear term of a fifth more weight.
    eta: Any = ObjectivePerturbation.eta
    monkeypatch.setattr(
        ObjectivePerturbation, "eta", property(lambda self: Fraction(6, 5) * eta.fget(self))
    )
    wrong = cells(fit)
    assert miss(right, wrong, DRAWS) < LEVEL
    assert g_test(seen, names, wrong) < LEVEL


def worst_of_plane(fit: ObjectivePerturbation, tables: Any, tail: int = 12) -> float:
    """The largest log ratio of outcomes on two neighbours of one record and two columns.

    By all pushes of a mass above e^-tail, and outcomes well within what these can lead to.
    """
    most = int(tail / fit.eta)
    pushes = [(a, b) for a in range(-most, most + 1) for b in range(-most, most + 1)]
    weights = -float(fit.eta) * np.abs(np.array(pushes)).max(axis=1)
    ends = np.array([(a, b) for a in range(-10, 11) for b in range(-10, 11)])
    logs = []
    for row, response in tables:
        x, o = np.array([row], dtype=np.int16), np.array([response], dtype=np.int16)
        found = np.array([fit.rounded(x, o, list(linear_term)) for linear_term in pushes])
        far = np.array([np.abs(found - end).max(axis=1) for end in ends])
        logs.append(np.logaddexp.reduce(weights - float(fit.rounding_eta) * far, axis=1))
    return float(np.abs(logs[0] - logs[1]).max())


def test_two_columns_keep_epsilon_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins that a label turns round in one column, and not in the other."""
    tables = ([STEPS, STEPS], 0), ([-STEPS, STEPS], 0)
    fit = ObjectivePerturbation(Fraction(8), "replace-one", HINGE, Fraction(1, 8), Fraction(1))
    assert 3.5 < worst_of_plane(fit, tables) <= fit.guarantee().epsilon == 8
    # The twin: a tenth of the linear term.
    eta: Any = ObjectivePerturbation.eta
    monkeypatch.setattr(ObjectivePerturbation, "eta", property(lambda self: 10 * eta.fget(self)))
    assert worst_of_plane(fit, tables, tail=60) > 8


def released(y: float, draws: int = 2000) -> np.ndarray:
    """The intercept, over the draws that selected the first column."""
    x = np.array([[1.0, 0.1], [0.9, 0.0], [1.0, -0.1]])
    found = []
    for _ in range(draws):
        release = dps.fit(
            x, y=np.array([0.9, 0.8, y]), bounds=dps.Bounds(x=1, y=1), k=1, epsilon=EPSILON,
            rule=dps.FitRule(budget_fraction=0.8, mechanism="objective-perturbation"),
            response_range="declared",
        )  # fmt: skip
        found.append(float(release.fit.released[-1]) if release.support == (0,) else -np.inf)
    return np.array(found)


def test_draws_do_not_contradict_the_sum() -> None:
    assert lower_bound(released(1.0), released(-1.0)) <= EPSILON


def test_a_push_of_a_thirtieth_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The intercepts of the two tables are six deviations apart then; of a tenth, two."""
    right: Any = ObjectivePerturbation.eta
    monkeypatch.setattr(
        ObjectivePerturbation, "eta", property(lambda self: Fraction(30) * right.fget(self))
    )
    assert lower_bound(released(1.0), released(-1.0)) > EPSILON
