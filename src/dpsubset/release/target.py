"""Describe the target of a model, the response as it was fitted, for all outputs.

Coefficients, intervals and R2 refer to the response after its transform, clipped for the fit; for
two labels they refer to their numbers -1 and 1, to log-odds, or to a score. `Model.target` says
which, and every table, picture, statement and file repeats it.
"""

from __future__ import annotations

import math
from typing import Literal

from ..schema.schema import Column
from .response_range import value_as_text

#: What a prediction can be of.
Of = Literal["mean", "median"]


def scale_of(response: Column, link: str, loss: str | None) -> str:
    """Name the quantity that coefficients change, without the clip."""
    if response.labels is not None:
        first, second = response.labels
        if link == "logistic":
            return f"the log-odds of {response.name} = {second}"
        if loss == "least-squares":
            return f"{response.name} counted as -1 for {first} and 1 for {second}"
        return f"a score of {response.name}, above 0 for {second} and below 0 for {first}"
    return response.name if response.transform is None else f"{response.transform}({response.name})"


def target_of(
    response: Column, clipped: tuple[float, float] | None, link: str, loss: str | None
) -> str:
    """Name the quantity that coefficients change, with the clip of the fit."""
    scale = scale_of(response, link, loss)
    if response.labels is not None:
        return scale
    where = _clip_as_text(response, clipped)
    if response.transform is None:
        return f"{scale} clipped to {where}"
    return f"{scale}, with {response.name} clipped to {where}"


def _clip_as_text(response: Column, clipped: tuple[float, float] | None) -> str:
    low, high = response.span
    assert low is not None
    assert high is not None
    declared = clipped is None or _at_bounds(response, clipped)
    ends = (low, high) if clipped is None or declared else clipped
    text = " and ".join(value_as_text(response, end) for end in ends)
    return f"its declared bounds {text}" if declared else f"between {text}"


def _at_bounds(response: Column, clipped: tuple[float, float]) -> bool:
    """Return whether a clip is at the declared bounds on both sides, up to rounding."""
    change = {"log": math.log, "sqrt": math.sqrt}.get(response.transform or "", float)
    (low, high), (first, last) = response.scaled_span, clipped
    if response.transform == "log" and first <= 0:
        return False
    near = 1e-9 * (high / 2 - low / 2)
    return change(first) - low <= near and high - change(last) <= near


def kind_of(link: str, loss: str | None, labels: bool) -> str:
    """Name the kind of a model."""
    if link == "logistic":
        return "logistic model"
    if loss == "hinge" and labels:
        return "linear classifier (hinge loss)"
    return "linear model"


def unit_of(response: Column, link: str, loss: str | None) -> str:
    """Name the unit of coefficients, per unit of a column."""
    if response.labels is None:
        return f"units of {scale_of(response, link, loss)}"
    if link == "logistic":
        return "log-odds (natural logarithms of odds) of the second label"
    if loss == "least-squares":
        return "units of the label counted as -1 and 1 (twice the change of its chance)"
    return "units of the score"


def predicted(response: Column, target: str, of: Of, variance: float | None) -> str:
    """Describe what a prediction is of."""
    name, transform = response.name, response.transform
    if response.labels is not None:
        first, second = response.labels
        return (
            f"{name} counted as -1 for {first} and 1 for {second} (twice the chance of {second}, "
            f"less 1), by a model of {target}"
        )
    if transform is None:
        return f"the mean of {target}"
    undone = "exp" if transform == "log" else "the square"
    if of == "median":
        return (
            f"{undone} of the predicted mean of {target}: the median of {name} where errors of "
            f"{transform}({name}) are symmetric, and below its mean"
        )
    assert variance is not None
    return (
        f"the mean of {name}, from the predicted mean of {target} and the residual variance "
        f"{variance:.4g} of {transform}({name}), for normal errors"
    )
