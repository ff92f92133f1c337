"""Logistic loss: l(y, t) = log(1 + exp(-y t)) for labels y = -1 and 1."""

from __future__ import annotations

from .base import LOGISTIC as _CODE
from .base import Loss, Rows

LOGISTIC = Loss(
    name="logistic",
    # log(1 + e^B) - log(1 + e^-B) = B.
    ranges={"sharp": lambda reach: reach},
    rows=Rows(_CODE, labels=True),
    # Up to reach 1 it is nearly a line, and blind to what a joint fit gains.
    reach=2.0,
)
