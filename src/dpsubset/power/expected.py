"""One answer for one n and one epsilon: by the closed form where there is one, or by simulation.

The closed form is exact for given gaps, and gaps are drawn from their normal limits. What it leaves
out are correlations that columns have by chance, and what is not normal in few rows. Its interval
is what is found if all gaps are `GAP_ERROR` smaller or larger, with room for the error of the
average and for the rest; tests compare it with simulations.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from ..api.request import SelectionRequest
from ..base.errors import ArgumentError
from ..base.validation import check_choice
from ..mechanisms.permute_and_flip import PermuteAndFlip
from .closed import GAP_ERROR, Floats, drawn
from .expectation import Estimate, Expectation, widened
from .gains import made_up_gains
from .question import Question
from .simulated import Effort, Progress, simulated

Method = Literal["auto", "closed", "simulated"]

#: Tables that gaps are drawn for.
TABLES = 384

#: Numbers that are held at once: tables times columns.
_MOST_CELLS = 2**23


def expected(
    question: Question, n: int, epsilon: Any, method: Method, effort: Effort,
    progress: Progress | None = None,
) -> Expectation:  # fmt: skip
    """What to expect of a release from n rows."""
    planned = question.planned(n, epsilon)
    if by_closed_form(question, planned, method, effort):
        found = closed(question, planned, n)
    else:
        found = simulated(question, n, epsilon, effort, progress)
    problem = planned.setting.problem
    return Expectation(
        n=n,
        epsilon=planned.epsilon * question.rows_per_unit,
        epsilon_left=planned.setting.epsilon,
        mechanism=planned.mechanism.name,
        loss=problem.loss,
        constraint=problem.constraint,
        neighbours=problem.neighbours,
        assumed=question.population,
        estimate=found,
    )


def by_closed_form(
    question: Question, planned: SelectionRequest, method: Method, effort: Effort
) -> bool:
    """Whether there is a closed form, and nobody wished for draws."""
    check_choice(method, get_args(Method), "method")
    reason = question.why_simulated(planned)
    if method == "closed":
        if reason is not None:
            raise ArgumentError(
                f"there is no closed form for {reason}: leave method out, or take 'simulated'"
            )
        if effort.tables is not None:
            raise ArgumentError("tables are simulated: leave them out, or method='closed'")
        return True
    return method == "auto" and reason is None and effort.tables is None


def likely(question: Question, n: int, epsilon: Any, tables: int = TABLES) -> float:
    """The probability alone, by the closed form."""
    planned = question.planned(n, epsilon)
    true, other, curve, flips, _ = _weighed(question, planned, n, tables)
    return float(drawn(true, other, curve, flips).mean())


def closed(question: Question, planned: SelectionRequest, n: int) -> Estimate:
    """By the closed form, averaged over gaps."""
    true, other, curve, flips, gap = _weighed(question, planned, n)
    shares = drawn(true, other, curve, flips)
    mean, tables = float(shares.mean()), len(shares)
    error = 2 * float(shares.std()) / math.sqrt(tables)
    low, high = (
        float(drawn((1 + change) * true, other, curve, flips).mean())
        for change in (-GAP_ERROR, GAP_ERROR)
    )
    return Estimate(mean, widened(mean, (low, high), error), tables, 0, gap)


def _weighed(
    question: Question, planned: SelectionRequest, n: int, most: int = TABLES
) -> tuple[Floats, Floats, Floats, bool, float]:
    """Gains of made-up tables times eta, which mechanism weighs them, and the gap."""
    population = question.population
    tables = max(16, min(most, _MOST_CELLS // population.p))
    gains = made_up_gains(planned, population, n, tables, seed=0)
    eta, flips = float(question.eta(planned)), isinstance(planned.mechanism, PermuteAndFlip)
    return eta * gains.true, eta * gains.other, eta * gains.curve, flips, eta * gains.gap
