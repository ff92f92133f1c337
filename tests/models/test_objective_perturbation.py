"""objective-perturbation: its price, what a record moves, and audits by enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.quantize import STEPS
from dpsubset.models import objective_perturbation as module
from dpsubset.models.entries import Entries
from dpsubset.models.objective_perturbation import ObjectivePerturbation, margins
from dpsubset.models.smooth import HINGE, LABEL_SQUARES, LEAST_SQUARES, LOGISTIC, Smooth
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.schema.encoding import Design

LOSSES = (LEAST_SQUARES, LABEL_SQUARES, LOGISTIC, HINGE)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name} {loss.slope}")
each_relation = pytest.mark.parametrize("neighbours", RELATIONS)
ONE = Fraction(1)


@each_loss
@each_relation
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(3, 5), Fraction(6 * 10**5)])
def test_the_parts_of_the_price_add_up(
    loss: Smooth, neighbours: Neighbours, epsilon: Fraction
) -> None:
    fit = ObjectivePerturbation(epsilon, neighbours, loss)
    promised = fit.guarantee()
    assert promised.epsilon == epsilon
    assert promised.costs[neighbours].kind == "pure"
    assert ("add-remove" in promised.costs) == (neighbours == "add-remove")
    if neighbours == "add-remove":
        # Two steps from neighbour to neighbour would cost no less.
        assert epsilon < promised.costs["replace-one"].epsilon <= 2 * epsilon
    assert fit.eta > 0
    # What the proof asks of the grid, and that it divides what a record moves.
    assert fit.grid <= fit.step * fit.ridge_each
    assert fit.steps("add-remove") * fit.grid == loss.slope
    assert math.log1p(loss.curvature / fit.ridge_each) <= float(fit.curvature_cost) * (1 + 1e-12)
    for d in (1, 2, 300):
        assert fit.ridge(d) == (d * fit.ridge_each,) * d
        # More for slopes where the noise is large for the number of rows, and never less.
        for n in (0, 1, 1000, 10**9):
            *slopes, constant = replace(fit, n=n).ridge(d)
            assert constant == d * fit.ridge_each <= min(slopes, default=constant)


@each_loss
def test_a_record_moves_the_slope_and_the_curvature_by_no_more_than_is_paid_for(
    loss: Smooth,
) -> None:
    """Random and contrary records; both bounds are nearly attained."""
    rng, d = np.random.default_rng(0), 3
    fit = ObjectivePerturbation(ONE, "replace-one", loss)
    ridge = float(fit.ridge(d)[0])
    most, ratio = 0.0, 0.0
    for _ in range(4000):
        size = rng.choice([0.1, 1, 30])
        a, b = rng.choice([-1.0, 1.0], (2, d)), rng.normal(0, size, d)
        o = np.zeros(2) if loss.labels else rng.choice([-1.0, 1.0], 2)
        _, slope, curved = loss.floats(o, a @ b)
        most = max(most, float(np.abs(slope[0] * a[0] - slope[1] * a[1]).max()))
        rest = ridge * np.eye(d)
        first, second = (np.linalg.det(rest + curved[i] * np.outer(a[i], a[i])) for i in (0, 1))
        ratio = max(ratio, abs(math.log(first / second)))
    moved = float(fit.steps("replace-one") * fit.grid)
    assert 0.95 * moved < most <= moved
    assert 0.9 * float(fit.curvature_cost) < ratio <= float(fit.curvature_cost)


# -- audit: every linear term, every outcome -------------------------------------------------------

#: Coarse enough to be listed.
COARSE: dict[str, Any] = {"step": Fraction(1, 64), "weight": Fraction(1, 8)}
OUTCOMES = np.arange(-250, 251)


def law(fit: ObjectivePerturbation, rows: list[int], response: list[int]) -> np.ndarray:
    """log P(release = v) of a model of one column, by all pushes of a mass above e^-14."""
    x, o = np.array(rows, dtype=np.int16)[:, None], np.array(response, dtype=np.int16)
    most = int(14 / fit.eta)
    pushes = np.arange(-most, most + 1)
    rounded = np.array([fit.rounded(x, o, [int(z)])[0] for z in pushes])
    weights = -float(fit.eta) * np.abs(pushes)
    noise = -float(fit.rounding_eta) * np.abs(OUTCOMES[:, None] - rounded)
    logs = np.logaddexp.reduce(weights + noise, axis=1)
    # Constants of both noises.
    return logs - np.logaddexp.reduce(weights) + math.log(math.tanh(float(fit.rounding_eta) / 2))


#: Rows and responses of two neighbours.
PAIRS: dict[str, list[tuple[list[int], list[int]]]] = {
    "least-squares": [([STEPS], [STEPS]), ([STEPS], [-STEPS])],
    "logistic": [([STEPS], [0]), ([-STEPS], [0])],
    "hinge": [([STEPS], [0]), ([-STEPS], [0])],
}


def worst(fit: ObjectivePerturbation) -> float:
    first, second = (law(fit, *table) for table in PAIRS[fit.loss.name])
    return float(np.abs(first - second).max())


@each_loss
def test_every_outcome_keeps_epsilon(loss: Smooth) -> None:
    # Where grids are finer, coarser steps will do.
    step = {LOGISTIC: Fraction(1, 16), LABEL_SQUARES: Fraction(3, 128)}.get(loss, COARSE["step"])
    fit = ObjectivePerturbation(ONE, "replace-one", loss, **{**COARSE, "step": step})
    assert fit.guarantee().epsilon == 1
    # One column of ones moves the slope of the logistic loss by half of what several may, and that
    # of squares of labels by two thirds.
    least = {LOGISTIC: 0.2, LABEL_SQUARES: 0.4}.get(loss, 0.55)
    assert least < worst(fit) <= 1


@pytest.mark.parametrize(
    ("loss", "neighbours"),
    [
        (LEAST_SQUARES, "replace-one"),
        (LABEL_SQUARES, "add-remove"),
        (LOGISTIC, "replace-one"),
        (HINGE, "add-remove"),
        pytest.param(LEAST_SQUARES, "add-remove", marks=pytest.mark.statistical),
        pytest.param(LABEL_SQUARES, "replace-one", marks=pytest.mark.statistical),
        pytest.param(LOGISTIC, "add-remove", marks=pytest.mark.statistical),
        pytest.param(HINGE, "replace-one", marks=pytest.mark.statistical),
    ],
    ids=str,
)
def test_a_response_that_goes_missing_keeps_epsilon(loss: Smooth, neighbours: Any) -> None:
    """A record that does not count is 0 in every column: present for missing, missing for none."""
    step = {LOGISTIC: Fraction(1, 16), LABEL_SQUARES: Fraction(3, 128)}.get(loss, COARSE["step"])
    fit = ObjectivePerturbation(ONE, neighbours, loss, **{**COARSE, "step": step})
    missing, nothing = law(fit, [0], [0]), law(fit, [], [])
    assert np.array_equal(missing, nothing)
    present = law(fit, *PAIRS[loss.name][0])
    assert 0.05 < float(np.abs(present - missing).max()) <= 1


def test_a_record_more_keeps_its_epsilon() -> None:
    fit = ObjectivePerturbation(ONE, "add-remove", LEAST_SQUARES, **COARSE)
    first, second = law(fit, [STEPS], [STEPS]), law(fit, [], [])
    assert 0.5 < float(np.abs(first - second).max()) <= 1
    other = law(fit, [STEPS], [-STEPS])
    assert float(np.abs(first - other).max()) <= fit.guarantee().costs["replace-one"].epsilon


def test_the_audit_catches_a_push_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = ObjectivePerturbation.eta
    monkeypatch.setattr(ObjectivePerturbation, "eta", property(lambda self: 3 * right.fget(self)))
    assert worst(ObjectivePerturbation(ONE, "replace-one", LEAST_SQUARES, **COARSE)) > 1.1


def test_the_audit_catches_a_ridge_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paid for is the usual ridge; minima are sought with a hundredth of it."""
    right = ObjectivePerturbation.ridge
    monkeypatch.setattr(
        ObjectivePerturbation, "ridge", lambda self, d: (right(self, d)[0] / 100,) * d
    )
    assert worst(ObjectivePerturbation(ONE, "replace-one", LEAST_SQUARES, **COARSE)) > 1.1


def test_the_audit_catches_minima_without_noise_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The textbook proof fails here: a linear term on a grid, and points that reveal the table."""
    fit = ObjectivePerturbation(ONE, "replace-one", LEAST_SQUARES, **COARSE)
    monkeypatch.setattr(ObjectivePerturbation, "eta", fit.eta)
    monkeypatch.setattr(ObjectivePerturbation, "rounding_eta", Fraction(3))
    assert worst(fit) > 1.1


def test_halves_are_rounded_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points one step apart must not end two apart."""
    fit = ObjectivePerturbation(ONE, "replace-one", LEAST_SQUARES)
    for v in (Fraction(1, 2), Fraction(3, 2), Fraction(-1, 2), Fraction(5, 2)):
        monkeypatch.setattr(
            module.Objective, "minimum", lambda self, distance, v=v: (v * fit.step,)
        )
        (found,) = fit.rounded(np.zeros((0, 1), np.int16), np.zeros(0, np.int16), [0])
        assert found == math.floor(v + Fraction(1, 2))


# -- columns and releases ------------------------------------------------------------------------

SCHEMA = dps.Schema.from_dict({
    "response": {"name": "y", "labels": ["no", "yes"]},
    "columns": {
        "a": {"lo": -1, "hi": 1},
        "b": {"lo": 0, "hi": 10, "missing": {"as": "indicator"}},
        "ward": {"levels": ["x", "y", "z"]},
    },
})  # fmt: skip


def test_rows_are_the_columns_of_the_model_times_the_label() -> None:
    table = [[0.5, 10.0, "y", "yes"], [-1.0, None, "?", "no"], [1.0, 0.0, "x", "neither"]]
    import pandas as pd

    frame = pd.DataFrame(table, columns=["a", "b", "ward", "y"])
    cells = SensitiveTable(frame, SCHEMA).read_records(SCHEMA, STEPS)
    entries = Entries.of(Design.of(SCHEMA), counted=False)
    rows, response = margins(entries, cells, LOGISTIC)
    half = round(STEPS / 2)
    s = STEPS
    expected = [
        [half, s, -s, s, -s, s],
        [s, 0, -s, s, s, -s],  # times -1; missing: the middle, and an indicator
        [0, 0, 0, 0, 0, 0],  # neither label: the record does not count
    ]
    assert (np.abs(rows - np.array(expected)) <= 1).all()
    assert not response.any()
    rows, response = margins(entries, cells, LEAST_SQUARES)
    assert response.tolist() == [s, -s, 0]
    assert rows[:, -1].tolist() == [s, s, 0]


X = np.random.default_rng(0).uniform(-1, 1, (600, 5))
Y = 0.5 * X[:, 0] - 0.3 * X[:, 2]
LABELS = np.where(Y + np.random.default_rng(1).normal(0, 0.2, 600) > 0, "yes", "no")
RULE = dps.FitRule(mechanism="objective-perturbation")
NUMBERS = dps.Schema.from_bounds({f"x{j}": (-1, 1) for j in range(5)}, ("y", -1, 1))


def fitted(**more: Any) -> dps.Release:
    asked: dict[str, Any] = {"k": 2, "epsilon": 20, "rule": RULE, **more}
    if asked.pop("labels", False):
        return dps.fit(X, y=LABELS, bounds=dps.Bounds(x=1, labels=("no", "yes")), **asked)
    return dps.fit(X, y=Y, bounds=dps.Bounds(x=1, y=1), **asked)


@each_relation
def test_a_release_by_objective_perturbation(neighbours: Neighbours) -> None:
    release = fitted(neighbours=neighbours)
    model = release.model
    assert release.guarantee.epsilon == 20
    assert dict(release.guarantee.parts)["the fit"].epsilon == 12
    assert set(release.guarantee.costs) == {neighbours, "replace-one"}
    np.testing.assert_allclose(list(model.coefficients.values()), [0.5, -0.3], atol=0.1)
    assert model.r2 is None
    assert model.standardised == {"x0": None, "x2": None}
    assert dps.Model.from_json(model.to_json()) == model
    assert "not known" in str(model)
    facts = release.to_dict()["fit"]
    assert facts["mechanism"] == "objective-perturbation"
    assert len(facts["coefficients"]) == 3
    text = release.statement()
    assert "`objective-perturbation`" in text
    assert "Intervals cannot be computed from what was released" in text
    with pytest.raises(dps.ArgumentError, match="standardised"):
        model.plot()
    price = dps.price_fit(
        X, y=Y, bounds=dps.Bounds(x=1, y=1), k=2, epsilon=20, rule=RULE, neighbours=neighbours
    )
    assert price.guarantee == release.guarantee


def test_a_logistic_model_has_chances() -> None:
    release = fitted(labels=True, loss="logistic")
    model = release.model
    assert model.link == "logistic"
    assert dps.Model.from_json(model.to_json()) == model
    odds = np.log(model.probabilities(X) / (1 - model.probabilities(X)))
    np.testing.assert_allclose(odds, model.scores(X))
    np.testing.assert_allclose(model.predict(X), 2 * model.probabilities(X) - 1, atol=1e-12)
    assert ((model.probabilities(X) > 0.5) == (LABELS == "yes")).mean() > 0.8
    assert "odds" in release.statement()
    hinge = fitted(labels=True, loss="hinge").model
    assert hinge.link == "identity"
    assert ((hinge.scores(X) > 0) == (LABELS == "yes")).mean() > 0.8


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.01, 1e5])
@pytest.mark.parametrize("loss", ["least-squares", "logistic", "hinge", "huber"])
def test_tables_of_few_rows_have_a_model(n: int, epsilon: float, loss: str) -> None:
    labels = loss in ("logistic", "hinge")
    bounds = dps.Bounds(x=1, labels=(0, 1)) if labels else dps.Bounds(x=1, y=1)
    y = (Y[:n] > 0).astype(float) if labels else Y[:n]
    release = dps.fit(X[:n], y=y, bounds=bounds, k=2, epsilon=epsilon, rule=RULE, loss=loss)
    assert all(map(math.isfinite, release.model.coefficients.values()))
    assert release.model.predict(X[:3]).shape == (3,)


def test_what_it_cannot_do_is_refused() -> None:
    moments = dps.Moments.from_blocks(NUMBERS, [(X, Y)])
    with pytest.raises(dps.ArgumentError, match="records"):
        dps.fit(moments, NUMBERS, k=2, epsilon=1, rule=RULE)
    with pytest.raises(dps.ArgumentError, match="labels"):
        fitted(loss="logistic")
    with pytest.raises(dps.ArgumentError, match="delta"):
        fitted(delta=1e-6)
    with pytest.raises(dps.ArgumentError, match="one of noisy-moments"):
        dps.FitRule(mechanism="magic")


def test_a_seed_repeats_it() -> None:
    assert fitted(seed=1).model == fitted(seed=1).model
    fit = ObjectivePerturbation(ONE, "replace-one", LEAST_SQUARES)
    rows, o = np.full((5, 2), 100, np.int16), np.zeros(5, np.int16)
    first, second = (fit.draw(rows, o, Randomness(SeededSource(s))) for s in (3, 4))
    assert first != second
    assert fit.draw(rows, o, Randomness(SeededSource(3))) == first


def test_units_of_several_rows_pay_for_each() -> None:
    several = replace(NUMBERS, rows_per_unit=4)
    one, four = (dps.fit(X, s, y=Y, k=2, epsilon=2, rule=RULE).fit for s in (NUMBERS, several))
    assert four.ridge == pytest.approx(4 * one.ridge)


def test_many_columns_and_a_large_epsilon_are_no_matter_of_hours() -> None:
    """The noise that hides a step must not be too little to be drawn."""
    rows, o = np.zeros((3, 121), np.int16), np.zeros(3, np.int16)
    fit = ObjectivePerturbation(Fraction(10**6), "replace-one", LEAST_SQUARES)
    assert len(fit.draw(rows, o, Randomness(SeededSource(0)))) == 121
