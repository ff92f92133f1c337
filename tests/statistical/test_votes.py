"""Draws of the mechanisms that vote against their closed forms, with power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Data, Setting
from dpsubset.mechanisms.published.sample_aggregate import SampleAggregate
from dpsubset.mechanisms.published.stability import Stability
from dpsubset.mechanisms.shared.lasso_votes import LassoVotes, Vote
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SystemSource
from support.gtest import LEVEL, g_test, miss

pytestmark = pytest.mark.statistical

DRAWS = 8_000

#: Votes of blocks, (p, k), epsilon, delta: one delta of 0 for each that only counts variables.
TABLES: list[tuple[list[Vote], tuple[int, int], Fraction, Fraction]] = [
    ([(0, 1)] * 9 + [(0, 2)] * 5 + [(3,)] * 4 + [()], (5, 2), Fraction(2), Fraction(0)),
    ([(0, 1, 2)] * 8 + [(1, 4, 5)] * 6, (6, 3), Fraction(5), Fraction(0)),
    ([(3,)] * 6 + [(1,)] * 3, (8, 1), Fraction(1), Fraction(0)),
    ([(1,)] * 9 + [(0,)] * 2, (3, 1), Fraction(1), Fraction(1, 10)),
    ([(0, 2)] * 4 + [(1, 2)] * 4 + [(1,)] * 3, (3, 2), Fraction(1, 2), Fraction(1, 3)),
]


def scaled(mechanism: LassoVotes, factor: Fraction) -> LassoVotes:
    """The closed form with another scale of the noise, the threshold as it is."""

    class Wrong(type(mechanism)):  # type: ignore[misc]
        def scale(self, setting: Setting) -> Fraction:
            return factor * super().scale(setting)

        def threshold(self, setting: Setting) -> int:
            return mechanism.threshold(setting)  # type: ignore[attr-defined, no-any-return]

    return Wrong(blocks=mechanism.blocks)


@pytest.mark.parametrize(("votes", "shape", "epsilon", "delta"), TABLES)
def test_the_choice_from_given_votes(
    votes: Sequence[Vote], shape: tuple[int, int], epsilon: Fraction, delta: Fraction
) -> None:
    mechanism = Stability() if delta else SampleAggregate(blocks=1)
    setting = Setting.of(Problem.create(*shape, intercept=False), epsilon, delta)
    outcomes = mechanism.listed(setting)
    right = np.exp(mechanism.log_probabilities(votes, setting))
    assert right.sum() == pytest.approx(1, abs=1e-9)
    counts = Counter(mechanism.choose(votes, setting) for _ in range(DRAWS))
    assert g_test(counts, outcomes, right) >= LEVEL
    for factor in (Fraction(1, 2), Fraction(2)):
        wrong = np.exp(scaled(mechanism, factor).log_probabilities(votes, setting))
        seen = right > 0
        assert miss(right[seen], wrong[seen], DRAWS) < LEVEL
        assert g_test(counts, outcomes, wrong) < LEVEL


def records(n: int, p: int, seed: int) -> np.ndarray:
    """Blocks disagree: heavy and light records, each for a column of its own."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, p))
    y = x[np.arange(n), rng.integers(0, 2, size=n)] * rng.choice([0.05, 1.0], size=n)
    return np.rint(np.column_stack([x, y]) * STEPS).astype(np.int64)


CASES = [
    (SampleAggregate(blocks=3), Problem.create(4, 2, intercept=False), Fraction(6), Fraction(0), 7),
    (SampleAggregate(), Problem.create(5, 1, intercept=False), Fraction(3), Fraction(0), 9),
    (SampleAggregate(blocks=3), Problem.create(5, 3, neighbours="add-remove", always_include=[4],
                                               intercept=False),
     Fraction(5), Fraction(0), 7),
    (Stability(blocks=3), Problem.create(3, 1, intercept=False), Fraction(1), Fraction(1, 3), 7),
    (Stability(blocks=4), Problem.create(4, 2, neighbours="add-remove", always_include=[0],
                                          intercept=False),
     Fraction(1), Fraction(1, 3), 6),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "problem", "epsilon", "delta", "n"), CASES)
def test_draws_agree_with_the_mean_over_all_assignments(
    mechanism: LassoVotes, problem: Problem, epsilon: Fraction, delta: Fraction, n: int
) -> None:
    cells = np.asarray(records(n, problem.p, n + problem.p).T, dtype=np.int16, order="C")
    data = Data(GramData.of_cells(cells, "test"))
    public = n if problem.neighbours == "replace-one" else None
    setting = Setting.of(problem, epsilon, delta, n=public)
    found = mechanism.outcomes(data, setting)
    assert found is not None
    outcomes, right = found[0], np.exp(found[1])
    rng, sampler = Randomness(SystemSource()), mechanism.prepare(data, setting)
    counts = Counter(sampler.draw(rng) for _ in range(DRAWS))
    assert g_test(counts, outcomes, right) >= LEVEL
    # A single assignment in place of all of them shows, and so does twice the noise.
    single = np.exp(mechanism.outcomes_given(data, setting, [0] * n)[1])
    twice = scaled(mechanism, Fraction(2)).outcomes(data, setting)
    assert twice is not None
    for wrong in (single, np.exp(twice[1])):
        never = right[wrong == 0].sum()
        if never > 0:  # one draw of what cannot be, and it is rejected
            assert never > 0.01
            assert any(counts[o] for o, chance in zip(outcomes, wrong, strict=True) if not chance)
        else:
            seen = right > 0
            assert miss(right[seen], wrong[seen], DRAWS) < LEVEL
            assert g_test(counts, outcomes, wrong) < LEVEL
