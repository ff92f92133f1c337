"""The declaration of a column: bounds or levels, transform, group, and the rule for missing cells.

Everything is declared, so that nothing about a column has to be learned from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..base.errors import SchemaError
from ..base.validation import as_float
from .dates import days
from .formats import Format, check_format
from .labels import IMAGES, Label, canonical, check_label_list, check_labels

Role = Literal["feature", "always", "ignored"]
Kind = Literal["number", "boolean", "date"]
Transform = Literal["log", "sqrt"]
Rule = Literal["middle", "low", "high", "value", "indicator", "drop"]

#: Larger bounds would overflow the affine map of the quantizer.
_LARGEST_BOUND = 1e300

#: A smaller half-width would overflow the quantizer's factor, 32767 / half-width.
SMALLEST_HALF_WIDTH = 5e-300


def check_bound(value: Any, what: str) -> float:
    """Return a bound that the quantizer can use, or raise an error."""
    number = as_float(value)
    if number is None or abs(number) > _LARGEST_BOUND:
        raise SchemaError(
            f"{what} must be a number, finite and at most 1e300 in size ({type(value).__name__})"
        )
    return number


def _check_one_of(value: Any, allowed: Any, what: str) -> None:
    if not isinstance(value, str) or value not in get_args(allowed):
        raise SchemaError(f"{what} must be one of {', '.join(get_args(allowed))}")


@dataclass(frozen=True)
class Missing:
    """Which cells of a column count as missing, and which value they get.

    Attributes
    ----------
    codes : tuple of str or number
        Cells that mean "missing", such as -9 or 999, even within the bounds. They are compared as
        labels are, see :mod:`dpsubset.schema.labels`. In a column of dates a number is days.
    rule : {"middle", "low", "high", "value", "indicator", "drop"}, optional
        Value of a cell that is missing, has a code or cannot be read. By default that of the
        schema's ``bad_cells``; in a column with levels, none of the levels. ``indicator`` adds a
        column that is 1 in such a row, and uses the middle as the value. ``drop`` is for the
        response alone, and its default: such a row contributes nothing to any sum.
    value : number or str, optional
        For the rule ``value``: within the bounds, or one of the levels.
    """

    codes: tuple[Label, ...] = ()
    rule: Rule | None = None
    value: Label | None = None


@dataclass(frozen=True)
class Column:
    """One column: its name, its public bounds and its role.

    A response with two classes has ``labels`` in place of bounds: the one that counts as -1, then
    the one that counts as 1 (see :mod:`dpsubset.schema.labels` for which cells have a label).

    Attributes
    ----------
    levels : tuple of str or number, optional
        Levels of a category, in place of bounds. Any other cell is a bad cell.
    group : str, optional
        Name of a group of columns that are selected together, and that k counts once.
    transform : {"log", "sqrt"}, optional
        Applied to values and bounds before scaling.
    missing : Missing, optional
        Codes for missing cells, and the rule for them.
    kind : {"number", "boolean", "date"}
        A boolean is a number between 0 and 1. The bounds of a date are days since 1970-01-01; they
        may be given as dates, which imply the kind.
    format : str or NumberFormat, optional
        Format of cells that are text: for a date a pattern such as ``%m/%d/%Y``, for a number its
        signs (see :mod:`dpsubset.schema.formats`). Other cells are read by their type.
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
        _check_one_of(self.role, Role, f"{what}: role")
        if self.labels is None and self.role == "ignored":
            return
        _check_one_of(self.kind, Kind, f"{what}: kind")
        self._check_group(what)
        if self.labels is not None:
            self._refuse_bounds("labels", what)
            object.__setattr__(self, "labels", check_labels(self.labels, what))
        elif self.levels is not None:
            self._refuse_bounds("levels", what)
            levels = check_label_list(self.levels, what, "levels")
            if len(levels) < 2:
                raise SchemaError(
                    f"{what} needs at least two levels: list all that a cell may have, from public "
                    "knowledge"
                )
            object.__setattr__(self, "levels", levels)
        else:
            self._check_bounds(what)
        if self.format is not None:
            object.__setattr__(self, "format", check_format(self.format, self.kind, what))
        if self.missing is not None:
            object.__setattr__(self, "missing", self._check_missing(self.missing, what))

    def _check_group(self, what: str) -> None:
        group: Any = self.group
        if isinstance(group, (list, tuple, set, frozenset)):
            raise SchemaError(f"{what}: a column can be in one group only, groups do not overlap")
        if group is not None and (not isinstance(group, str) or not group.strip()):
            raise SchemaError(f"{what}: group must be a name")

    def _refuse_bounds(self, other: str, what: str) -> None:
        """Refuse what cannot be combined with labels or levels."""
        if self.lo is not None or self.hi is not None:
            raise SchemaError(f"{what} has bounds and {other}: declare one of them")
        if self.labels is not None and self.levels is not None:
            raise SchemaError(f"{what} has labels and levels: declare one of them")
        for key in ("transform", "kind", "format"):
            if getattr(self, key) not in (None, "number"):
                raise SchemaError(f"{what}: {key} goes with bounds, not with {other}")

    def _check_bounds(self, what: str) -> None:
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
        lo, hi = self._check_bound(lo, f"{what}: lo"), self._check_bound(hi, f"{what}: hi")
        if not lo < hi:
            raise SchemaError(f"{what}: lo must be smaller than hi")
        if hi / 2 - lo / 2 < SMALLEST_HALF_WIDTH:
            raise SchemaError(f"{what}: lo and hi must be at least 1e-299 apart")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)
        if self.transform is not None:
            self._check_transform(lo, what)

    def _check_bound(self, value: Any, what: str) -> float:
        if self.kind == "date":
            found = days(value)
            if found is not None:
                return found
            if as_float(value) is None:
                raise SchemaError(f"{what} must be a date such as 1990-01-31")
        elif days(value) is not None:
            raise SchemaError(
                f"{what} is a date: the other bound must be a date, too, and the kind must be date"
            )
        return check_bound(value, what)

    def _check_transform(self, lo: float, what: str) -> None:
        _check_one_of(self.transform, Transform, f"{what}: transform")
        if self.kind == "date":
            raise SchemaError(f"{what}: a date has no transform, since its zero is arbitrary")
        if self.transform == "log" and lo <= 0:
            raise SchemaError(
                f"{what}: a log needs lo greater than 0. Declare the smallest value that matters; "
                "smaller values are clipped to it (or use transform: sqrt, from 0 on)"
            )
        if self.transform == "sqrt" and lo < 0:
            raise SchemaError(f"{what}: a square root needs lo to be 0 or greater")
        low, high = self.scaled_span
        if high / 2 - low / 2 < SMALLEST_HALF_WIDTH:
            raise SchemaError(f"{what}: lo and hi are too close to each other for a transform")

    def _check_missing(self, missing: Any, what: str) -> Missing | None:
        if not isinstance(missing, Missing):
            raise SchemaError(f"{what}: missing must be a Missing, with codes and a rule")
        codes: Any = missing.codes
        rule, value = missing.rule, missing.value
        if self.kind == "date" and isinstance(codes, Sequence) and not isinstance(codes, str):
            codes = tuple(code if (day := days(code)) is None else day for code in codes)
        codes = check_label_list(codes, what, "the codes of missing")
        named = [*(self.labels or ()), *(self.levels or ())]
        if {canonical(code) for code in codes} & {canonical(label) for label in named}:
            raise SchemaError(
                f"{what}: a code for missing is also a {'label' if self.labels else 'level'}: "
                "remove one of them"
            )
        if rule is not None:
            _check_one_of(rule, Rule, f"{what}: the rule of missing ('as' in a file)")
        if (rule == "value") != (value is not None):
            raise SchemaError(f"{what}: missing needs a value with 'as: value', and only then")
        if self.levels is not None and rule in ("middle", "low", "high"):
            raise SchemaError(
                f"{what}: levels have no {rule}. Use as: indicator, or as: value with one of the "
                "levels; without a rule a missing cell has none of the levels"
            )
        if rule == "value":
            value = self._check_missing_value(value, what)
        return Missing(codes, rule, value) if codes or rule is not None else None

    def _check_missing_value(self, value: Any, what: str) -> Label:
        if self.labels is not None:
            raise SchemaError(f"{what}: with labels, missing must be as: drop, middle, low or high")
        if self.levels is not None:
            (label,) = check_label_list([value], what, "the value of missing")
            for level in self.levels:
                if canonical(level) == canonical(label):
                    return level
            raise SchemaError(f"{what}: the value of missing is none of the levels")
        number = self._check_bound(value, f"{what}: the value of missing")
        assert self.lo is not None
        assert self.hi is not None
        if not self.lo <= number <= self.hi:
            raise SchemaError(f"{what}: the value of missing must lie within lo and hi")
        return number

    @property
    def span(self) -> tuple[float | None, float | None]:
        """The bounds, or the values of the labels."""
        return (self.lo, self.hi) if self.labels is None else IMAGES

    @property
    def ends(self) -> tuple[float, float]:
        """The span of a column that has one: not of levels, nor of an ignored column."""
        low, high = self.span
        assert low is not None
        assert high is not None
        return low, high

    @property
    def middle_and_half_width(self) -> tuple[float, float]:
        """Of the span, without overflow."""
        low, high = self.ends
        return low / 2 + high / 2, high / 2 - low / 2

    @property
    def scaled_span(self) -> tuple[float, float]:
        """The bounds after the transform, which become -1 and 1 up to the last bit of a log."""
        low, high = self.ends
        if self.transform is None:
            return low, high
        apply = math.log if self.transform == "log" else math.sqrt
        return apply(low), apply(high)

    @property
    def drops_rows(self) -> bool:
        """Whether, for a response, a row in which it cannot be read contributes nothing."""
        return self.missing is None or self.missing.rule in (None, "drop")

    @property
    def has_indicator(self) -> bool:
        """Whether another column of the model indicates missing cells."""
        return self.missing is not None and self.missing.rule == "indicator"
