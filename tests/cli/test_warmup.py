"""The first run compiles: it says so, once, and `warmup` does it beforehand."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api import select as selection
from dpsubset.cli import app
from dpsubset.cli.warmup import CHAIN, CHAINED, chain
from dpsubset.constraints import CONSTRAINTS
from dpsubset.objective.losses import LOSSES
from dpsubset.search.bounds.block_bound import BlockBound
from dpsubset.search.bounds.support_bounds import SupportBounds


def run(folder: Path, *arguments: str) -> str:
    """The command with a cache of compiled code of its own; what it says on the side."""
    result = subprocess.run(
        [sys.executable, "-m", "dpsubset", *arguments], cwd=folder, check=True, text=True,
        capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    return result.stderr


def test_warmup_is_for_every_loss_and_constraint_unless_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        selection, "select", lambda *_, **k: asked.append((k["loss"], k["constraint"]))
    )
    assert CliRunner().invoke(app, ["warmup"]).exit_code == 0
    assert set(asked) == set(itertools.product(LOSSES, CONSTRAINTS))
    asked.clear()
    assert CliRunner().invoke(app, ["warmup", "--loss", "huber"]).exit_code == 0
    assert set(asked) == {("huber", constraint) for constraint in CONSTRAINTS}


def test_warmup_refuses_what_there_is_not() -> None:
    for option, name in (("--loss", "ols"), ("--constraint", "cube")):
        refused = CliRunner().invoke(app, ["warmup", option, name])
        assert refused.exit_code == 2
        assert f"{option[2:]} must be one of" in refused.stderr


@pytest.mark.parametrize("constraint", CHAINED)
def test_its_hard_search_gets_to_the_bounds_for_columns_that_are_alike(
    constraint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Counter[str] = Counter()
    for kind in (BlockBound, SupportBounds):
        first = kind.__init__

        def counted(self: Any, *given: Any, _first: Any = first, _kind: Any = kind) -> None:
            made[_kind.__name__] += 1
            _first(self, *given)

        monkeypatch.setattr(kind, "__init__", counted)
    x, y = chain()
    dps.select(x, y=y, bounds=dps.Bounds(x=1, y=1), constraint=constraint, **CHAIN)
    assert made["BlockBound"]
    assert made["SupportBounds"] or constraint == "box"


@pytest.mark.statistical  # it compiles for minutes
def test_warmup_compiles_all_that_a_selection_needs(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (50, 31))
    names = [f"v{j}" for j in range(30)]
    np.savetxt(tmp_path / "t.csv", x, delimiter=",", header=",".join([*names, "y"]), comments="")
    schema = dps.Schema.from_bounds(dict.fromkeys(names, (0, 1)), ("y", 0, 1))
    schema.write(tmp_path / "s.yaml")
    asked = ["select", "t.csv", "--schema", "s.yaml", "--k", "2", "--epsilon", "1"]
    assert "Compiling, once" in run(tmp_path, *asked)
    assert "Compiling" not in run(tmp_path, *asked)
    assert "Compiling, once" in run(tmp_path, *asked, "--loss", "hinge")
    assert "Compiling, once" in run(tmp_path, *asked, "--constraint", "l1")
    run(tmp_path, "warmup", "--loss", "logistic", "--loss", "huber", "--constraint", "box")
    for loss in ("logistic", "huber"):
        assert "Compiling" not in run(tmp_path, *asked, "--loss", loss)
    assert "Compiling, once" in run(tmp_path, *asked, "--loss", "huber", "--constraint", "ball")
    assert "Compiling" not in run(tmp_path, *asked, "--quiet")
