"""Moments: X'X, X'y, y'y and n of quantized records, as exact integers.

A quantized entry is an integer of at most 15 bits and a sign, so the float64 matrix product of up
to 2**22 records is exact (every partial sum is an integer below 2**53). Blocks are added as int64.
The result has the same bytes for any batch size, row order and number of threads, and moments of
parts of a table merge into those of the whole.

A model with an intercept has one more column, which is equal in all records that count (records
without a readable response are 0 in every column). Its products are the sums of the other columns,
and its square is the number of records that count. Stored moments have a column of ones, from which
the products with any intercept follow.

A record that is counted twice would move the scores twice as far as the guarantee allows. Sums do
not show which records they contain, so every reading of a table has a random number, moments keep
those of all their readings, and moments with a reading in common are not merged.

Moments are *private data*: they contain no noise.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from ..base.errors import ArgumentError, TableError
from ..base.kernels.compiled import kernel
from ..base.validation import check_int
from ..schema.schema import Schema
from .quantize import STEPS, Quantizer

#: Number of records whose products are summed in float64 before they are added to int64: 2**22
#: products of two 15-bit integers stay within 2**52.
_EXACT_ROWS = 2**22

#: Bytes of the random number of a reading.
_PART_BYTES = 16

#: Version of the files that `Moments.save` writes. Earlier files have neither version nor parts.
_FILE_VERSION = 2

#: Entries of the moments are at most n * 2**30; int64 holds them below this many records.
LARGEST_N = 2**33 - 1

#: Up to this width the exact test of semidefiniteness takes about a second.
_EXACT_WIDTH = 160

#: Size of the float64 work block, in bytes: large enough for a fast matrix product.
_WORK_BYTES = 2**26

#: Values of features (rows, features) and response (rows,): real numbers or positions of levels,
#: NaN for cells that are missing or unreadable.
Block = tuple[NDArray[Any], NDArray[Any]]


class Moments:
    """Sufficient statistics of a table for least squares, exact and mergeable.

    Attributes
    ----------
    products : int64 array, square
        Sums of products of the quantized columns: p of the model, the constant if there is one, and
        the response. In scaled units [-1, 1] they are ``products / STEPS**2``.
    n : int
        Number of records, including those that do not count. Private under add-remove.
    fingerprint : str
        Identifies the schema, see `Quantizer.fingerprint`.
    constant : int
        Value of the column before the response in every record that counts, in steps; 0 if there is
        no such column.
    parts : frozenset of bytes
        The readings whose records are in the sums: random numbers of 128 bits. Copies and files
        keep them. A table that is read twice has two of them, so moments that are merged twice are
        detected, and records that are read twice are not.
    """

    def __init__(
        self,
        products: NDArray[np.int64],
        n: int,
        fingerprint: str,
        constant: int = 0,
        parts: frozenset[bytes] | None = None,
    ) -> None:
        self.products = products
        self.n = n
        self.fingerprint = fingerprint
        self.constant = constant
        self.parts = frozenset({os.urandom(_PART_BYTES)}) if parts is None else parts

    @classmethod
    def from_blocks(
        cls,
        schema: Schema,
        blocks: Iterable[Block],
        constant: int = 1,
        images: NDArray[np.int16] | None = None,
    ) -> Moments:
        """Quantize blocks of raw values and add up their products.

        Each block is a pair of NumPy arrays of numbers, NaN for bad cells: x of shape (rows,
        features), columns in the order of the schema, and y of shape (rows,). With the constant 1
        the sums serve models with and without an intercept. ``images`` maps the response, see
        `Quantizer`.
        """
        total = Accumulator(Quantizer(schema, constant, images))
        for block in blocks:
            total.add(*checked_block(block, len(schema.features)))
        return total.moments()

    @property
    def counted(self) -> int | None:
        """Number of records that count; None without a constant column. Always private."""
        return int(self.products[-2, -2]) // self.constant**2 if self.constant else None

    @property
    def p(self) -> int:
        """Number of columns of the model, without an intercept."""
        return int(self.products.shape[0]) - 1 - (self.constant != 0)

    def checked(self) -> Moments:
        """Return these moments, checked; an error if no table can have them.

        For moments from a file or a caller. Whether there is an error depends on private values,
        but moments of a table never cause one.
        """
        products, n = self.products, self.n
        if (
            type(products) is not np.ndarray
            or products.dtype != np.int64
            or products.ndim != 2
            or not products.shape[0] == products.shape[1]
            or not isinstance(self.fingerprint, str)
        ):
            raise TableError("these are no moments: products must be a square matrix of int64")
        n = check_int(n, "n of moments")
        if not 0 <= n <= LARGEST_N:
            raise TableError(f"moments must have n between 0 and {LARGEST_N}")
        constant = check_int(self.constant, "constant of moments")
        if not (0 <= constant <= STEPS and products.shape[0] >= 2 + (constant != 0)):
            raise TableError("these moments lack the constant column that they declare")
        if type(self.parts) is not frozenset or not all(map(_is_part, self.parts)):
            raise TableError("these moments do not say which readings they are made of")
        if not _is_possible(products, n, constant):
            raise TableError(
                "no table has such moments: they were damaged, or not made by dpsubset"
            )
        return Moments(np.ascontiguousarray(products), n, self.fingerprint, constant, self.parts)

    def merge(self, other: Moments) -> Moments:
        """Moments of the two tables stacked; commutative, associative, exact.

        ``a + b`` and ``sum(several)`` are equivalent. The tables must have no record in common: it
        would count twice, and the guarantee would not hold. Moments that were merged before, or
        come from the same file, are refused. A table that was read twice is not detected.
        """
        if not isinstance(other, Moments):
            raise ArgumentError("moments can only be merged with moments")
        if self.fingerprint != other.fingerprint or self.p != other.p:
            raise ArgumentError("these moments come from different schemas and cannot be merged")
        if self.constant != other.constant:
            raise ArgumentError(
                "these moments differ in the sums that an intercept needs: make them again, all "
                "with the same version of dpsubset"
            )
        if not self.parts.isdisjoint(other.parts):
            raise ArgumentError(
                "these moments have records in common, which would count twice, and the guarantee "
                "would not hold. Merge moments of different records, each of them once"
            )
        check_n(self.n + other.n)
        return Moments(
            self.products + other.products,
            self.n + other.n,
            self.fingerprint,
            self.constant,
            self.parts | other.parts,
        )

    __add__ = merge

    def __radd__(self, other: int) -> Moments:
        """Support ``sum``, which starts from 0."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Whether the sums are equal. Readings are not compared."""
        return (
            isinstance(other, Moments)
            and self.n == other.n
            and self.fingerprint == other.fingerprint
            and self.constant == other.constant
            and np.array_equal(self.products, other.products)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Moments(p={self.p}, private values hidden)"

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file that its owner alone can read. The file is as sensitive as the
        table itself.
        """
        parts = np.frombuffer(b"".join(sorted(self.parts)), dtype=np.uint8)
        with open(path, "wb", opener=_for_owner) as file:
            np.savez(
                file,
                version=np.int64(_FILE_VERSION),
                parts=parts.reshape(-1, _PART_BYTES),
                products=self.products,
                n=np.int64(self.n),
                fingerprint=np.array(self.fingerprint),
                constant=np.int64(self.constant),
            )

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """Read what :meth:`save` wrote.

        Files of earlier versions do not list readings: their content stands for one, so that such a
        file is not merged with itself.
        """
        with suppress(OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile):
            with np.load(path, allow_pickle=False) as file:
                products, n, fingerprint = file["products"], file["n"], file["fingerprint"]
                # Files of earlier versions have no such column.
                constant = file["constant"] if "constant" in file else np.array(0, dtype=np.int64)
                version = int(file["version"]) if "version" in file else None
                listed = None if version is None else file["parts"]
            known = version in (None, _FILE_VERSION)
            # Exactly the types that `save` writes: an n of 2.5 is not 2.
            kinds = n.dtype == constant.dtype == np.int64 and fingerprint.dtype.kind == "U"
            if known and kinds and n.ndim == constant.ndim == fingerprint.ndim == 0:
                found = cls(products, int(n), str(fingerprint), int(constant)).checked()
                found.parts = found._content() if listed is None else _parts_of_file(listed)
                return found
        raise TableError(f"{Path(path).name} is not a file of moments that this version can read")

    def _content(self) -> frozenset[bytes]:
        """One part, shared by equal sums; none if there is no record."""
        if not self.n:
            return frozenset()
        facts = f"{self.n} {self.constant} {self.fingerprint}"
        text = self.products.astype("<i8").tobytes() + facts.encode()
        return frozenset({hashlib.sha256(text).digest()[:_PART_BYTES]})


def checked_block(block: Any, features: int) -> Block:
    """Return a block if it is a pair of arrays of numbers with so many features, else an error.

    Only types and shapes are checked. The quantizer's kernels do not check bounds.
    """
    if not isinstance(block, (tuple, list)) or len(block) != 2:
        raise ArgumentError("each block must be a pair (x, y) of NumPy arrays")
    for name, values in zip("xy", block, strict=True):
        kind = type(values)
        if not issubclass(kind, np.ndarray) or issubclass(kind, np.ma.MaskedArray):
            raise ArgumentError(
                f"{name} of a block must be a NumPy array, but is of type {kind.__name__}: convert "
                "it first, with to_numpy() of a frame, numpy.asarray of a list, or filled(nan) of "
                "a masked array"
            )
        if values.dtype.kind not in "biuf":
            raise ArgumentError(
                f"{name} of a block must hold numbers, but holds {values.dtype.name}: convert it "
                "first, with astype(float), a level of a category being its position"
            )
    x, y = block
    if x.ndim != 2 or x.shape[1] != features:
        raise ArgumentError(
            f"x of a block must have two dimensions and {features} columns, one for each feature "
            "of the schema, in its order"
        )
    if y.ndim != 1 or len(y) != len(x):
        raise ArgumentError("y of a block must have one dimension and an entry for each row of x")
    return x, y


def _for_owner(path: str, flags: int) -> int:
    """Open a file that other users cannot read, from its first byte on."""
    found = os.open(path, flags, 0o600)
    if hasattr(os, "fchmod"):  # an existing file keeps its rights otherwise
        os.fchmod(found, 0o600)
    return found


def _is_part(part: object) -> bool:
    return type(part) is bytes and len(part) == _PART_BYTES


def _parts_of_file(parts: NDArray[np.uint8]) -> frozenset[bytes]:
    """The parts of a file, or an error if it lists something else."""
    if parts.dtype != np.uint8 or parts.ndim != 2 or parts.shape[1] != _PART_BYTES:
        raise ValueError("parts must be rows of bytes")
    return frozenset(row.tobytes() for row in parts)


class Accumulator:
    """Running sum of products over blocks of any size."""

    def __init__(self, quantizer: Quantizer) -> None:
        self._quantizer = quantizer
        width = quantizer.width
        budget = max(_WORK_BYTES, 2 * width * width)
        self._capacity = max(1, min(_EXACT_ROWS, budget // (8 * width), 2**15))
        self._work = np.empty((0, width))
        self._pending = 0  # number of records in the work block
        self._recent = np.zeros((width, width), order="F")  # upper triangle of their products
        self._recent_rows = 0
        self._flushed: NDArray[np.int64] | None = None  # only once n passes _EXACT_ROWS
        self._n = 0

    def add(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        """Add records: x (rows, features), y (rows,), real numbers with NaN for bad cells."""
        start = 0
        while start < x.shape[0]:
            rows = min(x.shape[0] - start, self._capacity - self._pending)
            self._reserve(self._pending + rows)
            out = self._work[self._pending : self._pending + rows]
            part = slice(start, start + rows)
            self._quantizer.records(x[part], y[part], out)
            self._pending += rows
            start += rows
            if self._pending == self._capacity:
                self._multiply()

    def moments(self) -> Moments:
        """The moments of all records. Ends the accumulation."""
        self._multiply()
        if self._flushed is None:
            # In place: the float64 sums become int64 in the same memory, a few rows at a time.
            products = self._recent.T.view(np.int64)
            step = max(1, 2**20 // self._quantizer.width)
            for i in range(0, self._quantizer.width, step):
                products[i : i + step] = self._recent.T[i : i + step]
        else:
            self._flush()
            products = self._flushed
        _mirror(products)
        del self._recent, self._work
        return Moments(products, self._n, self._quantizer.fingerprint, self._quantizer.constant)

    def _reserve(self, rows: int) -> None:
        # Grown on demand: a short table needs a small work block.
        if rows > self._work.shape[0]:
            grown = np.empty((min(self._capacity, max(rows, 2 * self._work.shape[0])),
                              self._quantizer.width))  # fmt: skip
            grown[: self._pending] = self._work[: self._pending]
            self._work = grown

    def _multiply(self) -> None:
        if not self._pending:
            return
        check_n(self._n + self._pending)
        if self._recent_rows + self._pending > _EXACT_ROWS:
            self._flush()
        # The work block is C-ordered, so its transpose is what dsyrk takes without a copy.
        block = self._work[: self._pending].T
        self._recent = dsyrk(1.0, block, beta=1.0, c=self._recent, overwrite_c=1)
        self._recent_rows += self._pending
        self._n += self._pending
        self._pending = 0

    def _flush(self) -> None:
        if self._flushed is None:
            self._flushed = np.zeros(self._recent.shape, dtype=np.int64)
        for row, recent in zip(self._flushed, self._recent.T, strict=True):
            row += recent.astype(np.int64)  # integer addition: the sum may pass 2**53
        self._recent[:] = 0.0
        self._recent_rows = 0


def _is_possible(products: NDArray[np.int64], n: int, constant: int) -> bool:
    """Whether these may be the sums of products of n records. Never false if they are."""
    counted = n
    if constant:
        ones = products[-2].tolist()
        counted, rest = divmod(ones[-2], constant**2)
        if rest or not 0 <= counted <= n or any(v % constant for v in ones):
            return False
    most = counted * STEPS**2
    if products.min() < -most or products.max() > most or not np.array_equal(products, products.T):
        return False
    squares = np.diagonal(products)
    if squares.min() < 0 or products[squares == 0].any():
        return False
    kept = squares > 0
    part = np.ascontiguousarray(products[np.ix_(kept, kept)])
    return len(part) == 0 or _is_semidefinite(part)


def _is_semidefinite(products: NDArray[np.int64]) -> bool:
    """Whether a matrix with a positive diagonal is positive semidefinite.

    Cholesky's factorisation of a matrix with unit diagonal fails only if the smallest eigenvalue is
    below about w (w + 1) u, with the width w and u = 2^-53, and succeeds only if it is above minus
    that (Higham, Accuracy and Stability, Theorem 10.7); scaling costs a few u an entry. Between the
    two the matrix is singular up to rounding, as it is with copies of a column. An exact test in
    integers then decides, up to a width at which it is fast.
    """
    width = len(products)
    factors = 1 / np.sqrt(np.diagonal(products).astype(np.float64))
    unit = products * factors[:, None] * factors[None, :]
    margin = 8 * (width + 2) ** 2 * 2.0**-53
    if _factorises(unit - margin * np.eye(width)):
        return True
    if not _factorises(unit + margin * np.eye(width)):
        return False
    return is_semidefinite(flint.fmpz_mat(products.tolist())) is not False


def is_semidefinite(matrix: flint.fmpz_mat) -> bool | None:
    """Whether a symmetric matrix of integers is positive semidefinite; None if it is too wide."""
    width = matrix.nrows()
    if width > _EXACT_WIDTH:
        return None
    # It has no negative eigenvalue if and only if these signs alternate.
    coefficients = matrix.charpoly().coeffs()
    return all((-1) ** (width - i) * int(c) >= 0 for i, c in enumerate(coefficients))


def _factorises(matrix: NDArray[np.float64]) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def check_n(n: int) -> None:
    """Refuse a table with more records than the integers of the moments can hold."""
    if n > LARGEST_N:
        raise TableError(f"tables of more than {LARGEST_N} rows are not supported")


@kernel
def _mirror(lower: NDArray[np.int64]) -> None:
    """Copy the lower triangle to the upper one, tile by tile."""
    width, tile = lower.shape[0], 64
    for i0 in range(0, width, tile):
        for j0 in range(0, i0 + 1, tile):
            for i in range(i0, min(i0 + tile, width)):
                for j in range(j0, min(j0 + tile, i)):
                    lower[j, i] = lower[i, j]
