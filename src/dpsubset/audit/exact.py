"""The exact audit: largest |log P(S | D) - log P(S | D')| over supports S and neighbours D, D'.

Every support of a small problem is listed and scored by the program's own scorer; the output
distributions come from the mechanism's closed form, so no sampling error hides a leak or feigns
one. What it audits is the arithmetic of the guarantee: scores, their certified error, sensitivity
and eta, as the program computes them. That the sampler draws from the closed form is the business
of the statistical tests.

An audit can only contradict a guarantee, not prove it; its worth is that of its pairs. So
`worst_case_pairs` builds pairs that come as close to epsilon as one likes, for every loss, and a
mechanism with twice the eta, or a loss with a range that is 5 % too small, fails on them. With an
intercept or groups they come within 10 % of it, and a prediction bound that leaves out the
intercept or the width of a group fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..data.gram import GramData
from ..data.moments import Moments
from ..data.quantize import STEPS
from ..mechanisms import Data, Mechanism, Outcome, Setting
from ..objective.losses import LOSSES, loss_of
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Cost
from .rows import Records, is_plain, placed, random_rows
from .worst_case_lp import lp_pairs

#: Rounding granted to the float64 evaluation of a log ratio.
SLACK = 1e-9

#: Tables with more records than this are kept as their moments only.
_MANY_RECORDS = 5000


class LabelledPair(Protocol):
    """Two neighbouring data sets, with a label that says how they were made."""

    @property
    def label(self) -> str:
        """How the pair was made."""


@dataclass(frozen=True)
class Pair:
    """The moments of two neighbouring data sets, and a label that says how they were made.

    ``records`` are kept if there are few of them. Mechanisms that need records can be audited only
    on pairs that have them.
    """

    first: Moments
    second: Moments
    label: str
    records: tuple[Records, Records] | None = None

    @classmethod
    def of_records(cls, first: Any, second: Any, label: str) -> Pair:
        """From quantized records."""
        both = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
        return cls(moments_of_records(both[0]), moments_of_records(both[1]), label, both)

    def data(self, mechanism: Mechanism, problem: Problem | None = None) -> tuple[Data, Data]:
        """Both as a mechanism wants them, or the problem's loss."""
        by_loss = problem is not None and LOSSES[problem.loss].needs_records
        if not mechanism.needs_records and not by_loss:
            return Data(GramData.from_moments(self.first)), Data(GramData.from_moments(self.second))
        if self.records is None:
            raise ArgumentError("records are needed here, and this pair has moments only")
        first, second = (np.asarray(r.T, dtype=np.int16, order="C") for r in self.records)
        return Data(GramData.of_cells(first, "audit")), Data(GramData.of_cells(second, "audit"))


@dataclass(frozen=True)
class ExactAudit:
    """The result of an exact audit."""

    #: The largest |log ratio| of the probability of an outcome.
    worst: float
    #: The largest sum over outcomes of P(o) - e^epsilon P'(o), where positive: what delta has to
    #: cover.
    excess: float
    #: Epsilon and delta.
    promised: Cost
    #: Where ``worst`` is attained; None if no pair was audited.
    pair: LabelledPair | None
    outcome: Outcome
    #: How many pairs were audited.
    pairs: int

    @property
    def found(self) -> float:
        """What is compared with epsilon."""
        return self.worst

    @property
    def contradicted(self) -> bool:
        """Whether the stated cost is contradicted."""
        return not self.passed

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts the stated cost."""
        if self.promised.delta:
            return self.excess <= float(self.promised.delta) * (1 + SLACK) + 1e-14
        return self.worst <= float(self.promised.epsilon) + SLACK


def audit_exact(
    mechanism: Mechanism,
    problem: Problem,
    epsilon: Fraction,
    pairs: Iterable[Pair],
    *,
    delta: Fraction = Fraction(0),
    sensitivity: Sensitivity | None = None,
    promised: Cost | None = None,
    skip: bool = False,
) -> ExactAudit:
    """Audit a mechanism on pairs of neighbours.

    Parameters
    ----------
    mechanism : Mechanism
        Any that has a closed form; also one that is broken on purpose.
    problem : Problem
        Small enough for all its supports to be listed.
    epsilon, delta : Fraction
        The budget that the mechanism is given.
    pairs : iterable of Pair
        Neighbours under ``problem.neighbours``; the audit takes the caller's word for it.
    sensitivity : Sensitivity, optional
        The sensitivity that the mechanism uses; by default the correct one.
    promised : Cost, optional
        What it must keep, where that is not its budget.
    skip : bool
        Leave out pairs for which there is no closed form, which is an error otherwise.
    """
    setting = Setting(problem, sensitivity or Sensitivity.of(problem), epsilon, delta)
    promised = promised or Cost(epsilon, delta)
    worst, excess, where, outcome, count = 0.0, 0.0, None, None, 0
    for pair in pairs:
        logs = []
        for data in pair.data(mechanism, problem):
            found = mechanism.outcomes(data, setting.with_rows(data.gram.n))
            if found is None:
                break
            logs.append(found)
        if len(logs) < 2:
            if skip:
                continue
            raise ArgumentError(f"{mechanism.name} has no closed form to audit")
        count += 1
        (outcomes, one), (others, two) = logs
        if outcomes != others:
            raise AssertionError("outcomes of neighbours are listed in the same order")
        excess = max(excess, *(_hockey_stick(a, b, promised) for a, b in ((one, two), (two, one))))
        ratios = np.abs(_difference(one, two))
        i = int(np.argmax(ratios))
        if where is None or ratios[i] > worst:
            worst, where, outcome = float(ratios[i]), pair, outcomes[i]
    return ExactAudit(worst, excess, promised, where, outcome, count)


def _difference(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of logarithms; 0 where both probabilities are 0."""
    both = np.isneginf(one) & np.isneginf(two)
    return np.asarray(np.where(both, 0.0, one) - np.where(both, 0.0, two))


def _hockey_stick(one: NDArray[np.float64], two: NDArray[np.float64], promised: Cost) -> float:
    """Return the hockey-stick divergence at the stated epsilon."""
    gaps = np.exp(one) - np.exp(two + min(float(promised.epsilon), 700.0))
    return float(np.maximum(gaps, 0.0).sum())


def moments_of_records(records: Any, copies: Any = 1) -> Moments:
    """Moments of quantized records, each counted ``copies`` times."""
    records = np.asarray(records, dtype=np.int64)
    counts = np.broadcast_to(np.asarray(copies, dtype=np.int64), records.shape[:1])
    products = (records * counts[:, None]).T @ records
    return Moments(products, int(counts.sum()), "audit")


def random_pairs(problem: Problem, count: int, rng: np.random.Generator) -> Iterator[Pair]:
    """``count`` random and adversarial neighbours, of many kinds in turn.

    Records anywhere or in the corners of the cube, y at +-1 or anywhere, tied columns, one heavy
    record among light ones, no data at all (add-remove).
    """
    for i in range(count):
        kind = ("random", "corners", "ties", "heavy", "few")[i % 5]
        n = int(rng.integers(0, 3)) if kind == "few" else int(rng.integers(1, 40))
        records = random_rows(problem, n + 2, rng, corners=kind != "random" or i % 2 == 0)
        copies = np.ones(n, dtype=np.int64)
        if kind == "ties" and is_plain(problem.layout):
            # Columns equal or opposite to the first: many supports score the same.
            tied = rng.integers(0, 2, size=problem.p, dtype=np.int64) * 2 - 1
            some = rng.random(problem.p) < 0.7
            records[:n, :-1] = np.where(some, tied * records[:n, :1], records[:n, :-1])
        elif kind == "ties":
            # Choices all at the same or at opposite positions.
            ties = rng.integers(0, 2, size=problem.p, dtype=np.int64) * 2 - 1
            for row in records[:n]:
                row[:] = placed(problem, [*(STEPS * rng.integers(-1, 2) * ties), row[-1]])
        elif kind == "heavy" and n:
            copies[0] = int(rng.integers(2, 2000))
        rest, one, other = records[:n], records[n], records[n + 1]
        yield neighbours_of(problem, rest, copies, one, other, kind)


def worst_case_pairs(problem: Problem, copies: int = 20_000) -> Iterator[Pair]:
    """Neighbours whose log ratio comes close to epsilon.

    With prediction bound B, the data agree with a model that predicts y on every column but the
    first k (the contrary ones), and with one that predicts -y on those, both at the border of C;
    records that only the former explain make every support with a contrary column unlikely. A
    record with y = 1 then costs the contrary support l(1, -B), the largest loss, and the others the
    least one: for least squares (1 + B)^2 and (1 - B)^2 or, if B > 1, nothing. That is just the
    range apart. Its mirror image costs them the other way round.

    An intercept pulls all of these models the same way: where there is one, or choices have several
    columns, `worst_case_lp` finds the records.
    """
    for rows, often, ends in lp_pairs(problem, copies):
        for one, other in itertools.permutations(ends, 2):
            label = "from the linear program, " + " for ".join(
                _ended(problem, end) for end in (one, other)
            )
            yield neighbours_of(problem, rows, often, one, other, label)
    p, k = problem.p, problem.k
    contrary = np.arange(p) < k
    full = np.full(p, STEPS)
    shaded = np.full(p, shade(problem))
    agree = np.append(np.where(contrary, -shaded, shaded), STEPS)
    blind = np.append(np.where(contrary, 0, shaded), STEPS)
    costly = np.append(np.where(contrary, full, shaded), STEPS)
    mirror = np.append(np.where(contrary, -shaded, -full), STEPS)
    agree, blind, costly, mirror = (
        placed(problem, positions) for positions in (agree, blind, costly, mirror)
    )
    for agreeing, weight in _mixtures(copies):
        rest, times = np.array([agree, blind]), np.array([agreeing, weight])
        label = f"contrary, {weight} blind records"
        yield neighbours_of(problem, rest, times, costly, mirror, label)
        yield neighbours_of(problem, rest, times, mirror, costly, label + ", mirrored")


def label_pairs(problem: Problem, copies: int = 20_000) -> Iterator[Pair]:
    """Neighbours that differ in the label of one record, for losses of labels; none for others.

    The data pin coefficients as those of `worst_case_pairs` do. A record with the label 1 and every
    variable at its end then costs the contrary support the whole range, and with the label -1 all
    others. The label is the sign of the response, 1 for 0: one step of the response turns it too.
    """
    if not loss_of(problem).labels:
        return
    contrary = np.arange(problem.p) < problem.k
    shaded = shade(problem)
    agree = np.append(np.where(contrary, -shaded, shaded), STEPS)
    blind = np.append(np.where(contrary, 0, shaded), STEPS)
    agree, blind = placed(problem, agree), placed(problem, blind)
    for agreeing, weight in _mixtures(copies):
        rest, times = np.array([agree, blind]), np.array([agreeing, weight])
        for y, other in ((STEPS, -STEPS), (-1, 0)):
            one, two = (placed(problem, [*[STEPS] * problem.p, end]) for end in (y, other))
            label = f"a response of {y} for {other}, {weight} blind records"
            yield neighbours_of(problem, rest, times, one, two, label)


def _mixtures(copies: int) -> tuple[tuple[int, int], ...]:
    """How many records agree, and how many say nothing of the contrary variables.

    Where the range is large it takes many of these. No mixture has many more than ``copies``.
    """
    few = ((copies, copies // share if share else 0) for share in (0, 50, 10))
    return *few, (3 * copies // 4, 19 * copies // 40)


def shade(problem: Problem) -> int:
    """The quantized x at which the border of C predicts what is best for y = 1.

    At x = 1 it predicts B, which may be more than that.
    """
    prediction_bound, best = float(problem.prediction_bound), loss_of(problem).best
    return STEPS if prediction_bound <= best else round(STEPS * best / prediction_bound)


def _ended(problem: Problem, record: Records) -> str:
    """A record of `lp_pairs` in a few words."""
    ahead = np.array_equal(record[:-1], placed(problem, [STEPS] * (problem.p + 1))[:-1])
    return f"a response of {record[-1]} with all choices {'ahead' if ahead else 'behind'}"


def neighbours_of(
    problem: Problem, rest: Records, copies: Records, one: Records, other: Records, label: str
) -> Pair:
    """The rest with ``one``, and with ``other`` in its place or with nothing."""
    base, added = moments_of_records(rest, copies), moments_of_records([one])
    records = None
    if copies.sum() <= _MANY_RECORDS:
        rows = np.repeat(rest, copies, axis=0)
        more = np.vstack([rows, one])
        less = rows if problem.neighbours == "add-remove" else np.vstack([rows, other])
        records = (less, more) if problem.neighbours == "add-remove" else (more, less)
    if problem.neighbours == "add-remove":
        return Pair(base, base + added, label, records)
    return Pair(base + added, base + moments_of_records([other]), label, records)
