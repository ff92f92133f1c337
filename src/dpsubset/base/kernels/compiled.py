"""How kernels are compiled: by numba when they are first called, and kept for later runs.

numba keeps compiled code beside the file of a function and takes it for current as long as that
file does not change. But a kernel holds the code of all that it calls, from other files too: a
changed constraint would go unnoticed, and a name that has moved would be looked for in vain. So the
name under which a kernel is kept ends with a fingerprint of all kernels' sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_PACKAGE = Path(__file__).parents[2]


def _fingerprint() -> str:
    """Of every file that has kernels, or speaks of them."""
    found = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"kernels" in text:
            found.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + text + b"\0")
    return found.hexdigest()[:12]


#: Of the sources as they are.
SOURCES = _fingerprint()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep it."""
    return _compiled(function, nogil=False)


def threaded_kernel(function: Callable[..., Any]) -> Any:
    """The same for functions that take long: other threads run meanwhile."""
    return _compiled(function, nogil=True)


def _compiled(function: Callable[..., Any], nogil: bool) -> Any:
    function.__qualname__ += f"-{SOURCES}"
    return numba.njit(cache=True, nogil=nogil)(function)
