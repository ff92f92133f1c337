"""A line that says that a run compiles kernels, which takes seconds: later runs load them.

It is a warning of the logger ``dpsubset``, which Python prints to standard error unless the caller
configures logging. It comes with kernels that every run with a given kind of table, loss and
constraint calls: the line reveals nothing about the values of a table.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from numba.core import event

LOGGER = logging.getLogger("dpsubset")
NOTE = (
    "Compiling, once: this takes seconds, at most half a minute. Later runs start at once "
    "('dpsubset warmup' compiles in advance)."
)

#: Kernels that read a table, and kernels that score supports, which a run calls after them.
_READING = {("dpsubset.data.readers.delimited", "_split"), ("dpsubset.data.quantize", "_quantize")}
_SCORING = {
    ("dpsubset.objective.losses.quadratic_kernels", "score_all"),
    ("dpsubset.objective.losses.row_kernels", "score_all"),
}


class FirstRun(event.Listener):  # type: ignore[misc]
    """Logs one line a run in which something is compiled."""

    def __init__(self) -> None:
        self._is_said = False  # for the scores that follow

    def on_start(self, compiled: Any) -> None:
        """Look at a compilation that begins."""
        function = compiled.data["dispatcher"].py_func
        name = function.__module__, function.__name__
        if name not in _READING | _SCORING:
            return
        if not self._is_said:
            with suppress(Exception):  # a handler of the caller may fail, and the budget is spent
                LOGGER.warning(NOTE)
        self._is_said = name in _READING

    def on_end(self, compiled: Any) -> None:
        """Do nothing."""


def install() -> None:
    """Listen to all compilations of this process."""
    event.register("numba:compile", FirstRun())
