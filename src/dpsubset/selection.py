"""select, simulate and price: the way of the data from a table to a release.

Four steps: plan, seal, price, draw. All arguments are checked first, then names and types of the
table's columns; only then are values read. From there on nothing fails because of a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from .arguments import whole
from .errors import ArgumentError, SearchLimitError
from .mechanisms import Data, Outcome
from .privacy.guarantee import Guarantee, shown_cost
from .public.plan import Plan, SelectionArguments, plan, seal
from .public.schema import Schema
from .public.stated import state, takes
from .release.release import Release
from .table.moments import Moments
from .table.sealed import SealedTable
from .table.sources import Progress
from .table.types import doubts

__all__ = ["Price", "price", "select", "simulate"]


@takes(plan, state)
def select(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    diagnostics: str | None = None,
    progress: Progress | None = None,
    **asked: Unpack[SelectionArguments],
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
        What a support is judged by: by default least squares, and where the response has labels
        `dpsubset.losses.CLASSIFICATION`. "logistic" and "hinge" are for labels: where the response
        has bounds, these are the two labels, and a cell counts as the nearer one (the upper one
        from the middle).
    threshold : float, optional
        For "huber" alone, in units of the response's half-range: residuals beyond it count by
        their size, not by their square. From 0.01 to 1; 1/4 by default.
    constraint : {"box", "ball", "l1"}
        Which coefficients are allowed.
    reach, radius : float, optional
        Size of the coefficient set: the largest prediction, in units of the response's half-range,
        or the set's own radius. By default reach 1,
        and reach 2 for losses of labels.
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
    always_include : names or positions
        Variables that are part of every support.
    seed : int, optional
        For tests only: makes the draw reproducible, hence not private, and the release says so.
    node_limit : int, optional
    time_limit : float, optional
        Most splits of the search, most seconds it may take. Passing one raises `SearchLimitError`:
        nothing is released, and because the event depends on the data, what this release would
        have cost must be counted as spent.
    diagnostics : "not-private", optional
        Attach counts of the search to the release object. They depend on the data, are never
        written to a file, and are not to be passed on.
    progress : callable, optional
        Called with the fraction of the table read so far.

    Returns
    -------
    Release
    """
    if diagnostics not in (None, "not-private"):
        raise ArgumentError("diagnostics must be None or 'not-private', which says what they are")
    planned = plan(data, schema, k=k, epsilon=epsilon, **asked)
    table = seal(planned, data, asked.get("y"))
    planned = planned.with_rows(table.rows)
    if planned.priced:
        planned.price()  # whatever it refuses is refused before a value is read
    planned, behind = _read(planned, table, progress)
    # Of the setting that the draw uses: the rows that were read, not those a file says it has.
    guarantee = planned.price()
    with _telling_cost(guarantee):
        sampler = planned.mechanism.prepare(behind, planned.setting)
        outcome = sampler.draw(planned.randomness)
    counts = sampler.diagnostics() if diagnostics else {}
    return _release(planned, guarantee, outcome, counts)


@takes(plan, state)
def simulate(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    draws: int = 1000,
    progress: Progress | None = None,
    **asked: Unpack[SelectionArguments],
) -> Counter[Outcome]:
    """How often each support would be released. NOT PRIVATE: each draw costs epsilon.

    None stands for a draw that released nothing. For synthetic data, planning and tests. Takes the
    arguments of :func:`select`, and how many ``draws`` to make.
    """
    draws = whole(draws, "draws")
    if draws < 1:
        raise ArgumentError("draws must be at least 1")
    planned = plan(data, schema, k=k, epsilon=epsilon, **asked)
    planned, behind = _read(planned, seal(planned, data, asked.get("y")), progress)
    sampler, rng = planned.mechanism.prepare(behind, planned.setting), planned.randomness
    return Counter(sampler.draw(rng) for _ in range(draws))


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
    """

    guarantee: Guarantee | None
    mechanism: str
    columns: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        cost = "Cost: known once the rows are counted, since it depends on their number"
        if self.guarantee is not None:
            costs = self.guarantee.costs.items()
            each = ", ".join(f"{shown_cost(cost)} under {relation}" for relation, cost in costs)
            cost = f"Guarantee: {self.guarantee}" + (f"\nCost: {each}" if each else "")
        *features, response = self.columns
        shown = ", ".join(features[:10]) + (f", ... ({len(features)} in all)" * bool(features[10:]))
        read = f"Would read: {shown}; to explain {response}"
        doubts = [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join([cost, f"Mechanism: {self.mechanism}", read, *doubts])


@takes(plan, state)
def price(
    data: Any = None,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    epsilon: float | Fraction | Decimal,
    **asked: Unpack[SelectionArguments],
) -> Price:
    """What :func:`select` with these arguments would cost. Costs nothing: no value is read.

    Without ``data`` the arguments are checked and priced alone; with it, names and types of its
    columns are compared with the schema too.
    """
    planned = plan(data, schema, k=k, epsilon=epsilon, **asked)
    if data is not None:
        planned = planned.with_rows(seal(planned, data, asked.get("y")).rows)
    declared = planned.stated.schema
    told = () if data is None or isinstance(data, Moments) else tuple(doubts(data, declared))
    return Price(
        guarantee=planned.price() if planned.priced else None,
        mechanism=planned.mechanism.name,
        columns=(*declared.feature_names, declared.response.name),
        warnings=told,
    )


def _read(planned: Plan, table: SealedTable, progress: Progress | None) -> tuple[Plan, Data]:
    """Send all values through the door; the plan then knows the number of rows, if it is public."""
    digest = table.read(planned.stated.problem, progress)
    return planned.with_rows(digest.n), Data(digest, planned.stated.limits)


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


def _release(
    planned: Plan, guarantee: Guarantee, outcome: Outcome, diagnostics: dict[str, int]
) -> Release:
    schema, chosen = planned.stated.schema, planned.mechanism
    return Release(
        support=outcome,
        features=planned.stated.design.names(outcome),
        guarantee=guarantee,
        mechanism=chosen.name,
        mechanism_summary=chosen.summary,
        schema=schema,
        problem=planned.stated.problem,
        sensitivity=planned.setting.sensitivity,
        options=chosen.options(),
        details=chosen.details(planned.setting),
        randomness=chosen.randomness,
        diagnostics=diagnostics or None,
    )
