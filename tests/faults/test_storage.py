"""Full disks, read-only files, locks and lost connections: a clear error, nothing released."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

import dpsubset as dps
from dpsubset.base.errors import LedgerError
from dpsubset.ledger.ledger import Ledger
from dpsubset.ledger.store import parse
from support.ledgers import POSTGRES, backend, event, made  # noqa: F401
from support.releasing import ASKED, X

pytestmark = pytest.mark.faults
SMALL = "1/1000"


def select(ledger: Ledger) -> dps.Release:
    return dps.select(X, epsilon=0.001, ledger=ledger, **ASKED)


def in_a_process(act: Callable[[], None]) -> None:
    """Run in a process of its own, which may limit itself."""
    child = os.fork()
    if not child:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def until_it_fails(ledger: Ledger, says: str) -> int:
    """How many releases were made before the first that could not be."""
    receipts: list[object] = []

    def act() -> None:
        for _ in range(5000):
            receipts.append(select(ledger).receipt)

    with pytest.raises(LedgerError, match=says):
        act()
    return len(receipts)


def released(ledger: Ledger) -> int:
    entries = ledger.verify().entries.values()
    return sum(entry.state == "released" for entry in entries)


# -- files -----------------------------------------------------------------------------------------


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The system's limit on the size of files: what writing beyond a quota is like."""
    ledger = made("sqlite", tmp_path)
    ledger.close()

    def act() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        count = until_it_fails(ledger, "disk")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert 0 < count == released(Ledger(ledger.address))

    in_a_process(act)
    assert select(ledger).receipt is not None  # it can be used again
    ledger.verify()


def test_a_full_disk(tmp_path: Path) -> None:
    """A small file system of its own, as far as the tests may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        ledger = made("sqlite", disk)
        count = until_it_fails(ledger, "disk is full|could not be read or written")
        ledger.close()
        # Room is made, and nothing is missing.
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        assert 0 < count == released(Ledger(ledger.address))
        assert select(ledger).receipt is not None
        ledger.close()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "owned"
    folder.mkdir()
    ledger = made("sqlite", folder)
    ledger.reserve(event(SMALL))
    ledger.close()
    Path(ledger.address).chmod(0o444)
    folder.chmod(0o555)
    try:

        def act() -> None:
            if os.geteuid() == 0:  # for root nothing is read-only
                for parent in (*folder.parents,)[:3]:
                    assert parent.exists()
                    parent.chmod(parent.stat().st_mode | 0o111)
                os.setgid(65534)
                os.setuid(65534)
            with pytest.raises(LedgerError, match=r"read-only|cannot be opened|refused"):
                select(Ledger(ledger.address, actor="tester"))

        in_a_process(act)
    finally:
        folder.chmod(0o755)
        Path(ledger.address).chmod(0o644)
    assert released(ledger) == 0
    assert select(ledger).receipt is not None


def test_a_file_that_is_locked(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path)
    holder = sqlite3.connect(ledger.address, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    hurried = Ledger(ledger.address, patience=0.3)
    start = time.monotonic()
    with pytest.raises(LedgerError, match="another process holds it"):
        select(hurried)
    assert 0.2 < time.monotonic() - start < 5
    holder.execute("ROLLBACK")
    holder.close()
    assert select(hurried).receipt is not None
    assert released(ledger) == 1


def test_a_file_that_is_damaged(tmp_path: Path) -> None:
    ledger = made("sqlite", tmp_path)
    for _ in range(20):
        ledger.reserve(event(SMALL))
    ledger.close()
    raw = bytearray(Path(ledger.address).read_bytes())
    for at in range(4096 * 2, len(raw), 97):
        raw[at] ^= 0x55
    Path(ledger.address).write_bytes(bytes(raw))
    with pytest.raises(LedgerError):
        Ledger(ledger.address).verify()
    with pytest.raises(LedgerError):
        select(Ledger(ledger.address))


# -- PostgreSQL ------------------------------------------------------------------------------------


class Proxy:
    """Between a client and the server; cuts the connection when the client commits."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.mode = "open"
        self.commits = 0
        self.cut_at = 1
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, mode: str, at: int) -> None:
        self.mode, self.commits, self.cut_at = mode, 0, at

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            threading.Thread(target=self._down, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        while data := self._received(client):
            if b"COMMIT\0" in data and self.mode != "open":
                self.commits += 1
                if self.commits == self.cut_at:
                    if self.mode == "after":
                        server.sendall(data)
                        time.sleep(0.3)  # the server has done it, and nobody hears
                    self.mode = "open"
                    break
            server.sendall(data)
        self._end(client, server)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        while data := self._received(server):
            if self.mode == "after" and self.commits == self.cut_at:
                break
            try:
                client.sendall(data)
            except OSError:
                break

    def _received(self, side: socket.socket) -> bytes:
        try:
            return side.recv(65536)
        except OSError:
            return b""

    def _end(self, *sides: socket.socket) -> None:
        for side in sides:
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[Ledger, Ledger, Proxy]]:
    """A ledger, the same by a proxy, and that."""
    ledger = made("postgresql", tmp_path)
    url, name = parse(ledger.address)
    assert url.port is not None
    proxy = Proxy(url.port)
    through = url.set(port=proxy.port).render_as_string(hide_password=False)
    yield ledger, Ledger(f"{through}#{name}", patience=3), proxy
    proxy.close()


#: Commits of a release.
DEBIT, NOTE = 1, 2


@pytest.mark.parametrize(
    ("commit", "mode", "state"),
    [
        (DEBIT, "before", None),
        (DEBIT, "after", "reading"),
        (NOTE, "before", "lost"),
        (NOTE, "after", "released"),
    ],
)
def test_a_connection_lost_in_mid_commit(
    proxied: tuple[Ledger, Ledger, Proxy], commit: int, mode: str, state: str | None
) -> None:
    ledger, through, proxy = proxied
    assert select(through).receipt is not None
    proxy.arm(mode, commit)
    with pytest.raises(LedgerError, match=r"connection .* lost.*[Nn]othing was released"):
        select(through)
    assert proxy.mode == "open"  # it was cut
    states = [entry.state for entry in ledger.verify().entries.values()]
    assert states == ["released", *([] if state is None else [state])]
    # Unheard of or not, a debit that stands counts.
    assert ledger.standing().current.pure == Fraction(len(states), 1000)
    assert select(through).receipt is not None
    ledger.verify()


def test_a_row_that_is_locked(tmp_path: Path) -> None:
    ledger = made("postgresql", tmp_path)
    url, name = parse(ledger.address)
    engine = create_engine(url)
    hurried = Ledger(ledger.address, patience=1)
    with engine.connect() as holder:
        statement = text("SELECT * FROM dpsubset_ledger WHERE data_set = :name FOR UPDATE")
        holder.execute(statement, {"name": name})
        with pytest.raises(LedgerError, match="another process holds it"):
            select(hurried)
    engine.dispose()
    assert select(hurried).receipt is not None
    assert released(ledger) == 1


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ledger = Ledger(f"postgresql://u:secret@127.0.0.1:{port}/db", patience=2)
    with pytest.raises(LedgerError, match="connection") as error:
        select(ledger)
    assert "secret" not in str(error.value)


def test_a_session_that_the_server_ends(tmp_path: Path) -> None:
    ledger = made("postgresql", tmp_path)
    assert select(ledger).receipt is not None
    engine = create_engine(parse(POSTGRES or "")[0])
    with engine.connect() as other:
        other.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                           "WHERE pid <> pg_backend_pid() AND usename = current_user"))  # fmt: skip
    engine.dispose()
    assert select(ledger).receipt is not None  # it connects anew
    assert released(ledger) == 2
