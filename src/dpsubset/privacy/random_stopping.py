"""Random stopping: the best of a random number of private runs, and what that costs.

K is drawn from the truncated negative binomial distribution

    P(K = k) proportional to (1 - gamma)^k prod over l = 1, ..., k - 1 of (l + eta) / (l + 1),

for k = 1, 2, ...; eta = 1 is the geometric distribution and eta = 0 the logarithmic one. A run that
is epsilon-differentially private is repeated K times, and the best of its outcomes by a score that
is a function of the outcome is released. That is pure (2 + eta) epsilon-differential privacy for
any gamma (Liu and Talwar 2019; Papernot and Steinke 2022). The proof is in
`proofs/private_search.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.validation import check_fraction
from .guarantee import Cost, Guarantee
from .random import Randomness
from .relations import PUBLIC_N, RELATIONS

Floats = NDArray[np.float64]
Outcome = TypeVar("Outcome")

#: Name of the mechanism in ledgers and audits.
NAME = "private-search"
_LEAST_GAMMA = Fraction(1, 10**15)


@dataclass(frozen=True)
class Stopping:
    """The distribution of the number of runs. Public."""

    #: Above -1 and at most 1. With a smaller eta the search costs less, and a single run is more
    #: likely.
    eta: Fraction
    #: Above 0 and below 1. With a smaller gamma there are more runs. The cost does not depend on
    #: gamma.
    gamma: Fraction

    def __post_init__(self) -> None:
        if not -1 < self.eta <= 1:
            raise ArgumentError("eta must be above -1 and at most 1")
        if not 0 < self.gamma < 1:
            raise ArgumentError("gamma must be above 0 and below 1")

    @classmethod
    def of_mean(cls, runs: Any, eta: Any) -> Stopping:
        """The distribution with this mean number of runs, up to the rounding of gamma."""
        wanted, power = check_fraction(runs, "runs"), check_fraction(eta, "eta")
        if not 1 < wanted <= 10_000:
            raise ArgumentError("runs, their mean number, must be above 1 and at most 10000")
        low, high = 0.0, 1.0
        for _ in range(120):
            middle = (low + high) / 2
            found = mean_runs(float(power), middle)
            low, high = (middle, high) if found > wanted else (low, middle)
        gamma = Fraction(high).limit_denominator(10**18)
        made = cls(power, min(max(gamma, _LEAST_GAMMA), 1 - Fraction(1, 10**9)))
        if made.mean < 0.999 * float(wanted):
            raise ArgumentError(
                f"with eta = {power} the mean number of runs can be at most {made.mean:.4g}: "
                "choose fewer runs, or a larger eta, which costs more"
            )
        return made

    @property
    def factor(self) -> Fraction:
        """Cost of the search, in multiples of the cost of one run."""
        return 2 + self.eta

    @property
    def mean(self) -> float:
        """The mean number of runs."""
        return mean_runs(float(self.eta), float(self.gamma))

    def between(self, more: Floats, least: Floats) -> Floats:
        """f(1 - more) - f(1 - least) for f(x) = E[x^K], for audits.

        The probability that the best score is one that a run reaches with probability ``least``
        and exceeds with probability ``more``.
        """
        eta, gamma = float(self.eta), float(self.gamma)
        one, two = (gamma + (1 - gamma) * np.minimum(a, 1.0) for a in (more, least))
        if eta == 0:
            return np.asarray((np.log(two) - np.log(one)) / -math.log(gamma))
        return np.asarray((one**-eta - two**-eta) / (gamma**-eta - 1))

    def guarantee(self, runs: Sequence[Guarantee]) -> Guarantee:
        """Guarantee of the best outcome, if each run uses one of several settings.

        ``runs`` are the guarantees of the settings. They must be proven and pure. A relation under
        which a setting has no cost is not covered.
        """
        costs = {}
        for relation in RELATIONS:
            known = [run.costs[relation] for run in runs if relation in run.costs]
            if len(known) == len(runs):
                costs[relation] = Cost(self.factor * max(cost.epsilon for cost in known))
        if not all(run.proven and run.assumes is None and not run.delta for run in runs):
            raise ArgumentError(
                "every setting of a private search needs a proven guarantee of pure epsilon: set "
                "delta to 0, and leave out mechanisms with an assumption"
            )
        return Guarantee(runs[0].neighbours, costs, any(run.seeded for run in runs))

    def count(self, rng: Randomness) -> int:
        """Draw K exactly, with a mean number of coins in the order of the mean of K.

        With eta >= 0 a geometric number k is accepted with probability prod (l + eta) / (l + 1);
        the coins of both are thrown alternately, so that a rejection comes early. With eta < 0 that
        would take 1 / gamma coins. There the product is -eta / k up to a constant, times
        prod (1 + eta / l) over l < k: attempts end at k with probability -eta / k, and start again
        with probability gamma after each step.
        """
        k = 1
        if self.eta < 0:
            while not _coin(-self.eta / k, rng):
                k = 1 if _coin(self.gamma, rng) else k + 1
            return k
        while not _coin(self.gamma, rng):
            k = k + 1 if _coin((k + self.eta) / (k + 1), rng) else 1
        return k

    def best(
        self,
        rng: Randomness,
        run: Callable[[], Outcome],
        score: Callable[[Outcome], float],
    ) -> Outcome:
        """The best of K runs, the first one among equals."""
        kept = run()
        highest = score(kept)
        for _ in range(self.count(rng) - 1):
            found = run()
            reached = score(found)
            if reached > highest:
                kept, highest = found, reached
        return kept


def covered(found: Guarantee) -> Guarantee:
    """The guarantee of a search. If the number of rows is public, clipping depends on it, and
    tables that differ in it are not covered.
    """
    if found.neighbours not in PUBLIC_N:
        return found
    return found.limited_to(PUBLIC_N)


def mean_runs(eta: float, gamma: float) -> float:
    """E[K]."""
    if gamma >= 1:
        return 1.0
    if gamma <= 0:
        return math.inf
    if abs(eta) < 1e-9:
        return (1 / gamma - 1) / -math.log(gamma)
    return eta * (1 - gamma) / (gamma * -math.expm1(eta * math.log(gamma)))


def _coin(chance: Fraction, rng: Randomness) -> bool:
    """True with this probability."""
    return rng.below(chance.denominator) < chance.numerator
