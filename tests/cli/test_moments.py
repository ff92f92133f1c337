"""Tables of many files on the command line; `dpsubset moments`, `merge` and `--moments`."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app

SCHEMA = dps.Schema.from_bounds(dict.fromkeys("abc", (0, 1)), ("y", 0, 1))
CELLS = np.random.default_rng(0).uniform(0, 1, (90, 4))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSUBSET_LEDGER", raising=False)
    SCHEMA.write("s.yaml")
    Path("d").mkdir()
    for name, part in {"all": CELLS, "d/1": CELLS[:40], "d/2": CELLS[40:]}.items():
        lines = [",".join(map(str, row)) for row in part.tolist()]
        Path(f"{name}.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    return tmp_path


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.output


SELECT = ["--schema", "s.yaml", "--k", "2", "--epsilon", "1", "--seed", "3", "--quiet"]
MANY = [["d"], ["d/*.csv"], ["d/1.csv", "d/2.csv"]]


@pytest.mark.parametrize("files", MANY)
def test_commands_take_many_files_where_they_take_one(files: list[str]) -> None:
    assert run("select", *files, *SELECT) == run("select", "all.csv", *SELECT)
    declared = ["--response-range", "declared", "--model", "m.json", "--force"]
    assert run("fit", *files, *SELECT, *declared) == run("fit", "all.csv", *SELECT, *declared)
    assert run("predict", "m.json", *files) == run("predict", "m.json", "all.csv")
    assert "in each of 2 files" in run("schema", "check", "s.yaml", *files)
    assert "4 columns" in run("schema", "init", *files, "--out", "t.yaml", "--force")
    tried = run("schema", "try", "s.yaml", *files, "--rows", "50")
    assert tried == run("schema", "try", "s.yaml", "all.csv", "--rows", "50")
    suggest = ["--schema", "s.yaml", "--epsilon", "1", "--seed", "1", "--out", "b.yaml", "--force"]
    assert run("bounds", "suggest", *files, *suggest) == run(
        "bounds", "suggest", "all.csv", *suggest
    )


def test_moments_of_two_sites_are_merged_and_selected_from() -> None:
    for site in "12":
        said = run("moments", f"d/{site}.csv", "--schema", "s.yaml", "--out", f"{site}.npz")
        assert "as private as the table" in said
    run("merge", "1.npz", "2.npz", "--out", "both.npz")
    run("moments", "d", "--schema", "s.yaml", "--out", "folder.npz")
    for name in ("1.npz", "both.npz", "folder.npz"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    whole = dps.moments("all.csv", SCHEMA)
    assert dps.Moments.load("both.npz") == dps.Moments.load("folder.npz") == whole
    declared = [*SELECT, "--response-range", "declared"]
    # The default fit of a table may release coefficients, which need the records.
    for command in (["select"], ["fit", "--fit", "noisy-moments"]):
        from_sums = run(*command, "--moments", "both.npz", *declared)
        assert from_sums == run(*command, "all.csv", *declared)
    dry = run("select", "--moments", "both.npz", *SELECT, "--dry-run")
    assert dry.endswith("Nothing is spent.\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["merge", "1.npz", "1.npz", "--out", "x.npz"], "records in common"),
        (["merge", "1.npz", "both.npz", "--out", "x.npz"], "records in common"),
        (["merge", "1.npz", "other.npz", "--out", "x.npz"], "different schemas"),
        (["merge", "1.npz", "all.csv", "--out", "x.npz"], "not a file of moments"),
        (["merge", "1.npz", "--out", "1.npz"], "must be different files"),
        (["moments", "d", "--schema", "s.yaml", "--out", "1.npz"], "exists already"),
        (["moments", "d", "--schema", "s.yaml", "--out", "d/1.csv", "--force"], "different files"),
        (["moments", "d", "d/1.csv", "--schema", "s.yaml", "--out", "x.npz"], "the same file"),
        (["select", "all.csv", "--moments", "1.npz", *SELECT], "and not both"),
        (["select", *SELECT], "give the table"),
        (["select", "--moments", "other.npz", *SELECT], "another schema"),
    ],
)
def test_what_is_refused(words: list[str], says: str) -> None:
    first, second = dps.moments("d/1.csv", SCHEMA), dps.moments("d/2.csv", SCHEMA)
    first.save("1.npz")
    (first + second).save("both.npz")
    other = dps.Schema.from_bounds(dict.fromkeys("abc", (0, 2)), ("y", 0, 1))
    dps.moments("d/2.csv", other).save("other.npz")
    assert says in run(*words, code=2)
    assert not Path("x.npz").exists()
