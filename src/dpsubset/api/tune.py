"""tune: a model whose setting is chosen privately from a grid, under one total epsilon.

A response range is released first, once. Each run then picks a random setting of the grid, draws
what :func:`dpsubset.fit` would release with it, and receives a noisy score (`models.run_score`).
The number of runs is random (`privacy.random_stopping`), and the run with the highest score is
released. The proof is in `proofs/private_search.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Unpack

from ..base.errors import ArgumentError
from ..base.renamed import SELECTION, current_names
from ..base.validation import as_decimal_fraction
from ..data.moments import Moments
from ..data.readers.passes import Passes
from ..ledger.event import Event
from ..ledger.spending import LedgerLike
from ..models.rule import RANGE_FRACTION, FitRule
from ..models.run_score import RunScore, Window, total_loss
from ..privacy.class_share import ClassShare
from ..privacy.guarantee import Guarantee
from ..privacy.missing_counts import readable_fraction
from ..privacy.quantiles import RangeInSteps
from ..privacy.random import Randomness
from ..privacy.random_stopping import NAME, Stopping, covered
from ..privacy.relations import Neighbours
from ..privacy.response_range import ResponseRange
from ..release.release import Release
from ..release.tuned import Tuned, Value, setting_as_text
from ..schema.layout import STEPS
from ..schema.schema import SchemaLike
from .driver import Execution, Price, Request, event_of, make_release, price_of
from .fit import FitRequest, build_fit_request, draw_fit, solution_of
from .problem_spec import build_problem_spec, resolve_schema, with_keywords_of
from .request import (
    EarlierRange,
    SelectionOptions,
    SelectionRequest,
    build_request,
    exact_epsilon,
    sampler_of,
    step_of,
)
from .sensitive_table import SensitiveTable
from .size import Size

__all__ = ["price_tune", "tune"]

#: Arguments of a selection that a grid may vary.
_OF_SELECTION = (
    "k", "mechanism", "loss", "threshold", "constraint", "prediction_bound", "radius", "ridge",
)  # fmt: skip
#: Fields of a FitRule that a grid may vary, and their names in a FitRule.
_OF_RULE = {"fit": "mechanism", "budget_fraction": "budget_fraction", "width": "width"}
#: Former names of both.
_FORMER = {**SELECTION, "share": "budget_fraction"}
VARIED = (*_OF_SELECTION, *_OF_RULE)

#: Largest number of settings of a grid.
LARGEST_GRID = 1000

#: The steps of a search after the response range, as guarantees name them.
SEARCH, SCORE_STEP = "the search", "the score"

#: The fraction of the budget of one run that the score has.
SCORE_SHARE = Fraction(1, 6)

#: The shape of the default stopping rule.
ETA: Fraction = Fraction(-1, 2)

Grid = Mapping[str, Iterable[Value]] | Sequence[Mapping[str, Iterable[Value]]]


@dataclass(frozen=True)
class SearchTables:
    """The table, opened for settings that need the records, for settings that need only sums, or
    for both.
    """

    by_need: dict[bool, SensitiveTable]

    @property
    def any(self) -> SensitiveTable:
        """One of the opened tables."""
        return next(iter(self.by_need.values()))

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known before values are read."""
        return self.any.rows

    def of(self, selection: SelectionRequest) -> SensitiveTable:
        """The table for a setting."""
        return self.by_need[selection.records_for is not None]


@dataclass(frozen=True)
class TuneRequest(Request[SearchTables, Release]):
    """A private search whose arguments have been checked. Public."""

    #: The settings.
    grid: tuple[dict[str, Value], ...]
    #: The fit of each setting, which a run draws before it is scored.
    candidates: tuple[FitRequest, ...]
    #: How a run is scored.
    score: RunScore
    #: The distribution of the number of runs.
    stopping: Stopping
    #: The response range, or the share of labels, that is released once, before all runs.
    response_range: ResponseRange | ClassShare | None
    #: The budget of the response range, for one row.
    range_epsilon: Fraction

    @property
    def first(self) -> SelectionRequest:
        """The selection of the first setting. All settings have its schema, neighbours and seed."""
        return self.candidates[0].selection

    @property
    def seed(self) -> int | None:  # type: ignore[override]
        return self.first.seed

    @property
    def neighbours(self) -> Neighbours:
        return self.first.neighbours

    @property
    def n_is_public(self) -> bool:
        return self.first.n_is_public

    @property
    def priced_item(self) -> str:
        """The settings: the cost of a setting may depend on the number of rows."""
        return "a setting of the grid"

    @property
    def needs_rows(self) -> bool:
        return any(each.needs_rows for each in self.candidates)

    def with_rows(self, n: int | None) -> TuneRequest:
        known = tuple(each.with_rows(n) for each in self.candidates)
        same = all(new is old for new, old in zip(known, self.candidates, strict=True))
        return self if same else replace(self, candidates=known)

    @cached_property
    def runs(self) -> tuple[Guarantee, ...]:
        """The guarantees of one run with each setting, for one unit: selection, fit and score."""
        seeded, rows = self.seed is not None, self.first.spec.schema.rows_per_unit
        score = self.score.guarantee(seeded=seeded).group_privacy(rows)
        return tuple(
            Guarantee.compose({**dict(each.guarantee.parts), SCORE_STEP: score})
            for each in self.candidates
        )

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole search for one unit."""
        whole = self.stopping.guarantee(list(self.runs))
        if self.response_range is not None:
            seeded, rows = self.seed is not None, self.first.spec.schema.rows_per_unit
            rule, step = self.response_range.rule, step_of(self.response_range)
            first = rule.guarantee(self.range_epsilon, self.neighbours, seeded=seeded)
            whole = Guarantee.compose({step: first.group_privacy(rows), SEARCH: whole})
        return covered(whole)

    def open(self, data: Any, y: Any = None) -> SearchTables:
        needs = {each.selection.records_for is not None: each for each in self.candidates}
        return SearchTables({need: each.open(data, y) for need, each in needs.items()})

    def type_mismatches(self, data: Any, y: Any = None) -> tuple[str, ...]:
        return self.first.type_mismatches(data, y)

    def describe(self, guarantee: Guarantee) -> Event:
        schema = self.first.spec.schema
        return Event.of(
            "tune",
            NAME,
            guarantee,
            unit=schema.privacy_unit,
            rows_per_unit=schema.rows_per_unit,
            schema=schema.fingerprint(),
            options={
                "grid": "; ".join(map(setting_as_text, self.grid)),
                "eta": str(self.stopping.eta),
                "gamma": str(self.stopping.gamma),
                "p": self.first.problem.p,
                "declared": self.neighbours,
            },
        )

    def run(self, execution: Execution[SearchTables]) -> Release:
        """Release the response range, make the runs, and return the one with the highest score."""
        tables, rng = execution.table, execution.rng
        counts, n = tables.any.count_response()
        request = self.with_rows(n)
        execution.check(request.guarantee)
        for table in tables.by_need.values():
            table.keep(n)
        scale, half_width, used_range = None, Fraction(1), self.response_range
        if used_range is not None:
            sampler = sampler_of(used_range, counts, self.range_epsilon, self.neighbours)
            scale = sampler.draw(rng)
        if isinstance(used_range, ResponseRange):
            half_width = used_range.rule.min_half_width
        # A model of labels is scored on -1 and 1.
        window = Window.of(scale if isinstance(scale, RangeInSteps) else None, half_width)

        def check(known: SelectionRequest) -> Guarantee:
            return execution.check(request.with_rows(known.n).guarantee)

        def one_run() -> tuple[int, Release, float]:
            chosen = rng.below(len(request.grid))
            candidate = request.candidates[chosen]
            table = tables.of(candidate.selection)
            used = None if candidate.selection.source is None else scale
            silent = Passes(None, request.n_is_public)
            made = draw_fit(candidate, table, rng, silent, check, used)
            return chosen, made, _score(request.score, made, table, window, rng)

        chosen, release, _ = request.stopping.best(rng, one_run, lambda run: run[2])
        tuned = Tuned(request.grid, chosen, request.stopping, request.runs[chosen])
        return replace(release, tuned=tuned, column_warnings=execution.column_warnings)


def settings(grid: Any) -> tuple[dict[str, Value], ...]:
    """Return the settings of a grid in order: all combinations of the values of each mapping."""
    parts = [grid] if isinstance(grid, Mapping) else grid
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        parts = ()
    listed: list[dict[str, Value]] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise ArgumentError("a grid is a mapping from names to lists of values, or several")
        part = current_names(part, _FORMER, "grid")
        for name, values in part.items():
            if name not in VARIED:
                raise ArgumentError(f"a grid may vary {', '.join(VARIED)}; not {str(name)!r}")
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise ArgumentError(f"the values of {name} in a grid must be a list")
        lists = [[_value(name, value) for value in values] for name, values in part.items()]
        listed += [dict(zip(part, chosen, strict=True)) for chosen in product(*lists)]
        if len(listed) > LARGEST_GRID:
            raise ArgumentError(f"a grid has at most {LARGEST_GRID} settings")
    if not listed:
        raise ArgumentError("the grid has no settings: give names and lists of values")
    return tuple(listed)


def _value(name: str, value: Any) -> Value:
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # NumPy's numbers
    if isinstance(value, Decimal):
        exactly = as_decimal_fraction(value)
        whole = exactly is not None and exactly.denominator == 1
        value = int(value) if whole else exactly
    if isinstance(value, bool) or not (value is None or isinstance(value, (int, float, Fraction,
                                                                           str))):  # fmt: skip
        raise ArgumentError(f"the values of {name} in a grid must be numbers or words")
    checked: Value = value
    return checked


def rule_of(rule: FitRule | None, setting: Mapping[str, Value]) -> FitRule:
    """Return the FitRule of a setting of the grid."""
    varied: Any = {_OF_RULE[name]: v for name, v in setting.items() if name in _OF_RULE}
    return replace(FitRule() if rule is None else rule, **varied)


def build_tune_request(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: Size = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> TuneRequest:
    """Check everything that can be checked without opening the table, for every setting."""
    listed = settings(grid)
    if rule is not None and not isinstance(rule, FitRule):
        raise ArgumentError("rule must be a dpsubset.FitRule")
    if isinstance(data, Moments):
        raise ArgumentError("a private search needs the records: moments are not enough")
    if readable_fraction(options.get("check_readable")):
        raise ArgumentError(
            "check_readable is for select and fit: each run of a private search would pay for it. "
            "Release the counts before, with select or fit"
        )
    stopping = Stopping.of_mean(max(len(listed), 2) if runs is None else runs, eta)
    budget = exact_epsilon(epsilon)
    declared = resolve_schema(data, y, schema, options.get("bounds"))
    options = {**options, "bounds": None}

    def candidates_at(epsilon: Fraction) -> tuple[FitRequest, ...]:
        candidates = []
        for setting in listed:
            if setting.get("k", k) is None and options.get("max_k") is None:
                raise ArgumentError("every setting needs k: give it in the grid, or as k=")
            own: Any = {"k": k, **{n: v for n, v in setting.items() if n in _OF_SELECTION}}
            one = build_fit_request(
                data, declared, epsilon=epsilon, rule=rule_of(rule, setting), y=y,
                **{**options, **own},
            )  # fmt: skip
            used = one.selection.response_range
            if used is not None:
                one = one.with_selection(one.selection.with_range(EarlierRange(used)))
            candidates.append(one)
        return tuple(candidates)

    # Whether there is a response range is known once all settings are checked. Its fraction is of
    # the total budget.
    ranges = [each.selection.response_range for each in candidates_at(budget)]
    used = next((each for each in ranges if each is not None), None)
    range_fraction = Fraction(0) if used is None else used.budget_fraction
    if options.get("response_range") in (None, "private"):
        range_fraction = min(range_fraction, RANGE_FRACTION)
    run_epsilon = budget * (1 - range_fraction) / stopping.factor
    candidates = candidates_at(run_epsilon * (1 - SCORE_SHARE))
    rows = declared.rows_per_unit
    score = RunScore(run_epsilon * SCORE_SHARE / rows, candidates[0].neighbours)
    request = TuneRequest(listed, candidates, score, stopping, used, budget * range_fraction / rows)
    if not request.needs_rows:
        _ = request.guarantee  # raises the errors of pricing
    return request


@with_keywords_of(build_request, build_problem_spec)
def tune(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: Size = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    ledger: LedgerLike = None,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Release:
    """Choose a setting of a public grid and release the model made with it, privately.

    The whole search costs epsilon. A response range is released once, for a tenth of it. The rest,
    divided by 2 + eta, is the budget of one run: a selection and a fit with a setting picked at
    random, and a noisy score of the fitted model on the table. The number of runs is random, and
    the run with the highest score is released.

    ``release.tuned.setting`` is the chosen setting, and ``release.model`` its model. The running
    time depends on the number of runs, which is not released.

    The arguments of :func:`dpsubset.select` are accepted and hold for all settings.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame, array or Moments
        The sensitive table.
    schema : Schema, path of a bounds file or dict of the same form, optional
        The table's public description.
    grid : mapping from names to lists of values, or a list of such mappings
        The settings: all combinations of the values of each mapping. It may vary k, mechanism,
        loss, threshold, constraint, prediction_bound, radius and ridge, which are arguments of
        :func:`dpsubset.select`, and fit, budget_fraction and width, which are mechanism,
        budget_fraction and width of a :class:`FitRule`. The grid is public and must not come
        from the data.
    epsilon : number
        The privacy budget of the whole search; taken exactly as given.
    k : int or "auto", optional
        Number of variables to select, unless the grid has k.
    rule : FitRule, optional
        How models are fitted, for parameters that the grid does not set.
    runs : number, optional
        The mean number of runs; by default the number of settings. It does not change the cost of
        the search.
    eta : number
        The shape of the distribution of the number of runs, above -1 and at most 1. With a smaller
        eta each run has a larger part of epsilon, and a single run is more likely.
    ledger : path, URL or Ledger, optional
        The ledger to which epsilon is debited before a value is read; as for
        :func:`dpsubset.select`.

    Returns
    -------
    Release
        The best run. Its ``tuned.setting`` is the chosen setting, its ``model`` the model.

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong. Nothing is spent.
    BudgetExceeded, LedgerError
        If the limit of the ledger does not allow the search, or the ledger cannot be used.
    SearchLimitError
        If a run exceeds a node or time limit. Nothing is released, and epsilon is spent.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
    >>> bounds, grid = dps.Bounds(x=1, y=1), {"k": [1, 2]}
    >>> release = dps.tune(X, y=X[:, 0], bounds=bounds, grid=grid, epsilon=10)
    >>> release.tuned.setting["k"] in grid["k"]
    True
    """
    request = build_tune_request(
        data, schema, grid=grid, epsilon=epsilon, k=k, rule=rule, runs=runs, eta=eta, y=y, **options
    )
    return make_release(request, data, y, ledger=ledger)


def _score(
    score: RunScore, release: Release, table: SensitiveTable, window: Window, rng: Randomness
) -> float:
    """Return the noisy score of a run; minus infinity if no model was released."""
    fit = release.fit
    if fit is None:
        return -math.inf
    odds = fit.loss == "logistic"
    cells = table.read_records(fit.schema, STEPS, None, window.images())
    weights = window.weights(solution_of(fit).theta, fit.clip, odds)
    return score.draw(total_loss(fit.entries, cells, weights, window.cap, odds), window.cap, rng)


@with_keywords_of(build_request, build_problem_spec)
def event_of_tune(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: Size = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Event:
    """Return the ledger entry of :func:`tune` with these arguments. Reads no value."""
    request = build_tune_request(
        data, schema, grid=grid, epsilon=epsilon, k=k, rule=rule, runs=runs, eta=eta, y=y, **options
    )
    return event_of(request, data, y)


@with_keywords_of(build_request, build_problem_spec)
def price_tune(
    data: Any = None,
    schema: SchemaLike | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: Size = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    y: Any = None,
    **options: Unpack[SelectionOptions],
) -> Price:
    """Price :func:`tune` with these arguments. Costs nothing: no value is read.

    Parameters
    ----------
    data : path, list of paths, pyarrow dataset, data frame or array, optional
        A table, whose column names and types are compared with the schema.
    schema, grid, epsilon, k, rule, runs, eta
        As for :func:`tune`. All its other arguments are accepted as well.

    Returns
    -------
    Price

    Raises
    ------
    ArgumentError, SchemaError, TableError
        The errors that :func:`tune` would raise before it reads a value.

    Examples
    --------
    >>> import dpsubset as dps
    >>> schema = dps.Schema.from_bounds({"age": (0, 110), "sex": (0, 1)}, ("cost", 0, 1000))
    >>> print(dps.price_tune(None, schema, grid={"k": [1, 2]}, epsilon=2).guarantee.epsilon)
    2
    """
    request = build_tune_request(
        data, schema, grid=grid, epsilon=epsilon, k=k, rule=rule, runs=runs, eta=eta, y=y, **options
    )
    mechanism = f"{NAME} among {len(request.grid)} settings"
    return price_of(request, data, y, mechanism, request.first.spec.schema)
