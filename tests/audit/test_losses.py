"""The audit under every loss: its neighbours use up epsilon, and broken twins are caught."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from dpsubset.audit.cases import audit
from dpsubset.audit.empirical import EmpiricalAudit
from dpsubset.audit.exact import (
    ExactAudit,
    Pair,
    audit_exact,
    label_pairs,
    random_pairs,
    worst_case_pairs,
)
from dpsubset.base.errors import ArgumentError
from dpsubset.cli import app
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import MECHANISMS, PLAIN
from dpsubset.objective.losses import LOSSES
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from support.recipes import CONSTRAINTS
from support.samples import one_in, sample

NEIGHBOURS = ("add-remove", "replace-one")
#: Those of labels among the losses.
LABELS = tuple(name for name, loss in LOSSES.items() if loss.labels)
#: Below, at and above 1, where ranges change their form.
REACHES = (0.5, 1.0, 1.6, 3.0)
#: With what makes a loss another one.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((loss, {}) for loss in LOSSES),
    ("huber", {"threshold": 0.01}),
    ("huber", {"threshold": 1.0}),
]


def state(loss: str, prediction_bound: float, p: int = 4, k: int = 1, **more: Any) -> Problem:
    return Problem.create(
        p, k, loss=loss, prediction_bound=prediction_bound, **{"intercept": False, **more}
    )


def bad_pairs(problem: Problem) -> list[Pair]:
    return [*worst_case_pairs(problem, 4000), *label_pairs(problem, 4000)]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)


@one_in(4)
@pytest.mark.parametrize(("loss", "more"), VARIANTS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_they_come_close_to_epsilon_and_not_beyond(
    loss: str, more: dict[str, Any], neighbours: str, constraint: str, every: int
) -> None:
    rng = np.random.default_rng(3)
    shapes = list(itertools.product(REACHES, ((4, 1), (5, 2))))
    for prediction_bound, (p, k) in sample(shapes, every, loss, more, neighbours, constraint):
        problem = state(
            loss, prediction_bound, p, k, constraint=constraint, neighbours=neighbours, **more
        )
        pairs = [*bad_pairs(problem), *random_pairs(problem, 20, rng)]
        found = audit_exact(PLAIN["exponential"](), problem, Fraction(2), pairs)
        assert found.passed, (prediction_bound, k, found.worst, found.pair and found.pair.label)
        assert found.worst > 0.98 * 2, (prediction_bound, k, found.worst)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("loss", LABELS)
def test_a_label_alone_uses_up_epsilon(loss: str, neighbours: str) -> None:
    # Also where the response moves by one step of the quantizer, across the middle of its bounds.
    for prediction_bound in REACHES:
        problem = state(loss, prediction_bound, 5, 2, neighbours=neighbours)
        for start in (f"a response of {STEPS} for {-STEPS}", "a response of -1 for 0"):
            pairs = [pair for pair in label_pairs(problem, 4000) if pair.label.startswith(start)]
            assert len(pairs) == 4
            found = audit_exact(PLAIN["exponential"](), problem, Fraction(1), pairs)
            assert 0.98 < found.worst <= 1


def test_the_label_is_all_that_differs() -> None:
    for pair in label_pairs(state("hinge", 2.0, 5, 2), 100):
        assert pair.records is not None
        one, two = pair.records
        assert np.array_equal(one[:, :-1], two[:, :-1])
        assert (one[:, -1] != two[:, -1]).sum() == 1


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in LABELS])
def test_others_have_no_labels(loss: str) -> None:
    assert not list(label_pairs(state(loss, 1.0)))


# -- broken twins -------------------------------------------------------------------------------


def tell(monkeypatch: pytest.MonkeyPatch, twin: Any) -> None:
    """Let losses tell a wrong range: guarantee and draw both take it for the right one."""
    right = Sensitivity.of

    def of(problem: Problem, rule: str = "sharp") -> Sensitivity:
        told = right(problem, rule)
        return replace(told, range=twin(problem, told.range))

    monkeypatch.setattr(Sensitivity, "of", of)


def a_little_too_small(problem: Problem, range: Fraction) -> Fraction:
    return range * Fraction(19, 20)


def of_the_right_side(problem: Problem, range: Fraction) -> Fraction:
    """The range over predictions that have the sign of y, as if none could be wrong."""
    prediction_bound = float(problem.prediction_bound)
    if problem.loss == "logistic":
        return Fraction(math.log(2) - math.log1p(math.exp(-prediction_bound)))
    return Fraction(min(prediction_bound, 1.0))  # the hinge: from 1 at 0 down to 1 - B, or to 0


@pytest.mark.statistical
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["permute-and-flip", "exponential", "top-r", "penalised"])
def test_a_range_5_percent_too_small_is_caught(
    loss: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not audit(name, loss=loss, runs=40).contradicted
    tell(monkeypatch, a_little_too_small)
    report = audit(name, loss=loss, runs=40)
    assert report.contradicted
    assert report.exact is not None
    assert 1 < report.exact.utilisation < 1.06


@one_in(4)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize(("loss", "more"), VARIANTS)
def test_so_it_is_at_any_reach(
    loss: str, more: dict[str, Any], constraint: str, neighbours: str, every: int
) -> None:
    for prediction_bound in sample(REACHES, every, loss, more, constraint, neighbours):
        problem = state(
            loss, prediction_bound, constraint=constraint, neighbours=neighbours, **more
        )
        right = Sensitivity.of(problem)
        twin = replace(right, range=a_little_too_small(problem, right.range))
        found = audit_exact(
            PLAIN["exponential"](), problem, Fraction(1), bad_pairs(problem), sensitivity=twin
        )
        assert not found.passed, (prediction_bound, found.worst)


@pytest.mark.statistical
@pytest.mark.parametrize("loss", LABELS)
def test_labels_that_are_always_predicted_right_are_caught(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, of_the_right_side)
    report = audit("exponential", loss=loss, runs=40)
    assert report.contradicted
    assert report.exact is not None
    assert report.exact.utilisation > 1.9


@pytest.mark.parametrize("loss", LOSSES)
def test_a_spread_that_forgets_the_record_replaced_is_caught(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(self: Sensitivity, neighbours: str) -> Fraction:
        return self.range + 4 * self.tau

    monkeypatch.setattr(Sensitivity, "score_range", once)
    report = audit("exponential", loss=loss, runs=40)
    assert report.contradicted
    contradicting = {f.problem.neighbours for f in report.findings if f.contradicts}
    assert contradicting == {"replace-one"}


# -- reports ------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_every_loss_is_audited_unless_told() -> None:
    report = audit("exponential", runs=40)
    assert report.losses == tuple(LOSSES)
    assert report.unable == ()
    for loss in LOSSES:
        exact, drawn = report.nearest(ExactAudit, loss), report.nearest(EmpiricalAudit, loss)
        assert exact is not None
        assert drawn is not None
        assert exact.problem.loss == drawn.problem.loss == loss
        assert 0.999 < exact.utilisation <= 1
    assert audit("exponential", loss=["huber", "hinge"], runs=40).losses == ("huber", "hinge")


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_audited_with_all_it_can_do(name: str) -> None:
    report = audit(name, runs=4)
    able = tuple(LOSSES) if MECHANISMS[name].any_loss else ("least-squares",)
    assert report.losses == able
    assert report.unable == tuple(loss for loss in LOSSES if loss not in able)


def test_what_cannot_be_done_is_said_in_a_line() -> None:
    usual = run("peeling", "--runs", "40")
    assert usual.exit_code == 0
    assert "  cannot do: logistic, hinge, huber\n" in usual.stdout
    asked = run("peeling", "--loss", "hinge", "--runs", "40")
    assert asked.exit_code == 2
    assert asked.stderr.count("peeling is for least squares") == 1
    with pytest.raises(ArgumentError, match="loss must be one of"):
        audit("peeling", loss="ols")


def test_the_command_says_how_close_each_loss_comes(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    result = run(
        "exponential", "--loss", "hinge", "--loss", "huber", "--runs", "40", "--report", str(file)
    )
    assert result.exit_code == 0
    for loss in ("hinge", "huber"):
        line = rf"  {loss}, exact: largest log ratio 0\.9999\d; 99\.99\d % of epsilon"
        assert re.search(line, result.stdout), loss
    assert "least-squares" not in result.stdout
    (entry,) = json.loads(file.read_text())["audits"]
    exact = [finding for finding in entry["findings"] if finding["kind"] == "exact"]
    for loss in ("hinge", "huber"):
        used = max(found["used_of_stated"] for found in exact if found["loss"] == loss)
        assert 0.999 < used <= 1
    assert entry["cannot_do"] == []
