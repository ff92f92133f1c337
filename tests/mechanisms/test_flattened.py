"""Top-R, Mistakes and penalised selection: closed forms by their definitions, audits, twins."""

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.audit.exact import (
    Pair,
    audit_exact,
    moments_of_records,
    random_pairs,
    worst_case_pairs,
)
from dpsubset.audit.pairs import flattening_pairs
from dpsubset.base.errors import ArgumentError
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import PLAIN, Cost, Data, Mechanism, Outcome, Setting
from dpsubset.mechanisms.choose_size import ChooseSize
from dpsubset.mechanisms.penalised import Penalised
from dpsubset.mechanisms.published.mistakes import Mistakes
from dpsubset.mechanisms.published.top_r import TopR, epsilon_prime
from dpsubset.objective.losses import LOSSES
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.enumerate import enumerate_supports
from support.recipes import CONSTRAINTS, DESIGNS, REACHES, Recipe
from support.samples import one_in

FORMS = tuple(PLAIN)
NEIGHBOURS = ("add-remove", "replace-one")
PROVEN: list[Mechanism] = [
    TopR(R=2),
    TopR(R=5, form="permute-and-flip"),
    TopR(),
    Mistakes(),
    Mistakes(share=Fraction(9, 10), form="permute-and-flip"),
    Mistakes(anchor=(0, 1)),
    Penalised(),
    Penalised(phi=Fraction(1, 3), form="permute-and-flip"),
    ChooseSize(),
    ChooseSize(phi=Fraction(1, 3), share=Fraction(1, 10), form="exponential"),
]


def small(recipe: Recipe) -> tuple[Data, Setting]:
    setting = Setting.of(recipe.problem, Fraction(3), n=recipe.moments.n)
    return Data(GramData.from_moments(recipe.moments)), setting


def recipes(count: int) -> list[Recipe]:
    kinds = itertools.cycle(itertools.product(DESIGNS, CONSTRAINTS, ("tight", "wide"), (0.0, 2.5)))
    return [Recipe(*kind, seed=700 + i) for i, kind in zip(range(count), kinds, strict=False)]


# -- Top-R ------------------------------------------------------------------------------------


@one_in(5)
@pytest.mark.parametrize("form", FORMS)
def test_top_r_is_the_plain_mechanism_on_flattened_scores(form: str, every: int) -> None:
    """Two hundred problems, the flattened distribution written out from the scores."""
    for i, recipe in list(enumerate(recipes(200)))[::every]:
        data, setting = small(recipe)
        R = 1 + i % 12
        outcomes, logs = TopR(R=R, form=form).outcomes(data, setting) or ([], None)
        ranked = [score for score, _ in recipe.ranking]
        cut = ranked[min(R, len(ranked)) - 1]
        score = {support: min(s, cut) for s, support in recipe.ranking}
        weight = float(
            setting.sensitivity.eta(setting.epsilon, "replace-one") * setting.sensitivity.score_step
        )
        q = np.array([math.exp(-weight * (score[o] - ranked[0])) for o in outcomes])
        if form == "exponential":
            expected = q / q.sum()
        else:
            x, w = np.polynomial.legendre.leggauss(len(q) // 2 + 1)
            x, w = (x + 1) / 2, w / 2
            others = [np.delete(q, j) for j in range(len(q))]
            expected = np.array(
                [
                    a * (w @ np.prod(1 - np.outer(x, rest), axis=1))
                    for a, rest in zip(q, others, strict=True)
                ]
            )
        np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-9)


def test_the_default_r_is_one_more_than_have_at_most_one_mistake() -> None:
    problem = Problem.create(20, 4)
    assert TopR().count(problem) == 4 * 16 + 2
    # Those always included make no mistakes.
    assert TopR().count(Problem.create(20, 4, always_include=[0, 5])) == 2 * 16 + 2
    assert TopR().count(Problem.create(5, 2)) == 8
    assert TopR().count(Problem.create(3, 2)) == 3
    assert TopR(R=10**9).count(Problem.create(5, 2)) == 10
    assert TopR().count(Problem.create(10_000, 5)) == 20_000


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("form", FORMS)
def test_finite_t_keeps_the_epsilon_of_theorem_1_and_not_epsilon(T: int, form: str) -> None:
    """The exact worst log ratio lies below epsilon', and for T = 1 above epsilon."""
    rng = np.random.default_rng(T)
    worst, largest = 0.0, 0.0
    for R, epsilon in ((2, Fraction(1, 2)), (4, Fraction(1)), (9, Fraction(2))):
        problem = Problem.create(5, 2, prediction_bound=1.0)
        mechanism = TopR(R=R, T=T, form=form)
        pairs = [*random_pairs(problem, 60, rng), *worst_case_pairs(problem, copies=200)]
        for pair in pairs:
            setting = Setting.of(problem, epsilon, n=pair.first.n)
            prime = mechanism.guarantee(setting).epsilon
            assert prime is not None
            audit = audit_exact(mechanism, problem, epsilon, [pair], promised=Cost(prime))
            assert audit.passed
            assert prime >= epsilon
            worst = max(worst, audit.worst - float(epsilon))
            largest = max(largest, audit.worst / float(prime))
    if T == 1:
        assert worst > 0.3  # a guarantee of epsilon would be wrong
    assert largest > 0.1


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize(("R", "supports"), [(2, 10), (100, 75287520), (9, 10)])
def test_epsilon_prime_is_the_formula_of_theorem_1(T: int, R: int, supports: int) -> None:
    with decimal.localcontext(prec=60):
        for epsilon, n, delta in ((1, 50, 8), (Decimal("0.25"), 3000, 2), (5, 3, 8)):
            eta = Decimal(epsilon) / (2 * delta)
            q = Decimal(R) / supports
            gamma = Decimal(R) ** T * (n * eta).exp() / Decimal(supports) ** (T - 1)
            formula = (Decimal(epsilon).exp() + gamma).ln() - (1 - q**T).ln()
            span = Fraction(epsilon) * n / (2 * delta)
            found = epsilon_prime(Fraction(epsilon), span, R, supports, T)
            exact = Decimal(found.numerator) / found.denominator
            assert formula <= exact <= formula * (1 + Decimal(2) ** -20)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_score_passes_the_span_that_epsilon_prime_takes(loss: str) -> None:
    rng = np.random.default_rng(9)
    for constraint in CONSTRAINTS:
        problem = Problem.create(
            4, 2, constraint=constraint, prediction_bound=2.0, ridge=1.0, loss=loss
        )
        cells = np.asarray(STEPS * rng.integers(-1, 2, size=(5, 30)), dtype=np.int16)
        cells[-1] = STEPS * (2 * rng.integers(0, 2, size=30) - 1)  # as far out as y can be
        unit = Sensitivity.of(problem).score_step
        scores = enumerate_supports(GramData.of_cells(cells, "test"), problem, unit).scores
        assert scores.min() >= -1
        assert scores.max() <= 30 / unit + 1


def test_epsilon_prime_tends_to_epsilon() -> None:
    primes = [epsilon_prime(Fraction(1), Fraction(300), 100, 75287520, T) for T in (1, 20, 40, 60)]
    assert primes == sorted(primes, reverse=True)
    assert primes[0] > 300
    assert 1 <= primes[-1] < 1 + 1e-9


def test_finite_t_needs_a_public_n() -> None:
    bounds = dps.Bounds(x=1, y=1)
    x = np.random.default_rng(0).uniform(-1, 1, (40, 5))
    given: dict[str, Any] = {"y": x[:, 0], "bounds": bounds, "k": 2, "epsilon": 1}
    with pytest.raises(ArgumentError, match="private under add-remove"):
        dps.select(x, mechanism=TopR(T=3), neighbours="add-remove", **given)
    release = dps.select(x, mechanism=TopR(R=3, T=3), **given)
    assert release.guarantee.epsilon is not None
    assert release.guarantee.epsilon > 1
    assert set(release.guarantee.costs) == {"replace-one"}
    with pytest.raises(ArgumentError, match="number of rows"):
        TopR(R=3, T=3).guarantee(Setting.of(Problem.create(5, 2), 1))


# -- Mistakes ---------------------------------------------------------------------------------


def tie(n: int, noise: int = 4, seed: int = 0) -> Pair:
    """Neighbours on which one record decides between the best supports {0, 1} and {2, 3}."""
    rng = np.random.default_rng(seed)
    half = STEPS // 2
    y, e, f = rng.integers(-half, half + 1, size=(3, n))
    z = rng.integers(-STEPS, STEPS + 1, size=(n, noise))
    rest = np.column_stack([y + e, y - e, y + f, y - f, z, y])
    silent = [0] * noise
    one = [STEPS, STEPS, 0, 0, *silent, STEPS]
    other = [0, 0, STEPS, STEPS, *silent, STEPS]
    return Pair.of_records(np.vstack([rest, one]), np.vstack([rest, other]), f"tie, n = {n}")


def test_the_published_anchor_breaks_every_epsilon_and_ours_do_not() -> None:
    problem, epsilon = Problem.create(8, 2), Fraction(1)
    ratios = {}
    for n in (200, 1000, 4000):
        published = audit_exact(Mistakes(anchor="data"), problem, epsilon, [tie(n)])
        ratios[n] = published.worst
        assert published.passed == (n == 200)
        for ours in (Mistakes(), Mistakes(anchor=(0, 1)), Mistakes(anchor=(2, 3), form=FORMS[0])):
            audit = audit_exact(ours, problem, epsilon, [tie(n)])
            assert audit.worst < 0.5
    # It grows with n: no larger epsilon mends it.
    assert ratios[200] == pytest.approx(0.52, abs=0.05)
    assert ratios[1000] == pytest.approx(3.3, abs=0.3)
    assert ratios[4000] == pytest.approx(13.8, abs=0.8)
    assert not audit_exact(Mistakes(anchor="data"), problem, Fraction(10), [tie(4000)]).passed


def test_the_published_anchor_has_to_be_allowed_and_says_what_it_is() -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (50, 5))
    given: dict[str, Any] = {
        "y": x[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 2, "epsilon": 1, "seed": 3,
        "mechanism": "mistakes", "options": {"anchor": "data"},
    }  # fmt: skip
    with pytest.raises(ArgumentError, match="no privacy guarantee"):
        dps.select(x, **given)
    release = dps.select(x, **given, allow_unproven=True)
    assert not release.guarantee.proven
    assert release.guarantee.epsilon is None
    assert "NO PRIVACY GUARANTEE" in str(release.guarantee)
    assert "NO PRIVACY GUARANTEE" in release.statement()
    assert "Pure differential privacy" not in release.statement()
    assert release.to_dict()["guarantee"]["private"] is False
    assert release.to_dict()["guarantee"]["epsilon"] is None


def test_mistakes_by_its_definition() -> None:
    for i, recipe in enumerate(recipes(60)):
        data, setting = small(recipe)
        supports = [support for _, support in recipe.ranking]
        anchor = supports[(7 * i) % len(supports)]
        outcomes, logs = Mistakes(anchor=anchor).outcomes(data, setting) or ([], None)
        best: dict[int, int] = {}
        for score, support in recipe.ranking:
            best.setdefault(len(set(support) - set(anchor)), score)
        weight = float(
            setting.sensitivity.eta(setting.epsilon, "replace-one") * setting.sensitivity.score_step
        )
        counts = np.array([best[len(set(o or ()) - set(anchor))] for o in outcomes], dtype=float)
        q = np.exp(-weight * (counts - counts.min()))
        np.testing.assert_allclose(np.exp(logs), q / q.sum(), rtol=1e-9)


def test_a_private_anchor_costs_its_share() -> None:
    problem = Problem.create(6, 2)
    setting = Setting.of(problem, 1)
    first, second = Mistakes(share=Fraction(1, 4)).etas(setting)
    assert first * 3 == second
    assert Mistakes(share=Fraction(1, 4)).guarantee(setting).epsilon == 1
    assert Mistakes(anchor=(0, 1)).etas(setting)[0] == 0
    assert Mistakes(anchor=(0, 1)).guarantee(setting).epsilon == 1


class BestOfBucket(Mistakes):
    """Returns the best support of the drawn bucket, as a published implementation does."""

    def outcomes(self, data: Data, setting: Setting) -> tuple[list[Outcome], np.ndarray] | None:
        scored = enumerate_supports(data.gram, setting.problem, setting.sensitivity.score_step)
        listed, logs = super().outcomes(data, setting) or ([], np.empty(0))
        mistakes = (~np.isin(scored.supports, self.anchor)).sum(axis=1)
        moved = np.full(len(logs), -np.inf)
        for bucket in np.unique(mistakes):
            here = np.flatnonzero(mistakes == bucket)
            moved[here[np.argmin(scored.scores[here])]] = np.logaddexp.reduce(logs[here])
        return listed, moved


def test_the_best_of_a_bucket_instead_of_a_uniform_draw_is_caught() -> None:
    problem = Problem.create(5, 2)
    pairs = list(random_pairs(problem, 40, np.random.default_rng(3)))
    assert audit_exact(BestOfBucket(anchor=(0, 1)), problem, Fraction(5), pairs).worst == math.inf
    assert audit_exact(Mistakes(anchor=(0, 1)), problem, Fraction(5), pairs).passed


# -- penalised --------------------------------------------------------------------------------


def test_penalised_by_its_definition() -> None:
    for recipe in recipes(40):
        data, setting = small(recipe)
        problem, mechanism = recipe.problem, Penalised(phi=Fraction(1, 5))
        outcomes, logs = mechanism.outcomes(data, setting) or ([], None)
        unit = setting.sensitivity.score_step
        scores = {}
        always = len(problem.always_include)
        for size in range(always, problem.k + 1):
            scored = enumerate_supports(recipe.moments, replace(problem, k=size), unit)
            for i in range(len(scored)):
                scores[scored.support(i)] = float(scored.scores[i] * unit) + size / 5
        assert len(outcomes) == len(scores)
        f = np.array([scores[o] for o in outcomes])
        q = np.exp(-float(mechanism.eta(setting)) * (f - f.min()))
        # Phi is rounded to the grid of the scores.
        np.testing.assert_allclose(np.exp(logs), q / q.sum(), rtol=1e-3)


def test_no_variable_is_selected_where_none_explains_anything() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-1, 1, (2000, 30)), rng.uniform(-1, 1, 2000)
    given: dict[str, Any] = {"bounds": dps.Bounds(x=1, y=1), "k": 4, "mechanism": "penalised"}
    counts = dps.simulate(x, y=y, epsilon=4, draws=300, seed=1, **given)
    assert counts[()] > 250
    y = 0.5 * x[:, 3] + 0.4 * x[:, 8] + 0.05 * y
    counts = dps.simulate(x, y=y, epsilon=4, draws=300, seed=1, **given)
    assert counts[(3, 8)] > 250
    release = dps.select(x, y=y, epsilon=4, seed=1, **given)
    assert "the names of 2 of 30 variables" in release.statement()


def test_phi_lies_between_its_ends_and_follows_the_number_of_rows() -> None:
    setting = Setting.of(Problem.create(30, 4, neighbours="replace-one"), 1)
    mechanism = Penalised()
    unit, eta = setting.sensitivity.score_step, mechanism.eta(setting)
    found = [
        float(mechanism.penalty(replace(setting, n=n)) * unit) for n in (None, 0, 1, 4000, 10**9)
    ]
    least, most = math.log(math.comb(30, 4)) / 4 / float(eta), 2 * math.log(30) / float(eta)
    assert found == pytest.approx([least, least, least, 40, most], abs=1e-3)
    assert least < 40 < most
    # Under add-remove the number of rows is private, and nobody tells it.
    private = Setting.of(Problem.create(30, 4, neighbours="add-remove"), 1)
    assert mechanism.penalty(private) * unit * mechanism.eta(private) == pytest.approx(
        math.log(math.comb(30, 4)) / 4, rel=1e-3
    )


def test_no_evidence_is_no_reason_for_the_constant_alone() -> None:
    """All scores equal, as on an empty table: the empty set has the weight of all sets of k."""
    problem = Problem.create(6, 3)
    setting = replace(Setting.of(problem, 1), n=0)
    data = Data(GramData.from_moments(moments_of_records(np.zeros((0, 7), dtype=np.int64))))
    found = Penalised().outcomes(data, setting)
    assert found is not None
    sizes = np.array([len(support or ()) for support in found[0]])
    mass = np.bincount(sizes, np.exp(found[1]))
    assert mass[0] == pytest.approx(mass[3], rel=1e-2)
    assert mass[0] < 0.2


@pytest.mark.parametrize("chosen", [Penalised, ChooseSize])
def test_a_phi_that_follows_n_has_no_cost_under_add_remove(chosen: type[Penalised]) -> None:
    """The release states phi, and phi tells n."""
    setting = Setting.of(Problem.create(5, 2, prediction_bound=1.0), 1)
    tables = [replace(setting, n=n) for n in (2000, 2001)]
    details = [chosen().details(each) for each in tables]
    assert details[0] != details[1]
    assert set(chosen().guarantee(tables[0]).costs) == {"replace-one"}
    named = [chosen(phi=20).details(each) for each in tables]
    assert named[0] == named[1]
    assert set(chosen(phi=20).guarantee(tables[0]).costs) == {"replace-one", "add-remove"}
    private = Setting.of(Problem.create(5, 2, prediction_bound=1.0, neighbours="add-remove"), 1)
    assert set(chosen().guarantee(private).costs) == {"replace-one", "add-remove"}


def test_a_range_for_smaller_supports_is_caught() -> None:
    """One reach for all sizes: the range of one variable does not do for two."""
    problem = Problem.create(5, 2, prediction_bound=1.0, neighbours="add-remove")
    right = Sensitivity.of(problem)
    small_range = Sensitivity.of(replace(problem, k=1)).range
    assert small_range < right.range
    wrong = replace(right, range=small_range)
    pairs = list(worst_case_pairs(problem))
    mechanism = Penalised(phi=0)
    assert audit_exact(mechanism, problem, Fraction(1), pairs).passed
    assert not audit_exact(mechanism, problem, Fraction(1), pairs, sensitivity=wrong).passed


# -- choose-size ------------------------------------------------------------------------------


def test_choose_size_by_its_definition() -> None:
    """Sizes by their best scores, then sets: against both plain mechanisms, size by size."""
    recipe = Recipe(DESIGNS[0], "box", next(iter(REACHES)), 0.0, 3)
    problem, mechanism = recipe.problem, ChooseSize(phi=Fraction(1, 5), form="exponential")
    setting = Setting.of(problem, 2)
    found = mechanism.outcomes(Data(GramData.from_moments(recipe.moments)), setting)
    assert found is not None
    supports, logs = found
    assert np.exp(logs).sum() == pytest.approx(1)
    first, second = (float(eta) for eta in mechanism.etas(setting))
    scores: dict[int, dict[Any, float]] = {}
    for size in range(problem.k + 1):
        scored = enumerate_supports(
            recipe.moments, replace(problem, k=size), setting.sensitivity.score_step
        )
        values = scored.scores * float(scored.score_step)
        scores[size] = {scored.support(i): v for i, v in enumerate(values.tolist())}
    best = {s: min(each.values()) + s / 5 for s, each in scores.items()}
    of_size = {s: math.exp(-first * (g - min(best.values()))) for s, g in best.items()}
    for support, log in zip(supports, logs, strict=True):
        assert support is not None
        here = scores[len(support)]
        weights = {s: math.exp(-second * (v - min(here.values()))) for s, v in here.items()}
        expected = of_size[len(support)] / sum(of_size.values())
        expected *= weights[support] / sum(weights.values())
        assert math.exp(log) == pytest.approx(expected, rel=1e-3)


def test_draws_of_choose_size_follow_its_closed_form() -> None:
    recipe = Recipe(DESIGNS[0], "box", next(iter(REACHES)), 0.0, 3)
    setting = Setting.of(recipe.problem, 3)
    data = Data(GramData.from_moments(recipe.moments))
    for form in FORMS:
        mechanism = ChooseSize(phi=Fraction(1, 10), form=form)
        found = mechanism.outcomes(data, setting)
        assert found is not None
        expected = dict(zip(found[0], np.exp(found[1]).tolist(), strict=True))
        sampler, rng = mechanism.prepare(data, setting), Randomness(SeededSource(5))
        draws = 4000
        seen: dict[Any, int] = {}
        for _ in range(draws):
            support = sampler.draw(rng)
            seen[support] = seen.get(support, 0) + 1
        for support, chance in expected.items():
            slack = 6 * math.sqrt(draws * chance * (1 - chance)) + 1
            assert abs(seen.get(support, 0) - draws * chance) < slack


def test_a_size_that_is_not_paid_for_is_caught() -> None:
    class Free(ChooseSize):
        """Each step at all of epsilon."""

        def etas(self, setting: Setting) -> tuple[Fraction, Fraction]:
            eta = self.eta(setting)
            return eta, eta

    class FromTheData(ChooseSize):
        """The best size, without noise."""

        def etas(self, setting: Setting) -> tuple[Fraction, Fraction]:
            return 1000 * self.eta(setting), self.eta(setting)

    # Column 0 gains on all others, which as many as they are outweigh it, and on the empty set.
    problem = Problem.create(12, 1, prediction_bound=1.0, neighbours="add-remove")
    pairs = [*flattening_pairs(problem), *worst_case_pairs(problem)]
    for broken in (Free(phi=1000), FromTheData(phi=0), FromTheData(phi=1000)):
        assert not audit_exact(broken, problem, Fraction(1), pairs).passed
    for phi in (0, 1000, None):
        assert audit_exact(ChooseSize(phi=phi), problem, Fraction(1), pairs).passed


def test_choose_size_costs_what_it_was_given() -> None:
    for neighbours in NEIGHBOURS:
        setting = Setting.of(Problem.create(9, 3, neighbours=neighbours), 2)
        assert ChooseSize().guarantee(setting).epsilon == 2
        other = ChooseSize().guarantee(setting).costs
        assert set(other) == ({"replace-one"} if neighbours == "replace-one" else set(NEIGHBOURS))


def test_choose_size_finds_the_size() -> None:
    rng = np.random.default_rng(2)
    x, noise = rng.uniform(-1, 1, (3000, 30)), rng.uniform(-1, 1, 3000)
    y = 0.5 * x[:, 3] + 0.4 * x[:, 8] + 0.05 * noise
    given: dict[str, Any] = {"bounds": dps.Bounds(x=1, y=1), "k": 6, "mechanism": "choose-size"}
    counts = dps.simulate(x, y=y, epsilon=4, draws=20, seed=1, **given)
    assert counts[(3, 8)] > 15


# -- all of them ------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PROVEN, ids=repr)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_pair_contradicts_epsilon(mechanism: Mechanism, neighbours: str) -> None:
    rng = np.random.default_rng(len(repr(mechanism)))
    for constraint in CONSTRAINTS:
        for p, prediction_bound, ridge, epsilon in ((4, 0.5, 0.0, 1), (6, 1.6, 3.0, 4)):
            problem = Problem.create(
                p,
                2,
                constraint=constraint,
                prediction_bound=prediction_bound,
                ridge=ridge,
                neighbours=neighbours,
            )
            pairs = [*random_pairs(problem, 40, rng), *worst_case_pairs(problem)]
            audit = audit_exact(mechanism, problem, Fraction(epsilon), pairs)
            assert audit.passed, (audit.worst, audit.pair and audit.pair.label)


def doubled(mechanism: Mechanism) -> Mechanism:
    """Its twin that weighs scores twice as much as it may."""

    class Doubled(type(mechanism)):  # type: ignore[misc]
        def outcomes(self, data: Data, setting: Setting) -> tuple[list[Outcome], np.ndarray] | None:
            found: tuple[list[Outcome], np.ndarray] | None
            found = super().outcomes(data, replace(setting, epsilon=2 * setting.epsilon))
            return found

    return Doubled(**mechanism.options())


def favoured(problem: Problem, records: int) -> Pair:
    """Column 0 is better than all others by what so many records are worth, or by one less.

    Many records pin the coefficient of column 0 at -1 and all others at 1; a record that agrees
    with only one of the two then costs the other the whole range.
    """
    p = problem.p
    agree = np.append(np.where(np.arange(p) == 0, -STEPS, STEPS), STEPS)
    only_0 = np.append(np.full(p, -STEPS), STEPS)
    only_others = np.append(np.full(p, STEPS), STEPS)
    base = moments_of_records([agree, only_0], [20_000, records])
    one = moments_of_records([only_0])
    if problem.neighbours == "add-remove":
        return Pair(base, base + one, f"favoured by {records}")
    return Pair(base + moments_of_records([only_others]), base + one, f"favoured by {records}")


#: With so many variables, and column 0 favoured by so many records, what is audited comes close to
#: epsilon = 1: column 0 stays unlikely, yet more likely than its equals.
TIGHT: list[tuple[Mechanism, int, int, float]] = [
    (TopR(R=2), 40, 1, 0.9),
    (TopR(R=5, form="permute-and-flip"), 40, 1, 0.9),
    (TopR(), 40, 1, 0.9),
    (Mistakes(anchor=(0,)), 40, 1, 0.9),
    (Mistakes(anchor=(0,), form="permute-and-flip"), 40, 1, 0.9),
    (Mistakes(), 400, 17, 0.7),
    (Penalised(phi=0), 40, 1, 0.9),
    (Penalised(phi=0, form="permute-and-flip"), 40, 1, 0.9),
]


@pytest.mark.parametrize(("mechanism", "p", "records", "least"), TIGHT)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_twice_the_weight_is_caught(
    mechanism: Mechanism, p: int, records: int, least: float, neighbours: str
) -> None:
    problem = Problem.create(p, 1, prediction_bound=1.0, neighbours=neighbours)
    times = records if neighbours == "replace-one" else records // 2
    pairs = [favoured(problem, times), favoured(problem, times // 2)]
    right = audit_exact(mechanism, problem, Fraction(1), pairs)
    assert right.passed
    assert right.worst > least
    doubled = audit_exact(mechanism, problem, Fraction(2), pairs, promised=Cost(Fraction(1)))
    assert not doubled.passed
    halved = replace(Sensitivity.of(problem), range=Sensitivity.of(problem).range / 2)
    assert not audit_exact(mechanism, problem, Fraction(1), pairs, sensitivity=halved).passed


@pytest.mark.parametrize("mechanism", PROVEN, ids=repr)
def test_an_enormous_epsilon_leaves_the_best(mechanism: Mechanism) -> None:
    """Top-R and Mistakes: the best support, unless it ties with the R-th or with a bucket's."""
    clear = 0
    for recipe in recipes(30):
        problem = recipe.problem
        if isinstance(mechanism, Mistakes) and mechanism.anchor != "private":
            continue  # a public anchor leaves the best bucket, not the best support
        data, _ = small(recipe)
        setting = Setting.of(problem, 10**6, n=recipe.moments.n)
        outcomes, logs = mechanism.outcomes(data, setting) or ([], np.empty(0))
        likely = {o for o, log in zip(outcomes, logs, strict=True) if log > -12}
        drawn = mechanism.prepare(data, setting).draw(Randomness(SeededSource(recipe.seed)))
        assert drawn in likely
        if isinstance(mechanism, Penalised):
            continue
        (first, best), *others = recipe.ranking
        if len(others) > 1 and others[0][0] > first and logs.max() > -1e-3:
            clear += 1
            assert outcomes[int(np.argmax(logs))] == best == drawn
    assert (
        clear > 8 or isinstance(mechanism, Penalised) or mechanism.options().get("anchor") == (0, 1)
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TopR(R=0), "R must be at least 1"),
        (lambda: TopR(T=0), "T must be at least 1"),
        (lambda: TopR(R=2.5), "whole number"),  # type: ignore[arg-type]
        (lambda: TopR(form="loud"), "form must be one of"),
        (lambda: Mistakes(share=Fraction(0)), "share must lie"),
        (lambda: Mistakes(share="half"), "share must be a finite number"),  # type: ignore[arg-type]
        (lambda: Penalised(phi=-1), "phi must be"),
        (lambda: Penalised(phi=math.inf), "phi must be"),
        (lambda: Penalised(phi=math.nan), "phi must be"),
    ],
)
def test_wrong_options(build: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        build()


def test_anchors_that_are_no_supports() -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (50, 5))
    given: dict[str, Any] = {"y": x[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 2, "epsilon": 1}
    for anchor in ((0,), (0, 0), (0, 7), (-1, 0)):
        with pytest.raises(ArgumentError, match="anchor must name k = 2"):
            dps.select(x, mechanism=Mistakes(anchor=anchor), **given)
    with pytest.raises(ArgumentError, match="no feature 'zz'"):
        dps.select(x, mechanism=Mistakes(anchor=("x0", "zz")), **given)
    with pytest.raises(ArgumentError, match="always included"):
        dps.select(x, mechanism=Mistakes(anchor=("x0", "x1")), always_include=["x4"], **given)
    release = dps.select(x, mechanism=Mistakes(anchor=("x1", "x0")), **given)
    assert release.options["anchor"] == (0, 1)
