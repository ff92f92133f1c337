"""Calls that spend, with a ledger: debited before a value is read, noted before anybody has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api import sensitive_table as sealed
from dpsubset.api import suggest_bounds as suggestion
from dpsubset.base.errors import BudgetExceeded, LedgerError
from dpsubset.cli import app
from dpsubset.cli.outputs import Output
from dpsubset.data.sums import Sums
from dpsubset.ledger import standing
from dpsubset.ledger.canonical import sha256_of_facts
from dpsubset.ledger.ledger import Ledger
from dpsubset.ledger.spending import VARIABLE
from dpsubset.papers import means
from dpsubset.release.verify import checks
from support.ledgers import made

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (200, 4))
Y = X[:, 0]
BOUNDS = dps.Bounds(x=1, y=1)
ASKED: dict[str, Any] = {"y": Y, "bounds": BOUNDS, "k": 2, "epsilon": 1}
PLAIN: dict[str, Any] = {"epsilon": 1}

#: Everything that spends, at epsilon = 1.
CALLS: dict[str, Callable[..., Any]] = {
    "select": lambda **more: dps.select(X, **ASKED, **more),
    "select by exponential": lambda **more: dps.select(X, mechanism="exponential", **ASKED, **more),
    "fit": lambda **more: dps.fit(X, **ASKED, **more),
    "suggest_bounds": lambda **more: dps.suggest_bounds(X, (-5, 5), **PLAIN, **more),
    "private_mean": lambda **more: dps.private_mean(X, (-5, 5), **PLAIN, **more),
    "private_mean, truncated": lambda **more: dps.private_mean(
        X, (-5, 5), truncation="private", **PLAIN, **more
    ),
    "sparse_mean": lambda **more: dps.sparse_mean(X, (-5, 5), s=2, **PLAIN, **more),
    "sparse_regression": lambda **more: dps.sparse_regression(
        X, **ASKED, intercept=False, **more
    ),
    "selector": lambda **more: dps.PrivateSubsetSelector(2, 1, bounds=BOUNDS, **more)
    .fit(X, Y)
    .release_,
    "regressor": lambda **more: dps.PrivateSubsetRegressor(2, 1, bounds=BOUNDS, **more)
    .fit(X, Y)
    .release_,
    "classifier": lambda **more: dps.PrivateSubsetClassifier(
        2, 1, bounds=dps.Bounds(x=1, labels=(0, 1)), **more
    )
    .fit(X, (Y > 0).astype(int))
    .release_,
}  # fmt: skip
spending = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made("sqlite", tmp_path, epsilon=2)


@pytest.fixture
def watched(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many debits were open each time that values were read."""
    seen: list[int] = []

    def watch(owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def reading(*given: Any, **named: Any) -> Any:
            entries = ledger.history().entries.values()
            seen.append(sum(entry.state == "reading" for entry in entries))
            return plain(*given, **named)

        monkeypatch.setattr(owner, name, reading)

    for name in ("read", "count_response", "read_support", "read_records"):
        watch(sealed.SensitiveTable, name)
    for module in (suggestion, means):
        watch(module, "count_columns")
    watch(Sums, "read")
    monkeypatch.setattr(Sums, "read", staticmethod(Sums.read))  # it was a method of the class
    return seen


@spending
def test_a_debit_comes_first_and_the_digest_before_the_release(
    ledger: Ledger, watched: list[int], call: Any
) -> None:
    release = call(ledger=ledger)
    assert watched
    assert all(count == 1 for count in watched)
    (entry,) = ledger.verify().entries.values()
    assert entry.state == "released"
    assert entry.release == sha256_of_facts(json.loads(json.dumps(release.to_dict())))
    assert ledger.standing().current.pure == 1
    told = release.to_dict()["ledger"]
    assert told["release_id"] == entry.id
    assert told["limit"] == {"epsilon": "2"}
    assert told["spent_before"] == {}
    assert entry.event.costs["replace-one"].epsilon == release.guarantee.epsilon == 1
    again = call(ledger=ledger).to_dict()["ledger"]
    assert again["spent_before"]["pure"] == "1"
    del watched[:]
    with pytest.raises(BudgetExceeded, match=r"costs epsilon = 1, and epsilon = 2 of epsilon = 2"):
        call(ledger=ledger)
    assert watched == []  # nothing was read
    assert ledger.standing().current.pure == 2
    ledger.verify()


@pytest.mark.parametrize("how", ["noisy-moments", "objective-perturbation"])
def test_a_model_on_an_earlier_release_is_debited_by_itself(
    ledger: Ledger, watched: list[int], how: Any, tmp_path: Path
) -> None:
    first = dps.select(X, **ASKED, ledger=ledger)
    kept = tmp_path / "release.json"
    kept.write_text(first.to_json())
    earlier = dps.Release.load(kept, first.schema)
    assert earlier.to_dict() == first.to_dict()  # its receipt included
    asked: dict[str, Any] = {"y": Y, "bounds": BOUNDS, "rule": dps.FitRule(mechanism=how)}
    del watched[:]
    release = dps.fit_released(earlier, X, epsilon=1, ledger=ledger, **asked)
    assert watched
    assert all(count == 1 for count in watched)
    assert release.guarantee.epsilon == 2
    assert release.model is not None
    assert ledger.standing().current.pure == 2
    assert release.to_dict()["ledger"]["spent_before"]["pure"] == "1"
    entry = ledger.entry(release.receipt.entry)
    assert entry.event.what == "fit-released"
    stated = json.loads(first.to_json())["content_digest"]
    assert entry.event.options["earlier"] == release.earlier == stated
    del watched[:]
    with pytest.raises(BudgetExceeded):
        dps.fit_released(earlier, X, epsilon=1, ledger=ledger, **asked)
    assert watched == []
    for made_of in (first, release):
        kept.write_text(made_of.to_json())
        told = checks(kept, first.schema.fingerprint(), ledger)
        assert all(check.holds for check in told), told
    facts = json.loads(kept.read_text())
    facts["guarantee"]["parts"][-1]["epsilon_if_replace_one"] = 0.5
    kept.write_text(json.dumps(facts))
    wrong = [check.says for check in checks(kept, first.schema.fingerprint(), ledger)
             if check.holds is False]  # fmt: skip
    assert len(wrong) == 2  # both digests


@spending
def test_the_environment_names_the_ledger(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    monkeypatch.setenv(VARIABLE, ledger.address)
    assert call().receipt is not None
    assert call(ledger=False).receipt is None
    monkeypatch.delenv(VARIABLE)
    assert call().receipt is None
    assert len(ledger.verify().entries) == 1


def test_calls_that_spend_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, ledger.address)
    dps.price(X, **ASKED)
    dps.price_fit(X, **ASKED)
    dps.simulate(X, draws=2, **ASKED)
    dps.best_subset(X, y=Y, bounds=BOUNDS, k=2)
    assert ledger.verify().entries == {}


def test_a_seeded_draw_is_refused(ledger: Ledger) -> None:
    for call in (
        lambda: dps.select(X, seed=1, ledger=ledger, **ASKED),
        lambda: dps.fit(X, seed=1, ledger=ledger, **ASKED),
        lambda: dps.suggest_bounds(X, (-1, 1), epsilon=1, seed=1, ledger=ledger),
    ):
        with pytest.raises(dps.ArgumentError, match="seeded"):
            call()
    assert ledger.verify().entries == {}


def test_a_failure_after_the_debit_is_spent(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(dps.SearchLimitError):
        dps.select(X, node_limit=1, mechanism="top-r", ledger=ledger, **{**ASKED, "k": 1},
                   time_limit=1e-9)  # fmt: skip

    def explode(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(sealed.SensitiveTable, "read", explode)
    with pytest.raises(MemoryError):
        dps.select(X, ledger=ledger, **ASKED)
    assert {entry.state for entry in ledger.verify().entries.values()} == {"lost"}
    assert ledger.standing().current.pure == 2
    for key in ledger.history().entries:
        with pytest.raises(LedgerError, match="stays as it is"):
            ledger.void(key, reason="it failed")


def test_a_release_that_cannot_be_noted_is_not_made(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Ledger, "release", explode)
    with pytest.raises(LedgerError, match="full"):
        dps.select(X, ledger=ledger, **ASKED)
    (entry,) = ledger.verify().entries.values()
    assert entry.state == "lost"
    assert ledger.standing().current.pure == 1


def test_with_the_clock_set_back_nothing_is_read(
    ledger: Ledger, watched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dps.select(X, ledger=ledger, **ASKED)
    del watched[:]
    now = standing.clock.time()
    monkeypatch.setattr(standing.clock, "time", lambda: now - 3600)
    with pytest.raises(LedgerError, match="set the clock right"):
        dps.select(X, ledger=ledger, **ASKED)
    assert watched == []
    assert len(ledger.verify().entries) == 1


def test_what_no_relation_bounds_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no guarantee"):
        dps.select(X, mechanism="mistakes", options={"anchor": "data"}, allow_unproven=True,
                   ledger=ledger, **ASKED)  # fmt: skip
    other = made("sqlite", tmp_path, neighbours="add-remove")
    with pytest.raises(LedgerError, match="has no guarantee under add-remove"):
        dps.select(X, ledger=other, **ASKED)
    dps.select(X, ledger=other, neighbours="add-remove", **ASKED)
    assert len(other.verify().entries) == 1
    assert ledger.verify().entries == {}


def test_the_unit_of_the_schema_is_the_ledgers(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, unit="one patient", rows_per_unit=3)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    declared: dict[str, Any] = {"unit": "one patient", "rows_per_unit": 3}
    for wrong in ({}, {"unit": "one patient"}, {"rows_per_unit": 3}):
        schema = dps.Schema.from_bounds(dict.fromkeys("abcd", (-1, 1)), ("y", -1, 1), **wrong)
        with pytest.raises(LedgerError, match="rows_per_unit"):
            dps.select(frame, schema, k=1, epsilon=1, ledger=book)
    schema = dps.Schema.from_bounds(dict.fromkeys("abcd", (-1, 1)), ("y", -1, 1), **declared)
    release = dps.select(frame, schema, k=1, epsilon=1, ledger=book)
    assert release.receipt is not None
    assert release.receipt.cost.pure == 1  # of a whole patient


# -- numbers of rows -------------------------------------------------------------------------------


@pytest.fixture
def csv(tmp_path: Path) -> tuple[Path, dps.Schema]:
    pd.DataFrame(X, columns=list("abcd")).assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv", dps.Schema.from_bounds(dict.fromkeys("abcd", (-1, 1)), ("y", -1, 1))


def test_a_file_that_does_not_tell_its_rows(csv: tuple[Path, dps.Schema], ledger: Ledger) -> None:
    dps.select(*csv, k=1, epsilon=1, ledger=ledger)
    (entry,) = ledger.verify().entries.values()
    # How it is divided was not known, so it was debited as a whole.
    assert entry.event.to_dict()["costs"] == {"replace-one": [{"measure": "pure", "epsilon": "1"}]}
    with pytest.raises(LedgerError, match="depends on the number of rows"):
        dps.select(*csv, k=1, epsilon=1, mechanism="top-r", options={"R": 2, "T": 3},
                   ledger=ledger)  # fmt: skip
    assert len(ledger.verify().entries) == 1


def test_a_table_with_other_rows_than_it_says(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {**ASKED, "mechanism": "top-r", "options": {"R": 2, "T": 3},
             "response_range": "declared", "epsilon": Fraction(1, 4)}  # fmt: skip
    monkeypatch.setattr(sealed.SensitiveTable, "rows", 2)
    with pytest.raises(LedgerError, match="costs more than was reserved"):
        dps.select(X, ledger=ledger, **asked)
    (entry,) = ledger.verify().entries.values()
    assert entry.state == "lost"


# -- what a ledger holds ---------------------------------------------------------------------------


def test_nothing_private_is_in_it(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, epsilon=10)
    planted = 0.123456789
    x = np.where(np.arange(800).reshape(200, 4) % 7 == 0, planted, X)
    schema = dps.Schema.from_bounds({"alpha": (-1, 1), "beta": (-1, 1), "gamma": (-1, 1),
                                     "omega": (-1, 1)}, ("y", -1, 1))  # fmt: skip
    release = dps.fit(x, schema, y=Y, k=2, epsilon=1, ledger=book)
    assert release.model is not None
    text = json.dumps(dict(book.history().entries[release.receipt.entry].to_dict()))  # type: ignore[union-attr]
    book.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    values = map(repr, release.model.coefficients.values())
    for private in (str(planted), *release.features, *values):
        assert private.encode() not in raw
        assert private not in text


# -- verification ----------------------------------------------------------------------------------


def told(path: Path, schema: dps.Schema, book: Ledger | None) -> list[str]:
    """What does not agree."""
    found = checks(path, schema.fingerprint(), book)
    return [check.says for check in found if check.holds is False]


def test_a_release_is_compared_with_its_entry(
    csv: tuple[Path, dps.Schema], ledger: Ledger, tmp_path: Path
) -> None:
    schema, path = csv[1], tmp_path / "release.json"
    release = dps.fit(*csv, k=2, epsilon=1, ledger=ledger)
    path.write_text(release.to_json())
    assert told(path, schema, ledger) == told(path, schema, None) == []
    differ = [check.says for check in checks(path, "0" * 64, ledger) if check.holds is False]
    assert "the schema of the ledger's entry" in differ
    facts = release.to_dict()
    for change, says in (
        ({"features": ["a", "nobody"]}, "digest"),
        ({"schema_sha256": "0" * 64}, "another schema"),
        ({"ledger": {**facts["ledger"], "release_id": "other"}}, "no such entry"),
        ({"ledger": {**facts["ledger"], "ledger": "other"}}, "another ledger"),
        ({"ledger": None}, "names no entry"),
        ({"guarantee": {**facts["guarantee"], "epsilon_if_replace_one": 2.0}}, "states under"),
        ({"guarantee": {**facts["guarantee"], "private": False}}, "not private"),
        ({"versions": {}}, "version"),
    ):
        path.write_text(json.dumps({**facts, **change}))
        assert any(says in line for line in told(path, schema, ledger)), says
    # A release without a ledger was not counted by anybody.
    path.write_text(dps.select(*csv, k=2, epsilon=1).to_json())
    assert any("names no entry" in line for line in told(path, schema, ledger))
    path.write_text("{}")
    with pytest.raises(dps.ArgumentError, match="not a release file"):
        checks(path, "")


# -- the command line ------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(csv: tuple[Path, dps.Schema], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    csv[1].write(tmp_path / "schema.yaml")
    monkeypatch.chdir(tmp_path)
    made = run("ledger", "create", "l.db", "--data-set", "patients", "--owner", "Ann",
               "--purpose", "tests", "--epsilon", "2.5")  # fmt: skip
    assert made.exit_code == 0, made.output
    return tmp_path


SELECT = ("select", "t.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "1")


def test_from_create_to_verify(folder: Path) -> None:
    result = run(*SELECT, "--ledger", "l.db", "--purpose", "figure 2", "--out", "release.json")
    assert result.exit_code == 0, result.output
    assert "Ledger: entry " in result.stdout
    assert run("fit", *SELECT[1:], "--ledger", "l.db", "--out", "fit.json").exit_code == 0
    refused = run(*SELECT, "--ledger", "l.db", "--out", "more.json")
    assert refused.exit_code == 4
    assert refused.stdout == ""
    assert refused.stderr == (
        "Error: the ledger of 'patients' does not allow this: this release costs epsilon = 1, and "
        "epsilon = 2 of epsilon = 2.5 is spent already. Nothing was read or spent\n"
    )
    assert not (folder / "more.json").exists()
    bounds = ("bounds", "suggest", "t.csv", "--within", "-9", "9", "--columns", "a,b", "--epsilon")
    assert "Ledger: epsilon = 2.5 of" in run(*bounds, "0.5", "--ledger", "l.db", "--dry-run").stdout
    assert run(*bounds, "0.6", "--ledger", "l.db").exit_code == 4
    assert run(*bounds, "0.5", "--ledger", "l.db").exit_code == 0
    shown = run("ledger", "show", "l.db").stdout
    assert "Spent: epsilon = 2.5 of epsilon = 2.5" in shown
    assert "figure 2" in shown
    assert shown.count("released") == 3
    facts = json.loads(run("ledger", "show", "l.db", "--json").stdout)
    assert [entry["state"] for entry in facts["entries"]] == ["released"] * 3
    assert run("ledger", "export", "l.db", "--out", "head.json").exit_code == 0
    assert json.loads(run("ledger", "export", "l.db").stdout) == json.loads(
        (folder / "head.json").read_text()
    )
    verified = run("ledger", "verify", "l.db", "--head", "head.json")
    assert verified.exit_code == 0
    for name in ("release.json", "fit.json"):
        agreed = run("verify", name, "--schema", "schema.yaml", "--ledger", "l.db")
        assert agreed.exit_code == 0, agreed.output
    text = (folder / "release.json").read_text()
    (folder / "release.json").write_text(text.replace('"k": 1', '"k": 2'))
    changed = run("verify", "release.json", "--schema", "schema.yaml", "--ledger", "l.db")
    assert changed.exit_code == 1
    assert "NO  its content digest" in changed.stdout
    fingerprint = run("schema", "fingerprint", "schema.yaml").stdout.strip()
    assert fingerprint == json.loads(text)["schema_sha256"]


def test_the_file_is_written_after_the_ledger(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[str] = []
    publish = Output.publish

    def watch(self: Output) -> None:
        states.extend(entry.state for entry in Ledger("l.db").history().entries.values())
        publish(self)

    monkeypatch.setattr(Output, "publish", watch)
    assert run(*SELECT, "--ledger", "l.db", "--out", "release.json").exit_code == 0
    assert states == ["released"]


def test_costs_before_spending(folder: Path) -> None:
    asked = ("t.csv", "--schema", "schema.yaml", "--k", "1", "--epsilon", "0.5")
    one = run("ledger", "cost", "l.db", *asked)
    assert one.exit_code == 0, one.output
    assert "epsilon = 0.5 spent after, epsilon = 0 now" in one.stdout
    five = run("ledger", "cost", "l.db", *asked, "--folds", "5", "--model")
    assert "5 releases: epsilon = 2.5 spent after" in five.stdout
    search = run("ledger", "cost", "l.db", *asked, "--folds", "5", "--candidates", "3")
    assert search.exit_code == 4
    assert "16 releases cost epsilon = 8" in search.stderr
    assert "15 releases" in run(
        "ledger", "cost", "l.db", *asked[:-1], "0.1", "--folds", "5", "--candidates", "3",
        "--no-refit",
    ).stdout  # fmt: skip
    assert run("ledger", "cost", "l.db", *asked, "--candidates", "3").exit_code == 2
    assert Ledger("l.db").verify().entries == {}


def test_the_cost_of_a_search_in_a_file(folder: Path) -> None:
    (folder / "analysis.py").write_text(
        "import dpsubset as dps\n"
        "from sklearn.linear_model import LinearRegression\n"
        "from sklearn.model_selection import GridSearchCV\n"
        "from sklearn.pipeline import make_pipeline\n"
        "step = dps.PrivateSubsetSelector(1, 0.1, schema='schema.yaml')\n"
        "steps = make_pipeline(step, LinearRegression())\n"
        "search = GridSearchCV(steps, {'privatesubsetselector__k': [1, 2, 3]}, cv=5)\n"
        "more = GridSearchCV(search, {'cv': [3, 9]}, cv=2)\n"
        "none = LinearRegression()\n"
    )
    one = run("ledger", "cost", "l.db", "--search", "analysis.py:steps")
    assert "This release: epsilon = 0.1 spent after" in one.stdout, one.output
    found = run("ledger", "cost", "l.db", "--search", "analysis.py:search")
    assert "16 releases: epsilon = 1.6 spent after" in found.stdout
    refused = run("ledger", "cost", "l.db", "--search", "analysis.py:more")
    assert refused.exit_code == 4
    assert "104 releases" in refused.stderr  # 2 folds of 10 and 28 fits, and a refit of 28
    for wrong in ("analysis.py:none", "analysis.py:absent", "absent.py:x", "x"):
        assert run("ledger", "cost", "l.db", "--search", wrong).exit_code == 2
    assert run("ledger", "cost", "l.db").exit_code == 2
    assert run("ledger", "cost", "l.db", "t.csv", "--search", "analysis.py:steps").exit_code == 2
    assert Ledger("l.db").verify().entries == {}


def test_void_refresh_and_limit(folder: Path) -> None:
    book = Ledger("l.db")
    from support.ledgers import event

    entry = book.reserve(event(2))
    signed = ("--reason", "never run", "--name", "Bob")
    voided = run("ledger", "void", "l.db", entry.id, *signed)
    assert voided.exit_code == 0, voided.output
    assert "Spent: epsilon = 0 of epsilon = 2.5" in voided.stdout
    assert run("ledger", "void", "l.db", entry.id, *signed).exit_code == 5
    read = book.begin(event(2))
    refused = run("ledger", "void", "l.db", read.entry, *signed)
    assert refused.exit_code == 5
    assert "may have been read" in refused.stderr
    refreshed = run("ledger", "refresh", "l.db", "--reason", "new rows", "--name", "Bob")
    assert "ever: epsilon = 2" in refreshed.stdout
    assert "3" in run("ledger", "limit", "l.db", "--epsilon", "3", *signed).stdout
    shown = run("ledger", "show", "l.db").stdout
    assert "Spent ever: epsilon = 2" in shown
    assert "void (never run)" in shown


def test_a_ledger_that_cannot_be_used_has_its_own_code(folder: Path) -> None:
    missing = run(*SELECT, "--ledger", "none.db", "--out", "release.json")
    assert missing.exit_code == 5
    assert "no ledger at" in missing.stderr
    assert not (folder / "none.db").exists()
    assert not (folder / "release.json").exists()
    assert run(*SELECT, "--ledger", "l.db", "--seed", "1").exit_code == 2
    assert run(*SELECT, "--ledger", "l.db", "--no-ledger").exit_code == 2
    assert run(*SELECT, "--purpose", "x").exit_code == 2
    assert run("ledger", "create", "l.db", "--data-set", "p", "--owner", "A", "--purpose", "x",
               "--epsilon", "1").exit_code == 2  # fmt: skip
    assert run("ledger", "verify", "t.csv").exit_code == 5


def test_the_environment_and_the_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "l.db")
    assert "Ledger: epsilon = 1 of epsilon = 2.5 after it, now epsilon = 0" in (
        run(*SELECT, "--dry-run").stdout
    )
    assert "Ledger: " in run("fit", *SELECT[1:], "--dry-run").stdout
    assert run(*SELECT[:-1], "3", "--dry-run").exit_code == 4
    assert run(*SELECT, "--no-ledger").exit_code == 0
    assert Ledger("l.db").verify().entries == {}
    assert run(*SELECT).exit_code == 0
    assert len(Ledger("l.db").verify().entries) == 1


def test_without_a_ledger_no_database_is_imported(folder: Path) -> None:
    code = (
        "import sys, dpsubset, dpsubset.api.select, dpsubset.cli, dpsubset.ledger.spending\n"
        "assert 'sqlalchemy' not in sys.modules"
    )
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
