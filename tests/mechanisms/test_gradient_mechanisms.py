"""Hard thresholding and Frank-Wolfe: integers against floats, sensitivities, audits, twins."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import ArgumentError
from dpsubset.audit.exact import Pair, audit_exact, moments_of_records, random_pairs
from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Data, Mechanism, Setting, mechanism
from dpsubset.mechanisms.published.frank_wolfe import FrankWolfe, after_step, largest_choices
from dpsubset.mechanisms.published.hard_thresholding import HardThresholding
from dpsubset.mechanisms.published.peeling import Peeling
from dpsubset.mechanisms.shared.gradient import Gradient, divided_change, divisor_for, record_change
from dpsubset.mechanisms.shared.rounds import Rounds
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from support.recipes import CONSTRAINTS

NEIGHBOURS = ("add-remove", "replace-one")
RNG = Randomness(SystemSource())  # their noise comes from elsewhere
HUGE = Fraction(10**6)


def contrary(
    problem: Problem, some: tuple[int, ...] = (10, 200), copies: tuple[int, ...] = (50, 1000)
) -> Iterator[Pair]:
    """The last k variables explain less than the others; one record sets them further apart.

    It does so at b = 0, and at every b that is positive on these variables: there its own
    prediction lies as far from its y as can be.
    """
    last = np.arange(problem.p) >= problem.p - problem.k
    apart = np.append(np.where(last, STEPS, -STEPS), -STEPS)
    mirror = np.append(-apart[:-1], -STEPS)
    rest = np.array([np.full(problem.p + 1, STEPS), np.append(np.where(last, 0, STEPS), STEPS)])
    for few in some:
        for many in copies:
            base = moments_of_records(rest, [few, many])
            with_it, other = (base + moments_of_records([r]) for r in (apart, mirror))
            first = base if problem.neighbours == "add-remove" else other
            yield Pair(first, with_it, f"contrary, {few} and {many} copies")


def made_up(p: int, k: int, n: int, seed: int) -> Moments:
    """Quantized records, y following k columns."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, p))
    b = np.zeros(p)
    b[rng.choice(p, k, replace=False)] = rng.uniform(0.3, 1, size=k) * rng.choice([-1, 1], size=k)
    y = np.clip((x @ b + rng.uniform(-0.3, 0.3, size=n)) / 2, -1, 1)
    return moments_of_records(np.rint(np.column_stack([x, y]) * STEPS).astype(np.int64))


def data_of(moments: Moments) -> Data:
    return Data(GramData.from_moments(moments))


def floats(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    scaled = moments.products / float(STEPS) ** 2
    return scaled[:-1, :-1], scaled[:-1, -1]


# The gradient in whole numbers


@given(
    seed=st.integers(0, 1000),
    copies=st.sampled_from([1, 2**28]),
    weights=st.dictionaries(st.integers(0, 4), st.integers(-(2**15), 2**15), max_size=3),
    parts=st.integers(1, 2**15),
    radius=st.floats(1e-6, 1e6),
    ridge=st.floats(0, 10),
)
def test_the_gradient_is_the_gradient(
    seed: int, copies: int, weights: dict[int, int], parts: int, radius: float, ridge: float
) -> None:
    """Against floats, on either side of int64."""
    records = np.random.default_rng(seed).integers(-STEPS, STEPS + 1, size=(3, 6))
    moments = moments_of_records(records, copies)
    exact = Fraction(radius)
    found = Gradient(GramData.from_moments(moments), exact, ridge).at(weights, parts)
    unit = STEPS**2 * parts * exact.denominator
    h, c = floats(moments)
    b = np.zeros(5)
    for column, weight in weights.items():
        b[column] = radius * weight / parts
    wanted = c - h @ b - ridge * b
    size = np.abs(c) + np.abs(h) @ np.abs(b) + ridge * np.abs(b)
    got = np.array([float(Fraction(entry, unit)) for entry in found])
    assert np.all(np.abs(got - wanted) <= 1e-12 * size + 1e-9 * radius / parts)


def test_the_gradient_from_records_is_the_same() -> None:
    records = np.random.default_rng(0).integers(-STEPS, STEPS + 1, size=(30, 6))
    weights, radius = {1: 3, 4: -7}, Fraction(1, 3)
    cells = np.asarray(records.T, dtype=np.int16, order="C")
    whole, asked = GramData.from_moments(moments_of_records(records)), GramData.of_cells(cells, "")
    assert Gradient(whole, radius, 1.0).at(weights, 9) == Gradient(asked, radius, 1.0).at(
        weights, 9
    )
    assert Gradient(asked, radius, 1.0).at({}, 2) == [2 * 3 * c for c in whole.c.tolist()]


@given(st.integers(-(10**30), 10**30), st.integers(0, 10**25), st.integers(1, 10**25))
def test_coarse_scores_move_by_no_more_than_is_said(a: int, d: int, moved: int) -> None:
    d = min(d, moved)
    unit = divisor_for(moved)
    assert abs((a + d) // unit - a // unit) <= divided_change(moved)
    # What rounding adds is worth less than a millionth.
    assert divided_change(moved) * unit <= moved * (1 + Fraction(1, 10**6))


def gradient_moves(
    problem: Problem, weights: dict[int, int], parts: int, radius: Fraction
) -> float:
    """The largest move of an entry among many pairs, as a share of the bound."""
    rng = np.random.default_rng(7)
    x = np.full(problem.p, -STEPS)
    for column, weight in weights.items():
        x[column] = STEPS * np.sign(weight)
    extreme = np.append(x, -STEPS)
    empty = moments_of_records(np.zeros((0, problem.p + 1), dtype=np.int64))
    pairs = [
        *random_pairs(problem, 100, rng),
        Pair(empty, moments_of_records([extreme]), "extreme"),
    ]
    if problem.neighbours == "replace-one":
        # Columns that have no part in the prediction are free to turn the sign.
        turned = np.array([v if j in weights else -v for j, v in enumerate(x)])
        one, other = moments_of_records([extreme]), moments_of_records([np.append(turned, -STEPS)])
        pairs[-1] = Pair(one, other, "extreme")
    times = 2 if problem.neighbours == "replace-one" else 1
    bound = times * record_change(problem.layout, radius, weights, parts)
    moves = []
    for pair in pairs:
        one, two = (
            Gradient(GramData.from_moments(m), radius, 0.5).at(weights, parts)
            for m in (pair.first, pair.second)
        )
        moves.append(max(abs(a - b) for a, b in zip(one, two, strict=True)))
        assert moves[-1] <= bound, pair.label
    return max(moves) / bound


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("weights", [{}, {0: 5}, {1: -3, 4: 6}], ids=str)
def test_no_record_moves_the_gradient_by_more_and_some_by_as_much(
    neighbours: str, weights: dict[int, int]
) -> None:
    problem = Problem.create(6, 2, neighbours=neighbours, intercept=False)
    share = gradient_moves(problem, weights, 10, Fraction(0.7))
    assert 0.999 < share <= 1


# Frank-Wolfe


def plain_frank_wolfe(
    h: np.ndarray, c: np.ndarray, radius: float, steps: int, ridge: float
) -> np.ndarray:
    b = np.zeros(len(c))
    for t in range(1, steps + 1):
        gradient = h @ b - c + ridge * b
        j = int(np.argmax(np.abs(gradient)))
        vertex = np.zeros(len(c))
        vertex[j] = -radius * np.sign(gradient[j])
        b += 2 / (t + 1) * (vertex - b)
    return b


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_frank_wolfe_without_noise_to_speak_of_is_frank_wolfe(
    neighbours: str, constraint: str
) -> None:
    for seed in range(4):
        moments = made_up(8, 3, 20_000, seed)
        problem = Problem.create(
            8,
            3,
            neighbours=neighbours,
            constraint=constraint,
            prediction_bound=0.8,
            ridge=100.0 * seed,
            intercept=False,
        )
        h, c = floats(moments)
        b = plain_frank_wolfe(h, c, float(problem.prediction_bound), 9, problem.ridge)
        order = sorted(range(8), key=lambda j: (-round(abs(b[j]), 9), j))
        delta = Fraction(1, 100) if seed % 2 else Fraction(0)
        sampler = FrankWolfe(9).prepare(data_of(moments), Setting.of(problem, HUGE, delta))
        assert sampler.draw(RNG) == tuple(sorted(order[:3]))


@given(st.lists(st.integers(0, 7), min_size=1, max_size=12))
def test_weights_are_those_of_frank_wolfe_steps(vertices: list[int]) -> None:
    weights: dict[int, int] = {}
    b = np.zeros(4)
    for t, vertex in enumerate(vertices):
        weights = after_step(weights, vertex, t, 4)
        corner = np.zeros(4)
        corner[vertex % 4] = 1 if vertex < 4 else -1
        b += 2 / (t + 2) * (corner - b)
    parts = len(vertices) * (len(vertices) + 1) / 2
    np.testing.assert_allclose([weights.get(j, 0) / parts for j in range(4)], b, atol=1e-12)
    assert 0 not in weights.values()


def test_fill_ins_are_the_first_columns_and_ties_go_to_them() -> None:
    setting = Setting.of(Problem.create(6, 3, intercept=False), 1)
    assert largest_choices({}, setting) == (0, 1, 2)
    assert largest_choices({4: -2}, setting) == (0, 1, 4)
    assert largest_choices({2: 1, 3: -1, 4: 5, 5: 1}, setting) == (2, 3, 4)
    kept = Setting.of(Problem.create(6, 3, always_include=[5], intercept=False), 1)
    assert largest_choices({2: 1, 3: -1, 4: 5}, kept) == (2, 4, 5)
    assert largest_choices({}, kept) == (0, 1, 5)


# (p, k, steps, reach, epsilon, delta); least share of epsilon that the audit must come to
WALKS = [
    (4, 1, 1, 0.5, Fraction(1), Fraction(0), 0.999),
    (4, 2, 2, 0.05, Fraction(1), Fraction(0), 0.97),
    (3, 2, 2, 0.5, Fraction(4), Fraction(0), 0.83),
    (4, 2, 3, 0.5, Fraction(1, 2), Fraction(1, 100), 0.6),
]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(
    ("p", "k", "steps", "prediction_bound", "epsilon", "delta", "least"), WALKS
)
def test_frank_wolfe_keeps_its_promise_and_comes_close(
    neighbours: str, p: int, k: int, steps: int, prediction_bound: float,
    epsilon: Fraction, delta: Fraction, least: float,
) -> None:  # fmt: skip
    problem = Problem.create(
        p,
        k,
        prediction_bound=prediction_bound,
        constraint="l1",
        neighbours=neighbours,
        intercept=False,
    )
    pairs = [*contrary(problem), *random_pairs(problem, 5, np.random.default_rng(p))]
    audit = audit_exact(FrankWolfe(steps), problem, epsilon, pairs, delta=delta)
    assert audit.passed
    assert audit.worst > least * float(epsilon)


def louder(right: Rounds) -> Rounds:
    """Half the noise."""
    factor = 2 if right.measure == "pure" else 4
    return replace(right, picks=factor * right.picks, values=factor * right.values)


class HalfTheNoiseWalk(FrankWolfe):
    def rounds(self, setting: Setting) -> Rounds:
        return louder(super().rounds(setting))


class OneRecordWalk(FrankWolfe):
    """Noise for add-remove under either relation."""

    def sensitivity(self, setting: Setting, weights: dict[int, int], taken: int) -> int:
        added = replace(setting, problem=replace(setting.problem, neighbours="add-remove"))
        return super().sensitivity(added, weights, taken)


class BlindWalk(FrankWolfe):
    """Takes the change at b = 0 for the change everywhere: no record predicts anything."""

    def sensitivity(self, setting: Setting, weights: dict[int, int], taken: int) -> int:
        layout, prediction_bound = setting.problem.layout, setting.problem.prediction_bound
        moved = record_change(layout, prediction_bound, weights, max(1, taken * (taken + 1) // 2))
        parts = record_change(layout, prediction_bound, {}, max(1, taken * (taken + 1) // 2))
        return super().sensitivity(setting, weights, taken) * parts // moved


@pytest.mark.parametrize(
    ("twin", "neighbours", "prediction_bound", "least"),
    [
        (HalfTheNoiseWalk, "add-remove", 0.5, 1.99),
        (HalfTheNoiseWalk, "replace-one", 0.05, 1.9),
        (OneRecordWalk, "replace-one", 0.05, 1.9),
        (BlindWalk, "add-remove", 0.5, 1.24),
    ],
)
def test_twins_of_frank_wolfe_are_caught(
    twin: type[FrankWolfe], neighbours: str, prediction_bound: float, least: float
) -> None:
    problem = Problem.create(
        4,
        2,
        prediction_bound=prediction_bound,
        constraint="l1",
        neighbours=neighbours,
        intercept=False,
    )
    audit = audit_exact(twin(2), problem, Fraction(1), contrary(problem))
    assert not audit.passed
    assert audit.worst > least


# Hard thresholding


def plain_hard_thresholding(
    h: np.ndarray, c: np.ndarray, problem: Problem, rounds: int, step: float, rows: int
) -> tuple[int, ...]:
    b = np.zeros(len(c))
    support: list[int] = []
    for _ in range(rounds):
        u = b - step / rows * (h @ b - c + problem.ridge * b)
        always = list(problem.always_include)
        free = [j for j in np.argsort(-np.abs(u)).tolist() if j not in always]
        support = [*always, *free[: problem.k - len(always)]]
        b = np.zeros(len(c))
        b[support] = np.clip(u[support], -problem.radius, problem.radius)
        size = {"box": 0.0, "ball": np.linalg.norm(b), "l1": np.abs(b).sum()}[problem.constraint]
        if size > problem.radius:
            b *= problem.radius / size
    return tuple(sorted(support))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_hard_thresholding_without_noise_to_speak_of_is_hard_thresholding(
    neighbours: str, constraint: str
) -> None:
    for seed in range(4):
        moments = made_up(8, 3, 20_000, seed)
        problem = Problem.create(
            8,
            3,
            neighbours=neighbours,
            constraint=constraint,
            prediction_bound=0.8,
            ridge=100.0 * seed,
            always_include=[seed] if seed > 1 else [],
            intercept=False,
        )
        rows = 15_000 if seed == 1 or neighbours == "add-remove" else None
        chosen = HardThresholding(5, step=1.5, rows=rows)
        wanted = plain_hard_thresholding(*floats(moments), problem, 5, 1.5, rows or 20_000)
        delta = Fraction(1, 100) if seed % 2 else Fraction(0)
        setting = replace(Setting.of(problem, HUGE, delta), n=None if rows else moments.n)
        assert chosen.prepare(data_of(moments), setting).draw(RNG) == wanted


class Coarse(HardThresholding):
    """On a grid so coarse that its runs can be listed."""

    GRID = 2


class Told(Coarse):
    """Tells all that its guarantee covers: the supports and coefficients of all rounds."""

    def outcomes(self, data: Data, setting: Setting) -> Any:
        runs = self.transcripts(data, setting)
        assert runs is not None
        listed = sorted(runs)
        return listed, np.array([runs[run] for run in listed])


# (p, k, rounds, epsilon)
RUNS = [(4, 1, 2, Fraction(1)), (3, 2, 2, Fraction(4))]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize(("p", "k", "rounds", "epsilon"), RUNS)
def test_hard_thresholding_keeps_its_promise_in_all_it_tells(
    neighbours: str, constraint: str, p: int, k: int, rounds: int, epsilon: Fraction
) -> None:
    problem = Problem.create(
        p,
        k,
        prediction_bound=0.5,
        constraint=constraint,
        neighbours=neighbours,
        intercept=False,
    )
    # With more than a few grid points a run takes long to list.
    random = random_pairs(problem, 5 if k == 1 else 2, np.random.default_rng(p))
    pairs = [*contrary(problem, (10,), (50, 1000) if k == 1 else (1000,)), *random]
    audit = audit_exact(Told(rounds, step=1, rows=100), problem, epsilon, pairs)
    assert audit.passed
    # One record cannot turn its prediction against both its y and a neighbour's, and the ball has
    # no corners.
    least = 0.68 if (constraint, k) == ("ball", 2) else 0.91
    if neighbours == "add-remove" and least > 0.9:
        least = 0.999999
    assert audit.worst > least * float(epsilon)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_support_alone_tells_less(neighbours: str) -> None:
    problem = Problem.create(3, 1, prediction_bound=0.5, neighbours=neighbours, intercept=False)
    told = audit_exact(Told(2, rows=100), problem, Fraction(1), contrary(problem))
    released = audit_exact(Coarse(2, rows=100), problem, Fraction(1), contrary(problem))
    assert 0 < released.worst < told.worst <= 1


class HalfTheNoise(Told):
    def rounds(self, setting: Setting) -> Rounds:
        return louder(super().rounds(setting))


class FreeValues(Told):
    """Charges the picks and not the values, which have the noise of a single value."""

    def rounds(self, setting: Setting) -> Rounds:
        right = super().rounds(setting)
        return replace(right, values=right.total)


class OneRecord(Told):
    def sensitivity(self, setting: Setting, b: dict[int, int]) -> int:
        added = replace(setting, problem=replace(setting.problem, neighbours="add-remove"))
        return super().sensitivity(added, b)


@pytest.mark.parametrize(
    ("twin", "neighbours", "least"),
    [
        (HalfTheNoise, "add-remove", 1.999),
        (HalfTheNoise, "replace-one", 1.8),
        (FreeValues, "add-remove", 1.4),
        (OneRecord, "replace-one", 1.8),
    ],
)
def test_twins_of_hard_thresholding_are_caught(
    twin: type[HardThresholding], neighbours: str, least: float
) -> None:
    problem = Problem.create(4, 1, prediction_bound=0.5, neighbours=neighbours, intercept=False)
    audit = audit_exact(twin(2, step=1, rows=100), problem, Fraction(1), contrary(problem))
    assert not audit.passed
    assert audit.worst > least


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100)])
def test_a_single_round_is_peeling(neighbours: str, delta: Fraction) -> None:
    problem = Problem.create(6, 3, neighbours=neighbours, always_include=[2], intercept=False)
    data, setting = data_of(made_up(6, 2, 40, 1)), Setting.of(problem, Fraction(1, 2), delta)
    supports, logs = HardThresholding(1, rows=40).outcomes(data, setting)
    wanted, expected = Peeling().outcomes(data, setting)
    assert supports == wanted
    np.testing.assert_allclose(logs, expected, atol=1e-6)
    assert HardThresholding(3, rows=40).outcomes(data, setting) is None


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@given(values=st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=3))
def test_coefficients_are_shrunk_into_their_set(constraint: str, values: list[int]) -> None:
    problem = Problem.create(9, 3, constraint=constraint, intercept=False)
    chosen = HardThresholding()
    grid = chosen.GRID
    b = chosen.shrunk(problem, dict(zip((1, 4, 8), values, strict=True)))
    size = {"box": max, "ball": lambda v: math.hypot(*v), "l1": sum}[constraint]
    assert size([abs(v) for v in b.values()] or [0]) <= grid * (1 + 1e-12)  # type: ignore[operator]
    # Inside they stay as they are, and the reach holds whatever they were.
    assert chosen.shrunk(problem, b) == b
    prediction_bound = Fraction(problem.radius) * sum(abs(v) for v in b.values()) / grid
    assert prediction_bound <= problem.prediction_bound


# Both


def told_by_the_loudest(chosen: FrankWolfe | HardThresholding) -> Mechanism:
    """A twin that takes the largest |y| of the table for the bound of y."""

    class Loudest(type(chosen)):  # type: ignore[misc]
        needs_records = True

        def outcomes(self, data: Data, setting: Setting) -> Any:
            loudest = int(np.abs(data.gram.response.astype(np.int64)).max())

            class Fitted(type(chosen)):  # type: ignore[misc]
                def sensitivity(self, *given: Any) -> int:
                    return int(max(1, super().sensitivity(*given) * loudest // STEPS))

            return Fitted(**chosen.options()).outcomes(data, setting)

    return Loudest(**chosen.options())


@pytest.mark.parametrize("chosen", [FrankWolfe(2), Told(2, rows=40)], ids=repr)
def test_a_bound_taken_from_the_data_is_caught(chosen: FrankWolfe | HardThresholding) -> None:
    problem = Problem.create(4, 1, prediction_bound=0.5, neighbours="add-remove", intercept=False)
    dull = np.array([[STEPS, STEPS, STEPS, STEPS // 2, STEPS // 100]] * 40)
    loud = np.array([[-STEPS, -STEPS, -STEPS, STEPS, STEPS]])
    pair = Pair.of_records(dull, np.vstack([dull, loud]), "one loud y")
    assert audit_exact(chosen, problem, Fraction(1), [pair]).passed
    wrong = audit_exact(told_by_the_loudest(chosen), problem, Fraction(1), [pair])
    assert not wrong.passed
    assert wrong.worst > 2


@pytest.mark.parametrize("chosen", [FrankWolfe(), HardThresholding(rows=50)], ids=repr)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_guarantees_are_computed_back(chosen: Mechanism, neighbours: str) -> None:
    problem = Problem.create(10, 4, neighbours=neighbours, intercept=False)
    pure = chosen.guarantee(Setting.of(problem, Fraction(1, 3)))
    assert (pure.epsilon, pure.delta) == (Fraction(1, 3), 0)
    assert pure.epsilon_if_replace_one == 2 * pure.epsilon_if_add_remove
    both = chosen.guarantee(Setting.of(problem, Fraction(1, 3), Fraction(1, 1000)))
    assert both.delta == Fraction(1, 1000)
    assert Fraction(1, 3) * Fraction(999, 1000) < both.epsilon <= Fraction(1, 3)


@pytest.mark.parametrize("chosen", [FrankWolfe(6), HardThresholding(4, rows=9)], ids=repr)
@pytest.mark.parametrize("kind", ["empty", "extreme", "many"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100)])
def test_no_table_makes_them_fail(chosen: Mechanism, kind: str, delta: Fraction) -> None:
    records = np.full((2, 6), STEPS)
    copies = {"empty": 0, "extreme": 1, "many": 2**31}[kind]
    data = data_of(moments_of_records(records, copies))
    for constraint, radius in (("l1", 1e9), ("box", 1e-9), ("ball", 1.0)):
        for epsilon in (Fraction(1, 10**6), HUGE):
            problem = Problem.create(
                5,
                2,
                constraint=constraint,
                radius=radius,
                ridge=1e15,
                neighbours="add-remove",
                intercept=False,
            )
            sampler = chosen.prepare(data, Setting.of(problem, epsilon, delta))
            drawn = sampler.draw(RNG)
            assert drawn is not None
            assert len(drawn) == 2


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("frank-wolfe", {"iterations": 0}, "iterations"),
        ("frank-wolfe", {"iterations": 2.5}, "whole"),
        ("hard-thresholding", {"iterations": 0}, "iterations"),
        ("hard-thresholding", {"iterations": 1001}, "iterations"),
        ("hard-thresholding", {"step": 0}, "step"),
        ("hard-thresholding", {"step": float("nan")}, "step"),
        ("hard-thresholding", {"step": "big"}, "step"),
        ("hard-thresholding", {"share": 1}, "share"),
        ("hard-thresholding", {"share": 0}, "share"),
        ("hard-thresholding", {"rows": 0}, "rows"),
        ("hard-thresholding", {"rows": True}, "rows"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        mechanism(name, options)


def test_the_number_of_rows_must_be_guessed_where_it_is_private() -> None:
    private = Setting.of(Problem.create(5, 2, neighbours="add-remove", intercept=False), 1)
    with pytest.raises(ArgumentError, match="public estimate"):
        HardThresholding().check(private)
    HardThresholding(rows=100).check(private)
    HardThresholding().check(Setting.of(Problem.create(5, 2, intercept=False), 1))


@pytest.mark.parametrize("name", ["peeling", "hard-thresholding", "frank-wolfe"])
def test_other_losses_are_refused(name: str) -> None:
    other = replace(Problem.create(5, 2, intercept=False), loss="hinge")
    setting = Setting.of(Problem.create(5, 2, intercept=False), 1)
    with pytest.raises(ArgumentError, match="least squares"):
        mechanism(name).check(replace(setting, problem=other))


@pytest.mark.parametrize("name", ["peeling", "hard-thresholding", "frank-wolfe"])
def test_statements_say_what_a_row_moves(name: str) -> None:
    for delta in (0, Fraction(1, 10)):
        setting = Setting.of(
            Problem.create(40, 9, prediction_bound=2, intercept=False), Fraction(1, 2), delta
        )
        said = " ".join(mechanism(name).details(setting))
        assert re.search(
            r"A row that is added or removed changes .* by at most \S+, a row that is", said
        )
        assert ("zero-concentrated" in said) == bool(delta)
