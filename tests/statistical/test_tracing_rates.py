"""Tracing: Cai, Wang and Zhang's adversaries see through exact estimates, not through private ones.

The private estimators are pure at epsilon = 1/2, replace-one. Intervals are Clopper and Pearson's,
each side wrong once in 10^9 runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.audit.exact import moments_of_records
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import MECHANISMS, Data, Setting
from dpsubset.objective.problem import Problem
from dpsubset.papers.tracing import (
    Estimator,
    Floats,
    MeanAdversary,
    Rates,
    RegressionAdversary,
    SparseMeanAdversary,
    SparseRegressionAdversary,
    Table,
    trace,
)
from dpsubset.privacy.noise import discrete_laplace, noisy_top
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.best import best_supports

pytestmark = pytest.mark.statistical

EPSILON = Fraction(1, 2)
SYSTEM = Randomness(SystemSource())


def mean(table: Table) -> Floats:
    return np.asarray(table.x.mean(axis=0))


def noisy_mean(table: Table) -> Floats:
    """Sums of signs: replacing a record moves each of the d by at most 2."""
    n, d = table.x.shape
    sums = discrete_laplace(table.x.sum(axis=0).astype(int).tolist(), 2 * d / EPSILON)
    return np.array(sums, dtype=np.float64) / n


def noisy_selection(s: int) -> Estimator:
    def select(table: Table) -> Sequence[int]:
        sums = table.x.sum(axis=0).astype(int).tolist()
        return noisy_top(sums, s, EPSILON, sensitivity=2)

    return select


def least_squares(table: Table) -> Floats:
    return np.asarray(np.linalg.lstsq(table.x, table.y)[0])


def noisy_least_squares(table: Table) -> Floats:
    """Every record shows one coordinate, so X'X is a histogram: counts and sums with noise.

    A record replaced moves two counts by 1, and two sums by at most the bound of y: half of
    epsilon each, whatever the values are.
    """
    _, d = table.x.shape
    bound = math.sqrt(d) + 1
    shown = np.argmax(np.abs(table.x), axis=1)
    signs = np.sign(table.x[np.arange(len(shown)), shown])
    assert table.y is not None
    steps = np.rint(signs * np.clip(table.y, -bound, bound) / bound * STEPS).astype(int)
    counts = np.bincount(shown, minlength=d)
    sums = np.zeros(d, dtype=int)
    np.add.at(sums, shown, steps)
    about = discrete_laplace(counts.tolist(), 2 / (EPSILON / 2))
    totals = discrete_laplace(sums.tolist(), 2 * STEPS / (EPSILON / 2))
    return np.array(totals) * bound / STEPS / math.sqrt(d) / np.maximum(about, 1)


#: Responses beyond this are cut off by the quantizer; coefficients are at most 1.
LARGEST_Y = 2.5


def quantized(table: Table) -> Data:
    assert table.y is not None
    cells = np.column_stack([table.x, np.clip(table.y / LARGEST_Y, -1, 1)])
    return Data(GramData.from_moments(moments_of_records(np.rint(cells * STEPS))))


def setting(d: int, s: int) -> Setting:
    return Setting.of(Problem.create(d, s, radius=1 / LARGEST_Y, intercept=False), EPSILON)


def best_support(d: int, s: int) -> Estimator:
    public = setting(d, s)
    return lambda table: best_supports(quantized(table).engine(public, math.inf), 1)[0][1]


def private_support(d: int, s: int) -> Estimator:
    public = setting(d, s)

    def select(table: Table) -> Sequence[int]:
        sampler = MECHANISMS["permute-and-flip"]().prepare(quantized(table), public)
        return sampler.draw(SYSTEM) or ()

    return select


#: Adversary, exact estimator, private estimator, trials of either.
CASES = {
    "2.3, mean": (MeanAdversary(5, 50), mean, noisy_mean, (4000, 2000)),
    "3.1, top of the mean": (
        SparseMeanAdversary(2, 160, s=40, concentration=6.0),
        mean,
        noisy_selection(40),
        (4000, 1500),
    ),
    "4.1, best subset": (
        SparseRegressionAdversary(3, 12, s=2),
        best_support(12, 2),
        private_support(12, 2),
        (9000, 8000),
    ),
    "4.3, least squares": (
        RegressionAdversary(3, 3),
        least_squares,
        noisy_least_squares,
        (12_000, 12_000),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_members_show_in_an_exact_estimate_and_not_in_a_private_one(name: str) -> None:
    adversary, exact, private, trials = CASES[name]
    # The same tables every time: without noise nothing is left to chance.
    seen = trace(adversary, exact, trials[0], np.random.default_rng(4)).chosen
    assert seen.separates, seen
    hidden = trace(adversary, private, trials[1], np.random.default_rng()).chosen
    assert not hidden.separates, hidden
    assert not hidden.contradicts(float(EPSILON)), hidden
    # More than six standard deviations from what private estimators show.
    assert advantage(hidden) < advantage(seen) / 2, (hidden, seen)
    print(f"\n{name}\n  exact:   {seen}\n  private: {hidden}")


def advantage(found: Rates) -> float:
    return found.true_positive - found.false_positive


def test_the_paper_s_threshold_convicts_members_only() -> None:
    # Section 2.3 with d so large, and n so small, that Lemma 2.3.1 speaks.
    found = trace(MeanAdversary(5, 4000), mean, 1000, np.random.default_rng(4), delta=0.01).paper
    assert found.true_positive_interval[0] > 0.9
    assert found.false_positive_interval[1] < 0.1


def test_exact_estimates_contradict_a_guarantee() -> None:
    found = trace(MeanAdversary(5, 200), mean, 4000, np.random.default_rng(4)).chosen
    assert found.contradicts(float(EPSILON)), found
