"""The lines that a dry run adds to a price: the power of the same release on simulated tables, and
the expected widths of a fit's intervals.

They depend on public facts alone: the schema, k, epsilon, the options, and n where it is public and
no cost under add-remove neighbours is stated. The signal-to-noise ratio is assumed. The simulation
has a fixed seed, and its size depends on p alone, so equal facts give equal lines.
"""

from __future__ import annotations

from typing import Any

from ..api.fit import FitRequest, build_fit_request
from ..api.request import SelectionRequest, build_request, exact_epsilon
from ..api.size import Size
from ..base.errors import ArgumentError
from ..schema.schema import SchemaLike
from .expectation import shown_with_interval
from .inverse import find_smallest, rounded_up
from .population import Population, Signals
from .scenario import Scenario
from .simulation import Effort, simulate_recovery
from .widths import HALF_WIDTHS, Shape, simulate_widths

#: The assumed signal-to-noise ratio, and the profile that is shown beside equal signals.
SNR = 1.0
UNEQUAL: Signals = "linear"
#: The probability for which rows are given where the number of rows is not known.
WISHED = 0.9

#: Tables for one probability: by the number of columns, but neither fewer nor more than this.
_COLUMNS, _FEWEST, _MOST = 2_000, 20, 40
#: The most columns and rows that are simulated within about a second.
_MOST_COLUMNS, _MOST_RECORDS = 200, 20_000
#: The same for the columns of a model, and how many fits are simulated.
_MOST_FITTED, _FITS = 40, 9
#: Options that are passed on to the simulated selection.
_PASSED_ON = (
    "delta", "mechanism", "options", "allow_unproven", "loss", "threshold", "constraint",
    "prediction_bound", "radius", "ridge", "intercept", "neighbours", "sensitivity",
    "response_range",
)  # fmt: skip
_ABOUT = "on simulated tables (Gaussian, independent columns), not on this one"


def dry_run_hint(data: Any, schema: SchemaLike | None, *, k: Size = None, epsilon: Any,
                 rows_private: bool = False, **options: Any) -> list[str]:  # fmt: skip
    """Return the lines for a selection. Reads names and types of columns, and no value.

    With ``rows_private``, and where the price states a cost under add-remove neighbours, the lines
    do not depend on the number of rows.
    """
    request = build_request(data, schema, k=k, epsilon=epsilon, **options)
    return _lines(request, data, epsilon, rows_private, options)


def dry_run_hint_of_fit(data: Any, schema: SchemaLike | None, *, k: Size = None, epsilon: Any,
                        rows_private: bool = False, **options: Any) -> list[str]:  # fmt: skip
    """Return the lines for a fit: of its selection and its intervals; as for a selection."""
    request = build_fit_request(data, schema, k=k, epsilon=epsilon, **options)
    return _lines(request, data, epsilon, rows_private, options)


def _lines(
    request: SelectionRequest | FitRequest, data: Any, epsilon: Any, rows_private: bool,
    options: dict[str, Any],
) -> list[str]:  # fmt: skip
    if data is not None and not rows_private:
        n = request.open(data, options.get("y")).rows
        with_rows = request.with_rows(n)
        if n is not None and "add-remove" not in with_rows.guarantee.costs:
            request = with_rows
    fit = request if isinstance(request, FitRequest) else None
    selection = request.selection if isinstance(request, FitRequest) else request
    problem, schema, n = selection.problem, selection.spec.schema, selection.n
    if problem.p <= problem.k or (n is not None and n < 2):
        return []  # nothing to select, or no table to select from
    counts = selection.readable_check
    spent = 0 if counts is None else counts.noise.epsilon * schema.rows_per_unit
    left = exact_epsilon(epsilon) - spent
    labels = schema.response.labels is not None
    passed_on = {name: options[name] for name in _PASSED_ON if name in options}
    if passed_on.get("mechanism") is None:  # that of k="auto", or the default
        passed_on["mechanism"] = selection.mechanism.name
    scenario = Scenario.create(
        Population(problem.p, problem.k, SNR, labels=labels),
        passed_on,
        schema.rows_per_unit,
        "select" if fit is None else "fit",
        None if fit is None else fit.rule,
    )
    power, rows = _power(selection, scenario, left)
    about = _ABOUT + (", with all k to be found" if problem.always_include else "")
    if selection.mechanism.chooses_size:
        about += f", where {problem.k} variables, the largest number, make up the response"
    lines = [f"Power: {power} {about}"]
    if fit is not None and rows is not None:
        lines += _intervals(fit, scenario, rows)
    return lines


def _power(request: SelectionRequest, scenario: Scenario, epsilon: Any) -> tuple[str, int | None]:
    """What is said of the selection; and the number of rows, or the one with equal signals."""
    problem, n = request.problem, request.n
    if problem.p > _MOST_COLUMNS or (request.records_for and (n or 0) > _MOST_RECORDS):
        command = f"dpsubset power --p {problem.p} --k {problem.k} ..."
        return f"too large for a quick simulation; '{command}' simulates it", n
    effort = Effort(max(_FEWEST, min(_MOST, _COLUMNS // problem.p)), seed=0)
    found, rows = [], []
    for population in scenario.population.profiles(UNEQUAL):
        case = scenario.with_population(population)
        if n is not None:
            recovery = simulate_recovery(case, n, epsilon, effort)
            answer = (
                f"{shown_with_interval(recovery)} and {recovery.expected_found:.1f} of {problem.k}"
            )
        else:
            # The search simulates several times as many tables as its effort says.
            rows.append(_rows_for(case, epsilon, effort.fraction(0.4)))
            answer = "no number" if rows[-1] is None else f"about {rows[-1]:,}"
        found.append(f"{answer} with {population.profile}")
    what = (
        "probability that the whole true support is released, and expected number of its "
        f"variables that are, at SNR {SNR:g}:"
    )
    if n is None:
        what = (
            f"rows for a probability of {WISHED:g} that the whole true support is released, at "
            f"SNR {SNR:g}:"
        )
    return f"{what} {', '.join(found)};", n if n is not None else rows[0]


def _rows_for(scenario: Scenario, epsilon: Any, effort: Effort) -> int | None:
    """Roughly how many rows are needed."""
    try:
        found = find_smallest(scenario, "n", epsilon, WISHED, effort)
    except ArgumentError:  # more records than can be simulated
        found = None
    return None if found is None else int(rounded_up(found, 2))


def _intervals(request: FitRequest, scenario: Scenario, rows: int) -> list[str]:
    """What is said of the intervals: for the models with the fewest and the most columns."""
    design, problem = request.selection.spec.design, request.selection.problem
    always = set(design.always)
    by_columns = sorted(range(len(design.choices)), key=lambda j: len(design.choices[j].columns))
    others = [j for j in by_columns if j not in always]
    free = problem.k - len(always)
    shapes = dict.fromkeys(
        Shape.of(design, [*always, *chosen])
        for chosen in (others[:free], others[len(others) - free :])
    )
    found = []
    for shape in shapes:
        if shape.columns > _MOST_FITTED:
            found.append(f"{shape} ({shape.columns} columns): too many for a quick simulation")
            continue
        effort = Effort(_FITS, seed=0)
        widths = simulate_widths(request, shape, scenario.population, rows, effort)
        if widths is None:
            return [f"Intervals: {request.noise.name} gives none for the population"]
        found.append(str(widths))
    with_rows = f" with {rows:,} rows" if request.selection.n is None else ""
    return [
        f"Intervals: {HALF_WIDTHS[0].lower()}{HALF_WIDTHS[1:]}{with_rows}: {'; '.join(found)}; "
        "on simulated tables"
    ]
