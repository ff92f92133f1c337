"""Many processes at once: a budget for ten releases is ten releases."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

import dpsubset as dps
from dpsubset.ledger.ledger import Ledger
from support.ledgers import backend, event, made  # noqa: F401
from support.releasing import ASKED, DONE, REFUSED, Herd, X

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("attempt", range(3))
def test_forty_race_for_ten(backend: str, tmp_path: Path, attempt: int) -> None:  # noqa: F811
    dps.select(X, epsilon=1, ledger=False, **ASKED)
    ledger = made(backend, tmp_path, epsilon=1)
    ledger.close()
    herd = Herd(ledger.address, tmp_path, 0.1)
    gate, opener = os.pipe()
    children = [herd.fork(gate) for _ in range(40)]
    time.sleep(0.2)
    os.write(opener, b"x" * 40)
    for child in children:
        herd.reap(child)
    os.close(gate)
    os.close(opener)
    assert herd.codes == {DONE: 10, REFUSED: 30}
    assert herd.check() == {"released": 10, "files": 10}
    assert ledger.standing().current.pure == 1


def _debit(address: str, gate: Any, count: int) -> None:
    ledger = Ledger(address, actor="tester")
    one = event("1/1000")
    ledger.standing()
    gate.wait()
    for _ in range(count):
        ledger.reserve(one)


def test_debits_a_second(
    backend: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A figure, and that none gets lost; how fast it is depends on the disk."""
    ledger = made(backend, tmp_path, epsilon=100)
    ledger.close()
    context = multiprocessing.get_context("fork")
    gate, each = context.Barrier(5), 300
    workers = [context.Process(target=_debit, args=(ledger.address, gate, each)) for _ in range(4)]
    for worker in workers:
        worker.start()
    gate.wait()
    start = time.monotonic()
    for worker in workers:
        worker.join(120)
    rate = 4 * each / (time.monotonic() - start)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(ledger.verify().entries) == 4 * each
    with capsys.disabled():
        print(f"\n{backend}: {rate:.0f} debits a second from 4 processes")
    assert rate > 20
