"""Expectation: what a plan answers, with all that it assumes. It is about made-up tables."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from .population import Population

#: Of intervals.
LEVEL = 0.95
#: Where a probability comes from a formula, and not from draws, it may be off by this much or so.
_ROOM = 0.02

CAVEAT = "About made-up tables, not about yours: nothing was read, and nothing is spent."


@dataclass(frozen=True)
class Estimate:
    """A probability, how it was found, and how far it may be off.

    Attributes
    ----------
    probability : float
    interval : pair of float
        95 %, of draws from made-up tables. Of a closed form: what its own errors may do.
    tables, draws : int
        Made-up tables, and draws from each; draws is 0 where odds are computed.
    gap : float, optional
        Of a closed form: what a swap of a true variable costs on average, times eta.
    simulated : bool
        Whether the tables' rows were made up, or what is known of their sums alone.
    """

    probability: float
    interval: tuple[float, float]
    tables: int
    draws: int
    gap: float | None = None
    simulated: bool = False

    @property
    def how(self) -> str:
        """In words."""
        if not self.simulated:
            return "closed form, averaged over what sampling does to its gaps"
        drawn = f"with {self.draws} draws each" if self.draws else "with the odds of each"
        return f"simulation, {self.tables} made-up tables {drawn}"


@dataclass(frozen=True)
class Expectation:
    """How likely it is that the true support is released.

    Attributes
    ----------
    probability, interval
        That a release names exactly the variables that matter, and how sure that is.
    n, epsilon : int and Fraction
        The table's rows, and the budget of the release.
    solved : "n", "epsilon" or None
        Which of the two is the smallest that reaches ``wished``.
    wished : float, optional
        The probability that was asked for.
    epsilon_left : Fraction
        Of epsilon, for one row, what a private scale of the response leaves for the selection.
    mechanism, loss, constraint, neighbours : str
        What would be run.
    assumed : Population
        What the table is assumed to be like.
    estimate : Estimate
        Probability and interval again, with how they were found.
    """

    n: int
    epsilon: Fraction
    epsilon_left: Fraction
    mechanism: str
    loss: str
    constraint: str
    neighbours: str
    assumed: Population
    estimate: Estimate
    solved: Literal["n", "epsilon"] | None = None
    wished: float | None = None

    @property
    def probability(self) -> float:
        """That the true support is released."""
        return self.estimate.probability

    @property
    def interval(self) -> tuple[float, float]:
        """Of the probability, 95 %."""
        return self.estimate.interval

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for files."""
        return {
            "probability": self.probability,
            "interval": list(self.interval),
            "how": self.estimate.how,
            "tables": self.estimate.tables,
            "draws_each": self.estimate.draws,
            "gap": self.estimate.gap,
            "n": self.n,
            "epsilon": float(self.epsilon),
            "epsilon_of_the_selection": float(self.epsilon_left),
            "solved_for": self.solved,
            "wished_probability": self.wished,
            "mechanism": self.mechanism,
            "loss": self.loss,
            "constraint": self.constraint,
            "neighbours": self.neighbours,
            "assumed": asdict(self.assumed),
        }

    def to_json(self) -> str:
        """The same, written out."""
        return json.dumps(self.to_dict(), indent=2)

    @property
    def headline(self) -> str:
        """One line."""
        low, high = self.interval
        chance = f"{shown(self.probability)} ({shown(low)} to {shown(high)})"
        if self.solved == "epsilon":
            return f"Smallest epsilon for {self.wished:g}: {float(self.epsilon):.3g}, with {chance}"
        if self.solved == "n":
            return f"Smallest n for {self.wished:g}: {self.n:,}, with {chance}"
        return f"Probability that the true support is released: {chance}"

    def __str__(self) -> str:
        made_up = self.assumed
        left = float(self.epsilon_left)
        asked = (
            f"n {self.n:,}, p {made_up.p:,}, k {made_up.k}, epsilon {float(self.epsilon):.4g}"
            + (f" ({left:.4g} of it for the selection)" if left != float(self.epsilon) else "")
        )
        run = f"{self.mechanism}, {self.loss}, {self.constraint}, {self.neighbours}"
        lines = [self.headline, f"For: {asked}", f"Run: {run}", f"Assumed: {made_up}"]
        return "\n".join([*lines, f"How: {self.estimate.how}", CAVEAT])


def widened(mean: float, interval: tuple[float, float], by: float = 0.0) -> tuple[float, float]:
    """An interval with room for what formulas leave out: two percent in the middle of the scale."""
    room = by + 2 * _ROOM * math.sqrt(mean * (1 - mean))
    return max(0.0, interval[0] - room), min(1.0, interval[1] + room)


def shown(share: float) -> str:
    """A probability for people: never 1 or 0 unless it is."""
    if 0 < share < 0.005:
        return "<0.01"
    if 0.995 <= share < 1:
        return ">0.99"
    return f"{share:.2f}"
