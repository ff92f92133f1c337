"""Moments of an array in memory, against a bare float64 product of the same array.

The product X'X is what any method must compute; clipping, scaling, quantizing and the move to
integers come on top. Goals: at most 2.5 times the time of the product, and at most the size of the
input plus two p x p matrices of extra memory.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .memory import peak_bytes

N, P = 5000, 2000
REPEATS = 7
TIME_GOAL = 2.5


def rows() -> list[dict[str, Any]]:
    """One row a quantity: what was measured, what it is compared with, the ratio, the goal."""
    ours, bare = _times()
    extra = _extra_memory()
    allowed = 8 * N * P + 2 * 8 * P * P
    return [
        {
            "benchmark": f"moments of a numpy array, n = {N}, p = {P}: seconds",
            "ours": ours,
            "peer": bare,
            "peer is": "bare float64 X.T @ X",
            "ratio": ours / bare,
            "goal": TIME_GOAL,
        },
        {
            "benchmark": f"moments of a numpy array, n = {N}, p = {P}: peak extra bytes",
            "ours": extra,
            "peer": allowed,
            "peer is": "input + two p x p matrices",
            "ratio": extra / allowed,
            "goal": 1.0,
        },
    ]


def _job() -> tuple[Callable[[], Any], np.ndarray]:
    from dpsubset import Bounds, Moments
    from dpsubset.data.readers import open_table

    x = np.empty((N, P))
    np.random.default_rng(0).standard_normal(out=x)
    y = np.ascontiguousarray(x[:, 0])
    bounds = Bounds(x=3.0, y=3.0)
    schema = bounds.schema([f"x{j}" for j in range(P)])

    def moments() -> Any:
        return Moments.from_blocks(schema, open_table(x, schema, y).blocks())

    # Compile the kernels and let BLAS take its buffers on a few rows.
    few = bounds.schema([f"x{j}" for j in range(50)])
    Moments.from_blocks(few, open_table(x[:100, :50].copy(), few, y[:100]).blocks())
    return moments, x


def _times() -> tuple[float, float]:
    moments, x = _job()
    ours, bare = [], []
    for _ in range(REPEATS):  # in turn, so that a busy machine slows both
        start = time.perf_counter()
        moments()
        middle = time.perf_counter()
        x.T @ x
        ours.append(middle - start)
        bare.append(time.perf_counter() - middle)
    return statistics.median(ours), statistics.median(bare)


def _extra_memory() -> int:
    """Peak memory of a fresh process while it computes moments, beyond what it held before."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.moments"],
        cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(json.loads(done.stdout)["extra"])


def _measure_memory() -> None:
    moments, x = _job()
    before = _resident()
    result = moments()
    assert result.n == len(x)
    print(json.dumps({"extra": peak_bytes() - before}))


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    _measure_memory()
