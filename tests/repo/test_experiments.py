"""The form of experiments: results that resume, quick runs within full ones, a page of all."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments.__main__ import found
from experiments.experiment import Claim, Experiment, Line, Lines, Trial, Verdict
from experiments.page import DOCS, ORDER, extent, judged, publish
from experiments.results import Results, read
from experiments.running import run, timed
from rich.console import Console

QUIET = Console(quiet=True)
ALL = found()


def square(trial: Trial) -> list[Line]:
    return [{"power": power, "value": trial["a"] ** power} for power in (1, 2)]


def trials(quick: bool) -> list[Trial]:
    return [{"a": a, "b": b} for a, b in itertools.product(range(1, 3 if quick else 5), (1,))]


def draw(lines: Lines, figure: Any) -> None:
    figure.subplots().plot([line["a"] for line in lines], [line["value"] for line in lines])


def small(check: bool, reason: str = "") -> Experiment:
    return Experiment(
        name="behdin_recovery", title="Squares | and more", source="Nobody", published="`x` grows.",
        caption="As *published*.", trials=trials, measure=square, draw=draw,
        claims=(Claim("It grows.", lambda lines: Verdict(check, f"{len(lines)} lines"), reason),),
        full="a second",
    )  # fmt: skip


def go(experiment: Experiment, out: Path, *, quick: bool = False, fresh: bool = False) -> Lines:
    return run(experiment, quick, out, 1, fresh, QUIET)


def test_what_was_interrupted_goes_on(tmp_path: Path) -> None:
    asked: list[Any] = []

    def measure(trial: Trial) -> list[Line]:
        asked.append(trial["a"])
        if trial["a"] == 3 and asked.count(3) == 1:
            raise KeyboardInterrupt
        return square(trial)

    experiment = replace(small(True), measure=measure)
    with pytest.raises(KeyboardInterrupt):
        go(experiment, tmp_path)
    assert asked == [1, 2, 3]
    assert [line["a"] for line in read(tmp_path / "behdin_recovery.csv")] == [1, 1, 2, 2]
    lines = go(experiment, tmp_path)
    assert asked == [1, 2, 3, 3, 4]
    assert [(line["a"], line["power"], line["value"]) for line in lines] == [
        (a, power, a**power) for a in range(1, 5) for power in (1, 2)
    ]
    go(experiment, tmp_path)
    assert len(asked) == 5
    go(experiment, tmp_path, fresh=True)
    assert len(asked) == 9


def test_a_full_run_takes_over_from_a_quick_one(tmp_path: Path) -> None:
    assert len(go(small(True), tmp_path, quick=True)) == 4
    assert len(go(small(True), tmp_path)) == 8


def test_lines_of_trials_that_are_no_more_are_forgotten(tmp_path: Path) -> None:
    go(small(True), tmp_path)
    fewer = replace(small(True), trials=lambda quick: [{"a": 2, "b": 1}])
    assert {line["a"] for line in go(fewer, tmp_path)} == {2}


@pytest.mark.parametrize("value", [0.1, 1.0, 7, "top-r, R = 100", True, 1e-6, 10**6])
def test_values_name_the_same_trial_after_reading(tmp_path: Path, value: Any) -> None:
    results = Results(tmp_path / "some.csv")
    results.add([{"a": value, "found": None}])
    again = Results(tmp_path / "some.csv")
    assert again.missing([{"a": value}, {"a": "another"}]) == [{"a": "another"}]
    assert again.lines[0]["found"] is None


def test_a_quick_run_does_not_take_the_place_of_a_full_one(tmp_path: Path) -> None:
    docs, full, quick = (tmp_path / name for name in ("docs", "full", "quick"))
    go(small(True), full)
    go(small(True), quick, quick=True)
    publish([small(True)], full, docs)
    page = publish([small(True)], quick, docs)
    assert len(read(docs / "behdin_recovery.csv")) == 8
    assert "Full run, 4 trials" in page.read_text(encoding="utf-8")


def test_the_page_tells_what_does_not_hold(tmp_path: Path) -> None:
    lines = go(small(False, "Squares are <odd>."), tmp_path)
    page = publish([small(False, "Squares are <odd>.")], tmp_path, tmp_path / "docs")
    text = page.read_text(encoding="utf-8")
    assert "Squares are &lt;odd&gt;." in text
    assert "<code>x</code>" in text
    assert "None." not in text
    markdown = (page.parent / "README.md").read_text(encoding="utf-8")
    assert "| It grows. | no | 8 lines. Squares are <odd>. |" in markdown
    assert judged(small(True), lines) == [("It grows.", "yes", "8 lines", "")]


def test_every_experiment_of_the_page_is_there() -> None:
    assert [experiment.name for experiment in ALL] == list(ORDER)


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
class TestEach:
    def test_quick_trials_are_some_of_the_full_ones(self, experiment: Experiment) -> None:
        full = [tuple(trial.items()) for trial in experiment.trials(False)]
        assert len(set(full)) == len(full)
        quick = [tuple(trial.items()) for trial in experiment.trials(True)]
        assert quick
        assert set(quick) <= set(full)

    def test_it_says_all_that_the_page_needs(self, experiment: Experiment) -> None:
        for text in (experiment.title, experiment.source, experiment.published, experiment.caption):
            assert text
        assert re.search(r"minute|second|hour", experiment.full)
        assert experiment.claims

    def test_its_results_are_published_and_its_claims_turn_out_as_known(
        self, experiment: Experiment
    ) -> None:
        lines = read(DOCS / f"{experiment.name}.csv")
        assert not Results.of(lines).missing(experiment.trials(True))
        for claim in experiment.claims:
            verdict = claim.check(lines)
            assert verdict.holds == claim.expected, (claim.text, verdict.figures)
        assert (DOCS / f"{experiment.name}.png").stat().st_size > 5000
        page = (DOCS / "README.md").read_text(encoding="utf-8")
        assert f"({experiment.name}.png)" in page
        assert extent(experiment, lines) in page

    @pytest.mark.statistical
    def test_a_trial_measures_what_is_published(self, experiment: Experiment) -> None:
        """So that a change of the package that breaks an experiment is seen."""
        published = read(DOCS / f"{experiment.name}.csv")
        (trial, *_) = experiment.trials(True)
        for line in timed(experiment.measure, trial):
            assert set(line) <= set(published[0])
            assert set(trial) < set(line)
