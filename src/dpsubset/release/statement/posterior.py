"""What epsilon means for an attacker's guess: e^eps / (1 + e^eps), never rounded down.

Let a fact about one privacy unit have probability 1/2 for an attacker who knows all other rows.
Under a pure guarantee the release changes its odds by a factor of at most e^eps: from 1 to at most
e^eps. That is a probability of e^eps / (1 + e^eps).

With a delta there is no such bound for every single release, but there is one for guesses: a guess
between two neighbours is right with probability (1 + t) / 2, where t is the total variation between
the releases from either. The definition, for an event and, with the neighbours exchanged, for its
complement, gives t <= (e^eps - 1 + 2 delta) / (e^eps + 1). So a guess is right with probability at
most (e^eps + delta) / (1 + e^eps).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from math import ceil
from typing import Any

from ...privacy.relations import Neighbours

#: Above this epsilon the probability is 1 to 40 digits.
_LARGEST = 100


def posterior_bound(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """Return (e^eps + delta) / (1 + e^eps), rounded up by less than 1e-30."""
    if epsilon == 0:
        return min((1 + delta) / 2, Fraction(1))
    if epsilon > _LARGEST:
        return Fraction(1)
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        exponent = Decimal(-epsilon.numerator) / epsilon.denominator
        # Decimal's exp is right to half a unit of its last digit.
        least = Fraction(exponent.exp().next_minus())
    # (1 + delta x) / (1 + x) falls with x = e^-eps.
    return min((1 + delta * least) / (1 + least), Fraction(1))


def percent(probability: Fraction) -> str:
    """Write a probability in percent, rounded up to a tenth."""
    return f"{Decimal(ceil(1000 * probability)) / 10:f}".removesuffix(".0")


@dataclass(frozen=True)
class Posterior:
    """How sure an attacker can become who was 50 % sure, under one relation of neighbours."""

    relation: Neighbours
    epsilon: Fraction
    delta: Fraction

    @property
    def percent(self) -> str:
        """The bound in percent, rounded up."""
        return percent(posterior_bound(self.epsilon, self.delta))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "relation": self.relation,
            "from_percent": 50,
            "to_at_most_percent": float(self.percent),
            "of": "guesses, on average" if self.delta else "every release",
        }
