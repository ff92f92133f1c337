"""Design: declared columns become the model's, choices own them, and names come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import ArgumentError, Schema, price
from dpsubset.schema.column import Column, Missing
from dpsubset.schema.encoding import Choice, Design, ModelColumn

INDICATOR = Missing((), "indicator")
Y = Column("y", 0, 1)


def test_the_columns_of_a_model() -> None:
    schema = Schema(
        (
            Column("a", 0, 1, group="g"),
            Column("cut", levels=("x", "y", "z"), missing=INDICATOR),
            Column("id", role="ignored"),
            Column("b", 0, 1, missing=INDICATOR),
            Column("c", levels=("u", "v"), group="g"),
        ),
        Y,
    )
    design = Design.of(schema)
    assert [feature.name for feature in design.features] == ["a", "cut", "b", "c"]
    assert design.choices == (
        Choice("g", (0, 1, 2), 2),
        Choice("cut", (3, 4, 5, 6), 1),
        Choice("b", (7, 8), 1),
    )
    assert design.columns == (
        ModelColumn(0, "value"),
        ModelColumn(3, "level", 0), ModelColumn(3, "level", 1),
        ModelColumn(1, "level", 0), ModelColumn(1, "level", 1), ModelColumn(1, "level", 2),
        ModelColumn(1, "missing"),
        ModelColumn(2, "value"), ModelColumn(2, "missing"),
    )  # fmt: skip
    assert (design.layout.sizes, design.layout.widths) == ((3, 4, 2), (2, 1, 1))
    assert [design.features[j].name for j in design.features_of([0])] == ["a", "c"]
    assert design.names((0, 2)) == ["g", "b"]
    assert design.names(None) == []


def test_plain_columns_are_what_they_were() -> None:
    design = Design.of(Schema.from_bounds({"a": (0, 1), "b": (2, 3)}, ("y", 4, 5)))
    assert design.choices == (Choice("a", (0,)), Choice("b", (1,)))
    assert design.columns == (ModelColumn(0, "value"), ModelColumn(1, "value"))
    assert not design.layout.grouped


def test_positions_by_name() -> None:
    columns = (Column("a", 0, 1), Column("b", 0, 1, group="g"), Column("g", 0, 1, group="g"))
    design = Design.of(Schema(columns, Y))
    assert [design.position(name) for name in ("a", "g", 1)] == [0, 1, 1]
    with pytest.raises(ArgumentError, match="'b' is part of the group 'g', which is selected as"):
        design.position("b")
    with pytest.raises(ArgumentError, match="no feature 'aa'"):
        design.position("aa")


def test_a_group_is_always_part_of_the_model_as_a_whole() -> None:
    columns = (
        Column("a", 0, 1),
        Column("b", 0, 1, "always", group="g"),
        Column("c", 0, 1, "always", group="g"),
    )
    assert Design.of(Schema(columns, Y)).always == (1,)


def test_k_counts_choices() -> None:
    columns = tuple(Column(name, 0, 1, group="g") for name in "abc")
    schema = Schema((*columns, Column("d", levels=("x", "y"))), Y)
    with pytest.raises(ArgumentError, match="k must be at most 2, the number of choices: a group"):
        price(None, schema, k=3, epsilon=1)
    plain = Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1))
    with pytest.raises(ArgumentError, match="the number of variables, which is 1"):
        price(None, plain, k=2, epsilon=1)


def test_a_model_of_too_many_columns_is_refused_before_the_table_is_read() -> None:
    schema = Schema((Column("a", levels=tuple(range(3000))), Column("b", 0, 1)), Y)
    with pytest.raises(ArgumentError, match="could have 3001 columns"):
        price("nowhere.csv", schema, k=1, epsilon=1)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = []
    for j in range(draw(st.integers(1, 8))):
        group = draw(st.sampled_from([None, None, "g", "h"]))
        missing = draw(st.sampled_from([None, INDICATOR]))
        size = draw(st.integers(1, 4))
        columns.append(
            Column(f"x{j}", 0, 1, group=group, missing=missing)
            if size == 1
            else Column(f"x{j}", levels=tuple(range(size)), group=group, missing=missing)
        )
    return Schema(tuple(columns), Y)


@given(schemas())
def test_choices_partition_the_columns(schema: Schema) -> None:
    design = Design.of(schema)
    owned = [j for choice in design.choices for j in choice.columns]
    assert owned == list(range(len(design.columns)))
    assert design.layout.columns == len(design.columns)
    owners = np.concatenate([[i] * len(c.columns) for i, c in enumerate(design.choices)])
    assert design.layout.owners.tolist() == owners.tolist()
    # Each feature is part of one choice, that of its group if it has one.
    parts = [j for i in range(len(design.choices)) for j in design.features_of([i])]
    assert sorted(parts) == list(range(len(schema.features)))
    for i, choice in enumerate(design.choices):
        owned = [design.features[j] for j in design.features_of([i])]
        names = {feature.group or feature.name for feature in owned}
        assert names == {choice.name}
        assert design.position(choice.name) == i
    # In the order of their first features.
    firsts = [min(design.columns[j].feature for j in choice.columns) for choice in design.choices]
    assert firsts == sorted(firsts)


@given(schemas(), st.data())
def test_no_row_is_wider_than_its_choice(schema: Schema, data: st.DataObject) -> None:
    """As the quantizer makes rows: a number, or one level, or what says that it is missing."""
    design = Design.of(schema)
    for i, choice in enumerate(design.choices):
        total = 0.0
        for feature in (design.features[j] for j in design.features_of([i])):
            bad = data.draw(st.booleans())
            level = data.draw(st.integers(0, len(feature.levels or ()) or 1))
            mine = [design.columns[j] for j in choice.columns]
            for column in mine:
                if design.features[column.feature] is not feature:
                    continue
                value = {
                    "value": 0.0 if bad and feature.has_indicator else 1.0,
                    "level": float(not bad and column.level == level),
                    "missing": float(bad),
                }[column.kind]
                total += abs(value)
        assert total <= choice.width


def test_features_of_a_support() -> None:
    columns = (Column("a", 0, 1, group="g"), Column("b", 0, 1), Column("c", 0, 1, group="g"))
    design = Design.of(Schema(columns, Y))
    assert design.features_of((0,)) == [0, 2]
    assert design.features_of((1,)) == [1]
    assert design.features_of(()) == []
