"""Two releases compared: what differs, and what both cost together."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.ledger.canonical import sha256_of_facts
from dpsubset.release.compare import ReleaseFacts, Together, compare, cost_together

NAMES = ("age", "bmi", "dose")


def frame(n: int = 60) -> pd.DataFrame:
    x = np.random.default_rng(0).uniform(0, 1, (n, 3))
    return pd.DataFrame(x, columns=list(NAMES)).assign(cost=x[:, 0])


def schema(high: float = 1, **more: Any) -> dps.Schema:
    return dps.Schema.from_bounds(
        dict.fromkeys(NAMES, (0, high)), ("cost", 0, 1),
        **{"privacy_unit": "one patient", **more},
    )  # fmt: skip


def select(**more: Any) -> dps.Release:
    given: dict[str, Any] = {"k": 1, "epsilon": 1, "response_range": "declared", **more}
    return dps.select(given.pop("table", frame()), given.pop("schema", schema()), **given)


def facts(release: dps.Release, folder: Path, name: str = "r.json") -> ReleaseFacts:
    (folder / name).write_text(release.to_json())
    return ReleaseFacts.load(folder / name)


def together(first: dps.Release, second: dps.Release, folder: Path) -> Together:
    return cost_together(facts(first, folder), facts(second, folder))


def test_costs_add_for_each_relation(tmp_path: Path) -> None:
    first, second = select(epsilon=1), select(epsilon=0.5, neighbours="add-remove")
    found = together(first, second, tmp_path)
    assert found.kind == "separate"
    assert found.guarantee is not None
    for relation, cost in found.guarantee.costs.items():
        assert cost.epsilon == sum(r.guarantee.costs[relation].epsilon for r in (first, second))
    assert set(found.guarantee.costs) == {"replace-one", "add-remove"}
    assert "was not checked" in found.notes[0]
    # A release that tells the number of rows has no cost under add-remove, nor have both.
    counted = together(select(response_range=None), second, tmp_path)
    assert counted.guarantee is not None
    assert set(counted.guarantee.costs) == {"replace-one"}
    assert "no guarantee under add-remove" in str(counted)


def test_deltas_are_added_by_the_accounting_of_guarantees(tmp_path: Path) -> None:
    fits = [dps.fit(frame(), schema(), k=1, epsilon=1, delta=1e-6) for _ in range(2)]
    found = together(fits[0], fits[1], tmp_path)
    assert found.guarantee is not None
    composed = fits[0].guarantee.compose({"a": fits[0].guarantee, "b": fits[1].guarantee})
    assert found.guarantee.costs == composed.costs


def test_an_earlier_release_is_counted_once(tmp_path: Path) -> None:
    first, stranger = select(), select(mechanism="exponential")
    fit, other = (dps.fit_released(first, frame(), epsilon=e) for e in (2, 3))
    found = together(first, fit, tmp_path)
    assert found.kind == "second contains first"
    assert found.guarantee is not None
    assert found.guarantee.epsilon == 3
    assert together(fit, first, tmp_path).kind == "first contains second"
    both = together(fit, other, tmp_path)
    assert both.kind == "common earlier release"
    assert both.guarantee is not None
    assert both.guarantee.epsilon == 6
    apart = together(stranger, fit, tmp_path)
    assert apart.kind == "separate"
    assert apart.guarantee is not None
    assert apart.guarantee.epsilon == 4
    same = together(first, first, tmp_path)
    assert (same.kind, same.guarantee) == ("same release", first.guarantee)
    assert "two draws" in same.notes[0]


def test_what_cannot_be_added_is_not(tmp_path: Path) -> None:
    plain = select()
    for other, says in (
        (select(schema=schema(privacy_unit="one visit")), "different units"),
        (select(schema=schema(rows_per_unit=3)), "different units"),
        (select(seed=1), "was made with a seed"),
    ):
        for pair in ((plain, other), (other, plain)):
            found = together(*pair, tmp_path)
            assert (found.kind, found.guarantee) == ("not added", None)
            assert says in found.notes[0]


def test_ledgers_tell_of_which_data_set_a_release_is(tmp_path: Path) -> None:
    def book(file: str, data_set: str) -> dps.Ledger:
        return dps.Ledger.create(
            tmp_path / file, data_set=data_set, owner="K", purpose="costs", epsilon=9,
            unit="one patient",
        )  # fmt: skip

    visits, again, other = book("a", "visits"), book("b", "visits"), book("c", "births")
    first = select(ledger=visits)
    same = together(first, select(ledger=visits), tmp_path)
    assert same.kind == "separate"
    assert same.notes == ()
    assert "two ledgers" in together(first, select(ledger=again), tmp_path).notes[0]
    different = together(first, select(ledger=other), tmp_path)
    assert different.guarantee is None
    assert "different data sets, 'visits' and 'births'" in different.notes[0]
    # Another file with the same entry cannot be another release.
    changed = json.loads(first.to_json())
    changed.pop("content_digest")
    changed["date"] = "2000-01-01"
    (tmp_path / "changed").write_text(
        json.dumps({**changed, "content_digest": sha256_of_facts(changed)})
    )
    found = cost_together(facts(first, tmp_path), ReleaseFacts.load(tmp_path / "changed"))
    assert "the same entry of a ledger" in found.notes[0]


def test_notes_name_what_a_sum_rests_on(tmp_path: Path) -> None:
    rows = together(select(response_range=None), select(response_range=None, table=frame(70)),
                    tmp_path)  # fmt: skip
    assert any("60 and 70 rows" in note for note in rows.notes)
    bounds = dps.suggest_bounds(frame(), (0, 10), columns=["age"], epsilon=0.5)
    paid = dps.Schema.from_dict(
        {**schema().to_dict(), "bounds_released": bounds.facts["bounds_released"]}
    )
    found = together(select(), select(schema=paid), tmp_path)
    assert any("bounds of age, released before for epsilon = 0.5" in note for note in found.notes)


def test_differences_are_named(tmp_path: Path) -> None:
    first, second = select(), select(k=2, epsilon=2, mechanism="exponential", schema=schema(2))
    found = compare(facts(first, tmp_path), facts(second, tmp_path), (first.schema, second.schema))
    assert found.different["k"] == (1, 2)
    assert found.different["mechanism"] == ("permute-and-flip", "exponential")
    assert found.different["schema: age"] == ({"hi": 1.0}, {"hi": 2.0})
    assert found.different["budget"][1][0] == "epsilon = 2 under replace-one"
    assert {"budget", "schema (content digest)"} <= set(found.different)
    assert {"unit", "p", "neighbours", "schema: response", "versions"} <= set(found.same)
    for wrong in ((first.schema, first.schema), (second.schema, first.schema)):
        with pytest.raises(dps.ArgumentError, match="another schema"):
            compare(facts(first, tmp_path), facts(second, tmp_path), wrong)


# -- the command -----------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = select()
    rule = dps.FitRule(mechanism="noisy-moments")
    fit = dps.fit_released(first, frame(), epsilon=0.7, rule=rule)
    Path("a.json").write_text(first.to_json())
    Path("b.json").write_text(fit.to_json())
    schema().write("s.yaml")
    shown = run("compare", "a.json", "b.json", "--schema", "s.yaml")
    assert shown.exit_code == 0, shown.output
    assert "Together: epsilon = 1.7 under replace-one" in shown.stdout
    assert "states the cost of both" in shown.stdout
    listed = json.loads(run("compare", "a.json", "b.json", "--json").stdout)
    assert Fraction(listed["together"]["costs"]["replace-one"]["epsilon"]) == Fraction("1.7")
    assert listed["different"]["fit"] == {"first": None, "second": "noisy-moments"}
    assert "unit" in listed["same"]
    assert "The two files hold the same release" in run("compare", "a.json", "a.json").stdout
    assert run("compare", "a.json", "s.yaml").exit_code == 2
    assert run("compare", "a.json", "nowhere.json").exit_code == 2
    assert run("compare", "a.json", "b.json", *["--schema", "s.yaml"] * 3).exit_code == 2
    text = Path("b.json").read_text()
    Path("b.json").write_text(text.replace('"k": 1', '"k": 2'))
    changed = run("compare", "a.json", "b.json")
    assert changed.exit_code == 2
    assert "changed after it was written" in changed.stderr
