"""Entries: what a bounds file says of one column, and the column that it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import SchemaError, did_you_mean
from ..base.validation import as_float
from .bounds_file import HOW_TO_WRITE_NUMBERS
from .column import Column, Missing
from .dates import days, written

_KEYS = (
    "lo", "hi", "role", "labels", "levels", "group", "transform", "missing", "kind", "format",
)  # fmt: skip
_MISSING_KEYS = ("codes", "as", "value")


def column(name: Any, entry: Any) -> Column:
    """Of an entry: a mapping, or the pair [lo, hi]."""
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
    # What is left empty is as good as left out.
    given = {key: value for key, value in entry.items() if value is not None}
    if "missing" in given:
        given["missing"] = _missing(given["missing"], what)
    return Column(name, **given)


def entry(column: Column) -> dict[str, Any]:
    """What a file says of a column, but for its name: only what has to be said."""
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
        found |= {"lo": _written(column, column.lo), "hi": _written(column, column.hi)}
    if column.format is not None:
        written_so = column.format
        found["format"] = written_so if isinstance(written_so, str) else written_so.entry()
    for key in ("transform", "group"):
        if getattr(column, key) is not None:
            found[key] = getattr(column, key)
    if column.missing is not None:
        found["missing"] = _missing_entry(column, column.missing)
    if column.role != "feature":
        found["role"] = column.role
    return found


def check_keys(entry: Any, what: str) -> None:
    """Refuse what says nothing, before somebody looks for what a misspelt key was to say."""
    if isinstance(entry, Mapping):
        _check_keys(entry, _KEYS, what)


def is_filled_in(entry: Any) -> bool:
    """Whether an entry of a template says what its column may hold."""
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
    """Whether it is levels that have to be filled in."""
    if not isinstance(entry, Mapping) or "levels" not in entry:
        return False
    levels = entry["levels"]
    bounds = entry.get("lo"), entry.get("hi")
    return (levels is None and bounds == (None, None)) or (
        isinstance(levels, Sequence) and len(levels) == 0
    )


def check_agreement(name: str, entry: Any, response: Mapping[Any, Any]) -> None:
    """What stands under 'columns' for the response must be empty or the same."""
    if entry is None:
        return
    if not isinstance(entry, Mapping):
        is_pair = isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2
        entry = dict(zip(("lo", "hi"), entry, strict=True)) if is_pair else {"lo": entry}
    for key, value in entry.items():
        there = response.get(key, "feature" if key == "role" else None)
        same = value is None or value == there
        if not same and key in ("lo", "hi"):
            same = _number(value) is not None and _number(value) == _number(there)
        elif not same:
            # A template has a form for every column, which its declaration makes superfluous.
            same = (key == "kind" and there is None) or (key == "levels" and lacks_levels(entry))
        if not same:
            raise SchemaError(
                f"{name!r} is the response, and 'columns' says something else about it: declare it "
                "under 'response' alone"
            )


def _missing(entry: Any, what: str) -> Missing:
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
        found["codes"] = [_written(column, code) for code in missing.codes]
    if missing.rule is not None:
        found["as"] = missing.rule
    if missing.value is not None:
        found["value"] = _written(column, missing.value)
    return found


def _written(column: Column, value: Any) -> Any:
    if column.kind == "date" and isinstance(value, (int, float)):
        return written(value)
    return value


def _number(value: Any) -> float | None:
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
