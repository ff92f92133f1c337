"""The lines that a dry run adds to a price: the power of the same selection on simulated tables.

They depend on public facts alone: p, k, epsilon, the options, and n where it is public and no cost
under add-remove neighbours is stated. The signal-to-noise ratios are assumed. The simulation has a
fixed seed, and its size depends on p alone, so equal facts give equal lines.
"""

from __future__ import annotations

from typing import Any

from ..api.request import SelectionRequest, build_request
from ..base.errors import ArgumentError
from ..schema.schema import SchemaLike
from .expectation import shown_with_interval
from .inverse import find_smallest, rounded_up
from .population import Population
from .scenario import Scenario
from .simulation import Effort, simulate_recovery

#: The assumed signal-to-noise ratios.
SIGNALS = (1.0, 5.0)
#: The probability for which rows are given where the number of rows is not known.
WISHED = 0.9

#: Tables for one probability: by the number of columns, but neither fewer nor more than this.
_COLUMNS, _FEWEST, _MOST = 2_000, 20, 60
#: The most columns and rows that are simulated within about a second.
_MOST_COLUMNS, _MOST_RECORDS = 200, 20_000
#: Options that are passed on to the simulated selection.
_PASSED_ON = (
    "delta", "mechanism", "options", "allow_unproven", "loss", "threshold", "constraint",
    "prediction_bound", "radius", "ridge", "intercept", "neighbours", "sensitivity",
    "response_range",
)  # fmt: skip
_ABOUT = "on simulated tables (Gaussian, independent columns, equal signals), not on this one"


def dry_run_hint(data: Any, schema: SchemaLike | None, *, k: int, epsilon: Any,
                 rows_private: bool = False, **options: Any) -> list[str]:  # fmt: skip
    """Return at most one line. Reads names and types of columns, and no value.

    With ``rows_private``, and where the price states a cost under add-remove neighbours, the line
    does not depend on the number of rows.
    """
    request = build_request(data, schema, k=k, epsilon=epsilon, **options)
    if data is not None and not rows_private:
        n = request.open(data, options.get("y")).rows
        with_rows = request.with_rows(n)
        if n is not None and "add-remove" not in with_rows.guarantee.costs:
            request = with_rows
    return lines(request, {name: options[name] for name in _PASSED_ON if name in options})


def lines(request: SelectionRequest, options: dict[str, Any]) -> list[str]:
    """Return the line for a request that was made with these options."""
    problem, schema, n = request.setting.problem, request.spec.schema, request.setting.n
    if problem.p <= problem.k or (n is not None and n < 2):
        return []  # nothing to select, or no table to select from
    about = _ABOUT + (", with all k to be found" if problem.always_include else "")
    labels, epsilon = schema.response.labels is not None, request.epsilon * schema.rows_per_unit
    effort = Effort(max(_FEWEST, min(_MOST, _COLUMNS // problem.p)), seed=0)
    found = []
    for snr in SIGNALS:
        population = Population(problem.p, problem.k, snr, labels=labels)
        scenario = Scenario.create(population, options, schema.rows_per_unit)
        if problem.p > _MOST_COLUMNS or (request.records_for and (n or 0) > _MOST_RECORDS):
            command = f"dpsubset power --p {problem.p} --k {problem.k} ..."
            return [f"Power: too large for a quick simulation; '{command}' simulates it {about}"]
        if n is not None:
            answer = shown_with_interval(simulate_recovery(scenario, n, epsilon, effort))
        else:
            # The search simulates several times as many tables as its effort says.
            answer = _rows_for(scenario, epsilon, effort.fraction(0.4))
        found.append(f"{answer} at SNR {snr:g}")
    what = "probability that the true support is released:"
    if n is None:
        what = f"rows for a probability of {WISHED:g} that the true support is released:"
    return [f"Power: {what} {' or '.join(found)}; {about}"]


def _rows_for(scenario: Scenario, epsilon: Any, effort: Effort) -> str:
    """Roughly how many rows are needed."""
    try:
        found = find_smallest(scenario, "n", epsilon, WISHED, effort)
    except ArgumentError:  # more records than can be simulated
        found = None
    return "no number" if found is None else f"about {int(rounded_up(found, 2)):,}"
