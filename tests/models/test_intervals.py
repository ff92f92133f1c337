"""Intervals of a model: their parts against brute force. Coverage is in tests/statistical/."""

from __future__ import annotations

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.models.entries import LARGEST, Entries
from dpsubset.models.intervals import QUANTILE, Moments, Posterior, intervals, quantile_of_sum
from dpsubset.models.solve import solve
from dpsubset.schema.encoding import Design

SCHEMA = dps.Schema.from_dict({
    "response": {"name": "y", "lo": -1, "hi": 1},
    "columns": {
        "a": {"lo": -1, "hi": 1, "missing": {"as": "indicator"}},
        "ward": {"levels": ["u", "v", "w"]},
        "b": {"lo": -1, "hi": 1},
    },
})  # fmt: skip

both_kinds = pytest.mark.parametrize("counted", [False, True])


@both_kinds
def test_weights_of_the_noise_are_those_of_the_map(counted: bool) -> None:
    entries, rng = Entries.of(Design.of(SCHEMA), counted), np.random.default_rng(0)
    for _ in range(5):
        g, theta = rng.normal(size=(2, entries.m + 1))
        np.testing.assert_allclose(entries.noise_of(g, theta), g @ entries.noise_map(theta))


@both_kinds
def test_the_form_is_the_mean_over_what_is_not_known(counted: bool) -> None:
    entries, rng = Entries.of(Design.of(SCHEMA), counted), np.random.default_rng(1)
    size = entries.m + 1
    root = rng.normal(size=(size, size))
    form, g = entries.noise_form(root @ root.T), rng.normal(size=size)
    # The mean of a square over +- one deviation in every direction of the root.
    steps = [entries.noise_of(g, column) - entries.noise_of(g, 0 * column) for column in root.T]
    assert g @ form @ g == pytest.approx(sum(step @ step for step in steps))


@pytest.mark.parametrize("weights", [[1.0, 0.0], [1, 1], [3, 1, 1, 0, 0], [1.0] * 12], ids=str)
@pytest.mark.parametrize("sampling", [0.0, 1.0])
def test_quantiles_are_those_of_draws(weights: list[float], sampling: float) -> None:
    w, rng, count = np.array(weights), np.random.default_rng(2), 200_000
    d = len(w)
    noise = rng.gamma(d + 1, 1, count) * (rng.uniform(-1, 1, (count, d)) @ w)
    noise *= np.sqrt(3 / ((d + 1) * (d + 2)))
    both = np.abs(noise + np.sqrt(sampling) * rng.normal(size=count))
    exact = np.quantile(both, 0.95) / np.sqrt(w @ w + sampling)
    assert quantile_of_sum(w, sampling) == pytest.approx(exact, abs=0.05)


def test_without_noise_quantiles_are_normal() -> None:
    assert quantile_of_sum(np.zeros(5), 1.0) == pytest.approx(QUANTILE, abs=1e-3)
    assert quantile_of_sum(np.zeros(5), 0.0) == QUANTILE


def test_the_law_of_coefficients_is_that_of_a_normal_model() -> None:
    """Against the same in one matrix: beta and g = G beta + noise, jointly normal."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    gram, g, prior = root @ root.T, rng.normal(size=3), rng.uniform(0.5, 2, 3)
    found = Posterior.of(gram, g, np.zeros(3), 0.0, prior, 0.7, 0.0)
    among = np.diag(prior) @ gram
    whole = gram @ np.diag(prior) @ gram + 0.49 * np.eye(3)
    gain = among @ np.linalg.inv(whole)
    np.testing.assert_allclose(found.mean[:3], gain @ g)
    np.testing.assert_allclose(found.covariance[:3, :3], np.diag(prior) - gain @ among.T)


def released(n: int, width: float) -> tuple[Entries, list[int]]:
    rng = np.random.default_rng(4)
    x = np.clip(rng.normal(0, (0.3, width), (n, 2)), -1, 1)
    columns = np.column_stack([x, np.ones(n), x @ [0.4, 0.2 / width] / 2])
    schema = dps.Bounds(x=1, y=1).schema(["a", "b"])
    entries = Entries.of(Design.of(schema), counted=False)
    return entries, entries.values(np.rint(columns.T @ columns * LARGEST).astype(np.int64))


def test_without_noise_intervals_are_those_of_least_squares() -> None:
    rng, n = np.random.default_rng(6), 300
    x = np.column_stack([rng.uniform(-1, 1, (n, 2)), np.ones(n)])
    y = np.clip(x @ [0.4, -0.2, 0.1] + rng.normal(0, 0.1, n), -1, 1)
    columns = np.column_stack([x, y])
    entries = Entries.of(Design.of(dps.Bounds(x=1, y=1).schema(["a", "b"])), counted=False)
    values = entries.values(np.rint(columns.T @ columns * LARGEST).astype(np.int64))
    found = solve(entries, values, n, 0.0)
    theta, (left,), *_ = np.linalg.lstsq(x, y)
    half = QUANTILE * np.sqrt(left / (n - 3) * np.diag(np.linalg.inv(x.T @ x)))
    np.testing.assert_allclose(found.of_both, np.column_stack([theta - half, theta + half]))
    np.testing.assert_allclose(found.of_table, np.column_stack([theta, theta]))


def test_r2_does_not_count_what_the_noise_contributes() -> None:
    """On average it is that of the shrunk model on the table; uncorrected, 0.13 more."""
    rng, n = np.random.default_rng(7), 500
    x = np.column_stack([rng.uniform(-1, 1, (n, 6)), np.ones(n)])
    y = np.clip(x @ [0.3, -0.2, 0, 0, 0, 0, 0.1] + rng.normal(0, 0.3, n), -1, 1)
    columns = np.column_stack([x, y])
    entries = Entries.of(Design.of(dps.Bounds(x=1, y=1).schema(list("abcdef"))), counted=False)
    values = np.array(entries.values(np.rint(columns.T @ columns * LARGEST).astype(np.int64)))
    over = []
    for _ in range(200):
        noisy = [int(v) for v in values + rng.normal(0, 10 * LARGEST, len(values))]
        found = solve(entries, noisy, n, 10.0)
        over.append(found.r2 - 1 + np.var(y - x @ found.theta) / np.var(y))
    assert abs(np.mean(over)) < 0.06


def test_what_noise_may_have_made_has_no_interval() -> None:
    """The second column varies by less than the noise: nothing bounds its coefficient."""
    entries, values = released(1000, 0.02)
    found = solve(entries, values, 1000, 10.0)
    assert np.isinf(found.of_table[1]).all()
    entries, values = released(1000, 0.3)
    found = solve(entries, values, 1000, 1.0)
    assert np.isfinite(found.of_table).all()


def test_intervals_do_not_depend_on_units() -> None:
    entries, values = released(1000, 0.3)
    units = np.diag([3.0, 0.1, 7.0])
    plain, scaled = (solve(entries, values, 1000, 2.0, u) for u in (None, units))
    for of_plain, of_scaled in ((plain.of_table, scaled.of_table), (plain.of_both, scaled.of_both)):
        np.testing.assert_allclose(np.diag(units)[:, None] * of_plain, of_scaled)
    assert (plain.of_both[:, 0] <= plain.of_table[:, 0]).all()


def test_ends_are_where_the_inequality_turns() -> None:
    """Brute force over t, for the first coefficient."""
    entries, values = released(1000, 0.3)
    deviation, n = 8.0, 1000
    gram, c, yy = entries.moments(values, n)
    posterior = Posterior(np.array([0.2, 0.3, 0.0]), np.diag([0.04, 0.09, 0.01]))
    theta, table, _ = intervals(Moments(entries, gram, c, yy, deviation), posterior, np.eye(3))
    g = np.linalg.inv(gram)[0]
    q = quantile_of_sum(deviation * entries.noise_of(g, posterior.mean), 0.0)
    inside = []
    for t in np.linspace(table[0, 0] - 1, table[0, 1] + 1, 2001):
        # What is not known beside the first: the covariance has no other part.
        square = sum(
            (entries.noise_of(g, np.array([t, 0.3 + i * 0.3, j * 0.1])) ** 2).sum()
            for i in (-1, 1)
            for j in (-1, 1)
        )
        if (theta[0] - t) ** 2 <= q**2 * deviation**2 * square / 4:
            inside.append(t)
    assert (min(inside), max(inside)) == pytest.approx(tuple(table[0]), abs=0.005)
