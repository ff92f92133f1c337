"""The audit by draws: bounds are right, sound mechanisms pass, broken ones do not."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpsubset.audit import Event, Pair, audit_empirical, worst_case_pairs
from dpsubset.audit.empirical import lower_bounds, one_sided_bounds
from dpsubset.base.errors import ArgumentError
from dpsubset.mechanisms import PLAIN, Cost, Data, Guarantee, Mechanism, Outcome, Sampler, Setting
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SeededSource

LEVEL = 1e-9
PROBLEM = Problem.create(4, 1, prediction_bound=0.5, neighbours="add-remove")
PAIRS = list(worst_case_pairs(PROBLEM, 100))


@pytest.mark.parametrize("runs", [1, 7, 400])
@pytest.mark.parametrize("level", [0.05, 1e-9])
def test_the_bounds_are_those_of_clopper_and_pearson(runs: int, level: float) -> None:
    hits = np.arange(runs + 1)
    low, high = one_sided_bounds(hits, runs, level)
    assert low[0] == 0
    assert high[-1] == 1
    # At the bound, so many hits or more (or less) have just this probability.
    np.testing.assert_allclose(binom.sf(hits[1:] - 1, runs, low[1:]), level, rtol=1e-6)
    np.testing.assert_allclose(binom.cdf(hits[:-1], runs, high[:-1]), level, rtol=1e-6)


@pytest.mark.parametrize(("p", "q", "delta"), [(0.4, 0.1, 0.0), (0.3, 0.05, 0.1), (0.9, 0.9, 0)])
def test_the_bound_on_epsilon_errs_as_seldom_as_it_says(p: float, q: float, delta: float) -> None:
    # All pairs of counts, with their probabilities: no sampling.
    runs, level = 60, 0.05
    hits = np.arange(runs + 1)
    bounds = np.array(
        [lower_bounds(hits, runs, rare, runs, delta, level) for rare in hits.tolist()]
    )
    truth = math.log((p - delta) / q)
    chance = np.outer(binom.pmf(hits, runs, q), binom.pmf(hits, runs, p))
    assert chance[bounds > truth].sum() <= level
    assert chance[bounds > truth - 2].sum() > 0.5  # and it is not idle


def draws_of(name: str, factor: int = 1) -> Mechanism:
    class Weighed(PLAIN[name]):  # type: ignore[misc, valid-type]
        def eta(self, setting: Setting) -> Fraction:
            return factor * super().eta(setting)

    return Weighed()


@pytest.mark.parametrize("name", PLAIN)
def test_a_sound_mechanism_passes_and_one_with_twice_the_weight_does_not(name: str) -> None:
    sound = audit_empirical(draws_of(name), PROBLEM, Fraction(1), PAIRS, runs=8000)
    assert not sound.contradicted
    assert sound.lower < 1
    assert sound.pair in PAIRS
    assert sound.confidence == 1 - LEVEL
    # Half of the draws are shared among the pairs, the other half go to one of them.
    (likely, one), (rare, two) = sound.hits
    assert one == two == 2000
    assert likely > rare
    assert 6000 < sound.runs <= 8000
    broken = audit_empirical(draws_of(name, 3), PROBLEM, Fraction(1), PAIRS, runs=8000)
    assert broken.contradicted
    assert 1 < broken.lower < 3
    assert broken.lower < broken.estimate


def test_what_is_promised_decides() -> None:
    loose = Cost(Fraction(3))
    audit = audit_empirical(
        draws_of("exponential", 3), PROBLEM, Fraction(1), PAIRS, runs=8000, promised=loose
    )
    assert audit.promised == loose
    assert not audit.contradicted


class Fixed(Mechanism):
    """Releases its outcomes with given probabilities: one table if n is odd, another if not."""

    name = "fixed"

    def __init__(self, odd: dict[Outcome, int], even: dict[Outcome, int]) -> None:
        object.__setattr__(self, "tables", (even, odd))

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        return Guarantee("add-remove", {"add-remove": Cost(setting.epsilon)}, seeded)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        table = self.tables[data.gram.n % 2]  # type: ignore[attr-defined]
        return Urn([outcome for outcome, count in table.items() for _ in range(count)])


class Urn(Sampler):
    def __init__(self, balls: list[Outcome]) -> None:
        self.balls = balls

    def draw(self, rng: Randomness) -> Outcome:
        return self.balls[rng.below(len(self.balls))]


ONE = [Pair.of_records(np.zeros((1, 5)), np.zeros((2, 5)), "one more")]


def test_it_finds_the_event_that_tells() -> None:
    # No single outcome tells much; those with column 2 do, all together.
    pairs_with_2 = {(2, j): 3 for j in (0, 1, 3)}
    few_with_2 = {(2, j): 1 for j in (0, 1, 3)}
    odd = {**pairs_with_2, (0, 1): 1, (0, 3): 1, (1, 3): 1}
    even = {**few_with_2, (0, 1): 3, (0, 3): 3, (1, 3): 3}
    audit = audit_empirical(Fixed(odd, even), PROBLEM, Fraction(1, 2), ONE, runs=8000)
    assert audit.event is not None
    assert audit.event.label.startswith(("column 2 is", "one of"))
    assert audit.contradicted
    assert audit.lower < math.log(3) < audit.lower + 0.5


def test_releasing_nothing_is_an_event() -> None:
    odd: dict[Outcome, int] = {None: 4, (0,): 6}
    even: dict[Outcome, int] = {None: 1, (0,): 9}
    audit = audit_empirical(Fixed(odd, even), PROBLEM, Fraction(1, 2), ONE, runs=8000)
    assert audit.event is not None
    assert audit.event.label == "nothing is released"
    assert audit.swapped is False
    assert audit.contradicted
    mirrored = audit_empirical(Fixed(even, odd), PROBLEM, Fraction(1, 2), ONE, runs=8000)
    assert mirrored.swapped is True
    assert mirrored.contradicted


def test_delta_is_granted() -> None:
    # An outcome that one data set alone can have, with probability 1/10.
    odd: dict[Outcome, int] = {(1,): 1, (0,): 9}
    even: dict[Outcome, int] = {(0,): 1}
    mechanism = Fixed(odd, even)
    assert audit_empirical(mechanism, PROBLEM, Fraction(1), ONE, runs=8000).contradicted
    granted = Cost(Fraction(1), Fraction(1, 10))
    audit = audit_empirical(mechanism, PROBLEM, Fraction(1), ONE, runs=8000, promised=granted)
    assert not audit.contradicted
    skimped = Cost(Fraction(1), Fraction(1, 100))
    audit = audit_empirical(mechanism, PROBLEM, Fraction(1), ONE, runs=8000, promised=skimped)
    assert audit.contradicted


def test_outcomes_never_seen_while_choosing_are_counted_by_rules() -> None:
    event = Event("column 0 is not selected", lambda outcome: outcome is None or 0 not in outcome)
    assert event.count(Counter({(0,): 3, (1,): 4, None: 5})) == 9


def test_draws_can_be_repeated_from_a_seed() -> None:
    one, two = (
        audit_empirical(
            draws_of("exponential"), PROBLEM, Fraction(1), PAIRS, runs=400,
            rng=Randomness(SeededSource(5)),
        )
        for _ in range(2)
    )  # fmt: skip
    assert one.hits == two.hits
    assert one.lower == two.lower


def test_little_time_means_few_draws() -> None:
    audit = audit_empirical(
        draws_of("exponential"), PROBLEM, Fraction(1), PAIRS, runs=10**9, seconds=0.1
    )
    assert 0 < audit.runs < 10**6


def test_no_pairs_say_nothing() -> None:
    audit = audit_empirical(draws_of("exponential"), PROBLEM, Fraction(1), [])
    assert (audit.runs, audit.lower, audit.contradicted) == (0, 0.0, False)


@pytest.mark.parametrize("wrong", [{"runs": 3}, {"runs": 1.5}, {"level": 0.0}, {"level": 1.0}])
def test_wrong_arguments(wrong: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        audit_empirical(draws_of("exponential"), PROBLEM, Fraction(1), PAIRS, **wrong)  # type: ignore[arg-type]
