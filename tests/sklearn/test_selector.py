"""PrivateSubsetSelector: pipelines, names, bad cells."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpsubset as dps
from dpsubset import Bounds, PrivateSubsetSelector, Schema
from dpsubset.objective.losses import CLASSIFICATION

NAMES = ["age", "bmi", "city", "dose"]
TRUTH = [1, 3]
#: So large that the best support is certain: tests of plumbing, not of privacy.
CERTAIN = 1e6


def data(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (n, 4))
    return x, 0.4 * x[:, 1] - 0.3 * x[:, 3] + rng.normal(0, 0.1, n)


def selector(**changes: Any) -> PrivateSubsetSelector:
    return PrivateSubsetSelector(
        **{"k": 2, "epsilon": CERTAIN, "bounds": Bounds(x=1, y=1), **changes}
    )


def test_selects_what_select_selects_and_keeps_those_columns() -> None:
    x, y = data()
    fitted = selector().fit(x, y)
    assert fitted.get_support(indices=True).tolist() == TRUTH
    assert fitted.support_.tolist() == [False, True, False, True]
    assert fitted.n_features_in_ == 4
    assert fitted.release_.support == tuple(TRUTH)
    np.testing.assert_array_equal(fitted.transform(x), x[:, TRUTH])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("mechanism", "exponential"),
        ("constraint", "ball"),
        ("ridge", 7.0),
        ("neighbours", "add-remove"),
        ("radius", 0.2),
        ("sensitivity", "published"),
        ("always_include", [0]),
        ("seed", 3),
        ("epsilon", 0.5),
        ("loss", "hinge"),
    ],
)
def test_every_parameter_reaches_the_release(parameter: str, value: Any) -> None:
    x, y = data()
    fitted = selector(**{parameter: value}).fit(x, y)
    problem, guarantee = fitted.release_.problem, fitted.release_.guarantee
    found = {
        "mechanism": fitted.release_.mechanism,
        "constraint": problem.constraint,
        "ridge": problem.ridge,
        "neighbours": guarantee.neighbours,
        "radius": problem.radius,
        "sensitivity": fitted.release_.sensitivity.rule,
        "always_include": list(problem.always_include),
        "seed": 3 if guarantee.seeded else None,
        "epsilon": float(guarantee.epsilon),
        "loss": problem.loss,
    }
    assert found[parameter] == value


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_keeps_names_of_frames(frame: Any) -> None:
    x, y = data()
    table = frame({name: x[:, j] for j, name in enumerate(NAMES)})
    fitted = selector().fit(table, y)
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.get_feature_names_out().tolist() == ["bmi", "dose"]
    assert fitted.release_.features == ["bmi", "dose"]
    for container, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = fitted.set_output(transform=container).transform(table)
        assert isinstance(out, kind)
        assert list(out.columns) == ["bmi", "dose"]
        np.testing.assert_array_equal(out.to_numpy(), x[:, TRUTH])


def test_schema_finds_the_columns_of_a_frame_by_name() -> None:
    x, y = data()
    table = pd.DataFrame({"id": "person", **{name: x[:, j] for j, name in enumerate(NAMES)}})
    schema = Schema.from_bounds(dict.fromkeys(["dose", "city", "bmi"], (-1, 1)), ("cost", -1, 1))
    fitted = selector(bounds=None, schema=schema).fit(table, y)
    # Positions in the frame (id, age, bmi, city, dose), not in the schema (dose, city, bmi).
    assert fitted.get_support(indices=True).tolist() == [2, 4]
    assert fitted.release_.support == (0, 2)
    assert sorted(fitted.get_feature_names_out()) == ["bmi", "dose"]


def test_a_column_called_y_is_a_column() -> None:
    x, y = data()
    table = pd.DataFrame(x, columns=["a", "y", "b", "y_"])
    assert selector().fit(table, y).release_.features == ["y", "y_"]


def test_in_a_pipeline() -> None:
    x, y = data()
    table = pd.DataFrame(x, columns=NAMES)
    halve = FunctionTransformer(lambda frame: frame / 2, feature_names_out="one-to-one")
    model = make_pipeline(halve, selector(bounds=Bounds(x=0.5, y=1)), LinearRegression())
    model.set_output(transform="pandas").fit(table, y)
    assert model[:-1].get_feature_names_out().tolist() == ["bmi", "dose"]
    assert model.score(table, y) > 0.8


LABELS = ("benign", "malignant")


def classes(y: np.ndarray) -> np.ndarray:
    return np.where(y > 0, LABELS[1], LABELS[0])


@pytest.mark.parametrize(
    "dress",
    [
        lambda y: classes(y),
        lambda y: classes(y).tolist(),
        lambda y: classes(y).astype(object),
        lambda y: pd.Series(classes(y)),
        lambda y: pd.Series(classes(y), dtype="category"),
        lambda y: pl.Series(classes(y)),
    ],
    ids=["text", "list", "objects", "pandas", "category", "polars"],
)
@pytest.mark.parametrize("frame", [np.asarray, lambda x: pd.DataFrame(x, columns=NAMES)])
def test_string_classes_in_a_pipeline(dress: Any, frame: Any) -> None:
    x, y = data()
    model = make_pipeline(selector(bounds=Bounds(x=1, labels=LABELS)), LogisticRegression())
    table, response = frame(x), dress(y)
    model.fit(table, response)
    assert model[0].get_support(indices=True).tolist() == TRUTH
    assert model[0].release_.problem.loss == CLASSIFICATION
    assert model.classes_.tolist() == list(LABELS)
    assert model.score(table, classes(y)) > 0.85


@pytest.mark.parametrize(
    ("labels", "kind"), [((0, 1), int), ((False, True), bool), ((0.0, 1.0), np.float32)]
)
def test_other_kinds_of_classes(labels: Any, kind: Any) -> None:
    x, y = data()
    chosen = selector(bounds=Bounds(x=1, labels=labels), loss="hinge").fit(x, (y > 0).astype(kind))
    assert chosen.release_.support == tuple(TRUTH)


def test_a_threshold_reaches_the_release() -> None:
    x, y = data()
    chosen = selector(loss="huber", threshold=0.125).fit(x, y)
    assert chosen.release_.problem.threshold == 0.125
    assert clone(chosen).threshold == 0.125
    with pytest.raises(dps.ArgumentError, match="threshold goes with"):
        selector(threshold=0.125).fit(x, y)


def test_clone_and_pickle() -> None:
    x, y = data()
    original = selector(seed=3).fit(x, y)
    with pytest.raises(NotFittedError):
        clone(original).transform(x)
    assert clone(original).get_params() == original.get_params()
    again = pickle.loads(pickle.dumps(original))
    assert again.release_ == original.release_
    np.testing.assert_array_equal(again.transform(x), original.transform(x))


def test_unseeded_fits_differ_and_say_so_in_the_tags() -> None:
    x, y = data(20)
    fits = {selector(epsilon=1e-3).fit(x, y).release_.support for _ in range(60)}
    assert len(fits) > 1  # all equal with probability below 1e-40
    assert selector().__sklearn_tags__().non_deterministic
    assert not selector(seed=1).__sklearn_tags__().non_deterministic


BAD = [
    None,
    float("nan"),
    float("inf"),
    "a word",
    b"bytes",
    {"a": 1},
    [1, 2],
    10**400,
    1j,
    object(),
]


def test_bad_cells_stop_neither_fit_nor_transform() -> None:
    x, y = data()
    cells, response = x.astype(object), y.astype(object)
    for row, cell in enumerate(BAD):
        cells[row, 1] = cells[row, 2] = response[row] = cell
    fitted = selector().fit(cells, response)
    assert fitted.release_.support == tuple(TRUTH)
    kept = fitted.transform(cells)
    assert all(kept[row, 0] is cell for row, cell in enumerate(BAD))


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_transform_keeps_missing_values(container: str) -> None:
    x, y = data()
    x[0, :] = np.nan
    fitted = selector().set_output(transform=container).fit(x, y)
    assert np.isnan(np.asarray(fitted.transform(x))[0]).all()
    assert np.asarray(fitted.transform(x)).shape == (400, 2)


def test_text_in_y_is_an_ordinary_cell() -> None:
    x, y = data()
    words = y.astype(object)
    words[:3] = "unknown"
    assert selector().fit(x, words).release_.support == tuple(TRUTH)
    assert selector().fit(x, [*map(str, y)]).release_.support == tuple(TRUTH)


def test_one_text_cell_in_a_list_changes_no_other_cell() -> None:
    # NumPy would turn True into the text "True", which is no number.
    rng = np.random.default_rng(2)
    flags = [bool(flag) for flag in rng.integers(0, 2, 300)]
    rows: list[list[Any]] = [
        [flag, float(v)] for flag, v in zip(flags, rng.uniform(0, 1, 300), strict=True)
    ]
    y = [0.3 * flag for flag in flags]
    rows[0][1] = "a word"
    # One entry a column: a list does not declare how many it has, whatever it holds.
    bounds = Bounds(x=[(-1, 1), (-1, 1)], y=1)
    fitted = PrivateSubsetSelector(k=1, epsilon=50, bounds=bounds, seed=0)
    assert fitted.fit(rows, y).release_.support == (0,)
    for some in (rows, rows[:1], []):
        with pytest.raises(ValueError, match="how many columns"):
            selector(k=1).fit(some, y[: len(some)])


def test_inverse_transform_puts_columns_back() -> None:
    x, y = data()
    x[0, 1] = np.nan
    fitted = selector().fit(x, y)
    back = fitted.inverse_transform(fitted.transform(x))
    np.testing.assert_array_equal(back[:, TRUTH], x[:, TRUTH])
    assert not back[:, [0, 2]].any()
    with pytest.raises(dps.TableError, match="shape"):
        fitted.inverse_transform(x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": None}, "schema"),
        ({"schema": Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1))}, "not both"),
        ({"k": None}, "needs k:"),
        ({"epsilon": None}, "needs epsilon:"),
        ({"k": 5}, "at most p"),
        ({"mechanism": "loud"}, "mechanism must be one of"),
    ],
)
def test_wrong_parameters_are_clear_errors_of_fit(changes: dict[str, Any], message: str) -> None:
    x, y = data(10)
    with pytest.raises(dps.DpsubsetError, match=message):
        selector(**changes).fit(x, y)


def test_wrong_data_are_clear_errors() -> None:
    x, y = data(10)
    with pytest.raises(dps.TableError, match="same number of rows"):
        selector().fit(x, y[:-1])
    with pytest.raises(dps.TableError, match="one-dimensional"):
        selector().fit(x, x)
    with pytest.raises(dps.TableError, match="collect"):
        selector().fit(pl.LazyFrame(x), y)
    with pytest.raises(dps.ArgumentError, match="requires y"):
        selector().fit(x)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_an_empty_table_is_an_ordinary_one(output: str, neighbours: str) -> None:
    x, y = data(0)
    bounds = Bounds(x=[1] * 4, y=1)  # tells how many columns a list without records has
    tables = (x, pd.DataFrame(x, columns=NAMES), pl.DataFrame({name: [] for name in NAMES}), [])
    for table in tables:
        for response in (y, []):
            chosen = selector(neighbours=neighbours, bounds=bounds).set_output(transform=output)
            kept = chosen.fit_transform(table, response)
            assert chosen.support_.sum() == 2
            assert kept.shape == (0, 2)
            assert chosen.inverse_transform(kept).shape == (0, 4)
            assert chosen.inverse_transform([]).shape == (0, 4)
