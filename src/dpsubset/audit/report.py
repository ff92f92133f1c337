"""Reports of audits, as text, Markdown and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..base.rounding import float_up
from ..objective.problem import Problem
from ..privacy.guarantee import shown_cost
from .empirical import EmpiricalAudit, shown_outcome
from .exact import ExactAudit
from .findings import Finding, Report

#: What an audit can show and what it cannot: the last line of every report.
CAVEAT = (
    "All data are simulated. An audit can contradict a guarantee, not prove one: the proofs are in "
    "dpsubset/proofs."
)


def lines(report: Report) -> list[str]:
    """A few lines about one mechanism or step."""
    text = [f"{report.name}: {report.verdict}"]
    for loss in report.losses:
        prefix = "" if loss is None else f"{loss}, "
        text += [
            f"  {prefix}exact: {_exact_line(report, loss)}",
            f"  {prefix}by draws: {_empirical_line(report, loss)}",
        ]
    if report.unable:
        text.append(f"  cannot do: {', '.join(report.unable)}")
    return [*text, *(f"  refused under {reason}" for reason in report.refused)]


def markdown(reports: Sequence[Report]) -> str:
    """The text of a Markdown file."""
    text = ["# Audit", ""]
    for report in reports:
        first, *rest = lines(report)
        text += [f"## {report.name}", "", first.removeprefix(f"{report.name}: ") + ".", ""]
        text += [f"- {line.strip()}" for line in rest] + [""]
    return "\n".join([*text, CAVEAT, ""])


def to_json(reports: Sequence[Report]) -> str:
    """The text of a JSON file."""
    found = {
        "audits": [_mechanism_dict(report) for report in reports if report.mechanism],
        "steps": [_step_dict(report) for report in reports if not report.mechanism],
    }
    return json.dumps({**found, "note": CAVEAT}, indent=2) + "\n"


def row(report: Report, loss: str | None) -> tuple[str, str, str]:
    """Cells of a table: the largest log ratio, how much is used, and the bound by draws."""
    exact, drawn = report.nearest(ExactAudit, loss), report.nearest(EmpiricalAudit, loss)
    return (
        f"{exact.audit.found:.5f}" if exact else "none",
        _used(exact).removesuffix(" of epsilon") if exact else "",
        f"{drawn.audit.found:.3f}" if drawn else "none",
    )


def _used(finding: Finding) -> str:
    """How much of epsilon or delta is used, in percent."""
    share = f"{100 * finding.utilisation:.{3 if finding.utilisation < 10 else 0}f}"
    return f"{share} % of {'delta' if finding.audit.promised.delta else 'epsilon'}"


def _exact_line(report: Report, loss: str | None) -> str:
    finding = report.nearest(ExactAudit, loss)
    if finding is None:
        return "no closed form to compare"
    audit = finding.audit
    assert isinstance(audit, ExactAudit)
    pairs = sum(
        each.audit.pairs
        for each in report.of_kind(ExactAudit, loss)
        if isinstance(each.audit, ExactAudit)
    )
    text = f"largest log ratio {audit.worst:.5f}"
    if audit.promised.delta:
        text += f"; at epsilon = {float(audit.promised.epsilon):.6g}, delta has to cover "
        text += f"{audit.excess:.4g}"
    outcome = "" if finding.problem is None else f"outcome {shown_outcome(audit.outcome)}, "
    return (
        f"{text}; {_used(finding)} ({_promise(finding)}); {outcome}neighbours "
        f"'{audit.pair.label if audit.pair else 'none'}', {_where(finding)}; the nearest of "
        f"{pairs} pairs"
    )


def _empirical_line(report: Report, loss: str | None) -> str:
    finding = report.nearest(EmpiricalAudit, loss)
    if finding is None:
        return "none"
    audit = finding.audit
    assert isinstance(audit, EmpiricalAudit)
    if audit.pair is None or audit.event is None:
        return "none"
    (likely, runs), (rare, others) = audit.hits
    return (
        f"epsilon is at least {audit.lower:.4f}, with confidence 1 - {1 - audit.confidence:.0e} "
        f"({_promise(finding)}); '{audit.event.label}' in {likely} of {runs} draws against {rare} "
        f"of {others}, neighbours '{audit.pair.label}', {_where(finding)}; {audit.runs} draws in "
        "all"
    )


def _promise(finding: Finding) -> str:
    claim = "stated" if finding.claimed else "not stated, but the budget of the run"
    return f"{shown_cost(finding.audit.promised)} {claim}"


def _where(finding: Finding) -> str:
    """The size of the problem, and the relation of neighbours."""
    problem = finding.problem
    return f"{_size(problem)}, {finding.relation}" if problem else finding.relation


def _size(problem: Problem) -> str:
    layout = problem.layout
    columns = f" in {layout.columns - layout.has_intercept} columns" if layout.grouped else ""
    intercept = ", with an intercept" if layout.has_intercept else ""
    return f"{problem.k} of {problem.p} variables{columns}{intercept}"


def _mechanism_dict(report: Report) -> dict[str, Any]:
    return {
        "mechanism": report.mechanism,
        "options": {name: _json_value(value) for name, value in report.options.items()},
        "epsilon": float_up(report.epsilon),
        "delta": float_up(report.delta),
        "claims_guarantee": report.claimed,
        "assumes": report.assumes,
        "contradicted": report.contradicted,
        "verdict": report.verdict,
        "refused": list(report.refused),
        "cannot_do": list(report.unable),
        "findings": [_finding_dict(finding) for finding in report.findings],
    }


def _step_dict(report: Report) -> dict[str, Any]:
    return {
        "step": report.name,
        "epsilon": float_up(report.epsilon),
        "contradicted": report.contradicted,
        "verdict": report.verdict,
        "findings": [_finding_dict(finding) for finding in report.findings],
    }


def _finding_dict(finding: Finding) -> dict[str, Any]:
    problem, audit = finding.problem, finding.audit
    common: dict[str, Any] = {
        "declared": finding.declared,
        "neighbours": finding.relation,
        "promised": {
            "epsilon": float_up(audit.promised.epsilon),
            "delta": float_up(audit.promised.delta),
        },
        "claimed": finding.claimed,
        "used_of_stated": _json_value(finding.utilisation),
        "contradicts": finding.contradicts,
        "pair": audit.pair and audit.pair.label,
    }
    if problem is not None:
        common |= {
            "loss": problem.loss,
            "p": problem.p,
            "k": problem.k,
            "columns": problem.columns,
            "intercept": problem.layout.has_intercept,
        }
    if isinstance(audit, ExactAudit):
        return common | {
            "kind": "exact",
            "largest_log_ratio": _json_value(audit.worst),
            "delta_has_to_cover": audit.excess,
            "outcome": None if audit.outcome is None else list(audit.outcome),
            "pairs": audit.pairs,
        }
    return common | {
        "kind": "draws",
        "epsilon_at_least": audit.lower,
        "estimate": _json_value(audit.estimate),
        "confidence": audit.confidence,
        "event": audit.event and audit.event.label,
        "hits": [list(side) for side in audit.hits],
        "runs": audit.runs,
    }


def _json_value(value: Any) -> Any:
    """A value that JSON can represent; text for any other."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple):
        return [_json_value(part) for part in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
