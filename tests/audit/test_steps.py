"""Audits of scales, sums of a fit, means and bounds: they come near to epsilon, and catch twins."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpsubset.audit.exact import ExactAudit
from dpsubset.audit.laws import Laplace, Law, Quantiles, SupNorm
from dpsubset.audit.steps import (
    STEPS_OF_RELEASES,
    FitSums,
    LabelShare,
    Means,
    ResponseRange,
    Step,
    SuggestedBounds,
    audit_step,
)
from dpsubset.cli import app
from dpsubset.models.entries import LARGEST
from dpsubset.privacy.budget import Budget
from dpsubset.privacy.random import Randomness

FEW = 40


@pytest.mark.parametrize("name", STEPS_OF_RELEASES)
def test_steps_come_near_to_what_they_promise(name: str) -> None:
    report = audit_step(name, Fraction(1, 2), runs=FEW)
    assert not report.contradicted
    # The pairs of the search are not the worst that there are: they come to some 92 %.
    assert report.exact is not None
    assert report.exact.utilisation > (0.9 if name == "private-search" else 0.99)
    assert report.epsilon == Fraction(1, 2)
    declared = {(f.declared, f.relation) for f in report.findings}
    # A number of rows that is used as it is protects nobody if it differs.
    assert ("replace-one", "add-remove") not in declared or name in ("scale", "class-share")
    assert ("add-remove", "add-remove") in declared


class LoudSums(FitSums):
    """Twice the eta that is paid for."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return replace(law, noise=replace(law.noise, epsilon=2 * law.noise.epsilon))


class HalfMoved(FitSums):
    """As if a replaced record moved a sum by S^2, not by twice that."""

    def law(self, table: Any, epsilon: Fraction, neighbours: Any) -> Law:
        law = super().law(table, epsilon, neighbours)
        assert isinstance(law, SupNorm)
        return replace(law, noise=replace(law.noise, neighbours="add-remove"))


class FreeColumn(Means):
    """Noise for all totals but one."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, Laplace)
        return replace(law, change=law.change * (len(law.values) - 1) // len(law.values))


class OneColumnPaid(SuggestedBounds):
    """Every column has all of epsilon."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, Quantiles)
        return replace(law, epsilon=law.epsilon * len(law.counts))


class OneQuantilePaid(ResponseRange):
    """The second decile comes free."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, Quantiles)
        return replace(law, epsilon=2 * law.epsilon)


class LoudShare(LabelShare):
    """Half of the noise that is paid for."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return replace(law, noise=replace(law.noise, epsilon=2 * law.noise.epsilon))


class _Counted(SupNorm):
    """The last sum without noise."""

    def farthest(self, other: SupNorm) -> float:
        return math.inf if self.values[-1] != other.values[-1] else super().farthest(other)


class PublicCount(FitSums):
    """How many rows have a response is told as it is, as the number of all rows may be."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return _Counted(law.values, law.noise)


class CertainShare(LabelShare):
    """One of the two counts without noise."""

    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return _Counted(law.values, law.noise)


class MeanProducts(FitSums):
    """Sums are divided by the number of rows that count, and multiplied by that of all."""

    def law(self, table: Any, *asked: Any) -> Law:
        law = super().law(table, *asked)
        assert isinstance(law, SupNorm)
        counted = max(law.values[-1] // LARGEST, 1)
        values = (*(v * len(table) // counted for v in law.values[:-1]), law.values[-1])
        return replace(law, values=values)

    def pairs(self, relation: Any) -> Any:
        for label, one, other in super().pairs(relation):
            dropped = np.array([[1.0, 1.0, np.nan]] * 2 * len(one))
            yield label, np.vstack([dropped, one]), np.vstack([dropped, other])


@pytest.mark.parametrize(
    "twin",
    [
        LoudSums,
        HalfMoved,
        FreeColumn,
        OneColumnPaid,
        OneQuantilePaid,
        PublicCount,
        MeanProducts,
        LoudShare,
        CertainShare,
    ],
)
def test_twins_are_caught(twin: type[Step]) -> None:
    report = audit_step(twin(), runs=FEW)
    assert report.contradicted
    assert report.exact is not None
    assert report.exact.utilisation > 1.2
    assert "CONTRADICTED" in report.verdict


class _Quiet(SupNorm):
    """A closed form that is right, and draws with a twentieth of the noise."""

    def draw(self, rng: Randomness) -> Sequence[int]:
        noisy = super().draw(rng)
        return [v + (w - v) // 20 for v, w in zip(self.values, noisy, strict=True)]


class QuietSums(FitSums):
    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, SupNorm)
        return _Quiet(law.values, law.noise)


class _Louder(Laplace):
    def draw(self, rng: Randomness) -> Sequence[int]:
        return Budget("pure", 20 * self.budget.amount).values(self.values, self.change)


class QuietMeans(Means):
    def law(self, *asked: Any) -> Law:
        law = super().law(*asked)
        assert isinstance(law, Laplace)
        return _Louder(law.values, law.budget, law.change)


@pytest.mark.parametrize("twin", [QuietSums, QuietMeans])
def test_draws_catch_what_the_closed_form_hides(twin: type[Step]) -> None:
    report = audit_step(twin(), runs=1000)
    assert report.contradicted
    assert report.empirical is not None
    assert report.empirical.audit.found > 1
    assert not any(f.contradicts for f in report.of_kind(ExactAudit))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["audit", *arguments])


def test_the_command_audits_steps(tmp_path: Path) -> None:
    result = run("noisy-moments", "--runs", "40", "--report", str(tmp_path / "r.json"))
    assert result.exit_code == 0, result.stderr
    assert "nothing found that contradicts epsilon" in result.stdout
    assert "100.000 % of epsilon" in result.stdout
    (found,) = json.loads((tmp_path / "r.json").read_text())["steps"]
    assert found["step"] == "noisy-moments"
    assert found["findings"][0]["largest_log_ratio"] == 1
    assert run("means", "--runs", "40", "--report", str(tmp_path / "r.md")).exit_code == 0
    assert "## means" in (tmp_path / "r.md").read_text()
    assert run("means", "--loss", "huber").exit_code == 2
    assert run("noisy", "--runs", "40").exit_code == 2


def test_a_broken_step_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS_OF_RELEASES, "means", FreeColumn())
    result = run("means", "--runs", "40")
    assert result.exit_code == 1
    assert "CONTRADICTED" in result.stdout
