"""Does a table have the columns that its schema declares?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...base.errors import TableError, did_you_mean
from ...schema.bounds_file import SEPARATORS
from ...schema.schema import Schema


def check_columns(present: Sequence[str], schema: Schema, what: str, beside: bool = False) -> None:
    """Every declared column must be there, once; the response unless it stands ``beside``.

    The error quotes names of the schema, never those of the table: the first line of a file without
    a header is a person's record.
    """
    counts = Counter(present)
    wanted = [*schema.feature_names, *([] if beside else [schema.response.name])]
    missing = [name for name in wanted if not counts[name]]
    if missing:
        # Nearest among declared names that are there: the response may be misspelt.
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
        )
    repeated = [name for name in wanted if counts[name] > 1]
    if repeated:
        raise TableError(f"{what} has several columns named {repeated[0]!r}: names must be unique")


def other_separator(names: Sequence[str]) -> str:
    """What to say of a header that is one field with a separator in it; nothing of any other."""
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
    """Whether a name is blank or a number, as in a first line that is a record."""
    if not name.strip():
        return True
    try:
        float(name)
    except ValueError:
        return False
    return True
