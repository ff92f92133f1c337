"""Odd names of columns break no table of a statement and send nothing to a terminal but text."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.base import errors
from dpsubset.base.text import escape_for_terminal
from dpsubset.cli import app
from dpsubset.release.statement.escape import code_span, escape

ESCAPE = "\x1b[31mred\x9b2J"
ODD = [
    "a|b",
    "c`d",
    "`e``",
    "f\ng",
    "h\u2028i",
    "*j*",
    "_k_",
    "[l](m)",
    "<b>",
    "n\\|",
    ESCAPE,
    " o ",
]
PLAIN = ["yearly_cost", "snp_12", "BMI", "größe", "a b", "x.1", "日付", "naïve (kg/m²)"]


def release(names: list[str], response: str = "y|z", **options: Any) -> dps.Release:
    x = pd.DataFrame(np.zeros((5, len(names))), columns=names)
    schema = dps.Schema.from_bounds(dict.fromkeys(names, (0, 1)), (response, 0, 1), **options)
    return dps.select(x, schema, y=np.zeros(5), k=len(names), epsilon=1)


def columns_of(row: str) -> int:
    """How many cells GitHub's Markdown sees in a row of a table."""
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) - 1


def test_odd_names_keep_the_statement_in_shape() -> None:
    made = release(ODD, always_include=[ODD[0], ODD[2]], privacy_unit="one\n| person")
    statement = made.statement()
    lines = statement.split("\n")
    assert statement.splitlines() == lines[:-1]  # no other kind of line break
    start = lines.index("|---|---|---|")
    rows = lines[start + 1 : start + 1 + len(ODD) + 1]
    assert all(columns_of(row) == 3 for row in rows)
    assert lines[start + 1 + len(rows)] == ""
    assert len([line for line in lines if line.startswith("|")]) == len(ODD) + 3
    assert escape_for_terminal(statement.replace("\n", "")) == statement.replace("\n", "")
    for name in (ODD[0], ODD[2]):
        assert code_span(name) in next(line for line in lines if "as declared" in line)
    assert "Unit of privacy: one\\\\n\\| person." in statement


def test_ordinary_names_are_left_alone() -> None:
    statement = release(PLAIN, "cost").statement()
    for name in PLAIN:
        assert f"| {name} | 0 | 1 |" in statement
        assert f"`{name}`" in statement


def test_labels_are_escaped_too() -> None:
    schema = dps.Schema.from_bounds({"a": (0, 1)}, "s`", labels=("n|o", "y*e*s\x1b"))
    made = dps.select(pd.DataFrame({"a": [0.0]}), schema, y=["n|o"], k=1, epsilon=1)
    statement = made.statement()
    assert "| s\\` | n\\|o | y\\*e\\*s\\\\x1b |" in statement
    assert "\x1b" not in statement


@given(st.text(min_size=1))
def test_inline_code_holds_what_it_was_given(text: str) -> None:
    shown = code_span(text)
    fence = re.match("`+", shown)
    assert fence is not None
    inner = shown[len(fence[0]) : -len(fence[0])]
    if inner.startswith(" ") and inner.endswith(" ") and inner.strip(" "):
        inner = inner[1:-1]
    assert inner == escape_for_terminal(text) or not text.strip(" ")
    assert fence[0] not in inner


@given(st.text())
def test_what_is_visible_moves_no_terminal(text: str) -> None:
    shown = escape_for_terminal(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
    assert len(shown.splitlines()) <= 1
    assert escape_for_terminal(shown) == shown
    assert columns_of(f"| {escape(text)} |") == 1


@pytest.mark.parametrize("kind", [errors.ArgumentError, errors.SchemaError, errors.TableError])
def test_errors_hold_no_escape_sequences(kind: type[Exception]) -> None:
    assert str(kind(f"column {ESCAPE}\n")) == "column \\x1b[31mred\\x9b2J\\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose every name holds an escape sequence."""
    names = [f"a{ESCAPE}", f"y{ESCAPE}"]
    pd.DataFrame(np.zeros((5, 3)), columns=[*names, f"z{ESCAPE}"]).to_parquet(
        tmp_path / "t.parquet"
    )
    dps.Schema.from_bounds({names[0]: (0, 1)}, (names[1], 0, 1), privacy_unit=f"u{ESCAPE}").write(
        tmp_path / "s.yaml"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


SELECT = ("select", "t.parquet", "--schema", "s.yaml", "--k", "1", "--epsilon", "1")


@pytest.mark.parametrize(
    "arguments",
    [
        SELECT,
        (*SELECT, "--quiet"),
        (*SELECT, "--out", f"{ESCAPE}.json", "--statement", f"{ESCAPE}.md"),
        (*SELECT, "--always-include", f"b{ESCAPE}"),
        (*SELECT, "--out", f"no{ESCAPE}/r.json"),
        ("schema", "check", "s.yaml", "t.parquet"),
        ("schema", "init", "t.parquet", "--out", f"{ESCAPE}.yaml"),
    ],
)
def test_the_command_prints_no_control_characters(folder: Path, arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.output
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.stdout + result.stderr)
    assert "[31mred" in result.output


def test_the_last_resort_prints_none_either(folder: Path) -> None:
    command = [sys.executable, "-c", "from dpsubset.cli import main; main()", *SELECT]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr)
    start, end = done.stderr.index("{"), done.stderr.rindex("}") + 1
    assert json.loads(done.stderr[start:end])["features"] == [f"a{ESCAPE}"]


@pytest.mark.parametrize("value", ["1", None])
def test_no_color_is_respected(folder: Path, value: str | None) -> None:
    master, terminal = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm"} | ({"NO_COLOR": value} if value else {})
    command = [sys.executable, "-c", "from dpsubset.cli import main; main()", *SELECT, "--k", "9"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal, env=environment)
    os.close(terminal)
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # how Linux reports that the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    assert process.wait() == 2
    error = seen[seen.index(b"Error") - 5 :]
    assert (b"\x1b[31m" in error) is (value is None)
