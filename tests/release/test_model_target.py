"""What a model is of: every output of a coefficient, an interval or an R2 says so."""

from __future__ import annotations

import json
import warnings
from html import unescape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.models.rule import FitRule
from dpsubset.release.files import facts_to_json

mpl.use("agg")

COLUMNS = {c: {"lo": -1, "hi": 1} for c in "abc"}


def cost_table(n: int, seed: int = 0) -> pd.DataFrame:
    """Costs with a long tail, as lognormal variables have."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    cost = np.exp(6 + x @ [0.8, -0.6, 0.4] + rng.normal(0, 1, n))
    return pd.DataFrame({**dict(zip("abc", x.T, strict=True)), "cost": cost})


def cost_schema(**more: Any) -> dps.Schema:
    response = {"name": "cost", "lo": 0, "hi": 100_000, **more}
    return dps.Schema.from_dict({"response": response, "columns": COLUMNS})


def label_table(n: int = 2000) -> tuple[pd.DataFrame, dps.Schema]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (n, 3))
    bad = x @ [3, -2, 0] + rng.logistic(size=n) > 0
    rows = pd.DataFrame({**dict(zip("abc", x.T, strict=True)),
                         "risk": np.where(bad, "bad", "good")})  # fmt: skip
    response = {"name": "risk", "labels": ["good", "bad"]}
    return rows, dps.Schema.from_dict({"response": response, "columns": COLUMNS})


def texts_of(release: dps.Release) -> dict[str, str]:
    """Every output of a release that shows its model."""
    model = release.model
    assert model is not None
    found = {
        "print(release)": str(release),
        "print(model)": str(model),
        "notebook": unescape(release._repr_html_()),
        "release file": json.loads(release.to_json())["model"]["target"],
        "model file": json.loads(model.to_json())["target"],
        "statement, markdown": release.statement().replace("\\", ""),
        "statement, html": unescape(release.statement(form="html")),
        "statement, json": json.dumps(json.loads(release.statement(form="json"))["text"]),
    }
    if model.r2 is not None:
        axes = model.plot()
        found["plot"] = axes.get_title(loc="left") + axes.get_xlabel()
        plt.close(axes.figure)
    return found


def test_every_output_says_where_the_response_was_clipped() -> None:
    rule = dps.FitRule(width=2)
    release = dps.fit(cost_table(3000), cost_schema(), k=2, epsilon=3, rule=rule, seed=0)
    model = release.model
    low, high = model.clipped
    assert high < 20_000
    assert model.target == f"cost clipped to between {low:.6g} and {high:.6g}"
    for where, text in texts_of(release).items():
        assert model.target in text, where
    assert f"R2 {model.r2:.2f}, of {model.target}" in str(model)


def test_a_fit_to_the_declared_bounds_says_so() -> None:
    rule = dps.FitRule(width=10**6)
    release = dps.fit(cost_table(3000), cost_schema(), k=2, epsilon=1, rule=rule)
    for where, text in texts_of(release).items():
        assert "cost clipped to its declared bounds 0 and 100000" in text, where


def test_intervals_are_of_the_clipped_response() -> None:
    """The coefficient within the declared bounds is outside; that of what the text names, inside.

    Of lognormal costs at a moderate epsilon times n, and for 20 fits.
    """
    rows, schema = cost_table(4000), cost_schema()
    x = rows[["a", "b", "c"]].to_numpy()
    of_cost, of_target = 0, 0
    for seed in range(20):
        rule = dps.FitRule(width=2)
        model = dps.fit(rows, schema, k=3, epsilon=3, rule=rule, seed=seed).model
        low, high = model.clipped
        term = model.terms[0]
        for bounds, kind in (((0, 100_000), "cost"), ((low, high), "target")):
            true = LinearRegression().fit(x, rows["cost"].clip(*bounds)).coef_[0]
            inside = term.table_interval[0] <= true <= term.table_interval[1]
            of_cost += inside and kind == "cost"
            of_target += inside and kind == "target"
    assert of_cost <= 2
    assert of_target >= 12


def test_the_clip_goes_to_the_declared_bounds() -> None:
    """At a large epsilon times n, however long the tails are; and no wider than before at small."""
    rows, schema = cost_table(20_000), cost_schema()
    model = dps.fit(rows, schema, k=3, epsilon=1000, seed=0).model
    assert "its declared bounds 0 and 100000" in model.target
    x = rows[["a", "b", "c"]].to_numpy()
    true = LinearRegression().fit(x, rows["cost"].clip(0, 100_000)).coef_
    for term, value in zip(model.terms, true, strict=True):
        assert term.coefficient == pytest.approx(value, rel=0.03)
    widths = [float(FitRule()._width(n, 14, 1, "replace-one")) for n in 10 ** np.arange(2, 9)]
    assert widths == sorted(widths)
    assert widths[:3] == [1.0, 2.25, 7.125]  # 0.3 / sqrt(r)
    assert widths[-1] > 10_000
    assert FitRule()._width(None, 14, 1, "add-remove") == 3


@pytest.mark.parametrize("transform", ["log", "sqrt"])
def test_a_transformed_response_is_named(transform: str) -> None:
    schema = cost_schema(transform=transform, lo=1)
    rule = dps.FitRule(width=2)
    release = dps.fit(cost_table(3000), schema, k=2, epsilon=2, rule=rule, seed=0)
    model, scale = release.model, f"{transform}(cost)"
    assert model.target.startswith(f"{scale}, with cost clipped to between ")
    for where, text in texts_of(release).items():
        assert model.target in text, where
        assert "model of cost" not in text, where
        assert "units of the response" not in text, where
    assert f"units of {scale} per unit of the column" in release.statement().replace("\\", "")


@pytest.mark.parametrize("transform", ["log", "sqrt"])
def test_means_and_medians_of_a_transformed_response(transform: str) -> None:
    rows = cost_table(20_000)
    schema = cost_schema(transform=transform, lo=0.01)
    model = dps.fit(rows, schema, k=3, epsilon=200, seed=0).model
    usual, mean = model.predict(rows), model.predict(rows, of="mean")
    np.testing.assert_array_equal(usual, model.predict(rows, of="median"))
    # Errors of the logarithm are normal with variance 1.
    if transform == "log":
        assert model.residual_variance == pytest.approx(1, rel=0.05)
        assert usual.mean() < 0.7 * rows["cost"].mean()
    assert mean.mean() == pytest.approx(rows["cost"].mean(), rel=0.06)
    assert "median of cost" in model.predicts()
    assert model.predicts(of="mean").startswith("the mean of cost")
    again = dps.Model.from_json(model.to_json())
    np.testing.assert_array_equal(again.predict(rows, of="mean"), mean)
    with pytest.raises(dps.ArgumentError, match="of must be"):
        model.predict(rows, of="mode")


def test_no_mean_without_a_residual_variance() -> None:
    rows, schema = cost_table(500), cost_schema(transform="log", lo=1)
    rule = dps.FitRule(mechanism="objective-perturbation")
    model = dps.fit(rows, schema, k=2, epsilon=2, rule=rule).model
    assert model.residual_variance is None
    model.predict(rows)
    with pytest.raises(dps.ArgumentError, match="residual variance"):
        model.predict(rows, of="mean")
    plain = dps.fit(rows, cost_schema(), k=2, epsilon=2, rule=rule).model
    np.testing.assert_array_equal(plain.predict(rows), plain.predict(rows, of="mean"))


def test_files_of_earlier_versions_are_read() -> None:
    rows, schema = cost_table(500), cost_schema(transform="log", lo=1)
    model = dps.fit(rows, schema, k=2, epsilon=2).model
    facts = model.to_dict()
    for key in ("target", "loss", "residual_variance"):
        del facts[key]
    old = dps.Model.from_json(facts_to_json(facts))
    assert old.coefficients == model.coefficients
    assert old.residual_variance is None
    assert old.target == model.target
    np.testing.assert_array_equal(old.predict(rows), model.predict(rows))


def test_the_regressor_predicts_medians_unless_means_are_asked_for() -> None:
    rows, schema = cost_table(5000), cost_schema(transform="log", lo=1)
    rule = dps.FitRule(mechanism="noisy-moments")
    found = dps.PrivateSubsetRegressor(k=3, epsilon=50, schema=schema, rule=rule)
    found.fit(rows[["a", "b", "c"]], rows["cost"].to_numpy())
    x = rows[["a", "b", "c"]]
    model = found.release_.model
    np.testing.assert_array_equal(found.predict(x), model.predict(x, of="median"))
    np.testing.assert_array_equal(found.predict(x, of="mean"), model.predict(x, of="mean"))


def test_predictions_for_columns_that_cannot_be_read_are_warned_of() -> None:
    rows, schema = cost_table(5000), cost_schema(lo=0)
    model = dps.fit(rows, schema, k=2, epsilon=50).model
    assert model is not None
    name = model.schema.feature_names[0]
    others = rows.head(5).assign(**{name: ["?"] * 5})
    with pytest.warns(dps.ColumnTypeWarning, match=f"no cell of {name} holds a value"):
        model.predict(others)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dps.ColumnTypeWarning)
        model.predict(rows.head(5))


def test_statements_say_between_which_values_the_response_counted() -> None:
    release = dps.select(cost_table(5000), cost_schema(lo=0), k=2, epsilon=5)
    low, high = map(release.scale.shown, release.scale.clipped)
    text = f"For the selection the response counted only between {low} and {high}"
    assert text in release.statement()


def test_predict_says_what_it_returns(tmp_path: Path) -> None:
    rows, schema = cost_table(500), cost_schema(transform="log", lo=1)
    model = dps.fit(rows, schema, k=2, epsilon=5).model
    (tmp_path / "m.json").write_text(model.to_json())
    rows.to_csv(tmp_path / "t.csv", index=False)
    given = ["predict", str(tmp_path / "m.json"), str(tmp_path / "t.csv")]
    for more, head, values in (
        ([], "predicted median", model.predict(rows)),
        (["--of", "mean"], "predicted mean", model.predict(rows, of="mean")),
    ):
        result = CliRunner().invoke(app, [*given, *more])
        assert result.exit_code == 0, result.stderr
        first, *lines = result.stdout.splitlines()
        assert first == head
        np.testing.assert_allclose([float(line) for line in lines], values, rtol=1e-6)
        assert model.target in result.stderr
    assert CliRunner().invoke(app, [*given, "--of", "mode"]).exit_code == 2


@pytest.mark.parametrize(
    ("loss", "how", "mechanism", "said"),
    [
        ("logistic", None, "objective-perturbation",
         "logistic model of the log-odds of risk = bad"),
        ("hinge", None, "noisy-moments",
         "linear model of risk counted as -1 for good and 1 for bad"),
        ("hinge", "objective-perturbation", "objective-perturbation",
         "linear classifier (hinge loss) of a score of risk, above 0 for bad and below 0 for good"),
        ("huber", None, "noisy-moments",
         "linear model of risk counted as -1 for good and 1 for bad"),
        ("logistic", "noisy-moments", "noisy-moments",
         "linear model of risk counted as -1 for good and 1 for bad"),
        (None, "objective-perturbation", "objective-perturbation",
         "linear model of risk counted as -1 for good and 1 for bad"),
    ],
)  # fmt: skip
def test_the_fit_follows_the_loss_and_says_its_scale(
    loss: Any, how: str | None, mechanism: str, said: str
) -> None:
    rows, schema = label_table()
    rule = None if how is None else dps.FitRule(mechanism=how)
    release = dps.fit(rows, schema, k=2, epsilon=3, loss=loss, rule=rule, seed=0)
    model = release.model
    assert release.fit.mechanism == mechanism
    assert model.heading == said
    assert dps.Model.from_json(model.to_json()).heading == said
    for where, text in texts_of(release).items():
        assert model.target in text, where
    if mechanism == "objective-perturbation" and loss == "logistic":
        assert 1 < model.coefficients["a"] < 6
    first = dps.select(rows, schema, k=2, epsilon=3, loss=loss)
    again = dps.fit_released(first, rows, epsilon=3, rule=rule)
    assert again.model.heading == said


def test_what_a_loss_of_labels_cannot_have_is_refused_before_it_costs() -> None:
    rows, schema = label_table(100)
    with pytest.raises(dps.ArgumentError, match="does not use a delta"):
        dps.price_fit(rows, schema, k=2, epsilon=1, loss="logistic", delta=1e-6)
    with pytest.raises(dps.ArgumentError, match="two labels"):
        dps.price_fit(cost_table(50), cost_schema(), k=2, epsilon=1, loss="logistic")


def test_the_command_line_says_the_scale(tmp_path: Path) -> None:
    rows, schema = label_table(500)
    rows.to_csv(tmp_path / "t.csv", index=False)
    schema.write(tmp_path / "s.yaml")
    given = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.yaml"), "--k", "2"]
    result = CliRunner().invoke(app, ["fit", *given, "--epsilon", "3", "--loss", "logistic"])
    assert result.exit_code == 0, result.stderr
    assert "Logistic model of the log-odds of risk = bad" in result.stdout
