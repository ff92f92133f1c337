"""What epsilon means for somebody's guess: e^eps / (1 + e^eps), never rounded down.

Let a fact about one unit be as likely as not, before the release, for somebody who knows all other
rows. Under a pure guarantee its odds change by a factor of at most e^eps, whatever is released:
from 1 to at most e^eps. That is a probability of e^eps / (1 + e^eps).

With a delta there is no such bound for every single release. What there is: a guess between two
neighbours is right with probability (1 + t) / 2, t the total variation between what is released
on either, and t <= (e^eps - 1 + 2 delta) / (e^eps + 1) by the definition for an event and, with the
neighbours exchanged, for its complement. So guesses are right at most (e^eps + delta) / (1 + e^eps)
of the time.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from math import ceil

#: Beyond it the figure is 1 to 40 digits.
_LARGEST = 100


def sure(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """(e^eps + delta) / (1 + e^eps), above it by less than 1e-30."""
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


def percent(share: Fraction) -> str:
    """For people: to a tenth of a percent, rounded up."""
    return f"{Decimal(ceil(1000 * share)) / 10:f}".removesuffix(".0")
