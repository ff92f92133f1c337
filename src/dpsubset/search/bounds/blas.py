"""BLAS and LAPACK on one thread: theirs wait for each other longer than they work."""

from __future__ import annotations

import functools
from typing import Any

from scipy.linalg import LinAlgError, eigvalsh
from threadpoolctl import ThreadpoolController

from ...base.kernels.arrays import Array


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which they use one thread."""
    return _controller().limit(limits=1, user_api="blas")


def smallest_eigenvalue(block: Array) -> float:
    """The smallest eigenvalue; 0, of which nothing can be taken out, if LAPACK finds none."""
    try:
        with one_thread():
            return float(eigvalsh(block, subset_by_index=(0, 0), check_finite=False)[0])
    except LinAlgError:  # not an error that a user may see: it would depend on the data
        return 0.0
