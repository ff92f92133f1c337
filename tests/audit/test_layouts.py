"""The audit with an intercept and groups: neighbours use up epsilon, broken twins are caught."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsubset.audit.cases import audit
from dpsubset.audit.exact import (
    ExactAudit,
    Pair,
    audit_exact,
    label_pairs,
    random_pairs,
    worst_case_pairs,
)
from dpsubset.audit.pairs import flattening_pairs, tie_breaking_pairs, vote_changing_pairs
from dpsubset.audit.report import lines, to_json
from dpsubset.audit.rows import parts
from dpsubset.audit.worst_case_lp import worst_case_lp
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import PLAIN, Data, Setting
from dpsubset.mechanisms.published.hard_thresholding import HardThresholding
from dpsubset.mechanisms.shared.gradient import record_change
from dpsubset.objective.losses import LOSSES
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.schema.layout import STEPS, Layout
from support.recipes import CONSTRAINTS

NEIGHBOURS = ("add-remove", "replace-one")
each_relation = pytest.mark.parametrize("neighbours", NEIGHBOURS)
each_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS)
each_loss = pytest.mark.parametrize("loss", LOSSES)

#: Columns of each choice, widths, the intercept's level ("low" for numbers, 1 for labels), and the
#: reach by loss.
DESIGNS: dict[str, tuple[list[int], list[int], str | None, dict[str, float]]] = {
    "numbers": ([1, 1, 1], [1, 1, 1], "low", {"logistic": 2.0, "hinge": 2.0}),
    "groups": ([3, 3, 3], [3, 3, 3], "low", {"logistic": 2.0, "hinge": 2.0}),
    "groups, high": ([3, 3, 3], [3, 3, 3], "high", {"logistic": 2.0, "hinge": 3.0}),
    "groups alone": ([3, 2, 3], [3, 2, 3], None, {"logistic": 2.0, "hinge": 2.0}),
    "levels": ([3, 3, 3], [1, 1, 1], "low",
               {"least-squares": 0.5, "huber": 0.5, "logistic": 1.0}),
    "levels, high": ([3, 3, 3], [1, 1, 1], "high",
                     {"least-squares": 0.5, "huber": 0.5, "logistic": 1.0}),
    "levels alone": ([3, 2, 6], [1, 1, 1], None, {"least-squares": 0.5, "huber": 0.5}),
    "levels and numbers": ([3, 1, 1], [1, 1, 1], "low", {"logistic": 2.0}),
    "groups of both": ([4, 4, 4], [2, 2, 2], "low",
                       {"least-squares": 0.5, "huber": 0.5, "logistic": 1.0}),
}  # fmt: skip
each_design = pytest.mark.parametrize("design", DESIGNS)

#: Where no neighbours are known that come within 10 % of epsilon: supports of levels alone, with an
#: intercept as large as a level. Records pull it the same way under all supports. A hinge of reach
#: 1 or less is a line, and leaves W / (W + v) of the range with the box, sqrt(W / (W + v^2)) with
#: the ball.
SHORT: dict[tuple[str, str, str], float] = {
    ("least-squares", "levels, high", "ball"): 0.8,
    ("least-squares", "levels, high", "l1"): 0.83,
    ("logistic", "levels, high", "ball"): 0.8,
    ("hinge", "levels, high", "box"): 0.499,
    ("hinge", "levels, high", "ball"): 0.7,
    ("huber", "levels, high", "box"): 0.62,
    ("huber", "levels, high", "ball"): 0.8,
}


def state(design: str, loss: str, constraint: str, neighbours: str, **more: Any) -> Problem:
    sizes, widths, intercept, reaches = DESIGNS[design]
    given = {"prediction_bound": reaches.get(loss, 0.9), "layout": Layout.of(sizes, widths)}
    return Problem.create(
        len(sizes), 1, loss=loss, constraint=constraint, neighbours=neighbours,
        intercept=intercept is not None, labels=intercept == "high", **(given | more),
    )  # fmt: skip


def bad_pairs(problem: Problem, copies: int = 4000) -> list[Pair]:
    """The worst: every choice ahead, the response at either end, or a step on either side of 0."""
    ends = {f"a response of {y} with all choices ahead": abs(y) > 1 for y in (STEPS, -STEPS, -1, 0)}
    worst = {
        f"from the linear program, {one} for {other}"
        for one, other in itertools.permutations(ends, 2)
        if ends[one] == ends[other]
    }
    return [pair for pair in worst_case_pairs(problem, copies) if pair.label in worst]


@pytest.mark.statistical
@each_loss
@each_design
@each_constraint
@each_relation
def test_they_come_close_to_epsilon_and_not_beyond(
    loss: str, design: str, constraint: str, neighbours: str
) -> None:
    problem = state(design, loss, constraint, neighbours)
    random = random_pairs(problem, 10, np.random.default_rng(4))
    pairs = [*bad_pairs(problem), *random]
    for name in PLAIN:
        found = audit_exact(PLAIN[name](), problem, Fraction(2), pairs)
        assert found.passed, (name, found.worst, found.pair and found.pair.label)
        assert found.worst >= SHORT.get((loss, design, constraint), 0.899) * 2, (name, found.worst)


@pytest.mark.statistical
@pytest.mark.parametrize("k", [2, 3])
@each_loss
@each_relation
def test_none_goes_beyond_epsilon_with_more_choices(loss: str, neighbours: str, k: int) -> None:
    layout = Layout.of([1, 3, 2, 4, 1], [1, 1, 2, 2, 1])
    rng = np.random.default_rng(k)
    for constraint, intercept in itertools.product(CONSTRAINTS, (True, False)):
        problem = Problem.create(
            5, k, loss=loss, constraint=constraint, neighbours=neighbours, layout=layout,
            intercept=intercept, ridge=float(k == 3),
        )  # fmt: skip
        pairs = [*random_pairs(problem, 40, rng), *worst_case_pairs(problem, 500)]
        found = audit_exact(PLAIN["exponential"](), problem, Fraction(1), pairs)
        assert found.passed, (constraint, intercept, found.worst)


@each_design
@each_relation
def test_neighbours_are_rows_that_the_quantizer_can_make(design: str, neighbours: str) -> None:
    for loss in ("least-squares", "hinge"):
        problem = state(design, loss, "box", neighbours)
        pairs = itertools.chain(
            random_pairs(problem, 40, np.random.default_rng(1)),
            worst_case_pairs(problem, 400),
            label_pairs(problem, 400),
            *(
                kind(problem)
                for kind in (flattening_pairs, tie_breaking_pairs, vote_changing_pairs)
            ),
        )
        for pair in pairs:
            assert pair.records is not None
            for records in pair.records:
                check_rows(problem, records)
            first, second = (Counter(map(tuple, records.tolist())) for records in pair.records)
            assert (second - first).total() <= 1, pair.label
            assert (first - second).total() <= (neighbours == "replace-one"), pair.label


def check_rows(problem: Problem, records: np.ndarray) -> None:
    layout = problem.layout
    assert records.shape[1] == problem.columns + 1
    assert (np.abs(records) <= STEPS).all()
    if layout.has_intercept:
        assert (records[:, -2] == layout.constant).all()
    for j in range(layout.choices):
        own = records[:, layout.starts[j] : layout.starts[j + 1]]
        width = layout.widths[j] if layout.widths else 1
        assert (np.abs(own).sum(axis=1) <= width * STEPS).all()
        numbers, levels = parts(layout, j)
        on = own[:, numbers:]
        assert on.shape[1] == levels
        assert np.isin(on, (0, STEPS)).all()
        assert ((on > 0).sum(axis=1) <= 1).all()


def test_a_row_may_move_from_one_level_to_another() -> None:
    problem = state("levels", "least-squares", "box", "replace-one")
    labels = [pair.label for pair in worst_case_pairs(problem, 400)]
    flips = [label for label in labels if "ahead" in label and "behind" in label]
    assert len(flips) == 8
    found = worst_case_lp(problem)
    assert found is not None
    assert found.reached == pytest.approx(1)


# -- broken twins -------------------------------------------------------------------------------


def told(problem: Problem, **wrong: Any) -> Sensitivity:
    """That of a problem whose layout is taken for another; scores stay on their grid."""
    mistaken = replace(problem, laid_out=replace(problem.layout, **wrong))
    return replace(Sensitivity.of(mistaken), score_step=Sensitivity.of(problem).score_step)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", ["box", "ball"])  # the l1 ball's reach is its radius
@each_relation
def test_an_intercept_left_out_of_the_reach_is_caught(
    name: str, constraint: str, neighbours: str
) -> None:
    for design, loss in itertools.product(("numbers", "groups", "groups, high"), LOSSES):
        problem = state(design, loss, constraint, neighbours)
        twin = told(problem, constant=0)
        found = audit_exact(PLAIN[name](), problem, Fraction(1), bad_pairs(problem),
                            sensitivity=twin)  # fmt: skip
        missed = float(Sensitivity.of(problem).range / twin.range)
        assert missed > (1.1 if design == "groups, high" else 1)
        assert found.worst > 0.999 * missed
        assert not found.passed, (design, loss, found.worst)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("constraint", ["box", "ball"])
@each_loss
@each_relation
def test_a_group_of_numbers_that_counts_as_one_is_caught(
    name: str, loss: str, constraint: str, neighbours: str
) -> None:
    for design in ("groups", "groups alone"):
        problem = state(design, loss, constraint, neighbours)
        twin = told(problem, widths=(1, 1, 1))
        found = audit_exact(PLAIN[name](), problem, Fraction(1), bad_pairs(problem),
                            sensitivity=twin)  # fmt: skip
        assert not found.passed
        assert found.worst > 1.25, (design, found.worst)


def test_an_audit_of_a_mechanism_catches_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Sensitivity.of
    assert not audit("permute-and-flip", loss="least-squares", runs=40).contradicted
    monkeypatch.setattr(
        Sensitivity, "of",
        lambda problem, rule="sharp": right(
            replace(problem, laid_out=replace(problem.layout, constant=0)), rule
        ),
    )  # fmt: skip
    report = audit("permute-and-flip", loss="least-squares", runs=40)
    assert report.contradicted
    broken = {finding.problem.layout.has_intercept for finding in report.findings
              if finding.contradicts}  # fmt: skip
    assert broken == {True}


# -- rounds that release values -----------------------------------------------------------------


class Coarse(HardThresholding):
    """On a grid so coarse that all transcripts can be listed."""

    GRID = 1


class Forgetful(Coarse):
    """Takes the intercept's value for one that is not released."""

    def rounds(self, setting: Setting) -> Any:
        right = super().rounds(setting)
        problem = setting.problem

        class Fewer(type(right)):  # type: ignore[misc]
            def value_scale(self, count: int, sensitivity: int) -> Fraction:
                return super().value_scale(count - problem.layout.has_intercept, sensitivity)

        return Fewer(right.measure, right.rounds, right.picks, right.values)


def transcripts_of(chosen: HardThresholding, problem: Problem, epsilon: Fraction) -> float:
    """The largest log ratio of a transcript, over heavy neighbours."""
    setting = Setting.of(problem, epsilon, n=4)
    worst = 0.0
    layout = problem.layout
    rows = [
        [*values, *([layout.constant] if layout.has_intercept else []), y]
        for values in itertools.product(
            (-STEPS, STEPS), repeat=layout.columns - layout.has_intercept
        )
        for y in (-STEPS, STEPS)
    ]
    for one, other in itertools.combinations(rows, 2):
        logs = []
        for last in (one, other):
            cells = np.array([*rows[:3], last], dtype=np.int16).T
            data = Data(GramData.of_cells(np.ascontiguousarray(cells), "test"))
            found = chosen.transcripts(data, setting)
            assert found is not None
            logs.append(found)
        assert logs[0].keys() == logs[1].keys()
        worst = max(worst, *(abs(logs[0][run] - logs[1][run]) for run in logs[0]))
    return worst


def test_hard_thresholding_pays_for_the_intercept_that_it_tells() -> None:
    problem = Problem.create(2, 1, intercept=True, prediction_bound=1.0)
    for share in (Fraction(1, 2), Fraction(1, 50)):
        chosen = Coarse(iterations=2, rows=4, share=share)
        right = transcripts_of(chosen, problem, Fraction(1))
        assert right <= 1 + 1e-9
    # Nearly all of the budget is for values, of which there are two.
    assert (
        transcripts_of(Forgetful(iterations=2, rows=4, share=share), problem, Fraction(1)) > right
    )
    groups = Problem.create(2, 1, layout=Layout.of([2, 1], [2, 1]), intercept=False)
    assert transcripts_of(Coarse(iterations=2, rows=4), groups, Fraction(1)) <= 1 + 1e-9


def test_what_a_record_moves_counts_levels_once_and_the_intercept_as_it_is() -> None:
    layout = replace(Layout.of([3, 1, 2], [1, 1, 2]), constant=round(0.75 * STEPS))
    m = {0: 4, 1: -6, 2: 1, 3: 2, 4: 1, 5: 3, 6: 8}
    size = STEPS * (6 + 2 + 1 + 3) + layout.constant * 8
    assert record_change(layout, Fraction(2, 3), m, 10) == STEPS * (STEPS * 30 + 2 * size)


# -- reports ------------------------------------------------------------------------------------


def test_a_report_says_where() -> None:
    report = audit("exponential", loss="least-squares", runs=40)
    layouts = {f.problem.layout for f in report.findings if isinstance(f.audit, ExactAudit)}
    assert any(layout.has_intercept and not layout.grouped for layout in layouts)
    assert any(layout.has_intercept and layout.grouped for layout in layouts)
    assert any(layout.grouped and not layout.has_intercept for layout in layouts)
    for finding in report.findings:
        if isinstance(finding.audit, ExactAudit) and finding.problem.columns != finding.problem.p:
            assert finding.utilisation >= 0.9
    one = replace(report, findings=tuple(
        f for f in report.findings if f.problem.layout.has_intercept and f.problem.layout.grouped
    ))  # fmt: skip
    assert "3 variables in 9 columns, with an intercept" in "\n".join(lines(one))
    assert '"intercept": true' in to_json([one])
