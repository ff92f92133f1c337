"""What a loss must say of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: Which of the losses that are summed over records; kernels branch on it.
LOGISTIC, HINGE, HUBER = 0, 1, 2


@dataclass(frozen=True)
class Rows:
    """How a loss is summed over records, l(y, t) row by row.

    Attributes
    ----------
    code : int
        Its number in the kernels.
    labels : bool
        Whether y is a label, -1 or 1: the sign of the quantised response, 1 for 0.
    threshold : Fraction
        Of the Huber loss.
    """

    code: int
    labels: bool
    threshold: Fraction = Fraction(0)


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
    rows : Rows, optional
        For a loss that is summed over records; without, moments are enough.
    of_threshold : function of the threshold, optional
        For a loss that has one: the same loss with another threshold.
    reach : float
        B where none is asked for. docs/losses.md has the measurements that chose it.
    """

    name: str
    ranges: Mapping[str, Callable[[Fraction], Fraction]]
    rows: Rows | None = None
    of_threshold: Callable[[Fraction], Loss] | None = None
    reach: float = 1.0

    @property
    def needs_records(self) -> bool:
        """Whether scores need the records themselves."""
        return self.rows is not None


class Scorer(Protocol):
    """Scores of supports on one data set: deterministic, certified, on an integer grid."""

    #: Added to the score for every variable of a support, in units.
    penalty: int
    unit_float: float

    def scores(self, supports: NDArray[np.int64]) -> NDArray[np.int64]:
        """f~(S) / unit for each row of ``supports`` (sorted column positions)."""
