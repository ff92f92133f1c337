"""The tables of a ledger, and their migrations.

``dpsubset_version`` holds one number, the version of the tables. ``dpsubset_ledger`` has a row for
each data set, with the number and hash of its last line; PostgreSQL locks this row.
``dpsubset_journal`` has the lines, which are only ever added.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
    text,
)

from ..base.errors import LedgerError

METADATA = MetaData()

VERSION = Table("dpsubset_version", METADATA, Column("version", Integer, nullable=False))

LEDGERS = Table(
    "dpsubset_ledger",
    METADATA,
    Column("data_set", String(200), primary_key=True),
    Column("sequence", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
)

JOURNAL = Table(
    "dpsubset_journal",
    METADATA,
    Column("data_set", String(200), primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("entry", String(200), nullable=False),
    Column("time", String(32), nullable=False),
    Column("actor", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("totals", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    # Every kind of event happens to an entry at most once.
    Index(
        "dpsubset_journal_entry",
        "data_set",
        "entry",
        "kind",
        unique=True,
        sqlite_where=text("entry <> ''"),
        postgresql_where=text("entry <> ''"),
    ),
)


def _create(connection: Connection) -> None:
    METADATA.create_all(connection, tables=[VERSION, LEDGERS, JOURNAL], checkfirst=False)
    connection.execute(VERSION.insert().values(version=0))


#: Step i leads from version i to i + 1. Steps are appended, never changed.
MIGRATIONS: list[Callable[[Connection], None]] = [_create]


def present(connection: Connection) -> bool:
    """Return whether the database has tables of a ledger."""
    return inspect(connection).has_table(VERSION.name)


def version(connection: Connection) -> int:
    """Return the version of the database's tables."""
    numbers = connection.execute(select(VERSION.c.version)).scalars().all()
    if len(numbers) != 1 or not 1 <= numbers[0] <= len(MIGRATIONS):
        if len(numbers) == 1 and numbers[0] > len(MIGRATIONS):
            raise LedgerError(
                "this ledger was written by a newer version of dpsubset: use that one"
            )
        raise LedgerError("this ledger is damaged: it does not say which version it has")
    return int(numbers[0])


def migrate(connection: Connection) -> None:
    """Create the tables or bring them up to date, within one transaction."""
    done = version(connection) if present(connection) else 0
    for step in MIGRATIONS[done:]:
        step(connection)
        done += 1
        connection.execute(VERSION.update().values(version=done))
