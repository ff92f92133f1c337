"""select and simulate through the engine: larger problems, limits, interruptions, edges."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset import Bounds, Moments
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import PLAIN, Data, Setting
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.best import best_supports
from dpsubset.search.bounds.quadratic import LeastSquaresOracle
from dpsubset.search.engine import Engine, SearchLimitError
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports
from dpsubset.search.region import Region
from support.gtest import g_test, miss

UNIT = Bounds(x=1, y=1)
P, K = 60, 4
LEVEL = 1e-6


@cache
def table(n: int = 300, p: int = P, rho: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """AR columns; the response follows every fifth."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(n, p))
    for j in range(1, p):
        x[:, j] = rho * x[:, j - 1] + np.sqrt(1 - rho**2) * x[:, j]
    y = x[:, ::5][:, :K].sum(axis=1) / 2 + rng.normal(0, 0.7, n)
    return np.clip(x / 4, -1, 1), np.clip(y / 4, -1, 1)


def schema(p: int = P) -> dps.Schema:
    return UNIT.schema([f"x{j}" for j in range(p)])


def select(**changes: Any) -> dps.Release:
    x, y = table()
    settings = {"k": K, "epsilon": 1, "y": y, "bounds": UNIT, "seed": 1, **changes}
    return dps.select(settings.pop("data", x), **settings)


# -- half a million supports ------------------------------------------------------------------


@cache
def scored() -> ScoredSupports:
    """All 487,635 supports, by enumeration."""
    x, y = table()
    moments = Moments.from_blocks(schema(), [(x, y)])
    problem = Problem.create(P, K, intercept=False)
    return enumerate_supports(moments, problem, Sensitivity.of(problem).score_step)


def closed_form(name: str, eta: Fraction, top: np.ndarray) -> np.ndarray:
    """Probabilities of the supports ``top``, with less memory than `probabilities` takes."""
    every = scored()
    q = np.exp(-every.differences * float(eta * every.score_step))
    if name == "exponential":
        return q[top] / q.sum()
    nodes, weights = np.polynomial.legendre.leggauss(120)
    x = (nodes + 1) / 2
    total = np.array([np.log1p(-at * q).sum() for at in x])
    own = np.log1p(-np.outer(x, q[top]))
    return q[top] * (weights / 2 @ np.exp(total[:, None] - own))


@pytest.mark.parametrize(
    ("name", "lazy"), [("exponential", False), ("exponential", True), ("permute-and-flip", False)]
)
def test_frequencies_among_half_a_million_supports(name: str, lazy: bool) -> None:
    """The 40 best supports, and the rest together; seeded, so it fails always or never."""
    epsilon, draws = Fraction(12), 4000
    x, y = table()
    problem = Problem.create(P, K, intercept=False)
    mechanism, setting = PLAIN[name](), Setting.of(problem, epsilon)
    eta = mechanism.eta(setting)
    top = np.argsort(scored().scores, kind="stable")[:40]
    best = [scored().support(int(i)) for i in top]

    def cells(factor: Fraction) -> np.ndarray:
        inside = closed_form(name, factor * eta, top)
        return np.append(inside, 1 - inside.sum())

    if lazy:  # with columns of X'X on demand, which a table of 60 columns would not ask for
        records = GramData.from_records(schema(), [(x, y)])
        sampler, rng = mechanism.prepare(Data(records), setting), Randomness(SeededSource(5))
        found = Counter(sampler.draw(rng) for _ in range(draws))
    else:
        found = dps.simulate(
            x, k=K, epsilon=epsilon, y=y, bounds=UNIT, mechanism=name, draws=draws, seed=5,
            intercept=False, response_range="declared",
        )  # fmt: skip
    counts: Counter[tuple[int, ...]] = Counter()
    for support, times in found.items():
        counts[support if support in best else ()] += times
    right, wrong = cells(Fraction(1)), cells(Fraction(5, 4))
    assert 0.1 < right[-1] < 0.95  # both parts matter
    assert g_test(counts, [*best, ()], right) > LEVEL
    assert miss(right, wrong, draws, LEVEL) < LEVEL
    assert g_test(counts, [*best, ()], wrong) < LEVEL


# -- columns on demand ------------------------------------------------------------------------


@pytest.mark.parametrize("room", [4, 12, 100])
def test_columns_on_demand_are_those_of_the_product(room: int) -> None:
    """Whichever are asked for, few or most, once or again, with room for all or not."""
    rng = np.random.default_rng(room)
    for _ in range(40):
        cells = rng.integers(-(2**15) + 1, 2**15, (13, 50)).astype(np.int16)
        whole = cells[:-1].astype(np.int64) @ cells[:-1].T.astype(np.int64)
        digest = GramData.of_cells(cells, "test")
        digest.cache_bytes = room * digest.p * 8
        for _ in range(5):
            wanted = rng.choice(12, int(rng.integers(1, 13)), replace=False)
            digest.fetch(wanted.tolist())
            at_hand = np.flatnonzero(digest.slot >= 0)
            assert set(wanted) <= set(at_hand)
            np.testing.assert_array_equal(digest.product_rows(at_hand), whole[at_hand])


@pytest.mark.parametrize(("p", "on_demand"), [(1000, False), (1600, True)])
def test_many_columns_are_had_on_demand(p: int, on_demand: bool) -> None:
    x, y = np.ones((3, p)), np.ones(3)
    digest = SensitiveTable(x, schema(p), y).read(Problem.create(p, 2, intercept=False))
    assert digest.whole is not on_demand
    assert digest.records.shape == ((p, 3) if on_demand else (0, 0))


def test_columns_on_demand_are_spared_until_a_search_is_not_easy() -> None:
    p = 1600
    x, y = table(300, p)
    problem = Problem.create(p, K, intercept=False)
    digest = SensitiveTable(x, schema(p), y).read(problem)
    engine = Engine(digest, problem, Sensitivity.of(problem).score_step, 1.0)
    engine.bound_oracle.root(Region.whole(problem))
    assert 0 < int((digest.slot >= 0).sum()) <= 4 * (3 * K + 16)
    engine.bound_oracle.widen()
    assert (digest.slot >= 0).all()


# -- limits and interruptions -----------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("limit", [{"node_limit": 1}, {"time_limit": 1e-9}], ids=str)
def test_limits_raise_and_say_that_the_cost_is_spent(name: str, limit: dict[str, Any]) -> None:
    x, y = table()
    with pytest.raises(SearchLimitError, match=r"nothing is released.* is spent") as caught:
        dps.simulate(
            x, k=K, epsilon=40, y=y, bounds=UNIT, mechanism=name, draws=500, seed=1, **limit
        )
    assert isinstance(caught.value, dps.DpsubsetError)
    which = "node limit" if "node_limit" in limit else "time limit"
    assert which in str(caught.value)
    assert not any(digit.isdigit() for digit in str(caught.value))


def test_the_statement_says_what_a_limit_costs() -> None:
    unprotected = select().statement().split("## Not protected")[1]
    assert "If a limit was set for the time or the number of steps of the search" in unprotected
    assert "epsilon counts as spent" in unprotected


def test_generous_limits_change_nothing() -> None:
    assert select(node_limit=10**6, time_limit=1e6).support == select().support


@pytest.mark.parametrize(
    "limit", [{"node_limit": 0}, {"node_limit": 1.5}, {"time_limit": 0}, {"time_limit": "long"}]
)
def test_senseless_limits_are_refused_before_the_table_is_read(limit: dict[str, Any]) -> None:
    with pytest.raises(dps.ArgumentError, match="_limit"):
        select(**limit)


def test_an_interruption_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LeastSquaresOracle, "root", interrupted)
    with pytest.raises(KeyboardInterrupt):
        select()


def test_diagnostics_stay_with_the_object() -> None:
    with_counts, plain = select(diagnostics="not-private"), select()
    assert plain.diagnostics is None
    assert with_counts.diagnostics is not None
    assert {"splits"} <= set(with_counts.diagnostics)
    assert with_counts == plain
    for export in (str, repr, lambda r: r.to_json(), lambda r: r.statement()):
        assert export(with_counts) == export(plain)
        assert "splits" not in export(with_counts)
    assert "diagnostics" not in json.dumps(with_counts.to_dict())
    with pytest.raises(dps.ArgumentError, match="not-private"):
        select(diagnostics="yes")


# -- edges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("epsilon", [10**4, 10**6])
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_an_enormous_epsilon_gives_the_optimum(name: str, epsilon: int, rho: float) -> None:
    x, y = table(2000, P, rho)
    moments = Moments.from_blocks(schema(), [(x, y)])
    problem = Problem.create(P, K, intercept=False)
    engine = Engine(moments, problem, Sensitivity.of(problem).score_step, 1e6)
    (first, support), (second, _) = best_supports(engine, 2)
    release = dps.select(x, k=K, epsilon=epsilon, y=y, bounds=UNIT, mechanism=name,
                         intercept=False, response_range="declared")  # fmt: skip
    gap = (second - first) * float(Sensitivity.of(problem).score_step)
    # So large a gap that anything else has a probability below 1e-9.
    assert gap * epsilon / 8 > 20.8 + np.log(problem.supports)
    assert release.support == support


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_edges(name: str, constraint: str) -> None:
    stated = {"mechanism": name, "constraint": constraint}
    x, y = table()
    assert select(data=x[:, :K], **stated).support == tuple(range(K))  # k = p
    assert select(data=x[:, :1], k=1, **stated).support == (0,)
    assert select(always_include=(7, 3, 1, 50), **stated).support == (1, 3, 7, 50)
    zeros = {"data": np.zeros_like(x), "y": np.zeros_like(y)}
    assert len({select(**zeros, **stated, seed=seed).support for seed in range(8)}) > 1
    for neighbours in ("replace-one", "add-remove"):
        empty = select(data=x[:0], y=y[:0], neighbours=neighbours, **stated)
        assert len(empty.support) == K


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", PLAIN)
def test_without_data_every_support_is_as_likely_as_any_other(name: str, neighbours: str) -> None:
    found = dps.simulate(
        np.zeros((0, 9)), k=2, epsilon=3, y=np.zeros(0), bounds=UNIT, mechanism=name, seed=2,
        neighbours=neighbours, draws=5000,
    )  # fmt: skip
    supports = [(i, j) for j in range(9) for i in range(j)]
    assert g_test(found, supports, np.full(36, 1 / 36)) > LEVEL
