"""Mechanisms: one file each, one proof each in ``dpsubset/proofs``.

To add one, write its file and its proof, and give it its row here; the conformance and audit
suites take it from this table.
"""

from __future__ import annotations

from ..errors import ArgumentError
from .base import Guarantee, Mechanism, Sampler
from .exponential import Exponential
from .permute_and_flip import PermuteAndFlip

MECHANISMS: dict[str, type[Mechanism]] = {
    PermuteAndFlip.name: PermuteAndFlip,
    Exponential.name: Exponential,
}


def mechanism(name: str) -> Mechanism:
    """The mechanism of this name."""
    if name not in MECHANISMS:
        raise ArgumentError(f"mechanism must be one of {', '.join(MECHANISMS)}")
    return MECHANISMS[name]()


__all__ = ["MECHANISMS", "Guarantee", "Mechanism", "Sampler", "mechanism"]
