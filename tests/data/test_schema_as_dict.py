"""A dict of the form of a bounds file is accepted wherever a Schema or a path is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.base import clone

import dpsubset as dps
from dpsubset.data.readers import read_schema

FACTS: dict[str, Any] = {
    "unit": "one patient",
    "response": {"name": "cost", "lo": 0, "hi": 1000},
    "columns": {"age": {"lo": 0, "hi": 110}, "sex": {"levels": ["f", "m"]}, "stay": [0, 30]},
}
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": RNG.uniform(0, 110, 50), "sex": ["f", "m"] * 25, "stay": RNG.uniform(0, 30, 50),
     "cost": RNG.uniform(0, 1000, 50)}
)  # fmt: skip
SCHEMA = dps.Schema.from_dict(FACTS)
ASKED: dict[str, Any] = {"k": 1, "epsilon": 1, "seed": 1, "ledger": False}


def test_functions_read_a_dict_as_they_read_the_schema() -> None:
    for call in (dps.select, dps.fit):
        assert call(TABLE, FACTS, **ASKED) == call(TABLE, SCHEMA, **ASKED)
    plain = {"k": 1, "epsilon": 1}
    for free in (dps.price, dps.price_fit):
        assert free(TABLE, FACTS, **plain) == free(TABLE, SCHEMA, **plain)
    assert dps.best_subset(TABLE, FACTS, k=1).features == dps.best_subset(
        TABLE, SCHEMA, k=1
    ).features  # fmt: skip
    assert dps.read_sample(TABLE, FACTS).cells == dps.read_sample(TABLE, SCHEMA).cells
    chosen = dps.suggest_bounds(TABLE, FACTS, epsilon=1, seed=1, ledger=False)
    assert chosen == dps.suggest_bounds(TABLE, SCHEMA, epsilon=1, seed=1, ledger=False)
    found = dps.private_mean(TABLE, FACTS, epsilon=1, columns=["age"], ledger=False)
    assert found.names == ("age",)


def test_a_dict_of_bounds_alone_is_refused_with_the_form_that_is_meant() -> None:
    with pytest.raises(dps.SchemaError, match=r"a schema is a mapping with 'columns'.*from_bounds"):
        dps.select(TABLE, {"age": (0, 110)}, **ASKED)


def test_a_release_file_is_fitted_with_a_dict(tmp_path: Path) -> None:
    first = dps.select(TABLE, SCHEMA, k=1, epsilon=1, ledger=False)
    (tmp_path / "release.json").write_text(first.to_json())
    second = dps.fit_released(tmp_path / "release.json", TABLE, FACTS, epsilon=1, ledger=False)
    assert second.features == first.features


def test_estimators_take_a_dict_and_leave_it_alone() -> None:
    x, y = TABLE[["age", "sex", "stay"]], TABLE["cost"]
    step = dps.PrivateSubsetRegressor(schema=FACTS, **ASKED)
    assert step.schema is FACTS
    assert clone(step).fit(x, y).release_ == step.fit(x, y).release_
    assert step.release_.schema == SCHEMA
    array = np.column_stack([x["age"], x["sex"] == "f", x["stay"]]).astype(object)
    assert dps.PrivateSubsetSelector(schema=FACTS, **ASKED).fit(array, y).n_features_in_ == 3
    assert dps.PrivateSubsetSelector(schema=FACTS, **ASKED).fit(array.tolist(), list(y))


@pytest.mark.parametrize("name", ["schema.yaml", "schema.json"])
def test_a_dict_is_what_any_reader_of_the_file_makes_of_it(tmp_path: Path, name: str) -> None:
    facts = {
        **FACTS,
        "columns": {**FACTS["columns"], "day": {"kind": "date", "lo": "2000-01-01",
                                                "hi": "2020-12-31"}},
    }  # fmt: skip
    path = tmp_path / name
    dps.Schema.from_dict(facts).write(path)
    loaded = (json.loads if name.endswith("json") else yaml.safe_load)(path.read_text())
    assert read_schema(loaded, None) == read_schema(path, None) == dps.Schema.from_dict(facts)
    # YAML 1.1 reads such a number as text.
    (tmp_path / "small.yaml").write_text(
        "response: {name: y, lo: 0, hi: 2e4}\ncolumns: {x: {lo: 0, hi: 1e6}}\n"
    )
    loaded = yaml.safe_load((tmp_path / "small.yaml").read_text())
    assert loaded["columns"]["x"]["hi"] == "1e6"
    assert read_schema(loaded, None) == read_schema(tmp_path / "small.yaml", None)


def test_patterns_of_a_dict_stand_for_columns_of_the_table() -> None:
    facts = {"response": {"name": "y", "lo": 0, "hi": 1}, "columns": {"x*": {"lo": 0, "hi": 1}}}
    table = pd.DataFrame({"x0": [0.5], "x1": [0.2], "y": [0.1]})
    assert dps.price(table, facts, k=1, epsilon=1).columns == ("x0", "x1", "y")
    step = dps.PrivateSubsetSelector(1, 1, schema=facts, ledger=False)
    assert step.fit(table[["x0", "x1"]], table["y"]).n_features_in_ == 2


def test_a_dict_of_bounds_alone_is_told_the_form() -> None:
    with pytest.raises(dps.SchemaError, match=r"'columns' and 'response'.*Schema.from_bounds"):
        dps.price(TABLE, {"age": (0, 110), "stay": (0, 30)}, k=1, epsilon=1)
    with pytest.raises(dps.ArgumentError, match="a dict of the same form"):
        dps.price(TABLE, 3, k=1, epsilon=1)  # type: ignore[arg-type]


def test_bounds_by_name_are_still_bounds() -> None:
    table = TABLE.rename(columns={"age": "columns", "stay": "response"})
    within = {"columns": {"lo": 0, "hi": 110}, "response": {"lo": 0, "hi": 30}}
    found = dps.suggest_bounds(table, within, epsilon=1, ledger=False)
    assert [column.name for column in found.columns] == ["columns", "response"]
