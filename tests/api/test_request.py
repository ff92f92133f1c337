"""Plans, prices and signatures: one list of arguments, and a cost that is known before a draw."""

from __future__ import annotations

import inspect
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.api.problem_spec import LossName, ProblemOptions, build_problem_spec
from dpsubset.api.request import Rule, SelectionOptions, build_request
from dpsubset.objective.losses import LOSSES
from dpsubset.objective.sensitivity import Sensitivity

SCHEMA = dps.Schema.from_bounds({"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, ("y", -1, 1))
X, Y = np.zeros((20, 3)), np.zeros(20)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y)


def keywords(function: Any) -> dict[str, Any]:
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}


PROBLEM = {name: value for name, value in keywords(build_problem_spec).items() if name != "k"}
SELECTION = keywords(build_request) | PROBLEM


def test_types_and_defaults_are_of_the_same_arguments() -> None:
    # y is data, and no option.
    assert set(get_type_hints(ProblemOptions)) == set(PROBLEM) - {"y"}
    assert set(get_type_hints(SelectionOptions)) == set(SELECTION) - {"k", "epsilon", "y"}


@pytest.mark.parametrize(
    ("function", "listed", "own"),
    [
        (dps.select, SELECTION, {"diagnostics", "progress", "ledger"}),
        (dps.simulate, SELECTION, {"draws", "progress"}),
        (dps.price, SELECTION, set()),
        (dps.fit, SELECTION, {"rule", "progress", "ledger"}),
        (dps.price_fit, SELECTION, {"rule"}),
        (dps.top_supports, PROBLEM, {"k", "count", "progress", "solver"}),
        (dps.best_subset, PROBLEM, {"k", "progress", "solver"}),
        (dps.best_in_bucket, PROBLEM, {"k", "anchor", "mistakes", "progress"}),
        (dps.traces_not_private, PROBLEM,
         {"k", "epsilon", "chains", "steps", "every", "lazy", "truth", "best", "sensitivity",
          "seed"}),
    ],
)  # fmt: skip
def test_signatures_show_the_whole_list(function: Any, listed: Any, own: set[str]) -> None:
    shown = keywords(function)
    assert set(shown) == set(listed) | own
    assert {name: shown[name] for name in listed} == listed
    assert not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def test_the_estimator_has_the_arguments_of_select() -> None:
    shown = inspect.signature(dps.PrivateSubsetSelector).parameters
    assert set(shown) == set(SELECTION) - {"y"} | {"schema", "ledger"}
    for name in set(SELECTION) - {"y", "k", "epsilon"}:
        assert shown[name].default == SELECTION[name]


@pytest.mark.parametrize("wrong", [{"epsilonn": 1}, {"k": 1}, {"loss": "hinge", "looss": 1}])
def test_calls_that_do_not_fit_name_the_function(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"^select\(\): "):
        dps.select(X, SCHEMA, y=Y, **wrong)


def test_choices_of_types_are_those_of_the_code() -> None:
    assert set(get_args(LossName)) == set(LOSSES)
    problem = build_request(X, SCHEMA, k=1, epsilon=1, y=Y).setting.problem
    for rule in get_args(Rule):
        assert Sensitivity.of(problem, rule).rule == rule


# -- prices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"neighbours": "add-remove"}, {"mechanism": "exponential", "epsilon": 0.3},
        {"mechanism": "peeling", "delta": 1e-6}, {"loss": "hinge", "constraint": "ball"},
        {"mechanism": "top-r", "options": {"R": 2, "T": 3}}, {"seed": 3},
    ],
    ids=str,
)  # fmt: skip
def test_the_price_is_what_the_release_states(asked: dict[str, Any]) -> None:
    arguments = {"k": 2, "epsilon": 1, **asked}
    priced = dps.price(FRAME, SCHEMA, **arguments)
    assert priced.guarantee == dps.select(FRAME, SCHEMA, **arguments).guarantee
    assert priced.columns == ("a", "b", "c", "y")
    assert "epsilon = " in str(priced)
    assert "a, b, c; to explain y" in str(priced)


def test_a_price_reads_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr("dpsubset.api.sensitive_table.SensitiveTable.read", explode)
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert dps.price(tmp_path / "t.csv", SCHEMA, k=1, epsilon=1).guarantee is not None
    assert dps.price(schema=SCHEMA, k=1, epsilon=1).guarantee is not None
    with pytest.raises(AssertionError, match="values were read"):  # the twin
        dps.select(FRAME, SCHEMA, k=1, epsilon=1)


def test_a_price_that_depends_on_rows(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "mechanism": "top-r",
                             "options": {"R": 2, "T": 3}}  # fmt: skip
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert dps.price(FRAME, SCHEMA, **asked).guarantee is not None
    for unknown in (
        dps.price(tmp_path / "t.csv", SCHEMA, **asked),
        dps.price(None, SCHEMA, **asked),
    ):
        assert unknown.guarantee is None
        assert "once the rows are counted" in str(unknown)


def test_a_price_is_refused_for_what_select_refuses() -> None:
    with pytest.raises(dps.ArgumentError):
        dps.price(FRAME, SCHEMA, k=9, epsilon=1)
    with pytest.raises(dps.TableError, match="no column"):
        dps.price(FRAME.drop(columns="a"), SCHEMA, k=1, epsilon=1)


# -- a float stands for its shortest decimal -----------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "exact"),
    [
        (0.1, Fraction(1, 10)), (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)), (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)), (1e-9, Fraction(1, 10**9)), (2, Fraction(2)),
        (1e6, Fraction(10**6)), (0.30000000000000004, Fraction("0.30000000000000004")),
    ],
)  # fmt: skip
def test_epsilon_is_the_number_that_was_written(epsilon: Any, exact: Fraction) -> None:
    planned = build_request(X, SCHEMA, k=1, epsilon=epsilon, y=Y)
    assert planned.epsilon == exact
    assert planned.guarantee.epsilon == exact


def test_python_and_json_show_the_same_epsilon() -> None:
    release = dps.select(FRAME, SCHEMA, k=1, epsilon=0.1, delta=0.0)
    assert "epsilon = 0.1," in str(release.guarantee)
    assert json.loads(release.to_json())["guarantee"]["epsilon"] == 0.1


# -- what a new user meets -----------------------------------------------------------------------


def test_frames_with_numbers_for_names() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((30, 3)))
    release = dps.select(frame, y=np.zeros(30), bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1)
    assert release.features[0] in ("0", "1", "2")


@pytest.mark.parametrize(
    ("data", "asked", "says"),
    [
        (FRAME, {"y": "y"}, "y must hold the values"),
        (FRAME, {"y": Y}, "leave y out"),
    ],
)
def test_a_response_named_or_given_twice(data: Any, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(dps.DpsubsetError, match=says):
        dps.select(data, SCHEMA, k=1, epsilon=1, **asked)


def test_an_estimator_names_all_that_is_missing() -> None:
    with pytest.raises(dps.ArgumentError, match="k and epsilon and bounds"):
        dps.PrivateSubsetSelector().fit(X, Y)
    with pytest.raises(dps.ArgumentError, match="needs epsilon:"):
        dps.PrivateSubsetSelector(k=1, bounds=dps.Bounds(x=1, y=1)).fit(X, Y)


def test_a_release_for_people() -> None:
    release = dps.select(FRAME, SCHEMA, k=2, epsilon=1)
    text = str(release)
    assert len(text.splitlines()) <= 6
    assert len(text) < 400
    assert all(name in text for name in release.features)
    assert "epsilon = 1" in text
    odd = dps.Schema.from_bounds({"<b>": (-1, 1), "c": (-1, 1)}, ("y", -1, 1))
    page = dps.select(np.zeros((3, 2)), odd, y=np.zeros(3), k=2, epsilon=1)._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    seeded = dps.select(FRAME, SCHEMA, k=1, epsilon=1, seed=1)
    assert "NOT PRIVATE" in str(seeded)
    assert "NOT PRIVATE" in seeded._repr_html_()


def test_the_guarantee_is_of_the_rows_that_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may say that it has other rows: the draw does not go by them, nor may the price."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 6))
    asked: dict[str, Any] = {
        "y": x[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 2, "epsilon": 1, "mechanism": "top-r",
        "options": {"T": 4},
    }  # fmt: skip
    true = dps.select(x, **asked).guarantee
    told = dps.select(x[:100], **{**asked, "y": x[:100, 0]}).guarantee
    assert true != told  # the price of a finite T depends on n
    monkeypatch.setattr("dpsubset.api.sensitive_table.SensitiveTable.rows", 100)
    assert dps.select(x, **asked).guarantee == true
