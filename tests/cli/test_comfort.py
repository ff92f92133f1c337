"""What makes the command pleasant: python -m, completion, other spellings, lists for machines."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.cli.terminal import handle_errors
from dpsubset.mechanisms import MECHANISMS

MODULE = (sys.executable, "-m", "dpsubset")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MODULE, *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_python_m() -> None:
    assert run("--version").stdout == f"dpsubset {dps.__version__}\n"
    assert run("select", "--help").stdout.startswith("Usage: dpsubset select ")
    failed = run("schema", "check", "nowhere.yaml")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "Error: cannot read the schema file nowhere.yaml\n"


def test_completion_is_shown_for_the_shell_that_asks() -> None:
    line = f"{shlex.join(MODULE)} --show-completion; exit $?"  # two commands, or bash gives way
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_DPSUBSET_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("dpsubset sel", "select"),
        ("dpsubset schema ch", "check"),
        ("dpsubset select --ou", "--out"),
    ],
)
def test_completion_completes(line: str, word: str) -> None:
    done = run(_DPSUBSET_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" ")))
    assert any(found.startswith(word) for found in done.stdout.split())


@pytest.mark.parametrize("word", ["--neighbours", "--neighbors"])
def test_both_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,y\n1,1\n")
    dps.Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1)).write("s.yaml")
    asked = ["select", "t.csv", "--schema", "s.yaml", "--k", "1", "--epsilon", "1"]
    result = CliRunner().invoke(app, [*asked, word, "add-remove"])
    assert result.exit_code == 0, result.output
    assert "delta = 0, add-remove neighbours" in result.stdout


def test_mechanisms_for_machines() -> None:
    result = CliRunner().invoke(app, ["mechanisms", "--json"])
    assert result.exit_code == 0
    listed: list[dict[str, Any]] = json.loads(result.stdout)
    assert [entry["name"] for entry in listed] == list(MECHANISMS)
    for entry in listed:
        cls = MECHANISMS[entry["name"]]
        assert list(entry["options"]) == [field.name for field in fields(cls)]
        assert (entry["promises"], entry["use_when"]) == (cls.promises, cls.use_when)
        assert entry["delta"] == cls.takes_delta
    assert {"R": None, "T": None, "form": "exponential"} in [entry["options"] for entry in listed]


def test_mechanisms_fit_a_terminal() -> None:
    lines = CliRunner().invoke(app, ["mechanisms"]).stdout.splitlines()
    assert max(map(len, lines)) <= 100
    heads = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert heads == list(MECHANISMS)


def test_a_warning_of_the_package_is_a_line_without_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda said, *_, **__: others.append(str(said)))
    with handle_errors():
        warnings.simplefilter("always")
        warnings.warn_explicit("kept elsewhere", RuntimeWarning, dps.__file__, 1)
        warnings.warn_explicit("of another package", RuntimeWarning, __file__, 1)
    assert capsys.readouterr().err.splitlines() == ["Warning: kept elsewhere"]
    assert others == ["of another package"]
