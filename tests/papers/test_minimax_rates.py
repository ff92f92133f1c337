"""Rates of convergence: by their formulas, how they scale, where they end."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dpsubset as dps

ASKED: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-5}
L = math.log(1e5)


def test_by_the_formulas() -> None:
    mean = dps.cost_of_privacy(1000, 50, **ASKED)
    assert mean.sampling == pytest.approx(math.sqrt(0.05))
    assert mean.at_least == pytest.approx(50 * math.sqrt(L) / 500)
    assert mean.at_most == pytest.approx(mean.at_least * math.sqrt(math.log(1000)))
    assert dps.cost_of_privacy(1000, 50, bounded=True, **ASKED).at_most == mean.at_least
    sparse = dps.cost_of_privacy(1000, 400, 20, **ASKED)
    assert sparse.sampling == pytest.approx(math.sqrt(20 * math.log(400) / 1000))
    assert sparse.at_least == pytest.approx(20 * math.log(20) * math.sqrt(L) / 500)
    lasso = dps.cost_of_privacy(10**6, 400, 20, problem="sparse-regression", **ASKED)
    assert lasso.at_most == pytest.approx(
        20 * math.log(400) * math.sqrt(L) * math.log(10**6) ** 1.5 / (10**6 * 0.5)
    )


@pytest.mark.parametrize("problem", ["mean", "sparse-mean", "regression", "sparse-regression"])
def test_bounds_are_in_order_and_shrink_with_n(problem: Any) -> None:
    s = 5 if problem.startswith("sparse") else None
    found = [dps.cost_of_privacy(n, 30, s, problem=problem, **ASKED) for n in (50, 500, 10**6)]
    for each in found:
        assert 0 < each.at_least <= each.at_most
        assert each.lower <= each.upper
    uppers = [each.upper for each in found]
    assert uppers == sorted(uppers, reverse=True)
    # Privacy costs 1 / n and sampling 1 / sqrt(n): in the end it is for free.
    assert not found[-1].dominates
    twice = dps.cost_of_privacy(10**6, 30, s, problem=problem, sigma=2, **ASKED)
    assert twice.upper == pytest.approx(2 * found[-1].upper)


def test_a_regression_errs_by_no_more_than_a_constant() -> None:
    found = dps.cost_of_privacy(10, 1000, problem="regression", **ASKED)
    assert found.at_least == 1
    assert found.dominates is False


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"n": 1}, "n must"),
        ({"d": 0}, "d at least"),
        ({"s": 10}, "s must lie"),
        ({"s": 0}, "s must lie"),
        ({"delta": 1}, "delta"),
        ({"delta": 0}, "delta"),
        ({"epsilon": -1}, "epsilon"),
        ({"problem": "median"}, "problem"),
        ({"problem": "sparse-mean"}, "needs s"),
        ({"problem": "mean", "s": 3}, "no s"),
    ],
)
def test_wrong_arguments_are_refused(asked: dict[str, Any], match: str) -> None:
    with pytest.raises(dps.ArgumentError, match=match):
        dps.cost_of_privacy(**{"n": 100, "d": 10, **ASKED, **asked})
