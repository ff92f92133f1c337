"""Merged moments: no reading of a table counts twice, through copies, pickles and files."""

from __future__ import annotations

import copy
import pickle
import random
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset import ArgumentError, Moments, TableError

SCHEMA = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
X = np.random.default_rng(0).uniform(0, 1, (30, 3))


def of(rows: Any = slice(None)) -> Moments:
    return Moments.from_blocks(SCHEMA, [(X[rows, :2], X[rows, 2])])


def saved(moments: Moments, path: Path) -> Moments:
    moments.save(path)
    return Moments.load(path)


def old_file(moments: Moments, path: Path) -> Path:
    """As earlier versions wrote it."""
    np.savez(
        path, products=moments.products, n=np.int64(moments.n),
        fingerprint=np.array(moments.fingerprint), constant=np.int64(moments.constant),
    )  # fmt: skip
    return path


def test_the_same_moments_are_not_merged_twice() -> None:
    m = of()
    with pytest.raises(ArgumentError, match="records in common"):
        m + m
    with pytest.raises(ArgumentError, match="count twice"):
        m.merge(m)
    with pytest.raises(ArgumentError, match="in common"):
        sum([m, of(), m])


def test_a_part_of_a_sum_is_not_added_again(tmp_path: Path) -> None:
    a, b, c = of(slice(10)), of(slice(10, 20)), of(slice(20, 30))
    whole = a + b + c
    for part in (a, b, c, a + b, c + a, saved(b + c, tmp_path / "m.npz")):
        for one, other in ((whole, part), (part, whole)):
            with pytest.raises(ArgumentError, match="in common"):
                one + other
    assert whole.parts == a.parts | b.parts | c.parts
    assert whole == of()


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), Moments.checked],
    ids=["copy", "deepcopy", "pickle", "checked"],
)
def test_copies_are_the_same_records(again: Any) -> None:
    m = of(slice(10)) + of(slice(10, 20))
    assert again(m) == m
    assert again(m).parts == m.parts
    with pytest.raises(ArgumentError, match="in common"):
        m + again(m)
    assert (again(m) + of(slice(20, 30))).n == 30


def test_files_are_the_same_records(tmp_path: Path) -> None:
    m = of(slice(10)) + of(slice(10, 20))
    one, two = saved(m, tmp_path / "m.npz"), saved(m, tmp_path / "n.npz")
    assert one.parts == two.parts == m.parts
    for a, b in ((one, two), (m, one), (two, m)):
        with pytest.raises(ArgumentError, match="in common"):
            a + b
    assert one + of(slice(20, 30)) == of()


def test_files_of_earlier_versions_are_loaded_and_not_merged_twice(tmp_path: Path) -> None:
    path = old_file(of(slice(10)), tmp_path / "old.npz")
    one, other = Moments.load(path), Moments.load(old_file(of(slice(10, 30)), tmp_path / "x.npz"))
    assert one == of(slice(10))
    assert one + other == of()
    for again in (Moments.load(path), saved(one, tmp_path / "new.npz"), one + other):
        with pytest.raises(ArgumentError, match="in common"):
            one + again
    empty = Moments.load(old_file(of(slice(0)), tmp_path / "empty.npz"))
    assert (empty + empty + one).parts == one.parts


def test_readings_are_told_apart_and_sums_compared() -> None:
    """The same rows read twice cannot be noticed; what is equal is decided by the sums."""
    assert of().parts.isdisjoint(of().parts)
    assert of() == of()
    assert (of() + of()).n == 60
    (part,) = of().parts
    assert len(part) == 16


def test_sums_of_many() -> None:
    parts = [of(slice(i, i + 1)) for i in range(30)]
    assert sum(parts) == of()
    assert sum(parts[1:], start=parts[0]) == of()
    with pytest.raises(TypeError):
        1 + parts[0]
    with pytest.raises(TypeError):
        False + parts[0]
    with pytest.raises(ArgumentError, match="only be merged with moments"):
        parts[0] + 1


def test_ten_thousand_parts_merge_in_any_order(tmp_path: Path) -> None:
    products = np.zeros((4, 4), dtype=np.int64)
    many = [Moments(products, 0, "f") for _ in range(10_000)]
    random.Random(0).shuffle(many)
    whole = reduce(Moments.merge, many)
    assert len(whole.parts) == len(many)
    assert saved(whole, tmp_path / "m.npz").parts == whole.parts
    with pytest.raises(ArgumentError, match="in common"):
        whole + many[5000]


@pytest.mark.parametrize(
    "parts", [None, [b"0" * 16], {b"0" * 16}, frozenset({"0" * 16}), frozenset({b"0" * 15})]
)
def test_parts_that_are_none_are_refused(parts: Any) -> None:
    m = of()
    m.parts = parts
    with pytest.raises(TableError, match="which readings"):
        dps.select(m, SCHEMA, k=1, epsilon=1)


@pytest.mark.parametrize(
    "change",
    [
        {"version": np.int64(3)},
        {"version": np.array("2.5")},
        {"parts": None},
        {"parts": np.zeros((1, 15), np.uint8)},
        {"parts": np.zeros((1, 16), np.int64)},
        {"parts": np.zeros(16, np.uint8)},
    ],
)
def test_files_with_other_parts_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    of().save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        facts = {name: file[name] for name in file}
    kept = {name: value for name, value in {**facts, **change}.items() if value is not None}
    np.savez(tmp_path / "m.npz", **kept)
    with pytest.raises(TableError, match="is not a file of moments that this version can read"):
        Moments.load(tmp_path / "m.npz")
