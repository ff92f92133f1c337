"""Suppression of solver output, which could reveal data."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

#: Each caller restores the stderr that it found. If two callers overlapped, the second would find
#: the redirected one and could restore that last: stderr would stay silent.
_ONE_AT_A_TIME = threading.Lock()


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Redirect file descriptor 2 to the null device, for libraries that write to it directly.

    The descriptor belongs to the whole process: use this only around a call that holds the
    interpreter lock, so that no other Python thread writes meanwhile.
    """
    with _ONE_AT_A_TIME, contextlib.ExitStack() as stack:
        try:
            kept = os.dup(2)
        except OSError:  # there is no such descriptor
            kept = None
        if kept is not None:
            stack.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            stack.callback(os.close, nowhere)
            os.dup2(nowhere, 2)
            stack.callback(os.dup2, kept, 2)
        yield
