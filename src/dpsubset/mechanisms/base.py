"""What a mechanism promises, and what it must offer."""

from __future__ import annotations

import decimal
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..problem import Neighbours, Problem
from ..random import Randomness
from ..search.engine import Engine
from ..search.enumerate import ScoredSupports
from ..sensitivity import Sensitivity


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee, computed from the constants the mechanism actually uses.

    Attributes
    ----------
    epsilon : Fraction
        Under the declared neighbours. Delta is 0: the guarantee is pure.
    neighbours : {"replace-one", "add-remove"}
        Which data sets count as neighbours.
    epsilon_if_replace_one, epsilon_if_add_remove : Fraction
        What the same release costs under either relation.
    seeded : bool
        A seeded draw is reproducible, hence not private.
    """

    epsilon: Fraction
    neighbours: Neighbours
    epsilon_if_replace_one: Fraction
    epsilon_if_add_remove: Fraction
    seeded: bool = False

    delta: ClassVar[int] = 0

    @classmethod
    def of_weight(
        cls, eta: Fraction, sensitivity: Sensitivity, neighbours: Neighbours, seeded: bool
    ) -> Guarantee:
        """Of a mechanism whose privacy loss is at most eta times the spread of the scores."""
        costs = {
            "replace-one": eta * sensitivity.spread("replace-one"),
            "add-remove": eta * sensitivity.spread("add-remove"),
        }
        return cls(costs[neighbours], neighbours, costs["replace-one"], costs["add-remove"], seeded)

    def __str__(self) -> str:
        text = f"pure epsilon = {shown_up(self.epsilon)}, delta = 0, {self.neighbours} neighbours"
        return "NOT PRIVATE (seeded draw); unseeded: " + text if self.seeded else text


class Sampler(Protocol):
    """Draws from one mechanism on one data set, as often as asked. Private data inside."""

    def draw(self, rng: Randomness) -> tuple[int, ...]:
        """One support."""


class Mechanism(ABC):
    """A selection mechanism. Subclasses are stateless: a name, a guarantee, a sampler."""

    name: ClassVar[str]
    #: One sentence for the privacy statement.
    summary: ClassVar[str]

    def eta(self, problem: Problem, sensitivity: Sensitivity, epsilon: Fraction) -> Fraction:
        """The weight of the scores that makes the mechanism epsilon-private."""
        return sensitivity.eta(epsilon, problem.neighbours)

    def guarantee(
        self, problem: Problem, sensitivity: Sensitivity, epsilon: Fraction, *, seeded: bool
    ) -> Guarantee:
        """The guarantee of a release, computed back from the weight that the draw uses."""
        eta = self.eta(problem, sensitivity, epsilon)
        return Guarantee.of_weight(eta, sensitivity, problem.neighbours, seeded)

    @abstractmethod
    def race(self, engine: Engine, eta: Fraction) -> Sampler:
        """Draws over all supports, however many, by the search engine."""

    @abstractmethod
    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        """Draws over an explicit list of scored supports, by the definition: the oracle."""

    @abstractmethod
    def probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        """The output distribution in closed form: what tests and audits compare with."""


def shown_up(x: Fraction, digits: int = 6) -> str:
    """x to a few digits, rounded up: for people, who should not read less than they pay."""
    with decimal.localcontext(prec=digits, rounding=decimal.ROUND_CEILING):
        return f"{float(decimal.Decimal(x.numerator) / x.denominator):.{digits}g}"


def float_up(x: Fraction) -> float:
    """The smallest float not below x: for showing a guarantee without flattering it."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else float(np.nextafter(nearest, np.inf))
