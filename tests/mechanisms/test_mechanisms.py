"""Mechanisms: closed forms against their definitions, draws against closed forms, guarantees."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsubset
from dpsubset import ArgumentError
from dpsubset.mechanisms import (
    MECHANISMS,
    PLAIN,
    Mechanism,
    Setting,
    _mechanism_in,
    _order,
    mechanism,
)
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.enumerate import LARGEST_LIST, ScoredSupports, check_size
from support.cases import CASES, UNIFORM, Case
from support.gtest import g_test, miss

SCORES = st.lists(st.integers(0, 40), min_size=1, max_size=6)


def scored(scores: list[int], shift: int = 0) -> ScoredSupports:
    supports = np.arange(len(scores)).reshape(-1, 1)
    return ScoredSupports(supports, np.array(scores, dtype=np.int64) + shift, Fraction(1, 16))


@given(SCORES, st.fractions(Fraction(1, 100), 20))
def test_permute_and_flip_by_its_definition(scores: list[int], eta: Fraction) -> None:
    """Average over all orders of the chance that the first head comes up at S."""
    q = [math.exp(-float(eta * Fraction(s - min(scores), 16))) for s in scores]
    wanted = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        none_yet = 1.0
        for i in order:
            wanted[i] += none_yet * q[i]
            none_yet *= 1 - q[i]
    wanted /= math.factorial(len(scores))
    found = PLAIN["permute-and-flip"]().probabilities(scored(scores), eta)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@given(SCORES, st.fractions(Fraction(1, 100), 20))
def test_exponential_by_its_definition(scores: list[int], eta: Fraction) -> None:
    found = PLAIN["exponential"]().probabilities(scored(scores), eta)
    for i, j in itertools.combinations(range(len(scores)), 2):
        odds = math.exp(float(eta * Fraction(scores[j] - scores[i], 16)))
        assert found[i] == pytest.approx(found[j] * odds, rel=1e-9)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", PLAIN)
@given(scores=SCORES, eta=st.fractions(Fraction(1, 100), 20), shift=st.integers(-1000, 2**60))
def test_a_common_shift_of_all_scores_changes_nothing(
    name: str, scores: list[int], eta: Fraction, shift: int
) -> None:
    plain = PLAIN[name]().probabilities(scored(scores), eta)
    moved = PLAIN[name]().probabilities(scored(scores, shift), eta)
    np.testing.assert_array_equal(plain, moved)
    rng, same = Randomness(SeededSource(3)), Randomness(SeededSource(3))
    one = PLAIN[name]().sampler(scored(scores), eta)
    two = PLAIN[name]().sampler(scored(scores, shift), eta)
    assert [one.draw(rng) for _ in range(5)] == [two.draw(same) for _ in range(5)]


@pytest.mark.parametrize("name", PLAIN)
@given(
    scores=SCORES,
    eta=st.fractions(Fraction(1, 10), 10),
    changes=st.lists(st.integers(0, 8), min_size=6, max_size=6),
    shift=st.integers(-5, 5),
)
def test_the_privacy_loss_is_at_most_eta_times_the_spread(
    name: str, scores: list[int], eta: Fraction, changes: list[int], shift: int
) -> None:
    """The lemma that both proofs rest on, for arbitrary scores and arbitrary changes."""
    changed = [s + c + shift for s, c in zip(scores, changes, strict=False)]
    used = changes[: len(scores)]
    spread = Fraction(max(used) - min(used), 16)
    one = PLAIN[name]().probabilities(scored(scores), eta)
    two = PLAIN[name]().probabilities(scored(changed), eta)
    assert np.abs(np.log(one) - np.log(two)).max() <= float(eta * spread) + 1e-9


@given(SCORES, st.fractions(Fraction(1, 100), 20))
def test_permute_and_flip_is_never_worse(scores: list[int], eta: Fraction) -> None:
    """McKenna and Sheldon: the expected score is at most that of the exponential mechanism."""
    f = np.array(scores, dtype=float)
    pf = PLAIN["permute-and-flip"]().probabilities(scored(scores), eta)
    em = PLAIN["exponential"]().probabilities(scored(scores), eta)
    assert pf @ f <= em @ f + 1e-9


@pytest.mark.parametrize("name", PLAIN)
def test_closed_forms_over_many_supports(name: str) -> None:
    """Three thousand supports: beyond the number of quadrature nodes, still a distribution."""
    rng = np.random.default_rng(0)
    many = ScoredSupports(
        np.arange(3000).reshape(-1, 1), rng.integers(0, 10**6, size=3000), Fraction(1, 2**10)
    )
    for eta in (Fraction(1, 10**6), Fraction(3)):
        found = PLAIN[name]().probabilities(many, eta)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("case", [*CASES[:13:4], *UNIFORM], ids=lambda case: case.name)
@pytest.mark.parametrize("start_bits", [64, 8])
def test_a_few_seeded_draws_agree(name: str, case: Case, start_bits: int) -> None:
    """The quick relative of the statistical suite; seeded, so that it fails always or never."""
    chosen = PLAIN[name]()
    counts = case.draw(chosen, Randomness(SeededSource(11), start_bits), 2000)
    assert g_test(counts, case.supports, case.probabilities(chosen)) > 1e-4
    if case in CASES:
        # With so few draws only a gross error shows: twice the weight.
        double = case.probabilities(chosen, Fraction(2))
        assert miss(case.probabilities(chosen), double, 2000, 1e-4) < 1e-4
        assert g_test(counts, case.supports, double) < 1e-4


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("seed", range(3))
def test_the_start_bits_do_not_change_what_is_certain(name: str, seed: int) -> None:
    """One support only: drawn whatever the bits are."""
    sampler = PLAIN[name]().sampler(scored([5]), Fraction(1))
    for bits in (1, 8, 64, 256):
        assert sampler.draw(Randomness(SeededSource(seed), bits)) == (0,)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_guarantees_are_computed_from_what_the_draw_uses(name: str, neighbours: str) -> None:
    problem = Problem.create(6, 2, neighbours=neighbours, intercept=False)
    sensitivity = Sensitivity.of(problem)
    epsilon = Fraction(1, 3)
    chosen, setting = PLAIN[name](), Setting.of(problem, epsilon)
    guarantee = chosen.guarantee(setting)
    assert guarantee.epsilon == epsilon
    assert guarantee.neighbours == neighbours
    eta = chosen.eta(setting)
    assert guarantee.epsilon_if_add_remove == eta * sensitivity.score_range("add-remove")
    assert guarantee.epsilon_if_replace_one == eta * sensitivity.score_range("replace-one")
    assert "NOT PRIVATE" not in str(guarantee)
    assert "NOT PRIVATE" in str(chosen.guarantee(setting, seeded=True))

    class Louder(PLAIN[name]):  # type: ignore[misc, name-defined]
        def eta(self, setting: Setting) -> Fraction:
            return 2 * super().eta(setting)

    # A mechanism that weighs scores twice as much must own up to it.
    louder = Louder().guarantee(setting)
    assert louder.epsilon == 2 * epsilon


def test_every_module_of_the_folders_is_a_mechanism_with_a_proof_of_its_name() -> None:
    folder = Path(dpsubset.mechanisms.__file__).parent
    files = [*folder.glob("*.py"), *(folder / "published").glob("*.py")]
    paths = {path.stem: path for path in files if path.stem != "__init__"}
    assert set(paths) == {name.replace("-", "_") for name in MECHANISMS}
    assert "published" not in paths["permute_and_flip"].parts
    for name, cls in MECHANISMS.items():
        assert cls.name == name
        path = paths[name.replace("-", "_")].relative_to(folder.parent).with_suffix("")
        assert cls.__module__ == ".".join(("dpsubset", *path.parts))
        assert (folder.parent / "proofs" / f"{path.stem}.md").is_file()


def test_mechanisms_stand_in_their_documented_order() -> None:
    """The default first, then from those on whole supports to those on single variables."""
    placed = [name for name, cls in MECHANISMS.items() if "place" in vars(cls)]
    assert placed == [
        "permute-and-flip", "exponential", "top-r", "mistakes", "metropolis", "penalised",
        "sample-aggregate", "stability", "peeling", "hard-thresholding", "frank-wolfe",
    ]  # fmt: skip
    # Whoever adds one need not know about the others: it stands behind these.
    assert list(MECHANISMS)[: len(placed)] == placed

    class Newcomer(MECHANISMS["permute-and-flip"]):  # type: ignore[misc, name-defined]
        name = "a-newcomer"

    assert max(_order(MECHANISMS[name]) for name in placed) < _order(Newcomer)


def test_a_module_with_no_mechanism_of_its_name_is_refused() -> None:
    class Top(MECHANISMS["top-r"]):  # type: ignore[misc, name-defined]
        name = "top-r"

    module = ModuleType("dpsubset.mechanisms.bottom_r")
    with pytest.raises(ImportError, match="one mechanism, named bottom-r"):
        _mechanism_in(module)
    Top.__module__ = module.__name__
    module.Top = Top  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="one mechanism, named bottom-r"):
        _mechanism_in(module)
    Top.name = "bottom-r"
    # What it imports from others is not its own.
    module.Mechanism, module.TopR = Mechanism, MECHANISMS["top-r"]  # type: ignore[attr-defined]
    assert _mechanism_in(module) is Top


def test_an_unknown_name_is_refused_with_a_list_of_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match="permute-and-flip, exponential"):
        mechanism("laplace")


def test_problems_too_large_to_list_are_refused_by_their_size() -> None:
    check_size(Problem.create(40, 5, intercept=False))
    with pytest.raises(ArgumentError, match=str(LARGEST_LIST)):
        check_size(Problem.create(100, 5, intercept=False))
