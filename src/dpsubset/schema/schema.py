"""The schema of a table: names, bounds, labels and the privacy unit, all of them public.

Bounds must come from knowledge of the world (an age lies in [0, 110]), not from the data: a bound
computed from the data is itself a release, and no program can detect the source of a bound. The
same holds for the labels of a response and for the number of rows of a privacy unit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ..base.errors import ArgumentError, SchemaError, did_you_mean
from ..base.renamed import current_names, renamed_arguments
from ..base.validation import check_int
from .bounds_file import (
    check_separator,
    dump,
    expand,
    facts_of,
    has_patterns,
    load,
    taken_literally,
    yaml_text,
)
from .column import Column, Missing, check_bound
from .dates import days
from .entries import (
    check_agreement,
    check_keys,
    column_of_entry,
    entry_of_column,
    is_filled_in,
    lacks_levels,
)
from .labels import Label, check_labels
from .provenance import KEY, PaidBounds, paid_bounds

__all__ = [
    "AnySchema",
    "BadCells",
    "Bounds",
    "Column",
    "FeatureSchema",
    "Missing",
    "Schema",
    "SchemaLike",
    "declared_width",
]

BadCells = Literal["middle", "low", "high"]

#: Former names of arguments.
_FORMER = {"unit": "privacy_unit"}


@dataclass(frozen=True)
class FeatureSchema:
    """A schema without a response, for predictions and for releases about columns alone.

    Parameters
    ----------
    features : tuple of Column
        The columns to read.
    bad_cells : {"middle", "low", "high"}
        As for a :class:`Schema`.
    separator : {",", ";", "|", "\\t"}, optional
        As for a :class:`Schema`.
    """

    features: tuple[Column, ...]
    bad_cells: BadCells = "middle"
    separator: str | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.features)

    @property
    def response(self) -> None:
        """There is none."""
        return

    @property
    def columns_read(self) -> tuple[Column, ...]:
        """The columns that are read from a table, in order."""
        return self.features

    def fingerprint(self) -> str:
        """SHA-256 of the columns and of the rule for bad cells."""
        facts = [
            self.bad_cells,
            *([column.name, entry_of_column(column)] for column in self.features),
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@renamed_arguments(**_FORMER)
@dataclass(frozen=True)
class Schema:
    """Public description of a table.

    Parameters
    ----------
    columns : tuple of Column
        Every declared column but the response. Those with role ``feature`` or ``always`` are the
        p variables, in this order; their positions are what a support lists.
    response : Column
        The variable to explain; the only one that may have labels.
    privacy_unit : str
        Whom the guarantee protects: what one row stands for, or whose rows they are.
    bad_cells : {"middle", "low", "high"}
        Value of a feature's cell that is missing or cannot be read. A column may have a rule of its
        own (see :class:`Missing`); a bad cell of a column with levels has none of them. A row whose
        response cannot be read (with labels: a cell with neither of them) contributes nothing,
        unless the response declares another rule. With labels, ``low`` is the first label, ``high``
        the second, and ``middle`` is 0, which the logistic and hinge losses treat as the second.
    rows_per_unit : int
        The largest number of rows that belong to one privacy unit. The table cannot show it; a unit
        with more rows has less protection.
    paid : tuple of PaidBounds
        Bounds that were released privately, and their cost. No other bound may come from the rows.
    separator : {",", ";", "|", "\\t"}, optional
        Column separator of a text file; by default a comma, or a tab if the name ends in .tsv. It
        is no property of the data, so the fingerprint does not include it.
    """

    columns: tuple[Column, ...]
    response: Column
    privacy_unit: str = "one row"
    bad_cells: BadCells = "middle"
    rows_per_unit: int = 1
    paid: tuple[PaidBounds, ...] = ()
    separator: str | None = None

    def __post_init__(self) -> None:
        names = [c.name for c in (*self.columns, self.response)]
        repeated = sorted({n for n in names if names.count(n) > 1}) if _has_repeats(names) else []
        if repeated:
            raise SchemaError(f"columns declared more than once: {', '.join(repeated)}")
        if not self.features:
            raise SchemaError("the schema declares no feature: there is nothing to select from")
        _check_response(self.response)
        labelled = [c.name for c in self.columns if c.labels is not None]
        if labelled:
            raise SchemaError(
                f"only the response may have labels, but columns have: {', '.join(labelled)}. "
                "Declare lo and hi, or levels, or give them the role 'ignored' without labels"
            )
        _check_groups(self)
        _check_drops(self.columns)
        if self.bad_cells not in get_args(BadCells):
            raise SchemaError(f"bad_cells must be one of {', '.join(get_args(BadCells))}")
        if not isinstance(self.privacy_unit, str) or not self.privacy_unit.strip():
            raise SchemaError("the privacy unit must say in words what one row stands for")
        object.__setattr__(self, "rows_per_unit", _check_rows_per_unit(self.rows_per_unit))
        check_separator(self.separator)

    @classmethod
    def from_bounds(
        cls,
        columns: Mapping[str, Any],
        response: Any,
        *,
        labels: Sequence[Label] | None = None,
        always_include: Iterable[str] = (),
        privacy_unit: str = "one row",
        bad_cells: BadCells = "middle",
        rows_per_unit: int = 1,
        separator: str | None = None,
        unit: str | None = None,
    ) -> Schema:
        """Build from ``{"age": (0, 110), ...}`` and ``("cost", 0, 50_000)``.

        A column may also be an entry as in a bounds file, such as ``{"levels": ["a", "b"]}``, and
        so may the response, with its name: ``{"name": "cost", "lo": 0, ...}``. For a response with
        two classes, pass its name and ``labels=("no", "yes")``. ``unit`` is the former name of
        ``privacy_unit``.
        """
        if unit is not None:
            privacy_unit = current_names({"unit": unit}, _FORMER, "from_bounds")["privacy_unit"]
        if not isinstance(columns, Mapping):
            raise SchemaError(
                "columns must be a mapping from names to bounds, as in {'age': (0, 110)}: bounds "
                "are public knowledge and must not come from the data"
            )
        declared = [
            column_of_entry(name, given)
            if isinstance(given, Mapping)
            else _column_of_pair(name, given)
            for name, given in columns.items()
        ]
        always = set(always_include)
        known = [*(c.name for c in declared), *(c.group for c in declared if c.group is not None)]
        unknown = sorted(map(str, always - set(known)))
        if unknown:
            hint = did_you_mean(unknown[0], known)
            raise SchemaError(f"always_include names no declared column: "
                              f"{', '.join(unknown)}{hint}")  # fmt: skip
        with_roles = tuple(
            replace(c, role="always") if {c.name, c.group} & always else c for c in declared
        )
        declared_response = _response_column(response, labels)
        return cls(
            with_roles,
            declared_response,
            privacy_unit,
            bad_cells,
            rows_per_unit,
            separator=separator,
        )

    @classmethod
    def from_dict(cls, facts: Any, names: Sequence[str] | None = None) -> Schema:
        """Build from the contents of a bounds file; ``names`` as in :meth:`read`."""
        if not isinstance(facts, Mapping):
            raise SchemaError("a schema file must hold a mapping with 'columns' and 'response'")
        if facts and not {"columns", "response"} & set(facts):
            raise SchemaError(
                "a schema is a mapping with 'columns' and 'response', in the form of a bounds "
                "file: {'columns': {'age': {'lo': 0, 'hi': 110}}, 'response': {'name': 'cost', "
                "'lo': 0, 'hi': 1000}}. Schema.from_bounds({'age': (0, 110)}, ('cost', 0, 1000)) "
                "is shorter"
            )
        options = ("unit", "bad_cells", "rows_per_unit", "separator")
        known = {"columns", "response", *options, KEY, "patterns", "version"}
        extra = sorted(str(key) for key in facts if key not in known)
        if extra:
            raise SchemaError(
                f"unknown entries in the schema: {', '.join(extra)}; "
                f"known are {', '.join(sorted(known))}"
            )
        if facts.get("version", 1) != 1:
            raise SchemaError(
                "this schema file has a version other than 1, which this version of dpsubset "
                "cannot read"
            )
        if not isinstance(facts.get("patterns", True), bool):
            raise SchemaError("patterns must be true or false")
        columns, response = facts.get("columns"), facts.get("response")
        if not isinstance(columns, Mapping) or not columns:
            raise SchemaError("the schema needs 'columns': a mapping from name to {lo, hi}")
        if not isinstance(response, Mapping):
            raise SchemaError("the schema needs 'response': {name, lo, hi} or {name, labels}")
        name = response.get("name")
        if not isinstance(name, str) or not name:
            raise SchemaError("the schema names no response: fill in 'name' under 'response'")
        others = {str(n): entry for n, entry in columns.items()}
        hint = "" if name in others else did_you_mean(name, others)
        # A template lists every column, so the response may have an entry under columns, too.
        check_agreement(name, others.pop(name, None), response)
        _check_filled_in({**others, name: response}, name, hint)
        if facts.get("patterns", True):
            others = expand(others, name, names)
        declared = tuple(column_of_entry(n, entry) for n, entry in others.items())
        bounds = {key: value for key, value in response.items() if key != "name"}
        given = {key: facts[key] for key in options if key in facts}
        if "unit" in given:
            given["privacy_unit"] = given.pop("unit")
        paid = paid_bounds(facts.get(KEY, []))
        return cls(declared, column_of_entry(name, bounds), **given, paid=paid)

    @classmethod
    def read(cls, path: str | Path, names: Sequence[str] | None = None) -> Schema:
        """Read a YAML or JSON bounds file.

        Parameters
        ----------
        path : str or Path
            The file.
        names : sequence of str, optional
            The table's column names, in order, the response included. Required for a file with
            patterns, which are expanded by these public names.
        """
        return cls.from_dict(load(path), names)

    def to_dict(self) -> dict[str, Any]:
        """The contents of a bounds file for this schema."""
        columns = {c.name: entry_of_column(c) for c in self.columns}
        return {
            "version": 1,
            "unit": self.privacy_unit,
            "bad_cells": self.bad_cells,
            # Omitted if 1, so that schemas without it keep their fingerprints.
            **({} if self.rows_per_unit == 1 else {"rows_per_unit": self.rows_per_unit}),
            **({} if self.separator is None else {"separator": self.separator}),
            **({KEY: [each.entry() for each in self.paid]} if self.paid else {}),
            **taken_literally([*columns, self.response.name]),
            "response": {"name": self.response.name, **entry_of_column(self.response)},
            "columns": columns,
        }

    def write(self, path: str | Path) -> None:
        """Write a bounds file: JSON if its name ends in .json, otherwise YAML."""
        dump(self.to_dict(), Path(path))

    def __str__(self) -> str:
        """The bounds file, without comments."""
        return yaml_text(self.to_dict())

    def __repr__(self) -> str:
        """A line: counts and the first names."""
        names = self.feature_names
        ignored = len(self.columns) - len(names)
        always = sum(column.role == "always" for column in self.columns)
        first = ", ".join(map(_shown, names[:3])) + (", ..." if names[3:] else "")
        parts = [
            f"{len(names)} feature{'s' if names[1:] else ''}: {first}",
            *([f"{always} always included"] if always else []),
            *([f"{ignored} column{'s' if ignored > 1 else ''} ignored"] if ignored else []),
            f"response: {_shown(self.response.name)}",
        ]
        return f"Schema({'; '.join(parts)})"

    @cached_property
    def features(self) -> tuple[Column, ...]:
        """The p variables: columns with role ``feature`` or ``always``, in order."""
        return tuple(c for c in self.columns if c.role != "ignored")

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the p variables."""
        return tuple(c.name for c in self.features)

    @property
    def columns_read(self) -> tuple[Column, ...]:
        """The columns that are read from a table: the features and, last, the response."""
        return (*self.features, self.response)

    @property
    def protected(self) -> str:
        """The privacy unit and its number of rows, in words."""
        if self.rows_per_unit == 1:
            return self.privacy_unit
        rows = f"up to {self.rows_per_unit} rows"
        if self.privacy_unit == "one row":
            return f"one unit with {rows}"
        return f"{self.privacy_unit}, {rows}"

    def fingerprint(self) -> str:
        """SHA-256 of the public facts; the same for equal schemas from different files."""
        facts = self.to_dict()
        for key in ("patterns", "separator"):  # facts about files
            facts.pop(key, None)
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        columns = json.dumps([c.name for c in self.columns])  # the order of columns counts
        return hashlib.sha256((text + columns).encode()).hexdigest()


def _shown(name: str) -> str:
    """A name in quotes, cut if it is long."""
    return repr(name if len(name) <= 40 else f"{name[:37]}...")


#: What readers and the quantizer take.
AnySchema = Schema | FeatureSchema

#: What stands for a schema: itself, the path of a bounds file, or a dict of the same form.
SchemaLike: TypeAlias = Schema | str | Path | Mapping[str, Any]


BOUNDS_BY_NAME = (
    "Bounds by name go into a schema: Schema.from_bounds({'age': (0, 110)}, ('cost', 0, 1000))"
)


@dataclass(frozen=True)
class Bounds:
    """Bounds for arrays: ``Bounds(x=0.5, y=(0, 10))``.

    Each of x and y is one number b, which means [-b, b], or a pair (lo, hi); x may also be a list
    with one such entry for each column. A response with two classes has labels in place of y, first
    the one that counts as -1: ``Bounds(x=0.5, labels=("no", "yes"))``.
    """

    x: Any
    y: Any = None
    labels: Any = None

    def __post_init__(self) -> None:
        if (self.y is None) == (self.labels is None):
            raise SchemaError(
                "Bounds need y or, for a response with two classes, labels, and not both: they are "
                "public knowledge and must not come from the data"
            )
        if self.labels is not None:
            check_labels(self.labels, "Bounds")

    @property
    def width(self) -> int | None:
        """The number of columns, if x lists them."""
        return len(self.x) if _is_list_of_bounds(self.x) else None

    def schema(
        self, names: Sequence[str], response: str = "y", always_include: Sequence[int] = ()
    ) -> Schema:
        """The schema of an array with these column names."""
        p = len(names)
        x = self.x
        if _is_list_of_bounds(x):
            if len(x) != p:
                raise SchemaError(
                    f"Bounds.x lists {len(x)} columns, but the table has {p}: give one entry for "
                    "each column, or one number or pair for all"
                )
            pairs = [_pair(entry, f"Bounds.x[{j}]") for j, entry in enumerate(x)]
        else:
            pairs = [_pair(x, "Bounds.x")] * p
        always = set(always_include)
        columns = tuple(
            Column(name, lo, hi, "always" if j in always else "feature")
            for j, (name, (lo, hi)) in enumerate(zip(names, pairs, strict=True))
        )
        if self.labels is not None:
            return Schema(columns, Column(response, labels=self.labels))
        return Schema(columns, Column(response, *_pair(self.y, "Bounds.y")))


def _check_rows_per_unit(value: Any) -> int:
    with suppress(ArgumentError):
        if (rows := check_int(value, "rows_per_unit")) >= 1:
            return rows
    raise SchemaError("rows_per_unit must be a whole number, at least 1")


def _column_of_pair(name: Any, bounds: Any) -> Column:
    """A column with a pair of bounds, which may be dates."""
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2 and None not in map(days, bounds):
        return Column(name, *bounds)
    return Column(name, *_pair(bounds, f"column {name!r}"))


def _response_column(response: Any, labels: Any) -> Column:
    if labels is not None:
        if not isinstance(response, str):
            raise SchemaError("with labels, response must be its name")
        return Column(response, labels=labels)
    if isinstance(response, Mapping):
        return column_of_entry(
            response.get("name"), {k: v for k, v in response.items() if k != "name"}
        )
    if (
        isinstance(response, (str, bytes))
        or not isinstance(response, (Sequence, np.ndarray))
        or getattr(response, "ndim", 1) != 1
        or len(response) != 3
    ):
        raise SchemaError(
            "response must be (name, lo, hi), or its name together with labels=: they are public "
            "knowledge and must not come from the data"
        )
    return Column(*response)


def _has_repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _check_filled_in(entries: Mapping[str, Any], response: str, hint: str) -> None:
    """Refuse a template with entries that are not filled in, and name them."""
    empty = [name for name, entry in entries.items() if not is_filled_in(entry)]
    if not empty:
        return
    for name in empty:
        if name != response:
            check_keys(entries[name], f"column {name!r}")
    levels = [name for name in empty if lacks_levels(entries[name])]
    bounds = [name for name in empty if name not in levels]
    wanted = [
        *([f"bounds are missing for: {_first_names(bounds)}"] if bounds else []),
        *([f"levels are missing for: {_first_names(levels)}"] if levels else []),
    ]
    raise SchemaError(
        f"{'; '.join(wanted)}. Declare lo and hi, or for a category levels (for a response with "
        "two classes, labels), from public knowledge, or give the column the role 'ignored'"
        + (f". The response {response!r} is none of the columns{hint}" if hint else "")
    )


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def _check_groups(schema: Schema) -> None:
    """Check that a group has one role, and that its name is no column outside of it."""
    roles: dict[str, str] = {}
    for feature in schema.features:
        if feature.group is not None and roles.setdefault(feature.group, feature.role) != (
            feature.role
        ):
            raise SchemaError(
                f"group {feature.group!r}: its columns have different roles. They are selected "
                "together: give all of them the role 'always', or none"
            )
    for other in (*schema.columns, schema.response):
        if other.name in roles and other.group != other.name:
            raise SchemaError(
                f"there is a group {other.name!r} and a column of that name outside of it: "
                "selected names must be unique, so rename the group"
            )


def _check_drops(columns: Sequence[Column]) -> None:
    """Refuse the rule "drop" for features."""
    for each in columns:
        if each.role != "ignored" and each.missing is not None and each.missing.rule == "drop":
            raise SchemaError(
                f"column {each.name!r}: 'as: drop' is for the response alone. For a feature use "
                "middle, low, high, value or indicator"
            )


def _check_response(response: Column) -> None:
    if response.role != "feature":
        raise SchemaError("the response cannot be 'ignored' or 'always'")
    if response.levels is not None:
        raise SchemaError(
            f"the response {response.name!r} has levels: with two classes declare labels, "
            "otherwise lo and hi"
        )
    if response.group is not None:
        raise SchemaError(
            f"the response {response.name!r} is in a group: only features can be in groups"
        )
    if response.has_indicator:
        raise SchemaError(
            f"the response {response.name!r} cannot have an indicator: for missing cells use as: "
            "drop, middle, low, high or value"
        )


def _is_list_of_bounds(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.ndim == 2 or (x.ndim == 1 and x.shape[0] != 2)
    return isinstance(x, Sequence) and not isinstance(x, str) and (
        len(x) != 2 or any(isinstance(entry, (Sequence, np.ndarray)) for entry in x)
    )  # fmt: skip


def _pair(bounds: Any, what: str) -> tuple[float, float]:
    if isinstance(bounds, (int, float, Fraction, Decimal, np.generic)):
        half = check_bound(bounds, what)
        if half <= 0:
            raise SchemaError(f"{what}: a single bound b means [-b, b] and must be positive")
        return -half, half
    ends: list[Any] = []
    if isinstance(bounds, Mapping):
        raise SchemaError(f"{what} must not be a mapping. {BOUNDS_BY_NAME}")
    if not isinstance(bounds, (str, bytes, Mapping, Set)):
        with suppress(Exception):  # objects may have methods of their own
            ends = list(bounds)
    if len(ends) != 2:
        raise SchemaError(f"{what}: bounds must be a pair (lo, hi)")
    return check_bound(ends[0], f"{what}: lo"), check_bound(ends[1], f"{what}: hi")


def declared_width(source: str | Path | Mapping[str, Any]) -> int | None:
    """Number of features that a bounds file declares; None if it depends on the table."""
    facts = facts_of(source)
    return None if has_patterns(facts) else len(Schema.from_dict(facts).features)
