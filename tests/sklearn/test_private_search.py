"""Private search: its stopping rule, its cost, its score, its release, and what is not private."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.audit.steps import PrivateSearch as Audited
from dpsubset.audit.steps import audit_step
from dpsubset.cli import app
from dpsubset.models.run_score import RunScore, Window, total_loss
from dpsubset.privacy.guarantee import Cost, Guarantee
from dpsubset.privacy.quantiles import RangeInSteps
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.privacy.random_stopping import Stopping, covered
from dpsubset.privacy.relations import Neighbours

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (400, 4))
Y = X @ [0.6, 0.3, 0.0, 0.0] + RNG.normal(0, 0.05, 400)
BOUNDS = dps.Bounds(x=1, y=1)
HALF = Fraction(-1, 2)


def book(folder: Path, epsilon: int) -> dps.Ledger:
    return dps.Ledger.create(
        folder / "l.db", epsilon=epsilon, unit="one row", data_set="d", owner="o", purpose="p"
    )


def weights(stopping: Stopping, most: int) -> list[float]:
    """P(K = k), up to a constant, by its definition."""
    found, product = [], 1.0
    for k in range(1, most + 1):
        found.append(float(1 - stopping.gamma) ** k * product)
        product *= (k + float(stopping.eta)) / (k + 1)
    return found


@pytest.mark.parametrize("eta", [HALF, Fraction(0), Fraction(1)])
def test_the_number_of_runs_has_its_distribution(eta: Fraction) -> None:
    stopping, rng = Stopping(eta, Fraction(1, 5)), Randomness(SeededSource(1))
    drawn = Counter(stopping.count(rng) for _ in range(4000))
    law = weights(stopping, 300)
    for k in (1, 2, 3, 5):
        share = law[k - 1] / sum(law)
        assert abs(drawn[k] / 4000 - share) < 5 * math.sqrt(share / 4000), k
    assert stopping.mean == pytest.approx(
        sum((k + 1) * w for k, w in enumerate(law)) / sum(law), rel=1e-9
    )
    assert Stopping.of_mean(7, eta).mean == pytest.approx(7, rel=1e-6)


class Scripted:
    """Coins that fall as written down, and the chance of each."""

    def __init__(self, falls: list[bool]) -> None:
        self.falls, self.chances = iter(falls), list[Fraction]()

    def __call__(self, chance: Fraction, rng: Any) -> bool:
        assert 0 <= chance <= 1
        self.chances.append(chance)
        return next(self.falls)


@pytest.mark.parametrize("gamma", [Fraction(1, 5), Fraction(1, 10**15)])
@pytest.mark.parametrize(
    "eta", [Fraction(-99, 100), HALF, Fraction(-1, 7), Fraction(0), Fraction(1)]
)
def test_attempts_end_with_the_exact_law(
    eta: Fraction, gamma: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chance that an attempt ends at k is (1 - gamma)^k a_k times the same number for all k."""
    stopping, product, constants = Stopping(eta, gamma), Fraction(1), set()
    on, again = ([False, False], [False, True]) if eta < 0 else ([False, True], [False, False])
    for k in range(1, 9):
        coins = Scripted([*on * (k - 1), True])
        monkeypatch.setattr("dpsubset.privacy.random_stopping._coin", coins)
        assert stopping.count(Randomness(SeededSource(1))) == k
        falls = [*on * (k - 1), True]
        ends = math.prod(c if fell else 1 - c for c, fell in zip(coins.chances, falls, strict=True))
        constants.add(ends / ((1 - gamma) ** k * product))
        product *= (k + eta) / (k + 1)
        # A further attempt starts at 1.
        later = Scripted([*on * (k - 1), *again, *falls])
        monkeypatch.setattr("dpsubset.privacy.random_stopping._coin", later)
        assert stopping.count(Randomness(SeededSource(1))) == k
        assert later.chances[2 * k :] == coins.chances
    assert len(constants) == 1


class Few(Randomness):
    """Gives up after so many draws as only a rejection that hardly ever keeps anything needs."""

    left = 200_000

    def below(self, bound: int) -> int:
        self.left -= 1
        assert self.left, "too many coins"
        return super().below(bound)


def test_many_runs_with_a_negative_eta_are_drawn_quickly() -> None:
    stopping = Stopping.of_mean(100, Fraction(-3, 4))
    assert stopping.mean == pytest.approx(100, rel=1e-3)
    rng = Few(SeededSource(1))
    assert all(stopping.count(rng) >= 1 for _ in range(20))


def test_a_mean_that_cannot_be_reached_is_refused() -> None:
    with pytest.raises(dps.ArgumentError, match="at most 28"):
        Stopping.of_mean(1000, Fraction(-9, 10))
    assert Stopping.of_mean(10_000, HALF).mean == pytest.approx(10_000, rel=1e-3)


def test_a_search_with_public_rows_promises_nothing_under_add_remove_in_its_parts() -> None:
    both = {relation: Cost(Fraction(1)) for relation in ("replace-one", "add-remove")}
    part = Guarantee("replace-one", both)
    found = covered(Guarantee("replace-one", both, parts=(("selection", part),)))
    assert set(found.costs) == set(found.parts[0][1].costs) == {"replace-one"}


@pytest.mark.parametrize("eta", [HALF, Fraction(0), Fraction(1)])
def test_generating_function(eta: Fraction) -> None:
    stopping = Stopping(eta, Fraction(1, 4))
    law = np.array(weights(stopping, 300))
    powers = np.arange(1, 301)
    direct = (0.8**powers - 0.3**powers) @ law / law.sum()
    assert stopping.between(np.array([0.2]), np.array([0.7]))[0] == pytest.approx(direct)


@pytest.mark.parametrize("eta", [HALF, Fraction(0), Fraction(1)])
def test_no_run_breaks_the_total(eta: Fraction) -> None:
    """Every way in which four outcomes can differ by exp(e) or exp(-e), with ties in the score."""
    stopping, e = Stopping(eta, Fraction(1, 1000)), 0.7
    total, worst = float(stopping.factor) * e, 0.0
    for signs in itertools.product((True, False), repeat=4):
        up, down = np.array(signs), ~np.array(signs)
        if up.all() or down.all():
            continue
        sizes = itertools.product(
            (0.05, 0.2, 1 / (1 + math.exp(e)), 0.5), (1, 1e-3), (1, 1e-3), (1, 1e-3)
        )
        for share, first, second, last in sizes:
            parts = np.array([first, second, 1, last])
            mass = share * up * parts / (up * parts).sum()
            # The rest of both laws, so that each sums to 1 and no outcome is off by more.
            other = mass * math.exp(-e)
            left, right = 1 - mass.sum(), 1 - other.sum()
            if not math.exp(-e) - 1e-12 <= left / right <= math.exp(e) + 1e-12:
                continue
            mass = mass + left * down * parts / (down * parts).sum()
            other = other + right * down * parts / (down * parts).sum()
            for levels in ([0, 1, 2, 3], [0, 0, 1, 2], [0, 1, 1, 1]):
                laws = []
                for law in (mass, other):
                    scores = np.bincount(levels, law)
                    above = np.append(np.cumsum(scores[::-1])[::-1][1:], 0.0)
                    best = stopping.between(above, above + scores)
                    laws.append(law * (best / scores)[levels])
                    assert laws[-1].sum() == pytest.approx(1)
                ratio = float(np.abs(np.log(laws[0] / laws[1])).max())
                assert ratio <= total + 1e-9
                worst = max(worst, ratio)
    assert worst > float(1 + eta) * e + 1e-3, "what is left out is noticed"
    assert worst > e + 1e-3


class OneRun(Audited):
    """States what a single run costs."""

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        return RunScore(epsilon / self.stopping.factor, neighbours).guarantee()


class WithoutTheWinner(OneRun):
    """States (1 + eta) times what a run costs."""

    def guarantee(self, epsilon: Fraction, neighbours: Neighbours, n: int) -> Guarantee:
        part = epsilon * (1 + self.stopping.eta) / self.stopping.factor
        return RunScore(part, neighbours).guarantee()


class WithoutNoise(Audited):
    """The search of scikit-learn: scores without noise, here with next to none."""

    def law(self, table: Any, epsilon: Fraction, neighbours: Neighbours) -> Any:
        return super().law(table, 40 * epsilon, neighbours)


def test_audit_finds_nothing_in_the_search_and_rejects_its_twins() -> None:
    found = audit_step("private-search", runs=8)
    assert not found.contradicted
    assert found.exact is not None
    assert found.exact.audit.found > 0.85
    for twin in (OneRun(), WithoutTheWinner(), WithoutNoise()):
        assert audit_step(twin, runs=8).contradicted, type(twin).__name__


def test_a_row_moves_the_loss_by_no_more_than_the_cap() -> None:
    release = dps.fit(X, y=Y, bounds=BOUNDS, k=2, epsilon=50)
    assert release.fit is not None
    entries, m = release.fit.entries, release.fit.entries.m
    rng = np.random.default_rng(2)
    window = Window.of(RangeInSteps(Fraction(0), Fraction(1), (-9000, 11000)), Fraction(1))
    cells = rng.integers(-32767, 32768, (m + 2, 70_000)).astype(np.int16)
    cells[-2] = 32767
    for theta in (rng.normal(0, 1, m + 1), np.full(m + 1, 1e300), np.full(m + 1, np.nan)):
        coefficients = window.weights(theta, None, False)
        total = total_loss(entries, cells, coefficients, window.cap, False)
        alone = [
            total_loss(entries, cells[:, i : i + 1], coefficients, window.cap, False)
            for i in (0, 65_535, 65_536, 69_999)
        ]
        assert all(0 <= loss <= window.cap**2 for loss in alone)
        less = total_loss(entries, cells[:, 1:], coefficients, window.cap, False)
        assert total - less == alone[0]
        odds = total_loss(entries, cells, coefficients, window.cap, True)
        assert 0 <= odds <= 70_000 * window.cap**2


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_whole_search_costs_what_was_asked_for(neighbours: Any, rows: int) -> None:
    columns = {f"x{j}": {"lo": -1, "hi": 1} for j in range(4)}
    facts = {"unit": "a person", "rows_per_unit": rows, "columns": columns,
             "response": {"name": "y", "lo": -1, "hi": 1}}  # fmt: skip
    schema = dps.Schema.from_dict({"version": 1, **facts})
    price = dps.price_tune(
        X, schema, y=Y, grid={"k": [1, 2]}, epsilon=0.3, neighbours=neighbours, eta=0
    )
    assert price.guarantee is not None
    assert price.guarantee.epsilon == Fraction(3, 10)
    assert price.guarantee.costs[neighbours].kind == "pure"


def test_one_debit_before_anything_is_read_and_a_release_that_says_all(tmp_path: Path) -> None:
    ledger = dps.Ledger.create(
        tmp_path / "l.db", epsilon=2, unit="one row", data_set="d", owner="o", purpose="p"
    )
    release = dps.tune(X, y=Y, bounds=BOUNDS, grid={"k": [1, 2]}, epsilon=1, ledger=ledger)
    assert release.guarantee.epsilon == 1
    assert ledger.standing().current.pure == 1
    assert release.tuned is not None
    assert release.tuned.setting in [{"k": 1}, {"k": 2}]
    assert release.problem.k == release.tuned.setting["k"]
    facts = json.loads(release.to_json())
    assert facts["tuned"]["grid"] == [{"k": 1}, {"k": 2}]
    for form in ("markdown", "html", "yaml", "json"):
        text = release.statement(form=form)  # type: ignore[arg-type]
        assert "truncated negative binomial" in " ".join(text.split())
        assert "private_search.md" in text
    assert "made_in_search" not in facts
    with pytest.raises(dps.BudgetExceeded):
        dps.tune(X, y=Y, bounds=BOUNDS, grid={"k": [1, 2]}, epsilon=1.5, ledger=ledger)


def test_what_a_limit_ends_is_spent(tmp_path: Path) -> None:
    ledger = dps.Ledger.create(
        tmp_path / "l.db", epsilon=2, unit="one row", data_set="d", owner="o", purpose="p"
    )
    with pytest.raises(dps.SearchLimitError):
        dps.tune(
            X, y=Y, bounds=BOUNDS, grid={"k": [1, 2]}, epsilon=1, node_limit=1, time_limit=1e-9,
            mechanism="top-r", ledger=ledger,
        )  # fmt: skip
    assert ledger.standing().current.pure == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"grid": {}}, "no settings|needs k"),
        ({"grid": {"k": []}}, "no settings"),
        ({"grid": {"epsilon": [1]}}, "a grid may vary"),
        ({"grid": {"k": 3}}, "must be a list"),
        ({"grid": {"k": [object()]}}, "numbers or words"),
        ({"grid": {"loss": ["huber"]}}, "needs k"),
        ({"grid": {"k": [1]}, "eta": -1}, "eta must be"),
        ({"grid": {"k": [1]}, "runs": 1}, "runs, their mean"),
        ({"grid": {"k": [1]}, "delta": 0.01}, "pure epsilon"),
    ],
)
def test_odd_grids_are_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(dps.ArgumentError, match=words):
        dps.tune(X, y=Y, bounds=BOUNDS, epsilon=1, ledger=False, **said)


def test_estimator(tmp_path: Path) -> None:
    ledger = dps.Ledger.create(
        tmp_path / "l.db", epsilon=9, unit="one row", data_set="d", owner="o", purpose="p"
    )
    inner = dps.PrivateSubsetRegressor(bounds=BOUNDS, ledger=ledger)
    search = dps.PrivateSearch(inner, {"k": [1, 2], "budget_fraction": [0.5, 0.7]}, epsilon=2)
    assert clone(search).get_params()["estimator__bounds"] == BOUNDS
    assert dps.ledger_cost(search, X, Y).cost.pure == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, Y)
    assert ledger.standing().current.pure == 2
    assert search.best_estimator_.k == search.best_params_["k"]
    assert search.best_estimator_.rule.budget_fraction == Fraction(
        str(search.best_params_["budget_fraction"])
    )
    assert search.predict(X).shape == (400,)
    assert search.release_.guarantee.epsilon == 2
    with pytest.raises(dps.ArgumentError, match="needs a PrivateSubsetRegressor"):
        dps.PrivateSearch(dps.PrivateSubsetSelector(bounds=BOUNDS), {"k": [1]}, 1).fit(X, Y)


def test_classifier() -> None:
    labels = np.where(Y > 0, "b", "a")
    inner = dps.PrivateSubsetClassifier(bounds=dps.Bounds(x=1, labels=("a", "b")))
    search = dps.PrivateSearch(inner, {"k": [1, 2]}, epsilon=20).fit(X, labels)
    assert set(search.predict(X)) <= {"a", "b"}
    assert list(search.classes_) == ["a", "b"]
    assert search.predict_proba(X).shape == (400, 2)


def test_sentences_on_what_is_not_protected_have_their_subjects() -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    schema = dps.Schema.from_bounds(dict.fromkeys("abcd", (-1, 1)), ("y", -1, 1))
    text = dps.tune(frame, schema, grid={"k": [1, 2]}, epsilon=5, runs=2).statement()
    assert "The number of runs of the search is not released" in text
    assert (
        "If a limit was set for the time or the number of steps of the search, the chance" in text
    )
    assert "So does" not in text


def test_searches_of_scikit_learn_say_that_they_are_not_private() -> None:
    inner = dps.PrivateSubsetRegressor(k=1, epsilon=1, bounds=BOUNDS)
    with pytest.warns(dps.NotPrivateWarning, match="held-out rows without noise"):
        search = GridSearchCV(inner, {"k": [1, 2]}, cv=2).fit(X, Y)
    with pytest.warns(dps.NotPrivateWarning):
        cross_val_score(inner, X, Y, cv=2)
    release = search.best_estimator_.release_
    assert release.made_in_search
    assert "NOT PRIVATE" in str(release)
    for form in ("markdown", "html", "yaml", "json"):
        text = " ".join(release.statement(form=form).split())
        assert "rows without noise and are NOT PRIVATE" in text
    (told,) = json.loads(release.statement(form="json"))["warnings"]
    assert told.startswith("Made within a search")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inner.fit(X, Y)
    assert not inner.release_.made_in_search
    with pytest.warns(dps.NotPrivateWarning, match="score"):
        inner.score(X, Y)


def test_calibration_and_stacking_say_that_they_are_not_private() -> None:
    labels = (Y > 0).astype(int)
    inner = dps.PrivateSubsetClassifier(k=1, epsilon=1, bounds=dps.Bounds(x=1, labels=(0, 1)))
    with pytest.warns(dps.NotPrivateWarning, match="held-out rows"):
        found = CalibratedClassifierCV(inner, cv=2).fit(X, labels)
    assert found.calibrated_classifiers_[0].estimator.release_.made_in_search
    with pytest.warns(dps.NotPrivateWarning, match="held-out rows"):
        StackingClassifier([("a", inner)], cv=2).fit(X, labels)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.statistical)])
def test_a_bootstrap_is_refused_before_anything_is_spent(tmp_path: Path, jobs: int) -> None:
    ledger = book(tmp_path, 9)
    inner = dps.PrivateSubsetRegressor(k=1, epsilon=1, bounds=BOUNDS, ledger=ledger.address)
    searched = dps.PrivateSearch(inner, {"k": [1]}, epsilon=1)
    selector = make_pipeline(
        dps.PrivateSubsetSelector(k=1, epsilon=1, bounds=BOUNDS, ledger=ledger.address),
        LinearRegression(),
    )
    # An error ends the worker processes, and new ones take seconds to start: one estimator there.
    for estimator in (inner, searched, selector) if jobs == 1 else (searched,):
        with pytest.raises(dps.ArgumentError, match="m times epsilon"):
            BaggingRegressor(estimator, 2, n_jobs=jobs).fit(X, Y)
    nested = BaggingRegressor(make_pipeline(BaggingRegressor(inner, 1, bootstrap=False)), 1)
    with pytest.raises(dps.ArgumentError, match="bootstrap=False"):
        nested.fit(X, Y)
    assert ledger.standing().current.pure == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", dps.NotPrivateWarning)
        BaggingRegressor(inner, 2, bootstrap=False, max_samples=0.5, n_jobs=jobs).fit(X, Y)
    assert ledger.standing().current.pure == 2


@pytest.mark.parametrize(
    "fitted",
    [
        lambda inner, y: VotingClassifier([("a", inner)]).fit(X, y),
        lambda inner, y: StackingClassifier([("a", inner)], cv=2).fit(X, y),
        lambda inner, y: BaggingClassifier(inner, 1, bootstrap=False).fit(X, y),
        lambda inner, y: OneVsRestClassifier(inner).fit(X, y),
        lambda inner, y: cross_val_predict(inner, X, y, cv=2, method="predict_proba"),
        pytest.param(  # worker processes take seconds to start
            lambda inner, y: VotingClassifier([("a", inner), ("b", inner)], n_jobs=2).fit(X, y),
            marks=pytest.mark.statistical,
        ),
    ],
)
def test_labels_that_scikit_learn_encodes_are_declared_as_0_and_1(
    tmp_path: Path, fitted: Any
) -> None:
    """Declared as 1 and 2, they would be read as other labels and as bad cells."""
    ledger, where = book(tmp_path, 9), Y > 0
    for labels in ((1, 2), ("a", "b")):
        bounds = dps.Bounds(x=1, labels=labels)
        inner = dps.PrivateSubsetClassifier(k=1, epsilon=1, bounds=bounds, ledger=ledger.address)
        with pytest.raises(dps.ArgumentError, match=r"declare labels \(0, 1\)"):
            fitted(inner, np.where(where, *labels[::-1]))
    assert ledger.standing().current.pure == 0
    for declared in ((0, 1), (False, True)):
        inner.set_params(bounds=dps.Bounds(x=1, labels=declared), epsilon=0.5)
        fitted(inner, where.astype(int))
    assert ledger.standing().current.pure > 0


def test_scikit_learn_encodes_by_the_labels_that_it_finds() -> None:
    inner = dps.PrivateSubsetClassifier(k=1, epsilon=1, bounds=dps.Bounds(x=1, labels=(0, 1)))
    labels = (Y > 0).astype(int)
    with pytest.warns(dps.NotPrivateWarning, match="by those that it finds"):
        VotingClassifier([("a", inner)]).fit(X, labels)
    with pytest.warns(dps.NotPrivateWarning) as told:
        cross_val_predict(inner, X, labels, cv=2)
    assert not any("finds" in str(one.message) for one in told)


def test_counting_folds_looks_at_no_label(tmp_path: Path) -> None:
    ledger = dps.Ledger.create(
        tmp_path / "l.db", epsilon=99, unit="one row", data_set="d", owner="o", purpose="p"
    )
    inner = dps.PrivateSubsetClassifier(
        k=1, epsilon=1, bounds=dps.Bounds(x=1, labels=("a", "b")), ledger=ledger
    )
    rare = np.array(["a"] * 399 + ["b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cost = dps.ledger_cost(GridSearchCV(inner, {"k": [1, 2]}, cv=5), X, rare)
    assert cost.fits == 11


def test_cost_of_settings() -> None:
    stopping = Stopping(Fraction(0), Fraction(1, 9))
    cheap = Guarantee("replace-one", {"replace-one": Cost(Fraction(1)),
                                      "add-remove": Cost(Fraction(1))})  # fmt: skip
    dear = Guarantee("replace-one", {"replace-one": Cost(Fraction(2))})
    found = stopping.guarantee([cheap, dear])
    assert found.costs == {"replace-one": Cost(Fraction(4))}
    with pytest.raises(dps.ArgumentError):
        stopping.guarantee([Guarantee("replace-one", {})])


def test_command(tmp_path: Path) -> None:
    table, schema, out = (tmp_path / name for name in ("t.csv", "s.yaml", "r.json"))
    np.savetxt(table, np.column_stack([X, Y]), delimiter=",", header="a,b,c,d,y", comments="")
    schema.write_text(
        "version: 1\nunit: one row\nresponse: {name: y, lo: -1, hi: 1}\n"
        "columns: {a: {lo: -1, hi: 1}, b: {lo: -1, hi: 1}, c: {lo: -1, hi: 1}, "
        "d: {lo: -1, hi: 1}}\n"
    )
    said = ["tune", str(table), "--schema", str(schema), "--epsilon", "2", "--no-ledger",
            "--grid", "k=1,2", "--grid", "share=0.5,0.7"]  # fmt: skip
    dry = CliRunner().invoke(app, [*said, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert "epsilon = 2" in dry.output
    made = CliRunner().invoke(app, [*said, "--out", str(out)])
    assert made.exit_code == 0, made.output
    facts = json.loads(out.read_text())
    assert len(facts["tuned"]["grid"]) == 4
    assert facts["guarantee"]["epsilon"] == 2
    assert CliRunner().invoke(app, [*said, "--grid", "k=3"]).exit_code == 2
