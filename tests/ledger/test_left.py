"""What a limit leaves: the most that is admitted, and never more."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.ledger.composition import Limit, Totals
from dpsubset.ledger.left import Left
from dpsubset.privacy.guarantee import Cost, shown_down
from support.ledgers import event, made

MILLIONTH = Fraction(1, 10**6)
LIMITS = {
    "pure": Limit(Fraction(3)),
    "rho": Limit(rho=Fraction(1, 10)),
    "concentrated": Limit(Fraction(3), MILLIONTH),
    "basic": Limit(Fraction(3), MILLIONTH, accounting="basic"),
}
COSTS = st.one_of(
    st.fractions(Fraction(1, 1000), 1, max_denominator=1000).map(Cost),
    st.fractions(Fraction(1, 10**5), Fraction(1, 100), max_denominator=10**5).map(
        lambda rho: Cost.concentrated(rho, MILLIONTH / 10)
    ),
    st.fractions(Fraction(1, 1000), 1, max_denominator=1000).map(
        lambda epsilon: Cost(epsilon, MILLIONTH / 100)
    ),
)


@pytest.mark.parametrize("kind", LIMITS)
@given(costs=st.lists(COSTS, max_size=4))
def test_a_pure_release_of_what_is_left_fits_and_a_larger_one_does_not(
    kind: str, costs: list[Cost]
) -> None:
    limit = LIMITS[kind]
    spent = sum((Totals.of(cost) for cost in costs), start=Totals())
    left = Left.of(limit, spent)
    assert left.exceeded is not limit.admits(spent)
    if left.exceeded:
        assert str(left).startswith("nothing")
        return
    assert limit.admits(spent + Totals.of(Cost(left.pure)))
    assert limit.admits(spent + Totals.of(Cost(Fraction(shown_down(left.pure)))))
    assert not limit.admits(spent + Totals.of(Cost(left.pure + MILLIONTH)))
    if kind in ("rho", "concentrated"):
        assert left.rho is not None
        assert (kind == "concentrated" and spent.is_pure) or limit.admits(
            spent + Totals.of(Cost.concentrated(Fraction(shown_down(left.rho)), MILLIONTH))
        )


@pytest.mark.parametrize(
    ("kind", "spent", "text"),
    [
        ("pure", Cost(Fraction(1)), "epsilon = 2"),
        ("pure", Cost(Fraction(3)), "epsilon = 0"),
        ("rho", Cost(Fraction(1, 5)), "rho = 0.08, or one pure release of epsilon = 0.4"),
        ("concentrated", Cost(Fraction(1)), "or one pure release of epsilon = 2"),
        ("concentrated", Cost(Fraction(1, 10), MILLIONTH / 10), " and delta = 4e-07, or one pure "),
        ("basic", Cost(Fraction(1), MILLIONTH / 10), "epsilon = 2 and delta = 9e-07"),
    ],
)
def test_it_is_told_in_the_terms_of_the_limit(kind: str, spent: Cost, text: str) -> None:
    assert text in str(Left.of(LIMITS[kind], Totals.of(spent)))


def test_it_is_rounded_down() -> None:
    assert str(Left.of(Limit(Fraction(2, 3)), Totals())) == "epsilon = 0.666666"


def test_every_command_that_spends_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = made("sqlite", tmp_path, epsilon=10)
    x = np.random.default_rng(0).uniform(0, 1, (40, 3)).round(3)
    np.savetxt("t.csv", x, "%.3f", delimiter=",", header="a,b,y", comments="")
    dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1)).write("s.yaml")
    asked = ["t.csv", "--schema", "s.yaml", "--ledger", book.address]
    bounds = ["bounds", "suggest", *asked, "--epsilon", "0.5", "--out", "b.yaml"]
    for spends, left in (
        (["select", *asked, "--k", "1", "--epsilon", "1.5"], "8.5"),
        (["fit", *asked, "--k", "1", "--epsilon", "1.5"], "7"),
        (bounds, "6.5"),
    ):
        dry = CliRunner().invoke(app, [*spends, "--dry-run"])
        assert f"left after it: epsilon = {left}" in dry.stdout, dry.output
        result = CliRunner().invoke(app, spends)
        assert result.exit_code == 0, result.output
        assert f"left: epsilon = {left}" in result.stdout


def run(*words: str) -> Any:
    result = CliRunner().invoke(app, ["ledger", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_ledger_commands_tell_it(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, epsilon=3)
    entry = book.reserve(event(1))
    assert "Left: epsilon = 2\n" in run("show", book.address)
    left = {"pure_epsilon": "2", "epsilon": "2", "exceeded": False}
    assert json.loads(run("show", book.address, "--json"))["left"] == left
    assert json.loads(run("export", book.address))["left"] == left
    who = ["--reason", "the board of 3 May", "--name", "B. Officer"]
    assert "Left: epsilon = 3\n" in run("void", book.address, entry.id, *who)
    assert "Left: epsilon = 3\n" in run("refresh", book.address, *who)
    changed = run("limit", book.address, "--epsilon", "4", *who)
    assert changed.splitlines()[0] == "Limit: epsilon = 3 before, epsilon = 4 now"
    assert "Left: epsilon = 4\n" in changed
    assert "limit changed from epsilon = 3 to epsilon = 4 by B. Officer" in (
        run("show", book.address)
    )
    (note,) = [n for n in json.loads(run("show", book.address, "--json"))["notes"]
               if n["what"] == "limit"]  # fmt: skip
    assert (note["before"], note["after"]) == ({"epsilon": "3"}, {"epsilon": "4"})
