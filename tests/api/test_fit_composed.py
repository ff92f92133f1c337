"""The default release of a fit by enumeration: deciles, permute-and-flip, and sums in a clip that
follows from the deciles, on tiny and on contrary neighbours.

For each of some pairs of deciles, and for every support, the probability of both is known in closed
form, and given them the sums with noise have a log ratio of eta times the largest move, in either
direction, at some outcome. So the worst outcome of the whole release is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest

import dpsubset as dps
from api.test_response_range_audit import Pair, Table, contrary_pair, images, small_pairs
from dpsubset.api.fit import FitRequest, build_fit_request
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Data
from dpsubset.models.entries import Entries, of_support
from dpsubset.privacy.quantiles import RangeInSteps, log_probabilities, rank_errors
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.schema.encoding import Design

EPSILON = Fraction(1)
SOME = (-STEPS, -9, 0, 9, STEPS - 1, STEPS)
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)

#: Which scale a fit has, from the table's own histogram and the released one.
Clip = Callable[[FitRequest, np.ndarray, RangeInSteps], RangeInSteps]


def planned(neighbours: Neighbours, n: int = 5) -> FitRequest:
    found = build_fit_request(
        np.zeros((1, 3)), bounds=dps.Bounds(x=1, y=1), y=np.zeros(1), k=1, epsilon=EPSILON,
        neighbours=neighbours, rule=dps.FitRule(mechanism="noisy-moments"),
    )  # fmt: skip
    assert found.selection.mechanism.name == "permute-and-flip"
    return found.with_selection(found.selection.with_rows(n))


def released(asked: FitRequest, counts: np.ndarray, scale: RangeInSteps) -> RangeInSteps:
    """As it is: of the released scale alone."""
    return scale


def own(asked: FitRequest, counts: np.ndarray, scale: RangeInSteps) -> RangeInSteps:
    """A twin: of the table's own deciles, which nobody has paid for."""
    rule = asked.fit_step.range_rule
    assert rule is not None
    found = [int(np.argmin(rank_errors(counts, share))) - STEPS for share in rule.probs]
    return rule.range_of(found)


Laws = list[tuple[np.ndarray, list[list[int]]]]


def laws(asked: FitRequest, table: Table, clip: Clip) -> Laws:
    """For each pair of deciles: log P(deciles, support) over supports, and the sums of each."""
    step, selection = asked.fit_step, asked.selection
    rule, problem = step.range_rule, selection.setting.problem
    assert rule is not None
    sealed = selection.open(table[:, :-1] / STEPS, table[:, -1] / STEPS)
    counts, _ = sealed.count_response()
    weight = rule.weight(selection.range_epsilon, problem.neighbours)
    logs = [log_probabilities(counts, share, weight) for share in rule.probs]
    found = []
    for pair in itertools.product(SOME, repeat=2):
        scale = rule.range_of(pair)
        data = Data(sealed.read(problem, None, images(scale)))
        outcomes = selection.mechanism.outcomes(data, selection.setting)
        assert outcomes is not None
        support_logs = sum(log[v + STEPS] for log, v in zip(logs, pair, strict=True)) + outcomes[1]
        sums = []
        for support in outcomes[0]:
            assert support is not None
            part = of_support(step.schema, step.design, support)
            assert part.response.drops_rows  # so their number is among the sums
            entries = Entries.of(Design.of(part), counted=True)
            used = step.rule.scale(
                clip(asked, counts, scale), rule, step.n, entries.d, step.noise.epsilon,
                problem.neighbours,
            )  # fmt: skip
            assert used is not None
            moments = sealed.read_support(part, STEPS, None, images(used))
            sums.append(entries.values(moments.products))
        found.append((support_logs, sums))
    return found


def largest(asked: FitRequest, pairs: Iterable[Pair], clip: Clip = released) -> float:
    worst = 0.0
    for pair in pairs:
        for (one, sums), (two, others) in zip(*(laws(asked, t, clip) for t in pair), strict=True):
            for gap, v, w in zip(np.abs(one - two), sums, others, strict=True):
                far = max(abs(a - b) for a, b in zip(v, w, strict=True))
                worst = max(worst, float(gap) + float(asked.noise.eta * far))
    return worst


@each_relation
def test_no_neighbours_contradict_the_sum(neighbours: Neighbours) -> None:
    asked = planned(neighbours)
    promised = asked.guarantee
    assert promised.epsilon == EPSILON
    assert len(promised.parts) == 3
    for relation, cost in promised.costs.items():
        pairs = [*small_pairs(relation, 3), contrary_pair(relation, half=30)]
        worst = largest(asked, pairs)
        assert 0.75 * float(cost.epsilon) < worst <= float(cost.epsilon) + 1e-9


@each_relation
def test_a_response_that_goes_missing_keeps_the_sum(neighbours: Neighbours) -> None:
    """Its record counts in no step then: not in the deciles, the selection or the sums."""
    pairs = []
    # Which record is the one that differs.
    contrary = contrary_pair(neighbours, half=30)
    for tables, row in [*((pair, 0) for pair in small_pairs(neighbours, 3)), (contrary, -1)]:
        longer = max(tables, key=len).astype(np.float64)
        longer[row, -1] = np.nan
        others = tables if neighbours == "replace-one" else [min(tables, key=len)]
        pairs += [(other, longer) for other in others]
    worst = largest(planned(neighbours), pairs)
    if neighbours == "add-remove":
        assert worst == 0  # it is as if the record were not there
    else:
        assert 0.3 * float(EPSILON) < worst <= float(EPSILON) + 1e-9


@each_relation
def test_a_clip_that_nobody_has_paid_for_is_caught(neighbours: Neighbours) -> None:
    """The table's own deciles move with one row, and with them all that is clipped."""
    rest = np.tile(STEPS * np.array([1, 0, -1, 0]), (9, 1))
    rest[:, -1] = STEPS // 2 * np.resize([0, 1], 9)
    low, high = ([[STEPS, 0, 0, y]] for y in (-STEPS, STEPS // 2))
    first = rest if neighbours == "add-remove" else np.vstack([rest, high])
    pair = first, np.vstack([rest, low])
    assert largest(planned(neighbours, 10), [pair]) <= float(EPSILON) + 1e-9
    assert largest(planned(neighbours, 10), [pair], own) > 1.2 * float(EPSILON)


@each_relation
def test_a_fit_that_nobody_has_paid_for_is_caught(neighbours: Neighbours) -> None:
    """The selection and the scale have all of epsilon, and the fit comes on top."""
    asked = planned(neighbours)
    whole = build_fit_request(
        np.zeros((1, 3)), bounds=dps.Bounds(x=1, y=1), y=np.zeros(1), k=1,
        epsilon=EPSILON / (1 - asked.rule.budget_fraction), neighbours=neighbours,
        rule=asked.rule,
    )  # fmt: skip
    whole = whole.with_selection(whole.selection.with_rows(5))
    assert largest(whole, [contrary_pair(neighbours, half=30)]) > 1.2 * float(EPSILON)
