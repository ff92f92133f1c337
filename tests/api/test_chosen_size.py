"""k="auto" and max_k: the number of variables is chosen privately, by one of two mechanisms.

The answer is that of the mechanism with k = max_k, whose proof, audit and conformance tests apply.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api import size
from dpsubset.api.request import build_request
from dpsubset.cli import app
from dpsubset.mechanisms import MECHANISMS
from dpsubset.mechanisms.choose_size import ChooseSize
from dpsubset.power_analysis.dry_run_hint import dry_run_hint

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (400, 10))
Y = X @ [0.5, 0.4, 0, 0, 0, 0, 0, 0, 0, 0] + RNG.normal(0, 0.05, 400)
BOUNDS = dps.Bounds(x=1, y=1)
GIVEN: dict[str, Any] = {"y": Y, "bounds": BOUNDS, "epsilon": 2}

#: A penalty at which no variable is worth it.
NOTHING = ChooseSize(phi=10**6)


def request(**given: Any) -> Any:
    return build_request(X, **{**GIVEN, **given})


def test_the_mechanisms_that_choose_a_size_are_two() -> None:
    chooses = {name for name, cls in MECHANISMS.items() if cls.chooses_size}
    assert chooses == {"penalised", "choose-size"}
    assert size.CHOOSES in chooses


@pytest.mark.parametrize("given", [{"k": "auto"}, {"k": "auto", "max_k": 4}, {"max_k": 4}])
def test_auto_is_a_mechanism_with_the_largest_size(given: dict[str, Any]) -> None:
    asked, most = request(**given), given.get("max_k", size.MOST)
    same = request(k=most, mechanism=size.CHOOSES)
    assert (asked.problem, asked.mechanism) == (same.problem, same.mechanism)
    assert asked.guarantee == same.guarantee
    one = dps.select(X, **GIVEN, **given, seed=1)
    other = dps.select(X, **GIVEN, k=most, mechanism=size.CHOOSES, seed=1)
    assert one.to_dict() == other.to_dict()


def test_the_largest_size_is_at_most_the_number_of_variables() -> None:
    narrow = {"bounds": BOUNDS, "y": Y, "epsilon": 1, "k": "auto"}
    assert build_request(X[:, :3], **narrow).problem.k == 3
    schema = dps.Schema.from_dict({
        "response": {"name": "y", "lo": 0, "hi": 1},
        "columns": {"town": {"levels": [*"abcdefghijkl"]}, "age": {"lo": 0, "hi": 9}},
    })  # fmt: skip
    assert build_request(None, schema, k="auto", epsilon=1).problem.k == 2  # a category is one
    with pytest.raises(dps.ArgumentError, match="max_k must lie between 1 and 2"):
        build_request(None, schema, max_k=3, epsilon=1)


def test_another_mechanism_and_its_options_may_be_named() -> None:
    asked = request(k="auto", mechanism="choose-size", options={"share": 0.5}, max_k=3)
    assert asked.mechanism == ChooseSize(share=0.5)
    assert request(k="auto", options={"phi": 2}).mechanism.phi == 2
    assert request(k=3).mechanism.name == "permute-and-flip"
    with pytest.raises(dps.ArgumentError, match="give k as a number"):
        request(max_k=3, mechanism=MECHANISMS["exponential"]())


def test_release_and_statement_say_that_the_size_was_chosen() -> None:
    release = dps.select(X, **GIVEN, k="auto", max_k=5)
    assert release.largest_size == 5
    assert "(number chosen privately, at most 5)" in str(release)
    said = "How many are named was chosen privately too"
    assert said in release.statement()
    assert "the largest possible number was 5" in release.statement()
    again = dps.Release.from_json(release.to_json(), release.schema)
    assert again.statement() == release.statement()
    fixed = dps.select(X, **GIVEN, k=5)
    assert fixed.largest_size is None
    assert said not in fixed.statement()


def test_a_clear_table_names_what_counts() -> None:
    counts = dps.simulate(X, y=Y, bounds=BOUNDS, epsilon=200, k="auto", draws=20)
    # A missing variable costs a factor of more than e^-100; the rest of the sizes is up to phi.
    assert all({0, 1} <= set(chosen or ()) for chosen in counts)


def test_without_a_variable_the_model_is_its_intercept() -> None:
    release = dps.fit(X, **GIVEN, k="auto", mechanism=NOTHING)
    assert release.support == ()
    assert list(release.model.coefficients) == []
    predicted = release.model.predict(X[:3])
    assert np.array_equal(predicted, np.full(3, release.model.intercept))
    assert "the intercept of a linear model" in release.statement()
    again = dps.Release.from_json(release.to_json(), release.schema)
    assert np.array_equal(again.model.predict(X[:3]), predicted)


def test_tune_takes_it_for_all_settings_or_as_one() -> None:
    for given in ({"k": "auto"}, {"max_k": 3}):
        grid: Any = {"budget_fraction": [0.5, 0.6]}
        assert dps.tune(X, **GIVEN, **given, grid=grid).largest_size == given.get(
            "max_k", size.MOST
        )
    release = dps.tune(X, **GIVEN, grid={"k": ["auto", 2]})
    assert release.tuned.setting["k"] in ("auto", 2)
    assert release.largest_size == (size.MOST if release.tuned.setting["k"] == "auto" else None)


def test_a_dry_run_shows_the_power_of_what_is_drawn() -> None:
    (line,) = dry_run_hint(X, None, k="auto", max_k=2, **GIVEN)
    assert "where 2 variables, the largest number, make up the response" in line


def test_estimators_take_it() -> None:
    given: Any = {"bounds": BOUNDS, "epsilon": 50, "ledger": False}
    selector = dps.PrivateSubsetSelector(k="auto", max_k=3, **given).fit(X, Y)
    assert {0, 1} <= set(np.flatnonzero(selector.get_support()))
    assert selector.release_.largest_size == 3
    model = dps.PrivateSubsetRegressor(max_k=3, **given).fit(X, Y)
    assert model.release_.largest_size == 3
    empty = dps.PrivateSubsetRegressor("auto", mechanism=NOTHING, **given).fit(X, Y)
    assert empty.coef_.shape == (0,)
    assert np.array_equal(empty.predict(X[:2]), np.full(2, empty.intercept_))
    with pytest.raises(dps.ArgumentError, match=r"needs k and epsilon.* \(or 'auto'\)"):
        dps.PrivateSubsetRegressor(bounds=BOUNDS).fit(X, Y)
    inner = dps.PrivateSubsetRegressor(max_k=2, bounds=BOUNDS)
    search = dps.PrivateSearch(inner, {"ridge": [0, 1]}, epsilon=5).fit(X, Y)
    assert search.best_estimator_.release_.largest_size == 2


@pytest.mark.parametrize("command", ["select", "fit", "tune"])
def test_the_command_line_takes_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"x{j}" for j in range(10)]
    rows = np.column_stack([X, Y])
    np.savetxt("table.csv", rows, delimiter=",", header=",".join([*names, "y"]), comments="")
    dps.Schema.from_bounds(dict.fromkeys(names, (-1, 1)), ("y", -1, 1)).write("schema.yaml")
    more = ["--grid", "ridge=0,1"] if command == "tune" else []
    for size_of in (["--k", "auto"], ["--k", "auto", "--max-k", "4"], ["--max-k", "4"]):
        said = CliRunner().invoke(
            app,
            [command, "table.csv", "--schema", "schema.yaml", "--epsilon", "2", *size_of, *more],
        )
        assert said.exit_code == 0, said.output
        most = 4 if "--max-k" in size_of else size.MOST
        assert f"(number chosen privately, at most {most})" in said.output
