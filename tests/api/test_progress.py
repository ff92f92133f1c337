"""Progress: what is told of reading a table is the same for neighbouring tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpsubset as dps
from dpsubset.api import sensitive_table as sealed
from dpsubset.data.readers import passes as told_passes
from dpsubset.data.readers.passes import Passes

SCHEMA = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
#: Rows of several batches, and one more: hundredths of the two are not the same.
FEW, MANY = 80, 70_000

KINDS = ["csv", "gz", "parquet", "pandas", "polars", "arrow", "array"]


def frame(rows: int) -> pd.DataFrame:
    cells = np.random.default_rng(0).uniform(0, 1, (rows, 3)).round(3)
    return pd.DataFrame(cells, columns=["a", "b", "y"])


def dressed(table: pd.DataFrame, kind: str, path: Path) -> dict[str, Any]:
    """Arguments that stand for a table."""
    if kind == "array":
        return {"data": table[["a", "b"]].to_numpy(dtype=float), "y": table["y"].to_numpy(float)}
    if kind in ("csv", "gz"):
        name = path.with_suffix(".csv" if kind == "csv" else ".csv.gz")
        table.to_csv(name, index=False)
        return {"data": name}
    if kind == "parquet":
        table.to_parquet(path.with_suffix(".parquet"))
        return {"data": path.with_suffix(".parquet")}
    kinds: dict[str, Callable[[], Any]] = {
        "pandas": lambda: table,
        "polars": lambda: pl.from_pandas(table),
        "arrow": lambda: pl.from_pandas(table).to_arrow(),
    }
    return {"data": kinds[kind]()}


def selecting(function: Any, **more: Any) -> Callable[..., Any]:
    def call(progress: Any, neighbours: str, **table: Any) -> Any:
        return function(
            schema=SCHEMA, k=1, epsilon=1, progress=progress, neighbours=neighbours, **table, **more
        )

    return call


def of_columns(function: Any, **more: Any) -> Callable[..., Any]:
    def call(progress: Any, neighbours: str, data: Any, y: Any = None) -> Any:
        within: Any = {"a": (0, 1), "y": (0, 1)}
        if y is not None:
            data, within = np.column_stack([data, y]), (0, 1)
        return function(data, within, epsilon=1, progress=progress, neighbours=neighbours, **more)

    return call


def refitting(progress: Any, neighbours: str, **table: Any) -> Any:
    release = dps.select(schema=SCHEMA, k=1, epsilon=1, neighbours=neighbours, **table)
    return dps.fit_released(release, progress=progress, epsilon=1, **table)


CALLS: dict[str, Callable[..., Any]] = {
    "select": selecting(dps.select),
    "select, declared": selecting(dps.select, response_range="declared"),
    "fit": selecting(dps.fit),
    "fit, declared": selecting(dps.fit, response_range="declared"),
    "fit_released": refitting,
    "simulate": selecting(dps.simulate, draws=7),
    "simulate, declared": selecting(dps.simulate, draws=7, response_range="declared"),
    "suggest_bounds": of_columns(dps.suggest_bounds),
    "private_mean": of_columns(dps.private_mean),
    "private_mean, truncated": of_columns(dps.private_mean, truncation="private"),
    "sparse_mean": of_columns(dps.sparse_mean, s=1, truncation="private"),
}


def told(call: Callable[..., Any], neighbours: str, table: dict[str, Any]) -> list[float]:
    seen: list[float] = []
    call(seen.append, neighbours, **table)
    assert seen == sorted(set(seen))
    assert 0 < seen[0] <= seen[-1] == 1
    return seen


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_tells_a_private_number_of_rows(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Cells of the one table are kept in memory, those of the other are not.
    monkeypatch.setattr(sealed, "_KEPT_BYTES", 8 * 3 * FEW)
    rows = [FEW, FEW + 1, 0, 1]
    tables = [dressed(frame(n), kind, tmp_path / f"t{n}") for n in rows]
    found = [told(CALLS[name], "add-remove", table) for table in tables]
    assert all(each == found[0] for each in found)
    assert len(found[0]) <= 3


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "array"])
def test_nothing_tells_how_long_a_cell_is(kind: str, name: str, tmp_path: Path) -> None:
    one, other = frame(FEW).astype(str), frame(FEW).astype(str)
    other.loc[3, "a"] = "0." + "5" * 100_000
    found = [
        told(CALLS[name], "replace-one", dressed(table, kind, tmp_path / f"t{i}"))
        for i, table in enumerate((one, other))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_public_number_of_rows_is_told_in_hundredths(kind: str, tmp_path: Path) -> None:
    table = dressed(frame(MANY), kind, tmp_path / "t")
    hundredths = [step / 100 for step in range(1, 101)]
    alone = told(CALLS["select, declared"], "replace-one", table)
    assert alone == ([1.0] if kind in ("csv", "gz") else hundredths)
    # The first pass over a text file counts its rows.
    twice = told(CALLS["select"], "replace-one", table)
    assert twice[-100:] == [step / 200 for step in range(101, 201)]
    assert twice[:-100] == (
        [0.5] if kind in ("csv", "gz") else [step / 200 for step in range(1, 101)]
    )
    assert told(CALLS["select"], "add-remove", table) == [0.5, 1]


def test_moments_are_told_of_like_a_table_in_memory() -> None:
    rows = frame(FEW).to_numpy()
    table = {"data": dps.Moments.from_blocks(SCHEMA, [(rows[:, :2], rows[:, 2])])}
    assert told(CALLS["select"], "add-remove", table) == [1]
    assert told(CALLS["fit"], "add-remove", table) == [0.5, 1]
    assert len(told(CALLS["fit"], "replace-one", table)) == 200


def test_batches_do_not_show() -> None:
    """Whatever a file is cut into, the same numbers are told, also if it has other rows than it
    says.
    """
    found = []
    for sizes in ([1000], [1] * 1000, [999, 1], [0, 300, 0, 700], [], [2000]):
        seen: list[float] = []
        passes = Passes(seen.append, True, 3)
        for _ in range(3):
            assert [len(y) for y in passes.over(map(np.zeros, sizes), 1000)] == sizes
        found.append(seen)
    assert all(seen == found[0] for seen in found)
    assert len(set(found[0])) == 3 * told_passes._STEPS


def test_progress_that_cannot_be_called_is_refused_before_anything_is_spent(
    tmp_path: Path,
) -> None:
    book = dps.Ledger.create(
        tmp_path / "l.db", epsilon=9, unit="one row", data_set="d", owner="o", purpose="p"
    )
    data, within = frame(FEW), {"a": (0, 1)}
    released = dps.select(data, SCHEMA, k=1, epsilon=1)
    calls: list[Callable[..., Any]] = [
        lambda **how: dps.select(data, SCHEMA, k=1, epsilon=1, ledger=book, **how),
        lambda **how: dps.fit(data, SCHEMA, k=1, epsilon=1, ledger=book, **how),
        lambda **how: dps.fit_released(released, data, epsilon=1, ledger=book, **how),
        lambda **how: dps.suggest_bounds(data, within, epsilon=1, ledger=book, **how),
        lambda **how: dps.private_mean(data, within, epsilon=1, ledger=book, **how),
        lambda **how: dps.sparse_mean(data, within, s=1, epsilon=1, ledger=book, **how),
        lambda **how: dps.simulate(data, SCHEMA, k=1, epsilon=1, draws=2, **how),
        lambda **how: dps.best_subset(data, SCHEMA, k=1, **how),
        lambda **how: dps.power(p=3, k=1, snr=1, n=100, epsilon=1, **how),
    ]
    for call in calls:
        for bad in (True, "print", 1):
            with pytest.raises(dps.ArgumentError, match="progress must be a function"):
                call(progress=bad)
    assert book.standing().current.pure == 0
    for call in calls[:6]:
        call(progress=lambda share: None)
    assert book.standing().current.pure == 6
