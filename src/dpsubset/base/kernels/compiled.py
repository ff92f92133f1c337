"""Compile kernels with numba on their first call and cache them on disk.

numba caches compiled code per source file and treats it as current until that file changes. But a
kernel contains the code of everything that it calls, in other files too, so that a change there
would go unnoticed. The name under which a kernel is cached therefore ends with a fingerprint of the
sources of all kernels.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba

from . import first_run
from .cache_folder import copy_compiled, fallback_folder, home_is_known

_PACKAGE = Path(__file__).parents[2]


def _fingerprint() -> str:
    """A hash of every source file that defines or mentions kernels."""
    found = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"kernels" in text:
            found.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + text + b"\0")
    return found.hexdigest()[:12]


#: The fingerprint of the current sources.
SOURCES = _fingerprint()

first_run.install()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call, and cache it."""
    return _compiled(function, nogil=False)


def threaded_kernel(function: Callable[..., Any]) -> Any:
    """Like `kernel`, for long-running functions: other threads run meanwhile."""
    return _compiled(function, nogil=True)


def _compiled(function: Callable[..., Any], nogil: bool) -> Any:
    function.__qualname__ += f"-{SOURCES}"
    if _numba_has_folder(function):
        try:
            return numba.njit(cache=True, nogil=nogil)(function)
        except RuntimeError:  # numba can write to none of its folders
            pass
    folder, configured = fallback_folder(), numba.config.CACHE_DIR
    if folder is None:
        return numba.njit(nogil=nogil)(function)
    numba.config.CACHE_DIR = str(folder)
    try:
        compiled = numba.njit(cache=True, nogil=nogil)(function)
    finally:  # kernels of other packages are kept where they would be without this one
        numba.config.CACHE_DIR = configured
    kept = Path(compiled.stats.cache_path)
    _copied_once(_beside(function), kept)
    if configured:
        _copied_once(Path(configured) / kept.name, kept)
    return compiled


#: The kernels of a folder share their cache.
_copied_once = functools.cache(copy_compiled)


def _numba_has_folder(function: Callable[..., Any]) -> bool:
    """Whether numba may look for a folder: without a home it would take one named "~"."""
    if home_is_known():
        return True
    beside, configured = _beside(function), numba.config.CACHE_DIR
    if configured:
        with suppress(OSError):
            os.makedirs(configured, exist_ok=True)
    folders = (configured, beside if beside.exists() else beside.parent)
    return any(os.access(folder, os.W_OK) for folder in folders if folder)


def _beside(function: Callable[..., Any]) -> Path:
    return Path(function.__code__.co_filename).parent / "__pycache__"
