"""Power analyses: simulated recovery against enumeration, simulated tables against real ones."""

from __future__ import annotations

import json
from fractions import Fraction
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
from dpsubset.mechanisms import Data
from dpsubset.power_analysis import inverse, tables
from dpsubset.power_analysis.curve import around, curve
from dpsubset.power_analysis.dry_run_hint import dry_run_hint
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
    simulated = simulate_table(request, population, 50, np.random.default_rng(3), randomness())
    real = SensitiveTable(x, scenario.schema, y, records_for=request.records_for)
    read = real.read(request.setting.problem)
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
            table = simulate_table(request, population, n, rng, randomness(seed))
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
    """The probability of the true support on tables drawn row by row, by listing all supports."""
    request, population = scenario.request(n, epsilon), scenario.population
    found = []
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
        found.append(np.exp(outcomes[1][outcomes[0].index(population.truth)]))
    return np.array(found)


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
    assert grown[2].epsilon_left == Fraction(9, 10)  # and two quantiles a tenth
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
    assert f"Smallest {found.solved} for 0.8" in str(found)
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
        ({"labels": True, "response_range": "private"}, "two labels has no range"),
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


def test_an_answer_reads_well() -> None:
    found = dps.power(n=3000, p=20, k=3, epsilon=0.5, snr=0.3, tables=30, seed=1)
    text = str(found)
    assert text.startswith("Probability that the true support is released: 0.")
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


def test_curves() -> None:
    found = curve("n", around("n", 400), p=8, k=2, epsilon=1, tables=20)
    assert [one.n for one in found] == around("n", 400)
    assert found[0].probability < found[-1].probability
    with pytest.raises(dps.ArgumentError, match="at least one"):
        curve("n", [], p=8, k=2, epsilon=1)


def dry_run(folder: Path, rows: int, *words: Any) -> str:
    """What a dry run says of a table full of one value."""
    frame = pd.DataFrame(np.full((rows, 4), 0.25), columns=["a", "b", "c", "y"])
    frame.to_parquet(folder / "t.parquet")
    frame.to_csv(folder / "t.csv", index=False)
    entries = "".join(f"  {name}: {{lo: -1, hi: 1}}\n" for name in "abc")
    text = f"version: 1\nresponse: {{name: y, lo: -1, hi: 1}}\ncolumns:\n{entries}"
    (folder / "s.yaml").write_text(text)
    ended = command("select", *words, "--schema", folder / "s.yaml", "--k", 1, "--dry-run")
    assert ended.exit_code == 0, ended.output
    return str(ended.stdout)


def test_a_dry_run_says_what_to_expect(tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    told = dry_run(tmp_path, 500, table, "--epsilon", 0.1)
    (line,) = [line for line in told.splitlines() if line.startswith("Power:")]
    assert "at SNR 1 or" in line
    assert "on simulated tables" in line
    assert "not on this one" in line
    signal = dps.power(n=500, p=3, k=1, epsilon=0.1, snr=5, tables=60, seed=0)
    assert f"{signal.probability:.2f}" in line
    told = dry_run(tmp_path, 500, table, "--epsilon", 1, "--loss", "huber")
    assert "Power: probability" in told
    wide = dps.Schema.from_bounds({f"x{j}": (0, 1) for j in range(300)}, ("y", 0, 1))
    assert "too large for a quick simulation" in dry_run_hint(None, wide, k=2, epsilon=1)[0]


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
