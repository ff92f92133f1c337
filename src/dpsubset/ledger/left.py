"""Left: what a limit leaves for further releases, rounded down."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..privacy.accounting import rho_for
from ..privacy.guarantee import Cost, shown_down
from .composition import Limit, Totals

#: The largest pure epsilon under a limit with rho is rounded down to a multiple of 1 / _GRID.
_GRID = 10**18


@dataclass(frozen=True)
class Left:
    """What is left of a limit. Public.

    Attributes
    ----------
    pure : Fraction
        The largest epsilon of one more pure release.
    epsilon, delta, rho : Fraction, optional
        What is left in the limit's own terms: epsilon; epsilon and delta with basic accounting; rho
        under a limit of rho; rho and delta with concentrated accounting.
    exceeded : bool
        Whether more than the limit is spent, so that every release is refused.
    """

    pure: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    exceeded: bool = False

    @classmethod
    def of(cls, limit: Limit, spent: Totals) -> Left:
        """Return what a limit leaves after these sums."""
        if not limit.admits(spent):
            return cls(Fraction(0), exceeded=True)
        if limit.rho is not None:
            rho = limit.rho - spent.pure_rho - spent.rho
            return cls(_pure_of_rho(limit, spent, rho), rho=rho)
        assert limit.epsilon is not None
        if limit.kind == "pure":
            epsilon = limit.epsilon - spent.pure
            return cls(epsilon, epsilon=epsilon)
        if limit.accounting == "basic":
            epsilon = limit.epsilon - spent.pure - spent.stated - spent.approximate
            delta = limit.delta - spent.delta - spent.stated_delta
            return cls(epsilon, epsilon=epsilon, delta=delta)
        counted = spent.pure_rho + spent.rho + spent.approximate_rho
        rho = max(Fraction(0), rho_for(limit.epsilon, limit.delta / 2) - counted)
        pure = _pure_of_rho(limit, spent, rho)
        if spent.is_pure:  # epsilons of pure releases may be added up instead
            pure = max(pure, limit.epsilon - spent.pure)
        return cls(pure, delta=limit.delta / 2 - spent.delta, rho=rho)

    def __str__(self) -> str:
        """What is left, for people."""
        if self.exceeded:
            return "nothing: the limit is exceeded, and every release is refused"
        pure = f"one pure release of epsilon = {shown_down(self.pure)}"
        if self.rho is None:
            assert self.epsilon is not None
            delta = "" if self.delta is None else f" and delta = {shown_down(self.delta)}"
            return f"epsilon = {shown_down(self.epsilon)}{delta}"
        delta = "" if self.delta is None else f" and delta = {shown_down(self.delta)}"
        return f"rho = {shown_down(self.rho)}{delta}, or {pure}"

    def to_dict(self) -> dict[str, Any]:
        """As facts: rationals are text."""
        named = {
            "pure_epsilon": self.pure, "epsilon": self.epsilon, "delta": self.delta,
            "rho": self.rho,
        }  # fmt: skip
        exact = {name: str(value) for name, value in named.items() if value is not None}
        return {**exact, "exceeded": self.exceeded}


def _pure_of_rho(limit: Limit, spent: Totals, rho: Fraction) -> Fraction:
    """Return nearly the largest epsilon of a pure release that counts at most rho."""
    root = math.isqrt(2 * rho.numerator * _GRID**2 // rho.denominator)
    step = 1
    while root and not limit.admits(spent + Totals.of(Cost(Fraction(root, _GRID)))):
        # The conversion of rho is rounded up, and by different amounts for different rhos.
        root, step = max(0, root - step), 2 * step
    return Fraction(root, _GRID)
