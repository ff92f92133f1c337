"""select, simulate and price: the way of the data from a table to a release.

Four steps: plan, seal, price, draw. All arguments are checked first, then names and types of the
table's columns; only then are values read. From there on nothing fails because of a value.

Where a scale of the response is released first, values are read twice: the response alone, and
everything in the scale that was drawn from it. What the two draws cost is added up.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ..base.callers import in_search
from ..base.errors import ArgumentError, ColumnTypeWarning, LedgerError, SearchLimitError
from ..base.text import escape_for_terminal
from ..base.validation import check_int, check_progress
from ..data.quantize import STEPS
from ..data.readers import Progress
from ..data.readers.passes import Passes
from ..data.type_checks import type_mismatches, warn_of_types
from ..ledger.event import Event
from ..ledger.spending import LedgerLike, debited, whole_cost
from ..mechanisms import Data, Outcome, Sampler
from ..privacy.guarantee import Guarantee, shown_cost
from ..privacy.quantiles import QuantileSampler, RangeInSteps
from ..privacy.random import Randomness
from ..release.readable import ReleasedReadable
from ..release.release import Release
from ..release.scale import ReleasedRange
from ..schema.schema import Schema
from .problem_spec import build_problem_spec, with_keywords_of
from .request import SelectionOptions, SelectionRequest, build_request, open_table_of
from .sensitive_table import SensitiveTable

__all__ = ["Price", "price", "select", "simulate"]


@with_keywords_of(build_request, build_problem_spec)
def select(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    diagnostics: str | None = None,
    progress: Progress | None = None,
    ledger: LedgerLike = None,
    **asked: Unpack[SelectionOptions],
) -> Release:
    """Select k of p variables under differential privacy; pure epsilon by default.

    Parameters
    ----------
    data : path, data frame, array or Moments
        The sensitive table: a CSV or Parquet file, a pandas or polars frame, an array X.
    schema : Schema or path of a bounds file, optional
        The table's public description. Arrays may give ``bounds`` instead.
    k : int
        How many variables to select, those always included among them.
    epsilon : number
        The privacy budget this release may cost; taken exactly as given.
    y : array, optional
        The response, for arrays and for frames that do not hold it.
    bounds : Bounds, optional
        Public bounds of X and y, instead of a schema.
    delta : number
        For mechanisms whose guarantee has one; 0, hence pure privacy, for all others.
    mechanism : str or Mechanism
        How the support is drawn: a name from `dpsubset.MECHANISMS`, or such an object with its
        options. The default is exact, and as good as any at the same epsilon.
    options : mapping, optional
        Options of a mechanism given by its name.
    allow_unproven : bool
        Needed for mechanisms without a privacy guarantee, which exist to reproduce figures.
    loss : {"least-squares", "logistic", "hinge", "huber"}, optional
        What a support is judged by: by default least squares, also of labels, which count as -1
        and 1. "logistic" and "hinge" are for labels: where the response has bounds, these are the
        two labels, and a cell counts as the nearer one (the upper one from the middle).
    threshold : float, optional
        For "huber" alone, in units of the response's half-range: residuals beyond it count by
        their size, not by their square. From 0.01 to 1; 1/4 by default.
    constraint : {"box", "ball", "l1"}
        Which coefficients are allowed.
    prediction_bound, radius : float, optional
        Size of the coefficient set: the largest prediction, in units of the response's half-range,
        or the set's own radius. By default 1.25 half-widths of a private scale, 1 of a median's;
        otherwise a prediction bound of 1, for labels 1.25, and 2 under "logistic" and "hinge".
    ridge : float
        Weight of the squared coefficients, in scaled units.
    intercept : bool
        Whether every model has an intercept, beside the k variables and under the same bound on
        its coefficient. Without one, the middle of the bounds stands for the mean.
    neighbours : {"replace-one", "add-remove"}
        Whose data the guarantee protects against: a row replaced (n is public), or a row added or
        removed (n is private).
    sensitivity : {"sharp", "published", "lemma-2"}
        How far one row moves the scores; all but "sharp" are looser and reproduce published
        figures.
    response_range : {"private", "declared"} or ResponseRange, optional
        What the response is scaled by. "private", the default: quantiles of its own are released
        first, with a part of epsilon, and it is centred and clipped by them; the released numbers
        are part of the release. "declared": its bounds, which is as good where values fill them.
        Labels and moments have no other.
    check_readable : bool or number, optional
        Whether noisy counts of the cells that hold no value, missing or unreadable, are released
        too: True for a hundredth of epsilon, or a share of it. They tell whether the schema goes
        with how cells are written, and a warning follows if most of a column seems unreadable.
    always_include : names or positions
        Variables that are part of every support.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private, and the release says so.
    node_limit : int, optional
    time_limit : float, optional
        Most splits of the search, most seconds it may take. Passing one raises `SearchLimitError`:
        nothing is released, and because the event depends on the data, what this release would
        have cost must be counted as spent, a scale of the response included.
    diagnostics : "not-private", optional
        Attach counts of the search to the release object. They depend on the data, are never
        written to a file, and are not to be passed on.
    progress : callable, optional
        Called with the fraction of the work done so far, in steps that are the same for
        neighbouring tables: hundredths where the number of rows is public and known beforehand,
        and else the ends of passes over the table.
    ledger : path, URL or Ledger, optional
        Where the cost is debited before a value is read; a release that it has no room for is
        refused. By default what the environment variable DPSUBSET_LEDGER names; False for none.

    Returns
    -------
    Release
    """
    if diagnostics not in (None, "not-private"):
        raise ArgumentError("diagnostics must be None or 'not-private', which says what they are")
    check_progress(progress)
    planned = build_request(data, schema, k=k, epsilon=epsilon, **asked)
    table = open_table_of(planned, data, asked.get("y"))
    planned = planned.with_rows(table.rows)
    if planned.priced:
        planned.price()  # whatever it refuses is refused before a value is read
    told = type_mismatches(data, planned.stated.schema, asked.get("y"))
    warn_of_types(told)
    with debited(ledger, lambda: event_of("select", planned, SelectionRequest.price)) as debit:

        def price(planned: SelectionRequest) -> Guarantee:
            return debit.checked(planned.price())

        rng = planned.randomness
        passes = passes_of(planned, progress)
        planned, readable = draw_check(planned, table, rng, passes, price)
        drawn = draw_support(planned, table, rng, passes, price)
        work = drawn.sampler.diagnostics() if diagnostics else {}
        guarantee = drawn.planned.price()
        release = make_release(drawn.planned, guarantee, drawn.outcome, drawn.scale, work)
        release = debit.signed(replace(release, column_warnings=told, readable=readable))
    warn_of_counts(release)
    return release


def warn_of_counts(release: Release) -> None:
    """Warn of columns that seem unreadable. The release is paid for: no filter that makes errors of
    warnings may lose it.
    """
    for line in release.warnings_of_counts:
        with suppress(ColumnTypeWarning):
            warnings.warn(escape_for_terminal(line), ColumnTypeWarning, stacklevel=4)


@with_keywords_of(build_request, build_problem_spec)
def event_of_select(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    **asked: Unpack[SelectionOptions],
) -> Event:
    """What a ledger would note of :func:`select` with these arguments. Reads no value."""
    planned = build_request(data, schema, k=k, epsilon=epsilon, **asked)
    if data is not None:
        planned = planned.with_rows(open_table_of(planned, data, asked.get("y")).rows)
    return event_of("select", planned, SelectionRequest.price)


def event_of(
    what: str, planned: SelectionRequest, price: Callable[[SelectionRequest], Guarantee]
) -> Event:
    """What a ledger notes of a release, before it is made."""
    if not planned.priced:
        raise LedgerError(
            f"what {planned.mechanism.name} costs depends on the number of rows, which this file "
            "does not tell before it is read: with a ledger, take a Parquet file or a data frame"
        )
    schema, problem, guarantee = planned.stated.schema, planned.setting.problem, price(planned)
    if not planned.divided:
        costs = {relation: whole_cost(cost) for relation, cost in guarantee.costs.items()}
        guarantee = replace(guarantee, costs=costs)
    facts = {"loss": problem.loss, "k": problem.k, "p": problem.p, "declared": problem.neighbours}
    return Event.of(
        what,
        planned.mechanism.name,
        guarantee,
        unit=schema.privacy_unit,
        rows_per_unit=schema.rows_per_unit,
        schema=schema.fingerprint(),
        options={**facts, **planned.mechanism.options()},
    )


@dataclass(frozen=True)
class Drawn:
    """A scale and a support, as they were drawn; the sampler is private."""

    planned: SelectionRequest
    outcome: Outcome
    scale: RangeInSteps | None
    sampler: Sampler = field(repr=False)


def draw_check(
    planned: SelectionRequest,
    table: SensitiveTable,
    rng: Randomness,
    passes: Passes,
    price: Callable[[SelectionRequest], Guarantee],
) -> tuple[SelectionRequest, ReleasedReadable | None]:
    """Count the cells without a value, with noise, if that was asked for."""
    check = planned.check
    if check is None:
        return planned, None
    bad, n = table.count_bad(passes)
    planned = planned.with_rows(n)
    price(planned)  # whatever it refuses is refused before anything is drawn
    drawn = check.draw(bad, n, rng)
    rows = None if check.counts_rows else n
    found = ReleasedReadable.of(check.names, drawn, rows, check.noise.epsilon)
    return planned, found


def draw_support(
    planned: SelectionRequest,
    table: SensitiveTable,
    rng: Randomness,
    passes: Passes,
    price: Callable[[SelectionRequest], Guarantee],
    scale: RangeInSteps | None = None,
) -> Drawn:
    """Draw a scale of the response, if there is one, and a support.

    ``price`` is what the whole release costs, of which these may be a part; ``passes`` are all
    that it makes over the table; ``scale`` is one that was released before, where the plan is for
    such.
    """
    if planned.scale is not None and not planned.given:
        planned, scales, _, n = _scales(planned, table, passes)
        price(planned)  # whatever it refuses is refused before anything is drawn
        scale = scales.draw(rng)
        if passes.count > 2:
            table.keep(n)
    planned, behind = _read(planned, table, passes, scale)
    # Of the setting that the draw uses: the rows that were read, not those a file says it has.
    guarantee = price(planned)
    with _telling_cost(guarantee):
        sampler = planned.mechanism.prepare(behind, planned.setting)
        outcome = sampler.draw(rng)
    return Drawn(planned, outcome, scale, sampler)


@with_keywords_of(build_request, build_problem_spec)
def simulate(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    draws: int = 1000,
    progress: Progress | None = None,
    **asked: Unpack[SelectionOptions],
) -> Counter[Outcome]:
    """How often each support would be released. NOT PRIVATE: each draw costs epsilon.

    None stands for a draw that released nothing. For synthetic data, planning and tests. Takes the
    arguments of :func:`select`, and how many ``draws`` to make.
    """
    draws = check_int(draws, "draws")
    if draws < 1:
        raise ArgumentError("draws must be at least 1")
    check_progress(progress)
    planned = build_request(data, schema, k=k, epsilon=epsilon, **asked)
    table, rng = open_table_of(planned, data, asked.get("y")), planned.randomness
    alike: dict[bytes, list[RangeInSteps | None]] = {b"": [None] * draws}
    # One pass, and draws: how many more passes these take depends on what is drawn.
    passes, behind = Passes(progress, planned.setting.problem.n_is_public, 2), None
    if planned.scale is None:
        planned, behind = _read(planned, table, passes, None)
    else:
        planned, scales, present, n = _scales(planned, table, passes)
        planned.price()  # what `select` would refuse is refused here too
        alike = {}
        for scale in (scales.draw(rng) for _ in range(draws)):
            # Scales that do the same to every response of the table make the same table.
            done_to_it = scale.images(STEPS)[present].tobytes()
            alike.setdefault(sha256(done_to_it).digest(), []).append(scale)
        if len(alike) > 1:
            table.keep(n)
    found: Counter[Outcome] = Counter()
    for same in passes.over(alike.values(), draws):
        if planned.scale is not None:
            planned, behind = _read(planned, table, None, same[0])
        assert behind is not None
        sampler = planned.mechanism.prepare(behind, planned.setting)
        found.update(sampler.draw(rng) for _ in same)
    return found


@dataclass(frozen=True)
class Price:
    """What a selection would cost, and what it would read. Public.

    Attributes
    ----------
    guarantee : Guarantee, or None
        None where it depends on the number of rows, which is public here but not known before the
        file is read.
    mechanism : str
    columns : tuple of str
        What would be read of the table, the response last.
    warnings : tuple of str
        Columns whose declaration goes ill with their types: much of them would count as missing.
    unit : str
        Whom the guarantee protects, in words.
    """

    guarantee: Guarantee | None
    mechanism: str
    columns: tuple[str, ...]
    unit: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        cost = "Cost: known once the rows are counted, since it depends on their number"
        if self.guarantee is not None:
            costs = self.guarantee.costs.items()
            each = ", ".join(f"{shown_cost(cost)} under {relation}" for relation, cost in costs)
            cost = f"Guarantee: {self.guarantee}" + (f"\nCost: {each}" if each else "")
        cost += f"\nUnit of privacy: {self.unit}"
        *features, response = self.columns
        shown = ", ".join(features[:10]) + (f", ... ({len(features)} in all)" * bool(features[10:]))
        read = f"Would read: {shown}; to explain {response}"
        type_mismatches = [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join([cost, f"Mechanism: {self.mechanism}", read, *type_mismatches])


@with_keywords_of(build_request, build_problem_spec)
def price(
    data: Any = None,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    **asked: Unpack[SelectionOptions],
) -> Price:
    """What :func:`select` with these arguments would cost. Costs nothing: no value is read.

    Without ``data`` the arguments are checked and priced alone; with it, names and types of its
    columns are compared with the schema too.
    """
    planned = build_request(data, schema, k=k, epsilon=epsilon, **asked)
    if data is not None:
        planned = planned.with_rows(open_table_of(planned, data, asked.get("y")).rows)
    return priced(planned, data, planned.price() if planned.priced else None, asked.get("y"))


def priced(
    planned: SelectionRequest, data: Any, guarantee: Guarantee | None, y: Any = None
) -> Price:
    """A price, with what would be read and what is doubtful about that."""
    declared = planned.stated.schema
    told = () if data is None else type_mismatches(data, declared, y)
    if guarantee is not None and guarantee.proven and not planned.divided:
        # The total under the neighbours that were asked for is known, its parts are not.
        cost = guarantee.costs[guarantee.neighbours]
        guarantee = replace(guarantee, costs={guarantee.neighbours: cost}, parts=())
    return Price(
        guarantee=guarantee,
        mechanism=planned.mechanism.name,
        columns=(*declared.feature_names, declared.response.name),
        warnings=told,
        unit=declared.protected,
    )


def _scales(
    planned: SelectionRequest, table: SensitiveTable, passes: Passes
) -> tuple[SelectionRequest, QuantileSampler, NDArray[np.bool_], int]:
    """Read the response alone, for draws of its scale; the plan then knows the number of rows, if
    it is public. Also which values the response has, and the number of rows: both are private.
    """
    counts, n = table.count_response(passes)
    planned = planned.with_rows(n).with_scale_settled()
    assert planned.scale is not None
    epsilon, neighbours = planned.scale_epsilon, planned.setting.problem.neighbours
    return planned, QuantileSampler(counts, planned.scale.rule, epsilon, neighbours), counts > 0, n


def _read(
    planned: SelectionRequest,
    table: SensitiveTable,
    passes: Passes | None,
    scale: RangeInSteps | None,
) -> tuple[SelectionRequest, Data]:
    """Send all values through the door; the plan then knows the number of rows, if it is public."""
    images = None if scale is None else scale.images(STEPS)
    digest = table.read(planned.setting.problem, passes, images)
    return planned.with_rows(digest.n), Data(digest, planned.stated.limits)


def passes_of(planned: SelectionRequest, progress: Progress | None, more: int = 0) -> Passes:
    """The passes of a selection over its table, and ``more`` after it."""
    count = 1 + (planned.check is not None) + (planned.scale is not None) + more
    return Passes(progress, planned.setting.problem.n_is_public, count)


@contextmanager
def _telling_cost(guarantee: Guarantee) -> Iterator[None]:
    """Add to the error of a passed limit what it has cost: the event depends on the data."""
    try:
        yield
    except SearchLimitError as error:
        cost = "as there is no guarantee, no epsilon bounds it"
        if guarantee.proven:
            cost = shown_cost(guarantee.costs[guarantee.neighbours])
        raise SearchLimitError(f"{error}: {cost}") from None


def make_release(
    planned: SelectionRequest,
    guarantee: Guarantee,
    outcome: Outcome,
    scale: RangeInSteps | None,
    diagnostics: dict[str, int],
) -> Release:
    """What may leave: what was drawn, and public facts."""
    schema, chosen = planned.stated.schema, planned.mechanism
    released = None
    if scale is not None and planned.scale is not None:
        released = ReleasedRange(planned.scale.rule, scale, schema.response)
    return Release(
        support=outcome,
        features=planned.stated.design.names(outcome),
        guarantee=guarantee,
        mechanism=chosen.name,
        mechanism_summary=chosen.summary,
        schema=schema,
        problem=planned.setting.problem,
        sensitivity=planned.setting.sensitivity,
        options=chosen.options(),
        details=chosen.details(planned.setting),
        randomness=chosen.randomness,
        scale=released,
        made_in_search=in_search(),
        rows=planned.setting.n if guarantee.tells_rows else None,
        date=planned.date,
        diagnostics=diagnostics or None,
    )
