"""Does a table have the columns that its schema declares?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..errors import TableError
from ..schema import Schema


def check_columns(present: Sequence[str], schema: Schema, what: str) -> None:
    """Every declared column must be there, once.

    The error quotes names of the schema, never those of the table: the first line of a file without
    a header is a person's record.
    """
    counts = Counter(present)
    wanted = [*schema.feature_names, schema.response.name]
    missing = [name for name in wanted if not counts[name]]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:10]) + (", ..." if missing[10:] else "")
        raise TableError(
            f"{what} has no column {shown}, which the schema declares. Compare the schema with "
            "the table's header (a table without a header line needs one)"
        )
    repeated = [name for name in wanted if counts[name] > 1]
    if repeated:
        raise TableError(f"{what} has several columns named {repeated[0]!r}: names must be unique")
