"""Spending from outside: entered by a person, counted like every other debit."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.base.errors import BudgetExceeded, LedgerError
from dpsubset.cli import app
from dpsubset.ledger.ledger import Ledger
from support.ledgers import address_of, backend, event, ledger, made  # noqa: F401

WHO = {"reason": "the table of 2023", "name": "B. Officer"}


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["ledger", *words])


def test_it_counts_in_every_sum(ledger: Ledger) -> None:  # noqa: F811
    entry = ledger.debit(epsilon=0.7, **WHO)
    assert (entry.state, entry.actor, entry.purpose) == ("entered", "B. Officer", WHO["reason"])
    assert ledger.standing().current.pure == Fraction(7, 10)  # the decimal, and not the float
    receipt = ledger.begin(event(9))
    assert receipt.before.pure == Fraction(7, 10)
    with pytest.raises(BudgetExceeded):
        ledger.begin(event(Fraction(4, 10)))
    history = ledger.verify()
    assert history.entries[entry.id] == entry
    head = ledger.head()
    assert head["standing"]["current"]["pure"] == "97/10"
    assert head["entries_from_outside"] == 1


def test_a_statement_counts_it(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, epsilon=3)
    book.debit(epsilon=0.7, **WHO)
    x = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    release = dps.select(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1, ledger=book)
    assert "before this release epsilon = 0.7 was spent, with it epsilon = 1.7" in (
        release.statement()
    )


def test_beyond_the_limit_only_if_it_has_been_spent(ledger: Ledger) -> None:  # noqa: F811
    with pytest.raises(BudgetExceeded, match=r"this debit costs epsilon = 12.*already_spent=True"):
        ledger.debit(epsilon=12, **WHO)
    assert ledger.history().entries == {}
    entry = ledger.debit(epsilon=12, already_spent=True, **WHO)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(event(Fraction(1, 10**9)))
    assert ledger.standing().left.exceeded
    with pytest.raises(LedgerError, match=r"= 11, is spent already: epsilon = 12\. .* stays eps"):
        ledger.change_limit(epsilon=11, reason="more", name="B. Officer")
    ledger.change_limit(epsilon=13, reason="more", name="B. Officer")
    ledger.reserve(event(1))
    assert ledger.verify().standing.current.pure == 13
    # An entry made by mistake is cancelled like a reservation, and both lines stay.
    assert ledger.void(entry.id, reason="1.2 was meant", name="B. Officer").state == "void"
    assert ledger.verify().standing.current.pure == 1
    with pytest.raises(LedgerError, match="void already"):
        ledger.void(entry.id, reason="again", name="B. Officer")


def test_what_a_limit_cannot_count_is_entered_too(ledger: Ledger) -> None:  # noqa: F811
    """A pure limit has no room for any delta. It may have been spent all the same."""
    with pytest.raises(LedgerError, match=r"this debit is not purely private.*already_spent=True"):
        ledger.debit(epsilon=1, delta=1e-6, **WHO)
    ledger.debit(epsilon=1, delta=1e-6, already_spent=True, **WHO)
    standing = ledger.verify().standing
    assert standing.limit.shown(standing.current) == "more than this limit can count"
    with pytest.raises(BudgetExceeded):
        ledger.reserve(event(1))


@pytest.mark.parametrize(
    ("limit", "spent", "shown"),
    [
        ({"epsilon": 3, "delta": 1e-6}, {"epsilon": 0.1, "delta": 1e-9}, "delta = 1e-06"),
        ({"rho": 1}, {"rho": 0.25}, "rho = 0.25"),
        ({"rho": 1}, {"epsilon": 1}, "rho = 0.5"),
        ({"epsilon": 3, "delta": 1e-6}, {"rho": 0.01}, "delta = 1e-06"),
        ({"epsilon": 3, "delta": 1e-3, "accounting": "basic"}, {"epsilon": 1, "delta": 1e-4},
         "epsilon = 1 and delta = 0.0001"),
        ({"epsilon": 3, "delta": 1e-3, "accounting": "basic"}, {"rho": 0.01, "delta": 1e-4},
         "and delta = 0.0001"),
    ],
    ids=str,
)  # fmt: skip
def test_every_measure(
    tmp_path: Path, limit: dict[str, Any], spent: dict[str, Any], shown: str
) -> None:
    book = made("sqlite", tmp_path, **limit)
    book.debit(**spent, **WHO)
    standing = book.verify().standing
    assert shown in standing.limit.shown(standing.current)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": "x"}, {"epsilon": 1, "rho": 1},
     {"epsilon": 1, "delta": 1}, {"rho": 1, "delta": 1e-6}, {"epsilon": 1, "reason": ""},
     {"epsilon": 1, "name": "two\nlines"}, {"epsilon": float("inf")}],
    ids=str,
)  # fmt: skip
def test_debits_that_are_refused(ledger: Ledger, wrong: dict[str, Any]) -> None:  # noqa: F811
    with pytest.raises(dps.ArgumentError):
        ledger.debit(**{**WHO, **wrong})
    assert ledger.verify().entries == {}


def test_a_rho_needs_a_delta_with_basic_accounting(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, epsilon=3, delta=1e-3, accounting="basic")
    with pytest.raises(dps.ArgumentError, match="at which it counts"):
        book.debit(rho=0.1, **WHO)


def test_a_line_that_was_forged_is_found(tmp_path: Path) -> None:
    """A debit above the limit that does not say that it was spent already."""
    book = made("sqlite", tmp_path, epsilon=1)
    book.debit(epsilon=2, already_spent=True, **WHO)
    book.verify()
    with sqlite3.connect(book.address) as database:
        database.execute(
            "UPDATE dpsubset_journal SET body = replace(body, '\"already_spent\":true', "
            "'\"already_spent\":false')"
        )
    with pytest.raises(LedgerError, match="was changed after it was written"):
        Ledger(book.address).verify()


def test_a_limit_is_checked_in_a_chain_that_was_made_again(tmp_path: Path) -> None:
    from dpsubset.ledger.chain import Row
    from dpsubset.ledger.replay import replay

    book = made("sqlite", tmp_path, epsilon=1)
    book.debit(epsilon=2, already_spent=True, **WHO)
    with book._store.reading() as journal:
        first, last = journal.all()
    facts = {key: getattr(last, key) for key in ("data_set", "entry", "time", "actor", "totals")}
    for said, right in (("true", True), ("false", False)):
        body = last.body.replace('"already_spent":true', f'"already_spent":{said}')
        rows = [first, Row.after(first, "debit", body=body, **facts)]
        if right:
            assert replay(rows)[0].from_outside == 1
        else:
            with pytest.raises(LedgerError, match="passes its limit"):
                replay(rows)


# -- the command line -----------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, epsilon=2.5, unit="one patient")
    asked = [book.address, "--reason", "the table of 2023", "--name", "B. Officer"]
    entered = run("debit", *asked, "--epsilon", "0.7")
    assert entered.exit_code == 0, entered.output
    first, *rest = entered.stdout.splitlines()
    assert first.startswith("Entered: epsilon = 0.7 under replace-one, for one patient; entry ")
    assert rest == ["Spent: epsilon = 0.7 of epsilon = 2.5", "Left: epsilon = 1.8"]
    refused = run("debit", *asked, "--epsilon", "2")
    assert refused.exit_code == 4
    assert "--already-spent" in refused.stderr
    assert run("debit", *asked, "--epsilon", "2", "--already-spent").exit_code == 0
    shown = run("show", book.address).stdout
    assert "Spent: epsilon = 2.7 of epsilon = 2.5" in shown
    assert "Left: nothing: the limit is exceeded, and every release is refused" in shown
    assert "entered  spending from outside: epsilon = 0.7; B. Officer" in shown
    facts = json.loads(run("show", book.address, "--json").stdout)
    assert [entry["state"] for entry in facts["entries"]] == ["entered", "entered"]
    assert facts["left"] == {"pure_epsilon": "0", "exceeded": True}
    assert "2 entries were declared as spending from outside" in run("verify", book.address).stdout
