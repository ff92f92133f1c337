"""The quantizer: any cell becomes an integer of 15 bits and a sign, by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsubset import Schema
from dpsubset.base.kernels.logarithm import logarithm
from dpsubset.data.quantize import STEPS, ColumnQuantizer, Quantizer
from dpsubset.schema.column import Column, Missing
from dpsubset.schema.encoding import Design

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


def quantize(values: np.ndarray, bounds: list[tuple[float, float]], rule: str = "middle",
             dtype: type = np.float64) -> np.ndarray:  # fmt: skip
    """Columns through the quantizer; the response column is left out."""
    columns = {f"x{j}": pair for j, pair in enumerate(bounds)}
    quantizer = Quantizer(Schema.from_bounds(columns, ("y", 0, 1), bad_cells=rule))
    out = np.full((len(values), len(bounds) + 1), -1, dtype=dtype)
    quantizer.records(np.asarray(values, dtype=np.float64), np.zeros(len(values)), out)
    assert (out[:, -1] == -STEPS).all()
    return out[:, :-1]


@given(hnp.arrays(np.float64, (7, len(BOUNDS)), elements=ANY))
def test_any_cell_becomes_a_15_bit_integer(values: np.ndarray) -> None:
    q = quantize(values, BOUNDS)
    assert np.isfinite(q).all()
    assert (np.abs(q) <= STEPS).all()
    assert (q == np.rint(q)).all()
    np.testing.assert_array_equal(q, quantize(values, BOUNDS, dtype=np.int16))


def test_extremes_with_every_width_of_bounds() -> None:
    values = np.tile(np.array(EXTREMES)[:, None], (1, len(BOUNDS)))
    q = quantize(values, BOUNDS)
    assert np.isfinite(q).all()
    for j, (lo, hi) in enumerate(BOUNDS):
        ends = (
            quantize(np.full((1, len(BOUNDS)), lo), BOUNDS)[0, j],
            quantize(np.full((1, len(BOUNDS)), hi), BOUNDS)[0, j],
        )
        if hi - lo > 4 * math.ulp(max(abs(lo), abs(hi))):
            assert ends == (-STEPS, STEPS)
        assert q[EXTREMES.index(math.inf), j] == ends[1]
        assert q[EXTREMES.index(-math.inf), j] == ends[0]


@given(ANY, ANY, st.sampled_from(BOUNDS))
def test_monotone(a: float, b: float, pair: tuple[float, float]) -> None:
    if math.isnan(a) or math.isnan(b):
        return
    low, high = quantize(np.array([[min(a, b)], [max(a, b)]]), [pair])[:, 0]
    assert low <= high


@given(st.floats(-3, 8), st.floats(-5, 0), st.floats(0.001, 6))
def test_the_value_is_kept_to_half_a_step(v: float, lo: float, width: float) -> None:
    hi = lo + width
    q = Fraction(float(quantize(np.array([[v]]), [(lo, hi)])[0, 0]))
    clipped = Fraction(min(max(v, lo), hi))
    exact = (2 * clipped - Fraction(lo) - Fraction(hi)) / (Fraction(hi) - Fraction(lo)) * STEPS
    assert abs(q - exact) <= Fraction(1, 2) + Fraction(1, 10**6)


@given(hnp.arrays(np.float64, (6, 3), elements=ANY), st.integers(0, 5), st.integers(0, 2), ANY)
def test_a_cell_never_affects_another(values: np.ndarray, i: int, j: int, new: float) -> None:
    bounds = [(0.0, 1.0), (-2.0, 5.0), (-1e300, 1e300)]
    before = quantize(values, bounds)
    changed = values.copy()
    changed[i, j] = new
    after = quantize(changed, bounds)
    others = np.ones(values.shape, dtype=bool)
    others[i, j] = False
    np.testing.assert_array_equal(before[others], after[others])
    alone = quantize(np.array([[0.0, 0.0, 0.0]]), bounds)
    row = np.array([[0.0, 0.0, 0.0]])
    row[0, j] = new
    alone = quantize(row, bounds)
    assert after[i, j] == alone[0, j]


@pytest.mark.parametrize(("rule", "image"), [("middle", 0), ("low", -STEPS), ("high", STEPS)])
def test_bad_cells_go_where_the_rule_says(rule: str, image: int) -> None:
    values = np.array([[math.nan, 3.0], [2.0, math.nan]])
    q = quantize(values, [(0, 10), (1, 3)], rule)
    assert q[0, 0] == image
    assert q[1, 1] == image
    # The others do not care for the rule.
    assert q[0, 1] == STEPS
    assert q[1, 0] == round(-0.6 * STEPS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_layout_of_the_input_does_not_matter(order: str) -> None:
    values = np.random.default_rng(0).normal(size=(50, 4))
    bounds = [(-1.0, 1.0)] * 4
    wanted = quantize(values, bounds)
    np.testing.assert_array_equal(quantize(np.asarray(values, order=order), bounds), wanted)
    strided = np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3]
    np.testing.assert_array_equal(quantize(strided, bounds), wanted)


# -- columns of every kind, against an oracle in Python -----------------------------------------

LEVELS = ("a", "b", 3)


@st.composite
def rich_columns(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(["number", "log", "sqrt", "levels", "date", "boolean"]))
    missing = draw(st.sampled_from([None, "middle", "low", "high", "value", "indicator"]))
    group = draw(st.sampled_from([None, "g"]))
    if kind == "levels":
        rules = {"value": Missing(rule="value", value="b"), "indicator": Missing(rule="indicator")}
        return Column(name, levels=LEVELS, group=group, missing=rules.get(missing or ""))
    lo, hi = draw(st.sampled_from([(1, 2), (1e-300, 1e300), (0.5, 1000), (7, 7.001)]))
    if kind == "boolean":
        lo, hi = 0, 1
    rule = None
    if missing:
        value = draw(st.floats(lo, hi)) if missing == "value" else None
        rule = Missing(rule=missing, value=value)
    transform = kind if kind in ("log", "sqrt") else None
    own = kind if kind in ("date", "boolean") else "number"
    return Column(name, lo, hi, group=group, missing=rule, transform=transform, kind=own)


@st.composite
def rich_schemas(draw: st.DrawFn) -> Schema:
    columns = tuple(draw(rich_columns(f"x{j}")) for j in range(draw(st.integers(1, 4))))
    response = draw(rich_columns("y").filter(
        lambda c: c.levels is None and not c.has_indicator))  # fmt: skip
    if response.missing is None and draw(st.booleans()):
        response = replace(response, missing=Missing(rule="drop"))
    return Schema(columns, replace(response, group=None), bad_cells=draw(
        st.sampled_from(["middle", "low", "high"])))  # fmt: skip


def image(column: Column, cell: float, bad_cells: str) -> int:
    """A value in Python's own arithmetic."""
    rule = column.missing.rule if column.missing is not None else None
    if math.isnan(cell):
        if rule != "value":
            return {"low": -STEPS, "high": STEPS}.get(rule or bad_cells, 0)
        cell = column.missing.value  # type: ignore[assignment, union-attr]
    apply = {None: float, "log": logarithm.py_func, "sqrt": math.sqrt}[column.transform]
    low, high = apply(column.lo), apply(column.hi)
    v = apply(min(max(cell, column.lo), column.hi))
    q = round((v - (low / 2 + high / 2)) * (STEPS / (high / 2 - low / 2)))
    return min(max(q, -STEPS), STEPS)


def oracle(schema: Schema, x: np.ndarray, y: np.ndarray, constant: int) -> list[list[int]]:
    """Whole records, by the choices in order."""
    features, groups = list(schema.features), {}
    for j, feature in enumerate(features):
        key = ("group", feature.group) if feature.group else ("alone", feature.name)
        groups.setdefault(key, []).append(j)
    found = []
    for cells, explained in zip(x.tolist(), y.tolist(), strict=True):
        record: list[int] = []
        if math.isnan(explained) and schema.response.drops_rows:
            found.append([0] * (len(Design.of(schema).columns) + (constant != 0) + 1))
            continue
        for j in (j for members in groups.values() for j in members):
            feature, cell = features[j], cells[j]
            if feature.levels is None:
                record.append(image(feature, cell, schema.bad_cells))
            else:
                if math.isnan(cell) and feature.missing and feature.missing.rule == "value":
                    cell = feature.levels.index(feature.missing.value)
                record += [STEPS * (cell == level) for level in range(len(feature.levels))]
            if feature.has_indicator:
                record.append(STEPS * math.isnan(cells[j]))
        record += [constant] * (constant != 0)
        found.append([*record, image(schema.response, explained, schema.bad_cells)])
    return found


@given(st.data(), rich_schemas(), st.sampled_from([0, 1, 24575]))
def test_records_of_every_kind_are_those_of_an_oracle(
    data: st.DataObject, schema: Schema, constant: int
) -> None:
    positions = st.sampled_from([0.0, 1.0, 2.0, math.nan])
    numbers = ANY | st.floats(0, 10) | st.just(math.nan)
    rows = data.draw(st.integers(0, 5))
    x = np.array(
        [[data.draw(positions if f.levels else numbers) for f in schema.features]
         for _ in range(rows)]
    ).reshape(rows, len(schema.features))  # fmt: skip
    y = np.array([data.draw(numbers) for _ in range(rows)], dtype=np.float64)
    quantizer = Quantizer(schema, constant)
    assert quantizer.width == len(Design.of(schema).columns) + (constant != 0) + 1
    outs = [np.empty((rows, quantizer.width)), np.empty((quantizer.width, rows), dtype=np.int16).T]
    for out in outs:
        quantizer.records(x, y, out)
        assert out.tolist() == oracle(schema, x, y, constant)
        # What a choice takes of the reach.
        for choice in Design.of(schema).choices:
            sizes = np.abs(out[:, choice.columns], dtype=np.float64)
            assert (sizes.sum(axis=1) <= STEPS * choice.width).all()
    backwards = np.empty((rows, quantizer.width))
    quantizer.records(x[::-1], y[::-1], backwards)
    np.testing.assert_array_equal(backwards[::-1], outs[0])
    alone = np.empty(rows)
    ColumnQuantizer(schema.response).quantize(y, alone)
    np.testing.assert_array_equal(alone, outs[0][:, -1])


@given(st.floats(1e-3, 1e6), st.floats(1.001, 1e6), st.floats(0, 2))
def test_a_logarithm_is_kept_to_half_a_step(lo: float, times: float, at: float) -> None:
    hi, v = lo * times, lo * times**at
    quantizer = Quantizer(Schema((Column("x", lo, hi, transform="log"),), Column("y", 0, 1)))
    out = np.empty((1, 2))
    quantizer.records(np.array([[v]]), np.zeros(1), out)
    with flint.ctx.workprec(200):
        low, high, here = (flint.arb(float(b)).log() for b in (lo, hi, min(max(v, lo), hi)))
        exact = float(((2 * here - low - high) / (high - low) * STEPS).mid())
    assert abs(out[0, 0] - exact) <= 0.5 + 1e-6


@given(st.floats(5e-324, 1.7e308))
def test_the_logarithm_is_right_to_a_unit_in_the_last_place(x: float) -> None:
    found = logarithm(x)
    assert found == logarithm.py_func(x)  # the same operations, whoever does them
    assert abs(found - math.log(x)) <= math.ulp(found)


def test_the_place_of_a_cell_does_not_matter_to_its_logarithm() -> None:
    cells = np.random.default_rng(1).uniform(0.001, 1000, 1003)
    quantizer = Quantizer(Schema((Column("x", 0.001, 1000, transform="log"),), Column("y", 0, 1)))
    whole = np.empty((len(cells), 2))
    quantizer.records(cells[:, None], cells, whole)
    for start in (1, 7, 31, 500):
        part = np.empty((len(cells) - start, 2))
        quantizer.records(cells[start:, None], cells[start:], part)
        np.testing.assert_array_equal(part, whole[start:])
