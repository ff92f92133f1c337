"""Design: which columns a model has, and which of them are selected together.

A table has *features*, one number or level in each row. A model has *columns*, numbers between -1
and 1: one for a number, one for each level of a category, and possibly one that indicates missing
cells. A search selects *choices*: a feature with all of its columns, or a group of features. This
module maps features to columns, and a support back to the declared names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..base.errors import ArgumentError, did_you_mean
from ..base.validation import check_int
from .layout import Layout
from .schema import AnySchema, Column


@dataclass(frozen=True)
class ModelColumn:
    """One column of the model, and the feature that it is computed from."""

    #: The position of its feature.
    feature: int
    #: The number, scaled; or an indicator of the level, or of a missing cell.
    kind: Literal["value", "level", "missing"]
    #: Position of the feature's level; -1 for other kinds.
    level: int = -1


@dataclass(frozen=True)
class Choice:
    """Columns of the model that are selected together, under one name.

    The width is the largest sum of their absolute values in one row: 1 for each feature, since at
    most one of its levels is 1, and its value is 0 if its indicator is 1.
    """

    name: str
    columns: tuple[int, ...]
    width: int = 1


@dataclass(frozen=True)
class Design:
    """The model's columns and the choices among them. Public."""

    #: In the order of the schema.
    features: tuple[Column, ...]
    #: Columns of the model, in the order of the choices.
    columns: tuple[ModelColumn, ...]
    #: Supports list their positions. The columns of a choice follow each other.
    choices: tuple[Choice, ...]

    @classmethod
    def of(cls, schema: AnySchema) -> Design:
        """The design of a schema. A group has the place of its first feature."""
        features = schema.features
        members: dict[tuple[bool, str], list[int]] = {}
        for j, feature in enumerate(features):
            # A group may have the name of one of its features.
            alone = feature.group is None
            members.setdefault((alone, feature.name if alone else str(feature.group)), []).append(j)
        columns: list[ModelColumn] = []
        choices: list[Choice] = []
        for (_, name), places in members.items():
            start = len(columns)
            for j in places:
                columns += _columns_of(j, features[j])
            choices.append(Choice(name, tuple(range(start, len(columns))), len(places)))
        return cls(features, tuple(columns), tuple(choices))

    @cached_property
    def layout(self) -> Layout:
        """The layout of a model without an intercept."""
        return Layout.of([len(c.columns) for c in self.choices], [c.width for c in self.choices])

    def features_of(self, support: Iterable[int]) -> list[int]:
        """The positions of all features of a support's choices, in order."""
        owned = (self.columns[c].feature for j in support for c in self.choices[j].columns)
        return sorted(set(owned))

    @cached_property
    def always(self) -> tuple[int, ...]:
        """Choices that are part of every support."""
        owners = [self.features[self.columns[choice.columns[0]].feature] for choice in self.choices]
        return tuple(j for j, owner in enumerate(owners) if owner.role == "always")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {choice.name: j for j, choice in enumerate(self.choices)}

    def position(self, name: int | str, what: str = "options") -> int:
        """The position of a choice that is given by its name or its position."""
        if not isinstance(name, str):
            return check_int(name, what)
        if name not in self._positions:
            groups = {f.name: f.group for f in self.features if f.group is not None}
            if name in groups:
                raise ArgumentError(
                    f"{what}: {name!r} is part of the group {groups[name]!r}, which is selected as "
                    "a whole: name the group"
                )
            hint = did_you_mean(name, self._positions)
            raise ArgumentError(f"{what}: the schema declares no feature {name!r}{hint}")
        return self._positions[name]

    def names(self, support: Iterable[int] | None) -> list[str]:
        """Names of a support's choices; none without a support."""
        return [self.choices[j].name for j in support or ()]


def _columns_of(position: int, feature: Column) -> list[ModelColumn]:
    if feature.levels is None:
        found = [ModelColumn(position, "value")]
    else:
        found = [ModelColumn(position, "level", i) for i in range(len(feature.levels))]
    return [*found, ModelColumn(position, "missing")] if feature.has_indicator else found
