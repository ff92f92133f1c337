"""What a dry run adds to a price: what the planner expects of tables of the same size. Public.

It knows what a price knows: p, k, epsilon, the loss and so on, and n where that is public and
no cost under add-remove neighbours is stated. The signal is assumed, not looked at.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from ..api.request import SelectionRequest
from ..api.request import build_request as plan_of
from ..schema.schema import Schema
from .expectation import shown
from .expected import expected
from .population import Population
from .question import Question
from .simulated import Effort
from .smallest import rows_for

#: Signals that are assumed.
SIGNALS = (1.0, 5.0)
#: Variables that take seconds.
_MANY = 5_000
#: Where the number of rows is not known, how many are needed for this probability.
WISHED = 0.9

_PASSED_ON = (
    "delta",
    "mechanism",
    "options",
    "allow_unproven",
    "loss",
    "threshold",
    "constraint",
    "prediction_bound",
    "radius",
    "ridge",
    "intercept",
    "neighbours",
    "sensitivity",
    "response_range",
)
_CLOSED = Effort()
_ABOUT = "of made-up tables (Gaussian, independent columns, equal signals), not of this one"


def outlook(data: Any, schema: Schema | str | Path | None, *, k: int, epsilon: Any,
            rows_private: bool = False, **asked: Any) -> list[str]:  # fmt: skip
    """One line or two on what to expect. Names and types of columns are seen, no value is read.

    Where ``rows_private``, or where the price states a cost under add-remove neighbours, they do
    not depend on the number of rows.
    """
    planned = plan_of(data, schema, k=k, epsilon=epsilon, **asked)
    if data is not None and not rows_private:
        n = planned.open(data, asked.get("y")).rows
        counted = planned.with_rows(n)
        if n is not None and "add-remove" not in counted.guarantee.costs:
            planned = counted
    return lines(planned, {name: asked[name] for name in _PASSED_ON if name in asked})


def lines(planned: SelectionRequest, asked: dict[str, Any]) -> list[str]:
    """For a plan, with what was said of the selection."""
    problem, schema = planned.setting.problem, planned.spec.schema
    always = len(problem.always_include)
    labels = schema.response.labels is not None
    rows, n = schema.rows_per_unit, planned.setting.n
    epsilon = planned.epsilon * rows
    told = []
    if problem.p <= problem.k or (n is not None and n < 2):
        return []  # nothing to be found, or nothing to find it by
    for snr in SIGNALS:
        population = Population(problem.p, problem.k, snr, labels=labels)
        question = Question.of(population, rows, asked)
        reason = question.why_simulated(planned)
        if problem.p > _MANY:
            reason = f"{problem.p:,} variables"
        if reason is not None:
            command = f"dpsubset plan --p {problem.p} --k {problem.k} ..."
            return [
                f"Planner: no quick answer for {reason}; '{command}' simulates {_about(always)}"
            ]
        told.append(f"{_expected(question, n, epsilon)} at SNR {snr:g}")
    if n is None:
        what = f"rows for a probability of {WISHED:g} that the true support is released"
        return [f"Planner: {what}: {' or '.join(told)}; {_about(always)}"]
    what = "probability that the true support is released"
    return [f"Planner: {what} {' or '.join(told)}; {_about(always)}"]


def _expected(question: Question, n: int | None, epsilon: Fraction) -> str:
    if n is not None:
        found = expected(question, n, epsilon, "closed", _CLOSED)
        low, high = found.interval
        return f"{shown(found.probability)} ({shown(low)} to {shown(high)})"
    rows = rows_for(question, epsilon, WISHED)
    return "no number" if rows is None else f"about {rows:,}"


def _about(always: int) -> str:
    return _ABOUT + (", with all k to be found" if always else "")
