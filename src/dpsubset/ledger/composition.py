"""What several releases cost together, and whether a limit has room for one more.

Costs are added up as five sums, which is all that any of the ways below needs:

=============  ==============================================================
pure           of the epsilons of pure releases
pure_rho       of what these are as rho: epsilon^2 / 2, or / 8 where bounded
rho            of the rhos of concentrated releases
approximate    of the epsilons of approximate releases; approximate_rho likewise
delta          of their deltas
=============  ==============================================================

A limit says in which way they count:

*epsilon*
    pure <= epsilon. Releases that are not pure are refused.
*rho*
    pure_rho + rho <= rho. Approximate releases are refused.
*epsilon and delta*, "concentrated"
    pure <= epsilon if all releases are pure; or else the deltas add up to delta / 2 or less and
    epsilon_of(pure_rho + rho + approximate_rho, delta / 2) <= epsilon. With many small releases
    this is the advanced composition of Dwork, Rothblum and Vadhan (2010), with better constants.
    The halves are fixed beforehand: an analyst could choose between other parts by what was seen.
*epsilon and delta*, "basic"
    epsilons and deltas add up, those of concentrated releases as they were stated.

Some releases cost what they state only under an assumption that nobody has checked. A sum with such
a release in it holds under the same assumption, so sums keep these assumptions, each with the
number of releases that it comes from, and whoever shows a sum names them.

Sums of a ledger bound an adaptive analyst, who chooses each release by looking at the ones before,
its cost included: `proofs/composition.md`, section "What a ledger's sum means".
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

    ``stated`` and ``stated_delta`` are what concentrated releases were stated as. ``assumes`` has
    what the sums hold only under, in words, each with the number of releases that it comes from.
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
        """Of one release, and of what its guarantee takes for granted."""
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
        return _of_sums((_kept(a + b) if b else a for a, b in pairs), together)

    def __sub__(self, other: Totals) -> Totals:
        """Without a release that was counted; never below what the others cost."""
        pairs = zip(self._all(), other._all(), strict=True)
        left = Counter(dict(self.assumes)) - Counter(dict(other.assumes))
        return _of_sums((_kept(a - b) for a, b in pairs), left)

    def __le__(self, other: Totals) -> bool:
        """In every way of counting, and under no further assumption."""
        within = all(a <= b for a, b in zip(self._all(), other._all(), strict=True))
        return within and dict(self.assumes).keys() <= dict(other.assumes).keys()

    @property
    def assumed(self) -> str | None:
        """What the sums hold only under, in words; None if nothing is assumed."""
        return "; and ".join(text for text, _ in self.assumes) or None

    @property
    def proviso(self) -> str:
        """A sentence on that, for people; empty if nothing is assumed."""
        if self.assumed is None:
            return ""
        count = sum(number for _, number in self.assumes)
        which = "a release" if count == 1 else f"{count} releases"
        return (
            f"That sum includes {which} by assumption. It holds only if {self.assumed}. Nobody has "
            "checked that, and it may be false."
        )

    @property
    def is_pure(self) -> bool:
        """Whether pure releases are all there is."""
        return not (self.rho or self.approximate or self.delta or self.stated)

    def to_dict(self) -> dict[str, Any]:
        """As facts; what is 0 is left out, and so is what is assumed if that is nothing."""
        sums = zip(_SUMS, self._all(), strict=True)
        return {
            **{name: str(value) for name, value in sums if value},
            **({_ASSUMES: dict(self.assumes)} if self.assumes else {}),
        }

    @classmethod
    def from_dict(cls, facts: Any) -> Totals:
        """From its facts, or a clear error."""
        wrong = LedgerError("the ledger holds totals of a form that is not known here")
        if not isinstance(facts, Mapping) or not set(facts) <= {*_SUMS, _ASSUMES}:
            raise wrong
        assumed = facts.get(_ASSUMES, {})
        if not isinstance(assumed, Mapping):
            raise wrong
        if not all(isinstance(n, int) and n > 0 for n in assumed.values()):
            raise wrong
        sums = {name: parse_rational(text) for name, text in facts.items() if name != _ASSUMES}
        return cls(**sums, assumes=_listed(assumed))

    def _all(self) -> tuple[Fraction, ...]:
        return tuple(getattr(self, name) for name in _SUMS)


_ASSUMES = "assumes"
_SUMS = tuple(field.name for field in fields(Totals) if field.name != _ASSUMES)


def _of_sums(sums: Iterable[Fraction], assumed: Mapping[str, int]) -> Totals:
    named: dict[str, Any] = dict(zip(_SUMS, sums, strict=True))
    return Totals(**named, assumes=_listed(assumed))


def _listed(assumed: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """In one order, so that equal sums are equal."""
    return tuple(sorted(assumed.items()))


def _kept(number: Fraction) -> Fraction:
    """The same, or a little more with a denominator that can be written down."""
    if number.denominator.bit_length() <= _MOST_BITS:
        return number
    return Fraction(-(-number.numerator * 2**_KEPT_BITS // number.denominator), 2**_KEPT_BITS)


@dataclass(frozen=True)
class Limit:
    """Most that releases may cost together: epsilon, epsilon and delta, or rho.

    Attributes
    ----------
    epsilon, delta, rho : Fraction, optional
        Either epsilon, or both epsilon and delta, or rho alone.
    accounting : {"concentrated", "basic"}
        With a delta: how epsilons and deltas count.
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
        """In which measure it is."""
        if self.rho is not None:
            return "zcdp"
        return "approximate" if self.delta else "pure"

    @property
    def measure(self) -> tuple[str, str | None]:
        """What is fixed for the life of a ledger: the kind, and with a delta the accounting."""
        return self.kind, self.accounting if self.kind == "approximate" else None

    def refuses(self, cost: Totals) -> str | None:
        """Why a release of this kind is never admitted, however small; None if it may be."""
        if self.kind == "pure" and not cost.is_pure:
            return "its limit is a pure epsilon, and this release is not purely private"
        if self.kind == "zcdp" and (cost.approximate or cost.delta):
            return "its limit is a rho, and this release has none"
        return None

    def admits(self, totals: Totals) -> bool:
        """Whether releases that cost this together are within the limit."""
        if self.refuses(totals):
            return False
        spent = self.spent(totals)
        if spent is None:
            return False
        most = self.epsilon if self.rho is None else self.rho
        assert most is not None
        return spent[0] <= most and spent[1] <= self.delta

    def spent(self, totals: Totals) -> tuple[Fraction, Fraction] | None:
        """Epsilon or rho, and delta, in the measure of the limit; None if nothing bounds them."""
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
        """What has been spent, for people: rounded up."""
        spent = self.spent(totals)
        if spent is None:
            return "more than any number of this measure"
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
        """As facts."""
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
        """From its facts, or a clear error."""
        wrong = LedgerError("the ledger holds a limit of a form that is not known here")
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
