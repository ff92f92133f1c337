"""Time and peak memory of one selection, in a fresh process so that nothing else counts.

The peak is that of the whole process: Python, the libraries, the table itself in float64, and what
the selection needs.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .data import Shape

#: Seconds for all that is not the selection: libraries, the table.
_PATIENCE = 180

#: Seconds after which a selection counts as not finished.
_LIMIT = 60.0


def measure(
    shape: Shape, setting: dict[str, Any], epsilon: float = 1.0, limit: float = _LIMIT
) -> dict[str, float]:
    """Seconds of select, of reading X once (X'y), peak bytes, and bytes of the table."""
    job = json.dumps(
        {"shape": asdict(shape), "setting": setting, "epsilon": epsilon, "limit": limit}
    )
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", job],
        cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True,
        timeout=_PATIENCE + limit, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeError(last)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def peak_bytes() -> int:
    """Most memory this process has had.

    Not ru_maxrss where it can be helped: on Linux a process starts with that of its parent, and
    the parent of a benchmark has held larger tables.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    kilo = 1 if sys.platform == "darwin" else 1024
    return kilo * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _child(job: dict[str, Any]) -> dict[str, float]:
    from . import ours

    shape = Shape(**job["shape"])
    # Compiled kernels come from numba's cache after this; compiling takes memory of its own.
    few = Shape(60, 1600 if shape.p > 1500 else 40)
    setting, epsilon, limit = job["setting"], job["epsilon"], job["limit"]
    ours.select(*few.make(), k=few.k, **setting)
    x, y = shape.make()
    x.T @ y
    start = time.perf_counter()
    x.T @ y
    once = time.perf_counter() - start
    start = time.perf_counter()
    ours.select(x, y, shape.k, epsilon, limit=limit, **setting)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "read_once": once,
        "peak": peak_bytes(),
        "table": x.nbytes,
    }


if __name__ == "__main__":
    print(json.dumps(_child(json.loads(sys.argv[1]))))
