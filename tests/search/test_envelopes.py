"""Regions and envelopes: exact partitions, exact domination, draws in proportion.

    mass(S) >= 2**bits * exp(-eta (f~(S) - ref))   for every S of a region,

decided by ball arithmetic. Draws are seeded: a G-test at level 1e-6 fails always or never.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import flint
import numpy as np
import pytest

from dpsubset.base.rounding import ball
from dpsubset.objective.problem import Problem
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.envelope import ExactEnvelope, FlatEnvelope, MassScale, ModularEnvelope
from dpsubset.search.region import Region
from dpsubset.search.tuning import Tuning
from support.gtest import g_test
from support.recipes import CONSTRAINTS, DESIGNS, Recipe, recipes
from support.regions import Walk, random_region

LEVEL = 1e-6
DRAWS = 20_000


# -- regions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(150))
def test_a_split_is_a_partition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 11))
    problem = Problem.create(p, int(rng.integers(1, p + 1)), intercept=False)
    region = random_region(problem, rng)
    rows = [tuple(row) for row in region.supports().tolist()]
    assert rows == sorted(set(rows))
    assert len(rows) == region.count()
    for j in np.flatnonzero(region.status >= FREE):
        halves = list(region.split(int(j)))
        assert all(half.count() == len(half.supports()) > 0 for half in halves)
        together = [tuple(row) for half in halves for row in half.supports().tolist()]
        assert sorted(together) == rows
        for half in halves:
            inside = {j in row for row in map(tuple, half.supports().tolist())}
            assert len(inside) == 1


@pytest.mark.parametrize("seed", range(40))
def test_buckets_are_a_partition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 10))
    k = int(rng.integers(1, p + 1))
    always = rng.choice(p, int(rng.integers(0, k + 1)), replace=False).tolist()
    problem = Problem.create(p, k, always_include=always, intercept=False)
    anchor = tuple(rng.choice(p, k, replace=False).tolist())
    found = []
    for mistakes in range(k + 1):
        bucket = Region.bucket(problem, anchor, mistakes)
        for row in [] if bucket is None else bucket.supports().tolist():
            assert len(set(row) - set(anchor)) == mistakes
            found.append(row)
    assert sorted(found) == Region.whole(problem).supports().tolist()


def test_regions_are_drawn_uniformly() -> None:
    rng = np.random.default_rng(2)
    problem = Problem.create(9, 4, always_include=(3,), intercept=False)
    regions = [Region.whole(problem), Region.bucket(problem, (0, 3, 5, 8), 2)]
    regions += [random_region(problem, rng) for _ in range(4)]
    for seed, region in enumerate(regions):
        assert region is not None
        supports = [tuple(row) for row in region.supports().tolist()]
        randomness = Randomness(SeededSource(seed))
        counts = Counter(region.draw(randomness) for _ in range(5000))
        flat = np.full(len(supports), 1 / len(supports))
        assert g_test(counts, supports, flat) > LEVEL, region


# -- envelopes --------------------------------------------------------------------------------


def weight(scale: MassScale, score: int) -> tuple[int, int]:
    """Integers around 2**bits * q of a score, at most two apart."""
    exponent = scale.weight * (scale.ref - score)
    saved = flint.ctx.prec
    flint.ctx.prec = scale.bits + 2 * abs(math.ceil(exponent)) + 200
    try:
        exact = ball(exponent).exp() * flint.arb(2) ** scale.bits
        return int(exact.lower().floor().fmpz()), int(exact.upper().ceil().fmpz())
    finally:
        flint.ctx.prec = saved


def mass(envelope: ModularEnvelope, support: tuple[int, ...]) -> int:
    """Mass of a support, from the weights of its features alone."""
    product, picked = envelope._factor, set(support) - set(envelope._members)
    for pool in envelope._pools:
        leading = dict(zip(pool._top, pool._subsets.weights, strict=True))
        weights = [leading.get(j) or int(pool._weights[j]) for j in picked]
        used = [w for w in weights if w]
        assert len(used) == pool._m
        product *= math.factorial(pool._m) * math.prod(used)
    return product


def scale_of(recipe: Recipe, eta: Fraction, ref: int) -> MassScale:
    problem = recipe.problem
    bits = 44 * problem.k + problem.supports.bit_length() + 128
    return MassScale(eta, recipe.sensitivity.score_step, ref, bits)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", DESIGNS)
def test_masses_dominate_the_weights_of_the_mechanism(kind: str, constraint: str) -> None:
    seen = 0
    for recipe in recipes((kind,), (constraint,), range(40, 43)):
        if recipe.problem.supports < 2:
            continue
        rng = np.random.default_rng([recipe.seed, 4])
        tuning = Tuning(last_pick=int(rng.choice([0, 4096])))
        # Up to the largest epsilon that is allowed, though not with more bits than a race keeps.
        yy = float(recipe.moments.products[-1, -1]) / 32767**2
        eta = Fraction(float(10 ** rng.uniform(-6, math.log10(1500 / yy))))
        steps = Walk(recipe, rng, float(eta), lazy=False, tuning=tuning)
        # The reference may be any score, good or bad.
        ref = int(rng.choice(recipe.scored.scores))
        scale = scale_of(recipe, eta, ref)
        for number, bound in enumerate(steps.bounds(8)):
            about = f"{recipe} eta={eta} region {number}"
            if float(eta) * (ref * scale.score_step - bound.lower_bound) > 2000:
                continue  # such bounds are for splitting: a race makes no masses of them
            seen += 1
            envelope = ModularEnvelope(steps.bound_oracle, bound, scale)
            supports = bound.region.supports()
            scores = steps.scorer.scores(supports).tolist()
            rows = [tuple(row) for row in supports.tolist()]
            masses = [mass(envelope, row) for row in rows]
            closed = ExactEnvelope(rows, scores, scale)
            peak = 0
            for score, opened, exact in zip(scores, masses, closed.masses, strict=True):
                low, high = weight(scale, score)
                assert high - low <= 2
                assert opened >= high, about
                assert high <= exact <= high + 1, about
                peak = max(peak, high)
            for found, each in ((envelope, masses), (closed, closed.masses)):
                assert found.total >= sum(each), about
                assert found.peak >= peak, about
    assert seen > 50


def test_weights_are_rounded_up_at_the_largest_epsilon() -> None:
    """Integers not below powers of two, for exponents of any size."""
    rng = np.random.default_rng(0)
    for log2 in [*rng.uniform(-100, 5000, 300).tolist(), *map(float, range(-60, 200))]:
        found = MassScale(Fraction(1), Fraction(1), 0, 300).exp2_rounded_up(log2)
        flint.ctx.prec = 6000
        try:
            exact = (ball(Fraction(log2)) * flint.arb(2).log()).exp()
            assert found >= exact
            assert found <= exact + exact / 2**20 + 2
        finally:
            flint.ctx.prec = 53


def many(kind: str, constraint: str, p: int) -> Walk:
    """A wide problem: most features are not among the leading ones of an envelope."""
    recipe = Recipe(kind, constraint, "tight", 0.0, 3, p=p)
    return Walk(recipe, np.random.default_rng(5), 2.0, lazy=False)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize(("kind", "p"), [("duplicated", 10), ("AR 0.9", 26), ("n < p", 26)])
def test_envelopes_draw_in_proportion_to_mass(constraint: str, kind: str, p: int) -> None:
    """With p = 26 small weights are picked with repetition, and repeats are thrown away."""
    steps = many(kind, constraint, p)
    recipe = steps.recipe
    scale = scale_of(recipe, Fraction(2), int(recipe.scored.scores.min()))
    whole = Region.whole(recipe.problem)
    regions = [whole, next(whole.split(2)), Region.bucket(recipe.problem, (0, 1, 4), 1)]
    for seed, region in enumerate(regions):
        if region is None or region.count() < 2:
            continue
        envelope = ModularEnvelope(steps.bound_oracle, steps.bound_oracle.root(region), scale)
        supports = [tuple(row) for row in region.supports().tolist()]
        masses = {support: mass(envelope, support) for support in supports}
        rng = Randomness(SeededSource(seed))
        counts: Counter[tuple[int, ...]] = Counter()
        for _ in range(DRAWS):
            drawn = envelope.draw(rng)
            if drawn is None:
                counts[()] += 1
                continue
            assert drawn[1] == masses[drawn[0]]
            counts[drawn[0]] += 1
        # () stands for a repeat: whatever of the total no support owns.
        shares = [float(Fraction(m, envelope.total)) for m in masses.values()]
        repeats = float(1 - Fraction(sum(masses.values()), envelope.total))
        assert g_test(counts, [*supports, ()], np.array([*shares, repeats])) > LEVEL
        if kind != "duplicated" and region is whole:
            assert counts[()] > 0


def test_lists_are_drawn_in_proportion_to_mass() -> None:
    recipe = Recipe("duplicated", "box", "tight", 0.0, 3, p=8)
    supports = [support for _, support in recipe.ranking]
    scale = scale_of(recipe, Fraction(1), recipe.ranking[0][0])
    envelope = ExactEnvelope(supports, [score for score, _ in recipe.ranking], scale)
    rng = Randomness(SeededSource(1))
    counts = Counter(envelope.draw(rng)[0] for _ in range(DRAWS))
    shares = [float(Fraction(m, envelope.total)) for m in envelope.masses]
    assert g_test(counts, supports, np.array(shares)) > LEVEL


@pytest.mark.parametrize("p", [4, 9])
def test_a_flat_envelope_has_no_mass_for_what_is_excluded(p: int) -> None:
    """With p = 4 the other supports are listed, with p = 9 uniform draws are rejected."""
    without = frozenset({(0, 1), (0, 2), (1, 3)})
    region = Region.whole(Problem.create(p, 2, intercept=False))
    envelope = FlatEnvelope(region, 7, without, MassScale(Fraction(1, 10), Fraction(1, 4), 0, 20))
    assert envelope.total == (math.comb(p, 2) - 3) * envelope.peak
    rng = Randomness(SeededSource(1))
    assert all(envelope.draw(rng)[0] not in without for _ in range(50))
