"""The interface of a loss.

Least squares is scored from moments. Every other loss is summed over records: a *row loss*, whose
value brings the kernels of the loss with it (see :mod:`dpsubset.base.kernels.values`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import flint
import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Cells, Ints
from ...base.kernels.values import own

#: Slopes of supporting lines are multiples of `steepest` / SLOPES.
SLOPES = 2**14
#: Conjugates in a table are multiples of 1 / ENTROPIES; n of them fit in int64 for n < 2**33.
ENTROPIES = 2**30
#: Stands for a score above a cutoff; no score is larger.
ABOVE = 2**63 - 1


class Smoothed(Protocol):
    """The part of a row loss that Newton's method needs: the kernel `smooth`."""

    @property
    @abstractmethod
    def labels(self) -> bool:
        """Whether y is a label, -1 or 1: the sign of the quantized response, 1 for 0."""


class RowLoss(Smoothed, Protocol):
    """l(o, t), a convex function of t: a NamedTuple with its kernels as static methods.

    For labels, t is the margin y x'b and l does not depend on o. Otherwise o is the response and t
    the prediction x'b. At t = 0 no loss exceeds 1: l(o, 0) <= 1.
    """

    @abstractmethod
    def at_zero(self, response: Cells) -> Fraction:
        """The sum of the losses at b = 0, exact up to the last of 128 bits."""

    @abstractmethod
    def exact(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The loss, its slope and its curvature as balls, with a kink smoothed at precision
        ``fine``.

        Used for proposals: at a kink the balls need not contain the true values.
        """

    @abstractmethod
    def exact_lower_line(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The loss, the slope of a supporting line and its gap to the loss at t, as balls."""

    @abstractmethod
    def smoothing(self, prediction_bound: Fraction) -> tuple[float, float]:
        """First and last smoothing widths of kinks in a search; 0 without a kink."""

    @abstractmethod
    def conjugates(self) -> Ints:
        """The table that `conjugate` needs; empty if it needs none."""

    @abstractmethod
    def largest(self) -> float:
        """A bound, at least 1, on half of `steepest` and on |-l*| of any row.

        Rounding errors of sums over the rows are bounded in proportion to it.
        """

    @abstractmethod
    def parabola(self, prediction_bound: Fraction) -> tuple[float, Ints] | None:
        """A curvature omega to subtract, and the table of conjugates of the remainder.

        See :mod:`dpsubset.search.bounds.curved`. None if the loss has no curvature everywhere.
        """

    @staticmethod
    @abstractmethod
    def is_kinked() -> bool:
        """Whether the loss has a kink, so that supporting lines may have a gap at t."""


# -- kernels: each is the static method of this name, its first argument is the loss -------------

#: (L, width, o, t) -> the loss, its slope and its curvature in t, with kinks smoothed to a width.
#: For proposals: it certifies nothing, and may add curvature where there is none. Without a kink,
#: only the curvature may depend on the width.
smooth = own("smooth")
#: (L, o, t) -> l(o, t) - l(o, 0), the slope of a supporting line, and its gap to the loss at t. All
#: terms vanish with t: the error of the value is at most 21 roundings of `steepest` times |t|, plus
#: 2**-98 (proofs/losses.md). For losses with a kink, minus the slope is in ``o``, where `minimise`
#: stores it.
line = own("line")
#: (L) -> the largest absolute slope for |t| <= B.
steepest = own("steepest")
#: (L) -> the error of a slope from `line` beyond one rounding of itself, in units of 2**-53.
slope_error = own("slope_error")
#: (L, c, z, o, counts, ridge, target, cutoff) -> value, width: min F - F(0) over C lies within
#: width of value. It may stop before width <= target once value - width > cutoff; otherwise value
#: and width do not depend on the cutoff.
minimise = own("minimise")
#: (L, slope, y, table) -> two integers, at most 2**30 in size, whose sums over the records give the
#: sum of the negated conjugates -l* at slopes ``slope`` * `steepest` / SLOPES. For labels the sign
#: is reversed: ``slope`` is from 0 to SLOPES. The table is that of `conjugates`, or of `parabola`.
conjugate = own("conjugate")
#: (L, total, square, scale) -> that sum.
conjugate_sum = own("conjugate_sum")


@dataclass(frozen=True)
class Loss:
    """A loss l(y, t) with y in [-1, 1] and |t| <= B."""

    #: The value of ``select(loss=...)``.
    name: str
    #: ``"sharp"`` is the largest range of the loss at fixed y; other rules are published bounds,
    #: looser, kept to reproduce figures.
    ranges: Mapping[str, Callable[[Fraction], Fraction]]
    #: The row loss, for a loss that is summed over records; None if moments are enough.
    rows: Callable[[Fraction], RowLoss] | None = None
    #: For a loss with a threshold: the same loss with another one.
    of_threshold: Callable[[Fraction], Loss] | None = None
    #: The default B. docs/losses.md has the measurements that it was chosen by.
    prediction_bound: float = 1.0
    #: The prediction at which the loss of y = 1 is smallest; infinite if it decreases for ever.
    best: float = 1.0

    @property
    def needs_records(self) -> bool:
        """Whether scores need the records themselves."""
        return self.rows is not None

    @property
    def labels(self) -> bool:
        """Whether the response counts as one of two labels."""
        return self.rows is not None and self.rows(Fraction(1)).labels


class Scorer(Protocol):
    """Scores of supports on one data set: deterministic, certified, on an integer grid."""

    #: Added to the score for every variable of a support, in steps.
    penalty: int
    score_step_float: float

    def scores(self, supports: NDArray[np.int64], cutoff: int = ABOVE) -> NDArray[np.int64]:
        """f~(S) / score_step for each row of ``supports`` (sorted positions of choices).

        A score above ``cutoff`` may be replaced by `ABOVE` where that is cheaper to certify.
        """
