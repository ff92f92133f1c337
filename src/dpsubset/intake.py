"""Intake: check what can be checked without reading values, then read.

Arguments first, then the schema, then names and types of the table's columns. Only `Intake.read`
touches values, and it does not fail because of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ArgumentError, TableError
from .gram import Gram
from .losses import CLASSIFICATION, LOSSES, REGRESSION
from .moments import Moments
from .problem import Problem, whole
from .schema import Bounds, Schema, declared_width
from .sources import Progress, Table, open_table, read_schema

#: With more variables than this, columns of X'X are multiplied out on demand ...
_MANY_VARIABLES = 1500
#: ... if the records, at two bytes a cell, fit in this many bytes.
_RECORD_BYTES = 2**32


@dataclass(frozen=True)
class Intake:
    """A stated problem and the table it is about, which nobody has looked at yet."""

    schema: Schema
    problem: Problem
    data: Any = field(repr=False)  # private, and so is y
    y: Any = field(repr=False)

    def position(self, name: int | str) -> int:
        """Of a feature, by its name or its position."""
        return _position(name, self.schema, "options")

    def open(self) -> Table | Moments:
        """Look at names and types of the table's columns."""
        if isinstance(self.data, Moments):
            moments = self.data.checked()
            if moments.fingerprint != self.schema.fingerprint():
                raise ArgumentError("these moments come from another schema")
            if moments.p != self.problem.p:
                raise TableError("these moments have another number of columns than their schema")
            return moments
        return open_table(self.data, self.schema, self.y)

    def check_records(self) -> None:
        """Refuse moments where the loss needs the records."""
        loss = self.problem.loss
        if LOSSES[loss].needs_records and isinstance(self.data, Moments):
            raise ArgumentError(
                f"the {loss} loss needs the records: moments are not enough. They are for "
                "loss='least-squares'"
            )

    def read(
        self, table: Table | Moments, progress: Progress | None = None, *, records: bool = False
    ) -> Gram:
        """Send the table through the door; with ``records``, or for such a loss, keep them."""
        records = records or LOSSES[self.problem.loss].needs_records
        return self._gram(table, progress, records)

    def _gram(self, table: Table | Moments, progress: Progress | None, records: bool) -> Gram:
        if isinstance(table, Moments):
            return Gram.from_moments(table)
        rows, p = table.rows, self.problem.p
        blocks = table.blocks(progress)
        if records:
            return Gram.from_records(self.schema, blocks)
        if p > _MANY_VARIABLES and rows is not None and 2 * rows * (p + 1) <= _RECORD_BYTES:
            return Gram.from_records(self.schema, blocks)
        return Gram.from_moments(Moments.from_blocks(self.schema, blocks))


def take_in(
    data: Any,
    schema: Schema | str | Path | None,
    y: Any,
    bounds: Bounds | None,
    always_include: Iterable[int | str],
    loss: str | None = None,
    **stated: Any,
) -> Intake:
    """Check the arguments of a problem and its schema."""
    if isinstance(always_include, str):
        always_include = (always_include,)
    if not isinstance(always_include, Iterable) or getattr(always_include, "ndim", 1) != 1:
        raise ArgumentError("always_include must list names or positions of columns")
    schema = _settle_schema(data, y, schema, bounds)
    if schema is None:
        raise ArgumentError("pass a schema (or, for arrays, bounds): bounds are public knowledge "
                            "and are never read from the data")  # fmt: skip
    given = (_position(name, schema, "always_include") for name in always_include)
    always = {*schema.always_include, *given}
    if loss is None:
        loss = REGRESSION if schema.response.labels is None else CLASSIFICATION
    problem = Problem.state(len(schema.features), always_include=always, loss=loss, **stated)
    return Intake(schema, problem, data, y)


def declared_columns(schema: Any, bounds: Any) -> int | None:
    """How many columns X has, if schema or bounds say so."""
    if isinstance(schema, (str, Path)):
        return declared_width(schema)
    if isinstance(schema, Schema):
        return len(schema.features)
    return bounds.width if isinstance(bounds, Bounds) else None


def _settle_schema(
    data: Any,
    y: Any,
    schema: Schema | str | Path | None,
    bounds: Bounds | None,
) -> Schema | None:
    if isinstance(schema, (str, Path)):
        schema = read_schema(schema, data, y)
    if schema is not None and not isinstance(schema, Schema):
        raise ArgumentError("schema must be a dpsubset.Schema or the path of a bounds file")
    if bounds is None:
        return schema
    if schema is not None:
        raise ArgumentError("pass a schema or bounds, not both")
    if not isinstance(bounds, Bounds):
        raise ArgumentError("bounds must be dpsubset.Bounds(x=..., y=...)")
    if isinstance(data, (str, Path, Moments)):
        raise ArgumentError("bounds go with arrays and frames; a file or moments need a schema")
    from .sources.arrays import as_matrix, is_list
    from .sources.frames import column_names, is_frame

    if is_frame(data):
        if y is None:
            raise ArgumentError("bounds go with X and y=; a frame that holds its response as a "
                                "column needs a schema")  # fmt: skip
        names, response = column_names(data), "y"
        while response in names:
            response += "_"
        return bounds.schema(names, response)
    if is_list(data):
        # Its records have lengths of their own, and one of them could change what they tell.
        width = bounds.width
        if width is None:
            raise ArgumentError(
                "a list of records does not declare how many columns it has: pass a NumPy array, "
                "or bounds with one entry a column, or a schema"
            )
    else:
        width = as_matrix(data).shape[1]
    if not width:
        raise TableError("X has no columns: there is nothing to select from")
    return bounds.schema([f"x{j}" for j in range(width)])


def _position(name: int | str, schema: Schema, what: str) -> int:
    if isinstance(name, str):
        if name not in schema.feature_names:
            raise ArgumentError(f"{what}: the schema declares no feature {name!r}")
        return schema.feature_names.index(name)
    return whole(name, what)
