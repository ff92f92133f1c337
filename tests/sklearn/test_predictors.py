"""PrivateSubsetRegressor and PrivateSubsetClassifier: frames, labels and their types."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

import dpsubset as dps
from dpsubset import Bounds, PrivateSubsetClassifier, PrivateSubsetRegressor
from support.ledgers import made


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
    assert model.classes_.tolist() == ["high", "low"]
    assert model.release_.schema.response.labels == ("low", "high")
    chances = model.predict_proba(frame)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert set(model.predict(frame)) == {"low", "high"}
    assert model.score(frame, labels) > 0.8
    picked = model.predict(frame) == "low"
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
    np.testing.assert_array_equal(model.predict(frame) == "low", chances[:, 1] > 0.5)
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


def mechanism_of(model: Any) -> str:
    frame, y = table(200)
    declared = model.schema.response.labels
    y = y if declared is None else np.where(y > 30, *reversed(declared))
    release = model.fit(frame, y).release_
    assert release.guarantee.epsilon == 5
    return str(release.fit.mechanism)


def test_the_default_fit_is_the_one_that_predicts_best() -> None:
    asked: dict[str, Any] = {"k": 2, "epsilon": 5, "schema": NUMBERS}
    half = dps.FitRule(budget_fraction=0.5)
    named = dps.FitRule(mechanism="noisy-moments")
    perturbed, sums = "objective-perturbation", "noisy-moments"
    model = PrivateSubsetRegressor(**asked)
    assert mechanism_of(model) == perturbed
    assert model.release_.model.r2 is None
    assert mechanism_of(PrivateSubsetRegressor(**asked, rule=half)) == perturbed  # too few rows
    assert mechanism_of(PrivateSubsetRegressor(**asked, loss="huber")) == perturbed
    model = PrivateSubsetRegressor(**asked, rule=named)
    assert mechanism_of(model) == sums
    assert model.release_.model.r2 is not None
    asked["schema"] = LABELS
    assert mechanism_of(PrivateSubsetClassifier(**asked)) == perturbed
    assert mechanism_of(PrivateSubsetClassifier(**asked, loss="logistic")) == perturbed
    assert mechanism_of(PrivateSubsetClassifier(**asked, loss="hinge")) == sums


def test_with_a_delta_the_default_fit_is_that_of_fit() -> None:
    frame, y = table(200)
    model = PrivateSubsetRegressor(k=2, epsilon=5, delta=1e-6, schema=NUMBERS).fit(frame, y)
    assert model.release_.fit.mechanism == "noisy-moments"


def test_a_cost_in_advance_is_that_of_the_default_fit(tmp_path: Path) -> None:
    """Under replace-one, the two fits cost differently where add-remove is declared."""
    frame, y = table(200)
    book = made("sqlite", tmp_path, epsilon=20, neighbours="replace-one")
    model = PrivateSubsetRegressor(
        k=2, epsilon=2, schema=NUMBERS, neighbours="add-remove", ledger=book
    )
    expected = model.fit(frame, y).release_.guarantee.costs["replace-one"].epsilon
    assert dps.ledger_cost(model, frame, y).cost.pure == expected < 4


def test_copies_and_pickles() -> None:
    frame, y = table(200)
    model = PrivateSubsetRegressor(k=2, epsilon=5, schema=NUMBERS)
    assert clone(model).get_params()["schema"] == NUMBERS
    fitted = pickle.loads(pickle.dumps(model.fit(frame, y)))
    np.testing.assert_array_equal(fitted.predict(frame), model.predict(frame))


BOTH = (
    ("good", "bad"), ("bad", "good"), (0, 1), (1, 0), (-1, 1), (2.0, 1.0), (False, True),
    (True, False), ("1", "0"), (np.int64(1), np.int64(0)), (np.True_, np.False_), ("true", "false"),
)  # fmt: skip


@pytest.mark.parametrize("labels", BOTH, ids=str)
@pytest.mark.parametrize("how", ["array", "series", "polars", "list", "objects"])
@pytest.mark.parametrize("by_schema", [False, True])
def test_classes_are_sorted_and_of_the_type_of_y(labels: Any, how: str, by_schema: bool) -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, (300, 2))
    y = np.array(labels)[(x[:, 0] > 0).astype(int)]
    bounds = Bounds(x=[(-1, 1), (-1, 1)], labels=labels)
    declared: dict[str, Any] = {"bounds": bounds}
    if by_schema:
        declared = {"schema": bounds.schema(["x0", "x1"])}
    given: Any = {
        "array": lambda: y, "series": lambda: pd.Series(y), "polars": lambda: pl.Series(y),
        "list": y.tolist, "objects": lambda: y.astype(object),
    }[how]()  # fmt: skip
    model = PrivateSubsetClassifier(1, 50, **declared).fit(x, given)
    untyped = by_schema and how in ("list", "objects")
    if untyped and labels == ("true", "false"):
        # A schema has one form for True and "true", and these cells have no type: booleans.
        assert model.classes_.tolist() == [False, True]
        return
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert untyped or model.classes_.dtype.kind == y.dtype.kind
    assert model.score(x, y) > 0.9
    chances, second = model.predict_proba(x), y == model.classes_[1]
    assert roc_auc_score(second, chances[:, 1]) > 0.9
    assert roc_auc_score(second, model.decision_function(x)) > 0.9
    np.testing.assert_array_equal(model.predict(x), model.classes_[chances.argmax(axis=1)])
    linear = x[:, model.support_] @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(x), linear, atol=1e-3)
    # The model itself has the order that was declared.
    toward = model.release_.model.probabilities(x)
    assert roc_auc_score(x[:, 0] > 0, toward) > 0.9


def test_labels_that_cannot_be_sorted_keep_their_order() -> None:
    x = np.random.default_rng(8).uniform(-1, 1, (300, 2))
    y = np.array(["no", 1], dtype=object)[(x[:, 0] > 0).astype(int)]
    model = PrivateSubsetClassifier(1, 50, bounds=Bounds(x=1, labels=("no", 1))).fit(x, y)
    assert model.classes_.tolist() == ["no", 1]
    assert (model.predict(x) == y).mean() > 0.9


def test_a_cross_validated_area_follows_the_sorted_labels() -> None:
    x = np.random.default_rng(8).uniform(-1, 1, (400, 2))
    y = np.array(["good", "bad"])[(x[:, 0] > 0).astype(int)]
    bounds = Bounds(x=1, labels=("good", "bad"))
    model = PrivateSubsetClassifier(1, 20, bounds=bounds)
    assert (cross_val_score(model, x, y, scoring="roc_auc", cv=2) > 0.9).all()


def test_false_and_true_of_a_schema_are_booleans_where_y_has_no_type() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    y = x[:, 0] > 0
    for labels in ((False, True), (True, False)):
        schema = dps.Schema.from_bounds({"a": (-1, 1)}, "y", labels=labels)
        for given in (y.tolist(), y.astype(object), pd.Series(y, dtype=object)):
            model = PrivateSubsetClassifier(k=1, epsilon=20, schema=schema).fit(x, given)
            assert model.classes_.dtype == bool
            assert model.score(x, y) > 0.8
        model = PrivateSubsetClassifier(k=1, epsilon=20, schema=schema)
        assert model.fit(x, np.where(y, "true", "false")).classes_.tolist() == ["false", "true"]
    bounds = Bounds(x=1, labels=("false", "true"))
    model = PrivateSubsetClassifier(k=1, epsilon=20, bounds=bounds).fit(x, y.tolist())
    assert model.classes_.tolist() == ["false", "true"]


def test_a_batch_of_arrow_is_a_table() -> None:
    frame, y = table()
    batch = pa.RecordBatch.from_pandas(frame)
    turned = pa.RecordBatch.from_pandas(frame.add_prefix("num__"))
    for given in (batch, turned):
        model = PrivateSubsetRegressor(k=2, epsilon=20, schema=NUMBERS).fit(given, y)
        np.testing.assert_array_equal(model.predict(given), model.release_.model.predict(batch))
        selector = dps.PrivateSubsetSelector(k=2, epsilon=20, schema=NUMBERS).fit(given, y)
        assert selector.transform(given).shape == (len(frame), 2)
