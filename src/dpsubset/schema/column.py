"""Columns: what is publicly known of one, and what a file says of it.

A column is a number between bounds, a date between two dates, or one of a few levels. A transform,
a group and what to do where a cell is missing may go with it. All of it is declared, so that
nothing has to look at the rows before they reach the door.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..base.errors import SchemaError
from ..base.validation import as_float
from .dates import days
from .formats import Format, settled
from .labels import IMAGES, Label, reading, settle, settle_all

Role = Literal["feature", "always", "ignored"]
Kind = Literal["number", "boolean", "date"]
Transform = Literal["log", "sqrt"]
Rule = Literal["middle", "low", "high", "value", "indicator", "drop"]

#: Bounds beyond this would overflow the affine map of the door.
_LARGEST_BOUND = 1e300

#: Bounds closer than this would overflow its scale, 32767 over half their distance.
SMALLEST_HALF_WIDTH = 5e-300


def bound(value: Any, what: str) -> float:
    """A number that the door can work with, or an error."""
    number = as_float(value)
    if number is None or abs(number) > _LARGEST_BOUND:
        raise SchemaError(
            f"{what} must be a number, finite and at most 1e300 in size ({type(value).__name__})"
        )
    return number


def _one_of(value: Any, allowed: Any, what: str) -> None:
    if not isinstance(value, str) or value not in get_args(allowed):
        raise SchemaError(f"{what} must be one of {', '.join(get_args(allowed))}")


@dataclass(frozen=True)
class Missing:
    """What counts as missing in a column, and what then stands in its place.

    Attributes
    ----------
    codes : tuple of str or number
        Cells that stand for no value, such as -9 or 999, even within the bounds. They are read as
        labels are: see :mod:`dpsubset.schema.labels`. In a column of dates a number is days.
    rule : {"middle", "low", "high", "value", "indicator", "drop"}, optional
        Where a cell goes that is missing, has a code or cannot be read. By default the schema's
        ``bad_cells`` says so, and of a column with levels none is on. ``indicator`` puts a column
        beside it that is 1 in such a row, and the value in the middle. ``drop`` is for the
        response alone, and its default: such a row contributes nothing to any sum.
    value : number or str, optional
        For the rule ``value``: within the bounds, or one of the levels.
    """

    codes: tuple[Label, ...] = ()
    rule: Rule | None = None
    value: Label | None = None


@dataclass(frozen=True)
class Column:
    """One column: its name, its public bounds and what it is for.

    A response with two classes has ``labels`` in place of bounds: the one that counts as -1, then
    the one that counts as 1 (see :mod:`dpsubset.schema.labels` for which cells have a label).

    Attributes
    ----------
    levels : tuple of str or number, optional
        Of a category, in place of bounds: a cell has one of them, or it is a bad cell.
    group : str, optional
        The group that is selected as a whole, and k counts once; by default the column by itself.
    transform : {"log", "sqrt"}, optional
        What the values and the bounds go through before they are scaled.
    missing : Missing, optional
        Codes for missing values, and what stands in their place.
    kind : {"number", "boolean", "date"}
        A boolean is a number between 0 and 1. Of a date, lo and hi are days since 1970-01-01; they
        may be given as dates, which imply the kind.
    format : str or NumberFormat, optional
        How the text of cells is written, where that is not the usual way: of a date a pattern such
        as ``%m/%d/%Y``, of a number the signs that stand in it (see
        :mod:`dpsubset.schema.formats`). Cells that are not text are read by their type.
    """

    name: str
    lo: float | None = None
    hi: float | None = None
    role: Role = "feature"
    labels: tuple[Label, Label] | None = None
    levels: tuple[Label, ...] | None = field(default=None, kw_only=True)
    group: str | None = field(default=None, kw_only=True)
    transform: Transform | None = field(default=None, kw_only=True)
    missing: Missing | None = field(default=None, kw_only=True)
    kind: Kind = field(default="number", kw_only=True)
    format: Format | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a column's name must be a non-empty string")
        what = f"column {self.name!r}"
        _one_of(self.role, Role, f"{what}: role")
        if self.labels is None and self.role == "ignored":
            return
        _one_of(self.kind, Kind, f"{what}: kind")
        self._settle_group(what)
        if self.labels is not None:
            self._refuse_bounds("labels", what)
            object.__setattr__(self, "labels", settle(self.labels, what))
        elif self.levels is not None:
            self._refuse_bounds("levels", what)
            levels = settle_all(self.levels, what, "levels")
            if len(levels) < 2:
                raise SchemaError(
                    f"{what} needs at least two levels: list all that a cell may have, from public "
                    "knowledge"
                )
            object.__setattr__(self, "levels", levels)
        else:
            self._settle_bounds(what)
        if self.format is not None:
            object.__setattr__(self, "format", settled(self.format, self.kind, what))
        if self.missing is not None:
            object.__setattr__(self, "missing", self._settled_missing(self.missing, what))

    def _settle_group(self, what: str) -> None:
        group: Any = self.group
        if isinstance(group, (list, tuple, set, frozenset)):
            raise SchemaError(f"{what}: a column is in one group alone, groups do not overlap")
        if group is not None and (not isinstance(group, str) or not group.strip()):
            raise SchemaError(f"{what}: group must be a name")

    def _refuse_bounds(self, other: str, what: str) -> None:
        """Labels and levels have nothing else beside them that says what a cell is worth."""
        if self.lo is not None or self.hi is not None:
            raise SchemaError(f"{what} has bounds and {other}: declare one of them")
        if self.labels is not None and self.levels is not None:
            raise SchemaError(f"{what} has labels and levels: declare one of them")
        for key in ("transform", "kind", "format"):
            if getattr(self, key) not in (None, "number"):
                raise SchemaError(f"{what}: {key} goes with bounds, not with {other}")

    def _settle_bounds(self, what: str) -> None:
        lo, hi = self.lo, self.hi
        if self.kind == "boolean":
            lo, hi = (0 if lo is None else lo), (1 if hi is None else hi)
        if lo is None or hi is None:
            raise SchemaError(
                f"{what} has no bounds: declare lo and hi (public knowledge, not read from the "
                "data) or levels, or give it the role 'ignored'"
            )
        if self.kind == "number" and days(lo) is not None and days(hi) is not None:
            object.__setattr__(self, "kind", "date")
        lo, hi = self._bound(lo, f"{what}: lo"), self._bound(hi, f"{what}: hi")
        if not lo < hi:
            raise SchemaError(f"{what}: lo must be smaller than hi")
        if hi / 2 - lo / 2 < SMALLEST_HALF_WIDTH:
            raise SchemaError(f"{what}: lo and hi must be at least 1e-299 apart")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)
        if self.transform is not None:
            self._check_transform(lo, what)

    def _bound(self, value: Any, what: str) -> float:
        if self.kind == "date":
            found = days(value)
            if found is not None:
                return found
            if as_float(value) is None:
                raise SchemaError(f"{what} must be a date such as 1990-01-31")
        elif days(value) is not None:
            raise SchemaError(f"{what} is a date: then the other bound has to be one too, and the "
                              "kind is date")  # fmt: skip
        return bound(value, what)

    def _check_transform(self, lo: float, what: str) -> None:
        _one_of(self.transform, Transform, f"{what}: transform")
        if self.kind == "date":
            raise SchemaError(f"{what}: a date has no transform, for its zero means nothing")
        if self.transform == "log" and lo <= 0:
            raise SchemaError(
                f"{what}: a log needs lo greater than 0. Declare the least value that matters: "
                "smaller ones count as it (or take transform: sqrt, from 0 on)"
            )
        if self.transform == "sqrt" and lo < 0:
            raise SchemaError(f"{what}: a square root needs lo to be 0 or greater")
        low, high = self.scaled_span
        if high / 2 - low / 2 < SMALLEST_HALF_WIDTH:
            raise SchemaError(f"{what}: lo and hi are too close to each other for a transform")

    def _settled_missing(self, missing: Any, what: str) -> Missing | None:
        if not isinstance(missing, Missing):
            raise SchemaError(f"{what}: missing must be a Missing, with codes and a rule")
        codes: Any = missing.codes
        rule, value = missing.rule, missing.value
        if self.kind == "date" and isinstance(codes, Sequence) and not isinstance(codes, str):
            codes = tuple(code if (day := days(code)) is None else day for code in codes)
        codes = settle_all(codes, what, "the codes of missing")
        named = [*(self.labels or ()), *(self.levels or ())]
        if {reading(code) for code in codes} & {reading(label) for label in named}:
            raise SchemaError(
                f"{what}: a code for missing is also a {'label' if self.labels else 'level'}: "
                "a cell is either of them"
            )
        if rule is not None:
            _one_of(rule, Rule, f"{what}: the rule of missing ('as' in a file)")
        if (rule == "value") != (value is not None):
            raise SchemaError(f"{what}: missing has a value where it goes 'as: value', and only "
                              "there")  # fmt: skip
        if self.levels is not None and rule in ("middle", "low", "high"):
            raise SchemaError(
                f"{what}: levels have no {rule}. Missing may go as: indicator, or as: value with "
                "one of the levels; without a rule no level is on"
            )
        if rule == "value":
            value = self._settled_value(value, what)
        return Missing(codes, rule, value) if codes or rule is not None else None

    def _settled_value(self, value: Any, what: str) -> Label:
        if self.labels is not None:
            raise SchemaError(f"{what}: with labels missing goes as: drop, middle, low or high")
        if self.levels is not None:
            (label,) = settle_all([value], what, "the value of missing")
            for level in self.levels:
                if reading(level) == reading(label):
                    return level
            raise SchemaError(f"{what}: the value of missing is none of the levels")
        number = self._bound(value, f"{what}: the value of missing")
        assert self.lo is not None
        assert self.hi is not None
        if not self.lo <= number <= self.hi:
            raise SchemaError(f"{what}: the value of missing must lie within lo and hi")
        return number

    @property
    def span(self) -> tuple[float | None, float | None]:
        """The bounds, or what the labels count as."""
        return (self.lo, self.hi) if self.labels is None else IMAGES

    @property
    def scaled_span(self) -> tuple[float, float]:
        """The same after the transform: what becomes -1 and 1, but for the last bit of a log."""
        low, high = self.span
        assert low is not None
        assert high is not None
        if self.transform is None:
            return low, high
        apply = math.log if self.transform == "log" else math.sqrt
        return apply(low), apply(high)

    @property
    def drops_rows(self) -> bool:
        """Of a response: whether a row in which it cannot be read contributes nothing."""
        return self.missing is None or self.missing.rule in (None, "drop")

    @property
    def has_indicator(self) -> bool:
        """Whether a column beside it says where it is missing."""
        return self.missing is not None and self.missing.rule == "indicator"
