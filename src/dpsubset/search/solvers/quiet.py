"""Nothing that a solver has to say may show: it could be about the data."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

#: Each caller puts back the stderr that it found. If two callers overlapped, the second would find
#: the silenced one, and could put that back last: stderr would stay silent.
_ONE_AT_A_TIME = threading.Lock()


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Send file descriptor 2 to nowhere, for libraries that write to it behind Python's back.

    The descriptor is the whole process's: put nothing inside but a call that holds the interpreter
    lock, so that no other thread of Python writes meanwhile.
    """
    with _ONE_AT_A_TIME, contextlib.ExitStack() as stack:
        try:
            kept = os.dup(2)
        except OSError:  # there is no such descriptor: nothing to keep quiet
            kept = None
        if kept is not None:
            stack.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            stack.callback(os.close, nowhere)
            os.dup2(nowhere, 2)
            stack.callback(os.dup2, kept, 2)
        yield
