"""Losses, one file each. To add one, write its file and add its row here."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from ...base.errors import ArgumentError
from ...data.gram import GramData
from ...data.moments import Moments
from ..problem import Problem
from .base import Loss, Scorer
from .hinge import HINGE
from .huber import HUBER
from .least_squares import LEAST_SQUARES
from .least_squares import Scorer as FromMoments
from .logistic import LOGISTIC
from .rows import FromRecords

#: Values of ``select(loss=...)``.
LossName = Literal["least-squares", "logistic", "hinge", "huber"]

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (LEAST_SQUARES, LOGISTIC, HINGE, HUBER)}

#: Default losses, for a response with bounds and for one with two labels.
REGRESSION = LEAST_SQUARES.name
CLASSIFICATION = LEAST_SQUARES.name

__all__ = [
    "CLASSIFICATION",
    "LOSSES",
    "REGRESSION",
    "Loss",
    "LossName",
    "Scorer",
    "loss_of",
    "scorer",
]


def loss_of(problem: Problem) -> Loss:
    """The loss of a problem, with the threshold of the problem if it has one."""
    loss = LOSSES[problem.loss]
    if loss.of_threshold is None or problem.threshold is None:
        return loss
    return loss.of_threshold(Fraction(problem.threshold))


def scorer(
    data: Moments | GramData, problem: Problem, score_step: Fraction, penalty: int = 0
) -> Scorer:
    """The scorer of supports of a problem on a data set, for the loss of the problem."""
    data = GramData.of(data, problem.layout.constant)
    if data.p != problem.columns:  # kernels do not check bounds
        raise ArgumentError("the columns of this table do not match those of the problem")
    rows = loss_of(problem).rows
    if rows is None:
        return FromMoments(data, problem, score_step, penalty)
    return FromRecords(data, problem, score_step, rows(problem.prediction_bound), penalty)
