"""dpsubset fit and predict: what they print, write and refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with table.csv and schema.yaml; b and ward count."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "a": rng.uniform(0, 1, 1500), "b": rng.uniform(0, 1, 1500),
        "ward": rng.choice(["x", "y"], 1500),
    })  # fmt: skip
    table["cost"] = table["b"] + 0.5 * (table["ward"] == "y") + rng.normal(0, 0.05, 1500)
    table.to_csv(tmp_path / "table.csv", index=False)
    table.drop(columns="cost").iloc[:5].to_csv(tmp_path / "new.csv", index=False)
    dps.Schema.from_bounds(
        {"a": (0, 1), "b": (0, 1), "ward": {"levels": ["x", "y"]}}, ("cost", 0, 2)
    ).write(tmp_path / "schema.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def fit(*arguments: str, epsilon: str = "100") -> Any:
    return run("fit", "table.csv", "--schema", "schema.yaml", "--k", "2", "--epsilon", epsilon,
               *arguments)  # fmt: skip


def test_writes_release_model_and_statement_and_predicts(folder: Path) -> None:
    result = fit("--out", "r.json", "--model", "m.json", "--statement", "s.md")
    assert result.exit_code == 0, result.stderr
    assert "ward = y" in result.stdout
    release = json.loads((folder / "r.json").read_text())
    assert release["features"] == ["b", "ward"]
    assert release["guarantee"]["epsilon"] == 100
    assert [part["name"] for part in release["guarantee"]["parts"]][-1] == "the fit"
    assert "## Model" in (folder / "s.md").read_text()
    model = dps.Model.load("m.json")
    assert model.coefficients["ward = y"] == pytest.approx(0.5, abs=0.1)
    # An earlier file was paid for.
    assert fit("--model", "m.json").exit_code == 2
    shown = run("predict", "m.json", "new.csv")
    assert shown.exit_code == 0, shown.stderr
    header, *rows = csv.reader(shown.stdout.splitlines())
    assert header == ["prediction"]
    np.testing.assert_allclose([float(r[0]) for r in rows], model.predict("new.csv"))
    assert run("predict", "m.json", "new.csv", "--out", "p.csv").exit_code == 0
    assert (folder / "p.csv").read_text() == shown.stdout


def test_labels_are_predicted_with_their_chances(folder: Path) -> None:
    table = pd.read_csv("table.csv")
    table["cost"] = np.where(table["cost"] > 0.75, "dear", "cheap")
    table.to_csv("table.csv", index=False)
    dps.Schema.from_bounds(
        {"a": (0, 1), "b": (0, 1), "ward": {"levels": ["x", "y"]}}, "cost", labels=("cheap", "dear")
    ).write("schema.yaml")
    assert fit("--model", "m.json").exit_code == 0
    header, *rows = csv.reader(run("predict", "m.json", "new.csv").stdout.splitlines())
    assert header == ["prediction", "chance of dear"]
    assert {row[0] for row in rows} <= {"cheap", "dear"}
    assert all((float(row[1]) > 0.5) == (row[0] == "dear") for row in rows)


def test_a_dry_run_spends_nothing(folder: Path) -> None:
    result = fit("--dry-run", "--share", "0.25", epsilon="1")
    assert result.exit_code == 0, result.stderr
    assert "the fit (epsilon = 0.25)" in result.stdout
    assert "nothing is spent" in result.stdout


@pytest.mark.parametrize(
    "wrong",
    [("--share", "2"), ("--share", "x"), ("--delta", "7"), ("--mechanism", "none"),
     ("--model", "schema.yaml"), ("--neighbours", "both")],
)  # fmt: skip
def test_wrong_arguments_are_refused(folder: Path, wrong: tuple[str, str]) -> None:
    result = fit(*wrong)
    assert result.exit_code == 2
    assert "Error:" in result.stderr


def test_predicting_from_something_else_is_refused(folder: Path) -> None:
    (folder / "m.json").write_text("{}")
    result = run("predict", "m.json", "new.csv")
    assert result.exit_code == 2
    assert "no model file" in result.stderr
    assert run("predict", "nothing.json", "new.csv").exit_code == 2
    fit("--model", "right.json")
    assert run("predict", "right.json", "nothing.csv").exit_code == 2


def on(*arguments: str) -> Any:
    return run("fit", "table.csv", "--schema", "schema.yaml", "--on", "r.json", "--epsilon", "60",
               *arguments)  # fmt: skip


def test_a_fit_on_an_earlier_release(folder: Path) -> None:
    assert run("select", "table.csv", "--schema", "schema.yaml", "--k", "2", "--epsilon", "40",
               "--out", "r.json").exit_code == 0  # fmt: skip
    told = on("--dry-run")
    assert told.exit_code == 0, told.stderr
    assert "epsilon = 100" in told.stdout
    assert "the fit (epsilon = 60)" in told.stdout
    result = on("--out", "f.json", "--model", "m.json", "--width", "4")
    assert result.exit_code == 0, result.stderr
    facts = json.loads((folder / "f.json").read_text())
    assert facts["guarantee"]["epsilon"] == 100
    assert facts["earlier"] == json.loads((folder / "r.json").read_text())["content_digest"]
    assert dps.Model.load("m.json").coefficients["ward = y"] == pytest.approx(0.5, abs=0.1)
    wrongs = (("--k", "2"), ("--mechanism", "exponential"), ("--share", "0.5"), ("--reach", "2"),
              ("--out", "r.json"))  # fmt: skip
    for wrong in wrongs:
        refused = on(*wrong)
        assert refused.exit_code == 2, wrong
    # Of another schema, and changed by hand.
    dps.Schema.from_bounds(
        {"a": (0, 2), "b": (0, 1), "ward": {"levels": ["x", "y"]}}, ("cost", 0, 2)
    ).write("schema.yaml")
    assert "not made from this schema" in on().stderr
    (folder / "r.json").write_text((folder / "r.json").read_text().replace("40", "4"))
    assert "changed after it was written" in on().stderr
    assert run("fit", "table.csv", "--schema", "schema.yaml", "--epsilon", "1").exit_code == 2


def test_options_of_a_selection_reach_the_fit(folder: Path) -> None:
    result = fit("--loss", "huber", "--threshold", "0.5", "--constraint", "l1", "--reach", "1.5",
                 "--ridge", "2", "--out", "r.json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    said = json.loads((folder / "r.json").read_text())["parameters"]
    assert (said["loss"], said["threshold"], said["constraint"]) == ("huber", 0.5, "l1")
    assert said["ridge"] == 2
    assert said["reach"] == pytest.approx(1.5)


def test_another_fit(folder: Path) -> None:
    result = fit("--fit", "objective-perturbation", "--model", "m.json", "--out", "r.json")
    assert result.exit_code == 0, result.stderr
    assert json.loads((folder / "r.json").read_text())["fit"]["mechanism"] == (
        "objective-perturbation"
    )
    assert dps.Model.load("m.json").coefficients["ward = y"] == pytest.approx(0.5, abs=0.15)
    shown = fit("--fit", "objective-perturbation", "--dry-run")
    assert "permute-and-flip, fitted by objective-perturbation" in shown.stdout
    unproven = ("--fit", "gaussian-ols", "--delta", "1e-6")
    refused = fit(*unproven)
    assert refused.exit_code == 2
    assert "allow_unproven" in refused.stderr
    allowed = fit(*unproven, "--allow-unproven")
    assert allowed.exit_code == 0, allowed.stderr
    assert "usually false where columns fill little" in allowed.stdout
    assert fit("--fit", "magic").exit_code == 2
