"""What the experiments on the chain count with: distances, what chance makes of them, walks."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))  # experiments are not installed
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def test_total_variation_is_the_largest_difference_of_an_event():
    from experiments.roy import total_variation

    ours, theirs = [3, 0, 5, 2], [1, 4, 10, 5]
    shares = np.array(ours) / 10 - np.array(theirs) / 20
    events = itertools.product((0, 1), repeat=4)
    assert total_variation(ours, theirs) == pytest.approx(max(shares @ event for event in events))
    assert total_variation(ours, ours) == 0
    assert total_variation([4, 0], [0, 9]) == 1


def test_by_chance_has_its_level_and_rejects_another_law():
    from experiments.roy import by_chance, total_variation

    rng = np.random.default_rng(1)
    laws = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]  # of two tables
    beyond = 0
    for _ in range(200):
        ours = [rng.multinomial(30, law) for law in laws]
        theirs = [rng.multinomial(100, law) for law in laws]
        apart = total_variation(np.sum(ours, axis=0), np.sum(theirs, axis=0))
        beyond += apart > by_chance(ours, theirs, 0.9)
    assert 5 <= beyond <= 40  # 20 are expected: seeded, so that this is no matter of chance
    ours = [rng.multinomial(100, [0.5, 0.3, 0.2]) for _ in laws]
    theirs = [rng.multinomial(100, [0.1, 0.3, 0.6]) for _ in laws]
    apart = total_variation(np.sum(ours, axis=0), np.sum(theirs, axis=0))
    assert apart > by_chance(ours, theirs, 0.999)


@pytest.mark.parametrize("steps", [0, 1, 7, 40])
def test_no_walk_is_sooner_at_the_true_support(steps: int):
    """Against walks that go to the truth wherever they can, by their transition matrix."""
    from experiments.roy import not_there

    p, s = 7, 3
    supports = [set(support) for support in itertools.combinations(range(p), s)]
    truth = set(range(s))
    matrix = np.zeros((len(supports), len(supports)))
    for i, support in enumerate(supports):
        for out, new in itertools.product(support, set(range(p)) - support):
            better = out not in truth and new in truth
            to = supports.index(support - {out} | {new}) if better else i
            matrix[i, to] += 1 / (s * (p - s))
    start = np.full(len(supports), 1 / len(supports))
    at = start @ np.linalg.matrix_power(matrix, steps)
    assert not_there(steps, p, s) == pytest.approx(1 - at[supports.index(truth)], rel=1e-9)


def test_a_cell_has_the_scale_of_the_paper():
    """eta L in scaled units is epsilon L / (r + K)^2 in those of the table."""
    from experiments.roy import TRUTH, Cell, make

    cell = Cell("weak", 100.0, 3.0, seed=0)  # so large a ball that least squares is within
    x, y = make("weak", 0)
    other = (0, 1, 2, 77)

    def rss(support: tuple[int, ...]) -> float:
        return float(np.linalg.lstsq(x[:, list(support)], y, rcond=None)[1][0])

    expected = 3.0 * (rss(other) - rss(TRUTH)) / (np.abs(y).max() + 100.0) ** 2
    (found,) = cell.exponents([other])
    # Cells of the table are rounded to 1/32767 of their bounds, scores to a 2**-16 of the range.
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", ["roy_table", "roy_traces", "behdin_enumeration"])
def test_quick_trials_are_some_of_all(name: str):
    import importlib

    experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    quick, full = (
        {tuple(trial.items()) for trial in experiment.trials(some)} for some in (True, False)
    )
    assert quick < full
    assert len(full) == len(experiment.trials(False))
