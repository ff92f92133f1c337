"""A Metropolis-Hastings chain: the state of a double-swap walk over supports after some steps.

The chain is that of Roy, Wang and Tewari 2024. It is private only as far as it has mixed: it
converges to the distribution of the exponential mechanism, but in general its distance after a
number of steps is unknown. The exact draw from that distribution, `exponential`, assumes nothing;
this mechanism is for comparison.

One chain is run and its last state released; the state of a second one would be a second release.
`dpsubset.traces_not_private` shows several chains in simulations.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...base.rounding import ball, lower, upper
from ...base.validation import check_int
from ...privacy.guarantee import Cost, Guarantee, shown_up
from ...privacy.random import Randomness
from ...privacy.relations import RELATIONS
from ...search.enumerate import ScoredSupports, enumerate_supports
from ..exponential import Exponential
from ..shared.base import Data, Distribution, Outcome, Sampler, Scored, Setting
from ..shared.chain import Chain, distribution_after, transition_matrix

#: Largest number of supports for which the transition matrix is computed.
LARGEST_MATRIX = 2000

#: Bits of the interval arithmetic behind a guarantee.
_PRECISION = 128


@dataclass(frozen=True)
class Metropolis(Scored):
    """The state of the double-swap chain after a fixed number of steps from a uniform start.

    Parameters
    ----------
    steps : int
        Number of steps. The default is the 50 p of Roy, Wang and Tewari 2024 for their p = 2000.
    lazy : bool
        Stay with probability 1/2 at every step, as in the proof of Theorem 2 of Roy, Wang and
        Tewari 2024.
    """

    steps: int = 100_000
    lazy: bool = False

    name = "metropolis"
    place = 5
    summary = (
        "A random walk over sets of variables starts at any of them with equal probability. At "
        "each step one variable of the set and one other variable, drawn uniformly at random, are "
        "exchanged with probability min(1, exp(-eta * (f(S') - f(S)))), where S' is the set after "
        "the exchange. The set after the last step is released."
    )
    source = "Roy, Wang and Tewari 2024; exact proposals, acceptances and scores are ours"
    promises = "epsilon and delta, if the chain mixes on every table"
    assumes = (
        "that on every table, not only on this one, the chain ends within delta / (1 + e^epsilon) "
        "of its target"
    )
    running_time = "microseconds a step; the number of steps that suffices is unknown"
    use_when = "published figures are to be reproduced; exponential draws from its target exactly"
    takes_delta = "must"
    #: The chain computes the scores of least squares, whatever the loss of the problem.
    any_loss = False

    def __post_init__(self) -> None:
        self._set_options(steps=check_int(self.steps, "steps"))
        if not 1 <= self.steps <= 10**12:
            raise ArgumentError("steps must lie between 1 and 10^12")
        if not isinstance(self.lazy, bool):
            raise ArgumentError("lazy must be True or False")

    def eta(self, setting: Setting) -> Fraction:
        """The weight of the scores of the exponential mechanism, the target of the chain."""
        return Exponential().eta(setting)

    def distance(self, setting: Setting) -> Fraction:
        """The total variation distance to its target that the chain must reach, rounded down.

        Lemma 4 of Roy, Wang and Tewari 2024 gives the delta of a chain within this distance (there
        called eta); solved for the distance, it is delta / (1 + e^epsilon).
        """
        with flint.ctx.workprec(_PRECISION):
            return lower(ball(setting.delta) / (1 + ball(setting.epsilon).exp()))

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """Epsilon and delta under either relation, assuming that the chain is within `distance`."""
        eta, distance = self.eta(setting), self.distance(setting)
        costs = {}
        for relation in RELATIONS:
            epsilon = eta * setting.sensitivity.score_range(relation)
            # Lemma 4 of Roy, Wang and Tewari 2024. A delta of 1 promises nothing. At an epsilon up
            # to the given one, the given delta suffices, by the choice of the distance.
            most = setting.delta if epsilon <= setting.epsilon else Fraction(1)
            with flint.ctx.workprec(_PRECISION):
                delta = upper(ball(distance) * (1 + ball(epsilon).exp()))
            costs[relation] = Cost(epsilon, min(most, delta))
        assumes = (
            "the random walk that drew the answer is long enough on this table, on its neighbours "
            f"and on all others (exactly: after {self.steps} steps from a uniformly random set the "
            f"chain is within {_shown_down(distance)} of its stationary distribution in total "
            f"variation; {_shown_down(distance)} is delta / (1 + e^epsilon), Lemma 4 of Roy, Wang "
            "and Tewari 2024)"
        )
        return Guarantee(setting.problem.neighbours, costs, seeded, assumes)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        chain = Chain(
            data.gram,
            setting.problem,
            setting.sensitivity.score_step,
            self.eta(setting),
            lazy=self.lazy,
        )
        chain.prefetch_columns(self.steps)
        return _Ends(chain, self.steps)

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """All supports and the logarithms of P0 P^steps, by the transition matrix."""
        if setting.problem.supports > LARGEST_MATRIX:
            raise ArgumentError(
                f"the transition matrix is computed for at most {LARGEST_MATRIX} supports"
            )
        scored = enumerate_supports(data.gram, setting.problem, setting.sensitivity.score_step)
        supports: list[Outcome] = [tuple(row) for row in scored.supports.tolist()]
        with np.errstate(divide="ignore"):
            return supports, np.log(distribution_after(self.matrix(scored, setting), self.steps))

    def matrix(self, scored: ScoredSupports, setting: Setting) -> NDArray[np.float64]:
        """The transition matrix over a list of supports."""
        return transition_matrix(scored, setting.problem, self.eta(setting), lazy=self.lazy)

    def details(self, setting: Setting) -> list[str]:
        lazy = ", staying put half of the time" if self.lazy else ""
        return [
            *Exponential().details(setting),
            f"The walk makes {self.steps} steps{lazy}. With eta = {shown_up(self.eta(setting))} "
            "an endless walk would draw like the exponential mechanism at this epsilon.",
        ]


class _Ends(Sampler):
    """Draws fresh walks and returns their last states."""

    def __init__(self, chain: Chain, steps: int) -> None:
        self._chain, self._steps = chain, steps

    def draw(self, rng: Randomness) -> Outcome:
        walk = self._chain.start(rng)
        walk.advance(self._steps, rng)
        return walk.support

    def diagnostics(self) -> dict[str, int]:
        return self._chain.diagnostics()


def _shown_down(x: Fraction) -> str:
    """x > 0 to three digits, rounded down: an assumption must not look weaker than it is."""
    with flint.ctx.workprec(_PRECISION):
        size, ten = ball(x), flint.arb(10)
        exponent = int((size.log() / ten.log()).lower().floor().fmpz())
        digits = int((size * ten ** (2 - exponent)).lower().floor().fmpz())
    return f"{digits / 100:g}e{exponent}"
