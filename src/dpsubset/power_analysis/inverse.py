"""The smallest epsilon, or the smallest n, at which recovery reaches a given probability.

The search compares simulated recovery with the given probability, with the same random numbers at
every value: factors of 4 and bisection with few tables find a bracket; bisection with more of them,
on a logarithmic scale, narrows it to about 3 %. The probability that is reported comes from other
tables than the search, so it is not biased towards the requested one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

from ..base.errors import ArgumentError
from .expectation import Expectation, expected
from .scenario import Scenario
from .simulation import Effort, Progress, simulate_recovery, within

Unknown = Literal["n", "epsilon"]

#: The first value of the search, and the smallest and largest ones.
_RANGE: dict[Unknown, tuple[float, float, float]] = {
    "n": (2**11, 16, 2**28),
    "epsilon": (1.0, 0.001, 1000),
}
_FACTOR = 4.0
#: Quotients of the bracket's ends after each stage, and by how much either end is moved out between
#: the stages, since few tables may have found a wrong one.
_COARSE, _FINE, _WIDER = 1.5, 1.03, 1.25
#: Parts of the effort: one step of each stage, and the final estimate.
_COARSE_PART, _FINE_PART, _FINAL_PART = 0.04, 0.1, 0.25


def smallest(
    scenario: Scenario, unknown: Unknown, known: Any, wished: float, effort: Effort,
    progress: Progress | None = None, **shown: Any,
) -> Expectation:  # fmt: skip
    """Find the smallest n at a known epsilon, or the smallest epsilon at a known n.

    ``shown`` is for `expected`, which simulates tables of the value that was found.
    """
    found = find_smallest(scenario, unknown, known, wished, effort, progress)
    if found is None:
        other, top = "epsilon" if unknown == "n" else "n", _RANGE[unknown][2]
        raise ArgumentError(
            f"no {unknown} up to {top:,.0f} reaches {wished:g}: with this signal the true support "
            f"is not released that often. Take a larger {other}, a larger snr or a smaller p"
        )
    final = effort.renewed() if effort.tables else effort.renewed().fraction(_FINAL_PART)
    last = within(progress, 0.7, 1.0)
    result = expected(scenario, *_n_and_epsilon(unknown, found, known), final, last, **shown)
    return replace(result, solved=unknown, wished=wished)


def find_smallest(
    scenario: Scenario, unknown: Unknown, known: Any, wished: float, effort: Effort,
    progress: Progress | None = None,
) -> float | None:  # fmt: skip
    """Search for the smallest value; None if the largest one does not reach the probability.

    With a number of tables, a step of the search has 0.16 or 0.4 times as many.
    """
    steps = 0
    if effort.tables is not None:
        effort = replace(effort, tables=4 * effort.tables)

    def reached(value: float, part: float) -> bool:
        nonlocal steps
        steps += 1
        if progress is not None:
            progress(min(0.7, 0.05 * steps))
        n, epsilon = _n_and_epsilon(unknown, value, known)
        found = simulate_recovery(scenario, n, epsilon, effort.fraction(part))
        return found.probability >= wished

    return _bracketed(reached, *_RANGE[unknown])


def _n_and_epsilon(unknown: Unknown, value: float, known: Any) -> tuple[int, Any]:
    return (math.ceil(value), known) if unknown == "n" else (known, rounded_up(value))


def _bracketed(
    reached: Callable[[float, float], bool], first: float, lowest: float, highest: float
) -> float | None:
    """The smallest value that reaches; None if the highest one does not."""
    low = high = first
    while not reached(high, _COARSE_PART):
        if high >= highest:
            return None
        low, high = high, min(high * _FACTOR, highest)
    while low == high or (low < first and reached(low, _COARSE_PART)):
        if low <= lowest:
            return lowest
        low, high = max(low / _FACTOR, lowest), low
    low, high = _bisected(reached, low, high, _COARSE, _COARSE_PART)
    ends = max(low / _WIDER, lowest), min(high * _WIDER, highest)
    return _bisected(reached, *ends, _FINE, _FINE_PART)[1]


def _bisected(
    reached: Callable[[float, float], bool], low: float, high: float, quotient: float, part: float
) -> tuple[float, float]:
    """Narrow a bracket on a logarithmic scale until its quotient is at most the given one."""
    while high > low * quotient:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle, part) else (middle, high)
    return low, high


def rounded_up(value: float, digits: int = 3) -> Fraction:
    """A number with few significant digits, at least as large as the given one."""
    return Fraction(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
