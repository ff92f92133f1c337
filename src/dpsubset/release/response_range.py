"""ReleasedRange: the range of the response that was released first, in the response's units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..data.quantize import STEPS
from ..privacy.quantiles import QuantileRule, RangeInSteps
from ..schema.dates import day_text
from ..schema.schema import Column


@dataclass(frozen=True)
class ReleasedRange:
    """The range of the response that was released before the selection. Public.

    Attributes
    ----------
    rule : QuantileRule
        Which quantiles were released, and how the range follows from them.
    exact : RangeInSteps
        The released numbers, in steps of 1/32767 of half the declared range.
    response : Column
        The declared response.
    """

    rule: QuantileRule
    exact: RangeInSteps
    response: Column

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The released quantiles in units of the response, one for each probability of the rule."""
        return tuple(value_of(self.response, Fraction(q)) for q in self.exact.quantiles)

    @property
    def centre(self) -> float:
        """The value that counts as 0 in the selection, in units of the response."""
        return value_of(self.response, self.exact.centre)

    @property
    def half_width(self) -> float:
        """Half the width of the range, in units of the response, or of its transform."""
        low, high = self.response.scaled_span
        return float(self.exact.half_width) / STEPS * (high / 2 - low / 2)

    @property
    def clipped(self) -> tuple[float, float]:
        """The ends of the range to which the response was clipped, in its units."""
        return clip_of(self.response, self.exact)

    def shown(self, value: float) -> str:
        """Write a value of the response for people."""
        return value_as_text(self.response, value)

    def __str__(self) -> str:
        """The response and the released quantiles."""
        return f"of {self.response.name} the {self.listed}"

    @property
    def listed(self) -> str:
        """The quantiles with their names, for people."""
        return " and ".join(
            f"{_NAMES.get(prob, f'{float(100 * prob):g} % quantile')} {self.shown(value)}"
            for prob, value in zip(self.rule.probs, self.quantiles, strict=True)
        )

    def warnings(self) -> Iterator[str]:
        """Warn if the quantiles indicate that the response could hardly be read."""
        if list(self.exact.quantiles) != sorted(self.exact.quantiles):
            yield (
                f"The released quantiles of {self.response.name} are in the wrong order: there are "
                "too few readable values for the noise, or its cells are not written as declared"
            )

    def to_dict(self) -> dict[str, Any]:
        """As plain values: floats for people, the exact steps beside them."""
        probs, exact = self.rule.probs, self.exact
        return {
            "quantiles": [
                {"share": str(prob), "value": value, "step": step}
                for prob, value, step in zip(probs, self.quantiles, exact.quantiles, strict=True)
            ],
            "centre": self.centre,
            "half_width": self.half_width,
            "clipped": list(self.clipped),
            "centre_in_steps": str(exact.centre),
            "half_width_in_steps": str(exact.half_width),
            "steps": STEPS,
            "widening": str(self.rule.width_factor),
            "least_in_steps": str(self.rule.min_half_width),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], response: Column) -> ReleasedRange:
        """Read what :meth:`to_dict` wrote."""
        listed = facts["quantiles"]
        rule = QuantileRule(
            tuple(Fraction(each["share"]) for each in listed),
            Fraction(facts["widening"]),
            Fraction(facts["least_in_steps"]),
        )
        return cls(rule, rule.range_of(tuple(int(each["step"]) for each in listed)), response)


def value_as_text(column: Column, value: float) -> str:
    """Write a value of a column for people: a date as a day."""
    return day_text(value) if column.kind == "date" else f"{value:.6g}"


def clip_of(response: Column, scale: RangeInSteps) -> tuple[float, float]:
    """Return the ends of the range to which a scale clips a response, in its units.

    They lie within the declared bounds, to which every value is clipped before.
    """
    low = max(scale.centre - scale.half_width, Fraction(-STEPS))
    high = min(scale.centre + scale.half_width, Fraction(STEPS))
    return value_of(response, low), value_of(response, high)


def value_of(response: Column, step: Fraction) -> float:
    """Convert steps of the quantizer back to the response's units, through its transform."""
    low, high = response.scaled_span
    scaled = low / 2 + high / 2 + float(step) / STEPS * (high / 2 - low / 2)
    if response.transform == "log":
        return math.exp(min(scaled, _LARGEST_LOG))
    if response.transform == "sqrt":
        return max(scaled, 0.0) ** 2
    return scaled


#: A range may exceed the bounds, and its exponential float64.
_LARGEST_LOG = 709.0

_NAMES = {
    Fraction(1, 10): "lower decile",
    Fraction(1, 4): "lower quartile",
    Fraction(1, 2): "median",
    Fraction(3, 4): "upper quartile",
    Fraction(9, 10): "upper decile",
}
