"""The empirical audit: many draws on two neighbours, and a certified lower bound on epsilon.

If a mechanism is (epsilon, delta)-private, then P(E | D) <= e^epsilon P(E | D') + delta for every
event E and neighbours D, D'. So lower and upper confidence bounds on the two probabilities give

    epsilon >= log((low - delta) / high),

with the confidence of both bounds together. Nothing is taken for granted about the mechanism: what
is audited is the program that draws.

Half of the draws choose the neighbours and the event, the other half are fresh and test this one
choice with Clopper and Pearson's exact bounds. A choice made by looking cannot feign a leak,
therefore, and a sound mechanism is contradicted with probability below `LEVEL`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import eq

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from ..base.errors import ArgumentError
from ..base.validation import check_int
from ..mechanisms import Mechanism, Outcome, Sampler, Setting
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.guarantee import Cost
from ..privacy.random import Randomness, SystemSource
from .exact import LabelledPair, Pair

#: Probability that an audit contradicts a guarantee that holds.
LEVEL = 1e-9

#: Draws of an audit, on both data sets together, choosing and testing.
RUNS = 20_000

#: Draws from one sampler before the next one has its turn.
_TURN = 50

#: When events are compared, their frequencies are shrunk by one-sided bounds of this level: an
#: event seen three times to none is not the best one.
_SHRINK = 0.1


@dataclass(frozen=True)
class Event:
    """A set of outcomes, by a public rule or as a list."""

    label: str
    holds: Callable[[Outcome], bool]

    def count(self, draws: Counter[Outcome]) -> int:
        """How many draws it holds for."""
        return sum(times for outcome, times in draws.items() if self.holds(outcome))


@dataclass(frozen=True)
class EmpiricalAudit:
    """What many draws say about epsilon."""

    #: log((f - delta) / f') of the event's frequencies in the testing half; not a bound.
    estimate: float
    #: Epsilon is at least this much, with the stated confidence; 0 says nothing.
    lower: float
    #: 1 - `LEVEL`, by default.
    confidence: float
    #: Draws made, the choosing half included.
    runs: int
    #: How often the event held, of how many testing draws: where it is likely, where it is not.
    hits: tuple[tuple[int, int], tuple[int, int]]
    #: What was tested, chosen on other draws.
    event: Event | None
    #: The neighbours tested; None if there were none.
    pair: LabelledPair | None
    #: Whether the event is likelier on the second of them.
    swapped: bool
    #: Epsilon and delta.
    promised: Cost

    @property
    def found(self) -> float:
        """What is compared with epsilon."""
        return self.lower

    @property
    def contradicted(self) -> bool:
        """Whether the guarantee is contradicted, with the stated confidence."""
        return self.lower > float(self.promised.epsilon)


def audit_empirical(
    mechanism: Mechanism,
    problem: Problem,
    epsilon: Fraction,
    pairs: Iterable[Pair],
    *,
    delta: Fraction = Fraction(0),
    sensitivity: Sensitivity | None = None,
    promised: Cost | None = None,
    runs: int = RUNS,
    seconds: float | None = None,
    level: float = LEVEL,
    rng: Randomness | None = None,
) -> EmpiricalAudit:
    """Audit a mechanism by its draws on pairs of neighbours.

    Parameters
    ----------
    mechanism : Mechanism
        Any; also one that is broken on purpose.
    problem, epsilon, delta, sensitivity, promised
        As for `audit_exact`.
    pairs : iterable of Pair
        A few neighbours; half of the draws are shared among them.
    runs : int
        How many draws to make in all.
    seconds : float, optional
        About how long it may take; slow mechanisms are then drawn from less often.
    level : float
        Probability of contradicting a guarantee that holds.
    rng : Randomness, optional
        Fresh bits of the operating system by default.
    """
    if check_int(runs, "runs") < 4:
        raise ArgumentError("runs must be at least 4")
    if not 0 < level < 1:
        raise ArgumentError("level must lie between 0 and 1")
    promised = promised or Cost(epsilon, delta)
    rng = rng or Randomness(SystemSource())
    setting = Setting(problem, sensitivity or Sensitivity.of(problem), epsilon, delta)
    rivals = [_Rival.of(mechanism, setting, pair) for pair in pairs]
    if not rivals:
        return EmpiricalAudit(
            -math.inf, 0.0, 1 - level, 0, ((0, 0), (0, 0)), None, None, False, promised
        )
    speed = _pilot(rivals, rng, runs // 2, None if seconds is None else seconds / 2)
    each = max(1, runs // 4)
    if seconds is not None:
        # From the choosing draws alone: a count that depended on the testing ones would bias them.
        each = max(1, min(each, int(seconds / 4 * speed)))
    cost = float(promised.delta)
    best: tuple[float, _Rival, Event, bool] | None = None
    for rival in rivals:
        score, event, swapped = _best_event(rival.draws, problem.p, cost, level, each)
        if best is None or score > best[0]:
            best = score, rival, event, swapped
    assert best is not None
    _, rival, event, swapped = best
    likely, rare = rival.samplers[::-1] if swapped else rival.samplers
    hits = tuple(sum(event.holds(s.draw(rng)) for _ in range(each)) for s in (likely, rare))
    drawn = 2 * each + sum(r.draws[i].total() for r in rivals for i in (0, 1))
    gap, other = hits[0] / each - cost, hits[1] / each
    estimate = -math.inf if gap <= 0 else math.inf if other == 0 else math.log(gap / other)
    bound = lower_bounds(hits[0], each, hits[1], each, cost, level)
    return EmpiricalAudit(
        estimate, max(0.0, float(bound)), 1 - level, drawn, ((hits[0], each), (hits[1], each)),
        event, rival.pair, swapped, promised,
    )  # fmt: skip


def one_sided_bounds(
    hits: NDArray[np.int64] | int, runs: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One-sided bounds of a probability, lower and upper, each wrong with chance ``level``."""
    count = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(count == 0, 0.0, beta.ppf(level, count, runs - count + 1))
        high = np.where(count == runs, 1.0, beta.isf(level, count + 1, runs - count))
    return low, high


def lower_bounds(
    likely: NDArray[np.int64] | int,
    likely_runs: int,
    rare: NDArray[np.int64] | int,
    rare_runs: int,
    delta: float,
    level: float,
) -> NDArray[np.float64]:
    """log((low - delta) / high) for counts of an event; -inf where low <= delta."""
    low, _ = one_sided_bounds(likely, likely_runs, level / 2)
    _, high = one_sided_bounds(rare, rare_runs, level / 2)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(low - delta, 0.0)) - np.log(high))


@dataclass(frozen=True)
class _Rival:
    """A pair of neighbours with their samplers, and the draws that speak for it."""

    pair: Pair
    samplers: tuple[Sampler, Sampler]
    draws: tuple[Counter[Outcome], Counter[Outcome]]

    @classmethod
    def of(cls, mechanism: Mechanism, setting: Setting, pair: Pair) -> _Rival:
        one, two = (
            mechanism.prepare(data, setting.with_rows(data.gram.n))
            for data in pair.data(mechanism, setting.problem)
        )
        return cls(pair, (one, two), (Counter(), Counter()))


def _pilot(rivals: Sequence[_Rival], rng: Randomness, runs: int, seconds: float | None) -> float:
    """Draw in turns until ``runs`` or the time is used up; how many draws were made a second."""
    rivals[0].samplers[0].draw(rng)  # what is loaded or compiled at the first draw is not its speed
    start = time.perf_counter()
    turn = max(1, min(_TURN, runs // (2 * len(rivals))))
    made, end = 0, None if seconds is None else start + seconds
    while True:
        for rival in rivals:
            for sampler, draws in zip(rival.samplers, rival.draws, strict=True):
                # Slow samplers have short turns, but everybody has one.
                for _ in range(turn):
                    draws[sampler.draw(rng)] += 1
                    made += 1
                    if end is not None and time.perf_counter() > end:
                        break
        over = end is not None and time.perf_counter() > end
        if over or made + 2 * turn * len(rivals) > runs:
            return made / max(time.perf_counter() - start, 1e-9)


def _best_event(
    draws: tuple[Counter[Outcome], Counter[Outcome]], p: int, delta: float, level: float, each: int
) -> tuple[float, Event, bool]:
    """Return the event with the largest expected bound in ``each`` draws, and its direction."""
    events = list(_candidate_events(draws, p))
    counts = np.array([[event.count(side) for side in draws] for event in events])
    totals = draws[0].total(), draws[1].total()
    best = (-math.inf, events[0], False)
    for swapped in (False, True):
        i, j = (1, 0) if swapped else (0, 1)
        low, _ = one_sided_bounds(counts[:, i], totals[i], _SHRINK)
        _, high = one_sided_bounds(counts[:, j], totals[j], _SHRINK)
        likely = np.floor(low * each).astype(np.int64)
        rare = np.ceil(high * each).astype(np.int64)
        scores = lower_bounds(likely, each, rare, each, delta, level)
        top = int(np.argmax(scores))
        if scores[top] > best[0]:
            best = float(scores[top]), events[top], swapped
    return best


def _candidate_events(draws: tuple[Counter[Outcome], Counter[Outcome]], p: int) -> Iterator[Event]:
    """Those of public form, and the outcomes that are likelier on one side than on the other."""
    yield Event("nothing is released", lambda outcome: outcome is None)
    for j in range(p):
        yield Event(f"column {j} is selected", partial(_selects, j))
        yield Event(f"column {j} is not selected", partial(_leaves_out, j))
    seen = sorted({*draws[0], *draws[1]}, key=lambda o: (o is None, o or ()))
    for outcome in seen:
        yield Event(f"exactly {shown_outcome(outcome)}", partial(eq, outcome))
    # Level sets of the likelihood ratio, estimated with half a draw added to every count.
    one, two = draws
    ranked = sorted(seen, key=lambda o: (one[o] + 0.5) / (two[o] + 0.5))
    for size in range(2, len(ranked) - 1):
        for part in (ranked[:size], ranked[size:]):
            chosen = frozenset(part)
            names = ", ".join(shown_outcome(o) for o in part[:3])
            more = f" and {len(part) - 3} more" if len(part) > 3 else ""
            yield Event(f"one of {names}{more}", chosen.__contains__)


def _selects(j: int, outcome: Outcome) -> bool:
    return outcome is not None and j in outcome


def _leaves_out(j: int, outcome: Outcome) -> bool:
    return not _selects(j, outcome)


def shown_outcome(outcome: Outcome) -> str:
    """An outcome for people."""
    return "nothing" if outcome is None else "{" + ", ".join(map(str, outcome)) + "}"
