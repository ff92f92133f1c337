"""Constraints: which coefficients are allowed. One module a constraint.

To add one, write its module and its row here. `base` says what it must tell of itself.
"""

from __future__ import annotations

from typing import Literal

from .ball import Ball
from .base import Constraint
from .box import Box
from .l1 import L1

#: As in ``select(constraint=...)``.
Name = Literal["box", "ball", "l1"]

CONSTRAINTS: dict[str, type[Constraint]] = {"box": Box, "ball": Ball, "l1": L1}

__all__ = ["CONSTRAINTS", "Constraint", "Name"]
