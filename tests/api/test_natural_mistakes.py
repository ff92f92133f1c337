"""Mistakes that new users make are refused with what to do instead, before anything is spent."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.ledger.ledger import Ledger
from support.ledgers import made

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X[:, 0]})
SCHEMA = dps.Schema.from_bounds({"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, ("y", -1, 1))
BOUNDS = dps.Bounds(x=1, y=1)
FACTS: dict[str, Any] = {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made("sqlite", tmp_path, epsilon=10)


def select(*given: Any, **more: Any) -> Any:
    return dps.select(*given, **{"k": 1, "epsilon": 1, **more})


MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "several k": (lambda **o: select(FRAME, SCHEMA, k=[1, 2], **o),
                  r"whole number, not list\..* k='auto', or dpsubset\.tune a grid"),
    "k in words": (lambda **o: select(FRAME, SCHEMA, k="three", **o), "whole number, or 'auto'"),
    "k in quotes": (lambda **o: select(FRAME, SCHEMA, k="2", **o), "whole number, or 'auto'"),
    "k is a float": (lambda **o: select(FRAME, SCHEMA, k=2.0, **o), "whole number, not float$"),
    "k of no variable": (lambda **o: select(FRAME, SCHEMA, k=None, **o), "give k, the number"),
    "k twice": (lambda **o: select(FRAME, SCHEMA, max_k=2, **o), "leave out max_k to select"),
    "too large a max_k": (lambda **o: select(FRAME, SCHEMA, k="auto", max_k=4, **o),
                          "max_k must lie between 1 and 3, the number of variables"),
    "max_k of no variable": (lambda **o: select(FRAME, SCHEMA, k="auto", max_k=0, **o),
                             "max_k must lie between 1 and 3"),
    "max_k is a float": (lambda **o: select(FRAME, SCHEMA, k="auto", max_k=2.0, **o),
                         "max_k must be a whole number, not float"),
    "max_k below always_include": (
        lambda **o: select(FRAME, SCHEMA, k=None, max_k=1, always_include=["a", "b"], **o),
        "more than k = 1: they count in k, and in max_k"),
    "a size that cannot be chosen": (
        lambda **o: select(FRAME, SCHEMA, k="auto", mechanism="permute-and-flip", **o),
        "cannot choose the number of variables: .*take penalised or choose-size"),
    "too large a k": (lambda **o: select(FRAME, SCHEMA, k=9, **o), "at most p.*which is 3"),
    "epsilon in words": (lambda **o: select(FRAME, SCHEMA, epsilon="1", **o),
                         "a finite number, not str. It must lie between 1e-9 and 1e6"),
    "no epsilon": (lambda **o: select(FRAME, SCHEMA, epsilon=None, **o), "number, not NoneType"),
    "epsilon in percent": (lambda **o: select(FRAME, SCHEMA, epsilon="10%", **o),
                           "a finite number, not str. It must lie between 1e-9 and 1e6"),
    "epsilon is an array": (lambda **o: select(FRAME, SCHEMA, epsilon=np.array(1.0), **o),
                            "number, not ndarray"),
    "epsilon is infinite": (lambda **o: select(FRAME, SCHEMA, epsilon=float("inf"), **o),
                            "epsilon must be a finite number. It must lie between 1e-9 and 1e6"),
    "all by position": (lambda **o: dps.select(FRAME, SCHEMA, 1, 1, **o),  # type: ignore[misc]
                        r"too many positional arguments: .*by name, as in k=\.\.\."),
    "y twice": (lambda **o: select(FRAME, SCHEMA, y=X[:, 0], **o), "leave y out"),
    "y in place of the schema": (lambda **o: select(FRAME, FRAME["y"], **o),
                                 r"schema must be .* is passed by name, as in y=\.\.\."),
    "ledger is a folder": (lambda **o: select(FRAME, SCHEMA, **{**o, "ledger": "."}),
                           "is a folder: give the path of the ledger's file"),
    "y by name": (lambda **o: select(FRAME, SCHEMA, y="y", **o), "leave y out"),
    "y is among X": (lambda **o: select(FRAME, bounds=BOUNDS, y=FRAME["y"], **o),
                     "column of the name of y.*Leave it out"),
    "no response": (lambda **o: select(FRAME.drop(columns="y"), SCHEMA, **o), "no column 'y'"),
    "another table's schema": (
        lambda **o: select(
            FRAME, dps.Schema.from_bounds({"age": (0, 1), "sex": (0, 1)}, ("cost", 0, 1)), **o
        ), "None of its columns is declared: the schema may be that of another table"),
    "bounds are a pair": (lambda **o: select(X, y=X[:, 0], bounds=(-1, 1), **o),
                          r"dpsubset\.Bounds\(x=\.\.\., y=\.\.\.\)"),
    "bounds by name": (lambda **o: select(FRAME, bounds={"a": (0, 1)}, y=X[:, 0], **o),
                       r"Bounds by name go into a schema: Schema\.from_bounds"),
    "x by name": (lambda **o: select(FRAME, bounds=dps.Bounds(x={"a": 1}, y=1), y=X[:, 0], **o),
                  r"Bounds by name go into a schema: Schema\.from_bounds"),
    "swapped bounds": (lambda **o: select(X, y=X[:, 0], bounds=dps.Bounds(x=(1, -1), y=1), **o),
                       "lo must be smaller than hi, and comes first"),
    "equal bounds": (lambda **o: dps.Schema.from_bounds({"a": (1, 1)}, ("y", 0, 1)),
                     "lo must be smaller than hi"),
    "columns without bounds": (
        lambda **o: dps.Schema.from_bounds(["a"], ("y", 0, 1)),  # type: ignore[arg-type]
        r"columns must be a mapping from names to bounds"),
    "dates as numbers": (
        lambda **o: select(FRAME.assign(a=pd.date_range("2000", periods=60)), SCHEMA, **o),
        "holds datetime64.*kind: date"),
    "no columns": (lambda **o: select(pd.DataFrame(), SCHEMA, **o), "no column 'a'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_what_to_do(ledger: Ledger, mistake: str) -> None:
    call, says = MISTAKES[mistake]
    with pytest.raises((dps.DpsubsetError, TypeError), match=says):
        call(ledger=ledger)
    assert ledger.history().entries == {}


def test_arguments_in_the_wrong_order_are_told_apart(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    FRAME.to_parquet("table.parquet")
    SCHEMA.write("schema.yaml")
    for table in ("table.csv", "table.parquet"):
        for schema in (table, Path(table)):
            with pytest.raises(dps.SchemaError, match=f"{table} is a table.*comes first"):
                select("schema.yaml", schema, ledger=ledger)
    with pytest.raises(dps.TableError, match=r"schema\.yaml.*a bounds file: pass the table first"):
        select("schema.yaml", SCHEMA, ledger=ledger)
    assert ledger.history().entries == {}


@pytest.mark.parametrize(
    "table",
    [
        FRAME.iloc[:0], FRAME.iloc[:1], FRAME[["y", "c", "a", "b"]],
        FRAME.assign(a=pd.array([1, None] * 30, dtype="Int64")),
        FRAME.assign(a=pd.Categorical([0.5, -1] * 30)),
    ],
    ids=["empty", "one row", "other order", "nullable", "categorical"],
)  # fmt: skip
def test_odd_tables_are_no_mistakes(table: pd.DataFrame) -> None:
    assert len(select(table, SCHEMA).features) == 1


@pytest.mark.parametrize("k", [np.int64(1), np.uint8(1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), np.float32(1), np.int64(1)])
def test_numbers_of_other_types_are_numbers(k: Any, epsilon: Any) -> None:
    release = select(FRAME, SCHEMA, k=k, epsilon=epsilon)
    assert release.guarantee.epsilon <= epsilon


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--epsilon", "1"], "give k, the number of variables"),
        (["--k", "2.5", "--epsilon", "1"], "k must be a whole number, or 'auto'"),
        (["--k", "1", "--max-k", "2", "--epsilon", "1"], "leave out max_k"),
        (["--k", "auto", "--max-k", "2.5", "--epsilon", "1"], "valid integer"),
        (["--k", "1", "--epsilon", "one"], "epsilon must be a number"),
        (["--k", "1", "--epsilon", "10%"], "epsilon must be a number, such as 0.5"),
        (["--k", "1", "--epsilon", "1", "--statement", "page.PDF"], "as .html, .md"),
        (["--k", "1", "--epsilon", "1", "--ledger", "."], "is a folder: give the path"),
        (["--k", "1"], "Missing option '--epsilon'"),
        (["--k", "1", "--eps", "1"], "No such option: --eps"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    SCHEMA.write("schema.yaml")
    said = CliRunner().invoke(app, ["select", "table.csv", "--schema", "schema.yaml", *given])
    assert said.exit_code in (2, 5)
    assert says in said.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["schema.yaml", "table.csv"]
