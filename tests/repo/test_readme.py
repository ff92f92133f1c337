"""The examples in the README work as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.schema.encoding import Design

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_python_example(capsys: Any) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    assert len(names["release"].features) == 2
    shown = capsys.readouterr().out
    assert "pure epsilon = 1, delta = 0, replace-one neighbours" in shown
    assert "# Privacy statement" in shown
    counts = dps.simulate(
        names["X"], y=names["y"], bounds=dps.Bounds(x=1, y=2), k=2, epsilon=1, draws=200, seed=0
    )
    assert counts[(1, 6)] > 190  # "nearly always"


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("patients.csv").write_text("age,bmi,dose,visits,cost\n" + "50,25,3,2,900\n" * 40)
    text = README.replace("\\\n", " ")
    commands = [
        shlex.split(line, comments=True)[1:]
        for line in text.splitlines()
        if line.startswith("dpsubset ")
    ]
    names = [command[0] for command in commands]
    assert names == ["schema", "schema", "select", "fit", "predict"]
    for command in commands:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        if command[1] == "init":  # what the reader fills in
            bounds = dict.fromkeys(["age", "bmi", "dose", "visits"], (0, 100))
            dps.Schema.from_bounds(bounds, ("cost", 0, 2000)).write("schema.yaml")
    assert Path("release.json").is_file()
    assert Path("statement.md").is_file()
    assert Path("model.json").is_file()


def test_the_bounds_file(tmp_path: Path) -> None:
    kinds, block = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "kinds.yaml").write_text(kinds)
    assert Design.of(dps.Schema.read(tmp_path / "kinds.yaml")).layout.sizes == (1, 3, 1)
    (tmp_path / "schema.yaml").write_text(block)
    names = ["id_1", "age", "snp_1", "cost", "snp_2", "dose"]
    schema = dps.Schema.read(tmp_path / "schema.yaml", names=names)
    assert schema.feature_names == ("age", "snp_1", "snp_2", "dose")
    assert [column.hi for column in (*schema.features, schema.response)] == [110, 2, 2, 1, 20_000]
