"""The errors a user meets.

All of them depend on public facts only (arguments, the schema, a table's header), quote no cell of
a table, and are raised before any private value is used. Two exceptions: moments that no table can
have are refused for their values, which never happens to moments of a table; and whether a search
passes its limit depends on the data, which is why that costs what the release would have cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from .text import escape_for_terminal


class DpsubsetError(Exception):
    """Base of every error that dpsubset raises on purpose."""

    def __init__(self, message: str) -> None:
        # It may hold names of columns, and is shown on terminals.
        super().__init__(escape_for_terminal(message))


class ArgumentError(DpsubsetError, ValueError):
    """An argument is out of its range or does not go with another one."""


class SchemaError(DpsubsetError, ValueError):
    """A schema or bounds file is incomplete or contradicts itself."""


class TableError(DpsubsetError, ValueError):
    """A table cannot be read, or does not have the columns its schema names."""


class SearchLimitError(DpsubsetError, RuntimeError):
    """A node or time limit was hit. Nothing is returned, and what was debited stays debited."""


class LedgerError(DpsubsetError, RuntimeError):
    """A ledger cannot be used, or a release does not belong in it. Nothing is released."""


class BudgetExceeded(LedgerError):
    """A ledger has no room for what a release would cost. Nothing is read, spent or released."""


class ColumnTypeWarning(UserWarning):
    """Much of a column may be missing: its type, or a noisy count, goes ill with the schema.

    By types, which are public, it comes before anything is spent. By a count of cells that could
    not be read, it comes with the release that has paid for the count.
    """


class NotPrivateWarning(UserWarning):
    """What is about to be computed is not private, although private estimators take part in it."""


def did_you_mean(name: object, declared: Iterable[str]) -> str:
    """For an error about an unknown column: the declared name nearest to it, or nothing.

    A hint for a reader. Only what was declared may be given here, never names of a table: the first
    line of a file without a header is a person's record.
    """
    folded = {one.casefold(): one for one in declared}
    close = get_close_matches(str(name).casefold(), folded, 1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""
