"""run-score: how well a released model predicts the table it was fitted on, with noise.

    score = -(sum over rows of min(|y - prediction|, cap)^2) + noise

in integers. y is the response in a window, from -S to S with S = 32767, and so is the prediction,
which is computed from integers alone: the loss of a row is a function of that row and the released
model. It lies between 0 and cap^2, so that the sum moves by at most cap^2 if a row is replaced,
added or removed, and noise with P(z) proportional to exp(-epsilon |z| / cap^2) costs epsilon.
`proofs/private_search.md` has the proof.
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

#: Half-distances of the released quantiles on either side of their middle that a response counts
#: within, and the part of that which a residual counts up to.
WINDOW, CAP = Fraction(3), Fraction(1, 2)

#: Bits of a coefficient behind the point, and the largest one: 301 products of such with cells stay
#: within int64.
_BITS, _MOST = 20, 2**38

#: Logarithms of odds beyond these count as these.
_ODDS = 8

#: Rows at a time.
_ROWS = 1 << 16


@dataclass(frozen=True)
class RunScore:
    """The noise of a score, and what it costs one row. Public."""

    epsilon: Fraction
    neighbours: Neighbours

    name = "run-score"

    def guarantee(self, *, seeded: bool = False) -> Guarantee:
        """The same under either relation: a row's loss lies between 0 and the cap's square."""
        return Guarantee(
            self.neighbours, {relation: Cost(self.epsilon) for relation in RELATIONS}, seeded
        )

    def draw(self, loss: int, cap: int, rng: Randomness) -> int:
        """The score of a sum of losses."""
        (noisy,) = sup_norm.add_noise([loss], self.epsilon / cap**2, rng)
        return -noisy


@dataclass(frozen=True)
class Window:
    """Between which values of the response's grid losses are told apart. Public.

    Attributes
    ----------
    scale : RangeInSteps, optional
        Centre and half-width, in steps of the declared grid; None for all of it.
    cap : int
        The largest residual that counts, where the window reaches from -S to S.
    """

    scale: RangeInSteps | None
    cap: int

    @classmethod
    def of(cls, released: RangeInSteps | None, least: Fraction) -> Window:
        """Around the released quantiles of the response, or the declared bounds without any."""
        if released is None or len(released.quantiles) < 2:
            return cls(None, STEPS)
        low, high = min(released.quantiles), max(released.quantiles)
        half = WINDOW * max(least, Fraction(high - low, 2))
        return cls(RangeInSteps(Fraction(low + high, 2), half), int(CAP * STEPS))

    def images(self) -> NDArray[np.int16] | None:
        """What each value of the response's grid counts as."""
        return None if self.scale is None else self.scale.images(STEPS)

    def weights(self, theta: NDArray[np.float64], clip: RangeInSteps | None, odds: bool) -> Ints:
        """Coefficients in units of the window times 2^20, the constant last.

        ``clip`` is the scale that the fit had the response in; logarithms of odds have none.
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
    """The sum of the losses of all rows, exactly.

    Parameters
    ----------
    entries : Entries
        The columns of the model.
    cells : array of int16
        Columns behind the door, a row each; the constant and the response last.
    weights : array of int64
        Of the columns and the constant.
    cap : int
        The largest residual that counts.
    odds : bool
        Whether the model is one of logarithms of odds.
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
            predicted = _of_odds()[np.clip(predicted, -most, most) + most]
        residual = np.abs(part[-1].astype(np.int64) - np.clip(predicted, -STEPS, STEPS))
        total += int((np.minimum(residual, cap) ** 2).sum())
    return total


@cache
def _of_odds() -> Ints:
    """The mean of a label from -1 to 1, for logarithms of odds in steps of 1 / S."""
    most = _ODDS * STEPS
    found: Ints = np.rint(STEPS * np.tanh(np.arange(-most, most + 1) / (2 * STEPS))).astype(
        np.int64
    )
    return found
