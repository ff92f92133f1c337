"""The cost of several releases together, and whether a limit admits one more.

Costs are added up as five sums, which suffice for all ways of accounting:

=============  ==============================================================
pure           epsilons of pure releases
pure_rho       the same as rho: epsilon^2 / 2, or epsilon^2 / 8 for a bounded range
rho            rhos of concentrated releases
approximate    epsilons of approximate releases; approximate_rho: the same as rho
delta          deltas of approximate releases
=============  ==============================================================

A limit fixes the way of accounting:

*epsilon*
    pure <= epsilon. Releases that are not pure are refused.
*rho*
    pure_rho + rho <= rho. Approximate releases are refused.
*epsilon and delta*, "concentrated"
    pure <= epsilon if all releases are pure; or else the deltas add up to delta / 2 or less and
    epsilon_of(pure_rho + rho + approximate_rho, delta / 2) <= epsilon. With many small releases
    this is the advanced composition of Dwork, Rothblum and Vadhan (2010), with better constants.
    The halves are fixed beforehand, because an analyst could choose other parts after seeing
    releases.
*epsilon and delta*, "basic"
    epsilons and deltas add up, those of concentrated releases as they were stated.

The cost of some releases holds only under an assumption that has not been checked. A sum that
includes such a release holds under the same assumption. So sums keep their assumptions, each with
the number of releases that make it, and every output of a sum names them.

The sums of a ledger also hold for an adaptive analyst, who chooses each release and its cost by the
results of earlier ones: `proofs/composition.md`, section "What a ledger's sum means".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from ..base.errors import ArgumentError, LedgerError
from ..privacy.accounting import epsilon_of
from ..privacy.guarantee import Cost, shown_up
from .canonical import parse_rational
from .event import terms_of

Accounting = Literal["concentrated", "basic"]

#: Denominators of sums stay below so many bits. Costs whose noise has a float for its scale have
#: odd ones, and sums of these would grow without end.
_MOST_BITS = 2048
_KEPT_BITS = 1024


@dataclass(frozen=True)
class Totals:
    """Sums of costs under one relation. Public; see the head of this module.

    ``stated`` and ``stated_delta`` are the epsilons and deltas that concentrated releases stated.
    ``assumes`` has the assumptions in words, each with the number of releases that make it.
    """

    pure: Fraction = Fraction(0)
    pure_rho: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    stated: Fraction = Fraction(0)
    stated_delta: Fraction = Fraction(0)
    approximate: Fraction = Fraction(0)
    approximate_rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    assumes: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, cost: Cost, assumes: str | None = None) -> Totals:
        """Return the sums of one release, and what its guarantee assumes."""
        found = dict.fromkeys(_SUMS, Fraction(0))
        for term in terms_of(cost):
            if term.kind == "pure":
                found["pure"] += term.epsilon
                found["pure_rho"] += term.as_rho
            elif term.kind == "concentrated":
                assert term.rho is not None
                found["rho"] += term.rho
                found["stated"] += term.epsilon
                found["stated_delta"] += term.delta
            else:
                found["approximate"] += term.epsilon
                found["approximate_rho"] += term.as_rho
                found["delta"] += term.delta
        return cls(**found, assumes=() if assumes is None else ((assumes, 1),))

    def __add__(self, other: Totals) -> Totals:
        pairs = zip(self._all(), other._all(), strict=True)
        together = Counter(dict(self.assumes)) + Counter(dict(other.assumes))
        return _of_sums((_round_up_if_long(a + b) if b else a for a, b in pairs), together)

    def __sub__(self, other: Totals) -> Totals:
        """Subtract a release that was counted; never below the cost of the others."""
        pairs = zip(self._all(), other._all(), strict=True)
        left = Counter(dict(self.assumes)) - Counter(dict(other.assumes))
        return _of_sums((_round_up_if_long(a - b) for a, b in pairs), left)

    def __le__(self, other: Totals) -> bool:
        """Compare every sum; the left side may make no further assumption."""
        within = all(a <= b for a, b in zip(self._all(), other._all(), strict=True))
        return within and dict(self.assumes).keys() <= dict(other.assumes).keys()

    @property
    def assumed(self) -> str | None:
        """What the sums assume, in words; None if nothing is assumed."""
        return "; and ".join(text for text, _ in self.assumes) or None

    @property
    def proviso(self) -> str:
        """A sentence that names the assumptions; empty if nothing is assumed."""
        if self.assumed is None:
            return ""
        count = sum(number for _, number in self.assumes)
        which = "a release" if count == 1 else f"{count} releases"
        return (
            f"That sum includes {which} by assumption. It holds only if {self.assumed}. This has "
            "not been checked and may be false."
        )

    @property
    def is_pure(self) -> bool:
        """Whether all counted releases are pure."""
        return not (self.rho or self.approximate or self.delta or self.stated)

    def to_dict(self) -> dict[str, Any]:
        """As facts, without sums that are 0 and without an empty list of assumptions."""
        sums = zip(_SUMS, self._all(), strict=True)
        return {
            **{name: str(value) for name, value in sums if value},
            **({_ASSUMES: dict(self.assumes)} if self.assumes else {}),
        }

    @classmethod
    def from_dict(cls, facts: Any) -> Totals:
        """Read what :meth:`to_dict` wrote."""
        wrong = LedgerError("the ledger contains totals of an unknown format")
        if not isinstance(facts, Mapping) or not set(facts) <= {*_SUMS, _ASSUMES}:
            raise wrong
        assumed = facts.get(_ASSUMES, {})
        if not isinstance(assumed, Mapping):
            raise wrong
        if not all(isinstance(n, int) and n > 0 for n in assumed.values()):
            raise wrong
        sums = {name: parse_rational(text) for name, text in facts.items() if name != _ASSUMES}
        return cls(**sums, assumes=_sorted_assumptions(assumed))

    def _all(self) -> tuple[Fraction, ...]:
        return tuple(getattr(self, name) for name in _SUMS)


_ASSUMES = "assumes"
_SUMS = tuple(field.name for field in fields(Totals) if field.name != _ASSUMES)


def _of_sums(sums: Iterable[Fraction], assumed: Mapping[str, int]) -> Totals:
    named: dict[str, Any] = dict(zip(_SUMS, sums, strict=True))
    return Totals(**named, assumes=_sorted_assumptions(assumed))


def _sorted_assumptions(assumed: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(assumed.items()))


def _round_up_if_long(number: Fraction) -> Fraction:
    """Round up a number whose denominator is too long to be written."""
    if number.denominator.bit_length() <= _MOST_BITS:
        return number
    return Fraction(-(-number.numerator * 2**_KEPT_BITS // number.denominator), 2**_KEPT_BITS)


@dataclass(frozen=True)
class Limit:
    """The limit of what releases may cost together: epsilon, epsilon and delta, or rho. Public.

    Attributes
    ----------
    epsilon, delta, rho : Fraction, optional
        Either epsilon, or epsilon and delta, or rho.
    accounting : {"concentrated", "basic"}
        How epsilons and deltas count, where there is a delta.
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    accounting: Accounting = "concentrated"

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ArgumentError("a limit is an epsilon, with or without a delta, or a rho")
        for number in (self.epsilon, self.delta, self.rho):
            if number is not None and not isinstance(number, (int, Fraction)):
                raise TypeError("a limit is made of exact rationals")
        most = self.epsilon if self.rho is None else self.rho
        if most is None or most <= 0:
            raise ArgumentError("the limit must be greater than 0")
        if not 0 <= self.delta < 1 or (self.delta and self.rho is not None):
            raise ArgumentError("delta goes with epsilon, and lies between 0 and 1")
        if self.accounting not in ("concentrated", "basic"):
            raise ArgumentError("accounting must be one of concentrated, basic")

    @property
    def kind(self) -> Literal["pure", "zcdp", "approximate"]:
        """The measure of privacy that is limited."""
        if self.rho is not None:
            return "zcdp"
        return "approximate" if self.delta else "pure"

    @property
    def measure(self) -> tuple[str, str | None]:
        """Kind and, with a delta, accounting: both are fixed for the life of a ledger."""
        return self.kind, self.accounting if self.kind == "approximate" else None

    def refuses(self, cost: Totals, what: str = "release") -> str | None:
        """Return why no release of this kind is admitted, however small; None if it may be."""
        if self.kind == "pure" and not cost.is_pure:
            return f"its limit is a pure epsilon, and this {what} is not purely private"
        if self.kind == "zcdp" and (cost.approximate or cost.delta):
            return f"its limit is a rho, and this {what} has none"
        return None

    def admits(self, totals: Totals) -> bool:
        """Return whether releases with these sums are within the limit."""
        if self.refuses(totals):
            return False
        spent = self.spent(totals)
        if spent is None:
            return False
        most = self.epsilon if self.rho is None else self.rho
        assert most is not None
        return spent[0] <= most and spent[1] <= self.delta

    def spent(self, totals: Totals) -> tuple[Fraction, Fraction] | None:
        """Return epsilon or rho, and delta, in the limit's measure; None if nothing bounds them."""
        if self.kind == "pure":
            return (totals.pure, Fraction(0)) if totals.is_pure else None
        if self.kind == "zcdp":
            plain = not (totals.approximate or totals.delta)
            return (totals.pure_rho + totals.rho, Fraction(0)) if plain else None
        if self.accounting == "basic":
            epsilon = totals.pure + totals.stated + totals.approximate
            return epsilon, totals.delta + totals.stated_delta
        assert self.epsilon is not None
        if totals.is_pure and totals.pure <= self.epsilon:
            return totals.pure, Fraction(0)
        rho = totals.pure_rho + totals.rho + totals.approximate_rho
        # With more than its half set aside, delta is passed.
        return epsilon_of(rho, self.delta / 2), 2 * max(totals.delta, self.delta / 2)

    def shown(self, totals: Totals) -> str:
        """Write what has been spent for people, rounded up."""
        spent = self.spent(totals)
        if spent is None:
            return "more than this limit can count"
        name = "epsilon" if self.rho is None else "rho"
        delta = f" and delta = {shown_up(spent[1])}" if spent[1] else ""
        return f"{name} = {shown_up(spent[0])}{delta}{' (by assumption)' * bool(totals.assumes)}"

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho = {shown_up(self.rho)}"
        assert self.epsilon is not None
        if not self.delta:
            return f"epsilon = {shown_up(self.epsilon)}"
        return f"epsilon = {shown_up(self.epsilon)} and delta = {shown_up(self.delta)}"

    def to_dict(self) -> dict[str, str]:
        """As facts: rationals are text."""
        if self.rho is not None:
            return {"rho": str(self.rho)}
        assert self.epsilon is not None
        if not self.delta:
            return {"epsilon": str(self.epsilon)}
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "accounting": self.accounting,
        }

    @classmethod
    def from_dict(cls, facts: Any) -> Limit:
        """Read what :meth:`to_dict` wrote."""
        wrong = LedgerError("the ledger contains a limit of an unknown format")
        known = {"epsilon", "delta", "rho", "accounting"}
        if not isinstance(facts, Mapping) or not set(facts) <= known:
            raise wrong
        numbers = {
            name: parse_rational(text) for name, text in facts.items() if name != "accounting"
        }
        accounting = facts.get("accounting", "concentrated")
        try:
            return cls(**numbers, accounting=accounting)
        except ArgumentError:
            raise wrong from None
