"""Every command that takes a table reads every kind of file that the others read."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.data.readers.files import _COMPRESSIONS, _ENDINGS

TABLE = pa.table({"a": [0.0, 0.25, 1.0] * 20, "b": [1.0, 0.5] * 30, "y": [0.0, 0.3, 1.0] * 20})
#: A text file may be compressed.
ENDINGS = [*_ENDINGS, *(f".csv{last}" for last in _COMPRESSIONS), ".TSV"]


def write(folder: Path, ending: str) -> str:
    path = folder / f"table{ending}"
    form = _ENDINGS.get("." + ending.lower().split(".")[1])
    if form == "parquet":
        pyarrow.parquet.write_table(TABLE, path)
    elif form == "arrow":
        pyarrow.feather.write_feather(TABLE, path)
    else:
        assert form is not None
        sink = pa.BufferOutputStream()
        pa.csv.write_csv(TABLE, sink, pa.csv.WriteOptions(delimiter=form, quoting_style="none"))
        text = sink.getvalue().to_pybytes()
        if ending.endswith(".zst"):
            with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as stream:
                stream.write(text)
        else:
            pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
            path.write_bytes(pack(text))
    return path.name


def ran(*arguments: str) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 0, f"{arguments}: {found.output}"
    return found.output


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_command_reads_every_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, ending)
    dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1)).write("s.yaml")
    ran("schema", "init", file, "--out", "template.yaml")
    assert "a:" in Path("template.yaml").read_text()
    said = ran("schema", "check", "s.yaml", file)
    assert "has every declared column" in said
    assert "0.25" in ran("schema", "try", "s.yaml", file)
    ran("schema", "fingerprint", "s.yaml", file)
    ran("bounds", "suggest", file, "--schema", "s.yaml", "--epsilon", "1", "--out", "bounds.yaml")
    table = [file, "--schema", "s.yaml", "--epsilon", "1"]
    ran("select", *table, "--k", "1", "--out", "release.json", "--statement", "release.md")
    ran("fit", *table, "--k", "1", "--model", "model.json")
    ran("fit", *table, "--on", "release.json")
    ran("tune", *table, "--grid", "k=1,2", "--quiet")
    predicted = ran("predict", "model.json", file)
    assert len(predicted.splitlines()) >= 60
    verified = ran("verify", "release.json", "--schema", "s.yaml", "--table", file)
    assert verified
    assert json.loads(Path("release.json").read_text())["features"]


def test_an_ending_that_is_not_read_names_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_bytes(b"x")
    found = CliRunner().invoke(app, ["schema", "init", str(tmp_path / "table.xlsx")])
    assert found.exit_code == 2
    for ending in set(_ENDINGS) - {".txt", ".pq", ".ipc"}:
        assert ending in found.output


def test_an_outdated_feather_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "old.feather").write_bytes(b"FEA1" + b"\0" * 64 + b"FEA1")
    found = CliRunner().invoke(app, ["schema", "init", str(tmp_path / "old.feather")])
    assert found.exit_code == 2
    assert "version 1" in found.output
    assert "write it anew" in found.output
