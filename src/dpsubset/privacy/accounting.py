"""Conversion between zero-concentrated privacy and (epsilon, delta), rounded to the safe side.

A mechanism is rho-zCDP if for neighbours and every alpha > 1 the privacy loss Z has
E[exp((alpha - 1) Z)] <= exp((alpha - 1) alpha rho); rho adds up over releases. Then, for every
alpha > 1, it is (epsilon, delta)-private with

    delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1 / alpha)^alpha

(Canonne, Kamath and Steinke 2020, Proposition 12), because delta = E[max(0, 1 - exp(epsilon - Z))],
and with u = exp(epsilon - z) the quotient of 1 - exp(epsilon - z) and exp((alpha - 1) z) is
exp(-(alpha - 1) epsilon) (1 - u) u^(alpha - 1), largest at u = 1 - 1 / alpha. The functions below
solve this for epsilon. Any alpha gives a valid bound; a good one is found in floats, and the bound
is evaluated there in ball arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import flint

from ..base.errors import ArgumentError
from ..base.rounding import ball, upper

#: Bits of working precision. Balls contain their error, so this affects sharpness only.
_PRECISION = 128

#: Smallest rho in the search for alpha, whose quotients must fit in a float.
_SMALL = 1e-300


@lru_cache(maxsize=256)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon such that rho-zCDP implies (epsilon, delta): rounded up."""
    _check_cost(rho, delta)
    if rho == 0:
        return Fraction(0)
    # Any alpha is valid, also that of a larger rho.
    return _bound(rho, delta, _good_alpha(max(float(rho), _SMALL), float(delta)))


@lru_cache(maxsize=256)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, nearly the largest, such that rho-zCDP implies (epsilon, delta)."""
    if epsilon <= 0:
        raise ArgumentError("epsilon must be greater than 0")
    _check_cost(epsilon, delta)
    # rho + 2 sqrt(rho log(1/delta)) <= epsilon is sufficient: the starting point. A larger rho is
    # found in floats by doubling and bisection, then decreased until exact arithmetic confirms it.
    target, loss = float(epsilon), -math.log(delta)

    def within(rho: float) -> bool:
        return _curve(rho, loss, float(_good_alpha(rho, float(delta)))) <= target

    low = target**2 / (math.sqrt(loss + target) + math.sqrt(loss)) ** 2
    high = 2 * low
    while within(high):
        low, high = high, 2 * high
    for _ in range(56):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    rho, step = Fraction(low), Fraction(1, 2**44)
    while epsilon_of(rho, delta) > epsilon:
        rho, step = rho * (1 - step), min(2 * step, Fraction(1, 2))
    return rho


def _check_cost(cost: Fraction, delta: Fraction) -> None:
    if cost < 0 or not 0 < delta < 1:
        raise ArgumentError("rho or epsilon must not be negative, and delta lies between 0 and 1")


def _bound(rho: Fraction, delta: Fraction, alpha: Fraction) -> Fraction:
    """Epsilon for this alpha, rounded up."""
    with flint.ctx.workprec(_PRECISION):
        order, more = ball(alpha), ball(alpha - 1)
        rest = -ball(delta).log() - more.log() + order * (1 - 1 / order).log()
        epsilon = order * ball(rho) + rest / more
        return max(Fraction(0), upper(epsilon))


def _curve(rho: float, loss: float, alpha: float) -> float:
    """Epsilon for this alpha, in floats; loss is log(1/delta)."""
    more = alpha - 1
    return alpha * rho + (loss - math.log(more) + alpha * math.log1p(-1 / alpha)) / more


def _good_alpha(rho: float, delta: float) -> Fraction:
    """An alpha near the best one, by golden section over log(alpha - 1)."""
    loss = -math.log(delta)
    golden = (math.sqrt(5) - 1) / 2
    centre = math.log(math.sqrt(max(loss, 1e-3) / rho))
    low, high = max(centre - 4, -30.0), min(centre + 2, 500.0)

    def at(log_more: float) -> float:
        return _curve(rho, loss, 1 + math.exp(log_more))

    for _ in range(40):
        width = golden * (high - low)
        if at(high - width) <= at(low + width):
            high = low + width
        else:
            low = high - width
    return 1 + Fraction(math.exp((low + high) / 2))
