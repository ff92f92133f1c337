"""Conversion between columns and their entries in a bounds file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import SchemaError, did_you_mean
from ..base.validation import as_float
from .bounds_file import HOW_TO_WRITE_NUMBERS
from .column import Column, Missing
from .dates import days, iso_text

_KEYS = (
    "lo", "hi", "role", "labels", "levels", "group", "transform", "missing", "kind", "format",
)  # fmt: skip
_MISSING_KEYS = ("codes", "as", "value")


def column_of_entry(name: Any, entry: Any) -> Column:
    """The column of an entry, which is a mapping or the pair [lo, hi]."""
    what = f"column {name!r}"
    if not isinstance(entry, Mapping):
        if isinstance(entry, str) or len(entry) != 2:
            raise SchemaError(f"{what}: bounds must be a pair [lo, hi]; {HOW_TO_WRITE_NUMBERS}")
        entry = dict(zip(("lo", "hi"), entry, strict=True))
    check_keys(entry, what)
    for end in ("lo", "hi"):
        value = entry.get(end)
        if isinstance(value, str) and entry.get("kind") != "date" and days(value) is None:
            raise SchemaError(f"{what}: {end} is text, not a number: {HOW_TO_WRITE_NUMBERS}")
    # An empty value counts as omitted.
    given = {key: value for key, value in entry.items() if value is not None}
    if "missing" in given:
        given["missing"] = _missing_of_entry(given["missing"], what)
    return Column(name, **given)


def entry_of_column(column: Column) -> dict[str, Any]:
    """The entry of a column, without its name and without defaults."""
    if column.role == "ignored":
        return {"role": "ignored"}
    found: dict[str, Any] = {}
    if column.kind != "number":
        found["kind"] = column.kind
    if column.labels is not None:
        found["labels"] = list(column.labels)
    elif column.levels is not None:
        found["levels"] = list(column.levels)
    elif column.kind != "boolean" or column.span != (0.0, 1.0):
        found |= {"lo": _entry_value(column, column.lo), "hi": _entry_value(column, column.hi)}
    if column.format is not None:
        form = column.format
        found["format"] = form if isinstance(form, str) else form.entry()
    for key in ("transform", "group"):
        if getattr(column, key) is not None:
            found[key] = getattr(column, key)
    if column.missing is not None:
        found["missing"] = _missing_entry(column, column.missing)
    if column.role != "feature":
        found["role"] = column.role
    return found


def check_keys(entry: Any, what: str) -> None:
    """Refuse unknown keys, before the absence of a misspelt key causes another error."""
    if isinstance(entry, Mapping):
        _check_keys(entry, _KEYS, what)


def is_filled_in(entry: Any) -> bool:
    """Whether an entry of a template has been filled in."""
    if not isinstance(entry, Mapping):
        return isinstance(entry, Sequence) and len(entry) > 0
    if entry.get("role") == "ignored" or entry.get("labels") is not None:
        return True
    if lacks_levels(entry):
        return False
    return (
        entry.get("levels") is not None
        or entry.get("kind") == "boolean"
        or not (entry.get("lo") is None or entry.get("hi") is None)
    )


def lacks_levels(entry: Any) -> bool:
    """Whether an entry still needs levels."""
    if not isinstance(entry, Mapping) or "levels" not in entry:
        return False
    levels = entry["levels"]
    bounds = entry.get("lo"), entry.get("hi")
    return (levels is None and bounds == (None, None)) or (
        isinstance(levels, Sequence) and len(levels) == 0
    )


def check_agreement(name: str, entry: Any, response: Mapping[Any, Any]) -> None:
    """Check that an entry for the response under 'columns' is empty or agrees with it."""
    if entry is None:
        return
    if not isinstance(entry, Mapping):
        is_pair = isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2
        entry = dict(zip(("lo", "hi"), entry, strict=True)) if is_pair else {"lo": entry}
    for key, value in entry.items():
        there = response.get(key, "feature" if key == "role" else None)
        same = value is None or value == there
        if not same and key in ("lo", "hi"):
            same = _number_or_days(value) is not None and _number_or_days(value) == _number_or_days(
                there
            )
        elif not same:
            # Left from the template.
            same = (key == "kind" and there is None) or (key == "levels" and lacks_levels(entry))
        if not same:
            raise SchemaError(
                f"{name!r} is the response, and its entry under 'columns' differs: declare it "
                "under 'response' alone"
            )


def _missing_of_entry(entry: Any, what: str) -> Missing:
    """``[-9, 999]`` is short for ``{codes: [-9, 999]}``, and -9 for ``[-9]``."""
    if isinstance(entry, Missing):
        return entry
    facts = entry if isinstance(entry, Mapping) else {"codes": entry}
    _check_keys(facts, _MISSING_KEYS, f"{what}: missing")
    codes = facts.get("codes")
    if codes is None:
        codes = ()
    elif isinstance(codes, str) or not isinstance(codes, Sequence):
        codes = (codes,)
    return Missing(tuple(codes), facts.get("as"), facts.get("value"))


def _missing_entry(column: Column, missing: Missing) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if missing.codes:
        found["codes"] = [_entry_value(column, code) for code in missing.codes]
    if missing.rule is not None:
        found["as"] = missing.rule
    if missing.value is not None:
        found["value"] = _entry_value(column, missing.value)
    return found


def _entry_value(column: Column, value: Any) -> Any:
    if column.kind == "date" and isinstance(value, (int, float)):
        return iso_text(value)
    return value


def _number_or_days(value: Any) -> float | None:
    found = as_float(value)
    return days(value) if found is None else found


def _check_keys(entry: Mapping[Any, Any], known: Sequence[str], what: str) -> None:
    extra = sorted(str(key) for key in entry if key not in known)
    if extra:
        # {lo: 0, hi: 20,000} has an entry 0.
        hint = f" ({HOW_TO_WRITE_NUMBERS})" if any(map(str.isdigit, extra)) else ""
        hint = hint or did_you_mean(extra[0], known)
        raise SchemaError(
            f"{what}: unknown entries {', '.join(extra)}{hint}; known are {', '.join(known)}"
        )
