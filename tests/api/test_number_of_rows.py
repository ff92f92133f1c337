"""Where a cost under add-remove is stated, nothing in a release depends on the number of rows.

Whoever knows all rows but one could otherwise count: n tells exactly whether that row is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.api.fit import event_of_fit
from dpsubset.api.select import event_of_select
from dpsubset.base.errors import LedgerError
from dpsubset.mechanisms import MECHANISMS
from dpsubset.release.verify import checks
from support.ledgers import made

N = 40
BOUNDS = dps.Bounds(x=(-1, 1), y=(-1, 1))
SCHEMA = dps.Schema.from_bounds(dict.fromkeys("abc", (-1, 1)), ("y", -1, 1))
LABELS = dps.Schema.from_bounds(dict.fromkeys("abc", (-1, 1)), "y", labels=("no", "yes"))

#: Options with which no choice is left to n, or with which it is.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "penalised": [{}, {"phi": 1}],
    "choose-size": [{}, {"phi": 1}],
    "sample-aggregate": [{}, {"blocks": 3}],
    "stability": [{}, {"blocks": 3}],
    "hard-thresholding": [{}, {"rows": 9}, {"iterations": 1}],
    "top-r": [{}, {"T": 50}, {"R": 1, "T": 50}],
    "metropolis": [{"steps": 40}],
}
CASES = [(name, given) for name in MECHANISMS for given in VARIANTS.get(name, [{}])]
#: These depend on n, and say so: no cost under add-remove.
BY_ROWS = [
    ("penalised", {}), ("choose-size", {}), ("sample-aggregate", {}),
    ("hard-thresholding", {}), ("top-r", {"R": 1, "T": 50}),
]  # fmt: skip


def arrays(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A table of N rows, or the same and rows in the middle of everything."""
    rng = np.random.default_rng(5)
    x, y = np.zeros((n, 3)), np.zeros(n)
    x[:N] = rng.uniform(-1, 1, (N, 3))
    y[:N] = np.clip(x[:N, 0] + 0.1 * rng.normal(size=N), -1, 1)
    return x, y


def stated(facts: Any) -> bool:
    """Whether a cost under add-remove stands anywhere in the facts of a release."""
    if isinstance(facts, dict):
        here = any("add_remove" in key and value is not None for key, value in facts.items())
        costs = facts.get("costs")
        here |= isinstance(costs, dict) and "add-remove" in costs
        return here or any(map(stated, facts.values()))
    return isinstance(facts, list) and any(map(stated, facts))


FORMS: tuple[Any, ...] = ("markdown", "html", "json", "yaml")


def told(release: dps.Release) -> list[str]:
    """All that leaves with a release, but the day."""
    dated = replace(release, date="2024-05-17")
    return [dated.to_json(), str(dated), *(dated.statement(form=form) for form in FORMS)]


def outcome(release: dps.Release) -> Any:
    return release.support, release.scale and release.scale.exact.quantiles


def alike(release: Callable[[int, int], dps.Release]) -> tuple[dps.Release, dps.Release]:
    """Releases with the same outcome from neighbouring tables, of N rows and of one more."""

    def pairs() -> Iterator[tuple[dps.Release, dps.Release]]:
        for seed in range(100):
            yield release(N, seed), release(N + 1, seed)

    return next(pair for pair in pairs() if outcome(pair[0]) == outcome(pair[1]))


def check(release: Callable[[int, int], dps.Release], *, covers: bool) -> None:
    """Of releases under replace-one: n is told, or a cost under add-remove, but never both."""
    first, second = alike(release)
    assert first.guarantee.neighbours == "replace-one"
    assert stated(first.to_dict()) is covers
    assert ("under add-remove" in str(first)) is covers or not first.guarantee.private
    assert ("add-remove" in first.guarantee.costs) is covers
    if covers:
        assert told(first) == told(second)
        assert "not part of this release" in first.statement()
    elif first.guarantee.proven:
        assert first.rows == N
        assert f"Number of rows: {N} (public)" in first.statement()
        assert "is in the table at all" not in first.statement()


@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_every_mechanism(name: str, given: dict[str, Any]) -> None:
    chosen, asked = MECHANISMS[name], {"k": 1 if name != "top-r" else 2}

    def release(n: int, seed: int) -> dps.Release:
        x, y = arrays(n)
        return dps.select(
            x, y=y, bounds=BOUNDS, epsilon=2, mechanism=name, options=given,
            delta=0 if chosen.takes_delta == "no" else 1e-3, response_range="declared",
            seed=seed if chosen.seedable else None, **asked,
        )  # fmt: skip

    check(release, covers=(name, given) not in BY_ROWS)


def by_schema(n: int) -> Any:
    x, y = arrays(n)
    return pd.DataFrame(x, columns=list("abc")).assign(y=y)


def labelled(n: int) -> Any:
    """Only N rows have a label, so that the same noise gives the same counts."""
    frame = by_schema(n)
    labels = np.where(frame["y"] > 0, "yes", "no").astype(object)
    labels[N:] = None
    return frame.assign(y=labels)


def moments(n: int) -> Any:
    x, y = arrays(n)
    return dps.Moments.from_blocks(SCHEMA, [(x, y)])


KINDS: dict[str, tuple[Callable[[int], Any], Any, dict[str, Any], bool]] = {
    "declared scale": (by_schema, SCHEMA, {"response_range": "declared"}, True),
    "named scale": (
        by_schema, SCHEMA, {"response_range": dps.ResponseRange(dps.QuantileRule.median())}, True,
    ),
    "usual scale": (by_schema, SCHEMA, {}, False),
    "moments": (moments, SCHEMA, {}, True),
    "labels": (labelled, LABELS, {}, True),
    "labels, logistic": (labelled, LABELS, {"loss": "logistic"}, True),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table(kind: str) -> None:
    table, schema, asked, covers = KINDS[kind]

    def release(n: int, seed: int) -> dps.Release:
        return dps.select(table(n), schema, k=1, epsilon=2, seed=seed, **asked)

    check(release, covers=covers)
    events = [event_of_select(table(n), schema, k=1, epsilon=2, **asked) for n in (N, N + 1)]
    prices = [dps.price(table(n), schema, k=1, epsilon=2, **asked) for n in (N, N + 1)]
    assert ("add-remove" in events[0].costs) is covers
    assert ("under add-remove" in str(prices[0])) is covers
    if covers:
        assert events[0] == events[1]
        assert prices[0] == prices[1]


@pytest.mark.parametrize("mechanism", ["noisy-moments", "objective-perturbation"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_uses_the_number_of_rows_and_says_so(kind: str, mechanism: str) -> None:
    """Its parts too: they are in the same release."""
    table, schema, asked, _ = KINDS[kind]
    if kind == "moments" and mechanism != "noisy-moments":
        return
    asked = {**asked, "rule": dps.FitRule(mechanism=mechanism)}
    release = dps.fit(table(N), schema, k=1, epsilon=2, **asked)
    assert not stated(release.to_dict())
    assert release.rows == N
    assert set(event_of_fit(table(N), schema, k=1, epsilon=2, **asked).costs) == {"replace-one"}


def test_a_fit_on_a_release_that_hides_the_number_of_rows() -> None:
    table, schema, asked, _ = KINDS["declared scale"]
    earlier = dps.select(table(N), schema, k=1, epsilon=2, **asked)
    assert earlier.rows is None
    assert stated(earlier.to_dict())
    later = dps.fit_released(earlier, table(N), epsilon=1)
    assert later.rows == N
    assert not stated(later.to_dict())


def test_suggested_bounds() -> None:
    asked: dict[str, Any] = {"epsilon": 2, "columns": ["a"]}
    usual = dps.suggest_bounds(by_schema(N), (-2, 2), **asked)
    assert set(usual.guarantee.costs) == {"replace-one"}
    named = [
        dps.suggest_bounds(
            by_schema(n), (-2, 2), rule=dps.QuantileRule.quartiles(), seed=seed, **asked
        )
        for seed in range(60)
        for n in (N, N + 1)
    ]
    assert set(named[0].guarantee.costs) == {"replace-one", "add-remove"}
    pairs = zip(named[::2], named[1::2], strict=True)
    same = [(a, b) for a, b in pairs if a.to_dict()["quantiles"] == b.to_dict()["quantiles"]]
    assert all((str(a), a.to_dict(), a.facts) == (str(b), b.to_dict(), b.facts) for a, b in same)
    assert same


@pytest.mark.parametrize("truncation", ["declared", "private"])
def test_means_are_divided_by_the_number_of_rows(truncation: Any) -> None:
    asked: dict[str, Any] = {"epsilon": 2, "columns": ["a", "b"], "truncation": truncation}
    for mean in (dps.private_mean, lambda *a, **more: dps.sparse_mean(*a, s=1, **more)):
        assert set(mean(by_schema(N), (-1, 1), **asked).guarantee.costs) == {"replace-one"}


def test_sparse_regression() -> None:
    asked: dict[str, Any] = {"k": 1, "epsilon": 2}
    usual = dps.sparse_regression(by_schema(N), SCHEMA, **asked)
    assert set(usual.guarantee.costs) == {"replace-one"}
    named = [dps.sparse_regression(by_schema(n), SCHEMA, rows=9, **asked) for n in (N, N + 1)]
    assert set(named[0].guarantee.costs) == {"replace-one", "add-remove"}
    assert named[0].guarantee == named[1].guarantee


def test_a_ledger_of_add_remove_refuses_what_tells_n(tmp_path: Path) -> None:
    book = made("sqlite", tmp_path, neighbours="add-remove")

    x, y = arrays(N)
    for mechanism in ("penalised", "choose-size"):
        with pytest.raises(LedgerError, match="Use neighbours='add-remove'"):
            dps.select(x, y=y, bounds=BOUNDS, k=1, epsilon=1, mechanism=mechanism, ledger=book,
                       response_range="declared")  # fmt: skip
    with pytest.raises(LedgerError, match="alone, since it states the number of rows or depends"):
        dps.fit(x, y=y, bounds=BOUNDS, k=1, epsilon=1, ledger=book, response_range="declared")
    assert book.verify().entries == {}
    release = dps.select(x, y=y, bounds=BOUNDS, k=1, epsilon=1, ledger=book,
                         response_range="declared")  # fmt: skip
    assert release.rows is None
    assert release.receipt is not None
    assert len(book.verify().entries) == 1


def faults(path: Path) -> list[str]:
    return [each.says for each in checks(path, SCHEMA.fingerprint()) if each.holds is False]


def test_a_file_of_an_earlier_version_is_read_and_put_right(tmp_path: Path) -> None:
    """They have n beside a cost under add-remove: its statement has the cost no more."""
    release = dps.select(by_schema(N), SCHEMA, k=1, epsilon=2, response_range="declared")
    old = replace(release, rows=N)
    path = tmp_path / "old.json"
    path.write_text(old.to_json())
    again = dps.Release.load(path, SCHEMA)
    assert stated(old.to_dict())
    assert not stated(again.to_dict())
    assert again.to_dict()["parameters"] == old.to_dict()["parameters"]
    assert set(again.guarantee.costs) == set(again.stated.costs) == {"replace-one"}
    (tmp_path / "new.json").write_text(again.to_json())
    assert dps.Release.load(tmp_path / "new.json", SCHEMA).to_dict() == again.to_dict()
    assert faults(tmp_path / "new.json") == []
    assert "is in the table at all" not in again.statement()
    assert "under add-remove" not in str(again)
    (wrong,) = faults(path)
    assert "its cost under add-remove does not hold" in wrong
    path.write_text(release.to_json())
    assert faults(path) == []
