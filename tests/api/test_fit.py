"""fit: releases with a model; coefficients, files, prices, odd tables."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dpsubset as dps
from dpsubset.api.fit import build_fit_request
from dpsubset.models.entries import LARGEST, Entries
from dpsubset.models.noisy_moments import NoisyMoments
from dpsubset.models.solve import solve

SCHEMA = dps.Schema.from_dict({
    "response": {"name": "cost", "lo": 0, "hi": 100},
    "columns": {
        "age": {"lo": 0, "hi": 110},
        "ward": {"levels": ["surgery", "medicine", "other"]},
        "dose": {"lo": 1, "hi": 1000, "transform": "log"},
        "bmi": {"lo": 10, "hi": 60, "missing": {"as": "indicator"}},
        "noise": {"lo": -1, "hi": 1},
    },
})  # fmt: skip


def frame(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "age": rng.uniform(20, 90, n), "ward": rng.choice(["surgery", "medicine", "other"], n),
        "dose": np.exp(rng.uniform(0, 6, n)), "bmi": rng.normal(27, 4, n).clip(11, 59),
        "noise": rng.uniform(-1, 1, n),
    })  # fmt: skip
    table.loc[rng.random(n) < 0.1, "bmi"] = np.nan
    ward = table["ward"].map({"surgery": 12.0, "medicine": 0.0, "other": 4.0})
    table["cost"] = (
        20 + 0.3 * table["age"] + ward + 2 * np.log(table["dose"]) + rng.normal(0, 4, n)
    ).clip(0, 100)
    return table


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    """epsilon = infinity, for the fit alone. There is no such argument."""
    monkeypatch.setattr(NoisyMoments, "draw", lambda self, values, rng: list(values))
    monkeypatch.setattr(NoisyMoments, "deviation", lambda self, d: 0.0)


def asked(**more: Any) -> dict[str, Any]:
    return {"k": 3, "epsilon": 10, **more}


SUMS = dps.FitRule(mechanism="noisy-moments")


def fitted(**more: Any) -> dps.Release:
    return dps.fit(frame(), SCHEMA, **asked(**more))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_without_noise_it_is_least_squares(noiseless: None, neighbours: Any) -> None:
    """On the same columns, as the quantizer has them: rounded to 1/32767 of their half-ranges."""
    table = frame()
    release = dps.fit(
        table, SCHEMA, k=5, epsilon=1e5, response_range="declared", neighbours=neighbours, rule=SUMS
    )
    model = release.model

    def rounded(values: Any, lo: float, hi: float) -> Any:
        middle, half = (lo + hi) / 2, (hi - lo) / 2
        return middle + half * np.rint((values - middle) / half * 32767) / 32767

    bmi = rounded(table["bmi"].fillna(35.0), 10, 60)
    columns = {
        "age": rounded(table["age"], 0, 110),
        "ward = medicine": 1.0 * (table["ward"] == "medicine"),
        "ward = other": 1.0 * (table["ward"] == "other"),
        "log(dose)": rounded(np.log(table["dose"]), 0, math.log(1000)), "bmi": bmi,
        "bmi is missing": 1.0 * table["bmi"].isna(), "noise": rounded(table["noise"], -1, 1),
    }  # fmt: skip
    x = pd.DataFrame(columns)
    y = rounded(table["cost"], 0, 100)
    right = LinearRegression().fit(x, y)
    assert list(model.coefficients) == list(x.columns)
    np.testing.assert_allclose(list(model.coefficients.values()), right.coef_, rtol=1e-6, atol=1e-6)
    assert model.intercept == pytest.approx(right.intercept_, rel=1e-6)
    assert model.r2 == pytest.approx(right.score(x, y), abs=1e-6)
    np.testing.assert_allclose(model.predict(table), right.predict(x), rtol=1e-6, atol=1e-5)
    # Without noise the table's own coefficients are known, and sampling is what it is.
    for term in model.terms:
        low, high = term.table_interval
        assert low == pytest.approx(term.coefficient, rel=1e-6, abs=1e-6)
        assert high == pytest.approx(term.coefficient, rel=1e-6, abs=1e-6)
    rest = y - right.predict(x)
    design = np.column_stack([x, np.ones(len(x))])
    variances = (
        np.diag(np.linalg.inv(design.T @ design)) * (rest @ rest) / (len(x) - len(x.columns) - 1)
    )
    low, high = model.intervals["age"]
    assert (high - low) / 2 == pytest.approx(1.959964 * math.sqrt(variances[0]), rel=1e-6)


def test_a_release_has_a_model_that_is_nearly_right() -> None:
    release = fitted(epsilon=100)
    model = release.model
    assert release.features == ["age", "ward", "dose"]
    assert list(model.coefficients) == ["age", "ward = medicine", "ward = other", "log(dose)"]
    assert model.coefficients["age"] == pytest.approx(0.3, abs=0.05)
    assert model.coefficients["ward = medicine"] == pytest.approx(-12, abs=1.5)
    assert model.r2 == pytest.approx(0.77, abs=0.1)
    table = frame(seed=1)
    rest = table["cost"] - model.predict(table)
    assert 1 - rest.var() / table["cost"].var() > 0.65
    assert model.standardised["age"] == pytest.approx(0.72, abs=0.15)
    assert all(low < high for low, high in model.intervals.values())
    for name, (low, high) in model.table_intervals.items():
        wide = model.intervals[name]
        assert wide[0] <= low <= high <= wide[1]


def test_parts_add_up_and_the_price_is_what_is_stated() -> None:
    for more in ({}, {"neighbours": "add-remove"}, {"response_range": "declared"}, {"seed": 2},
                 {"rule": dps.FitRule(budget_fraction=0.3)}):  # fmt: skip
        release = fitted(epsilon=1, **more)
        g = release.guarantee
        assert g.epsilon == 1
        parts = {name: part.epsilon for name, part in g.parts}
        assert sum(parts.values()) == 1
        share = Fraction(3, 10) if "rule" in more else Fraction(6, 10)
        assert parts["the fit"] == share
        assert dps.price_fit(frame(), SCHEMA, **asked(epsilon=1, **more)).guarantee == g
        relations = {"add-remove", "replace-one"} if more.get("neighbours") else {"replace-one"}
        assert set(g.costs) == relations
    parts = dict(fitted(epsilon=1).guarantee.parts)
    assert [str(part.epsilon) for part in parts.values()] == ["1/10", "3/10", "3/5"]


def test_units_of_several_rows_divide_every_step() -> None:
    schema = dps.Schema.from_dict({**SCHEMA.to_dict(), "rows_per_unit": 4})
    release = dps.fit(frame(), schema, k=2, epsilon=2, rule=SUMS)
    assert release.guarantee.epsilon == 2
    alone = dps.fit(frame(), SCHEMA, k=2, epsilon=2, rule=SUMS)
    per_sum = release.fit.deviation / (release.fit.entries.d + 1)
    assert per_sum == pytest.approx(4 * alone.fit.deviation / (alone.fit.entries.d + 1), rel=0.2)


def test_a_price_reads_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("values were read")

    for name in ("read", "read_support", "count_response"):
        monkeypatch.setattr(f"dpsubset.api.sensitive_table.SensitiveTable.{name}", explode)
    assert dps.price_fit(frame(), SCHEMA, **asked()).guarantee is not None
    assert dps.price_fit(schema=SCHEMA, **asked()).guarantee is not None


@pytest.mark.parametrize(
    "wrong",
    [{"intercept": False}, {"rule": 3}, {"epsilon": 0}, {"k": 9}, {"k": 0}, {"delta": 2}],
    ids=str,
)
def test_what_cannot_be_done_is_refused_before_a_value_is_read(
    wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("values were read")

    for name in ("read", "read_support", "count_response"):
        monkeypatch.setattr(f"dpsubset.api.sensitive_table.SensitiveTable.{name}", explode)
    with pytest.raises(dps.ArgumentError):
        fitted(**wrong)
    with pytest.raises(TypeError, match=r"^fit\(\): "):
        fitted(epsilonn=1)


def test_models_of_too_many_columns_are_refused() -> None:
    x = np.zeros((5, 400))
    with pytest.raises(dps.ArgumentError, match="300"):
        dps.fit(x, y=np.zeros(5), bounds=dps.Bounds(x=1, y=1), k=350, epsilon=1)


# -- odd tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.01, 1, 1e5])
def test_tables_of_few_rows_have_a_model(n: int, neighbours: Any, epsilon: float) -> None:
    release = dps.fit(frame(3).iloc[:n], SCHEMA, k=3, epsilon=epsilon, neighbours=neighbours)
    looked_at(release)


def test_an_intercept_lies_within_the_bounds_of_the_response() -> None:
    """Of a table without rows the sum of the response is all noise."""
    entries = Entries((), (), counted=False)
    found = solve(entries, [50 * LARGEST, 0], 0, 10.0)
    assert found.theta.tolist() == [1.0]


def test_bounds_beyond_all_numbers_are_refused() -> None:
    x = np.zeros((5, 2))
    bounds = dps.Bounds(x=1e-100, y=1e200)
    with pytest.raises(dps.ArgumentError, match="so wide beside"):
        dps.fit(x, y=x[:, 0], bounds=bounds, k=1, epsilon=1)


@pytest.mark.parametrize("column", ["age", "ward", "dose", "bmi", "cost"])
@pytest.mark.parametrize("cell", [30.0, None, math.inf, "x"])
def test_constant_columns_and_bad_cells_are_ordinary(column: str, cell: Any) -> None:
    table = frame(50)
    table[column] = pd.Series([cell] * len(table), dtype=object)  # no type that could be refused
    looked_at(dps.fit(table, SCHEMA, k=5, epsilon=1e5))


def test_copies_of_a_column_are_ordinary(noiseless: None) -> None:
    x = np.linspace(-1, 1, 50)[:, None] * np.ones((1, 3))
    release = dps.fit(x, y=x[:, 0] / 2, bounds=dps.Bounds(x=1, y=1), k=3, epsilon=1e5)
    looked_at(release)
    assert sum(release.model.coefficients.values()) == pytest.approx(0.5, abs=0.01)


def looked_at(release: dps.Release) -> None:
    """Everything that can be made of a release."""
    model = release.model
    assert all(map(math.isfinite, model.coefficients.values()))
    assert model.r2 is None or 0 <= model.r2 <= 1
    json.loads(release.to_json())
    assert "## Model" in release.statement()
    assert str(model) in str(release)
    assert dps.Model.from_json(model.to_json()) == model


def test_a_mechanism_that_names_nothing_has_a_model_of_the_mean() -> None:
    release = dps.fit(frame(200), SCHEMA, k=2, epsilon=1, mechanism="penalised")
    looked_at(release)
    if not release.support:
        assert release.model.coefficients == {}
        assert release.model.predict(frame(5)).shape == (5,)


def test_labels_have_probabilities() -> None:
    table = frame()
    table["cost"] = np.where(table["cost"] > 50, "high", "low")
    facts = SCHEMA.to_dict()
    facts["response"] = {"name": "cost", "labels": ["low", "high"]}
    schema = dps.Schema.from_dict(facts)
    release = dps.fit(table, schema, k=3, epsilon=50)
    steps = [name for name, _ in release.guarantee.parts]
    assert steps == ["the class share", "the selection", "the fit"]
    chances = release.model.probabilities(table)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert ((chances > 0.5) == (table["cost"] == "high")).mean() > 0.7
    with pytest.raises(dps.ArgumentError, match="labels"):
        fitted().model.probabilities(frame())


def test_a_transformed_response_is_predicted_in_its_units() -> None:
    facts = SCHEMA.to_dict()
    facts["response"] = {"name": "cost", "lo": 1, "hi": 1000, "transform": "log"}
    model = dps.fit(frame(), dps.Schema.from_dict(facts), k=3, epsilon=1000).model
    assert 1 <= model.clipped[0] < frame()["cost"].median() < model.clipped[1] <= 1000
    ratio = model.predict(frame(seed=2)) / frame(seed=2)["cost"]
    assert abs(np.median(ratio) - 1) < 0.05


def test_moments_will_do() -> None:
    from dpsubset.data.readers import open_table

    moments = dps.Moments.from_blocks(SCHEMA, open_table(frame(), SCHEMA).blocks())
    release = dps.fit(moments, SCHEMA, k=3, epsilon=1000)
    other = dps.fit(frame(), SCHEMA, k=3, epsilon=1000, response_range="declared")
    assert release.features == other.features
    looked_at(release)
    for name, value in other.model.coefficients.items():
        assert release.model.coefficients[name] == pytest.approx(value, abs=0.2)


def test_a_delta_goes_to_the_fit() -> None:
    pure = fitted(epsilon=1, delta=1e-6)
    assert pure.guarantee.delta == 0  # few sums: pure noise is less
    x = np.random.default_rng(0).uniform(-1, 1, (200, 25))
    release = dps.fit(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=25, epsilon=1, delta=1e-6)
    assert release.guarantee.delta == Fraction(1, 10**6)
    assert release.guarantee.epsilon <= 1
    assert "Gaussian" in release.statement()
    with pytest.raises(dps.ArgumentError, match="seeds"):
        dps.fit(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=25, epsilon=1, delta=1e-6, seed=1)


def test_a_seed_gives_the_same_release() -> None:
    assert fitted(seed=3).model == fitted(seed=3).model
    assert fitted(seed=3).guarantee.seeded


# -- files and predictions -----------------------------------------------------------------------


def test_predictions_are_the_same_from_every_kind_of_table(tmp_path: Path) -> None:
    import polars as pl

    model, table = fitted().model, frame(40, seed=4)
    right = model.predict(table)
    features = table.drop(columns="cost")
    features.to_csv(tmp_path / "t.csv", index=False)
    features[["dose", "age", "ward"]].to_parquet(tmp_path / "t.parquet")
    np.testing.assert_allclose(model.predict(tmp_path / "t.csv"), right)
    if set(model.schema.feature_names) == {"age", "ward", "dose"}:
        np.testing.assert_allclose(model.predict(tmp_path / "t.parquet"), right)
    np.testing.assert_allclose(model.predict(pl.from_pandas(features)), right)
    np.testing.assert_allclose(model.predict(features.to_numpy(dtype=object)), right)
    with pytest.raises(dps.TableError, match="columns"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(dps.TableError, match="age"):
        model.predict(features.rename(columns={"age": "x"}))
    assert model.predict(features.iloc[:0]).shape == (0,)


def changed(text: str, **changes: Any) -> str:
    return json.dumps({**json.loads(text), **changes})


def test_a_model_file_is_the_model_and_nothing_else(tmp_path: Path) -> None:
    model = fitted().model
    (tmp_path / "model.json").write_text(model.to_json(), encoding="utf-8")
    assert dps.Model.load(tmp_path / "model.json") == model
    assert set(json.loads(model.to_json())) == {
        "format", "response", "guarantee", "intercept", "terms", "r2", "clipped", "schema", "order",
        "positions", "width", "link", "loss", "residual_variance", "target", "content_digest",
    }  # fmt: skip
    with pytest.raises(dps.TableError):
        dps.Model.load(tmp_path / "none.json")


def test_a_model_file_remembers_what_bounds_have_cost() -> None:
    paid = {"columns": ["age", "noise"], "epsilon": "1/2", "neighbours": "replace-one"}
    schema = dps.Schema.from_dict({**SCHEMA.to_dict(), "bounds_released": [paid]})
    model = dps.fit(frame(100), schema, k=1, epsilon=1).model
    assert dps.Model.from_json(model.to_json()) == model
    assert model.schema.paid


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "{}", "null", "\x00", '{"format": "dpsubset release 1"}', b"\xff\xfe"]
)
def test_foreign_files_are_refused(text: Any) -> None:
    with pytest.raises(dps.ArgumentError, match="no model file"):
        dps.Model.from_json(text)


def test_changed_files_are_refused() -> None:
    from dpsubset.ledger.canonical import sha256_of_facts

    text = fitted().model.to_json()
    of_digest = ({"content_digest": "0"}, {"content_digest": None})
    for changes in ({"r2": 0.5}, {"width": 7}, {"more": 1}, *of_digest):
        with pytest.raises(dps.ArgumentError, match="changed"):
            dps.Model.from_json(changed(text, **changes))
    # Whoever makes up a digest too has to make up a whole model.
    for changes in ({"terms": []}, {"schema": {}}, {"positions": "x"}, {"intercept": None},
                    {"order": ["age", "nobody"]}, {"link": "probit"}):  # fmt: skip
        facts = {**json.loads(text), **changes}
        facts.pop("content_digest")
        if changes == {"terms": []}:
            facts["positions"] = []
        with pytest.raises(dps.ArgumentError, match="damaged"):
            dps.Model.from_json(json.dumps({**facts, "content_digest": sha256_of_facts(facts)}))


def test_the_statement_has_a_table_and_what_it_means() -> None:
    release = fitted()
    text = release.statement()
    assert "| column | coefficient | 95 % interval | standardised |" in text
    assert "the fit costs" in text
    assert "does not account for the choice of the variables from the same table" in text
    assert "For the fit the response was clipped to between" in text
    assert release.to_dict()["fit"]["mechanism"] == "noisy-moments"
    assert "## Model" not in dps.select(frame(), SCHEMA, k=2, epsilon=1).statement()


def test_a_picture() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model = fitted().model
    # An interval without ends, and one that is far too long for the others.
    first, second, *rest = model.terms
    first = replace(first, interval=(-math.inf, math.inf), table_interval=(-math.inf, math.inf))
    second = replace(second, interval=(-1e6, 1e6))
    model = replace(model, terms=(first, second, *rest))
    ax = model.plot()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [term.name for term in reversed(model.terms)]
    dotted = [line for line in ax.get_lines() if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [len(names) - 1]
    assert ax.get_xlim()[1] < 3
    shown = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert "not known" in shown
    assert "R2 about" in ax.get_title(loc="left")
    ax.figure.canvas.draw()
    # Names lie within the picture.
    assert all(label.get_window_extent().x0 >= 0 for label in ax.get_yticklabels())
    _, other = plt.subplots()
    assert model.plot(other) is other
    odd = replace(first, name="price in $ of $x")
    replace(model, terms=(odd,)).plot().figure.canvas.draw()
    replace(model, terms=()).plot().figure.canvas.draw()
    plt.close("all")


def test_the_range_of_a_fit_widens_with_public_rows_at_the_same_price() -> None:
    few = build_fit_request(None, SCHEMA, k=3, epsilon=1)
    many = few.with_rows(10**6)
    first, then = few.selection.response_range, many.selection.response_range
    assert first is not None
    assert then is not None
    assert then.rule.width_factor > 4 * first.rule.width_factor
    assert then.prediction_bound > first.prediction_bound
    assert many.selection.problem.prediction_bound > few.selection.problem.prediction_bound
    assert then.budget_fraction == first.budget_fraction == Fraction(1, 4)
    assert many.guarantee == few.guarantee
    assert set(many.guarantee.costs) == {"replace-one"}
    hidden = build_fit_request(None, SCHEMA, k=3, epsilon=1, neighbours="add-remove")
    assert hidden.with_rows(10**6) is hidden
    assert set(hidden.guarantee.costs) == {"replace-one", "add-remove"}
