"""Design: declared columns on one side, the columns of the model on the other.

What a table has are *features*, one number or level a row. What scores are made of are *columns*,
numbers between -1 and 1: a number gives one, a category one a level, and where something may be
missing there may be one more that says so. What a search picks are *choices*: a feature with all of
its columns, or a group of features. How a table's features become columns, and how a support gets
back to the names that somebody declared, is settled here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..base.errors import ArgumentError, did_you_mean
from ..base.validation import check_int
from .layout import Layout
from .schema import Column, Schema


@dataclass(frozen=True)
class ModelColumn:
    """One column of the model, and where it comes from.

    Attributes
    ----------
    feature : int
        The position of its feature.
    kind : {"value", "level", "missing"}
        The number, scaled; or 1 where the feature has the level, or has no value, and else 0.
    level : int
        Which of the feature's levels; -1 if it is of none.
    """

    feature: int
    kind: Literal["value", "level", "missing"]
    level: int = -1


@dataclass(frozen=True)
class Choice:
    """Something to select, with a name, and the model's columns that it stands for.

    Its width is the largest sum of their sizes in one row: 1 for each feature, since of its levels
    one is on at most, and beside an indicator that is on the value is 0.
    """

    name: str
    columns: tuple[int, ...]
    width: int = 1


@dataclass(frozen=True)
class Design:
    """The model's columns and the choices among them. Public.

    Attributes
    ----------
    features : tuple of Column
        What is read of the table, in the order of the schema.
    columns : tuple of ModelColumn
        What the model is made of, in the order of the choices.
    choices : tuple of Choice
        What supports list the positions of; their columns follow each other.
    response : Column
        What is explained.
    """

    features: tuple[Column, ...]
    columns: tuple[ModelColumn, ...]
    choices: tuple[Choice, ...]
    response: Column

    @classmethod
    def of(cls, schema: Schema) -> Design:
        """What a schema declares; a group stands where its first feature does."""
        features = schema.features
        members: dict[tuple[bool, str], list[int]] = {}
        for j, feature in enumerate(features):
            # A group may be called as one of its features.
            alone = feature.group is None
            members.setdefault((alone, feature.name if alone else str(feature.group)), []).append(j)
        columns: list[ModelColumn] = []
        choices: list[Choice] = []
        for (_, name), parts in members.items():
            start = len(columns)
            for j in parts:
                columns += _columns_of(j, features[j])
            choices.append(Choice(name, tuple(range(start, len(columns))), len(parts)))
        return cls(features, tuple(columns), tuple(choices), schema.response)

    @cached_property
    def layout(self) -> Layout:
        """The same in numbers, without an intercept."""
        return Layout.of([len(c.columns) for c in self.choices], [c.width for c in self.choices])

    def parts(self, choice: int) -> tuple[Column, ...]:
        """The features of a choice."""
        found = dict.fromkeys(self.columns[j].feature for j in self.choices[choice].columns)
        return tuple(self.features[j] for j in found)

    def features_of(self, support: Iterable[int]) -> list[int]:
        """The positions of all features of a support's choices, in order."""
        owned = (self.columns[c].feature for j in support for c in self.choices[j].columns)
        return sorted(set(owned))

    @cached_property
    def always(self) -> tuple[int, ...]:
        """Choices that are part of every support."""
        return tuple(j for j in range(len(self.choices)) if self.parts(j)[0].role == "always")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {choice.name: j for j, choice in enumerate(self.choices)}

    def position(self, name: int | str, what: str = "options") -> int:
        """Of a choice, by its name or its position."""
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
        """What somebody declared, of a support; none of nothing."""
        return [self.choices[j].name for j in support or ()]


def _columns_of(position: int, feature: Column) -> list[ModelColumn]:
    if feature.levels is None:
        found = [ModelColumn(position, "value")]
    else:
        found = [ModelColumn(position, "level", i) for i in range(len(feature.levels))]
    return [*found, ModelColumn(position, "missing")] if feature.has_indicator else found
