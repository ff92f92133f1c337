"""Signals that end the command: SIGINT, SIGTERM and SIGHUP.

They become exceptions, so that files are cleaned up as for any other error, and a line and an exit
code give the reason. They are deferred while a release is being written, because its budget is
spent.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows lacks some of them

#: A callback of another library can swallow the exception, for instance while numba compiles. So it
#: is raised again after this many seconds, until it is acknowledged.
_REPEAT_AFTER = 5.0

_received: int | None = None
_deferred = False


class Ended(BaseException):
    """A signal requested the process to end. No Exception: handlers of errors must not catch it.

    Attributes
    ----------
    number : int
        The number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def raise_on_signals() -> None:
    """Raise `Ended` on signals from now on; to be called from the main thread of a command."""
    for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
        # A signal that nohup or the like ignores stays ignored.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals until the end of this block."""
    global _deferred
    _deferred = True
    try:
        yield
    finally:
        _deferred = False
    if _received is not None:
        raise Ended(_received)


def acknowledge() -> None:
    """Stop raising the exception again: it has been handled."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end(number: int, frame: FrameType | None) -> None:
    global _received
    if _received is None:
        _received = number
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, _end_again)
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_AFTER, _REPEAT_AFTER)
    elif not _deferred:
        # The second signal ends the process at once.
        with suppress(OSError):
            os.write(2, f"Error: ended by {signal.Signals(_received).name}\n".encode())
        os._exit(128 + _received)
    if not _deferred:
        raise Ended(_received)


def _end_again(number: int, frame: FrameType | None) -> None:
    if not _deferred and _received is not None:
        raise Ended(_received)
