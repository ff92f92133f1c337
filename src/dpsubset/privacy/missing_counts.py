"""The option check_readable: noisy counts of missing and unreadable cells.

Most cells of a column may be unreadable without an error: amounts with a currency sign that no
format declares, dates in another order. Types do not always show it. So a small fraction of epsilon
can pay for noisy counts of such cells. Which cells are counted is a public function of the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import as_decimal_fraction
from ..schema.schema import Schema
from .noisy_counts import NoisyCounts
from .random import Randomness
from .relations import PUBLIC_N, Neighbours

#: Fraction of epsilon for the check, if none is given.
DEFAULT_FRACTION = Fraction(1, 100)
_LARGEST_FRACTION = Fraction(1, 2)

#: Largest number of features that are counted one by one, since noise grows with their number. With
#: more features only the largest count is released.
MOST_COUNTED = 20


def readable_fraction(given: Any) -> Fraction:
    """Return the fraction of epsilon for the option check_readable; 0 without the option."""
    if given is None or given is False:
        return Fraction(0)
    if given is True:
        return DEFAULT_FRACTION
    fraction = as_decimal_fraction(given)
    if fraction is None or not 0 < fraction <= _LARGEST_FRACTION:
        raise ArgumentError(
            "check_readable must be True, for a hundredth of epsilon, or a fraction of it above 0 "
            "and up to 0.5"
        )
    return fraction


@dataclass(frozen=True)
class ReadableCheck:
    """Which cells are counted, and their noise. Public."""

    #: The columns, the response last. None stands for the feature with the largest count.
    names: tuple[str | None, ...]
    noise: NoisyCounts

    @classmethod
    def of(cls, schema: Schema, epsilon: Fraction, neighbours: Neighbours) -> ReadableCheck:
        """The check of a table of this schema, at this epsilon for one row."""
        many = len(schema.features) > MOST_COUNTED
        features: tuple[str | None, ...] = (None,) if many else schema.feature_names
        return cls((*features, schema.response.name), NoisyCounts(epsilon, neighbours))

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is private, so that it is one of the counts."""
        return self.noise.neighbours not in PUBLIC_N

    def values(self, bad: Sequence[int], n: int) -> list[int]:
        """The exact counts, of the bad cells of each feature and, last, of the response."""
        *features, response = bad
        counted = [max(features)] if self.names[0] is None else features
        return [*counted, response, *([n] if self.counts_rows else [])]

    def draw(self, bad: Sequence[int], n: int, rng: Randomness) -> list[int]:
        return self.noise.draw(self.values(bad, n), rng)
