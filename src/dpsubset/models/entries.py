"""Entries: the sums of products that a fit releases, and the moments of a model made from them.

A model has columns u_1, ..., u_m with values between -S and S, S = 32767: a number as quantized; S
where a feature has a level or is missing, and -S otherwise. The first level of a category is the
reference level and has no column. The constant column, the last, is S.

A record counts unless its response is unreadable and the schema leaves such records out. A record
that does not count is 0 in every quantized column, including the constant's, and 0 in every sum.

The released entries are sums over the records that count; each term is an integer between -S^2 and
S^2:

==================== =================== ===================================================
what                 of one record       for
==================== =================== ===================================================
sums                 u_a S               every column
squares              2 u_a^2 - S^2       numbers; of other columns the square is S^2
products             u_a u_b             pairs of columns of different features
with the response    u_a y, S y          every column and the constant
square of that       2 y^2 - S^2         what is left to explain
number of rows       S^2                 where it is private: always, if some may not count
==================== =================== ===================================================

All other moments follow. At most one of two levels of a feature is on, so u_a u_b is
-S (u_a + u_b + S); and where an indicator is on, the number beside it is 0.
`proofs/noisy-moments.md` relies on this table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..schema.encoding import Design, ModelColumn
from ..schema.layout import STEPS
from ..schema.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Records whose products float64 adds up exactly.
_BLOCK = 2**20

#: Largest absolute value of an entry of one record.
LARGEST = STEPS**2


def of_support(schema: Schema, design: Design, support: Sequence[int]) -> Schema:
    """The schema of the features of a support; of an empty support, that of the first feature."""
    names = {design.features[j].name for j in design.features_of(support)}
    kept = tuple(c for c in schema.features if c.name in names) or schema.features[:1]
    return replace(schema, columns=kept)


def model_columns(design: Design) -> tuple[int, ...]:
    """Positions of a design's columns that a model has: all but first levels."""
    return tuple(i for i, column in enumerate(design.columns) if column.level != 0)


@dataclass(frozen=True)
class Entries:
    """The released entries of the moments of some columns. Public."""

    #: The columns of the model, without its constant.
    columns: tuple[ModelColumn, ...]
    #: Their positions among all quantized columns.
    places: tuple[int, ...]
    #: Whether the number of rows that count is private, and so released with the others.
    counted: bool

    @classmethod
    def of(cls, design: Design, counted: bool, empty: bool = False) -> Entries:
        """The entries for the schema of a support; ``empty`` if the support has no choice."""
        places = () if empty else model_columns(design)
        return cls(tuple(design.columns[i] for i in places), places, counted)

    @cached_property
    def m(self) -> int:
        """The number of columns of the model, without the constant."""
        return len(self.columns)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Positions of the numeric columns."""
        return tuple(a for a, column in enumerate(self.columns) if column.kind == "value")

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of columns whose products are released."""
        return tuple(
            pair for pair in combinations(range(self.m), 2) if not self._same_feature(*pair)
        )

    @cached_property
    def d(self) -> int:
        """The number of released sums."""
        return 2 * self.m + len(self.numbers) + len(self.pairs) + 2 + self.counted

    def _same_feature(self, a: int, b: int) -> bool:
        return self.columns[a].feature == self.columns[b].feature

    def values(self, products: Ints) -> list[int]:
        """The exact sums, from those of the quantized columns, the constant S and the response.

        The square of the constant's column is S^2 times the number of records that count.
        """
        # May exceed int64 for the longest tables.
        found: NDArray[Any] = products[np.ix_([*self.places, -2, -1], [*self.places, -2, -1])]
        found = found.astype(object)
        for a, column in enumerate(self.columns):
            if column.kind != "value":  # 0 or S becomes -S or S, and 0 where the constant is 0
                found[a] = 2 * found[a] - found[-2]
                found[:, a] = 2 * found[:, a] - found[:, -2]
        rows = found[-2, -2]
        sums = [found[a, -2] for a in range(self.m)]
        squares = [2 * found[a, a] - rows for a in self.numbers]
        products_ = [found[a, b] for a, b in self.pairs]
        response = [found[a, -1] for a in range(self.m)] + [found[-2, -1]]
        rest = 2 * found[-1, -1] - rows
        last = [rows] if self.counted else []
        return [int(v) for v in (*sums, *squares, *products_, *response, rest, *last)]

    @cached_property
    def _map(self) -> tuple[Ints, Ints, Ints, Floats, Floats]:
        """X'X as a linear map of entries (row, column, entry, weight), plus a multiple of n."""
        m, rows = self.m, []
        of_n = np.zeros((m + 1, m + 1))
        of_n[m, m] = 1
        rows += [(a, m, a, 1.0) for a in range(m)]
        for t, a in enumerate(self.numbers, start=m):
            rows.append((a, a, t, 0.5))
            of_n[a, a] = 0.5
        for a in set(range(m)) - set(self.numbers):
            of_n[a, a] = 1
        for t, (a, b) in enumerate(self.pairs, start=m + len(self.numbers)):
            rows.append((a, b, t, 1.0))
        for a, b in combinations(range(m), 2):
            if not self._same_feature(a, b):
                continue
            # Two levels, or a number and the indicator of its missing values, are never on
            # together.
            both = [c for c in (a, b) if c not in self.numbers]
            if len(both) == 2:
                rows += [(a, b, a, -1.0), (a, b, b, -1.0)]
                of_n[a, b] = of_n[b, a] = -1
            else:
                (number,) = {a, b} - set(both)
                rows.append((a, b, number, -1.0))
        if self.counted:
            i, j = np.nonzero(np.triu(of_n))
            rows += [(int(a), int(b), self.d - 1, float(of_n[a, b]))
                     for a, b in zip(i, j, strict=True)]  # fmt: skip
            of_n = np.zeros_like(of_n)
        # Both triangles.
        rows += [(b, a, t, w) for a, b, t, w in rows if a != b]
        first, second, entry, weight = (np.array(part) for part in zip(*rows, strict=True)) if (
            rows
        ) else (np.empty(0, dtype=np.int64),) * 4  # fmt: skip
        return first, second, entry, weight.astype(np.float64), of_n

    def moments(self, released: Sequence[int], n: int | None) -> tuple[Floats, Floats, float]:
        """X'X and X'y with the constant last, and y'y, in scaled units.

        ``n`` is the number of rows where that is public: of all rows that count, or an upper bound
        on a released noisy number.
        """
        v = np.array([value / LARGEST for value in released])
        if self.counted and n is not None:
            v[-1] = min(v[-1], n)
        rows = float(v[-1]) if self.counted or n is None else float(n)
        first, second, entry, weight, of_n = self._map
        gram = of_n * rows
        np.add.at(gram, (first, second), weight * v[entry])
        start = self.m + len(self.numbers) + len(self.pairs)
        c = v[start : start + self.m + 1]
        return gram, c, (float(v[start + self.m + 1]) + rows) / 2

    def noise_map(self, theta: Floats) -> Floats:
        """W such that a change z of the entries changes X'y - X'X theta by W z; a row a column."""
        first, second, entry, weight, _ = self._map
        found = np.zeros((self.m + 1, self.d))
        np.add.at(found, (first, entry), -weight * theta[second])
        start = self.m + len(self.numbers) + len(self.pairs)
        found[np.arange(self.m + 1), start + np.arange(self.m + 1)] += 1
        return found

    def noise_of(self, g: Floats, theta: Floats) -> Floats:
        """g'W(theta): the weight of each entry of the noise in g'(X'y - X'X theta)."""
        first, second, entry, weight, _ = self._map
        by_entry = np.bincount(entry, weight * g[first] * theta[second], minlength=self.d)
        found = -by_entry.astype(np.float64)
        start = self.m + len(self.numbers) + len(self.pairs)
        found[start : start + self.m + 1] += g
        return found

    def noise_form(self, covariance: Floats) -> Floats:
        """Q with E |g'W(theta) - E g'W(theta)|^2 = g'Q g, for theta of this covariance."""
        first, second, entry, weight, _ = self._map
        which = csr_array(
            (np.ones(len(entry)), (entry, np.arange(len(entry)))), (self.d, len(entry))
        )
        pairs = (which.T @ which).tocoo()
        r, s = pairs.coords
        found = np.zeros((self.m + 1, self.m + 1))
        moved = weight[r] * weight[s] * covariance[second[r], second[s]]
        np.add.at(found, (first[r], first[s]), moved)
        return found


def products_of(cells: NDArray[np.int16]) -> Ints:
    """The exact sums of products of quantized columns, one a row."""
    total = np.zeros((len(cells), len(cells)), dtype=np.int64)
    for start in range(0, cells.shape[1], _BLOCK):
        part = cells[:, start : start + _BLOCK].astype(np.float64)
        # Exact: every product is below 2^30, and so are sums of a block below 2^53.
        total += (part @ part.T).astype(np.int64)
    return total


def most_entries(columns: int) -> int:
    """The largest number of entries of a model with so many columns, that of rows included."""
    return 3 * columns + columns * (columns - 1) // 2 + 3
