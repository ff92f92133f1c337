"""Events, and what several of them cost together: exact, in any order, and no less than it is."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset.base.errors import LedgerError
from dpsubset.ledger.canonical import canonical, parse_rational, without_floats
from dpsubset.ledger.composition import Limit, Totals
from dpsubset.ledger.event import Event
from dpsubset.privacy.accounting import epsilon_of
from dpsubset.privacy.guarantee import Cost, Guarantee
from dpsubset.privacy.quantiles import QuantileRule, rank_errors
from dpsubset.privacy.relations import RELATIONS
from support.ledgers import event

DELTA = Fraction(1, 10**6)

numbers = st.fractions(min_value=Fraction(1, 997), max_value=3, max_denominator=997)
deltas = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 100))
costs = st.one_of(
    st.builds(Cost, numbers),
    st.builds(lambda e: Cost(e, bounded_range=True), numbers),
    st.builds(lambda rho: Cost.concentrated(rho, DELTA), numbers),
    st.builds(Cost, numbers, deltas),
)
sums = st.lists(costs, min_size=1, max_size=6)


def together(found: list[Cost]) -> Totals:
    return sum(map(Totals.of, found), start=Totals())


# -- events --------------------------------------------------------------------------------------


@given(sums)
def test_an_event_is_read_as_it_was_written(found: list[Cost]) -> None:
    cost = sum(found[1:], start=found[0])
    one = event(cost=cost)
    again = Event.from_dict(json.loads(one.canonical()))
    assert again == one
    assert again.canonical() == one.canonical()
    assert again.costs["replace-one"] == cost
    assert Totals.of(again.costs["add-remove"]) == Totals.of(cost) == together(found)


@given(st.fractions(min_value=0))
def test_rationals_are_text(number: Fraction) -> None:
    assert parse_rational(str(number)) == number


@pytest.mark.parametrize("text", ["0.5", "2/4", "-1", "1/0", "1e3", " 1", "1/1", 1, None, "١"])
def test_other_texts_are_refused(text: Any) -> None:
    with pytest.raises(LedgerError):
        parse_rational(text)


def test_no_float_is_written() -> None:
    with pytest.raises(TypeError, match="no floats"):
        canonical({"a": [0.5]})
    assert without_floats({"a": 0.5, "b": (Fraction(1, 3), None)}) == {
        "a": "0.5",
        "b": ["1/3", None],
    }


@pytest.mark.parametrize(
    "change",
    [
        {"format": "dpsubset event 9"}, {"more": 1}, {"costs": {"replace-one": []}},
        {"costs": {"nobody": [{"measure": "pure", "epsilon": "1"}]}},
        {"costs": {"replace-one": [{"measure": "pure", "epsilon": "1", "delta": "0"}]}},
        {"costs": {"replace-one": [{"measure": "odd", "epsilon": "1"}]}},
        {"costs": {"replace-one": [{"measure": "pure", "epsilon": 1}]}},
        {"costs": {"replace-one": [
            {"measure": "zcdp", "rho": "1", "epsilon": "1/100", "delta": "1/1000"}]}},
    ],
    ids=str,
)  # fmt: skip
def test_events_of_other_forms_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(LedgerError):
        Event.from_dict({**event().to_dict(), **change})


def test_a_seeded_release_is_no_event() -> None:
    guarantee = Guarantee("replace-one", {"replace-one": Cost(Fraction(1))}, seeded=True)
    with pytest.raises(dps.ArgumentError, match="seeded"):
        Event.of("select", "x", guarantee, unit="one row", rows_per_unit=1, schema="")


# -- sums ----------------------------------------------------------------------------------------


@given(sums, st.randoms())
def test_order_does_not_matter(found: list[Cost], random: Any) -> None:
    other = found[:]
    random.shuffle(other)
    assert together(found) == together(other)


@given(sums, costs)
def test_more_costs_more(found: list[Cost], more: Cost) -> None:
    before, after = together(found), together([*found, more])
    assert before <= after
    assert not after <= before
    assert after - Totals.of(more) == before
    for limit in (
        Limit(Fraction(4)), Limit(rho=Fraction(4)), Limit(Fraction(4), Fraction(1, 10)),
        Limit(Fraction(4), Fraction(1, 10), accounting="basic"),
    ):  # fmt: skip
        # What was refused is not admitted with more on top.
        assert limit.admits(before) or not limit.admits(after)


@given(sums)
def test_totals_are_read_as_they_were_written(found: list[Cost]) -> None:
    totals = together(found)
    assert Totals.from_dict(json.loads(canonical(totals.to_dict()))) == totals


def test_tenths_add_up_to_one_exactly() -> None:
    limit, tenth = Limit(Fraction(1)), Totals.of(Cost(Fraction(1, 10)))
    totals = sum([tenth] * 10, start=Totals())
    assert limit.admits(totals)
    assert not limit.admits(totals + Totals.of(Cost(Fraction(1, 10**30))))
    assert sum([0.1] * 10) != 1  # floats would not


def test_sums_with_odd_denominators_stay_short_and_are_never_too_small() -> None:
    rng = np.random.default_rng(0)
    exact, totals = Fraction(0), Totals()
    for _ in range(300):
        cost = Fraction(int(rng.integers(1, 2**60)), int(rng.integers(2**60, 2**62)) | 1)
        exact += cost
        totals += Totals.of(Cost(cost))
    assert exact <= totals.pure <= exact + Fraction(1, 2**900)
    assert len(canonical(totals.to_dict())) < 3000


@given(st.lists(st.builds(Cost, numbers), min_size=1, max_size=8))
def test_pure_limits_are_plain_sums(found: list[Cost]) -> None:
    total = sum(cost.epsilon for cost in found)
    assert Limit(Fraction(total)).admits(together(found))
    assert not Limit(total - Fraction(1, 10**9)).admits(together(found))


def test_what_a_limit_never_takes() -> None:
    noise, leak = Totals.of(Cost.concentrated(DELTA, DELTA)), Totals.of(Cost(DELTA, DELTA))
    assert Limit(Fraction(1)).refuses(noise)
    assert Limit(Fraction(1)).refuses(leak)
    assert not Limit(rho=Fraction(1)).refuses(noise)
    assert Limit(rho=Fraction(1)).refuses(leak)
    assert not Limit(Fraction(1), DELTA * 2).refuses(leak)
    # Half of delta is for these, half for what a rho is converted with.
    assert Limit(Fraction(9), 2 * DELTA).admits(leak + noise)
    assert not Limit(Fraction(9), 2 * DELTA).admits(leak + leak)
    assert not Limit(Fraction(9), DELTA).admits(leak)


def test_many_small_releases_cost_less_than_their_sum_with_a_delta() -> None:
    limit = Limit(Fraction(3), DELTA)
    many = sum([Totals.of(Cost(Fraction(1, 100)))] * 900, start=Totals())
    assert many.pure == 9
    assert limit.admits(many)
    assert not Limit(Fraction(3), DELTA, accounting="basic").admits(many)
    few = sum([Totals.of(Cost(Fraction(1)))] * 3, start=Totals())
    assert limit.spent(few) == (3, 0)  # the plain sum, and no delta


@given(sums)
def test_the_ledger_never_counts_less_than_the_sum_of_costs(found: list[Cost]) -> None:
    """`Cost` adds up in one of the ways; the limit's own way must not be below by its argument."""
    totals = together(found)
    limit = Limit(Fraction(10**6), Fraction(1, 2))
    spent = limit.spent(totals)
    assert spent is not None
    rho = sum((c.rho if c.rho is not None else c.as_rho for c in found), Fraction(0))
    if not totals.is_pure:
        assert spent == (epsilon_of(rho, limit.delta / 2), limit.delta)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"epsilon": Fraction(0)}, {"epsilon": Fraction(1), "rho": Fraction(1)},
     {"rho": Fraction(1), "delta": DELTA}, {"epsilon": Fraction(1), "delta": Fraction(1)},
     {"epsilon": Fraction(1), "delta": DELTA, "accounting": "odd"}],
    ids=str,
)  # fmt: skip
def test_limits_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(dps.ArgumentError):
        Limit(**wrong)


@pytest.mark.parametrize(
    "limit",
    [Limit(Fraction(1, 3)), Limit(rho=Fraction(2, 7)), Limit(Fraction(1), DELTA),
     Limit(Fraction(1), DELTA, accounting="basic")],
    ids=str,
)  # fmt: skip
def test_limits_are_read_as_they_were_written(limit: Limit) -> None:
    assert Limit.from_dict(json.loads(canonical(limit.to_dict()))) == limit


# -- the bounded range of the exponential mechanism ------------------------------------------------


def renyi(p: Any, q: Any, alpha: float) -> float:
    return float(np.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1))


def worst_of_range(epsilon: float, alpha: float) -> float:
    """Over all pairs of two outcomes whose log quotients are t and t - epsilon."""
    t = np.linspace(1e-6, 1 - 1e-6, 4001) * epsilon
    q = (1 - np.exp(t - epsilon)) / (np.exp(t) - np.exp(t - epsilon))
    p = q * np.exp(t)
    both = np.log(p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha))
    return float(np.max(both) / (alpha - 1))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("alpha", [1.001, 1.5, 2.0, 5.0, 32.0])
def test_a_bounded_range_is_an_eighth(epsilon: float, alpha: float) -> None:
    rho = float(Cost(Fraction(epsilon), bounded_range=True).as_rho)
    assert worst_of_range(epsilon, alpha) <= alpha * rho * (1 + 1e-9)


def test_it_is_not_less_than_an_eighth() -> None:
    assert worst_of_range(0.01, 1.001) > 1.001 * 0.01**2 / 9


def test_the_range_of_the_exponential_mechanism_is_epsilon() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        scores = rng.uniform(0, 5, 30)
        moved = scores + rng.uniform(0, 1) + rng.uniform(0, 1, 30)  # a spread of at most 1
        p, q = (np.exp(-s) / np.exp(-s).sum() for s in (scores, moved))
        ratios = np.log(p / q)
        assert ratios.max() - ratios.min() <= 1 + 1e-12
        for alpha in (1.1, 2.0, 10.0):
            assert renyi(p, q, alpha) <= alpha / 8 + 1e-12


def test_only_the_exponential_mechanism_says_so() -> None:
    x = np.zeros((20, 3))
    asked: dict[str, Any] = {"y": x[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 1, "epsilon": 1,
                             "response_range": "declared"}  # fmt: skip
    for mechanism, ranged in (("exponential", True), ("permute-and-flip", False)):
        cost = dps.price(x, mechanism=mechanism, **asked).guarantee
        assert cost is not None
        assert cost.costs["replace-one"].bounded_range is ranged
        assert cost.epsilon == 1


def test_the_range_of_quantiles_is_epsilon() -> None:
    """All pairs of small neighbouring tables: joint log quotients of two quartiles."""
    rule = QuantileRule((Fraction(1, 4), Fraction(3, 4)), Fraction(1))
    most = dict.fromkeys(RELATIONS, 0.0)
    tables = [counts for n in range(4) for counts in counted(n)]
    for relation in RELATIONS:
        weight = rule.weight(Fraction(1), relation)
        for a, b in product(tables, tables):
            if distance(a, b) != (2 if relation == "replace-one" else 1):
                continue
            if (sum(a) == sum(b)) != (relation == "replace-one"):
                continue
            length = 0.0
            for share in rule.probs:
                logs = [-float(weight / share.denominator) * rank_errors(np.array(c), share)
                        for c in (a, b)]  # fmt: skip
                p, q = (log - np.log(np.sum(np.exp(log))) for log in logs)
                length += float(np.ptp(p - q))
            most[relation] = max(most[relation], length)
    cost = rule.guarantee(Fraction(1), "replace-one").costs["replace-one"]
    assert cost == Cost(Fraction(1), bounded_range=True)
    for length in most.values():
        assert 0.5 < length <= 1 + 1e-12


def counted(n: int) -> list[tuple[int, ...]]:
    """Histograms of n records on a grid of five values."""
    return [c for c in product(range(n + 1), repeat=5) if sum(c) == n]


def distance(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def test_a_range_goes_through_rows_and_sums() -> None:
    cost = Cost(Fraction(1, 3), bounded_range=True)
    assert cost.group_privacy(3) == Cost(Fraction(1), bounded_range=True)
    assert (cost + Cost(Fraction(1))).terms == (
        Cost(Fraction(1, 3), bounded_range=True),
        Cost(Fraction(1)),
    )
    with pytest.raises(ValueError, match="range"):
        Cost(Fraction(1), DELTA, bounded_range=True)


# -- other accountants ---------------------------------------------------------------------------


def test_concentrated_sums_against_dp_accounting() -> None:
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    for rho, count in ((Fraction(1, 50), 10), (Fraction(1, 2), 4), (Fraction(1, 1000), 300)):
        theirs = rdp.RdpAccountant()
        for _ in range(count):
            theirs.compose(accounting.ZCDpEvent(rho=float(rho)))
        totals = sum([Totals.of(Cost.concentrated(rho, DELTA))] * count, start=Totals())
        spent = Limit(Fraction(100), DELTA).spent(totals)
        assert spent is not None
        # They look at a list of orders, we at a good one.
        other = theirs.get_epsilon(float(DELTA) / 2)
        assert 0.95 * other <= float(spent[0]) <= other * (1 + 1e-9)


def test_pure_sums_against_dp_accounting() -> None:
    """True deltas of k randomised responses, the worst pure releases, by their distributions."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for epsilon, count in ((0.1, 60), (0.5, 20), (0.02, 400)):
        one = pld.from_randomized_response(
            2 / (1 + math.exp(epsilon)), 2, value_discretization_interval=1e-4
        )
        found = one
        for _ in range(count - 1):  # `self_compose` would ignore the count
            found = found.compose(one)
        exact = Fraction(str(epsilon))
        totals = sum([Totals.of(Cost(exact))] * count, start=Totals())
        limit = Limit(Fraction(1, 10**6), DELTA)  # so small that the plain sum is no way
        spent = limit.spent(totals)
        assert spent is not None
        assert found.get_delta_for_epsilon(float(spent[0])) <= float(DELTA)
        # And not much more than is needed: half of it would not do.
        assert found.get_delta_for_epsilon(float(spent[0]) / 2) > float(DELTA)
        assert found.get_delta_for_epsilon(epsilon * count * (1 + 1e-3)) <= 1e-9


def test_conversions_against_opendp() -> None:
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    noise = opendp.m.make_gaussian(*space, 3.0)
    both = (
        opendp.c.make_composition([noise, noise])
        if hasattr(opendp.c, "make_composition")
        else (opendp.c.make_basic_composition([noise, noise]))
    )
    rho = both.map(1.0)
    curve = opendp.c.make_zCDP_to_approxDP(both).map(1.0)
    ours = Totals.of(Cost.concentrated(Fraction(rho) / 2, DELTA))
    spent = Limit(Fraction(100), DELTA).spent(ours + ours)
    assert spent is not None
    assert float(spent[0]) == pytest.approx(curve.epsilon(float(DELTA) / 2), rel=1e-4)
