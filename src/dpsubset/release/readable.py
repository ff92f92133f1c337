"""ReleasedReadable: noisy counts of the cells that could not be read. Public."""

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
    """How many cells read as no value, of some columns, with noise.

    Attributes
    ----------
    counts : tuple of (str or None, int)
        By column, the response last; None is the feature that has most of them. Noise included, so
        they may lie below 0 or above the number of rows.
    rows : int
        The number of rows; with noise where it is private.
    rows_noisy : bool
    margin : int
        The noise of a count, and of a noisy number of rows, is at most this in 95 % of releases.
    epsilon : Fraction
        What one row pays for all counts together.
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
        """Of what was drawn; n where it is public, else the last count stands for it."""
        rows = drawn[-1] if n is None else n
        counts = tuple(zip(names, drawn, strict=n is not None))
        return cls(counts, rows, n is None, margin(len(drawn), epsilon, CONFIDENCE), epsilon)

    def most(self) -> list[str]:
        """Columns most of whose cells seem to hold no value, beyond what noise makes of them."""
        slack = self.margin * (2 if self.rows_noisy else 1)
        return [_called(name) for name, count in self.counts if 2 * (count - slack) > self.rows > 0]

    @property
    def vague(self) -> bool:
        """Whether noise may hide that no cell of a column can be read."""
        return 2 * self.margin >= self.rows

    def warnings(self) -> Iterator[str]:
        """What goes ill, in words."""
        for name in self.most():
            yield (
                f"Most cells of {name} seem to hold no value that could be read: compare the "
                "schema with how its cells are written ('dpsubset schema try', on public rows)"
            )

    def lines(self) -> Iterator[str]:
        """For people: each count."""
        if self.vague:
            yield "The noise of these counts is too large for so few rows to tell much"
        rows = f"{'about ' * self.rows_noisy}{max(self.rows, 0):,}"
        for name, count in self.counts:
            shown = min(max(count, 0), max(self.rows, 0))
            yield (
                f"About {shown:,} +- {self.margin:,} of {rows} cells of {_called(name)} are "
                "missing or could not be read (noise included; 95 %)"
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
    def from_dict(cls, said: Mapping[str, Any]) -> ReleasedReadable:
        """What :meth:`to_dict` wrote."""
        counts = tuple((each["column"], int(each["count"])) for each in said["without_value"])
        epsilon = Fraction(said["epsilon_of_a_row"])
        return cls(counts, int(said["rows"]), said["rows_noisy"], int(said["margin"]), epsilon)


def _called(name: str | None) -> str:
    return "the feature that has most of them" if name is None else name
