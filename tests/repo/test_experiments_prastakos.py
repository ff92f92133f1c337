"""Experiments on supports: recovery, F1, quick trials among the full ones, tiny tables."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from experiments import (
    prastakos_ablations,
    prastakos_labels,
    prastakos_prediction,
    prastakos_recovery,
    supports,
)
from sklearn.metrics import f1_score

MODULES = (prastakos_ablations, prastakos_labels, prastakos_prediction, prastakos_recovery)


def test_recovery_and_f1_are_those_of_the_draws():
    truth, p = (0, 2, 4), 9
    drawn = Counter({(0, 2, 4): 3, (0, 2, 5): 4, (1, 3): 2, (0, 2, 4, 6): 1, None: 2})
    inside = np.isin(np.arange(p), truth)
    scores = [
        f1_score(inside, np.isin(np.arange(p), support or ()), zero_division=0)
        for support in drawn.elements()
    ]
    found = supports.judged(drawn, truth)
    assert (found["draws"], found["recovery"]) == (12, 3 / 12)
    assert found["f1"] == pytest.approx(np.mean(scores))


def test_where_recovery_rises_and_falls():
    lines = [{"n": n, "recovery": share} for n, share in
             ((100, 0.1), (200, 0.3), (200, 0.5), (400, 0.3), (800, 0.9), (900, None))]  # fmt: skip
    assert supports.enough(lines, 0.4) == 200
    assert supports.enough(lines, 0.5) == 800
    assert supports.enough(lines, 0.95) == math.inf
    assert supports.largest_fall(lines) == pytest.approx(0.1)
    assert supports.largest_fall(lines[:3]) < 0


def test_a_search_that_passes_its_limit_leaves_cells_empty():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (40, 30)), rng.uniform(-1, 1, 40)
    found = supports.simulated(
        x, y, (0, 1, 2, 3), "top-r", {"R": 500}, 5, epsilon=1, node_limit=1, intercept=False,
        bounds=prastakos_recovery.BOUNDS, response_range="declared",
    )  # fmt: skip
    assert found == {"draws": 5, "recovery": None, "f1": None}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.EXPERIMENT.name)
def test_quick_trials_are_some_of_the_full_ones(module):
    quick, full = ([tuple(t.items()) for t in module.trials(q)] for q in (True, False))
    assert len(set(full)) == len(full)
    assert set(quick) < set(full)


def test_all_defaults_are_measured():
    trial = {"setting": "ball", "group": "exact", "p": 100, "n": 6000, "epsilon": 1, "seed": 0}
    lines = {line["method"]: line for line in prastakos_recovery.measure(trial)}
    # The probability is above 0.999 with so many rows.
    assert lines[prastakos_recovery.DEFAULTS]["recovery"] > 0.7
    assert lines[prastakos_recovery.RACE]["f1"] > 0.9


def test_a_changed_clip_keeps_the_ridge_in_the_units_of_rows():
    usual, wide = (prastakos_ablations.told("clip", clip) for clip in (0.5, 1.0))
    assert usual["ridge"] == prastakos_ablations.RIDGE
    assert wide["ridge"] * 1.0**2 == usual["ridge"] * 0.5**2
    assert prastakos_ablations.told("radius", 2.0)["radius"] == 2.0
    assert prastakos_ablations.told("R", 10) == prastakos_ablations.BALL


def test_prediction_compares_with_the_best_support(monkeypatch: pytest.MonkeyPatch):
    shape = replace(prastakos_prediction.SHAPE, p=12, k=2)
    monkeypatch.setattr(prastakos_prediction, "SHAPE", shape)
    monkeypatch.setattr(prastakos_prediction, "NEW_ROWS", 200)
    lines = {line["method"]: line for line in prastakos_prediction.measure({"n": 300, "seed": 0})}
    assert list(lines) == list(prastakos_prediction.METHODS)
    best = lines[prastakos_prediction.NONE]
    assert best["gap"] == 0
    assert 0.1 < best["test_error"] < 0.35
    # Nothing is below least squares on the best support, but for what clipping does.
    assert min(line["gap"] for line in lines.values()) > -0.05
