"""The door: any cell becomes an integer of 15 bits and a sign, by itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsubset import Schema
from dpsubset.table.door import STEPS, Door

ANY = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True, width=64)
EXTREMES = [
    math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308,
    1.7976931348623157e308, 1.0, math.nextafter(1.0, 2), math.nextafter(1.0, 0), -1.0,
]  # fmt: skip
#: Bounds of ordinary, tiny, huge, lopsided and barely distinguishable width.
BOUNDS = [
    (0, 1), (-1, 1), (-1e300, 1e300), (1e-299, 3e-299), (-1e300, 1e-300), (0, 1e300),
    (1.0, math.nextafter(1.0, 2)), (1e300, math.nextafter(1e300, 0) * (1 - 1e-15)), (-7, 1e9),
]  # fmt: skip
BOUNDS = [tuple(sorted(pair)) for pair in BOUNDS]


def quantise(values: np.ndarray, bounds: list[tuple[float, float]], rule: str = "middle",
             dtype: type = np.float64) -> np.ndarray:  # fmt: skip
    """Columns through the door; the response column is left out."""
    columns = {f"x{j}": pair for j, pair in enumerate(bounds)}
    door = Door(Schema.from_bounds(columns, ("y", 0, 1), bad_cells=rule))
    out = np.full((len(values), len(bounds) + 1), -1, dtype=dtype)
    door.records(np.asarray(values, dtype=np.float64), np.zeros(len(values)), out)
    assert (out[:, -1] == -STEPS).all()
    return out[:, :-1]


@given(hnp.arrays(np.float64, (7, len(BOUNDS)), elements=ANY))
def test_any_cell_becomes_a_15_bit_integer(values: np.ndarray) -> None:
    q = quantise(values, BOUNDS)
    assert np.isfinite(q).all()
    assert (np.abs(q) <= STEPS).all()
    assert (q == np.rint(q)).all()
    np.testing.assert_array_equal(q, quantise(values, BOUNDS, dtype=np.int16))


def test_extremes_with_every_width_of_bounds() -> None:
    values = np.tile(np.array(EXTREMES)[:, None], (1, len(BOUNDS)))
    q = quantise(values, BOUNDS)
    assert np.isfinite(q).all()
    for j, (lo, hi) in enumerate(BOUNDS):
        ends = (
            quantise(np.full((1, len(BOUNDS)), lo), BOUNDS)[0, j],
            quantise(np.full((1, len(BOUNDS)), hi), BOUNDS)[0, j],
        )
        if hi - lo > 4 * math.ulp(max(abs(lo), abs(hi))):
            assert ends == (-STEPS, STEPS)
        assert q[EXTREMES.index(math.inf), j] == ends[1]
        assert q[EXTREMES.index(-math.inf), j] == ends[0]


@given(ANY, ANY, st.sampled_from(BOUNDS))
def test_monotone(a: float, b: float, pair: tuple[float, float]) -> None:
    if math.isnan(a) or math.isnan(b):
        return
    low, high = quantise(np.array([[min(a, b)], [max(a, b)]]), [pair])[:, 0]
    assert low <= high


@given(st.floats(-3, 8), st.floats(-5, 0), st.floats(0.001, 6))
def test_the_value_is_kept_to_half_a_step(v: float, lo: float, width: float) -> None:
    hi = lo + width
    q = Fraction(float(quantise(np.array([[v]]), [(lo, hi)])[0, 0]))
    clipped = Fraction(min(max(v, lo), hi))
    exact = (2 * clipped - Fraction(lo) - Fraction(hi)) / (Fraction(hi) - Fraction(lo)) * STEPS
    assert abs(q - exact) <= Fraction(1, 2) + Fraction(1, 10**6)


@given(hnp.arrays(np.float64, (6, 3), elements=ANY), st.integers(0, 5), st.integers(0, 2), ANY)
def test_a_cell_never_affects_another(values: np.ndarray, i: int, j: int, new: float) -> None:
    bounds = [(0.0, 1.0), (-2.0, 5.0), (-1e300, 1e300)]
    before = quantise(values, bounds)
    changed = values.copy()
    changed[i, j] = new
    after = quantise(changed, bounds)
    others = np.ones(values.shape, dtype=bool)
    others[i, j] = False
    np.testing.assert_array_equal(before[others], after[others])
    alone = quantise(np.array([[0.0, 0.0, 0.0]]), bounds)
    row = np.array([[0.0, 0.0, 0.0]])
    row[0, j] = new
    alone = quantise(row, bounds)
    assert after[i, j] == alone[0, j]


@pytest.mark.parametrize(("rule", "image"), [("middle", 0), ("low", -STEPS), ("high", STEPS)])
def test_bad_cells_go_where_the_rule_says(rule: str, image: int) -> None:
    values = np.array([[math.nan, 3.0], [2.0, math.nan]])
    q = quantise(values, [(0, 10), (1, 3)], rule)
    assert q[0, 0] == image
    assert q[1, 1] == image
    # The others do not care for the rule.
    assert q[0, 1] == STEPS
    assert q[1, 0] == round(-0.6 * STEPS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_layout_of_the_input_does_not_matter(order: str) -> None:
    values = np.random.default_rng(0).normal(size=(50, 4))
    bounds = [(-1.0, 1.0)] * 4
    wanted = quantise(values, bounds)
    np.testing.assert_array_equal(quantise(np.asarray(values, order=order), bounds), wanted)
    strided = np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3]
    np.testing.assert_array_equal(quantise(strided, bounds), wanted)
