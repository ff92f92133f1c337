"""Rows whose response cannot be read contribute nothing, and how many there are is private."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.audit.exact import Pair, audit_exact, worst_case_pairs
from dpsubset.audit.pairs import missing_response_pairs
from dpsubset.base.errors import ArgumentError, SchemaError, TableError
from dpsubset.data.column_selection import select_columns
from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.data.readers import open_table
from dpsubset.data.sums import Sums
from dpsubset.mechanisms import mechanism
from dpsubset.models.entries import Entries, of_support
from dpsubset.models.objective_perturbation import margins
from dpsubset.models.smooth import LOGISTIC
from dpsubset.objective.losses import LOSSES, scorer
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.encoding import Design

COLUMNS: dict[str, Any] = {
    "a": (-1, 1),
    "ward": {"levels": ["x", "y", "z"], "missing": {"as": "indicator"}},
    "b": {"lo": 0, "hi": 10, "missing": {"codes": [-9], "as": "indicator"}},
}


def schema(**response: Any) -> dps.Schema:
    return dps.Schema.from_bounds(COLUMNS, {"name": "y", "lo": -2, "hi": 2, **response})


SCHEMA = schema()


def frame(n: int, share: float = 0.3, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, n), rng.uniform(0, 10, n)
    table = pd.DataFrame({
        "a": a, "ward": rng.choice(["x", "y", "z", "?"], n), "b": b,
        "y": 1.2 * a + 0.05 * b + rng.normal(0, 0.2, n),
    })  # fmt: skip
    table.loc[rng.random(n) < share, "y"] = np.nan
    table.loc[rng.random(n) < 0.1, "b"] = -9
    return table


# -- declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [{"as": "drop"}, {"codes": [-9], "as": "drop"}, [-9]])
def test_the_rule_can_be_declared_for_the_response(missing: Any, tmp_path: Path) -> None:
    declared = schema(missing=missing)
    assert declared.response.drops_rows
    declared.write(tmp_path / "s.yaml")
    assert dps.Schema.read(tmp_path / "s.yaml") == declared


@pytest.mark.parametrize("rule", ["middle", "low", "high"])
def test_another_rule_of_the_response_keeps_all_rows(rule: str) -> None:
    declared = schema(missing={"as": rule})
    assert not declared.response.drops_rows
    table = frame(50)
    moments = Moments.from_blocks(declared, open_table(table, declared).blocks())
    assert moments.counted == moments.n == 50


def test_a_rule_for_all_cells_is_none_for_the_response() -> None:
    declared = dps.Schema.from_bounds(COLUMNS, ("y", -2, 2), bad_cells="low")
    moments = Moments.from_blocks(declared, open_table(frame(50), declared).blocks())
    assert moments.counted == int(frame(50)["y"].notna().sum()) < moments.n == 50


def test_features_cannot_drop_rows() -> None:
    with pytest.raises(SchemaError, match="for the response alone"):
        dps.Schema.from_bounds({"a": {"lo": 0, "hi": 1, "missing": {"as": "drop"}}}, ("y", 0, 1))


# -- what such a row is after the quantizer -------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.floats(), st.sampled_from(["x", "z", "?", ""]), st.floats() | st.just(-9.0)
        ),
        min_size=1, max_size=5,
    ),
    st.integers(0, 6),
    st.sampled_from([0, 1, 24575, STEPS]),
)  # fmt: skip
def test_a_dropped_row_changes_no_sum_whatever_its_features_are(
    cells: list[tuple[Any, ...]], place: int, constant: int
) -> None:
    present = frame(6, share=0)
    dropped = pd.DataFrame([(*row, math.nan) for row in cells], columns=present.columns)
    both = pd.concat([present.iloc[:place], dropped, present.iloc[place:]], ignore_index=True)

    def made(table: pd.DataFrame) -> tuple[Moments, GramData]:
        blocks = open_table(table, SCHEMA).blocks
        return (
            Moments.from_blocks(SCHEMA, blocks(), constant),
            GramData.from_records(SCHEMA, blocks(), constant),
        )

    (one, kept), (other, more) = made(present), made(both)
    np.testing.assert_array_equal(one.products, other.products)
    assert other.n == one.n + len(cells) == more.n
    assert one.counted == other.counted == (6 if constant else None)
    assert not more.records[:, place : place + len(cells)].any()
    assert not more.response[place : place + len(cells)].any()
    np.testing.assert_array_equal(
        np.delete(more.records, range(place, place + len(cells)), axis=1), kept.records
    )


def test_its_sums_and_its_row_of_a_fit_are_0() -> None:
    table = frame(30)
    part = of_support(SCHEMA, Design.of(SCHEMA), (0, 1, 2))
    entries = Entries.of(Design.of(part), counted=True)
    missing = table[table["y"].isna()]
    assert len(missing)
    moments = SensitiveTable(missing, SCHEMA).read_support(part, STEPS)
    assert not any(entries.values(moments.products))
    present = table[table["y"].notna()]
    whole, rest = (
        entries.values(SensitiveTable(t, SCHEMA).read_support(part, STEPS).products)
        for t in (table, present)
    )
    assert whole == rest
    cells = SensitiveTable(missing, SCHEMA).read_records(part, STEPS)
    rows, response = margins(entries, cells, LOGISTIC)
    assert not rows.any()
    assert not response.any()


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda t, d: t,
    "polars": lambda t, d: pl.from_pandas(t, nan_to_null=True),
    "csv": lambda t, d: (t.to_csv(d / "t.csv", index=False), d / "t.csv")[1],
    "unreadable": lambda t, d: (t.to_csv(d / "u.csv", index=False, na_rep="n/a"),
                                d / "u.csv")[1],
    "parquet": lambda t, d: (t.to_parquet(d / "t.parquet"), d / "t.parquet")[1],
    "objects": lambda t, d: t.astype(object).where(t.notna(), None),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_leaves_out_the_same_rows(name: str, tmp_path: Path) -> None:
    table = frame(40)
    expected = Moments.from_blocks(SCHEMA, open_table(table.dropna(), SCHEMA).blocks())
    data = SOURCES[name](table, tmp_path)
    found = Moments.from_blocks(SCHEMA, open_table(data, SCHEMA).blocks())
    np.testing.assert_array_equal(found.products, expected.products)
    assert (found.n, found.counted) == (40, expected.n)


def test_codes_and_other_labels_cannot_be_read_either() -> None:
    coded = schema(missing=[1.5])
    table = frame(20, share=0)
    table.loc[:4, "y"] = 1.5
    assert Moments.from_blocks(coded, open_table(table, coded).blocks()).counted == 15
    labelled = dps.Schema.from_bounds(COLUMNS, "y", labels=("no", "yes"))
    table["y"] = ["no", "yes", "maybe", ""] * 5
    assert Moments.from_blocks(labelled, open_table(table, labelled).blocks()).counted == 10


# -- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_scores_are_those_of_the_other_rows_and_a_constant(loss: str, intercept: bool) -> None:
    """The constant is what a record at prediction 0 costs: of every model on every support."""
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 1, (60, 5)), rng.uniform(-1, 1, 60)
    missing = rng.random(60) < 0.4
    y = np.where(missing, np.nan, y)
    schema = dps.Bounds(x=1, y=1).schema([f"x{j}" for j in range(5)])
    problem = Problem.create(5, 2, loss=loss, intercept=intercept)
    sensitivity = Sensitivity.of(problem)
    supports = np.array(list(combinations(range(5), 2)))
    found = []
    for kept in (np.ones(60, dtype=bool), ~missing):
        table = SensitiveTable(x[kept], schema, y[kept], records_for="this test")
        digest = table.read(problem)
        found.append(scorer(digest, problem, sensitivity.score_step).scores(supports))
    each = {"least-squares": 0.0, "huber": 0.0, "logistic": math.log(2), "hinge": 1.0}[loss]
    units = (found[0] - found[1]) * float(sensitivity.score_step)
    assert np.abs(units - each * missing.sum()).max() <= 2 * float(sensitivity.tau)


# -- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_fit_is_one_of_the_rows_with_a_response(neighbours: Any) -> None:
    table = frame(20_000, share=0.3, seed=3)
    present = int(table["y"].notna().sum())
    release = dps.fit(table, SCHEMA, k=1, epsilon=10, seed=2, neighbours=neighbours)
    assert release.model is not None
    assert release.fit is not None
    assert release.features == ["a"]
    low, high = release.model.intervals["a"]
    assert low < 1.2 < high
    assert high - low < 0.1
    assert release.fit.counted_rows == pytest.approx(present, abs=200)
    assert release.fit.n == (20_000 if neighbours == "replace-one" else None)
    assert release.to_dict()["fit"]["counted_rows"] == release.fit.counted_rows
    statement = release.statement()
    of_all = " of 20,000" if neighbours == "replace-one" else ""
    counted = f"about {release.fit.counted_rows:,}{of_all} rows with a readable"
    assert f"{counted} y (noise included)" in statement
    assert f"Fitted on {counted} y (noise included)" in str(release)
    assert not release.warnings_of_counts
    assert "Rows without a readable value of `y` contribute nothing; how many there are" in (
        statement
    )


def test_the_middle_pulls_coefficients_to_0_where_it_is_declared() -> None:
    """Where it is declared, the number of rows is public and no sum is released for it."""
    table = frame(20_000, share=0.3, seed=3)
    declared = schema(missing={"as": "middle"})
    release = dps.fit(table, declared, k=1, epsilon=10, seed=2)
    assert release.model is not None
    assert release.fit is not None
    assert release.model.intervals["a"][1] < 1.0
    assert release.fit.counted_rows is None
    dropped = dps.fit(table, SCHEMA, k=1, epsilon=10, seed=2)
    assert dropped.fit is not None
    assert len(dropped.fit.released) == len(release.fit.released) + 1
    assert "contribute nothing" not in release.statement()


def test_a_released_number_of_rows_is_within_what_is_public() -> None:
    rule = dps.FitRule(mechanism="noisy-moments")
    for seed in range(8):
        release = dps.fit(frame(30, share=0), SCHEMA, k=1, epsilon=0.1, seed=seed, rule=rule)
        assert release.fit is not None
        assert 1 <= release.fit.counted_rows <= 30
        gram, _, _ = release.fit.entries.moments(release.fit.released, 30)
        assert gram[-1, -1] <= 30


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("mechanism", ["noisy-moments", "objective-perturbation"])
def test_fits_of_few_and_of_no_responses_are_ordinary(mechanism: str, share: float) -> None:
    for n in (0, 1, 7):
        table = frame(max(n, 1), share=share).iloc[:n]
        rule = dps.FitRule(mechanism=mechanism)
        assert dps.fit(table, SCHEMA, k=2, epsilon=1, rule=rule).model is not None


def test_gaussian_ols_is_of_the_rows_with_a_response() -> None:
    table = frame(20_000, share=0.3, seed=3)
    declared = dps.Schema.from_bounds({"a": (-1, 1)}, ("y", -2, 2))
    asked: dict[str, Any] = {"k": 1, "epsilon": 20, "delta": 1e-6, "allow_unproven": True}
    rule = dps.FitRule(mechanism="gaussian-ols")
    model = dps.fit(table, declared, rule=rule, response_range="declared", **asked).model
    assert model is not None
    assert model.coefficients["a"] == pytest.approx(1.2, abs=0.1)


def test_predictions_need_no_response() -> None:
    table = frame(2_000, seed=3)
    model = dps.fit(table, SCHEMA, k=1, epsilon=10, seed=2).model
    assert model is not None
    features = table.drop(columns="y")
    assert np.ptp(model.predict(features)) > 1


# -- moments --------------------------------------------------------------------------------------


def kept(n: int = 40) -> Moments:
    return Moments.from_blocks(SCHEMA, open_table(frame(n), SCHEMA).blocks())


def test_moments_know_which_rows_count_and_survive_a_file(tmp_path: Path) -> None:
    moments = kept()
    moments.save(tmp_path / "m.npz")
    again = Moments.load(tmp_path / "m.npz")
    assert again == moments
    assert again.counted == int(frame(40)["y"].notna().sum())
    table = dps.fit(frame(40), SCHEMA, k=1, epsilon=1, seed=4, response_range="declared")
    assert dps.fit(again, SCHEMA, k=1, epsilon=1, seed=4).support == table.support


@pytest.mark.parametrize("change", ["more than n", "no multiple", "negative"])
def test_moments_of_no_table_are_refused(change: str) -> None:
    moments = kept()
    moments.constant = 2
    moments.products[-2] *= 2
    moments.products[:, -2] *= 2
    moments.checked()
    square = {"more than n": 4 * 41, "no multiple": 4 * 40 - 2, "negative": -4}[change]
    moments.products[-2, -2] = square
    with pytest.raises(TableError, match="no table has such moments"):
        moments.checked()


def test_moments_that_lack_rows_are_refused_where_all_rows_count() -> None:
    declared = schema(missing={"as": "middle"})
    moments = kept()
    moments.fingerprint = declared.fingerprint()
    with pytest.raises(TableError, match="with their schema all records count"):
        dps.select(moments, declared, k=1, epsilon=1)


# -- means ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [{}, {"missing": {"as": "drop"}}])
def test_means_leave_no_row_out(missing: Any) -> None:
    """A mean is one of all rows, its own bad cells in the middle: one column drops no other."""
    table = frame(60)
    listing = select_columns(table, schema(**missing), ["a", "y"])
    found = Sums.read(listing, table)
    alone = [
        Sums.read(select_columns(table, schema(**missing), [name]), table) for name in ("a", "y")
    ]
    assert found.totals == tuple(sums.totals[0] for sums in alone)
    assert found.n == 60
    exact = np.rint(table["a"].to_numpy() * STEPS).sum()
    assert found.totals[0] == exact


# -- the audit catches what would be wrong --------------------------------------------------------


def weighted(pair: Pair) -> Pair:
    """A twin: rows that count are weighted up to the number of all, so that sums look whole."""

    def up(moments: Moments, counted: int) -> Moments:
        products = np.rint(moments.products * (moments.n / counted)).astype(np.int64)
        return Moments(products, moments.n, moments.fingerprint)

    beside = 8000
    return Pair(
        up(pair.first, pair.first.n - beside), up(pair.second, pair.second.n - beside - 1),
        pair.label,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["exponential", "permute-and-flip"])
def test_weighting_by_the_number_of_responses_is_caught(name: str) -> None:
    problem = Problem.create(4, 1, prediction_bound=0.5, intercept=False)
    chosen, epsilon = mechanism(name), Fraction(1)
    pairs = [
        *missing_response_pairs(problem, lambda p: worst_case_pairs(p, 1000), beside=8000),
    ]
    honest = audit_exact(chosen, problem, epsilon, pairs)
    assert honest.passed
    assert honest.worst > 0.3
    assert not audit_exact(chosen, problem, epsilon, [weighted(pair) for pair in pairs]).passed


def test_no_error_or_warning_tells_of_a_missing_response(recwarn: Any) -> None:
    for share in (0.0, 0.5, 1.0):
        dps.select(frame(30, share), SCHEMA, k=1, epsilon=1)
    assert not recwarn.list
    with pytest.raises(ArgumentError):
        dps.select(frame(30), SCHEMA, k=9, epsilon=1)


@pytest.mark.parametrize("readable", [0.0, 0.3])
def test_a_response_that_is_mostly_unreadable_is_warned_of(readable: float) -> None:
    """After the release, from the noisy number of rows; with no such rows there is no R2 either."""
    table = frame(20_000, share=0.0, seed=4)
    table["y"] = table["y"].where(np.arange(20_000) < readable * 20_000).astype(object)
    with pytest.warns(dps.ColumnTypeWarning, match="readable y"):
        release = dps.fit(table, SCHEMA, k=1, epsilon=2, seed=5)
    assert release.model is not None
    assert (release.model.r2 is None) == (readable == 0)
    (text,) = [t for t in release.warnings_of_counts if "readable y" in t]
    assert ("cannot be distinguished from 0" in text) == (readable == 0)
    assert text in str(release)
    assert "readable y" in release.statement()
    # Whoever makes errors of warnings does not lose what was paid for.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dps.fit(table, SCHEMA, k=1, epsilon=2, seed=5)
