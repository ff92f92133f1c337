"""Means, PrivateMax, peeling and sparse means: closed forms, audits with twins, arguments.

The audits compare closed forms on neighbouring tables: totals are exact, noise has a known law.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.data.column_selection import select_columns
from dpsubset.data.quantize import STEPS
from dpsubset.data.sums import Sums, mean_of
from dpsubset.papers.peeling_steps import Peel
from dpsubset.privacy.budget import RECORDS, Budget
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.schema.schema import Column
from dpsubset.search.enumerate import ScoredSupports, log_exponential, log_permute_and_flip

EPSILON, DELTA = Fraction(1), Fraction(1, 10**5)
SLACK = 1e-9

each_relation = pytest.mark.parametrize("neighbours", RELATIONS)


def table(n: int = 500, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


# Closed forms


def test_totals_are_exact() -> None:
    x = table(1000, 4)
    sums = Sums.read(select_columns(x, (-1, 1)), x)
    assert sums.n == 1000
    assert list(sums.totals) == np.rint(x * STEPS).sum(axis=0).astype(int).tolist()


def test_without_noise_to_speak_of_the_mean_is_the_mean() -> None:
    x = pd.DataFrame({"age": [20.0, 30, 70], "cost": [0.0, 1, 5]})
    found = dps.private_mean(x, {"age": (0, 100), "cost": (0, 4)}, epsilon=10**6)
    # Values beyond the bounds count as these.
    assert found.values == pytest.approx((40, 5 / 3), abs=1e-3)
    sparse = dps.sparse_mean(x, {"age": (0, 100), "cost": (0, 40)}, s=1, epsilon=10**6)
    assert sparse.picked == (1,)
    assert sparse.values == pytest.approx((50, 2), abs=1e-2)


@pytest.mark.parametrize("delta", [0, DELTA])
def test_noise_has_the_deviation_that_is_stated(delta: Fraction) -> None:
    x = table(200, 2)
    errors = np.array([
        dps.private_mean(x, (-1, 1), epsilon=1, delta=delta).array for _ in range(3000)
    ])  # fmt: skip
    stated = dps.private_mean(x, (-1, 1), epsilon=1, delta=delta).deviations
    assert errors.std(axis=0) == pytest.approx(stated, rel=0.15)
    assert errors.mean(axis=0) == pytest.approx(x.mean(axis=0), abs=6 * stated[0] / math.sqrt(3000))


def test_closed_forms_of_the_noise() -> None:
    """Laplace: d 2 STEPS / epsilon; Gaussian: 2 STEPS sqrt(d / (2 rho))."""
    for d in (1, 20, 400):
        pure = Budget.of(EPSILON, Fraction(0), d)
        assert float(pure.value_scale(d, 2 * STEPS)) == pytest.approx(2 * STEPS * d)
        zcdp = Budget.of(EPSILON, DELTA, d)
        if d > 1:
            assert zcdp.measure == "zcdp"
            expected = 2 * STEPS * math.sqrt(d / (2 * float(zcdp.amount)))
            assert float(zcdp.value_scale(d, 2 * STEPS)) == pytest.approx(expected)
    # The published Gaussian mechanism: variance 2 (c sqrt(d) / epsilon)^2 log(1.25 / delta).
    published = 2 * STEPS * math.sqrt(2 * 400 * math.log(1.25e5))
    assert zcdp.deviation(400, 2 * STEPS) < published


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_the_measure_with_less_noise_is_taken(d: int) -> None:
    chosen = Budget.of(EPSILON, DELTA, d)
    both = [Budget("pure", EPSILON), Budget("zcdp", chosen.amount, DELTA)]
    if chosen.measure == "zcdp":
        assert both[1].deviation(d, 1000) <= both[0].deviation(d, 1000)
    else:
        from dpsubset.privacy.accounting import rho_for

        zcdp = Budget("zcdp", rho_for(EPSILON, DELTA), DELTA)
        assert both[0].deviation(d, 1000) <= zcdp.deviation(d, 1000)


def test_peeling_without_noise_finds_the_largest_in_order() -> None:
    peel = Peel.of(Fraction(10**6), Fraction(0), 3)
    picked, values = peel.draw([5, -(10**9), 3 * 10**9, 7, 10**8], 1)
    assert picked == [2, 1, 4]
    assert values == pytest.approx([3 * 10**9, -(10**9), 10**8])


# The audit: every neighbouring pair of small tables, with cells at the ends of their bounds


def neighbours_of(neighbours: Neighbours, d: int, n: int) -> Any:
    """Totals (and n STEPS, where that is private) of neighbouring tables."""
    ends = list(itertools.product((-STEPS, 0, STEPS), repeat=d))
    for rows in itertools.combinations_with_replacement(ends, n):
        for one, other in itertools.product(ends, repeat=2):
            first = np.array([*rows, one]).sum(axis=0).tolist()
            if neighbours == "add-remove":
                second = np.array([*rows, (0,) * d]).sum(axis=0).tolist()
                yield [*first, (n + 1) * STEPS], [*second, n * STEPS]
            else:
                yield first, np.array([*rows, other]).sum(axis=0).tolist()


def worst_of_values(budget: Budget, pairs: Any, change: int) -> float:
    """The largest log ratio of a result: |v - v'|_1 / scale, attained beyond both."""
    worst = 0.0
    for first, second in pairs:
        scale = float(budget.value_scale(len(first), change))
        worst = max(worst, sum(abs(a - b) for a, b in zip(first, second, strict=True)) / scale)
    return worst


@each_relation
@pytest.mark.parametrize("d", [1, 2])
def test_no_neighbours_contradict_the_mean(neighbours: Neighbours, d: int) -> None:
    pairs = list(neighbours_of(neighbours, d, 1))
    change = RECORDS[neighbours] * STEPS
    values = d + (neighbours == "add-remove")
    worst = worst_of_values(Budget.of(EPSILON, Fraction(0), values), pairs, change)
    assert 0.999 * float(EPSILON) < worst <= float(EPSILON) + SLACK
    # Twins: the sensitivity of the other relation, and one column that is not paid for.
    if neighbours == "replace-one":
        assert worst_of_values(Budget("pure", EPSILON), pairs, STEPS) > 1.9
    unpaid = Budget("pure", EPSILON * values / max(1, values - 1))
    if values > 1:
        assert worst_of_values(unpaid, pairs, change) > 1.1


def test_gaussian_noise_keeps_epsilon_and_delta() -> None:
    """The hockey-stick divergence of the worst pair, along the line between the two vectors."""
    d = 20
    budget = Budget.of(EPSILON, DELTA, d)
    assert budget.measure == "zcdp"
    for factor, holds in ((1.0, True), (0.7, False)):
        scale = factor * float(budget.value_scale(d, 2 * STEPS))
        distance = 2 * STEPS * math.sqrt(d) / scale
        from scipy.stats import norm

        delta = norm.cdf(distance / 2 - 1 / distance) - math.e * norm.cdf(
            -distance / 2 - 1 / distance
        )
        assert (delta <= float(DELTA)) == holds


def log_peels(peel: Peel, values: list[int], change: int) -> dict[tuple[int, ...], float]:
    """Every order of picks and the logarithm of its probability."""
    part = peel.budget.part(peel.share)
    scale = part.pick_scale(peel.k, change)
    closed = log_permute_and_flip if part.measure == "pure" else log_exponential
    runs: dict[tuple[int, ...], float] = {(): 0.0}
    for _ in range(peel.k):
        longer = {}
        for run, so_far in runs.items():
            left = [j for j in range(len(values)) if j not in run]
            sizes = [abs(values[j]) for j in left]
            gaps = np.array([max(sizes) - size for size in sizes], dtype=np.int64)
            scored = ScoredSupports(np.empty((len(left), 0), dtype=np.int64), gaps, Fraction(1))
            for j, log in zip(left, closed(scored, 1 / scale).tolist(), strict=True):
                longer[(*run, j)] = so_far + log
        runs = longer
    return runs


def worst_of_peel(peel: Peel, pairs: Any, change: int, moved: int | None = None) -> float:
    """Picks, then values of those that were picked: log ratios add up."""
    worst = 0.0
    scale = float(peel.budget.part(1 - peel.share).value_scale(peel.k, change))
    for first, second in pairs:
        one, two = (log_peels(peel, list(values), change) for values in (first, second))
        for run, log in one.items():
            of_values = sum(abs(first[j] - second[j]) for j in run) / scale
            worst = max(worst, abs(log - two[run]) + of_values)
    return worst


def contrary(d: int, k: int) -> list[tuple[list[int], list[int]]]:
    """One record lowers the k largest of many nearly equal sizes, and raises all others."""
    top = [50 * STEPS] * k + [50 * STEPS] * (d - k)
    moved = [v - 2 * STEPS for v in top[:k]] + [v + 2 * STEPS for v in top[k:]]
    far = [40 * STEPS] * k + [400 * STEPS] * (d - k)
    lower = [v + 2 * STEPS for v in far[:k]] + [v - 2 * STEPS for v in far[k:]]
    return [(top, moved), (far, lower), ([-v for v in far], [-v for v in lower])]


@pytest.mark.parametrize("k", [1, pytest.param(2, marks=pytest.mark.statistical)])
def test_no_neighbours_contradict_peeling(k: int) -> None:
    peel = Peel.of(EPSILON, Fraction(0), k)
    pairs = [*neighbours_of("replace-one", 3, 1), *contrary(6, k)]
    worst = worst_of_peel(peel, pairs, 2 * STEPS)
    assert 0.9 * float(EPSILON) < worst <= float(EPSILON) + SLACK


def test_twins_of_peeling_are_caught() -> None:
    peel = Peel.of(EPSILON, Fraction(0), 2)
    pairs = contrary(6, 2)
    # Half the sensitivity; values that are not paid for; picks that are paid for once.
    assert worst_of_peel(peel, pairs, STEPS) > 1.5
    free = Peel(Budget("pure", EPSILON / Fraction(1, 2)), 2)
    assert worst_of_peel(free, pairs, 2 * STEPS) > 1.5


def test_the_published_private_max_costs_more_than_it_says() -> None:
    """Laplace noise of scale 2B / epsilon, on all entries, for the index alone: by simulation.

    With entries moving apart it comes close to epsilon, so that a value on top passes it.
    """
    rng = np.random.default_rng(1)
    b, draws = 1.0, 400_000
    first, second = np.array([8.0, 0.0]), np.array([7.0, 1.0])
    hits = [
        (np.argmax(v + rng.laplace(0, 2 * b, (draws, 2)), axis=1) == 1).mean()
        for v in (first, second)
    ]
    of_index = math.log(hits[1] / hits[0])
    of_value = b / (2 * b)
    assert of_index + of_value > 1.2


# Guarantees


@each_relation
@pytest.mark.parametrize("delta", [0, DELTA])
@pytest.mark.parametrize("truncation", ["declared", "private"])
def test_guarantees_are_those_that_were_asked_for(
    neighbours: Neighbours, delta: Fraction, truncation: Any
) -> None:
    x = table(300, 30)
    asked: dict[str, Any] = {
        "epsilon": 1, "delta": delta, "neighbours": neighbours, "truncation": truncation,
    }  # fmt: skip
    for found in (
        dps.private_mean(x, (-1, 1), **asked),
        dps.sparse_mean(x, (-1, 1), s=2, **asked),
    ):
        g = found.guarantee
        # A delta is spent where that is less noise: for two columns it is not.
        assert g.delta == (delta if found.picked is None else 0)
        assert g.private
        assert g.epsilon is not None
        # Many small levels and Gaussian noise together cost less than they were given.
        assert (Fraction(3, 4) if g.parts and g.delta else Fraction(999, 1000)) < g.epsilon <= 1
        # The number of rows is public under replace-one, and part of the answer.
        assert set(g.costs) == ({"replace-one"} if neighbours == "replace-one" else set(RELATIONS))
        assert bool(g.parts) == (truncation == "private")
        assert "Guarantee" in str(found)
        assert found.to_dict()["guarantee"]["private"] is True


def test_rows_of_a_unit_share_epsilon() -> None:
    schema = dps.Schema.from_bounds({"x0": (-1, 1)}, ("x1", -1, 1), rows_per_unit=5)
    frame = pd.DataFrame(table(50, 2), columns=["x0", "x1"])
    one = dps.private_mean(frame, (-1, 1), epsilon=1)
    five = dps.private_mean(frame, schema, epsilon=1)
    assert five.guarantee.epsilon == 1
    assert five.deviations[0] == pytest.approx(5 * one.deviations[0])
    with pytest.raises(dps.ArgumentError, match="rows_per_unit"):
        dps.private_mean(frame, schema, epsilon=1, delta=1e-6)


def test_private_truncation_helps_where_bounds_are_wide() -> None:
    x = np.random.default_rng(0).normal(3, 1, (5000, 4))
    wide: dict[str, Any] = {"within": (-1000, 1000), "epsilon": 1}
    plain = dps.private_mean(x, **wide).deviations[0]
    clipped = dps.private_mean(x, **wide, truncation="private")
    assert clipped.deviations[0] < plain / 20
    assert clipped.array == pytest.approx([3] * 4, abs=0.3)


def test_a_value_for_missing_cells_goes_with_the_truncation() -> None:
    """It lies within the declared bounds, and perhaps beyond the released ones."""
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(500, 5, 800), "y": 0.0})
    frame.loc[::4, "a"] = np.nan
    a = {"lo": 0, "hi": 1000, "missing": {"as": "value", "value": 0}}
    schema = dps.Schema.from_dict(
        {"response": {"name": "y", "lo": -1, "hi": 1}, "columns": {"a": a}}
    )
    found = dps.private_mean(frame, schema, columns=["a"], epsilon=1000, truncation="private")
    # A quarter of the cells are at 0: the lower quantile is, or near the others.
    assert 0 <= found.values[0] <= 510
    full = frame.fillna(500.0)
    found = dps.private_mean(full, schema, columns=["a"], epsilon=1000, truncation="private")
    assert found.values[0] == pytest.approx(500, abs=2)


# Odd tables and arguments


@each_relation
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows_give_an_answer(neighbours: Neighbours, n: int) -> None:
    x = table(n, 2)
    for truncation in ("declared", "private"):
        asked: dict[str, Any] = {"neighbours": neighbours, "truncation": truncation}
        found = dps.private_mean(x, (-1, 1), epsilon=1, **asked)
        sparse = dps.sparse_mean(x, (-1, 1), s=1, epsilon=1, **asked)
        assert all(-1 <= v <= 1 for v in (*found.values, *sparse.values))


def test_bad_cells_count_as_the_middle() -> None:
    x = np.array([[np.nan, np.inf], [1.0, -np.inf]])
    found = dps.private_mean(x, (0, 1), epsilon=10**6)
    assert found.values == pytest.approx((0.75, 0.5), abs=1e-3)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"s": 0}, "s must lie"),
        ({"s": 4}, "s must lie"),
        ({"s": 1.5}, "whole number"),
        ({"neighbours": "none"}, "neighbours"),
        ({"truncation": True}, "truncation"),
        ({"share": 1}, "share"),
        ({"columns": ["x9"]}, "no column"),
        ({"within": {"x0": {"lo": 1, "hi": 2, "transform": "log"}}}, "transform"),
    ],
)
def test_wrong_arguments_are_refused(asked: dict[str, Any], match: str) -> None:
    given: dict[str, Any] = {"within": (-1, 1), "s": 1, "epsilon": 1, **asked}
    with pytest.raises(dps.DpsubsetError, match=match):
        dps.sparse_mean(table(), **given)


def test_nothing_private_shows() -> None:
    x = table()
    sums = Sums.read(select_columns(x, (-1, 1)), x)
    assert str(sums.totals[0]) not in repr(sums)
    assert str(sums.n) not in repr(sums)


def test_means_lie_within_bounds() -> None:
    column = Column("x", 2, 6)
    assert mean_of(column, 0, 1) == 4
    assert mean_of(column, 10**12, 3) == 6
    assert mean_of(column, -(10**12), 0) == 2
