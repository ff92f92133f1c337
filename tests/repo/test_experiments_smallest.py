"""The search for the smallest n, against a scan of the whole grid."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # experiments are not installed

from experiments.smallest import (  # noqa: E402
    ENOUGH,
    LAST,
    LEAST,
    MOST,
    line,
    needed,
    place_of,
    rows_at,
    smallest,
)


@pytest.mark.parametrize("guess", [1, 60, 900, 10**7])
@pytest.mark.parametrize("threshold", [10, LEAST, LEAST + 1, 333, 5000, 59_000, rows_at(LAST)])
def test_it_finds_what_a_scan_finds(threshold: int, guess: float):
    asked: list[int] = []

    def often(n: int) -> float:
        asked.append(n)
        return ENOUGH if n >= threshold else 0.0

    scan = [rows_at(i) for i in range(LAST + 1) if rows_at(i) >= threshold]
    assert smallest(often, guess) == (scan[0] if scan else None)
    assert len(asked) == len(set(asked))


def test_it_says_so_if_the_largest_is_not_enough():
    assert smallest(lambda n: 0.0, 300) is None
    assert rows_at(LAST) <= MOST < rows_at(LAST + 1)


def test_a_good_guess_is_cheap():
    asked: list[int] = []

    def often(n: int) -> float:
        asked.append(n)
        return float(n >= 1000)

    smallest(often, 1100)
    assert len(asked) <= 5
    assert all(abs(place_of(n) - place_of(1000)) <= 4 for n in asked)


def test_means_are_geometric_and_beyond_is_infinite():
    lines = [{"m": "a", **line(100)}, {"m": "a", **line(400)}, {"m": "b", **line(None)}]
    assert needed(lines, m="a") == pytest.approx(200)
    assert needed(lines, m="b") == math.inf
    assert math.isnan(needed(lines, m="c"))
