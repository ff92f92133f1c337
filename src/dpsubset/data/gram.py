"""GramData: the quantized data of a table, for scorers, bounds and mechanisms.

It provides entries of X'X as exact integers, all at once or on demand. With many variables the
p x p matrix need not exist, since a search uses the columns of a few dozen variables:
`GramData.from_records` keeps the quantized records (two bytes a cell) and computes a column of X'X
when it is first needed. The integers equal those of the moments. Losses that are summed over
records use the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.kernels.compiled import kernel
from ..schema.schema import Schema
from . import products
from .moments import Block, Moments, check_n, checked_block
from .products import Products
from .quantize import Quantizer

#: Columns and rows of the blocks that are multiplied, 4 MB in float64. Products of up to 2**22 rows
#: are exact (see `moments`).
_BLOCK = (64, 8192)

#: Default of `GramData.cache_bytes`.
_CACHE_BYTES = 2**30

Ints = NDArray[np.int64]

_NOTHING: NDArray[np.int16] = np.empty(0, dtype=np.int16)


class GramData:
    """X'X by column, with X'y, y'y, its diagonal and n.

    Attributes
    ----------
    columns, slot : int64 arrays
        Column j of X'X is ``columns[slot[j], :p]``, where slot[j] >= 0.
    diagonal, c : int64 arrays
        The diagonal of X'X, and X'y.
    yy, n : int
        y'y and the number of records.
    records : int16 array of shape (p, n), or empty
        The quantized columns, if X'X is computed on demand.
    response : int16 array of shape (n,), or empty
        The quantized response of these records.
    cache_bytes : int
        Largest size of stored columns, except for columns that are fetched together.
    fingerprint : str
        Identifies the schema, see `Quantizer.fingerprint`.
    """

    def __init__(
        self,
        columns: Ints,
        slot: Ints,
        diagonal: Ints,
        c: Ints,
        yy: int,
        n: int,
        records: NDArray[np.int16],
        fingerprint: str,
        response: NDArray[np.int16] = _NOTHING,
    ) -> None:
        self.columns, self.slot, self.diagonal, self.c = columns, slot, diagonal, c
        self.yy, self.n, self.records, self.fingerprint = yy, n, records, fingerprint
        self.response = response
        self.cache_bytes = _CACHE_BYTES
        #: Whether every column is stored.
        self.whole = bool((slot >= 0).all())
        self.p = len(c)

    @property
    def products(self) -> Products:
        """The arrays for compiled code."""
        return Products(self.columns, self.slot, self.diagonal, self.records)

    def block(self, features: Ints) -> Ints:
        """X'X on some features."""
        return products.block(self.products, features)

    def product_rows(self, features: Ints | Sequence[int] | slice = slice(None)) -> Ints:
        """Rows of X'X of stored features, by default of all features."""
        return self.columns[self.slot[features], : self.p]

    def __repr__(self) -> str:
        return f"GramData(p={self.p}, private values hidden)"

    @classmethod
    def from_moments(cls, moments: Moments, constant: int = 0) -> GramData:
        """Store all of X'X; with an intercept of value ``constant``, unless that is 0."""
        products = with_constant(moments, constant)
        p = moments.p + (constant != 0)
        return cls(
            columns=products,
            slot=np.arange(p),
            diagonal=np.ascontiguousarray(np.diagonal(products)[:p]),
            c=np.ascontiguousarray(products[:p, -1]),
            yy=int(products[-1, -1]),
            n=moments.n,
            records=np.empty((0, 0), dtype=np.int16),
            fingerprint=moments.fingerprint,
        )

    @classmethod
    def of(cls, data: Moments | GramData, constant: int) -> GramData:
        """Moments with an intercept of this value; an object of this class unchanged."""
        return cls.from_moments(data, constant) if isinstance(data, Moments) else data

    @classmethod
    def from_records(
        cls,
        schema: Schema,
        blocks: Iterable[Block],
        constant: int = 0,
        images: NDArray[np.int16] | None = None,
    ) -> GramData:
        """Keep the quantized records and compute columns of X'X on demand.

        ``constant`` is the value of the intercept, 0 for none; ``images`` maps the response (see
        `Quantizer`).
        """
        quantizer = Quantizer(schema, constant, images)
        parts = [np.empty((quantizer.width, 0), dtype=np.int16)]
        for block in blocks:
            x, y = checked_block(block, len(schema.features))
            part = np.empty((quantizer.width, x.shape[0]), dtype=np.int16)
            quantizer.records(x, y, part.T)
            parts.append(part)
        cells = np.concatenate(parts, axis=1)
        del parts
        return cls.of_cells(cells, quantizer.fingerprint)

    @classmethod
    def of_cells(cls, cells: NDArray[np.int16], fingerprint: str) -> GramData:
        """From quantized columns, the response last."""
        n = cells.shape[1]
        check_n(n)
        records = cells[:-1]
        diagonal = np.empty(len(records), dtype=np.int64)
        c = np.empty(len(records), dtype=np.int64)
        yy = _against_response(records, cells[-1], c, diagonal)
        return cls(
            columns=np.empty((0, len(records)), dtype=np.int64),
            slot=np.full(len(records), -1, dtype=np.int64),
            diagonal=diagonal,
            c=c,
            yy=int(yy),
            n=n,
            records=records,
            fingerprint=fingerprint,
            response=cells[-1],
        )

    def fetch(self, features: Sequence[int]) -> None:
        """Store the columns of these features."""
        missing = sorted({int(j) for j in features if self.slot[j] < 0})
        if not missing:
            return
        used = int(self.slot.max()) + 1
        if (used + len(missing)) * self.p * 8 > self.cache_bytes:
            # All columns are dropped: those still in use are computed again in a few batches.
            self.slot[:] = -1
            used = 0
            missing = sorted({int(j) for j in features})
        stored = np.flatnonzero(self.slot >= 0)
        if len(stored) + len(missing) < self.p:
            fresh = _rows_of_products(self.records, missing)
        else:
            # All columns are wanted: the rest follows from the stored ones by symmetry.
            fresh = np.empty((len(missing), self.p), dtype=np.int64)
            fresh[:, stored] = self.columns[np.ix_(self.slot[stored], np.array(missing))].T
            fresh[:, missing] = _products_among(self.records, missing)
        if used + len(missing) > len(self.columns):
            # Doubling keeps the cost of copying proportional to the number of columns.
            grown = np.empty((max(2 * used, used + len(missing)), self.p), dtype=np.int64)
            grown[:used] = self.columns[:used]
            self.columns = grown
        self.columns[used : used + len(missing)] = fresh
        self.slot[missing] = np.arange(used, used + len(missing))


def with_constant(moments: Moments, constant: int) -> Ints:
    """The products with ``constant`` in the column before the response.

    With the constant 0 the column is unused, and left unchanged.
    """
    products, held = moments.products, moments.constant
    if constant in (0, held):
        return products
    if not held or constant % held:
        raise ArgumentError(
            "these moments were made without the sums that an intercept needs: make them again "
            "from the table, or pass intercept=False"
        )
    # Entries stay within n * STEPS^2, as those of any column.
    products = products.copy()
    products[-2] *= constant // held
    products[:, -2] *= constant // held
    return products


def _rows_of_products(records: NDArray[np.int16], features: Sequence[int]) -> Ints:
    """Rows of X'X as exact integers, by exact products in float64.

    Blocks of records are small enough to stay in the cache between conversion and product.
    """
    p, n = records.shape
    found = np.zeros((len(features), p), dtype=np.int64)
    work = np.empty((_BLOCK[0], min(n, _BLOCK[1])))
    for first in range(0, n, _BLOCK[1]):
        part = slice(first, min(first + _BLOCK[1], n))
        right = np.ascontiguousarray(records[features, part].T, dtype=np.float64)
        for start in range(0, p, _BLOCK[0]):
            block = records[start : start + _BLOCK[0], part]
            left = work[: len(block), : block.shape[1]]
            np.copyto(left, block)
            found[:, start : start + len(block)] += (left @ right).T.astype(np.int64)
    return found


def _products_among(records: NDArray[np.int16], features: Sequence[int]) -> Ints:
    """X'X on these features, exact. BLAS computes half of a product of a matrix with itself."""
    n = records.shape[1]
    found = np.zeros((len(features), len(features)), dtype=np.int64)
    for first in range(0, n, _BLOCK[1]):
        part = records[features, first : first + _BLOCK[1]].astype(np.float64)
        found += (part @ part.T).astype(np.int64)
    return found


@kernel
def _against_response(
    records: NDArray[np.int16], response: NDArray[np.int16], c: Ints, diagonal: Ints
) -> np.int64:
    """X'y and the diagonal of X'X in place; returns y'y."""
    for j in range(records.shape[0]):
        product, square = np.int64(0), np.int64(0)
        for i in range(records.shape[1]):
            x = np.int64(records[j, i])
            product += x * np.int64(response[i])
            square += x * x
        c[j], diagonal[j] = product, square
    total = np.int64(0)
    for i in range(response.shape[0]):
        total += np.int64(response[i]) * np.int64(response[i])
    return total
