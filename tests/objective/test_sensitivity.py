"""Sensitivity: exact constants, and one record never moves the scores further than they say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import ArgumentError
from dpsubset.audit.exact import Pair, moments_of_records, random_pairs, worst_case_pairs
from dpsubset.base.rounding import float_up
from dpsubset.data.quantize import STEPS
from dpsubset.objective.losses import LOSSES
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.guarantee import Guarantee
from dpsubset.search.enumerate import enumerate_supports
from support.recipes import CONSTRAINTS

NEIGHBOURS = ["add-remove", "replace-one"]
RULES = LOSSES["least-squares"].ranges
REACHES = st.fractions(Fraction(1, 1000), 50, max_denominator=1000)


def loss(y: Fraction, t: Fraction) -> Fraction:
    return (y - t) ** 2


@given(REACHES)
def test_the_sharp_range_is_attained_and_never_passed(prediction_bound: Fraction) -> None:
    """Brute force over grids of y and t that hold the ends and the place where the loss is 0."""
    steps = [Fraction(i, 10) for i in range(-10, 11)]
    largest = Fraction(0)
    for y in steps:
        inside = [prediction_bound * s for s in steps] + ([y] if abs(y) <= prediction_bound else [])
        values = [loss(y, t) for t in inside]
        largest = max(largest, max(values) - min(values))
    assert largest == RULES["sharp"](prediction_bound)


@given(REACHES, st.fractions(-1, 1), st.fractions(-1, 1), st.fractions(-1, 1))
def test_no_record_and_no_two_predictions_pass_the_sharp_range(
    prediction_bound: Fraction, y: Fraction, s: Fraction, t: Fraction
) -> None:
    assert loss(y, s * prediction_bound) - loss(y, t * prediction_bound) <= RULES["sharp"](
        prediction_bound
    )


@given(REACHES)
def test_published_rules_are_looser(prediction_bound: Fraction) -> None:
    assert (
        RULES["published"](prediction_bound)
        == (1 + prediction_bound) ** 2
        >= RULES["sharp"](prediction_bound)
    )
    assert (
        RULES["lemma-2"](prediction_bound)
        == 2 + 2 * prediction_bound**2
        >= RULES["sharp"](prediction_bound)
    )


@given(
    st.floats(1e-8, 1e8),
    st.integers(1, 8),
    st.sampled_from(CONSTRAINTS),
    st.sampled_from(sorted(RULES)),
    st.fractions(Fraction(1, 10**6), 10**6),
)
def test_constants_are_exact(
    radius: float, k: int, constraint: str, rule: str, epsilon: Fraction
) -> None:
    problem = Problem.create(8, k, constraint=constraint, radius=radius)
    s = Sensitivity.of(problem, rule)
    assert s.range == RULES[rule](problem.prediction_bound)
    assert s.tau == s.score_step
    # A power of two, small beside the range unless the reach is tiny.
    assert s.score_step == Fraction(2) ** round(math.log2(s.score_step))
    assert s.score_step <= RULES["sharp"](
        problem.prediction_bound
    ) / 2**16 or s.score_step == Fraction(1, 2**29)
    assert s.score_range("add-remove") == s.range + 4 * s.tau
    assert s.score_range("replace-one") == 2 * s.range + 4 * s.tau
    for neighbours in NEIGHBOURS:
        eta = s.eta(epsilon, neighbours)
        assert isinstance(eta, Fraction)
        assert eta * s.score_range(neighbours) == epsilon  # exactly, and not a bit more
        guarantee = Guarantee.of_weight(eta, s.score_range, neighbours, seeded=False)
        assert guarantee.epsilon == epsilon
        assert guarantee.delta == 0
        costs = {
            "add-remove": guarantee.epsilon_if_add_remove,
            "replace-one": guarantee.epsilon_if_replace_one,
        }
        assert costs[neighbours] == epsilon
        # Replacing is removing and adding: never more than twice as dear, never cheaper.
        assert costs["add-remove"] < costs["replace-one"] <= 2 * costs["add-remove"]
        assert Fraction(float_up(guarantee.epsilon)) >= guarantee.epsilon


def test_the_grid_does_not_depend_on_the_rule() -> None:
    problem = Problem.create(5, 2, prediction_bound=1.3)
    assert len({Sensitivity.of(problem, rule).score_step for rule in RULES}) == 1


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ArgumentError, match="sharp, published, lemma-2"):
        Sensitivity.of(Problem.create(5, 2), "best")


# -- what one record does to the scores of the program -------------------------------------------


def moved(problem: Problem, pair: Pair) -> Fraction:
    """Largest minus least change of f~ over the supports."""
    unit = Sensitivity.of(problem).score_step
    first = enumerate_supports(pair.first, problem, unit)
    second = enumerate_supports(pair.second, problem, unit)
    change = second.scores - first.scores
    return int(change.max() - change.min()) * unit


P = 5
ENTRIES = st.one_of(st.integers(-STEPS, STEPS), st.sampled_from([-STEPS, STEPS, 0]))
RECORD = st.lists(ENTRIES, min_size=P + 1, max_size=P + 1)


@st.composite
def problems(draw: st.DrawFn, neighbours: str) -> Problem:
    return Problem.create(
        P,
        draw(st.integers(1, 3)),
        constraint=draw(st.sampled_from(CONSTRAINTS)),
        prediction_bound=draw(st.sampled_from([1e-3, 0.3, 1.0, 1.4, 6.0])),
        ridge=draw(st.sampled_from([0.0, 0.5, 40.0])),
        neighbours=neighbours,
    )


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@given(
    data=st.data(),
    rest=st.lists(RECORD, max_size=8),
    copies=st.sampled_from([1, 3, 1000]),
    one=RECORD,
    other=RECORD,
)
def test_one_record_moves_scores_within_the_spread(
    neighbours: str, data: st.DataObject, rest: list[list[int]], copies: int, one: list[int],
    other: list[int],
) -> None:  # fmt: skip
    problem = data.draw(problems(neighbours))
    base = moments_of_records(np.array(rest, dtype=np.int64).reshape(-1, P + 1), copies)
    with_one = base + moments_of_records([one])
    second = base if neighbours == "add-remove" else base + moments_of_records([other])
    spread = Sensitivity.of(problem).score_range(problem.neighbours)
    assert moved(problem, Pair(with_one, second, "")) <= spread


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_adversarial_records_use_the_spread_up(neighbours: str, constraint: str) -> None:
    rng = np.random.default_rng(1)
    for k, prediction_bound in ((1, 0.5), (2, 1.0), (2, 1.6)):
        problem = Problem.create(
            6, k, constraint=constraint, prediction_bound=prediction_bound, neighbours=neighbours
        )
        spread = Sensitivity.of(problem).score_range(problem.neighbours)
        for pair in random_pairs(problem, 60, rng):
            assert moved(problem, pair) <= spread
        widest = [moved(problem, pair) for pair in worst_case_pairs(problem)]
        assert max(widest) <= spread
        # Nothing is given away: a range smaller by a hundredth would be wrong.
        assert max(widest) > spread * Fraction(99, 100)
