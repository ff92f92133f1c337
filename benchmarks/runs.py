"""How a bar is run: how thoroughly, until when, and what becomes of a search that does not end."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsubset import Bounds
from dpsubset.search.engine import SearchLimitError

from . import ours
from .data import BOUNDS
from .rows import Row, clock

PRODUCT = "X'X in float64"
GIGA = 1e9

#: Seconds of draws after which a row has enough of them, if it has two.
_ENOUGH = 15.0


@dataclass(frozen=True)
class Run:
    """How thorough to be."""

    quick: bool = False
    peers_python: str | None = None

    def limit(self, goal: float) -> float:
        """Seconds after which a search counts as not finished: never before its goal is missed."""
        return max(5.0, goal) if self.quick else max(60.0, goal)

    def repeats(self, thorough: int, quick: int = 1) -> int:
        """How often to measure."""
        return quick if self.quick else thorough


class Caught:
    """A measurement whose failure becomes a row instead of the end of the run."""

    def __init__(self, bar: str, case: str, goal: float | None, limit: float) -> None:
        self.row = Row(bar, case, None, goal=goal)
        self._limit = limit

    def __enter__(self) -> Caught:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        why = (
            f"not finished after {self._limit:g} s"
            if isinstance(error, SearchLimitError)
            else f"{type(error).__name__}: {error}"
        )
        self.row = Row(self.row.bar, self.row.case, None, goal=self.row.goal, failed=True, note=why)
        return True


def selected(
    bar: str, case: str, x: np.ndarray, y: np.ndarray, k: int, epsilon: float,
    setting: dict[str, Any], floor: float, goal: float, judged: str, repeats: int, limit: float,
    bounds: Bounds = BOUNDS,
) -> Row:  # fmt: skip
    """Median of several selections from scratch; one that does not finish fails the row."""
    with Caught(bar, case, goal, limit) as caught:
        times: list[float] = []
        while len(times) < repeats and (len(times) < 2 or sum(times) < _ENOUGH):
            times.append(clock(lambda: ours.select(x, y, k, epsilon, bounds, limit, **setting))[0])
        count = len(times)
        caught.row = Row(
            bar, case, statistics.median(times), "s", floor, PRODUCT, goal, judged,
            note=f"{count} draws, slowest {short(max(times))}" if count > 1 else "one draw",
        )  # fmt: skip
    return caught.row


def short(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
