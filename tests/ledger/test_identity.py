"""Who wrote a line: the account of the process and the user of the session, and no variable."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy.engine import make_url

import dpsubset as dps
from dpsubset.ledger import identity
from dpsubset.ledger.chain import Row
from dpsubset.ledger.identity import Identity
from dpsubset.ledger.ledger import Ledger
from dpsubset.ledger.replay import replay
from support.ledgers import POSTGRES, address_of, backend, event, ledger, made  # noqa: F401

ACCOUNT = pwd.getpwuid(os.getuid()).pw_name


def test_the_environment_does_not_say_who_spends(tmp_path: Path) -> None:
    pretended = dict.fromkeys(("USER", "LOGNAME", "LNAME", "USERNAME"), "somebody-else")
    command = [sys.executable, "-m", "dpsubset", "ledger"]
    opened = ["create", "l.db", "--data-set", "d", "--owner", "o", "--purpose", "p", "--epsilon",
              "3"]  # fmt: skip
    spent = ["debit", "l.db", "--epsilon", "1", "--reason", "r", "--name", "B. Officer"]
    for words in (opened, spent):
        subprocess.run([*command, *words], cwd=tmp_path, env={**os.environ, **pretended},
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    book = Ledger(tmp_path / "l.db")
    (entry,) = book.history().entries.values()
    assert entry.actor == "B. Officer"
    assert entry.identity.account == ACCOUNT
    with book._store.reading() as journal:
        assert journal.first().actor == ACCOUNT
    assert "somebody-else" not in json.dumps([entry.to_dict()])


def test_an_account_without_a_name_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert identity.account() == f"user id {os.getuid()}"


def test_every_line_says_who_wrote_it(ledger: Ledger, backend: str) -> None:  # noqa: F811
    session = None if backend == "sqlite" else make_url(str(POSTGRES)).username
    known = Identity(ACCOUNT, session)
    assert ledger.reserve(event(1)).identity == known
    ledger.lose(ledger.begin(event(1)))
    ledger.release(ledger.begin(event(1)), "ab" * 32)
    ledger.void(ledger.reserve(event(1)).id, reason="not run", name="Bob")
    ledger.debit(epsilon=1, reason="elsewhere", name="Bob")
    ledger.change_limit(epsilon=12, reason="more", name="Bob")
    ledger.refresh(reason="new", name="Bob")
    history = ledger.verify()
    assert {entry.identity for entry in history.entries.values()} == {known}
    assert [note["identity"] for note in history.notes] == [known.to_dict()] * 2
    with ledger._store.reading() as journal:
        assert all(json.loads(row.body)["identity"] == known.to_dict() for row in journal.all())


@pytest.mark.parametrize(
    ("found", "actor", "source"),
    [
        (Identity("alice"), "alice", "operating system account"),
        (Identity("alice"), "Bob", "as declared; operating system account alice"),
        (Identity("alice", "clerk"), "alice",
         "operating system account; database session user clerk"),
        (Identity(), "alice", ""),
    ],
)  # fmt: skip
def test_how_it_was_established(found: Identity, actor: str, source: str) -> None:
    assert found.source(actor) == source


def test_the_statement_says_how_it_was_established(ledger: Ledger, backend: str) -> None:  # noqa: F811
    x = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    asked = {"y": x[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 1, "epsilon": 1}
    session = ""
    if backend == "postgresql":
        session = f"; database session user {make_url(str(POSTGRES)).username}"
    release = dps.select(x, ledger=ledger, **asked)
    assert (
        f"- Released by: {ACCOUNT} (from the ledger: operating system account{session})"
        in release.statement()
    )
    other = Ledger(ledger.address, actor="clerk")
    release = dps.select(x, ledger=other, **asked)
    assert (
        f"- Released by: clerk (from the ledger: as declared; operating system account {ACCOUNT}"
        f"{session})" in release.statement()
    )
    again = dps.Release.from_json(release.to_json(), release.schema)
    assert again.statement() == release.statement()


def test_lines_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They have an actor and no identity."""
    book = made("sqlite", tmp_path, actor="clerk")
    book.lose(book.begin(event(1)))
    book.change_limit(epsilon=12, reason="more", name="Bob")
    with book._store.reading() as journal:
        rows, last = list(journal.all()), None
    old = []
    for row in rows:
        body = {key: value for key, value in json.loads(row.body).items() if key != "identity"}
        facts = {key: getattr(row, key) for key in ("data_set", "entry", "time", "actor", "totals")}
        last = Row.after(last, row.kind, body=json.dumps(body, sort_keys=True), **facts)  # type: ignore[arg-type]
        old.append(last)
    history, _ = replay(old)
    (entry,) = history.entries.values()
    assert entry.identity.shown(entry.actor) == "clerk"
    assert history.notes[0]["identity"] == {}
