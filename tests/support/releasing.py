"""Processes that make one release each, with a ledger and a file, and may be killed at any instant.

They are forked from a process in which everything is imported and compiled, so that the instants of
their lives are those of a release: debit, reading, drawing, note, file.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpsubset as dps
from dpsubset.base.errors import BudgetExceeded, LedgerError
from dpsubset.cli.outputs import Output
from dpsubset.ledger.canonical import sha256_of_facts
from dpsubset.ledger.ledger import Ledger
from dpsubset.ledger.receipt import Receipt
from dpsubset.release.files import facts_from_json
from dpsubset.release.release import FORMAT

#: All kills with DPSUBSET_FAULTS=full, a sample otherwise.
FULL = os.environ.get("DPSUBSET_FAULTS") == "full"

X = np.random.default_rng(4).uniform(-1, 1, (60, 4))
ASKED: dict[str, Any] = {"y": X[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 1}

DONE, REFUSED, UNUSABLE, BROKEN = 0, 4, 5, 1


def release(address: str, out: Path, epsilon: Any, noted: Callable[[str], None]) -> int:
    """One release into a file, as the command line makes it; the exit code."""
    ledger = Ledger(address, actor="tester")
    begin = ledger.begin

    def begun(event: Any) -> Receipt:
        receipt = begin(event)
        noted(receipt.entry)
        return receipt

    ledger.begin = begun  # type: ignore[method-assign]
    try:
        made = dps.select(X, epsilon=epsilon, ledger=ledger, **ASKED)
        with Output(out) as output:
            output.draft.write_text(made.to_json(), encoding="utf-8")
            output.publish()
    except BudgetExceeded:
        return REFUSED
    except LedgerError as error:
        os.write(2, f"{error}\n".encode())
        return UNUSABLE
    return DONE


@dataclass
class Herd:
    """Processes with one ledger and one folder of releases."""

    address: str
    folder: Path
    epsilon: Any
    count: int = 0
    codes: Counter[int] = field(default_factory=Counter)

    @property
    def notes(self) -> Path:
        """Debits that a process has seen on disk, one a line."""
        return self.folder / "notes"

    def fork(self, gate: int | None = None) -> int:
        """A process that makes a release, once the gate is open."""
        self.count += 1
        out = self.folder / f"release-{self.count}.json"
        child = os.fork()
        if child:
            return child
        code = BROKEN
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if gate is not None:
                os.read(gate, 1)
            code = release(self.address, out, self.epsilon, self._note)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)

    def _note(self, entry: str) -> None:
        file = os.open(self.notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{entry}\n".encode())
        os.close(file)

    def reap(self, child: int, patience: float = 60.0) -> int:
        """Wait for a process: its exit code, or minus the signal that ended it."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                self.codes[code] += 1
                return code
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError("a process did not end: a deadlock")

    def check(self) -> Counter[str]:
        """What must hold, however the processes ended; how far they came."""
        # First what processes have seen, then the ledger: some of them may be alive.
        known = set(self.notes.read_text().split()) if self.notes.exists() else set()
        files = sorted(self.folder.glob("release-*.json"))
        history = Ledger(self.address).verify()
        assert history.standing.limit.admits(history.standing.current)
        lost = known - set(history.entries)
        assert not lost, f"debits that were on disk are gone: {lost}"
        paid = set()
        for path in files:
            # Whole, or not there.
            facts = facts_from_json(path.read_bytes(), FORMAT, "release")
            entry = history.entries[facts["ledger"]["release_id"]]
            assert entry.state == "released"
            assert entry.release == sha256_of_facts(facts)
            assert entry.id not in paid
            paid.add(entry.id)
        states = Counter(entry.state for entry in history.entries.values())
        assert states["released"] >= len(files)
        spent = sum(entry.counts for entry in history.entries.values())
        assert history.standing.current.pure == spent * Fraction(str(self.epsilon))
        return Counter({**states, "files": len(files)})
