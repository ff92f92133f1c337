"""The private scale of a response: its scores, what they cost, and draws that keep the promise.

The audit compares closed forms on neighbouring histograms. Small ones are all listed; contrary ones
live on the whole grid, where they come within a hundredth of epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset.base.errors import ArgumentError
from dpsubset.privacy.quantiles import (
    LARGEST_DENOMINATOR,
    QuantileRule,
    QuantileSampler,
    RangeInSteps,
    _ShellSampler,
    histogram,
    log_probabilities,
    rank_error_range,
    rank_errors,
)
from dpsubset.privacy.random import Randomness, SeededSource, SystemSource
from dpsubset.privacy.random.draws import exp_interval
from dpsubset.privacy.relations import RELATIONS, Neighbours
from privacy.test_random import distribution
from support.quantiles import quantile

Counts = np.ndarray
Pair = tuple[Counts, Counts]
#: Logarithms of the probabilities of all outcomes, in any number of dimensions.
Law = Callable[[Counts], np.ndarray]

HALF, QUARTER, TENTH = Fraction(1, 2), Fraction(1, 4), Fraction(1, 10)
QUARTILES = (QUARTER, 1 - QUARTER)
SLACK = 1e-9
EPSILON = Fraction(1)
WHOLE = 2**15 - 1

each_relation = pytest.mark.parametrize("neighbours", RELATIONS)
each_share = pytest.mark.parametrize("share", [HALF, QUARTER, TENTH, 1 - TENTH], ids=str)


# Pairs of neighbours


def tables(values: int, most: int) -> Iterator[Counts]:
    """Every histogram of up to ``most`` records over so many values."""
    for n in range(most + 1):
        for records in itertools.combinations_with_replacement(range(values), n):
            yield np.bincount(np.array(records, dtype=np.int64), minlength=values).astype(np.int64)


def added(counts: Counts, *changes: tuple[int, int]) -> Counts:
    counts = counts.copy()
    for place, number in changes:
        counts[place] += number
    return counts


def all_pairs(neighbours: Neighbours, values: int, most: int) -> Iterator[Pair]:
    for counts in tables(values, most):
        if neighbours == "add-remove":
            yield from ((counts, added(counts, (w, 1))) for w in range(values))
        else:
            for w, other in itertools.permutations(range(values), 2):
                if counts[w]:
                    yield counts, added(counts, (w, -1), (other, 1))


def contrary(shares: tuple[Fraction, ...], neighbours: Neighbours, steps: int = WHOLE) -> Pair:
    """Nearly all values move one way, a few the other way.

    Add-remove: records near the upper end, and one more near the lower end: values between them
    come closer to every quantile. The ends are where values are that go away from one. Mirrored for
    quantiles above the median.

    Replace-one, for one quantile: just enough records at the left for the values in the gap to lie
    above the quantile, until the first record goes from the left end to the right end.
    """
    counts = np.zeros(2 * steps + 1, dtype=np.int64)
    if neighbours == "add-remove":
        counts[-2] = 12
        pair = counts, added(counts, (1, 1))
    else:
        (share,) = shares[:1]
        counts[[0, 2, -2]] = 1, 12 * share.numerator, 12 * (share.denominator - share.numerator) - 1
        pair = counts, added(counts, (0, -1), (-1, 1))
    mirrored = neighbours == "add-remove" and sum(shares, Fraction(0)) > Fraction(len(shares), 2)
    return (pair[0][::-1].copy(), pair[1][::-1].copy()) if mirrored else pair


# The audit


def largest(law: Law, pairs: Iterable[Pair]) -> float:
    """The largest |log ratio| of the probability of an outcome."""
    worst = 0.0
    for pair in pairs:
        first, second = (law(counts) for counts in pair)
        differ = np.isinf(first) != np.isinf(second)
        if differ.any():
            return math.inf
        known = ~np.isinf(first)
        worst = max(worst, float(np.abs(first[known] - second[known]).max()))
    return worst


def weight(shares: tuple[Fraction, ...], neighbours: Neighbours) -> Fraction:
    return EPSILON / rank_error_range(shares, neighbours)


def one(share: Fraction, rate: Fraction) -> Law:
    return lambda counts: log_probabilities(counts, share, rate)


def both(shares: tuple[Fraction, ...], rate: Fraction) -> Law:
    """Of two quantiles together: one row for each value of the first."""

    def law(counts: Counts) -> np.ndarray:
        first, second = (log_probabilities(counts, share, rate) for share in shares)
        return first[:, None] + second

    return law


@each_relation
@each_share
@pytest.mark.parametrize(("values", "most"), [(5, 4), (7, 3), (9, 2)])
def test_no_small_neighbours_contradict_the_guarantee(
    neighbours: Neighbours, share: Fraction, values: int, most: int
) -> None:
    law = one(share, weight((share,), neighbours))
    worst = largest(law, all_pairs(neighbours, values, most))
    assert worst <= float(EPSILON) + SLACK
    assert worst > 0.05


@each_relation
@each_share
def test_the_guarantee_is_attained(neighbours: Neighbours, share: Fraction) -> None:
    law = one(share, weight((share,), neighbours))
    worst = largest(law, [contrary((share,), neighbours)])
    assert 0.99 * float(EPSILON) < worst <= float(EPSILON) + SLACK


@each_relation
@each_share
def test_the_spread_is_attained_and_never_passed(neighbours: Neighbours, share: Fraction) -> None:
    """In integers: 12 records on four values are enough for every share here."""
    limit = share.denominator * rank_error_range((share,), neighbours)
    found = 0
    for pair in all_pairs(neighbours, 5, 12 if neighbours == "add-remove" else 6):
        first, second = (rank_errors(counts, share) for counts in pair)
        found = max(found, int(np.ptp(second - first)))
        assert found <= limit
    first, second = (rank_errors(c, share) for c in contrary((share,), neighbours))
    assert np.ptp(second - first) == limit


@each_relation
@pytest.mark.parametrize("shares", [QUARTILES, (TENTH, 1 - TENTH), (TENTH, HALF)], ids=str)
def test_two_quantiles_together_keep_the_guarantee(
    neighbours: Neighbours, shares: tuple[Fraction, ...]
) -> None:
    law = both(shares, weight(shares, neighbours))
    assert largest(law, all_pairs(neighbours, 5, 4)) <= float(EPSILON) + SLACK
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts = rng.integers(0, 4, 9) * rng.integers(0, 20, 9)
        counts[rng.integers(9)] += 1
        w, other = rng.choice(9, 2, replace=False)
        changed = added(counts, (w, 1))
        if neighbours == "replace-one":
            counts = added(counts, (other, 1))
        assert largest(law, [(counts, changed)]) <= float(EPSILON) + SLACK


@pytest.mark.parametrize("shares", [QUARTILES, (TENTH, 1 - TENTH), (TENTH, HALF)], ids=str)
def test_two_quantiles_together_attain_the_guarantee(shares: tuple[Fraction, ...]) -> None:
    """A pair of values has a sum of log ratios, so the largest one is a sum of largest ones."""
    first, second = contrary(shares, "add-remove")
    rate = weight(shares, "add-remove")
    one_way = [
        log_probabilities(first, share, rate) - log_probabilities(second, share, rate)
        for share in shares
    ]
    assert 0.99 * float(EPSILON) < sum(float(d.max()) for d in one_way) <= float(EPSILON) + SLACK


def test_two_quartiles_cost_less_than_one_and_one_if_a_record_is_added() -> None:
    """A record is not below the lower quartile and above the upper one."""
    assert rank_error_range(QUARTILES, "add-remove") == Fraction(5, 2)
    assert rank_error_range((QUARTER,), "add-remove") == Fraction(3, 2)
    assert (
        rank_error_range(QUARTILES, "replace-one")
        == 2 * rank_error_range((QUARTER,), "replace-one")
        == 4
    )


def test_two_quantiles_attain_the_guarantee_if_a_record_is_replaced() -> None:
    """Values of either gap lie above one quartile, until a record goes to the other end."""
    steps = 2000
    counts = np.zeros(2 * steps + 1, dtype=np.int64)
    counts[[0, 2, steps, -2]] = 1, 12, 24, 11
    pair = counts, added(counts, (0, -1), (-1, 1))
    rate = EPSILON / rank_error_range(QUARTILES, "replace-one")
    logs = [[log_probabilities(c, share, rate) for share in QUARTILES] for c in pair]
    found = sum(float((a - b).max()) for a, b in zip(*logs, strict=True))
    assert 0.99 * float(EPSILON) < found <= float(EPSILON) + SLACK


@each_relation
@pytest.mark.parametrize(
    "rule",
    [QuantileRule.median(2), QuantileRule.quartiles(Fraction(3, 2)), QuantileRule.quartiles(1, 3)],
    ids=["median", "quartiles", "quartiles, wide"],
)
def test_released_scales_keep_the_guarantee(neighbours: Neighbours, rule: QuantileRule) -> None:
    """From the counts to the `RangeInSteps`: outcomes that are the same scale are added up."""
    values = 5
    rate = rule.weight(EPSILON, neighbours)
    outcomes = list(itertools.product(range(values), repeat=len(rule.probs)))
    scales = [rule.range_of([i - values // 2 for i in outcome]) for outcome in outcomes]
    names = {scale: i for i, scale in enumerate(dict.fromkeys(scales))}
    cells = [names[scale] for scale in scales]

    def law(counts: Counts) -> np.ndarray:
        logs = [log_probabilities(counts, share, rate) for share in rule.probs]
        joint = [sum(log[i] for log, i in zip(logs, o, strict=True)) for o in outcomes]
        return np.log(np.bincount(cells, np.exp(joint)))

    promised = rule.guarantee(EPSILON, neighbours)
    assert promised.epsilon == EPSILON
    for relation in RELATIONS:
        cost = float(promised.costs[relation].epsilon)
        assert largest(law, all_pairs(relation, values, 3)) <= cost + SLACK


# Broken twins


@each_relation
@each_share
@pytest.mark.parametrize("factor", [Fraction(21, 20), Fraction(2)], ids=str)
def test_a_spread_too_small_is_caught(
    neighbours: Neighbours, share: Fraction, factor: Fraction
) -> None:
    law = one(share, factor * weight((share,), neighbours))
    assert largest(law, [contrary((share,), neighbours)]) > float(EPSILON) * 1.03


def test_the_spread_of_the_wrong_relation_is_caught() -> None:
    law = one(HALF, weight((HALF,), "add-remove"))
    assert largest(law, [contrary((HALF,), "replace-one")]) > 1.9 * float(EPSILON)


def test_monotone_scores_are_not_taken_for_granted() -> None:
    """Who pays for the largest change alone, not for the spread, pays half."""
    law = one(QUARTER, EPSILON / Fraction(3, 4))
    assert largest(law, [contrary((QUARTER,), "add-remove")]) > 1.9 * float(EPSILON)


@each_relation
def test_a_second_quantile_that_is_not_charged_is_caught(neighbours: Neighbours) -> None:
    rate = EPSILON / rank_error_range((QUARTER,), neighbours)
    assert largest(both(QUARTILES, rate), all_pairs(neighbours, 9, 4)) > float(EPSILON) * 1.03


@each_relation
def test_a_quantile_without_noise_is_caught(neighbours: Neighbours) -> None:
    def law(counts: Counts) -> np.ndarray:
        logs = np.full(len(counts), -np.inf)
        logs[np.argmin(rank_errors(counts, HALF))] = 0.0
        return logs

    assert largest(law, all_pairs(neighbours, 5, 3)) == math.inf


def _of_scores(scores: Callable[[Counts], np.ndarray], rate: float) -> Law:
    def law(counts: Counts) -> np.ndarray:
        exponents = -rate * scores(counts)
        return np.asarray(exponents - np.log(np.exp(exponents).sum()))

    return law


@each_relation
def test_candidates_taken_from_the_records_are_caught(neighbours: Neighbours) -> None:
    def scores(counts: Counts) -> np.ndarray:
        return np.where(counts > 0, rank_errors(counts, HALF), np.inf)

    law = _of_scores(scores, float(weight((HALF,), neighbours)) / 2)
    pairs = (pair for pair in all_pairs(neighbours, 5, 3) if all(c.any() for c in pair))
    assert largest(law, pairs) == math.inf


@each_relation
def test_runs_of_equal_errors_that_count_once_are_caught(neighbours: Neighbours) -> None:
    """A run between two records has as many candidates as it has values."""

    def scores(counts: Counts) -> np.ndarray:
        errors = rank_errors(counts, HALF)
        _, run, sizes = np.unique(errors, return_inverse=True, return_counts=True)
        return np.asarray(errors + np.log(sizes)[run] * 2 / rate)

    rate = float(weight((HALF,), neighbours))
    pairs = list(all_pairs(neighbours, 9, 3))
    assert largest(_of_scores(scores, rate / 2), pairs) > float(EPSILON) * 1.03


@each_relation
def test_records_at_a_value_that_count_on_one_side_or_the_other_are_caught(
    neighbours: Neighbours,
) -> None:
    """All of them below if their number is even, all above if it is odd."""

    def scores(counts: Counts) -> np.ndarray:
        up_to = np.cumsum(counts)
        return np.asarray(np.abs(2 * np.where(counts % 2, up_to - counts, up_to) - up_to[-1]))

    law = _of_scores(scores, float(weight((HALF,), neighbours)) / 2)
    assert largest(law, all_pairs(neighbours, 9, 4)) > float(EPSILON) * 1.03


# Scores

some_counts = st.integers(0, 6).flatmap(
    lambda m: st.lists(
        st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 2**28)),
        min_size=2 * m + 1,
        max_size=2 * m + 1,
    )
)
some_shares = st.fractions(0, 1, max_denominator=40).filter(lambda p: 0 < p < 1)


@given(some_counts, some_shares)
def test_errors_are_what_the_definition_says(counts: list[int], share: Fraction) -> None:
    n = sum(counts)
    errors = rank_errors(np.array(counts, dtype=np.int64), share)
    for v, error in enumerate(errors):
        low, high = sum(counts[:v]), sum(counts[: v + 1])
        nearest = min(max(share * n, Fraction(low)), Fraction(high))
        assert Fraction(int(error), share.denominator) == abs(share * n - nearest)


@given(some_counts, some_shares)
def test_the_error_is_0_at_the_quantile_and_grows_away_from_it(
    counts: list[int], share: Fraction
) -> None:
    errors = rank_errors(np.array(counts, dtype=np.int64), share).tolist()
    records = [v for v, number in enumerate(counts) for _ in range(min(number, 1))]
    assert min(errors) == 0
    if records:
        up_to = list(itertools.accumulate(counts))
        true = next(v for v, number in enumerate(up_to) if number >= share * sum(counts))
        assert errors[true] == 0
    first, last = errors.index(0), len(errors) - 1 - errors[::-1].index(0)
    assert errors[first : last + 1] == [0] * (last + 1 - first)
    assert errors[: first + 1] == sorted(errors[: first + 1], reverse=True)
    assert errors[last:] == sorted(errors[last:])


@given(some_counts, some_shares)
def test_a_mirrored_table_has_mirrored_errors(counts: list[int], share: Fraction) -> None:
    array = np.array(counts, dtype=np.int64)
    mirrored = rank_errors(array[::-1].copy(), 1 - share)[::-1]
    assert np.array_equal(rank_errors(array, share), mirrored)


def test_the_largest_table_fits_in_64_bits() -> None:
    share = Fraction(1, LARGEST_DENOMINATOR)
    counts = np.zeros(2 * WHOLE + 1, dtype=np.int64)
    counts[0] = 2**33 - 1
    errors = rank_errors(counts, share)
    assert errors.min() == 0
    assert int(errors.max()) == (2**33 - 1) * (LARGEST_DENOMINATOR - 1)
    rng = Randomness(SystemSource())
    for epsilon in (Fraction(1, 10**30), Fraction(1), Fraction(10**30)):
        for end in (share, 1 - share):
            assert abs(quantile(counts, end, epsilon, "add-remove", rng)) <= WHOLE


# Draws


@pytest.mark.parametrize("eta", [Fraction(1, 3), Fraction(2), Fraction(1, 10**9)], ids=str)
@pytest.mark.parametrize(("errors", "deepest"), [((0, 1), 1), ((2, 0, 1), 1), ((0, 3, 3, 1), 2)])
def test_draws_have_exactly_the_distribution(
    eta: Fraction, errors: tuple[int, ...], deepest: int
) -> None:
    """Every bit string is followed: what is decided lies within the closed form."""
    shells = _ShellSampler(np.array(errors, dtype=np.int64), eta, deepest)
    decided, undecided = distribution(shells.draw, start_bits=2, limit=13)
    weights = [exp_interval(eta * error, 200) for error in errors]
    low, high = (Fraction(sum(w[side] for w in weights)) for side in (0, 1))
    assert undecided < Fraction(1, 4)
    assert sum(decided.values()) + undecided == 1
    for i, (least, most) in enumerate(weights):
        assert decided.get(i, Fraction(0)) <= most / low
        assert least / high <= decided.get(i, Fraction(0)) + undecided


@given(
    st.lists(st.integers(0, 2**43), min_size=1, max_size=30),
    st.one_of(
        st.fractions(Fraction(1, 10**40), Fraction(1, 10**20)),
        st.fractions(Fraction(1, 10**9), 10),
        st.integers(1, 10**40).map(Fraction),
    ),
)
def test_shells_lie_above_the_weights_and_are_narrow(errors: list[int], eta: Fraction) -> None:
    errors[0] = 0
    shells = _ShellSampler(np.array(errors, dtype=np.int64), eta)
    for error, j in zip(errors, shells._shells.tolist(), strict=True):
        low, high = exp_interval(eta * error, 300)
        assert 2 ** (300 - j) >= low
        assert 0 <= j <= 64
        assert j == 64 or 2 ** (300 - j) <= 2.01 * high


@each_relation
def test_seeded_draws_are_those_of_the_closed_form(neighbours: Neighbours) -> None:
    """A coarse look, the same every time; the fine one is in tests/statistical/."""
    counts = np.array([3, 0, 1, 0, 0, 2, 1, 0, 4], dtype=np.int64)
    rng = Randomness(SeededSource(7))
    drawn = [quantile(counts, QUARTER, Fraction(3), neighbours, rng) for _ in range(4000)]
    logs = log_probabilities(counts, QUARTER, 3 / rank_error_range((QUARTER,), neighbours))
    seen = histogram(np.array(drawn), 4) / len(drawn)
    assert np.abs(seen - np.exp(logs)).max() < 0.03


def test_an_empty_table_has_any_quantile() -> None:
    counts = np.zeros(2 * WHOLE + 1, dtype=np.int64)
    rng = Randomness(SeededSource(1))
    drawn = [quantile(counts, HALF, Fraction(1), "add-remove", rng) for _ in range(40)]
    assert min(drawn) < -WHOLE // 2
    assert max(drawn) > WHOLE // 2


def test_a_median_of_a_thousand_at_a_twentieth_is_near() -> None:
    rng = Randomness(SeededSource(2))
    values = np.rint(np.clip(np.random.default_rng(0).normal(size=1000) / 6, -1, 1) * WHOLE)
    counts = histogram(values, WHOLE)
    drawn = [quantile(counts, HALF, Fraction(1, 20), "replace-one", rng) for _ in range(101)]
    ranks = np.searchsorted(np.sort(values), drawn)
    assert np.median(np.abs(ranks - 500)) < 60


# Scales


def test_scales_follow_from_quantiles() -> None:
    assert QuantileRule.median(40).range_of([-300]) == RangeInSteps(Fraction(-300), Fraction(40))
    rule = QuantileRule.quartiles(Fraction(3, 2), 5)
    assert rule.range_of([10, 41]) == RangeInSteps(Fraction(51, 2), Fraction(93, 4))
    assert rule.range_of([41, 10]) == rule.range_of([10, 41])
    assert rule.range_of([7, 7]) == RangeInSteps(Fraction(7), Fraction(5))


def test_costs_are_exact_under_both_relations() -> None:
    epsilon = Fraction(1, 20)
    median = QuantileRule.median().guarantee(epsilon, "replace-one")
    assert median.epsilon_if_replace_one == epsilon
    assert median.epsilon_if_add_remove == epsilon / 2
    quartiles = QuantileRule.quartiles().guarantee(epsilon, "add-remove")
    assert quartiles.epsilon_if_add_remove == epsilon
    assert quartiles.epsilon_if_replace_one == epsilon * Fraction(8, 5)
    assert quartiles.private


@each_relation
def test_a_release_has_a_scale_and_its_price(neighbours: Neighbours) -> None:
    counts = histogram(np.arange(-500, 501), WHOLE)
    rule = QuantileRule.quartiles(Fraction(1, 2), 10)
    sampler = QuantileSampler(counts, rule, Fraction(2), neighbours)
    scale = sampler.draw(Randomness(SystemSource()))
    assert abs(scale.centre) < 200
    assert 10 <= scale.half_width < 400
    price = rule.guarantee(Fraction(2), neighbours, seeded=True)
    assert price.seeded
    assert not price.private


def test_histograms_count_16_bit_integers_at_the_ends() -> None:
    counts = histogram(np.array([-WHOLE, WHOLE, WHOLE, 0], dtype=np.int16), WHOLE)
    assert counts.dtype == np.int64
    assert (counts[0], counts[WHOLE], counts[-1], counts.sum()) == (1, 1, 2, 4)
    assert len(histogram(np.array([], dtype=np.int16), WHOLE)) == 2 * WHOLE + 1


def test_nothing_private_is_shown() -> None:
    shells = _ShellSampler(np.array([0, 7919], dtype=np.int64), Fraction(1))
    assert "7919" not in repr(shells) + str(shells)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: QuantileRule(()),
        lambda: QuantileRule((Fraction(0),)),
        lambda: QuantileRule((Fraction(1),)),
        lambda: QuantileRule((Fraction(1, 2**11),)),
        lambda: QuantileRule((Fraction(1, 4), HALF, Fraction(3, 4))),
        lambda: QuantileRule.median(0),
        lambda: QuantileRule.quartiles(-1),
        lambda: QuantileRule.median("wide"),
        lambda: QuantileRule.median().weight(Fraction(0), "replace-one"),
        lambda: QuantileRule.median().weight(EPSILON, "replace_one"),  # type: ignore[arg-type]
        lambda: log_probabilities(np.zeros(4, dtype=np.int64), HALF, Fraction(1)),
        lambda: log_probabilities(np.zeros(5), HALF, Fraction(1)),
        lambda: log_probabilities(np.zeros((5, 1), dtype=np.int64), HALF, Fraction(1)),
    ],
)
def test_what_is_public_and_wrong_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError):
        wrong()
