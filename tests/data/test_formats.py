"""Declared formats of cells, separators of text files, and how sample rows read."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.data.readers import open_table
from dpsubset.data.readers.cells import from_objects, reader
from dpsubset.schema.column import Column, Missing
from dpsubset.schema.formats import NumberFormat

DAYS = {"lo": "1970-01-01", "hi": "2030-01-01"}
WIDE = {"lo": -1e6, "hi": 1e6}
DOLLARS = {"thousands": ",", "currency": "$"}
EUROS = {"thousands": ".", "decimal": ",", "currency": "€"}
nan = float("nan")


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("entry", "cells"),
    [
        (
            WIDE | {"format": DOLLARS},
            {
                "$1,187.57": 1187.57, "1187.57": 1187.57, "1,187": 1187, "-$5": -5, "$-5": -5,
                "+5": 5, " $ 1,000.5\t": 1000.5, "5$": 5, "$.5": 0.5, "5.": 5, "1,5": nan,
                "12,34": nan, "1,2345": nan, ",123": nan, "$": nan, "$$5": nan, "$5$": nan,
                "(5)": nan, "1e3": nan, "inf": nan, "nan": nan, "": nan, "€5": nan, "$5 x": nan,
            },
        ),
        (
            WIDE | {"format": EUROS},
            {
                "1.234,56 €": 1234.56, "1.234,56\u00a0€": 1234.56, "€1,5": 1.5, "1.234": 1234,
                "0.5": nan, "1.5": nan, "1,5": 1.5, "1 234": nan, "-1.234.567,8": -1234567.8,
            },
        ),
        (
            WIDE | {"format": {"currency": "USD", "parentheses": True}},
            {"(5.5)": -5.5, "(USD 5)": -5, "USD(5)": -5, "(5) USD": -5, "(-5)": nan, "(5": nan,
             "5)": nan, "USD 5": 5, "-5": -5, "()": nan},
        ),
        (WIDE | {"format": {"thousands": "\u202f", "decimal": ","}},
         {"1\u202f234,5": 1234.5, "1 234": nan}),
        (WIDE | {"format": {"thousands": "'", "currency": "Rs."}}, {"Rs.1'234.5": 1234.5}),
        (
            DAYS | {"format": "%m/%d/%Y"},
            {
                "01/02/1970": 1, "1/2/1970": 1, " 01/02/1970\t": 1, "13/01/1970": nan,
                "1970-01-02": nan, "01/02/70": nan, "02/29/1972": 789, "02/29/1971": nan,
                "01/02/1970x": nan, "": nan, "001/02/1970": nan, "00/02/1970": nan,
            },
        ),
        (DAYS | {"format": "%d.%m.%Y"}, {"02.01.1970": 1, "2.1.1970": 1, "02/01/1970": nan}),
        (DAYS | {"format": "%Y%m%d"},
         {"19700102": 1, "1970012": nan, "19700230": nan, "197001021": nan}),
        (DAYS | {"format": "%d-%b-%Y"},
         {"02-Jan-1970": 1, "2-JAN-1970": 1, "2-January-1970": nan, "2-Jän-1970": nan}),
        (DAYS | {"format": "%B %d, %Y"},
         {"May 1, 1970": 120, "january 2, 1970": 1, "Jan 2, 1970": nan}),
        (DAYS | {"format": "%d.%m.%Y %H:%M:%S.%f"},
         {"01.01.1970 06:00:00.0": 0.25, "01.01.1970 24:00:00.0": nan, "01.01.1970": nan}),
        (DAYS | {"format": "%Y"}, {"1971": 365, "71": nan}),
        (DAYS | {"format": "%m%%%Y"}, {"02%1970": 31}),
    ],
)  # fmt: skip
def test_text_is_read_by_its_format(entry: dict[str, Any], cells: dict[str, float]) -> None:
    read = reader(Column("a", **entry))
    np.testing.assert_array_equal(from_objects(list(cells), read), list(cells.values()))
    for cell, value in cells.items():  # each by itself, and as bytes
        np.testing.assert_array_equal(from_objects([cell.encode()], read), [value])


def test_formats_are_about_text_alone() -> None:
    number = reader(Column("a", **WIDE, format=DOLLARS))
    np.testing.assert_array_equal(
        from_objects([5, 1e300, None, datetime.date(1970, 1, 2)], number), [5, 1e300, nan, nan]
    )
    date = reader(Column("a", **DAYS, format="%m/%d/%Y"))
    np.testing.assert_array_equal(from_objects([datetime.date(1970, 1, 2), 5], date), [1, nan])
    digits = reader(Column("a", **DAYS, format="%d%m%Y"))
    cells = [2011970, 2011970.0, 2011970.5, True, -1, nan, 1e300, "02011970"]
    np.testing.assert_array_equal(from_objects(cells, digits), [1, 1, nan, nan, nan, nan, nan, 1])


def test_codes_for_missing_cells_may_be_written_in_the_format() -> None:
    money = Column("a", **WIDE, format=DOLLARS, missing=Missing(("$9,999", -1)))
    cells = ["$9,999.00", "9999", "-$1", "$5", 9999]
    np.testing.assert_array_equal(from_objects(cells, reader(money)), [nan, nan, nan, 5, nan])
    dated = Column("a", **DAYS, format="%m/%d/%Y", missing=Missing(("01/02/1970",)))
    cells = ["1/2/1970", "1/3/1970"]
    np.testing.assert_array_equal(from_objects(cells, reader(dated)), [nan, 2])


SCHEMA = dps.Schema.from_bounds(
    {"seen": DAYS | {"format": "%m/%d/%Y"}, "day": DAYS | {"format": "%Y%m%d"}},
    {"name": "cost", "lo": 0, "hi": 1e4, "format": DOLLARS},
)
ROWS = {
    "seen": ["01/02/1970", "1970-01-02", None, "2/1/1970"],
    "day": ["19700102", "02/01/1970", "", "19700201"],
    "cost": ["$1,187.57", "1.187,57", "(3)", "12"],
}
READ = [[1, 1, 1187.57], [nan] * 3, [nan] * 3, [31, 31, 12]]


def test_every_container_reads_formats_alike(tmp_path: Path) -> None:
    table = pa.table(ROWS)
    pq.write_table(table, tmp_path / "t.parquet")
    pd.DataFrame(ROWS).to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame(ROWS).to_csv(tmp_path / "s.csv", index=False, sep=";")
    semicolons = dps.Schema.from_dict({**SCHEMA.to_dict(), "separator": ";"})
    frame = pd.DataFrame(ROWS)
    folded = pa.table({name: table[name].dictionary_encode() for name in ROWS})
    beside = np.array([ROWS["seen"], ROWS["day"]], dtype=object).T
    for data, schema, y in (
        (tmp_path / "t.parquet", SCHEMA, None), (tmp_path / "t.csv", SCHEMA, None),
        (tmp_path / "s.csv", semicolons, None), (table, SCHEMA, None), (folded, SCHEMA, None),
        (frame, SCHEMA, None), (frame.astype(object), SCHEMA, None),
        (frame.astype("category"), SCHEMA, None), (pl.DataFrame(ROWS), SCHEMA, None),
        (beside, SCHEMA, ROWS["cost"]), (beside.tolist(), SCHEMA, np.array(ROWS["cost"])),
    ):  # fmt: skip
        found = [np.column_stack([x, y]) for x, y in open_table(data, schema, y).blocks()]
        np.testing.assert_array_equal(np.vstack(found), READ)
    numbers = pd.DataFrame({"seen": ROWS["seen"], "day": [19700102, 0, 0, 19700201]})
    assert doubtful(numbers.assign(cost=1.0)) == []


def doubtful(frame: pd.DataFrame) -> list[str]:
    return list(dps.price(frame, SCHEMA, k=1, epsilon=1).warnings)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (DAYS | {"format": "%m/%d/%y"}, "century"),
        (DAYS | {"format": "%d/%m"}, "year %Y"),
        (DAYS | {"format": "%Y-%d"}, "only together with all larger"),
        (DAYS | {"format": "%Y-%m-%b"}, "twice"),
        (DAYS | {"format": "%Y %q"}, "unknown code %q"),
        (DAYS | {"format": "%Y%"}, "unknown code %"),
        (DAYS | {"format": 5}, "such as %m/%d/%Y"),
        (DAYS | {"format": DOLLARS}, "such as %m/%d/%Y"),
        (WIDE | {"format": "%Y"}, "kind: date"),
        (WIDE | {"format": {"decimal": ";"}}, "decimal must be"),
        (WIDE | {"format": {"thousands": "."}}, "thousands must be"),
        (WIDE | {"format": {"currency": "5"}}, "currency must be"),
        (WIDE | {"format": {"currency": "-"}}, "currency must be"),
        (WIDE | {"format": {"euro": 1}}, "unknown entries euro"),
        (WIDE | {"format": {"parentheses": 1}}, "parentheses must be"),
        ({"kind": "boolean", "format": DOLLARS}, "numbers and dates"),
        ({"levels": ["a", "b"], "format": DOLLARS}, "goes with bounds"),
    ],
)
def test_wrong_formats_are_refused(entry: dict[str, Any], says: str) -> None:
    with pytest.raises(dps.SchemaError, match=says):
        Column("a", **entry)


def test_formats_survive_files_and_count_in_fingerprints(tmp_path: Path) -> None:
    for name in ("s.yaml", "s.json"):
        SCHEMA.write(tmp_path / name)
        again = dps.Schema.read(tmp_path / name)
        assert again == SCHEMA
        assert again.fingerprint() == SCHEMA.fingerprint()
    plain = dps.Schema.from_bounds({"seen": DAYS, "day": DAYS}, ("cost", 0, 1e4))
    assert plain.fingerprint() != SCHEMA.fingerprint()
    # Of a schema without formats it is what it always was.
    assert dps.Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1)).fingerprint() == (
        "e66bb823fee4c7c91f98827b871c87935dcd9d9b07697f5d95c5b243cf9125e2"
    )
    assert Column("a", 0, 1, format=NumberFormat()) == Column("a", 0, 1)
    text = dps.select(pd.DataFrame(ROWS), SCHEMA, k=1, epsilon=1).statement()
    assert "text of cells written like %m/%d/%Y" in text
    assert "text of cells written like $1,234.56" in text


def test_predictions_read_formats_and_separators(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    amounts = rng.uniform(0, 9999, 400)
    schema = dps.Schema.from_bounds(
        {"a": {"lo": 0, "hi": 1e4, "format": DOLLARS}, "b": (0, 1)}, ("y", 0, 1e4), separator=";"
    )
    path = tmp_path / "t.csv"
    lines = [f"${a:,.2f};{b:.3f};{a:.2f}" for a, b in zip(amounts, rng.random(400), strict=True)]
    path.write_text("\n".join(["a;b;y", *lines]) + "\n")
    model = dps.fit(path, schema, k=1, epsilon=100).model
    assert model is not None
    again = dps.Model.from_json(model.to_json())
    np.testing.assert_allclose(again.predict(path), amounts, atol=300)
    np.testing.assert_array_equal(
        again.predict(pd.DataFrame({"a": ["$1,000.00", 1000], "b": [0, 0]})),
        again.predict(pd.DataFrame({"a": [1000.0, 1000.0], "b": [0, 0]})),
    )
    (tmp_path / "m.json").write_text(model.to_json())
    (tmp_path / "bars.csv").write_text("a|b\n$1,000.00|0\n")
    found = run("predict", tmp_path / "m.json", tmp_path / "bars.csv", "--separator", "|")
    assert found.exit_code == 0, found.output
    assert float(found.stdout.split()[1]) == pytest.approx(1000, abs=300)


@pytest.mark.parametrize("sign", [";", "|", "\t"])
def test_separators_reach_every_command(sign: str, tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "s.yaml"
    cells = [("a", "b", "y"), *(((str(i % 2), "1,5", str(i % 3))) for i in range(30))]
    path.write_text("\n".join(map(sign.join, cells)) + "\n")
    written = "tab" if sign == "\t" else sign
    refused = run("schema", "init", path, "--out", out)
    assert refused.exit_code == 2
    assert "--separator" in refused.output
    assert not out.exists()
    result = run("schema", "init", path, "--out", out, "--separator", written)
    assert result.exit_code == 0, result.output
    text = out.read_text().replace("{lo: null, hi: null}", "{lo: 0, hi: 2}")
    out.write_text(text.replace("{name: null, lo: null, hi: null}", "{name: y, lo: 0, hi: 2}"))
    schema = dps.Schema.read(out)
    assert schema.separator == sign
    assert run("schema", "check", out, path).exit_code == 0
    result = run("schema", "try", out, path)
    assert "b = '1,5': UNREADABLE" in result.stdout
    assert run("select", path, "--schema", out, "--k", 1, "--epsilon", 1, "--quiet").exit_code == 0
    suggested = tmp_path / "n.yaml"
    result = run("bounds", "suggest", path, "--within", 0, 9, "--columns", "a", "--epsilon", 1,
                 "--out", suggested, "--separator", written)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "separator: " in suggested.read_text()
    bare = dps.Schema.from_dict({k: v for k, v in schema.to_dict().items() if k != "separator"})
    assert bare.fingerprint() == schema.fingerprint()
    with pytest.raises(dps.TableError, match="one field that contains"):
        dps.select(path, bare, k=1, epsilon=1)
    with pytest.raises(dps.TableError, match="one field that contains"):
        dps.suggest_bounds(path, (0, 9), columns=["a"], epsilon=1)
    assert dps.suggest_bounds(path, (0, 9), columns=["a"], epsilon=1, separator=sign)


def test_other_separators_are_refused() -> None:
    with pytest.raises(dps.SchemaError, match="separator must be"):
        dps.Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1), separator="ab")
    with pytest.raises(dps.ArgumentError, match="a schema declares it itself"):
        dps.suggest_bounds(pd.DataFrame(ROWS), SCHEMA, epsilon=1, separator=";")


# -- sample rows ---------------------------------------------------------------------------------

TRIED = dps.Schema.from_bounds(
    {
        "age": {"lo": 0, "hi": 110, "missing": [999, "refused"]},
        "ward": {"levels": ["north", "south"]},
        "seen": {"lo": "1970-01-01", "hi": "2020-01-01"},
    },
    {"name": "cost", "lo": 0, "hi": 1000, "format": DOLLARS},
)
LINES = """age,ward,seen,cost
41,north,1990-01-31,"$1,187.57"
999,east,01/31/1990,12 EUR
refused,,1960-01-01,$5
"""
EXPECTED = [
    ("41", "number", 41.0, None), ("north", "level", "north", None),
    ("1990-01-31", "date", "1990-01-31", None), ("$1,187.57", "number", 1187.57, 1000.0),
    ("999", "missing", None, None), ("east", "unreadable", None, None),
    ("01/31/1990", "unreadable", None, None), ("12 EUR", "unreadable", None, None),
    ("refused", "missing", None, None), ("", "missing", None, None),
    ("1960-01-01", "date", "1960-01-01", "1970-01-01"), ("$5", "number", 5.0, None),
]  # fmt: skip


def test_sample_rows_are_shown_cell_by_cell(tmp_path: Path) -> None:
    path, schema = tmp_path / "rows.csv", tmp_path / "s.yaml"
    path.write_text(LINES)
    TRIED.write(schema)
    pq.write_table(pa.Table.from_pandas(pd.read_csv(path, dtype=str)), tmp_path / "rows.parquet")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    for data in (path, frame, tmp_path / "rows.parquet"):
        found = dps.read_sample(data, schema)
        got = [(cell.text, cell.reads_as, cell.value, cell.counts_as) for cell in found.cells]
        assert got == EXPECTED
    assert [cell.row for cell in dps.read_sample(path, TRIED, rows=1).cells] == [1] * 4
    with pytest.raises(dps.ArgumentError):
        dps.read_sample(path, TRIED, rows=0)
    result = run("schema", "try", schema, path)
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.stdout.splitlines()[0]
    assert "cost = '$1,187.57': number 1187.57, clipped to 1000" in result.stdout
    assert "seen: 2 of 3 cells hold a value, 1 UNREADABLE" in result.stdout
    result = run("schema", "try", schema, path, "--json")
    facts = json.loads(result.stdout)
    assert "NOT PRIVATE" in facts["warning"]
    assert [cell["clipped"] for cell in facts["cells"]].count(True) == 2


def test_a_sample_needs_names() -> None:
    with pytest.raises(dps.DpsubsetError):
        dps.read_sample(np.zeros((2, 2)), dps.Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1)))
