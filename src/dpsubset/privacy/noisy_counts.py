"""Noisy counts: how many records have each of some properties, with one draw of noise for all.

A record counts 0 or 1 in each of the d counts. So no count moves by more than 1 from a table to its
neighbour, whether a record is replaced, added or removed, and the noise of `sup_norm` costs eta
however many counts there are. `proofs/readable.md` has the proof.
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
        """Of the noise: a count moves by at most 1."""
        return self.epsilon

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """What they cost. Where n is public and told with them, nothing is promised to tables that
        differ in it.
        """
        covered = PUBLIC_N if self.neighbours in PUBLIC_N else RELATIONS
        costs = {relation: Cost(self.eta) for relation in covered}
        return Guarantee(self.neighbours, costs, seeded)

    def draw(self, counts: Sequence[int], rng: Randomness) -> list[int]:
        """All counts with one draw of noise."""
        return sup_norm.add_noise(counts, self.eta, rng)
