"""tune: a model whose setting was chosen privately among a grid, under one total epsilon.

A scale of the response is released first, once. Then each run takes a setting of the grid at
random, makes what :func:`dpsubset.fit` would release with it, and gets a score with noise
(`models.run_score`). The number of runs is random (`privacy.stopping`), and the run with the
highest score is the release. All of it is debited before a value is read. The proof is in
`proofs/private_search.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Unpack

from ..base.errors import ArgumentError, LedgerError
from ..base.renamed import SELECTION, current_names
from ..base.validation import as_decimal_fraction
from ..data.moments import Moments
from ..data.type_checks import type_mismatches, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited
from ..models.rule import SCALE_SHARE, FitRule
from ..models.run_score import RunScore, Window, total_loss
from ..privacy.guarantee import Guarantee
from ..privacy.missing_counts import readable_fraction
from ..privacy.quantiles import QuantileSampler
from ..privacy.random import Randomness
from ..privacy.random_stopping import NAME, Stopping, covered
from ..privacy.relations import Neighbours
from ..privacy.response_range import ResponseRange
from ..release.release import Release
from ..release.tuned import Tuned, Value, shown
from ..schema.layout import STEPS
from ..schema.schema import Schema
from .fit import FitRequest, build_fit_request, make_fit, solution_of
from .problem_spec import build_problem_spec, settle_schema, with_keywords_of
from .request import (
    SCALE,
    SelectionOptions,
    SelectionRequest,
    build_request,
    exact_epsilon,
    open_table_of,
)
from .select import Price, passes_of, priced, warn_of_counts
from .sensitive_table import SensitiveTable

__all__ = ["price_tune", "tune"]

#: Arguments of a selection that a grid may vary.
_OF_SELECTION = (
    "k", "mechanism", "loss", "threshold", "constraint", "prediction_bound", "radius", "ridge",
)  # fmt: skip
#: What a grid may vary of a FitRule, and how that calls it.
_OF_RULE = {"fit": "mechanism", "budget_fraction": "budget_fraction", "width": "width"}
#: Former names of these.
_FORMER = {**SELECTION, "share": "budget_fraction"}
VARIED = (*_OF_SELECTION, *_OF_RULE)

#: Most settings of a grid.
LARGEST_GRID = 1000

#: The steps of a search as guarantees name them: a scale of the response comes first, once.
SEARCH, SCORE_STEP = "the search", "the score"

#: Of what one run may cost, for its score.
SCORE_SHARE = Fraction(1, 6)

#: Of the default stopping rule, whose mean number of runs is that of the settings.
ETA: Fraction = Fraction(-1, 2)

Grid = Mapping[str, Iterable[Value]] | Sequence[Mapping[str, Iterable[Value]]]


@dataclass(frozen=True)
class TuneRequest:
    """A private search, ready for a table. Public.

    Attributes
    ----------
    grid : tuple of dict
        The settings.
    candidates : tuple of FitRequest
        What a run with each of them does before it is scored.
    score : RunScore
        How a run is scored.
    stopping : Stopping
        How many runs there are.
    scale : ResponseRange, optional
        What is released of the response once, before all runs.
    scale_epsilon : Fraction
        What that may cost one row.
    """

    grid: tuple[dict[str, Value], ...]
    candidates: tuple[FitRequest, ...]
    score: RunScore
    stopping: Stopping
    scale: ResponseRange | None
    scale_epsilon: Fraction

    def with_rows(self, n: int | None) -> TuneRequest:
        """The same for a table of n rows, where their number is public."""
        known = (each.with_selection(each.selection.with_rows(n)) for each in self.candidates)
        return replace(self, candidates=tuple(known))

    @property
    def first(self) -> SelectionRequest:
        """Of the first setting: schema, neighbours and seed are those of all."""
        return self.candidates[0].selection

    @property
    def neighbours(self) -> Neighbours:
        """Which tables count as neighbours."""
        return self.first.setting.problem.neighbours

    @property
    def priced(self) -> bool:
        """Whether all is known that the price depends on."""
        return all(each.selection.priced for each in self.candidates)

    def run(self, candidate: FitRequest) -> Guarantee:
        """What one run with a setting costs a unit: selection, fit and score."""
        seeded, rows = self.first.seed is not None, self.first.stated.schema.rows_per_unit
        score = self.score.guarantee(seeded=seeded).group_privacy(rows)
        steps = dict(candidate.price().parts)
        return Guarantee.compose({**steps, SCORE_STEP: score})

    def price(self) -> Guarantee:
        """What the whole search costs a unit."""
        found = self.stopping.guarantee([self.run(each) for each in self.candidates])
        if self.scale is not None:
            seeded, rows = self.first.seed is not None, self.first.stated.schema.rows_per_unit
            first = self.scale.rule.guarantee(self.scale_epsilon, self.neighbours, seeded=seeded)
            found = Guarantee.compose({SCALE: first.group_privacy(rows), SEARCH: found})
        return covered(found)

    def event(self) -> Event:
        """What a ledger notes of it, before it is made."""
        if not self.priced:
            raise LedgerError(
                "what a setting of the grid costs depends on the number of rows, which this file "
                "does not tell before it is read: with a ledger, take a Parquet file or a data "
                "frame"
            )
        schema = self.first.stated.schema
        return Event.of(
            "tune",
            NAME,
            self.price(),
            unit=schema.privacy_unit,
            rows_per_unit=schema.rows_per_unit,
            schema=schema.fingerprint(),
            options={
                "grid": "; ".join(map(shown, self.grid)),
                "eta": str(self.stopping.eta),
                "gamma": str(self.stopping.gamma),
                "p": self.first.setting.problem.p,
                "declared": self.neighbours,
            },
        )


def settings(grid: Any) -> tuple[dict[str, Value], ...]:
    """The settings of a grid, in order: all combinations of the values of each mapping."""
    parts = [grid] if isinstance(grid, Mapping) else grid
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        parts = ()
    found: list[dict[str, Value]] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise ArgumentError("a grid is a mapping from names to lists of values, or several")
        part = current_names(part, _FORMER, "grid")
        for name, values in part.items():
            if name not in VARIED:
                raise ArgumentError(
                    f"a grid may vary {', '.join(VARIED)}; {str(name)!r} is none of them"
                )
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise ArgumentError(f"the values of {name} in a grid must be a list")
        lists = [[_value(name, value) for value in values] for name, values in part.items()]
        found += [dict(zip(part, chosen, strict=True)) for chosen in product(*lists)]
        if len(found) > LARGEST_GRID:
            raise ArgumentError(f"a grid has at most {LARGEST_GRID} settings")
    if not found:
        raise ArgumentError("the grid has no settings: give names and lists of values")
    return tuple(found)


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
    found: Value = value
    return found


def rule_of(rule: FitRule | None, setting: Mapping[str, Value]) -> FitRule:
    """The rule of a setting, which may vary a part of it."""
    varied: Any = {_OF_RULE[name]: v for name, v in setting.items() if name in _OF_RULE}
    return replace(FitRule() if rule is None else rule, **varied)


def build_tune_request(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: int | None = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    **asked: Unpack[SelectionOptions],
) -> TuneRequest:
    """Check everything that can be checked without opening the table, for every setting."""
    listed = settings(grid)
    if rule is not None and not isinstance(rule, FitRule):
        raise ArgumentError("rule must be a dpsubset.FitRule")
    if isinstance(data, Moments):
        raise ArgumentError("a private search needs the records: moments are not enough")
    if readable_fraction(asked.get("check_readable")):
        raise ArgumentError(
            "check_readable is for select and fit: each run of a private search would pay for it. "
            "Check the table before, with a release of its own"
        )
    stopping = Stopping.of_mean(max(len(listed), 2) if runs is None else runs, eta)
    budget = exact_epsilon(epsilon)
    settled = settle_schema(data, asked.get("y"), schema, asked.get("bounds"))
    asked = {**asked, "bounds": None}

    def planned(epsilon: Fraction) -> list[FitRequest]:
        found = []
        for setting in listed:
            if setting.get("k", k) is None:
                raise ArgumentError("every setting needs k: give it in the grid, or as k=")
            part: Any = {"k": k, **{n: v for n, v in setting.items() if n in _OF_SELECTION}}
            one = build_fit_request(
                data, settled, epsilon=epsilon, rule=rule_of(rule, setting), **{**asked, **part}
            )
            found.append(one.with_selection(one.selection.with_scale_given()))
        return found

    # Whether there is a scale is known once all settings are planned; its share is of the total.
    scales = [each.selection.scale for each in planned(budget)]
    scale = next((each for each in scales if each is not None), None)
    share = Fraction(0) if scale is None else scale.budget_fraction
    if asked.get("response_range") in (None, "private"):
        share = min(share, SCALE_SHARE)
    one = budget * (1 - share) / stopping.factor
    candidates = planned(one * (1 - SCORE_SHARE))
    problem, rows = candidates[0].selection.setting.problem, settled.rows_per_unit
    found = TuneRequest(
        listed, tuple(candidates), RunScore(one * SCORE_SHARE / rows, problem.neighbours), stopping,
        scale, budget * share / rows,
    )  # fmt: skip
    if found.priced:
        found.price()  # whatever it refuses is refused here
    return found


@with_keywords_of(build_request, build_problem_spec)
def tune(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: int | None = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    ledger: LedgerLike = None,
    **asked: Unpack[SelectionOptions],
) -> Release:
    """Choose a setting of a public grid and release the model made with it, privately.

    The whole search costs epsilon. A scale of the response is released once, for a tenth of it.
    What is left is divided by 2 + eta, and that is the budget of one run: a selection and a fit
    with a setting picked at random, and a noisy score of the fitted model on the table. The number
    of runs is random, and the one with the highest score is released.

    ``release.tuned.setting`` is the chosen setting, and ``release.model`` its model. The running
    time depends on the number of runs, which is not released.

    Takes the arguments of :func:`dpsubset.select`, for all settings alike.

    Parameters
    ----------
    data : path, data frame, array or Moments
        The sensitive table.
    schema : Schema or path of a bounds file, optional
        The table's public description.
    grid : mapping from names to lists of values, or a list of such mappings
        The settings: all combinations of the values of each mapping. It may vary k, mechanism,
        loss, threshold, constraint, prediction_bound, radius and ridge, which are arguments of
        :func:`dpsubset.select`, and fit, budget_fraction and width, which are mechanism,
        budget_fraction and width of a :class:`FitRule`. The grid is public and must not come
        from the data.
    epsilon : number
        The privacy budget of the whole search; taken exactly as given.
    k : int, optional
        How many variables to select, where the grid does not say so.
    rule : FitRule, optional
        How models are fitted, where the grid does not say so.
    runs : number, optional
        The mean number of runs, by default the number of settings. It does not change what the
        search costs.
    eta : number
        Above -1 and at most 1: the shape of the distribution of the number of runs. A smaller one
        leaves each run more of epsilon and makes a single run likelier.
    ledger : path, URL or Ledger, optional
        Where epsilon is debited before a value is read, as for :func:`dpsubset.select`.

    Returns
    -------
    Release
        That of the best run, with the guarantee of the whole search.
    """
    planned = build_tune_request(
        data, schema, grid=grid, epsilon=epsilon, k=k, rule=rule, runs=runs, eta=eta, **asked
    )
    tables = _sealed(planned, data, asked.get("y"))
    told = type_mismatches(data, planned.first.stated.schema, asked.get("y"))
    warn_of_types(told)
    some = next(iter(tables.values()))
    planned, rng = planned.with_rows(some.rows), planned.first.randomness
    price = cache(lambda n: planned.with_rows(n).price())

    with debited(ledger, planned.event) as debit:

        def paid(known: FitRequest) -> Guarantee:
            return debit.checked(price(known.selection.setting.n))

        counts, n = some.count_response()
        planned = planned.with_rows(n)
        paid(planned.candidates[0])
        for table in tables.values():
            table.keep(n)
        scale = None
        if planned.scale is not None:
            rule_of_scale = planned.scale.rule
            scale = QuantileSampler(
                counts, rule_of_scale, planned.scale_epsilon, planned.neighbours
            ).draw(rng)
        window = Window.of(
            scale, Fraction(1) if planned.scale is None else planned.scale.rule.min_half_width
        )

        def run() -> tuple[int, Release, float]:
            chosen = rng.below(len(planned.grid))
            one = planned.candidates[chosen]
            table = tables[one.selection.records_for is None]
            own = None if one.selection.scale is None else scale
            made = make_fit(one, table, rng, passes_of(one.selection, None), paid, own)
            return chosen, made, _score(planned.score, made, table, window, rng)

        chosen, release, _ = planned.stopping.best(rng, run, lambda found: found[2])
        tuned = Tuned(
            planned.grid, chosen, planned.stopping, planned.run(planned.candidates[chosen])
        )
        release = debit.signed(replace(release, tuned=tuned, column_warnings=told))
    warn_of_counts(release)
    return release


def _sealed(planned: TuneRequest, data: Any, y: Any) -> dict[bool, SensitiveTable]:
    """The table, for settings that need the records and for those that sums are enough for."""
    kinds = {each.selection.records_for is None: each.selection for each in planned.candidates}
    return {sums: open_table_of(selection, data, y) for sums, selection in kinds.items()}


def _score(
    score: RunScore, release: Release, table: SensitiveTable, window: Window, rng: Randomness
) -> float:
    """Of a run, with noise; the lowest there is where no model was released."""
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
    schema: Schema | str | Path | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: int | None = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    **asked: Unpack[SelectionOptions],
) -> Event:
    """What a ledger would note of :func:`tune` with these arguments. Reads no value."""
    planned = build_tune_request(
        data, schema, grid=grid, epsilon=epsilon, k=k, rule=rule, runs=runs, eta=eta, **asked
    )
    if data is not None:
        tables = _sealed(planned, data, asked.get("y"))
        planned = planned.with_rows(next(iter(tables.values())).rows)
    return planned.event()


@with_keywords_of(build_request, build_problem_spec)
def price_tune(
    data: Any = None,
    schema: Schema | str | Path | None = None,
    *,
    grid: Grid,
    epsilon: float | Fraction | Decimal,
    k: int | None = None,
    rule: FitRule | None = None,
    runs: float | None = None,
    eta: float | Fraction = ETA,
    **asked: Unpack[SelectionOptions],
) -> Price:
    """What :func:`tune` with these arguments would cost. Costs nothing: no value is read."""
    planned = build_tune_request(
        data, schema, grid=grid, epsilon=epsilon, k=k, rule=rule, runs=runs, eta=eta, **asked
    )
    if data is not None:
        tables = _sealed(planned, data, asked.get("y"))
        planned = planned.with_rows(next(iter(tables.values())).rows)
    guarantee = planned.price() if planned.priced else None
    found = priced(planned.first, data, guarantee, asked.get("y"))
    return replace(found, mechanism=f"{NAME} among {len(planned.grid)} settings")
