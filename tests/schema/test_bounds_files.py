"""Bounds files: mistakes are found and placed, patterns stand for columns, nothing is quoted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset import Schema, SchemaError, TableError
from dpsubset.base.errors import did_you_mean
from dpsubset.cli import app
from dpsubset.schema.bounds_file import template
from dpsubset.schema.schema import Column

SECRET = "Zaphod"


def facts(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "response": {"name": "cost", "lo": 0, "hi": 9},
        "columns": {"age": [0, 110]},
    }
    return given | changes


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# -- the response under 'columns' ---------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        None, {}, {"lo": None, "hi": None}, {"lo": 0, "hi": 9}, [0, 9.0],
        {"lo": 0, "hi": np.float32(9), "role": "feature"}, {"lo": 0, "hi": None},
    ],
)  # fmt: skip
def test_a_response_left_among_the_columns_is_empty_or_the_same(entry: Any) -> None:
    schema = Schema.from_dict(facts(columns={"age": [0, 110], "cost": entry}))
    assert schema.feature_names == ("age",)
    assert schema.response == Column("cost", 0, 9)


@pytest.mark.parametrize(
    "entry",
    [
        {"lo": 0, "hi": 10}, [0, 10], {"lo": -1}, {"labels": ["n", "y"]}, {"role": "ignored"},
        {"role": "always"}, {"high": 9}, [0, 9, 10], 9,
    ],
)  # fmt: skip
def test_a_response_declared_twice_with_other_facts_is_refused(entry: Any) -> None:
    with pytest.raises(SchemaError, match="'cost' is the response, and its entry"):
        Schema.from_dict(facts(columns={"age": [0, 110], "cost": entry}))


def test_labels_left_among_the_columns() -> None:
    response = {"name": "state", "labels": ["n", "y"]}
    same = {"age": [0, 1], "state": {"labels": ["n", "y"], "lo": None}}
    assert Schema.from_dict({"response": response, "columns": same}).response.labels == ("n", "y")
    for other in ({"labels": ["y", "n"]}, [0, 1]):
        with pytest.raises(SchemaError, match=r"entry under .columns. differs"):
            Schema.from_dict({"response": response, "columns": {"age": [0, 1], "state": other}})


# -- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"), [("2e4", 2e4), ("1.5E3", 1500), ("2e-1", 0.2), ("+.5e1", 5)]
)
def test_numbers_that_yaml_takes_for_text(tmp_path: Path, text: str, number: float) -> None:
    for column in (f"{{lo: 0, hi: {text}}}", f"[0, {text}]"):
        path = written(
            tmp_path / "s.yaml",
            f"response: {{name: y, lo: 0, hi: {text}}}\ncolumns:\n  a: {column}\n",
        )
        schema = Schema.read(path)
        assert (schema.response.hi, schema.columns[0].hi) == (number, number)


def test_text_stays_text_where_no_number_is_meant(tmp_path: Path) -> None:
    path = written(tmp_path / "s.yaml", "response: {name: 2e4, labels: [1e3, no]}\ncolumns:\n"
                   "  1e5: [0, 1]\n")  # fmt: skip
    schema = Schema.read(path)
    assert (schema.response.name, schema.columns[0].name) == ("2e4", "1e5")
    assert schema.response.labels == ("1e3", "no")
    quoted = written(tmp_path / "s.json", json.dumps(facts(columns={"age": [0, "2e4"]})))
    with pytest.raises(SchemaError, match="'age': hi is text, not a number"):
        Schema.read(quoted)


@pytest.mark.parametrize(
    "column",
    ["{lo: 0, hi: 20,000}", "[0, 20,000]", '{lo: 0, hi: "20,000"}', "\n    lo: 0\n    hi: 20,000",
     '{lo: 0, hi: "20 000"}', '{lo: 0, hi: "nan"}', "{lo: 0, hi: Zaphod}", "Zaphod"],
)  # fmt: skip
def test_numbers_that_could_be_anything_are_refused(tmp_path: Path, column: str) -> None:
    path = written(
        tmp_path / "s.yaml", f"response: {{name: y, lo: 0, hi: 1}}\ncolumns:\n  a: {column}\n"
    )
    with pytest.raises(SchemaError, match=r"'a': .*20000, 0.5 or 2e4, without separators") as found:
        Schema.read(path)
    assert SECRET not in str(found.value)


# -- where a mistake is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("s.yaml", f"columns:\n  a: {SECRET}: 3\n", "line 2, column 12"),
        ("s.yaml", f"columns:\n\t{SECRET}: 3\n", "line 2, column 1"),
        ("s.yaml", f"a: 1\nb: {SECRET}\x01\n", "line 2, column 10"),
        ("s.yaml", f"a: [{SECRET}\n", "line 2, column 1"),
        ("s.json", f'{{"a": 1,\n "{SECRET}" 2}}', "line 2, column 11"),
    ],
)
def test_a_mistake_is_placed_and_not_quoted(
    tmp_path: Path, name: str, text: str, place: str
) -> None:
    with pytest.raises(SchemaError) as found:
        Schema.read(written(tmp_path / name, text))
    kind = "JSON" if name.endswith("json") else "YAML"
    assert str(found.value) == f"the schema file {name} is not valid {kind}: see {place}"
    assert found.value.__context__ is None  # which would quote the file


# -- names that are nearly right ----------------------------------------------------------------


def test_the_nearest_declared_name() -> None:
    assert did_you_mean("aeg", ["bmi", "age"]) == " (did you mean 'age'?)"
    assert did_you_mean("BMI", ["bmi", "age"]) == " (did you mean 'bmi'?)"
    assert did_you_mean("dose", ["bmi", "age"]) == ""
    assert did_you_mean(3, []) == ""


def test_unknown_names_are_hinted_from_what_is_declared() -> None:
    with pytest.raises(SchemaError, match=r"column: aeg \(did you mean 'age'\?\)"):
        Schema.from_bounds({"age": (0, 1)}, ("y", 0, 1), always_include=["aeg"])
    misspelt = facts(columns={"age": [0, 110], "cost": None}, response={"name": "cots"})
    with pytest.raises(SchemaError, match=r"'cots' is none of the columns \(did you mean 'cost'"):
        Schema.from_dict(misspelt)


def test_a_missing_column_is_hinted_from_what_is_declared_and_never_from_the_table() -> None:
    schema = Schema.from_bounds({"cost": (0, 1), "b": (0, 1)}, ("cots", 0, 1))
    table = {"cost": [1.0], "b": [1.0], "cotss": [1.0]}
    with pytest.raises(TableError, match=r"no column 'cots' \(did you mean 'cost'\?\)"):
        dps.select(pd.DataFrame(table), schema, k=1, epsilon=1)
    with pytest.raises(TableError) as found:
        dps.select(pd.DataFrame({"b": [1.0], "cotss": [1.0]}), schema, k=1, epsilon=1)
    assert "did you mean" not in str(found.value)


# -- columns that are not declared --------------------------------------------------------------


def check(table: Path, *declared: str) -> Any:
    schema = Schema.from_bounds(dict.fromkeys(declared, (0, 1)), ("y", 0, 1))
    path = table.with_name("schema.yaml")
    schema.write(path)
    return CliRunner().invoke(app, ["schema", "check", str(path), str(table)])


def test_columns_that_are_not_declared_are_told(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", "a,b,c,y\n1,2,3,4\n")
    assert "not declared" not in check(table, "a", "b", "c").stdout
    assert "1 column is not declared and will not be read: 'c'\n" in check(table, "a", "b").stdout
    assert "2 columns are not declared and will not be read: 'b', 'c'" in check(table, "a").stdout


@pytest.mark.parametrize("header", ["a,y,zip,7319.5", "a,y,zip,1984-03-01", "a,y,zip,", "a,y,#,7"])
def test_what_may_be_a_cell_is_counted_and_not_named(tmp_path: Path, header: str) -> None:
    result = check(written(tmp_path / "t.csv", header + "\n1,2,3,4\n"), "a")
    assert result.exit_code == 0
    assert result.stdout.endswith("2 columns are not declared and will not be read\n")


# -- patterns -----------------------------------------------------------------------------------

WIDE = ["id_1", "snp_1", "age", "snp_2", "dose", "y", "snp_x", "id_2"]
PATTERNS = """\
response: {name: y, lo: -1, hi: 1}
columns:
  "snp_x": {lo: 5, hi: 6}
  "snp_?": {lo: 0, hi: 2, role: always}
  "s*": {lo: 7, hi: 8}
  "id_[12]": {role: ignored}
  default: [0, 9]
"""


def expected() -> Schema:
    columns = (
        Column("snp_x", 5, 6),
        Column("snp_1", 0, 2, "always"),
        Column("snp_2", 0, 2, "always"),
        Column("sex", 7, 8),
        Column("id_1", role="ignored"),
        Column("id_2", role="ignored"),
        Column("age", 0, 9),
        Column("dose", 0, 9),
    )
    return Schema(columns, Column("y", -1, 1))


def test_patterns_stand_for_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "s.yaml", PATTERNS)
    resolved = Schema.read(path, names=[*WIDE, "sex"])
    assert resolved == expected()
    # What comes out is an ordinary schema, with a file and a fingerprint of its own.
    resolved.write(tmp_path / "whole.json")
    assert Schema.read(tmp_path / "whole.json").fingerprint() == expected().fingerprint()


def test_patterns_without_a_default_leave_the_rest_undeclared() -> None:
    given = facts(columns={"snp_*": [0, 2]}, response={"name": "y", "lo": 0, "hi": 1})
    assert Schema.from_dict(given, names=WIDE).feature_names == ("snp_1", "snp_2", "snp_x")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"snp_*": [0, 2], "zzz_*": [0, 1]}, "pattern 'zzz_\\*' stands for no column"),
        ({"*": [0, 2], "snp_*": [0, 1]}, "pattern 'snp_\\*' stands for no column"),
        ({"y*": [0, 2], "age": [0, 1]}, "pattern 'y\\*' stands for no column"),
        ({"snp_*": {"lo": None, "hi": None}}, "bounds are missing for: snp_\\*"),
        ({"snp_*": {"labels": ["n", "y"]}}, "only the response may have labels"),
    ],
)
def test_patterns_that_are_refused(columns: dict[str, Any], message: str) -> None:
    given = facts(columns=columns, response={"name": "y", "lo": 0, "hi": 1})
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(given, names=WIDE)


def test_patterns_need_names() -> None:
    for columns in ({"snp_*": [0, 2]}, {"default": [0, 2]}, {"a": [0, 1], "x[01]": [0, 1]}):
        with pytest.raises(SchemaError, match="columns of a table with names"):
            Schema.from_dict(facts(columns=columns))


def test_a_declared_column_that_is_missing_is_found_before_patterns_are_filled_in() -> None:
    given = facts(columns={"agee": [0, 2], "dose": [0, 1], "default": [0, 2]})
    given["response"] = {"name": "y", "lo": 0, "hi": 1}
    with pytest.raises(TableError, match=r"no column 'agee', which"):
        Schema.from_dict(given, names=WIDE)
    record = ["Zaphod", "Quill", "Heart of Gold"]
    given = facts(columns={"default": [0, 2]})
    with pytest.raises(TableError, match="no column 'cost', which") as found:
        Schema.from_dict(given, names=record)
    assert not any(name in str(found.value) for name in record)


def test_names_that_look_like_patterns_are_names_where_the_table_has_them(tmp_path: Path) -> None:
    names = ["x[0]", "x0", "a*b", "default", "y"]
    columns = {name: [0, 1] for name in names[:-1]}
    given = {"columns": columns, "response": {"name": "y", "lo": 0, "hi": 1}}
    assert Schema.from_dict(given, names=names).feature_names == tuple(names[:-1])
    literal = Schema.from_dict(given | {"patterns": False})
    assert literal.feature_names == tuple(names[:-1])
    # Files that are written say so themselves.
    for ending in ("yaml", "json"):
        literal.write(tmp_path / f"s.{ending}")
        assert Schema.read(tmp_path / f"s.{ending}") == literal
        template(names, tmp_path / f"t.{ending}")
        text = (tmp_path / f"t.{ending}").read_text()
        assert ('"patterns": false' if ending == "json" else "patterns: false") in text
    template(["a", "y"], tmp_path / "plain.json")
    assert "patterns" not in json.loads((tmp_path / "plain.json").read_text())


def test_a_response_called_default(tmp_path: Path) -> None:
    given = facts(response={"name": "default", "lo": 0, "hi": 1})
    given["columns"] = {"age": [0, 1], "default": {"lo": None, "hi": None}}
    assert Schema.from_dict(given).response.name == "default"


def wide_table(n: int = 300) -> dict[str, Any]:
    x = np.random.default_rng(5).integers(0, 3, (n, 2000)).astype(float)
    table = {f"snp_{j}": x[:, j] for j in range(2000)}
    return {"name of site": ["x"] * n, **table, "y": x[:, 77] - 1}


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return written(
        tmp_path / "wide.yaml",
        "response: {name: y, lo: -1, hi: 1}\n"
        'columns:\n  "snp_*": {lo: 0, hi: 2}\n  default: {role: ignored}\n',
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "beside"])
def test_two_thousand_columns_in_two_lines(tmp_path: Path, wide: Path, kind: str) -> None:
    table = pl.DataFrame(wide_table())
    path = tmp_path / f"wide.{kind}"
    y = table["y"].to_numpy() if kind == "beside" else None
    data: Any = path
    if kind == "csv":
        table.write_csv(path)
    elif kind == "parquet":
        table.write_parquet(path)
    else:
        data = table.to_pandas() if kind == "pandas" else table
        data = table.drop("y") if kind == "beside" else data
    release = dps.select(data, wide, y=y, k=1, epsilon=1e5)
    assert release.features == ["snp_77"]
    assert len(release.schema.features) == 2000


def test_the_estimator_takes_patterns(wide: Path) -> None:
    table = pd.DataFrame(wide_table())
    chosen = dps.PrivateSubsetSelector(k=1, epsilon=1e5, schema=wide)
    chosen.fit(table.drop(columns="y"), table["y"])
    assert list(chosen.get_feature_names_out()) == ["snp_77"]


def test_patterns_do_not_go_with_arrays(wide: Path) -> None:
    x = np.zeros((5, 3))
    with pytest.raises(SchemaError, match="a table with names"):
        dps.select(x, wide, y=x[:, 0], k=1, epsilon=1)
    with pytest.raises(SchemaError, match="a table with names"):
        dps.PrivateSubsetSelector(k=1, epsilon=1, schema=wide).fit(x.tolist(), x[:, 0])


def test_a_first_line_that_is_data_does_not_become_names(tmp_path: Path) -> None:
    bounds = written(
        tmp_path / "s.yaml", "response: {name: y, lo: 0, hi: 1}\ncolumns:\n  default: [0, 1]\n"
    )
    table = written(tmp_path / "t.csv", f"{SECRET},0.5,y\n{SECRET},0.5,1\n")
    with pytest.raises(TableError, match="looks like data"):
        dps.select(table, bounds, k=1, epsilon=1)
    with pytest.raises(TableError, match="look like data"):
        dps.select(pd.DataFrame({"0.5": [1.0], "y": [1.0]}), bounds, k=1, epsilon=1)
    words = written(tmp_path / "w.csv", f"{SECRET},Quill,Ford\n")
    with pytest.raises(TableError) as found:
        dps.select(words, bounds, k=1, epsilon=1, always_include=["Zaphid"])
    assert SECRET not in str(found.value)
    repeated = pd.DataFrame([[1.0, 2.0, 3.0]], columns=[SECRET, SECRET, "y"])
    with pytest.raises(TableError, match="several columns of one name") as found:
        dps.select(repeated, bounds, k=1, epsilon=1)
    assert SECRET not in str(found.value)


def test_schema_check_fills_in_patterns(tmp_path: Path) -> None:
    path = written(tmp_path / "s.yaml", PATTERNS)
    table = written(tmp_path / "t.csv", ",".join([*WIDE, "sex"]) + "\n")
    alone = CliRunner().invoke(app, ["schema", "check", str(path)])
    assert alone.exit_code == 2
    assert "a table with names" in alone.stderr
    checked = CliRunner().invoke(app, ["schema", "check", str(path), str(table)])
    assert checked.exit_code == 0, checked.output
    assert "6 features, response 'y'" in checked.stdout
    assert "not declared" not in checked.stdout


def test_the_template_explains_patterns(tmp_path: Path) -> None:
    template(["a", "y"], tmp_path / "t.yaml")
    text = (tmp_path / "t.yaml").read_text()
    assert '"snp_*": {lo: 0, hi: 2}' in text
    assert all(len(line) <= 100 for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.yaml", "columns:\n  a: {lo: 0, hi: 1}\n  a: {lo: 0, hi: 2}\n"),
        ("s.yaml", "columns: {a: {lo: 0, lo: 5, hi: 9}}\nresponse: {name: y, lo: 0, hi: 1}\n"),
        ("s.json", '{"columns": {"a": {"lo": 0, "hi": 1}, "a": {"lo": 0, "hi": 2}}}'),
    ],
)
def test_nothing_is_declared_twice(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SchemaError, match="declares something twice"):
        Schema.read(tmp_path / name)


@pytest.mark.parametrize(
    ("written", "bound"),
    [("010", 10.0), ("2e1", 20.0), ("2E+1", 20.0), ("-.5", -0.5), ("7", 7.0), ("1:30", None),
     ("0x10", None), ("1_000", None), (".nan", None), (".inf", None), ("yes", None)],
)  # fmt: skip
def test_numbers_of_yaml_are_those_of_people(
    tmp_path: Path, written: str, bound: float | None
) -> None:
    text = f"columns: {{a: {{lo: -9, hi: {written}}}}}\nresponse: {{name: y, lo: 0, hi: 1}}\n"
    (tmp_path / "s.yaml").write_text(text)
    if bound is None:
        with pytest.raises(SchemaError, match="'a'"):
            Schema.read(tmp_path / "s.yaml")
    else:
        assert Schema.read(tmp_path / "s.yaml").columns[0].hi == bound


def test_a_misspelt_variable_gets_a_hint() -> None:
    schema = Schema.from_bounds({"age": (0, 1), "bmi": (0, 1)}, ("y", 0, 1))
    with pytest.raises(dps.ArgumentError, match=r"did you mean 'age'\?"):
        dps.price(None, schema, k=1, epsilon=1, always_include=["agee"])


@pytest.mark.parametrize("value", ["!!bool Zaphod", "!!int ''", "!!float ''", "!!timestamp Zaphod"])
def test_tags_of_yaml_raise_nothing_else(tmp_path: Path, value: str) -> None:
    (tmp_path / "s.yaml").write_text(f"columns: {{a: {{lo: {value}, hi: 1}}}}")
    with pytest.raises(SchemaError, match="not valid YAML") as caught:
        Schema.read(tmp_path / "s.yaml")
    assert SECRET not in str(caught.value)
