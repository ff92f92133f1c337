"""An argument that a function does not have is named first, with the name that was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpsubset as dps

X = np.zeros((5, 2))
BOUNDS = dps.Bounds(x=1, y=1)

FUNCTIONS: list[Callable[..., Any]] = [
    dps.select, dps.fit, dps.price, dps.price_fit, dps.simulate, dps.tune, dps.price_tune,
    dps.fit_released, dps.suggest_bounds, dps.private_mean, dps.sparse_mean,
    dps.sparse_regression,
]  # fmt: skip
SELECTIONS = [dps.select, dps.fit, dps.price, dps.price_fit, dps.simulate]
ESTIMATORS: list[Callable[..., Any]] = [
    dps.PrivateSubsetSelector, dps.PrivateSubsetRegressor, dps.PrivateSubsetClassifier,
]  # fmt: skip


def refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(TypeError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_an_unknown_argument_is_named_before_a_missing_one(function: Callable[..., Any]) -> None:
    said = refusal(function, X, eps=1)
    assert said == f"{function.__name__}(): unknown argument eps; did you mean epsilon?"


def test_a_power_analysis_does_the_same() -> None:
    sizes = {"n": 100, "p": 10, "k": 1}
    said = refusal(dps.power, **sizes, eps=1)
    assert said == "power(): unknown argument eps; did you mean epsilon?"
    said = refusal(dps.power, **sizes, epsilon=1, random_state=0)
    assert said == "power(): unknown argument random_state; did you mean seed?"  # and no more
    assert refusal(dps.power, **sizes, target="y") == "power(): unknown argument target"
    with pytest.warns(FutureWarning, match="prediction_bound"):
        dps.power(**sizes, epsilon=1, tables=2, seed=0, reach=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_do_the_same(estimator: Callable[..., Any]) -> None:
    name = estimator.__name__  # type: ignore[attr-defined]
    assert refusal(estimator, eps=1) == f"{name}(): unknown argument eps; did you mean epsilon?"
    said = refusal(estimator, target="cost")
    assert said == f"{name}(): unknown argument target: the response is passed to fit(X, y)"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("eps", "epsilon"), ("epsilom", "epsilon"), ("budget", "epsilon"),
        ("n_features_to_select", "k"), ("n_features", "k"), ("max_features", "k"),
        ("neighbors", "neighbours"), ("fit_intercept", "intercept"), ("l2", "ridge"),
        ("method", "mechanism"), ("bound", "bounds"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("call", [*SELECTIONS, dps.PrivateSubsetSelector])
def test_common_names_lead_to_ours(call: Callable[..., Any], given: str, meant: str) -> None:
    assert refusal(call, **{given: 1}).endswith(f"unknown argument {given}; did you mean {meant}?")


@pytest.mark.parametrize("call", [*SELECTIONS, *ESTIMATORS])
@pytest.mark.parametrize("given", ["random_state", "rng"])
def test_a_seed_is_offered_with_what_it_costs(call: Callable[..., Any], given: str) -> None:
    said = refusal(call, **{given: 0})
    assert f"unknown argument {given}; did you mean seed?" in said
    assert "not private" in said


@pytest.mark.parametrize("given", ["target", "label", "response"])
def test_a_response_is_y_or_declared(given: str) -> None:
    said = refusal(dps.select, X, k=1, epsilon=1, bounds=BOUNDS, **{given: "cost"})
    assert f"unknown argument {given}; did you mean y?" in said
    assert "the schema names" in said


def test_the_division_of_epsilon_is_in_a_rule() -> None:
    said = refusal(dps.fit, X, k=1, epsilon=1, bounds=BOUNDS, budget_fraction=0.5)
    assert "did you mean rule? (as in rule=dpsubset.FitRule(budget_fraction=0.5))" in said
    assert refusal(dps.select, X, k=1, epsilon=1, share=1) == "select(): unknown argument share"


def test_an_argument_like_no_other_has_no_suggestion() -> None:
    said = refusal(dps.select, X, k=1, epsilon=1, zzz=2)
    assert said == "select(): unknown argument zzz"
    assert refusal(dps.select, X, k=1) == "select(): missing a required argument: 'epsilon'"


def test_a_former_name_still_works() -> None:
    with pytest.warns(FutureWarning, match="prediction_bound"):
        dps.price(X, y=X[:, 0], bounds=BOUNDS, k=1, epsilon=1, reach=1.0)  # type: ignore[call-arg]
