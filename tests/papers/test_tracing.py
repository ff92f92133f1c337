"""Tracing adversaries: Cai, Wang and Zhang's populations and statistics, and what rates imply."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsubset.base.errors import ArgumentError
from dpsubset.papers.tracing import (
    Adversary,
    MeanAdversary,
    Rates,
    RegressionAdversary,
    SparseMeanAdversary,
    SparseRegressionAdversary,
    Table,
    largest,
    trace,
)

RNG = np.random.default_rng(7)
ALL = [
    MeanAdversary(4, 60, 2.0),
    SparseMeanAdversary(4, 60, 2.0, s=20),
    SparseRegressionAdversary(4, 60, 2.0, s=20),
    RegressionAdversary(4, 60, 2.0),
]


def mean(table: Table) -> np.ndarray:
    return table.x.mean(axis=0)


@pytest.mark.parametrize("adversary", ALL, ids=lambda a: type(a).__name__)
def test_members_are_in_the_table_and_outsiders_are_not(adversary: Adversary) -> None:
    trial = adversary.draw(RNG)
    assert trial.table.x.shape == (4, 60)
    np.testing.assert_array_equal(trial.member[0], trial.table.x[0])
    if trial.table.y is not None:
        assert trial.member[1] == trial.table.y[0]
        assert trial.outsider[1] not in trial.table.y
    # Fresh references: neither suspect is compared with itself.
    for suspect, reference in zip((trial.member, trial.outsider), trial.references, strict=True):
        own = suspect[0] if trial.table.y is None else suspect[1]
        assert not np.array_equal(own, reference)


def test_records_of_section_2_3_are_signs() -> None:
    x = MeanAdversary(400, 50, 2.0).draw(RNG).table.x
    assert set(np.unique(x)) == {-2.0, 2.0}
    # Means are uniform in [-2, 2]: all over the place.
    assert x.mean(axis=0).std() == pytest.approx(2 / math.sqrt(3), rel=0.3)


def test_records_of_section_3_1_are_signs_on_s_coordinates() -> None:
    x = SparseMeanAdversary(400, 200, s=20).draw(RNG).table.x
    shown = np.flatnonzero(np.abs(x).sum(axis=0))
    assert len(shown) == 20
    assert set(np.unique(x[:, shown])) == {-1.0, 1.0}
    # The top tenth of Beta(b, b), as a mean: above 1/2.
    assert x[:, shown].mean() > 0.5


def test_records_of_section_4_1_show_one_coordinate_of_the_support_or_all_others() -> None:
    table = SparseRegressionAdversary(600, 40, s=4).draw(RNG).table
    units = np.abs(table.x).max(axis=1) == 1
    support = np.flatnonzero(np.abs(table.x[units]).sum(axis=0))
    assert len(support) == 4
    assert 0.4 < units.mean() < 0.6
    assert np.all(np.count_nonzero(table.x[units], axis=1) == 1)
    others = table.x[~units]
    assert np.all(others[:, support] == 0)
    assert 0.49 < np.abs(others).max() <= 0.5  # 1 / sqrt(s)
    # y follows the unit records, and is noise of standard deviation 1/2 for the others.
    assert table.y is not None
    assert table.y[~units].std() == pytest.approx(0.5, rel=0.2)
    assert np.mean(table.y[units] * table.x[units].sum(axis=1)) > 0.4


def test_records_of_section_4_3_are_multiples_of_the_basis() -> None:
    table = RegressionAdversary(300, 9, 2.0).draw(RNG).table
    assert np.all(np.count_nonzero(table.x, axis=1) == 1)
    assert set(np.unique(table.x)) == {-3.0, 0.0, 3.0}
    assert table.y is not None
    residuals = table.y - table.x @ np.linalg.lstsq(table.x, table.y)[0]
    assert residuals.std() == pytest.approx(1.0, rel=0.2)


def test_the_statistics() -> None:
    x, other = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.0])
    released = np.array([0.1, 3.0, -2.0])
    assert MeanAdversary(1, 3).statistic((x, 0.0), other, released) == pytest.approx(-2.9)
    sparse = SparseMeanAdversary(1, 3, s=2)
    assert sparse.statistic((x, 0.0), other, released) == 2.0  # coordinates 1 and 0
    assert sparse.statistic((x, 0.0), other, (1, 2)) == 4.0  # a support as it is
    regression = SparseRegressionAdversary(1, 3, s=2)
    assert regression.statistic((x, 5.0), 3.0, released) == 6.0
    classical = RegressionAdversary(1, 3)
    assert classical.statistic((x, 5.0), 3.0, released) == pytest.approx(2 * (0.1 + 6 - 8))


def test_the_thresholds_are_the_paper_s() -> None:
    delta = math.exp(-2)
    thresholds = [adversary.threshold(delta) for adversary in ALL]
    expected = [4 * math.sqrt(960), 2 * math.sqrt(320), 2 * math.sqrt(80), 4 * math.sqrt(240)]
    assert thresholds == pytest.approx(expected)


def test_the_s_largest_are_by_value_not_by_size() -> None:
    assert largest(np.array([-9.0, 1.0, 3.0, 2.0]), 2).tolist() == [2, 3]
    assert largest([3, 1], 5).tolist() == [3, 1]


def test_a_member_shows_in_the_mean() -> None:
    found = trace(MeanAdversary(3, 200), mean, 400, np.random.default_rng(1))
    assert found.chosen.separates
    assert found.chosen.contradicts(0.5)
    assert found.chosen.false_positive < 0.3
    assert found.chosen.trials == 200
    assert found.paper.threshold == MeanAdversary(3, 200).threshold(0.1)


def test_a_member_does_not_show_where_its_record_was_not_looked_at() -> None:
    found = trace(
        MeanAdversary(3, 200), lambda table: table.x[1:].mean(axis=0), 400, np.random.default_rng(1)
    )
    assert not found.chosen.separates
    assert not found.chosen.contradicts(0.1)


def test_half_of_the_trials_set_the_threshold() -> None:
    # With an estimator of noise alone, the rate on the other half is near what was aimed at.
    rng = np.random.default_rng(2)
    noise = np.random.default_rng(3)
    found = trace(
        MeanAdversary(2, 5), lambda _: noise.normal(size=5), 4000, rng, false_positive=0.25
    )
    low, high = found.chosen.false_positive_interval
    assert low < 0.25 < high
    assert found.chosen.false_positive == pytest.approx(0.25, abs=0.05)


def test_rates_and_what_they_contradict() -> None:
    rates = Rates(threshold=0.0, members=900, outsiders=100, trials=1000)
    assert rates.true_positive == 0.9
    assert rates.false_positive == 0.1
    assert rates.separates
    assert rates.contradicts(1.0)
    assert not rates.contradicts(math.log(9))
    assert not rates.contradicts(1.0, delta=0.8)
    # All outsiders pass and nine members in ten do: OUT is what tells.
    reverse = Rates(threshold=0.0, members=1000, outsiders=900, trials=1000)
    assert reverse.contradicts(0.5)
    assert "1000 trials" in str(rates)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="at least 20"):
        trace(MeanAdversary(3, 5), mean, 19, RNG)
    with pytest.raises(ArgumentError, match="between 1 and d - 1"):
        SparseMeanAdversary(3, 5, s=5).draw(RNG)
