"""Exact audit: no pair of neighbours contradicts epsilon, and broken twins are caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.audit.exact import (
    Pair,
    audit_exact,
    moments_of_records,
    random_pairs,
    worst_case_pairs,
)
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN, Mechanism, ScoreMechanism, Setting
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.enumerate import ScoredSupports
from support.recipes import CONSTRAINTS
from support.samples import one_in

NEIGHBOURS = ("add-remove", "replace-one")
# (p, k, reach, ridge, epsilon): reaches on both sides of 1, where the range changes its form.
SHAPES = [
    (4, 1, 0.5, 0.0, Fraction(1)),
    (6, 2, 1.0, 0.0, Fraction(1, 2)),
    (6, 2, 1.6, 3.0, Fraction(4)),
    (7, 3, 1.0, 0.25, Fraction(2)),
]
PAIRS = 192  # of the random kinds; eight contrary ones come with them


def states(neighbours: str, constraint: str) -> list[tuple[Problem, Fraction]]:
    return [
        (
            Problem.create(
                p,
                k,
                constraint=constraint,
                prediction_bound=prediction_bound,
                ridge=ridge,
                neighbours=neighbours,
            ),
            epsilon,
        )
        for p, k, prediction_bound, ridge, epsilon in SHAPES
    ]


@one_in(4)
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_pair_contradicts_epsilon(
    name: str, constraint: str, neighbours: str, every: int
) -> None:
    # For each mechanism: 2 relations x 3 sets x 4 shapes x 200 pairs = 4800 pairs.
    rng = np.random.default_rng([len(name), len(constraint), len(neighbours)])
    for problem, epsilon in states(neighbours, constraint):
        pairs = [*random_pairs(problem, PAIRS // every, rng), *worst_case_pairs(problem)]
        audit = audit_exact(PLAIN[name](), problem, epsilon, pairs)
        assert audit.pairs == PAIRS // every + 8
        assert audit.passed, (audit.worst, audit.pair and audit.pair.label)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_contrary_pairs_come_close_to_epsilon(name: str, constraint: str, neighbours: str) -> None:
    # Without this the audit could pass by being blind; it is also what catches the twins below.
    for problem, epsilon in states(neighbours, constraint):
        audit = audit_exact(PLAIN[name](), problem, epsilon, worst_case_pairs(problem))
        free_of_ridge = replace(problem, ridge=0.0)
        near = audit_exact(PLAIN[name](), free_of_ridge, epsilon, worst_case_pairs(problem))
        assert 0.99 * float(epsilon) < near.worst <= float(epsilon)
        assert audit.worst > 0.98 * float(epsilon)


def doubled(cls: type[ScoreMechanism]) -> Mechanism:
    class Doubled(cls):  # type: ignore[misc, valid-type]
        def eta(self, setting: Setting) -> Fraction:
            return 2 * super().eta(setting)

    return Doubled()


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_broken_twins_are_caught(name: str, constraint: str, neighbours: str) -> None:
    for problem, epsilon in states(neighbours, constraint):
        twice = audit_exact(doubled(PLAIN[name]), problem, epsilon, worst_case_pairs(problem))
        assert not twice.passed
        assert twice.worst > 1.9 * float(epsilon)
        right = Sensitivity.of(problem)
        halved = replace(right, range=right.range / 2)
        half = audit_exact(
            PLAIN[name](), problem, epsilon, worst_case_pairs(problem), sensitivity=halved
        )
        assert not half.passed
        # The certified error of the scores is no part of what was halved.
        assert half.worst > 1.9 * float(epsilon)
        # A range that is 10 % too small is caught as well where no ridge dulls the pair.
        if problem.ridge == 0:
            slightly = replace(right, range=right.range * Fraction(9, 10))
            assert not audit_exact(
                PLAIN[name](), problem, epsilon, worst_case_pairs(problem), sensitivity=slightly
            ).passed


def test_a_mechanism_that_overrides_its_distribution_is_audited_by_it() -> None:
    class AlwaysTheBest(PLAIN["exponential"]):  # type: ignore[misc, name-defined]
        def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> np.ndarray:
            best = scored.differences == 0
            weights = np.where(best, 1 - 1e-6, 1e-6)
            return np.log(weights / weights.sum())

    problem = Problem.create(4, 1, prediction_bound=0.5, neighbours="add-remove")
    assert not audit_exact(AlwaysTheBest(), problem, Fraction(1), worst_case_pairs(problem)).passed


def test_it_names_the_worst_pair_and_support() -> None:
    # Column 0 explains y, column 1 nothing: taking away the only record that says so costs most.
    problem = Problem.create(2, 1, prediction_bound=1.0, neighbours="add-remove")
    dull = Pair.of_records([[0, 0, STEPS]], [[0, 0, STEPS], [0, 0, STEPS]], "dull")
    telling = Pair.of_records([[0, 0, STEPS]], [[0, 0, STEPS], [STEPS, 0, STEPS]], "telling")
    audit = audit_exact(PLAIN["exponential"](), problem, Fraction(4), [dull, telling, dull])
    assert audit.pairs == 3
    assert audit.pair is telling
    # The score of {0} falls by 1 relative to {1}, eta is 4/4: log odds 1, so P({1}) falls from
    # 1/2 to 1/(1 + e).
    assert audit.outcome == (1,)
    assert audit.worst == pytest.approx(np.log((1 + np.e) / 2), abs=1e-4)
    assert audit.passed
    assert audit_exact(PLAIN["exponential"](), problem, Fraction(4), []).pair is None


@pytest.mark.parametrize("name", PLAIN)
def test_log_probabilities_do_not_underflow(name: str) -> None:
    scored = ScoredSupports(np.arange(3).reshape(-1, 1), np.array([0, 1000, 3000]), Fraction(1))
    logs = PLAIN[name]().log_probabilities(scored, Fraction(1))
    # The best support wins nearly always; each other gives up what its score is worth, and
    # permute-and-flip half as much again: it is visited first half of the time.
    first_visited = {"exponential": 1.0, "permute-and-flip": 0.5}[name]
    expected = np.array([0.0, -1000 + np.log(first_visited), -3000 + np.log(first_visited)])
    np.testing.assert_allclose(logs, expected, atol=1e-9)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_generated_pairs_are_neighbours(neighbours: str) -> None:
    problem = Problem.create(5, 2, neighbours=neighbours)
    rng = np.random.default_rng(5)
    kinds = set()
    for pair in [*random_pairs(problem, 50, rng), *worst_case_pairs(problem)]:
        kinds.add(pair.label)
        difference = pair.second.products - pair.first.products
        eigenvalues = np.linalg.eigvalsh(difference / float(STEPS) ** 2)
        assert np.abs(eigenvalues[1:-1]).max() < 1e-9  # what is left has one of each sign
        if neighbours == "add-remove":
            assert pair.second.n == pair.first.n + 1
            assert eigenvalues[0] > -1e-9
        else:
            assert pair.second.n == pair.first.n
        # A record's entries are at most 1 in size.
        assert np.abs(difference).max() <= 2 * STEPS**2
    assert {"random", "corners", "ties", "heavy", "few"} < kinds


def test_copies_stand_for_repeated_records() -> None:
    records = np.array([[1, 2, 3], [4, 5, 6]])
    repeated = np.repeat(records, [3, 2], axis=0)
    weighted = moments_of_records(records, [3, 2])
    assert weighted == moments_of_records(repeated)
    assert weighted.n == 5
