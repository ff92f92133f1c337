"""Run a command beside a PostgreSQL server of its own, on loopback, and stop the server after it.

    python tools/postgres.py COMMAND ARGUMENT ...

The command finds the server's address in DPSUBSET_TEST_POSTGRES. Everything lives in a temporary
folder, which is removed. Programs are those on the PATH or in /usr/lib/postgresql/*/bin; where
there are none and this is root, apt installs them. A server does not run as root: then it runs as
the account `postgres` or `nobody`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VARIABLE = "DPSUBSET_TEST_POSTGRES"


def programs() -> Path | None:
    """The folder that initdb and pg_ctl are in; the newest, if there are several."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: float(path.parent.name) if path.parent.name.isdigit() else 0.0,
    )
    return next((path for path in reversed(folders) if (path / "initdb").exists()), None)


def install() -> Path:
    """The same, by apt if need be."""
    found = programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {
            "stdout": subprocess.DEVNULL,
            "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        }
        subprocess.run(["apt-get", "update", "-q"], check=False, **quiet)
        subprocess.run(["apt-get", "install", "-y", "-q", "postgresql"], check=True, **quiet)
        found = programs()
    if found is None:
        sys.exit("PostgreSQL was not found: install it (apt-get install postgresql)")
    return found


def account() -> dict[str, Any]:
    """As whom the server runs: root may not."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            known = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
    sys.exit("PostgreSQL does not run as root, and there is no account postgres or nobody")


@contextmanager
def server() -> Iterator[str]:
    """A server on loopback, and its URL."""
    bin, who = install(), account()
    folder = Path(tempfile.mkdtemp(prefix="dpsubset-postgres-"))
    try:
        if who:
            os.chown(folder, who["user"], who["group"])
        data, password = folder / "data", secrets.token_hex(16)
        (folder / "password").write_text(password)
        os.chmod(folder / "password", 0o644 if who else 0o600)
        quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **who}
        subprocess.run(
            [bin / "initdb", "-D", data, "-U", "tester", "--auth=scram-sha-256",
             f"--pwfile={folder / 'password'}", "--no-locale", "-E", "UTF8"],
            **quiet,
        )  # fmt: skip
        (folder / "password").unlink()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c max_connections=120"
        log = folder / "log"
        subprocess.run(
            [bin / "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start"], **quiet
        )
        try:
            yield f"postgresql://tester:{password}@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([bin / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(command: list[str]) -> int:
    if not command:
        sys.exit(__doc__)
    # Ended by a signal, it still stops the server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with server() as url:
        return subprocess.run(command, env={**os.environ, VARIABLE: url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
