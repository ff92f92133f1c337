"""A scale and a selection together: the joint distribution of both, on neighbouring tables.

Every value of the grid may be the released median, and every support the released set: 65,535 times
the number of supports, all in closed form and through the program's own plan and table. The
selection depends on the median through the sides on which the responses lie, so that few tables
have to be scored.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.api.request import SelectionRequest, build_request
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Data
from dpsubset.privacy.quantiles import QuantileRule, RangeInSteps, log_probabilities, rank_errors
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.privacy.response_range import ResponseRange

#: Quantized records, the response last.
Table = np.ndarray
Pair = tuple[Table, Table]
#: Logarithms of the probabilities of the released medians.
Law = Callable[[SelectionRequest, np.ndarray], np.ndarray]

EPSILON = Fraction(1)
SLACK = 1e-9
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)
shares = pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 2)], ids=str)


def planned(
    neighbours: Neighbours, share: Fraction, k: int = 1, **asked: object
) -> SelectionRequest:
    scale = ResponseRange(QuantileRule.median(), share)
    given = {
        "mechanism": "exponential",
        "response_range": scale,
        "intercept": False,
        "prediction_bound": 1,
        **asked,
    }
    return build_request(
        np.zeros((1, 3)), bounds=dps.Bounds(x=1, y=1), y=np.zeros(1), k=k, epsilon=EPSILON,
        neighbours=neighbours, **given,
    )  # fmt: skip


@functools.lru_cache(maxsize=256)
def images(scale: RangeInSteps) -> np.ndarray:
    return scale.images(STEPS)


def drawn(asked: SelectionRequest, counts: np.ndarray) -> np.ndarray:
    """The median as it is drawn."""
    assert asked.response_range is not None
    weight = asked.response_range.rule.weight(asked.range_epsilon, asked.setting.problem.neighbours)
    return log_probabilities(counts, Fraction(1, 2), weight)


def joint(asked: SelectionRequest, table: Table, law: Law = drawn) -> np.ndarray:
    """Logarithms of P(median, support): one row a median."""
    assert asked.response_range is not None
    sealed = asked.open(table[:, :-1] / STEPS, table[:, -1] / STEPS)
    counts, _ = sealed.count_response()
    grid, values = np.arange(-STEPS, STEPS + 1), np.unique(table[:, -1])
    # Medians with the same responses below them, and the same at them.
    below, up_to = (np.searchsorted(values, grid, side=side) for side in ("left", "right"))
    _, firsts, kinds = np.unique(below + up_to, return_index=True, return_inverse=True)
    rows = []
    for first in firsts:
        scale = asked.response_range.rule.range_of([int(grid[first])])
        data = Data(sealed.read(asked.setting.problem, None, images(scale)))
        outcomes = asked.mechanism.outcomes(data, asked.setting)
        assert outcomes is not None
        rows.append(outcomes[1])
    return law(asked, counts)[:, None] + np.array(rows)[kinds]


def largest(asked: SelectionRequest, pairs: Iterable[Pair], law: Law = drawn) -> float:
    """The largest |log ratio| of the probability of an outcome."""
    worst = 0.0
    for pair in pairs:
        first, second = (joint(asked, table, law) for table in pair)
        if (np.isinf(first) != np.isinf(second)).any():
            return math.inf
        known = ~np.isinf(first)
        worst = max(worst, float(np.abs(first[known] - second[known]).max()))
    return worst


def small_pairs(neighbours: Neighbours, count: int) -> Iterator[Pair]:
    """Tables of 4 to 6 records with cells at the ends and in the middle, coarse responses."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        table = STEPS * rng.integers(-1, 2, (int(rng.integers(4, 7)), 4))
        table[:, -1] = rng.choice([-STEPS, -9, 0, 9, STEPS], len(table))
        other = table.copy()
        if neighbours == "add-remove":
            yield table, table[1:]
        else:
            other[0] = STEPS * rng.integers(-1, 2, 4)
            yield table, other


def contrary_pair(neighbours: Neighbours, half: int = 200) -> Pair:
    """One record moves the median and the selection as far as it can, both at once.

    The median: nearly all values of the grid come nearer to it, the lowest go away. Where one of
    these is released all other responses lie above it. The selection: the others are explained by
    two variables and contradicted by the third; the record contradicts the one or the others.
    """
    agree = np.array([-STEPS, STEPS, STEPS])
    rows = np.tile(agree, (2 * half - 1, 1))
    rows[::3, 0] = 0
    low = half - 1 if neighbours == "add-remove" else half
    y = np.where(np.arange(len(rows)) < low, -STEPS + 2, STEPS - 2)
    rest = np.column_stack([rows, y])
    if neighbours == "add-remove":
        return rest, np.vstack([rest, [STEPS, STEPS, STEPS, -STEPS + 1]])
    # Below the median that is released, so its signs are turned: it contradicts the others.
    one, other = [STEPS, STEPS, STEPS, -STEPS], [STEPS, STEPS, STEPS, STEPS]
    return np.vstack([rest, one]), np.vstack([rest, other])


@each_relation
@shares
@pytest.mark.parametrize("k", [1, 2])
def test_no_small_neighbours_contradict_the_sum(
    neighbours: Neighbours, share: Fraction, k: int
) -> None:
    asked = planned(neighbours, share, k)
    promised = asked.with_rows(5).guarantee
    assert promised.epsilon == EPSILON
    for relation in RELATIONS:
        worst = largest(asked, small_pairs(relation, 12))
        assert 0.05 < worst <= float(promised.costs[relation].epsilon) + SLACK


@each_relation
@shares
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_contrary_neighbours_come_near_to_the_sum_and_do_not_pass_it(
    neighbours: Neighbours, share: Fraction, mechanism: str
) -> None:
    asked = planned(neighbours, share, mechanism=mechanism)
    promised = asked.guarantee
    for relation in RELATIONS:
        cost = float(promised.costs[relation].epsilon)
        worst = largest(asked, [contrary_pair(relation)])
        assert 0.9 * cost < worst <= cost + SLACK


@each_relation
def test_bad_cells_of_the_response_keep_the_promise(neighbours: Neighbours) -> None:
    """A record with a bad cell counts neither in the median nor in the selection."""
    asked = planned(neighbours, Fraction(1, 2))
    first, second = (table.astype(np.float64) for table in contrary_pair(neighbours))
    bad = second.copy()
    bad[-1, -1] = np.nan
    # Added, such a record moves neither.
    pairs, least = [(first, bad)], -1.0
    if neighbours == "replace-one":
        pairs, least = [(first, bad), (second, bad)], 0.1
    assert least < largest(asked, pairs) <= float(EPSILON) + SLACK


# Broken twins


@each_relation
@shares
def test_a_scale_that_is_not_charged_is_caught(neighbours: Neighbours, share: Fraction) -> None:
    asked = planned(neighbours, share)
    free = planned(neighbours, share)
    vars(free)["setting"] = replace(asked.setting, epsilon=EPSILON)

    def law(_: SelectionRequest, counts: np.ndarray) -> np.ndarray:
        return drawn(asked, counts)

    assert largest(free, [contrary_pair(neighbours)], law) > float(EPSILON) * 1.01


@each_relation
def test_a_scale_without_noise_is_caught(neighbours: Neighbours) -> None:
    def law(_: SelectionRequest, counts: np.ndarray) -> np.ndarray:
        logs = np.full(len(counts), -np.inf)
        logs[np.argmin(rank_errors(counts, Fraction(1, 2)))] = 0.0
        return logs

    asked = planned(neighbours, Fraction(1, 20))
    assert largest(asked, small_pairs(neighbours, 12), law) == math.inf


def quartile_law(asked: SelectionRequest, table: Table, noisy: bool = True) -> np.ndarray:
    """P(quartiles, support) on a coarse part of the grid: a part of all outcomes will do."""
    assert asked.response_range is not None
    rule = asked.response_range.rule
    sealed = asked.open(table[:, :-1] / STEPS, table[:, -1] / STEPS)
    counts, _ = sealed.count_response()
    weight = rule.weight(asked.range_epsilon, asked.setting.problem.neighbours)
    some = [-STEPS, -9, -8, 0, 1, 9, STEPS]
    logs = [log_probabilities(counts, share, weight) for share in rule.probs]
    if not noisy:
        true = [int(np.argmin(rank_errors(counts, share))) for share in rule.probs]
        logs = [np.where(np.arange(len(counts)) == t, 0.0, -np.inf) for t in true]
    found = []
    for pair in itertools.product(some, repeat=2):
        scale = rule.range_of(pair)
        data = Data(sealed.read(asked.setting.problem, None, images(scale)))
        outcomes = asked.mechanism.outcomes(data, asked.setting)
        assert outcomes is not None
        found.append(sum(log[v + STEPS] for log, v in zip(logs, pair, strict=True)) + outcomes[1])
    return np.array(found)


@each_relation
def test_quartiles_and_a_selection_keep_the_sum_and_without_noise_they_do_not(
    neighbours: Neighbours,
) -> None:
    scale = ResponseRange(QuantileRule.quartiles(1, 3), Fraction(1, 2))
    asked = planned(neighbours, Fraction(1, 2), response_range=scale)
    worst, broken = 0.0, False
    for pair in small_pairs(neighbours, 8):
        first, second = (quartile_law(asked, table) for table in pair)
        worst = max(worst, float(np.abs(first - second).max()))
        first, second = (quartile_law(asked, table, noisy=False) for table in pair)
        broken |= bool((np.isinf(first) != np.isinf(second)).any())
    assert 0.1 < worst <= float(EPSILON) + SLACK
    assert broken
