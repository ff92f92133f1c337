"""Signals that ask the command to end: SIGINT, SIGTERM and SIGHUP.

They become exceptions, wherever the command is: files are cleared away as for any other error, and
a line and an exit code say why it ended. While a release is being written they wait, because its
budget is spent.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has not all of them

#: An exception can get lost, in a callback of another library: while numba compiles, for instance.
#: So it is raised again after so many seconds, until the command has ended.
_AGAIN = 5.0

_came: int | None = None
_held = False


class Ended(BaseException):
    """The process was asked to end. Not an Exception: what guards against cells must not stop it.

    Attributes
    ----------
    number : int
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def catch() -> None:
    """From here on the signals raise `Ended`; for the main thread of a command."""
    for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
        # What nohup and the like have ignored stays ignored.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


@contextmanager
def held() -> Iterator[None]:
    """Signals wait until the end of this block."""
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    if _came is not None:
        raise Ended(_came)


def heard() -> None:
    """The exception has arrived: it need not be raised again."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end(number: int, frame: FrameType | None) -> None:
    global _came
    if _came is None:
        _came = number
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, _end_again)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
    elif not _held:
        # Asked again: at once.
        with suppress(OSError):
            os.write(2, f"Error: ended by {signal.Signals(_came).name}\n".encode())
        os._exit(128 + _came)
    if not _held:
        raise Ended(_came)


def _end_again(number: int, frame: FrameType | None) -> None:
    if not _held and _came is not None:
        raise Ended(_came)
