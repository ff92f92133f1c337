"""The bound oracle for a problem's loss."""

from __future__ import annotations

from ...data.gram import GramData
from ...objective.losses import Scorer
from ...objective.losses.rows import FromRecords
from ...objective.problem import Problem
from ..tuning import USUAL, Tuning
from .base import BoundOracle
from .quadratic import LeastSquaresOracle
from .rows import RowLossOracle


def bound_oracle(
    gram: GramData, problem: Problem, scorer: Scorer, eta: float, tuning: Tuning = USUAL
) -> BoundOracle:
    if isinstance(scorer, FromRecords):
        return RowLossOracle(gram, problem, scorer, eta, tuning)
    return LeastSquaresOracle(gram, problem, scorer, eta, tuning)
