"""Costs add up: never to less than they are, and to no more than they need."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset.base.rounding import float_up
from dpsubset.mechanisms import Setting
from dpsubset.mechanisms.published.peeling import Peeling
from dpsubset.objective.problem import Problem
from dpsubset.privacy.accounting import epsilon_of
from dpsubset.privacy.guarantee import Cost, Guarantee, shown_cost
from dpsubset.privacy.relations import RELATIONS

EPSILONS = st.fractions(0, 20, max_denominator=10**6)
RHOS = st.fractions(0, 20, max_denominator=10**6)
DELTAS = st.integers(2, 60).map(lambda bits: Fraction(1, 2**bits))
PURE = EPSILONS.map(Cost)
CONCENTRATED = st.builds(Cost.concentrated, RHOS, DELTAS)
APPROXIMATE = st.builds(Cost, EPSILONS, DELTAS)
ANY = st.one_of(PURE, CONCENTRATED, APPROXIMATE)

DELTA = Fraction(1, 1000)

#: The alpha of a conversion is found in floats: so far it may be from the best.
SEARCH = Fraction(1, 10**6)


def total(costs: Sequence[Cost]) -> Cost:
    return reduce(lambda one, other: one + other, costs)


# --- Sums ---------------------------------------------------------------------------------------


@given(st.lists(ANY, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_neither_order_nor_brackets_matter(costs: list[Cost], random: object) -> None:
    shuffled = list(costs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert total(costs) == total(shuffled) == sum(costs)
    for cut in range(1, len(costs)):
        assert total(costs[:cut]) + total(costs[cut:]) == total(costs)


@given(ANY)
def test_a_sum_of_one_is_what_it_is(cost: Cost) -> None:
    assert sum([cost]) == cost
    assert (cost + Cost(Fraction(0))).epsilon == cost.epsilon
    assert (cost + Cost(Fraction(0))).delta == cost.delta


@given(st.lists(PURE, min_size=1, max_size=6))
def test_pure_costs_add_up_to_a_pure_one(costs: list[Cost]) -> None:
    found = total(costs)
    assert found.epsilon == sum(cost.epsilon for cost in costs)
    assert (found.delta, found.rho) == (0, None)


@given(st.lists(st.one_of(PURE, APPROXIMATE), min_size=1, max_size=6))
def test_approximate_costs_add_up_by_basic_composition(costs: list[Cost]) -> None:
    found = total(costs)
    assert found.epsilon == sum(cost.epsilon for cost in costs)
    assert found.delta == min(1, sum(cost.delta for cost in costs))
    assert found.rho is None


@given(st.lists(RHOS, min_size=1, max_size=6), DELTAS)
def test_concentrated_costs_are_converted_once(rhos: list[Fraction], delta: Fraction) -> None:
    found = total([Cost.concentrated(rho, delta) for rho in rhos])
    assert found.rho == sum(rhos)
    assert found.delta == delta
    assert found.epsilon == epsilon_of(sum(rhos, Fraction(0)), delta)


@given(st.lists(PURE, min_size=1, max_size=4), RHOS, DELTAS)
def test_pure_costs_among_concentrated_ones_count_the_cheaper_way(
    costs: list[Cost], rho: Fraction, delta: Fraction
) -> None:
    found = total([*costs, Cost.concentrated(rho, delta)])
    squares = sum((cost.epsilon**2 / 2 for cost in costs), Fraction(0))
    after = epsilon_of(rho, delta) + sum(cost.epsilon for cost in costs)
    assert found.epsilon == min(after, epsilon_of(rho + squares, delta))
    assert (found.rho, found.delta) == (rho + squares, delta)


def test_whole_numbers_are_rationals_too() -> None:
    """Their quotients are floats, and no float may get into a cost."""
    found = Cost(1) + Cost.concentrated(Fraction(1), DELTA) + Cost(1, DELTA)
    assert found == Cost(Fraction(1)) + Cost(Fraction(1), DELTA) + Cost.concentrated(1, DELTA)
    for term in (found, *found.terms):
        assert {type(term.epsilon), type(term.delta)} == {Fraction}
    assert type((Cost(1) + Cost.concentrated(Fraction(1), DELTA)).rho) is Fraction


def test_both_ways_occur() -> None:
    noise, delta = Cost.concentrated(Fraction(1, 100), Fraction(1, 10**6)), Fraction(1, 10**6)
    many = total([*[Cost(Fraction(1, 50))] * 50, noise])
    assert many.epsilon == epsilon_of(Fraction(1, 50), delta) < Fraction(1)
    few = Cost(Fraction(8)) + noise
    assert few.epsilon == epsilon_of(Fraction(1, 100), delta) + 8
    assert few.epsilon < epsilon_of(Fraction(1, 100) + 32, delta)


@given(st.lists(ANY, min_size=2, max_size=5))
def test_a_sum_is_never_above_basic_composition(costs: list[Cost]) -> None:
    """At the same delta, up to the search for alpha. A sum is shown at less delta than that."""
    found = total(costs)
    basic = sum((cost.epsilon for cost in costs), Fraction(0))
    concentrated = [cost for cost in costs if cost.kind == "concentrated"]
    assert found.delta <= sum(cost.delta for cost in costs)
    rho = sum((cost.rho for cost in concentrated if cost.rho is not None), Fraction(0))
    whole = sum((cost.delta for cost in concentrated), Fraction(0))
    if concentrated and whole < 1:
        rest = sum((c.epsilon for c in costs if c.kind != "concentrated"), Fraction(0))
        assert epsilon_of(rho, whole) + rest <= basic * (1 + SEARCH) + SEARCH * whole
    # What less delta costs is less than that delta for each of the costs.
    slack = len(concentrated) * max([c.delta for c in concentrated], default=Fraction(0))
    assert found.epsilon <= basic * (1 + SEARCH) + slack


@given(st.lists(ANY, min_size=2, max_size=5))
def test_a_sum_is_never_below_a_term(costs: list[Cost]) -> None:
    """At the delta of the sum: what is pure, or shown at less delta, costs less epsilon there."""
    found = total(costs)
    shown_at = max((c.delta for c in costs if c.kind == "concentrated"), default=Fraction(0))
    for cost in costs:
        least = cost.epsilon
        if shown_at and cost.kind == "concentrated" and cost.rho is not None:
            least = min(least, epsilon_of(cost.rho, shown_at))
        if shown_at and cost.kind == "pure":
            least = min(least, epsilon_of(cost.epsilon**2 / 2, shown_at))
        assert found.epsilon >= least * (1 - SEARCH) - SEARCH * shown_at
        assert found.delta >= cost.delta


def test_what_costs_are_not_made_of() -> None:
    for wrong in (0.5, np.float64(0.5), "1/2"):
        with pytest.raises(TypeError):
            Cost(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            Cost(Fraction(1), wrong)  # type: ignore[arg-type]
    for epsilon, delta in ((-1, 0), (1, -1), (1, 2)):
        with pytest.raises(ValueError, match="between"):
            Cost(Fraction(epsilon), Fraction(delta))
    with pytest.raises(ValueError, match="rho costs more"):
        Cost(Fraction(1, 100), Fraction(1, 1000), rho=Fraction(1))
    with pytest.raises(TypeError):
        Cost(Fraction(1)) + 1  # type: ignore[operator]
    assert total([Cost(Fraction(1), Fraction(2, 3))] * 2).delta == 1


# --- Sums against releases whose probabilities are known ---------------------------------------


#: All losses below are multiples of 1 / GRID: sums of integers are exact, and quick.
GRID = 115_200


@dataclass(frozen=True)
class Losses:
    """A privacy loss distribution: GRID log(P / P') and how likely it is under P.

    What is left out, and what rounding may hide, is at most ``missing``; what P' can never release
    has the loss None.
    """

    chances: dict[int | None, float]
    missing: float = 0.0

    def then(self, other: Losses) -> Losses:
        """Of both releases together."""
        found: dict[int | None, float] = {}
        for (one, p), (two, q) in itertools.product(self.chances.items(), other.chances.items()):
            loss = None if one is None or two is None else one + two
            found[loss] = found.get(loss, 0.0) + p * q
        return Losses(found, self.missing + other.missing + 1e-14)

    def delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Between which numbers the least delta for this epsilon lies."""
        sure = sum(
            p if loss is None else p * -math.expm1(min(0.0, float(epsilon) - loss / GRID))
            for loss, p in self.chances.items()
        )
        return sure - 1e-12, sure + self.missing + 1e-12


def laplace(scale: int) -> Losses:
    """Discrete Laplace noise, values one apart: the loss has two values."""
    decay = math.exp(-1 / scale)
    below = 1 / (1 + decay)  # P(z <= 0)
    return Losses({GRID // scale: below, -GRID // scale: 1 - below})


def gaussian(scale: int, moved: int = 1) -> Losses:
    """Discrete Gaussian noise, values ``moved`` apart, cut at nine scales."""
    z = np.arange(-9 * scale, 9 * scale + 1)
    weights = np.exp(-(z**2) / (2 * scale**2))
    chances = weights / weights.sum()
    losses = [moved * (moved - 2 * i) * (GRID // (2 * scale**2)) for i in z.tolist()]
    return Losses(dict(zip(losses, chances.tolist(), strict=True)), 1e-17)


def leak(epsilon: Fraction, delta: Fraction) -> Losses:
    """One of two answers, as epsilon allows, or with probability delta the record itself."""
    answer = float(1 - delta) / (1 + math.exp(-epsilon))
    loss = int(GRID * epsilon)
    return Losses({None: float(delta), loss: answer, -loss: float(1 - delta) - answer})


def cost_of_laplace(scale: int) -> Cost:
    return Cost(Fraction(1, scale))


def cost_of_gaussian(scale: int, delta: Fraction, moved: int = 1) -> Cost:
    return Cost.concentrated(Fraction(moved**2, 2 * scale**2), delta)


#: Releases in several steps: losses and costs of each.
Steps = list[tuple[Losses, Cost]]
CASES: dict[str, Steps] = {
    "two Laplace": [(laplace(2), cost_of_laplace(2)), (laplace(3), cost_of_laplace(3))],
    "two Gaussian": [(gaussian(3), cost_of_gaussian(3, DELTA))] * 2,
    "Gaussian of two sizes": [
        (gaussian(8), cost_of_gaussian(8, DELTA)),
        (gaussian(8, 4), cost_of_gaussian(8, DELTA, 4)),
    ],
    "Gaussian and large Laplace": [
        (gaussian(10), cost_of_gaussian(10, DELTA)),
        (laplace(1), cost_of_laplace(1)),
    ],
    "Gaussian and many small Laplace": [
        (gaussian(10), cost_of_gaussian(10, DELTA)),
        *[(laplace(20), cost_of_laplace(20))] * 12,
    ],
    "five faint Gaussian": [(gaussian(16), cost_of_gaussian(16, Fraction(3, 64)))] * 5,
    "two leaks": [(leak(Fraction(1, 2), DELTA), Cost(Fraction(1, 2), DELTA))] * 2,
    "a leak and Gaussian": [
        (leak(Fraction(1, 2), DELTA), Cost(Fraction(1, 2), DELTA)),
        (gaussian(4), cost_of_gaussian(4, DELTA)),
    ],
    "all kinds": [
        (leak(Fraction(1, 2), DELTA), Cost(Fraction(1, 2), DELTA)),
        (gaussian(4), cost_of_gaussian(4, DELTA)),
        (laplace(3), cost_of_laplace(3)),
    ],
}


def together(steps: Steps) -> Losses:
    return reduce(Losses.then, [losses for losses, _ in steps])


def kept(steps: Steps, claimed: Cost) -> bool | None:
    """Whether the steps together keep a cost; None where the margins are too wide to tell."""
    low, high = together(steps).delta(claimed.epsilon)
    if high <= claimed.delta + Fraction(1, 10**11):
        return True
    return False if low > claimed.delta else None


@pytest.mark.parametrize("scale", [1, 2, 3, 4, 8, 10, 16, 20])
def test_losses_are_on_the_grid(scale: int) -> None:
    assert GRID % scale == 0
    assert GRID % (2 * scale**2) == 0 or scale == 20
    # P' is a probability too: exp(-loss) has mean 1 under P.
    for losses in (laplace(scale), *([gaussian(scale)] if scale != 20 else [])):
        mean = sum(p * math.exp(-(loss or 0) / GRID) for loss, p in losses.chances.items())
        assert mean == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_steps_keep_their_sum(name: str) -> None:
    steps = CASES[name]
    for step in steps:
        assert kept([step], step[1]) is True
    assert kept(steps, total([cost for _, cost in steps])) is True


def test_sums_are_sharp_where_they_can_be() -> None:
    """A little less epsilon, or delta, would not be kept."""
    for name, share in {"two Laplace": 0.999, "two leaks": 0.999, "two Gaussian": 0.8}.items():
        steps = CASES[name]
        cost = total([cost for _, cost in steps])
        assert kept(steps, Cost(cost.epsilon * Fraction(share), cost.delta)) is False
    steps = CASES["two leaks"]
    cost = total([cost for _, cost in steps])
    assert kept(steps, Cost(cost.epsilon, cost.delta * Fraction(9, 10))) is False


# Twins that compose wrongly, and where that shows.


def forgets_one(costs: Sequence[Cost]) -> Cost:
    return total(costs[:-1])


def converts_each_at_the_full_delta(costs: Sequence[Cost]) -> Cost:
    epsilon = sum((cost.epsilon for cost in costs), Fraction(0))
    return Cost(epsilon, max(cost.delta for cost in costs))


def takes_epsilon_for_rho(costs: Sequence[Cost]) -> Cost:
    """Epsilon^2 / 8, which holds for the exponential mechanism and not for all that is pure."""
    rhos = [cost.epsilon**2 / 8 if cost.rho is None else cost.rho for cost in costs]
    delta = max(cost.delta for cost in costs)
    return Cost.concentrated(sum(rhos, Fraction(0)), delta)


def takes_the_largest(costs: Sequence[Cost]) -> Cost:
    return max(costs, key=lambda cost: cost.epsilon)


def adds_in_squares(costs: Sequence[Cost]) -> Cost:
    """Root of the sum of squares, as standard deviations add up."""
    square = sum(cost.epsilon**2 for cost in costs)
    return Cost(Fraction(math.sqrt(square)), min(sum(c.delta for c in costs), Fraction(1)))


TWINS: list[tuple[Callable[[Sequence[Cost]], Cost], str]] = [
    (forgets_one, "two Laplace"),
    (forgets_one, "two Gaussian"),
    (forgets_one, "Gaussian of two sizes"),
    (forgets_one, "Gaussian and large Laplace"),
    (forgets_one, "two leaks"),
    (forgets_one, "all kinds"),
    (converts_each_at_the_full_delta, "five faint Gaussian"),
    (converts_each_at_the_full_delta, "two leaks"),
    (takes_epsilon_for_rho, "Gaussian and many small Laplace"),
    (takes_the_largest, "two Laplace"),
    (takes_the_largest, "two Gaussian"),
    (adds_in_squares, "two Laplace"),
    (adds_in_squares, "two leaks"),
]


@pytest.mark.parametrize(("twin", "name"), TWINS, ids=lambda x: getattr(x, "__name__", x))
def test_broken_sums_are_caught(twin: Callable[[Sequence[Cost]], Cost], name: str) -> None:
    steps = CASES[name]
    assert kept(steps, twin([cost for _, cost in steps])) is False


# --- Guarantees ---------------------------------------------------------------------------------


def guarantee(replaced: Cost | None, added: Cost | None, **more: object) -> Guarantee:
    costs = {"replace-one": replaced, "add-remove": added}
    known = {relation: cost for relation, cost in costs.items() if cost is not None}
    return Guarantee("replace-one", known, **more)  # type: ignore[arg-type]


SCALE = guarantee(Cost(Fraction(1, 4)), Cost(Fraction(1, 8)))
PICKS = guarantee(
    Cost.concentrated(Fraction(1, 50), DELTA), Cost.concentrated(Fraction(1, 200), DELTA)
)


def test_parts_and_total() -> None:
    found = Guarantee.compose({"scale": SCALE, "selection": PICKS})
    assert found.parts == (("scale", SCALE), ("selection", PICKS))
    assert set(found.costs) == {"replace-one", "add-remove"}
    for relation, cost in found.costs.items():
        assert cost == SCALE.costs[relation] + PICKS.costs[relation]
    assert found.private
    assert found.rho == Fraction(1, 50) + Fraction(1, 32)
    assert PICKS.rho == Fraction(1, 50)
    assert SCALE.rho is None


def test_a_total_is_no_better_than_its_parts() -> None:
    seeded, assuming = replace(SCALE, seeded=True), replace(PICKS, assumes="the chain has mixed")
    assert Guarantee.compose({"a": seeded, "b": PICKS}).seeded
    found = Guarantee.compose({"a": assuming, "b": SCALE, "c": assuming})
    assert found.assumes == "the chain has mixed"
    assert not found.private
    other = replace(SCALE, assumes="it does not rain")
    assert Guarantee.compose({"a": assuming, "b": other}).assumes == (
        "the chain has mixed; and it does not rain"
    )
    # Where nothing is known of a part, nothing is known of the whole.
    public = guarantee(Cost(Fraction(1)), None)
    assert set(Guarantee.compose({"a": SCALE, "b": public}).costs) == {"replace-one"}
    none = Guarantee.compose({"a": SCALE, "b": guarantee(None, None)})
    assert not none.proven
    assert (none.epsilon, none.delta, none.rho) == (None, 1, None)
    assert str(none) == "NO PRIVACY GUARANTEE"


def test_parts_of_different_neighbours_have_no_total() -> None:
    with pytest.raises(ValueError, match="same neighbours"):
        Guarantee.compose({"a": SCALE, "b": replace(PICKS, neighbours="add-remove")})
    with pytest.raises(ValueError, match="one or more"):
        Guarantee.compose({})


def test_parts_are_shown() -> None:
    found = Guarantee.compose({"scale": SCALE, "selection": PICKS})
    assert "the total of scale (epsilon = 0.25) and selection (epsilon = " in str(found)
    x = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    plain = dps.select(x, y=x[:, 0], bounds=dps.Bounds((-1, 1), (-1, 1)), k=1, epsilon=1,
                       response_range="declared")  # fmt: skip
    release = replace(plain, guarantee=found)
    statement = release.statement()
    assert shown_cost(found.costs["replace-one"]) in statement
    assert "- It is the total of scale (epsilon = 0.25) and selection (epsilon = " in statement
    assert (
        "zero-concentrated differential privacy, the release has rho = 0.05125 under" in statement
    )
    written = json.loads(release.to_json())["guarantee"]
    assert [part["name"] for part in written["parts"]] == ["scale", "selection"]
    scale, selection = written["parts"]
    assert scale["epsilon_exact"] == "1/4"
    assert scale["epsilon_if_add_remove"] == 0.125
    assert "rho" not in scale
    assert selection["rho"] == float_up(Fraction(1, 50))
    assert selection["rho_if_add_remove"] == float_up(Fraction(1, 200))
    assert written["rho"] == float_up(Fraction(41, 800))
    # A release in one step says nothing of parts, and a pure one nothing of rho.
    assert not {"parts", "rho"} & set(json.loads(plain.to_json())["guarantee"])
    assert "total" not in plain.statement()
    assert "oncentrated" not in plain.statement()


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_rho_of_rounds_is_kept(neighbours: str) -> None:
    setting = Setting.of(
        Problem.create(50, 20, neighbours=neighbours, intercept=False), 1, Fraction(1, 10**6)
    )
    rounds = Peeling().rounds(setting)
    found = Peeling().guarantee(setting)
    assert rounds.measure == "zcdp"
    assert found.rho == rounds.total
    assert found.costs["replace-one"].rho == 4 * found.costs["add-remove"].rho
    twice = Guarantee.compose({"one": found, "other": found})
    assert twice.epsilon == epsilon_of(2 * rounds.total, setting.delta) < 2 * found.epsilon


# --- Plain values -------------------------------------------------------------------------------


@given(ANY, st.one_of(ANY, st.none()), st.booleans(), st.sampled_from([None, "pigs have wings"]))
def test_guarantees_are_read_as_they_were_written(
    cost: Cost, other: Cost | None, seeded: bool, assumes: str | None
) -> None:
    costs = {"replace-one": cost} | ({} if other is None else {"add-remove": other})
    whole = Guarantee("replace-one", costs, seeded, assumes)  # type: ignore[arg-type]
    several = Guarantee.compose({"one": whole, "two": whole})
    for g in (whole, several, Guarantee("replace-one", {}, seeded)):
        facts = json.loads(json.dumps(g.to_dict(unit="one row")))
        assert list(facts)[6:8] == ["neighbours", "unit"]
        again = Guarantee.from_dict(facts)
        assert again == g or g is several  # whose sums come back from their parts
        assert again.to_dict(unit="one row") == facts


def test_plain_values_of_a_guarantee() -> None:
    g = Guarantee(
        "replace-one",
        {"replace-one": Cost.concentrated(Fraction(1, 50), DELTA),
         "add-remove": Cost(Fraction(1, 3), bounded_range=True)},
    )  # fmt: skip
    facts = g.to_dict()
    assert list(facts) == [
        "private", "seeded", "epsilon", "epsilon_exact", "delta", "assumes", "neighbours",
        "epsilon_if_replace_one", "delta_if_replace_one", "epsilon_if_add_remove",
        "delta_if_add_remove", "rho", "rho_if_replace_one", "rho_if_add_remove", "costs",
    ]  # fmt: skip
    assert facts["rho_if_add_remove"] is None
    assert Fraction(facts["epsilon_if_add_remove"]) >= Fraction(1, 3)
    assert facts["costs"]["add-remove"] == {
        "epsilon": "1/3", "delta": "0", "rho": None, "bounded_range": True
    }  # fmt: skip


def test_the_largest_cost_covers_each() -> None:
    """Of a step whose setting an earlier step determines."""
    pure = [Cost(Fraction(1)), Cost(Fraction(2), bounded_range=True)]
    assert Cost.largest(pure) == Cost(Fraction(2))
    assert Cost.largest(pure[1:] * 2) == pure[1]
    delta = Cost(Fraction(1), Fraction(1, 10**6))
    assert Cost.largest([*pure, delta]) == Cost(Fraction(2), Fraction(1, 10**6))
    some = [Cost.concentrated(Fraction(rho), Fraction(1, 10**6)) for rho in (1, 2)]
    assert Cost.largest(some) == some[1]
    assert Cost.largest([*some, pure[0]]).rho is None
    assert Cost.largest([*some, pure[0]]).epsilon == some[1].epsilon


def test_the_largest_guarantee_has_the_relations_of_all() -> None:
    one = Guarantee("replace-one", {each: Cost(Fraction(1)) for each in RELATIONS})
    other = Guarantee("replace-one", {"replace-one": Cost(Fraction(1, 2))})
    assert Guarantee.largest([one, other]) == Guarantee(
        "replace-one", {"replace-one": Cost(Fraction(1))}
    )
    with pytest.raises(ValueError, match="more than their costs"):
        Guarantee.largest([one, replace(one, assumes="something")])
