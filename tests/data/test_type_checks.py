"""Types of a table's columns: proposed as forms, compared with what is declared."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from dpsubset import Schema, SchemaError, TableError, price
from dpsubset.cli import app
from dpsubset.data.type_checks import column_kinds, type_mismatches
from dpsubset.schema.column import Column

TABLE = pa.table(
    {
        "age": pa.array([1, 2]),
        "cut": pa.array(["Zaphod", "Quill"]),
        "kind": pa.array(["Zaphod", "Quill"]).dictionary_encode(),
        "on": pa.array([True, False]),
        "born": pa.array([dt.date(1990, 1, 1), None]),
        "seen": pa.array([dt.datetime(1990, 1, 1), None]),
        "cost": pa.array([1.5, 2.5]),
        "list": pa.array([[1], [2]]),
        "price": pa.array([1, 2]).cast(pa.decimal128(30, 2)),
    }
)
SORTS = {
    "age": "number", "cut": "text", "kind": "category", "on": "boolean", "born": "date",
    "seen": "date", "cost": "number", "list": "other", "price": "number",
}  # fmt: skip


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def files(folder: Path) -> list[Path]:
    pq.write_table(TABLE, folder / "t.parquet")
    feather.write_feather(TABLE, folder / "t.feather")
    with pa.ipc.new_stream(folder / "t.arrow", TABLE.schema) as stream:
        stream.write_table(TABLE)
    return [folder / "t.parquet", folder / "t.feather", folder / "t.arrow"]


def test_sorts_of_files(tmp_path: Path) -> None:
    for path in files(tmp_path):
        assert column_kinds(path) == SORTS
        assert list(column_kinds(str(path))) == TABLE.column_names
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    assert column_kinds(tmp_path / "t.csv") == {}
    for name in ("bad.parquet", "bad.feather"):
        (tmp_path / name).write_bytes(b"Zaphod" * 9)
        with pytest.raises(TableError, match="damaged") as found:
            column_kinds(tmp_path / name)
        assert "Zaphod" not in str(found.value)


def test_sorts_of_frames() -> None:
    flat = TABLE.drop_columns(["list"])
    expected = {name: sort for name, sort in SORTS.items() if name != "list"}
    assert column_kinds(flat) == column_kinds(pl.from_arrow(flat)) == expected
    frame = flat.to_pandas(types_mapper=pd.ArrowDtype)
    assert column_kinds(frame) == expected
    assert column_kinds(np.zeros((2, 2))) == {}


def test_what_objects_are_is_not_looked_at() -> None:
    """The type of such a column is that of its cells, and so is what a library infers of them."""
    for cells in (["a", "b"], [1, 2], [None, dt.date(1990, 1, 1)]):
        frame = pd.DataFrame({"a": pd.Series(cells, dtype=object), "y": [0.5, 1.0]})
        assert column_kinds(frame) == {"y": "number"}


@pytest.mark.parametrize(
    ("name", "column", "doubt"),
    [
        ("cut", {"lo": 0, "hi": 1}, "is text, declared as a number: every cell that does not"),
        ("kind", {"lo": 0, "hi": 1}, "is a category, declared as a number: every cell that"),
        ("cut", {"levels": ["a", "b"]}, None),
        ("cut", {"kind": "boolean"}, None),
        ("cut", {"lo": "1990-01-01", "hi": "2000-01-01"}, "declared as a date: a cell that is not"),
        ("age", {"lo": 0, "hi": 1}, None),
        ("age", {"levels": ["a", "b"]}, "declared as levels: every cell would count as missing"),
        ("age", {"levels": [1, "b"]}, "declared as levels: some of them no cell can have"),
        ("age", {"levels": [1, "2"]}, None),
        ("age", {"lo": "1990-01-01", "hi": "2000-01-01"}, "numbers, declared as a date: no cell"),
        ("on", {"lo": 0, "hi": 1}, None),
        ("on", {"levels": [False, True]}, None),
        ("on", {"levels": [1, 2]}, "some of them no cell can have"),
        ("born", {"lo": 0, "hi": 1}, "is a column of dates, declared as a number: no cell"),
        ("seen", {"lo": "1990-01-01", "hi": "2000-01-01"}, None),
        ("born", {"levels": ["1990-01-01", 3]}, "declared as levels: every cell"),
        ("list", {"lo": 0, "hi": 1}, "it cannot be read"),
        ("list", {"role": "ignored"}, None),
        ("missing", {"lo": 0, "hi": 1}, None),
    ],
)
def test_what_goes_ill_with_a_type(name: str, column: dict[str, Any], doubt: str | None) -> None:
    schema = Schema.from_bounds({name: column, "price": (0, 1)}, ("cost", 0, 1))
    found = type_mismatches(TABLE, schema)
    assert len(found) == (doubt is not None)
    if doubt is not None:
        assert doubt in found[0]
        assert found[0].startswith(f"column {name!r} is ")


def test_labels_and_types() -> None:
    for name, labels, doubt in (("cut", ("a", "b"), 0), ("on", (0, 1), 0), ("on", ("a", "b"), 1)):
        schema = Schema((Column("age", 0, 1),), Column(name, labels=labels))
        assert len(type_mismatches(TABLE, schema)) == doubt


def test_price_tells_them(tmp_path: Path) -> None:
    schema = Schema.from_bounds({"cut": (0, 1), "age": (0, 1)}, ("cost", 0, 1))
    pq.write_table(TABLE, tmp_path / "t.parquet")
    for data in (tmp_path / "t.parquet", TABLE):
        told = price(data, schema, k=1, epsilon=1)
        assert len(told.warnings) == 1
        assert "Warning: column 'cut' is text, declared as a number" in str(told)
    assert price(None, schema, k=1, epsilon=1).warnings == ()


def test_schema_init_proposes_forms_by_type(tmp_path: Path) -> None:
    for path in files(tmp_path):
        out = tmp_path / f"{path.suffix[1:]}.yaml"
        result = run("schema", "init", path, "--out", out)
        assert result.exit_code == 0, result.output
        assert "9 columns with the keys of their types, without bounds" in result.stdout
        text = out.read_text()
        assert "Zaphod" not in text
        assert "  cut: {levels: []}\n  kind: {levels: []}\n" in text  # no references among them
        assert yaml.safe_load(text)["columns"] == {
            "age": {"lo": None, "hi": None},
            "cut": {"levels": []},
            "kind": {"levels": []},
            "on": {"kind": "boolean"},
            "born": {"kind": "date", "lo": None, "hi": None},
            "seen": {"kind": "date", "lo": None, "hi": None},
            "cost": {"lo": None, "hi": None},
            "list": {"role": "ignored"},
            "price": {"lo": None, "hi": None},
        }
        named = text.replace("{name: null, lo: null, hi: null}", "{name: cost, lo: 0, hi: 9}")
        out.write_text(named)
        with pytest.raises(SchemaError, match=r"bounds are missing for: age, born, seen, price; "
                           r"levels are missing for: cut, kind\. "):  # fmt: skip
            Schema.read(out)


def test_schema_init_of_a_file_without_types_shows_the_forms(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\nx,1\n")
    out = tmp_path / "s.yaml"
    assert run("schema", "init", tmp_path / "t.csv", "--out", out).exit_code == 0
    text = out.read_text()
    for form in (
        "levels: [",
        "kind: date",
        "kind: boolean",
        "transform: log",
        "missing: [",
        "group",
    ):
        assert form in text
    assert yaml.safe_load(text)["columns"]["a"] == {"lo": None, "hi": None}


def test_schema_check_tells_what_goes_ill(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    path = tmp_path / "s.yaml"
    Schema.from_bounds({"cut": (0, 1), "age": (0, 1)}, ("cost", 0, 1)).write(path)
    result = run("schema", "check", path, tmp_path / "t.parquet")
    assert result.exit_code == 0, result.output
    assert "column 'cut' is text, declared as a number: every cell that does not" in result.stdout
    Schema.from_bounds({"cut": {"levels": ["a", "b"]}, "age": (0, 1)}, ("cost", 0, 1)).write(path)
    result = run("schema", "check", path, tmp_path / "t.parquet")
    assert "2 features (2 choices of 3 columns in all), response 'cost'" in result.stdout
    assert "declared as" not in result.stdout
