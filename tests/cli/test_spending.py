"""Spending: older releases are kept, and a passed limit says what it has cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.base import errors
from dpsubset.cli import app
from dpsubset.cli.outputs import Output
from dpsubset.search import engine
from dpsubset.search.engine import SearchLimitError

NAMES = [f"v{j}" for j in range(30)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with table.csv, thirty variables that say nothing of y, and schema.yaml."""
    x = np.random.default_rng(3).uniform(0, 1, (200, 31)).round(4)
    np.savetxt(
        tmp_path / "table.csv", x, "%.4f", delimiter=",", header=",".join([*NAMES, "y"]),
        comments="",
    )  # fmt: skip
    dps.Schema.from_bounds(dict.fromkeys(NAMES, (0, 1)), ("y", 0, 1)).write(
        tmp_path / "schema.yaml"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def select(*arguments: str, k: str = "2") -> Any:
    asked = ["select", "table.csv", "--schema", "schema.yaml", "--k", k, "--epsilon", "0.7"]
    return CliRunner().invoke(app, [*asked, *arguments])


# -- files that are there already ---------------------------------------------------------------


@pytest.mark.parametrize("option", ["--out", "--statement"])
def test_an_earlier_release_is_not_overwritten(
    folder: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    (folder / "earlier").write_text("paid for")

    def explode(*_: Any) -> None:
        raise AssertionError("something was read")

    with monkeypatch.context() as patched:
        patched.setattr("dpsubset.api.sensitive_table.open_table", explode)
        patched.setattr("dpsubset.api.problem_spec.read_schema", explode)
        refused = select(option, "earlier")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "Error: earlier exists already: choose another name or pass --force\n"
    )
    assert (folder / "earlier").read_text() == "paid for"
    replaced = select(option, "earlier", "--force")
    assert replaced.exit_code == 0, replaced.output
    assert (folder / "earlier").read_text() != "paid for"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_in_the_meantime_is_not_overwritten(
    folder: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not links:  # as on file systems without hard links
        monkeypatch.setattr(os, "link", refuse)
    with Output(folder / "new.json") as output:
        output.draft.write_text("mine")
        output.publish()
    assert (folder / "new.json").read_text() == "mine"
    with Output(folder / "late.json") as output:
        output.draft.write_text("mine")
        (folder / "late.json").write_text("theirs")
        with pytest.raises(FileExistsError):
            output.publish()
    assert (folder / "late.json").read_text() == "theirs"
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


# -- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [("--node-limit", "1"), ("--time-limit", "1e-9")])
def test_a_passed_limit_has_its_own_exit_code_and_says_what_is_spent(
    folder: Path, limit: tuple[str, str]
) -> None:
    result = select("--mechanism", "top-r", "--out", "release.json", *limit, k="4")
    assert result.exit_code == 3, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: the search passed its ")
    assert "nothing is released" in result.stderr
    assert result.stderr.endswith("is spent: epsilon = 0.7\n")
    assert not (folder / "release.json").exists()


def test_a_passed_limit_names_all_that_is_spent(folder: Path) -> None:
    """Also what a finite T adds, which depends on the number of rows; and in Python as well."""
    limits = ("--mechanism", "top-r", "--option", "T=5", "--node-limit", "1")
    result = select(*limits, k="4")
    asked = {"mechanism": "top-r", "options": {"T": 5}}
    told = dps.price("table.csv", "schema.yaml", k=4, epsilon=0.7, **asked)
    assert told.guarantee is None  # before the rows are counted
    spent = float(result.stderr.rpartition("epsilon = ")[2])
    assert 0.7 < spent < 2
    with pytest.raises(SearchLimitError, match=r"is spent: epsilon = 0\.7$"):
        dps.select("table.csv", "schema.yaml", k=4, epsilon=0.7, node_limit=1, mechanism="top-r")
    unproven = ("--mechanism", "mistakes", "--option", "anchor=data", "--allow-unproven")
    result = select(*unproven, "--node-limit", "1", k="4")
    assert result.exit_code == 3
    assert "no guarantee" in result.stderr


def test_help_lists_the_exit_codes() -> None:
    shown = " ".join(CliRunner().invoke(app, ["select", "--help"]).stdout.split())
    codes = shown[shown.index("Exit codes") :]
    for code in ("0:", "1:", "2:", "3:", "128 + n:"):
        assert code in codes


def test_the_error_of_a_limit_stands_with_the_others() -> None:
    assert errors.SearchLimitError is SearchLimitError is dps.SearchLimitError
    assert errors.SearchLimitError is engine.SearchLimitError
    assert errors.SearchLimitError.__module__ == "dpsubset.base.errors"
    assert issubclass(SearchLimitError, (dps.DpsubsetError, RuntimeError))


def test_a_release_holds_what_was_asked_for(folder: Path) -> None:
    assert select("--out", "release.json").exit_code == 0
    assert len(json.loads((folder / "release.json").read_text())["features"]) == 2


# -- what it would cost ---------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_price_does_without_pandas(tmp_path: Path, ending: str) -> None:
    """It takes longer to import than everything else that a dry run does with a table."""
    columns = {"v": [0.5, 0.25], "w": ["x", "y"], "y": [0.5, 0.25]}
    table = tmp_path / f"t.{ending}"
    if ending == "csv":
        pyarrow.csv.write_csv(pyarrow.table(columns), table)
    else:
        pyarrow.parquet.write_table(pyarrow.table(columns), table)
    facts = {
        "response": {"name": "y", "lo": 0, "hi": 1},
        "columns": {"v": {"lo": 0, "hi": 1}, "w": {"levels": ["x", "y"]}},
    }
    code = (
        "import sys, dpsubset as dps\n"
        f"dps.price({str(table)!r}, {facts!r}, k=1, epsilon=1)\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_dry_run_prices_and_reads_no_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr("dpsubset.api.sensitive_table.SensitiveTable.read", explode)
    result = select("--dry-run", "--out", "release.json")
    assert result.exit_code == 0, result.output
    assert "epsilon = 0.7 under replace-one" in result.output
    assert "under add-remove" not in result.output  # how epsilon is divided depends on the rows
    declared = select("--dry-run", "--response-scale", "declared")
    assert "under add-remove" in declared.output
    assert "v0, v1" in result.output
    assert "nothing is spent" in result.output
    assert not (folder / "release.json").exists()
    assert select("--dry-run", "--out", "release.json", k="99").exit_code == 2
    assert select().exit_code == 1  # the twin: without it, values are read
