"""Containers: tables of every kind, each with the cells that it can hold.

A container builds a table from rows. Its columns have a *declared* type, which is the same whatever
the rows are, as a table's columns have; types that a library would infer from the cells are given
to it. ``how`` is drawn once a table: chunks, encodings, compression.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gzip
import itertools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import scipy.sparse
from hypothesis import reject
from hypothesis import strategies as st

from support.cells import (
    ANY,
    BYTES,
    FAMILIES,
    FLOATS,
    HASHABLE,
    INTEGERS,
    LONG,
    RECORDS,
    ROWS_OF_ONE,
    TEXTS,
    One,
    is_hashable,
    signalling,
    spelled_out,
)

NAMES = ("a", "b", "y")

#: Data and, if it stands beside them, the response.
Built = tuple[Any, Any]


@dataclass(frozen=True)
class Container:
    """A kind of table."""

    name: str
    row: st.SearchStrategy[Any]
    build: Callable[[Sequence[Any], Any, Path], Built]
    how: st.SearchStrategy[Any] = field(default_factory=lambda: st.just(None))
    #: Whether many equal rows cost little.
    tall: bool = False
    #: A row of missing cells, where it can hold one.
    missing: Any = None
    #: Rows of cells of one kind, for columns that would hold any.
    families: tuple[st.SearchStrategy[Any], ...] = ()

    def __str__(self) -> str:
        return self.name


def cells_of(rows: Sequence[Any], j: int) -> list[Any]:
    return [row[j] for row in rows]


def objects(cells: Sequence[Any]) -> np.ndarray:
    column = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        column[i] = cell
    return column


def three(cell: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(cell, cell, cell)


#: For columns of objects, and of objects that can be keys.
NONE: dict[str, Any] = {
    "missing": (None, None, None),
    "families": tuple(map(three, FAMILIES)),
}
KEYS = NONE | {"families": tuple(three(family.filter(is_hashable)) for family in FAMILIES)}


def nullable(cell: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | cell


# -- lists and arrays --------------------------------------------------------------------------


def listed(rows: Sequence[Any], how: Any, _: Path) -> Built:
    return how(cells_of(rows, 0)), how(cells_of(rows, 1))


def numpy_cells(kind: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if kind.kind == "b":
        return st.booleans()
    if kind.kind in "iu":
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        return st.sampled_from([0, 1, least, most]) | st.integers(int(least), int(most))
    if kind == np.longdouble:
        odd = [np.longdouble(1) / 3, np.finfo(np.longdouble).max, -np.finfo(np.longdouble).max]
        return st.sampled_from(odd) | FLOATS
    if kind.kind == "f":
        values = st.sampled_from([0.0, 1.0, 0.1, -2.0, float("nan"), float("inf")])
        return values | st.just(signalling(kind.type))
    if kind.kind == "S":
        return BYTES.filter(lambda text: len(text) < 9)
    # NumPy's own text ends at a NUL and takes no lone surrogates into StringDType.
    return TEXTS.filter(lambda text: len(text) < 9 and "\ud800" not in text and "\x00" not in text)


def array_of(kind: Any) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, _: Path) -> Built:
        table = np.empty((len(rows), 3), dtype=kind)
        for i, row in enumerate(rows):
            for j in range(3):
                table[i, j] = row[j]
        table = np.asarray(table, order=how[0])
        return table[:, :2], table[:, 2:] if how[1] else table[:, 2]

    return build


def masked(rows: Sequence[Any], how: Any, _: Path) -> Built:
    """Some cells hidden: what is under the mask does not count."""
    cells = np.array([[cell for cell, _ in row] for row in rows], dtype=how)
    mask = np.array([[hidden for _, hidden in row] for row in rows], dtype=bool)
    table = np.ma.array(cells.reshape(-1, 3), mask=mask.reshape(-1, 3))
    return table[:, :2], table[:, 2]


#: Days, or seconds, or whatever a type counts.
COUNTS = st.sampled_from([0, 1, 10957, 946684800, 946684800 * 10**9, 2**52, -(2**52)])
COUNTS |= st.integers(0, 18628)


def stamp(kind: str, count: int) -> np.datetime64:
    unit, multiple = np.datetime_data(kind)
    return np.datetime64("NaT") if count < 0 else np.datetime64(count, (unit, multiple))


def sparse(kind: str) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, _: Path) -> Built:
        table = np.array(rows, dtype=np.float64).reshape(-1, 3)
        x = getattr(scipy.sparse, kind)(table[:, :2].astype(np.float32))
        if how == "f2" and kind != "csr_array":  # SciPy makes no others
            how = "f4"
        x.data = x.data.astype(how)
        return x, table[:, 2]

    return build


LAYOUT = st.tuples(st.sampled_from("CF"), st.booleans())
DTYPES = [
    *map(np.dtype, ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f8",
                    "g", "S8", "U8"]),
    np.dtypes.StringDType(),
]  # fmt: skip

ARRAYS = [
    Container(
        "list", st.tuples(RECORDS, ROWS_OF_ONE), listed, st.sampled_from([list, tuple]),
        missing=((None, None), None),
        families=tuple(st.tuples(st.tuples(cell, cell), wrap(cell)) for cell in FAMILIES
                       for wrap in (lambda cell: cell, lambda cell: st.builds(One, cell))),
    ),
    *(Container(f"numpy {kind}", three(numpy_cells(kind)), array_of(kind), LAYOUT)
      for kind in DTYPES),
    Container("numpy object", three(ANY), array_of(object), LAYOUT, **NONE),
    Container("numpy masked", three(st.tuples(FLOATS, st.booleans())), masked,
              st.sampled_from(["f8", "f4", object, "U8"])),
    Container("numpy complex", three(st.sampled_from([0j, 1j])), array_of(complex), LAYOUT),
    *(Container(f"numpy {kind}", three(COUNTS.map(partial(stamp, kind))), array_of(kind), LAYOUT)
      for kind in ("M8[s]", "M8[ns]", ">M8[D]", "M8[Y]", "M8[25s]")),
    Container("numpy masked date", three(st.tuples(COUNTS, st.booleans())), masked,
              st.just("M8[s]")),
    *(Container(f"scipy {kind}", three(st.sampled_from([0, 1, 0.5, float("nan")])), sparse(kind),
                st.sampled_from(["f8", "f4", "f2", "?", "g"]))
      for kind in ("csr_array", "csc_matrix", "coo_array")),
]  # fmt: skip

# -- Arrow and Parquet -------------------------------------------------------------------------


def decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    digits = st.sampled_from([0, 1, 3, 10 ** max(0, scale), 10**precision - 1, 1 - 10**precision])
    digits |= st.integers(1 - 10**precision, 10**precision - 1)
    exact = decimal.Context(prec=100)
    return nullable(digits.filter(lambda d: abs(d) < 10**precision)
                    .map(lambda d: exact.scaleb(Decimal(d), -scale)))  # fmt: skip


def sane(texts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Text that Arrow can hold as such: no half of a surrogate pair."""
    return nullable(texts.filter(lambda text: "\ud800" not in text))


def whole(least: int, most: int) -> st.SearchStrategy[Any]:
    return nullable(st.sampled_from([0, 1, least, most]) | st.integers(least, most))


ARROW: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.null(): st.none(),
    pa.bool_(): nullable(st.booleans()),
    **{kind: whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
       for bits, kind in zip((8, 16, 32, 64), (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
                             strict=True)},
    **{kind: whole(0, 2**bits - 1)
       for bits, kind in zip((8, 16, 32, 64), (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
                             strict=True)},
    pa.float16(): nullable(st.sampled_from([0.0, 0.5, 0.1, float("nan")]).map(np.float16)),
    pa.float32(): nullable(st.floats(width=32).map(np.float32) | st.just(signalling(np.float32))),
    pa.float64(): nullable(FLOATS),
    pa.decimal32(9, 4): decimals(9, 4),
    pa.decimal64(18, 11): decimals(18, 11),
    pa.decimal128(38, 11): decimals(38, 11),
    pa.decimal128(38, 37): decimals(38, 37),
    pa.decimal128(5, -2): decimals(5, -2),
    pa.decimal128(38, 45): decimals(38, 45),
    pa.decimal256(76, 11): decimals(76, 11),
    **{kind: sane(TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{kind: nullable(BYTES) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    # Refused, by their type, unless they are meant.
    pa.date32(): nullable(st.sampled_from([0, 10957, -(2**31), 2**31 - 1])),
    pa.date64(): nullable(COUNTS.map(lambda count: count % 30_000 * 86_400_000)),
    pa.timestamp("s"): nullable(COUNTS.filter(lambda count: count < 2**53)),
    pa.timestamp("us", "+05:30"): nullable(COUNTS),
    pa.timestamp("ns", "Europe/Berlin"): nullable(COUNTS | st.just(-(2**63))),
    # Refused in any case.
    pa.duration("s"): nullable(st.integers(0, 9)),
    pa.list_(pa.float64()): st.none() | st.just([1.0]),
    pa.struct([("u", pa.float64())]): st.none() | st.just({"u": 1.0}),
    pa.binary(1): st.none() | st.just(b"1"),
}  # fmt: skip

FOLDED = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.float64(),
          pa.decimal128(38, 11), pa.int64(), pa.bool_(), pa.timestamp("s")]  # fmt: skip


def arrow_column(cells: Sequence[Any], kind: pa.DataType, chunk: int) -> pa.ChunkedArray:
    parts = [cells[i : i + chunk] for i in range(0, len(cells), chunk)]
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([folded(part, kind) for part in parts], kind)
    return pa.chunked_array([pa.array(part, kind) for part in parts], kind)


def folded(cells: Sequence[Any], kind: pa.DictionaryType) -> pa.DictionaryArray:
    """Each value once, nulls as nulls."""
    values: dict[Any, int] = {}
    codes = [
        None if cell is None else values.setdefault((type(cell), cell), len(values))
        for cell in cells
    ]
    first = {code: cell for code, cell in zip(codes, cells, strict=True) if code is not None}
    held = pa.array([first[code] for code in range(len(values))], kind.value_type)
    return pa.DictionaryArray.from_arrays(pa.array(codes, kind.index_type), held)


def arrow_table(rows: Sequence[Any], kind: pa.DataType, chunk: int) -> pa.Table:
    return pa.table({name: arrow_column(cells_of(rows, j), kind, chunk)
                     for j, name in enumerate(NAMES)})  # fmt: skip


CHUNKS = st.sampled_from([1, 3, 2**20])


def in_arrow(kind: pa.DataType) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, _: Path) -> Built:
        table = arrow_table(rows, kind, max(how[0], len(rows) // 8))
        if how[1] == "beside":
            return table.select(["a", "b"]), table.column("y")
        if how[1] == "batch":
            return table.combine_chunks().to_batches()[0], None
        return table, None

    return build


def in_parquet(kind: pa.DataType) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, folder: Path) -> Built:
        group, encoding, compression, version = how
        if len(rows) > 2**15:  # what is folded can only be written so
            encoding = None
        options: dict[str, Any] = {"use_dictionary": encoding is None}
        if encoding not in (None, "PLAIN"):
            options["column_encoding"] = dict.fromkeys(NAMES, encoding)
        path = folder / "table.parquet"
        pq.write_table(
            arrow_table(rows, kind, 2**20), path, row_group_size=max(group, len(rows) // 8),
            compression=compression, data_page_version=version, **options,
        )  # fmt: skip
        return path, None

    return build


def encodings(kind: pa.DataType) -> list[str | None]:
    found: list[str | None] = [None, "PLAIN"]
    if pa.types.is_integer(kind) and kind.bit_width >= 32:
        found += ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
    if kind in (pa.float32(), pa.float64()):
        found.append("BYTE_STREAM_SPLIT")
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        found += ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    return found


def dictionaries() -> dict[pa.DataType, st.SearchStrategy[Any]]:
    indices = [pa.int32(), pa.int8(), pa.uint64()]
    return {pa.dictionary(index, kind): ARROW[kind] for kind in FOLDED for index in indices}


def parquet_container(kind: pa.DataType, cells: st.SearchStrategy[Any]) -> Container:
    how = st.tuples(
        st.sampled_from([1, 2, 2**20]), st.sampled_from(encodings(kind)),
        st.sampled_from(["none", "snappy", "gzip", "zstd"]), st.sampled_from(["1.0", "2.0"]),
    )  # fmt: skip
    tall = pa.types.is_dictionary(kind)
    return Container(f"parquet {kind}", three(cells), in_parquet(kind), how, tall)


#: Types that Parquet has no column for.
_NOT_IN_PARQUET = (pa.decimal128(5, -2), pa.decimal128(38, 45), pa.binary(1))

ARROWS = [
    *(Container(f"arrow {kind}", three(cells), in_arrow(kind),
                st.tuples(CHUNKS, st.sampled_from(["table", "beside", "batch"])),
                pa.types.is_dictionary(kind))
      for kind, cells in (ARROW | dictionaries()).items()),
    *(parquet_container(kind, cells) for kind, cells in ARROW.items()
      if kind not in _NOT_IN_PARQUET),
    *(parquet_container(pa.dictionary(pa.int32(), kind), ARROW[kind])
      for kind in (pa.string(), pa.large_string(), pa.binary(), pa.float64())),
]  # fmt: skip

# -- pandas ------------------------------------------------------------------------------------


def in_pandas(dtype: Any) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, _: Path) -> Built:
        columns = {}
        for j, name in enumerate(NAMES):
            cells = cells_of(rows, j)
            if dtype is object:
                columns[name] = pd.Series(objects(cells), dtype=object)
            elif dtype == "category":
                columns[name] = pd.Series(categorical(cells))
            else:
                columns[name] = pd.Series(cells, dtype=dtype)
        frame = pd.DataFrame(columns)
        if not how:
            return frame, None
        y = frame.pop("y")
        return frame, {"series": y, "frame": y.to_frame(), "array": y.array, "index": pd.Index(y)}[
            how
        ]

    return build


def categorical(cells: Sequence[Any]) -> pd.Categorical:
    """With the categories that pandas infers, where it can: these are the cells, not a type."""
    with contextlib.suppress(Exception):  # it has no index of half floats, sorts no huge integers
        return pd.Categorical(objects(cells))
    places: dict[Any, int] = {}
    codes = [-1 if pd.isna(cell) is True else places.setdefault(cell, len(places))
             for cell in cells]  # fmt: skip
    with contextlib.suppress(Exception):
        return pd.Categorical.from_codes(codes, pd.Index(objects(list(places)), dtype=object))
    reject()  # no such column can be had


def from_arrow_types(rows: Sequence[Any], kind: pa.DataType) -> pd.DataFrame:
    return arrow_table(rows, kind, 2**20).to_pandas(types_mapper=pd.ArrowDtype)


def arrow_backed(kind: pa.DataType) -> Callable[[Sequence[Any], Any, Path], Built]:
    return lambda rows, _how, _folder: (from_arrow_types(rows, kind), None)


BESIDE = st.sampled_from([None, "series", "frame", "array", "index"])
PANDAS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("float64", FLOATS), ("float32", FLOATS), ("int64", st.integers(-(2**63), 2**63 - 1)),
    ("uint64", st.integers(0, 2**64 - 1)), ("bool", st.booleans()),
    ("Float64", nullable(FLOATS)), ("Float32", nullable(FLOATS)),
    ("Int64", whole(-(2**63), 2**63 - 1)), ("UInt64", whole(0, 2**64 - 1)), ("Int8", whole(-8, 7)),
    ("boolean", nullable(st.booleans())),
    (pd.StringDtype("python"), sane(TEXTS)), (pd.StringDtype("pyarrow"), sane(TEXTS)),
    (pd.SparseDtype("float64"), FLOATS), (pd.SparseDtype("int64", 0), st.integers(-3, 3)),
    ("datetime64[ns]", st.just(pd.NaT) | st.just(pd.Timestamp(0))),
    ("datetime64[s]", st.sampled_from([pd.NaT, pd.Timestamp(0), pd.Timestamp("2000-02-29 12:00")])),
    ("datetime64[us, Europe/Berlin]", st.sampled_from([pd.NaT, pd.Timestamp(10**18, tz="UTC")])),
    ("complex128", st.sampled_from([0j, 1j])),
]  # fmt: skip

PANDAS_CONTAINERS = [
    Container("pandas object", three(ANY), in_pandas(object), BESIDE, **NONE),
    Container("pandas category", three(HASHABLE), in_pandas("category"), BESIDE, True, **KEYS),
    *(Container(f"pandas {dtype!r}", three(cells), in_pandas(dtype), BESIDE)
      for dtype, cells in PANDAS),
    *(Container(f"pandas arrow {kind}", three(ARROW[kind]), arrow_backed(kind))
      for kind in (pa.int64(), pa.float32(), pa.bool_(), pa.decimal128(38, 11), pa.string(),
                   pa.large_string(), pa.binary(), pa.null(), pa.date32(),
                   pa.timestamp("us", "+05:30"))),
    *(Container(f"pandas arrow {kind}", three(cells), arrow_backed(kind))
      for kind, cells in dictionaries().items() if kind.index_type == pa.int32()
      and kind.value_type in (pa.string(), pa.decimal128(38, 11))),
]  # fmt: skip

# -- polars ------------------------------------------------------------------------------------


def in_polars(dtype: Any) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, folder: Path) -> Built:
        frame = pl.DataFrame([pl.Series(name, cells_of(rows, j), dtype=dtype, strict=True)
                              for j, name in enumerate(NAMES)])  # fmt: skip
        if how == "beside":
            return frame.select("a", "b"), frame["y"]
        if how == "scan":
            frame.write_parquet(folder / "table.parquet")
            return pl.scan_parquet(folder / "table.parquet").select("y", "b", "a"), None
        return {
            "eager": lambda: frame,
            "lazy": lambda: frame.lazy().select("y", "b", "a"),
            "strict": lambda: frame.lazy().with_columns(pl.col("a").cast(pl.Float64)),
            "filter": lambda: frame.lazy().filter(pl.col("a").cast(pl.Float64, strict=True) > 0),
        }[how](), None

    return build


COLLECTED = ("eager", "beside")
#: Those that are lazy are refused.
LAZY = (*COLLECTED, *COLLECTED, *COLLECTED, "lazy", "strict", "filter")
SCANNED = (*LAZY, "scan")
POLARS: list[tuple[Any, st.SearchStrategy[Any], tuple[str, ...]]] = [
    (pl.Null, st.none(), LAZY),
    (pl.Boolean, nullable(st.booleans()), SCANNED),
    (pl.Int8, whole(-128, 127), SCANNED), (pl.Int64, whole(-(2**63), 2**63 - 1), SCANNED),
    (pl.UInt64, whole(0, 2**64 - 1), SCANNED), (pl.Int128, whole(-(2**127), 2**127 - 1), LAZY),
    (pl.Float32, nullable(FLOATS), SCANNED), (pl.Float64, nullable(FLOATS), SCANNED),
    (pl.Decimal(38, 11), decimals(38, 11), SCANNED), (pl.Decimal(38, 37), decimals(38, 37), LAZY),
    (pl.String, sane(TEXTS), SCANNED), (pl.Binary, nullable(BYTES), SCANNED),
    (pl.Categorical, sane(TEXTS), LAZY),
    (pl.Enum(["0", "1", "yes", "no", LONG]),
     nullable(st.sampled_from(["0", "1", "yes", "no", "<long>"]).map(spelled_out)), LAZY),
    (pl.Date, nullable(st.dates()), SCANNED), (pl.Datetime("us"), nullable(st.datetimes()), LAZY),
    (pl.Datetime("ms", "UTC"), nullable(st.datetimes(timezones=st.just(datetime.UTC))), LAZY),
    (pl.Time, nullable(st.times()), LAZY), (pl.Duration, st.none(), LAZY),
    (pl.List(pl.Float64), st.none() | st.just([1.0]), LAZY),
]  # fmt: skip

POLARS_CONTAINERS = [
    Container(
        "polars Object", three(ANY), in_polars(pl.Object), st.sampled_from(COLLECTED), **NONE
    ),
    *(
        Container(f"polars {dtype}", three(cells), in_polars(dtype), st.sampled_from(hows))
        for dtype, cells, hows in POLARS
    ),
]

# -- text files --------------------------------------------------------------------------------


def field_of(cell: bytes, quoted: bool) -> bytes:
    return b'"' + cell.replace(b'"', b'""') + b'"' if quoted else cell


TEXT_CELLS = st.one_of(
    TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")), BYTES,
    INTEGERS.map(lambda number: str(number).encode()), st.floats(-5, 5).map(lambda v: b"%g" % v),
)  # fmt: skip
FIELDS = st.builds(field_of, TEXT_CELLS, st.booleans())
#: A line is a record, so none holds a newline; a blank one is no record.
LINES = (
    st.one_of(
        three(FIELDS).map(b",".join), three(FIELDS).map(b"\t".join), FIELDS, st.binary(max_size=12),
        st.lists(FIELDS, max_size=5).map(b",".join),
    )
    .map(lambda line: line.replace(b"\n", b" "))
    .filter(lambda line: line.strip(b"\r"))
)  # fmt: skip


def in_text(suffix: str) -> Callable[[Sequence[Any], Any, Path], Built]:
    def build(rows: Sequence[Any], how: Any, folder: Path) -> Built:
        end, last, blank = how
        header = (b"\t" if suffix.startswith("tsv") else b",").join(map(str.encode, NAMES))
        text = (end + blank).join([header, *rows]) + (end if last else b"")
        path = folder / f"table.{suffix}"
        path.write_bytes(gzip.compress(text, 1) if suffix.endswith("gz") else text)
        return path, None

    return build


ENDS = st.tuples(
    st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.sampled_from([b"", b"\n", b"\r\n"])
)
TEXT_CONTAINERS = [
    Container(suffix, LINES, in_text(suffix), ENDS) for suffix in ("csv", "csv.gz", "tsv")
]

# -- tables of several files -------------------------------------------------------------------


def in_parts(
    build: Callable[[Sequence[Any], int, Path], Path], table: Callable[[list[Path], Path], Any]
) -> Callable[[Sequence[Any], Any, Path], Built]:
    """Cut the rows into as many files as drawn, some of them empty; ``table`` names these files."""

    def built(rows: Sequence[Any], how: Any, folder: Path) -> Built:
        inner = folder / "parts"
        shutil.rmtree(inner, ignore_errors=True)
        cuts = [len(rows) * place // how for place in range(how + 1)]
        paths = []
        for place, (start, stop) in enumerate(itertools.pairwise(cuts)):
            (inner / f"{place}").mkdir(parents=True)
            made = build(rows[start:stop], place, inner / f"{place}")
            paths.append(made.rename(inner / f"{place}{''.join(made.suffixes)}"))
            (inner / f"{place}").rmdir()
        return table(paths, inner), None

    return built


def text_part(rows: Sequence[Any], _: int, folder: Path) -> Path:
    return in_text("csv")(rows, (b"\n", True, b""), folder)[0]


def parquet_part(*kinds: pa.DataType) -> Callable[[Sequence[Any], int, Path], Path]:
    """Files whose columns have one of these types each, in turn, and one of two orders."""

    def build(rows: Sequence[Any], place: int, folder: Path) -> Path:
        table = arrow_table(rows, kinds[place % len(kinds)], 2**20)
        path = folder / "table.parquet"
        pq.write_table(table.select(NAMES[:: 1 - 2 * (place % 2)]), path)
        return path

    return build


def as_dataset(_: list[Path], folder: Path) -> Any:
    return pyarrow.dataset.dataset(folder)


PART_COUNTS = st.integers(1, 3)
PARTS_CONTAINERS = [
    Container("csv files", LINES, in_parts(text_part, lambda paths, _: paths), PART_COUNTS),
    Container(
        "parquet folder", three(sane(TEXTS)),
        in_parts(parquet_part(pa.string(), pa.dictionary(pa.int32(), pa.large_string())),
                 lambda _, folder: folder),
        PART_COUNTS,
    ),
    Container(
        "parquet pattern", three(nullable(FLOATS)),
        in_parts(parquet_part(pa.float64()), lambda _, folder: f"{folder}/*.parquet"), PART_COUNTS,
    ),
    Container("dataset", three(sane(TEXTS)), in_parts(parquet_part(pa.string()), as_dataset),
              PART_COUNTS),
    Container("dataset in memory", three(sane(TEXTS)),
              lambda rows, _how, _folder: (
                  pyarrow.dataset.dataset(arrow_table(rows, pa.string(), 2)), None)),
]  # fmt: skip

CONTAINERS = [
    *ARRAYS, *ARROWS, *PANDAS_CONTAINERS, *POLARS_CONTAINERS, *TEXT_CONTAINERS, *PARTS_CONTAINERS
]  # fmt: skip
