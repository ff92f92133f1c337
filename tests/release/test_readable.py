"""Types that go ill with a schema, and noisy counts of cells that hold no value."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.audit.laws import Law, SupNorm
from dpsubset.audit.steps import Readable, audit_step
from dpsubset.cli import app
from dpsubset.privacy.missing_counts import MOST_COUNTED, ReadableCheck, readable_fraction
from dpsubset.privacy.noisy_counts import NoisyCounts
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.privacy.sup_norm import draw, margin
from dpsubset.release.readable import ReleasedReadable
from dpsubset.schema.column import Column

N = 2000
RNG = np.random.default_rng(5)
AGE = RNG.uniform(0, 100, N)
SCHEMA = dps.Schema.from_bounds({"age": (0, 110), "b": (0, 1)}, ("cost", 0, 20_000))
DOLLARS = pd.DataFrame({"age": AGE, "b": RNG.random(N), "cost": [f"${c:,.2f}" for c in 100 * AGE]})
BY = {"owner": "Ann", "purpose": "tests"}
TYPED = DOLLARS.astype({"cost": "string"})


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


# -- types ---------------------------------------------------------------------------------------


def test_releases_warn_of_types_and_say_so(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    dps.Ledger.create(ledger, data_set="t", epsilon=100, **BY)
    told = "column 'cost' is text, declared as a number"
    for make in (dps.select, dps.fit):
        with pytest.warns(dps.ColumnTypeWarning, match=told):
            release = make(TYPED, SCHEMA, k=1, epsilon=1, ledger=False)
        (text,) = release.column_warnings
        assert text.startswith(told)
        assert f"Warning: {told}" in str(release)
        assert json.loads(release.to_json())["column_warnings"] == [text]
        for form in ("markdown", "html", "json"):
            assert "declared as a number: every cell" in release.statement(form=form)
    with pytest.warns(dps.ColumnTypeWarning, match=told):
        release = dps.select(TYPED, SCHEMA, k=1, epsilon=1)
    assert dps.Release.from_json(release.to_json(), SCHEMA) == release
    with pytest.warns(dps.ColumnTypeWarning, match=told):
        fitted = dps.fit_released(release, TYPED, SCHEMA, epsilon=1)
    assert fitted.column_warnings == release.column_warnings
    with pytest.warns(dps.ColumnTypeWarning, match=told):
        bounds = dps.suggest_bounds(TYPED, {"cost": (0, 1e6)}, epsilon=1)
    assert told in str(bounds)
    assert bounds.to_dict()["column_warnings"][0].startswith(told)
    with pytest.warns(dps.ColumnTypeWarning, match=told):
        dps.private_mean(TYPED, {"cost": (0, 1e6)}, epsilon=1)
    # Whoever makes errors of warnings has spent nothing.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dps.ColumnTypeWarning):
            dps.select(TYPED, SCHEMA, k=1, epsilon=1, ledger=ledger)
    assert not dps.Ledger(ledger).history().entries


def test_estimators_and_arrays_warn_too() -> None:
    x = DOLLARS[["age", "b"]]
    text = np.array(DOLLARS["cost"].tolist())
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "schema": SCHEMA}
    for y in (TYPED["cost"], text, pa.array(text.tolist())):
        with pytest.warns(dps.ColumnTypeWarning, match="column 'cost' is text"):
            dps.PrivateSubsetSelector(**asked).fit(x, y)
    with pytest.warns(dps.ColumnTypeWarning, match="column 'cost' is text"):
        dps.PrivateSubsetRegressor(**asked).fit(x, text)
    with pytest.warns(dps.ColumnTypeWarning, match="column 'x0' is text"):
        dps.select(np.array([["1", "2"]] * 9), y=np.zeros(9), bounds=dps.Bounds(x=1, y=1), k=1,
                   epsilon=1)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # lists and objects say nothing of what they hold
        dps.select(x, SCHEMA, y=list(text), k=1, epsilon=1)
        dps.select(DOLLARS.astype(object), SCHEMA, k=1, epsilon=1)


def test_the_command_line_warns_on_stderr(tmp_path: Path) -> None:
    table, schema = tmp_path / "t.parquet", tmp_path / "s.yaml"
    pq.write_table(pa.Table.from_pandas(DOLLARS), table)
    SCHEMA.write(schema)
    out = tmp_path / "n.yaml"
    for command in (
        ("select", table, "--schema", schema, "--k", 1, "--epsilon", 1, "--quiet"),
        ("fit", table, "--schema", schema, "--k", 1, "--epsilon", 1, "--quiet"),
        ("bounds", "suggest", table, "--schema", schema, "--epsilon", 1, "--out", out),
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
        assert "Warning: column 'cost' is text, declared as a number" in result.stderr
        assert ".py:" not in result.stderr


@pytest.mark.parametrize(
    ("cells", "declared"),
    [
        (np.arange(9), {"labels": ("no", "yes")}),
        (np.arange(9) / 2, {"labels": ("no", "yes")}),
        (np.arange(9) > 3, {"labels": ("no", 2)}),
        (np.arange(9).astype("M8[D]"), {"labels": ("no", "yes")}),
        (np.arange(9).astype("M8[D]"), {"lo": 0, "hi": 1}),
        (np.arange(9), {"lo": "1990-01-01", "hi": "2000-01-01"}),
        (np.arange(9), {"lo": "1990-01-01", "hi": "2000-01-01", "format": "%m/%d/%Y"}),
    ],
)
def test_what_no_cell_can_be_is_refused_before_anything_is_spent(
    cells: Any, declared: dict[str, Any], tmp_path: Path
) -> None:
    """By its type alone: the same cells without a type are read, in vain."""
    x = np.zeros((9, 1))
    schema = dps.Schema((Column("a", 0, 1),), Column("y", **declared))
    ledger = tmp_path / "l.db"
    dps.Ledger.create(ledger, data_set="t", epsilon=1, **BY)
    frame = pd.DataFrame({"a": 0.0, "y": cells})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    tables: list[tuple[Any, Any]] = [
        (x, cells), (x, pd.Series(cells)), (frame, None), (tmp_path / "t.parquet", None),
        (pa.Table.from_pandas(frame), None),
    ]  # fmt: skip
    for data, y in tables:
        with pytest.raises(dps.TableError):
            dps.select(data, schema, y=y, k=1, epsilon=1, ledger=ledger)
    assert not dps.Ledger(ledger).history().entries
    dps.select(x, schema, y=cells.tolist(), k=1, epsilon=1, ledger=False)
    dps.select(frame.astype(object), schema, k=1, epsilon=1, ledger=False)


def test_levels_that_no_cell_can_have() -> None:
    schema = dps.Schema.from_bounds({"a": {"levels": ["x", "y"]}, "b": (0, 1)}, ("z", 0, 1))
    frame = pd.DataFrame({"a": [1, 2], "b": [0.0, 1.0], "z": [0.0, 1.0]})
    with pytest.raises(dps.TableError, match="none of the declared levels"):
        dps.select(frame, schema, k=1, epsilon=1)
    with pytest.raises(dps.TableError, match="none of the declared levels"):
        dps.select(frame[["a", "b"]].to_numpy(), schema, y=frame["z"], k=1, epsilon=1)
    # What a list happens to hold is no type.
    estimator = dps.PrivateSubsetSelector(k=1, epsilon=1, schema=schema)
    for rows in ([[1, 0.5], [2, 0.5]], [["x", 0.5], [2, 0.5]]):
        estimator.fit(rows, [0.0, 1.0])


# -- counts --------------------------------------------------------------------------------------


def test_costs_with_a_currency_sign_are_found_out(tmp_path: Path) -> None:
    path, schema = tmp_path / "t.csv", tmp_path / "s.yaml"
    DOLLARS.to_csv(path, index=False)
    SCHEMA.write(schema)
    asked: dict[str, Any] = {"k": 1, "epsilon": 10, "check_readable": True}
    for neighbours, make in itertools.product(("replace-one", "add-remove"), (dps.select, dps.fit)):
        with pytest.warns(dps.ColumnTypeWarning, match="Most cells of cost seem"):
            release = make(path, SCHEMA, neighbours=neighbours, **asked)
        assert release.guarantee.epsilon == 10
        part = dict(release.guarantee.parts)["the count of unreadable cells"]
        assert part.costs[neighbours].epsilon == Fraction(1, 10)
        readable = release.readable
        assert readable is not None
        assert readable.rows_noisy == (neighbours == "add-remove")
        found = dict(readable.counts)
        # Each a few margins away at most: 20 of them have a chance of exp(-40).
        assert abs(found["cost"] - N) < 20 * readable.margin
        assert abs(found["age"]) < 20 * readable.margin
        assert "Most cells of cost seem" in str(release)
        assert "of cost are missing or could not be read" in release.statement()
        assert "proofs/readable.md" in release.statement()
        if release.model is None:
            assert dps.Release.from_json(release.to_json(), SCHEMA) == release
    result = run("select", path, "--schema", schema, "--k", 1, "--epsilon", 10, "--check-readable",
                 "0.01", "--quiet")  # fmt: skip
    assert "Warning: Most cells of cost seem" in result.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a paid release is not lost to a filter
        assert dps.select(path, SCHEMA, **asked).readable is not None


def test_the_price_and_the_ledger_have_the_count(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    dps.Ledger.create(ledger, data_set="t", epsilon=1, **BY)
    frame = DOLLARS.assign(cost=100 * AGE)
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "check_readable": Fraction(1, 20)}
    for price, make in ((dps.price, dps.select), (dps.price_fit, dps.fit)):
        told = price(frame, SCHEMA, **asked).guarantee
        release = make(frame, SCHEMA, **asked)
        assert told == release.guarantee
        assert told is not None
        assert told.epsilon == 1
        assert dict(told.parts)["the count of unreadable cells"].epsilon == Fraction(1, 20)
    dps.select(frame, SCHEMA, **asked, ledger=ledger)
    with pytest.raises(dps.BudgetExceeded):
        dps.select(frame, SCHEMA, k=1, epsilon=1e-3, ledger=ledger)


@pytest.mark.parametrize("wrong", [0, -1, 0.6, 1, "much", float("nan")])
def test_shares(wrong: Any) -> None:
    with pytest.raises(dps.ArgumentError, match="check_readable"):
        readable_fraction(wrong)
    assert readable_fraction(None) == readable_fraction(False) == 0
    assert readable_fraction(True) == Fraction(1, 100)


def test_moments_have_no_cells() -> None:
    x, y = np.zeros((9, 2)), np.zeros(9)
    schema = dps.Schema.from_bounds({"a": (-1, 1), "b": (-1, 1)}, ("y", -1, 1))
    moments = dps.Moments.from_blocks(schema, [(x, y)])
    with pytest.raises(dps.ArgumentError, match="moments do not contain cells"):
        dps.select(moments, schema, k=1, epsilon=1, check_readable=True)


def test_what_is_counted() -> None:
    x = np.array([[1.0, math.nan], [math.nan, math.nan], [0, 0]])
    schema = dps.Bounds(x=1, y=1).schema(["a", "b"])
    table = SensitiveTable(x, schema, np.array([math.nan, 0, 0]))
    assert table.count_bad() == ([1, 2, 1], 3)
    assert ReadableCheck.of(schema, Fraction(1), "replace-one").values([1, 2, 1], 3) == [1, 2, 1]
    assert ReadableCheck.of(schema, Fraction(1), "add-remove").values([1, 2, 1], 3) == [1, 2, 1, 3]
    many = dps.Bounds(x=1, y=1).schema([f"x{j}" for j in range(MOST_COUNTED + 1)])
    check = ReadableCheck.of(many, Fraction(1), "replace-one")
    assert check.names == (None, "y")
    assert check.values([*range(MOST_COUNTED + 1), 7], 99) == [MOST_COUNTED, 7]
    found = ReleasedReadable.of(check.names, [900, 7], 1000, Fraction(1))
    assert "the feature that has most of them" in " ".join(found.warnings())


@pytest.mark.parametrize(("d", "eta"), [(1, 0.1), (3, 0.05), (20, 0.2)])
def test_margins_hold_as_often_as_they_say(d: int, eta: float) -> None:
    rng, most = Randomness(SeededSource(1)), margin(d, eta, 0.95)
    inside = sum(abs(draw(d, Fraction(eta), rng)[0]) <= most for _ in range(1500))
    assert 0.925 < inside / 1500 < 0.975


def test_counts_of_small_tables_cost_epsilon_and_no_more() -> None:
    """Every table of two rows and two columns that have a value or none, and every neighbour."""
    epsilon = Fraction(1, 3)
    rows = list(itertools.product((0.0, math.nan), repeat=2))
    schema = dps.Bounds(x=1, y=1).schema(["a"])

    def law(table: Sequence[Sequence[float]], neighbours: Any) -> SupNorm:
        cells = np.array(table, dtype=np.float64).reshape(-1, 2)
        bad, n = SensitiveTable(cells[:, :1], schema, cells[:, 1]).count_bad()
        check = ReadableCheck.of(schema, epsilon, neighbours)
        return SupNorm(tuple(check.values(bad, n)), check.noise)

    for neighbours in ("replace-one", "add-remove"):
        promised = NoisyCounts(epsilon, neighbours).guarantee().costs
        worst: Counter[str] = Counter()
        for rest, one, other in itertools.product(rows, rows, rows):
            pairs = {"replace-one": ([rest, one], [rest, other]),
                     "add-remove": ([rest], [rest, other])}  # fmt: skip
            for relation in promised:
                first, second = (law(table, neighbours) for table in pairs[relation])
                worst[relation] = max(worst[relation], first.farthest(second))
        assert set(worst) == set(promised)
        for relation, cost in promised.items():
            assert worst[relation] == pytest.approx(float(cost.epsilon), rel=1e-12)


class Louder(Readable):
    """Twice the eta that is paid for."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return replace(law, noise=replace(law.noise, epsilon=2 * law.noise.epsilon))


class Apart(Readable):
    """Each count pays epsilon for itself, as if the others were of other people."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return _Apart(law.values, law.noise)


class _Apart(SupNorm):
    def log(self, outcome: Sequence[int]) -> float:
        far = sum(abs(w - v) for w, v in zip(outcome, self.values, strict=True))
        return -float(self.noise.eta * far)


class ManyReadable(Readable):
    """More features than are counted one by one."""

    name = "readable, many columns"
    columns = MOST_COUNTED + 2


def test_the_audit_comes_near_and_catches_twins() -> None:
    report = audit_step(ManyReadable(), Fraction(1, 2), runs=40)
    assert not report.contradicted
    assert report.exact is not None
    assert report.exact.utilisation > 0.99
    for twin in (Louder(), Apart()):
        assert audit_step(twin, runs=40).contradicted


@pytest.mark.parametrize("check", [0.01, 0.3, 0.5])
@pytest.mark.parametrize("share", [0.001, 0.6, 0.999])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_fit_pays_for_the_check_beside_any_share(share: float, check: float, rows: int) -> None:
    schema = replace(SCHEMA, privacy_unit="one person", rows_per_unit=rows)
    asked: dict[str, Any] = {"k": 1, "epsilon": 2, "check_readable": check}
    found = dps.price_fit(TYPED, schema, rule=dps.FitRule(budget_fraction=share), **asked).guarantee
    exact = {"check": Fraction(str(check)), "fit": Fraction(str(share))}
    assert found.epsilon == sum(part.epsilon or 0 for _, part in found.parts) == 2
    sizes = sorted(part.epsilon or Fraction(0) for _, part in found.parts)
    assert 2 * exact["check"] in sizes
    assert 2 * (1 - exact["check"]) * exact["fit"] in sizes
