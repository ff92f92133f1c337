"""What a schema shows of itself: one line by repr, the bounds file by str."""

from __future__ import annotations

import yaml
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import dpsubset as dps
from dpsubset.data.readers import read_schema

WIDE = dps.Schema.from_bounds({f"v{j}": (0, 1) for j in range(200)}, ("y", 0, 1))


def test_repr_of_a_schema_is_a_line_with_counts() -> None:
    assert repr(WIDE) == "Schema(200 features: 'v0', 'v1', 'v2', ...; response: 'y')"
    small = dps.Schema.from_dict(
        {"response": {"name": "ill\n", "labels": ["no", "yes"]}, "unit": "one\x1b[2J patient",
         "columns": {"age": {"lo": 0, "hi": 1, "role": "always"}, "id": {"role": "ignored"}}}
    )  # fmt: skip
    assert repr(small) == (
        "Schema(1 feature: 'age'; 1 always included; 1 column ignored; response: 'ill\\n')"
    )
    long = dps.Schema.from_bounds({"n" * 500: (0, 1)}, ("y" * 500, 0, 1))
    assert len(repr(long)) < 200


def test_repr_of_an_estimator_is_as_short_as_of_scikit_learn() -> None:
    for estimator in (dps.PrivateSubsetSelector, dps.PrivateSubsetRegressor):
        step = estimator(1, 1, schema=WIDE)
        for shown in (step, make_pipeline(step), GridSearchCV(step, {"k": [1, 2]}),
                      dps.PrivateSearch(step, {"k": [1]}, 1)):  # fmt: skip
            assert len(repr(shown).splitlines()) <= 12, repr(shown)
            assert len(repr(shown)) < 1000


def test_text_of_a_schema_is_its_bounds_file() -> None:
    schema = dps.Schema.from_dict(
        {"response": {"name": "cost", "lo": 0, "hi": 9}, "unit": "one patient",
         "columns": {"sex": {"levels": ["f", "m"]}, "day": {"kind": "date", "lo": "2000-01-01",
                                                           "hi": "2001-01-01"}}}
    )  # fmt: skip
    assert str(schema).splitlines()[:2] == ["version: 1", "unit: one patient"]
    assert "sex: {levels: [f, m]}" in str(schema)
    assert read_schema(yaml.safe_load(str(schema)), None) == schema


def test_text_of_odd_names_moves_no_cursor() -> None:
    schema = dps.Schema.from_bounds({"a\x1b[2Jb": (0, 1), "\x85": (0, 1)}, ("y", 0, 1))
    assert "\x1b" not in str(schema) + repr(schema)
    assert read_schema(yaml.safe_load(str(schema)), None) == schema
