"""The tables of a ledger, and how older ones become the present ones.

``dpsubset_version`` holds one number, the version of the tables. ``dpsubset_ledger`` has a row a
data set: the number and hash of its last line, and what PostgreSQL locks. ``dpsubset_journal`` has
the lines, which are only ever added.
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
    # What happens to an entry happens once.
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
    """From nothing to version 1."""
    METADATA.create_all(connection, tables=[VERSION, LEDGERS, JOURNAL], checkfirst=False)
    connection.execute(VERSION.insert().values(version=0))


#: The step at place i leads from version i to i + 1. Steps are added at the end, never changed.
MIGRATIONS: list[Callable[[Connection], None]] = [_create]


def present(connection: Connection) -> bool:
    """Whether there are tables of a ledger at all."""
    return inspect(connection).has_table(VERSION.name)


def version(connection: Connection) -> int:
    """The version of the tables that are there."""
    numbers = connection.execute(select(VERSION.c.version)).scalars().all()
    if len(numbers) != 1 or not 1 <= numbers[0] <= len(MIGRATIONS):
        if len(numbers) == 1 and numbers[0] > len(MIGRATIONS):
            raise LedgerError(
                "this ledger was written by a newer version of dpsubset: use that one"
            )
        raise LedgerError("this ledger is damaged: it does not say which version it has")
    return int(numbers[0])


def migrate(connection: Connection) -> None:
    """Bring the tables up to date, creating them if there are none; within one transaction."""
    done = version(connection) if present(connection) else 0
    for step in MIGRATIONS[done:]:
        step(connection)
        done += 1
        connection.execute(VERSION.update().values(version=done))
