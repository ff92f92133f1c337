"""Checks of a table's column names and types against its schema. No value is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from ...base.errors import TableError, did_you_mean
from ...schema.bounds_file import SEPARATORS
from ...schema.schema import AnySchema
from .arrow import is_readable
from .cells import Reader, unreadable

_NONE_DECLARED = ". None of its columns is declared: the schema may be that of another table"


def check_columns(present: Sequence[str], schema: AnySchema, what: str) -> None:
    """Check that every declared column is present exactly once.

    Errors quote names of the schema, never those of the table: the first line of a file without a
    header is a person's record.
    """
    counts = Counter(present)
    wanted = [column.name for column in schema.columns_read]
    missing = [name for name in wanted if not counts[name]]
    if missing:
        # Only declared names are suggested.
        hint = did_you_mean(missing[0], [name for name in wanted if counts[name]])
        shown = ", ".join(repr(name) for name in missing[:10]) + (", ..." if missing[10:] else "")
        split = "" if schema.separator else other_separator(present)
        raise TableError(
            f"{what} has no column {shown}{hint}, which the schema declares. "
            + (
                f"{split[:1].upper()}{split[1:]}"
                or "Compare the schema with the table's header (a table without a header line "
                "needs one)"
            )
            + (_NONE_DECLARED if len(missing) == len(wanted) > 1 and not split else "")
        )
    repeated = [name for name in wanted if counts[name] > 1]
    if repeated:
        raise TableError(f"{what} has several columns named {repeated[0]!r}: names must be unique")


def check_types(
    types: pa.Schema, names: Sequence[str], readers: Sequence[Reader], what: str
) -> None:
    """Check that each column of a typed file has a type whose cells its reader can read."""
    for name, read in zip(names, readers, strict=True):
        kind = types.field(name).type
        if not is_readable(kind, read.takes):
            # Without the part in <>, where a nested type lists its fields.
            bare = str(kind).partition("<")[0]
            raise TableError(f"{what}: column {name!r} holds {bare}, {unreadable(read.takes)}")


def other_separator(names: Sequence[str]) -> str:
    """Return a hint if the header is a single field that contains a separator, else ""."""
    found = [sign for sign in SEPARATORS if len(names) == 1 and sign in names[0]]
    if not found:
        return ""
    sign = {"\t": "a tab", ",": "a comma"}.get(found[0], f"'{found[0]}'")
    written = found[0].replace("\t", "\\t")
    return (
        f"its header line is one field that contains {sign}. If that separates the columns, say "
        f'so: separator: "{written}" in the schema (schema init --separator writes it there)'
    )


def looks_like_a_value(name: str) -> bool:
    """Whether a name is blank or a number, which suggests that the first line is a record."""
    if not name.strip():
        return True
    try:
        float(name)
    except ValueError:
        return False
    return True
