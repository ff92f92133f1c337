"""Make a private release. Only this module defines the order of the steps.

    validate -> open -> price -> debit -> read -> draw -> sign -> warn

A public function turns its arguments into a :class:`Request`, and `make_release` makes the release
of a request. The cost is debited before a value is read. The debit stays, however the call ends
after that.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Generic, Protocol, Self, TypeVar

from ..base.errors import ColumnTypeWarning, LedgerError
from ..base.text import escape_for_terminal
from ..base.validation import check_progress
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..data.type_checks import warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited, whole_cost
from ..privacy.guarantee import Guarantee, shown_cost
from ..privacy.large_epsilon import text_of_epsilon, warn_of_epsilon
from ..privacy.random import Randomness, SeededSource, SystemSource
from ..schema.schema import Schema


class OpenTable(Protocol):
    """A table whose names and types are known and whose values have not been read."""

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known before values are read."""


Table = TypeVar("Table", bound=OpenTable)
Release = TypeVar("Release")


@dataclass(frozen=True)
class Execution(Generic[Table]):
    """What a request uses to read and to draw, once its cost is debited."""

    table: Table = field(repr=False)
    #: The source of all noise of this release.
    rng: Randomness = field(repr=False)
    #: The passes over the table, which report progress.
    passes: Passes = field(repr=False)
    #: Columns whose types do not match their declaration.
    column_warnings: tuple[str, ...]
    #: Returns its argument, a guarantee, or raises `LedgerError` if that costs more than was
    #: reserved. It is called before each draw, because a file may have another number of rows than
    #: it states.
    check: Callable[[Guarantee], Guarantee]


class Request(ABC, Generic[Table, Release]):
    """A private release whose arguments are checked as far as possible without the table. Public.

    Subclasses are frozen dataclasses. Values that follow from the fields are cached, and
    `with_rows` makes a new request.
    """

    #: For tests only: with a seed the draws are reproducible and therefore not private.
    seed: int | None

    @property
    @abstractmethod
    def n_is_public(self) -> bool:
        """Whether neighbouring tables have the same number of rows."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of the release for one unit, computed from the constants that its draws
        use.
        """

    @property
    def debited_guarantee(self) -> Guarantee:
        """The guarantee that is debited for one unit: `guarantee` without the costs of earlier
        releases.
        """
        return self.guarantee

    @property
    def priced_item(self) -> str:
        """The part of the request whose cost may depend on the number of rows."""
        return "this release"

    @property
    def needs_rows(self) -> bool:
        """Whether the cost depends on the public number of rows, which is not known yet."""
        return False

    @property
    def division_needs_rows(self) -> bool:
        """Whether the division of epsilon among steps depends on a number of rows that is not known
        yet.
        """
        return False

    @property
    def pass_count(self) -> int:
        """The number of passes over the table."""
        return 1

    @abstractmethod
    def open(self, data: Any, y: Any = None) -> Table:
        """Open the table and check names and types of its columns. Reads no value."""

    @abstractmethod
    def with_rows(self, n: int | None) -> Self:
        """Return the request for a table of n rows, if their number is public."""

    @abstractmethod
    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        """List columns whose storage type does not match their declaration."""

    @abstractmethod
    def describe(self, guarantee: Guarantee) -> Event:
        """Return the ledger entry of a release with this guarantee."""

    @abstractmethod
    def run(self, execution: Execution[Table]) -> Release:
        """Read the table, draw, and return the unsigned release. No error may depend on values."""

    def event(self) -> Event:
        """Return the ledger entry that is written before the release is made.

        Raises
        ------
        LedgerError
            If the cost depends on a number of rows that is not known yet.
        """
        if self.needs_rows:
            raise LedgerError(
                f"the cost of {self.priced_item} depends on the number of rows, which is not known "
                "before this file is read: with a ledger, use a Parquet file or a data frame"
            )
        guarantee = self.debited_guarantee
        if self.division_needs_rows:
            costs = {relation: whole_cost(cost) for relation, cost in guarantee.costs.items()}
            guarantee = replace(guarantee, costs=costs)
        return self.describe(guarantee)


def make_release(
    request: Request[Table, Release],
    data: Any,
    y: Any = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
) -> Release:
    """Make the release of a request: open, price, debit, read, draw, sign, warn, in this order.

    Parameters
    ----------
    request : Request
        All arguments of the caller, checked.
    data, y : object
        The sensitive table.
    progress : callable, optional
        Called with the fraction of the work done.
    ledger : path, URL, Ledger or False, optional
        Where the cost is debited.
    """
    check_progress(progress)
    table = request.open(data, y)
    request = request.with_rows(table.rows)
    if not request.needs_rows:
        # Errors of pricing are raised before a value is read.
        warn_of_epsilon(request.guarantee, _user_level())
    mismatches = request.type_mismatches(data, y)
    warn_of_types(mismatches, _user_level() + 1)
    passes = Passes(progress, request.n_is_public, request.pass_count)
    with debited(ledger, request.event) as debit:
        rng = open_randomness(request.seed)
        execution = Execution(table, rng, passes, mismatches, debit.checked)
        release = debit.signed(request.run(execution))
    _warn_of_released_numbers(release)
    return release


def open_randomness(seed: int | None) -> Randomness:
    """Return the source of noise: the operating system's generator, or a seeded one for tests."""
    return Randomness(SystemSource() if seed is None else SeededSource(seed))


def event_of(request: Request[Any, Any], data: Any, y: Any = None) -> Event:
    """Return the ledger entry of a request on this table. Reads no value."""
    return _counted(request, data, y).event()


@dataclass(frozen=True)
class Price:
    """The cost of a release that has not been made, and the columns that it would read. Public.

    Attributes
    ----------
    guarantee : Guarantee, or None
        None if it depends on a public number of rows that is not known before the file is read.
    mechanism : str
    columns : tuple of str
        The columns that would be read, the response last.
    unit : str
        The privacy unit, in words.
    warnings : tuple of str
        Columns whose storage type does not match their declaration; most of their cells would be
        read as missing.
    """

    guarantee: Guarantee | None
    mechanism: str
    columns: tuple[str, ...]
    unit: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        cost = "Cost: known once the rows are counted, since it depends on their number"
        if self.guarantee is not None:
            costs = self.guarantee.costs.items()
            each = ", ".join(f"{shown_cost(cost)} under {relation}" for relation, cost in costs)
            cost = f"Guarantee: {self.guarantee}" + (f"\nCost: {each}" if each else "")
        cost += f"\nUnit of privacy: {self.unit}"
        *features, response = self.columns
        shown = ", ".join(features[:10]) + (f", ... ({len(features)} in all)" * bool(features[10:]))
        read = f"Would read: {shown}; to explain {response}"
        large = text_of_epsilon(self.guarantee)
        warned = [*([large] if large else []), *self.warnings]
        lines = [f"Warning: {warning}" for warning in warned]
        return "\n".join([cost, f"Mechanism: {self.mechanism}", read, *lines])


def price_of(
    request: Request[Any, Any],
    data: Any,
    y: Any,
    mechanism: str,
    schema: Schema,
) -> Price:
    """Return the price of a request on this table, or on any table if ``data`` is None.

    ``schema`` declares the columns that would be read.
    """
    request = _counted(request, data, y)
    mismatches = () if data is None else request.type_mismatches(data, y)
    guarantee = None if request.needs_rows else request.guarantee
    if guarantee is not None and guarantee.proven and request.division_needs_rows:
        # Only the total under the declared relation is known, not its parts.
        cost = guarantee.costs[guarantee.neighbours]
        guarantee = replace(guarantee, costs={guarantee.neighbours: cost}, parts=())
    columns = (*schema.feature_names, schema.response.name)
    return Price(guarantee, mechanism, columns, schema.protected, mismatches)


def _counted(request: Request[Any, Any], data: Any, y: Any) -> Request[Any, Any]:
    return request if data is None else request.with_rows(request.open(data, y).rows)


def _warn_of_released_numbers(release: Any) -> None:
    """Warn if the released counts show that most cells of a column were unreadable.

    The release is paid for, so a filter that turns warnings into errors must not discard it.
    """
    for line in getattr(release, "warnings_of_counts", ()):
        with suppress(ColumnTypeWarning):
            warnings.warn(escape_for_terminal(line), ColumnTypeWarning, stacklevel=_user_level())


def _user_level() -> int:
    """The ``stacklevel`` with which a warning of the calling function points to user code."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    caller: FrameType | None = frame
    while caller is not None and caller.f_globals.get("__name__", "").split(".")[0] == package:
        level, caller = level + 1, caller.f_back
    return level
