"""The chain: its matrix, its walks, what it promises, and where the promise does not hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest

import dpsubset
from dpsubset import ArgumentError, Bounds
from dpsubset.audit.exact import (
    Pair,
    audit_exact,
    moments_of_records,
    random_pairs,
    worst_case_pairs,
)
from dpsubset.base.rounding import ball
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN, Cost, Data, Setting
from dpsubset.mechanisms.published.metropolis import LARGEST_MATRIX, Metropolis
from dpsubset.mechanisms.shared.chain import Chain, Walk, distribution_after, transition_matrix
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.privacy.random.draws import exp_interval
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports
from support.cases import CASES, UNIFORM, Case
from support.gtest import LEVEL, g_test, miss

NEIGHBOURS = ("add-remove", "replace-one")
DELTA = Fraction(1, 10**6)
each_case = pytest.mark.parametrize("case", [*CASES, *UNIFORM], ids=lambda case: case.name)


def setting_of(case: Case, delta: Fraction = DELTA) -> Setting:
    return Setting.of(case.problem, case.epsilon, delta)


def target(case: Case) -> np.ndarray:
    return case.probabilities(PLAIN["exponential"]())


def matrix_of(case: Case, *, lazy: bool = False) -> np.ndarray:
    return Metropolis(lazy=lazy).matrix(case.scored, setting_of(case))


# The matrix


def test_the_matrix_by_its_definition() -> None:
    case = CASES[-2]  # with columns that are always included
    scored, problem = case.scored, case.problem
    weight = float(Metropolis().eta(setting_of(case)) * scored.score_step)
    found = matrix_of(case)
    pairs = 1 * (9 - 3)  # of a member that may go and an outsider
    for i, j in itertools.product(range(len(scored)), repeat=2):
        one, other = set(scored.support(i)), set(scored.support(j))
        if len(one & other) == problem.k - 1:
            gap = int(scored.scores[j] - scored.scores[i])
            assert found[i, j] == pytest.approx(min(1, math.exp(-weight * gap)) / pairs, rel=1e-12)
        elif i != j:
            assert found[i, j] == 0
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-14)


@each_case
def test_the_chain_is_reversible_and_the_exponential_mechanism_is_stationary(case: Case) -> None:
    pi = target(case)
    for lazy in (False, True):
        matrix = matrix_of(case, lazy=lazy)
        flow = pi[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(pi @ matrix, pi, rtol=1e-9)
    plain = matrix_of(case)
    np.testing.assert_allclose(matrix, (plain + np.eye(len(pi))) / 2, atol=1e-15)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 64, 1000])
def test_powers_of_the_matrix(steps: int) -> None:
    matrix = matrix_of(CASES[0])
    wanted = np.full(len(matrix), 1 / len(matrix))
    for _ in range(steps):
        wanted = wanted @ matrix
    np.testing.assert_allclose(distribution_after(matrix, steps), wanted, rtol=1e-11)


@each_case
@pytest.mark.parametrize("lazy", [False, True])
def test_in_the_end_the_outcome_is_that_of_the_exponential_mechanism(
    case: Case, lazy: bool
) -> None:
    mechanism = Metropolis(10**6, lazy)
    found = mechanism.outcomes(Data(GramData.from_moments(case.moments)), setting_of(case))
    assert found is not None
    assert found[0] == case.supports
    np.testing.assert_allclose(np.exp(found[1]), target(case), rtol=1e-8)


def test_a_single_support_stays_where_it_is() -> None:
    for stated in ({"k": 3}, {"k": 2, "always_include": [0, 2]}):
        problem = Problem.create(3, intercept=False, **stated)  # type: ignore[arg-type]
        data = Data(GramData.from_moments(moments_of_records(np.ones((5, 4)))))
        setting = Setting.of(problem, 1, DELTA)
        (only,), logs = Metropolis(10).outcomes(data, setting)  # type: ignore[misc]
        assert logs[0] == 0
        drawn = Metropolis(10).prepare(data, setting).draw(Randomness(SeededSource(1)))
        assert drawn == only


def test_large_matrices_are_refused() -> None:
    problem = Problem.create(70, 2, intercept=False)
    assert problem.supports > LARGEST_MATRIX
    data = Data(GramData.from_moments(moments_of_records(np.ones((1, 71)))))
    with pytest.raises(ArgumentError, match="transition matrix"):
        Metropolis().outcomes(data, Setting.of(problem, 1, DELTA))


# Walks


def drawn(
    case: Case, mechanism: Metropolis, draws: int, seed: int, start_bits: int = 64
) -> tuple[Counter[tuple[int, ...]], dict[str, int]]:
    sampler = mechanism.prepare(Data(GramData.from_moments(case.moments)), setting_of(case))
    rng = Randomness(SeededSource(seed), start_bits)
    counts = Counter(sampler.draw(rng) for _ in range(draws))
    return counts, sampler.diagnostics()  # type: ignore[return-value]


@each_case
@pytest.mark.parametrize("lazy", [False, True])
def test_walks_end_where_the_matrix_says(case: Case, lazy: bool) -> None:
    """Uniforms of 8 bits: float64 is unsure often, and more bits are asked for."""
    steps = 4
    counts, work = drawn(case, Metropolis(steps, lazy), 2000, seed=3, start_bits=8)
    right = distribution_after(matrix_of(case, lazy=lazy), steps)
    assert g_test(counts, case.supports, right) >= 1e-6
    assert work["steps"] == 4 * 2000
    assert work["by_hand"] > 0 or case in UNIFORM


def test_a_walk_that_forgets_to_refuse_is_caught() -> None:
    case = CASES[0]
    counts, _ = drawn(case, Metropolis(20), 4000, seed=5)
    right = distribution_after(matrix_of(case), 20)
    assert g_test(counts, case.supports, right) >= 1e-6
    # Accept always, or with exp(-2x), or only what is no worse: none of them is this chain.
    always = np.full_like(right, 1 / len(right))
    twice = distribution_after(
        transition_matrix(
            case.scored, case.problem, 2 * Metropolis().eta(setting_of(case)), lazy=False
        ),
        20,
    )
    for wrong in (always, twice, distribution_after(greedy(matrix_of(case)), 20)):
        assert miss(right, wrong, 4000) < LEVEL
        assert g_test(counts, case.supports, wrong) < LEVEL


def greedy(matrix: np.ndarray) -> np.ndarray:
    """The chain that refuses whatever is worse."""
    step = matrix.max()
    found = np.where(np.isclose(matrix, step, rtol=1e-12), matrix, 0.0)
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(found, 1 - found.sum(axis=1))
    return np.asarray(np.maximum(found, 0.0))


@pytest.mark.parametrize("lazy", [False, True])
def test_a_walk_keeps_its_books(lazy: bool) -> None:
    problem = Problem.create(
        12, 5, always_include=[4, 9], constraint="l1", ridge=0.1, intercept=False
    )
    rng = np.random.default_rng(1)
    moments = moments_of_records(rng.integers(-STEPS, STEPS + 1, size=(60, 13)))
    unit = Sensitivity.of(problem).score_step
    chain = Chain(GramData.from_moments(moments), problem, unit, Fraction(2), lazy=lazy)
    randomness = Randomness(SeededSource(2), 8)
    walk, seen = chain.start(randomness), set()
    for steps in (1, 2, 3, 500, 0, 7, 5000):
        walk.advance(steps, randomness)
        seen.add(walk.support)
        assert sorted([*walk.inside, *walk.outside, 4, 9]) == list(range(12))
        assert sorted([*walk.inside, 4, 9]) == list(walk.support)
        members = np.array([walk.support])
        assert walk.score == Scorer(moments, problem, unit).scores(members)[0]
    assert len(seen) > 3
    work = chain.diagnostics()
    assert work["steps"] == 5513
    # Half of the lazy steps propose nothing; most of the other proposals are remembered.
    assert 0 < work["accepted"] < 5513
    assert work["scored"] <= 120 * 2


def by_the_book(case: Case, walk: Walk, steps: int, lazy: bool, bits: int, seed: int) -> int:
    """The same words, the definition, rationals throughout; returns how often bits ran out."""
    source = SeededSource(seed)
    count = 2 * steps + 8
    block = source.bits(64 * count)
    words = iter([block >> (64 * i) & (2**64 - 1) for i in range(count)])
    scores = dict(zip(case.supports, case.scored.scores.tolist(), strict=True))
    weight = Metropolis().eta(setting_of(case)) * case.scored.score_step
    inside, outside = walk.inside.tolist(), walk.outside.tolist()
    always, refined = case.problem.always_include, 0
    for _ in range(steps):
        pick = next(words) % ((2 if lazy else 1) * len(inside) * len(outside))
        if lazy:
            pick, stay = divmod(pick, 2)
            if stay:
                continue
        outsider, member = divmod(pick, len(inside))
        now = tuple(sorted([*always, *inside]))
        other = [*inside[:member], outside[outsider], *inside[member + 1 :]]
        gap = scores[tuple(sorted([*always, *other]))] - scores[now]
        if gap > 0:
            value, known = next(words) >> (64 - bits), bits
            while True:
                low, high = exp_interval(weight * gap, known + 16)
                if (value + 1) << 16 <= low or value << 16 >= high:
                    break
                value, known = (value << known) | source.bits(known), 2 * known
                refined += 1
            if value << 16 >= high:
                continue
        outside[outsider] = inside[member]
        inside = other
    walk.advance(steps, Randomness(SeededSource(seed), bits))
    assert walk.inside.tolist() == inside
    assert walk.outside.tolist() == outside
    return refined


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("bits", [64, 8])
def test_every_step_is_the_one_of_the_definition(lazy: bool, bits: int) -> None:
    refined = 0
    for seed, case in enumerate(CASES):
        setting = setting_of(case)
        chain = Chain(
            GramData.from_moments(case.moments),
            case.problem,
            setting.sensitivity.score_step,
            Metropolis().eta(setting),
            lazy=lazy,
        )
        walk = chain.start(Randomness(SeededSource(seed)))
        for part in range(4):
            refined += by_the_book(case, walk, 400, lazy, bits, 10 * seed + part)
    assert (refined > 0) == (bits < 64)


class Scripted:
    """A source whose words are known beforehand."""

    secure = False

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def bits(self, count: int) -> int:
        taken = [self._words.pop(0) if self._words else 0 for _ in range(count // 64)]
        return sum(word << (64 * i) for i, word in enumerate(taken))


@pytest.mark.parametrize("lazy", [False, True])
def test_words_that_would_favour_some_pairs_are_dropped(lazy: bool) -> None:
    # Without data every proposal is accepted, so words can be read off the walk.
    problem = Problem.create(4, 1, neighbours="add-remove", intercept=False)
    moments = moments_of_records(np.empty((0, 5)))
    chain = Chain(GramData.from_moments(moments), problem, Fraction(1), Fraction(1), lazy=lazy)
    choices = 6 if lazy else 3
    whole = 2**64 - 2**64 % choices  # so many words, the same number for each choice
    for word in [0, 1, 2, 3, 4, 5, 10**15 + 1, whole - 1, whole - 2, whole - 3]:
        walk = chain.start(Randomness(SeededSource(1)))
        outside = walk.outside.tolist()
        # What is dropped costs no step: the word after it makes the only one.
        script = [2**64 - 1, whole, word] if whole < 2**64 else [word]
        walk.advance(1, Randomness(Scripted(script)))
        pick = word % choices
        if lazy and pick % 2:
            assert walk.outside.tolist() == outside
        else:
            assert walk.support == (outside[pick // 2 if lazy else pick],)


def test_a_crowded_table_of_scores_changes_nothing() -> None:
    case = CASES[-1]
    plain, work = drawn(case, Metropolis(50), 100, seed=11)
    digest, unit = GramData.from_moments(case.moments), case.sensitivity.score_step
    chain = Chain(
        digest, case.problem, unit, Metropolis().eta(setting_of(case)), lazy=False, rows=2
    )
    rng = Randomness(SeededSource(11))
    crowded: Counter[tuple[int, ...]] = Counter()
    for _ in range(100):
        walk = chain.start(rng)
        walk.advance(50, rng)
        crowded[walk.support] += 1
    assert crowded == plain
    assert chain.diagnostics()["scored"] > 5 * work["scored"]


def test_scores_that_float64_cannot_certify_are_decided_in_rationals() -> None:
    rng = np.random.default_rng(4)
    records = rng.integers(-STEPS, STEPS + 1, size=(6, 5))
    records[:, 1] = records[:, 0]
    moments = moments_of_records(records, 2**29)
    problem = Problem.create(
        4, 2, constraint="l1", radius=2.0, neighbours="add-remove", intercept=False
    )
    unit = Sensitivity.of(problem).score_step
    scored = enumerate_supports(moments, problem, unit)
    # So weak that the walk moves although scores are 10^8 apart.
    eta = Fraction(1, 2**27)
    chain = Chain(GramData.from_moments(moments), problem, unit, eta, lazy=False)
    randomness = Randomness(SeededSource(8))
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(1500):
        walk = chain.start(randomness)
        walk.advance(5, randomness)
        counts[walk.support] += 1
        at = int(np.flatnonzero((scored.supports == walk.members).all(axis=1))[0])
        assert walk.score == scored.scores[at]
    assert 0 < chain.diagnostics()["by_hand"] <= 6
    right = distribution_after(transition_matrix(scored, problem, eta, lazy=False), 5)
    supports = [scored.support(i) for i in range(len(scored))]
    assert right.max() > 1.5 * right.min()
    assert g_test(counts, supports, right) >= 1e-6


def test_records_and_moments_walk_alike() -> None:
    rng = np.random.default_rng(6)
    records = rng.integers(-STEPS, STEPS + 1, size=(50, 31))
    problem = Problem.create(30, 3, constraint="l1", intercept=False)
    setting = Setting.of(problem, 20, DELTA)
    cells = np.asarray(records.T, dtype=np.int16, order="C")

    def ends(digest: GramData, steps: int) -> list[object]:
        sampler = Metropolis(steps).prepare(Data(digest), setting)
        randomness = Randomness(SeededSource(3))
        return [sampler.draw(randomness) for _ in range(5)]

    few, many = GramData.of_cells(cells, "x"), GramData.of_cells(cells, "x")
    whole = GramData.from_moments(moments_of_records(records))
    assert ends(few, 10) == ends(whole, 10)
    assert (few.slot < 0).all()  # multiplied out entry by entry
    assert ends(many, 1000) == ends(whole, 1000)
    assert (many.slot >= 0).all()  # multiplied out beforehand


def test_columns_in_batches_are_the_same() -> None:
    records = np.random.default_rng(6).integers(-STEPS, STEPS + 1, size=(50, 31))
    problem = Problem.create(30, 3, constraint="l1", intercept=False)
    digest = GramData.of_cells(np.asarray(records.T, dtype=np.int16, order="C"), "x")
    chain = Chain(digest, problem, Sensitivity.of(problem).score_step, Fraction(1), lazy=False)
    chain.prefetch_columns(1000, work_bytes=8 * 50 * 7)  # seven at a time
    right = moments_of_records(records).products[:30, :30]
    assert np.array_equal(digest.columns[digest.slot, :30], right)


def test_seeds_repeat_and_differ() -> None:
    case = CASES[0]
    one, two, other = (drawn(case, Metropolis(30), 200, seed=s)[0] for s in (1, 1, 2))
    assert one == two
    assert one != other


def test_with_a_huge_epsilon_the_walk_descends_to_the_best() -> None:
    # Orthogonal columns: every exchange for a better column is a step down, so there is no trap.
    x = np.kron(np.eye(6), np.ones((4, 1)))
    y = x @ np.array([0.1, 0.9, 0.3, 0.8, 0.2, 0.05])
    records = np.rint(np.column_stack([x, y]) * STEPS).astype(np.int64)
    setting = Setting.of(Problem.create(6, 2, prediction_bound=2.0, intercept=False), 10**6, DELTA)
    sampler = Metropolis(2000).prepare(
        Data(GramData.from_moments(moments_of_records(records))), setting
    )
    randomness = Randomness(SeededSource(1))
    assert {sampler.draw(randomness) for _ in range(50)} == {(1, 3)}


# The guarantee


@pytest.mark.parametrize("rule", ["sharp", "published"])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(700)])
def test_the_guarantee_is_computed_back(rule: str, neighbours: str, epsilon: Fraction) -> None:
    problem = Problem.create(
        6, 2, constraint="l1", radius=2.0, neighbours=neighbours, intercept=False
    )
    s = Sensitivity.of(problem, rule)
    setting = Setting(problem, s, epsilon, DELTA)
    mechanism = Metropolis(5000)
    guarantee = mechanism.guarantee(setting)
    distance = mechanism.distance(setting)
    assert guarantee.epsilon == epsilon
    # Lemma 4 of Roy, Wang and Tewari 2024, rounded to the safe sides and hardly at all.
    assert DELTA * (1 - Fraction(1, 2**60)) < guarantee.delta <= DELTA
    if epsilon < 700:
        assert float(distance) == pytest.approx(1e-6 / (1 + math.exp(epsilon)), rel=1e-9)
    other = guarantee.costs["replace-one" if neighbours == "add-remove" else "add-remove"]
    factor = s.score_range("replace-one") / s.score_range("add-remove")
    assert other.epsilon == epsilon * (factor if neighbours == "add-remove" else 1 / factor)
    if other.epsilon < 300:
        wanted = float(distance) * (1 + math.exp(other.epsilon))
        assert float(other.delta) == pytest.approx(min(1.0, wanted), rel=1e-9)
    with flint.ctx.workprec(1024):
        # Rounded down what is assumed, up what is promised.
        assert ball(distance) * (1 + ball(epsilon).exp()) <= ball(DELTA)
        if other.delta < 1:
            assert ball(distance) * (1 + ball(other.epsilon).exp()) <= ball(other.delta)
    if (neighbours, epsilon) == ("add-remove", 700):
        assert other.delta == 1  # worth nothing, and said so


def test_the_guarantee_says_what_it_assumes() -> None:
    problem = Problem.create(
        6, 2, constraint="l1", radius=2.0, neighbours="add-remove", intercept=False
    )
    text = str(Metropolis(5000).guarantee(Setting.of(problem, 1, DELTA)))
    assert "approximate epsilon = 1 and delta = 1e-06" in text
    assert "ASSUMING that the random walk that drew the answer" in text
    assert "5000 steps" in text
    assert "within 2.68e-7 of its stationary distribution in total variation" in text
    assert "on this table, on its neighbours and on all others" in text
    # The number shown is rounded down: it assumes no less than is needed.
    assert 2.68e-7 < 1e-6 / (1 + math.e) < 2.69e-7
    far = Metropolis(5000).guarantee(Setting.of(problem, 10**6, DELTA))
    assert "within 3.29e-434301 of" in str(far)


def test_arguments_are_checked() -> None:
    problem = Problem.create(6, 2, intercept=False)
    with pytest.raises(ArgumentError, match="needs a delta"):
        Metropolis().check(Setting.of(problem, 1))
    Metropolis().check(Setting.of(problem, 1, DELTA))
    for wrong in ({"steps": 0}, {"steps": 1.5}, {"steps": True}, {"lazy": 1}, {"steps": 10**13}):
        with pytest.raises(ArgumentError):
            Metropolis(**wrong)  # type: ignore[arg-type]


def test_select_releases_with_the_assumption_in_the_statement() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(200, 8))
    y = np.clip(0.6 * x[:, 2] - 0.4 * x[:, 5] + rng.uniform(-0.05, 0.05, 200), -1, 1)
    release = dpsubset.select(
        x, y=y, bounds=Bounds(x=(-1, 1), y=(-1, 1)), k=2, epsilon=200, delta=1e-6, seed=1,
        mechanism="metropolis", options={"steps": 2000, "lazy": True}, constraint="l1", radius=2,
        neighbours="add-remove", sensitivity="published", diagnostics="not-private",
    )  # fmt: skip
    assert release.support == (2, 5)
    assert release.diagnostics is not None
    assert release.diagnostics["steps"] == 2000
    statement = release.statement()
    assert "It holds only if the random walk that drew the answer is long enough" in statement
    assert "exactly: after 2000 steps" in statement
    assert "2000 steps, staying put half of the time" in statement
    assert release.to_dict()["guarantee"]["assumes"]


# The audit. Matrix powers say how far a chain is from its target, so the assumption is checked.


def nearness(mechanism: Metropolis, problem: Problem, epsilon: Fraction, pair: Pair) -> float:
    """The larger total variation distance from the target, over both tables of a pair."""
    far = 0.0
    for data in pair.data(mechanism):
        setting = Setting.of(problem, epsilon, DELTA)
        ends = mechanism.outcomes(data, setting)
        aims = PLAIN["exponential"]().outcomes(data, replace(setting, delta=Fraction(0)))
        assert ends is not None
        assert aims is not None
        far = max(far, float(np.abs(np.exp(ends[1]) - np.exp(aims[1])).sum()) / 2)
    return far


def state(neighbours: str, p: int = 5, k: int = 2) -> Problem:
    return Problem.create(p, k, constraint="l1", radius=2.0, neighbours=neighbours, intercept=False)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_pair_contradicts_the_promise_once_mixed(neighbours: str, lazy: bool) -> None:
    problem, epsilon = state(neighbours), Fraction(1)
    mechanism = Metropolis(10**9, lazy)
    rng = np.random.default_rng(len(neighbours))
    pairs = [*random_pairs(problem, 60, rng), *worst_case_pairs(problem)]
    distance = float(mechanism.distance(Setting.of(problem, epsilon, DELTA)))
    for pair in pairs:
        assert nearness(mechanism, problem, epsilon, pair) <= distance
    audit = audit_exact(mechanism, problem, epsilon, pairs, delta=DELTA)
    assert audit.pairs == 68
    assert audit.passed, audit.excess
    # Close to the promise, so that what is broken below is caught.
    assert 0.98 < audit.worst <= 1.0


class Doubled(Metropolis):
    """Twice the weight of the scores."""

    def eta(self, setting: Setting) -> Fraction:
        return 2 * super().eta(setting)


class Greedy(Metropolis):
    """Refuses whatever is worse, instead of accepting it at the ratio."""

    def matrix(self, scored: ScoredSupports, setting: Setting) -> np.ndarray:
        return greedy(super().matrix(scored, setting))


class FromTheData(Metropolis):
    """Takes y_max of the sensitivity (y_max + K)^2 from the table."""

    needs_records = True

    def outcomes(self, data: Data, setting: Setting):  # type: ignore[no-untyped-def]
        y_max = Fraction(int(np.abs(data.gram.response.astype(int)).max(initial=0)), STEPS)
        seen = (y_max + setting.problem.prediction_bound) ** 2
        return super().outcomes(data, replace(setting, sensitivity=replace(
            setting.sensitivity, range=seen)))  # fmt: skip


@pytest.mark.parametrize("twin", [Doubled, Greedy])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_broken_twins_are_caught(twin: type[Metropolis], neighbours: str) -> None:
    problem, epsilon = state(neighbours), Fraction(1)
    pairs = list(worst_case_pairs(problem))
    assert audit_exact(Metropolis(10**9), problem, epsilon, pairs, delta=DELTA).passed
    audit = audit_exact(twin(10**9), problem, epsilon, pairs, delta=DELTA)
    assert not audit.passed
    assert audit.excess > 100 * DELTA
    assert audit.worst > 1.5


def test_a_sensitivity_taken_from_the_data_is_caught() -> None:
    # Small responses, then one of full size: the weight of every score drops at once.
    problem, epsilon = (
        Problem.create(4, 1, constraint="l1", radius=0.5, neighbours="add-remove", intercept=False),
        1,
    )
    rows = np.zeros((2000, 5), dtype=np.int64)
    rows[:, 0] = rows[:, 4] = STEPS // 10
    pair = Pair.of_records(rows, np.vstack([rows, [[0, 0, 0, 0, STEPS]]]), "one loud response")
    published = Sensitivity.of(problem, "published")
    right, wrong = (
        audit_exact(m, problem, Fraction(epsilon), [pair], delta=DELTA, sensitivity=published)
        for m in (Metropolis(10**9), FromTheData(10**9))
    )
    assert right.passed
    assert not wrong.passed
    assert wrong.worst > 5


def two_pairs(copies: int, blind: int) -> Pair:
    """Two pairs of columns that explain y together, alone neither; every exchange is a way up.

    The ``blind`` records are explained by the second pair only. The neighbour has one record more,
    which makes the way up from the first pair a little steeper.
    """
    rows = [
        [(y + e) / 2, (y - e) / 2, (y + f) / 2, (y - f) / 2, y]
        for y, e, f in itertools.product((-1, 1), repeat=3)
    ]
    table = np.rint(np.array([*rows, [0, 0, 0.5, 0.5, 1]]) * STEPS).astype(np.int64)
    one = np.rint(np.array([[0.5, 0.5, -1, -1, 1]]) * STEPS).astype(np.int64)
    base = moments_of_records(table, [copies] * 8 + [blind])
    return Pair(base, base + moments_of_records(one), "two pairs")


def test_a_chain_that_has_not_mixed_does_not_keep_the_promise() -> None:
    """Why the guarantee says ASSUMING: how long the walk is trapped differs between neighbours."""
    problem, epsilon = state("add-remove", p=4), Fraction(1)
    pair = two_pairs(60, 150)
    trapped, free = Metropolis(30_000), Metropolis(100_000)
    distance = float(free.distance(Setting.of(problem, epsilon, DELTA)))

    assert nearness(trapped, problem, epsilon, pair) > 10 * distance
    audit = audit_exact(trapped, problem, epsilon, [pair], delta=DELTA)
    assert not audit.passed
    assert audit.outcome == (0, 1)
    assert audit.worst > 2.5
    assert audit.excess > 100 * DELTA

    assert nearness(free, problem, epsilon, pair) < distance
    assert audit_exact(free, problem, epsilon, [pair], delta=DELTA).passed


def test_the_default_number_of_steps_can_be_far_too_small() -> None:
    problem = state("add-remove", p=4)
    assert nearness(Metropolis(), problem, Fraction(1), two_pairs(100, 220)) > 0.4


def test_the_cost_under_the_other_relation_is_kept_too() -> None:
    problem, epsilon = state("add-remove"), Fraction(1)
    mechanism = Metropolis(10**9)
    setting = Setting.of(problem, epsilon, DELTA)
    cost = mechanism.guarantee(setting).costs["replace-one"]
    assert cost.epsilon > 1.99
    assert cost.delta > DELTA
    pairs = worst_case_pairs(replace(problem, neighbours="replace-one"))
    audit = audit_exact(mechanism, problem, epsilon, pairs, delta=DELTA,
                        promised=Cost(cost.epsilon, cost.delta))  # fmt: skip
    assert audit.passed
    assert audit.worst > 0.98 * cost.epsilon
