"""Expectation: the result of a power analysis, with everything that it assumes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from .population import Population
from .scenario import Scenario
from .simulation import Effort, Progress, Recovery, simulate_recovery

CAVEAT = "About simulated tables, not about yours: no data were read, and nothing is spent."


@dataclass(frozen=True)
class Expectation:
    """How likely a release names exactly the true variables.

    Attributes
    ----------
    n, epsilon : int and Fraction
        The number of rows, and the budget of the release.
    epsilon_left : Fraction
        The part of epsilon, for one row, that a private range of the response leaves for the
        selection.
    mechanism, loss, constraint, neighbours : str
        The selection that was simulated.
    assumed : Population
        The distribution of the simulated tables.
    recovery : Recovery
        In how many of the simulated tables the true support was released.
    solved : "n", "epsilon" or None
        Which of the two is the smallest value that reaches ``wished``.
    wished : float, optional
        The probability that was asked for.
    """

    n: int
    epsilon: Fraction
    epsilon_left: Fraction
    mechanism: str
    loss: str
    constraint: str
    neighbours: str
    assumed: Population
    recovery: Recovery
    solved: Literal["n", "epsilon"] | None = None
    wished: float | None = None

    @property
    def probability(self) -> float:
        """The estimated probability that the true support is released."""
        return self.recovery.probability

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the probability (Clopper and Pearson)."""
        return self.recovery.interval

    @property
    def how(self) -> str:
        """How the probability was estimated."""
        return (
            f"{self.recovery.tables:,} simulated tables with one draw each; in brackets the 95 % "
            "confidence interval (Clopper-Pearson)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "probability": self.probability,
            "interval": list(self.interval),
            "how": self.how,
            "tables": self.recovery.tables,
            "recovered": self.recovery.successes,
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
        """The values of `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    @property
    def headline(self) -> str:
        """The result in one line."""
        chance = shown_with_interval(self.recovery)
        if self.solved == "epsilon":
            return f"Smallest epsilon for {self.wished:g}: {float(self.epsilon):.3g}, with {chance}"
        if self.solved == "n":
            return f"Smallest n for {self.wished:g}: {self.n:,}, with {chance}"
        return f"Probability that the true support is released: {chance}"

    def __str__(self) -> str:
        left = float(self.epsilon_left)
        sizes = (
            f"n {self.n:,}, p {self.assumed.p:,}, k {self.assumed.k}, "
            f"epsilon {float(self.epsilon):.4g}"
            + (f" ({left:.4g} of it for the selection)" if left != float(self.epsilon) else "")
        )
        run = f"{self.mechanism}, {self.loss}, {self.constraint}, {self.neighbours}"
        lines = [self.headline, f"For: {sizes}", f"Run: {run}", f"Assumed: {self.assumed}"]
        return "\n".join([*lines, f"How: {self.how}", CAVEAT])


def expected(
    scenario: Scenario, n: int, epsilon: Any, effort: Effort, progress: Progress | None = None
) -> Expectation:
    """Simulate a scenario at one n and epsilon."""
    request = scenario.request(n, epsilon)
    problem = request.setting.problem
    return Expectation(
        n=n,
        epsilon=request.epsilon * scenario.rows_per_unit,
        epsilon_left=request.setting.epsilon,
        mechanism=request.mechanism.name,
        loss=problem.loss,
        constraint=problem.constraint,
        neighbours=problem.neighbours,
        assumed=scenario.population,
        recovery=simulate_recovery(scenario, n, epsilon, effort, progress),
    )


def shown_with_interval(recovery: Recovery) -> str:
    """A probability and its interval, such as "0.67 (0.54 to 0.77)"."""
    low, high = recovery.interval
    return f"{shown(recovery.probability)} ({shown(low)} to {shown(high)})"


def shown(probability: float) -> str:
    """Two decimals; "0.00" and "1.00" stand for exactly 0 and 1."""
    if 0 < probability < 0.005:
        return "<0.01"
    if 0.995 <= probability < 1:
        return ">0.99"
    return f"{probability:.2f}"
