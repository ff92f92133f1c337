"""Predictions for records of every form: read by name or in order, or refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.base.errors import TableError
from dpsubset.cli import app

N = 400
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame({
    "age": RNG.uniform(20, 90, N), "ward": RNG.choice(["a", "b"], N), "x": RNG.uniform(-1, 1, N),
    "id": [f"person {i}" for i in range(N)],
})  # fmt: skip
COST = 10 + 0.3 * FRAME["age"] + 8 * (FRAME["ward"] == "b")
SCHEMA = dps.Schema.from_bounds(
    {"x": (-1, 1), "ward": {"levels": ["a", "b"]}, "age": (0, 110)}, ("cost", 0, 100)
)
MODEL = dps.fit(FRAME, SCHEMA, y=COST, k=2, epsilon=50, seed=0).model
assert MODEL is not None
NAMES = MODEL.schema.feature_names  # ward, age
REGRESSOR = dps.PrivateSubsetRegressor(2, 50, schema=SCHEMA, seed=0).fit(FRAME, COST)
LABELS = np.where(COST > 30, "high", "low")
CLASSIFIER = dps.PrivateSubsetClassifier(
    2, 50, schema=dps.Schema.from_bounds({
        "x": (-1, 1), "ward": {"levels": ["a", "b"]}, "age": (0, 110)
    }, "cost", labels=("low", "high")), seed=0,
).fit(FRAME, LABELS)  # fmt: skip

FEW = FRAME.head(5)
RECORDS = FEW.to_dict("records")
PREDICTIONS = {
    "model": MODEL.predict, "scores": MODEL.scores, "regressor": REGRESSOR.predict,
    "decision": CLASSIFIER.decision_function, "classes": CLASSIFIER.predict,
    "chances": CLASSIFIER.predict_proba,
    "probabilities": CLASSIFIER.release_.model.probabilities,
}  # fmt: skip
everywhere = pytest.mark.parametrize("predict", PREDICTIONS.values(), ids=PREDICTIONS)


@everywhere
@pytest.mark.parametrize(
    "rows",
    [
        RECORDS, tuple(RECORDS), json.loads(FEW.to_json(orient="records", double_precision=15)),
        [dict(reversed(record.items())) for record in RECORDS],
        [{name: record[name] for name in NAMES} for record in RECORDS],
        FEW.to_dict("list"), FEW.to_dict("series"), pl.from_pandas(FEW).to_dict(),
        {name: FEW[name].to_numpy() for name in FEW},
    ],
    ids=["records", "tuple", "json", "order", "few", "lists", "series", "polars", "arrays"],
)  # fmt: skip
def test_cells_are_found_by_name(predict: Any, rows: Any) -> None:
    wanted = predict(FEW)
    assert len(np.unique(wanted)) > 1
    assert_alike(predict(rows), wanted)


def assert_alike(found: np.ndarray, wanted: np.ndarray) -> None:
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    else:
        np.testing.assert_array_equal(found, wanted)


@everywhere
def test_one_mapping_of_cells_is_one_row(predict: Any) -> None:
    assert_alike(predict(RECORDS[1]), predict(FEW)[1:2])
    empty: list[Any] = []
    assert len(PREDICTIONS["model"](empty)) == len(PREDICTIONS["scores"](empty)) == 0


def test_a_missing_cell_is_one_but_a_missing_name_is_not() -> None:
    blank = FEW.assign(age=np.nan)
    rows = [{**record, "age": None} for record in RECORDS]
    np.testing.assert_array_equal(MODEL.predict(rows), MODEL.predict(blank))


@everywhere
@pytest.mark.parametrize(
    "rows",
    [
        [{"age": 41}], [*RECORDS, {"age": 41}], [{"Age": 41, "ward": "a"}], {"age": 41},
        {"age": [41, 42]}, {"age": [41, 42], "ward": ["a"]}, {"age": [41], "ward": "a"},
        [*RECORDS, [0.5, "a", 41.0]], [RECORDS],
    ],
    ids=str,
)  # fmt: skip
def test_what_lacks_a_name_is_refused(predict: Any, rows: Any) -> None:
    with pytest.raises(TableError):
        predict(rows)


def test_rows_of_a_list_are_read_in_order() -> None:
    wanted = MODEL.predict(FEW)
    whole = FEW[["x", "ward", "age"]].to_numpy(dtype=object)
    for rows in (whole, whole.tolist(), [tuple(row) for row in whole], list(whole)):
        np.testing.assert_array_equal(MODEL.predict(rows), wanted)
    own = FEW[list(NAMES)].to_numpy(dtype=object)
    for rows in (own, own.tolist()):
        np.testing.assert_array_equal(MODEL.predict(rows), wanted)


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0]], [[0.5, "a", 41.0, 3.0]], [[0.5, "a", 41.0], [0.5, "a"]],
        [["a", 41.0], [0.5, "a", 41.0]], [0.5, "a", 41.0], ["0.5,a,41"], [[]], [None],
    ],
    ids=str,
)  # fmt: skip
@everywhere
def test_rows_of_another_width_are_refused(predict: Any, rows: Any) -> None:
    with pytest.raises(TableError):
        predict(rows)


def test_an_estimator_reads_lists_of_the_width_it_was_fitted_on() -> None:
    x = RNG.uniform(-1, 1, (50, 3))
    bounds = dps.Bounds(x=1, y=1)
    model = dps.PrivateSubsetRegressor(2, 50, bounds=bounds, seed=0).fit(x, x[:, 0])
    selector = dps.PrivateSubsetSelector(2, 50, bounds=bounds, seed=0).fit(x, x[:, 0])
    np.testing.assert_array_equal(model.predict(x.tolist()), model.predict(x))
    np.testing.assert_array_equal(selector.transform(x.tolist()), selector.transform(x))
    named = [dict(zip(["x0", "x1", "x2"], row, strict=True)) for row in x.tolist()]
    np.testing.assert_array_equal(model.predict(named), model.predict(x))
    for rows in (x[:, :2].tolist(), [*x.tolist(), [1.0]]):
        for call in (model.predict, selector.transform):
            with pytest.raises(TableError, match="not a list of 3 cells"):
                call(rows)
    with pytest.raises(TableError, match="not a list of 3 cells"):
        selector.transform(named)


@pytest.mark.parametrize("text", [json.dumps(RECORDS), ' {"age": 41}', "[" * 5000])
def test_text_of_json_is_no_path(text: str) -> None:
    with pytest.raises(TableError, match=r"json\.loads"):
        MODEL.predict(text)


@pytest.mark.parametrize("line", ["0.5,a", "0.5,a,41,7", '0.5,"a,41'])
def test_lines_of_another_width_are_refused(line: str, tmp_path: Path) -> None:
    path, model = tmp_path / "rows.csv", tmp_path / "model.json"
    model.write_text(MODEL.to_json())
    path.write_text("x,ward,age\n0.5,a,41\n\n0.1,,52\n")
    assert len(MODEL.predict(path)) == 2
    path.write_text(f"x,ward,age\n0.5,a,41\n{line}\n")
    with pytest.raises(TableError, match="another number of fields"):
        MODEL.predict(path)
    done = CliRunner().invoke(app, ["predict", str(model), str(path)])
    assert done.exit_code != 0
    assert "another number of fields" in done.output


def test_a_fit_reads_records_by_name_too() -> None:
    release = dps.fit(FRAME.to_dict("records"), SCHEMA, y=COST.tolist(), k=2, epsilon=50, seed=0)
    assert release.model == MODEL


@everywhere
def test_mappings_of_mappings_are_refused(predict: Any) -> None:
    """What to_dict() and to_json() of a pandas frame make by default."""
    for body in (FEW.to_dict(), json.loads(FEW.to_json())):
        with pytest.raises(TableError, match="orient='records' or 'list'"):
            predict(body)


@everywhere
def test_no_rows_have_no_predictions(predict: Any) -> None:
    for rows in ([], ()):
        assert len(predict(rows)) == 0


def test_a_frame_goes_by_name_after_a_fit_without_names() -> None:
    features = FRAME[["x", "ward", "age"]]
    turned = features[["age", "x", "ward"]]
    for table in (features.to_numpy(), FRAME.to_dict("records")):
        regressor = dps.PrivateSubsetRegressor(2, 50, schema=SCHEMA, seed=0).fit(table, COST)
        wanted = regressor.predict(features.to_numpy())
        assert np.ptp(wanted) > 1
        frames = (features, turned, FRAME, pl.from_pandas(turned), turned.add_prefix("num__"))
        for frame in frames:
            np.testing.assert_array_equal(regressor.predict(frame), wanted)
        with pytest.raises(TableError, match="ward"):
            regressor.predict(turned.rename(columns={"ward": "hall"}))
        # Names that nobody declared say nothing.
        other = features.set_axis(["a", "b", "c"], axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(regressor.predict(other), wanted)
    selector = dps.PrivateSubsetSelector(2, 50, schema=SCHEMA, seed=0)
    selector.fit(features.to_numpy(), COST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = selector.transform(features)
        for frame in (turned, FRAME, pl.from_pandas(turned)):
            np.testing.assert_array_equal(selector.transform(frame), kept)
        with pytest.raises(TableError, match="has no 'x', which the schema declares"):
            selector.transform(turned.drop(columns="x"))
