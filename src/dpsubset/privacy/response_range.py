"""ResponseRange: the range of the response that is released before a selection. Public.

Scores are proportional to the square of the response, and bounds are often far wider than its
values. A small fraction of epsilon, spent on a narrower range, makes the rest more effective. This
module has the default, and the meaning of "private".
"""

from __future__ import annotations

import math
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
_FEW = 1_800
#: The quantiles that are released otherwise.
_OUTER = (Fraction(1, 10), Fraction(9, 10))
#: The fraction of epsilon for them, unless less than this epsilon times n would be left for them.
_FRACTION, _ENOUGH = Fraction(1, 10), 400
#: The half-width of the range in half-distances, and where it changes: it is narrower below an
#: epsilon n of _NARROW, and wider where epsilon n k is above _WIDE. At most it is the fourth root
#: of epsilon n / _SLOW.
_WIDTH, _NARROW, _WIDE, _SLOW = 0.5, 4_000, 150_000, 1_600
#: The prediction bound, which is larger where epsilon n k is above _FAR.
_BOUND, _FAR = 1.25, 240_000
#: The rule was not measured for a larger k, which has the rule of this one.
_LARGEST_K = 5
#: Half-widths and bounds are multiples of 1 / _GRID, which are easy to read.
_GRID = 16

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


def default_response_range(
    epsilon: Fraction, n: int | None, k: int, fraction: Fraction | None = None
) -> ResponseRange:
    """Return the meaning of "private", which depends on public facts only.

    ``epsilon`` is that of range and selection, for one row; ``n`` is None if private or unknown.
    With a ``fraction`` of epsilon, two quantiles are released for it, however small epsilon n is.

    Two outer quantiles find the middle of skewed responses, and clipping to a narrow range lowers
    the sensitivity. With m = min(k, 5) and x = epsilon n m / 150,000 the range has a half-width of

        1/2 sqrt(epsilon n / 4000), between 0.3 and 1/2, while x is below 1,
        min(x^3 / 2, (epsilon n / 1600)^(1/4)) otherwise,

    half-distances of the quantiles. The prediction bound is 5/4 max(1, x / 1.6)^(1/4). Both are
    rounded to sixteenths. They grow as the noise shrinks, so that the selection converges to the
    best subset for the response within its declared bounds.
    """
    # docs/developers.md has the measurements.
    if n is None:
        return ResponseRange(QuantileRule(_OUTER, Fraction(_WIDTH)), fraction or _FRACTION, _BOUND)
    known = max(Fraction(1), epsilon * n)
    if fraction is None:
        if known < _FEW:
            # A response counts only by its side of the median.
            return ResponseRange(QuantileRule.median(least=1), Fraction(1, 20), 1.0)
        # With less, noise often puts one of the quantiles far from the values.
        fraction = Fraction(math.ceil(100 * max(_FRACTION, _ENOUGH / known)), 100)
    many = float(known * min(k, _LARGEST_K))
    x = many / _WIDE
    narrow = _WIDTH * min(1.0, max(0.6, math.sqrt(known / _NARROW)))
    width = max(narrow, min(_WIDTH * x**3, float(known / _SLOW) ** 0.25))
    bound = _BOUND * max(1.0, many / _FAR) ** 0.25
    rule = QuantileRule(_OUTER, Fraction(round(_GRID * width), _GRID))
    return ResponseRange(rule, fraction, round(_GRID * bound) / _GRID)


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
