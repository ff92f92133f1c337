"""What a type checker says of a user's program: `fit` returns a release that has a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.api.fit import AlwaysReleases

PROGRAM = """\
from pathlib import Path

import dpsubset as dps

release = dps.fit("patients.csv", "schema.yaml", k=3, epsilon=1)
age: float = release.model.coefficients["age"]
reveal_type(release.model)
named = dps.fit("patients.csv", "schema.yaml", k=3, epsilon=1, mechanism="exponential", ridge=0.5)
reveal_type(named.model)
names = dps.select(Path("patients.csv"), {"columns": {}, "response": {}}, k=3, epsilon=1)
reveal_type(names.model)
later = dps.fit_released(names, "patients.csv", epsilon=1)
reveal_type(later.model)
perhaps = dps.fit("patients.csv", "schema.yaml", k=3, epsilon=1, mechanism="stability", delta=1e-6)
reveal_type(perhaps.model)


def report(release: dps.Release) -> str:
    return str(release)


print(report(release), report(names))
counts = dps.simulate("patients.csv", "schema.yaml", k=3, epsilon=1)
reveal_type(counts.features.most_common(1)[0][0])
"""

REVEALED = [
    "Model", "Model", "Model | None", "Model", "Model | None", "tuple[str, ...] | None",
]  # fmt: skip


def checked(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    # From another folder than the repository, whose configuration is not the user's.
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "program.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.statistical  # for its minute, not for chance
def test_a_users_program_passes_strict_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYPYPATH", str(Path(dps.__file__).parents[1]))
    found = checked(PROGRAM, tmp_path)
    assert found.returncode == 0, found.stdout
    shown = [line.split('"')[1] for line in found.stdout.splitlines() if "Revealed type" in line]
    assert [text.replace("dpsubset.release.model.", "").replace("builtins.", "")
            for text in shown] == REVEALED  # fmt: skip
    # The twin: what may have no model is not used as if it had one.
    wrong = checked(PROGRAM + "names.model.coefficients\nperhaps.model.coefficients\n", tmp_path)
    assert wrong.stdout.count("union-attr") == 2, wrong.stdout


def test_mechanisms_that_are_typed_to_release_a_model_always_do() -> None:
    for name in get_args(AlwaysReleases):
        assert "nothing" not in dps.MECHANISMS[name].promises
    assert "nothing" in dps.MECHANISMS["stability"].promises
    x = np.zeros((3, 2))
    for name in get_args(AlwaysReleases):
        made = dps.fit(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1, mechanism=name)
        assert isinstance(made.model, dps.Model)


def test_a_release_stays_the_same_class() -> None:
    """Types alone differ: a release that is read from a file equals the one that was made."""
    x = np.zeros((3, 2))
    made = dps.fit(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1)
    assert type(made) is dps.Release
    assert dps.Release[dps.Model] is not None
