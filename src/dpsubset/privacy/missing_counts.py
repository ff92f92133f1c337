"""check_readable: which counts of unreadable cells are released beside a selection, at what price.

A table can be read in vain: amounts with a currency sign that no format declares, dates in another
order. Types do not always tell. So a small part of epsilon may go to noisy counts of the cells that
read as no value. Which counts these are is a public rule of the schema.
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

#: Of epsilon, if somebody asks for the check without saying how much.
USUAL_SHARE = Fraction(1, 100)
_LARGEST_SHARE = Fraction(1, 2)

#: Most features that are counted one by one: noise grows with their number. Of more, the largest
#: count is released in place of all.
MOST_COUNTED = 20


def share_of(asked: Any) -> Fraction:
    """Which part of epsilon goes to the check; 0 for none."""
    if asked is None or asked is False:
        return Fraction(0)
    if asked is True:
        return USUAL_SHARE
    share = as_decimal_fraction(asked)
    if share is None or not 0 < share <= _LARGEST_SHARE:
        raise ArgumentError(
            "check_readable must be True, for a hundredth of epsilon, or a share of it above 0 and "
            "up to 0.5"
        )
    return share


@dataclass(frozen=True)
class ReadableCheck:
    """Which cells are counted, and with which noise. Public.

    Attributes
    ----------
    names : tuple of str or None
        The columns, the response last. None stands for the feature with most such cells.
    noise : NoisyCounts
    """

    names: tuple[str | None, ...]
    noise: NoisyCounts

    @classmethod
    def of(cls, schema: Schema, epsilon: Fraction, neighbours: Neighbours) -> ReadableCheck:
        """For a table of this schema, at this price for one row."""
        many = len(schema.features) > MOST_COUNTED
        features: tuple[str | None, ...] = (None,) if many else schema.feature_names
        return cls((*features, schema.response.name), NoisyCounts(epsilon, neighbours))

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is private, and one more count."""
        return self.noise.neighbours not in PUBLIC_N

    def values(self, bad: Sequence[int], n: int) -> list[int]:
        """What noise is added to: of the bad cells of each feature and, last, of the response."""
        *features, response = bad
        counted = [max(features)] if self.names[0] is None else features
        return [*counted, response, *([n] if self.counts_rows else [])]

    def draw(self, bad: Sequence[int], n: int, rng: Randomness) -> list[int]:
        """The same with noise."""
        return self.noise.draw(self.values(bad, n), rng)
