"""Exceptions and warnings that users meet.

All of them depend on public facts only (arguments, the schema, the header of a table), quote no
cell of a table, and are raised before any private value is used. There are two exceptions. Moments
that no table can have are refused for their values, which never happens to the moments of a table.
Whether a search exceeds its limit depends on the data, which is why a search that was stopped costs
as much as the release would have cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from .text import escape_for_terminal


class DpsubsetError(Exception):
    """Base class of every error that dpsubset raises on purpose."""

    def __init__(self, message: str) -> None:
        # A message may contain column names and is shown on terminals.
        super().__init__(escape_for_terminal(message))


class ArgumentError(DpsubsetError, ValueError):
    """An argument is out of range or contradicts another one."""


class SchemaError(DpsubsetError, ValueError):
    """A schema or bounds file is incomplete or contradicts itself."""


class TableError(DpsubsetError, ValueError):
    """A table cannot be read, or does not have the columns its schema names."""


class SearchLimitError(DpsubsetError, RuntimeError):
    """A search hit its node or time limit. Nothing is returned; what was debited stays debited."""


class LedgerError(DpsubsetError, RuntimeError):
    """A ledger cannot be used, or a release does not belong in it. Nothing is released."""


class BudgetExceeded(LedgerError):
    """A release would exceed a ledger's budget. Nothing is read, spent or released."""


class ColumnTypeWarning(UserWarning):
    """Many cells of a column may be read as missing: its type, or a noisy count, contradicts the
    schema.

    A warning about types, which are public, comes before anything is spent. A warning about a noisy
    count of unreadable cells comes with the release that has paid for the count.
    """


class LargeEpsilonWarning(UserWarning):
    """The epsilon of a release is so large that its guarantee protects little.

    It comes before anything is spent. A filter that turns it into an error keeps the budget.
    """


class NotPrivateWarning(UserWarning):
    """The result is not private, although private estimators take part in its computation."""


def did_you_mean(name: object, declared: Iterable[str]) -> str:
    """Suggest the declared name closest to an unknown column, for an error message.

    Pass declared names only, never names from a table: the first line of a file without a header is
    a person's record.
    """
    folded = {one.casefold(): one for one in declared}
    close = get_close_matches(str(name).casefold(), folded, 1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""
