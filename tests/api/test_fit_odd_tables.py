"""Fits of odd tables: an answer, however vague, or an error that depends on public facts alone.

Every table of the list through every way in: `fit`, `fit_released`, both predictors and the command
line. Whether there is an answer must not depend on which of the tables it was.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.sklearn.predictors import PrivateSubsetClassifier, PrivateSubsetRegressor

COLUMNS = {"a": {"lo": -1, "hi": 1}, "b": {"lo": 0, "hi": 5}, "c": {"levels": ["u", "v"]}}
NUMBERS = dps.Schema.from_dict({"response": {"name": "y", "lo": 0, "hi": 9}, "columns": COLUMNS})
LABELS = dps.Schema.from_dict({"response": {"name": "y", "labels": ["no", "yes"]},
                               "columns": COLUMNS})  # fmt: skip


def frame(n: int, labels: bool) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    y: Any = rng.choice(["no", "yes"], n) if labels else rng.uniform(0, 9, n)
    return pd.DataFrame({"a": rng.uniform(-1, 1, n), "b": rng.uniform(0, 5, n),
                         "c": rng.choice(["u", "v"], n), "y": y})  # fmt: skip


def odd(name: str, labels: bool) -> pd.DataFrame:
    if name.startswith("rows"):
        return frame(3, labels).iloc[: int(name[4:])]
    table = frame(30, labels)
    if name == "constant columns":
        return table.assign(a=0.5, b=5.0, c="u")
    if name == "equal responses":
        return table.assign(y="yes" if labels else 4.0)
    if name == "all missing":
        return table.assign(a=math.nan, b=math.nan, c=None, y=None)
    assert name == "copies"
    return table.assign(b=2.5 * (table["a"] + 1))


TABLES = ["rows0", "rows1", "rows2", "constant columns", "equal responses", "all missing", "copies"]
each_table = pytest.mark.parametrize("name", TABLES)
each_kind = pytest.mark.parametrize("labels", [False, True], ids=["numbers", "labels"])
#: Choices than rows, in the shortest tables.
K = 3


def looked_at(model: dps.Model) -> None:
    assert all(map(math.isfinite, [*model.coefficients.values(), model.intercept]))
    assert model.r2 is None or 0 <= model.r2 <= 1
    assert all(low <= high for low, high in model.intervals.values())
    assert dps.Model.from_json(model.to_json()) == model


@each_table
@each_kind
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_fit_and_fit_released(name: str, labels: bool, neighbours: Any) -> None:
    table, schema = odd(name, labels), LABELS if labels else NUMBERS
    for epsilon in (0.5, 1e4):
        release = dps.fit(table, schema, k=K, epsilon=epsilon, neighbours=neighbours)
        assert release.guarantee.epsilon == epsilon
        looked_at(release.model)
        first = dps.select(table, schema, k=1, epsilon=epsilon, neighbours=neighbours)
        release = dps.fit_released(first, table, epsilon=epsilon)
        assert release.guarantee.epsilon == 2 * epsilon
        looked_at(release.model)


@each_table
def test_the_regressor(name: str) -> None:
    table = odd(name, False)
    model = PrivateSubsetRegressor(k=K, epsilon=1, schema=NUMBERS)
    model.fit(table.drop(columns="y"), table["y"].to_numpy())
    looked_at(model.release_.model)
    rows = frame(4, False).drop(columns="y")
    assert ((model.predict(rows) >= 0) & (model.predict(rows) <= 9)).all()


@each_table
def test_the_classifier(name: str) -> None:
    table = odd(name, True)
    model = PrivateSubsetClassifier(k=K, epsilon=1, schema=LABELS)
    model.fit(table.drop(columns="y"), table["y"].to_numpy(dtype=object))
    looked_at(model.release_.model)
    rows = frame(4, True).drop(columns="y")
    assert set(model.predict(rows)) <= {"no", "yes"}
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


@each_table
@each_kind
def test_the_command_line(name: str, labels: bool, tmp_path: Path) -> None:
    odd(name, labels).to_csv(tmp_path / "t.csv", index=False)
    (LABELS if labels else NUMBERS).write(tmp_path / "s.yaml")
    given = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.yaml"), "--epsilon", "1"]
    result = CliRunner().invoke(
        app, ["fit", *given, "--k", str(K), "--model", str(tmp_path / "m.json")]
    )
    assert result.exit_code == 0, result.stderr
    looked_at(dps.Model.load(tmp_path / "m.json"))


@each_kind
def test_more_choices_than_there_are_is_refused_by_all(labels: bool, tmp_path: Path) -> None:
    """k beyond the choices is a public fact; k beyond the rows is none."""
    table, schema = frame(5, labels), LABELS if labels else NUMBERS
    with pytest.raises(dps.ArgumentError, match="k must be at most"):
        dps.fit(table, schema, k=4, epsilon=1)
    model = (PrivateSubsetClassifier if labels else PrivateSubsetRegressor)(
        k=4, epsilon=1, schema=schema
    )
    with pytest.raises(dps.ArgumentError, match="k must be at most"):
        model.fit(table.drop(columns="y"), table["y"])
    table.to_csv(tmp_path / "t.csv", index=False)
    schema.write(tmp_path / "s.yaml")
    given = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.yaml"), "--epsilon", "1"]
    result = CliRunner().invoke(app, ["fit", *given, "--k", "4"])
    assert result.exit_code == 2
    assert "k must be at most" in result.stderr


def test_a_support_from_another_schema_is_refused_by_the_command_line(tmp_path: Path) -> None:
    frame(30, False).to_csv(tmp_path / "t.csv", index=False)
    first = dps.select(frame(30, False), NUMBERS, k=1, epsilon=1)
    (tmp_path / "r.json").write_text(first.to_json(), encoding="utf-8")
    facts = NUMBERS.to_dict()
    facts["columns"]["b"]["hi"] = 6
    dps.Schema.from_dict(facts).write(tmp_path / "s.yaml")
    given = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.yaml"), "--epsilon", "1"]
    result = CliRunner().invoke(app, ["fit", *given, "--on", str(tmp_path / "r.json")])
    assert result.exit_code == 2
    assert "not made from this schema" in result.stderr
    assert json.loads((tmp_path / "r.json").read_text())["features"] == first.features
