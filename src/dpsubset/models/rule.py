"""FitRule: the method of a fit, its fraction of epsilon, and the width of its clip. Public.

The clip that selects best is too narrow to predict with: unless epsilon times the number of rows is
large, a response is clipped at half the half-distance of its deciles for a selection. A model is
fitted on a wider clip, which grows as the noise shrinks. With r the deviation of a noisy sum over
the number of rows, it is

    max(1, 0.3 / sqrt(r), 0.009 / r) half-distances around their middle,

and never beyond the declared bounds. Up to 10 half-distances the second term decides; beyond, the
third, at which the noise of a sum stays at 0.009 half-distances a row. The clip therefore reaches
the declared bounds as epsilon times the number of rows grows, whatever the tails of the response.
docs/developers.md has the measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ..base.errors import ArgumentError
from ..base.renamed import renamed_arguments
from ..base.validation import as_decimal_fraction
from ..privacy.quantiles import QuantileRule, RangeInSteps
from ..privacy.relations import Neighbours
from ..schema.layout import STEPS
from .noisy_moments import usual_deviation

#: Fractions of epsilon for the response range and for the fit; the selection has the rest.
RANGE_FRACTION, FIT_FRACTION = Fraction(1, 10), Fraction(6, 10)

_LEAST, _WIDTH, _NOISE = 1.0, 0.3, 0.009
#: Methods of fitting a model.
FITS = ("noisy-moments", "objective-perturbation", "gaussian-ols")
#: Width where the number of rows is private, so that the rule cannot depend on it.
_USUAL = Fraction(3)


@renamed_arguments(share="budget_fraction")
@dataclass(frozen=True)
class FitRule:
    """How a model is fitted, which fraction of epsilon that takes, and how wide it clips.

    Attributes
    ----------
    budget_fraction : Fraction
        Fraction of epsilon for the fit.
    width : Fraction, optional
        Half-width of the clip of the response, in half-distances of its released quantiles; by
        default the public rule above.
    mechanism : {"noisy-moments", "objective-perturbation", "gaussian-ols"}, optional
        How the model is fitted; docs/model.md compares the methods. By default the fit is least
        squares by "noisy-moments", by "objective-perturbation" or by both, depending on the noise
        for the selected columns and the number of rows. With a delta, for moments and after a
        selection by the hinge loss it is "noisy-moments". After a selection by the logistic loss it
        is "objective-perturbation", so that the model is a logistic one.
    intervals : bool
        Whether the default fit may spend half of its budget on intervals and R2. If not, it
        predicts better, and has them only where the noise is small for the number of rows.
    """

    budget_fraction: Fraction = FIT_FRACTION
    width: Fraction | None = None
    mechanism: str | None = None
    intervals: bool = True

    def __post_init__(self) -> None:
        budget_fraction = as_decimal_fraction(self.budget_fraction)
        if budget_fraction is None or not Fraction(1, 1000) <= budget_fraction <= 1 - Fraction(
            1, 1000
        ):
            raise ArgumentError("the budget_fraction of a FitRule must lie between 0.001 and 0.999")
        object.__setattr__(self, "budget_fraction", budget_fraction)
        if self.width is not None:
            width: Any = as_decimal_fraction(self.width)
            if width is None or width <= 0:
                raise ArgumentError("the width of a FitRule must be greater than 0")
            object.__setattr__(self, "width", width)
        if not isinstance(self.intervals, bool):
            raise ArgumentError("the intervals of a FitRule must be True or False")
        if self.mechanism is not None and self.mechanism not in FITS:
            raise ArgumentError(f"the mechanism of a FitRule must be one of {', '.join(FITS)}")

    def of_loss(self, loss: str | None, *, exact: bool) -> FitRule:
        """Return the rule with the default mechanism for this loss, unless it names one.

        None is kept for an `AutomaticFit`. ``exact`` says that sums alone will do: the fit has a
        delta, or the table comes as moments.
        """
        if loss == "logistic":
            return self.by_default("objective-perturbation")
        return self.by_default("noisy-moments") if exact or loss == "hinge" else self

    def by_default(self, mechanism: str) -> FitRule:
        """Return the rule with its own mechanism, or else with this one."""
        return self if self.mechanism is not None else replace(self, mechanism=mechanism)

    @property
    def range_fraction(self) -> Fraction:
        """The fraction of the epsilon of range and selection that the default range has."""
        return min(RANGE_FRACTION / (1 - self.budget_fraction), Fraction(1, 2))

    def scale(
        self, released: RangeInSteps | None, rule: QuantileRule | None, n: int | None, d: int,
        epsilon: Fraction, neighbours: Neighbours,
    ) -> RangeInSteps | None:  # fmt: skip
        """Centre and half-width of the clip of a fit, from the released quantiles.

        None stands for the declared bounds: without released quantiles, and after a median, which
        has no width.
        """
        if released is None or rule is None or len(rule.probs) < 2:
            return None
        low, high = min(released.quantiles), max(released.quantiles)
        half = max(rule.min_half_width, Fraction(high - low, 2))
        width = half * self._width(n, d, epsilon, neighbours)
        centre = Fraction(low + high, 2)
        below = max(Fraction(-STEPS), centre - width)
        above = min(Fraction(STEPS), centre + width)
        return RangeInSteps((below + above) / 2, (above - below) / 2, released.quantiles)

    def _width(self, n: int | None, d: int, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        if self.width is not None:
            return self.width
        if n is None:
            return _USUAL
        noise = usual_deviation(d, float(epsilon), neighbours) / max(n, 1)
        # Rounded to eighths, which are easy to read.
        width = max(_LEAST, _WIDTH / math.sqrt(noise), _NOISE / noise)
        return Fraction(round(8 * width), 8)
