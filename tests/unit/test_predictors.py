"""PrivateSubsetRegressor and PrivateSubsetClassifier: scikit-learn's checks, frames, labels."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpsubset as dps
from dpsubset import Bounds, PrivateSubsetClassifier, PrivateSubsetRegressor

_COMMON = {
    "check_estimators_empty_data_messages": "an error would tell a table without rows from one "
    "with a row, which no cost under add-remove could cover",
    "check_regressors_train": "a list does not declare how many columns it has",
    "check_classifiers_train": "a list does not declare how many columns it has",
}
_LABELS = {
    **_COMMON,
    "check_classifiers_classes": "labels are declared, and do not come from the data",
    "check_classifier_not_supporting_multiclass": "a third label is a bad cell, no error",
    "check_classifiers_regression_target": "a cell with neither label is a bad cell, no error",
    "check_supervised_y_no_nan": "a cell with neither label is a bad cell, no error",
}
_NUMBERS = {
    **_COMMON,
    "check_supervised_y_no_nan": "a missing response is a bad cell, no error",
}


@parametrize_with_checks(
    [
        PrivateSubsetRegressor(k=1, epsilon=1.0, bounds=Bounds(x=5, y=5), seed=0),
        PrivateSubsetRegressor(
            k=1, epsilon=2, bounds=Bounds(x=5, y=5), seed=1, neighbours="add-remove",
            rule=dps.FitRule(share=0.5),
        ),
        PrivateSubsetClassifier(k=1, epsilon=1.0, bounds=Bounds(x=5, labels=(0, 1)), seed=1),
        PrivateSubsetClassifier(
            k=1, epsilon=50, bounds=Bounds(x=5, labels=(0, 1)), seed=0, loss="logistic",
            rule=dps.FitRule(mechanism="objective-perturbation"),
        ),
    ],
    expected_failed_checks=lambda estimator: (
        _LABELS if isinstance(estimator, PrivateSubsetClassifier) else _NUMBERS
    ),
)  # fmt: skip
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def table(n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "age": rng.uniform(20, 90, n), "ward": rng.choice(["a", "b"], n),
        "x": rng.uniform(-1, 1, n), "id": "person",
    })  # fmt: skip
    y = 10 + 0.3 * frame["age"] + 8 * (frame["ward"] == "b") + rng.normal(0, 2, n)
    return frame, y.to_numpy()


FEATURES = {"x": (-1, 1), "ward": {"levels": ["a", "b"]}, "age": (0, 110)}
NUMBERS = dps.Schema.from_bounds(FEATURES, ("cost", 0, 100))
LABELS = dps.Schema.from_bounds(FEATURES, "cost", labels=("low", "high"))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_raw_frames_with_categories(kind: Any) -> None:
    frame, y = table()
    given = kind(frame) if kind is pd.DataFrame else pl.from_pandas(frame)
    model = PrivateSubsetRegressor(k=2, epsilon=20, schema=NUMBERS).fit(given, y)
    assert model.support_.tolist() == [True, True, False, False]
    assert model.coef_names_.tolist() == ["ward = b", "age"]
    np.testing.assert_allclose(model.coef_, [8, 0.3], rtol=0.15)
    assert model.intercept_ == model.release_.model.intercept
    assert model.score(given, y) > 0.8
    np.testing.assert_array_equal(model.predict(given), model.release_.model.predict(frame))
    assert model.release_.guarantee.epsilon == 20


def test_labels() -> None:
    frame, y = table()
    labels = np.where(y > 30, "high", "low")
    model = PrivateSubsetClassifier(k=2, epsilon=20, schema=LABELS).fit(frame, labels)
    assert model.classes_.tolist() == ["low", "high"]
    chances = model.predict_proba(frame)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert set(model.predict(frame)) == {"low", "high"}
    assert model.score(frame, labels) > 0.8
    picked = model.predict(frame) == "high"
    np.testing.assert_array_equal(picked, model.decision_function(frame) > 0)
    np.testing.assert_array_equal(picked, chances[:, 1] > 0.5)


def test_a_logistic_model_of_labels() -> None:
    frame, y = table()
    labels = np.where(y > 30, "high", "low")
    rule = dps.FitRule(mechanism="objective-perturbation")
    model = PrivateSubsetClassifier(k=2, epsilon=20, schema=LABELS, loss="logistic", rule=rule)
    model.fit(frame, labels)
    chances = model.predict_proba(frame)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert ((chances > 0) & (chances < 1)).all()  # a linear model's are clipped
    np.testing.assert_allclose(
        np.log(chances[:, 1] / chances[:, 0]), model.decision_function(frame), rtol=1e-6
    )
    np.testing.assert_array_equal(model.predict(frame) == "high", chances[:, 1] > 0.5)
    assert model.score(frame, labels) > 0.8


def test_each_is_for_its_kind_of_response() -> None:
    frame, y = table(20)
    with pytest.raises(dps.ArgumentError, match="PrivateSubsetClassifier"):
        PrivateSubsetRegressor(k=1, epsilon=1, schema=LABELS).fit(frame, y)
    with pytest.raises(dps.ArgumentError, match="labels"):
        PrivateSubsetClassifier(k=1, epsilon=1, schema=NUMBERS).fit(frame, y)
    with pytest.raises(dps.ArgumentError, match="epsilon"):
        PrivateSubsetRegressor(k=1, schema=NUMBERS).fit(frame, y)
    with pytest.raises(NotFittedError):
        PrivateSubsetRegressor(k=1, epsilon=1, schema=NUMBERS).predict(frame)


def test_arguments_are_those_of_fit() -> None:
    shown = {
        name: p.default
        for name, p in inspect.signature(dps.fit).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }
    own = inspect.signature(PrivateSubsetRegressor).parameters
    assert set(own) == set(shown) - {"y", "progress", "intercept"} | {"schema"}
    for name in set(own) - {"schema", "k", "epsilon"}:
        assert own[name].default == shown[name]


def test_copies_and_pickles() -> None:
    frame, y = table(200)
    model = PrivateSubsetRegressor(k=2, epsilon=5, schema=NUMBERS)
    assert clone(model).get_params()["schema"] == NUMBERS
    fitted = pickle.loads(pickle.dumps(model.fit(frame, y)))
    np.testing.assert_array_equal(fitted.predict(frame), model.predict(frame))
