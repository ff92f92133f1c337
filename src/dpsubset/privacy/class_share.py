"""ClassShare: the share of each label of a response, released before a selection. Public.

Least squares on labels of -1 and 1 has to explain the class share before it can explain anything
else, and its prediction bound has to leave room for that. If the share is known, the response can
be centred, and the prediction bound can be as small as the effects of variables are. Noise is
proportional to the bound.

A row adds 1 to the count of its label, so no count changes by more than 1 between neighbours, and
the noise of `sup_norm` costs eta for both counts under either relation. The number of rows is not
used. Share, centre and prediction bound follow from the two noisy counts. `proofs/class_share.md`
has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..schema.layout import STEPS
from .guarantee import Cost, Guarantee
from .noisy_counts import NoisyCounts
from .quantiles import RangeInSteps
from .random import Randomness
from .relations import RELATIONS, Neighbours

#: Shares are multiples of 1 / GRID, from 1 / GRID to 1 - 1 / GRID.
GRID = 128

#: The prediction bounds that may follow from a released share: four an octave. They are finitely
#: many, so that the largest cost of a selection is known before the share is.
BOUNDS: tuple[float, ...] = tuple(2.0 ** (i / 4) for i in range(-20, 9))

#: Centres are multiples of 1 / _CENTRES.
_CENTRES = 1024

#: Distance of the centre from the share, in prediction bounds.
_OFFSET = 0.35


@dataclass(frozen=True)
class LabelCounts:
    """The noisy numbers of rows with the first and with the second label. Public."""

    first: int
    second: int

    @property
    def rows(self) -> int:
        """The noisy number of rows with a label, at least 1."""
        return max(self.first + self.second, 1)

    @property
    def share(self) -> Fraction:
        """The share of the second label, on the grid."""
        first, second = max(self.first, 0), max(self.second, 0)
        share = Fraction(second, first + second) if first + second else Fraction(1, 2)
        return Fraction(min(max(round(share * GRID), 1), GRID - 1), GRID)

    @property
    def deviation(self) -> float:
        """The standard deviation of the labels, in multiples of the larger distance between a label
        and the share.
        """
        share = float(self.share)
        return math.sqrt(share * (1 - share)) / max(share, 1 - share)

    def centred(self, prediction_bound: float) -> RangeInSteps:
        """The range of the response for a model with an intercept and this prediction bound.

        Its centre lies a little on the side of the rarer label. With centre c the labels become -c
        and 1 - c, divided by the larger of c and 1 - c.
        """
        rare = min(self.share, 1 - self.share)
        offset = Fraction(_OFFSET * prediction_bound)
        centre = min(Fraction(round(_CENTRES * (rare + offset) / (1 + offset)), _CENTRES),
                     Fraction(1, 2))  # fmt: skip
        side = -1 if self.share <= Fraction(1, 2) else 1
        return RangeInSteps(side * STEPS * (1 - 2 * centre), 2 * STEPS * (1 - centre))


def _factor(information: float) -> float:
    """The prediction bound in standard deviations of the label."""
    # docs/developers.md has the measurements.
    ratio = information / 6000
    grown = math.sqrt(ratio) if ratio < 1 else math.sqrt(math.sqrt(ratio))
    return max(0.375, grown)


@dataclass(frozen=True)
class ShareRule:
    """Two noisy counts, and the prediction bound that follows from them. Public."""

    def noise(self, epsilon: Fraction, neighbours: Neighbours) -> NoisyCounts:
        """The noise of both counts together."""
        return NoisyCounts(epsilon, neighbours)

    def guarantee(
        self, epsilon: Fraction, neighbours: Neighbours, *, seeded: bool = False
    ) -> Guarantee:
        """Guarantee of the counts, which does not depend on the data: one row changes no count by
        more than 1, under both relations.
        """
        eta = self.noise(epsilon, neighbours).eta
        return Guarantee(neighbours, {each: Cost(eta) for each in RELATIONS}, seeded)

    def prediction_bound(self, counts: LabelCounts, epsilon: Fraction) -> float:
        """The default prediction bound of a selection, one of `BOUNDS`.

        ``epsilon`` is that of share and selection, for one row.
        """
        information = float(epsilon) * counts.rows * counts.deviation
        wished = _factor(information) * counts.deviation
        return min(BOUNDS, key=lambda bound: abs(math.log(bound / wished)))


@dataclass(frozen=True)
class ClassShare:
    """How the share of each label is released before the selection. Public.

    Attributes
    ----------
    rule : ShareRule
    budget_fraction : Fraction
        Fraction of epsilon for the share; the selection has the rest.
    """

    rule: ShareRule = ShareRule()
    budget_fraction: Fraction = Fraction(1, 20)

    @property
    def prediction_bound(self) -> float:
        """The largest prediction bound, which stands for all others until the share is drawn."""
        return BOUNDS[-1]


class ShareSampler:
    """Draws noisy counts of labels, each at the cost of a release. Contains private data.

    ``counts`` is the histogram of the response, as for `QuantileSampler`: the first label counts as
    the lowest value of the grid, the second as the highest.
    """

    def __init__(self, counts: NDArray[np.int64], noise: NoisyCounts) -> None:
        self.values, self.noise = (int(counts[0]), int(counts[-1])), noise

    def __repr__(self) -> str:
        return "ShareSampler(private counts hidden)"

    def draw(self, rng: Randomness) -> LabelCounts:
        """Draw both counts."""
        return LabelCounts(*self.noise.draw(self.values, rng))
