"""How often intervals cover where some responses are missing at random, and what would not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.quantize import STEPS
from dpsubset.models.entries import Entries
from dpsubset.models.noisy_moments import NoisyMoments
from dpsubset.models.solve import solve
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.schema.encoding import Design

pytestmark = pytest.mark.statistical

RELEASES = 2000
BETA = np.array([0.3, -0.2, 0.15, 0.1])
N = 2_000


def schema(rule: str) -> dps.Schema:
    response = {"name": "y", "lo": -1, "hi": 1, "missing": {"as": rule}}
    return dps.Schema.from_bounds(dict.fromkeys("abc", (-1, 1)), response)


def rates(share: float, epsilon: str, neighbours: Any, rule: str = "drop") -> np.ndarray:
    """Of the coefficients of the population and of the present rows: how often they are covered."""
    rng, bits, hits = np.random.default_rng(int(100 * share)), Randomness(SystemSource()), 0
    declared = schema(rule)
    counted = neighbours == "add-remove" or declared.response.drops_rows
    entries = Entries.of(Design.of(declared), counted)
    noise = NoisyMoments(Fraction(epsilon), Fraction(0), neighbours, 3)
    for _ in range(RELEASES):
        x = np.clip(rng.normal(0, 1 / 3, (N, 3)), -1, 1)
        y = x @ BETA[:3] + BETA[3] + rng.normal(0, 0.1, N)
        y[rng.random(N) < share] = np.nan
        there = ~np.isnan(y)
        own = np.linalg.lstsq(np.column_stack([x, np.ones(N)])[there], y[there], rcond=None)[0]
        moments = SensitiveTable(x, declared, y).read_support(declared, STEPS)
        n = N if neighbours == "replace-one" else None
        released = noise.draw(entries.values(moments.products), bits)
        found = solve(entries, released, n, noise.deviation(entries.d))
        hits = hits + np.array([
            (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            for ends, truth in ((found.of_both, BETA), (found.of_table, own))
        ])  # fmt: skip
    print(f"{share:.0%} missing, epsilon={epsilon}, {neighbours}, {rule}:", hits / RELEASES)
    return np.asarray(hits / RELEASES)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", ["2.4", "12"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.6])
def test_intervals_cover_where_responses_are_missing(
    share: float, epsilon: str, neighbours: Any
) -> None:
    hits = rates(share, epsilon, neighbours)
    # By chance alone 2,000 releases may be off by 0.027: more than five deviations.
    assert (hits >= 0.943 - 0.027).all()


def test_counting_them_as_the_middle_covers_nothing() -> None:
    assert rates(0.3, "12", "replace-one", "middle")[0, 0] < 0.1
