"""Findings and reports: what audits of mechanisms and of other steps have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..objective.problem import Problem
from ..privacy.guarantee import shown_cost
from ..privacy.relations import Neighbours
from .empirical import EmpiricalAudit
from .exact import ExactAudit

Audit = ExactAudit | EmpiricalAudit


@dataclass(frozen=True)
class Finding:
    """One audit, and the stated cost that it was compared with."""

    #: The result.
    audit: Audit
    #: The relation that the release was run for, and that of the stated cost and the pairs.
    declared: Neighbours
    relation: Neighbours
    #: What a mechanism was run on; None for a step that is not a selection.
    problem: Problem | None = None
    #: False if the mechanism has no guarantee. Then the audit compares with the budget that the
    #: mechanism was given, and exceeding it contradicts no guarantee.
    claimed: bool = True

    @property
    def loss(self) -> str | None:
        return None if self.problem is None else self.problem.loss

    @property
    def contradicts(self) -> bool:
        """Whether the audit contradicts what it was compared with."""
        return self.audit.contradicted

    @property
    def utilisation(self) -> float:
        """The part of epsilon that is used, or of delta if there is one; above 1 contradicts."""
        epsilon, delta = float(self.audit.promised.epsilon), float(self.audit.promised.delta)
        if isinstance(self.audit, ExactAudit) and delta:
            return self.audit.excess / delta
        return self.audit.found / epsilon


@dataclass(frozen=True)
class Report:
    """The audit of one mechanism or step."""

    #: Of the mechanism, with the options that are not the default, or of the step.
    name: str
    #: Exact audits first, then those by draws.
    findings: tuple[Finding, ...]
    #: The budget that was given.
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    #: The name of the mechanism without options; None for a step.
    mechanism: str | None = None
    #: All options of the mechanism.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: What the guarantee assumes, and the audit with it.
    assumes: str | None = None
    #: Relations under which the mechanism does not run, with the reason.
    refused: tuple[str, ...] = ()
    #: Losses with which the mechanism does not run.
    unable: tuple[str, ...] = ()

    @property
    def losses(self) -> tuple[str | None, ...]:
        """The audited losses, in order; one None for a step."""
        return tuple(dict.fromkeys(finding.loss for finding in self.findings))

    @property
    def claimed(self) -> bool:
        """Whether every finding is about a guarantee."""
        return all(finding.claimed for finding in self.findings)

    @property
    def contradicted(self) -> bool:
        """Whether a guarantee is contradicted."""
        return any(finding.claimed and finding.contradicts for finding in self.findings)

    @property
    def exact(self) -> Finding | None:
        """The exact audit that came closest to the stated cost; None without a closed form."""
        return self.nearest(ExactAudit)

    @property
    def empirical(self) -> Finding | None:
        """The audit by draws that came closest to the stated cost."""
        return self.nearest(EmpiricalAudit)

    def nearest(
        self, kind: type[ExactAudit] | type[EmpiricalAudit], loss: str | None = None
    ) -> Finding | None:
        """The audit of this kind that came closest to the stated cost, under one loss or any."""
        return max(self.of_kind(kind, loss), key=_nearness, default=None)

    def of_kind(
        self, kind: type[ExactAudit] | type[EmpiricalAudit], loss: str | None = None
    ) -> list[Finding]:
        """The audits of this kind, under one loss or any."""
        return [
            finding
            for finding in self.findings
            if isinstance(finding.audit, kind) and loss in (None, finding.loss)
        ]

    @property
    def short_verdict(self) -> str:
        """The result in two or three words."""
        if not self.claimed:
            return "no guarantee claimed"
        return "CONTRADICTED" if self.contradicted else "nothing found"

    @property
    def verdict(self) -> str:
        """The result in a sentence, with its assumption."""
        nearest = max(self.findings, key=_nearness)
        cost = shown_cost(nearest.audit.promised)
        if not nearest.contradicts:
            text = f"nothing found that contradicts {cost}"
        elif nearest.claimed:
            text = f"CONTRADICTED: {cost} is stated and does not hold"
        else:
            text = f"contradicts {cost}, which it was run with"
        if not nearest.claimed:
            text = f"no guarantee claimed; {text}"
        return text + (f", ASSUMING that {self.assumes}" if self.assumes else "")


def _nearness(finding: Finding) -> tuple[bool, float, float]:
    return finding.contradicts, finding.utilisation, finding.audit.found
