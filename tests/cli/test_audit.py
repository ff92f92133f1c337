"""dpsubset audit: verdicts in words, exit codes, reports; and every mechanism can be audited."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from dpsubset.audit.cases import Recipe, audit, recipe_of, variants
from dpsubset.audit.exact import ExactAudit
from dpsubset.base.errors import ArgumentError
from dpsubset.cli import app
from dpsubset.mechanisms import MECHANISMS, PLAIN, Data, Guarantee, Outcome, Setting, mechanism
from dpsubset.objective.losses import LOSSES


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)


class Doubled(PLAIN["exponential"]):  # type: ignore[misc, name-defined]
    """Twice the weight that its guarantee speaks of."""

    name = "doubled"

    def eta(self, setting: Setting) -> Fraction:
        return 2 * super().eta(setting)

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        return PLAIN["exponential"]().guarantee(setting, seeded=seeded)


class Unproven(Doubled):
    """The same, and honest about it."""

    name = "unproven"

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        return Guarantee(setting.problem.neighbours, {}, seeded)


class WithoutClosedForm(Doubled):
    name = "without-closed-form"

    def outcomes(
        self, data: Data, setting: Setting
    ) -> tuple[list[Outcome], NDArray[np.float64]] | None:
        return None


class Picky(PLAIN["exponential"]):  # type: ignore[misc, name-defined]
    name = "picky"

    def check(self, setting: Setting) -> None:
        if setting.problem.neighbours == "add-remove":
            raise ArgumentError("n has to be public")


class Refusing(Picky):
    name = "refusing"

    def check(self, setting: Setting) -> None:
        raise ArgumentError("not today")


@pytest.fixture
def table() -> Iterator[Callable[..., None]]:
    """Makes it a table of the plain mechanisms and these; then it is as it was, in order."""
    kept = dict(MECHANISMS)

    def fill(*extra: Any) -> None:
        MECHANISMS.clear()
        MECHANISMS.update(PLAIN, **{cls.name: cls for cls in extra})

    yield fill
    MECHANISMS.clear()
    MECHANISMS.update(kept)


def test_a_sound_mechanism() -> None:
    result = run("permute-and-flip", "--runs", "4000")
    assert result.exit_code == 0
    assert "permute-and-flip: nothing found that contradicts epsilon = 1\n" in result.stdout
    assert "largest log ratio 0.999" in result.stdout
    assert "with confidence 1 - 1e-09" in result.stdout
    assert "All data are simulated" in result.stdout


def test_the_budget_is_the_one_asked_for() -> None:
    result = run("exponential", "--epsilon", "0.25", "--runs", "400", "--loss", "least-squares")
    assert "nothing found that contradicts epsilon = 0.25" in result.stdout
    assert "largest log ratio 0.2500" in result.stdout


@pytest.mark.statistical
def test_a_broken_twin_in_the_table_ends_with_1(table: Callable[..., None], tmp_path: Path) -> None:
    assert not (set(PLAIN) & {Doubled.name})
    table(Doubled)
    one = run("doubled", "--runs", "400")
    assert one.exit_code == 1
    assert "doubled: CONTRADICTED: epsilon = 1 is stated and does not hold" in one.stdout
    file = tmp_path / "audit.json"
    everything = run("--all", "--runs", "400", "--report", str(file))
    assert everything.exit_code == 1
    assert "Audits on simulated data" in everything.stdout
    found = {entry["mechanism"]: entry for entry in json.loads(file.read_text())["audits"]}
    assert found["doubled"]["contradicted"] is True
    assert found["exponential"]["contradicted"] is False
    worst = max(
        f["largest_log_ratio"] for f in found["doubled"]["findings"] if f["kind"] == "exact"
    )
    assert 1.9 < worst < 2.0


def test_all_ends_with_0_when_nothing_is_wrong(table: Callable[..., None]) -> None:
    table()
    result = run("--all", "--runs", "400", "--loss", "least-squares")
    assert result.exit_code == 0
    assert "exponential: nothing found" in result.stdout


def test_draws_alone_catch_what_has_no_closed_form(table: Callable[..., None]) -> None:
    table(WithoutClosedForm)
    result = run("without-closed-form")
    assert "exact: no closed form to compare" in result.stdout
    assert "CONTRADICTED" in result.stdout
    assert result.exit_code == 1


def test_who_claims_nothing_breaks_nothing(table: Callable[..., None]) -> None:
    table(Unproven)
    result = run("unproven", "--runs", "400")
    assert result.exit_code == 0
    assert "no guarantee claimed; contradicts epsilon = 1, which it was run with" in result.stdout


@pytest.mark.statistical
def test_a_relation_may_be_refused(table: Callable[..., None]) -> None:
    table(Picky, Refusing)
    result = run("picky", "--runs", "400")
    assert result.exit_code == 0
    assert "refused under add-remove: n has to be public" in result.stdout
    assert run("refusing", "--runs", "400").exit_code == 2
    everything = run("--all", "--runs", "400")
    assert everything.exit_code == 0
    assert "NOT AUDITED" in everything.stdout


def test_a_report_for_people(tmp_path: Path) -> None:
    file = tmp_path / "audit.md"
    assert run("exponential", "--runs", "400", "--report", str(file)).exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith(
        "# Audit\n\n## exponential\n\nnothing found that contradicts epsilon = 1."
    )
    for loss in LOSSES:
        assert f"- {loss}, exact: largest log ratio" in text
        assert f"- {loss}, by draws: epsilon is at least" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "or --all"),
        (("exponential", "--all"), "or --all"),
        (("--all", "--delta", "0.1"), "need one mechanism"),
        (("--all", "--option", "R=3"), "need one mechanism"),
        (("nonsense",), "must be one of"),
        (("exponential", "--epsilon", "nought"), "epsilon must be a number"),
        (("exponential", "--epsilon", "-1"), "greater than 0"),
        (("exponential", "--option", "R=3"), "no option 'R'"),
        (("exponential", "--delta", "0.1"), "leave delta at 0"),
        (("exponential", "--runs", "1"), "runs must be at least 4"),
        (("exponential", "--report", "no/such/folder.md"), "folder does not exist"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.statistical
def test_options_reach_the_mechanism() -> None:
    result = run("top-r", "--option", "R=2", "--runs", "400")
    assert result.exit_code == 0
    assert "top-r (R=2): nothing found" in result.stdout


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_audited(name: str) -> None:
    for chosen, recipe in variants(name):
        report = audit(chosen, Fraction(1), recipe=recipe, seconds=0.1)
        assert not report.contradicted, report.verdict
        assert report.claimed == chosen.proven
        assert report.empirical is not None
        assert {finding.problem.neighbours for finding in report.findings} == {
            "replace-one", "add-remove",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "least"),
    [("top-r", 0.9), ("sample-aggregate", 0.9), ("stability", 0.9), ("peeling", 0.9)],
)
def test_the_neighbours_are_bad_for_the_mechanism(name: str, least: float) -> None:
    # An audit could pass by being blind: these come close to what is promised.
    report = audit(name, seconds=0.1)
    assert report.exact is not None
    assert least < report.exact.utilisation <= 1 + 1e-9


def test_the_published_mistakes_are_found_out() -> None:
    chosen = mechanism("mistakes", {"anchor": "data"})
    report = audit(chosen, runs=4000)
    assert report.exact is not None
    assert report.exact.utilisation > 10
    assert report.empirical is not None
    assert report.empirical.contradicts
    assert not report.contradicted
    assert report.verdict.startswith("no guarantee claimed; contradicts epsilon = 1")
    assert report.name == "mistakes (anchor=data)"


def test_an_assumption_is_told() -> None:
    report = audit("metropolis", seconds=0.1)
    assert report.assumes is not None
    assert "nothing found that contradicts" in report.verdict
    assert "ASSUMING that the random walk that drew the answer" in report.verdict
    assert "300 steps" in report.verdict


def test_a_recipe_is_found_by_the_options() -> None:
    assert recipe_of(PLAIN["exponential"]()) == Recipe()
    for name in MECHANISMS:
        for chosen, _ in variants(name):
            assert recipe_of(chosen).options.items() <= chosen.options().items()


def test_pairs_are_grouped_by_what_is_promised_for_their_n() -> None:
    chosen = MECHANISMS["top-r"](R=2, T=3)
    report = audit(chosen, Fraction(1), runs=40)
    promised = {
        finding.audit.promised.epsilon
        for finding in report.findings
        if isinstance(finding.audit, ExactAudit)
    }
    assert len(promised) > 5
    assert min(promised) > 1
    assert report.refused


def test_help_says_that_data_are_simulated_and_is_quick() -> None:
    assert "on simulated data" in " ".join(run("--help").stdout.split())
    code = "import sys, dpsubset.cli; print('numba' in sys.modules, 'scipy' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == ["False", "False"]
