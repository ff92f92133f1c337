"""Lasso votes: one record changes one vote; what is made of the votes keeps its promise.

Two kinds of audit. On records, all assignments to blocks are listed. On votes, any two tables of
votes that differ in one block are neighbours: more than records can do, so it comes closer.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import lasso_path

from dpsubset import ArgumentError, Bounds, select, simulate
from dpsubset.audit.exact import Pair, audit_exact, random_pairs, worst_case_pairs
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Cost, Data, Setting
from dpsubset.mechanisms.published.sample_aggregate import SampleAggregate
from dpsubset.mechanisms.published.stability import (
    FAILURE_PROBABILITY,
    Stability,
    leader,
    log_tail,
    tail_quantile,
    tail_up,
)
from dpsubset.mechanisms.shared.lasso_votes import BlockVotes, LassoVotes, Vote, vote
from dpsubset.mechanisms.shared.rounds import Rounds
from dpsubset.objective.problem import Problem
from dpsubset.privacy.noise import float_scale, top_scale
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.schema.layout import Layout

NEIGHBOURS = ("add-remove", "replace-one")
each_relation = pytest.mark.parametrize("neighbours", NEIGHBOURS)


def table(records: np.ndarray) -> Data:
    cells = np.asarray(np.asarray(records).T, dtype=np.int16, order="C")
    return Data(GramData.of_cells(cells, "test"))


def made_up(n: int, p: int, active: Sequence[int], seed: int, noise: float = 0.05) -> np.ndarray:
    """Quantized records in which y is the sum of the active columns, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, p))
    weights = 1 / np.arange(1, len(active) + 1) ** 0.5
    y = x[:, list(active)] @ weights / weights.sum() + noise * rng.uniform(-1, 1, size=n)
    return np.rint(np.column_stack([x, np.clip(y, -1, 1)]) * STEPS).astype(np.int64)


# The vote of a block.


def cast(
    x: np.ndarray, y: np.ndarray, k: int, always: Sequence[int] = (), layout: Layout | None = None,
    intercept: bool = False,
) -> Vote:  # fmt: skip
    """The vote of records; the intercept's column is put behind the others."""
    choices = x.shape[1] if layout is None else layout.choices
    problem = Problem.create(choices, k, always_include=always, layout=layout, intercept=intercept)
    if intercept:
        x = np.column_stack([x, np.full(len(x), float(problem.layout.intercept_value))])
    return vote(x, y, problem)


def first_of_size(
    x: np.ndarray, y: np.ndarray, size: int, cheap: Sequence[int] = (), factor: float = 1e5
) -> Vote:
    """By coordinate descent along a fine grid of penalties: another way to the same path.

    A column that is a hundred thousand times as large costs the penalty that much less.
    """
    grid = np.abs(x.T @ y).max() / len(y) * np.geomspace(1, 1e-3, 1000)
    x = x.copy()
    x[:, list(cheap)] *= factor
    _, coefficients, _ = lasso_path(x, y, alphas=grid, tol=1e-10, max_iter=10**5)
    for column in coefficients.T:
        if np.count_nonzero(column) >= size:
            return tuple(int(j) for j in np.flatnonzero(column))
    raise AssertionError("not within the grid")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3])
def test_a_vote_is_where_k_variables_are_active_on_the_lasso_path(seed: int, k: int) -> None:
    scaled = made_up(40, 12, [3, 5, 8, 9], seed, noise=0.5) / STEPS
    x, y = scaled[:, :-1], scaled[:, -1]
    assert cast(x, y, k) == first_of_size(x, y, k)


@pytest.mark.parametrize("seed", range(4))
def test_columns_always_included_are_not_penalised(seed: int) -> None:
    scaled = made_up(60, 10, [1, 4, 7], seed, noise=0.5) / STEPS
    x, y = scaled[:, :-1], scaled[:, -1]
    wanted = set(first_of_size(x, y, 4, cheap=[1, 2])) - {1, 2}
    assert cast(x, y, 4, [1, 2]) == tuple(sorted(wanted))
    assert cast(x, y, 2, [1, 2]) == ()
    copies = np.column_stack([x, x[:, 1], x[:, 1] + x[:, 2]])
    # What they explain to the last bit is not explained again by rounding errors.
    assert cast(copies, y, 4, [1, 2]) == tuple(sorted(wanted))


@pytest.mark.parametrize("seed", range(4))
def test_an_intercept_is_like_a_column_that_is_always_included(seed: int) -> None:
    scaled = made_up(60, 10, [1, 4, 7], seed, noise=0.5) / STEPS
    x, y = np.clip(scaled[:, :-1] + 0.4, -1, 1), scaled[:, -1] / 2 + 0.5
    centred = x - x.mean(axis=0), y - y.mean()
    assert cast(x, y, 3, intercept=True) == cast(*centred, 3) == first_of_size(*centred, 3)
    with_ones = np.column_stack([x, np.ones(len(x))])
    assert cast(x, y, 3, intercept=True) == cast(with_ones, y, 4, [10])
    assert cast(x, y, 3, [2], intercept=True) == cast(with_ones, y, 4, [2, 10])


@pytest.mark.parametrize("seed", range(4))
def test_a_choice_is_active_where_one_of_its_columns_is(seed: int) -> None:
    scaled = made_up(60, 10, [1, 4, 7], seed, noise=0.5) / STEPS
    x, y = scaled[:, :-1], scaled[:, -1]
    layout = Layout.of([3, 1, 2, 4], [3, 1, 1, 4])
    # Column by column until so many choices own one.
    columns, size = cast(x, y, 1), 1
    while len({int(layout.owners[j]) for j in columns}) < 2:
        size += 1
        columns = cast(x, y, size)
    assert cast(x, y, 2, layout=layout) == tuple(sorted({int(layout.owners[j]) for j in columns}))
    assert cast(x, y, 4, layout=layout) == (0, 1, 2, 3)
    kept = np.column_stack([x[:, :3], x])  # choice 0 by hand: its columns are in every model
    plain = cast(kept[:, 3:], y, 4, [0, 1, 2])
    assert cast(x, y, 2, [0], layout=layout) == (int(layout.owners[plain[0]]),)


def hostile_blocks() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    yield "zeros", np.zeros((5, 7))
    yield "ones", np.ones((5, 7))
    yield "one record", np.ones((1, 7))
    yield "no signal", np.column_stack([rng.uniform(-1, 1, (9, 6)), np.zeros(9)])
    yield "no columns", np.column_stack([np.zeros((9, 6)), rng.uniform(-1, 1, 9)])
    yield "constant columns", np.column_stack([np.ones((9, 6)), rng.uniform(-1, 1, 9)])
    twins = rng.uniform(-1, 1, (9, 3))
    yield "duplicates", np.column_stack([twins, twins, twins[:, 0] - twins[:, 1]])
    yield "opposites", np.column_stack([twins, -twins, twins[:, 0]])
    yield "corners", rng.integers(-1, 2, (9, 7)).astype(float)
    yield "tiny", rng.integers(-1, 2, (9, 7)) / STEPS
    tiny = rng.uniform(-1, 1, (9, 7))
    tiny[:, :3] /= 1e4
    yield "uneven", tiny
    wave = np.sin(np.outer(np.arange(9), np.arange(7)) / 1e4)
    yield "nearly collinear", wave


@pytest.mark.parametrize(("name", "block"), list(hostile_blocks()))
@pytest.mark.parametrize("always", [(), (0,), (0, 3)])
def test_no_block_fails_or_speaks(
    name: str, block: np.ndarray, always: tuple[int, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    x, y = block[:, :-1], block[:, -1]
    for k in range(max(1, len(always)), 7):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = cast(x, y, k, always)
        assert len(found) <= k - len(always)
        assert found == tuple(sorted(set(found)))
        assert not set(found) & set(always)
        if not y.any():
            assert found == ()
    assert capfd.readouterr() == ("", "")


def test_where_the_library_fails_there_is_no_vote() -> None:
    # No table that has passed the quantizer holds such values; the library refuses them.
    assert cast(np.full((9, 6), np.nan), np.ones(9), 2) == ()
    assert cast(np.ones((0, 6)), np.ones(0), 2) == ()


def test_votes_are_silent_in_threads_too() -> None:
    # Filters of warnings belong to the process, and every one of these paths wants to warn.
    rng = np.random.default_rng(1)
    twins = rng.uniform(-1, 1, (30, 8))
    block = np.column_stack([twins, twins, twins.sum(axis=1)])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(8) as pool:
            votes = list(pool.map(lambda _: cast(block[:, :-1], block[:, -1], 12), range(64)))
        assert len(set(votes)) == 1
        assert heard == []


# One record, one vote.


@given(seed=st.integers(0, 2**32), blocks=st.integers(1, 5), n=st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_one_record_changes_one_vote(seed: int, blocks: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    p = 5
    problem = Problem.create(p, 2, always_include=[3] if seed % 2 else [], intercept=False)
    records = rng.integers(-STEPS, STEPS + 1, size=(n, p + 1))
    assignment = rng.integers(0, blocks, size=n)
    one = int(rng.integers(n))
    replaced = records.copy()
    replaced[one] = STEPS * rng.integers(-1, 2, size=p + 1)
    # The same records in another order, each in its block.
    order = rng.permutation(n)

    def by_block(rows: np.ndarray, places: np.ndarray) -> dict[int, Vote]:
        votes = BlockVotes(table(rows).gram, problem).votes(places.tolist())
        return dict(zip(sorted(set(places.tolist())), votes, strict=True))

    before = by_block(records, assignment)
    assert by_block(records[order], assignment[order]) == before
    for after in (
        by_block(replaced, assignment),
        by_block(np.delete(records, one, axis=0), np.delete(assignment, one)),
    ):
        differ = {b for b in {*before, *after} if before.get(b) != after.get(b)}
        assert differ <= {int(assignment[one])}


def test_blocks_are_drawn_one_record_at_a_time() -> None:
    for blocks in (1, 2, 3, 10**6):
        few = SampleAggregate().assign(50, blocks, Randomness(SeededSource(1)))
        more = SampleAggregate().assign(51, blocks, Randomness(SeededSource(1)))
        assert more[:50] == few
        assert set(few) <= set(range(blocks))
    drawn = SampleAggregate().assign(30_000, 3, Randomness(SeededSource(2)))
    pairs = np.bincount(np.array(drawn[::2]) * 3 + drawn[1::2], minlength=9)
    assert ((pairs - 15_000 / 9) ** 2 / (15_000 / 9)).sum() < 40  # chi-square, 8 degrees: 3e-6


def test_no_records_no_votes() -> None:
    problem = Problem.create(3, 1, intercept=False)
    assert BlockVotes(table(np.zeros((0, 4))).gram, problem).votes([]) == []


# Arguments and guarantees.


def test_arguments() -> None:
    add, swap = (
        Setting.of(Problem.create(4, 2, neighbours=r, intercept=False), 1) for r in NEIGHBOURS
    )
    for cls in (SampleAggregate, Stability):
        for wrong in (0, -3, 1.5, "many", True):
            with pytest.raises(ArgumentError, match="blocks"):
                cls(blocks=wrong)
    with pytest.raises(ArgumentError, match="n is private"):
        SampleAggregate().check(add)
    with pytest.raises(ArgumentError, match="blocks"):
        SampleAggregate().number(swap)
    SampleAggregate(blocks=5).check(add)
    SampleAggregate().check(swap)
    with pytest.raises(ArgumentError, match="delta"):
        Stability().check(add)
    with pytest.raises(ArgumentError, match="purely private"):
        SampleAggregate().check(Setting.of(swap.problem, 1, Fraction(1, 10)))
    for n, blocks in ((0, 1), (1, 1), (8, 2), (9, 3), (3000, 54)):
        assert SampleAggregate().number(Setting.of(swap.problem, 1, n=n)) == blocks


@each_relation
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1, 10**9), Fraction(10**6)])
def test_guarantees_are_computed_back(neighbours: str, epsilon: Fraction) -> None:
    for k, always in ((1, []), (3, []), (3, [0]), (3, [0, 1, 2])):
        problem = Problem.create(
            7, k, neighbours=neighbours, always_include=always, intercept=False
        )
        m = k - len(always)
        setting = Setting.of(problem, epsilon)
        guarantee = SampleAggregate(blocks=4).guarantee(setting)
        assert guarantee.neighbours == neighbours
        assert guarantee.epsilon == (2 * m / top_scale(m, epsilon, sensitivity=1) if m else 0)
        assert guarantee.epsilon_if_replace_one == guarantee.epsilon_if_add_remove
        assert epsilon * (1 - Fraction(1, 2**50)) * (m > 0) <= guarantee.epsilon <= epsilon
        delta = Fraction(1, 10**6)
        tested = Stability().guarantee(Setting.of(problem, epsilon, delta))
        assert epsilon * (1 - Fraction(1, 2**50)) <= tested.epsilon <= epsilon
        assert 0 < tested.delta <= delta
        assert tested.costs["replace-one"] == tested.costs["add-remove"]
        assert "NOT PRIVATE" in str(SampleAggregate(blocks=4).guarantee(setting, seeded=True))


@given(
    st.fractions(Fraction(1, 1000), 1000),
    st.floats(1e-100, 0.9).map(Fraction),
)
@settings(max_examples=60, deadline=None)
def test_the_threshold_is_the_least_that_keeps_delta(epsilon: Fraction, delta: Fraction) -> None:
    scale = float_scale(2 / epsilon)
    r = tail_quantile(scale, delta)
    with localcontext(prec=150):
        alpha = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        exact = alpha**r / (1 + alpha)
        wanted = Decimal(delta.numerator) / Decimal(delta.denominator)
        assert exact <= wanted
        assert r == 1 or alpha ** (r - 1) / (1 + alpha) > wanted
        bound = tail_up(scale, r)
        shown = Decimal(bound.numerator) / Decimal(bound.denominator)
        # Decimals have errors of their own, in the last of 150 digits.
        assert exact * (1 - Decimal("1e-140")) <= shown
        assert shown <= exact * (1 + Decimal("1e-40")) + Decimal("1e-150")


def test_tails_are_sums() -> None:
    for scale in (Fraction(1, 5), Fraction(2), Fraction(7)):
        z = np.arange(-400, 401)
        weights = np.exp(-np.abs(z) / float(scale))
        weights /= weights.sum()
        for r in (-9, -1, 0, 1, 2, 30):
            assert log_tail(scale, r) == pytest.approx(
                math.log(weights[z >= r].sum()), rel=1e-12, abs=1e-15
            )
            if r >= 0:
                assert float(tail_up(scale, r)) == pytest.approx(weights[z >= r].sum())


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1), Fraction(6)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**9)])
def test_a_unanimous_vote_of_the_default_number_of_blocks_passes(
    epsilon: Fraction, delta: Fraction
) -> None:
    setting = Setting.of(Problem.create(5, 2, intercept=False), epsilon, delta)
    needed = Stability().threshold(setting) + tail_quantile(
        Stability().scale(setting), FAILURE_PROBABILITY
    )
    blocks = Stability().number(setting)
    assert blocks == math.ceil(Fraction(3, 2) * needed)
    assert blocks == Stability().number(Setting.of(setting.problem, epsilon, delta, n=10**6))
    logs = Stability().log_probabilities([(1, 3)] * needed, setting)
    outcomes = Stability().listed(setting)
    assert math.exp(logs[outcomes.index((1, 3))]) >= 1 - FAILURE_PROBABILITY
    assert np.exp(logs).sum() == pytest.approx(1)
    fewer = Stability().log_probabilities([(1, 3)] * (needed - 1), setting)
    assert math.exp(fewer[outcomes.index((1, 3))]) < 1 - FAILURE_PROBABILITY or needed - 1 <= 2
    divided = Stability().log_probabilities([(1, 3)] * blocks + [(0, 1)] * blocks, setting)
    assert math.exp(divided[:-1].max()) <= float(delta)


# Audits at the level of votes.


def worst(
    mechanism: LassoVotes, setting: Setting, pairs: Iterable[tuple[list[Vote], list[Vote]]]
) -> tuple[float, float]:
    """Largest |log ratio|, and what delta has to cover at the epsilon of the budget."""
    known: dict[tuple[Vote, ...], np.ndarray] = {}
    ratio, excess, top = 0.0, 0.0, math.exp(setting.epsilon)
    for pair in pairs:
        for votes in map(tuple, map(sorted, pair)):
            if votes not in known:
                known[votes] = mechanism.log_probabilities(votes, setting)
        a, b = (known[tuple(sorted(votes))] for votes in pair)
        both = np.isneginf(a) & np.isneginf(b)
        ratio = max(ratio, np.abs(np.where(both, 0, a) - np.where(both, 0, b)).max())
        p, q = np.exp(a), np.exp(b)
        excess = max(excess, *(np.maximum(d, 0).sum() for d in (p - top * q, q - top * p)))
    return ratio, excess


class HalfTheNoise(SampleAggregate):
    def scale(self, setting: Setting) -> Fraction:
        return super().scale(setting) / 2


class ForgetsTheRounds(SampleAggregate):
    """Epsilon for each pick instead of all of them."""

    def scale(self, setting: Setting) -> Fraction:
        return top_scale(1, setting.epsilon, sensitivity=1)


class HalfTheMove(Stability):
    """Noise for a gap that moves by 1 at most."""

    def scale(self, setting: Setting) -> Fraction:
        return super().scale(setting) / 2


class ForgetsTheUnstable(Stability):
    """A threshold for gaps of 0, where gaps of 1 and 2 are unstable too."""

    def threshold(self, setting: Setting) -> int:
        return super().threshold(setting) - 2


class ForgetsDelta(Stability):
    """A threshold without the tail of the noise."""

    def threshold(self, setting: Setting) -> int:
        return 2


def ballots(p: int, m: int) -> list[Vote]:
    """Every vote there can be, those for too few variables included."""
    return [v for size in range(m + 1) for v in itertools.combinations(range(p), size)]


def vote_pairs(p: int, m: int, others: int) -> Iterator[tuple[list[Vote], list[Vote]]]:
    """All tables that differ in one block, up to the order of blocks."""
    possible = ballots(p, m)
    for rest in itertools.combinations_with_replacement(possible, others):
        for one, two in itertools.combinations(possible, 2):
            yield [*rest, one], [*rest, two]


@pytest.mark.parametrize(("p", "m", "others"), [(2, 1, 3), (4, 1, 2), (3, 2, 2), (4, 2, 1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_no_two_tables_of_votes_contradict_epsilon(
    p: int, m: int, others: int, epsilon: Fraction
) -> None:
    setting = Setting.of(Problem.create(p, m, intercept=False), epsilon)
    ratio, _ = worst(SampleAggregate(), setting, vote_pairs(p, m, others))
    assert 0.5 * float(epsilon) < ratio <= float(epsilon) + 1e-9


def turncoat(p: int, m: int, blocks: int) -> tuple[list[Vote], list[Vote]]:
    """All blocks vote for the first m variables; one of them changes to the last m."""
    first, last = tuple(range(m)), tuple(range(p - m, p))
    return [first] * blocks, [*[first] * (blocks - 1), last]


@pytest.mark.parametrize(("p", "m"), [(2, 1), (5, 1), (6, 2), (6, 3)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_a_turncoat_comes_close_to_epsilon_and_catches_the_twins(
    p: int, m: int, epsilon: Fraction
) -> None:
    setting = Setting.of(Problem.create(p, m, intercept=False), epsilon)
    pair = turncoat(p, m, 60 * m * math.ceil(1 / epsilon))
    right, _ = worst(SampleAggregate(), setting, [pair])
    assert 0.999 * float(epsilon) < right <= float(epsilon) + 1e-9
    for twin, factor in ((HalfTheNoise(), 2), (ForgetsTheRounds(), m)):
        ratio, _ = worst(twin, setting, [pair])
        assert ratio > 0.999 * factor * float(epsilon)


@pytest.mark.parametrize(
    ("counts", "m"),
    [([20] * 3 + [0] * 9, 3), ([20, 15, 10] + [0] * 9, 3), ([15] * 2 + [3] * 14, 2), ([9, 4], 1)],
)
@pytest.mark.parametrize("epsilon", [1, 3])
def test_rounds_lose_fewest_votes_of_the_calibrations(
    counts: list[int], m: int, epsilon: int
) -> None:
    """Against one draw of a whole set, and against noise on all counts, at the same epsilon."""
    c, best = np.array(counts), sum(sorted(counts)[-m:])
    sets = list(itertools.combinations(range(len(counts)), m))
    sums = np.array([c[list(chosen)].sum() for chosen in sets])
    closed = Rounds("pure", 1, Fraction(epsilon), Fraction(0))
    rounds = closed.log_sets(counts, m, Fraction(2 * m, epsilon))
    mine = best - sum(math.exp(rounds[s]) * v for s, v in zip(sets, sums, strict=True))
    weights = np.exp((sums - best) * epsilon / (2 * m))
    noisy = c + np.random.default_rng(0).laplace(scale=2 * m / epsilon, size=(40_000, len(c)))
    top = np.argpartition(-noisy, m - 1, axis=1)[:, :m]
    assert mine < best - weights @ sums / weights.sum()
    assert mine < best - c[top].sum(axis=1).mean()


def gap_pairs(most: int) -> Iterator[tuple[list[Vote], list[Vote]]]:
    """Three supports of one variable; a vote moves from one to another, or is for nothing."""
    for a, b, c in itertools.product(range(most), range(most), range(2)):
        rest = [(0,)] * a + [(1,)] * b + [(2,)] * c
        for one, two in itertools.combinations([(0,), (1,), (2,), ()], 2):
            yield [*rest, one], [*rest, two]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("delta", [Fraction(1, 50), Fraction(1, 10**5)])
def test_no_two_tables_of_votes_contradict_epsilon_and_delta(
    epsilon: Fraction, delta: Fraction
) -> None:
    setting = Setting.of(Problem.create(3, 1, intercept=False), epsilon, delta)
    promised = Stability().guarantee(setting)
    most = Stability().threshold(setting) + 3
    pairs = list(gap_pairs(4))
    _, excess = worst(Stability(), setting, pairs)
    # A tie that a moved vote breaks needs all of delta.
    assert 0.999 * float(promised.delta) < excess <= float(promised.delta) * (1 + 1e-9)
    # While the winner stays, the test of the gap is purely private, and needs all of epsilon.
    stable = [
        pair
        for pair in [*pairs, *(turncoat(3, 1, gap) for gap in range(3, most))]
        if leader(pair[0], 1)[0] == leader(pair[1], 1)[0]
    ]
    ratio, nothing = worst(Stability(), setting, stable)
    assert 0.999 * float(epsilon) < ratio <= float(epsilon) + 1e-9
    assert nothing <= 1e-12
    _, halved = worst(HalfTheMove(), setting, stable)
    assert halved > 1.2 * float(delta)
    for twin in (ForgetsTheUnstable(), ForgetsDelta()):
        _, broken = worst(twin, setting, pairs)
        assert broken > 1.2 * float(delta)
        # A mechanism with another threshold owns up to it.
        assert broken == pytest.approx(float(twin.guarantee(setting).delta))


def test_the_leader() -> None:
    assert leader([], 2) == (None, 0)
    assert leader([(1,), ()], 2) == (None, 0)
    assert leader([(1, 2), (0, 3), (1,)], 2) == ((0, 3), 0)
    assert leader([(1, 2), (0, 3), (1, 2)], 2) == ((1, 2), 1)
    assert leader([(1, 2)] * 4, 2) == ((1, 2), 4)
    assert leader([()] * 4, 0) == ((), 4)


# Audits on records.


def light(column: int, p: int) -> list[int]:
    """A record whose block votes for this column, unless a heavy one is in it."""
    return [100 * (j == column) for j in range(p)] + [100]


def heavy(column: int, p: int) -> list[int]:
    """A record that decides the vote of its block."""
    return [STEPS * (j == column) for j in range(p)] + [STEPS]


def telling_pairs(problem: Problem, n: int) -> Iterator[Pair]:
    """All blocks vote for one column; a heavy record turns the vote of its own.

    Under add-remove a light record's block could be empty without it, and so could a heavy one's.
    """
    p = problem.p
    for mine, other in ((1, 0), (0, 1)):
        rest = [light(mine, p)] * n
        turned = [*rest, heavy(other, p)]
        stays = rest if problem.neighbours == "add-remove" else [*rest, heavy(mine, p)]
        yield Pair.of_records(stays, turned, f"turns from {mine} to {other}")


def tiny_pairs(problem: Problem, count: int, seed: int) -> Iterator[Pair]:
    """Random neighbours with few enough records for all assignments to be listed."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        n = int(rng.integers(0, 5))
        records = rng.integers(-STEPS, STEPS + 1, size=(n + 2, problem.p + 1))
        if i % 2:
            records = STEPS * rng.integers(-1, 2, size=records.shape)
        more = np.delete(records, n + 1, axis=0)
        less = records[:n] if problem.neighbours == "add-remove" else np.delete(records, n, axis=0)
        yield Pair.of_records(less, more, f"{n} records")


def promise(problem: Problem, epsilon: Fraction, delta: Fraction) -> Cost:
    return Stability().guarantee(Setting.of(problem, epsilon, delta)).costs[problem.neighbours]


@each_relation
@pytest.mark.parametrize(("p", "k", "always"), [(3, 1, []), (4, 2, []), (4, 2, [1])])
def test_no_neighbours_contradict_the_promises(
    neighbours: str, p: int, k: int, always: list[int]
) -> None:
    problem = Problem.create(p, k, neighbours=neighbours, always_include=always, intercept=False)
    epsilon, delta = Fraction(1), Fraction(1, 20)
    promised = promise(problem, epsilon, delta)
    for blocks in (2, 3):
        pairs = [*tiny_pairs(problem, 8, blocks), *telling_pairs(problem, 4)]
        audit = audit_exact(SampleAggregate(blocks=blocks), problem, epsilon, pairs)
        assert audit.passed, (audit.worst, audit.pair and audit.pair.label)
        audit = audit_exact(
            Stability(blocks=blocks), problem, epsilon, pairs, delta=delta, promised=promised
        )
        assert audit.passed, (audit.excess, audit.pair and audit.pair.label)


@each_relation
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_records_come_close_to_epsilon_and_catch_the_twins(
    neighbours: str, epsilon: Fraction
) -> None:
    problem = Problem.create(2, 1, neighbours=neighbours, intercept=False)

    def strain(mechanism: SampleAggregate) -> float:
        audit = audit_exact(mechanism, problem, epsilon, telling_pairs(problem, 8))
        return audit.worst / float(epsilon)

    assert 0.99 < strain(SampleAggregate(blocks=2)) <= 1 + 1e-9
    assert strain(HalfTheNoise(blocks=2)) > 1.9


@each_relation
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_records_come_close_to_delta_and_catch_the_twins(
    neighbours: str, epsilon: Fraction
) -> None:
    problem, delta = Problem.create(2, 1, neighbours=neighbours, intercept=False), Fraction(1, 20)
    promised = promise(problem, epsilon, delta)

    def strain(mechanism: Stability) -> float:
        pairs = telling_pairs(problem, 8)
        audit = audit_exact(mechanism, problem, epsilon, pairs, delta=delta, promised=promised)
        return audit.excess / float(promised.delta)

    # Two votes for column 1 against one vote each: a tie, which column 0 wins.
    assert 0.99 < strain(Stability(blocks=2)) <= 1 + 1e-9
    assert strain(ForgetsTheUnstable(blocks=2)) > 1.2
    assert strain(ForgetsDelta(blocks=2)) > 1.2


@each_relation
def test_one_block_is_audited_with_any_number_of_records(neighbours: str) -> None:
    problem = Problem.create(4, 2, neighbours=neighbours, intercept=False)
    rng = np.random.default_rng(3)
    pairs = [pair for pair in random_pairs(problem, 40, rng) if pair.records is not None]
    pairs += worst_case_pairs(problem, 200)
    assert audit_exact(SampleAggregate(blocks=1), problem, Fraction(1), pairs).passed
    delta = Fraction(1, 100)
    promised = promise(problem, Fraction(1), delta)
    audit = audit_exact(
        Stability(blocks=1), problem, Fraction(1), pairs, delta=delta, promised=promised
    )
    assert audit.passed


def by_position(cls: type[LassoVotes]) -> type[LassoVotes]:
    """Block b holds the b-th stretch of the table, as if n were public."""

    class ByPosition(cls):  # type: ignore[misc, valid-type]
        def assign(self, n: int, blocks: int, rng: Randomness) -> list[int]:
            return [i * blocks // n for i in range(n)]

        def assignments(self, n: int, blocks: int) -> Iterable[tuple[int, ...]]:
            return [tuple(i * blocks // n for i in range(n))]

    return ByPosition


def test_blocks_by_position_are_caught_under_add_remove() -> None:
    # Two records a block, the heavier one decides; the first record gone, all pairs are others.
    problem, epsilon = Problem.create(2, 1, neighbours="add-remove", intercept=False), Fraction(1)
    records = [[100 * i * (i % 2), 100 * i * (1 - i % 2), STEPS] for i in range(1, 7)]
    pair = Pair.of_records(records[1:], records, "shifted")
    assert audit_exact(SampleAggregate(blocks=3), problem, epsilon, [pair]).passed
    shifted = audit_exact(by_position(SampleAggregate)(blocks=3), problem, epsilon, [pair])
    assert not shifted.passed
    assert shifted.worst > 1.8
    delta = Fraction(1, 10)
    promised = promise(problem, epsilon, delta)
    for mechanism, passes in ((Stability, True), (by_position(Stability), False)):
        audit = audit_exact(
            mechanism(blocks=3), problem, epsilon, [pair], delta=delta, promised=promised
        )
        assert audit.passed == passes


# What comes out.


@pytest.mark.parametrize("always", [(), (4,)])
def test_without_noise_the_most_voted_win(always: tuple[int, ...]) -> None:
    records = made_up(400, 8, [1, 4, 6], 0)
    problem = Problem.create(8, 3, always_include=always, intercept=False)
    setting = Setting.of(problem, 10**6, n=400)
    rng = Randomness(SeededSource(0))
    sampler = SampleAggregate().prepare(table(records), setting)
    assert {sampler.draw(rng) for _ in range(5)} == {(1, 4, 6)}
    strong = Setting.of(problem, 10**6, Fraction(1, 10**6), n=400)
    sampler = Stability(blocks=5).prepare(table(records), strong)
    assert {sampler.draw(rng) for _ in range(5)} == {(1, 4, 6)}
    # No signal: every block has another opinion, and nothing is released.
    noise = np.random.default_rng(5).integers(-STEPS, STEPS + 1, size=(400, 9))
    sampler = Stability(blocks=5).prepare(table(noise), strong)
    assert {sampler.draw(rng) for _ in range(5)} == {None}
    # Counts that differ decide, whoever is listed first.
    votes = [(1, 2), (2, 5), (2, 5), (1, 5), (0, 5)]
    plain = Setting.of(Problem.create(8, 2, intercept=False), 10**6)
    assert SampleAggregate().choose(votes, plain) == (2, 5)
    assert math.exp(SampleAggregate().log_probabilities(votes, plain).max()) == pytest.approx(1)


@each_relation
def test_closed_forms_are_distributions(neighbours: str) -> None:
    problem = Problem.create(4, 2, neighbours=neighbours, intercept=False)
    data = table(made_up(4, 4, [1, 3], 1, noise=0.4))
    for mechanism, delta in ((SampleAggregate(blocks=3), 0), (Stability(blocks=3), Fraction(1, 9))):
        setting = Setting.of(problem, 1, delta, n=4 if neighbours == "replace-one" else None)
        found = mechanism.outcomes(data, setting)
        assert found is not None
        outcomes, logs = found
        assert (None in outcomes) == isinstance(mechanism, Stability)
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-9)
        # The mean over assignments, one by one.
        given = [
            np.exp(mechanism.outcomes_given(data, setting, a)[1])
            for a in itertools.product(range(3), repeat=4)
        ]
        np.testing.assert_allclose(np.mean(given, axis=0), np.exp(logs), rtol=1e-9, atol=1e-15)
        many = table(made_up(30, 4, [1, 3], 1))
        assert mechanism.outcomes(many, setting) is None
        _, logs = mechanism.outcomes_given(many, setting, [i % 3 for i in range(30)])
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-9)


@each_relation
@pytest.mark.parametrize("shape", ["no rows", "one row", "constant", "missing"])
def test_no_table_fails(neighbours: str, shape: str) -> None:
    x = {
        "no rows": np.zeros((0, 4)),
        "one row": np.ones((1, 4)),
        "constant": np.ones((30, 4)),
        "missing": np.full((30, 4), np.nan),
    }[shape]
    y = np.ones(len(x))
    for name, delta in (("sample-aggregate", 0), ("stability", 1e-3)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = simulate(
                x, y=y, bounds=Bounds(1, 1), k=2, epsilon=1, delta=delta, draws=5,
                mechanism=name, options={"blocks": 4}, neighbours=neighbours,
            )  # fmt: skip
        assert drawn.total() == 5
        assert all(outcome is None or len(outcome) == 2 for outcome in drawn)


def test_releases() -> None:
    records = made_up(2000, 6, [1, 4], 2)
    x, y = records[:, :-1] / STEPS, records[:, -1] / STEPS
    common: dict[str, Any] = {"y": y, "bounds": Bounds(1, 1), "k": 2, "epsilon": 8}
    common["response_range"] = "declared"  # all of epsilon goes into the votes
    release = select(x, mechanism="sample-aggregate", **common)
    assert release.support == (1, 4)
    assert "The number of blocks is 44." in release.statement()
    tested = select(x, mechanism="stability", delta=1e-6, neighbours="add-remove", **common)
    assert tested.support == (1, 4)
    assert tested.guarantee.delta <= Fraction(1e-6)
    assert "of scale 0.25" in tested.statement()
    nothing = select(x, mechanism="stability", delta=1e-6, options={"blocks": 1}, **common)
    assert nothing.support is None
    with pytest.raises(ArgumentError, match="no seeds"):
        select(x, mechanism="stability", delta=1e-6, seed=1, **common)
    with pytest.raises(ArgumentError, match="n is private"):
        select(x, mechanism="sample-aggregate", neighbours="add-remove", **common)
