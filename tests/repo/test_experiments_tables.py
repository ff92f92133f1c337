"""The tables of `experiments.cai_data`: real ones from files, made-up ones without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from experiments import cai_data, cai_tables


@pytest.fixture(autouse=True)
def no_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing is remembered, and nothing of this machine is found."""
    for name in ("DPSUBSET_HOUSING", "DPSUBSET_SNP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "store"))
    cai_tables.houses.cache_clear()
    cai_tables.genes.cache_clear()
    yield
    cai_tables.houses.cache_clear()
    cai_tables.genes.cache_clear()


def _frame(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    high = {**cai_tables.HOUSING, cai_tables.VALUE: cai_tables.VALUE_BOUNDS}
    # Some beyond their bounds.
    return pd.DataFrame(
        {name: rng.uniform(0.1, 1.2, rows) * top for name, (_, top) in high.items()}
    )


def test_made_up_tables_say_so_and_have_the_published_sizes(tmp_path: Path):
    assert {trial["data"] for trial in cai_data.trials(False)} == {"made up"}
    houses, genes = cai_tables.houses(), cai_tables.genes()
    assert houses.x.shape == (20_640, 5)
    assert genes.first.shape == (241, 2000)
    assert genes.second.shape == (146, 2000)
    assert np.abs(houses.x).max() <= 1
    assert np.abs(houses.y).max() <= 1
    assert set(np.unique(genes.first)) == {0, 1, 2}
    assert not (tmp_path / "store").exists()


def test_houses_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    frame = _frame(40)
    path = tmp_path / "houses.csv"
    frame.assign(ocean="near").rename(columns=str.upper).to_csv(path, index=False)
    monkeypatch.setenv("DPSUBSET_HOUSING", str(path))
    assert cai_tables.housing_source() == "houses.csv"
    found = cai_tables.houses()
    income = np.clip(frame["median_income"], 0, 15)
    np.testing.assert_allclose(found.x[:, 0], income / 7.5 - 1)
    np.testing.assert_allclose(found.y, np.clip(frame[cai_tables.VALUE], 0, 5e5) / 2.5e5 - 1)


def test_houses_from_the_store_of_scikit_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Averages there become the totals that a file has."""
    frame = _frame(40)
    store = tmp_path / "store"
    store.mkdir()
    order = [cai_tables.VALUE, "median_income", "housing_median_age", "total_rooms", "households",
             "population", "households"]  # fmt: skip
    place = np.zeros((40, 2))
    joblib.dump(np.hstack([frame[order].to_numpy(), place]), store / "cal_housing_py3.pkz")
    assert cai_tables.housing_source() == "scikit-learn"
    from_store = cai_tables.houses()
    cai_tables.houses.cache_clear()
    frame.to_csv(tmp_path / "houses.csv", index=False)
    monkeypatch.setenv("DPSUBSET_HOUSING", str(tmp_path / "houses.csv"))
    from_file = cai_tables.houses()
    np.testing.assert_allclose(from_store.x, from_file.x)
    np.testing.assert_allclose(from_store.y, from_file.y)


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_genes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    rng = np.random.default_rng(0)
    x, group = rng.integers(0, 3, (9, 4)), np.array([1, 0, 1, 1, 0, 1, 1, 0, 1])
    path = tmp_path / f"genes.{kind}"
    if kind == "npz":
        np.savez(path, x=x, group=group)
    else:
        sites = pd.DataFrame(x, columns=list("abcd"))
        sites.assign(group=group).to_csv(path, index=False)
    monkeypatch.setenv("DPSUBSET_SNP", str(path))
    assert cai_tables.snp_source() == path.name
    found = cai_tables.genes()
    np.testing.assert_array_equal(found.first, x[group == 1])
    np.testing.assert_array_equal(found.second, x[group == 0])


def test_of_many_sites_the_most_frequent_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    x = np.zeros((6, cai_tables.SITES + 3))
    x[:, 5:] = 1
    np.savez(tmp_path / "genes.npz", x=x, group=np.arange(6) % 2)
    monkeypatch.setenv("DPSUBSET_SNP", str(tmp_path / "genes.npz"))
    assert cai_tables.genes().first.shape == (3, cai_tables.SITES)
    assert cai_tables.genes().first.sum() == 3 * (cai_tables.SITES - 2)


def test_wrong_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DPSUBSET_HOUSING", str(tmp_path / "none.csv"))
    with pytest.raises(FileNotFoundError, match="DPSUBSET_HOUSING names no file"):
        cai_data.trials(True)
    _frame(5).drop(columns="households").to_csv(tmp_path / "none.csv", index=False)
    with pytest.raises(ValueError, match="no column households"):
        cai_tables.houses()
    np.savez(tmp_path / "genes.npz", x=np.zeros((3, 2)), group=np.arange(3))
    monkeypatch.setenv("DPSUBSET_SNP", str(tmp_path / "genes.npz"))
    with pytest.raises(ValueError, match="two values"):
        cai_tables.genes()


@pytest.mark.parametrize(("table", "m"), [("genes", 50), ("houses", 2000)])
def test_subsamples_are_measured(table: str, m: int):
    lines = cai_data.measure({"table": table, "data": "made up", "m": m, "seed": 0})
    assert {line["draw"] for line in lines} == set(range(cai_data.DRAWS))
    assert all(np.isfinite(line["error"]) for line in lines)


def test_quick_trials_are_some_of_the_full_ones():
    full = cai_data.trials(False)
    assert all(trial in full for trial in cai_data.trials(True))
