"""A scale and a selection, drawn together from the operating system's randomness.

Releases of `select` against the joint distribution of both, and supports of `simulate` against its
margin, enumerated in closed form. Each test draws afresh and fails by chance with probability 1e-9
(see gtest.py); what must be rejected is missed with probability below 1e-9.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpsubset as dps
from api.test_response_range_audit import drawn, joint
from dpsubset.api.request import SelectionRequest, build_request
from dpsubset.data.quantize import STEPS
from dpsubset.privacy.relations import RELATIONS, Neighbours
from support.gtest import LEVEL, g_test, miss

pytestmark = pytest.mark.statistical

RELEASES = 3000
DRAWS = 20_000
SUPPORTS = [(0,), (1,), (2,)]
SCALE = dps.ResponseRange(dps.QuantileRule.median(), Fraction(1, 2))
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)

#: The first variable is the side of the lower gap, the second that of the upper one.
RESPONSES = np.repeat([-18000, -6000, 6000, 18000], 3)
TABLE = STEPS * np.column_stack(
    [
        np.where(RESPONSES > -12000, 1, -1),
        np.where(RESPONSES > 12000, 1, -1),
        np.tile([1, -1], 6),
    ]
)
TABLE = np.column_stack([TABLE, RESPONSES])


def asked(neighbours: Neighbours) -> dict[str, object]:
    return {"bounds": dps.Bounds(x=1, y=1), "y": TABLE[:, -1] / STEPS, "k": 1, "epsilon": 2,
            "neighbours": neighbours, "response_range": SCALE}  # fmt: skip


def planned(neighbours: Neighbours) -> SelectionRequest:
    return build_request(TABLE[:, :-1] / STEPS, **asked(neighbours))


def place(medians: np.ndarray) -> np.ndarray:
    """Which responses are below a median, and which at it."""
    values = np.unique(RESPONSES)
    below, up_to = (np.searchsorted(values, medians, side=side) for side in ("left", "right"))
    return below + up_to


def cells(logs: np.ndarray) -> dict[tuple[int, int], float]:
    """Probabilities of where the median lies, and of the support."""
    places = place(np.arange(-STEPS, STEPS + 1))
    sums = np.array([np.bincount(places, np.exp(column)) for column in logs.T])
    return {(i, j): float(sums[j, i]) for i in range(sums.shape[1]) for j in range(len(sums))}


def laws(neighbours: Neighbours) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The right one; then wrong ones."""
    right = joint(planned(neighbours), TABLE)
    free = planned(neighbours)
    vars(free)["setting"] = replace(free.setting, epsilon=free.epsilon)
    uncharged = joint(free, TABLE, lambda _, counts: drawn(planned(neighbours), counts))
    margin = np.log(np.exp(right).sum(axis=0))
    apart = drawn(planned(neighbours), np.bincount(RESPONSES + STEPS, minlength=2 * STEPS + 1))
    return right, {"not charged": uncharged, "not of this scale": apart[:, None] + margin}


@each_relation
def test_releases_have_the_joint_distribution_and_no_other(neighbours: Neighbours) -> None:
    x, counts = TABLE[:, :-1] / STEPS, Counter[tuple[int, ...]]()
    for _ in range(RELEASES):
        release = dps.select(x, **asked(neighbours))
        assert release.scale is not None
        assert release.support is not None
        (median,) = release.scale.exact.quantiles
        counts[int(place(np.array(median))), *release.support] += 1
    right, wrong = laws(neighbours)
    expected = cells(right)
    names, probabilities = list(expected), np.array(list(expected.values()))
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    assert g_test(counts, names, probabilities) >= LEVEL
    for logs in wrong.values():
        other = np.array(list(cells(logs).values()))
        assert miss(probabilities, other, RELEASES) < LEVEL
        assert g_test(counts, names, other) < LEVEL


@each_relation
def test_simulations_have_the_margin_of_the_supports(neighbours: Neighbours) -> None:
    found = dps.simulate(TABLE[:, :-1] / STEPS, **asked(neighbours), draws=DRAWS)
    counts = Counter({support: number for support, number in found.items() if support is not None})
    assert counts.total() == DRAWS
    right, wrong = laws(neighbours)
    margin, other = (np.exp(logs).sum(axis=0) for logs in (right, wrong["not charged"]))
    assert g_test(counts, SUPPORTS, margin) >= LEVEL
    assert miss(margin, other, DRAWS) < LEVEL
    assert g_test(counts, SUPPORTS, other) < LEVEL
