"""Bounds from private quantiles: what they cost, where it is said, and that nothing else is read.

The audit compares closed forms of all columns together on neighbouring tables.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api.suggest_bounds import build_bounds_request
from dpsubset.cli import app
from dpsubset.data.histograms import count_columns
from dpsubset.data.quantize import STEPS
from dpsubset.data.readers import open_table
from dpsubset.privacy.bound_quantiles import default_bounds_rule, round_outward
from dpsubset.privacy.quantiles import QuantileRule, log_probabilities
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.schema.schema import Column, FeatureSchema
from privacy.test_quantiles import QUARTILES, contrary

EPSILON = Fraction(1)
QUARTER_RULE = QuantileRule(QUARTILES)


def frame(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 12, n),
            "cost": np.exp(rng.normal(5, 1, n)),
            "ward": rng.choice(["a", "b"], n),
            "ill": rng.integers(0, 2, n).astype(bool),
        }
    )


WIDE = {"age": (0, 1000), "cost": {"lo": 0.01, "hi": 1e8, "transform": "log"}}


# The audit


def together(
    pairs: list[Any], rule: QuantileRule, epsilon: Fraction, relation: Neighbours
) -> float:
    """The largest log ratio of all columns' quantiles: a sum, as draws are independent."""
    weight = rule.weight(epsilon, relation)
    total = 0.0
    for first, second in pairs:
        for share in rule.probs:
            logs = [log_probabilities(counts, share, weight) for counts in (first, second)]
            total += float((logs[0] - logs[1]).max())
    return total


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_one_record_moves_every_column_and_the_guarantee_covers_it(columns: int) -> None:
    table = pd.DataFrame({f"x{j}": [0.0] for j in range(columns + 1)})
    names = [f"x{j}" for j in range(columns)]
    planned = build_bounds_request(table, (0, 1), epsilon=1, columns=names, neighbours="add-remove",
                          rule=QUARTER_RULE)  # fmt: skip
    pairs = [contrary(QUARTILES, "add-remove")] * columns
    worst = together(pairs, QUARTER_RULE, planned.column_epsilon, "add-remove")
    promised = planned.guarantee.epsilon
    assert promised == EPSILON
    assert 0.99 * float(EPSILON) < worst <= float(EPSILON) + 1e-9


def test_a_twin_that_pays_for_one_column_alone_is_caught() -> None:
    pairs = [contrary(QUARTILES, "add-remove")] * 2
    assert together(pairs, QUARTER_RULE, EPSILON, "add-remove") > 1.9 * float(EPSILON)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_neighbouring_tables_have_neighbouring_histograms(neighbours: Neighbours) -> None:
    """Whatever the cells of the record are: bad, infinite, beyond the bounds."""
    columns = (Column("age", 0, 100), Column("cost", 0, 10))
    rng = np.random.default_rng(3)
    values = [np.nan, np.inf, -np.inf, -5, 0, 50, 1e300, 99.99]
    for _ in range(50):
        rows = rng.choice(values, (int(rng.integers(1, 6)), 2))
        one, other = rng.choice(values, (2, 2))
        first = np.vstack([rows, one])
        second = rows if neighbours == "add-remove" else np.vstack([rows, other])
        found = []
        for cells in (first, second):
            table = pd.DataFrame(cells, columns=["age", "cost"])
            counts, n = count_columns(open_table(table, FeatureSchema(columns)), columns)
            assert n == len(cells)
            found.append(counts)
        for before, after in zip(*found, strict=True):
            assert np.abs(before - after).sum() <= (1 if neighbours == "add-remove" else 2)


# What is released


def test_bounds_hold_most_of_the_values() -> None:
    table = frame(20_000)
    found = dps.suggest_bounds(table, WIDE, epsilon=2)
    assert list(found.bounds) == ["age", "cost"]
    for name, (low, high) in found.bounds.items():
        inside = table[name].between(low, high).mean()
        assert 0.9 < inside < 0.999
        assert len(f"{low:g}") <= 6


def test_the_price_is_known_before_and_is_that_of_the_release() -> None:
    table = frame()
    planned = build_bounds_request(table, WIDE, epsilon=Fraction(1, 3))
    released = dps.suggest_bounds(table, WIDE, epsilon=Fraction(1, 3))
    assert planned.guarantee.epsilon == released.guarantee.epsilon == Fraction(1, 3)
    assert [part.epsilon for _, part in released.guarantee.parts] == [Fraction(1, 6)] * 2
    assert released.guarantee.private
    # The number of rows decides on the rule: nothing holds for tables that differ in it ...
    assert list(planned.guarantee.costs) == list(released.guarantee.costs) == ["replace-one"]
    # ... unless somebody has said which.
    said: dict[str, Any]
    for said in ({"rule": QUARTER_RULE}, {"neighbours": "add-remove"}):
        priced = build_bounds_request(table, WIDE, epsilon=1, **said).guarantee
        assert set(priced.costs) == set(RELATIONS)


def test_rows_of_a_unit_share_epsilon(tmp_path: Path) -> None:
    schema = dps.Schema.from_bounds({"age": (0, 200)}, ("cost", 0, 1e6), rows_per_unit=4)
    found = dps.suggest_bounds(frame(), schema, epsilon=1)
    assert found.guarantee.epsilon == 1
    assert found.scales[0].rule == default_bounds_rule(Fraction(1, 8), 4000)


def test_the_rule_asks_for_more_where_more_can_be_found() -> None:
    rules = [default_bounds_rule(Fraction(1), n) for n in (100, 799, 800, 3999, 4000, 10**6)]
    shares = [rule.probs[0] for rule in rules]
    assert shares == [Fraction(1, 4)] * 2 + [Fraction(1, 10)] * 2 + [Fraction(1, 40)] * 2
    assert default_bounds_rule(Fraction(1), None).probs[0] == Fraction(1, 10)


def test_under_add_remove_the_number_of_rows_decides_nothing() -> None:
    asked: dict[str, Any] = {"epsilon": 1, "neighbours": "add-remove"}
    rules = [dps.suggest_bounds(frame(n), WIDE, **asked).scales[0].rule for n in (3, 50_000)]
    assert rules[0] == rules[1]


@pytest.mark.parametrize(
    "cells",
    [[], [1.0], [5.0] * 500, [float("nan")] * 500, [float("inf"), float("-inf")], ["x", None]],
    ids=str,
)
def test_any_cells_give_bounds_within_the_wide_ones(cells: list[Any]) -> None:
    table = pd.DataFrame({"a": pd.Series(cells, dtype=object if "x" in cells else float)})
    table["b"] = 1.0
    for columns in (["a"], ["a", "b"]):
        low, high = dps.suggest_bounds(table, (-3, 7), epsilon=1, columns=columns).bounds["a"]
        assert -3 <= low < high <= 7


@pytest.mark.parametrize(
    ("low", "high", "column", "expected"),
    [
        (17.83, 64.2, Column("x", 0, 100), (17, 65)),
        (-0.01234, 0.0101, Column("x", -1, 1), (-0.013, 0.011)),
        (20.3, 1093, Column("x", 1, 1e9, transform="log"), (20, 1100)),
        (3.2, 1e5, Column("x", 5, 99), (5, 99)),
        (4.5, 9.5, Column("x", "1970-01-01", "1980-01-01"), (4, 10)),
    ],
)
def test_bounds_are_rounded_outward(
    low: float, high: float, column: Column, expected: tuple[float, float]
) -> None:
    assert round_outward(low, high, column) == expected


# Provenance


def test_a_file_says_what_its_bounds_have_cost(tmp_path: Path) -> None:
    wide = dps.Schema.from_bounds(WIDE, {"name": "ill", "kind": "boolean"})
    found = dps.suggest_bounds(frame(), wide, epsilon=0.5)
    for name in ("bounds.yaml", "bounds.json"):
        path = tmp_path / name
        found.write(path)
        schema = dps.Schema.read(path)
        (paid,) = schema.paid
        assert paid.columns == ("age", "cost")
        assert paid.epsilon == Fraction(1, 2)
        assert schema.to_dict() == json.loads(json.dumps(dict(found.facts)))
        release = dps.select(frame(), schema, k=1, epsilon=1)
        assert "epsilon = 0.5 under replace-one" in release.statement()
        assert release.to_dict()["bounds_released"] == [paid.entry()]
    # A second release adds to the first.
    again = dps.suggest_bounds(frame(), schema, epsilon=1, columns=["age"])
    assert [each["epsilon"] for each in again.facts["bounds_released"]] == ["1/2", "1"]


def test_a_seeded_draw_is_said_to_be_not_private() -> None:
    one, two = (dps.suggest_bounds(frame(), WIDE, epsilon=1, seed=4) for _ in range(2))
    assert one.bounds == two.bounds
    assert "NOT PRIVATE" in str(one)
    assert one.facts["bounds_released"][0]["seeded"] is True


@pytest.mark.parametrize(
    "entry",
    [
        3, {}, {"columns": ["a"]}, {"columns": "a", "epsilon": 1, "neighbours": "replace-one"},
        {"columns": ["a"], "epsilon": "1e9", "neighbours": "replace-one"},
        {"columns": ["a"], "epsilon": "1/0", "neighbours": "replace-one"},
        {"columns": ["a"], "epsilon": -1, "neighbours": "replace-one"},
        {"columns": ["a"], "epsilon": True, "neighbours": "replace-one"},
        {"columns": ["a"], "epsilon": 1, "neighbours": "both"},
        {"columns": ["a"], "epsilon": 1, "neighbours": "replace-one", "by": "me"},
    ],
)  # fmt: skip
def test_provenance_that_nobody_wrote_is_refused(entry: Any) -> None:
    facts = {
        "bounds_released": [entry],
        "columns": {"a": [0, 1]},
        "response": {"name": "y", "lo": 0, "hi": 1},
    }
    with pytest.raises(dps.SchemaError, match="bounds_released"):
        dps.Schema.from_dict(facts)


# Wrong arguments


@pytest.mark.parametrize(
    ("within", "asked", "match"),
    [
        ((0, 1), {"epsilon": 0}, "epsilon"),
        ((0, 1), {"neighbours": "one"}, "neighbours"),
        ((0, 1), {"columns": []}, "columns"),
        ((0, 1), {"columns": ["age", "age"]}, "twice"),
        ((0, 1), {"columns": ["height"]}, "no column 'height'"),
        ((1, 0), {}, "smaller"),
        (3, {}, "within"),
        ({"age": {"levels": ["a", "b"]}}, {}, "within must be bounds"),
        ({"age": (0, 1)}, {"columns": ["cost"]}, "has no bounds"),
        ((0, 1), {"rule": QuantileRule.median()}, "two quantiles"),
        ((0, 1), {"seed": "x"}, "seed"),
    ],
)
def test_wrong_arguments_are_refused(within: Any, asked: dict[str, Any], match: str) -> None:
    with pytest.raises(dps.DpsubsetError, match=match):
        dps.suggest_bounds(frame(10), within, **{"epsilon": 1, **asked})


def test_columns_of_an_array_are_numbered() -> None:
    x = np.random.default_rng(0).normal(5, 1, (4000, 3))
    found = dps.suggest_bounds(x, (-100, 100), epsilon=3)
    assert list(found.bounds) == ["x0", "x1", "x2"]
    for wanted in (["x2"], ["x2", "x0"]):
        (low, high), *_ = dps.suggest_bounds(x, (0, 10), epsilon=3, columns=wanted).bounds.values()
        assert 1 < low < 4
        assert 6 < high < 9
    with pytest.raises(dps.TableError, match="two dimensions"):
        dps.suggest_bounds(x[0], (0, 1), epsilon=1)


# The command line

run = CliRunner().invoke


def test_the_command_says_the_price_before_and_after(tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "b.yaml"
    frame().to_parquet(table)
    asked = ["bounds", "suggest", str(table), "--epsilon", "1", "--within", "0", "1e5"]
    dry = run(app, [*asked, "--out", str(out), "--dry-run"])
    assert dry.exit_code == 0
    assert "Would spend: epsilon = 1" in dry.output
    assert not out.exists()
    done = run(app, [*asked, "--out", str(out)])
    assert done.exit_code == 0
    assert done.output.index("Spending: epsilon = 1") < done.output.index("Spent: epsilon = 1")
    assert "age" in out.read_text()
    # It is there, and may have been paid for.
    assert run(app, [*asked, "--out", str(out)]).exit_code == 2


def test_a_text_file_has_no_types_and_each_column_costs(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    frame().to_csv(table, index=False)
    asked = ["bounds", "suggest", str(table), "--epsilon", "1", "--within", "0", "100",
             "--out", str(tmp_path / "b.yaml")]  # fmt: skip
    assert run(app, asked).exit_code == 2
    done = run(app, [*asked, "--columns", "age"])
    assert done.exit_code == 0
    assert "1 column:" in done.output


@pytest.mark.parametrize("more", [[], ["--within", "0", "1", "--schema", "s.yaml"]])
def test_one_kind_of_wide_bounds_is_needed(more: list[str], tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    frame(5).to_csv(table, index=False)
    found = run(app, ["bounds", "suggest", str(table), "--epsilon", "1", *more])
    assert found.exit_code == 2


def test_nothing_of_the_table_is_printed_but_the_bounds(tmp_path: Path) -> None:
    marked = frame(300)
    marked.loc[0, "age"] = 7319.4177
    marked.loc[0, "ward"] = "Zaphod"
    table, out = tmp_path / "t.csv", tmp_path / "b.yaml"
    marked.to_csv(table, index=False)
    done = run(app, ["bounds", "suggest", str(table), "--epsilon", "1", "--within", "0", "100",
                     "--columns", "age,ward", "--out", str(out), "--seed", "1"])  # fmt: skip
    assert done.exit_code == 0
    for text in (done.output, out.read_text()):
        assert "7319" not in text
        assert "Zaphod" not in text


def test_the_grid_is_that_of_the_quantizer() -> None:
    """A value of the grid is found again, to the last step, where there is next to no noise."""
    table = pd.DataFrame({"a": np.linspace(0, 1, 2 * STEPS + 1), "b": 0.0})
    rule = QuantileRule((Fraction(1, 4), Fraction(3, 4)))
    found = dps.suggest_bounds(table, (0, 1), epsilon=10**6, columns=["a"], rule=rule)
    assert found.scales[0].quantiles == pytest.approx((0.25, 0.75), abs=1e-4)
