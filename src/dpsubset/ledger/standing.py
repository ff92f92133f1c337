"""Declaration: what a ledger is of. Standing: its limit and sums after a line of its journal.

A declaration is made once. A standing is part of every line: limit, sums since the rows were last
declared new, and sums over the whole life. So a debit depends on the last line alone, and the chain
of hashes covers the sums.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.errors import ArgumentError, BudgetExceeded, LedgerError
from ..base.validation import check_choice, check_int
from ..privacy.guarantee import Cost
from ..privacy.relations import RELATIONS, Neighbours
from .composition import Limit, Totals
from .event import Event
from .left import Left

#: Most characters of names and texts given by people.
LONGEST_NAME, LONGEST_TEXT = 200, 2000

#: Seconds by which a line may precede the line before it: clocks of several machines differ.
_TOLERANCE = 300

_FORM = "%Y-%m-%dT%H:%MZ"

#: The form of sums with their assumptions. Lines of earlier versions state no form.
_FORM_OF_SUMS = 2


def check_text(value: Any, what: str, longest: int = LONGEST_TEXT) -> str:
    """Check a text given by a person: one printable line, not empty and not too long."""
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(f"{what} must be given, in words")
    if len(value) > longest or not value.isprintable():
        raise ArgumentError(f"{what} must be one line of at most {longest} characters")
    return value


@dataclass(frozen=True)
class Declaration:
    """What a ledger is of. Public.

    Attributes
    ----------
    data_set : str
        The data set whose budget is counted.
    unit : str
        The unit of privacy, in the words of the data set's schemas.
    rows_per_unit : int
    relation : {"replace-one", "add-remove"}
        The relation under which costs are counted.
    owner, purpose : str
        Who is responsible for the data set, and what it may be used for.
    """

    data_set: str
    unit: str
    rows_per_unit: int
    relation: Neighbours
    owner: str
    purpose: str

    def __post_init__(self) -> None:
        check_text(self.data_set, "the name of the data set", LONGEST_NAME)
        if "#" in self.data_set:
            raise ArgumentError("the name of a data set has no # in it")
        for name in ("unit", "owner", "purpose"):
            check_text(getattr(self, name), name)
        if check_int(self.rows_per_unit, "rows_per_unit") < 1:
            raise ArgumentError("rows_per_unit must be at least 1")
        check_choice(self.relation, RELATIONS, "neighbours")

    def to_dict(self) -> dict[str, Any]:
        """As facts."""
        return dict(self.__dict__)

    @classmethod
    def from_dict(cls, facts: Any) -> Declaration:
        """Read what :meth:`to_dict` wrote."""
        try:
            return cls(**facts)
        except (TypeError, ArgumentError):
            raise LedgerError("the ledger's declaration cannot be read") from None

    def cost_of(self, event: Event) -> Totals:
        """Return what a release counts for; refuse one with another unit of privacy."""
        if (event.unit, event.rows_per_unit) != (self.unit, self.rows_per_unit):
            raise LedgerError(
                f"the ledger counts what is spent of {self.unit!r} with up to "
                f"{self.rows_per_unit} rows, and this release protects {event.unit!r} with up to "
                f"{event.rows_per_unit}: unit and rows_per_unit of the schema must be the ledger's"
            )
        return Totals.of(event.cost(self.relation), event.assumes)

    def outside(self, cost: Cost) -> Event:
        """Return the event of spending from outside, under the ledger's relation and unit."""
        return Event.outside(cost, self.relation, unit=self.unit, rows_per_unit=self.rows_per_unit)


@dataclass(frozen=True)
class Standing:
    """Limit and sums of a ledger after a line. Public.

    Attributes
    ----------
    limit : Limit
    current : Totals
        Since the rows were last declared new.
    lifetime : Totals
        Over the whole life of the ledger.
    epoch : int
        How often the rows have been declared new.
    time : str
        The time of the last line that has one.
    complete : bool
        Whether the sums state what they assume; in lines of earlier versions they do not.
    """

    limit: Limit
    current: Totals = field(default_factory=Totals)
    lifetime: Totals = field(default_factory=Totals)
    epoch: int = 0
    time: str = ""
    complete: bool = field(default=True, compare=False)

    def at(self, time: str) -> Standing:
        """Move on to a later time; refuse a clock that was set back."""
        if time < self.time and _seconds(time) < _seconds(self.time) - _TOLERANCE:
            raise LedgerError(
                f"the clock says {time}, which is before the ledger's last entry, {self.time}: set "
                "the clock right. Nothing was released"
            )
        return replace(self, time=max(time, self.time))

    def debited(
        self, costs: Sequence[Totals], data_set: str, what: str = "release"
    ) -> list[Standing]:
        """Return the standing after each of some debits; refuse all if one exceeds the limit."""
        for cost in costs:
            if reason := self.limit.refuses(cost, what):
                raise LedgerError(f"the ledger of {data_set!r} cannot take this {what}: {reason}")
        found = self.added(costs)
        if not self.limit.admits(found[-1].current):
            raise BudgetExceeded(self._refusal(costs, data_set, what))
        return found

    def added(self, costs: Sequence[Totals]) -> list[Standing]:
        """Return the standing after each of some debits, whatever the limit says."""
        found, at = [], self
        for cost in costs:
            at = replace(at, current=at.current + cost, lifetime=at.lifetime + cost)
            found.append(at)
        return found

    @property
    def left(self) -> Left:
        """What the limit leaves."""
        return Left.of(self.limit, self.current)

    def _refusal(self, costs: Sequence[Totals], data_set: str, what: str) -> str:
        limit, together = self.limit, sum(costs, start=Totals())
        priced = f"this {what} costs" if len(costs) == 1 else f"{len(costs)} {what}s cost"
        return (
            f"the ledger of {data_set!r} does not allow this: {priced} {limit.shown(together)}, "
            f"and {limit.shown(self.current)} of {limit} is spent already. Nothing was read or "
            "spent"
        )

    def credited(self, cost: Totals, epoch: int) -> Standing:
        """Return the standing after a debit of that epoch became void."""
        current = self.current - cost if epoch == self.epoch else self.current
        return replace(self, current=current, lifetime=self.lifetime - cost)

    def refreshed(self) -> Standing:
        """Return the standing after the rows were declared new."""
        return replace(self, current=Totals(), epoch=self.epoch + 1)

    def to_dict(self) -> dict[str, Any]:
        """As facts."""
        return {
            "limit": self.limit.to_dict(),
            "current": self.current.to_dict(),
            "lifetime": self.lifetime.to_dict(),
            "epoch": self.epoch,
            "time": self.time,
            "form": _FORM_OF_SUMS,
        }

    def as_written_before(self) -> Standing:
        """Remove what the sums assume, which earlier versions did not write."""
        current, lifetime = (replace(sums, assumes=()) for sums in (self.current, self.lifetime))
        return replace(self, current=current, lifetime=lifetime)

    @classmethod
    def from_dict(cls, facts: Any) -> Standing:
        """Read what :meth:`to_dict` wrote."""
        keys = {"limit", "current", "lifetime", "epoch", "time"}
        if not isinstance(facts, Mapping) or set(facts) - {"form"} != keys:
            raise LedgerError("the ledger contains sums of an unknown format")
        if facts.get("form", _FORM_OF_SUMS) != _FORM_OF_SUMS:
            raise LedgerError("the ledger contains sums of an unknown format")
        epoch, time = facts["epoch"], facts["time"]
        if not isinstance(epoch, int) or not isinstance(time, str):
            raise LedgerError("the ledger contains sums of an unknown format")
        return cls(
            Limit.from_dict(facts["limit"]),
            Totals.from_dict(facts["current"]),
            Totals.from_dict(facts["lifetime"]),
            epoch,
            time,
            "form" in facts,
        )


def minute(seconds: float | None = None) -> str:
    """Return UTC to the minute: finer times of debits would reveal how long a computation took."""
    return clock.strftime(_FORM, clock.gmtime(clock.time() if seconds is None else seconds))


def _seconds(text: str) -> int:
    from calendar import timegm

    try:
        return timegm(clock.strptime(text, _FORM))
    except ValueError:
        raise LedgerError("the ledger contains a value that is not a time") from None
