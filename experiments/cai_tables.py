"""The two tables of Cai, Wang and Zhang 2021, Section 6, or made-up ones in their place.

Nothing is ever downloaded. Real ones are taken from here:

- *houses*: the CSV file that ``DPSUBSET_HOUSING`` names, with the columns of `HOUSING` and
  ``median_house_value``; else scikit-learn's copy, if `fetch_california_housing` has been called on
  this machine;
- *genes*: the file that ``DPSUBSET_SNP`` names. A .npz file has ``x``, subjects by sites, numbers
  of minor alleles, and ``group``, two values; a CSV file has a column ``group`` and one for each
  site.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .cai import Floats

#: Public bounds, to which all values are clipped before anything else is done.
HOUSING = {
    "median_income": (0, 15), "housing_median_age": (0, 52), "population": (0, 5000),
    "households": (0, 2000), "total_rooms": (0, 10_000),
}  # fmt: skip
VALUE, VALUE_BOUNDS = "median_house_value", (0, 500_000)
ROWS = 20_640
#: Subjects of the two groups, sites, and how many of these differ in the made-up table.
GROUPS, SITES, DIFFERENT = (241, 146), 2000, 20

MADE_UP = "made up"


@dataclass(frozen=True)
class Houses:
    """Columns and values, each scaled to -1 and 1 by its bounds."""

    x: Floats
    y: Floats


@dataclass(frozen=True)
class Genes:
    """Numbers of minor alleles, 0 to 2, of the subjects of two groups."""

    first: Floats
    second: Floats


def housing_source() -> str:
    """Where the houses come from: the name of a file, scikit-learn, or nowhere."""
    if "DPSUBSET_HOUSING" in os.environ:
        return _named("DPSUBSET_HOUSING").name
    return "scikit-learn" if _cached().exists() else MADE_UP


def snp_source() -> str:
    """Where the genes come from: the name of a file, or nowhere."""
    return _named("DPSUBSET_SNP").name if "DPSUBSET_SNP" in os.environ else MADE_UP


@lru_cache(maxsize=1)
def houses() -> Houses:
    """The table that `housing_source` names."""
    if "DPSUBSET_HOUSING" in os.environ:
        frame = pd.read_csv(_named("DPSUBSET_HOUSING"))
        frame.columns = frame.columns.str.strip().str.lower()
    elif _cached().exists():
        frame = _from_scikit_learn()
    else:
        frame = _made_up_houses()
    missing = {*HOUSING, VALUE} - set(frame.columns)
    if missing:
        raise ValueError(f"the table of houses has no column {', '.join(sorted(missing))}")
    frame = frame[[*HOUSING, VALUE]].dropna()
    bounds = {**HOUSING, VALUE: VALUE_BOUNDS}
    scaled = {name: _scaled(frame[name].to_numpy(float), *bounds[name]) for name in bounds}
    return Houses(np.column_stack([scaled[name] for name in HOUSING]), scaled[VALUE])


@lru_cache(maxsize=1)
def genes() -> Genes:
    """The table that `snp_source` names; of more sites, those with the most frequent alleles."""
    if "DPSUBSET_SNP" not in os.environ:
        return _made_up_genes()
    path = _named("DPSUBSET_SNP")
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            x, group = np.asarray(file["x"], dtype=float), np.asarray(file["group"])
    else:
        frame = pd.read_csv(path)
        group = frame.pop("group").to_numpy()
        x = frame.to_numpy(float)
    labels = np.unique(group)
    if len(labels) != 2:
        raise ValueError("the column group of the genes must have two values")
    x = np.clip(np.nan_to_num(x), 0, 2)
    frequent = np.sort(np.argsort(-x.mean(axis=0), kind="stable")[:SITES])
    parts = sorted((x[group == label][:, frequent] for label in labels), key=len, reverse=True)
    return Genes(*parts)


def _named(variable: str) -> Path:
    path = Path(os.environ[variable]).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{variable} names no file; unset it for a made-up table")
    return path


def _cached() -> Path:
    """Where scikit-learn keeps it. Its own loader would make the folder."""
    home = os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")
    return Path(home).expanduser() / "cal_housing_py3.pkz"


def _from_scikit_learn() -> pd.DataFrame:
    """With totals from what is kept as averages."""
    from sklearn.datasets import fetch_california_housing

    found = fetch_california_housing(download_if_missing=False, as_frame=True)
    frame = found.frame
    households = frame["Population"] / frame["AveOccup"]
    return pd.DataFrame(
        {
            "median_income": frame["MedInc"],
            "housing_median_age": frame["HouseAge"],
            "population": frame["Population"],
            "households": households,
            "total_rooms": frame["AveRooms"] * households,
            VALUE: 100_000 * frame["MedHouseVal"],
        }
    )


def _made_up_houses() -> pd.DataFrame:
    """As many rows, columns of about the same size, three of which say nearly the same."""
    rng = np.random.default_rng(1990)
    households = np.exp(rng.normal(6, 0.7, ROWS))
    income = rng.gamma(4.2, 0.92, ROWS)
    age = rng.integers(1, 53, ROWS).astype(float)
    population = households * np.exp(rng.normal(1.05, 0.3, ROWS))
    rooms = households * np.exp(rng.normal(1.3, 0.2, ROWS) + 0.08 * (income - 3.9))
    value = (
        10_000 + 45_000 * income + 1_500 * age - 40 * population + 150 * households
        + rng.normal(0, 75_000, ROWS)
    )  # fmt: skip
    columns = (income, age, population, households, rooms)
    return pd.DataFrame({**dict(zip(HOUSING, columns, strict=True)), VALUE: value})


def _made_up_genes() -> Genes:
    """Alleles that are nearly as frequent as they can be; some frequencies differ by 0.3."""
    rng = np.random.default_rng(387)
    rates = np.tile(rng.uniform(0.35, 0.5, SITES), (2, 1))
    rates[1, :DIFFERENT] -= 0.3
    drawn = [
        rng.binomial(2, rate, (count, SITES)).astype(float)
        for rate, count in zip(rates, GROUPS, strict=True)
    ]
    return Genes(*drawn)


def _scaled(values: NDArray[np.float64], low: float, high: float) -> Floats:
    return 2 * (np.clip(values, low, high) - low) / (high - low) - 1
