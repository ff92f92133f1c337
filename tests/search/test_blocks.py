"""Blocks of columns that are alike: bounds never above a score, masses exact, draws as enumerated.

The designs of `collinear` whose columns are alike one by one. Bounds are looked at on whole
problems and down random paths, most of them in the statistical suite.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsubset.mechanisms import PLAIN
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search import block_envelope
from dpsubset.search.block_envelope import BlockEnvelope
from dpsubset.search.bounds import blocks as blocks_module
from dpsubset.search.bounds.base import Node
from dpsubset.search.bounds.block_bound import CLASSES, BlockBound
from dpsubset.search.bounds.blocks import Blocks
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.engine import Engine
from dpsubset.search.envelope import MassScale
from dpsubset.search.region import Region
from dpsubset.search.tuning import Tuning
from support.collinear import NOISES, Collinear, collinear
from support.plain_draws import DRAWS, Chosen, agree
from support.regions import Walk

DESIGNS = (*NOISES, "AR 0.99", "trends", "polynomials", "linkage")
CONSTRAINTS = ("box", "ball")
LAYOUTS = ("plain", "intercept")
BLOCKS = Tuning(last_pick=0, small=0, blocks_least=2)


def paths(recipe: Collinear) -> Iterator[tuple[Node, Scorer]]:
    """The whole problem with its blocks, and regions down a path, with what is left of them."""
    rng = np.random.default_rng([recipe.seed, 7, LAYOUTS.index(recipe.layout)])
    eta = float(10 ** rng.uniform(-3, 4))
    walk = Walk(recipe, rng, eta, lazy=False, tuning=BLOCKS)
    bound_oracle = walk.bound_oracle
    bound = bound_oracle.root(Region.whole(recipe.problem))
    bound_oracle.add_block_bound(bound)
    while bound.block_bound is not None:
        yield bound, walk.scorer
        halves = list(
            bound.region.split(int(rng.choice(np.flatnonzero(bound.region.status >= FREE))))
        )
        halves = [half for half in halves if half.count() > 1]
        if not halves:
            return
        parent = bound
        bound = bound_oracle.child(parent, halves[int(rng.integers(len(halves)))])
        bound_oracle.add_block_bound(bound, parent)


def carried(blocks: BlockBound, picked: set[int]) -> Fraction:
    """What the bound credits a support with, exactly."""
    total = Fraction(0)
    for c, columns in enumerate(blocks.columns):
        here = [i for i in np.flatnonzero(blocks.free[c]) if int(columns[i]) in picked]
        kind = min(len(here), CLASSES - 1)
        total += Fraction(float(blocks.consts[c, kind])) - Fraction(float(blocks.consts[c, 0]))
        total += sum((Fraction(float(blocks.gains[c, kind, i])) for i in here), Fraction(0))
    for j, gain in zip(blocks.rest, blocks.rest_gains, strict=True):
        total += Fraction(float(gain)) if int(j) in picked else 0
    return total


def excess(bound: Node, scorer: Scorer) -> Fraction:
    """Largest excess of a block bound over a score; at most 0 if it is valid."""
    assert bound.block_bound is not None
    supports = bound.region.supports()
    members = set(bound.region.members.tolist())
    scores = scorer.scores(supports)
    unit = Fraction(scorer.score_step_float)
    return max(
        Fraction(bound.block_bound.base)
        - carried(bound.block_bound, set(row) - members)
        - int(score) * unit
        for row, score in zip(supports.tolist(), scores, strict=True)
    )


each_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS)
each_design = pytest.mark.parametrize("design", DESIGNS)


@pytest.mark.filterwarnings("error")  # one would tell of the data
@each_constraint
@each_design
def test_no_bound_is_above_a_score(design: str, constraint: str) -> None:
    seen, several = look(design, constraint, range(4))
    assert seen > 3
    assert several > 1


@pytest.mark.statistical
@each_constraint
@each_design
def test_no_bound_is_above_a_score_on_more_of_them(design: str, constraint: str) -> None:
    seen, several = look(design, constraint, range(4, 16))
    assert seen > 100
    assert several > 50


def look(design: str, constraint: str, seeds: range) -> tuple[int, int]:
    """How many regions were looked at, and how many have several columns of a block to pick."""
    seen = several = 0
    for recipe in collinear((design,), (constraint,), seeds, LAYOUTS):
        for bound, scorer in paths(recipe):
            assert excess(bound, scorer) <= 0, (recipe, bound.region.status)
            assert bound.block_bound is not None
            several += (bound.block_bound.free.sum(axis=1) > 1).any()
            seen += 1
    return seen, several


# -- tests that must bite -----------------------------------------------------------------------


def above(count: int = 2) -> bool:
    """Whether any bound is above a score."""
    recipes = collinear(DESIGNS, CONSTRAINTS, range(count), ("plain",))
    return any(excess(*found) > 0 for recipe in recipes for found in paths(recipe))


def test_bounds_without_their_margin_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockBound, "_rounding_margin", lambda *_: 0.0)
    assert above(4)


def test_matrices_that_are_too_large_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    find = Blocks.find.__func__  # type: ignore[attr-defined]

    def larger(cls: Any, *given: Any) -> Blocks | None:
        found: Blocks | None = find(cls, *given)
        if found is not None:
            found.matrices = [2.0 * matrix for matrix in found.matrices]
            found.residuals = [2.0 * residual for residual in found.residuals]
        return found

    monkeypatch.setattr(Blocks, "find", classmethod(larger))
    assert above()


def test_other_columns_without_what_they_gave_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their diagonal is negative, to leave more for the blocks: as if it were the ridge alone."""
    monkeypatch.setattr(blocks_module, "_MIN_COVERED", 0.5)  # or all columns have their block
    find = Blocks.find.__func__  # type: ignore[attr-defined]

    def forgetful(cls: Any, gram: Any, ridge: float, *rest: Any) -> Blocks | None:
        found: Blocks | None = find(cls, gram, ridge, *rest)
        if found is not None:
            assert found.rest_diagonal < ridge
            found.rest_diagonal = ridge
        return found

    monkeypatch.setattr(Blocks, "find", classmethod(forgetful))
    assert above()


def test_an_even_part_that_is_too_large_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """N and d together above M."""
    find = Blocks.find.__func__  # type: ignore[attr-defined]

    def stiffer(cls: Any, *given: Any) -> Blocks | None:
        found: Blocks | None = find(cls, *given)
        if found is not None:
            found.shifts = [shift + 0.5 * matrix[0, 0] for shift, matrix in
                           zip(found.shifts, found.matrices, strict=True)]  # fmt: skip
        return found

    monkeypatch.setattr(Blocks, "find", classmethod(stiffer))
    assert above()


def test_a_class_without_its_constant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = BlockBound._gains

    def without(self: BlockBound, w: Any, a: Any) -> Any:
        g, consts, v = gains(self, w, a)
        return g, np.where(self._forced.any(axis=1)[:, None], consts, 0.0), v

    monkeypatch.setattr(BlockBound, "_gains", without)
    assert above()


# -- masses -------------------------------------------------------------------------------------


def near(seed: int = 0) -> Collinear:
    return Collinear("near 0.1", "box", "wide", 0.0, "plain", seed)


@pytest.mark.parametrize("seed", [1, 3, 4, 6])
def test_every_support_is_drawn_as_often_as_its_mass_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By counting: with weights of two bits all numbers below the total can be tried."""
    monkeypatch.setattr(block_envelope, "WEIGHT_BITS", 1)
    recipe = near(seed)
    walk = Walk(recipe, np.random.default_rng(0), 1.0, lazy=False, tuning=BLOCKS)
    # As many columns as can be counted, the last one of them in no block.
    status = np.full(recipe.problem.p, FREE, dtype=np.int8)
    status[6:] = 0
    region = Region(status, np.array([], dtype=np.int64), (3, 0), (6, 0))
    bound = walk.bound_oracle.root(region)
    find = Blocks.find.__func__  # type: ignore[attr-defined]

    def fewer(cls: Any, gram: Any, ridge: float, hot: Any, *rest: Any) -> Blocks | None:
        found: Blocks | None = find(cls, gram, ridge, hot, *rest)
        if found is not None:
            kept = [i for i, block in enumerate(found.columns) if 5 not in block]
            for name in ("columns", "matrices", "residuals", "shifts"):
                setattr(found, name, [getattr(found, name)[i] for i in kept])
        return found

    monkeypatch.setattr(Blocks, "find", classmethod(fewer))
    walk.bound_oracle.add_block_bound(bound)
    assert bound.block_bound is not None
    assert 5 in bound.block_bound.rest
    # Weights from 1 to a few dozen.
    eta = 8 / Fraction(bound.block_bound.magnitude)
    scale = MassScale(eta, recipe.sensitivity.score_step, 0, 10)
    envelope = BlockEnvelope(bound.block_bound, region, scale)
    source, counts, masses = Chosen(), Counter[tuple[int, ...]](), {}
    repeated = 0
    while source.at < source.bound < 10**6:
        drawn = envelope.draw(source)  # type: ignore[arg-type]
        source.at += 1
        if drawn is None:
            repeated += 1
            continue
        counts[drawn[0]] += 1
        assert masses.setdefault(*drawn) == drawn[1]
    factor = envelope.total // source.bound
    assert envelope.total == factor * source.bound
    assert len(set(masses.values())) > 1
    assert set(counts) == set(itertools.combinations(range(6), 3))
    assert {support: factor * count for support, count in counts.items()} == masses
    assert max(masses.values()) <= envelope.peak


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_masses_are_never_below_the_weights(constraint: str) -> None:
    """Of drawn supports, at the root and further down."""
    rng, seen = Randomness(SystemSource()), 0
    for recipe in collinear(("near 0.1", "AR 0.99"), (constraint,), range(3), LAYOUTS):
        for bound, scorer in itertools.islice(paths(recipe), 3):
            assert bound.block_bound is not None
            best = int(scorer.scores(bound.region.supports()).min())
            eta = Fraction(int(rng.below(500)) + 1) / Fraction(bound.block_bound.magnitude)
            scale = MassScale(eta, recipe.sensitivity.score_step, best, 300)
            envelope = BlockEnvelope(bound.block_bound, bound.region, scale)
            for _ in range(40):
                drawn = envelope.draw(rng)
                if drawn is not None:
                    score = int(scorer.scores(np.array([drawn[0]]))[0])
                    assert drawn[1] >= scale.mass_of(score) - 1
                    assert scale.mass_of(score) - 1 <= envelope.peak
                    seen += 1
    assert seen > 200


def test_regions_without_a_column_of_a_block_have_no_block_bound() -> None:
    recipe = near(1)
    walk = Walk(recipe, np.random.default_rng(0), 1.0, lazy=False, tuning=BLOCKS)
    root = walk.bound_oracle.root(Region.whole(recipe.problem))
    walk.bound_oracle.add_block_bound(root)
    assert root.block_bound is not None
    root.block_bound.blocks.columns[1:] = []  # the others belong to no block
    for name in ("matrices", "residuals", "shifts"):
        getattr(root.block_bound.blocks, name)[1:] = []
    status = root.region.status.copy()
    status[root.block_bound.blocks.columns[0]] = 0
    left = int((status == FREE).sum())
    assert left > 1
    region = Region(status, root.region.members, (1, 0), (left, 0))
    child = walk.bound_oracle.child(root, region)
    walk.bound_oracle.add_block_bound(child, root)
    assert child.block_bound is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("eta", [5e-324, 1e-300, 1e300])
def test_no_weight_of_the_scores_raises(eta: float) -> None:
    """Not even one that times the square of the radius is 0."""
    recipe = Collinear("near 0.1", "box", "tight", 0.0, "plain", 1)
    walk = Walk(recipe, np.random.default_rng(0), eta, lazy=False, tuning=BLOCKS)
    root = walk.bound_oracle.root(Region.whole(recipe.problem))
    walk.bound_oracle.add_block_bound(root)
    assert root.block_bound is None or excess(root, walk.scorer) <= 0


def test_a_race_whose_root_is_too_loose_for_masses_keeps_its_leaves() -> None:
    """An epsilon beyond all use: masses of the whole problem would have more bits than memory."""
    recipe = near(3)
    engine = Engine(
        recipe.whole(), recipe.problem, recipe.sensitivity.score_step, 1e12, tuning=FIRST
    )
    race = PLAIN["exponential"]().race(engine, Fraction(10**12))
    assert race.draw(Randomness(SystemSource())) == recipe.ranking[0][1]


# -- draws --------------------------------------------------------------------------------------

#: Blocks after the first split, whatever they are worth; and then as many splits as there can be.
FIRST = Tuning(short=1, listable=1, last_pick=0, small=0, patience=0.0, blocks_after=1,
               blocks_least=2, blocks_worth=0)  # fmt: skip
SPLIT = Tuning(short=1, listable=1, last_pick=0, small=0, patience=0.0, blocks_after=1,
               blocks_least=2, blocks_worth=0, patience_blocks=30.0)  # fmt: skip


DRAWN = (("near 0.1", "plain", 0), ("AR 0.99", "intercept", 21), ("trends", "plain", 28))


@pytest.mark.statistical
@pytest.mark.parametrize("tuning", [FIRST, SPLIT], ids=["one leaf", "splitting"])
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_draws_agree_with_the_closed_form(
    constraint: str, name: str, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = 0
    draw = BlockEnvelope.draw

    def counted(self: BlockEnvelope, rng: Randomness) -> Any:
        nonlocal drawn
        drawn += 1
        return draw(self, rng)

    monkeypatch.setattr(BlockEnvelope, "draw", counted)
    for design, layout, seed in DRAWN:
        agree(Collinear(design, constraint, "wide", 0.0, layout, 200_000 + seed), name, tuning)
    # Not always: other masses may be the smaller ones.
    assert drawn > DRAWS // 2
