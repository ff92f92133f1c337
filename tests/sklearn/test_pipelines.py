"""The selector in pipelines of scikit-learn: raw frames, groups, names of a ColumnTransformer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import dpsubset as dps

N = 600
SCHEMA = dps.Schema.from_dict(
    {
        "columns": {
            "age": [0, 110],
            "cut": {"levels": ["fair", "good", "ideal"]},
            "height": {"lo": 100, "hi": 220, "group": "body"},
            "weight": {"lo": 30, "hi": 200, "group": "body"},
            "noise": [-4, 4],
        },
        "response": {"name": "cost", "lo": 0, "hi": 2000},
    }
)


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(5)
    x = pd.DataFrame(
        {
            "noise": rng.normal(size=N),
            "weight": rng.normal(70, 12, N),
            "cut": rng.choice(["fair", "good", "ideal", "unheard of"], N, p=[0.3, 0.3, 0.3, 0.1]),
            "age": rng.integers(18, 90, N),
            "height": rng.normal(170, 10, N),
        }
    )
    y = 8.0 * x["age"] + 500.0 * (x["cut"] == "ideal") + rng.normal(0, 30, N)
    return x, y.clip(0, 2000)


def selector(**asked: object) -> dps.PrivateSubsetSelector:
    settings: dict = {"k": 2, "epsilon": 50, "schema": SCHEMA, "intercept": True, **asked}
    return dps.PrivateSubsetSelector(**settings)


def test_a_raw_frame_with_text_columns_needs_no_encoder_before(table: tuple) -> None:
    x, y = table
    encode = ColumnTransformer([("cut", OneHotEncoder(), ["cut"])], remainder="passthrough")
    steps = [("select", selector().set_output(transform="pandas")), ("encode", encode)]
    pipe = Pipeline([*steps, ("fit", LinearRegression())]).fit(x, y)
    assert list(pipe[0].get_feature_names_out()) == ["cut", "age"]  # in the order of the frame
    assert pipe.score(x, y) > 0.9


def test_polars_frames_go_in_too(table: tuple) -> None:
    x, y = table
    fitted = selector().fit(pl.from_pandas(x), pl.from_pandas(y))
    assert fitted.release_.features == ["age", "cut"]


def test_a_group_is_selected_with_all_of_its_columns(table: tuple) -> None:
    x, y = table
    fitted = selector(always_include=["body"]).fit(x, y)
    assert fitted.release_.features[1:] == ["body"]
    assert {"height", "weight"} <= set(fitted.get_feature_names_out())
    assert fitted.support_.sum() == 3
    # Arrays have the schema's features in order.
    some = dps.Schema.from_dict(
        {
            "columns": {
                "a": [0, 110],
                "b": {"lo": 0, "hi": 250, "group": "g"},
                "c": [-4, 4],
                "d": {"lo": 0, "hi": 250, "group": "g"},
            },
            "response": {"name": "y", "lo": 0, "hi": 2000},
        }
    )
    array = x[["age", "height", "noise", "weight"]].to_numpy()
    fitted = selector(k=1, schema=some, always_include=["g"]).fit(array, y.to_numpy())
    assert fitted.support_.tolist() == [False, True, False, True]


def test_names_survive_a_column_transformer(table: tuple) -> None:
    x, y = table
    passed = ColumnTransformer(
        [("num", "passthrough", ["age", "noise", "height"]), ("cat", "passthrough", ["cut"])],
        remainder="passthrough",
    ).set_output(transform="pandas")
    pipe = Pipeline([("columns", passed), ("select", selector())]).fit(x, y)
    assert list(pipe.get_feature_names_out()) == ["num__age", "cat__cut"]
    # A prefix is only looked for where a declared name is missing, and must be the only one.
    double = pd.concat([passed.fit_transform(x), x[["noise"]].add_prefix("other__")], axis=1)
    with pytest.raises(dps.TableError, match="noise"):
        selector().fit(double, y)


def test_sparse_columns_of_an_encoder_are_read(table: tuple) -> None:
    x, y = table
    levels = [["fair", "good", "ideal"]]
    encoded = OneHotEncoder(categories=levels, handle_unknown="ignore").fit_transform(x[["cut"]])
    assert sparse.issparse(encoded)
    asked = {"k": 1, "epsilon": 50, "bounds": dps.Bounds(x=(0, 1), y=(0, 2000)), "intercept": True}
    fitted = dps.PrivateSubsetSelector(**asked).fit(encoded, y)
    assert fitted.support_.tolist() == [False, False, True]
    assert sparse.issparse(fitted.transform(encoded))
