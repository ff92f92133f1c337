"""Design: declared columns on one side, the columns of the model on the other.

What a search picks are *choices*; what scores are made of are *columns*, numbers between bounds.
For now a choice is one column, and a column is a declared one, clipped and scaled. What a table's
columns become on the way to a model, and how a support gets back to the names that somebody
declared, is settled here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arguments import whole
from ..errors import ArgumentError, did_you_mean
from .schema import Column, Schema


@dataclass(frozen=True)
class Choice:
    """Something to select, with a name, and the model's columns that it stands for."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Design:
    """The model's columns and the choices among them. Public.

    Attributes
    ----------
    columns : tuple of Column
        What the p columns of the model are made of, in the order of the model.
    response : Column
        What is explained.
    """

    columns: tuple[Column, ...]
    response: Column

    @classmethod
    def of(cls, schema: Schema) -> Design:
        """One column a feature."""
        return cls(schema.features, schema.response)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """What supports list the positions of: one a column."""
        return tuple(Choice(column.name, (j,)) for j, column in enumerate(self.columns))

    @cached_property
    def always(self) -> tuple[int, ...]:
        """Choices that are part of every support."""
        return tuple(j for j, column in enumerate(self.columns) if column.role == "always")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {choice.name: j for j, choice in enumerate(self.choices)}

    def position(self, name: int | str, what: str = "options") -> int:
        """Of a choice, by its name or its position."""
        if not isinstance(name, str):
            return whole(name, what)
        if name not in self._positions:
            hint = did_you_mean(name, self._positions)
            raise ArgumentError(f"{what}: the schema declares no feature {name!r}{hint}")
        return self._positions[name]

    def names(self, support: Iterable[int] | None) -> list[str]:
        """What somebody declared, of a support; none of nothing."""
        return [self.choices[j].name for j in support or ()]

    @property
    def lows(self) -> NDArray[np.float64]:
        """Lower bounds of the model's columns and, last, of the response."""
        return np.array([c.span[0] for c in (*self.columns, self.response)], dtype=np.float64)

    @property
    def highs(self) -> NDArray[np.float64]:
        """Upper bounds likewise."""
        return np.array([c.span[1] for c in (*self.columns, self.response)], dtype=np.float64)
