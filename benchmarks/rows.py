"""A row of the table of bars, and the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

#: Multiplications of a product that is also tried on one thread.
_SMALL_PRODUCT = 10**9


@dataclass(frozen=True)
class Row:
    """One measurement beside its goal.

    Attributes
    ----------
    bar, case : str
        Which bar, on which data.
    measured : float or None
        In ``unit``; None if there is nothing to show, and ``note`` says why.
    reference : float or None
        A floor or a peer on the same data in the same run, in the same unit.
    against : str
        What the reference is.
    goal : float or None
        Most that ``judged`` may be; None for a row that is only shown.
    judged : "measured" or "ratio"
        What the goal is about.
    failed : bool
        Whether something went wrong, in which case no goal is met.
    note : str
        Anything a reader should know.
    """

    bar: str
    case: str
    measured: float | None
    unit: str = "s"
    reference: float | None = None
    against: str = ""
    goal: float | None = None
    judged: str = "measured"
    failed: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured over reference."""
        if self.measured is None or not self.reference:
            return None
        return self.measured / self.reference

    @property
    def verdict(self) -> str:
        """Met or MISSED, or nothing where there is no goal or nothing to judge."""
        if self.failed:
            return "MISSED"
        value = self.measured if self.judged == "measured" else self.ratio
        if self.goal is None or value is None:
            return ""
        return "met" if value <= self.goal else "MISSED"

    def record(self) -> dict[str, Any]:
        """For CSV and JSON."""
        return {
            "bar": self.bar,
            "case": self.case,
            "measured": self.measured,
            "unit": self.unit,
            "goal": self.goal,
            "goal_is_on": self.judged,
            "against": self.against,
            "reference": self.reference,
            "ratio": self.ratio,
            "verdict": self.verdict,
            "note": self.note,
        }


def clock(job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a job took, and what it returned."""
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def typical(job: Callable[[], Any], repeats: int) -> float:
    """Median of the seconds of several runs."""
    return statistics.median(clock(job)[0] for _ in range(repeats))


def bare_product(x: np.ndarray, repeats: int = 3) -> float:
    """Seconds of X'X in float64 and nothing else: the floor of most bars.

    Small products are faster on one thread, above all on a busy machine; the floor is the faster.
    """
    seconds = typical(lambda: x.T @ x, repeats)
    if x.size * x.shape[1] <= _SMALL_PRODUCT:
        with threadpool_limits(1):
            seconds = min(seconds, typical(lambda: x.T @ x, repeats))
    return seconds
