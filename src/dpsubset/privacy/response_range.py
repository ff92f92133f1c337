"""ResponseRange: what a selection releases of its response first, and what it pays for it. Public.

Scores shrink with the square of the response's scale, and bounds are often far wider than the
values: a small part of epsilon, spent on a scale, makes the rest worth more. This is the one place
that says which scale there is if nobody names one, and what "private" stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from ..base.errors import ArgumentError
from ..base.renamed import renamed_arguments
from ..base.validation import as_decimal_fraction, check_positive
from .quantiles import QuantileRule

#: What a response is scaled by if nobody says so.
DEFAULT: Literal["private", "declared"] = "private"

#: Epsilon times n: below, the median has to do.
_FEW = 2_000
#: The quantiles that are released otherwise.
_OUTER = (Fraction(1, 10), Fraction(9, 10))

#: The share of epsilon that a scale may take, so that either step has something to do with.
_LEAST_SHARE = Fraction(1, 1000)


@renamed_arguments(share="budget_fraction", reach="prediction_bound")
@dataclass(frozen=True)
class ResponseRange:
    """A scale of the response that is released before the selection.

    Attributes
    ----------
    rule : QuantileRule
        Which quantiles are released, and what centre and width are made of them.
    budget_fraction : Fraction
        Of epsilon, for these; the selection has the rest.
    prediction_bound : float
        The largest prediction, in half-widths of this scale, where the caller names none.
    """

    rule: QuantileRule
    budget_fraction: Fraction = Fraction(1, 10)
    prediction_bound: float = 1.25

    def __post_init__(self) -> None:
        if not isinstance(self.rule, QuantileRule):
            raise ArgumentError("the rule of a ResponseRange must be a QuantileRule")
        budget_fraction = as_decimal_fraction(self.budget_fraction)
        if budget_fraction is None or not _LEAST_SHARE <= budget_fraction <= 1 - _LEAST_SHARE:
            raise ArgumentError(
                "the budget_fraction of a ResponseRange must lie between 0.001 and 0.999"
            )
        object.__setattr__(self, "budget_fraction", budget_fraction)
        object.__setattr__(
            self, "prediction_bound", check_positive(self.prediction_bound, "prediction_bound")
        )


#: What is asked for: a scale, the usual one, or none.
Asked = ResponseRange | Literal["private"] | None


def default_response_range(epsilon: Fraction, n: int | None, k: int) -> ResponseRange:
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
        return ResponseRange(QuantileRule.median(least=1), Fraction(1, 20), 1.0)
    return ResponseRange(QuantileRule(_OUTER, Fraction(1, 2)))


def check_response_range(asked: Any, *, labels: bool, moments: bool) -> Asked:
    """What was asked for, or a clear error.

    Parameters
    ----------
    asked : object
        The argument ``response_range``.
    labels : bool
        Whether the response counts as one of two labels, which have no scale.
    moments : bool
        Whether the table comes as moments, which hold the response in its declared scale.
    """
    if asked is None:
        asked = "declared" if labels or moments else DEFAULT
    if isinstance(asked, str) and asked == "declared":
        return None
    if not isinstance(asked, ResponseRange) and not (isinstance(asked, str) and asked == "private"):
        raise ArgumentError("response_range must be 'private', 'declared' or a ResponseRange")
    if labels:
        raise ArgumentError(
            "response_range: a response of two labels has no scale. Leave it out, or take a loss "
            "for numbers"
        )
    if moments:
        raise ArgumentError(
            "response_range: moments hold the response in its declared scale, and no other can be "
            "made of them. Pass the table itself, or response_range='declared'"
        )
    return asked if isinstance(asked, ResponseRange) else "private"
