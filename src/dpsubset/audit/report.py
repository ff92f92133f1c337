"""Reports of audits for people and machines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..base.rounding import float_up
from ..objective.problem import Problem
from ..privacy.guarantee import shown_cost
from .cases import Finding, Report
from .empirical import EmpiricalAudit, shown
from .exact import Audit
from .steps import StepReport

#: What an audit is worth: it stands at the end of every report.
CAVEAT = (
    "All data are made up. An audit can contradict a guarantee, not prove one: the proofs are in "
    "dpsubset/proofs."
)


def lines(report: Report) -> list[str]:
    """A few lines on one mechanism."""
    text = [f"{report.name}: {report.verdict}"]
    for loss in report.losses:
        exact, drawn = report.nearest(Audit, loss), report.nearest(EmpiricalAudit, loss)
        found = _exact(report, exact) if exact else "no closed form to compare"
        text += [
            f"  {loss}, exact: {found}",
            f"  {loss}, by draws: {_empirical(drawn) if drawn else 'none'}",
        ]
    if report.unable:
        text.append(f"  cannot do: {', '.join(report.unable)}")
    return [*text, *(f"  refused under {reason}" for reason in report.refused)]


def step_lines(report: StepReport) -> list[str]:
    """A few lines on one step."""
    nearest = report.nearest
    drawn = max(report.findings, key=lambda finding: finding.lower)
    return [
        f"{report.name}: {report.verdict}",
        f"  exact: largest log ratio {nearest.worst:.5f}; {100 * nearest.strain:.3f} % of epsilon "
        f"({shown_cost(nearest.promised)} promised); neighbours '{nearest.label}', "
        f"{nearest.relation}; the nearest of {sum(f.pairs for f in report.findings)} pairs",
        f"  by draws: epsilon is at least {drawn.lower:.4f} ({shown_cost(drawn.promised)} "
        f"promised); {sum(f.runs for f in report.findings)} draws in all",
    ]


def markdown(reports: Sequence[Report], steps: Sequence[StepReport] = ()) -> str:
    """A report file for people."""
    text = ["# Audit", ""]
    told = [(report.name, lines(report)) for report in reports]
    told += [(report.name, step_lines(report)) for report in steps]
    for name, (first, *rest) in told:
        text += [f"## {name}", "", first.removeprefix(f"{name}: ") + ".", ""]
        text += [f"- {line.strip()}" for line in rest] + [""]
    return "\n".join([*text, CAVEAT, ""])


def to_json(reports: Sequence[Report], steps: Sequence[StepReport] = ()) -> str:
    """A report file for machines."""
    found = {"audits": [_dict(r) for r in reports], "steps": [_step_dict(r) for r in steps]}
    return json.dumps({**found, "note": CAVEAT}, indent=2) + "\n"


def _step_dict(report: StepReport) -> dict[str, Any]:
    return {
        "step": report.name,
        "epsilon": float_up(report.epsilon),
        "contradicted": report.contradicted,
        "verdict": report.verdict,
        "findings": [
            {
                "declared": finding.neighbours,
                "neighbours": finding.relation,
                "promised": {"epsilon": float_up(finding.promised.epsilon)},
                "largest_log_ratio": finding.worst,
                "pair": finding.label,
                "pairs": finding.pairs,
                "epsilon_at_least": finding.lower,
                "runs": finding.runs,
                "contradicts": finding.contradicts,
            }
            for finding in report.findings
        ],
    }


def ratio(finding: Finding | None) -> str:
    """The largest log ratio, where there is a closed form."""
    if finding is None or not isinstance(finding.audit, Audit):
        return "none"
    return f"{finding.audit.worst:.5f}"


def used(finding: Finding | None) -> str:
    """Used / stated, of epsilon or of delta, in percent."""
    if finding is None or not isinstance(finding.audit, Audit):
        return ""
    share = f"{100 * finding.strain:.{3 if finding.strain < 10 else 0}f}"
    return f"{share} % of {'delta' if finding.audit.promised.delta else 'epsilon'}"


def bound(finding: Finding | None) -> str:
    """The largest lower bound on epsilon by draws."""
    if finding is None or not isinstance(finding.audit, EmpiricalAudit):
        return "none"
    return f"{finding.audit.lower:.3f}"


def _exact(report: Report, finding: Finding) -> str:
    audit = finding.audit
    assert isinstance(audit, Audit)
    pairs = sum(
        f.audit.pairs
        for f in report.findings
        if isinstance(f.audit, Audit) and f.problem.loss == finding.problem.loss
    )
    text = f"largest log ratio {audit.worst:.5f}"
    if audit.promised.delta:
        text += f"; at epsilon = {float(audit.promised.epsilon):.6g}, delta has to cover "
        text += f"{audit.excess:.4g}"
    label = audit.pair.label if audit.pair else "none"
    return (
        f"{text}; {used(finding)} ({shown_cost(audit.promised)} {_held(finding)}); outcome "
        f"{shown(audit.outcome)}, neighbours '{label}', {_where(finding.problem)}; the nearest of "
        f"{pairs} pairs"
    )


def _empirical(finding: Finding) -> str:
    audit = finding.audit
    assert isinstance(audit, EmpiricalAudit)
    if audit.pair is None or audit.event is None:
        return "none"
    (likely, runs), (rare, others) = audit.hits
    return (
        f"epsilon is at least {audit.lower:.4f}, with confidence 1 - {1 - audit.confidence:.0e} "
        f"({shown_cost(audit.promised)} {_held(finding)}); '{audit.event.label}' in {likely} of "
        f"{runs} draws against {rare} of {others}, neighbours '{audit.pair.label}', "
        f"{_where(finding.problem)}; {audit.runs} draws in all"
    )


def _held(finding: Finding) -> str:
    return "promised" if finding.claimed else "not promised, only asked for"


def _where(problem: Problem) -> str:
    layout = problem.layout
    columns = f" in {layout.columns - layout.has_intercept} columns" if layout.grouped else ""
    intercept = ", with an intercept" if layout.has_intercept else ""
    return f"{problem.k} of {problem.p} variables{columns}{intercept}, {problem.neighbours}"


def _dict(report: Report) -> dict[str, Any]:
    return {
        "mechanism": report.mechanism.name,
        "options": {name: _plain(value) for name, value in report.mechanism.options().items()},
        "epsilon": float_up(report.epsilon),
        "delta": float_up(report.delta),
        "claims_guarantee": report.claimed,
        "assumes": report.assumes,
        "contradicted": report.contradicted,
        "verdict": report.verdict,
        "refused": list(report.refused),
        "cannot_do": list(report.unable),
        "findings": [_finding(finding) for finding in report.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    problem, audit = finding.problem, finding.audit
    common = {
        "loss": problem.loss,
        "p": problem.p,
        "k": problem.k,
        "columns": problem.columns,
        "intercept": problem.layout.has_intercept,
        "neighbours": problem.neighbours,
        "promised": {
            "epsilon": float_up(audit.promised.epsilon),
            "delta": float_up(audit.promised.delta),
        },
        "claimed": finding.claimed,
        "used_of_stated": _plain(finding.strain),
        "contradicts": finding.contradicts,
        "pair": audit.pair and audit.pair.label,
    }
    if isinstance(audit, Audit):
        return common | {
            "kind": "exact",
            "largest_log_ratio": _plain(audit.worst),
            "delta_has_to_cover": audit.excess,
            "outcome": None if audit.outcome is None else list(audit.outcome),
            "pairs": audit.pairs,
        }
    return common | {
        "kind": "draws",
        "epsilon_at_least": audit.lower,
        "estimate": _plain(audit.estimate),
        "confidence": audit.confidence,
        "event": audit.event and audit.event.label,
        "hits": [list(side) for side in audit.hits],
        "runs": audit.runs,
    }


def _plain(value: Any) -> Any:
    """As JSON has it; what it has no word for, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
