"""Losses: one file a loss. To add one, write its file and its row here."""

from __future__ import annotations

from fractions import Fraction

from ..gram import Gram
from ..moments import Moments
from ..problem import Problem
from .base import Loss, Scorer
from .hinge import HINGE
from .huber import HUBER
from .least_squares import LEAST_SQUARES
from .logistic import LOGISTIC

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (LEAST_SQUARES, LOGISTIC, HINGE, HUBER)}

__all__ = ["LOSSES", "Loss", "Scorer", "scorer"]


def scorer(data: Moments | Gram, problem: Problem, unit: Fraction, penalty: int = 0) -> Scorer:
    """What scores the supports of a problem on a data set, by the problem's loss."""
    rows = LOSSES[problem.loss].rows
    if rows is None:
        from .least_squares import Scorer as FromMoments

        return FromMoments(data, problem, unit, penalty)
    from .rows import FromRecords

    return FromRecords(data, problem, unit, rows, penalty)
