"""Expectation: the result of a power analysis, with everything that it assumes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from ..api.request import exact_epsilon
from .population import Population, Signals
from .scenario import Kind, Scenario
from .simulation import Effort, Progress, Recovery, simulate_recovery, within
from .widths import HALF_WIDTHS, Shape, Widths, simulate_widths

CAVEAT = "About simulated tables, not about yours: no data were read, and nothing is spent."


@dataclass(frozen=True)
class Expectation:
    """How likely a release names the true variables, and how wide intervals of a fit are.

    Attributes
    ----------
    n, epsilon : int and Fraction
        The number of rows, and the budget of the release.
    epsilon_left : Fraction
        The part of epsilon, for one row, that the other steps leave for the selection.
    mechanism, loss, constraint, neighbours : str
        The selection that was simulated.
    assumed : Population
        The distribution of the simulated tables, with equal signals.
    recovery : Recovery
        In how many of these tables the true support was released, and how much of it.
    unequal : Population, optional
        The distribution with unequal signals of the same signal-to-noise ratio. None if there is
        one signal, or ``signals="equal"``.
    unequal_recovery : Recovery, optional
        The same of its tables.
    release : {"select", "fit"}
        The function whose release was simulated.
    fit : str, optional
        The method of the fit.
    epsilon_of_fit : Fraction, optional
        The part of epsilon, for one row, that the fit has.
    widths : tuple of Widths
        The expected widths of its intervals: of a model of numbers, and of one with the categories
        that were given. Empty if the fit has no intervals.
    solved : "n", "epsilon" or None
        Which of the two is the smallest value that reaches ``wished`` with equal signals.
    wished : float, optional
        The requested probability.
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
    unequal: Population | None = None
    unequal_recovery: Recovery | None = None
    release: Kind = "select"
    fit: str | None = None
    epsilon_of_fit: Fraction | None = None
    widths: tuple[Widths, ...] = ()
    solved: Literal["n", "epsilon"] | None = None
    wished: float | None = None

    @property
    def probability(self) -> float:
        """The estimated probability that exactly the true support is released: equal signals."""
        return self.recovery.probability

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the probability (Clopper and Pearson)."""
        return self.recovery.interval

    @property
    def expected_found(self) -> float:
        """The expected number of true variables among those released: equal signals."""
        return self.recovery.expected_found

    @property
    def cases(self) -> tuple[tuple[Population, Recovery], ...]:
        """Each profile of signals with its recovery."""
        first = (self.assumed, self.recovery)
        if self.unequal is None or self.unequal_recovery is None:
            return (first,)
        return first, (self.unequal, self.unequal_recovery)

    @property
    def how(self) -> str:
        """How the probabilities were estimated."""
        counts = sorted({recovery.tables for _, recovery in self.cases})
        return (
            f"{' and '.join(f'{count:,}' for count in counts)} simulated tables with one draw "
            "each; in brackets the 95 % confidence interval (Clopper-Pearson)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "probability": self.probability,
            "interval": list(self.interval),
            "how": self.how,
            "tables": self.recovery.tables,
            "recovered": self.recovery.successes,
            "signals": [
                {
                    "signals": population.signals,
                    "weights": population.weights.tolist(),
                    "probability_of_the_whole_set": recovery.probability,
                    "interval": list(recovery.interval),
                    "expected_number_of_true_variables": recovery.expected_found,
                    "tables": recovery.tables,
                }
                for population, recovery in self.cases
            ],
            "n": self.n,
            "epsilon": float(self.epsilon),
            "epsilon_of_the_selection": float(self.epsilon_left),
            "release": self.release,
            "fit": self.fit,
            "epsilon_of_the_fit": None
            if self.epsilon_of_fit is None
            else float(self.epsilon_of_fit),
            "interval_half_widths": [each.to_dict() for each in self.widths],
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
        """The smallest value, if one was requested, and a line for each profile of signals."""
        lines = ["Probability that the whole true support is released; expected number of its "
                 "variables that are:"]  # fmt: skip
        if self.solved is not None:
            value = f"{self.n:,}" if self.solved == "n" else f"{float(self.epsilon):.3g}"
            lines.insert(
                0, f"Smallest {self.solved} for {self.wished:g} with equal signals: {value}"
            )
        lines += [f"  {population.profile}: {shown_recovery(recovery, population.k)}"
                  for population, recovery in self.cases]  # fmt: skip
        return "\n".join(lines)

    def __str__(self) -> str:
        parts = []
        if self.epsilon_left != self.epsilon:
            parts.append(f"{float(self.epsilon_left):.4g} of it for the selection")
        if self.epsilon_of_fit is not None:
            parts.append(f"{float(self.epsilon_of_fit):.4g} for the fit")
        sizes = (
            f"n {self.n:,}, p {self.assumed.p:,}, k {self.assumed.k}, "
            f"epsilon {float(self.epsilon):.4g}" + (f" ({', '.join(parts)})" if parts else "")
        )
        run = f"{self.mechanism}, {self.loss}, {self.constraint}, {self.neighbours}"
        run += f"; fitted by {self.fit}" * (self.fit is not None)
        return "\n".join([
            self.headline, *self._lines_of_widths(), f"For: {sizes}", f"Run: {run}",
            f"Assumed: {self.assumed}", f"How: {self.how}", CAVEAT,
        ])  # fmt: skip

    def _lines_of_widths(self) -> list[str]:
        if self.fit is None:
            return []
        if not self.widths:
            return [f"Intervals: {self.fit} gives none for the population"]
        return [
            f"{HALF_WIDTHS}:",
            *(f"  {each}" for each in self.widths),
            f"  for comparison, equal signals have coefficients of {self.assumed.weights[0]:.2g}",
        ]


def expected(
    scenario: Scenario,
    n: int,
    epsilon: Any,
    effort: Effort,
    progress: Progress | None = None,
    *,
    signals: Signals = "linear",
    shape: Shape | None = None,
) -> Expectation:
    """Simulate a scenario at one n and epsilon.

    ``signals`` is the profile that is shown beside equal signals, and ``shape`` says which of the
    k variables of a fit are categories.
    """
    population, request = scenario.population, scenario.request(n, epsilon)
    problem = request.setting.problem
    populations = population.profiles(signals)
    fits = []
    if scenario.release == "fit":
        fits = list(dict.fromkeys([Shape(population.k), shape or Shape(population.k)]))
    parts = len(populations) + len(fits)
    each = effort if effort.tables else effort.fraction(1 / parts)
    ends = [within(progress, i / parts, (i + 1) / parts) for i in range(parts)]
    recoveries = [
        simulate_recovery(scenario.with_population(one), n, epsilon, each, ends[i])
        for i, one in enumerate(populations)
    ]
    fit = epsilon_of_fit = None
    widths: list[Widths | None] = []
    for i, one in enumerate(fits, start=len(populations)):
        schema = replace(one.schema(population), rows_per_unit=scenario.rows_per_unit)
        whole = scenario.fit_request(schema, n, epsilon)
        fit, epsilon_of_fit = whole.noise.name, whole.noise.epsilon
        widths.append(simulate_widths(whole, one, population, n, each, ends[i]))
    unequal = len(populations) > 1
    return Expectation(
        n=n,
        epsilon=exact_epsilon(epsilon),
        epsilon_left=request.setting.epsilon,
        mechanism=request.mechanism.name,
        loss=problem.loss,
        constraint=problem.constraint,
        neighbours=problem.neighbours,
        assumed=populations[0],
        recovery=recoveries[0],
        unequal=populations[1] if unequal else None,
        unequal_recovery=recoveries[1] if unequal else None,
        release=scenario.release,
        fit=fit,
        epsilon_of_fit=epsilon_of_fit,
        widths=tuple(each for each in widths if each is not None),
    )


def shown_recovery(recovery: Recovery, k: int) -> str:
    """Both numbers of a profile, such as "0.67 (0.54 to 0.77); 2.5 of 3"."""
    return f"{shown_with_interval(recovery)}; {recovery.expected_found:.1f} of {k}"


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
