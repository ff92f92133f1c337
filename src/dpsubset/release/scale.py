"""ReleasedRange: what was released of the response first, in its own units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..data.quantize import STEPS
from ..privacy.quantiles import QuantileRule, RangeInSteps
from ..schema.dates import day_text
from ..schema.schema import Column


@dataclass(frozen=True)
class ReleasedRange:
    """A scale of the response that was released before the selection. Public.

    Attributes
    ----------
    rule : QuantileRule
        Which quantiles were released, and what was made of them.
    exact : RangeInSteps
        What was released, in steps of 1/32767 of half the declared range.
    response : Column
        The response as it was declared.
    """

    rule: QuantileRule
    exact: RangeInSteps
    response: Column

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The released quantiles in units of the response, one for each share of the rule."""
        return tuple(value_of(self.response, Fraction(q)) for q in self.exact.quantiles)

    @property
    def centre(self) -> float:
        """What counts as 0 in the selection, in units of the response."""
        return value_of(self.response, self.exact.centre)

    @property
    def half_width(self) -> float:
        """How far from the centre the response was clipped, in its units; in those of its logarithm
        or square root, where that was declared.
        """
        low, high = self.response.scaled_span
        return float(self.exact.half_width) / STEPS * (high / 2 - low / 2)

    @property
    def clipped(self) -> tuple[float, float]:
        """Between which values the response was clipped, in its units."""
        return clip_of(self.response, self.exact)

    def shown(self, value: float) -> str:
        """A value of the response, for people."""
        return shown(self.response, value)

    @property
    def named(self) -> list[tuple[str, float]]:
        """Quantiles with their names."""
        return [
            (_NAMES.get(share, f"{float(100 * share):g} % quantile"), value)
            for share, value in zip(self.rule.probs, self.quantiles, strict=True)
        ]

    def __str__(self) -> str:
        """In a few words."""
        return f"of {self.response.name} the {self.listed}"

    @property
    def listed(self) -> str:
        """The quantiles, for people."""
        return " and ".join(f"{name} {self.shown(value)}" for name, value in self.named)

    def warnings(self) -> Iterator[str]:
        """What the quantiles tell of the response's cells, in words."""
        if list(self.exact.quantiles) != sorted(self.exact.quantiles):
            yield (
                f"The released quantiles of {self.response.name} are in the wrong order: there are "
                "too few readable values for the noise, or its cells are not written as declared"
            )

    def to_dict(self) -> dict[str, Any]:
        """As plain values: floats for people, the exact steps beside them."""
        shares, exact = self.rule.probs, self.exact
        return {
            "quantiles": [
                {"share": str(share), "value": value, "step": step}
                for share, value, step in zip(shares, self.quantiles, exact.quantiles, strict=True)
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


def shown(response: Column, value: float) -> str:
    """A value of a response, for people."""
    return day_text(value) if response.kind == "date" else f"{value:.6g}"


def clip_of(response: Column, scale: RangeInSteps) -> tuple[float, float]:
    """Between which values a scale clips a response, in its units."""
    centre, half = scale.centre, scale.half_width
    return value_of(response, centre - half), value_of(response, centre + half)


def value_of(response: Column, step: Fraction) -> float:
    """Back from the steps of the door, through the transform, to what a cell would say."""
    low, high = response.scaled_span
    scaled = low / 2 + high / 2 + float(step) / STEPS * (high / 2 - low / 2)
    if response.transform == "log":
        return math.exp(min(scaled, _LARGEST_LOG))
    if response.transform == "sqrt":
        return max(scaled, 0.0) ** 2
    return scaled


#: A width may lead beyond the bounds, and from there beyond float64.
_LARGEST_LOG = 709.0

_NAMES = {
    Fraction(1, 10): "lower decile",
    Fraction(1, 4): "lower quartile",
    Fraction(1, 2): "median",
    Fraction(3, 4): "upper quartile",
    Fraction(9, 10): "upper decile",
}
