"""What a release costs, and how the costs of several steps add up.

A `Cost` is epsilon, delta, or both, under one relation of neighbours: exact rationals, no floats.
Costs add up with ``+``. A sum remembers its terms and is worked out from all of them together, so
that neither order nor brackets matter. Later steps may depend on what earlier ones released, but
what each of them may cost is fixed beforehand.

Let P and P' be the probabilities, on two neighbours, of all that the steps release: products of
what each step has, given the earlier ones. There are three kinds of steps:

*pure*, epsilon_i
    P / P' has a factor of at most exp(epsilon_i).
*approximate*, epsilon_i and delta_i
    The same for all but a mass delta_i of P: for the part min(P, exp(epsilon_i) P').
*concentrated*, rho_i
    log(P / P') has a term Z_i with E[exp((alpha - 1) Z_i)] <= exp((alpha - 1) alpha rho_i) for
    every alpha > 1, whatever was released before.

Set the masses aside: at most d, the sum of the delta_i. For the rest, P / P' is at most
exp(e + c + Z), with e and c the sums of the pure and of the approximate epsilons and Z the sum of
the Z_i. Taken from the last step to the first, E[exp((alpha - 1) Z)] <= exp((alpha - 1) alpha rho),
rho the sum of the rho_i: steps of the other kinds count as 1 at most. So what P has above
exp(t + e + c) P' is at most d + E[max(0, 1 - exp(t - Z))], and `accounting.epsilon_of` has a t for
which the mean is at most delta. Two ways are sound, and a sum takes the one with less epsilon:

1.  as above: epsilon_of(rho, delta) + e + c, with delta + d;
2.  a pure step is a concentrated one too, with rho_i = epsilon_i^2 / 2 (Bun and Steinke 2016,
    Proposition 1.4), or epsilon_i^2 / 8 if log(P / P') lies in an interval of that length, as that
    of the exponential mechanism does (`proofs/composition.md`). Counted as such:
    epsilon_of(rho + sum of these, delta) + c, with delta + d.

The first is better for few large pure steps, the second for many small ones. Without concentrated
steps epsilons and deltas simply add up.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from ..base.rounding import float_up, round_up_to_writable
from .accounting import epsilon_of
from .relations import PUBLIC_N, RELATIONS, Neighbours


@dataclass(frozen=True)
class Cost:
    """What a release costs under one relation of neighbours.

    ``Cost(epsilon)`` is pure, ``Cost(epsilon, delta)`` approximate, :meth:`concentrated` keeps rho.
    ``a + b`` and ``sum(costs)`` are what several releases from the same table cost together.

    Attributes
    ----------
    epsilon, delta : Fraction
        The release is (epsilon, delta)-private. Exact, unless a number takes many thousands of
        digits, which is rounded up (`round_up_to_writable`), so that every cost can be written
        down.
    rho : Fraction, optional
        If zero-concentrated privacy was accounted for: the release is rho-zCDP, a stronger
        statement than epsilon at one delta.
    terms : tuple of Cost
        Terms of a sum; empty for other costs.
    bounded_range : bool
        For a pure cost: whether the log of the quotient of probabilities lies in an interval of
        length epsilon, as for the exponential mechanism, instead of 2 epsilon.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    terms: tuple[Cost, ...] = field(default=(), repr=False)
    bounded_range: bool = False

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "rho"):
            number = getattr(self, name)
            if number is None:
                continue
            # A float may be rounded to either side.
            if not isinstance(number, (int, Fraction)):
                raise TypeError("a cost is made of exact rationals")
            # Integers become fractions, since a quotient of integers would be a float. Huge numbers
            # are rounded up: a release that was paid for must not fail because of its cost.
            object.__setattr__(self, name, round_up_to_writable(Fraction(number)))
        if self.epsilon < 0 or not 0 <= self.delta <= 1:
            raise ValueError("epsilon must not be negative, and delta lies between 0 and 1")
        plain = self.rho is not None and not self.terms
        if plain and self.epsilon < epsilon_of(self.rho, self.delta):
            raise ValueError("rho costs more than this epsilon at this delta")
        if self.bounded_range and (self.kind != "pure" or self.terms):
            raise ValueError("only a single pure cost has a range")

    @classmethod
    def concentrated(cls, rho: Fraction, delta: Fraction) -> Cost:
        """The cost of a rho-zCDP release, reported as epsilon at this delta."""
        rho, delta = round_up_to_writable(rho), round_up_to_writable(delta)
        return cls(epsilon_of(rho, delta), delta, rho)

    @property
    def kind(self) -> Literal["pure", "concentrated", "approximate"]:
        """Pure without delta; concentrated if all of it is accounted for by rho."""
        if self.rho is not None:
            return "concentrated"
        return "approximate" if self.delta else "pure"

    @property
    def as_rho(self) -> Fraction:
        """The rho of a pure cost, or of an approximate one except for a mass delta."""
        return round_up_to_writable(self.epsilon**2 / (8 if self.bounded_range else 2))

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return _composed((*self._listed(), *other._listed()))

    def __radd__(self, other: int) -> Cost:
        """Support ``sum``, which starts from 0."""
        return self if other == 0 else NotImplemented

    def group_privacy(self, rows: int) -> Cost:
        """Cost for tables that differ in up to this number of rows. Only for pure costs."""
        if rows == 1:
            return self
        if self.terms:
            return _composed(term.group_privacy(rows) for term in self.terms)
        if self.kind != "pure":
            raise ValueError("group privacy is computed for pure costs only")
        return Cost(self.epsilon * rows, bounded_range=self.bounded_range)

    @classmethod
    def largest(cls, costs: Iterable[Cost]) -> Cost:
        """The smallest cost that covers a release with any of these costs, none of them a sum."""
        each = tuple(dict.fromkeys(costs))
        if len(each) == 1:
            return each[0]
        delta = max(cost.delta for cost in each)
        if all(cost.kind == "concentrated" for cost in each):
            return cls.concentrated(max(cost.rho for cost in each if cost.rho is not None), delta)
        bounded = all(cost.bounded_range for cost in each)
        return cls(max(cost.epsilon for cost in each), delta, bounded_range=bounded)

    def _listed(self) -> tuple[Cost, ...]:
        return self.terms or (self,)

    def to_dict(self) -> dict[str, str | bool | None]:
        """As plain values, exact: rationals are text."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "rho": None if self.rho is None else str(self.rho),
            **({"bounded_range": True} if self.bounded_range else {}),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Cost:
        """Read what :meth:`to_dict` wrote; a sum comes back as one cost."""
        rho = None if facts["rho"] is None else Fraction(facts["rho"])
        bounded = facts.get("bounded_range") is True
        return cls(Fraction(facts["epsilon"]), Fraction(facts["delta"]), rho, bounded_range=bounded)


def _composed(terms: Iterable[Cost]) -> Cost:
    """The sum of terms that are no sums themselves; see the module's docstring."""
    terms = tuple(
        sorted(terms, key=lambda t: (t.kind, t.epsilon, t.delta, t.rho or 0, t.bounded_range))
    )
    pure, concentrated, approximate = (
        [term for term in terms if term.kind == kind]
        for kind in ("pure", "concentrated", "approximate")
    )
    epsilon = sum((term.epsilon for term in (*pure, *approximate)), Fraction(0))
    delta = sum((term.delta for term in approximate), Fraction(0))
    if not concentrated:
        return Cost(epsilon, _probability(delta), terms=terms)
    # Parts of one release have one delta. Otherwise the largest is used; any delta would be sound.
    shown_at = max(term.delta for term in concentrated)
    rho = sum((term.rho for term in concentrated if term.rho is not None), Fraction(0))
    every_rho = rho + sum((term.as_rho for term in pure), Fraction(0))
    alone = sum((term.epsilon for term in approximate), Fraction(0))
    epsilon = min(epsilon_of(rho, shown_at) + epsilon, epsilon_of(every_rho, shown_at) + alone)
    return Cost(
        epsilon,
        _probability(shown_at + delta),
        # Approximate terms have no rho.
        None if approximate else every_rho,
        terms,
    )


def _probability(delta: Fraction) -> Fraction:
    """A delta of at most 1: larger sums of deltas are equivalent to 1."""
    return min(delta, Fraction(1))


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee, computed from the constants the mechanism actually uses.

    Attributes
    ----------
    neighbours : {"replace-one", "add-remove"}
        Which data sets count as neighbours.
    costs : mapping from relation to Cost
        Cost of the release under each relation. Empty if there is no guarantee.
    seeded : bool
        A seeded draw is reproducible, hence not private.
    assumes : str, optional
        An assumption of the guarantee that has not been checked.
    parts : tuple of (name, Guarantee)
        The steps of a release of several steps; see :meth:`compose`.
    """

    neighbours: Neighbours
    costs: Mapping[Neighbours, Cost]
    seeded: bool = False
    assumes: str | None = None
    parts: tuple[tuple[str, Guarantee], ...] = ()

    @classmethod
    def of_weight(
        cls,
        eta: Fraction,
        score_range: Callable[[Neighbours], Fraction],
        neighbours: Neighbours,
        seeded: bool,
    ) -> Guarantee:
        """Guarantee of a mechanism whose privacy loss is at most eta times the range of scores."""
        costs = {relation: Cost(eta * score_range(relation)) for relation in RELATIONS}
        return cls(neighbours, costs, seeded)

    @classmethod
    def compose(cls, parts: Mapping[str, Guarantee]) -> Guarantee:
        """Guarantee of a release of several steps, each with a name and a guarantee.

        The cost under a relation is the sum of the costs of the steps. If a step has no cost under
        a relation, neither has the release, nor any of its steps. The release is seeded if any step
        is, and has the assumptions of all steps.
        """
        if len({part.neighbours for part in parts.values()}) != 1:
            raise ValueError("the parts of a guarantee are one or more, of the same neighbours")
        first, *_ = steps = list(parts.values())
        costs: dict[Neighbours, Cost] = {}
        for relation in RELATIONS:
            known = [step.costs[relation] for step in steps if relation in step.costs]
            if len(known) == len(steps):
                costs[relation] = sum(known[1:], start=known[0])
        assumed = dict.fromkeys(step.assumes for step in steps if step.assumes is not None)
        return cls(
            first.neighbours,
            costs,
            any(step.seeded for step in steps),
            "; and ".join(assumed) or None,
            tuple((name, part.limited_to(costs)) for name, part in parts.items()),
        )

    @classmethod
    def largest(cls, guarantees: Sequence[Guarantee]) -> Guarantee:
        """Guarantee of a step whose public setting an earlier step determines, from the guarantees
        of all settings.

        The cost under a relation is the largest one. There is none if a setting has none.
        """
        first, *others = guarantees
        if any(each.assumes != first.assumes or each.parts for each in others):
            raise ValueError("these guarantees differ in more than their costs")
        costs = {
            relation: Cost.largest(each.costs[relation] for each in guarantees)
            for relation in RELATIONS
            if all(relation in each.costs for each in guarantees)
        }
        return replace(first, costs=costs)

    def limited_to(self, relations: Iterable[Neighbours]) -> Guarantee:
        """The guarantee and its parts with costs under these relations alone."""
        kept = tuple(relations)
        return replace(
            self,
            costs={relation: cost for relation, cost in self.costs.items() if relation in kept},
            parts=tuple((name, part.limited_to(kept)) for name, part in self.parts),
        )

    def group_privacy(self, rows: int) -> Guarantee:
        """The guarantee for a privacy unit of up to this number of rows.

        Tables that differ in that many rows are connected by as many neighbours, and each step has
        the cost of one row.
        """
        if rows == 1:
            return self
        return replace(
            self,
            costs={relation: cost.group_privacy(rows) for relation, cost in self.costs.items()},
            parts=tuple((name, part.group_privacy(rows)) for name, part in self.parts),
        )

    @property
    def proven(self) -> bool:
        """Whether there is a guarantee at all."""
        return self.neighbours in self.costs

    @property
    def private(self) -> bool:
        """Whether the release is private without any assumption."""
        return self.proven and not self.seeded and self.assumes is None

    @property
    def tells_rows(self) -> bool:
        """Whether the number of rows may be part of the release.

        It may if n is public and no cost is stated for tables of different sizes. Otherwise n alone
        would show whether a row is in the table to anyone who knows all other rows.
        """
        return {self.neighbours, *self.costs} <= set(PUBLIC_N)

    @property
    def epsilon(self) -> Fraction | None:
        """Under the declared neighbours; None without a guarantee."""
        return self.costs[self.neighbours].epsilon if self.proven else None

    @property
    def delta(self) -> Fraction:
        """Under the declared neighbours; 0 for a pure guarantee, 1 without any."""
        return self.costs[self.neighbours].delta if self.proven else Fraction(1)

    @property
    def rho(self) -> Fraction | None:
        """Under the declared neighbours; None unless all of it is accounted for by rho."""
        return self.costs[self.neighbours].rho if self.proven else None

    @property
    def epsilon_if_replace_one(self) -> Fraction | None:
        """Epsilon if one row is replaced; None if that is not known."""
        return self.costs["replace-one"].epsilon if "replace-one" in self.costs else None

    @property
    def epsilon_if_add_remove(self) -> Fraction | None:
        """Epsilon if one row is added or removed; None if that is not known."""
        return self.costs["add-remove"].epsilon if "add-remove" in self.costs else None

    def to_dict(self, **context: Any) -> dict[str, Any]:
        """As plain values: floats rounded up for people, exact rationals beside them.

        Parameters
        ----------
        **context
            Public facts that the numbers refer to, such as the unit of privacy. They stand after
            the relation of neighbours.
        """
        parts = [
            {"name": name, **part._totals(), **part._by_relation()} for name, part in self.parts
        ]
        return {
            "private": self.private,
            "seeded": self.seeded,
            **self._totals(),
            "neighbours": self.neighbours,
            **context,
            **self._by_relation(),
            **({"parts": parts} if parts else {}),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Guarantee:
        """Read what :meth:`to_dict` wrote. Only exact numbers are used."""

        def guarantee(each: Mapping[str, Any]) -> Guarantee:
            costs = {relation: Cost.from_dict(cost) for relation, cost in each["costs"].items()}
            return cls(facts["neighbours"], costs, facts["seeded"], each["assumes"])

        if "parts" not in facts:
            return guarantee(facts)
        parts = {part["name"]: guarantee(part) for part in facts["parts"]}
        # Files of earlier versions state costs of parts that the whole does not have.
        return replace(cls.compose(parts), parts=tuple(parts.items()))

    def _totals(self) -> dict[str, Any]:
        return {
            "epsilon": _float_up(self.epsilon),
            "epsilon_exact": None if self.epsilon is None else str(self.epsilon),
            "delta": float_up(self.delta),
            "assumes": self.assumes,
        }

    def _by_relation(self) -> dict[str, Any]:
        """Costs under both relations, with rho where zero-concentrated privacy has one."""
        found: dict[str, Any] = {}
        for relation in RELATIONS:
            cost, name = self.costs.get(relation), relation.replace("-", "_")
            found[f"epsilon_if_{name}"] = None if cost is None else float_up(cost.epsilon)
            found[f"delta_if_{name}"] = None if cost is None else float_up(cost.delta)
        rhos = {relation: cost.rho for relation, cost in self.costs.items() if cost.rho is not None}
        if rhos:
            found["rho"] = _float_up(self.rho)
            for relation in RELATIONS:
                found[f"rho_if_{relation.replace('-', '_')}"] = _float_up(rhos.get(relation))
        costs = {relation: cost.to_dict() for relation, cost in self.costs.items()}
        return {**found, "costs": costs}

    def __str__(self) -> str:
        if not self.proven:
            return "NO PRIVACY GUARANTEE"
        cost = self.costs[self.neighbours]
        kind, rest = ("approximate", "") if cost.delta else ("pure", ", delta = 0")
        text = f"{kind} {shown_cost(cost)}{rest}, {self.neighbours} neighbours"
        if self.parts:
            text += f", the total of {shown_parts(self)}"
        if self.assumes:
            text += f", ASSUMING that {self.assumes}"
        return "NOT PRIVATE (seeded draw); unseeded: " + text if self.seeded else text


def _float_up(number: Fraction | None) -> float | None:
    return None if number is None else float_up(number)


def shown_cost(cost: Cost) -> str:
    """Epsilon, and delta if there is one, rounded up for display."""
    delta = f" and delta = {shown_up(cost.delta)}" if cost.delta else ""
    return f"epsilon = {shown_up(cost.epsilon)}{delta}"


def shown_parts(guarantee: Guarantee) -> str:
    """The costs of the steps of a release, under the declared neighbours, for display."""
    shown = []
    for name, part in guarantee.parts:
        cost = part.costs.get(part.neighbours)
        shown.append(f"{step_name(name)} ({shown_cost(cost) if cost else 'no guarantee'})")
    return " and ".join(shown)


def step_name(name: str) -> str:
    """Return the name of a step for display; release files keep an older name of one step."""
    return "the range of the response" if name == "the scale of the response" else name


def shown_up(x: Fraction, digits: int = 6) -> str:
    """x to a few digits, rounded up, so that no displayed cost is too small."""
    return _rounded(x, digits, decimal.ROUND_CEILING)


def shown_down(x: Fraction, digits: int = 6) -> str:
    """x to a few digits, rounded down, so that no displayed budget is too large."""
    return _rounded(x, digits, decimal.ROUND_FLOOR)


def _rounded(x: Fraction, digits: int, rounding: str) -> str:
    with decimal.localcontext(prec=digits, rounding=rounding):
        return f"{float(decimal.Decimal(x.numerator) / x.denominator):.{digits}g}"
