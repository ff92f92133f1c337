"""Noisy sums of a fit: which they are, how far a record moves them, what their release costs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.api.fit import build_fit_request
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.quantize import STEPS
from dpsubset.models.entries import LARGEST, Entries, most_entries, of_support
from dpsubset.models.noisy_moments import NoisyMoments, distance
from dpsubset.models.rule import FitRule
from dpsubset.privacy.quantiles import QuantileRule, RangeInSteps
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.schema.encoding import Design

each_relation = pytest.mark.parametrize("neighbours", RELATIONS)

SCHEMA = dps.Schema.from_dict({
    "response": {"name": "y", "lo": -1, "hi": 1},
    "columns": {
        "a": {"lo": -1, "hi": 1},
        "b": {"lo": 0, "hi": 10, "missing": {"as": "indicator"}},
        "ward": {"levels": ["x", "y", "z"]},
        "dose": {"lo": -1, "hi": 1, "group": "g"},
        "kind": {"levels": [1, 2], "missing": {"as": "indicator"}, "group": "g"},
        "never": {"lo": 0, "hi": 1},
    },
})  # fmt: skip
DESIGN = Design.of(SCHEMA)


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "a": rng.choice([-1, 1, 0.3], n), "b": rng.uniform(-1, 11, n),
        "ward": rng.choice(["x", "y", "z", "?"], n), "dose": rng.uniform(-1, 1, n),
        "kind": rng.choice([1, 2, 9], n), "never": 0.5, "y": rng.choice([-1, 1, 0.2], n),
    })  # fmt: skip
    table.loc[rng.random(n) < 0.3, "b"] = np.nan
    return table


def exact(table: pd.DataFrame, support: tuple[int, ...], counted: bool) -> tuple[Any, list[int]]:
    part = of_support(SCHEMA, DESIGN, support)
    entries = Entries.of(Design.of(part), counted, empty=not support)
    moments = SensitiveTable(table, SCHEMA).read_support(part, STEPS)
    return entries, entries.values(moments.products)


SUPPORTS = [(), (0,), (1,), (2,), (0, 1, 2), (3,), (0, 1, 2, 3)]


@pytest.mark.parametrize("support", SUPPORTS, ids=str)
@pytest.mark.parametrize("counted", [False, True])
def test_sums_are_those_of_single_records_and_none_is_too_large(
    support: tuple[int, ...], counted: bool
) -> None:
    table = frame(40)
    entries, whole = exact(table, support, counted)
    each = [exact(table.iloc[[i]], support, counted)[1] for i in range(len(table))]
    assert len(whole) == entries.d <= most_entries(max(entries.m, 1))
    assert [sum(column) for column in zip(*each, strict=True)] == whole
    assert max(abs(v) for record in each for v in record) <= LARGEST
    # The bound is attained.
    assert max(abs(v) for record in each for v in record) == LARGEST


@pytest.mark.parametrize("support", SUPPORTS, ids=str)
@pytest.mark.parametrize("counted", [False, True])
def test_moments_follow_from_the_sums(support: tuple[int, ...], counted: bool) -> None:
    """All products of the model's columns, also those that are not released."""
    table = frame(60, seed=1)
    entries, values = exact(table, support, counted)
    part = of_support(SCHEMA, DESIGN, support)
    records = np.zeros((len(table), 0))
    columns = Design.of(part).columns
    for i in entries.places:
        feature = part.features[columns[i].feature]
        cells = table[feature.name]
        if columns[i].kind == "value":
            lo, hi = feature.span
            scaled = (2 * np.clip(cells.to_numpy(float), lo, hi) - lo - hi) / (hi - lo)
            column = np.rint(np.nan_to_num(scaled, nan=0.0) * STEPS) / STEPS
        elif columns[i].kind == "missing":
            known = cells.isna() if feature.levels is None else ~cells.isin(feature.levels)
            column = 2.0 * known.to_numpy() - 1
        else:
            column = 2.0 * (cells == feature.levels[columns[i].level]).to_numpy() - 1
        records = np.column_stack([records, column])
    records = np.column_stack([records, np.ones(len(table))])
    y = np.rint(table["y"].to_numpy() * STEPS) / STEPS
    gram, c, yy = entries.moments(values, None if counted else len(table))
    np.testing.assert_allclose(gram, records.T @ records, atol=1e-8)
    np.testing.assert_allclose(c, records.T @ y, atol=1e-8)
    assert yy == pytest.approx(y @ y)
    # What noise does to X'y - X'X theta, against differences.
    theta = np.linspace(-1, 1, entries.m + 1)
    moved = [int(v) for v in np.random.default_rng(0).integers(-LARGEST, LARGEST, entries.d)]
    noisy = [v + z for v, z in zip(values, moved, strict=True)]
    other, c2, _ = entries.moments(noisy, None if counted else len(table))
    found = entries.noise_map(theta) @ (np.array(moved) / LARGEST)
    np.testing.assert_allclose(found, (c2 - other @ theta) - (c - gram @ theta), atol=1e-8)


def moved(pair: tuple[pd.DataFrame, pd.DataFrame], support: tuple[int, ...], counted: bool) -> int:
    first, second = (exact(table, support, counted)[1] for table in pair)
    return max(abs(v - w) for v, w in zip(first, second, strict=True))


def pairs(relation: Neighbours) -> Any:
    rest = frame(12)
    one, other = frame(1, seed=2), frame(1, seed=3)
    one["a"], other["a"] = 1.0, -1.0
    one["y"] = other["y"] = 1.0
    if relation == "add-remove":
        return [(rest, pd.concat([rest, one])), (rest, rest.iloc[1:])]
    return [(pd.concat([rest, one]), pd.concat([rest, other]))]


@each_relation
@pytest.mark.parametrize("support", SUPPORTS[1:], ids=str)
def test_the_exact_audit_comes_to_epsilon_and_not_beyond(
    neighbours: Neighbours, support: tuple[int, ...]
) -> None:
    """The log ratio of a release is eta times the largest move, at the worst outcome."""
    epsilon, counted = Fraction(1), neighbours == "add-remove"
    noise = NoisyMoments(epsilon, Fraction(0), neighbours, 4)
    promised = noise.guarantee()
    for relation, cost in promised.costs.items():
        worst = max(moved(pair, support, counted) for pair in pairs(relation)) * noise.eta
        assert worst <= cost.epsilon
        if 0 in support:
            assert worst > cost.epsilon * Fraction(999, 1000)
        # The twin: as if a record moved a sum by half as much.
        assert 2 * worst > cost.epsilon or 0 not in support


@each_relation
def test_what_is_promised(neighbours: Neighbours) -> None:
    noise = NoisyMoments(Fraction(1, 2), Fraction(0), neighbours, 3)
    found = noise.guarantee()
    assert found.epsilon == Fraction(1, 2)
    assert found.proven
    # Where n is public, it is used: nothing is promised if it differs.
    assert ("add-remove" in found.costs) == (neighbours == "add-remove")
    if neighbours == "add-remove":
        assert found.costs["replace-one"].epsilon == 1
    assert distance("replace-one") == 2 * distance("add-remove") == 2 * LARGEST


def test_gaussian_noise_where_that_is_less() -> None:
    few = NoisyMoments(Fraction(1), Fraction(1, 10**6), "replace-one", 2)
    many = replace(few, most_columns=40)
    assert not few.gaussian
    assert many.gaussian
    assert few.guarantee().costs["replace-one"].kind == "pure"
    cost = many.guarantee().costs["replace-one"]
    assert cost.kind == "concentrated"
    assert cost.epsilon <= 1
    assert cost.delta == Fraction(1, 10**6)
    d = most_entries(40)
    assert many.deviation(d) < replace(many, delta=Fraction(0)).deviation(d)
    # Back from the scale that the draw uses.
    scale = many._gaussian_scale(d)
    assert d * Fraction(distance("replace-one")) ** 2 / scale**2 / 2 <= many.rho
    # Under each relation the cost is that of the distance which a record moves the entries.
    other = NoisyMoments(Fraction(1), Fraction(1, 10**6), "add-remove", 40)
    stated = other.guarantee().costs
    assert set(stated) == set(RELATIONS)
    for relation in RELATIONS:
        squares = d * Fraction(distance(relation)) ** 2 / other._gaussian_scale(d) ** 2 / 2
        rho = stated[relation].rho
        assert rho is not None
        assert 0.999 * rho <= squares <= rho
    drawn = many.draw([0] * 500, Randomness(SeededSource(1)))
    size = np.std(np.array(drawn, dtype=float)) / LARGEST
    assert size == pytest.approx(many.deviation(500), rel=0.3)


# -- scale, selection and fit together -----------------------------------------------------------


@each_relation
def test_the_composed_release_keeps_the_sum_by_enumeration(neighbours: Neighbours) -> None:
    """Every median, every support, and the worst outcome of the noise: on tiny and contrary tables.

    Given a median and a support, sums with noise have a log ratio of eta times the largest move, at
    some outcome: so the worst of the whole release is known in closed form.
    """
    from api.test_response_range_audit import contrary_pair, joint, small_pairs

    scale = dps.ResponseRange(QuantileRule.median(), Fraction(1, 4))
    planned = build_fit_request(
        np.zeros((1, 3)), bounds=dps.Bounds(x=1, y=1), y=np.zeros(1), k=1, epsilon=1,
        neighbours=neighbours, mechanism="exponential", response_range=scale, prediction_bound=1,
        rule=FitRule(mechanism="noisy-moments"),
    )  # fmt: skip
    planned = planned.with_selection(planned.selection.with_rows(5))
    promised = planned.guarantee
    assert promised.epsilon == 1
    asked, eta = planned.selection, planned.noise.eta
    schema = asked.spec.schema

    def largest(some: Any, charge: bool = True) -> float:
        worst = 0.0
        for pair in some:
            logs = np.abs(joint(asked, pair[0]) - joint(asked, pair[1]))
            for j in range(3):
                part = of_support(schema, asked.spec.design, (j,))
                entries = Entries.of(Design.of(part), counted=True)
                sums = []
                for table in pair:
                    sealed = SensitiveTable(table[:, :-1] / STEPS, schema, table[:, -1] / STEPS)
                    moments = sealed.read_support(part, STEPS)
                    sums.append(entries.values(moments.products))
                far = max(abs(v - w) for v, w in zip(*sums, strict=True))
                worst = max(worst, float(logs[:, j].max()) + float(eta * far) * (1 + charge) / 2)
        return worst

    for relation, cost in promised.costs.items():
        some = [*small_pairs(relation, 4), contrary_pair(relation)]
        worst = largest(some)
        assert 0.85 * float(cost.epsilon) < worst <= float(cost.epsilon) + 1e-9
    # The twin: twice the eta that was paid for.
    eta = 2 * eta
    assert largest([contrary_pair(neighbours)]) > 1.1


def test_the_clip_of_a_fit_is_wider_and_within_the_bounds() -> None:
    rule, released = FitRule(), RangeInSteps(Fraction(100), Fraction(50), (0, 200))
    outer = QuantileRule((Fraction(1, 10), Fraction(9, 10)), Fraction(1, 2))
    wide = [
        rule.scale(released, outer, n, 14, Fraction(1), "replace-one").half_width
        for n in (10, 10**4, 10**6, 10**8)
    ]
    assert wide == sorted(wide)
    assert wide[0] == 100
    assert wide[-1] > 10 * 1000  # and from there on to the declared bounds
    edge = RangeInSteps(Fraction(STEPS - 50), Fraction(50), (STEPS - 100, STEPS))
    found = rule.scale(edge, outer, 10**8, 14, Fraction(1), "replace-one")
    assert found.centre + found.half_width == STEPS
    assert rule.scale(None, None, 10, 14, Fraction(1), "replace-one") is None
    assert rule.scale(released, QuantileRule.median(), 10, 14, Fraction(1), "replace-one") is None
    # A private number of rows is not looked at.
    assert rule.scale(released, outer, None, 14, Fraction(1), "add-remove").half_width == 300


@pytest.mark.parametrize("wrong", [{"share": 0}, {"share": 1}, {"share": "x"}, {"width": 0}])
def test_rules_that_leave_nothing_are_refused(wrong: Any) -> None:
    with pytest.raises(dps.ArgumentError):
        FitRule(**wrong)


def test_pairs_of_levels_are_not_released() -> None:
    """A category of L levels adds L - 1 columns, and no products of its own."""
    entries, _ = exact(frame(5), (2,), False)
    assert (entries.m, entries.pairs, entries.d) == (2, (), 6)
    entries, _ = exact(frame(5), (0, 2), False)
    assert entries.d == 3 + 1 + 2 + 4 + 1
    assert len(list(itertools.combinations(range(3), 2))) == len(entries.pairs) + 1
