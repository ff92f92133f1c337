"""The smallest epsilon, or the smallest n, for a wished probability.

*By the closed form*: upwards by factors of 4 until the probability is reached, then halvings of the
last step on a logarithmic scale, to one part in a hundred. Upwards, because the probability may
fall for a while as the table grows: at some n * epsilon another scale of the response is released.

*By simulation*: the same from where the closed form would have it for independent columns, up or
down by factors of 2, with a few tables for each step, and most of them for the answer. What is
found is rough: the interval says which probability it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

from ..base.errors import ArgumentError
from .expectation import Expectation
from .expected import Method, by_closed_form, expected, likely
from .question import Question
from .simulated import Effort, Progress, simulated

Unknown = Literal["n", "epsilon"]

#: Where the search begins and ends.
_ENDS: dict[Unknown, tuple[float, float]] = {"n": (16, 2**28), "epsilon": (0.001, 1000)}
#: Tables with more rows are not made up one by one.
_MOST_ROWS = 2**21

_STEP, _PRECISION = 4.0, 1.01
#: Tables whose gaps are drawn for a rough answer.
_FEW = 96
#: Of a simulation: most steps of the search, what the answer takes of the time, and which quotient
#: of two values is near enough, given how few tables a step has.
_PROBES, _LAST, _NEAR = 8, 0.35, 1.15


def smallest(
    question: Question, unknown: Unknown, known: Any, wished: float,
    method: Method, effort: Effort, progress: Progress | None = None,
) -> Expectation:  # fmt: skip
    """The smallest n that reaches the probability at a known epsilon, or the other way round."""

    def at(value: float) -> tuple[int, Any]:
        return (math.ceil(value), known) if unknown == "n" else (known, _written(value))

    low, high = _ENDS[unknown]
    closed = by_closed_form(question, question.planned(*at(low)), method, effort)
    if closed:
        found = _first(lambda value: likely(question, *at(value)) >= wished, low, high)
        last, told = effort, progress
    else:
        found = _by_draws(question, at, wished, effort, (low, high), progress)
        last, told = effort.part(_LAST), _part(progress, 1 - _LAST, _LAST)
    if found is None:
        other = "epsilon" if unknown == "n" else "n"
        raise ArgumentError(
            f"no {unknown} up to {high:,.0f} reaches {wished:g}: with this signal the true support "
            f"is not released that often. Take a larger {other}, a larger snr or a smaller p"
        )
    return replace(
        expected(question, *at(found), method, last, told), solved=unknown, wished=wished
    )


def rows_for(question: Question, epsilon: Any, wished: float) -> int | None:
    """Roughly the smallest n, by the closed form alone, to two digits; None if there is none."""
    low, high = _ENDS["n"]
    found = _first(
        lambda n: likely(question, math.ceil(n), epsilon, _FEW) >= wished, low, high, 1.1
    )
    return None if found is None else int(_written(found, 2))


def _first(
    reaches: Callable[[float], bool], low: float, high: float, precision: float = _PRECISION
) -> float | None:
    """The first value that reaches, to the precision of the search; None if none does."""
    before, value = low, low
    while not reaches(value):
        if value >= high:
            return None
        before, value = value, min(value * _STEP, high)
    while value > before * precision:
        middle = math.sqrt(before * value)
        before, value = (before, middle) if reaches(middle) else (middle, value)
    return value


def _by_draws(
    question: Question, at: Callable[[float], tuple[int, Any]], wished: float, effort: Effort,
    ends: tuple[float, float], progress: Progress | None,
) -> float | None:  # fmt: skip
    """From a guess, up or down until the probability is crossed, then halvings."""
    simple = question.simplified
    guess = _first(lambda value: likely(simple, *at(value), _FEW) >= wished, *ends, _STEP / 2)
    value = math.sqrt(ends[0] * ends[1]) if guess is None else guess
    below, above = 0.0, math.inf
    share = (1 - _LAST) / _PROBES
    for probe in range(_PROBES):
        n, epsilon = at(value)
        if n > _MOST_ROWS:
            raise ArgumentError(
                f"this would take made-up tables of {n:,} rows, more than {_MOST_ROWS:,}: give n "
                "and ask for epsilon, or plan for independent columns and least squares"
            )
        told = _part(progress, probe * share, share)
        found = simulated(question, n, epsilon, effort.part(share), told).probability
        if found >= wished:
            above = value
        else:
            below = value
        if above == math.inf:
            if value >= ends[1]:
                return None
            value = min(value * 2, ends[1])
        elif below == 0:
            value = max(value / 2, ends[0])
        elif above / below < _NEAR:
            break
        else:
            value = math.sqrt(below * above)
    if above == math.inf:
        raise ArgumentError(
            f"{wished:g} was not reached in {_PROBES} steps of the search, up to {below:.3g}: give "
            "both n and epsilon, and see how far off they are"
        )
    return above


def _written(value: float, digits: int = 3) -> Fraction:
    """To three digits, upwards: an epsilon that somebody may type in."""
    return Fraction(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


def _part(progress: Progress | None, done: float, share: float) -> Progress | None:
    return None if progress is None else lambda fraction: progress(done + share * fraction)
