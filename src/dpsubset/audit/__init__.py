"""Audits: try to contradict a mechanism's guarantee."""

from .empirical import EmpiricalAudit, Event, audit_empirical
from .exact import Audit, Pair, audit_exact, contrary_pairs, neighbouring_pairs

__all__ = [
    "Audit",
    "EmpiricalAudit",
    "Event",
    "Pair",
    "audit_empirical",
    "audit_exact",
    "contrary_pairs",
    "neighbouring_pairs",
]
