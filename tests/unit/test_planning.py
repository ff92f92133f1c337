"""Plans: closed forms against enumeration, made-up tables against real ones, clear errors."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.cli import app
from dpsubset.mechanisms import Data
from dpsubset.power import closed
from dpsubset.power.curve import around, curve
from dpsubset.power.expected import expected
from dpsubset.power.outlook import outlook
from dpsubset.power.population import Population
from dpsubset.power.question import Question
from dpsubset.power.simulated import Effort, wilson
from dpsubset.power.swapped import Swapped
from dpsubset.power.tables import made_up
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.enumerate import ScoredSupports, log_exponential, log_permute_and_flip

UNIT = Fraction(1, 2**30)
ENUMERATED = {False: log_exponential, True: log_permute_and_flip}


def enumerated(gains: np.ndarray, k: int, flips: bool) -> float:
    """The probability of the first k variables: every support is listed."""
    supports = np.array(list(itertools.combinations(range(len(gains)), k)))
    scores = np.rint(-gains[supports].sum(axis=1) / float(UNIT)).astype(np.int64)
    return float(np.exp(ENUMERATED[flips](ScoredSupports(supports, scores, UNIT), Fraction(1))[0]))


def randomness(seed: int = 0) -> Randomness:
    return Randomness(SeededSource(seed))


# -- closed forms --------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "k"), [(6, 2), (8, 3), (7, 5), (5, 1), (10, 4), (4, 4)])
@pytest.mark.parametrize("gap", [0.05, 0.7, 2.5, 9.0])
def test_equal_gaps(p: int, k: int, gap: float) -> None:
    gains = np.array([gap] * k + [0.0] * (p - k))
    for flips, form in ((False, closed.exponential), (True, closed.permute_and_flip)):
        assert form(p, k, gap) == pytest.approx(enumerated(gains, k, flips), rel=1e-5)
        if p > k:  # the twin
            assert form(p, k, 1.1 * gap) != pytest.approx(enumerated(gains, k, flips), rel=1e-5)


def test_counts_of_swaps_are_huge_and_stay_finite() -> None:
    assert np.exp(closed.log_counts(7, 3)) == pytest.approx([1, 12, 18, 4])
    for form in (closed.exponential, closed.permute_and_flip):
        found = [form(100_000, 20, a) for a in (1.0, 10.0, 14.0, 18.0, 40.0)]
        assert found == sorted(found)
        assert 0 <= found[0] < 1e-12
        assert found[-1] == pytest.approx(1)
    # Many that are rarely accepted: prod (1 - u e^-a)^N is exp(-u N e^-a).
    rate = 1e6 * np.exp(-14)
    assert closed.permute_and_flip(10**6 + 1, 1, 14.0) == pytest.approx(
        (1 - np.exp(-rate)) / rate, rel=1e-5
    )


@pytest.mark.parametrize(("p", "k"), [(6, 2), (9, 3), (7, 5), (5, 1)])
@pytest.mark.parametrize("size", [0.3, 1.5, 6.0])
def test_any_gains(p: int, k: int, size: float) -> None:
    rng = np.random.default_rng([p, k])
    true = rng.normal(2 * size, size, (20, k))  # sometimes another support is the best
    other = rng.normal(0, size, (20, p - k))
    curve = np.zeros((20, min(k, p - k) + 1))
    for flips in (False, True):
        exact = [enumerated(np.r_[t, o], k, flips) for t, o in zip(true, other, strict=True)]
        found = closed.drawn(true, other, curve, flips, terms=400)
        assert found == pytest.approx(exact, abs=4e-3 if flips else 1e-6)
        assert found.mean() == pytest.approx(np.mean(exact), abs=5e-4)


def test_gains_of_many_variables_agree_with_equal_gaps() -> None:
    true, other = np.full((1, 5), 9.0), np.zeros((1, 995))
    for flips, form in ((False, closed.exponential), (True, closed.permute_and_flip)):
        found = closed.drawn(true, other, np.zeros((1, 6)), flips)[0]
        assert found == pytest.approx(form(1000, 5, 9.0), abs=1e-3)
        swaps = closed.drawn_by_swaps(np.full((5, 4), -9.0), np.full(4, 995 / 4), flips)
        assert swaps == pytest.approx(form(1000, 5, 9.0), abs=1e-3)


@pytest.mark.parametrize("gap", [-1e6, -300.0, 300.0, 1e6])
def test_gaps_without_measure(gap: float) -> None:
    for flips in (False, True):
        found = closed.drawn(np.full((2, 3), gap), np.zeros((2, 50)), np.zeros((2, 4)), flips)
        assert found == pytest.approx(1.0 if gap > 0 else 0.0, abs=1e-9)
        swaps = closed.drawn_by_swaps(np.full((3, 2), -gap), np.full(2, 25.0), flips)
        assert swaps == pytest.approx(1.0 if gap > 0 else 0.0, abs=1e-9)


# -- made-up tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [{"response_range": "declared"}, {"loss": "logistic"}, {"labels": True}], ids=str
)
def test_made_up_cells_are_those_of_the_door(asked: dict[str, Any]) -> None:
    labels = asked.pop("labels", False)
    question = Question.of(Population(6, 2, 2.0, 0.4, labels=labels), 1, asked)
    planned, population = question.planned(50, 1), question.population
    x, y = population.table(50, np.random.default_rng(3))
    digest = made_up(planned, population, 50, np.random.default_rng(3), randomness())
    real = SensitiveTable(x, question.schema, y, records_for=planned.records_for)
    read = real.read(planned.setting.problem)
    assert np.array_equal(digest.c, read.c)
    assert np.array_equal(digest.diagonal, read.diagonal)
    assert digest.yy == read.yy


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_far_columns_follow_the_law_of_rows(rho: float) -> None:
    """Means and variances of sums, of tables with far columns and of tables made row by row."""
    population, n, count = Population(60, 2, 2.0, rho), 200, 300
    planned = Question.of(population, 1, {"response_range": "declared"}).planned(n, 1)
    rows = np.array([30, 45, 58])
    found: dict[str, list[np.ndarray]] = {"law": [], "rows": []}
    for seed in range(count):
        rng = np.random.default_rng(seed)
        law = made_up(planned, population, n, rng, randomness())
        x, y = population.table(n, rng)
        cut = np.clip(np.c_[x[:, rows], x[:, rows + 1], x[:, [0]], y] / 3, -1, 1)
        every = [*rows, *(rows + 1), 0]
        block = law.product_rows(every)[:, every] / 32767**2
        found["law"].append(np.r_[block[np.triu_indices(7)], law.c[every] / 32767**2])
        products = cut.T @ cut
        found["rows"].append(np.r_[products[:7, :7][np.triu_indices(7)], products[:7, 7]])
    law, rows_ = np.array(found["law"]), np.array(found["rows"])
    spread = np.sqrt((law.var(axis=0) + rows_.var(axis=0)) / count)
    assert np.abs(law.mean(axis=0) - rows_.mean(axis=0)).max() / spread.max() < 6
    ratio = law.std(axis=0) / rows_.std(axis=0)
    assert ratio == pytest.approx(1, abs=0.35)


# -- plans against exact probabilities on made-up tables -------------------------------------------


def exact(question: Question, n: int, epsilon: float, tables: int) -> np.ndarray:
    """The probability of the true support on tables made row by row: supports are listed."""
    planned, population = question.planned(n, epsilon), question.population
    shares = []
    for seed in range(tables):
        rng = np.random.default_rng([7, seed])
        digest = made_up(planned, population, n, rng, randomness(seed))
        found = planned.mechanism.outcomes(Data(digest), planned.setting)
        assert found is not None
        shares.append(np.exp(found[1][found[0].index(population.truth)]))
    return np.array(shares)


@pytest.mark.parametrize(
    ("n", "p", "k", "epsilon", "asked"),
    [
        (800, 8, 2, 0.4, {}),
        (800, 8, 2, 0.7, {"mechanism": "exponential", "response_range": "declared"}),
        (1500, 9, 3, 0.4, {"constraint": "ball"}),
        (3000, 9, 3, 0.15, {"constraint": "ball", "ridge": 200.0, "neighbours": "add-remove"}),
        (400, 12, 1, 0.5, {"intercept": False}),
    ],
)
def test_the_closed_form_agrees_with_enumeration(
    n: int, p: int, k: int, epsilon: float, asked: dict[str, Any]
) -> None:
    question = Question.of(Population(p, k, 2.0), 1, asked)
    shares = exact(question, n, epsilon, 120)
    found = expected(question, n, epsilon, "closed", Effort())
    error = 4 * shares.std() / np.sqrt(len(shares))
    assert 0.1 < found.probability < 0.97  # or there is nothing to see
    assert found.interval[0] - error < shares.mean() < found.interval[1] + error
    # The twin: half of epsilon, unless the scale of the response hides it.
    wrong = expected(question, n, epsilon / 2, "closed", Effort())
    assert not wrong.interval[0] - error < shares.mean() < wrong.interval[1] + error


def test_swaps_on_a_small_table_stand_for_a_wide_one() -> None:
    asked = {"constraint": "l1", "mechanism": "exponential"}
    question = Question.of(Population(70, 2, 2.0, 0.3), 1, asked)
    planned = question.planned(900, 1)
    swapped = Swapped.of(question, planned, 900, 1)
    assert swapped is not None
    shares = exact(question, 900, 1, 30)
    rng, bits = np.random.default_rng(1), randomness(1)
    found = np.array([swapped.shares(900, rng, bits)[0] for _ in range(60)])
    error = np.sqrt(shares.var() / 30 + found.var() / 60)
    assert 0.1 < shares.mean() < 0.98
    assert abs(shares.mean() - found.mean()) < 4 * error + 0.03


def test_a_simulation_agrees_with_enumeration() -> None:
    question = Question.of(Population(8, 2, 2.0, 0.5), 1, {})
    shares = exact(question, 800, 0.5, 100)
    found = expected(question, 800, 0.5, "auto", Effort(tables=60, seed=1))
    assert found.estimate.simulated
    assert found.estimate.tables == 60
    error = 4 * shares.std() / 10
    low, high = found.interval
    width = high - low
    assert low - width / 2 - error < shares.mean() < high + width / 2 + error


# -- what is asked, and what is found --------------------------------------------------------------


def test_a_simulation_can_be_repeated() -> None:
    asked: dict[str, Any] = {"n": 300, "p": 8, "k": 2, "epsilon": 2, "tables": 10, "rho": 0.2}
    assert dps.plan(**asked, seed=4) == dps.plan(**asked, seed=4)


def test_the_closed_form_has_no_chance_in_it_and_grows() -> None:
    asked: dict[str, Any] = {"p": 20, "k": 3, "snr": 2}
    grown = [dps.plan(**asked, n=3000, epsilon=epsilon) for epsilon in (0.1, 0.3, 1.0)]
    assert grown[0] == dps.plan(**asked, n=3000, epsilon=0.1)
    assert [one.probability for one in grown] == sorted(one.probability for one in grown)
    assert grown[0].epsilon_left == Fraction(95, 1000)  # a median takes a twentieth
    assert grown[2].epsilon_left == Fraction(9, 10)  # and two quantiles a tenth
    for one in grown:
        assert 0 <= one.interval[0] <= one.probability <= one.interval[1] <= 1


def test_a_wide_bound_costs_little_with_a_private_scale() -> None:
    asked: dict[str, Any] = {"n": 3000, "p": 20, "k": 3, "epsilon": 1.0, "snr": 2}
    declared = [
        dps.plan(**asked, y_bound=bound, response_range="declared").probability for bound in (2, 20)
    ]
    private = [dps.plan(**asked, y_bound=bound).probability for bound in (2, 20)]
    # The quantiles themselves are drawn among more values, most of them far from all data.
    assert declared[0] > 0.9
    assert declared[1] < 0.01
    assert private[0] > private[1] > 0.7


def test_a_unit_of_several_rows() -> None:
    asked: dict[str, Any] = {"n": 2000, "p": 10, "k": 2}
    one, three = dps.plan(**asked, epsilon=1), dps.plan(**asked, epsilon=3, rows_per_unit=3)
    assert one.probability == three.probability
    assert three.epsilon == 3


@pytest.mark.parametrize("known", [{"n": 2000}, {"epsilon": 0.5}])
def test_the_smallest_value_reaches_and_a_smaller_one_does_not(known: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"p": 15, "k": 2, "snr": 2, "response_range": "declared"}
    found = dps.plan(**asked, **known, probability=0.8)
    assert found.solved == ("epsilon" if "n" in known else "n")
    assert found.probability >= 0.8
    n, epsilon = found.n, float(found.epsilon)
    less = {"n": n, "epsilon": 0.97 * epsilon} if "n" in known else {
        "n": int(0.97 * n), "epsilon": epsilon}  # fmt: skip
    assert dps.plan(**asked, **less).probability < 0.8
    assert f"Smallest {found.solved} for 0.8" in str(found)


def test_the_smallest_epsilon_by_simulation() -> None:
    asked: dict[str, Any] = {"p": 10, "k": 2, "snr": 2, "rho": 0.3, "n": 500}
    found = dps.plan(**asked, probability=0.7, tables=60, seed=2)
    assert found.solved == "epsilon"
    assert found.estimate.simulated
    again = dps.plan(**asked, epsilon=found.epsilon, tables=60, seed=3)
    assert 0.45 < again.probability < 0.93


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"k": 30}, "k must be at most p"),
        ({"k": 0}, "k must be at least 1"),
        ({"epsilon": 0}, "greater than 0"),
        ({"epsilon": "1"}, "epsilon must be a finite number"),
        ({"n": None, "epsilon": None}, "give n and epsilon; or one of them and the probability"),
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
        ({"method": "guess"}, "method must be one of auto, closed, simulated"),
        ({"method": "closed", "rho": 0.5}, "no closed form for correlated columns"),
        ({"method": "closed", "loss": "hinge"}, "no closed form for the hinge loss"),
        ({"method": "closed", "constraint": "l1"}, "no closed form for the l1 constraint"),
        ({"method": "closed", "mechanism": "top-r"}, "no closed form for the mechanism top-r"),
        ({"method": "closed", "tables": 9}, "tables are simulated"),
        ({"mechanism": "flip"}, "mechanism must be one of"),
        ({"loss": "cubic"}, "loss must be one of"),
        ({"prediction_bound": 1, "radius": 1}, "reach or radius"),
        ({"rows_per_unit": 0}, "rows_per_unit must be"),
        ({"labels": True, "response_range": "private"}, "two labels has no range"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(wrong: dict[str, Any], says: str) -> None:
    asked = {"n": 100, "p": 10, "k": 2, "epsilon": 1, **wrong}
    with pytest.raises(dps.DpsubsetError, match=says):
        dps.plan(**asked)


def test_a_probability_that_no_epsilon_reaches() -> None:
    with pytest.raises(dps.ArgumentError, match="Take a larger n, a larger snr or a smaller p"):
        dps.plan(n=20, p=50, k=5, probability=0.9)


def test_all_variables_matter() -> None:
    assert dps.plan(n=100, p=3, k=3, epsilon=1).probability == 1


def test_an_answer_reads_well() -> None:
    found = dps.plan(n=3000, p=20, k=3, epsilon=0.5, snr=0.3)
    text = str(found)
    assert text.startswith("Probability that the true support is released: 0.")
    assert "epsilon 0.5 (0.475 of it for the selection)" in text
    assert "made-up tables, not about yours: nothing was read" in text
    facts = json.loads(found.to_json())
    assert facts["assumed"]["snr"] == 0.3
    assert facts["interval"] == list(found.interval)


def test_wilson() -> None:
    low, high = wilson(0.5, 100, 1.96)
    assert (low, high) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(1.0, 10, 1.96) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0.0, 10, 1.96)[0] == 0


# -- the command line, and dry runs ----------------------------------------------------------------


def command(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command(tmp_path: Path) -> None:
    asked = ["plan", "--n", 3000, "--p", 20, "--k", 3, "--epsilon", 1, "--snr", 2]
    ended = command(*asked)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.rstrip() == str(dps.plan(n=3000, p=20, k=3, epsilon=1, snr=2))
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
        (["--k", 3, "--n", 9, "--epsilon", 1, "--always-include", "a"], "a plan has none"),
        (["--k", 3, "--n", 9, "--epsilon", 1, "--figure", "f.txt"], "ends in .png"),
        (["--k", 3, "--n", 9, "--epsilon", 1, "--over", "n"], "goes with --figure"),
    ],
)
def test_the_command_refuses(words: list[Any], says: str) -> None:
    ended = command("plan", "--p", 20, *words)
    assert ended.exit_code == 2
    assert says in ended.stderr


def test_curves() -> None:
    found = curve("n", around("n", 400), p=8, k=2, epsilon=1)
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
    (line,) = [line for line in told.splitlines() if line.startswith("Planner:")]
    assert "at SNR 1 or" in line
    assert "of made-up tables" in line
    assert "not of this one" in line
    signal = dps.plan(n=500, p=3, k=1, epsilon=0.1, snr=5)
    assert f"{signal.probability:.2f}" in line
    told = dry_run(tmp_path, 500, table, "--epsilon", 1, "--loss", "huber")
    assert "no quick answer for the huber loss" in told


def test_a_dry_run_does_not_tell_private_numbers_of_rows(tmp_path: Path) -> None:
    words = [tmp_path / "t.parquet", "--epsilon", 0.5, "--neighbours", "add-remove"]
    told = {dry_run(tmp_path, rows, *words) for rows in (40, 400)}
    assert len(told) == 1
    assert "Planner: rows for a probability of 0.9" in told.pop()
    # Under replace-one, with a price that states a cost under add-remove.
    words = [tmp_path / "t.parquet", "--epsilon", 0.5, "--response-scale", "declared"]
    told = {dry_run(tmp_path, rows, *words) for rows in (40, 400)}
    assert len(told) == 1
    assert "Planner: rows for a probability of 0.9" in told.pop()
    # In a ledger under add-remove, with the same price.
    book = dps.Ledger.create(
        tmp_path / "l.db", data_set="d", owner="o", purpose="p", epsilon=9, neighbours="add-remove"
    )
    words += ["--ledger", book.address]
    told = {dry_run(tmp_path, rows, *words) for rows in (40, 400)}
    assert len(told) == 1
    asked: dict[str, Any] = {"k": 1, "epsilon": 0.5}
    said = {
        tuple(outlook(frame, schema, rows_private=True, **asked))
        for frame, schema in (
            (pd.DataFrame(np.full((n, 2), 0.25), columns=["a", "y"]).assign(b=0.5),
             dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1)))
            for n in (40, 400)
        )
    }  # fmt: skip
    assert len(said) == 1
    # A CSV file does not say how many rows it has.
    assert "Planner: rows for" in dry_run(tmp_path, 40, tmp_path / "t.csv", "--epsilon", 0.5)
