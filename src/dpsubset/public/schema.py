"""Schema: what is publicly known of a table before anyone looks at its rows.

Bounds are declared here and nowhere else. They have to come from knowledge of the world (an age
lies in [0, 110]), not from the data: a bound read off the data is itself a release, and no program
can tell where a bound came from. The same goes for the two labels that a response may have in place
of bounds, and for the number of rows that a unit may have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ..arguments import approximate, whole
from ..errors import ArgumentError, SchemaError, did_you_mean
from .bounds_file import (
    HOW_TO_WRITE_NUMBERS,
    dump,
    expand,
    has_patterns,
    load,
    taken_literally,
)
from .labels import IMAGES, Label, settle

Role = Literal["feature", "always", "ignored"]
BadCells = Literal["middle", "low", "high"]

#: Bounds beyond this would overflow the affine map of the door.
_LARGEST_BOUND = 1e300

#: Bounds closer than this would overflow its scale, 32767 over half their distance.
_SMALLEST_HALF_WIDTH = 5e-300


def _bound(value: Any, what: str) -> float:
    number = approximate(value)
    if number is None or abs(number) > _LARGEST_BOUND:
        raise SchemaError(
            f"{what} must be a number, finite and at most 1e300 in size ({type(value).__name__})"
        )
    return number


@dataclass(frozen=True)
class Column:
    """One column: its name, its public bounds and what it is for.

    A response with two classes has ``labels`` in place of bounds: the one that counts as -1, then
    the one that counts as 1 (see :mod:`dpsubset.public.labels` for which cells have a label).
    """

    name: str
    lo: float | None = None
    hi: float | None = None
    role: Role = "feature"
    labels: tuple[Label, Label] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a column's name must be a non-empty string")
        if self.role not in get_args(Role):
            raise SchemaError(
                f"column {self.name!r}: role must be one of {', '.join(get_args(Role))}"
            )
        if self.labels is not None:
            if self.lo is not None or self.hi is not None:
                raise SchemaError(
                    f"column {self.name!r} has bounds and labels: declare one of them"
                )
            object.__setattr__(self, "labels", settle(self.labels, f"column {self.name!r}"))
            return
        if self.role == "ignored":
            return
        if self.lo is None or self.hi is None:
            raise SchemaError(
                f"column {self.name!r} has no bounds: declare lo and hi (public knowledge, "
                "not read from the data), or give it the role 'ignored'"
            )
        lo = _bound(self.lo, f"column {self.name!r}: lo")
        hi = _bound(self.hi, f"column {self.name!r}: hi")
        if not lo < hi:
            raise SchemaError(f"column {self.name!r}: lo must be smaller than hi")
        if hi / 2 - lo / 2 < _SMALLEST_HALF_WIDTH:
            raise SchemaError(f"column {self.name!r}: lo and hi must be at least 1e-299 apart")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    @property
    def span(self) -> tuple[float | None, float | None]:
        """The bounds, or what the labels count as."""
        return (self.lo, self.hi) if self.labels is None else IMAGES


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
    unit : str
        Whom the guarantee protects: what one row stands for, or whose rows they are.
    bad_cells : {"middle", "low", "high"}
        Where the door sends a cell that is missing or cannot be read as a number. For a response
        with labels that is any cell with neither of them: ``low`` is the first label, ``high`` the
        second, and ``middle`` is 0, which the logistic and hinge losses take for the second.
    rows_per_unit : int
        The most rows that belong to one unit. The caller knows it: nothing in a table tells, and
        a unit with more rows is protected less.
    """

    columns: tuple[Column, ...]
    response: Column
    unit: str = "one row"
    bad_cells: BadCells = "middle"
    rows_per_unit: int = 1

    def __post_init__(self) -> None:
        names = [c.name for c in (*self.columns, self.response)]
        repeated = sorted({n for n in names if names.count(n) > 1}) if _has_repeats(names) else []
        if repeated:
            raise SchemaError(f"columns declared more than once: {', '.join(repeated)}")
        if not self.features:
            raise SchemaError("the schema declares no feature: there is nothing to select from")
        if self.response.role != "feature":
            raise SchemaError("the response cannot be 'ignored' or 'always'")
        labelled = [c.name for c in self.columns if c.labels is not None]
        if labelled:
            raise SchemaError(
                f"only the response may have labels, but columns have: {', '.join(labelled)}. "
                "Declare lo and hi, or give them the role 'ignored' without labels"
            )
        if self.bad_cells not in get_args(BadCells):
            raise SchemaError(f"bad_cells must be one of {', '.join(get_args(BadCells))}")
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise SchemaError("unit must say in words what one row stands for")
        object.__setattr__(self, "rows_per_unit", _rows(self.rows_per_unit))

    @classmethod
    def from_bounds(
        cls,
        columns: Mapping[str, Sequence[float]],
        response: Sequence[Any],
        *,
        labels: Sequence[Label] | None = None,
        always_include: Iterable[str] = (),
        unit: str = "one row",
        bad_cells: BadCells = "middle",
        rows_per_unit: int = 1,
    ) -> Schema:
        """Build from ``{"age": (0, 110), ...}`` and ``("cost", 0, 50_000)``.

        A response with two classes is its name, and ``labels=("no", "yes")`` goes with it.
        """
        always = set(always_include)
        unknown = sorted(map(str, always - set(columns)))
        if unknown:
            hint = did_you_mean(unknown[0], map(str, columns))
            raise SchemaError(f"always_include names no declared column: "
                              f"{', '.join(unknown)}{hint}")  # fmt: skip
        declared = []
        for name, bounds in columns.items():
            lo, hi = _pair(bounds, f"column {name!r}")
            declared.append(Column(name, lo, hi, "always" if name in always else "feature"))
        if labels is not None:
            if not isinstance(response, str):
                raise SchemaError("with labels, response must be its name")
            explained = Column(response, labels=labels)  # type: ignore[arg-type]
        elif (
            isinstance(response, (str, bytes))
            or not isinstance(response, (Sequence, np.ndarray))
            or getattr(response, "ndim", 1) != 1
            or len(response) != 3
        ):
            raise SchemaError(
                "response must be (name, lo, hi), or its name together with labels=: they are "
                "public knowledge and must not come from the data"
            )
        else:
            explained = Column(*response)
        return cls(tuple(declared), explained, unit, bad_cells, rows_per_unit)

    @classmethod
    def from_dict(cls, facts: Any, names: Sequence[str] | None = None) -> Schema:
        """Build from the contents of a bounds file; ``names`` as in :meth:`read`."""
        if not isinstance(facts, Mapping):
            raise SchemaError("a schema file must hold a mapping with 'columns' and 'response'")
        options = ("unit", "bad_cells", "rows_per_unit")
        known = {"columns", "response", *options, "patterns", "version"}
        extra = sorted(str(key) for key in facts if key not in known)
        if extra:
            raise SchemaError(
                f"unknown entries in the schema: {', '.join(extra)}; "
                f"known are {', '.join(sorted(known))}"
            )
        if facts.get("version", 1) != 1:
            raise SchemaError("this schema file has another version than 1, the one known here")
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
        # The template lists every column of the table; naming one as response moves it there.
        _check_agreement(name, others.pop(name, None), response)
        empty = [n for n, entry in (*others.items(), (name, response)) if not _is_filled_in(entry)]
        if empty:
            shown = ", ".join(empty[:10]) + (", ..." if len(empty) > 10 else "")
            raise SchemaError(
                f"bounds are missing for: {shown}. Declare lo and hi (for a response with two "
                "classes, labels) from public knowledge, or give the column the role 'ignored'"
                + (f". The response {name!r} is none of the columns{hint}" if hint else "")
            )
        if facts.get("patterns", True):
            others = expand(others, name, names)
        declared = tuple(_column(n, entry) for n, entry in others.items())
        bounds = {key: value for key, value in response.items() if key != "name"}
        said = {key: facts[key] for key in options if key in facts}
        return cls(declared, _column(name, bounds), **said)

    @classmethod
    def read(cls, path: str | Path, names: Sequence[str] | None = None) -> Schema:
        """Read a YAML or JSON bounds file.

        Parameters
        ----------
        path : str or Path
            The file.
        names : sequence of str, optional
            The table's column names, in order, the response among them. A file with patterns
            needs them: they are public, and settle which columns its patterns stand for.
        """
        return cls.from_dict(load(path), names)

    def to_dict(self) -> dict[str, Any]:
        """The contents of a bounds file that gives this schema again."""
        columns: dict[str, dict[str, Any]] = {}
        for c in self.columns:
            entry: dict[str, Any] = {} if c.role == "ignored" else {"lo": c.lo, "hi": c.hi}
            columns[c.name] = entry | ({} if c.role == "feature" else {"role": c.role})
        return {
            "version": 1,
            "unit": self.unit,
            "bad_cells": self.bad_cells,
            # Not where it says nothing, so that schemas without it keep their fingerprints.
            **({} if self.rows_per_unit == 1 else {"rows_per_unit": self.rows_per_unit}),
            **taken_literally([*columns, self.response.name]),
            "response": {
                "name": self.response.name,
                **(
                    {"lo": self.response.lo, "hi": self.response.hi}
                    if self.response.labels is None
                    else {"labels": list(self.response.labels)}
                ),
            },
            "columns": columns,
        }

    def write(self, path: str | Path) -> None:
        """Write a bounds file: JSON if the name ends so, YAML otherwise."""
        dump(self.to_dict(), Path(path))

    @property
    def features(self) -> tuple[Column, ...]:
        """The p variables: columns with role ``feature`` or ``always``, in order."""
        return tuple(c for c in self.columns if c.role != "ignored")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the p variables."""
        return tuple(c.name for c in self.features)

    @property
    def protected(self) -> str:
        """The unit and its rows, in words."""
        if self.rows_per_unit == 1:
            return self.unit
        rows = f"up to {self.rows_per_unit} rows"
        return f"whoever has {rows}" if self.unit == "one row" else f"{self.unit}, {rows}"

    def fingerprint(self) -> str:
        """SHA-256 of the public facts: the same for equal schemas, whatever file they came from."""
        facts = self.to_dict()
        facts.pop("patterns", None)  # about the file
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        columns = json.dumps([c.name for c in self.columns])  # the order of columns counts
        return hashlib.sha256((text + columns).encode()).hexdigest()


@dataclass(frozen=True)
class Bounds:
    """Bounds for arrays: ``Bounds(x=0.5, y=(0, 10))``.

    Each of x and y is one number b, meaning [-b, b], or a pair (lo, hi); x may also be a list with
    one such entry a column. A response with two classes has labels in place of y:
    ``Bounds(x=0.5, labels=("no", "yes"))``, first the one that counts as -1.
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
            settle(self.labels, "Bounds")

    @property
    def width(self) -> int | None:
        """The number of columns, where they are listed one by one."""
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
                    f"Bounds.x lists {len(x)} columns, but the table has {p}: give one entry a "
                    "column, or one number or pair for all"
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


def _rows(value: Any) -> int:
    with suppress(ArgumentError):
        if (rows := whole(value, "rows_per_unit")) >= 1:
            return rows
    raise SchemaError("rows_per_unit must be a whole number, at least 1")


def _has_repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _is_filled_in(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return isinstance(entry, Sequence) and len(entry) > 0
    return (
        entry.get("role") == "ignored"
        or entry.get("labels") is not None
        or not (entry.get("lo") is None or entry.get("hi") is None)
    )


def _column(name: Any, entry: Any) -> Column:
    what = f"column {name!r}"
    if not isinstance(entry, Mapping):
        if isinstance(entry, str) or len(entry) != 2:
            raise SchemaError(f"{what}: bounds must be a pair [lo, hi]; {HOW_TO_WRITE_NUMBERS}")
        entry = dict(zip(("lo", "hi"), entry, strict=True))
    extra = sorted(str(key) for key in entry if key not in ("lo", "hi", "role", "labels"))
    if extra:
        # {lo: 0, hi: 20,000} has an entry 0.
        hint = f" ({HOW_TO_WRITE_NUMBERS})" if any(map(str.isdigit, extra)) else ""
        raise SchemaError(f"{what}: unknown entries {', '.join(extra)}{hint}")
    for end in ("lo", "hi"):
        if isinstance(entry.get(end), str):
            raise SchemaError(f"{what}: {end} is text, not a number: {HOW_TO_WRITE_NUMBERS}")
    bounds, labels = (entry.get("lo"), entry.get("hi")), entry.get("labels")
    return Column(name, *bounds, entry.get("role", "feature"), labels)


def _check_agreement(name: str, entry: Any, response: Mapping[Any, Any]) -> None:
    """What stands under 'columns' for the response must be empty or the same."""
    if entry is None:
        return
    if not isinstance(entry, Mapping):
        is_pair = isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2
        entry = dict(zip(("lo", "hi"), entry, strict=True)) if is_pair else {"lo": entry}
    for key, value in entry.items():
        same = value is None or value == response.get(key, "feature" if key == "role" else None)
        if not same and key in ("lo", "hi"):
            here, there = approximate(value), approximate(response.get(key))
            same = here is not None and here == there
        if not same:
            raise SchemaError(
                f"{name!r} is the response, and 'columns' says something else about it: declare it "
                "under 'response' alone"
            )


def _is_list_of_bounds(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return x.ndim == 2 or (x.ndim == 1 and x.shape[0] != 2)
    return isinstance(x, Sequence) and not isinstance(x, str) and (
        len(x) != 2 or any(isinstance(entry, (Sequence, np.ndarray)) for entry in x)
    )  # fmt: skip


def _pair(bounds: Any, what: str) -> tuple[float, float]:
    if isinstance(bounds, (int, float, Fraction, Decimal, np.generic)):
        half = _bound(bounds, what)
        if half <= 0:
            raise SchemaError(f"{what}: a single bound b means [-b, b] and must be positive")
        return -half, half
    ends: list[Any] = []
    if not isinstance(bounds, (str, bytes, Mapping, Set)):
        with suppress(Exception):  # objects may have methods of their own
            ends = list(bounds)
    if len(ends) != 2:
        raise SchemaError(f"{what}: bounds must be a pair (lo, hi)")
    return _bound(ends[0], f"{what}: lo"), _bound(ends[1], f"{what}: hi")


def declared_width(path: str | Path) -> int | None:
    """How many features a bounds file declares; None if patterns leave that to the table."""
    facts = load(path)
    return None if has_patterns(facts) else len(Schema.from_dict(facts).features)
