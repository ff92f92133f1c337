"""Which bounder a problem gets."""

from __future__ import annotations

from ...losses import Scorer
from ...losses.rows import FromRecords
from ...public.problem import Problem
from ...table.gram import Gram
from ..tuning import USUAL, Tuning
from .base import Bounder
from .quadratic import LeastSquaresBounder
from .rows import RowBounder


def bounder(
    gram: Gram, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning = USUAL
) -> Bounder:
    """What bounds the scores of a problem on a data set."""
    if isinstance(scorer, FromRecords):
        return RowBounder(gram, problem, scorer, eta, tuning)
    return LeastSquaresBounder(gram, problem, scorer, eta, tuning)
