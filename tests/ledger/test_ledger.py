"""A ledger: its states against a model, its refusals, and every stored field tampered with."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)
from sqlalchemy import create_engine, text

import dpsubset as dps
from dpsubset.base.errors import BudgetExceeded, LedgerError
from dpsubset.ledger import standing, tables
from dpsubset.ledger.canonical import canonical
from dpsubset.ledger.ledger import Ledger
from dpsubset.ledger.reader import read_head
from dpsubset.ledger.receipt import Receipt
from dpsubset.ledger.store import hidden, parse
from dpsubset.privacy.guarantee import Cost
from support.ledgers import BACKENDS, address_of, backend, event, ledger, made  # noqa: F401

SEVENTH = Fraction(1, 7)

# -- states ----------------------------------------------------------------------------------------


class Model(RuleBasedStateMachine):
    """A ledger of one against a dictionary of who has spent how much."""

    entries = Bundle("entries")
    receipts = Bundle("receipts")

    @initialize()
    def start(self) -> None:
        import tempfile

        self.folder = Path(tempfile.mkdtemp())
        self.ledger = made("sqlite", self.folder, epsilon=1)
        self.spent: dict[str, Fraction] = {}
        self.states: dict[str, str] = {}
        self.old: set[str] = set()

    @property
    def current(self) -> Fraction:
        return sum((self.spent[key] for key in set(self.spent) - self.old), Fraction(0))

    @rule(target=entries, sevenths=st.integers(1, 4))
    def reserve(self, sevenths: int) -> Any:
        cost = sevenths * SEVENTH
        if self.current + cost > 1:
            with pytest.raises(BudgetExceeded, match="does not allow this"):
                self.ledger.reserve(event(cost))
            return multiple()
        entry = self.ledger.reserve(event(cost))
        self.spent[entry.id], self.states[entry.id] = cost, "reserved"
        # Once more under the same key is the same debit.
        assert self.ledger.reserve(event(cost), entry.id).id == entry.id
        return entry.id

    @rule(target=receipts, sevenths=st.integers(1, 4))
    def begin(self, sevenths: int) -> Any:
        cost = sevenths * SEVENTH
        if self.current + cost > 1:
            with pytest.raises(BudgetExceeded):
                self.ledger.begin(event(cost))
            return multiple()
        receipt = self.ledger.begin(event(cost))
        assert receipt.before.pure == self.current
        self.spent[receipt.entry], self.states[receipt.entry] = cost, "reading"
        return receipt

    @rule(receipt=receipts, lost=st.booleans())
    def end(self, receipt: Receipt, lost: bool) -> None:
        def close() -> None:
            self.ledger.lose(receipt) if lost else self.ledger.release(receipt, "ab" * 32)

        if self.states[receipt.entry] == "reading":
            close()
            self.states[receipt.entry] = "lost" if lost else "released"
        else:
            with pytest.raises(LedgerError, match="not open"):
                close()

    @rule(key=entries)
    def void(self, key: str) -> None:
        self._void(key)

    @rule(receipt=receipts)
    def void_what_was_read(self, receipt: Receipt) -> None:
        self._void(receipt.entry)

    def _void(self, key: str) -> None:
        if self.states[key] == "reserved":
            assert self.ledger.void(key, reason="not run", name="Bob").state == "void"
            self.states[key] = "void"
            del self.spent[key]
        else:
            with pytest.raises(LedgerError, match="stays as it is"):
                self.ledger.void(key, reason="not run", name="Bob")

    @rule()
    def refresh(self) -> None:
        self.ledger.refresh(reason="new rows", name="Bob")
        self.old |= set(self.spent)

    @rule(key=st.sampled_from(["", "nobody"]))
    def void_nothing(self, key: str) -> None:
        with pytest.raises(LedgerError, match="no entry"):
            self.ledger.void(key, reason="x")

    @invariant()
    def the_sums_are_those_of_the_model(self) -> None:
        if not hasattr(self, "ledger"):
            return
        now = self.ledger.standing()
        assert now.current.pure == self.current <= 1
        assert now.lifetime.pure == sum(self.spent.values(), Fraction(0))

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        history = self.ledger.verify()
        assert {key: entry.state for key, entry in history.entries.items()} == self.states
        self.ledger.close()
        shutil.rmtree(self.folder)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


def test_a_key_stands_for_one_event(ledger: Ledger) -> None:  # noqa: F811
    first = ledger.reserve(event(1), "job 17")
    assert ledger.reserve(event(1), "job 17") == first
    assert ledger.standing().current.pure == 1
    with pytest.raises(LedgerError, match="another release"):
        ledger.reserve(event(2), "job 17")
    ledger.void("job 17", reason="not run")
    with pytest.raises(LedgerError, match="take another key"):
        ledger.reserve(event(1), "job 17")
    assert ledger.standing().current.pure == 0


def test_all_or_none(ledger: Ledger) -> None:  # noqa: F811
    with pytest.raises(BudgetExceeded, match=r"16 releases cost epsilon = 16"):
        ledger.reserve_all([event(1)] * 16)
    assert ledger.history().entries == {}
    assert len(ledger.reserve_all([event(1)] * 10)) == 10
    with pytest.raises(BudgetExceeded):
        ledger.reserve(event(Fraction(1, 10**12)))
    ledger.verify()


def test_debits_that_were_reserved_together_are_claimed_once(ledger: Ledger) -> None:  # noqa: F811
    keys = [f"batch.{i}" for i in range(3)]
    ledger.reserve_all([event(1)] * 3, keys)
    other = pickle.loads(pickle.dumps(ledger.of_batch("batch")))
    with pytest.raises(LedgerError, match="nothing is left"):
        other.begin(event(2))  # it costs more than any
    taken = {other.begin(event(Fraction(1, i))).entry for i in (1, 2, 3)}
    assert taken == set(keys)
    with pytest.raises(LedgerError, match="nothing is left"):
        other.begin(event(1))
    assert ledger.standing().current.pure == 3  # what was reserved is spent
    with pytest.raises(LedgerError, match="may have been read"):
        ledger.void(keys[0], reason="x")
    ledger.verify()


def test_refreshes_keep_the_whole_life(ledger: Ledger) -> None:  # noqa: F811
    old = ledger.reserve(event(4))
    ledger.refresh(reason="the rows of 2025 replace all of 2024", name="Bob")
    ledger.reserve(event(10))
    ledger.void(old.id, reason="never run", name="Bob")  # of the time before
    now = ledger.standing()
    assert (now.current.pure, now.lifetime.pure, now.epoch) == (10, 10, 1)
    with pytest.raises(dps.ArgumentError, match="reason"):
        ledger.refresh(reason=" ")
    (note,) = ledger.verify().notes
    assert note["actor"] == "Bob"


def test_another_limit(ledger: Ledger) -> None:  # noqa: F811
    ledger.reserve(event(9))
    with pytest.raises(LedgerError, match="spent already"):
        ledger.change_limit(epsilon=8, reason="less", name="Bob")
    ledger.change_limit(epsilon=12, reason="the board of 3 May", name="Bob")
    ledger.reserve(event(3))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(event(Fraction(1, 100)))
    ledger.verify()


LIMITS: list[dict[str, Any]] = [
    {"epsilon": 20},
    {"rho": 200},
    {"epsilon": 20, "delta": Fraction(1, 100), "accounting": "concentrated"},
    {"epsilon": 20, "delta": Fraction(1, 100), "accounting": "basic"},
]


@pytest.mark.parametrize("other", range(4))
@pytest.mark.parametrize("first", range(4))
def test_the_kind_of_limit_and_the_accounting_stay(
    first: int, other: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Ledger.create(tmp_path / "l.db", data_set="d", owner="o", purpose="p", **LIMITS[first])
    if first == other:
        book.change_limit(reason="the board", **LIMITS[other])
        if "accounting" in LIMITS[other]:
            book.change_limit(reason="more", epsilon=21, delta=Fraction(1, 100))
            assert book.standing().limit.accounting == LIMITS[other]["accounting"]
        return
    with pytest.raises(LedgerError, match="fixed when a ledger is made"):
        book.change_limit(reason="the board", **LIMITS[other])
    # Ledgers in which it was changed before are read as they were written.
    with monkeypatch.context() as patch:
        patch.setattr("dpsubset.ledger.composition.Limit.measure", ("any", None))
        book.change_limit(reason="the board", **LIMITS[other])
    assert Ledger(tmp_path / "l.db").verify().standing.limit == book.standing().limit


def test_what_does_not_belong_is_refused_and_spends_nothing(ledger: Ledger) -> None:  # noqa: F811
    for wrong, says in (
        (event(1, unit="one patient"), "unit and rows_per_unit"),
        (event(1, rows_per_unit=3), "unit and rows_per_unit"),
        (event(1, costs={"add-remove": Cost(Fraction(1))}), "has no guarantee under replace-one"),
        (event(1, costs={}), "no guarantee"),
        (event(cost=Cost.concentrated(Fraction(1, 9), Fraction(1, 9))), "not purely private"),
    ):
        with pytest.raises(LedgerError, match=says):
            ledger.begin(wrong)
    assert ledger.verify().entries == {}
    assert ledger.standing().current.pure == 0


def test_the_relation_of_the_ledger_is_what_counts(tmp_path: Path, backend: str) -> None:  # noqa: F811
    both = event(costs={"replace-one": Cost(Fraction(2)), "add-remove": Cost(Fraction(1))})
    for relation, cost in (("replace-one", 2), ("add-remove", 1)):
        book = made(backend, tmp_path, neighbours=relation)
        assert book.begin(both).cost.pure == cost
        assert book.standing().current.pure == cost


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": None}, {"epsilon": 0}, {"epsilon": "x"}, {"epsilon": 1, "rho": 1}, {"owner": ""},
     {"purpose": "two\nlines"}, {"unit": " "}, {"rows_per_unit": 0}, {"neighbours": "odd"},
     {"data_set": "a#b"}, {"delta": 2}, {"accounting": "odd", "delta": 0.1}],
    ids=str,
)  # fmt: skip
def test_declarations_that_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    facts: dict[str, Any] = {"data_set": "p", "owner": "Ann", "purpose": "tests", "epsilon": 1}
    with pytest.raises(dps.ArgumentError):
        Ledger.create(tmp_path / "l.db", **{**facts, **wrong})
    assert not (tmp_path / "l.db").exists()


def test_a_ledger_is_made_once(tmp_path: Path, backend: str) -> None:  # noqa: F811
    address, name = address_of(backend, tmp_path)
    facts: dict[str, Any] = {"data_set": name, "owner": "Ann", "purpose": "tests", "epsilon": 1}
    Ledger.create(address, **facts)
    with pytest.raises(dps.ArgumentError, match="already"):
        Ledger.create(address, **facts)


def test_addresses() -> None:
    assert parse("postgresql://u:secret@h/db#some data")[1] == "some data"
    assert hidden("postgresql://u:secret@h/db#d") == "postgresql+psycopg://u:***@h/db#d"
    assert "secret" not in repr(Ledger("postgresql://u:secret@h/db"))
    assert parse("sqlite:///x.db")[0].get_backend_name() == "sqlite"
    for wrong in ("", "mysql://h/db", "nonsense://"):
        with pytest.raises(dps.ArgumentError):
            parse(wrong)


def test_copies_are_of_the_same_ledger(ledger: Ledger) -> None:  # noqa: F811
    ledger.reserve(event(1))
    for other in (pickle.loads(pickle.dumps(ledger)), copy.deepcopy(ledger)):
        other.reserve(event(1))
    assert ledger.standing().current.pure == 3


# -- files and versions ------------------------------------------------------------------------


def test_what_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger(tmp_path / "none.db").standing()
    (tmp_path / "text.db").write_text("not a database " * 100)
    with pytest.raises(LedgerError, match="no SQLite database"):
        Ledger(tmp_path / "text.db").standing()
    sqlite3.connect(tmp_path / "empty.db").execute("create table t(a)").connection.close()
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger(tmp_path / "empty.db").begin(event(1))


def test_it_is_written_for_good(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path)
    with book._store._engine(read_only=False).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_migrations_are_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = made("sqlite", tmp_path)
    book.reserve(event(1))

    def more(connection: Any) -> None:
        connection.exec_driver_sql("ALTER TABLE dpsubset_ledger ADD COLUMN note TEXT")

    def last(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE dpsubset_ledger SET note = 'moved'")

    monkeypatch.setattr(tables, "MIGRATIONS", [*tables.MIGRATIONS, more, last])
    again = Ledger(book.address)
    assert again.reserve(event(1)).state == "reserved"  # on the way
    assert len(again.verify().entries) == 2
    with again._store._transaction(read_only=True) as connection:
        assert tables.version(connection) == 3
        assert connection.exec_driver_sql("SELECT note FROM dpsubset_ledger").scalar() == "moved"
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="newer version"):
        Ledger(book.address).standing()


def test_a_read_only_copy_can_be_verified(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path)
    book.reserve(event(1))
    book.close()
    archive = tmp_path / "archive"
    archive.mkdir()
    copied = shutil.copy(book.address, archive)
    Path(copied).chmod(0o444)
    archive.chmod(0o555)
    try:
        assert len(Ledger(copied).verify().entries) == 1
    finally:
        archive.chmod(0o755)


# -- time ------------------------------------------------------------------------------------------


def test_a_clock_that_was_set_back(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    kept = ledger.reserve(event(1))
    receipt = ledger.begin(event(1))
    now = standing.clock.time()
    monkeypatch.setattr(standing.clock, "time", lambda: now - 3600)
    for act in (
        lambda: ledger.begin(event(1)),
        lambda: ledger.void(kept.id, reason="x"),
        lambda: ledger.refresh(reason="x"),
    ):
        with pytest.raises(LedgerError, match="set the clock right"):
            act()
    assert ledger.standing().current.pure == 2
    ledger.release(receipt, "ab" * 32)  # its line has no time
    # Clocks of several machines differ by a little.
    monkeypatch.setattr(standing.clock, "time", lambda: now - 90)
    ledger.begin(event(1))
    monkeypatch.setattr(standing.clock, "time", lambda: now + 120)
    ledger.begin(event(1))
    ledger.verify()


def test_no_line_tells_how_long_something_took(ledger: Ledger) -> None:  # noqa: F811
    receipt = ledger.begin(event(1))
    ledger.release(receipt, "ab" * 32)
    with ledger._store.reading() as journal:
        times = {row.kind: row.time for row in journal.all()}
    assert times["release"] == ""
    assert len(times["reserve"]) == len("2024-05-17T09:30Z")


# -- tampering -------------------------------------------------------------------------------------


@pytest.fixture
def full(backend: str, tmp_path: Path) -> Ledger:  # noqa: F811
    """A ledger with lines of every kind."""
    book = made(backend, tmp_path)
    released, lost = book.begin(event(1)), book.begin(event(2))
    book.release(released, "ab" * 32)
    book.lose(lost)
    book.reserve_all([event(1)] * 2, ["batch.0", "batch.1"])
    book.of_batch("batch").begin(event(1))
    book.void("batch.1", reason="not run", name="Bob")
    book.refresh(reason="new rows", name="Bob")
    book.change_limit(epsilon=11, reason="the board", name="Bob")
    book.begin(event(1))
    book.begin(event(1))
    book.verify()
    return book


def tamper(book: Ledger, statement: str, **values: Any) -> int:
    """Change the tables behind the ledger's back; how many rows were."""
    url, _ = parse(book.address)
    book.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        changed = connection.execute(text(statement), values).rowcount
    engine.dispose()
    return changed


def lines(book: Ledger) -> list[Any]:
    with book._store.reading() as journal:
        return list(journal.all())


def found_out(book: Ledger) -> None:
    with pytest.raises(LedgerError):
        Ledger(book.address).verify()


FIELDS = ["data_set", "sequence", "kind", "entry", "time", "actor", "body", "totals", "previous",
          "hash"]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_every_line(full: Ledger, field: str) -> None:
    name, rows = full.declaration.data_set, lines(full)
    assert {row.kind for row in rows} == {
        "open", "reserve", "read", "release", "lose", "void", "refresh", "limit"
    }  # fmt: skip
    for row in rows:
        value = getattr(row, field)
        other = 99 if field == "sequence" else {"": "x"}.get(value, f"{value[:-1]}~")
        where = "WHERE data_set = :data_set AND sequence = :sequence"
        at = {"data_set": name, "sequence": row.sequence}
        assert tamper(full, f"UPDATE dpsubset_journal SET {field} = :new {where}", new=other, **at)
        found_out(full)
        at[field] = other
        assert tamper(full, f"UPDATE dpsubset_journal SET {field} = :old {where}", old=value, **at)
        Ledger(full.address).verify()


def test_the_head_in_the_table_of_ledgers(full: Ledger) -> None:
    name, last = full.declaration.data_set, lines(full)[-1]
    where = "WHERE data_set = :name"
    for change, back in (
        ("sequence = sequence - 1", "sequence = sequence + 1"),
        (f"hash = '{'0' * 64}'", f"hash = '{last.hash}'"),
    ):
        assert tamper(full, f"UPDATE dpsubset_ledger SET {change} {where}", name=name)
        found_out(full)
        with pytest.raises(LedgerError, match=r"last line|not open"):
            Ledger(full.address).begin(event(1))
        assert tamper(full, f"UPDATE dpsubset_ledger SET {back} {where}", name=name)
        Ledger(full.address).verify()
    assert tamper(full, f"UPDATE dpsubset_ledger SET data_set = 'other' {where}", name=name)
    found_out(full)
    tamper(full, "UPDATE dpsubset_ledger SET data_set = :name WHERE data_set = 'other'", name=name)


def test_lines_that_are_taken_out(full: Ledger) -> None:
    name, rows = full.declaration.data_set, lines(full)
    columns = ", ".join(FIELDS)
    values = ", ".join(f":{field}" for field in FIELDS)
    where = "WHERE data_set = :data_set AND sequence = :sequence"
    for row in rows:
        at = {"data_set": name, "sequence": row.sequence}
        assert tamper(full, f"DELETE FROM dpsubset_journal {where}", **at)
        found_out(full)
        tamper(full, f"INSERT INTO dpsubset_journal ({columns}) VALUES ({values})", **row.to_dict())
        Ledger(full.address).verify()


def test_lines_that_change_places(full: Ledger) -> None:
    name, rows = full.declaration.data_set, lines(full)
    move = "UPDATE dpsubset_journal SET sequence = :to WHERE data_set = :name AND sequence = :at"
    for a, b in [(2, 3), (len(rows) - 1, len(rows))]:

        def swap(a: int = a, b: int = b) -> None:
            for at, to in ((a, 1000), (b, a), (1000, b)):
                assert tamper(full, move, name=name, at=at, to=to)

        swap()
        found_out(full)
        swap()
        Ledger(full.address).verify()


def test_a_chain_that_is_made_anew_must_still_add_up(full: Ledger) -> None:
    """Somebody who knows the form rewrites a cost, and all hashes after it."""
    name, rows = full.declaration.data_set, lines(full)
    before: Any = None
    for row in rows:
        body = json.loads(row.body)
        if row.sequence == 2:
            body["event"]["costs"]["replace-one"][0]["epsilon"] = "1/2"
        new = type(row).after(
            before, data_set=name, kind=row.kind, entry=row.entry, time=row.time,
            actor=row.actor, body=canonical(body), totals=row.totals,
        )  # fmt: skip
        tamper(
            full,
            "UPDATE dpsubset_journal SET body = :body, previous = :previous, hash = :hash "
            "WHERE data_set = :data_set AND sequence = :sequence",
            **{key: new.to_dict()[key] for key in
               ("body", "previous", "hash", "data_set", "sequence")},
        )  # fmt: skip
        before = new
    tamper(full, "UPDATE dpsubset_ledger SET hash = :hash WHERE data_set = :name",
           hash=before.hash, name=name)  # fmt: skip
    with pytest.raises(LedgerError, match="do not add up"):
        Ledger(full.address).verify()


def cut(book: Ledger, at: int) -> None:
    """Cut the journal off after a line, as somebody who knows the tables would."""
    name = book.declaration.data_set
    (last,) = [row for row in lines(book) if row.sequence == at]
    tamper(book, "DELETE FROM dpsubset_journal WHERE data_set = :name AND sequence > :at",
           name=name, at=at)  # fmt: skip
    tamper(book, "UPDATE dpsubset_ledger SET sequence = :at, hash = :hash WHERE data_set = :name",
           name=name, at=at, hash=last.hash)  # fmt: skip


def test_an_exported_head_tells_what_was_cut_off(full: Ledger, tmp_path: Path) -> None:
    early, late = None, full.head()
    assert Ledger(full.address).verify([late]).sequence == late["sequence"]
    cut(full, late["sequence"] - 1)
    Ledger(full.address).verify()  # by itself it looks whole
    early = Ledger(full.address).head()
    with pytest.raises(LedgerError, match="older copy"):
        Ledger(full.address).verify([late])
    Ledger(full.address).begin(event(2))  # grown again, to the same length
    with pytest.raises(LedgerError, match="rewritten"):
        Ledger(full.address).verify([early, late])
    Ledger(full.address).verify([early])
    (tmp_path / "head.json").write_text(json.dumps(early))
    assert read_head(tmp_path / "head.json") == early
    other = made("sqlite", tmp_path)
    with pytest.raises(LedgerError, match="another ledger"):
        other.verify([early])


def test_an_older_copy_of_the_file(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path)
    book.reserve(event(1))
    book.close()
    shutil.copy(book.address, tmp_path / "older.db")
    book.reserve(event(1))
    head = book.head()
    book.close()
    for name in ("-wal", "-shm"):
        Path(book.address + name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "older.db", book.address)
    Ledger(book.address).verify()
    with pytest.raises(LedgerError, match="older copy"):
        Ledger(book.address).verify([head])


@pytest.mark.parametrize("wrong", ["{", "[]", "{}", '{"format": "dpsubset ledger head 1"}'])
def test_heads_that_are_none(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "head.json").write_text(wrong)
    with pytest.raises(LedgerError, match="exported head"):
        read_head(tmp_path / "head.json")


def test_the_version_is_a_field_too(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path)
    for number in (0, 2, 17):
        tamper(book, "UPDATE dpsubset_version SET version = :number", number=number)
        found_out(book)
    tamper(book, "DELETE FROM dpsubset_version")
    found_out(book)


def test_both_databases_are_tried() -> None:
    assert BACKENDS == ["sqlite", "postgresql"]
