"""Peeling: closed form by definition, exact audit that comes close, twins that it catches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import ArgumentError, Bounds, simulate
from dpsubset.audit.exact import Pair, audit_exact, moments_of_records, random_pairs
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Data, Mechanism, Setting
from dpsubset.mechanisms.published.peeling import Peeling, _scores
from dpsubset.mechanisms.shared.rounds import Rounds, over_supports
from dpsubset.objective.problem import Problem
from dpsubset.privacy.accounting import epsilon_of
from dpsubset.privacy.random import Randomness, SystemSource

NEIGHBOURS = ("add-remove", "replace-one")
# (p, k, epsilon, delta): the last two are cheaper in zCDP.
SHAPES = [
    (4, 1, Fraction(1), Fraction(0)),
    (6, 2, Fraction(1, 2), Fraction(1, 10**6)),
    (7, 3, Fraction(2), Fraction(0)),
    (6, 3, Fraction(1, 2), Fraction(1, 100)),
    (7, 3, Fraction(2), Fraction(1, 1000)),
]


def contrary(problem: Problem, rare: int = 3000) -> Iterator[Pair]:
    """The last k variables correlate less than the others; one record sets them further apart."""
    last = np.arange(problem.p) >= problem.p - problem.k
    all_alike = np.full(problem.p + 1, STEPS)
    without_last = np.append(np.where(last, 0, STEPS), STEPS)
    apart = np.append(np.where(last, STEPS, -STEPS), -STEPS)
    mirror = np.append(-apart[:-1], -STEPS)
    for copies in (10, rare):
        rest = moments_of_records([all_alike, without_last], [10, copies])
        with_it, other = (rest + moments_of_records([record]) for record in (apart, mirror))
        first = rest if problem.neighbours == "add-remove" else other
        yield Pair(first, with_it, f"contrary, {copies} copies")


def data_of(records: object) -> Data:
    return Data(GramData.from_moments(moments_of_records(records)))


def some_records(p: int, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-STEPS, STEPS + 1, size=(n, p + 1))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("p", "k", "epsilon", "delta"), SHAPES)
def test_no_pair_contradicts_the_promise_and_some_come_close(
    neighbours: str, p: int, k: int, epsilon: Fraction, delta: Fraction
) -> None:
    problem = Problem.create(p, k, neighbours=neighbours)
    pairs = [*random_pairs(problem, 25, np.random.default_rng(p)), *contrary(problem)]
    audit = audit_exact(Peeling(), problem, epsilon, pairs, delta=delta)
    assert audit.passed, audit
    promised = Peeling().guarantee(Setting.of(problem, epsilon, delta))
    if promised.delta == 0:
        assert 0.999 * float(epsilon) < audit.worst <= float(epsilon) + 1e-9
    else:
        # Its largest loss is above epsilon; what delta has to cover is there, and is covered.
        assert audit.worst > float(epsilon)


class HalfTheNoise(Peeling):
    def rounds(self, setting: Setting) -> Rounds:
        right = super().rounds(setting)
        # Rho goes with the square of the noise.
        factor = 2 if right.measure == "pure" else 4
        return Rounds(right.measure, 1, factor * right.picks, right.values)


class OneRecordOnly(Peeling):
    """Noise for add-remove under either relation."""

    def change(self, setting: Setting) -> int:
        return STEPS**2


class BoundFromTheData(Peeling):
    """Takes the largest |y| of the table for the bound of y, as published code does."""

    needs_records = True

    def outcomes(self, data: Data, setting: Setting) -> object:
        largest = int(np.abs(data.gram.response.astype(np.int64)).max(initial=1))
        change = max(1, STEPS * largest * self.change(setting) // STEPS**2)
        problem, rounds = setting.problem, self.rounds(setting)
        scale = rounds.pick_scale(problem.picks, change)
        return over_supports(problem, rounds.log_supports(problem, _scores(data, problem), scale))


@pytest.mark.parametrize(("p", "k", "epsilon", "delta"), SHAPES)
@pytest.mark.parametrize(
    ("twin", "neighbours"),
    [
        (HalfTheNoise(), "add-remove"),
        (HalfTheNoise(), "replace-one"),
        (OneRecordOnly(), "replace-one"),
    ],
)
def test_twins_with_half_the_noise_are_caught(
    twin: Mechanism, neighbours: str, p: int, k: int, epsilon: Fraction, delta: Fraction
) -> None:
    problem = Problem.create(p, k, neighbours=neighbours)
    if Peeling().guarantee(Setting.of(problem, epsilon, delta)).delta == 0:
        audit = audit_exact(twin, problem, epsilon, contrary(problem), promised=None)
        assert audit.worst > 1.99 * float(epsilon)
    else:
        # Here it is delta that must be passed: outcomes that are likely count for more.
        audit = audit_exact(twin, problem, epsilon, balanced(problem), delta=delta)
        assert audit.excess > float(delta)
    assert not audit.passed


def balanced(problem: Problem) -> Iterator[Pair]:
    """All variables alike, until a record sets half of them apart."""
    half = np.arange(problem.p) < problem.k
    alike = moments_of_records([np.full(problem.p + 1, STEPS)], [10])
    apart = np.append(np.where(half, STEPS, -STEPS), STEPS)
    mirror = np.append(-apart[:-1], STEPS)
    first, second = (alike + moments_of_records([record]) for record in (mirror, apart))
    yield Pair(alike if problem.neighbours == "add-remove" else first, second, "balanced")


def test_a_bound_taken_from_the_data_is_caught() -> None:
    problem = Problem.create(4, 1, neighbours="add-remove")
    dull = np.array([[STEPS, STEPS, STEPS, STEPS // 2, STEPS // 100]] * 40)
    loud = np.array([[-STEPS, -STEPS, -STEPS, STEPS, STEPS]])
    pair = Pair.of_records(dull, np.vstack([dull, loud]), "one loud y")
    right = audit_exact(Peeling(), problem, Fraction(1), [pair])
    wrong = audit_exact(BoundFromTheData(), problem, Fraction(1), [pair])
    assert right.passed
    assert not wrong.passed
    assert wrong.worst > 2


@given(
    st.lists(st.integers(-40, 40), min_size=3, max_size=5),
    st.integers(1, 3),
    st.sampled_from(["pure", "zcdp"]),
    st.fractions(Fraction(1, 10), 20),
)
def test_the_closed_form_by_its_definition(
    scores: list[int], k: int, measure: str, cost: Fraction
) -> None:
    """All orders of visits of all picks, and all orders of picks."""
    rounds = Rounds(measure, 1, cost, Fraction(0))  # type: ignore[arg-type]
    scale = float(rounds.pick_scale(k, 10))

    def pick(left: tuple[int, ...], i: int) -> float:
        q = {j: math.exp((scores[j] - max(scores[m] for m in left)) / scale) for j in left}
        if measure == "zcdp":
            return q[i] / sum(q.values())
        chance = 0.0
        for order in itertools.permutations(left):
            before = order[: order.index(i)]
            chance += q[i] * math.prod(1 - q[j] for j in before)
        return chance / math.factorial(len(left))

    wanted: dict[tuple[int, ...], float] = {}
    for picks in itertools.permutations(range(len(scores)), k):
        chance, left = 1.0, tuple(range(len(scores)))
        for i in picks:
            chance *= pick(left, i)
            left = tuple(j for j in left if j != i)
        key = tuple(sorted(picks))
        wanted[key] = wanted.get(key, 0.0) + chance
    found = rounds.log_sets(scores, k, rounds.pick_scale(k, 10))
    assert set(found) == set(wanted)
    for key, log in found.items():
        assert math.exp(log) == pytest.approx(wanted[key], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_record_moves_a_score_by_more_and_some_by_as_much(neighbours: str) -> None:
    problem = Problem.create(6, 2, neighbours=neighbours)
    bound = Peeling().change(Setting.of(problem, 1))
    pairs = [*random_pairs(problem, 200, np.random.default_rng(3)), *contrary(problem)]
    moved = [
        max(
            abs(abs(a) - abs(b))
            for a, b in zip(pair.first.products[:-1, -1].tolist(),
                            pair.second.products[:-1, -1].tolist(), strict=True)
        )
        for pair in pairs
    ]  # fmt: skip
    assert max(moved) == bound


def test_without_noise_to_speak_of_it_is_the_top_of_the_correlations() -> None:
    rng = np.random.default_rng(5)
    for seed in range(5):
        problem = Problem.create(8, 3, neighbours=NEIGHBOURS[seed % 2])
        data = data_of(some_records(8, 60, seed))
        best = tuple(sorted(np.argsort(-np.abs(data.gram.c))[:3].tolist()))
        sampler = Peeling().prepare(
            data, Setting.of(problem, 10**6, [0, Fraction(1, 10)][seed % 2])
        )
        assert sampler.draw(Randomness(SystemSource())) == best
    always = Problem.create(8, 3, always_include=[int(rng.integers(8))])
    drawn = Peeling().prepare(data, Setting.of(always, 10**6)).draw(Randomness(SystemSource()))
    free = [j for j in np.argsort(-np.abs(data.gram.c)).tolist() if j not in always.always_include]
    assert drawn == tuple(sorted((*always.always_include, *free[:2])))


def test_columns_always_included_are_in_every_outcome() -> None:
    problem = Problem.create(5, 3, always_include=[1, 4])
    supports, logs = Peeling().outcomes(data_of(some_records(5, 20, 0)), Setting.of(problem, 1))
    assert supports == [(0, 1, 4), (1, 2, 4), (1, 3, 4)]
    assert np.exp(logs).sum() == pytest.approx(1)
    # With nothing to choose nothing is spent.
    full = Problem.create(5, 2, always_include=[1, 4])
    sampler = Peeling().prepare(data_of(some_records(5, 20, 0)), Setting.of(full, 1))
    assert sampler.draw(Randomness(SystemSource())) == (1, 4)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_guarantees_are_computed_back(neighbours: str) -> None:
    problem = Problem.create(10, 4, neighbours=neighbours)
    ratio = {"add-remove": 2, "replace-one": Fraction(1, 2)}[neighbours]
    other = next(relation for relation in NEIGHBOURS if relation != neighbours)
    pure = Peeling().guarantee(Setting.of(problem, Fraction(1, 3)))
    assert (pure.epsilon, pure.delta) == (Fraction(1, 3), 0)
    assert pure.costs[other].epsilon == ratio * Fraction(1, 3)  # type: ignore[index]
    setting = Setting.of(problem, Fraction(1, 3), Fraction(1, 1000))
    both = Peeling().guarantee(setting)
    rho = Peeling().rounds(setting).total
    assert both.delta == Fraction(1, 1000)
    assert Fraction(1, 3) * Fraction(999, 1000) < both.epsilon <= Fraction(1, 3)
    assert both.costs[other].epsilon == epsilon_of(  # type: ignore[index]
        rho * ratio**2, Fraction(1, 1000)
    )
    assert HalfTheNoise().guarantee(Setting.of(problem, Fraction(1, 3))).epsilon == Fraction(2, 3)


def test_delta_is_used_where_it_helps_and_nowhere_else() -> None:
    few = Setting.of(Problem.create(10, 1), 1, Fraction(1, 10**6))
    many = Setting.of(Problem.create(100, 30), 1, Fraction(1, 10**6))
    assert Peeling().rounds(few).measure == "pure"
    assert Peeling().guarantee(few).delta == 0
    assert Peeling().rounds(many).measure == "zcdp"
    pure = Peeling().rounds(Setting.of(many.problem, 1))
    assert Peeling().rounds(many).pick_scale(30, 1) < pure.pick_scale(30, 1)


def test_a_seed_is_refused_and_a_table_taken() -> None:
    x, y = np.zeros((4, 3)), np.zeros(4)
    stated = {"y": y, "bounds": Bounds(x=1, y=1), "k": 1, "epsilon": 1, "mechanism": "peeling"}
    with pytest.raises(ArgumentError, match="no seeds"):
        simulate(x, seed=1, **stated)
    assert sum(simulate(x, draws=5, **stated).values()) == 5
