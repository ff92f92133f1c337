"""ReleasedReadable: noisy counts of cells that are missing or could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..privacy.sup_norm import margin

#: How often a count with noise lies within its margin of the count.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class ReleasedReadable:
    """Noisy numbers of cells without a value, by column. Public.

    Attributes
    ----------
    counts : tuple of (str or None, int)
        By column, the response last; None stands for the feature that has most of them. They
        include noise, so they may lie below 0 or above the number of rows.
    rows : int
        The number of rows; with noise where it is private.
    rows_noisy : bool
    margin : int
        The noise of a count, and of a noisy number of rows, is at most this in 95 % of releases.
    epsilon : Fraction
        The cost of all counts together for one row.
    """

    counts: tuple[tuple[str | None, int], ...]
    rows: int
    rows_noisy: bool
    margin: int
    epsilon: Fraction

    @classmethod
    def of(
        cls, names: tuple[str | None, ...], drawn: list[int], n: int | None, epsilon: Fraction
    ) -> ReleasedReadable:
        """Build from drawn counts; where n is private the last count is the noisy n."""
        rows = drawn[-1] if n is None else n
        counts = tuple(zip(names, drawn, strict=n is not None))
        return cls(counts, rows, n is None, margin(len(drawn), epsilon, CONFIDENCE), epsilon)

    def most(self) -> list[str]:
        """List columns most of whose cells hold no value, beyond what noise can explain."""
        slack = self.margin * (2 if self.rows_noisy else 1)
        return [
            _column_as_text(name)
            for name, count in self.counts
            if 2 * (count - slack) > self.rows > 0
        ]

    @property
    def vague(self) -> bool:
        """Whether the noise is too large to notice a column of unreadable cells."""
        return 2 * self.margin >= self.rows

    def warnings(self) -> Iterator[str]:
        """Warn of columns most of whose cells seem to be unreadable."""
        for name in self.most():
            yield (
                f"Most cells of {name} seem to hold no value that could be read: compare the "
                "schema with how its cells are written ('dpsubset schema try', on public rows)"
            )

    def lines(self) -> Iterator[str]:
        """Write each count for people."""
        if self.vague:
            yield "The noise of these counts is too large for so few rows to tell much"
        rows = f"{'about ' * self.rows_noisy}{max(self.rows, 0):,}"
        for name, count in self.counts:
            within = min(max(count, 0), max(self.rows, 0))
            yield (
                f"About {within:,} of {rows} cells of {_column_as_text(name)} are missing or could "
                f"not be read (noise included, which is at most {self.margin:,} in 95 % of cases)"
            )

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "without_value": [{"column": name, "count": count} for name, count in self.counts],
            "rows": self.rows,
            "rows_noisy": self.rows_noisy,
            "margin": self.margin,
            "confidence": CONFIDENCE,
            "epsilon_of_a_row": str(self.epsilon),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> ReleasedReadable:
        """Read what :meth:`to_dict` wrote."""
        counts = tuple((each["column"], int(each["count"])) for each in facts["without_value"])
        epsilon = Fraction(facts["epsilon_of_a_row"])
        return cls(counts, int(facts["rows"]), facts["rows_noisy"], int(facts["margin"]), epsilon)


def _column_as_text(name: str | None) -> str:
    return "the feature that has most of them" if name is None else name
