"""run-score: a noisy score of how well a released model predicts the table it was fitted on.

    score = -(sum over rows of min(|y - prediction|, cap)^2) + noise

in integers. y is the response in a window, from -S to S with S = 32767, and so is the prediction,
which is computed from integers alone: the loss of a row is a function of that row and the released
model. It lies between 0 and cap^2, so the sum moves by at most cap^2 if a row is replaced, added or
removed, and noise with P(z) proportional to exp(-epsilon |z| / cap^2) costs epsilon. The proof is
in `proofs/private_search.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..privacy import sup_norm
from ..privacy.guarantee import Cost, Guarantee
from ..privacy.quantiles import RangeInSteps
from ..privacy.random import Randomness
from ..privacy.relations import RELATIONS, Neighbours
from ..schema.layout import STEPS
from .entries import Entries

Ints = NDArray[np.int64]

#: Half-width of the window in half-distances of the released quantiles, and the cap of a residual
#: as a fraction of it.
WINDOW, CAP = Fraction(3), Fraction(1, 2)

#: Fractional bits of a coefficient, and the largest one: 301 products with cells fit in int64.
_BITS, _MOST = 20, 2**38

#: Log odds are clipped to +- this.
_ODDS = 8

#: Rows processed at a time.
_ROWS = 1 << 16


@dataclass(frozen=True)
class RunScore:
    """The noise of a score, and its cost for one row. Public."""

    epsilon: Fraction
    neighbours: Neighbours

    name = "run-score"

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """Equal under either relation: a row's loss lies between 0 and the square of the cap."""
        return Guarantee(
            self.neighbours, {relation: Cost(self.epsilon) for relation in RELATIONS}, seeded
        )

    def draw(self, loss: int, cap: int, rng: Randomness) -> int:
        """The noisy score of a sum of losses."""
        (noisy,) = sup_norm.add_noise([loss], self.epsilon / cap**2, rng)
        return -noisy


@dataclass(frozen=True)
class Window:
    """The range of response values within which losses are distinguished. Public."""

    #: Centre and half-width, in steps of the declared grid; None for all of it.
    scale: RangeInSteps | None
    #: The largest residual that counts, where the window reaches from -S to S.
    cap: int

    @classmethod
    def of(cls, released: RangeInSteps | None, least: Fraction) -> Window:
        """A window around released quantiles of the response; without any, the declared bounds."""
        if released is None or len(released.quantiles) < 2:
            return cls(None, STEPS)
        low, high = min(released.quantiles), max(released.quantiles)
        half = WINDOW * max(least, Fraction(high - low, 2))
        return cls(RangeInSteps(Fraction(low + high, 2), half), int(CAP * STEPS))

    def images(self) -> NDArray[np.int16] | None:
        """The value in the window of each value of the response's grid."""
        return None if self.scale is None else self.scale.images(STEPS)

    def weights(self, theta: NDArray[np.float64], clip: RangeInSteps | None, odds: bool) -> Ints:
        """Coefficients in units of the window times 2^20, the constant last.

        ``clip`` is the scale of the response in the fit; models of log odds have none.
        """
        found = theta.astype(np.float64)
        if not odds:
            wide = Fraction(STEPS) if self.scale is None else self.scale.half_width
            middle = Fraction(0) if self.scale is None else self.scale.centre
            half = Fraction(STEPS) if clip is None else clip.half_width
            centre = Fraction(0) if clip is None else clip.centre
            found = found * float(half / wide)
            found[-1] += float((centre - middle) / wide)
        scaled = np.clip(np.nan_to_num(found * 2.0**_BITS), -float(_MOST), float(_MOST))
        return np.rint(scaled).astype(np.int64)


def total_loss(
    entries: Entries, cells: NDArray[np.int16], weights: Ints, cap: int, odds: bool
) -> int:
    """The exact sum of the losses of all rows.

    ``cells`` are quantized columns, one a row, the constant and the response last; ``weights`` are
    those of the columns of the model and of the constant. With ``odds`` the model predicts log
    odds.
    """
    total = 0
    for start in range(0, cells.shape[1], _ROWS):
        part = cells[:, start : start + _ROWS]
        rows = part[[*entries.places, -2]].astype(np.int64)
        for a, column in enumerate(entries.columns):
            if column.kind != "value":  # 0 or S becomes -S or S, and 0 where the constant is 0
                rows[a] = 2 * rows[a] - rows[-1]
        predicted = (weights @ rows) >> _BITS
        if odds:
            most = _ODDS * STEPS
            predicted = _label_means()[np.clip(predicted, -most, most) + most]
        residual = np.abs(part[-1].astype(np.int64) - np.clip(predicted, -STEPS, STEPS))
        total += int((np.minimum(residual, cap) ** 2).sum())
    return total


@cache
def _label_means() -> Ints:
    """The mean of a label from -1 to 1, for log odds in steps of 1 / S."""
    most = _ODDS * STEPS
    found: Ints = np.rint(STEPS * np.tanh(np.arange(-most, most + 1) / (2 * STEPS))).astype(
        np.int64
    )
    return found
