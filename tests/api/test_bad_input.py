"""Edges of the input: the smallest tables, and arguments refused before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpsubset as dps
from dpsubset.data.readers import Progress, open_table
from dpsubset.objective.losses import LOSSES
from support.samples import one_in

SCHEMA = dps.Schema.from_bounds({"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, ("y", -1, 1))
MECHANISMS = ["permute-and-flip", "exponential"]


def frame(n: int = 50) -> pd.DataFrame:
    x = np.random.default_rng(1).uniform(-1, 1, (n, 4))
    return pd.DataFrame(x, columns=["a", "b", "c", "y"])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_k_equal_to_p_selects_everything(mechanism: str) -> None:
    release = dps.select(frame(), SCHEMA, k=3, epsilon=1, mechanism=mechanism)
    assert release.support == (0, 1, 2)
    assert release.features == ["a", "b", "c"]
    assert release.guarantee.epsilon == 1  # what was asked for is what is stated


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_variable_of_one(mechanism: str) -> None:
    schema = dps.Schema.from_bounds({"a": (-1, 1)}, ("y", -1, 1))
    release = dps.select(frame(), schema, k=1, epsilon=1, mechanism=mechanism)
    assert release.features == ["a"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_k_one_finds_a_clear_truth(mechanism: str) -> None:
    table = frame(500)
    table["y"] = 0.9 * table["b"]
    release = dps.select(table, SCHEMA, k=1, epsilon=1e4, mechanism=mechanism)
    assert release.features == ["b"]


def test_everything_always_included() -> None:
    release = dps.select(frame(), SCHEMA, k=2, epsilon=1, always_include=["c", "a"])
    assert release.support == (0, 2)
    assert dps.select(frame(), SCHEMA, k=1, epsilon=1, always_include="b").features == ["b"]


@one_in(5)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("n", [0, 1])
def test_tiny_tables_answer_nearly_uniformly(
    n: int, mechanism: str, neighbours: str, every: int
) -> None:
    draws = 3000 // every
    counts = dps.simulate(
        frame(n), SCHEMA, k=1, epsilon=0.01, draws=draws, mechanism=mechanism,
        neighbours=neighbours, seed=7,
    )  # fmt: skip
    assert set(counts) == {(0,), (1,), (2,)}
    # One row changes probabilities by at most exp(0.01); five standard deviations of chance.
    chance = 5 * (2 / 9 / draws) ** 0.5
    assert all(abs(count / draws - 1 / 3) < 0.01 + chance for count in counts.values())


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "array", "list", "moments"])
def test_an_empty_table_is_an_ordinary_one(
    kind: str, loss: str, neighbours: str, tmp_path: Path
) -> None:
    # A release of one row states what it costs under add-remove, also under replace-one. An error
    # for no rows would tell the two tables apart at any price.
    empty = frame(0)
    empty.to_csv(tmp_path / "t.csv", index=False)
    empty.to_parquet(tmp_path / "t.parquet")
    data: Any = {
        "csv": tmp_path / "t.csv",
        "parquet": tmp_path / "t.parquet",
        "pandas": empty,
        "polars": pl.DataFrame(empty),
        "array": empty[["a", "b", "c"]].to_numpy(),
        "list": [],
        "moments": dps.Moments.from_blocks(SCHEMA, []),
    }[kind]
    y: Any = {"array": empty["y"].to_numpy(), "list": []}.get(kind)
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "loss": loss, "neighbours": neighbours}
    if kind == "moments" and LOSSES[loss].needs_records:
        return
    release = dps.select(data, SCHEMA, y=y, **asked)
    assert len(release.features) == 1
    known = {"replace-one", "add-remove"}
    if release.scale is not None and neighbours == "replace-one":
        known = {"replace-one"}  # the number of rows decided on the scale
    assert set(release.guarantee.costs) == known
    assert release.statement()
    assert dps.simulate(data, SCHEMA, y=y, draws=2, **asked).total() == 2


def test_one_row_under_replace_one() -> None:
    assert len(dps.select(frame(1), SCHEMA, k=2, epsilon=1).features) == 2


WRONG: list[dict[str, Any]] = [
    {"k": 0},
    {"k": -1},
    {"k": 4},
    {"k": 1.0},
    {"k": True},
    {"k": None},
    {"epsilon": 0},
    {"epsilon": -1},
    {"epsilon": float("inf")},
    {"epsilon": float("nan")},
    {"epsilon": None},
    {"epsilon": "1"},
    {"epsilon": True},
    {"epsilon": 10**400},
    {"mechanism": "loud"},
    {"loss": "loud"},
    {"constraint": "cube"},
    {"prediction_bound": 0},
    {"prediction_bound": float("nan")},
    {"radius": -1},
    {"prediction_bound": 1, "radius": 1},
    {"ridge": -1},
    {"ridge": float("inf")},
    {"neighbours": "friends"},
    {"sensitivity": "low"},
    {"always_include": ["d"]},
    {"always_include": [3]},
    {"always_include": [0.5]},
    {"always_include": ["a", "b"], "k": 1},
    {"seed": 1.5},
    {"loss": 3},
    {"threshold": 0.25},
    {"loss": "logistic", "threshold": 0.25},
    *(
        {"loss": "huber", "threshold": wrong}
        for wrong in (0, -1, 0.009, 1.01, 2, float("nan"), float("inf"), "0.5", True, 1j, 10**400)
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_arguments_are_found_before_the_file_is_looked_for(wrong: dict[str, Any]) -> None:
    arguments = {"k": 1, "epsilon": 1, **wrong}
    with pytest.raises(dps.ArgumentError):
        dps.select("there-is-no-such-file.csv", SCHEMA, **arguments)
    # The twin: with sound arguments the same call does look for the file.
    with pytest.raises(dps.TableError, match="there is no file"):
        dps.select("there-is-no-such-file.csv", SCHEMA, k=1, epsilon=1)


def explode(*_: Any) -> None:
    raise AssertionError("values were read")


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_arguments_read_no_value_of_an_array(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsubset.data.readers.matrix.MatrixTable.blocks", explode)
    x, y, bounds = np.ones((5, 3)), np.ones(5), dps.Bounds(x=1, y=1)
    with pytest.raises(dps.ArgumentError):
        dps.select(x, y=y, bounds=bounds, **{"k": 1, "epsilon": 1, **wrong})
    with pytest.raises(AssertionError, match="values were read"):  # the twin
        dps.select(x, y=y, bounds=bounds, k=1, epsilon=1)


def test_the_table_is_checked_before_a_value_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsubset.data.moments.Accumulator.add", explode)
    frame().drop(columns="c").to_csv(tmp_path / "t.csv", index=False)
    frame().assign(c=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "t.parquet")
    for data in (tmp_path / "t.csv", tmp_path / "t.parquet", frame().drop(columns="y")):
        with pytest.raises(dps.TableError):
            dps.select(data, SCHEMA, k=1, epsilon=1)
    with pytest.raises(AssertionError, match="values were read"):  # the twin
        dps.select(frame(), SCHEMA, k=1, epsilon=1)


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        ("t.csv", {}, "schema"),
        ("t.csv", {"bounds": dps.Bounds(x=1, y=1)}, "need a schema"),
        (frame(), {"bounds": dps.Bounds(x=1, y=1)}, "needs a schema"),
        (frame(), {"bounds": (1, 1), "y": frame()["y"]}, "Bounds"),
        (frame(), {"schema": SCHEMA, "bounds": dps.Bounds(x=1, y=1)}, "not both"),
        ("t.csv", {"schema": SCHEMA, "y": [1]}, "y goes with arrays"),
    ],
)
def test_bounds_come_from_one_place(data: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(dps.ArgumentError, match=message):
        dps.select(data, k=1, epsilon=1, **arguments)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("outer", [list, tuple])
@pytest.mark.parametrize("records", [[], [[0.5, 0.25, 1]] * 4, [[1, 2], [3]], [1.0], [None]])
def test_a_list_does_not_declare_its_columns(
    records: list[Any], outer: type, neighbours: str
) -> None:
    data, y = outer(records), [0.5] * len(records)
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "neighbours": neighbours, "y": y}
    for call in (dps.select, dps.simulate, dps.best_subset):
        given = {**asked, "bounds": dps.Bounds(x=1, y=1)}
        if call is dps.best_subset:
            del given["epsilon"]
        with pytest.raises(dps.ArgumentError, match="NumPy array, or bounds with one entry"):
            call(data, **given)
    # The twins: what the message says.
    assert dps.select(data, bounds=dps.Bounds(x=[1] * 3, y=1), **asked).problem.p == 3
    assert dps.select(data, SCHEMA, **asked).problem.p == 3


@pytest.mark.parametrize("draws", [0, -1, 1.5, None])
def test_simulate_needs_draws(draws: Any) -> None:
    with pytest.raises(dps.ArgumentError, match="draws"):
        dps.simulate(frame(), SCHEMA, k=1, epsilon=1, draws=draws)


def test_moments_stand_for_their_table() -> None:
    table = frame(200)
    moments = dps.Moments.from_blocks(SCHEMA, open_table(table, SCHEMA).blocks())
    for seed in range(5):
        asked: dict[str, Any] = {"k": 2, "epsilon": 1, "seed": seed, "response_range": "declared"}
        assert dps.select(moments, SCHEMA, **asked) == dps.select(table, SCHEMA, **asked)


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "array"])
def test_progress_rises_to_one(kind: str, tmp_path: Path) -> None:
    table = frame(200_000)
    if kind == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    data: Any = {
        "csv": tmp_path / "t.csv",
        "parquet": tmp_path / "t.parquet",
        "frame": table,
        "array": table[["a", "b", "c"]].to_numpy(),
    }[kind]
    seen: list[float] = []
    report: Progress = seen.append
    y = table["y"].to_numpy() if kind == "array" else None
    dps.select(data, SCHEMA, y=y, k=1, epsilon=1, progress=report)
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] == 1.0
