"""Debits a second, from several processes at once: ``python -m benchmarks.ledger``.

With what the disk can do beside it, since a debit is on disk before it counts. PostgreSQL is
measured too if DPSUBSET_TEST_POSTGRES names a server (`tools/postgres.py` starts one).
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import uuid
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpsubset as dps
from dpsubset.ledger.event import Event
from dpsubset.ledger.ledger import Ledger
from dpsubset.privacy.guarantee import Cost

ONE = Event("select", "permute-and-flip", {"k": 2}, {"replace-one": Cost(Fraction(1, 10**6))},
            "one row", 1, "0" * 64)  # fmt: skip


def synced(folder: Path, seconds: float = 1.0) -> float:
    """How often a second a page can be written so that it stays."""
    file, count = os.open(folder / "page", os.O_RDWR | os.O_CREAT), 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        os.write(file, b"x" * 4096)
        os.fdatasync(file)
        count += 1
    os.close(file)
    return count / (time.monotonic() - start)


def _debit(address: str, gate: Any, seconds: float, batch: int, counts: Any) -> None:
    ledger = Ledger(address)
    ledger.standing()
    gate.wait()
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        ledger.reserve_all([ONE] * batch)
        count += batch
    counts.put(count)


def rate(address: str, processes: int, batch: int = 1, seconds: float = 3.0) -> float:
    """Debits a second from so many processes, so many in a transaction."""
    context = multiprocessing.get_context("fork")
    gate, counts = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_debit, args=(address, gate, seconds, batch, counts))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    total = sum(counts.get() for _ in workers)
    for worker in workers:
        worker.join()
    return total / seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {"SQLite": str(folder / "ledger.db")}
        if server := os.environ.get("DPSUBSET_TEST_POSTGRES"):
            places["PostgreSQL"] = f"{server}#bench {uuid.uuid4().hex[:8]}"
        for kind, address in places.items():
            data_set = address.partition("#")[2] or "bench"
            dps.Ledger.create(address, data_set=data_set, owner="x", purpose="x", epsilon=10**6)
            for processes, batch in ((1, 1), (4, 1), (4, 16)):
                before = synced(folder)
                found = rate(address, processes, batch)
                print(
                    f"{kind}: {found:.0f} debits a second from {processes} processes, {batch} in a "
                    f"transaction; the disk: {before:.0f} to {synced(folder):.0f} writes a second"
                )
            Ledger(address).verify()


if __name__ == "__main__":
    main()
