"""Constraints on the coefficients, one module each.

To add one, write its module and add a row here. `base` lists what a constraint must define.
"""

from __future__ import annotations

from typing import Literal

from .ball import Ball
from .base import Constraint
from .box import Box
from .l1 import L1

#: The values of the argument ``constraint`` of `select`.
ConstraintName = Literal["box", "ball", "l1"]

CONSTRAINTS: dict[str, type[Constraint]] = {"box": Box, "ball": Ball, "l1": L1}

__all__ = ["CONSTRAINTS", "Constraint", "ConstraintName"]
