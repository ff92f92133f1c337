"""`make demo` installs what the demo needs, `make test` what the tests need, in any order."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def planned(folder: Path, target: str) -> list[str]:
    """The installations that make would run."""
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=folder, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if "pip install" in line and "-e" in line]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def stamp(clone: Path, *names: str) -> None:
    """As if these had been installed."""
    (clone / ".venv").mkdir(exist_ok=True)
    later = (clone / "pyproject.toml").stat().st_mtime + 10
    for name in names:
        (clone / ".venv" / name).touch()
        os.utime(clone / ".venv" / name, (later, later))


def test_the_demo_installs_no_tools(clone: Path) -> None:
    (line,) = planned(clone, "demo")
    assert "[" not in line


@pytest.mark.parametrize(
    "target", ["lint", "test", "statistical", "faults", "faults-sample", "browser", "bench"]
)
def test_the_rest_installs_all_of_them(clone: Path, target: str) -> None:
    lines = planned(clone, target)
    assert "[dev,plot]" in lines[-1]


def test_one_after_the_other(clone: Path) -> None:
    stamp(clone, ".made", ".demo")
    assert planned(clone, "demo") == []
    (line,) = planned(clone, "test")
    assert "[dev,plot]" in line
    stamp(clone, ".dev")
    assert planned(clone, "test") == planned(clone, "demo") == []


def test_what_the_tests_need_is_enough_for_the_demo(clone: Path) -> None:
    stamp(clone, ".made")
    done = subprocess.run(
        ["make", "--dry-run", "lint"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert "touch .venv/.demo .venv/.dev\n" in done.stdout


def test_new_requirements_are_installed(clone: Path) -> None:
    stamp(clone, ".made", ".demo", ".dev")
    later = (clone / ".venv" / ".dev").stat().st_mtime + 10
    os.utime(clone / "pyproject.toml", (later, later))
    assert planned(clone, "demo")
    assert planned(clone, "test")
