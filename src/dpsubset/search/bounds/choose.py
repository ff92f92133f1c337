"""Which bounder a problem gets."""

from __future__ import annotations

from ...data.gram import GramData
from ...objective.losses import Scorer
from ...objective.losses.rows import FromRecords
from ...objective.problem import Problem
from ..tuning import USUAL, Tuning
from .base import Bounder
from .quadratic import LeastSquaresBounder
from .rows import RowBounder


def bounder(
    digest: GramData, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning = USUAL
) -> Bounder:
    """What bounds the scores of a problem on a data set."""
    if isinstance(scorer, FromRecords):
        return RowBounder(digest, problem, scorer, eta, tuning)
    return LeastSquaresBounder(digest, problem, scorer, eta, tuning)
