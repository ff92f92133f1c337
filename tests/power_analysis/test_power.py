"""Power analyses: simulated recovery against enumeration, simulated tables against real ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.cli import app
from dpsubset.data.readers.passes import Passes
from dpsubset.mechanisms import Data
from dpsubset.power_analysis import inverse, tables
from dpsubset.power_analysis.curve import around, curve, picture
from dpsubset.power_analysis.dry_run_hint import dry_run_hint, dry_run_hint_of_fit
from dpsubset.power_analysis.population import Population
from dpsubset.power_analysis.scenario import Scenario
from dpsubset.power_analysis.simulation import Effort, clopper_pearson, simulate_recovery
from dpsubset.power_analysis.tables import simulate_table
from dpsubset.privacy.quantiles import QuantileSampler
from dpsubset.privacy.random import Randomness, SeededSource
from support.samples import one_in

#: The chance that a test fails although nothing is wrong, where it compares draws.
LEVEL = 1e-8


def randomness(seed: int = 0) -> Randomness:
    return Randomness(SeededSource(seed))


# -- simulated tables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"response_range": "declared"}, {"loss": "logistic"}, {"labels": True}], ids=str
)
def test_simulated_cells_are_those_of_the_quantizer(options: dict[str, Any]) -> None:
    labels = options.pop("labels", False)
    scenario = Scenario.create(Population(6, 2, 2.0, 0.4, labels=labels), options)
    request, population = scenario.request(50, 1), scenario.population
    x, y = population.table(50, np.random.default_rng(3))
    known, simulated = simulate_table(
        request, population, 50, np.random.default_rng(3), randomness()
    )
    real = SensitiveTable(x, scenario.schema, y, records_for=request.records_for)
    released = None
    if labels:
        released = request.range_sampler(real, Passes(None, True, 2))[1].draw(randomness())
    asked, data = request.read(real, None, released)
    read = data.gram
    assert known.problem == asked.problem
    assert np.array_equal(simulated.c, read.c)
    assert np.array_equal(simulated.diagonal, read.diagonal)
    assert simulated.yy == read.yy


@one_in(2)
@pytest.mark.parametrize(
    ("rho", "options", "labels"),
    [(0.0, {"response_range": "declared"}, False), (0.6, {}, False), (0.6, {}, True)],
    ids=str,
)
def test_rescaled_sums_follow_the_law_of_rows(
    rho: float,
    options: dict[str, Any],
    labels: bool,
    every: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Means and variances of sums: of fewer rows, rescaled, and of all rows."""
    # SNR 9 and a narrow bound: many cells are clipped.
    population = Population(8, 2, 9.0, rho, x_bound=1.5, labels=labels)
    n, count = 4096, 300 // every
    request = Scenario.create(population, options).request(n, 50)
    found = {}
    for rows in (1024, n):
        monkeypatch.setattr(tables, "_CELLS", 0)
        monkeypatch.setattr(tables, "_FEWEST_ROWS", rows)
        sums = []
        for seed in range(count):
            rng = np.random.default_rng([rows, seed])
            _, table = simulate_table(request, population, n, rng, randomness(seed))
            assert table.n == n
            products = table.product_rows() / 32767**2
            sums.append([*products[np.triu_indices(9)], *table.c / 32767**2, table.yy / 32767**2])
        found[rows] = np.array(sums)
    few, every = found[1024], found[n]
    variance = (few.var(axis=0) + every.var(axis=0)) / count
    assert (np.abs(few.mean(axis=0) - every.mean(axis=0)) <= 6.5 * np.sqrt(variance) + 1e-6).all()
    moving = every.std(axis=0) > 1e-3
    assert moving.sum() >= 44
    assert few.std(axis=0)[moving] / every.std(axis=0)[moving] == pytest.approx(1, abs=0.35)
    # The twin: sums of fewer rows that are multiplied, and not rescaled, vary too much.
    assert 2 * every.std(axis=0)[moving].mean() > 1.6 * few.std(axis=0)[moving].mean()


# -- recovery against exact probabilities on simulated tables --------------------------------------


def exact(scenario: Scenario, n: int, epsilon: float, count: int) -> np.ndarray:
    """The probability of the true support on tables drawn row by row."""
    truth = scenario.population.truth
    return np.array([
        np.exp(weights[supports.index(truth)])
        for supports, weights in enumerated(scenario, n, epsilon, count)
    ])  # fmt: skip


def expected_numbers(scenario: Scenario, n: int, epsilon: float, count: int) -> np.ndarray:
    """The expected number of true variables that are released, on the same tables."""
    truth = set(scenario.population.truth)
    return np.array([
        np.exp(weights) @ [len(truth.intersection(support)) for support in supports]
        for supports, weights in enumerated(scenario, n, epsilon, count)
    ])  # fmt: skip


def enumerated(scenario: Scenario, n: int, epsilon: float, count: int) -> Iterator[Any]:
    """All supports of each table, and the logarithms of their probabilities."""
    request, population = scenario.request(n, epsilon), scenario.population
    for seed in range(count):
        x, y = population.table(n, np.random.default_rng([7, seed]))
        sealed = SensitiveTable(x, scenario.schema, y, records_for=request.records_for)
        images = None
        if request.response_range is not None:
            counts, _ = sealed.count_response()
            drawn = QuantileSampler(
                counts, request.response_range.rule, request.range_epsilon,
                request.setting.problem.neighbours,
            ).draw(randomness(seed))  # fmt: skip
            images = drawn.images(32767)
        read = sealed.read(request.setting.problem, None, images)
        outcomes = request.mechanism.outcomes(Data(read), request.setting)
        assert outcomes is not None
        yield outcomes


@pytest.mark.parametrize(
    ("n", "p", "k", "epsilon", "rho", "options"),
    [
        (800, 8, 2, 0.4, 0.0, {}),
        (800, 8, 2, 0.7, 0.5, {"mechanism": "exponential", "response_range": "declared"}),
        (1500, 9, 3, 0.4, 0.0, {"constraint": "ball"}),
        (3000, 9, 3, 0.15, 0.3,
         {"constraint": "l1", "ridge": 200.0, "neighbours": "add-remove"}),
        (400, 12, 1, 0.5, 0.0, {"intercept": False}),
        pytest.param(40_000, 8, 2, 0.008, 0.0, {}, marks=pytest.mark.statistical),
    ],
)  # fmt: skip
def test_simulated_recovery_agrees_with_enumeration(
    n: int, p: int, k: int, epsilon: float, rho: float, options: dict[str, Any]
) -> None:
    scenario = Scenario.create(Population(p, k, 2.0, rho), options)
    probabilities = exact(scenario, n, epsilon, 60)
    mean, error = probabilities.mean(), probabilities.std() / np.sqrt(60)
    assert 0.1 < mean < 0.97  # otherwise nothing can be seen
    found = simulate_recovery(scenario, n, epsilon, Effort(tables=200, seed=1))
    allowed = 5.7 * np.hypot(error, np.sqrt(mean * (1 - mean) / 200))  # 5.7: 1e-8
    assert abs(found.probability - mean) < allowed
    # The twin: a third of epsilon, whatever that does to the range of the response.
    wrong = simulate_recovery(scenario, n, epsilon / 3, Effort(tables=200, seed=1))
    assert abs(wrong.probability - mean) > allowed


def test_the_expected_number_of_true_variables_agrees_with_enumeration() -> None:
    """For unequal signals, of which the weaker is found less often."""
    scenario = Scenario.create(Population(8, 2, 2.0, signals="linear", least=0.3), {})
    numbers = expected_numbers(scenario, 800, 0.6, 60)
    mean, error = numbers.mean(), numbers.std() / np.sqrt(60)
    assert 1.1 < mean < 1.7
    found = simulate_recovery(scenario, 800, 0.6, Effort(tables=200, seed=1))
    assert found.probability < 0.7
    allowed = 5.7 * np.hypot(error, 1 / np.sqrt(200))  # a number from 0 to 2 deviates by at most 1
    assert abs(found.expected_found - mean) < allowed
    # The twin: the number that is found is not the probability of the whole set.
    assert abs(2 * found.probability - mean) > allowed


# -- what is asked, and what is found --------------------------------------------------------------


def test_a_simulation_can_be_repeated() -> None:
    options: dict[str, Any] = {"n": 300, "p": 8, "k": 2, "epsilon": 2, "tables": 10, "rho": 0.2}
    assert dps.power(**options, seed=4) == dps.power(**options, seed=4)
    assert dps.plan is dps.power  # the alias


def test_recovery_grows_with_epsilon() -> None:
    options: dict[str, Any] = {"p": 20, "k": 3, "snr": 2, "n": 3000, "tables": 100, "seed": 1}
    grown = [dps.power(**options, epsilon=epsilon) for epsilon in (0.1, 0.3, 1.0)]
    assert grown[0].probability < 0.2
    assert grown[2].probability > 0.8
    assert grown[0].epsilon_left == Fraction(95, 1000)  # a median takes a twentieth
    assert grown[2].epsilon_left == Fraction(86, 100)  # and two quantiles 400 / n
    for one in grown:
        assert 0 <= one.interval[0] <= one.probability <= one.interval[1] <= 1


def test_a_wide_bound_costs_little_with_a_private_scale() -> None:
    options: dict[str, Any] = {"n": 3000, "p": 20, "k": 3, "epsilon": 1.0, "snr": 2,
                               "tables": 60, "seed": 1}  # fmt: skip
    declared = [
        dps.power(**options, y_bound=bound, response_range="declared").probability
        for bound in (2, 20)
    ]
    private = [dps.power(**options, y_bound=bound).probability for bound in (2, 20)]
    assert declared[0] > 0.8
    assert declared[1] < 0.1
    assert min(private) > 0.6


def test_a_unit_of_several_rows() -> None:
    options: dict[str, Any] = {"n": 2000, "p": 10, "k": 2, "tables": 30, "seed": 1, "rho": 0.7}
    one = dps.power(**options, epsilon=0.5)
    three = dps.power(**options, epsilon=1.5, rows_per_unit=3)
    assert 0.1 < one.probability < 1
    assert one.recovery == three.recovery
    assert three.epsilon == Fraction(3, 2)


@pytest.mark.parametrize("known", [{"n": 2000}, {"epsilon": 0.25}])
def test_the_smallest_value_reaches_and_a_smaller_one_does_not(known: dict[str, Any]) -> None:
    options: dict[str, Any] = {"p": 15, "k": 2, "snr": 2, "response_range": "declared"}
    found = dps.power(**options, **known, probability=0.8, tables=60, seed=1)
    assert found.solved == ("epsilon" if "n" in known else "n")
    assert f"Smallest {found.solved} for 0.8 with equal signals" in str(found)
    # Other tables: 400 of them, at the value that was found and at 0.6 of it.
    at, below = (
        dps.power(**{**options, **known, found.solved: value}, tables=400, seed=2)
        for value in (
            (found.n, int(0.6 * found.n)) if found.solved == "n"
            else (found.epsilon, found.epsilon * Fraction(3, 5))
        )
    )  # fmt: skip
    # The search has 96 tables for each of its last steps. At 0.8, less three standard errors of
    # these, and 5.7 of 400 tables: 0.8 - 0.12 - 0.11.
    assert 0.57 < at.probability < 0.97
    assert below.probability < at.probability - 0.2


@pytest.mark.parametrize("steep", [6.0, 30.0])
@pytest.mark.parametrize("crossing", [0.002, 0.03, 2.5, 900.0])
def test_the_search_finds_the_crossing_of_a_known_curve(crossing: float, steep: float) -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):

        def reached(value: float, part: float) -> bool:
            probability = 0.8 * 2 / (1 + (crossing / value) ** steep)  # 0.8 at the crossing
            return rng.binomial(round(240 * part * 4), min(probability, 1)) >= (
                0.8 * round(240 * part * 4)
            )

        found = inverse._bracketed(reached, 1.0, 0.001, 1000)
        assert found is not None
        errors.append(np.log(found / crossing))
    assert abs(np.mean(errors)) < 0.08
    assert np.std(errors) < 0.2
    assert inverse._bracketed(lambda value, part: False, 1.0, 0.001, 1000) is None
    assert inverse._bracketed(lambda value, part: True, 1.0, 0.001, 1000) == 0.001


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"k": 30}, "k must be at most p"),
        ({"k": 0}, "k must be at least 1"),
        ({"epsilon": 0}, "greater than 0"),
        ({"epsilon": "1"}, "epsilon must be a finite number"),
        ({"n": None, "epsilon": None}, "give n and epsilon; or one of them and a probability"),
        ({"n": None}, "n is missing"),
        ({"epsilon": None}, "epsilon is missing"),
        ({"probability": 0.9}, "leave the other one out"),
        ({"epsilon": None, "probability": 1}, "between 0 and 1"),
        ({"epsilon": None, "probability": float("nan")}, "probability must be a finite number"),
        ({"n": 1}, "n must lie between 2"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"snr": 0}, "snr must be greater than 0"),
        ({"rho": 1}, "rho must lie between 0"),
        ({"rho": -0.5}, "rho must lie between 0"),
        ({"least": 0}, "least must be above 0"),
        ({"signals": "falling"}, "signals must be one of equal, linear, geometric"),
        ({"x_bound": -1}, "x_bound must be greater than 0"),
        ({"labels": 1}, "labels must be True or False"),
        ({"tables": 1}, "tables must be at least 2"),
        ({"seconds": 0}, "seconds must be greater than 0"),
        ({"n": 2**20, "p": 2**10, "loss": "huber"}, "too many cells"),
        ({"n": 2**20, "p": 2**12}, "too many cells"),
        ({"mechanism": "flip"}, "mechanism must be one of"),
        ({"loss": "cubic"}, "loss must be one of"),
        ({"prediction_bound": 1, "radius": 1}, "prediction_bound or radius"),
        ({"rows_per_unit": 0}, "rows_per_unit must be"),
        ({"loss": "hinge", "response_range": "private"}, "two labels has no range"),
    ],
    ids=str,
)
def test_invalid_arguments_are_refused(wrong: dict[str, Any], says: str) -> None:
    options = {"n": 100, "p": 10, "k": 2, "epsilon": 1, "tables": 2, **wrong}
    with pytest.raises(dps.DpsubsetError, match=says):
        dps.power(**options)


def test_a_probability_that_no_epsilon_reaches() -> None:
    with pytest.raises(dps.ArgumentError, match="Take a larger n, a larger snr or a smaller p"):
        dps.power(n=20, p=50, k=5, probability=0.9, tables=20)


def test_all_variables_matter() -> None:
    assert dps.power(n=100, p=3, k=3, epsilon=1, tables=4).probability == 1


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("signals", ["linear", "geometric"])
def test_profiles_explain_the_same_part_of_the_response(signals: Any, rho: float) -> None:
    equal, unequal = Population(20, 4, 2.0, rho).profiles(signals)
    assert (equal.signals, unequal.signals) == ("equal", signals)
    for population in (equal, unequal):
        x, y = population.table(200_000, np.random.default_rng(0))
        explained = x[:, population.truth] @ population.weights
        assert np.var(explained) / np.var(y) == pytest.approx(2 / 3, abs=0.01)
        assert np.var(y) == pytest.approx(1, abs=0.02)
    weights = unequal.weights / unequal.weights[0]
    assert weights[-1] == pytest.approx(0.05)
    between = np.diff(weights if signals == "linear" else np.log(weights))
    assert between == pytest.approx(between[0])
    assert len(Population(20, 1).profiles(signals)) == 1  # of one signal there is one profile
    assert len(equal.profiles("equal")) == 1


def test_unequal_signals_stand_beside_equal_ones() -> None:
    """Equal signals promise the whole set, where unequal ones hardly reach it."""
    options: dict[str, Any] = {"n": 8000, "p": 20, "k": 3, "epsilon": 1, "tables": 30, "seed": 1}
    found = dps.power(**options)
    (equal, of_equal), (unequal, of_unequal) = found.cases
    assert (equal.signals, unequal.signals) == ("equal", "linear")
    assert found.probability == of_equal.probability > 0.9
    assert of_unequal.probability < 0.5
    assert 1.9 < of_unequal.expected_found < 2.6 < of_equal.expected_found <= 3
    text = str(found)
    assert "equal signals: " in text
    assert "signals falling linearly to 0.05 of the largest: " in text
    assert f"{of_unequal.expected_found:.1f} of 3" in text
    facts = json.loads(found.to_json())["signals"]
    assert [each["signals"] for each in facts] == ["equal", "linear"]
    assert facts[1]["probability_of_the_whole_set"] == of_unequal.probability
    assert facts[1]["expected_number_of_true_variables"] == of_unequal.expected_found
    (alone,) = dps.power(**options, signals="equal").cases
    assert alone[1] == of_equal


def test_an_answer_reads_well() -> None:
    found = dps.power(n=3000, p=20, k=3, epsilon=0.5, snr=0.3, tables=30, seed=1)
    text = str(found)
    assert text.startswith("Probability that the whole true support is released; expected number")
    assert "epsilon 0.5 (0.475 of it for the selection)" in text
    assert "simulated tables, not about yours: no data were read" in text
    facts = json.loads(found.to_json())
    assert facts["assumed"]["snr"] == 0.3
    assert facts["interval"] == list(found.interval)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (1, 3), (37, 60)])
def test_clopper_pearson(successes: int, trials: int) -> None:
    found = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert clopper_pearson(successes, trials) == pytest.approx((found.low, found.high), abs=1e-9)


@pytest.mark.statistical  # 4,000 tables; `test_clopper_pearson` has the formula
def test_intervals_cover() -> None:
    """Of one scenario's exact probability: at most a tail of binomial chance misses it."""
    scenario = Scenario.create(Population(6, 1, 1.0), {"response_range": "declared"})
    probabilities = exact(scenario, 60, 4.0, 4000)
    mean = float(probabilities.mean())
    assert 0.2 < mean < 0.9
    missed = 0
    for seed in range(60):
        low, high = simulate_recovery(scenario, 60, 4.0, Effort(tables=25, seed=seed)).interval
        missed += not low <= mean <= high
    assert missed <= binom.isf(LEVEL, 60, 0.05 + 0.01)  # 0.01: the error of the mean itself


# -- the command line, and dry runs ----------------------------------------------------------------


def command(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command(tmp_path: Path) -> None:
    options = ["--n", 3000, "--p", 20, "--k", 3, "--epsilon", 1, "--snr", 2, "--tables", 9,
               "--seed", 3]  # fmt: skip
    asked = ["power", *options]
    ended = command(*asked)
    assert ended.exit_code == 0, ended.output
    expected = dps.power(n=3000, p=20, k=3, epsilon=1, snr=2, tables=9, seed=3)
    assert ended.stdout.rstrip() == str(expected)
    assert command("plan", *options).stdout == ended.stdout  # the alias
    facts = json.loads(command(*asked, "--mechanism", "exponential", "--json").stdout)
    assert facts["mechanism"] == "exponential"
    drawn = command(*asked, "--figure", tmp_path / "f.svg", "--over", "n")
    assert drawn.exit_code == 0, drawn.output
    assert "<svg" in (tmp_path / "f.svg").read_text()
    again = command(*asked, "--figure", tmp_path / "f.svg")
    assert again.exit_code == 2
    assert "--force" in again.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--k", 30, "--n", 9, "--epsilon", 1], "k must be at most p"),
        (["--k", 3, "--n", 9], "epsilon is missing"),
        (["--k", 3, "--n", 9, "--epsilon", "x"], "epsilon must be a number"),
        (
            ["--k", 3, "--n", 9, "--epsilon", 1, "--always-include", "a"],
            "a power analysis has none",
        ),
        (["--k", 3, "--n", 9, "--epsilon", 1, "--figure", "f.txt"], "must end in .png"),
        (["--k", 3, "--n", 9, "--epsilon", 1, "--over", "n"], "needs --figure"),
    ],
)
def test_the_command_refuses(words: list[Any], says: str) -> None:
    ended = command("power", "--p", 20, *words)
    assert ended.exit_code == 2
    assert says in ended.stderr


def test_the_command_for_a_fit() -> None:
    ended = command(
        "power", "--n", 3000, "--p", 6, "--k", 2, "--epsilon", 1, "--tables", 5, "--seed", 3,
        "--release", "fit", "--levels", 4, "--budget-fraction", "0.5", "--signals", "geometric",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    expected = dps.power(
        n=3000, p=6, k=2, epsilon=1, tables=5, seed=3, release="fit", levels=[4],
        rule=dps.FitRule(budget_fraction=0.5), signals="geometric",
    )  # fmt: skip
    assert ended.stdout.rstrip() == str(expected)


def test_help_texts_have_no_marks_of_their_layout() -> None:
    for name in ("power", "plan", "select", "fit"):
        for columns in (40, 80, 200):
            shown = CliRunner().invoke(app, [name, "--help"], terminal_width=columns)
            assert shown.exit_code == 0
            assert "\b" not in shown.stdout
            assert "\\b" not in shown.stdout


def test_a_signal_ends_a_long_analysis() -> None:
    script = (
        "from dpsubset.power_analysis import simulation\n"
        "draw = simulation._drawn\n"
        "def told(*given):\n"
        "    drawn = draw(*given)\n"
        "    print('working', flush=True)\n"
        "    return drawn\n"
        "simulation._drawn = told\n"
        "from dpsubset.cli import main; main()"
    )
    words = ["power", "--n", "3000", "--p", "9", "--k", "2", "--epsilon", "1", "--tables", "999999"]
    running = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        running.send_signal(signal.SIGINT)
        out, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert set(out.split()) <= {"working"}
    assert said.endswith("Error: interrupted\n")


@pytest.mark.parametrize(
    ("over", "values"),
    [
        ("epsilon", around("epsilon", 1)),
        ("epsilon", around("epsilon", 0.00013)),
        ("epsilon", [0.31, 0.33, 0.36]),
        ("epsilon", [0.001, 1000]),
        ("n", around("n", 5651)),
        ("n", around("n", 2**30)),
        ("n", [100, 130]),
        ("n", [64, 2**33 - 1]),
        ("n", [1000, 1000]),
    ],
    ids=str,
)
def test_labels_of_a_figure_do_not_overlap(over: Any, values: list[Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    one = dps.power(n=300, p=6, k=2, epsilon=1, tables=2, seed=1)
    ax = picture([replace(one, **{over: value}) for value in values], over)
    try:
        ax.figure.canvas.draw()
        labels = [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
        boxes = sorted(
            (each.get_window_extent() for each in labels if each.get_text()), key=lambda b: b.x0
        )
        assert 1 <= len(boxes) <= 7
        assert all(a.x1 + 4 <= b.x0 for a, b in pairwise(boxes))
        assert {each.get_text() for each in ax.figure.legends[0].get_texts()} >= {
            "whole set: equal signals",
            "whole set: signals falling linearly to 0.05 of the largest",
            "expected fraction of its variables",
        }
        assert all(
            ax.figure.bbox.contains(*corner)
            for text in ax.figure.legends[0].get_texts()
            for corner in text.get_window_extent().corners()
        )
    finally:
        pyplot.close(ax.figure)


def test_curves() -> None:
    found = curve("n", around("n", 400), p=8, k=2, epsilon=1, tables=20)
    assert [one.n for one in found] == around("n", 400)
    assert found[0].probability < found[-1].probability
    with pytest.raises(dps.ArgumentError, match="at least one"):
        curve("n", [], p=8, k=2, epsilon=1)
    assert around("n", 2**33 - 1)[-1] == 2**33 - 1  # the largest number of rows


def dry_run(folder: Path, rows: int, *words: Any, k: int = 1, of: str = "select") -> str:
    """What a dry run says of a table full of one value."""
    frame = pd.DataFrame(np.full((rows, 4), 0.25), columns=["a", "b", "c", "y"])
    frame.to_parquet(folder / "t.parquet")
    frame.to_csv(folder / "t.csv", index=False)
    entries = "".join(f"  {name}: {{lo: -1, hi: 1}}\n" for name in "abc")
    text = f"version: 1\nresponse: {{name: y, lo: -1, hi: 1}}\ncolumns:\n{entries}"
    (folder / "s.yaml").write_text(text)
    ended = command(of, *words, "--schema", folder / "s.yaml", "--k", k, "--dry-run", "--power")
    assert ended.exit_code == 0, ended.output
    return str(ended.stdout)


def test_a_dry_run_says_what_to_expect(tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    told = dry_run(tmp_path, 500, table, "--epsilon", 0.1)
    (line,) = [line for line in told.splitlines() if line.startswith("Power:")]
    assert "at SNR 1:" in line
    assert "on simulated tables" in line
    assert "not on this one" in line
    alone = dps.power(n=500, p=3, k=1, epsilon=0.1, tables=40, seed=0)
    assert f"{alone.probability:.2f}" in line
    assert f"{alone.expected_found:.1f} of 1 with equal signals" in line
    told = dry_run(tmp_path, 500, table, "--epsilon", 0.1, k=2)
    assert "of 2 with equal signals, " in told
    assert "of 2 with signals falling linearly to 0.05 of the largest" in told
    told = dry_run(tmp_path, 500, table, "--epsilon", 1, "--loss", "huber")
    assert "Power: probability" in told
    wide = dps.Schema.from_bounds({f"x{j}": (0, 1) for j in range(300)}, ("y", 0, 1))
    assert "too large for a quick simulation" in dry_run_hint(None, wide, k=2, epsilon=1)[0]


def test_a_dry_run_of_a_fit_says_what_to_expect(tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    told = dry_run(tmp_path, 5000, table, "--epsilon", 1, k=2, of="fit").splitlines()
    (power,) = [line for line in told if line.startswith("Power:")]
    (intervals,) = [line for line in told if line.startswith("Intervals:")]
    asked: dict[str, Any] = {"n": 5000, "p": 3, "k": 2, "epsilon": 1, "release": "fit", "seed": 0}
    found = dps.power(**asked, tables=40)
    assert f"{found.expected_found:.1f} of 2 with equal signals" in power
    assert str(dps.power(**asked, tables=9).widths[0]) in intervals
    assert "standard deviations of the response" in intervals
    # Models of the variables with the fewest and with the most columns.
    entries = {"a": (0, 1), "b": (0, 1), "c": {"levels": [*"uvwxyz"]}, "d": {"levels": [*"xyz"]}}
    schema = dps.Schema.from_bounds(entries, ("y", 0, 1))
    frame = pd.DataFrame({"a": [0.5] * 900, "b": 0.5, "c": "u", "d": "x", "y": 0.5})
    intervals = dry_run_hint_of_fit(frame, schema, k=2, epsilon=1)[1]
    assert "2 numbers (2 columns): " in intervals
    assert "2 categories of 3, 6 levels (7 columns): " in intervals
    rule = dps.FitRule(mechanism="objective-perturbation")
    assert "gives none" in dry_run_hint_of_fit(frame, schema, k=2, epsilon=1, rule=rule)[1]
    # Counts of unreadable cells leave less for all steps.
    rest = dry_run_hint_of_fit(frame, schema, k=2, epsilon=1, check_readable=0.5)
    assert rest == dry_run_hint_of_fit(frame, schema, k=2, epsilon=0.5)
    # A CSV file does not say how many rows it has.
    told = dry_run(tmp_path, 40, tmp_path / "t.csv", "--epsilon", 1, k=2, of="fit").splitlines()
    (intervals,) = [line for line in told if line.startswith("Intervals:")]
    assert " rows: " in intervals


def test_only_a_dry_run_that_asks_for_power_simulates(tmp_path: Path) -> None:
    told = dry_run(tmp_path, 500, tmp_path / "t.parquet", "--epsilon", 0.1)
    words = ["select", tmp_path / "t.parquet", "--schema", tmp_path / "s.yaml", "--k", 1]
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dpsubset", *map(str, words), "--epsilon",
         "0.1", "--dry-run"], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert ended.stdout.splitlines() == [
        line for line in told.splitlines() if not line.startswith("Power:")
    ]
    assert "dpsubset.power_analysis" not in ended.stderr
    assert not list((tmp_path / "cache").rglob("*.nbc"))  # nothing is compiled
    refused = command(*words, "--epsilon", 0.1, "--power")
    assert refused.exit_code == 2
    assert "--power goes with --dry-run" in refused.stderr


def test_a_dry_run_does_not_tell_private_numbers_of_rows(tmp_path: Path) -> None:
    words = [tmp_path / "t.parquet", "--epsilon", 0.5, "--neighbours", "add-remove"]
    told = {dry_run(tmp_path, rows, *words) for rows in (40, 400)}
    assert len(told) == 1
    assert "Power: rows for a probability of 0.9" in told.pop()
    # Under replace-one, with a price that states a cost under add-remove.
    words = [tmp_path / "t.parquet", "--epsilon", 0.5, "--response-scale", "declared"]
    told = {dry_run(tmp_path, rows, *words) for rows in (40, 400)}
    assert len(told) == 1
    assert "Power: rows for a probability of 0.9" in told.pop()
    # In a ledger under add-remove, with the same price.
    book = dps.Ledger.create(
        tmp_path / "l.db", data_set="d", owner="o", purpose="p", epsilon=9, neighbours="add-remove"
    )
    words += ["--ledger", book.address]
    told = {dry_run(tmp_path, rows, *words) for rows in (40, 400)}
    assert len(told) == 1
    asked: dict[str, Any] = {"k": 1, "epsilon": 0.5}
    said = {
        tuple(dry_run_hint(frame, schema, rows_private=True, **asked))
        for frame, schema in (
            (pd.DataFrame(np.full((n, 2), 0.25), columns=["a", "y"]).assign(b=0.5),
             dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1)))
            for n in (40, 400)
        )
    }  # fmt: skip
    assert len(said) == 1
    # A CSV file does not say how many rows it has.
    assert "Power: rows for" in dry_run(tmp_path, 40, tmp_path / "t.csv", "--epsilon", 0.5)
