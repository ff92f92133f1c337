"""Constraints and row losses are values with kernels: complete, and compiled when they change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import dpsubset
from dpsubset import constraints
from dpsubset.base.kernels import compiled
from dpsubset.constraints import base as constraint_base
from dpsubset.data.products import Products
from dpsubset.objective import losses
from dpsubset.objective.losses import base as loss_base
from dpsubset.search.bounds.kernels import KernelRegion


def kernels(module: Any) -> set[str]:
    """The names that a module hands to the values: functions made by `own`."""
    return {
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == "dpsubset.base.kernels.values" and name != "own"
    }


@pytest.mark.parametrize("name", constraints.CONSTRAINTS)
def test_a_constraint_has_every_kernel(name: str) -> None:
    kind = constraints.CONSTRAINTS[name]
    wanted = kernels(constraint_base) - (set() if kind.is_joint() else {"best_multipliers"})
    assert len(wanted) > 5
    for kernel in wanted:
        assert callable(getattr(kind, kernel).py_func), kernel


@pytest.mark.parametrize("name", losses.LOSSES)
def test_a_row_loss_has_every_kernel_and_keeps_its_promises(name: str) -> None:
    loss = losses.LOSSES[name]
    if loss.rows is None:
        return
    for prediction_bound in (Fraction(1, 10), Fraction(1), Fraction(7)):
        value = loss.rows(prediction_bound)
        wanted = kernels(loss_base)
        assert len(wanted) > 5
        for kernel in wanted:
            assert callable(getattr(type(value), kernel).py_func), kernel
        assert value.labels == loss.labels
        assert value.largest() >= max(1.0, loss_base.steepest(value) / 2)
        # No loss is above 1 without a prediction.
        for y in (-32767, -1, 0, 5, 32767):
            assert 0 <= value.at_zero(np.array([y], dtype=np.int16)) <= 1


def test_names_are_those_of_the_tables() -> None:
    assert list(get_args(constraints.ConstraintName)) == list(constraints.CONSTRAINTS)
    assert list(get_args(losses.LossName)) == list(losses.LOSSES)


def test_what_kernels_get_shows_no_data() -> None:
    held = np.array([[31234]], dtype=np.int64)
    shown = repr(Products(held, held[0], held[0], held.astype(np.int16)))
    shown += repr(KernelRegion(*[held[0].astype(np.int8)] * 2, *[held[0]] * 3))
    assert "31234" not in shown
    assert "2" not in shown


def test_a_changed_kernel_is_compiled_anew(tmp_path: Path) -> None:
    """Also where it is compiled into kernels of other files, and where a class is gone."""
    package = tmp_path / "dpsubset"
    shutil.copytree(
        Path(dpsubset.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    program = (
        "import numpy as np\n"
        "from dpsubset.constraints import CONSTRAINTS\n"
        "from dpsubset.search.bounds.kernels import gains\n"
        "g = np.empty(1)\n"
        "gains(np.ones(1), np.zeros(1), np.full(1, 2, dtype=np.int8), CONSTRAINTS['box'](1.0),"
        " np.zeros(1), 0.0, 0.0, g)\n"
        "print(g[0])\n"
    )

    def run() -> float:
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "c")}
        done = subprocess.run([sys.executable, "-c", program], env=env, check=True, text=True,
                              capture_output=True)  # fmt: skip
        return float(done.stdout)

    assert run() == 2.0
    box = package / "constraints" / "box.py"
    text = box.read_text(encoding="utf-8")
    changed = text.replace("return box.radius * (2.0 * w", "return 10.0 * box.radius * (2.0 * w")
    assert changed != text
    box.write_text(changed, encoding="utf-8")
    assert run() == 20.0
    # The class has another home: what was kept for the old one is not looked at.
    box.rename(package / "constraints" / "cube.py")
    table = package / "constraints" / "__init__.py"
    text = table.read_text(encoding="utf-8").replace("from .box import", "from .cube import")
    table.write_text(text, encoding="utf-8")
    assert run() == 20.0
    assert compiled.SOURCES in dpsubset.constraints.box.Box.gain.py_func.__qualname__
