"""The errors a user meets.

All of them depend on public facts only (arguments, the schema, a table's header), quote no cell of
a table, and are raised before any private value is used. The one exception: moments that no table
can have are refused for their values, which never happens to moments of a table.
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
