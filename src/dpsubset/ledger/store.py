"""Store: transactions on a journal in a SQLite file or in PostgreSQL.

`Store.writing` is a transaction that excludes all other writers: by ``BEGIN IMMEDIATE`` on SQLite,
by a lock on the data set's row on PostgreSQL. Its lines are on disk when it ends (write-ahead log
with synchronous FULL; synchronous_commit on), or not at all. Errors of the database become
`LedgerError`.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError as BadURL
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from ..base.errors import ArgumentError, LedgerError
from . import tables
from .chain import Row
from .journal import HEAD, LOCK, Journal
from .tables import JOURNAL, LEDGERS

#: Seconds that a transaction waits for another process before it gives up.
PATIENCE = 30.0

#: Longest pause between two tries, in seconds: SQLite's own grow to a tenth.
_PAUSE = 0.001

_ONE_FILE = "a ledger is one file, for one data set"

#: Application id in the header of a SQLite file ("dpsl").
_MARK = 0x6470736C


class Store:
    """The journal of one data set.

    Parameters
    ----------
    address : str or Path
        A SQLite file, or a URL: ``postgresql://user@host/database``. With several data sets in one
        database, ``#name`` after it says which.
    patience : float
        Seconds to wait for other processes.
    """

    def __init__(self, address: str | Path, patience: float = PATIENCE) -> None:
        self._url, self._name = parse(address)
        # The whole path of a file: a copy may be used in another folder.
        self.address = str(self._path) if self.is_file else str(address)
        self._patience = patience
        self._engines: dict[tuple[int, bool], Engine] = {}
        self._known = False  # that its tables are of the present version
        self._new = False  # whether the file may be made

    @property
    def is_file(self) -> bool:
        """Whether the database is a SQLite file."""
        return self._url.get_backend_name() == "sqlite"

    @property
    def _path(self) -> Path:
        assert self._url.database is not None
        return Path(self._url.database)

    def create(self, data_set: str, first_row: Callable[[str | None], Row]) -> None:
        """Start a journal; refuse to overwrite one.

        Its first line is made for the user of the database session.
        """
        if self._name not in (None, data_set):
            raise ArgumentError("the address names another data set than the one declared")
        if self.is_file and self._path.exists():
            raise ArgumentError(f"{self._path} exists already: {_ONE_FILE}")
        self._new = True
        with self._transaction(new=True) as connection:
            self._migrate(connection)
            if self.is_file:
                connection.exec_driver_sql(f"PRAGMA application_id={_MARK}")
            if self.is_file and connection.execute(select(LEDGERS)).first():
                raise ArgumentError(f"{self._path} was made at the same moment: {_ONE_FILE}")
            first = first_row(self._session_user(connection))
            facts = {"data_set": data_set, "sequence": 1, "hash": first.hash}
            try:
                connection.execute(LEDGERS.insert().values(**facts))
            except IntegrityError:
                raise ArgumentError(
                    f"there is a ledger of {data_set!r} in this database already"
                ) from None
            connection.execute(JOURNAL.insert().values(**first.to_dict()))
        self._name, self._new = data_set, False

    @contextmanager
    def writing(self) -> Iterator[Journal]:
        """Open a transaction that appends lines and excludes all other writers."""
        with self._transaction() as connection:
            yield self._journal(connection, lock=True)

    @contextmanager
    def reading(self) -> Iterator[Journal]:
        """Open a transaction that sees one state of the journal."""
        with self._transaction(read_only=True) as connection:
            yield self._journal(connection, lock=False)

    def close(self) -> None:
        """Close all connections."""
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()

    def _journal(self, connection: Connection, lock: bool) -> Journal:
        query = LOCK if lock else HEAD
        rows = connection.execute(query, {"name": self._name}).all()
        if len(rows) != 1:
            if self._name is not None or not rows:
                raise LedgerError(
                    "there is no ledger of this data set here: 'dpsubset ledger create' makes one"
                )
            raise LedgerError(
                "this database has ledgers of several data sets: write #NAME after its address"
            )
        head = rows[0]
        self._name = str(head.data_set)
        user = self._session_user(connection) if lock else None
        return Journal(connection, self._name, int(head.sequence), str(head.hash), user)

    def _session_user(self, connection: Connection) -> str | None:
        """Return the user who logged in to the server; None for a file."""
        if self.is_file:
            return None
        return str(connection.exec_driver_sql("SELECT session_user").scalar_one())

    # -- transactions ----------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, new: bool = False, read_only: bool = False) -> Iterator[Connection]:
        if self.is_file and not new:
            self._check_file()
        began = False
        try:
            if not new:
                self._bring_up_to_date()
            with self._engine(read_only).begin() as connection:
                began = True
                yield connection
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise LedgerError(_error_message(error, began and not read_only)) from None

    def _bring_up_to_date(self) -> None:
        if self._known:
            return
        with self._engine(read_only=True).begin() as connection:
            old = tables.version(connection) < len(tables.MIGRATIONS)
        if old:
            with self._engine(read_only=False).begin() as connection:
                self._migrate(connection)
        self._known = True

    def _migrate(self, connection: Connection) -> None:
        if not self.is_file:  # where nothing is locked yet
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MARK})")
        tables.migrate(connection)

    def _check_file(self) -> None:
        if not self._path.is_file():
            if self._path.is_dir():
                raise LedgerError(
                    f"{self._path} is a folder: give the path of the ledger's file in it"
                )
            raise LedgerError(
                f"there is no ledger at {self._path}: 'dpsubset ledger create' makes one"
            )

    def _engine(self, read_only: bool) -> Engine:
        # A connection must not be shared with a forked process.
        key = (os.getpid(), read_only)
        if key not in self._engines:
            build = self._sqlite if self.is_file else self._postgresql
            self._engines[key] = build(read_only)
        return self._engines[key]

    def _sqlite(self, read_only: bool) -> Engine:
        path, patience = self._path, self._patience

        def connect() -> sqlite3.Connection:
            mode = _reading_mode(path) if read_only else "mode=rwc" if self._new else "mode=rw"
            target = f"file:{_quoted(path)}?{mode}"
            connection = sqlite3.connect(
                target, uri=True, timeout=patience, isolation_level=None, check_same_thread=False
            )
            if read_only:
                connection.execute("PRAGMA query_only=ON")
            else:
                _patiently(connection, "PRAGMA journal_mode=WAL", patience)
                connection.execute("PRAGMA synchronous=FULL")
            return connection

        kept: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 8}
        pool = {"poolclass": NullPool} if read_only else kept
        engine = create_engine("sqlite://", creator=connect, **pool)

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            driver: Any = connection.connection.dbapi_connection
            _patiently(driver, "BEGIN" if read_only else "BEGIN IMMEDIATE", patience)

        return engine

    def _postgresql(self, read_only: bool) -> Engine:
        wait = max(1, int(1000 * self._patience))
        options = f"-c synchronous_commit=on -c lock_timeout={wait} -c statement_timeout={wait}"
        return create_engine(
            self._url,
            pool_size=1,
            max_overflow=8,
            pool_pre_ping=True,
            isolation_level="REPEATABLE READ" if read_only else "READ COMMITTED",
            connect_args={"options": options, "connect_timeout": max(2, int(self._patience))},
        )


def parse(address: str | Path) -> tuple[URL, str | None]:
    """Split an address into the URL of a database and the name of a data set, if it has one."""
    text = str(address)
    if not text.strip():
        raise ArgumentError("a ledger is a file or the URL of a database")
    if isinstance(address, Path) or "://" not in text:
        return URL.create("sqlite", database=os.path.abspath(text)), None
    text, _, name = text.partition("#")
    try:
        url = make_url(text)
    except (BadURL, ValueError):
        raise ArgumentError("the URL of the ledger cannot be read") from None
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg"), name or None
    if backend == "sqlite" and url.database:
        database = os.path.abspath(url.database)
        return URL.create("sqlite", database=database), name or None
    raise ArgumentError("a ledger is a SQLite file, or PostgreSQL: postgresql://host/database")


def hidden(address: str | Path) -> str:
    """Return an address without its password."""
    text = str(address)
    if "://" not in text:
        return text
    url, name = parse(address)
    return url.render_as_string(hide_password=True) + (f"#{name}" if name else "")


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path))


def _reading_mode(path: Path) -> str:
    """Choose the mode in which a reader opens a file."""
    if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
        return "mode=rw"
    log = Path(f"{path}-wal")
    # Lines of the log count, so a process that cannot read them fails.
    return "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"


def _patiently(connection: Any, statement: str, patience: float) -> None:
    """Run a statement once the database is free, with shorter pauses than SQLite's own.

    All other statements use SQLite's own: readers wait while the log is recovered or removed.
    """
    end = time.monotonic() + patience
    connection.execute("PRAGMA busy_timeout=0").fetchall()
    try:
        while True:
            try:
                connection.execute(statement).fetchall()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > end:
                    raise
            time.sleep(random.uniform(0, _PAUSE))
    finally:
        connection.execute(f"PRAGMA busy_timeout={max(1, int(1000 * patience))}").fetchall()


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


_SQLITE = {
    sqlite3.SQLITE_ERROR: "it is not a ledger, or it is damaged",
    sqlite3.SQLITE_BUSY: "another process holds it, and did not let go in time",
    sqlite3.SQLITE_LOCKED: "another connection holds it, and did not let go in time",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "its file or folder is read-only",
    sqlite3.SQLITE_IOERR: "the disk could not be read or written",
    sqlite3.SQLITE_CORRUPT: "its file is damaged",
    sqlite3.SQLITE_NOTADB: "its file is no SQLite database",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
    sqlite3.SQLITE_PERM: "access to its file was refused",
}


def _error_message(error: Exception, began: bool) -> str:
    """Describe an error of the database. Its own text is left out: it may hold a password."""
    cause = getattr(error, "orig", error)
    code = getattr(cause, "sqlite_errorcode", None)
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    reason = "the database refused"
    if code is not None:
        reason = _SQLITE.get(code & 0xFF, f"SQLite error {code}")
    elif (state := getattr(cause, "sqlstate", None)) is not None:
        reason = _STATES.get(state, _STATES.get(state[:2], f"PostgreSQL error {state}"))
    elif lost or type(cause).__name__ in ("OperationalError", "InterfaceError"):
        reason = "the connection to its server failed or was lost"
    after = (
        ". Nothing was released. If a debit was being written it may count: see 'dpsubset ledger "
        "show'"
    )
    return f"the ledger could not be used: {reason}{after if began else '. Nothing was released'}"


_STATES = {
    "55P03": "another process holds it, and did not let go in time",
    "57014": "another process holds it, and did not let go in time",
    "40001": "another process changed it at the same moment: try again",
    "53100": "the server's disk is full",
    "25006": "the server is read-only",
    "42501": "access was refused",
    "42P01": "there is no ledger here: 'dpsubset ledger create' makes one",
    "3D000": "there is no such database",
    "28": "access was refused",
    "08": "the connection to its server failed or was lost",
    "57": "the server is shutting down, or ended the connection",
    "53": "the server is out of resources",
}
