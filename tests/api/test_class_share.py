"""The class share of a response of two labels: what is released, paid for and used."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.api.request import (
    SELECTION,
    SHARE,
    ChosenRange,
    SelectionRequest,
    build_request,
    sampler_of,
)
from dpsubset.base.errors import ArgumentError
from dpsubset.data.quantize import STEPS
from dpsubset.data.readers.passes import Passes
from dpsubset.mechanisms import Setting
from dpsubset.mechanisms.permute_and_flip import PermuteAndFlip
from dpsubset.objective.problem import LABELS_PREDICTION_BOUND
from dpsubset.privacy.class_share import BOUNDS, GRID, ClassShare, LabelCounts, ShareRule
from dpsubset.privacy.relations import RELATIONS, Neighbours

Table = np.ndarray
Pair = tuple[Table, Table]
#: Logarithm of the probability of released counts, up to a constant, given the true ones.
Law = Callable[[SelectionRequest, tuple[int, ...], LabelCounts], float]

EPSILON = Fraction(1)
SLACK = 1e-9
BOUNDS_OF_X = dps.Bounds(x=1, labels=(-1, 1))
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)

#: Some of the counts that may be released from any table.
RELEASED = [
    LabelCounts(first, second)
    for first, second in (
        (0, 0), (3, 2), (2, 3), (4, 1), (-9, 4), (7, -1), (40, 2), (5, 90), (900, 1100),
        (10**6, 10**4), (10**9 + 1000, 10**9),
    )
]  # fmt: skip


def planned(neighbours: Neighbours = "replace-one", k: int = 1, **asked: Any) -> SelectionRequest:
    return build_request(
        np.zeros((1, 3)), bounds=BOUNDS_OF_X, y=np.zeros(1), k=k, epsilon=EPSILON,
        neighbours=neighbours, **{"mechanism": "exponential", **asked},
    )  # fmt: skip


def table_of(n: int = 600, p: int = 4, share: float = 0.2, seed: int = 0) -> tuple[Table, Table]:
    """Columns of which the first raises the chance of the label 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, p))
    y = np.where(rng.uniform(size=n) < share * (1 + x[:, 0]), 1.0, -1.0)
    return x, y


# -- the composed release, by enumeration ----------------------------------------------------------


def drawn(asked: SelectionRequest, values: tuple[int, ...], released: LabelCounts) -> float:
    """The law of the counts as they are drawn."""
    far = max(abs(released.first - values[0]), abs(released.second - values[1]))
    return -float(asked.range_epsilon) * far


def joint(asked: SelectionRequest, table: Table, law: Law = drawn) -> Table:
    """Logarithms of P(counts, support), up to a constant: one row for each of some counts."""
    sealed = asked.open(table[:, :-1], table[:, -1])
    histogram, _ = sealed.count_response()
    assert asked.response_range is not None
    sampler = sampler_of(asked.response_range, histogram, asked.range_epsilon, asked.neighbours)
    rows = []
    for released in RELEASED:
        known, data = asked.read(sealed, None, released)
        outcomes = known.mechanism.outcomes(data, known.setting)
        assert outcomes is not None
        rows.append(law(asked, sampler.values, released) + outcomes[1])
    return np.array(rows)


def largest(asked: SelectionRequest, pairs: Iterable[Pair], law: Law = drawn) -> float:
    """The largest |log ratio| of the probability of an outcome."""
    worst = 0.0
    for pair in pairs:
        first, second = (joint(asked, table, law) for table in pair)
        if (np.isinf(first) != np.isinf(second)).any():
            return math.inf
        known = ~np.isinf(first)
        worst = max(worst, float(np.abs(first[known] - second[known]).max()))
    return worst


def small_pairs(relation: Neighbours, count: int = 7) -> Iterator[Pair]:
    """Tables of 4 to 6 rows with cells at the ends and in the middle; some labels are missing."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        table = rng.integers(-1, 2, (int(rng.integers(4, 7)), 4)).astype(float)
        table[:, -1] = rng.choice([-1, 1, np.nan], len(table), p=[0.45, 0.45, 0.1])
        other = table.copy()
        if relation == "add-remove":
            yield table, table[1:]
        else:
            other[0] = np.append(rng.integers(-1, 2, 3), rng.choice([-1, 1]))
            yield table, other


@functools.cache
def contrary_pair(relation: Neighbours, half: int = 150) -> Pair:
    """One row moves a count and the selection as far as it can, both at once.

    The other rows are explained by two variables, and less well by the negative of the first; the
    row contradicts these two, or that one.
    """
    y = np.repeat([-1.0, 1.0], half)
    rest = np.column_stack([-y, y, y, y])
    rest[::3, 0] = 0
    one, other = [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -1.0]
    if relation == "add-remove":
        return rest, np.vstack([rest, other])
    return np.vstack([rest, one]), np.vstack([rest, other])


@each_relation
@pytest.mark.parametrize(
    "asked",
    [{}, {"mechanism": "permute-and-flip"}, {"k": 2}, {"intercept": False, "prediction_bound": 1}],
    ids=str,
)
def test_no_neighbours_contradict_the_sum(neighbours: Neighbours, asked: dict[str, Any]) -> None:
    request = planned(neighbours, **asked)
    promised = request.with_rows(5).guarantee
    assert promised.epsilon == EPSILON
    assert [name for name, _ in promised.parts] == [SHARE, SELECTION]
    for relation in RELATIONS:
        worst = largest(request, [*small_pairs(relation), contrary_pair(relation)])
        assert 0.1 < worst <= float(promised.costs[relation].epsilon) + SLACK


@each_relation
def test_contrary_neighbours_come_near_to_the_sum(neighbours: Neighbours) -> None:
    asked = planned(neighbours, intercept=False, prediction_bound=1)
    for relation in RELATIONS:
        cost = float(asked.guarantee.costs[relation].epsilon)
        assert 0.9 * cost < largest(asked, [contrary_pair(relation)]) <= cost + SLACK


# Broken twins


@each_relation
def test_a_share_that_is_not_charged_is_caught(neighbours: Neighbours) -> None:
    asked = planned(neighbours, intercept=False, prediction_bound=1)
    paid = with_fifth(asked)

    def law(_: SelectionRequest, values: tuple[int, ...], released: LabelCounts) -> float:
        return drawn(paid, values, released)

    assert largest(paid, [contrary_pair(neighbours)]) <= float(EPSILON) + SLACK
    assert largest(asked, [contrary_pair(neighbours)], law) > float(EPSILON) * 1.05


def with_fifth(asked: SelectionRequest) -> SelectionRequest:
    """A request whose share has a fifth of epsilon."""
    return asked.with_range(ChosenRange(ClassShare(budget_fraction=Fraction(1, 5))))


@each_relation
def test_counts_without_noise_are_caught(neighbours: Neighbours) -> None:
    def law(_: SelectionRequest, values: tuple[int, ...], released: LabelCounts) -> float:
        return 0.0 if (released.first, released.second) == values else -math.inf

    table = np.array([[0, 0, 0, -1]] * 3 + [[0, 0, 0, 1]] * 2, float)
    other = np.array(
        [[0, 0, 0, -1]] * 2 + [[0, 0, 0, 1]] * (3 if neighbours == "replace-one" else 2)
    )
    pair = (table, other.astype(float))
    assert largest(planned(neighbours), [pair]) <= float(EPSILON) + SLACK
    assert largest(planned(neighbours), [pair], law) == math.inf


@each_relation
def test_half_of_the_noise_is_caught(neighbours: Neighbours) -> None:
    asked = planned(neighbours, intercept=False, prediction_bound=1)
    asked = with_fifth(asked)

    def law(request: SelectionRequest, values: tuple[int, ...], released: LabelCounts) -> float:
        return 2 * drawn(request, values, released)

    assert largest(asked, [contrary_pair(neighbours)]) <= float(EPSILON) + SLACK
    assert largest(asked, [contrary_pair(neighbours)], law) > float(EPSILON) * 1.05


@each_relation
def test_a_prediction_bound_of_the_true_share_is_caught(
    neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release states the bound, so that it would tell the exact share."""
    asked = planned(neighbours)
    few, more = (np.array([[0, 0, 0, -1]] * 9 + [[0, 0, 0, 1]] * count, float) for count in (1, 2))
    if neighbours == "replace-one":
        few = np.vstack([few, [0, 0, 0, -1]])

    def bound_of_true_share(table: Table) -> float:
        return ShareRule().prediction_bound(
            LabelCounts(*(int((table[:, -1] == label).sum()) for label in (-1, 1))), EPSILON * 500
        )

    stated = bound_of_true_share(few), bound_of_true_share(more)

    def told(table: Table) -> Table:
        """Logarithms of P(counts, bound, support), for both bounds that may be stated."""
        own = bound_of_true_share(table)
        with monkeypatch.context() as patch:
            patch.setattr(ShareRule, "prediction_bound", lambda self, counts, epsilon: own)
            logs = joint(asked, table)
        return np.array([logs if bound == own else np.full_like(logs, -np.inf) for bound in stated])

    first, second = told(few), told(more)
    assert (np.isinf(first) != np.isinf(second)).any()


# -- the price -------------------------------------------------------------------------------------


@each_relation
def test_the_price_covers_every_prediction_bound_and_is_known_before(
    neighbours: Neighbours,
) -> None:
    asked = planned(neighbours)
    stated = dict(asked.guarantee.parts)[SELECTION]
    assert len(asked.settings) == len(BOUNDS)
    for relation in RELATIONS:
        costs = [asked.mechanism.guarantee(each).costs[relation] for each in asked.settings]
        assert stated.costs[relation].epsilon == max(cost.epsilon for cost in costs)
    for released in RELEASED:
        known, _ = asked.with_released(released)
        assert known.setting in known.settings
        assert known.guarantee == asked.guarantee
    share = dict(asked.guarantee.parts)[SHARE]
    assert {cost.epsilon for cost in share.costs.values()} == {EPSILON / 20}


@each_relation
def test_a_release_costs_what_price_says(neighbours: Neighbours) -> None:
    x, y = table_of(200)
    given: dict[str, Any] = {"bounds": BOUNDS_OF_X, "k": 1, "epsilon": 1, "neighbours": neighbours}
    release = dps.select(x, y=y, **given)
    assert dps.price(x, y=y, **given).guarantee == release.guarantee
    assert set(release.guarantee.costs) == set(RELATIONS)
    assert release.rows is None


@dataclass(frozen=True)
class Picky(PermuteAndFlip):
    """Refuses small prediction bounds."""

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if setting.problem.prediction_bound < Fraction(1, 4):
            raise ArgumentError("too small a bound")


def test_a_mechanism_that_refuses_a_bound_is_refused_before_anything_is_spent() -> None:
    x, y = table_of(100)
    with pytest.raises(ArgumentError, match="too small a bound"):
        dps.select(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=1, mechanism=Picky())
    dps.select(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=1, mechanism=Picky(), prediction_bound=1)


def test_rows_per_unit_divide_every_step() -> None:
    x, y = table_of(300)
    schema = replace(BOUNDS_OF_X.schema([f"x{j}" for j in range(4)]), rows_per_unit=3)
    release = dps.select(x, schema, y=y, k=1, epsilon=3)
    assert release.guarantee.epsilon == 3
    asked = build_request(x, schema, y=y, k=1, epsilon=3)
    assert (asked.range_epsilon, asked.setting.epsilon) == (Fraction(1, 20), Fraction(19, 20))


# -- what follows from the counts ------------------------------------------------------------------


@pytest.mark.parametrize("released", RELEASED, ids=str)
@pytest.mark.parametrize("bound", [0.01, 0.3, 1, 1e9])
def test_labels_are_centred_within_the_grid(released: LabelCounts, bound: float) -> None:
    images = released.centred(bound).images(STEPS)
    low, high = int(images[0]), int(images[-1])
    assert -STEPS <= low < 0 < high <= STEPS
    assert STEPS in (-low, high)
    share = released.share
    assert 1 / GRID <= share <= 1 - 1 / GRID
    # The rarer label is the farther one.
    if share < Fraction(1, 2):
        assert high == STEPS
    if share > Fraction(1, 2):
        assert low == -STEPS
    other = LabelCounts(released.second, released.first).centred(bound).images(STEPS)
    if share != Fraction(1, 2):
        assert (int(other[0]), int(other[-1])) == (-high, -low)


def test_without_an_intercept_the_centre_is_the_share() -> None:
    counts = LabelCounts(900, 100)
    _, used = planned(intercept=False).with_released(counts)
    assert used is not None
    assert (used.centre / STEPS + 1) / 2 == counts.share
    _, beside = planned().with_released(counts)
    assert beside is not None
    assert beside.centre > used.centre


def test_the_prediction_bound_grows_with_rows_and_epsilon_and_is_one_of_the_priced() -> None:
    rule = ShareRule()
    for share in (0.01, 0.1, 0.5, 0.9):
        bounds = [
            rule.prediction_bound(LabelCounts(round(n * (1 - share)), round(n * share)), EPSILON)
            for n in np.geomspace(100, 1e9, 60).astype(int)
        ]
        assert bounds == sorted(bounds)
        assert set(bounds) <= set(BOUNDS)
        assert bounds[0] < bounds[-1]
    assert rule.prediction_bound(LabelCounts(-5, -7), EPSILON) in BOUNDS


def test_a_bound_of_the_caller_is_kept() -> None:
    asked = planned(prediction_bound=0.5)
    assert asked.settings == (asked.setting,)
    for released in RELEASED:
        known, _ = asked.with_released(released)
        assert known.problem == asked.problem


# -- which requests have a share -------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber"])
def test_other_losses_keep_labels_of_minus_one_and_one(loss: str) -> None:
    assert planned(loss=loss).source is None
    with pytest.raises(ArgumentError, match="two labels has no range"):
        planned(loss=loss, response_range="private")


def test_declared_keeps_labels_of_minus_one_and_one() -> None:
    asked = planned(response_range="declared")
    assert asked.source is None
    assert float(asked.problem.prediction_bound) == pytest.approx(LABELS_PREDICTION_BOUND)
    assert planned(response_range="private") == planned()


def test_moments_keep_labels_of_minus_one_and_one() -> None:
    x, y = table_of(100)
    schema = BOUNDS_OF_X.schema([f"x{j}" for j in range(4)])
    moments = dps.Moments.from_blocks(schema, [(x, y)])
    assert dps.select(moments, schema, k=1, epsilon=1).class_share is None
    with pytest.raises(ArgumentError, match="moments hold the response"):
        dps.select(moments, schema, k=1, epsilon=1, response_range="private")


# -- releases --------------------------------------------------------------------------------------


def test_rows_without_a_label_count_in_neither() -> None:
    asked = planned()
    x, y = table_of(60, p=3)
    bad = y.copy()
    bad[::4] = [math.nan, 7, 0.5] * 5
    counts = []
    for response in (np.delete(y, np.s_[::4]), bad):
        sealed = asked.open(x[: len(response)], response)
        counts.append(sealed.count_response()[0])
    assert (counts[0] == counts[1]).all()
    assert counts[0].sum() == 45


@pytest.mark.parametrize("make", [dps.select, dps.fit])
def test_a_release_states_the_share_and_reads_back(make: Any) -> None:
    x, y = table_of(2000, share=0.1)
    release = make(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=20)
    shown = release.class_share
    # 0.02 and 12: noise that is exceeded with probability below 1e-6.
    assert abs(shown.share - (y > 0).mean()) < 0.05
    assert abs(shown.counts[1] - (y > 0).sum()) < 120
    assert "% of the labels are 1" in str(release)
    again = dps.Release.from_json(release.to_json(), release.schema)
    assert again == release
    assert again.statement() == release.statement()
    for text in ("The share of each label was released first", "the labels were centred",
                 "class_share.md", "audit class-share"):  # fmt: skip
        assert text in release.statement()
    least, most = shown.predictions(release.problem.prediction_bound)
    assert least < shown.share < most


def test_a_seed_reproduces_the_share() -> None:
    x, y = table_of(300)
    one, two = (dps.select(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=1, seed=4) for _ in range(2))
    assert one == two
    assert one.guarantee.seeded


def test_a_fit_is_of_labels_of_minus_one_and_one() -> None:
    x, y = table_of(2000, p=2)
    models = [
        dps.fit(x, y=y, bounds=BOUNDS_OF_X, k=2, epsilon=10**5, response_range=which).model
        for which in ("private", "declared")
    ]
    first, second = (np.array(model.predict(x)) for model in models)
    assert np.abs(first - second).max() < 0.02


def test_a_private_search_draws_the_share_once() -> None:
    x, y = table_of(400)
    release = dps.tune(x, y=y, bounds=BOUNDS_OF_X, grid={"k": [1, 2]}, epsilon=50, seed=1)
    assert [name for name, _ in release.guarantee.parts] == [SHARE, "the search"]
    assert release.class_share is not None


def test_simulated_draws_have_their_own_share_and_bound() -> None:
    x, y = table_of(800, share=0.1)
    counts = dps.simulate(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=30, draws=20)
    assert counts == {(0,): 20}


def test_the_exact_counts_are_hidden() -> None:
    x, y = table_of(50, p=3)
    sampler = planned().range_sampler(planned().open(x, y), Passes(None, True, 2))[1]
    assert "hidden" in repr(sampler)
    assert str(int((y > 0).sum())) not in repr(sampler)


def test_a_fit_on_an_earlier_release_keeps_the_share() -> None:
    x, y = table_of(800)
    first = dps.select(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=1)
    both = dps.fit_released(first, x, y=y, epsilon=2)
    assert both.class_share == first.class_share
    assert [name for name, _ in both.guarantee.parts] == [SHARE, SELECTION, "the fit"]
    assert dps.Release.from_json(both.to_json(), both.schema) == both


def test_files_of_earlier_versions_have_no_share() -> None:
    x, y = table_of(300)
    earlier = dps.select(x, y=y, bounds=BOUNDS_OF_X, k=1, epsilon=1, response_range="declared")
    facts = earlier.to_dict()
    assert "class_share" not in facts
    again = dps.Release.from_json(earlier.to_json(), earlier.schema)
    assert again.class_share is None
    assert "share of each label" not in again.statement()
