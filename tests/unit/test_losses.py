"""Losses through `select`: records are kept, labels come from the bounds, the rest is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpsubset import Bounds, Schema, best_subset, select, simulate
from dpsubset.errors import ArgumentError
from dpsubset.mechanisms import MECHANISMS
from dpsubset.moments import Moments

ROW_LOSSES = ["logistic", "hinge", "huber"]


def table(n: int = 300, p: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, p))
    return x, (x[:, 3] + x[:, min(7, p - 2)] + 0.3 * rng.normal(size=n) > 0).astype(float)


BOUNDS = Bounds(x=(-1, 1), y=(0, 1))


@pytest.mark.parametrize("loss", ROW_LOSSES)
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
def test_a_large_epsilon_finds_the_best_support(loss: str, constraint: str) -> None:
    x, y = table()
    stated = {"k": 2, "y": y, "bounds": BOUNDS, "loss": loss, "constraint": constraint, "reach": 3}
    assert best_subset(x, **stated).support == (3, 7)
    release = select(x, epsilon=1000, **stated)
    assert release.support == (3, 7)
    assert release.guarantee.private
    assert loss in release.statement()


@pytest.mark.parametrize("mechanism", ["exponential", "top-r", "mistakes", "penalised"])
def test_mechanisms_of_scores_take_any_loss(mechanism: str) -> None:
    x, y = table(100, 6)
    counts = simulate(x, y=y, bounds=BOUNDS, k=2, epsilon=100, draws=5, loss="logistic",
                      mechanism=mechanism)  # fmt: skip
    assert sum(counts.values()) == 5


def test_other_mechanisms_refuse_other_losses() -> None:
    x, y = table(100, 6)
    refused = []
    for name, cls in MECHANISMS.items():
        if cls.any_loss:
            continue
        refused.append(name)
        delta = 1e-6 if cls.takes_delta == "must" else 0
        with pytest.raises(ArgumentError, match="least squares"):
            select(x, y=y, bounds=BOUNDS, k=2, epsilon=1, loss="hinge", mechanism=name,
                   delta=delta, allow_unproven=True)  # fmt: skip
    assert {"metropolis", "peeling", "frank-wolfe", "hard-thresholding"} <= set(refused)


def test_moments_are_refused_before_anything_is_read() -> None:
    x, y = table(50, 4)
    schema = Schema.from_bounds({f"x{j}": (-1, 1) for j in range(4)}, ("y", 0, 1))
    moments = Moments.from_blocks(schema, [(x, y)])
    with pytest.raises(ArgumentError, match="needs the records"):
        select(moments, schema, k=2, epsilon=1, loss="logistic")
    with pytest.raises(ArgumentError, match="needs the records"):
        best_subset(moments, schema, k=2, loss="huber")


def test_an_empty_table_is_an_ordinary_one_under_add_remove() -> None:
    release = select(np.empty((0, 5)), y=np.empty(0), bounds=BOUNDS, k=2, epsilon=1,
                     loss="hinge", neighbours="add-remove")  # fmt: skip
    assert release.support is not None
