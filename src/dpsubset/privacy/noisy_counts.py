"""Noisy counts: how many records have each of several properties, with one draw of noise for all.

A record adds 0 or 1 to each of the d counts. So no count changes by more than 1 between neighbours,
whether a record is replaced, added or removed, and the noise of `sup_norm` costs eta for any number
of counts. `proofs/readable.md` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from . import sup_norm
from .guarantee import Cost, Guarantee
from .random import Randomness
from .relations import PUBLIC_N, RELATIONS, Neighbours


@dataclass(frozen=True)
class NoisyCounts:
    """Counts under a budget for one record. Where n is private, it is one of the counts."""

    epsilon: Fraction
    neighbours: Neighbours

    @property
    def eta(self) -> Fraction:
        """Parameter of the noise: a count changes by at most 1."""
        return self.epsilon

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """The guarantee. If n is public, it does not cover tables that differ in n."""
        covered = PUBLIC_N if self.neighbours in PUBLIC_N else RELATIONS
        costs = {relation: Cost(self.eta) for relation in covered}
        return Guarantee(self.neighbours, costs, seeded)

    def draw(self, counts: Sequence[int], rng: Randomness) -> list[int]:
        return sup_norm.add_noise(counts, self.eta, rng)
