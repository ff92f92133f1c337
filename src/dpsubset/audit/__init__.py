"""Audits: try to contradict a mechanism's guarantee."""

from .exact import Audit, Pair, audit_exact, contrary_pairs, neighbouring_pairs

__all__ = ["Audit", "Pair", "audit_exact", "contrary_pairs", "neighbouring_pairs"]
