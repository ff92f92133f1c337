"""Columns that are not numbers between bounds: levels, dates, groups, transforms, missing codes."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import PrivateSubsetSelector, Schema, SchemaError, select
from dpsubset.schema.column import Column, Missing
from dpsubset.schema.dates import days, iso_text
from dpsubset.schema.encoding import Design
from dpsubset.schema.labels import canonical

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8)
TEXTS = NAMES.filter(lambda text: text.strip(" \t") != "")
LABELS = st.one_of(TEXTS, st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9), st.booleans()).filter(
    lambda label: not (isinstance(label, str) and math.isinf(_number(label)))
)
DAYS = st.one_of(
    st.floats(-7e5, 2.9e6),
    st.dates().map(lambda day: day.isoformat()),
    st.datetimes().map(lambda moment: moment.isoformat()),
)


def _number(text: str) -> float:
    found = canonical(text.strip(" \t"))
    return found if isinstance(found, float) else 0.0


def some_labels(least: int) -> st.SearchStrategy[list[Any]]:
    def read(label: Any) -> Any:
        return canonical(label.strip(" \t")) if isinstance(label, str) else float(label)

    return st.lists(LABELS, min_size=least, max_size=4, unique_by=read)


@st.composite
def missings(draw: st.DrawFn, rules: list[str | None], value: Any = None) -> Missing | None:
    rule = draw(st.sampled_from(rules))
    codes = tuple(draw(some_labels(0)))
    return draw(st.sampled_from([None, Missing(codes, rule, value if rule == "value" else None)]))


@st.composite
def columns(draw: st.DrawFn, name: str, is_response: bool = False) -> Column:
    kind = draw(st.sampled_from(["number", "boolean", "date", "log", "sqrt", "levels"]))
    rules: list[Any] = [None, "middle", "low", "high", "value"]
    options: dict[str, Any] = {}
    if is_response:
        kind = "number" if kind == "levels" else kind
    else:
        rules.append("indicator")
        options["role"] = draw(st.sampled_from(["feature", "always"]))
        options["group"] = draw(st.sampled_from([None, f"group {options['role']}"]))
    if kind == "levels":
        levels = draw(some_labels(2))
        missing = draw(missings([None, "value", "indicator"], levels[-1]))
        if missing is not None:
            taken = set(map(canonical, Column(name, levels=tuple(levels)).levels or ()))
            codes = Column(name, 0, 1, missing=Missing(missing.codes)).missing
            kept = tuple(c for c in (codes.codes if codes else ()) if canonical(c) not in taken)
            missing = Missing(kept, missing.rule, missing.value)
        return Column(name, levels=tuple(levels), missing=missing, **options)
    if kind == "boolean":
        return Column(name, kind="boolean", missing=draw(missings(rules, 0.5)), **options)
    if kind == "date":
        ends = sorted((draw(DAYS), draw(DAYS)), key=_day)
        if _day(ends[1]) - _day(ends[0]) < 1e-299:
            ends = ["1990-01-01", "2025-12-31"]
        missing = draw(missings(rules, ends[0]))
        codes = {_day(c): c for c in (draw(st.lists(DAYS, max_size=3)))}
        if missing is not None:
            missing = Missing(tuple(codes.values()), missing.rule, missing.value)
        return Column(name, *ends, kind="date", missing=missing, **options)
    lo = {"log": 0.5, "sqrt": 0.0}.get(kind, -3.5)
    options["transform"] = kind if kind in ("log", "sqrt") else None
    return Column(name, lo, 1e3, missing=draw(missings(rules, 1)), **options)


def _day(value: Any) -> float:
    found = days(value)
    return float(value) if found is None else found


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    declared = tuple(draw(columns(name)) for name in names[:-1])
    return Schema(declared, draw(columns(names[-1], is_response=True)))


@given(schemas(), st.sampled_from(["columns.yaml", "columns.json"]))
def test_files_give_the_same_schema_again(
    tmp_path_factory: pytest.TempPathFactory, schema: Schema, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    schema.write(path)
    again = Schema.read(path)
    assert again == schema
    assert again.fingerprint() == schema.fingerprint()
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_plain_schemas_say_what_they_always_said() -> None:
    schema = Schema.from_bounds({"a": (0, 1), "b": (0, 2)}, ("y", 0, 9), always_include=["b"])
    assert schema.to_dict() == {
        "version": 1,
        "unit": "one row",
        "bad_cells": "middle",
        "response": {"name": "y", "lo": 0.0, "hi": 9.0},
        "columns": {"a": {"lo": 0.0, "hi": 1.0}, "b": {"lo": 0.0, "hi": 2.0, "role": "always"}},
    }
    assert schema.fingerprint() == (
        "3f2efad359ed75a1cf6e0307037f3551ef954e94a46cc5858a0171391a0e8592"
    )


FILE = """\
response: {name: cost, lo: 1, hi: 50000, transform: log, missing: {codes: [-9], as: low}}
columns:
  cut: {levels: [Fair, Good, 3]}
  age: {lo: 0, hi: 110, missing: [-9, 999]}
  bmi: {lo: 10, hi: 60, missing: {codes: 0, as: indicator}}
  born: {kind: date, lo: 1900-01-01, hi: 2025-12-31, missing: [1900-01-01]}
  seen: [2000-01-01, "2025-12-31T12:00:00Z"]
  smokes: {kind: boolean}
  "snp_*": {lo: 0, hi: 2, group: genes, role: always}
  income: {lo: 2e2, hi: 1e6, transform: sqrt, missing: {as: value, value: 3e2}}
  town: {levels: [a, b], missing: {as: value, value: b}}
  id: {role: ignored}
"""


def test_every_key_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    names = ["cut", "age", "bmi", "born", "seen", "smokes", "snp_1", "snp_2", "income", "town",
             "id", "cost"]  # fmt: skip
    schema = Schema.read(tmp_path / "s.yaml", names)
    day = days("2025-12-31")
    assert day is not None
    assert schema.columns == (
        Column("cut", levels=("Fair", "Good", 3)),
        Column("age", 0, 110, missing=Missing((-9, 999))),
        Column("bmi", 10, 60, missing=Missing((0,), "indicator")),
        Column("born", -25567, day, kind="date", missing=Missing((-25567,))),
        Column("seen", 10957, day + 0.5, kind="date"),
        Column("smokes", 0, 1, kind="boolean"),
        Column("snp_1", 0, 2, "always", group="genes"),
        Column("snp_2", 0, 2, "always", group="genes"),
        Column("income", 200, 1e6, transform="sqrt", missing=Missing((), "value", 300.0)),
        Column("town", levels=("a", "b"), missing=Missing((), "value", "b")),
        Column("id", role="ignored"),
    )
    assert schema.response == Column("cost", 1, 5e4, transform="log", missing=Missing((-9,), "low"))
    assert schema.to_dict()["columns"]["seen"] == {
        "kind": "date", "lo": "2000-01-01", "hi": "2025-12-31T12:00:00"
    }  # fmt: skip


def test_from_bounds_takes_what_a_file_says() -> None:
    schema = Schema.from_bounds(
        {
            "cut": {"levels": ["a", "b"]},
            "seen": (dt.date(2000, 1, 1), "2025-12-31"),
            "x": {"lo": 0, "hi": 1, "group": "g"},
            "z": {"lo": 0, "hi": 1, "group": "g"},
        },
        {"name": "y", "lo": 1, "hi": 9, "transform": "log"},
        always_include=["g"],
    )
    assert schema.columns[0] == Column("cut", levels=("a", "b"))
    assert (schema.columns[1].kind, schema.columns[1].lo) == ("date", 10957.0)
    assert [c.role for c in schema.columns] == ["feature", "feature", "always", "always"]
    assert schema.response.transform == "log"


def test_spans_after_the_transform() -> None:
    assert Column("a", 1, math.e, transform="log").scaled_span == (0.0, 1.0)
    assert Column("a", 4, 9, transform="sqrt").scaled_span == (2.0, 3.0)
    assert Column("a", 4, 9).scaled_span == (4.0, 9.0)
    assert Column("a", labels=("n", "y")).scaled_span == (-1.0, 1.0)


def test_a_rule_that_says_nothing_is_none() -> None:
    assert Column("a", 0, 1, missing=Missing()) == Column("a", 0, 1)
    assert Column("a", 0, 1, missing=Missing((True, " x "))).missing == Missing(("true", "x"))


# -- dates --------------------------------------------------------------------------------------


def test_days_since_the_origin() -> None:
    assert days(dt.date(1970, 1, 1)) == 0
    assert days("1970-01-02") == 1
    assert days(" 1969-12-31T12:00:00 ") == -0.5
    assert days("1970-01-01T01:00:00+02:00") == -1 / 24
    assert days(np.datetime64("1971-01-01")) == days(pd.Timestamp("1971-01-01")) == 365


@pytest.mark.parametrize(
    "value",
    ["19700101", "1970-13-01", "1970-1-1", "1970-01-01T99:00", "x", 3, None, pd.NaT, b"1970-01-01",
     np.datetime64("NaT"), dt.time(3), "0001-01-01T00:00:00+05:00"],
)  # fmt: skip
def test_what_is_no_date(value: object) -> None:
    assert days(value) is None


@given(st.floats(-1e7, 1e7))
def test_days_are_written_as_what_gives_them_again(number: float) -> None:
    text = iso_text(number)
    assert (days(text) if isinstance(text, str) else text) == number


# -- what is refused ----------------------------------------------------------------------------

Y = {"name": "y", "lo": 0, "hi": 1}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"levels": ["a"]}, "at least two levels"),
        ({"levels": "ab"}, "levels must be a list"),
        ({"levels": {"a": 1}}, "levels must be a list"),
        ({"levels": ["a", "b", "a"]}, "entries 1 and 3 of levels read the same"),
        ({"levels": [1, "1.0"]}, "entries 1 and 2 of levels read the same"),
        ({"levels": ["x", True, 1]}, "entries 2 and 3 of levels read the same"),
        ({"levels": ["a", ""]}, "an entry of levels must be a text"),
        ({"levels": ["a", "b"], "lo": 0, "hi": 1}, "has bounds and levels"),
        ({"levels": ["a", "b"], "transform": "log"}, "transform goes with bounds"),
        ({"levels": ["a", "b"], "kind": "date"}, "kind goes with bounds"),
        ({"levels": ["a", "b"], "missing": {"as": "low"}}, "levels have no low"),
        ({"levels": ["a", "b"], "missing": ["a"]}, "is also a level"),
        ({"levels": ["a", "b"], "missing": {"as": "value", "value": "c"}}, "none of the levels"),
        ({"levels": []}, "levels are missing for: a. "),
        ({"levels": None}, "levels are missing for: a. "),
        ({"level": ["a", "b"]}, r"unknown entries level \(did you mean 'levels'\?\)"),
        ({"lo": 0, "hi": 1, "level": 3}, r"unknown entries level \(did you mean 'levels'\?\)"),
        ({"lo": 0, "hi": 9, "transform": "log"}, "a log needs lo greater than 0"),
        ({"lo": -1, "hi": 9, "transform": "sqrt"}, "needs lo to be 0 or greater"),
        ({"lo": 1, "hi": 9, "transform": "exp"}, "transform must be one of log, sqrt"),
        ({"lo": 1e300, "hi": 9.999999999999999e299, "transform": "log"}, "smaller than hi"),
        ({"lo": 9.999999999999998e299, "hi": 1e300, "transform": "log"}, "too close"),
        ({"lo": 0, "hi": 9, "kind": "text"}, "kind must be one of number, boolean, date"),
        ({"kind": "date"}, "bounds are missing"),
        ({"kind": "date", "lo": "1990", "hi": "2000-01-01"}, "lo must be a date such as"),
        ({"kind": "date", "lo": "1990-02-31", "hi": "2000-01-01"}, "lo must be a date such as"),
        ({"lo": "1990-01-01", "hi": 3}, "lo is a date: the other bound"),
        ({"lo": "1990-01-01", "hi": "1980-01-01"}, "smaller than hi"),
        ({"lo": "1990-01-01", "hi": "2000-01-01", "transform": "sqrt"}, "a date has no transform"),
        ({"lo": 0, "hi": 1, "group": ["g", "h"]}, "in one group only"),
        ({"lo": 0, "hi": 1, "group": 3}, "group must be a name"),
        ({"lo": 0, "hi": 1, "group": " "}, "group must be a name"),
        ({"lo": 0, "hi": 1, "missing": {"as": "mean"}}, "must be one of middle, low"),
        ({"lo": 0, "hi": 1, "missing": {"as": "value"}}, "missing needs a value with"),
        ({"lo": 0, "hi": 1, "missing": {"value": 0}}, "missing needs a value with"),
        ({"lo": 0, "hi": 1, "missing": {"as": "value", "value": 2}}, "must lie within"),
        ({"lo": 0, "hi": 1, "missing": {"as": "value", "value": "x"}}, "must be a number"),
        ({"lo": 0, "hi": 1, "missing": {"code": [1]}}, "unknown entries code"),
        ({"lo": 0, "hi": 1, "missing": [1, "1"]}, "entries 1 and 2 of the codes of missing"),
        ({"lo": 0, "hi": 1, "missing": [[1]]}, "an entry of the codes of missing must be"),
    ],
)
def test_columns_that_are_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message) as found:
        Schema.from_dict({"columns": {"a": entry}, "response": Y})
    assert "a" in str(found.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"levels": ["a", "b"]}, "has levels: with two classes declare labels"),
        ({"lo": 0, "hi": 1, "group": "g"}, "is in a group"),
        ({"lo": 0, "hi": 1, "missing": {"as": "indicator"}}, "cannot have an indicator"),
        ({"labels": ["n", "y"], "levels": ["n", "y"]}, "labels and levels"),
        ({"labels": ["n", "y"], "missing": ["n"]}, "is also a label"),
        ({"labels": ["n", "y"], "missing": {"as": "value", "value": "n"}}, "middle, low or high"),
    ],
)
def test_responses_that_are_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"columns": {"a": [0, 1]}, "response": {"name": "y", **entry}})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": {"group": "g"}, "b": {"group": "g", "role": "always"}}, "different roles"),
        ({"a": {"group": "b"}, "b": {}}, "a group 'b' and a column of that name"),
        ({"a": {"group": "b"}, "b": {"group": "c"}}, "a group 'b' and a column of that name"),
        ({"a": {"group": "y"}}, "a group 'y' and a column of that name"),
        ({"a": {"group": "b"}, "b": {"role": "ignored"}}, "a group 'b' and a column of that name"),
    ],
)
def test_groups_that_are_refused(columns: dict[str, Any], message: str) -> None:
    columns = {name: {"lo": 0, "hi": 1, **entry} for name, entry in columns.items()}
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"columns": columns, "response": Y})


def test_errors_name_columns_and_no_level() -> None:
    for entry in ({"levels": ["Zaphod", "Zaphod"]}, {"levels": ["Zaphod", ["Zaphod"]]},
                  {"levels": ["Zaphod", "b"], "missing": ["Zaphod"]},
                  {"lo": "Zaphod", "hi": "2000-01-01", "kind": "date"}):  # fmt: skip
        with pytest.raises(SchemaError) as found:
            Schema.from_dict({"columns": {"a": entry}, "response": Y})
        assert "Zaphod" not in str(found.value)


def test_a_template_that_was_filled_in_by_half_is_told_by_what_is_missing() -> None:
    columns = {"a": {"lo": None, "hi": 1}, "cut": {"levels": []}, "on": {"kind": "boolean"}}
    message = "bounds are missing for: a; levels are missing for: cut. Declare"
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"columns": columns, "response": Y})


@pytest.mark.parametrize("left", [{"levels": []}, {"kind": "boolean"}, {"lo": None, "hi": None}])
def test_the_form_of_a_template_may_stay_where_the_response_was_named(left: Any) -> None:
    facts = {"columns": {"a": [0, 1], "y": left}, "response": {"name": "y", "labels": ["n", "y"]}}
    assert Schema.from_dict(facts).response == Column("y", labels=("n", "y"))


def test_fingerprints_tell_them_apart() -> None:
    each = [
        Column("a", 1, 2), Column("a", 1, 2, transform="log"), Column("a", 1, 2, transform="sqrt"),
        Column("a", 1, 2, group="g"), Column("a", 1, 2, kind="date"),
        Column("a", 1, 2, missing=Missing((1,))), Column("a", 1, 2, missing=Missing((2,))),
        Column("a", 1, 2, missing=Missing((), "low")), Column("a", levels=(1, 2)),
        Column("a", levels=(2, 1)), Column("a", 0, 1), Column("a", kind="boolean"),
    ]  # fmt: skip
    prints = {Schema((column,), Column("y", 0, 1)).fingerprint() for column in each}
    assert len(prints) == len(each)


# -- what a release says of them ----------------------------------------------------------------


def test_a_statement_says_what_was_declared() -> None:
    schema = Schema(
        (
            Column("age", 0, 110, "always", group="body", missing=Missing((-9, 999), "indicator")),
            Column("bmi", 10, 60, "always", group="body", missing=Missing((), "low")),
            Column("cut", levels=("a|b", "Good", 3)),
            Column("born", "1900-01-01", "2025-12-31", missing=Missing(("1900-01-01",))),
            Column("town", levels=tuple(range(30)), missing=Missing((), "value", 7)),
            Column("income", 1, 1e6, transform="log", missing=Missing((), "value", 5)),
            Column("plain", 0, 1),
        ),
        Column("y", -1, 1, transform=None),
    )
    plain = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", -1, 1))
    table = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0], "y": [0.0, 1.0]})
    release = select(table, plain, k=1, epsilon=1)
    assert "also declared" not in release.statement()
    told = replace(release, schema=schema, problem=replace(release.problem, always_include=(0,)))
    text = told.statement()
    for line in (
        "- Every candidate set contains `body`, as declared.",
        "count as the middle of their bounds, unless the table below says otherwise.",
        "| variable | low | high | also declared |",
        "| age | 0 | 110 | part of the group body; missing if -9, 999; an added column indicates",
        "| bmi | 10 | 60 | part of the group body; missing counts as the low |",
        "Good, 3; none of them where it is missing |",
        "| born | 1900-01-01 | 2025-12-31 | missing if 1900-01-01 |",
        "19, ...; missing counts as 7 |",
        "| income | 1 | 1e+06 | by its logarithm; missing counts as 5 |",
        "| plain | 0 | 1 |  |",
    ):
        assert line in text, line


def test_a_label_response_with_a_rule_of_its_own() -> None:
    table = pd.DataFrame({"a": [0.0, 1.0], "y": ["n", "y"]})
    response = Column("y", labels=("n", "y"), missing=Missing((), "low"))
    release = select(table, Schema((Column("a", 0, 1),), response), k=1, epsilon=1)
    assert "a cell with neither counts as n." in release.statement()


# -- the page about them ------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_the_files_of_the_page_are_schemas(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    names = [*yaml.safe_load(text)["columns"], "gene_a_1", "gene_b_1", "gene_b_2", "x"]
    names = [name for name in names if "*" not in name and name != "default"]
    schema = Schema.read(tmp_path / "s.yaml", [*names, yaml.safe_load(text)["response"]["name"]])
    assert Design.of(schema).choices
    assert Schema.from_dict(schema.to_dict()) == schema


def test_the_python_of_the_page_runs() -> None:
    found: dict[str, Any] = {}
    for source in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(source, found)
    assert Design.of(found["schema"]).layout.sizes == (1, 2, 1)


# -- the whole way ------------------------------------------------------------------------------


def test_a_category_and_a_group_are_selected_as_a_whole() -> None:
    rng = np.random.default_rng(1)
    n = 1000
    cut, pair = rng.choice(["a", "b", "c", "other"], n), rng.uniform(-1, 1, (n, 2))
    table = pd.DataFrame(
        {
            "cut": cut,
            "age": np.where(rng.random(n) < 0.1, -9, rng.uniform(0, 100, n)),
            "born": np.datetime64("1970-01-01") + rng.integers(0, 9000, n).astype("m8[D]"),
            "left": pair[:, 0],
            "income": np.exp(rng.normal(8, 1, n)),
            "right": pair[:, 1],
        }
    )
    y = (cut == "a") + 0.5 * pair.sum(axis=1)
    schema = Schema.from_bounds(
        {
            "cut": {"levels": ["a", "b", "c"]},
            "age": {"lo": 0, "hi": 100, "missing": {"codes": [-9], "as": "indicator"}},
            "born": {"lo": "1970-01-01", "hi": "2000-01-01"},
            "left": {"lo": -1, "hi": 1, "group": "pair"},
            "income": {"lo": 100, "hi": 1e6, "transform": "log"},
            "right": {"lo": -1, "hi": 1, "group": "pair"},
        },
        ("y", -2, 2),
    )
    release = select(table.assign(y=y), schema, k=2, epsilon=1e4)
    assert release.features == ["cut", "pair"]
    assert str(release).startswith("Selected 2 of 5 variables")
    chosen = PrivateSubsetSelector(k=2, epsilon=1e4, schema=schema).fit(table, y)
    assert list(chosen.get_feature_names_out()) == ["cut", "left", "right"]
