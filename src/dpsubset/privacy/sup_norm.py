"""Noise on integer vectors that falls with the largest entry, drawn exactly.

    P(z) proportional to exp(-eta max |z_i|),    z in Z^d.

If no entry of a vector v moves by more than Delta from a table to its neighbour, v + z costs
eta Delta, *however many entries there are*: for Laplace noise it is the sum of what they move by.
An entry deviates by about d / (eta sqrt(3)).

A draw takes integers alone; there is no float on its way. With q = exp(-eta):

1.  z is uniform in the cube [-r, r]^d if r is drawn with P(r) proportional to (2 r + 1)^d q^r,
    since the sum of (1 - q) q^r over all r >= m is q^m.
2.  (2 r + 1)^d is the sum over j of B(d, j) C(r + d - j, d), with Eulerian numbers of type B. So r
    is j plus a sum of d + 1 geometric numbers, and j has P(j) proportional to B(d, j) q^j.
3.  B(d, j) / (2^d d!) is where a walk of d steps ends, and q^j is a coin.
4.  Geometric numbers come from coins that fall with probability exp(-1) and exp(-u / t).

The time does not depend on eta: d = 250 and r about 10^12 take some milliseconds.
`proofs/noisy-moments.md` has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from .random import Randomness


def add_noise(values: Sequence[int], eta: Fraction, rng: Randomness) -> list[int]:
    """Each value plus one entry of a draw with this eta."""
    noise = draw(len(values), eta, rng)
    return [int(value) + z for value, z in zip(values, noise, strict=True)]


def draw(d: int, eta: Fraction, rng: Randomness) -> list[int]:
    """One vector of d entries with P(z) proportional to exp(-eta max |z_i|), eta > 0."""
    if d == 0:
        return []
    r = radius(d, eta, rng)
    return [rng.below(2 * r + 1) - r for _ in range(d)]


def radius(d: int, eta: Fraction, rng: Randomness) -> int:
    """r with P(r) proportional to (2 r + 1)^d exp(-eta r)."""
    while True:
        j = descents(d, rng)
        if coin(eta * j, rng):
            break
    return j + sum(geometric(eta, rng) for _ in range(d + 1))


def descents(d: int, rng: Randomness) -> int:
    """j with P(j) = B(d, j) / (2^d d!): the type B Eulerian numbers by their recurrence."""
    j = 0
    for step in range(1, d + 1):
        # One of 2 step places for a new entry; 2 j + 1 of them leave j as it is.
        j += rng.below(2 * step) > 2 * j
    return j


def geometric(eta: Fraction, rng: Randomness) -> int:
    """g >= 0 with P(g) = (1 - exp(-eta)) exp(-eta g).

    By Canonne, Kamath and Steinke 2020: with eta = s / t, u below t with weight exp(-u / t) and v
    with weight exp(-v) make x = u + t v, of weight exp(-x / t), and g is x / s rounded down.
    """
    s, t = eta.numerator, eta.denominator
    while True:
        u = rng.below(t)
        if _small_coin(u, t, rng):
            break
    v = 0
    while _small_coin(1, 1, rng):
        v += 1
    return (u + t * v) // s


def coin(x: Fraction, rng: Randomness) -> bool:
    """True with probability exp(-x), x >= 0."""
    whole, rest = divmod(x.numerator, x.denominator)
    return all(_small_coin(1, 1, rng) for _ in range(whole)) and _small_coin(
        rest, x.denominator, rng
    )


def _small_coin(above: int, below: int, rng: Randomness) -> bool:
    """True with probability exp(-x), x = above / below from 0 to 1.

    Counts how often an event of probability x / 1, then x / 2, x / 3, ... happens before it first
    does not: more than i times with probability x^i / i!, so the count is even with probability
    1 - x + x^2 / 2 - ... = exp(-x).
    """
    count = 0
    while rng.below(below * (count + 1)) < above:
        count += 1
    return count % 2 == 0


def deviation(d: int, eta: Fraction | float) -> float:
    """Standard deviation of one entry, if eta is small.

    The cube's half side R is then a gamma variable with E[R^2] = (d + 1) (d + 2) / eta^2.
    """
    return math.sqrt((d + 1) * (d + 2) / float(eta) ** 2 / 3)


def margin(d: int, eta: Fraction | float, confidence: float) -> int:
    """Bound on the size of one entry of a draw that holds with this probability.

    Where eta is small the cube's half side R is a gamma variable of shape d + 1, and an entry is
    uniform in it: P(|z| > t) = Q(d + 1, x) - x / d Q(d, x) with x = eta t.
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincc

    def beyond(x: float) -> float:
        return float(gammaincc(d + 1, x) - x / d * gammaincc(d, x)) - (1 - confidence)

    farthest = float(brentq(beyond, 0.0, 50.0 * (d + 1)))
    return math.ceil(farthest / float(eta)) + 1
