"""Few supports, each bounded by itself: no bound above a score, masses exact, draws as counted."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from dpsubset.mechanisms import PLAIN
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search import support_envelope
from dpsubset.search.bounds.base import Node
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.bounds.support_bounds import SupportBounds
from dpsubset.search.envelope import MassScale
from dpsubset.search.region import Region
from dpsubset.search.support_envelope import SupportEnvelope
from dpsubset.search.tuning import Tuning
from support.collinear import NOISES, Collinear, collinear
from support.plain_draws import DRAWS, Chosen, agree
from support.regions import Walk

DESIGNS = (*NOISES, "AR 0.99", "trends", "polynomials", "linkage")
LAYOUTS = ("plain", "intercept")


def paths(recipe: Collinear) -> Iterator[tuple[Node, SupportEnvelope, MassScale, Scorer]]:
    """The whole problem, and regions down a path, with masses by each of their supports."""
    rng = np.random.default_rng([recipe.seed, 9, LAYOUTS.index(recipe.layout)])
    eta = float(10 ** rng.uniform(-3, 2))
    walk = Walk(recipe, rng, eta, lazy=False, tuning=Tuning(last_pick=0, small=0))
    bound_oracle, unit = walk.bound_oracle, Fraction(walk.scorer.score_step_float)
    bound = bound_oracle.root(Region.whole(recipe.problem))
    while True:
        bound.support_bounds = bound_oracle.bound_each_support(bound)
        if bound.support_bounds is None:
            return
        ref = int(walk.scorer.scores(np.array([bound.incumbent()]))[0])
        scale = MassScale(Fraction(eta), unit, ref, 300)
        envelope = SupportEnvelope(
            bound.support_bounds, bound, scale, bound_oracle.penalty(bound.region)
        )
        if envelope.total:
            yield bound, envelope, scale, walk.scorer
        free = np.flatnonzero(bound.region.status >= FREE)
        halves = [h for h in bound.region.split(int(rng.choice(free))) if h.count() > 1]
        if not halves:
            return
        bound = bound_oracle.child(bound, halves[int(rng.integers(len(halves)))])


@pytest.mark.filterwarnings("error")  # one would tell of the data
@pytest.mark.parametrize("design", DESIGNS)
def test_every_mass_is_large_enough_and_they_add_up(design: str) -> None:
    seen = tight = 0
    for recipe in collinear((design,), ("ball",), range(4), LAYOUTS):
        for bound, envelope, scale, scorer in paths(recipe):
            masses = every_mass(envelope)
            supports = bound.region.supports()
            scores = [int(score) for score in scorer.scores(supports)]
            assert len(masses) == len(supports)
            assert sum(masses.values()) == envelope.total
            assert max(masses.values()) == envelope.peak
            for row, score in zip(supports.tolist(), scores, strict=True):
                assert masses[tuple(row)] >= scale.mass_of(score), (recipe, row)
            exact = sum(map(scale.mass_of, scores))
            tight += envelope.total < 3 * exact
            seen += 1
    assert seen > 8
    assert tight > seen / 4


def every_mass(envelope: SupportEnvelope) -> dict[tuple[int, ...], int]:
    """Of all supports, by the first number that stands for each."""
    source, masses, at = Chosen(), {}, 0
    while at < envelope._sums[-1]:
        source.at = at
        support, mass = envelope.draw(source)  # type: ignore[arg-type]
        assert support not in masses
        masses[support] = mass
        at += mass // envelope._factor
    assert at == envelope._sums[-1]
    return masses


def test_bounds_with_too_small_a_base_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins apart the masses are tight, so that little more than them is too much."""
    base = SupportBounds._base
    monkeypatch.setattr(
        SupportBounds,
        "_base",
        lambda self, yy, penalty, unit: base(self, yy, penalty, unit) + 8 * unit,
    )
    low = 0
    for recipe in collinear(DESIGNS, ("ball",), range(2), ("plain",)):
        for bound, envelope, scale, scorer in paths(recipe):
            masses = every_mass(envelope)
            supports = bound.region.supports()
            low += any(
                masses[tuple(row)] < scale.mass_of(int(score))
                for row, score in zip(supports.tolist(), scorer.scores(supports), strict=True)
            )
    assert low > 0


def test_draws_forget_sums_and_find_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_envelope, "_MAX_CACHED", 1)
    recipe = next(iter(collinear(("near 0.1",), ("ball",), range(1), ("plain",))))
    _, envelope, _, _ = next(paths(recipe))
    rng, masses = Randomness(SystemSource()), every_mass(envelope)
    found = Counter(envelope.draw(rng) for _ in range(200))
    assert all(masses[support] == mass for support, mass in found)
    assert len(envelope._cache) == 1


#: Every leaf that would be split, and is small enough, is solved first; and then it is split soon.
SOLVED = Tuning(short=1, listable=1, last_pick=0, small=0, patience=2.0, solvable_per_node=10**6)


@pytest.mark.statistical
@pytest.mark.parametrize("name", PLAIN)
def test_draws_agree_with_the_closed_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, draw = 0, SupportEnvelope.draw

    def counted(self: SupportEnvelope, rng: Randomness) -> tuple[tuple[int, ...], int]:
        nonlocal drawn
        drawn += 1
        return draw(self, rng)

    monkeypatch.setattr(SupportEnvelope, "draw", counted)
    for number, (design, layout) in enumerate(itertools.product(DESIGNS, LAYOUTS)):
        agree(Collinear(design, "ball", "wide", 0.0, layout, 300_000 + number), name, SOLVED)
    assert drawn > DRAWS // 2


@pytest.mark.parametrize("power", [3, 9, 15])
def test_masses_that_would_be_long_are_not_had(power: int) -> None:
    """Integers of so many bits would take more memory than there is."""
    recipe = next(iter(collinear(("near 0.1",), ("ball",), range(1), ("plain",))))
    bound, _, scale, scorer = next(paths(recipe))
    assert bound.support_bounds is not None
    steep = MassScale(Fraction(10) ** power, Fraction(scorer.score_step_float), scale.ref, 300)
    assert SupportEnvelope(bound.support_bounds, bound, steep, 0.0).total.bit_length() < 20_000
