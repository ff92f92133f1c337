"""The order of a private release: validate, open, price, debit, read, draw, sign.

`api.driver.make_release` is the only place that knows it. Every function that spends is watched
while it runs, and broken twins of the driver must be caught by the same watch.
"""

from __future__ import annotations

import ast
import importlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.api import driver, sensitive_table
from dpsubset.api.driver import Execution
from dpsubset.api.request import (
    ChosenRange,
    DefaultRange,
    EarlierRange,
    SelectionRequest,
    build_request,
)
from dpsubset.base.errors import ColumnTypeWarning
from dpsubset.data import column_selection
from dpsubset.data.readers.passes import Passes
from dpsubset.ledger.ledger import Ledger
from dpsubset.ledger.spending import debited
from dpsubset.mechanisms.permute_and_flip import PermuteAndFlip
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random.source import SystemSource
from support.ledgers import made

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (200, 4))
Y = X[:, 0]
BOUNDS = dps.Bounds(x=1, y=1)
GIVEN: dict[str, Any] = {"y": Y, "bounds": BOUNDS, "k": 2, "epsilon": 1}
EARLIER = dps.select(X, ledger=False, **GIVEN)

#: Everything that spends.
CALLS: dict[str, Callable[..., Any]] = {
    "select": lambda **more: dps.select(X, **GIVEN, **more),
    "select, declared": lambda **more: dps.select(X, response_range="declared", **GIVEN, **more),
    "select, checked": lambda **more: dps.select(X, check_readable=True, **GIVEN, **more),
    "select, add-remove": lambda **more: dps.select(X, neighbours="add-remove", **GIVEN, **more),
    "fit": lambda **more: dps.fit(X, **GIVEN, **more),
    "fit, checked": lambda **more: dps.fit(X, check_readable=True, **GIVEN, **more),
    "fit_released": lambda **more: dps.fit_released(
        EARLIER, X, y=Y, bounds=BOUNDS, epsilon=1, **more
    ),
    "tune": lambda **more: dps.tune(
        X, grid={"k": [1, 2]}, **{**GIVEN, "k": None, "epsilon": 3}, **more
    ),
    "suggest_bounds": lambda **more: dps.suggest_bounds(X, (-5, 5), epsilon=1, **more),
    "private_mean": lambda **more: dps.private_mean(X, (-5, 5), epsilon=1, **more),
    "private_mean, truncated": lambda **more: dps.private_mean(
        X, (-5, 5), epsilon=1, truncation="private", **more
    ),
    "sparse_mean": lambda **more: dps.sparse_mean(X, (-5, 5), s=2, epsilon=1, **more),
    "sparse_regression": lambda **more: dps.sparse_regression(X, intercept=False, **GIVEN, **more),
    "selector": lambda **more: dps.PrivateSubsetSelector(2, 1, bounds=BOUNDS, **more).fit(X, Y),
    "regressor": lambda **more: dps.PrivateSubsetRegressor(2, 1, bounds=BOUNDS, **more).fit(X, Y),
}  # fmt: skip
#: Where the driver is called.
CALLERS = [
    f"dpsubset.{name}"
    for name in ("api.select", "api.fit", "api.fit_released", "api.tune", "api.suggest_bounds",
                 "papers.means", "papers.sparse_regression")
]  # fmt: skip
spending = pytest.mark.parametrize("name", CALLS)


class WatchedTable:
    """A table that notes when its values are read."""

    def __init__(self, table: Any, steps: list[str]) -> None:
        self._table, self._steps = table, steps

    @property
    def rows(self) -> int | None:
        found: int | None = self._table.rows
        return found

    def blocks(self) -> Iterator[Any]:
        self._steps.append("read")
        yield from self._table.blocks()

    def columns(self, *which: slice) -> Iterator[Any]:
        self._steps.append("read")
        yield from self._table.columns(*which)

    def features(self) -> Iterator[Any]:
        self._steps.append("read")
        yield from self._table.features()

    def responses(self) -> Iterator[Any]:
        self._steps.append("read")
        yield from self._table.responses()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of a call, in their order."""
    seen: list[str] = []

    def note(owner: Any, name: str, step: str) -> None:
        plain = getattr(owner, name)

        def noted(*given: Any, **named: Any) -> Any:
            seen.append(step)
            return plain(*given, **named)

        monkeypatch.setattr(owner, name, noted)

    for module in (sensitive_table, column_selection):
        plain = module.open_table  # type: ignore[attr-defined]

        def opened(*given: Any, _plain: Any = plain, **named: Any) -> Any:
            seen.append("open")
            return WatchedTable(_plain(*given, **named), seen)

        monkeypatch.setattr(module, "open_table", opened)
    note(Ledger, "begin", "debit")
    note(Ledger, "release", "sign")
    note(SystemSource, "bits", "draw")
    return seen


def in_order(steps: list[str]) -> bool:
    """Open, one debit, then nothing but reads and draws, of which a read is the first; then one
    signature. A sparse mean opens its table once more while it reads.
    """
    if [steps.count(step) for step in ("debit", "sign")] != [1, 1] or "read" not in steps:
        return False
    debit, sign = steps.index("debit"), steps.index("sign")
    before, between = steps[:debit], [step for step in steps[debit + 1 : sign] if step != "open"]
    return set(before) == {"open"} and between[:1] == ["read"] and sign == len(steps) - 1


@pytest.fixture
def ledgers(tmp_path: Path) -> dict[str, Ledger]:
    for relation in ("replace-one", "add-remove"):
        (tmp_path / relation).mkdir()
    return {
        relation: made("sqlite", tmp_path / relation, epsilon=9, neighbours=relation)
        for relation in ("replace-one", "add-remove")
    }


def ledger_of(name: str, ledgers: dict[str, Ledger]) -> Ledger:
    return ledgers["add-remove" if "add-remove" in name else "replace-one"]


@spending
def test_a_release_is_made_in_order(
    name: str, steps: list[str], ledgers: dict[str, Ledger]
) -> None:
    CALLS[name](ledger=ledger_of(name, ledgers))
    assert in_order(steps), steps


# -- broken twins of the driver --------------------------------------------------------------------


def executed(request: Any, data: Any, y: Any, check: Any = lambda found: found) -> tuple[Any, Any]:
    table = request.open(data, y)
    request = request.with_rows(table.rows)
    passes = Passes(None, request.n_is_public, request.pass_count)
    rng = driver.open_randomness(request.seed)
    return request, request.run(Execution(table, rng, passes, (), check))


def debit_after_read(request: Any, data: Any, y: Any = None, progress: Any = None,
                     ledger: Any = None) -> Any:  # fmt: skip
    request, release = executed(request, data, y)
    with debited(ledger, request.event) as debit:
        return debit.signed(release)


def responses_read_before_the_debit(request: Any, data: Any, y: Any = None, progress: Any = None,
                                    ledger: Any = None) -> Any:  # fmt: skip
    """As if the number of rows were looked up before it is paid for."""
    opened = request.open(data, y)
    for each in getattr(opened, "by_need", {0: opened}).values():
        watched = each if isinstance(each, WatchedTable) else getattr(each, "_table", None)
        list((each.table if watched is None else watched).columns())
    return driver.make_release(request, data, y, progress, ledger)


def no_signature(request: Any, data: Any, y: Any = None, progress: Any = None,
                 ledger: Any = None) -> Any:  # fmt: skip
    request = request.with_rows(request.open(data, y).rows)
    with debited(ledger, request.event) as debit:
        return executed(request, data, y, debit.checked)[1]


def no_debit(request: Any, data: Any, y: Any = None, progress: Any = None,
             ledger: Any = None) -> Any:  # fmt: skip
    return executed(request, data, y)[1]


def two_debits(request: Any, data: Any, y: Any = None, progress: Any = None,
               ledger: Any = None) -> Any:  # fmt: skip
    request = request.with_rows(request.open(data, y).rows)
    with debited(ledger, request.event):
        return driver.make_release(request, data, y, progress, ledger)


TWINS = (debit_after_read, responses_read_before_the_debit, no_signature, no_debit, two_debits)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
@pytest.mark.parametrize("name", ["select", "fit", "fit_released", "tune", "suggest_bounds",
                                  "private_mean", "sparse_mean", "sparse_regression"])  # fmt: skip
def test_another_order_is_caught(
    name: str, twin: Any, steps: list[str], ledgers: dict[str, Ledger],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for module in CALLERS:
        monkeypatch.setattr(importlib.import_module(module), "make_release", twin)
    CALLS[name](ledger=ledger_of(name, ledgers))
    assert steps
    assert not in_order(steps), steps


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["open", "read", "debit", "read", "sign"], ["open", "debit", "read", "read", "sign"]),
        (["open", "draw", "debit", "read", "sign"], ["open", "debit", "read", "draw", "sign"]),
        (["open", "debit", "draw", "read", "sign"], ["open", "debit", "open", "read", "sign"]),
        (["open", "debit", "read", "sign", "read"], ["open", "open", "debit", "read", "sign"]),
        (["debit", "open", "read", "sign"], ["open", "debit", "read", "sign"]),
        (["open", "debit", "sign"], ["open", "debit", "read", "draw", "open", "read", "sign"]),
    ],
)
def test_the_watch_knows_the_order(wrong: list[str], right: list[str]) -> None:
    assert not in_order(wrong)
    assert in_order(right)


def calls_in(source: str) -> set[str]:
    """Names that a module calls or imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            found.add(getattr(node.func, "attr", getattr(node.func, "id", "")))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.name for alias in node.names}
    return found


def test_nothing_but_the_driver_debits() -> None:
    root = Path(dps.__file__).parent
    users = {
        path.relative_to(root).as_posix(): calls_in(path.read_text()) for path in root.rglob("*.py")
    }
    # Nor does anything else open, sign or close a debit.
    for name in ("debited", "Debit", "signed", "begin", "lose"):
        outside = {path for path, names in users.items() if name in names}
        assert {path for path in outside if not path.startswith("ledger/")} <= {"api/driver.py"}
    assert "debited" in users["api/driver.py"]
    assert "debited" in calls_in("from ..ledger import spending\nspending.debited(ledger, event)")


# -- once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [dps.select, dps.fit])
@pytest.mark.parametrize("ledger", [False, True])
def test_each_quantity_is_computed_once(
    call: Any, ledger: bool, ledgers: dict[str, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def wrapper(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return plain(*given, **named)

        monkeypatch.setattr(owner, name, wrapper)

    counted(PermuteAndFlip, "guarantee")
    counted(Sensitivity, "of")
    call(X, ledger=ledgers["replace-one"] if ledger else False, **GIVEN)
    assert counts["guarantee"] == 1
    # The prediction bound of a selection follows the number of rows, which opening tells.
    assert counts["of"] == (2 if call is dps.select else 1)


def test_a_default_range_follows_the_rows_until_it_is_drawn() -> None:
    schema = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
    request = build_request(None, schema, k=1, epsilon=1)
    assert isinstance(request.source, DefaultRange)
    assert request.division_needs_rows
    few, many = request.with_rows(100), request.with_rows(100_000)
    assert few.with_rows(100) is few
    assert few.response_range != many.response_range
    assert few.problem != many.problem
    assert few.with_rows(100_000) == many
    drawn = few.with_rows(100_000, range_is_drawn=True)
    assert (drawn.n, drawn.response_range, drawn.problem) == (100_000, few.response_range,
                                                              few.problem)  # fmt: skip
    assert drawn.guarantee.costs == few.guarantee.costs
    assert set(drawn.guarantee.costs) == {"replace-one"}
    private = build_request(None, schema, k=1, epsilon=1, neighbours="add-remove")
    assert private.with_rows(100) is private
    assert not private.division_needs_rows


def test_who_releases_a_range_pays_for_it() -> None:
    schema = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
    request = build_request(None, schema, k=1, epsilon=1)
    assert request.response_range is not None
    costs = {}
    for kind in (ChosenRange, EarlierRange):
        costs[kind] = request.with_range(kind(request.response_range))
    assert list(costs[ChosenRange].parts) == ["the scale of the response", "the selection"]
    assert list(costs[EarlierRange].parts) == ["the selection"]
    for each in costs.values():
        assert each.guarantee.epsilon == 1
        assert each.problem is each.setting.problem is each.spec.problem


def test_a_request_is_not_changed_by_what_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    request = build_request(X, **GIVEN)
    before = repr(request)
    request.with_rows(200)
    assert isinstance(request, SelectionRequest)
    assert repr(request) == before


# -- warnings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda data, schema: dps.select(data, schema, k=1, epsilon=1),
        lambda data, schema: dps.fit(data, schema, k=1, epsilon=1),
        lambda data, schema: dps.tune(data, schema, grid={"k": [1]}, epsilon=2),
        lambda data, schema: dps.suggest_bounds(data, schema, epsilon=1),
        lambda data, schema: dps.private_mean(data, schema, epsilon=1),
        lambda data, schema: dps.sparse_mean(data, schema, s=1, epsilon=1),
        lambda data, schema: dps.sparse_regression(data, schema, k=1, epsilon=1, intercept=False),
        lambda data, schema: dps.PrivateSubsetSelector(1, 1, schema=schema).fit(
            data[["a", "b"]], data["y"]
        ),
    ],
)
def test_warnings_point_to_the_call(call: Any) -> None:
    schema = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
    text = pd.DataFrame({"a": list("xy") * 20, "b": [0.5] * 40, "y": [0.0, 1.0] * 20})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(text, schema)
    about = [each for each in caught if each.category is ColumnTypeWarning]
    assert about
    assert {each.filename for each in about} == {__file__}
