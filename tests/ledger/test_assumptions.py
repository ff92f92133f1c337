"""Sums of a ledger name what they hold only under, wherever they are shown."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.base.errors import LedgerError
from dpsubset.cli import app
from dpsubset.ledger.chain import START, Row
from dpsubset.ledger.composition import Limit, Totals
from dpsubset.privacy.guarantee import Cost
from dpsubset.release.verify import checks
from support.ledgers import event, made

RAIN, SNOW = "it does not rain", "it does not snow"
X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
ASKED: dict[str, Any] = {
    "y": X[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 1, "response_range": "declared"
}  # fmt: skip


def test_sums_keep_every_assumption_as_long_as_a_release_has_it() -> None:
    rain, snow = Totals.of(Cost(1), RAIN), Totals.of(Cost(1), SNOW)
    total = rain + Totals.of(Cost(1)) + snow + rain
    assert total.assumes == ((RAIN, 2), (SNOW, 1))
    assert (total - rain).assumes == ((RAIN, 1), (SNOW, 1))
    assert (total - rain - rain).assumed == SNOW
    assert (total - snow).proviso.startswith("That sum includes 2 releases by assumption.")
    assert Totals.of(Cost(1)).proviso == ""
    assert Totals.from_dict(json.loads(json.dumps(total.to_dict()))) == total
    assert Limit(10).shown(total) == "epsilon = 4 (by assumption)"
    # What is assumed anew is not within what was reserved.
    assert Totals.of(Cost(1)) <= rain
    assert not rain <= Totals.of(Cost(2))
    for wrong in ({"assumes": [RAIN]}, {"assumes": {RAIN: 0}}, {"assumes": {RAIN: "1"}}):
        with pytest.raises(LedgerError):
            Totals.from_dict(wrong)


@pytest.fixture(params=["now", "before"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> dps.Ledger:
    """A ledger with a release by assumption, written by this version or by an earlier one."""
    found = made("sqlite", tmp_path, delta=1e-2)
    dps.select(X, mechanism="metropolis", options={"steps": 40}, epsilon=1, delta=1e-3,
               ledger=found, **ASKED)  # fmt: skip
    if request.param == "before":
        as_before(found)
    return found


def as_before(book: dps.Ledger) -> None:
    """Write all lines as earlier versions did: no sum says what it assumes."""
    with sqlite3.connect(book.address) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM dpsubset_journal ORDER BY sequence").fetchall()
        last, hash = None, START
        for each in rows:
            facts: Any = dict(each)
            standing = json.loads(facts["totals"])
            del standing["form"]
            for sums in ("current", "lifetime"):
                standing[sums].pop("assumes", None)
            totals = json.dumps(standing, sort_keys=True, separators=(",", ":"))
            kept = {key: facts[key] for key in ("data_set", "kind", "entry", "time", "actor",
                                                "body")}  # fmt: skip
            last = Row.after(last, **kept, totals=totals)
            assert last.sequence == facts["sequence"]
            hash = last.hash
            database.execute(
                "UPDATE dpsubset_journal SET totals = ?, previous = ?, hash = ? WHERE sequence = ?",
                (last.totals, last.previous, last.hash, last.sequence),
            )
        database.execute("UPDATE dpsubset_ledger SET hash = ?", (hash,))


def test_a_later_release_names_what_the_sum_assumes(book: dps.Ledger, tmp_path: Path) -> None:
    release = dps.select(X, epsilon=1, ledger=book, **ASKED)
    assert release.guarantee.private
    assert "it assumes nothing about the data" in release.statement()
    chain = "the chain is within"
    (in_words,) = [line for line in release.statement().splitlines() if "this release incl" in line]
    assert "only if the random walk" in in_words
    assert "after 40 steps" in in_words
    assert chain in in_words
    (sums,) = [line for line in release.statement().splitlines() if line.startswith("Ledger: ")]
    assert "(by assumption)" in sums
    assert chain in sums
    assert chain in str(release)
    assert chain in json.loads(release.statement(form="json"))["ledger"]["assumes"]
    assert chain in release.statement(form="yaml").replace("\n", " ").replace("  ", " ")
    receipt = json.loads(release.to_json())["ledger"]
    assert [chain in text for text in receipt["spent_before"]["assumes"]] == [True]
    assert "assumes" not in receipt["cost"]
    path = tmp_path / "release.json"
    path.write_text(release.to_json())
    found = checks(path, release.schema.fingerprint(), book)
    assert all(each.holds for each in found)
    assert any("That sum includes a release by assumption" in each.says for each in found)
    # The same from the file, whose receipt has been read back.
    again = dps.Release.load(path, release.schema)
    assert again.statement() == release.statement()


def test_a_ledger_without_assumptions_says_nothing_of_them(tmp_path: Path) -> None:
    plain = made("sqlite", tmp_path, delta=1e-2)
    release = dps.select(X, epsilon=1, ledger=plain, **ASKED)
    assert "has not been checked" not in release.statement()
    assert "assumption" not in str(release)


def test_commands_name_them(book: dps.Ledger) -> None:
    for words in (["show"], ["verify"], ["limit", "--epsilon", "11", "--delta", "0.01",
                  "--reason", "more", "--name", "Ann"]):  # fmt: skip
        run = CliRunner().invoke(app, ["ledger", words[0], book.address, *words[1:]])
        assert run.exit_code == 0, run.output
        assert "It holds only if the random walk" in run.output
        assert "after 40 steps" in run.output
    facts = json.loads(CliRunner().invoke(app, ["ledger", "show", book.address, "--json"]).output)
    assert len(facts["standing"]["current"]["assumes"]) == 1
    assert len(book.head()["standing"]["lifetime"]["assumes"]) == 1


def test_a_void_entry_takes_its_assumption_with_it(book: dps.Ledger) -> None:
    entry = book.reserve(event(1, assumes=RAIN))
    assert RAIN in (book.standing().current.assumed or "")
    book.void(entry.id, reason="a mistake")
    assert RAIN not in (book.standing().current.assumed or "")
    assert "40 steps" in (book.standing().current.assumed or "")
    assert book.verify().standing == book.standing()
    book.refresh(reason="new rows")
    assert book.standing().current.assumed is None
    assert "40 steps" in (book.verify().standing.lifetime.assumed or "")


def test_lines_after_new_ones_say_what_they_assume(tmp_path: Path) -> None:
    """A line that leaves it out, as an earlier version would, is found."""
    ledger = made("sqlite", tmp_path)
    ledger.reserve(event(1, assumes=RAIN))
    as_before(ledger)
    assert ledger.verify().standing.current.assumed == RAIN
    ledger.reserve(event(1))
    assert ledger.verify().standing.current.assumed == RAIN
    last = ledger.verify().sequence
    with sqlite3.connect(ledger.address) as database:
        row = database.execute(
            "SELECT totals FROM dpsubset_journal WHERE sequence = ?", (last,)
        ).fetchone()
    assert RAIN in row[0]


def test_what_is_claimed_assumes_no_more_than_was_reserved(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path)
    ledger.reserve_all([event(1)], ["batch.1"])
    with pytest.raises(LedgerError, match="nothing is left of what was reserved"):
        ledger.of_batch("batch").begin(event(1, assumes=RAIN))
    assert ledger.of_batch("batch").begin(event(1)).cost.assumed is None
