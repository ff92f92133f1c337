"""ResponseRange: the range of the response that is released before a selection. Public.

Scores are proportional to the square of the response, and bounds are often far wider than its
values. A small fraction of epsilon, spent on a narrower range, makes the rest more effective. This
module has the default, and the meaning of "private".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from ..base.errors import ArgumentError
from ..base.renamed import renamed_arguments
from ..base.validation import as_decimal_fraction, check_positive
from .quantiles import QuantileRule

#: The default of the argument response_range.
DEFAULT: Literal["private", "declared"] = "private"

#: Epsilon times n, below which only the median is released.
_FEW = 2_000
#: The quantiles that are released otherwise.
_OUTER = (Fraction(1, 10), Fraction(9, 10))

#: Smallest fraction of epsilon for either step.
_LEAST_FRACTION = Fraction(1, 1000)


@renamed_arguments(share="budget_fraction", reach="prediction_bound")
@dataclass(frozen=True)
class ResponseRange:
    """How a range of the response is released before the selection.

    Attributes
    ----------
    rule : QuantileRule
        Which quantiles are released, and how the range is made of them.
    budget_fraction : Fraction
        Fraction of epsilon for the range; the selection has the rest.
    prediction_bound : float
        Bound on predictions in half-widths of this range, unless the caller gives one.
    """

    rule: QuantileRule
    budget_fraction: Fraction = Fraction(1, 10)
    prediction_bound: float = 1.25

    def __post_init__(self) -> None:
        if not isinstance(self.rule, QuantileRule):
            raise ArgumentError("the rule of a ResponseRange must be a QuantileRule")
        budget_fraction = as_decimal_fraction(self.budget_fraction)
        if budget_fraction is None or not _LEAST_FRACTION <= budget_fraction <= 1 - _LEAST_FRACTION:
            raise ArgumentError(
                "the budget_fraction of a ResponseRange must lie between 0.001 and 0.999"
            )
        object.__setattr__(self, "budget_fraction", budget_fraction)
        object.__setattr__(
            self, "prediction_bound", check_positive(self.prediction_bound, "prediction_bound")
        )


#: A range, the default one, or none.
RangeOption = ResponseRange | Literal["private"] | None


def default_response_range(epsilon: Fraction, n: int | None, k: int) -> ResponseRange:
    """The meaning of "private", chosen by public facts.

    ``epsilon`` is that of the whole release, for one row; ``n`` is None if private or unknown.
    """
    # docs/developers.md has the measurements. Two outer quantiles find the middle of skewed
    # responses, and clipping to a narrower range lowers the sensitivity. They need an epsilon n of
    # some thousand; below, a response counts only by its side of the median.
    known = None if n is None else epsilon * n
    if known is not None and known < _FEW:
        return ResponseRange(QuantileRule.median(least=1), Fraction(1, 20), 1.0)
    return ResponseRange(QuantileRule(_OUTER, Fraction(1, 2)))


def check_response_range(
    given: Any, *, labels: bool, moments: bool, centred: bool = False
) -> RangeOption:
    """Check the argument ``response_range``; None stands for the declared range.

    A response with ``labels`` has no range, and ``moments`` hold it in the declared one. If labels
    may be ``centred``, "private" stands for their class share.
    """
    if given is None:
        given = "declared" if (labels and not centred) or moments else DEFAULT
    if isinstance(given, str) and given == "declared":
        return None
    if not isinstance(given, ResponseRange) and not (isinstance(given, str) and given == "private"):
        raise ArgumentError("response_range must be 'private', 'declared' or a ResponseRange")
    if labels and not (centred and given == "private"):
        raise ArgumentError(
            "response_range: a response of two labels has no range. Leave it out, or use a loss "
            "for numbers"
        )
    if moments:
        raise ArgumentError(
            "response_range: moments hold the response in its declared range, which cannot be "
            "changed. Pass the table itself, or response_range='declared'"
        )
    return given if isinstance(given, ResponseRange) else "private"
