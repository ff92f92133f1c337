"""Warn of an epsilon at which a guarantee protects little."""

from __future__ import annotations

import warnings
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from ..base.errors import LargeEpsilonWarning
from .guarantee import Guarantee, shown_up

#: The largest epsilon without a warning.
LARGEST_WITHOUT_WARNING = 10


def text_of_epsilon(guarantee: Guarantee | None) -> str | None:
    """Return the warning of a private release with a large epsilon, or None.

    A seeded draw is not private at any epsilon, and says so itself.
    """
    epsilon = None if guarantee is None or guarantee.seeded else guarantee.epsilon
    if epsilon is None or epsilon <= LARGEST_WITHOUT_WARNING:
        return None
    shown = shown_up(epsilon)
    return (
        f"epsilon = {shown} protects little: the data of one unit may change the probability of an "
        f"answer by a factor of exp({shown}) = {_exponential(epsilon)}. An attacker who is 50 % "
        "sure of a fact about the unit may become almost certain of it. Budgets around 1 are usual"
    )


def warn_of_epsilon(guarantee: Guarantee, stacklevel: int) -> None:
    """Warn of a large epsilon. To be called before a debit, since warnings may become errors."""
    text = text_of_epsilon(guarantee)
    if text is not None:
        warnings.warn(text, LargeEpsilonWarning, stacklevel + 1)


def _exponential(epsilon: Fraction) -> str:
    """Write e^epsilon with two digits, rounded up."""
    with localcontext(prec=2, rounding=ROUND_CEILING):
        with localcontext(prec=60):
            exact = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        return f"{+exact:.1e}"
