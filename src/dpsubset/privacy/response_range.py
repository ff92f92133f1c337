"""ResponseScale: what a selection releases of its response first, and what it pays for it. Public.

Scores shrink with the square of the response's scale, and bounds are often far wider than the
values: a small part of epsilon, spent on a scale, makes the rest worth more. This is the one place
that says which scale there is if nobody names one, and what "private" stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from ..base.errors import ArgumentError
from ..base.validation import positive, shortest
from .quantiles import ScaleRule

#: What a response is scaled by if nobody says so.
DEFAULT: Literal["private", "declared"] = "private"

#: Epsilon times n: below, the median has to do.
_FEW = 2_000
#: The quantiles that are released otherwise.
_OUTER = (Fraction(1, 10), Fraction(9, 10))

#: The share of epsilon that a scale may take, so that either step has something to do with.
_LEAST_SHARE = Fraction(1, 1000)


@dataclass(frozen=True)
class ResponseScale:
    """A scale of the response that is released before the selection.

    Attributes
    ----------
    rule : ScaleRule
        Which quantiles are released, and what centre and width are made of them.
    share : Fraction
        Of epsilon, for these; the selection has the rest.
    reach : float
        The largest prediction, in half-widths of this scale, where the caller names none.
    """

    rule: ScaleRule
    share: Fraction = Fraction(1, 10)
    reach: float = 1.25

    def __post_init__(self) -> None:
        if not isinstance(self.rule, ScaleRule):
            raise ArgumentError("the rule of a ResponseScale must be a ScaleRule")
        share = shortest(self.share)
        if share is None or not _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
            raise ArgumentError("the share of a ResponseScale must lie between 0.001 and 0.999")
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "reach", positive(self.reach, "reach"))


#: What is asked for: a scale, the usual one, or none.
Asked = ResponseScale | Literal["private"] | None


def usual_scale(epsilon: Fraction, n: int | None, k: int) -> ResponseScale:
    """What "private" stands for, by what is public.

    Parameters
    ----------
    epsilon : Fraction
        Of the whole release, for one row.
    n : int, optional
        The number of rows, where it is public and known.
    k : int
        How many variables are selected.
    """
    # docs/real-tables.md has the measurements. Two quantiles far apart find the middle of skewed
    # responses, and a clip that is narrower than they are leaves little to pay for. They need some
    # thousand records times epsilon; with fewer, a response counts by its side of the median.
    known = None if n is None else epsilon * n
    if known is not None and known < _FEW:
        return ResponseScale(ScaleRule.median(least=1), Fraction(1, 20), 1.0)
    return ResponseScale(ScaleRule(_OUTER, Fraction(1, 2)))


def settle(asked: Any, *, labels: bool, moments: bool) -> Asked:
    """What was asked for, or a clear error.

    Parameters
    ----------
    asked : object
        The argument ``response_scale``.
    labels : bool
        Whether the response counts as one of two labels, which have no scale.
    moments : bool
        Whether the table comes as moments, which hold the response in its declared scale.
    """
    if asked is None:
        asked = "declared" if labels or moments else DEFAULT
    if isinstance(asked, str) and asked == "declared":
        return None
    if not isinstance(asked, ResponseScale) and not (isinstance(asked, str) and asked == "private"):
        raise ArgumentError("response_scale must be 'private', 'declared' or a ResponseScale")
    if labels:
        raise ArgumentError(
            "response_scale: a response of two labels has no scale. Leave it out, or take a loss "
            "for numbers"
        )
    if moments:
        raise ArgumentError(
            "response_scale: moments hold the response in its declared scale, and no other can be "
            "made of them. Pass the table itself, or response_scale='declared'"
        )
    return asked if isinstance(asked, ResponseScale) else "private"
