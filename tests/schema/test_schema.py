"""Schema: declared bounds, bounds files, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import Bounds, Schema, SchemaError
from dpsubset.schema.bounds_file import template
from dpsubset.schema.encoding import Design
from dpsubset.schema.schema import Column

FINITE = st.floats(-1e300, 1e300)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[float, float]:
    lo, hi = sorted((draw(FINITE), draw(FINITE)))
    return (lo, hi) if hi / 2 - lo / 2 > 1e-299 else (-1.0, 1.0)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    columns = []
    for name in names[:-1]:
        role = draw(st.sampled_from(["feature", "always", "ignored"]))
        columns.append(
            Column(name, role=role)
            if role == "ignored"
            else Column(name, *draw(bounds()), role=role)
        )
    if all(c.role == "ignored" for c in columns):
        columns[0] = Column(columns[0].name, 0, 1)
    unit = draw(st.sampled_from(["one row", "one patient's stay"]))
    rule = draw(st.sampled_from(["middle", "low", "high"]))
    return Schema(tuple(columns), Column(names[-1], *draw(bounds())), unit, rule)


def lows(schema: Schema) -> list[float | None]:
    return [column.lo for column in (*schema.features, schema.response)]


def highs(schema: Schema) -> list[float | None]:
    return [column.hi for column in (*schema.features, schema.response)]


def small(**options: object) -> Schema:
    return Schema.from_bounds({"age": (0, 110), "bmi": (10, 60)}, ("cost", 0, 50_000), **options)


def test_from_bounds_keeps_order_roles_and_bounds() -> None:
    schema = small(always_include=["bmi"], privacy_unit="one patient", bad_cells="low")
    assert schema.feature_names == ("age", "bmi")
    assert Design.of(schema).always == (1,)
    assert lows(schema) == [0.0, 10.0, 0.0]
    assert highs(schema) == [110.0, 60.0, 50_000.0]
    assert (schema.privacy_unit, schema.bad_cells) == ("one patient", "low")


def test_ignored_columns_are_no_variables_and_need_no_bounds() -> None:
    schema = Schema(
        (Column("id", role="ignored"), Column("a", 0, 1), Column("b", 0, 1, "always")),
        Column("y", 0, 1),
    )
    assert schema.feature_names == ("a", "b")
    assert Design.of(schema).always == (1,)


@given(schemas(), st.sampled_from(["schema.yaml", "schema.json"]))
def test_a_bounds_file_gives_the_same_schema_again(
    tmp_path_factory: pytest.TempPathFactory, schema: Schema, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    schema.write(path)
    again = Schema.read(path)
    assert again == schema
    assert again.fingerprint() == schema.fingerprint()


def test_names_that_yaml_would_take_for_something_else(tmp_path: Path) -> None:
    names = ["yes", "null", "1", "1e3", "0x1F", "2020-01-01", "~", " a ", "#b", "c: d", "\x85"]
    schema = Schema.from_bounds(dict.fromkeys(names, (0, 1)), ("no", 0, 1))
    schema.write(tmp_path / "s.yaml")
    assert Schema.read(tmp_path / "s.yaml").feature_names == tuple(names)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_an_unfilled_template_is_refused_by_the_names_of_its_columns(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"bounds.{ending}"
    template(["age", "bmi", "cost"], path)
    with pytest.raises(SchemaError, match="names no response"):
        Schema.read(path)
    facts = {"version": 1, "response": {"name": "cost", "lo": None, "hi": None}}
    facts["columns"] = {name: {"lo": None, "hi": None} for name in ("age", "bmi", "cost")}
    facts["columns"]["age"] = {"lo": 0, "hi": 110}
    path.write_text(json.dumps(facts))  # JSON is YAML too
    with pytest.raises(SchemaError, match="bounds are missing for: bmi, cost"):
        Schema.read(path)


def test_a_filled_template_moves_the_response_out_of_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "bounds.yaml"
    template(["age", "cost", "id"], path)
    text = path.read_text()
    assert "lo: null" in text or "lo:\n" in text  # the template holds no bound
    text = text.replace("{name: null, lo: null, hi: null}", "{name: cost, lo: 0, hi: 9}")
    text = text.replace("age: {lo: null, hi: null}", "age: {lo: 0, hi: 110}")
    text = text.replace("id: {lo: null, hi: null}", "id: {role: ignored}")
    path.write_text(text)
    schema = Schema.read(path)
    assert schema.feature_names == ("age",)
    assert schema.response == Column("cost", 0, 9)


@pytest.mark.parametrize(
    ("lo", "hi"),
    [
        (math.nan, 1), (0, math.nan), (-math.inf, 1), (0, math.inf), (1, 1), (2, 1), (0, 1e301),
        (0, 5e-324), (0, 1e-310), (1e-300, 2e-300), ("0", 1), (True, 2), (None, 1), (0, None),
        (1j, 2), ([0], 1),
    ],
)  # fmt: skip
def test_bad_bounds_are_refused_by_the_columns_name(lo: object, hi: object) -> None:
    with pytest.raises(SchemaError, match="'age'"):
        Schema.from_bounds({"age": (lo, hi)}, ("y", 0, 1))  # type: ignore[dict-item]
    with pytest.raises(SchemaError, match="'y'"):
        Schema.from_bounds({"age": (0, 1)}, ("y", lo, hi))


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Schema.from_bounds({}, ("y", 0, 1)),
        lambda: Schema.from_bounds({"y": (0, 1)}, ("y", 0, 1)),
        lambda: Schema.from_bounds({"a": (0, 1)}, "y"),
        lambda: Schema.from_bounds({"a": (0, 1)}, ("y", 0)),
        lambda: Schema.from_bounds({"a": (0, 1)}, ("", 0, 1)),
        lambda: Schema.from_bounds({"a": (0, 1, 2)}, ("y", 0, 1)),
        lambda: Schema.from_bounds({"a": "01"}, ("y", 0, 1)),
        lambda: Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1), always_include=["b"]),
        lambda: Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1), bad_cells="mean"),
        lambda: Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1), privacy_unit=" "),
        lambda: Schema((Column("a", 0, 1), Column("a", 0, 1)), Column("y", 0, 1)),
        lambda: Schema((Column("a", role="ignored"),), Column("y", 0, 1)),
        lambda: Schema((Column("a", 0, 1),), Column("y", 0, 1, "always")),
        lambda: Schema((Column("a", 0, 1),), Column("y", role="ignored")),
        lambda: Column("a", 0, 1, "label"),
        lambda: Column(3, 0, 1),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(broken: object) -> None:
    with pytest.raises(SchemaError):
        broken()  # type: ignore[operator]


def test_duplicates_are_named() -> None:
    with pytest.raises(SchemaError, match="more than once: age"):
        Schema((Column("age", 0, 1), Column("b", 0, 1)), Column("age", 0, 1))


@pytest.mark.parametrize(
    "facts",
    [
        None, [], 3, {}, {"columns": {}, "response": {}}, {"columns": {"a": [0, 1]}},
        {"columns": ["a"], "response": {"name": "y", "lo": 0, "hi": 1}},
        {"columns": {"a": [0, 1]}, "response": ["y", 0, 1]},
        {"columns": {"a": [0, 1]}, "response": {"name": 3, "lo": 0, "hi": 1}},
        {"columns": {"a": [0, 1]}, "response": {"name": "y", "lo": 0, "hi": 1}, "bonds": 1},
        {"columns": {"a": [0, 1]}, "response": {"name": "y", "lo": 0, "hi": 1}, "version": 2},
        {"columns": {"a": {"lo": 0, "hi": 1, "low": 0}},
         "response": {"name": "y", "lo": 0, "hi": 1}},
        {"columns": {"a": "01"}, "response": {"name": "y", "lo": 0, "hi": 1}},
    ],
)  # fmt: skip
def test_a_malformed_file_is_a_schema_error(facts: object, tmp_path: Path) -> None:
    with pytest.raises(SchemaError):
        Schema.from_dict(facts)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(facts))
    with pytest.raises(SchemaError):
        Schema.read(path)


@pytest.mark.parametrize("name", ["s.json", "s.yaml"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"a: [", b"[" * 100_000])
def test_a_file_that_is_none_is_a_schema_error(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SchemaError, match=name):
        Schema.read(tmp_path / name)
    with pytest.raises(SchemaError, match="missing"):
        Schema.read(tmp_path / "missing.yaml")


def test_fingerprints_tell_every_public_fact_apart() -> None:
    base = small()
    others = [
        small(privacy_unit="one visit"),
        small(bad_cells="high"),
        small(always_include=["age"]),
        Schema.from_bounds({"bmi": (10, 60), "age": (0, 110)}, ("cost", 0, 50_000)),
        Schema.from_bounds({"age": (0, 111), "bmi": (10, 60)}, ("cost", 0, 50_000)),
        Schema.from_bounds({"age": (0, 110), "bmi": (10, 60)}, ("cost", 1, 50_000)),
        Schema.from_bounds({"age": (0, 110), "bmi": (10, 60)}, ("costs", 0, 50_000)),
        Schema((*base.columns, Column("id", role="ignored")), base.response),
    ]
    prints = [schema.fingerprint() for schema in (base, *others)]
    assert len(set(prints)) == len(prints)
    same = Schema.from_bounds(
        {"age": [np.float64(0), np.int32(110)], "bmi": (10.0, 60)}, ["cost", 0, 5e4]
    )
    assert same.fingerprint() == base.fingerprint()


def test_bounds_of_arrays() -> None:
    names = ["x0", "x1", "x2"]
    one = Bounds(x=0.5, y=(0, 10)).schema(names)
    assert lows(one) == [-0.5, -0.5, -0.5, 0.0]
    assert highs(one) == [0.5, 0.5, 0.5, 10.0]
    assert lows(Bounds(x=(0, 2), y=1).schema(names)) == [0, 0, 0, -1]
    each = [(0, 1), 2, (3, 4)]
    assert lows(Bounds(x=each, y=1).schema(names)) == [0, -2, 3, -1]
    array = np.array([[0, 1], [2, 3], [4, 5]])
    assert highs(Bounds(x=array, y=1).schema(names)) == [1, 3, 5, 1]
    # Two columns: a pair of numbers is one interval, a pair of pairs is one a column.
    assert lows(Bounds(x=[1, 2], y=1).schema(names[:2])) == [1, 1, -1]
    assert lows(Bounds(x=[(0, 1), (2, 3)], y=1).schema(names[:2])) == [0, 2, -1]


@pytest.mark.parametrize(
    "x",
    [0, -1, math.nan, (1, 0), [(0, 1)], [(0, 1)] * 4, "ab", None, (0, math.inf), [1, 2, -3], True],
)
def test_bad_bounds_of_arrays(x: object) -> None:
    with pytest.raises(SchemaError):
        Bounds(x=x, y=1).schema(["x0", "x1", "x2"])
    with pytest.raises(SchemaError):
        Bounds(x=1, y=x).schema(["x0", "x1", "x2"])


def test_the_privacy_unit_has_a_former_name() -> None:
    columns, response = (Column("a", 0, 1),), Column("y", 0, 1)
    with pytest.warns(FutureWarning, match="privacy_unit"):
        old = Schema(columns, response, unit="one visit")  # type: ignore[call-arg]
    with pytest.warns(FutureWarning, match="privacy_unit"):
        older = Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1), unit="one visit")
    assert old == older == Schema(columns, response, privacy_unit="one visit")
