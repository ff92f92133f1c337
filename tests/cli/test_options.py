"""One list of options: the command line and the estimators have the names and defaults of select.

The list is the signature of `build_request` and `build_problem_spec`, which select and fit show.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api.problem_spec import ProblemOptions, build_problem_spec
from dpsubset.api.request import SelectionOptions, build_request
from dpsubset.base.errors import ArgumentError
from dpsubset.cli import app
from dpsubset.cli.options import OTHER_SPELLINGS, flag
from dpsubset.cli.options import SelectionOptions as CommandOptions

#: Arguments that say what the data are, or that a command has on its own.
DATA = {"y", "bounds"}
OWN = {"k", "epsilon", "intercept"}
COMMANDS = ("select", "fit", "tune", "power")


def keywords(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


#: Names and defaults of all options of a selection.
LISTED = {**keywords(build_problem_spec), **keywords(build_request)}


def written(value: Any) -> Any:
    """What the command line writes for a default of Python."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def test_types_list_the_same_options() -> None:
    problem, selection = get_type_hints(ProblemOptions), get_type_hints(SelectionOptions)
    assert set(problem) | {"k", "y"} == set(keywords(build_problem_spec)) | {"k", "y"}
    assert set(selection) | {"k", "epsilon", "y"} == set(LISTED) | {"y"}


@pytest.mark.parametrize("function", [dps.select, dps.price])
def test_functions_have_these_options_and_defaults(function: Any) -> None:
    shown = keywords(function)
    assert {name: shown[name] for name in LISTED} == LISTED


@pytest.mark.parametrize(
    ("estimator", "without"),
    [
        (dps.PrivateSubsetSelector, set()),
        (dps.PrivateSubsetRegressor, {"intercept"}),
        (dps.PrivateSubsetClassifier, {"intercept"}),
    ],
)
def test_estimators_have_these_parameters_and_defaults(estimator: Any, without: set[str]) -> None:
    made = estimator()
    expected = {name: LISTED[name] for name in set(LISTED) - {"k", "epsilon", "y"} - without}
    found = made.get_params()
    assert {name: found[name] for name in expected} == expected
    assert set(found) - set(expected) <= {"k", "epsilon", "schema", "ledger", "rule"}
    assert estimator(3, 0.5).get_params()["k"] == 3
    assert made.set_params(loss="huber").loss == "huber"
    with pytest.raises(TypeError, match=rf"^{estimator.__name__}\(\): unknown argument looss"):
        estimator(looss="huber")
    with pytest.warns(FutureWarning, match="prediction_bound"):
        assert estimator(reach=2).prediction_bound == 2


def test_the_command_line_has_these_options_and_defaults() -> None:
    found = {field.name: field.default for field in fields(CommandOptions)}
    assert MISSING not in found.values()
    expected = {name: LISTED[name] for name in set(LISTED) - DATA - OWN}
    expected |= {"always_include": None}  # may be repeated, so that nothing stands for ()
    assert found == {name: written(default) for name, default in expected.items()}


def test_only_options_that_were_given_are_passed_on() -> None:
    assert CommandOptions().arguments() == {}
    given = CommandOptions(delta="1e-6", options=["R=2"], check_readable="0.01", ridge=2.0)
    assert given.arguments() == {
        "delta": Decimal("1e-6"),
        "options": {"R": 2},
        "check_readable": Decimal("0.01"),
        "ridge": 2.0,
    }
    assert Fraction(given.arguments()["delta"]) == Fraction(1, 10**6)
    with pytest.raises(ArgumentError, match="check-readable must be a number"):
        CommandOptions(check_readable="some").arguments()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_show_every_option_once_and_no_former_name(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"]).stdout.split()
    for field in fields(CommandOptions):
        assert shown.count(flag(field.name)) >= 1
    assert not {f"--{name}" for name in OTHER_SPELLINGS} & set(shown)


def test_former_names_and_other_spellings_are_those_of_options_that_exist() -> None:
    groups: list[Any] = [typer.main.get_command(app)]
    options: set[str] = set()
    while groups:
        command = groups.pop()
        options |= {name for parameter in command.params for name in parameter.opts}
        groups += getattr(command, "commands", {}).values()
    for former, name in OTHER_SPELLINGS.items():
        assert f"--{name}" in options
        assert f"--{former}" not in options
