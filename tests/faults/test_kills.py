"""Killed at any instant: no release without its debit, no debit lost, no budget passed."""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import dpsubset as dps
from support.ledgers import backend, made  # noqa: F401
from support.releasing import ASKED, DONE, FULL, REFUSED, Herd, X

pytestmark = pytest.mark.faults

#: Of each database. A ledger has room for part of the processes that run on it.
KILLS = 1000 if FULL else 50
RUNS = 60
ROOM = 40
AT_ONCE = 3


def _length(herd: Herd) -> float:
    """Of an ordinary release, in seconds."""
    lengths = []
    for _ in range(5):
        start = time.monotonic()
        assert herd.reap(herd.fork()) == DONE
        lengths.append(time.monotonic() - start)
    return statistics.median(lengths)


def test_killed_at_random_instants(
    backend: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dps.select(X, epsilon=1, ledger=False, **ASKED)  # compiled before anybody is forked
    came: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    while codes[-signal.SIGKILL] < KILLS:
        folder = tmp_path / str(sum(codes.values()))
        folder.mkdir()
        ledger = made(backend, folder, epsilon=ROOM)
        herd = Herd(ledger.address, folder, 1)
        ledger.close()
        length = _length(herd)
        herd.codes.clear()
        _kill_some(herd, length, KILLS - codes[-signal.SIGKILL])
        came += herd.check()
        codes += herd.codes
        # Whoever comes next can use it.
        assert herd.reap(herd.fork()) in (DONE, REFUSED)
        herd.check()
    with capsys.disabled():
        print(f"\n{backend}: {codes[-signal.SIGKILL]} ended by SIGKILL, "
              f"{codes[DONE] + codes[REFUSED]} before it came; entries: {dict(came)}")  # fmt: skip
    assert set(codes) <= {-signal.SIGKILL, DONE, REFUSED}
    # They were killed in several parts of their lives.
    assert came["reading"] > 0
    assert came["released"] > came["files"] or not FULL


def _kill_some(herd: Herd, length: float, most: int) -> None:
    """Kill processes at random instants until the ledger is full, or enough are dead."""
    alive: dict[int, float] = {}
    runs = 0
    while (runs < RUNS and herd.codes[-signal.SIGKILL] < most) or alive:
        while runs < RUNS and len(alive) < AT_ONCE and herd.codes[-signal.SIGKILL] < most:
            # Several at once take longer; some come a little later than a release takes.
            alive[herd.fork()] = time.monotonic() + random.uniform(0, 1.5 * length)
            runs += 1
        child = min(alive, key=lambda one: alive[one])
        time.sleep(max(0.0, alive.pop(child) - time.monotonic()))
        os.kill(child, signal.SIGKILL)  # it has not been waited for, so the number is its own
        herd.reap(child)
        if random.random() < 0.1:
            herd.check()


def test_the_command_killed(backend: str, tmp_path: Path) -> None:  # noqa: F811
    """The same with whole processes of the command line, from their start."""
    rows = [f"{i % 7 / 7:.4f},{i % 11 / 11:.4f},{i % 11 / 11:.4f}" for i in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    schema = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
    schema.write(tmp_path / "schema.yaml")
    ledger = made(backend, tmp_path, epsilon=100)
    herd = Herd(ledger.address, tmp_path, 1)

    def start(number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dpsubset", "select", "t.csv", "--schema", "schema.yaml",
                   "--k", "1", "--epsilon", "1", "--ledger", ledger.address, "--quiet", "--out",
                   f"release-{number}.json"]  # fmt: skip
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    begun = time.monotonic()
    assert start(0).wait(120) == 0
    length = time.monotonic() - begun
    for number in range(1, 21 if FULL else 4):
        process = start(number)
        # Most of its life is imports, so mostly towards the end.
        time.sleep(length * random.uniform(0.6, 1.1))
        process.kill()
        process.wait()
        herd.check()
    assert start(1000).wait(120) == 0
    assert herd.check()["files"] >= 2
