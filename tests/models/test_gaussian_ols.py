"""gaussian-ols: refused by default, right where what it assumes holds, and wrong elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.quantize import STEPS
from dpsubset.models.entries import Entries, of_support
from dpsubset.models.gaussian_ols import (
    ASSUMED,
    MAX_RESIDUAL,
    MIN_EIGENVALUE,
    GaussianOls,
    least_squares,
)
from dpsubset.schema.encoding import Design

N, D = 400, 3
DELTA = Fraction(1, 10**6)
FIT = GaussianOls(Fraction(1), DELTA)
SCHEMA = dps.Schema.from_bounds({f"x{j}": (-1, 1) for j in range(D)}, ("y", -1, 1))
RULE = dps.FitRule(mechanism="gaussian-ols")


def table(seed: int, width: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0, 0.4], (N, D)) * np.array([1, 1, width])
    return x, np.clip(x @ [0.2, -0.1, 0.1] + rng.normal(0, 0.2, N), -1, 1)


def coefficients(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    part = of_support(SCHEMA, Design.of(SCHEMA), range(D))
    moments = SensitiveTable(x, SCHEMA, y).read_support(part, STEPS)
    entries = Entries.of(Design.of(part), counted=False)
    return least_squares(entries, entries.values(moments.products), moments.n)


def moved(width: float) -> float:
    """How far the worst of some replaced rows moves the coefficients, in l2."""
    far = 0.0
    x, y = table(0, width)
    before = coefficients(x, y)
    for corner in np.array(np.meshgrid(*[[-1, 1]] * (D + 1))).T.reshape(-1, D + 1):
        other, response = x.copy(), y.copy()
        other[0], response[0] = corner[:D], corner[D]
        far = max(far, float(np.linalg.norm(coefficients(other, response) - before)))
    return far


def test_the_distance_holds_for_good_tables_and_for_no_others() -> None:
    covered = 2 * math.sqrt(D + 1) * MAX_RESIDUAL / (N * float(MIN_EIGENVALUE))
    scale = FIT.scale(D + 1, N) * FIT.step
    assert float(scale) * math.sqrt(2 * float(FIT.rho)) == pytest.approx(covered, rel=1e-3)
    design = np.column_stack([table(0)[0], np.ones(N)])
    assert np.linalg.eigvalsh(design.T @ design / N).min() > MIN_EIGENVALUE
    assert 0 < moved(1.0) <= covered
    # The twin: a column that hardly varies.
    assert moved(1e-3) > 2 * covered


def pairs(count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Neighbours with few rows, in which one row weighs much: X, y, and a row instead of the first.

    Other rows hardly vary in one direction, and the two that differ lie along it.
    """
    rng = np.random.default_rng(3)
    for _ in range(count):
        x = np.column_stack([rng.uniform(-1, 1, (12, 2)), np.ones(12)])
        x[1:, 0] = np.clip(x[1:, 1] + rng.normal(0, 0.05, 11), -1, 1)
        y = np.clip(x @ rng.normal(0, 1, 3) + rng.normal(0, 0.05, 12), -1, 1)
        x[0] = (*np.sign(rng.normal(size=2)), 1)
        other = np.array([*np.sign(rng.normal(size=2)), 1, rng.choice([-1.0, 1.0])])
        y[0] = rng.choice([-1.0, 1.0])
        yield x, y, other[:3], other[3:]


def test_it_is_the_rows_in_common_that_must_be_well_conditioned() -> None:
    """The proof's inequality; with X'X of either table in it, it would be false."""
    worse = 0
    for x, y, row, response in pairs(2000):
        far = 0.0
        tables = [(x, y), (np.vstack([row, x[1:]]), np.concatenate([response, y[1:]]))]
        found = [np.linalg.lstsq(a, b, rcond=None)[0] for a, b in tables]
        far = float(np.linalg.norm(found[0] - found[1]))
        largest = max(np.abs(b - a @ t).max() for (a, b), t in zip(tables, found, strict=True))
        common = np.linalg.eigvalsh(x[1:].T @ x[1:]).min()
        whole = min(np.linalg.eigvalsh(a.T @ a).min() for a, _ in tables)
        prediction_bound = 2 * math.sqrt(3) * largest
        assert far <= prediction_bound / common * (1 + 1e-9)
        worse += far > prediction_bound / whole
    assert worse > 0
    assert "without any one of them has no eigenvalue below n/8" in ASSUMED
    assert "no residual in its own rows" in ASSUMED


def test_a_statement_says_where_gaussian_noise_comes_from() -> None:
    """OpenDP takes it from OpenSSL's generator; the selection's is the operating system's."""
    x, y = table(2)
    gaussian = dps.fit(x, SCHEMA, y=y, k=3, epsilon=1, delta=0.1)
    assert "Gaussian noise" in gaussian.fit.summary
    pure = dps.fit(x, SCHEMA, y=y, k=2, epsilon=20, rule=dps.FitRule(mechanism="noisy-moments"))
    smooth = dps.fit(x, SCHEMA, y=y, k=2, epsilon=20,
                     rule=dps.FitRule(mechanism="objective-perturbation"))  # fmt: skip
    for release, by_opendp in (
        (fitted(), True), (gaussian, True), (pure, False), (smooth, False),
    ):  # fmt: skip
        lines = release.statement().split("## Provenance")[0].splitlines()
        (line,) = [line for line in lines if line.startswith("- Fit: ")]
        assert ("OpenSSL" in line) is by_opendp
        assert ("OpenSSL" in release.to_dict()["fit"]["randomness"]) is by_opendp
        assert ("the operating system's cryptographic generator" in line) is not by_opendp


def test_it_is_least_squares() -> None:
    x, y = table(1)
    design = np.column_stack([np.rint(x * STEPS) / STEPS, np.ones(N)])
    right = np.linalg.lstsq(design, np.rint(y * STEPS) / STEPS, rcond=None)[0]
    np.testing.assert_allclose(coefficients(x, y), right, atol=1e-9)


def fitted(**more: Any) -> dps.Release:
    x, y = table(2)
    asked: dict[str, Any] = {"k": 2, "epsilon": 20, "delta": DELTA, "rule": RULE,
                             "allow_unproven": True, **more}  # fmt: skip
    return dps.fit(x, SCHEMA, y=y, **asked)


def test_a_release_says_what_it_assumes() -> None:
    release = fitted()
    g = release.guarantee
    assert not g.private
    assert "usually false where columns fill little" in g.assumes
    assert g.epsilon <= 20
    assert g.delta == DELTA
    assert "usually false where columns fill little" in release.statement()
    assert "high probability" not in release.statement()
    assert "m times epsilon" not in release.statement()
    assert "usually false where columns fill little" in release.to_dict()["warning"]
    model = release.model
    assert model.r2 is None
    assert dps.Model.from_json(model.to_json()) == model
    half = 1.959964 * release.fit.deviation * (release.fit.span[1] - release.fit.span[0]) / 2
    low, high = model.table_intervals["x0"]
    assert (high - low) / 2 == pytest.approx(half)
    assert model.intervals["x0"] == (-math.inf, math.inf)
    assert dps.price_fit(
        schema=SCHEMA, k=2, epsilon=20, delta=DELTA, rule=RULE, allow_unproven=True
    ).guarantee.assumes == g.assumes  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"allow_unproven": False}, "allow_unproven"), ({"delta": 0}, "delta"),
        ({"neighbours": "add-remove"}, "replace-one"), ({"seed": 1}, "seed"),
    ],
    ids=str,
)  # fmt: skip
def test_what_it_cannot_do_is_refused(wrong: Any, says: str) -> None:
    with pytest.raises(dps.ArgumentError, match=says):
        fitted(**wrong)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tables_of_few_rows_have_a_model(n: int) -> None:
    x, y = table(0)
    release = dps.fit(x[:n], SCHEMA, y=y[:n], k=2, epsilon=0.01, delta=DELTA, rule=RULE,
                      allow_unproven=True)  # fmt: skip
    assert all(map(math.isfinite, release.model.coefficients.values()))
