"""Fits under bounds at the ends of float64: what was paid for is written, read back and used.

Bounds are public, so a fit may refuse them before a value is read. Once it has not, nothing that
follows may fail: the release, its files, its statement, its picture and its predictions.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset.models.intervals import in_unit, normalised
from dpsubset.models.solve import of_coefficients

mpl.use("agg")

NAN = re.compile(r"\bnan\b")

powers = st.floats(-298, 298).map(lambda e: 10.0**e)
#: Of one sign, of both, from 0, and so close to each other that hardly a digit is left.
ends = st.one_of(
    powers.map(lambda x: (x, 2 * x)),
    st.tuples(powers.map(lambda x: -x), powers),
    powers.map(lambda x: (0.0, x)),
    powers.map(lambda x: (x, x * (1 + 1e-12))),
)


def schema_of(bounds: list[tuple[float, float]], transform: str | None) -> dps.Schema:
    *columns, (low, high) = bounds
    response: dict[str, Any] = {"name": "y", "lo": low, "hi": high}
    if transform is not None and low > 0:
        response["transform"] = transform
    return dps.Schema.from_dict({
        "response": response,
        "columns": {
            **{f"x{i}": {"lo": lo, "hi": hi} for i, (lo, hi) in enumerate(columns)},
            "ward": {"levels": ["u", "v"]},
        },
    })  # fmt: skip


def rows_of(schema: dps.Schema, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    found: dict[str, Any] = {"ward": rng.choice(["u", "v"], n)}
    for column in (*schema.features, schema.response):
        if column.levels is None:
            low, high = column.span
            part = rng.uniform(0, 1, n)
            found[column.name] = low * (1 - part) + high * part
    return pd.DataFrame(found)


def no_constants(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def used(release: dps.Release, rows: pd.DataFrame) -> None:
    """Everything that is made of a release."""
    model = release.model
    assert model is not None
    for text in (release.to_json(), model.to_json(), release.statement(form="json")):
        json.loads(text, parse_constant=no_constants)
    for form in ("markdown", "html", "yaml"):
        assert not NAN.search(release.statement(form=form))
    assert not NAN.search(str(release) + release._repr_html_())
    assert dps.Model.from_json(model.to_json()) == model
    assert all(map(math.isfinite, [*model.coefficients.values(), model.intercept]))
    for term in (*model.terms, model.constant):
        for low, high in (term.interval, term.table_interval):
            assert low <= high
    low, high = model.schema.response.span
    predicted = model.predict(rows)
    assert len(predicted) == len(rows)
    assert (predicted >= low * (1 - 1e-9 * np.sign(low))).all()
    assert (predicted <= high * (1 + 1e-9 * np.sign(high))).all()


@settings(max_examples=40, deadline=None)
@given(
    bounds=st.lists(ends, min_size=3, max_size=3),
    transform=st.sampled_from([None, "log", "sqrt"]),
    n=st.sampled_from([0, 2, 40]),
    epsilon=st.sampled_from([Fraction(1, 10**9), 1, 100, 10**6]),
    neighbours=st.sampled_from(["replace-one", "add-remove"]),
    how=st.sampled_from(["noisy-moments", "objective-perturbation"]),
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_what_was_paid_for_is_never_lost(
    bounds: list[tuple[float, float]], transform: str | None, n: int, epsilon: Any,
    neighbours: Any, how: str,
) -> None:  # fmt: skip
    asked: dict[str, Any] = {"k": 2, "epsilon": epsilon, "neighbours": neighbours,
                             "rule": dps.FitRule(mechanism=how)}  # fmt: skip
    try:
        schema = schema_of(bounds, transform)
        dps.price_fit(None, schema, **asked)
    except dps.DpsubsetError:
        return  # refused, by public facts and before anything is paid
    rows = rows_of(schema, n)
    used(dps.fit(rows, schema, **asked), rows)


@pytest.mark.parametrize("epsilon", [0.1, 1, 100])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bounds_that_are_far_apart(epsilon: float) -> None:
    """Squares of what such a unit is would be beyond float64."""
    schema = dps.Schema.from_dict({
        "response": {"name": "y", "lo": 0, "hi": 1},
        "columns": {"x0": {"lo": 1e-160, "hi": 2e-160}, "x1": {"lo": 0, "hi": 1e150}},
    })  # fmt: skip
    rows = rows_of(schema, 400)
    for _ in range(4):
        used(dps.fit(rows, schema, k=2, epsilon=epsilon), rows)
        rule = dps.FitRule(mechanism="noisy-moments")
        release = dps.fit(rows, schema, k=2, epsilon=epsilon, rule=rule)
        used(release, rows)
        plt.close(release.model.plot().figure)


def test_intervals_are_those_of_other_units() -> None:
    """The same table in units of 1 and of 1e-160: the same interval, but for the unit."""
    found = []
    for unit in (1.0, 1e-160):
        schema = dps.Schema.from_dict({
            "response": {"name": "y", "lo": 0, "hi": 1},
            "columns": {"x0": {"lo": 0, "hi": unit}, "x1": {"lo": 0, "hi": 1}},
        })  # fmt: skip
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, (4000, 2))
        rows = pd.DataFrame({"x0": x[:, 0] * unit, "x1": x[:, 1], "y": x @ [0.5, 0.3]})
        term = dps.fit(rows, schema, k=2, epsilon=20, seed=1).model.terms[0]
        found.append([end * unit for end in (*term.interval, *term.table_interval)])
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert all(map(math.isfinite, found[0]))


def test_an_end_that_is_no_float_is_not_known() -> None:
    assert in_unit((1.0, 1e10), 1e300) == (1e300, math.inf)
    assert in_unit((math.nan, 1.0), 2.0) == (-math.inf, 2.0)
    rows, units = normalised(np.array([[1e200, 0.0], [0.0, 1e-320]]))
    assert units == [1e200, 0.0]
    assert in_unit((1.0, 2.0), units[1]) == (-math.inf, math.inf)
    np.testing.assert_array_equal(rows, np.eye(2))
    of_table = of_coefficients(np.array([1.0, 1.0]), 0.5, np.diag([1e200, 1e-320])).of_table
    assert np.isfinite(of_table[0]).all()
    assert np.isinf(of_table[1]).all()
