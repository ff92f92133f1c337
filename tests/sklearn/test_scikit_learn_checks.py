"""scikit-learn's own checks of estimators: all that fail are listed, each with its reason.

The list is that of docs/model.md. A check that fails and is not listed is an error, and so is one
that is listed and passes.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

import dpsubset as dps
from dpsubset import Bounds, PrivateSubsetClassifier, PrivateSubsetRegressor, PrivateSubsetSelector

PAGE = Path(__file__).parents[2] / "docs" / "model.md"

EMPTY = "check_estimators_empty_data_messages"
EXPECTED: dict[type, set[str]] = {
    PrivateSubsetSelector: {EMPTY, "check_transformer_data_not_an_array"},
    PrivateSubsetRegressor: {
        EMPTY,
        "check_regressors_train",
        "check_regressor_data_not_an_array",
        "check_supervised_y_no_nan",
    },
    PrivateSubsetClassifier: {
        EMPTY,
        "check_classifiers_train",
        "check_classifier_data_not_an_array",
        "check_supervised_y_no_nan",
        "check_classifiers_classes",
        "check_classifiers_regression_target",
        "check_classifier_not_supporting_multiclass",
    },
}
#: Without a seed these may fail, or pass by chance: they compare two fits, or expect no noise.
BY_CHANCE = {
    "check_fit_idempotent",
    "check_supervised_y_2d",
    "check_regressors_int",
    "check_classifiers_one_label",
}

NUMBERS, LABELS = Bounds(x=5, y=5), Bounds(x=5, labels=(0, 1))
SEEDED = [
    PrivateSubsetSelector(k=1, epsilon=1.0, bounds=NUMBERS, seed=0),
    PrivateSubsetSelector(
        k=1, epsilon=2, bounds=NUMBERS, seed=1, mechanism="exponential",
        neighbours="add-remove", constraint="l1",
    ),
    PrivateSubsetSelector(k=1, epsilon=1.0, bounds=LABELS, seed=0),
    PrivateSubsetSelector(
        k=1, epsilon=1.0, bounds=LABELS, seed=0, loss="huber", threshold=0.5,
    ),
    PrivateSubsetRegressor(k=1, epsilon=1.0, bounds=NUMBERS, seed=0),
    PrivateSubsetRegressor(
        k=1, epsilon=2, bounds=NUMBERS, seed=1, neighbours="add-remove",
        rule=dps.FitRule(budget_fraction=0.5),
    ),
    PrivateSubsetClassifier(k=1, epsilon=1.0, bounds=LABELS, seed=2),
    PrivateSubsetClassifier(
        k=1, epsilon=50, bounds=LABELS, seed=0, loss="logistic",
        rule=dps.FitRule(mechanism="objective-perturbation"),
    ),
]  # fmt: skip


def failing(estimator: Any) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 40
    return {result["check_name"] for result in results if result["status"] == "failed"}


@pytest.mark.parametrize("estimator", SEEDED, ids=lambda e: f"{type(e).__name__} {e.epsilon}")
def test_with_a_seed_exactly_the_listed_checks_fail(estimator: Any) -> None:
    assert failing(estimator) == EXPECTED[type(estimator)]


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateSubsetSelector(k=1, epsilon=1.0, bounds=NUMBERS),
        PrivateSubsetRegressor(k=1, epsilon=1.0, bounds=NUMBERS),
        PrivateSubsetClassifier(k=1, epsilon=1.0, bounds=LABELS),
    ],
    ids=lambda e: type(e).__name__,
)
def test_without_a_seed_others_fail_by_chance_alone(estimator: Any) -> None:
    assert failing(estimator) <= EXPECTED[type(estimator)] | BY_CHANCE


def test_the_list_is_documented() -> None:
    listed = set(re.findall(r"`(check_\w+)`", PAGE.read_text()))
    assert listed == set.union(*EXPECTED.values()) | BY_CHANCE
