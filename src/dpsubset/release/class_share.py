"""ReleasedShare: the share of each label that was released first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..privacy.class_share import LabelCounts
from ..privacy.quantiles import RangeInSteps
from ..schema.layout import STEPS
from ..schema.schema import Column


@dataclass(frozen=True)
class ReleasedShare:
    """The noisy counts of both labels that were released before the selection. Public.

    Attributes
    ----------
    exact : LabelCounts
        The noisy counts.
    used : RangeInSteps
        How labels counted in the selection; it follows from the counts.
    response : Column
        The declared response.
    """

    exact: LabelCounts
    used: RangeInSteps
    response: Column

    @property
    def counts(self) -> dict[Any, int]:
        """The noisy number of rows with each label; noise may make it negative."""
        first, second = self._labels
        return {first: self.exact.first, second: self.exact.second}

    @property
    def share(self) -> float:
        """The share of the second label, rounded to a multiple of 1/128."""
        return float(self.exact.share)

    @property
    def centre(self) -> float:
        """The value between 0 (first label) and 1 (second label) that counts as 0 in the selection,
        a little beside the share.
        """
        return float(self.used.centre / STEPS + 1) / 2

    @property
    def counts_as(self) -> tuple[float, float]:
        """What the two labels count as in the selection."""
        half = float(self.used.half_width / STEPS) / 2
        return -self.centre / half, (1 - self.centre) / half

    def predictions(self, prediction_bound: Fraction) -> tuple[float, float]:
        """The smallest and the largest share of the second label that a model of the selection can
        predict; they may lie outside of 0 to 1.
        """
        reach = float(prediction_bound * self.used.half_width / STEPS) / 2
        return self.centre - reach, self.centre + reach

    def __str__(self) -> str:
        """The response and the released share."""
        return f"the class share of {self.response.name}: {self.listed}"

    @property
    def listed(self) -> str:
        """The share in words, with the noisy counts."""
        (first, second), counts = self._labels, self.exact
        return (
            f"about {100 * self.share:.3g} % of the labels are {second} (noisy counts: "
            f"{counts.first:,} of {first} and {counts.second:,} of {second})"
        )

    def warnings(self) -> Iterator[str]:
        """Warn if the counts indicate that a label hardly occurs or could hardly be read."""
        if min(self.exact.first, self.exact.second) <= 0:
            yield (
                f"A released count of the labels of {self.response.name} is not above 0: there are "
                "too few rows with this label for the noise, or its cells are not written as "
                "declared"
            )

    def to_dict(self) -> dict[str, Any]:
        """As plain values: floats for people, the exact steps beside them."""
        return {
            "counts": [
                {"label": label, "noisy_count": count, "counts_as": value}
                for (label, count), value in zip(self.counts.items(), self.counts_as, strict=True)
            ],
            "share": self.share,
            "centre": self.centre,
            "centre_in_steps": str(self.used.centre),
            "half_width_in_steps": str(self.used.half_width),
            "steps": STEPS,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], response: Column) -> ReleasedShare:
        """Read what :meth:`to_dict` wrote."""
        first, second = (int(each["noisy_count"]) for each in facts["counts"])
        used = RangeInSteps(
            Fraction(facts["centre_in_steps"]), Fraction(facts["half_width_in_steps"])
        )
        return cls(LabelCounts(first, second), used, response)

    @property
    def _labels(self) -> tuple[Any, Any]:
        assert self.response.labels is not None
        first, second = self.response.labels
        return first, second
