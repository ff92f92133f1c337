"""Exact randomness: bits from the operating system, draws without rounding."""

from .draws import Randomness
from .source import SeededSource, Source, SystemSource

__all__ = ["Randomness", "SeededSource", "Source", "SystemSource"]
