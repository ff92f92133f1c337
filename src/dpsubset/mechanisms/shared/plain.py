"""The two plain mechanisms, on which others are built."""

from __future__ import annotations

from ...base.errors import ArgumentError
from ..exponential import Exponential
from ..permute_and_flip import PermuteAndFlip
from .base import ScoreMechanism

PLAIN: dict[str, type[ScoreMechanism]] = {cls.name: cls for cls in (PermuteAndFlip, Exponential)}


def check_form(form: str) -> None:
    """Refuse a name that is not that of a plain mechanism."""
    if not isinstance(form, str) or form not in PLAIN:
        raise ArgumentError(f"form must be one of {', '.join(PLAIN)}")


def flips(form: str) -> bool:
    """Whether a race of this form uses uniform times (permute-and-flip)."""
    return form == PermuteAndFlip.name
