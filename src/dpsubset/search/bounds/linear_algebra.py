"""LAPACK on one thread, and bounds on the rounding error of factorisations."""

from __future__ import annotations

import functools
from typing import Any

from scipy.linalg import LinAlgError, eigvalsh
from threadpoolctl import ThreadpoolController

from ...base.kernels.arrays import ROUNDING, Array


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> Any:
    """Limit BLAS to one thread: for matrices this small, synchronisation costs more than the work.

    Returns a context manager.
    """
    return _controller().limit(limits=1, user_api="blas")


def smallest_eigenvalue(block: Array) -> float:
    """The smallest eigenvalue of a symmetric matrix; 0 if LAPACK does not converge.

    An exception would depend on the data. With 0 the caller subtracts no diagonal, which is valid.
    """
    try:
        with single_threaded_blas():
            return float(eigvalsh(block, subset_by_index=(0, 0), check_finite=False)[0])
    except LinAlgError:
        return 0.0


def factorisation_error(size: int, trace: float) -> float:
    """Several times the rounding error of a Cholesky factorisation or of an eigenvalue.

    The matrix is positive semidefinite, with ``size`` rows and a trace of at most ``trace``.
    """
    return 64 * (size + 4) * ROUNDING * max(trace, 1e-300)
