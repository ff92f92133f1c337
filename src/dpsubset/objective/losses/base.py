"""What a loss must say of itself.

Least squares is scored from moments. Every other loss is summed over records, row by row: a *row
loss*, whose value brings the kernels of the loss with it (see :mod:`dpsubset.base.kernels.values`).
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

#: Slopes of lines below a loss are integers over this, in units of the steepest.
SLOPES = 2**14
#: Entries of a table of conjugates are integers over this: n of them fit in int64 for n < 2**33.
ENTROPIES = 2**30
#: In the place of a score that is above a cutoff: no score is larger.
ABOVE = 2**63 - 1


class Smoothed(Protocol):
    """What has the kernel `smooth`: all that Newton's method asks for."""

    @property
    @abstractmethod
    def labels(self) -> bool:
        """Whether y is a label, -1 or 1: the sign of the quantised response, 1 for 0."""


class RowLoss(Smoothed, Protocol):
    """l(o, t), a convex function of t: a NamedTuple, its kernels static methods.

    For labels t is the margin y x'b, and l does not depend on o. Otherwise o is the response and t
    the prediction x'b. Without a prediction no loss is above 1: l(o, 0) <= 1.
    """

    @abstractmethod
    def at_zero(self, response: Cells) -> Fraction:
        """The sum of the losses at b = 0, exact but for the last of 128 bits."""

    @abstractmethod
    def exact(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The loss, its slope and its curvature as balls; a kink is rounded off, ``fine`` or not.

        For proposals: at a kink the balls may miss the truth.
        """

    @abstractmethod
    def exact_lower_line(
        self, o: flint.arb, t: flint.arb, fine: flint.arb
    ) -> tuple[flint.arb, flint.arb, flint.arb]:
        """The loss, the slope of a line below it, and how far below it is at t: all of it true."""

    @abstractmethod
    def smoothing(self, prediction_bound: Fraction) -> tuple[float, float]:
        """How far a search rounds off kinks, first and last, to find good lines; 0 without one."""

    @abstractmethod
    def conjugates(self) -> Ints:
        """The table that `conjugate` takes; empty if it needs none."""

    @abstractmethod
    def largest(self) -> float:
        """At least 1, half of `steepest`, and the size of any -l* of a row.

        Roundings of sums over the rows are granted in proportion to it.
        """

    @abstractmethod
    def parabola(self, prediction_bound: Fraction) -> tuple[float, Ints] | None:
        """A curvature omega to take out, and the table of conjugates of what is left.

        See :mod:`dpsubset.search.bounds.curved`. None if there is no curvature to count on.
        """

    @staticmethod
    @abstractmethod
    def is_kinked() -> bool:
        """Whether there is a kink, hence lines that do not touch the loss."""


# -- kernels: each is the static method of this name, its first argument is the loss -------------

#: (L, width, o, t) -> the loss, its slope and its curvature in t, a kink rounded off to this width.
#: For proposals: it proves nothing, and may lend curvature where there is none. Without a kink only
#: the curvature may depend on the width.
smooth = own("smooth")
#: (L, o, t) -> l(o, t) - l(o, 0), the slope of a line below the loss, and how far below it is at t.
#: In terms that vanish with t: the value is off by at most 21 roundings of `steepest` times |t|,
#: and 2**-98 (proofs/losses.md). Losses with a kink find the slope in ``o``, with opposite sign,
#: where `minimise` has put it.
line = own("line")
#: (L) -> the largest slope within the reach, in size.
steepest = own("steepest")
#: (L) -> how far a slope from `line` may be off beyond one rounding of itself, in units of 2**-53.
slope_error = own("slope_error")
#: (L, c, z, o, counts, ridge, target, cutoff) -> value, width: min F - F(0) over C lies within
#: width of value. It may end before width is as small as the target where value - width is above
#: the cutoff; if it is not, value and width do not depend on the cutoff.
minimise = own("minimise")
#: (L, share, y, table) -> two integers whose sums over the records give the sum of -l*, the
#: conjugates, at slopes that are ``share`` / SLOPES of the steepest. For labels it has the sign
#: turned around: from 0 to SLOPES. At most 2**30 in size. The table is that of `conjugates`, or
#: that of `parabola` where there is one.
conjugate = own("conjugate")
#: (L, total, square, scale) -> that sum.
conjugate_sum = own("conjugate_sum")


@dataclass(frozen=True)
class Loss:
    """A loss l(y, t) with y in [-1, 1] and |t| <= B.

    Attributes
    ----------
    name : str
        As in ``select(loss=...)``.
    ranges : mapping from rule to function of the reach B
        ``"sharp"`` is the largest range of the loss at fixed y; other rules are published bounds,
        looser, kept to reproduce figures.
    rows : function of the reach B, optional
        The row loss, for a loss that is summed over records; without, moments are enough.
    of_threshold : function of the threshold, optional
        For a loss that has one: the same loss with another threshold.
    reach : float
        B where none is asked for. docs/losses.md has the measurements that chose it.
    best : float
        The prediction at which the loss of y = 1 is least; infinite if more is always better.
    """

    name: str
    ranges: Mapping[str, Callable[[Fraction], Fraction]]
    rows: Callable[[Fraction], RowLoss] | None = None
    of_threshold: Callable[[Fraction], Loss] | None = None
    prediction_bound: float = 1.0
    best: float = 1.0

    @property
    def needs_records(self) -> bool:
        """Whether scores need the records themselves."""
        return self.rows is not None

    @property
    def labels(self) -> bool:
        """Whether the response counts as one of two labels, at any reach."""
        return self.rows is not None and self.rows(Fraction(1)).labels


class Scorer(Protocol):
    """Scores of supports on one data set: deterministic, certified, on an integer grid."""

    #: Added to the score for every variable of a support, in units.
    penalty: int
    score_step_float: float

    def scores(self, supports: NDArray[np.int64], cutoff: int = ABOVE) -> NDArray[np.int64]:
        """f~(S) / score_step for each row of ``supports`` (sorted column positions).

        Or `ABOVE` in its place, where it is above the cutoff and that is easier to tell.
        """
