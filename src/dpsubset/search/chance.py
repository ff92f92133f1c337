"""Flips: a proposal is accepted with exactly its probability."""

from __future__ import annotations

import math
from fractions import Fraction

import flint

from ..privacy.random import Randomness
from ..privacy.random.draws import LazyUniform, ball
from .engine import Narrowing
from .envelope import Scale

#: What the proofs rule out. A race that went on would not have the mechanism's distribution.
_TOO_LOW = "an envelope lies below the weight of a support"


class Moment:
    """A point of time x = a + length * V in a slab, V a lazy uniform.

    thin is 1 - b peak, as a numerator and a denominator.
    """

    def __init__(
        self, a: int, length: int, ticks: int, v: LazyUniform, thin: tuple[int, int]
    ) -> None:
        self.v, self.thin = v, thin
        self._a, self._length, self._unit = a, length, 1 << ticks

    def approximate(self) -> float:
        """In float64, by what is known of V."""
        v = math.ldexp(self.v.value, -self.v.bits)
        return self._a / self._unit + self._length / self._unit * v

    def ball(self) -> flint.arb:
        """As a ball, at the working precision of the moment."""
        return (self._a + self._length * self.v.ball()) / self._unit


class Chance:
    """The probability with which a proposal is accepted, and an exact flip of that probability.

    It is 2**bits q / mass, where mass is what the envelope gave the support. Permute-and-flip
    proposes at a time x (its `Moment`): there the probability is multiplied by thin / (1 - x q).
    """

    def __init__(self, scale: Scale, score: int, mass: int, moment: Moment | None = None) -> None:
        self._scale, self._difference, self._mass = scale, score - scale.ref, mass
        self._moment = moment
        self.approximate, self._error = self._in_float()

    def flip(self, rng: Randomness) -> bool:
        """True with exactly this probability."""
        return self.above(rng.uniform())

    def above(self, u: LazyUniform) -> bool:
        """Whether it is larger than a uniform number, refined as far as that takes."""
        if u.coarse:
            verdict = u.below_float(self.approximate, self._error)
            if verdict is not None:
                return verdict
        while True:
            verdict = u.below_ball(self._ball(u.bits + 16))
            if verdict is not None:
                return verdict
            u.refine()
            if self._moment is not None:
                self._moment.v.refine()

    def _in_float(self) -> tuple[float, float]:
        """The probability and a bound on its error; infinite where float64 cannot tell."""
        scale = self._scale
        exponent = -scale.rate * self._difference
        logarithm = (scale.bits - math.log2(self._mass)) * math.log(2) + exponent
        error = (abs(exponent) + scale.bits + 64) * 2.0**-46
        if self._moment is not None:
            if not exponent < 600.0:
                return 0.5, math.inf
            late = self._moment.approximate() * math.exp(exponent)
            if late > 1.0 + 1e-6:
                raise AssertionError(_TOO_LOW)
            over, under = self._moment.thin
            thin = over / under
            if late > 0.999 or thin < 1e-300:
                return 0.5, math.inf
            logarithm += math.log(thin / (1.0 - late))
            error = error * 2048 + 2.0**-40
        if logarithm > 1e-6 + error:
            raise AssertionError(_TOO_LOW)
        chance = math.exp(min(logarithm, 0.0))
        return chance, chance * error * 2 + 2.0**-1000

    def _ball(self, precision: int) -> flint.arb:
        """The probability as a ball."""
        scale = self._scale
        saved = flint.ctx.prec
        # The weights' own bits come on top: nothing cancels that they do not hold.
        flint.ctx.prec = precision + 64
        try:
            q = (-ball(scale.weight * self._difference)).exp()
            chance = q * ball(Fraction(1 << scale.bits, self._mass))
            if self._moment is not None:
                m = self._moment
                chance *= ball(Fraction(*m.thin)) / (1 - m.ball() * q)
            return chance
        finally:
            flint.ctx.prec = saved


class Between:
    """The same for a flat leaf whose score is not known yet, only that it lies between two.

    The chance falls with the score. A uniform number below the chance of the upper bound accepts,
    one above that of the lower bound rejects; between them the search has to go on.
    """

    def __init__(
        self, scale: Scale, search: Narrowing, mass: int, moment: Moment | None = None
    ) -> None:
        self._scale, self._search, self._mass, self._moment = scale, search, mass, moment

    @property
    def approximate(self) -> float:
        """As large as it can be."""
        return self._with(self._search.low).approximate

    def flip(self, rng: Randomness) -> bool:
        """True with exactly the probability that the leaf's score gives."""
        u = rng.uniform()
        while True:
            if self._with(self._search.high).above(u):
                return True
            if not self._with(self._search.low).above(u):
                return False
            self._search.narrow()

    def _with(self, score: int) -> Chance:
        return Chance(self._scale, score, self._mass, self._moment)
