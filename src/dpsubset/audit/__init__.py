"""Audits: try to contradict a mechanism's guarantee.

All tables are simulated, and nothing is spent.
"""

from .empirical import EmpiricalAudit, Event, audit_empirical
from .exact import ExactAudit, Pair, audit_exact, random_pairs, worst_case_pairs

__all__ = [
    "EmpiricalAudit",
    "Event",
    "ExactAudit",
    "Pair",
    "audit_empirical",
    "audit_exact",
    "random_pairs",
    "worst_case_pairs",
]
