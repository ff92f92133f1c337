"""Audits of steps that select nothing: scales, bounds, means, counts, sums of a fit, a search.

Each goes the program's own way from a simulated table to the integers that noise is added to, or to
the histogram that a quantile is drawn from. On two neighbours the largest log ratio of an outcome
is known in closed form; and draws are compared by that log ratio itself, which is the best event
that there is: half of them choose a threshold, the other half test it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..api.sensitive_table import SensitiveTable
from ..api.suggest_bounds import build_bounds_request
from ..base.errors import ArgumentError
from ..base.validation import check_progress
from ..data.column_selection import select_columns
from ..data.histograms import count_columns
from ..data.quantize import STEPS
from ..data.sums import Sums
from ..models.entries import Entries, of_support
from ..models.noisy_moments import NoisyMoments
from ..models.run_score import RunScore
from ..privacy.budget import RECORDS, Budget
from ..privacy.class_share import ClassShare, ShareSampler
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.missing_counts import ReadableCheck
from ..privacy.quantiles import QuantileRule
from ..privacy.random import Randomness, SystemSource
from ..privacy.random_stopping import NAME, Stopping, covered
from ..privacy.relations import PUBLIC_N, RELATIONS, Neighbours
from ..schema.encoding import Design
from ..schema.schema import Bounds, Schema
from .empirical import LEVEL, EmpiricalAudit, Event, lower_bounds
from .exact import ExactAudit
from .findings import Finding, Report
from .laws import BestRun, Laplace, Law, Quantiles, SupNorm

Table = NDArray[np.float64]
Progress = Callable[[float], None]

#: Draws on each of two neighbours, choosing and testing together.
RUNS = 4000

#: Rows that neighbours share.
_REST = 40


class Step(ABC):
    """Something that is released beside supports. Tables have columns with bounds -1 and 1."""

    name: ClassVar[str]
    columns: ClassVar[int] = 2

    @abstractmethod
    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        """Return the guarantee that the program states for this step."""

    @abstractmethod
    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        """Return the distribution of the release of this step."""

    def pairs(self, relation: Neighbours) -> Iterator[tuple[str, Table, Table]]:
        """Return worst-case neighbours: one row moves from one end of all bounds to the other, or
        its last cell, which may be a response, is missing.
        """
        rng = np.random.default_rng(3)
        rest = rng.uniform(-1, 1, (_REST, self.columns))
        low, high = -np.ones((1, self.columns)), np.ones((1, self.columns))
        for label, one, other in (
            ("from end to end", low, high),
            ("anywhere", *rng.uniform(-1, 1, (2, 1, self.columns))),
            ("a missing cell", high, np.append(high[:, :-1], [[np.nan]], axis=1)),
        ):
            if relation == "replace-one":
                yield label, np.vstack([rest, one]), np.vstack([rest, other])
            else:
                yield label, rest, np.vstack([rest, other])


class FitSums(Step):
    """noisy-moments: sums of products of two columns and a response."""

    name = "noisy-moments"
    columns = 3

    def noise(self, epsilon: Fraction, neighbours: Neighbours) -> NoisyMoments:
        return NoisyMoments(epsilon, Fraction(0), neighbours, self.columns - 1)

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        return self.noise(epsilon, neighbours).guarantee()

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        schema = Bounds(x=1, y=1).schema(["a", "b"])
        design = Design.of(schema)
        part = of_support(schema, design, (0, 1))
        counted = neighbours not in PUBLIC_N or part.response.drops_rows
        entries = Entries.of(Design.of(part), counted)
        moments = SensitiveTable(table[:, :-1], schema, table[:, -1]).read_support(part, STEPS)
        values = tuple(entries.values(moments.products))
        return SupNorm(values, self.noise(epsilon, neighbours))


class Means(Step):
    """means: totals of two columns, and under add-remove the number of rows."""

    name = "means"

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        covered = PUBLIC_N if neighbours in PUBLIC_N else RELATIONS
        costs = self.budget(epsilon, neighbours).costs(neighbours)
        return Guarantee(neighbours, costs).limited_to(covered)

    def budget(self, epsilon: Fraction, neighbours: Neighbours) -> Budget:
        return Budget.of(epsilon, Fraction(0), self.columns + (neighbours not in PUBLIC_N))

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        sums = Sums.read(select_columns(table, (-1, 1)), table)
        rows = () if neighbours in PUBLIC_N else (sums.n * STEPS,)
        change = RECORDS[neighbours] * STEPS
        return Laplace((*sums.totals, *rows), self.budget(epsilon, neighbours), change)


class SuggestedBounds(Step):
    """bounds: two quantiles of each of two columns."""

    name = "bounds"

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        made_up = np.zeros((1, self.columns))
        planned = build_bounds_request(made_up, (-1, 1), epsilon=epsilon, neighbours=neighbours)
        return planned.with_rows(n).guarantee

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        planned = build_bounds_request(table, (-1, 1), epsilon=epsilon, neighbours=neighbours)
        listing = planned.selection
        counts, n = count_columns(listing.open(table), listing.columns)
        rule = planned.with_rows(n).rule
        assert rule is not None
        return Quantiles(rule, planned.column_epsilon, neighbours, tuple(counts))

    def pairs(self, relation: Neighbours) -> Iterator[tuple[str, Table, Table]]:
        """Nearly all values of the grid come nearer to the quantiles, a few go away."""
        yield from super().pairs(relation)
        rest, one, other = contrary(relation)
        first = rest if one is None else np.append(rest, one)
        one_table, other_table = (
            np.tile(y[:, None], (1, self.columns)) for y in (first, np.append(rest, other))
        )
        yield "contrary", one_table, other_table


class ResponseRange(SuggestedBounds):
    """scale: the deciles of a response, as a fit has them."""

    name = "scale"
    columns = 1

    rule = QuantileRule((Fraction(1, 10), Fraction(9, 10)), Fraction(1, 2))

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        return self.rule.guarantee(epsilon, neighbours)

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        schema = Bounds(x=1, y=1).schema(["a"])
        counts, _ = SensitiveTable(table, schema, table[:, -1]).count_response()
        return Quantiles(self.rule, epsilon, neighbours, (counts,))


class LabelShare(Step):
    """class-share: counts of both labels of a response."""

    name = "class-share"
    columns = 1

    used = ClassShare()

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        return self.used.rule.guarantee(epsilon, neighbours)

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        schema = Bounds(x=1, labels=(-1, 1)).schema(["a"])
        counts, _ = SensitiveTable(table, schema, table[:, -1]).count_response()
        sampler = ShareSampler(counts, self.used.rule.noise(epsilon, neighbours))
        return SupNorm(sampler.values, sampler.noise)

    def pairs(self, relation: Neighbours) -> Iterator[tuple[str, Table, Table]]:
        """All values are labels, or missing."""
        for label, one, other in super().pairs(relation):
            yield label, np.sign(one), np.sign(other)


class Readable(Step):
    """readable: counts of cells without a value, of two columns, and under add-remove of rows."""

    name = "readable"

    def check(self, epsilon: Fraction, neighbours: Neighbours) -> ReadableCheck:
        return ReadableCheck.of(self.schema, epsilon, neighbours)

    @property
    def schema(self) -> Schema:
        return Bounds(x=1, y=1).schema([f"x{j}" for j in range(self.columns - 1)])

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        return self.check(epsilon, neighbours).noise.guarantee()

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        bad, n = SensitiveTable(table[:, :-1], self.schema, table[:, -1]).count_bad()
        check = self.check(epsilon, neighbours)
        return SupNorm(tuple(check.values(bad, n)), check.noise)

    def pairs(self, relation: Neighbours) -> Iterator[tuple[str, Table, Table]]:
        """One row has values everywhere, or nowhere."""
        rest = np.where(np.arange(_REST)[:, None] % 3, 0.5, np.nan) * np.ones(self.columns)
        full, empty = np.zeros((1, self.columns)), np.full((1, self.columns), np.nan)
        half = np.where(np.arange(self.columns) % 2, 0.0, np.nan)[None]
        for label, one, other in (("all or none", full, empty), ("crossed", half, full - half)):
            first = np.vstack([rest, one]) if relation == "replace-one" else rest
            yield label, first, np.vstack([rest, other])


class PrivateSearch(Step):
    """private-search: the largest of several noisy counts, each tried a random number of times."""

    name = NAME

    #: Many runs: what they cost does not depend on their number, and comes nearer to its bound.
    stopping = Stopping(Fraction(-1, 2), Fraction(1, 100))

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        one = RunScore(epsilon / self.stopping.factor, neighbours)
        return covered(self.stopping.guarantee([one.guarantee()] * self.columns))

    def law(self, table: Table, epsilon: Fraction, neighbours: Neighbours) -> Law:
        counts = tuple(int((column > 0).sum()) for column in table.T)
        return BestRun(self.stopping, epsilon / self.stopping.factor, counts)


def contrary(relation: Neighbours) -> tuple[Table, float | None, float]:
    """Responses that neighbours share, and what the last of them goes from (or not) and to."""
    low, high = np.array([-1.0, 1.0]) * (1 - 1 / STEPS)
    if relation == "add-remove":
        return np.full(12, high), None, low
    return np.repeat([-1 + 2 / STEPS, high], [12, 107]), -1.0, 1.0


#: By the name that the command line has for them.
STEPS_OF_RELEASES: dict[str, Step] = {
    step.name: step
    for step in (
        ResponseRange(),
        LabelShare(),
        FitSums(),
        Means(),
        SuggestedBounds(),
        Readable(),
        PrivateSearch(),
    )
}


@dataclass(frozen=True)
class TablePair:
    """The laws of a release on two neighbouring tables."""

    label: str
    one: Law
    two: Law


def audit_step(
    step: str | Step,
    epsilon: Fraction = Fraction(1),
    *,
    runs: int = RUNS,
    progress: Progress | None = None,
) -> Report:
    """Audit a step on simulated tables: exactly, and by draws.

    Parameters
    ----------
    step : str or Step
        A name from `STEPS_OF_RELEASES`, or a step; also one that is broken on purpose.
    epsilon : Fraction
        The budget that the step is given.
    runs : int
        Draws from each of two neighbours, for each stated cost.
    progress : callable, optional
        Called with the completed fraction of the audit.
    """
    check_progress(progress)
    if isinstance(step, str):
        if step not in STEPS_OF_RELEASES:
            raise ArgumentError(f"a step is one of {', '.join(STEPS_OF_RELEASES)}")
        step = STEPS_OF_RELEASES[step]
    if runs < 4:
        raise ArgumentError("runs must be at least 4")
    exact, drawn = list[Finding](), list[Finding]()
    for i, neighbours in enumerate(RELATIONS):
        stated = step.guarantee(epsilon, neighbours, _REST)
        for relation, promised in stated.costs.items():
            pairs = [
                TablePair(label, *(step.law(table, epsilon, neighbours) for table in tables))
                for label, *tables in step.pairs(relation)
            ]
            ratios = [pair.one.farthest(pair.two) for pair in pairs]
            worst = max(range(len(pairs)), key=ratios.__getitem__)
            found = ExactAudit(ratios[worst], 0.0, promised, pairs[worst], None, len(pairs))
            exact.append(Finding(found, neighbours, relation))
            drawn.append(
                Finding(_audit_by_draws(pairs[worst], promised, runs), neighbours, relation)
            )
        if progress is not None:
            progress((i + 1) / len(RELATIONS))
    return Report(step.name, (*exact, *drawn), epsilon)


def _audit_by_draws(pair: TablePair, promised: Cost, runs: int) -> EmpiricalAudit:
    """A lower bound on epsilon, in the direction in which it is larger."""
    half = max(runs // 4, 1)
    bounds = []
    for one, two in ((pair.one, pair.two), (pair.two, pair.one)):
        cut, hits = _tested(one, two, half)
        # Both directions are tried, each at half the level.
        bounds.append(
            (float(lower_bounds(hits[0], half, hits[1], half, 0.0, LEVEL / 2)), cut, hits)
        )
    bound, cut, (likely, rare) = max(bounds)
    return EmpiricalAudit(
        estimate=-math.inf if not likely else math.inf if not rare else math.log(likely / rare),
        lower=max(0.0, bound),
        confidence=1 - LEVEL,
        runs=2 * runs,
        hits=((likely, half), (rare, half)),
        event=Event(f"log ratio above {cut:.4f}", lambda outcome: False),
        pair=pair,
        swapped=bounds[1][0] > bounds[0][0],
        promised=promised,
    )


def _tested(one: Law, two: Law, half: int) -> tuple[float, list[int]]:
    """Choose a threshold of the log ratio by some draws, and count others that are above it."""
    rng = Randomness(SystemSource())

    def ratios(law: Law) -> NDArray[np.float64]:
        draws = (law.draw(rng) for _ in range(half))
        return np.array([one.log(drawn) - two.log(drawn) for drawn in draws])

    likely, rare = ratios(one), ratios(two)
    cuts = np.quantile(np.append(likely, rare), np.linspace(0, 0.99, 60))
    counts = np.array([((likely > cut).sum(), (rare > cut).sum()) for cut in cuts])
    cut = cuts[int(np.argmax(lower_bounds(counts[:, 0], half, counts[:, 1], half, 0.0, LEVEL)))]
    return float(cut), [int((ratios(law) > cut).sum()) for law in (one, two)]
