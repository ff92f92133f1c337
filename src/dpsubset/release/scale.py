"""ReleasedScale: what was released of the response first, in its own units."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..privacy.scale import Scale, ScaleRule
from ..public.schema import Column
from ..table.door import STEPS


@dataclass(frozen=True)
class ReleasedScale:
    """A scale of the response that was released before the selection. Public.

    Attributes
    ----------
    rule : ScaleRule
        Which quantiles were released, and what was made of them.
    exact : Scale
        What was released, in steps of 1/32767 of half the declared range.
    response : Column
        The response as it was declared.
    """

    rule: ScaleRule
    exact: Scale
    response: Column

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The released quantiles in units of the response, one for each share of the rule."""
        return tuple(self._value(Fraction(q)) for q in self.exact.quantiles)

    @property
    def centre(self) -> float:
        """What counts as 0 in the selection, in units of the response."""
        return self._value(self.exact.centre)

    @property
    def half_width(self) -> float:
        """How far from the centre the response was clipped, in its units."""
        return float(self.exact.half_width) / STEPS * self._half_range

    @property
    def named(self) -> list[tuple[str, float]]:
        """Quantiles with their names."""
        return [
            (_NAMES.get(share, f"quantile {share}"), value)
            for share, value in zip(self.rule.shares, self.quantiles, strict=True)
        ]

    def __str__(self) -> str:
        """In a few words."""
        found = " and ".join(f"{name} {value:.6g}" for name, value in self.named)
        return f"of {self.response.name} the {found}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values: floats for people, the exact steps beside them."""
        shares, exact = self.rule.shares, self.exact
        return {
            "quantiles": [
                {"share": str(share), "value": value, "step": step}
                for share, value, step in zip(shares, self.quantiles, exact.quantiles, strict=True)
            ],
            "centre": self.centre,
            "half_width": self.half_width,
            "centre_in_steps": str(exact.centre),
            "half_width_in_steps": str(exact.half_width),
            "steps": STEPS,
        }

    @property
    def _half_range(self) -> float:
        low, high = self._bounds
        return high / 2 - low / 2

    @property
    def _bounds(self) -> tuple[float, float]:
        low, high = self.response.span
        assert low is not None
        assert high is not None
        return low, high

    def _value(self, step: Fraction) -> float:
        low, high = self._bounds
        return low / 2 + high / 2 + float(step) / STEPS * self._half_range


_NAMES = {
    Fraction(1, 4): "lower quartile",
    Fraction(1, 2): "median",
    Fraction(3, 4): "upper quartile",
}
