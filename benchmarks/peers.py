"""Other solvers of the same problem, each in a process of its own.

OKRidge certifies the optimum, abess does not. OKRidge needs numpy below 2, so the peers live in an
environment of their own (``make peers``); this file runs there by its path and imports nothing of
the project. Both get the clipped and scaled data and no settings but k, the ridge and a time
limit; OKRidge's gap is the 1e-4 of its constructor.

A peer runs on one BLAS thread and on all of them, and the faster run counts: OKRidge makes many
small products, which threads can slow down six times, and a slow peer would flatter us.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parent.parent

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def interpreter() -> str:
    """The Python that has the peers: .venv-peers if there is one, else this one."""
    own = _ROOT / ".venv-peers" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def run(
    peer: str, x: np.ndarray, y: np.ndarray, k: int, ridge: float, limit: float,
    python: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What a peer found and how long it took; {"missing": reason} if it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, x=x, y=y)
        job = json.dumps({"peer": peer, "file": str(file), "k": k, "ridge": ridge, "limit": limit})
        single = _process(peer, job, limit, python, dict.fromkeys(_THREADS, "1"))
        # Missing, or out of time: more threads would not help.
        if "missing" in single or single["search"] >= limit:
            return single
        several = _process(peer, job, limit, python, {})
    return min(single, several, key=lambda result: float(result["whole"]))


def _process(
    peer: str, job: str, limit: float, python: str | None, threads: dict[str, str]
) -> dict[str, Any]:
    # -P keeps this folder, whose modules have common names, off the peers' import path.
    done = subprocess.run(
        [python or interpreter(), "-P", str(Path(__file__).resolve()), job],
        capture_output=True, text=True, timeout=3 * limit + 120, check=False,
        env={**os.environ, **threads},
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeError(f"{peer}: {last}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**result, "threads": "one thread" if threads else "all threads"}


def _okridge(x: np.ndarray, y: np.ndarray, k: int, ridge: float, limit: float) -> dict[str, Any]:
    from okridge.tree import BNBTree

    start = time.perf_counter()
    tree = BNBTree(x, y, lambda2=ridge)
    middle = time.perf_counter()
    _, beta, gap, _, _ = tree.solve(k, gap_tol=1e-4, time_limit=limit)
    end = time.perf_counter()
    return {
        "whole": end - start,
        "search": end - middle,
        "support": np.flatnonzero(beta).tolist(),
        "certified": bool(gap <= 1e-4),
        "gap": float(gap),
    }


def _abess(x: np.ndarray, y: np.ndarray, k: int, ridge: float, limit: float) -> dict[str, Any]:
    """Timed as it comes, without a ridge.

    Its alpha, with columns left as they are, is our ridge (the coefficients agree to all digits).
    What it selects with it is reported too.
    """
    from abess.linear import LinearRegression

    def fit(alpha: float | None, normal: bool) -> tuple[float, list[int]]:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            model = LinearRegression(support_size=k, alpha=alpha, fit_intercept=False)
            model.fit(x, y, is_normal=normal)
            times.append(time.perf_counter() - start)
        return float(np.median(times)), np.flatnonzero(model.coef_).tolist()

    whole, support = fit(None, True)
    with_ridge, ridge_support = fit(ridge, False)
    return {
        "whole": whole,
        "search": whole,
        "support": support,
        "certified": False,
        "whole_with_ridge": with_ridge,
        "support_with_ridge": ridge_support,
    }


def _main(job: dict[str, Any]) -> dict[str, Any]:
    with np.load(job["file"]) as data:
        x, y = data["x"], data["y"]
    solve = {"okridge": _okridge, "abess": _abess}[job["peer"]]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # OKRidge prints as it goes
            return solve(x, y, job["k"], job["ridge"], job["limit"])
    except ImportError as error:
        return {"missing": str(error)}


if __name__ == "__main__":
    print(json.dumps(_main(json.loads(sys.argv[1]))))
