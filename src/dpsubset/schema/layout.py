"""Layout: the columns of the model that belong to each choice, and the intercept's column.

A search selects *choices*; scores are computed from *columns*. A number is one column. A category
has one column for each level, of which at most one is 1 in a row and the others are 0. A group has
the columns of its features. The columns of a choice are selected together. The intercept is the
last column, with the same value in every row, and part of every model; it is not a choice, and k
does not count it.

The *width* of a choice is the largest sum of abs(x_j) over its columns in one row: 1 for a number,
and 1 for any number of levels. The bound on predictions is shared out by widths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

#: Scaled values are q / STEPS with integer |q| <= STEPS: 15 bits and a sign.
STEPS = 2**15 - 1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """The columns of a model. Public."""

    #: Number of choices.
    choices: int
    #: Number of columns of each choice; empty if each has one.
    sizes: tuple[int, ...] = ()
    #: Width of each choice; empty if each is 1.
    widths: tuple[int, ...] = ()
    #: The intercept's value in every row, in steps; 0 without an intercept.
    constant: int = 0

    def __post_init__(self) -> None:
        # The bound on predictions needs it: no entry of a row exceeds 1.
        assert 0 <= self.constant <= STEPS
        assert len(self.sizes) == len(self.widths)
        assert len(self.sizes) in (0, self.choices)

    @classmethod
    def of(cls, sizes: Sequence[int], widths: Sequence[int], constant: int = 0) -> Layout:
        """The layout of choices with these numbers of columns and widths."""
        if all(size == 1 for size in sizes) and all(width == 1 for width in widths):
            return cls(len(sizes), constant=constant)
        return cls(len(sizes), tuple(sizes), tuple(widths), constant)

    @property
    def grouped(self) -> bool:
        """Whether some choice has several columns."""
        return bool(self.sizes)

    @property
    def has_intercept(self) -> bool:
        """Whether every model has one."""
        return self.constant != 0

    @cached_property
    def columns(self) -> int:
        """Number of columns, the intercept included."""
        return (sum(self.sizes) if self.sizes else self.choices) + self.has_intercept

    @cached_property
    def starts(self) -> Ints:
        """Choice j has the columns from starts[j] to starts[j + 1]."""
        sizes = np.array(self.sizes or [1] * self.choices, dtype=np.int64)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])

    @cached_property
    def owners(self) -> Ints:
        """The choice that each column belongs to; ``choices`` for the intercept."""
        sizes = np.diff(self.starts)
        owned = np.repeat(np.arange(self.choices), sizes)
        return np.append(owned, self.choices) if self.has_intercept else owned

    @property
    def widest(self) -> int:
        """Largest number of columns of a choice."""
        return max(self.sizes, default=1)

    @property
    def intercept_value(self) -> Fraction:
        """The intercept's value in scaled units; 0 without one."""
        return Fraction(self.constant, STEPS)

    def of_support(self, support: Iterable[int] | Ints) -> Ints:
        """The columns of a sorted support's models, in order."""
        listed = support if isinstance(support, np.ndarray) else list(support)
        chosen = np.asarray(listed, dtype=np.int64)
        if self.sizes:
            parts = [np.arange(self.starts[j], self.starts[j + 1]) for j in chosen]
            chosen = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        return np.append(chosen, self.columns - 1) if self.has_intercept else chosen

    def batches(self, supports: Ints) -> Iterator[tuple[Ints | slice, Ints]]:
        """Supports, one in each row, in batches with equal numbers of columns: rows and columns."""
        if not self.sizes:
            if not self.has_intercept:
                yield slice(None), supports
                return
            last = np.full((len(supports), 1), self.columns - 1, dtype=np.int64)
            yield slice(None), np.hstack([supports, last])
            return
        lengths = np.diff(self.starts)[supports].sum(axis=1)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            yield rows, np.array([self.of_support(supports[i]) for i in rows], dtype=np.int64)

    def of_status(self, status: NDArray[np.int8], inside: int) -> NDArray[np.int8]:
        """The status of each column: that of its choice, and ``inside`` for the intercept."""
        whole = np.repeat(status, self.sizes) if self.sizes else status
        return np.append(whole, np.int8(inside)) if self.has_intercept else whole

    def of_choices(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the columns of each choice."""
        if self.sizes:
            return np.add.reduceat(gains[: self.starts[-1]], self.starts[:-1])
        return gains[: self.choices]

    def most_columns(self, k: int, always: Sequence[int] = ()) -> int:
        """Largest number of columns of a model of k choices that include ``always``."""
        return _largest_sum(self.sizes, k, always) + self.has_intercept

    def width(self, k: int, always: Sequence[int] = ()) -> int:
        """Largest total width of k choices that include ``always``."""
        return _largest_sum(self.widths, k, always)


def _largest_sum(each: tuple[int, ...], k: int, always: Sequence[int]) -> int:
    """The largest sum over k choices that include ``always``; k if ``each`` is empty."""
    if not each:
        return k
    given = set(always)
    others = sorted((size for j, size in enumerate(each) if j not in given), reverse=True)
    return sum(each[j] for j in given) + sum(others[: k - len(given)])
