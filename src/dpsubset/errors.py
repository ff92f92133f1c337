"""The errors a user meets.

All of them depend on public facts only (arguments, the schema, a table's header), quote no cell of
a table, and are raised before any private value is used. Two exceptions: moments that no table can
have are refused for their values, which never happens to moments of a table; and whether a search
passes its limit depends on the data, which is why that costs what the release would have cost.
"""

from __future__ import annotations


class DpsubsetError(Exception):
    """Base of every error that dpsubset raises on purpose."""


class ArgumentError(DpsubsetError, ValueError):
    """An argument is out of its range or does not go with another one."""


class SchemaError(DpsubsetError, ValueError):
    """A schema or bounds file is incomplete or contradicts itself."""


class TableError(DpsubsetError, ValueError):
    """A table cannot be read, or does not have the columns its schema names."""


class SearchLimitError(DpsubsetError, RuntimeError):
    """A node or time limit was hit. Nothing is returned, and what was debited stays debited."""
