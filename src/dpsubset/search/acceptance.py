"""Acceptance of proposals with exactly their probability."""

from __future__ import annotations

import math
from fractions import Fraction

import flint

from ..base.rounding import ball
from ..privacy.random import Randomness
from ..privacy.random.draws import LazyUniform
from .engine import IncompleteSearch
from .envelope import MassScale

#: Ruled out by the proofs. A race that continued would not have the mechanism's distribution.
_NOT_DOMINATED = "an envelope lies below the weight of a support"


class ProposalTime:
    """The time x = a + length * V of a proposal in a slab, with V a lazily refined uniform.

    ``thin`` is 1 - b peak, as a numerator and a denominator.
    """

    def __init__(
        self, a: int, length: int, ticks: int, v: LazyUniform, thin: tuple[int, int]
    ) -> None:
        self.v, self.thin = v, thin
        self._a, self._length, self._unit = a, length, 1 << ticks

    def approximate(self) -> float:
        """The time in float64, from the bits of V that are known."""
        v = math.ldexp(self.v.value, -self.v.bits)
        return self._a / self._unit + self._length / self._unit * v

    def ball(self) -> flint.arb:
        """The time as a ball, at the current working precision."""
        return (self._a + self._length * self.v.ball()) / self._unit


class Acceptance:
    """The probability with which a proposal is accepted, and an exact flip of that probability.

    It is 2**bits q / mass, where mass is the envelope's mass of the support. Permute-and-flip
    proposes at a time x (see `ProposalTime`): there the probability is multiplied by thin / (1 - x
    q).
    """

    def __init__(
        self, scale: MassScale, score: int, mass: int, time: ProposalTime | None = None
    ) -> None:
        self._scale, self._difference, self._mass = scale, score - scale.ref, mass
        self._time = time
        self.approximate, self._error = self._in_float()

    def flip(self, rng: Randomness) -> bool:
        """True with exactly this probability."""
        return self.exceeds(rng.uniform())

    def exceeds(self, u: LazyUniform) -> bool:
        """Whether the probability exceeds a uniform number, which is refined as far as needed."""
        if u.coarse:
            verdict = u.below_float(self.approximate, self._error)
            if verdict is not None:
                return verdict
        while True:
            verdict = u.below_ball(self._ball(u.bits + 16))
            if verdict is not None:
                return verdict
            u.refine()
            if self._time is not None:
                self._time.v.refine()

    def _in_float(self) -> tuple[float, float]:
        """The probability and a bound on its error; infinite where float64 cannot decide."""
        scale = self._scale
        exponent = -scale.rate * self._difference
        logarithm = (scale.bits - math.log2(self._mass)) * math.log(2) + exponent
        error = (abs(exponent) + scale.bits + 64) * 2.0**-46
        if self._time is not None:
            if not exponent < 600.0:
                return 0.5, math.inf
            product = self._time.approximate() * math.exp(exponent)
            if product > 1.0 + 1e-6:
                raise AssertionError(_NOT_DOMINATED)
            over, under = self._time.thin
            thin = over / under
            if product > 0.999 or thin < 1e-300:
                return 0.5, math.inf
            logarithm += math.log(thin / (1.0 - product))
            error = error * 2048 + 2.0**-40
        if logarithm > 1e-6 + error:
            raise AssertionError(_NOT_DOMINATED)
        chance = math.exp(min(logarithm, 0.0))
        return chance, chance * error * 2 + 2.0**-1000

    def _ball(self, precision: int) -> flint.arb:
        scale = self._scale
        # Added to the bits of the weights, so that nothing cancels beyond them.
        with flint.ctx.workprec(precision + 64):
            q = (-ball(scale.weight * self._difference)).exp()
            chance = q * ball(Fraction(1 << scale.bits, self._mass))
            if self._time is not None:
                t = self._time
                chance *= ball(Fraction(*t.thin)) / (1 - t.ball() * q)
            return chance


class IntervalAcceptance:
    """Acceptance in a flat leaf whose score is known only to lie between two bounds.

    The probability decreases with the score. A uniform number below the probability for the upper
    bound accepts, one above that for the lower bound rejects; between them the search continues.
    """

    def __init__(
        self, scale: MassScale, search: IncompleteSearch, mass: int,
        time: ProposalTime | None = None,
    ) -> None:  # fmt: skip
        self._scale, self._search, self._mass, self._time = scale, search, mass, time

    @property
    def approximate(self) -> float:
        """The largest value that the probability can have."""
        return self._for_score(self._search.low).approximate

    def flip(self, rng: Randomness) -> bool:
        """True with exactly the probability for the leaf's score."""
        u = rng.uniform()
        while True:
            if self._for_score(self._search.high).exceeds(u):
                return True
            if not self._for_score(self._search.low).exceeds(u):
                return False
            self._search.narrow()

    def _for_score(self, score: int) -> Acceptance:
        return Acceptance(self._scale, score, self._mass, self._time)
