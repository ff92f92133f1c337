"""The benchmarks run: cheap rows with tiny sizes, and no judgement of any time."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))  # benchmarks are not installed


def test_synthetic_rows_are_what_the_bars_say():
    from benchmarks.data import Shape, scaled

    shape = Shape(4000, 30, k=4, rho=0.6)
    x, y = shape.make()
    assert x.shape == (4000, 30)
    neighbours = [np.corrcoef(x[:, j], x[:, j + 1])[0, 1] for j in range(29)]
    # Standard error of a correlation: about (1 - rho^2)/sqrt(n) = 0.01.
    np.testing.assert_allclose(neighbours, 0.6, atol=0.06)
    np.testing.assert_allclose(x.std(axis=0), 1.0, atol=0.06)
    signal = x[:, [0, 2, 4, 6]].sum(axis=1) / 2.0
    assert signal.var() / (y - signal).var() == pytest.approx(5.0, rel=0.15)
    assert np.abs(scaled(x)).max() == 1.0
    np.testing.assert_array_equal(shape.make()[0], x)


def test_real_tables_fill_the_box():
    from benchmarks.data import real

    for x, y in real().values():
        assert np.abs(x).max() == 1.0
        assert np.abs(y).max() == 1.0
        assert np.isfinite(x).all()


def test_growth_writes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from benchmarks import growth
    from benchmarks.data import Shape

    tiny = growth.Curves(
        base=Shape(200, 12, k=2), n=(100, 200), p=(8, 12), k=(1, 2), epsilon=(1.0, 10.0),
        memory_p=(12,), repeats=1,
    )  # fmt: skip
    monkeypatch.setattr(growth, "Curves", lambda: tiny)
    written = [path.name for path in growth.run(tmp_path)]
    assert written[:2] == ["growth.csv", "growth-memory.csv"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "growth.csv").read_text())))
    assert len(rows) == 4 * 2 * 3  # box, ball, and the box where columns are alike
    assert all(row["finished"] == "True" for row in rows)
    if "growth.png" in written:
        assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_bar_fails_alone_and_the_table_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import benchmarks.__main__ as program
    from benchmarks import bars
    from benchmarks.data import Shape

    def small(run: bars.Run):
        shape = Shape(300, 20, k=2)
        yield from bars._top("B4", shape, 5, 1e9, 1, run)

    def broken(run: bars.Run):
        yield bars.Row("B5", "one that works", 1.0, goal=2.0)
        raise RuntimeError("a reason")

    monkeypatch.setattr(program, "BARS", {"B4": small, "B5": broken})
    monkeypatch.setattr(program.ours, "warm_up", lambda: None)
    assert program.main(["--only", "b4,B5", "--quick", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "bars.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["met", "met", "met", "MISSED"]
    assert "a reason" in rows[-1]["note"]
    assert all(row["ratio"] for row in rows[:2])
    assert len((tmp_path / "bars.csv").read_text().splitlines()) == 5
    text = io.StringIO()
    Console(file=text, width=120).print(program.table([bars.Row("B1", "a case", 3.0, goal=2.0)]))
    assert "MISSED" in text.getvalue()


def test_a_search_that_does_not_finish_is_a_missed_row():
    from benchmarks import runs
    from benchmarks.data import BOUNDS, Shape

    shape = Shape(60, 60, k=5, rho=0.9)
    x, y = shape.make()
    row = runs.selected(
        "B0", "hopeless", x, y, 5, 100.0, {"constraint": "box"}, 1.0, 1.0, "measured", 2, 1e-9,
        BOUNDS,
    )  # fmt: skip
    assert row.verdict == "MISSED"
    assert "not finished" in row.note


def test_a_peer_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import peers

    x, y = np.ones((5, 3)), np.ones(5)
    got = peers.run("okridge", x, y, 1, 1.0, 1.0, sys.executable)
    assert "missing" in got or got["support"]


def test_solver_rows_say_whether_the_optima_agree():
    from benchmarks import solvers
    from benchmarks.data import Shape

    pytest.importorskip("highspy", reason="highspy is not installed")
    (row,) = solvers.rows("B12", 1, 60.0, (("highs", Shape(300, 12, k=2)),))
    assert not row.failed
    assert row.ratio
    assert "same support" in row.note


def test_bars_of_the_losses_on_a_tiny_table():
    from benchmarks import losses
    from benchmarks.data import Shape
    from benchmarks.runs import Run

    run, shape = Run(quick=True), Shape(60, 12, k=2)
    rows = [
        *losses.b13(run, ((shape, "ball", None, 1e9), (shape, "box", 5.0, 1e9))),
        *losses.b14(run, shape),
        *losses.b15(run, shape),
    ]
    # 100 of the 66 supports do not exist: those rows fail, alone.
    assert [row.case for row in rows if row.failed] == [
        f"{loss}, {shape}, {name}: 100 best"
        for loss in ("hinge", "logistic")
        for name in ("default box", "box", "ball", "papers' ball")
    ]
    assert all(row.ratio for row in rows if not row.failed)
    assert "of 100 draws" in rows[0].note
    # Best supports under the logistic loss are shown without a goal.
    assert {row.goal for row in rows if row.case.startswith("logistic") and row.bar == "B14"} == {
        None
    }


def test_defaults_are_timed_beside_the_papers_setting():
    from benchmarks import bars
    from benchmarks.data import Shape

    rows = list(bars.b17(bars.Run(quick=True), (Shape(60, 12, k=2),)))
    assert len(rows) == 2
    assert all(row.ratio and not row.failed for row in rows)


def test_weights_of_features_may_fall():
    from benchmarks.data import Shape

    x, y = Shape(20_000, 12, k=3, rho=0.4, least=0.5).make()
    found = np.linalg.lstsq(x, y, rcond=None)[0][[0, 2, 4]]
    np.testing.assert_allclose(found / found[0], [1.0, 0.75, 0.5], atol=0.05)
    signal = x[:, [0, 2, 4]] @ (np.array([1.0, 0.75, 0.5]) / np.sqrt(1.8125))
    assert signal.var() / (y - signal).var() == pytest.approx(5.0, rel=0.1)


def test_peak_memory_is_taken_for_any_loss():
    from benchmarks import losses
    from benchmarks.data import Shape
    from benchmarks.runs import Run

    one = losses.b16(Run(quick=True), (Shape(60, 12, k=2),))
    peak, draw = next(one), next(one)
    assert peak.unit == "GB"
    assert peak.measured > 0.01
    assert draw.verdict == "met"


def test_settings_of_the_papers_in_scaled_units():
    """1.1 |b| and 50 |b|^2 on variables clipped at 0.5 are what the scaled problem has."""
    from benchmarks.data import PAPERS_BALL, labels

    b, x = np.array([0.3, -0.7]), np.array([0.5, 0.2])
    scaled_b, scaled_x = 0.5 * b, x / 0.5
    assert scaled_x @ scaled_b == pytest.approx(x @ b)
    assert PAPERS_BALL["ridge"] * scaled_b @ scaled_b == pytest.approx(100 / 2 * b @ b)
    assert PAPERS_BALL["radius"] / np.linalg.norm(scaled_b) == pytest.approx(
        1.1 / np.linalg.norm(b)
    )
    np.testing.assert_array_equal(labels(np.array([-0.1, 0.0, 3.0])), [-0.5, 0.5, 0.5])


def test_bars_of_columns_that_are_alike_on_tiny_tables(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import alike
    from benchmarks.runs import Run

    monkeypatch.setattr(alike, "DESIGNS", {"AR 0.9": lambda n, rng: alike._chain(n, 40, 0.9, rng)})
    monkeypatch.setattr(alike, "CATEGORIES", 12)
    monkeypatch.setattr(alike, "NUMBERS", 12)
    run = Run(quick=True)
    rows = [*alike.b18(run), *alike.b21(run)]
    assert len(rows) == (2 * 2 + 1) + 2 + 3 * 2 * 2
    assert all(row.measured is not None and not row.failed for row in rows)
    assert rows[5].note == "16 cells"


@pytest.mark.statistical
def test_the_scripts_of_cold_starts_run(tmp_path: Path) -> None:
    """Each in a process of its own, as the benchmark runs them, but with the code compiled here."""
    from benchmarks import cold

    def run(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, check=True, text=True, capture_output=True
        ).stdout

    run("-c", cold._TABLES, ".", "12")
    kinds = run("-c", cold._WIDE, ".", "1").split()[::2]
    assert {"array", "parquet", "feather", "csv", "pandas"} <= set(kinds)
    assert "nothing is spent" in run(*cold._LEVELS, "--dry-run")
    run("-c", cold._ARRAY)
