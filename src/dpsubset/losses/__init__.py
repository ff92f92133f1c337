"""Losses: one file a loss. To add one, write its file and its row here."""

from __future__ import annotations

from .base import Loss
from .least_squares import LEAST_SQUARES

LOSSES: dict[str, Loss] = {LEAST_SQUARES.name: LEAST_SQUARES}

__all__ = ["LOSSES", "Loss"]
