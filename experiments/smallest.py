"""The smallest n at which something happens often enough, by few trials."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from benchmarks.data import BOUNDS, Shape

import dpsubset as dps
from dpsubset.mechanisms import mechanism

from .experiment import Line, Lines
from .figures import where

#: Recovery that counts as knowing the support.
ENOUGH = 0.9
#: The grid of n: LEAST, and each RATIO times the one before, up to MOST.
LEAST, RATIO, MOST = 50, 1.1, 60_000
#: Places on the grid that the search goes at once until it has passed the threshold.
STRIDE = 3
#: Of a search, after which a draw counts as missed. Only flat scores take so long: few rows.
SECONDS = 60.0


def rows_at(place: int) -> int:
    """The n of a place on the grid."""
    return round(LEAST * RATIO**place)


def place_of(n: float) -> int:
    """The place on the grid that is nearest to n."""
    return max(0, min(LAST, round(math.log(n / LEAST) / math.log(RATIO))))


LAST = math.floor(math.log(MOST / LEAST) / math.log(RATIO))


def smallest(often: Callable[[int], float], guess: float) -> int | None:
    """The least n of the grid with ``often(n) >= ENOUGH``, if that grows with n; None if beyond.

    From the guess in strides until there is an n on either side, and by halves between them. Few
    rows are the slow ones for a search over supports, so a guess should be too large.
    """
    enough = functools.cache(lambda place: often(rows_at(place)) >= ENOUGH)
    low = high = place_of(guess)
    while not enough(high):
        if high == LAST:
            return None
        low, high = high, min(LAST, high + STRIDE)
    while low == high or enough(low):
        if low == 0:
            return rows_at(0)
        high = low
        low = max(0, low - STRIDE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return rows_at(high)


def recovery(
    shape: Shape, tables: int, draws: int, name: str, options: dict[str, Any], **said: Any
) -> float:
    """The share of draws that are the true support, over some tables from one seed on."""
    found = 0
    for seed in range(tables * shape.seed, tables * (shape.seed + 1)):
        made = Shape(shape.n, shape.p, shape.k, shape.rho, seed, shape.snr, shape.least)
        x, y = made.make()
        try:
            drawn = dps.simulate(
                x, y=y, bounds=BOUNDS, k=shape.k, mechanism=mechanism(name, options), draws=draws,
                allow_unproven=True, time_limit=SECONDS, **said,
            )  # fmt: skip
        except dps.SearchLimitError:
            continue
        found += drawn[made.truth]
    return found / (tables * draws)


def line(n: int | None) -> Line:
    """What is written of a search: no n where even the largest is not enough."""
    return {"smallest_n": n, "beyond": n is None}


def needed(lines: Lines, **wanted: Any) -> float:
    """The geometric mean of the smallest n; infinite if one is beyond, NaN if there is none."""
    here = where(lines, **wanted)
    if not here:
        return math.nan
    if any(found["beyond"] for found in here):
        return math.inf
    return math.exp(sum(math.log(found["smallest_n"]) for found in here) / len(here))
