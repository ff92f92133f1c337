"""Searches over private steps: charged for every fit, or refused before the first."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpsubset as dps
from dpsubset.base.errors import BudgetExceeded, LedgerError
from dpsubset.ledger.ledger import Ledger
from dpsubset.sklearn.selector import PrivateSubsetSelector
from support.ledgers import made

RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 1, (60, 4))
Y = X[:, 0]
BOUNDS = dps.Bounds(x=1, y=1)


def selector(ledger: Any, **more: Any) -> PrivateSubsetSelector:
    asked = {"k": 2, "epsilon": 0.5, "bounds": BOUNDS, "response_range": "declared", **more}
    return PrivateSubsetSelector(ledger=ledger, **asked)


def grid(ledger: Any, **more: Any) -> GridSearchCV:
    """3 settings, 5 folds and a refit."""
    steps = Pipeline([("select", selector(ledger)), ("model", LinearRegression())])
    return GridSearchCV(steps, {"select__k": [1, 2, 3]}, cv=5, **more)


def spent(ledger: Ledger) -> tuple[int, Fraction]:
    history = ledger.verify()
    return len(history.entries), history.standing.current.pure


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each fit that has begun."""
    begun: list[int] = []
    plain = PrivateSubsetSelector.fit
    monkeypatch.setattr(
        PrivateSubsetSelector, "fit", lambda self, X, y=None: begun.append(1) or plain(self, X, y)
    )
    return begun


def test_a_search_without_room_is_refused_before_its_first_fit(
    tmp_path: Path, fits: list[int]
) -> None:
    ledger = made("sqlite", tmp_path, epsilon=5)  # for 10 fits
    with pytest.raises(BudgetExceeded, match=r"16 releases cost epsilon = 8, and epsilon = 0 of"):
        grid(ledger).fit(X, Y)
    with pytest.raises(BudgetExceeded, match="16 releases"), dps.reserved(grid(ledger), X, Y):
        pass
    assert fits == []
    assert spent(ledger) == (0, 0)
    cost = dps.ledger_cost(grid(ledger), X, Y)
    assert (cost.fits, cost.cost.pure, cost.fits_in) == (16, 8, False)
    assert "NOT allow" in str(cost)
    dps.select(X, y=Y, bounds=BOUNDS, k=1, epsilon=5, ledger=ledger)  # it can still be used


def test_a_search_with_room_is_charged_for_16_fits(tmp_path: Path, fits: list[int]) -> None:
    ledger = made("sqlite", tmp_path, epsilon=16)
    search = grid(ledger).fit(X, Y)
    assert len(fits) == 16
    assert spent(ledger) == (16, 8)
    assert search.best_estimator_[0].release_.receipt is not None
    with dps.reserved(grid(ledger), X, Y) as paid:
        paid.fit(X, Y)
    assert len(fits) == 32
    assert spent(ledger) == (32, 16)
    assert {entry.state for entry in ledger.history().entries.values()} == {"released"}
    with pytest.raises(BudgetExceeded):
        grid(ledger).fit(X, Y)
    assert len(fits) == 32


@pytest.mark.faults
@pytest.mark.parametrize("room", [5, 8])
def test_workers_draw_on_the_same_ledger(tmp_path: Path, room: int) -> None:
    ledger = made("sqlite", tmp_path, epsilon=room)
    search = grid(str(ledger.address), n_jobs=2)
    if room < 8:
        with pytest.raises(BudgetExceeded):
            search.fit(X, Y)
        assert spent(ledger) == (0, 0)
        return
    with dps.reserved(search, X, Y) as paid:
        paid.fit(X, Y)
    assert spent(ledger) == (16, 8)


def test_fits_that_were_not_made_become_void(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path, epsilon=8)
    with dps.reserved(grid(ledger), X, Y) as paid:
        assert spent(ledger) == (16, 8)  # nobody else can have it
        paid.estimator.fit(X, Y)
    history = ledger.verify()
    states = [entry.state for entry in history.entries.values()]
    assert sorted(states) == ["released", *["void"] * 15]
    assert history.standing.current.pure == Fraction(1, 2)
    with pytest.raises(LedgerError, match="nothing is left"):
        paid.estimator.fit(X, Y)


def test_cross_validation(tmp_path: Path, fits: list[int]) -> None:
    ledger = made("sqlite", tmp_path, epsilon=2)
    steps = make_pipeline(selector(ledger), LinearRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no scores are lost
        warnings.simplefilter("ignore", dps.NotPrivateWarning)
        with pytest.raises(BudgetExceeded, match=r"5 releases cost epsilon = 2\.5"):
            cross_val_score(steps, X, Y, cv=5)
        assert fits == []
        assert len(cross_val_score(steps, X, Y, cv=KFold(4))) == 4
        assert spent(ledger) == (4, 2)
        with pytest.raises(BudgetExceeded):
            cross_val_score(steps, X, Y, cv=KFold(2))
    assert dps.ledger_cost(steps, X, Y, cv=7).fits == 7


def test_a_reservation_for_a_cross_validation(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path, epsilon=2)
    regressor = dps.PrivateSubsetRegressor(2, 0.5, bounds=BOUNDS)  # the ledger is given here
    with dps.reserved(regressor, X, Y, cv=4, ledger=ledger) as paid:
        assert len(cross_val_score(paid, X, Y, cv=4)) == 4
    assert spent(ledger) == (4, 2)


def test_the_dearest_setting_is_reserved_for_the_refit(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path, epsilon=100)
    steps = Pipeline([("select", selector(ledger)), ("model", LinearRegression())])
    search = GridSearchCV(steps, {"select__epsilon": [1, 2]}, cv=2)
    assert dps.ledger_cost(search, X, Y).cost.pure == 2 * (1 + 2) + 2
    with dps.reserved(search, X, Y) as paid:
        paid.fit(X, Y)
    assert spent(ledger) == (5, 8)


def test_what_is_counted(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path, epsilon=100)
    frame = pd.DataFrame(X, columns=list("abcd"))
    schema = dps.Schema.from_bounds(dict.fromkeys("abcd", (-1, 1)), ("y", -1, 1))
    private = selector(ledger)
    late = PrivateSubsetSelector(2, 0.5, schema=schema, ledger=ledger)
    for estimator, fits in (
        (private, 1),
        (make_pipeline(private, clone(LinearRegression())), 1),
        (make_pipeline(FunctionTransformer(), late, LinearRegression()), 1),
        (FeatureUnion([("a", private), ("b", selector(ledger))]), 2),
        (ColumnTransformer([("a", late, list("abcd"))]), 1),
        (RandomizedSearchCV(private, {"k": [1, 2, 3]}, n_iter=2, cv=3, random_state=1), 7),
        (GridSearchCV(grid(ledger), {"estimator__select__ridge": [0.0, 1.0]}, cv=2), 5 * 16),
        (GridSearchCV(private, {"k": [1]}, refit=False, cv=[([0, 1], [2])]), 1),
    ):
        assert dps.ledger_cost(estimator, frame, Y).fits == fits, estimator
    for wrong, says in (
        (BaggingRegressor(make_pipeline(private, LinearRegression())), "how often"),
        (RandomizedSearchCV(private, {"k": [1, 2]}, n_iter=2), "random_state"),
        (make_pipeline(FunctionTransformer(), private), "needs a schema"),
        (LinearRegression(), "one ledger"),
        (make_pipeline(selector(None), LinearRegression()), "one ledger"),
    ):
        with pytest.raises(dps.ArgumentError, match=says):
            dps.ledger_cost(wrong, frame, Y)
    assert spent(ledger) == (0, 0)


def test_a_search_whose_fits_cannot_be_counted_is_charged_fit_by_fit(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path, epsilon=1)
    inner = make_pipeline(selector(ledger), LinearRegression())
    bagged = BaggingRegressor(inner, n_estimators=3, bootstrap=False)
    with pytest.raises(BudgetExceeded):
        bagged.fit(X, Y)
    assert spent(ledger) == (2, 1)
    groups = np.repeat([0, 1], 30)
    with pytest.raises(BudgetExceeded):
        cross_val_score(selector(ledger), X, Y, cv=LeaveOneGroupOut(), groups=groups,
                        error_score="raise", scoring=lambda *_: 0.0)  # fmt: skip


def test_no_ledger_means_no_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsubset.sklearn.budget.check_search_budget", lambda step: 1 / 0)
    search = grid(None)
    search.fit(X, Y)
    assert grid(False).fit(X, Y).best_estimator_[0].release_.receipt is None
