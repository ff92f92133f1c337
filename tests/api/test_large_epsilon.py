"""A release above epsilon 10 warns once, before the debit, and says what the number means."""

from __future__ import annotations

import warnings
from collections.abc import Callable
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

X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
Y = X[:, 0]
BOUNDS = dps.Bounds(x=1, y=1)
SCHEMA = BOUNDS.schema(["x0", "x1"])
CLASSES = dps.Bounds(x=1, labels=(0, 1))

CALLS: dict[str, Callable[..., Any]] = {
    "select": lambda **more: dps.select(X, y=Y, bounds=BOUNDS, k=1, **more),
    "fit": lambda **more: dps.fit(X, y=Y, bounds=BOUNDS, k=1, **more),
    "tune": lambda **more: dps.tune(X, y=Y, bounds=BOUNDS, grid={"k": [1, 2]}, **more),
    "selector": lambda **more: dps.PrivateSubsetSelector(1, bounds=BOUNDS, **more).fit(X, Y),
    "regressor": lambda **more: dps.PrivateSubsetRegressor(1, bounds=BOUNDS, **more).fit(X, Y),
    "classifier": lambda **more: dps.PrivateSubsetClassifier(1, bounds=CLASSES, **more).fit(
        X, (Y > 0).astype(int)
    ),
    "search": lambda epsilon, ledger: dps.PrivateSearch(
        dps.PrivateSubsetRegressor(bounds=BOUNDS, ledger=ledger), {"k": [1, 2]}, epsilon
    ).fit(X, Y),
    "suggest_bounds": lambda **more: dps.suggest_bounds(
        pd.DataFrame(X, columns=["a", "b"]), (-5, 5), **more
    ),
    "private_mean": lambda **more: dps.private_mean(X, (-5, 5), **more),
}


def warned(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found if one.category is dps.LargeEpsilonWarning]


@pytest.mark.parametrize("name", CALLS)
def test_a_large_epsilon_is_warned_of_once(name: str) -> None:
    (text,) = warned(lambda: CALLS[name](epsilon=20, ledger=False))
    assert "epsilon = 20" in text
    assert "exp(20) = 4.9e+8" in text
    assert warned(lambda: CALLS[name](epsilon=10, ledger=False)) == []


@pytest.mark.parametrize("name", CALLS)
def test_it_comes_before_the_debit(tmp_path: Path, name: str) -> None:
    ledger: Ledger = made("sqlite", tmp_path, epsilon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dps.LargeEpsilonWarning)
        with pytest.raises(dps.LargeEpsilonWarning):
            CALLS[name](epsilon=20, ledger=ledger)
    assert ledger.history().entries == {}


def test_it_points_to_the_call_of_the_user() -> None:
    with pytest.warns(dps.LargeEpsilonWarning) as found:
        CALLS["select"](epsilon=20)
    (one,) = [each for each in found if each.category is dps.LargeEpsilonWarning]
    assert one.filename == __file__


def test_rows_of_a_unit_count_and_two_releases_add_up() -> None:
    unit = dps.Schema.from_dict({**SCHEMA.to_dict(), "rows_per_unit": 3, "unit": "a person"})
    assert warned(lambda: dps.select(X, unit, y=Y, k=1, epsilon=9)) == []
    (text,) = warned(lambda: dps.select(X, unit, y=Y, k=1, epsilon=12))
    assert "epsilon = 12" in text
    first = dps.select(X, SCHEMA, y=Y, k=1, epsilon=6)
    (text,) = warned(lambda: dps.fit_released(first, X, y=Y, epsilon=6))
    assert "epsilon = 12" in text


def test_draws_that_are_not_private_have_warnings_of_their_own() -> None:
    assert warned(lambda: CALLS["select"](epsilon=20, seed=1)) == []
    assert warned(lambda: dps.simulate(X, y=Y, bounds=BOUNDS, k=1, epsilon=20, draws=2)) == []


def test_the_largest_epsilon_has_a_warning_too() -> None:
    (text,) = warned(lambda: CALLS["select"](epsilon=10**6))
    assert "exp(1e+06) = 3.1e+434294" in text


def test_a_price_says_so_and_warns_of_nothing() -> None:
    price = dps.price(X, y=Y, bounds=BOUNDS, k=1, epsilon=20)
    assert "Warning: epsilon = 20 protects little" in str(price)
    assert warned(lambda: dps.price(X, y=Y, bounds=BOUNDS, k=1, epsilon=20)) == []
    assert "protects little" not in str(dps.price(X, y=Y, bounds=BOUNDS, k=1, epsilon=10))


@pytest.mark.parametrize("more", [[], ["--quiet"], ["--dry-run"]])
def test_the_command_line_prints_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    pd.DataFrame({"x0": Y, "x1": X[:, 1], "y": Y}).to_csv("table.csv", index=False)
    SCHEMA.write("schema.yaml")
    asked = ["select", "table.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "20"]
    said = CliRunner().invoke(app, [*asked, *more])
    assert said.exit_code == 0, said.output
    assert said.output.count("Warning: epsilon = 20 protects little") == 1
    assert ("epsilon = 20 protects" in said.stderr) == ("--dry-run" not in more)
