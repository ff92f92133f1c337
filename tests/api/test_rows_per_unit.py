"""A unit of several rows: every step runs at a part of epsilon, and the unit pays all of it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.api.request import build_request
from dpsubset.mechanisms import Data
from dpsubset.privacy.guarantee import Cost, Guarantee
from dpsubset.privacy.relations import RELATIONS, Neighbours

BOUNDS = dict.fromkeys("abc", (-1, 1))
PLAIN = dps.Schema.from_bounds(BOUNDS, ("y", -1, 1), privacy_unit="one person")
THREE = dps.Schema.from_bounds(BOUNDS, ("y", -1, 1), privacy_unit="one person", rows_per_unit=3)
FRAME = pd.DataFrame(np.random.default_rng(1).uniform(-1, 1, (60, 4)), columns=[*"abcy"])
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)


@pytest.mark.parametrize("wrong", [0, -1, 1.0, 2.5, "3", True, None, [3], np.float64(2), np.True_])
def test_other_numbers_of_rows_are_refused(wrong: Any) -> None:
    with pytest.raises(dps.SchemaError, match="rows_per_unit must be a whole number, at least 1"):
        dps.Schema.from_bounds(BOUNDS, ("y", -1, 1), rows_per_unit=wrong)
    facts = THREE.to_dict() | {"rows_per_unit": wrong}
    with pytest.raises(dps.SchemaError, match="rows_per_unit must be a whole number, at least 1"):
        dps.Schema.from_dict(facts)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_files_have_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"schema.{ending}"
    THREE.write(path)
    assert "rows_per_unit" in path.read_text()
    assert dps.Schema.read(path) == THREE
    release = dps.select(FRAME, path, k=1, epsilon=1)
    assert release.schema.rows_per_unit == 3


def test_schemas_without_it_are_what_they_were() -> None:
    assert "rows_per_unit" not in PLAIN.to_dict()
    assert PLAIN.fingerprint() != THREE.fingerprint()
    one = dps.Schema.from_bounds(BOUNDS, ("y", -1, 1), privacy_unit="one person", rows_per_unit=1)
    assert one.fingerprint() == PLAIN.fingerprint()
    # Recorded before there was such an entry.
    assert PLAIN.fingerprint()[:16] == "d9cb1e103a85185f"


@each_relation
@pytest.mark.parametrize("scale", ["declared", "private"])
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "peeling", "penalised"])
def test_every_step_runs_at_a_part_and_the_unit_pays_all(
    neighbours: Neighbours, scale: Any, mechanism: str
) -> None:
    given: dict[str, Any] = {"k": 1, "neighbours": neighbours, "response_range": scale,
                             "mechanism": mechanism}  # fmt: skip
    unit = build_request(FRAME, THREE, epsilon=Fraction(6, 5), **given).with_rows(len(FRAME))
    row = build_request(FRAME, PLAIN, epsilon=Fraction(2, 5), **given).with_rows(len(FRAME))
    assert unit.setting == row.setting
    assert unit.range_epsilon == row.range_epsilon
    assert unit.epsilon == row.epsilon == Fraction(2, 5)
    paid, each = unit.guarantee, row.guarantee
    assert set(paid.costs) == set(each.costs)
    for relation in each.costs:
        assert paid.costs[relation].epsilon == 3 * each.costs[relation].epsilon
        assert paid.costs[relation].delta == 0
    for (_, part), (_, alone) in zip(paid.parts, each.parts, strict=True):
        assert part.epsilon == 3 * alone.epsilon  # type: ignore[operator]
    assert dps.select(FRAME, THREE, epsilon=Fraction(6, 5), **given).guarantee == paid
    assert mechanism != "exponential" or paid.epsilon == Fraction(6, 5)


def test_a_delta_is_refused() -> None:
    given: dict[str, Any] = {"k": 1, "epsilon": 1, "mechanism": "peeling", "delta": 1e-6}
    with pytest.raises(dps.ArgumentError, match="rows_per_unit is above 1"):
        dps.price(FRAME, THREE, **given)
    assert dps.price(FRAME, PLAIN, **given).guarantee is not None


def test_a_budget_too_small_for_the_rows_is_refused() -> None:
    many = dps.Schema.from_bounds(BOUNDS, ("y", -1, 1), rows_per_unit=10**12)
    with pytest.raises(dps.ArgumentError, match="1e-9 for each of rows_per_unit rows"):
        dps.price(FRAME, many, k=1, epsilon=1)


def test_costs_of_several_rows_are_pure() -> None:
    assert Cost(Fraction(1, 3)).group_privacy(3) == Cost(Fraction(1))
    total = (Cost(Fraction(1, 3)) + Cost(Fraction(1, 6))).group_privacy(2)
    assert total.epsilon == 1
    assert [term.epsilon for term in total.terms] == [Fraction(1, 3), Fraction(2, 3)]
    for cost in (Cost(Fraction(1), Fraction(1, 9)),
                 Cost.concentrated(Fraction(1, 9), Fraction(1, 10**6))):  # fmt: skip
        assert cost.group_privacy(1) is cost
        with pytest.raises(ValueError, match="for pure costs only"):
            cost.group_privacy(2)
    nothing = Guarantee("replace-one", {})
    assert not nothing.group_privacy(4).proven


@each_relation
def test_what_is_said_of_it(neighbours: Neighbours) -> None:
    release = dps.select(FRAME, THREE, k=1, epsilon=1, neighbours=neighbours)
    guarantee = json.loads(release.to_json())["guarantee"]
    assert (guarantee["unit"], guarantee["rows_per_unit"]) == ("one person", 3)
    assert guarantee["epsilon"] == 1
    assert "unit of privacy: one person, up to 3 rows" in str(release)
    text = release.statement()
    assert "Unit of privacy: one person, up to 3 rows." in text
    assert "The caller declared that nobody has more rows, which cannot be checked" in text
    assert "up to 3 rows of one unit are" in text
    assert "Unit of privacy: one person, up to 3 rows" in str(
        dps.price(FRAME, THREE, k=1, epsilon=1)
    )
    plain = dps.select(FRAME, PLAIN, k=1, epsilon=1)
    assert "whoever" not in plain.statement()
    assert json.loads(plain.to_json())["guarantee"]["rows_per_unit"] == 1
    unnamed = dps.Schema.from_bounds(BOUNDS, ("y", -1, 1), rows_per_unit=2)
    assert "one unit with up to 2 rows" in str(dps.select(FRAME, unnamed, k=1, epsilon=1))


def contrary(neighbours: Neighbours, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables that differ in so many rows, all of which do the same to the scores."""
    rest = np.tile([-1.0, 1.0, 1.0, 1.0], (600, 1))
    rest[::3, 0] = 0.0
    costly, mirror = np.ones((rows, 4)), np.tile([-1.0, -1.0, -1.0, 1.0], (rows, 1))
    with_them = np.vstack([rest, costly])
    return with_them, rest if neighbours == "add-remove" else np.vstack([rest, mirror])


@each_relation
def test_tables_that_differ_in_all_rows_of_a_unit_keep_epsilon_and_more_rows_do_not(
    neighbours: Neighbours,
) -> None:
    def worst(schema: dps.Schema, rows: int) -> float:
        logs = []
        for table in contrary(neighbours, rows):
            x, y = table[:, :3], table[:, 3]
            planned = build_request(x, schema, y=y, k=1, epsilon=1, neighbours=neighbours,
                           mechanism="exponential", intercept=False,
                           response_range="declared")  # fmt: skip
            data = Data(planned.open(x, y).read(planned.spec.problem))
            outcomes = planned.mechanism.outcomes(data, planned.setting)
            assert outcomes is not None
            logs.append(outcomes[1])
        return float(np.abs(logs[0] - logs[1]).max())

    assert 0.95 < worst(THREE, 3) <= 1 + 1e-9
    assert worst(THREE, 4) > 1.2  # the caller's bound is what it rests on
    assert worst(PLAIN, 3) > 2.7  # the twin that does not divide
