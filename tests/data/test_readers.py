"""Sources: one table in any clothes gives the same moments, and no cell can raise an error."""

from __future__ import annotations

import array
import contextlib
import csv
import datetime
import decimal
import fractions
import gzip
import io
import math
import re
import tracemalloc
import warnings
from collections import UserList
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset import Moments, Schema, TableError
from dpsubset.data.gram import GramData
from dpsubset.data.readers import open_table
from dpsubset.data.readers.arrow import from_arrow
from dpsubset.data.readers.cells import from_objects
from dpsubset.data.readers.delimited import DelimitedTable
from dpsubset.data.readers.files import header

SCHEMA = Schema.from_bounds({"a": (-5, 5), "b": (0, 9), "c": (-1, 1)}, ("y", -2, 2))
FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


def moments(data: Any, y: Any = None, schema: Schema = SCHEMA) -> tuple[bytes, int]:
    m = Moments.from_blocks(schema, open_table(data, schema, y).blocks())
    return m.products.tobytes(), m.n


# -- the same table in all clothes ------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns of floats, integers, booleans and text, with missing cells in all of them."""
    n = draw(st.integers(0, 12))

    def column(cells: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(st.none() | cells, min_size=n, max_size=n))

    return {
        "a": column(FLOATS),
        "b": column(st.integers(-(2**62), 2**62)),
        "y": column(st.booleans()),
        "other": column(st.text("xyz", max_size=3)),  # in the table, not in the schema
        "c": column(st.sampled_from(["0.5", "-1e-3", " +.25", "word", "nan", "", "1e999", "1,5"])),
    }


KINDS = {
    "a": pa.float64(), "b": pa.int64(), "y": pa.bool_(), "other": pa.string(), "c": pa.string()
}  # fmt: skip


def arrow(table: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(cells, KINDS[name]) for name, cells in table.items()})


def text(table: dict[str, list[Any]], delimiter: str, path: Path) -> Path:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        # A boolean is 0 or 1 in text; repr keeps every bit of a float.
        cells = [int(c) if isinstance(c, bool) else c for c in row]
        writer.writerow([repr(c) if isinstance(c, float) else c for c in cells])
    data = buffer.getvalue().encode()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix in (".bz2", ".zst"):
        kind = {".bz2": "bz2", ".zst": "zstd"}[path.suffix]
        with pa.CompressedOutputStream(str(path), kind) as out:
            out.write(data)
    else:
        path.write_bytes(data)
    return path


def parquet(table: dict[str, list[Any]], path: Path) -> Path:
    pq.write_table(arrow(table), path, row_group_size=5)
    return path


CLOTHES: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "pyarrow": lambda t, d: arrow(t),
    "pyarrow chunks": lambda t, d: pa.concat_tables([arrow(t)[:3], arrow(t)[3:]]),
    "pyarrow dictionary": lambda t, d: arrow(t).set_column(
        4, "c", arrow(t)["c"].combine_chunks().dictionary_encode()
    ),
    "pandas": lambda t, d: arrow(t).to_pandas(),
    "pandas objects": lambda t, d: pd.DataFrame(t, dtype=object),
    "pandas nullable": lambda t, d: pd.DataFrame(
        {
            "a": pd.array(t["a"], dtype="Float64"),
            "b": pd.array(t["b"], dtype="Int64"),
            "y": pd.array(t["y"], dtype="boolean"),
            "c": pd.Categorical(t["c"]),
        }
    ),
    "polars": lambda t, d: pl.from_arrow(arrow(t)),
    "csv": lambda t, d: text(t, ",", d / "t.csv"),
    "csv path as text": lambda t, d: str(text(t, ",", d / "t.csv")),
    "tsv": lambda t, d: text(t, "\t", d / "t.tsv"),
    "csv gz": lambda t, d: text(t, ",", d / "t.csv.gz"),
    "csv bz2": lambda t, d: text(t, ",", d / "t.CSV.bz2"),
    "tsv zst": lambda t, d: text(t, "\t", d / "t.tsv.zst"),
    "parquet": lambda t, d: parquet(t, d / "t.parquet"),
}


@given(tables())
def test_the_same_table_in_any_clothes(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[Any]]
) -> None:
    cells = np.array([table[name] for name in ("a", "b", "c")], dtype=object).T.reshape(-1, 3)
    wanted = moments(cells, np.array(table["y"], dtype=object))
    assert wanted[1] == len(table["y"])
    for name, clothe in CLOTHES.items():
        assert moments(clothe(table, tmp_path_factory.getbasetemp())) == wanted, name


def test_the_order_of_a_tables_columns_does_not_matter_to_names(tmp_path: Path) -> None:
    table = {"y": [1.0], "c": ["0.5"], "other": ["x"], "b": [3], "a": [2.0]}
    wanted = moments(np.array([[2.0, 3.0, 0.5]]), np.array([1.0]))
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        assert moments(frame) == wanted
    assert moments(text(table, ",", tmp_path / "t.csv")) == wanted


def test_a_response_beside_a_frame() -> None:
    x = {"a": [1.0, 2.0], "b": [3, 4], "c": [0.0, 1.0]}
    wanted = moments(np.array([x["a"], x["b"], x["c"]]).T, np.array([1.0, -1.0]))
    for frame in (pd.DataFrame(x), pl.DataFrame(x), pa.table(x)):
        for y in ([1.0, -1.0], np.array([1, -1]), np.array([[1.0], [-1.0]]), pd.Series([1, -1]),
                  pl.Series([1.0, -1.0]), pd.DataFrame({"y": [1, -1]}), ["1", "-1"]):  # fmt: skip
            assert moments(frame, y) == wanted


def test_tables_longer_than_a_batch(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, size=(150_001, 4))
    frame = pd.DataFrame(values, columns=["a", "b", "c", "y"])
    wanted = moments(values[:, :3], values[:, 3])
    assert wanted[1] == 150_001
    assert moments(frame) == wanted
    assert moments(pl.from_pandas(frame)) == wanted
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert moments(tmp_path / "t.csv") == wanted
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=70_000)
    assert moments(tmp_path / "t.parquet") == wanted


# -- arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [["1", "2", "x"], [b"1", b"2", b"x"]])
def test_arrays_of_text_are_read_cell_by_cell(cells: list[Any]) -> None:
    wanted = moments(np.array([[1.0, 2.0, math.nan]]), np.array([0.0]))
    assert moments(np.array([cells]), np.array([0.0])) == wanted
    assert moments([cells], [0.0]) == wanted
    assert moments(np.array([cells], dtype=object), np.array(["0"])) == wanted


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros(3), np.zeros(3)),
        (np.zeros((2, 3, 1)), np.zeros(2)),
        (np.zeros((2, 4)), np.zeros(2)),
        (np.zeros((2, 3)), np.zeros(3)),
        (np.zeros((2, 3)), np.zeros((2, 2))),
        (np.zeros((2, 3)), None),
        (np.zeros((2, 3), dtype=complex), np.zeros(2)),
        (np.zeros((2, 3), dtype="M8[s]"), np.zeros(2)),
        (np.zeros((2, 3)), np.zeros(2, dtype="m8[s]")),
        (np.zeros((2, 3)), "12"),
        (np.zeros((2, 3)), pd.MultiIndex.from_tuples([(1, 2), (3, 4)])),
        ({(1, 2, 3)}, [1]),
        (3, [1]),
        (None, None),
    ],
)
def test_arrays_of_the_wrong_shape_or_type_are_refused(x: Any, y: Any) -> None:
    with pytest.raises(TableError):
        open_table(x, SCHEMA, y)


BAD = [math.nan] * 3
Pair = NamedTuple("Pair", [("u", float), ("v", float)])  # noqa: UP014
One = NamedTuple("One", [("u", Any)])  # noqa: UP014


class Stubborn(list[float]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")

    __len__ = __getitem__ = __iter__


@pytest.mark.parametrize(
    ("record", "values"),
    [
        ([1, 2], BAD), ([1, 2, 0.5, 4], BAD), ([], BAD), (5.0, BAD), (None, BAD), ("123", BAD),
        (b"123", BAD), ({"a": 1}, [1, math.nan, math.nan]), ({}, BAD), (Pair(1, 2), BAD),
        (np.ma.masked, BAD), (1j, BAD),
        (np.zeros((1, 3)), BAD), (np.float64(3), BAD), (object(), BAD), ([[1], 2, 0.5],
        [math.nan, 2, 0.5]), ((1, 2, 0.5), [1, 2, 0.5]), (range(3), [0, 1, 2]),
        (np.array([1, 2, 0.5]), [1, 2, 0.5]), (np.array(["1", "x", "0.5"]), [1, math.nan, 0.5]),
        (np.ma.array([1, 2, 0.5], mask=[0, 1, 0]), [1, math.nan, 0.5]),
        (pd.Series([1, "2", 0.5]), [1, 2, 0.5]), (Stubborn([1, 2, 0.5]), [1, 2, 0.5]),
        (["1", np.ma.masked, np.float16(0.5)], [1, math.nan, 0.5]), ([1j, 10**400, 0.5],
        [math.nan, math.inf, 0.5]), ({"c": 0.5, "id": 7, "b": "2", 3: 4}, [math.nan, 2, 0.5]),
    ],
)  # fmt: skip
def test_records_of_a_list_are_read_each_by_itself(record: Any, values: list[float]) -> None:
    """A record of another length is one of bad cells, whatever stands beside it."""
    wanted = moments(np.array([[1.0, 2.0, 0.5], values]), np.array([1.0, 0.0]))
    alone = moments(np.array([values]), np.array([0.0]))
    for outer in (list, tuple):
        assert moments(outer([[1.0, 2.0, 0.5], record]), [1.0, 0.0]) == wanted
        assert moments(outer([record]), [0.0]) == alone


def test_a_bare_cell_is_a_record_of_one() -> None:
    schema = Schema.from_bounds({"a": (-5, 5)}, ("y", -2, 2))
    values = np.array([[1.0], [2.0], [math.nan]])
    wanted = moments(values, np.zeros(3), schema)
    assert moments([1.0, [2.0], [3.0, 4.0]], [0, 0, 0], schema) == wanted


@pytest.mark.parametrize("one", [lambda c: [c], lambda c: (c,), One, lambda c: np.array([c])])
@pytest.mark.parametrize("odd", [None, [1.0, 2.0], [], "x", np.ma.masked, 1j, [[1.0]], Pair(1, 2)])
def test_a_response_in_records_of_one_cell(one: Any, odd: Any) -> None:
    x = np.array([[1.0, 2.0, 0.5]] * 4)
    wanted = moments(x, np.array([1.0, math.nan, -1.0, 0.5]))
    for y in ([one(1.0), odd, one(-1.0), one(0.5)], (one(1.0), odd, -1.0, one(0.5))):
        assert moments(x, y) == wanted
        assert moments(pd.DataFrame(x, columns=["a", "b", "c"]), y) == wanted


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_columns_of_a_list_are_declared(neighbours: str) -> None:
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "neighbours": neighbours}
    one, each = dps.Bounds(x=1, y=1), dps.Bounds(x=[1, 1, 1], y=1)
    for x in ([[1.0, 0.0], [0.5], [0.0, 1.0]], [[1.0, 0.0]], []):
        y = [1.0] * len(x)
        assert len(dps.select(x, y=y, bounds=each, **asked).schema.features) == 3
        with pytest.raises(dps.ArgumentError, match="how many columns"):
            dps.select(x, y=y, bounds=one, **asked)


def test_masked_cells_are_missing() -> None:
    x = np.ma.array([[1.0, 2.0, 0.5], [3.0, 4.0, 0.25]], mask=[[0, 1, 0], [0, 0, 0]])
    y = np.ma.array([1, -1], mask=[0, 1])
    wanted = moments(np.array([[1.0, math.nan, 0.5], [3.0, 4.0, 0.25]]), np.array([1, math.nan]))
    assert moments(x, y) == wanted
    assert moments(x.astype(object), y.reshape(-1, 1)) == wanted
    assert moments(x.astype("U8"), y.astype("S8")) == wanted


def test_a_signalling_nan_warns_of_nothing() -> None:
    signals = np.array([[0x7F800001] * 3], dtype=np.uint32).view(np.float32)
    big = np.full((1, 3), np.finfo(np.longdouble).max)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, value in ((signals, math.nan), (big, math.inf)):
            wanted = moments(np.full((1, 3), value), np.zeros(1))
            for data in (x, list(x), pd.DataFrame(x, columns=["a", "b", "c"]), x.astype(object)):
                assert moments(data, np.zeros(1)) == wanted
                blocks = open_table(data, SCHEMA, np.zeros(1)).blocks()
                assert GramData.from_records(SCHEMA, blocks).n == 1
            # Blocks of one's own may be of any type, too.
            assert GramData.from_records(SCHEMA, [(x, x[:, 0])]).n == 1


# -- columns with and without a type -----------------------------------------------------------


def column_moments(column: Any) -> tuple[bytes, int]:
    y = np.zeros(len(column))
    if isinstance(column, pl.Series):
        return moments(pl.DataFrame({"a": column, "b": y, "c": y, "y": y}))
    if isinstance(column, pa.Array):
        return moments(pa.table({"a": column, "b": y, "c": y, "y": y}))
    return moments(pd.DataFrame({"a": column, "b": y, "c": y, "y": y}))


def values_moments(values: list[float]) -> tuple[bytes, int]:
    y = np.zeros(len(values))
    return moments(np.array([values, y, y]).T, y)


@pytest.mark.parametrize(
    "cells",
    [
        [Decimal(1), Decimal("0.12345678901"), Decimal("0.5"), None],
        [np.float16(0.5), 1, np.float16(0.1), None],
        [np.longdouble(1) / 3, 1, None],
        [0.5, datetime.date(2000, 1, 1), 1],
        [0.5, 1j, np.complex64(2), 1],
        [0.5, [1], (2,), {"x": 1}, "1", b"2", "word", "1" * 5000, True, pd.Timestamp(0)],
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [0, 120])
def test_columns_of_objects_have_no_type(cells: list[Any], before: int) -> None:
    column = [None] * before + cells * 3
    wanted = values_moments([from_objects([cell])[0] for cell in column])
    assert column_moments(pd.Series(column, dtype=object)) == wanted
    assert column_moments(pl.Series(column, dtype=pl.Object)) == wanted
    with contextlib.suppress(TypeError):  # categories are hashed
        assert column_moments(pd.Series(pd.Categorical(column))) == wanted


@pytest.mark.parametrize("scale", [0, 1, 11, 30])
@pytest.mark.parametrize("bits", [128, 256])
def test_decimals_are_rounded_correctly(scale: int, bits: int, tmp_path: Path) -> None:
    kind = (pa.decimal128 if bits == 128 else pa.decimal256)(38, scale)
    cells = [Decimal(k).scaleb(-scale) for k in (1, 10**scale, 3, 7 * 10**scale, 2**60 + 1)]
    column = pa.array([*cells, None], kind)
    values = [*map(float, cells), math.nan]
    np.testing.assert_array_equal(from_arrow(column), values)
    assert column_moments(column) == values_moments(values)
    labels = Schema.from_bounds({"a": (0, 1)}, "y", labels=(1, 3))
    table = pa.table({"a": np.zeros(6), "y": column})
    pq.write_table(table, tmp_path / "t.parquet")
    wanted = moments(np.zeros((6, 1)), np.array(values), labels)
    frames = [table, tmp_path / "t.parquet", table.to_pandas(types_mapper=pd.ArrowDtype)]
    if bits == 128:
        frames.append(pl.from_arrow(table))
    for data in frames:
        assert moments(data, schema=labels) == wanted


def test_decimals_of_negative_scale() -> None:
    cells = [Decimal("3E+5"), Decimal("1E+3"), None]
    for kind in (pa.decimal32(5, -2), pa.decimal128(5, -2), pa.decimal256(60, -3)):
        column = pa.array(cells, kind)
        np.testing.assert_array_equal(from_arrow(column), [3e5, 1e3, math.nan])
        assert column_moments(column) == values_moments([3e5, 1e3, math.nan])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_dictionaries_of_text_of_every_type(kind: pa.DataType) -> None:
    values = pa.array(["0.5", "word", None, "1" * 5000, "0.25"], kind)
    codes = pa.array([0, 1, 2, 3, 4, None, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, values)
    wanted = [0.5, math.nan, math.nan, math.nan, 0.25, math.nan, 0.5]
    np.testing.assert_array_equal(from_arrow(column), wanted)
    np.testing.assert_array_equal(from_arrow(column.slice(4, 2)), wanted[4:6])
    np.testing.assert_array_equal(from_arrow(values), wanted[:5])
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, 9, -3]), values, safe=False)
    np.testing.assert_array_equal(from_arrow(beyond), [0.5, math.nan, math.nan])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1j, 2]), pd.Series(pd.to_datetime(["2000-01-01"] * 2)),
        pd.Series(pd.timedelta_range(0, periods=2)), pd.Series(pd.period_range("2000", periods=2)),
        pd.Series(pd.interval_range(0, periods=2)), pl.Series([datetime.date(2000, 1, 1)] * 2),
        pl.Series([[1.0], [2.0]]),
        pd.Series([[1.0]] * 2, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    ],
    ids=lambda column: str(column.dtype),
)  # fmt: skip
def test_columns_of_frames_that_hold_no_numbers_are_refused_by_type(column: Any) -> None:
    for part in (column, column[:0]):
        with pytest.raises(TableError, match="'a'"):
            column_moments(part)


@pytest.mark.parametrize("cell", ["1", "word"])
@pytest.mark.parametrize(
    "query",
    [
        lambda frame: frame,
        lambda frame: frame.select("a", "b", "c", "y"),
        lambda frame: frame.with_columns(pl.col("a").cast(pl.Float64)),
        lambda frame: frame.filter(pl.col("a").cast(pl.Float64) > 0),
        lambda frame: frame.map_batches(lambda batch: batch),
        lambda frame: frame.select("a", "b", "no such column"),
    ],
)
def test_lazy_frames_are_refused_whatever_they_hold(query: Any, cell: str) -> None:
    """That a cast failed, or text of a file was no UTF-8, would be an answer about one record."""
    frame = query(pl.LazyFrame({name: ["1", cell] for name in "abcy"}))
    with pytest.raises(TableError, match="Collect it first"):
        open_table(frame, SCHEMA)
    with pytest.raises(TableError, match="Collect it first"):
        dps.select(frame, y=[1, 2], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1)


# -- what a second reading found -----------------------------------------------------------------

NOT_UTF8 = pa.StringArray.from_buffers(
    3, pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32)), pa.py_buffer(b"1\xff2")
)


@pytest.mark.parametrize(
    "y",
    [
        pd.Categorical([1, 2, 3j]), pd.Categorical([None, None, pd.Timestamp(0)]),
        pd.CategoricalIndex([1, 2, 3j]), pd.Index([1, 2, "x"], dtype=object),
        pd.array([1, None, 2], dtype="Int64"), pa.array([1, None, 2]), NOT_UTF8,
        pd.arrays.ArrowExtensionArray(pa.chunked_array([NOT_UTF8])),
        pa.record_batch({"y": pa.array([1, 2, 3])}), array.array("d", [1, 2, 3]),
    ],
    ids=lambda y: type(y).__name__,
)  # fmt: skip
def test_responses_of_any_kind_beside_an_array(y: Any) -> None:
    """Their type is not asked of NumPy, which would look at the cells."""
    whole = blocks_of(np.zeros((3, 3)), y)
    for i in range(3):
        part = y.slice(i, 1) if hasattr(y, "slice") else y[i : i + 1]
        np.testing.assert_array_equal(blocks_of(np.zeros((1, 3)), part), whole[i : i + 1])


def blocks_of(x: Any, y: Any) -> np.ndarray:
    return np.vstack([np.column_stack([*x.T, y]) for x, y in open_table(x, SCHEMA, y).blocks()])


def test_record_batches_are_tables() -> None:
    kinds = {"a": NOT_UTF8, "b": pa.array([1.0, 2, 3]), "c": pa.array([True, None, False])}
    batch = pa.record_batch(kinds)
    wanted = np.array([[1, 1, 1], [math.nan, 2, math.nan], [2, 3, 0]])
    assert moments(batch, [0, 1, 0]) == moments(wanted, np.array([0, 1, 0]))
    dates = pa.record_batch(kinds | {"a": pa.array([0, None, 0], pa.date32())})
    with pytest.raises(TableError, match="date32"):
        moments(dates, [0, 1, 0])


@pytest.mark.parametrize(
    ("kind", "unscaled", "value"),
    [
        (pa.decimal128(38, 39), 1, 1e-39), (pa.decimal128(38, 60), -25, -2.5e-59),
        (pa.decimal256(76, 77), 3, 3e-77), (pa.decimal64(10, 30), 7, 7e-30),
        (pa.decimal32(5, 12), -1, -1e-12), (pa.decimal128(38, -50), 2, 2e50),
        (pa.decimal128(38, -2000), 2, math.inf),
    ],
    ids=str,
)  # fmt: skip
def test_decimals_that_arrow_cannot_write_out(
    kind: pa.DataType, unscaled: int, value: float
) -> None:
    width = kind.bit_width // 8
    held = b"".join(n.to_bytes(width, "little", signed=True) for n in (5, unscaled, 0))
    column = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x06"), pa.py_buffer(held)])
    np.testing.assert_array_equal(from_arrow(column), [math.nan, value, 0.0])
    np.testing.assert_array_equal(from_arrow(column.slice(1, 1)), [value])


def test_numpy_text_that_is_no_text() -> None:
    codes = np.array([[0x31, 0x32, 0x33], [0x110000, 0x31, 0x30]], dtype=np.uint32)
    wanted = moments(np.array([[1, 2, 3], [math.nan, 1, 0]]), np.zeros(2))
    for text in (codes.view("U1"), codes.byteswap().view(">U1")):
        assert moments(text, np.zeros(2)) == wanted
        assert moments(np.ma.array(text, mask=[[0, 0, 0], [1, 0, 0]]), np.zeros(2)) == wanted


class Incomparable(type):
    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("no")


class Odd(metaclass=Incomparable):
    pass


class Endless(Sequence[float]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: Any) -> Any:
        return 1.0


class Broken(Endless):
    def __getitem__(self, i: Any) -> Any:
        if i == 1:
            raise RuntimeError("no")
        return 1.0


class Fickle:
    def __init__(self) -> None:
        self.asked = 0

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.asked += 1
        return np.ones(3 if self.asked % 2 else 5)


class Own(UserList[float]):
    """An honest kind of record ..."""


class Impostor(type):
    def __hash__(cls) -> int:
        return hash(Own)

    def __eq__(cls, other: object) -> bool:
        return other is Own or other is cls


class Disguised(metaclass=Impostor):
    """... and a cell whose class claims to be the same."""


class Wrong(fractions.Fraction):
    def __float__(self) -> float:
        return 99.0


class Little(int):
    def __gt__(self, other: object) -> bool:
        return False


def test_no_class_speaks_for_another() -> None:
    wanted = moments(np.array([[math.nan] * 3, [1, 2, 0.5], [0.5, math.inf, 0]]), np.zeros(3))
    rows = [Disguised(), Own([1, 2, 0.5]), [Wrong(1, 2), Little(10**400), complex(0, 0)]]
    assert moments(rows, [0, 0, 0]) == wanted
    later = moments(np.array([[1, 2, 0.5], [0.5, math.inf, 0]]), np.zeros(2))
    assert moments(rows[1:], [0, 0]) == later


def test_arrow_buffers_may_have_room_at_their_end() -> None:
    offsets = np.array([0, 1], dtype=np.int32).tobytes() + b"\0"
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"5")]
    np.testing.assert_array_equal(from_arrow(pa.Array.from_buffers(pa.string(), 1, buffers)), [5])
    view = pa.array(["7"], pa.string_view()).buffers()[1].to_pybytes()[:16] + b"\0" * 8
    views = pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(view)])
    np.testing.assert_array_equal(from_arrow(views), [7])


def test_classes_with_ideas_of_their_own() -> None:
    wanted = moments(np.array([[1.0, 2.0, 0.5], [math.nan, 1, 1]]), np.zeros(2))
    assert moments([[1.0, 2.0, 0.5], [Odd(), 1, 1]], [0, 0]) == wanted
    bad = moments(np.array([[1.0, 2.0, 0.5], [math.nan] * 3]), np.zeros(2))
    for record in (Endless(), Broken(), Fickle(), Odd()):
        assert moments([[1.0, 2.0, 0.5], record], [0, 0]) == bad


@pytest.mark.parametrize(
    "record", [range(10**12), np.broadcast_to(0.5, 10**12), pd.RangeIndex(10**12), [0.5] * 10**6]
)
def test_long_records_are_not_unfolded(record: Any) -> None:
    wanted = moments(np.array([[1.0, 2.0, 0.5], [math.nan] * 3]), np.array([0, math.nan]))
    tracemalloc.start()
    assert moments([[1.0, 2.0, 0.5], record], [0, record]) == wanted
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


# -- cells of any kind -------------------------------------------------------------------------


class Hostile(float):
    """A number that does not want to be one."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("no")


class Overflowing(int):
    def __float__(self) -> float:
        raise OverflowError

    __gt__ = Hostile.__gt__


class Liar:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("no")

    def __float__(self) -> float:
        return 1.0

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        return "Liar()"


OBJECTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    FLOATS,
    st.complex_numbers(),
    st.text(st.characters(), max_size=5),  # lone surrogates included
    st.binary(max_size=5),
    st.decimals(),
    st.just(decimal.Decimal("sNaN")),
    st.fractions(),
    st.just(fractions.Fraction(10) ** 400),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
    st.sampled_from([
        Hostile(1.0), Overflowing(1), object(), int, ..., np.float32(0.1), np.int8(3),
        np.longdouble(1) / 3, np.finfo(np.longdouble).max, np.datetime64("NaT"), pd.NA, pd.NaT,
        np.timedelta64(1, "s"), np.complex64(1j), np.str_("0.5"), np.bytes_(b"0.5"), np.array([1]),
        np.ma.masked, pd.Timestamp(0), pd.Interval(0, 1), range(3), {1}, bytearray(b"1"),
    ]),
)  # fmt: skip


@given(st.lists(OBJECTS, max_size=12))
def test_objects_of_any_kind_are_read_each_by_itself(cells: list[Any]) -> None:
    together = from_objects(cells)
    alone = [from_objects([cell])[0] for cell in cells]
    np.testing.assert_array_equal(together, np.array(alone, dtype=np.float64))


@given(st.lists(st.tuples(OBJECTS, OBJECTS, OBJECTS, OBJECTS), min_size=1, max_size=6))
def test_columns_of_objects_never_raise(rows: list[tuple[Any, ...]]) -> None:
    cells = np.empty((len(rows), 4), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            cells[i, j] = cell
    wanted = moments(cells[:, :3], cells[:, 3])
    # One record never affects another: the moments are the sum of those of each record alone.
    parts = [
        Moments.from_blocks(SCHEMA, open_table(cells[i : i + 1, :3], SCHEMA, cells[i : i + 1, 3])
                            .blocks())
        for i in range(len(rows))
    ]  # fmt: skip
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert (total.products.tobytes(), total.n) == wanted
    names = ["a", "b", "c", "y"]
    frame = pd.DataFrame({name: pd.Series(list(cells[:, j]), dtype=object)
                          for j, name in enumerate(names)})  # fmt: skip
    assert moments(frame) == wanted
    objects = pl.DataFrame([pl.Series(name, list(cells[:, j]), dtype=pl.Object)
                            for j, name in enumerate(names)])  # fmt: skip
    assert moments(objects) == wanted


def test_objects_that_lie_about_their_class() -> None:
    cells = np.empty((1, 3), dtype=object)
    cells[:] = [[Liar(), 1.0, Liar()]]
    wanted = moments(np.array([[math.nan, 1.0, math.nan]]), np.array([0.0]))
    assert moments(cells, np.array([0.0])) == wanted


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (True, 1.0), (np.False_, 0.0), (3, 3.0), (10**400, math.inf), (-(10**400), -math.inf),
        (fractions.Fraction(-(10**400)), -math.inf), (decimal.Decimal("1e400"), math.inf),
        (decimal.Decimal("0.1"), 0.1), (fractions.Fraction(1, 3), 1 / 3), (np.float32(0.5), 0.5),
        ("0.5", 0.5), (b"0.5", 0.5), (np.str_(" 7 "), 7.0), ("inf", math.inf),
        ("-Infinity", -math.inf), (np.timedelta64(5, "s"), math.nan), (Hostile(1.0), 1.0),
        (Overflowing(1), 1.0),
        ("1e400", math.inf), ("1e-400", 0.0), ("+1.e2", 100.0), (".5", 0.5), ("nan", math.nan),
        ("1_000", math.nan), ("0x10", math.nan), ("1e", math.nan), (".", math.nan), ("", math.nan),
        ("1 2", math.nan), ("1\n", math.nan), ("١", math.nan), ("1,5", math.nan), (None, math.nan),
        (1 + 0j, 1.0), (1 + 1j, math.nan), (np.complex64(2), 2.0),
        (np.timedelta64(5), math.nan), (datetime.date(2000, 1, 1), math.nan), ([1], math.nan),
        (pd.NA, math.nan), (decimal.Decimal("sNaN"), math.nan),
    ],
)  # fmt: skip
def test_what_a_cell_is_worth(cell: Any, value: float) -> None:
    np.testing.assert_array_equal(from_objects([cell]), [value])
    if isinstance(cell, (str, bytes)):
        raw = cell.encode() if isinstance(cell, str) else cell
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
            np.testing.assert_array_equal(
                from_arrow(pa.array([raw, None], kind)), [value, math.nan]
            )
        for kind in (pa.string(), pa.large_string(), pa.string_view()):
            array = pa.array([raw.decode()], kind)
            np.testing.assert_array_equal(from_arrow(array), [value])


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal32(5, 1),
        pa.decimal64(9, 1), pa.decimal128(20, 1), pa.decimal256(60, 1), pa.bool_(),
    ],
    ids=str,
)  # fmt: skip
def test_arrow_numbers_of_every_type(kind: pa.DataType, tmp_path: Path) -> None:
    one: Any = (
        decimal.Decimal(1) if pa.types.is_decimal(kind) else True if kind == pa.bool_() else 1
    )
    column = pa.array([one, None], kind)
    np.testing.assert_array_equal(from_arrow(column), [1.0, math.nan])
    if not pa.types.is_decimal(kind):  # which Arrow does not encode
        np.testing.assert_array_equal(from_arrow(column.dictionary_encode()), [1.0, math.nan])
    y = pa.array([0.0, 1.0])
    table = pa.table({"a": column, "b": y, "c": y, "y": y})
    pq.write_table(table, tmp_path / "t.parquet")
    wanted = moments(np.array([[1.0, 0, 0], [math.nan, 1, 1]]), np.array([0.0, 1.0]))
    assert moments(tmp_path / "t.parquet") == wanted
    assert moments(table) == wanted


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime.date(2000, 1, 1)]),
        pa.array([datetime.datetime(2000, 1, 1)]),
        pa.array([[1.0]]),
        pa.array([{"x": 1}]),
    ],
    ids=lambda c: str(c.type),
)
def test_columns_that_hold_no_numbers_are_refused_by_type(column: pa.Array, tmp_path: Path) -> None:
    y = pa.array([0.0])
    table = pa.table({"a": column, "b": y, "c": y, "y": y})
    pq.write_table(table, tmp_path / "t.parquet")
    for data in (tmp_path / "t.parquet", table, pl.from_arrow(table)):
        with pytest.raises(TableError, match="'a'"):
            open_table(data, SCHEMA)


# -- delimited text ----------------------------------------------------------------------------

HEADER = b"a,other,b,c,y\n"
FIELDS = st.one_of(
    st.sampled_from([b"", b"1", b" -2.5 ", b"1e3", b"inf", b"nan", b"word", b'"3"', b'"4', b'5"',
                     b'""', b'"6""7"', b'"8,9"', b"\xff", b"\x00", b"\r", b"'1'"]),
    st.binary(max_size=4).map(lambda b: b.replace(b"\n", b"")),
)  # fmt: skip
LINES = st.one_of(
    st.lists(FIELDS, min_size=5, max_size=5).map(b",".join),
    st.lists(FIELDS, max_size=7).map(b",".join),
    st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")),
)


def read(path: Path, content: bytes, piece: int = 2**23) -> Moments:
    path.write_bytes(content)
    table = DelimitedTable(path, SCHEMA, delimiter=",", compression=None, piece=piece)
    return Moments.from_blocks(SCHEMA, table.blocks())


@given(
    st.lists(LINES, max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.sampled_from([1, 2, 3, 7, 30, 64]),
)
@example([b'"1,2,3,4,5', b'1",2,3,4,5'], b"\n", True, 3)  # a quote left open ends with its line
@example([b"\xef\xbb\xbf1,2,3,4,5"], b"\n", False, 1)
def test_any_bytes_in_lines(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    end: bytes,
    closed: bool,
    piece: int,
) -> None:
    """Nothing raises; pieces do not matter; the whole is the sum of its lines."""
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    content = HEADER + end.join(lines) + (end if closed else b"")
    whole = read(path, content)
    assert read(path, content, piece) == whole
    total = read(path, HEADER)
    assert total.n == 0
    records = content[len(HEADER) :].split(b"\n")
    for line in records:
        total = total + read(path, HEADER + line + b"\n")
    assert total == whole
    # A line is a record unless it is blank.
    assert whole.n == sum(line not in (b"", b"\r") for line in records)


NUMBER = re.compile(r"[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*", re.ASCII)


def worth(cell: str) -> float:
    if (
        cell.strip(" \t").lower().lstrip("+-") in ("inf", "infinity")
        and cell.strip(" \t")[1:2] not in "+-"
    ):
        return float(cell)
    return float(cell) if NUMBER.fullmatch(cell) else math.nan


CELL_TEXT = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=6),
    st.text('0123456789.eE+-", \t', max_size=8),
    FLOATS.map(repr),
)


@given(
    st.lists(st.lists(CELL_TEXT, min_size=5, max_size=5), max_size=6), st.sampled_from([0, 1, 2])
)
def test_cells_as_the_csv_module_writes_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], quoting: int
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=quoting, lineterminator="\n").writerows(rows)
    path = tmp_path_factory.getbasetemp() / "written.csv"
    found = read(path, HEADER + buffer.getvalue().encode())
    values = np.array([[worth(row[j]) for j in (0, 2, 3, 4)] for row in rows]).reshape(-1, 4)
    wanted = moments(values[:, :3], values[:, 3])
    assert (found.products.tobytes(), found.n) == wanted


def test_lines_with_another_number_of_fields_are_records_of_bad_cells(tmp_path: Path) -> None:
    schema = Schema.from_bounds({"a": (0, 4)}, ("y", 0, 4), bad_cells="high")
    (tmp_path / "t.csv").write_bytes(b"a,y\n1\n1,2,3\n\n1,2")
    bad = (math.nan, math.nan)
    values = np.array([bad, bad, (1, 2)])
    assert moments(tmp_path / "t.csv", schema=schema) == moments(
        values[:, :1], values[:, 1], schema
    )


def test_a_header_may_have_a_mark_quotes_and_spaces(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'\xef\xbb\xbf"a", b ,"c",y\r\n1,2,0.5,1\r\n')
    assert moments(tmp_path / "t.csv") == moments(np.array([[1, 2, 0.5]]), np.array([1]))


@given(
    st.lists(st.tuples(st.sampled_from([b"1,2,3,4,5", b"", b'"', b"x"]), st.integers(0, 9)),
             max_size=6),
    st.sampled_from([1, 4, 64]),
)  # fmt: skip
def test_lines_that_are_too_long_are_records_of_bad_cells(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bytes, int]], piece: int
) -> None:
    """Wherever the pieces of the file are cut, and whether the line is sound or not."""
    path = tmp_path_factory.getbasetemp() / "long.csv"
    texts = [line + b" " * blanks for line, blanks in lines]
    short = [text if len(text) <= 12 else b"bad" for text in texts]

    def found(lines: list[bytes], longest: int) -> Moments:
        path.write_bytes(HEADER + b"\n".join(lines))
        table = DelimitedTable(
            path, SCHEMA, delimiter=",", compression=None, piece=piece, longest=longest
        )
        return Moments.from_blocks(SCHEMA, table.blocks())

    assert found(texts, 12) == found(short, 100)


def test_fields_that_are_too_long_are_bad_cells(tmp_path: Path) -> None:
    long, fits = b"0" * 4096 + b"1", b"0" * 4095 + b"1"
    (tmp_path / "t.csv").write_bytes(HEADER + b",".join([long, b"", fits, fits, fits]))
    wanted = moments(np.array([[math.nan, 1.0, 1.0]]), np.array([1.0]))
    assert moments(tmp_path / "t.csv") == wanted
    cells = [[long, fits, fits.decode()]]
    assert moments(cells, [fits]) == wanted
    assert moments(pa.table({"a": [long], "b": [fits], "c": [fits], "y": [fits]})) == wanted
    assert math.isnan(from_objects(["\u0660" * 4000])[0])


def test_a_file_of_very_short_lines_comes_in_bounded_blocks(tmp_path: Path) -> None:
    names = [f"v{j}" for j in range(3000)]
    schema = Schema.from_bounds(dict.fromkeys(names, (0, 1)), ("y", 0, 1))
    (tmp_path / "t.csv").write_bytes(",".join([*names, "y"]).encode() + b"\n" + b"\n1" * 20_000)
    sizes = [x.shape[0] for x, _ in open_table(tmp_path / "t.csv", schema).blocks()]
    assert sum(sizes) == 20_000
    assert max(sizes) <= 2**23 // 3000


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", None])
def test_parquet_text_of_every_encoding(encoding: str | None, tmp_path: Path) -> None:
    cells = ["0.5", "word", None, "0.25" + "0" * 5000] * 700
    kinds = pa.schema([("a", pa.string()), *((name, pa.float64()) for name in "bcy")])
    how: dict[str, Any] = {"use_dictionary": True}
    if encoding:
        how = {"use_dictionary": False, "column_encoding": {"a": encoding}}
    y = np.zeros(700)
    with pq.ParquetWriter(tmp_path / "t.parquet", kinds, **how) as writer:
        for i in range(4):
            part = cells[700 * i : 700 * (i + 1)]
            writer.write_table(pa.table([pa.array(part), y, y, y], schema=kinds))
    wanted = [0.5, math.nan, math.nan, math.nan] * 700
    assert moments(tmp_path / "t.parquet") == values_moments(wanted)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b""),
        ("t.csv", b"a,b,c,y" + b"," * 2**24 + b"\n1,2,3,4\n"),
        ("t.csv", b"\n1,2,3,4\n"),
        ("t.csv", b"\x00\x01\x02,\xff"),
        ("t.csv", b"a,b,c\n1,2,3\n"),
        ("t.csv", b"a,b,c,y,a\n1,2,3,4,5\n"),
        ("t.csv", b"a;b;c;y\n1;2;3;4\n"),
        ("t.csv", b"1,2,3,4\n5,6,7,8\n"),
        ("t.csv.gz", b"no gzip at all"),
        ("t.csv.gz", gzip.compress(b"a,b,c,y\n1,2,3,4\n" * 999, mtime=0)[:60]),
        ("t.parquet", b"PAR1 and no more"),
        ("t.xlsx", b"PK"),
        ("t", b"a,b,c,y\n"),
    ],
)
def test_files_that_are_no_such_table_are_refused(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        list(open_table(path, SCHEMA).blocks())
    assert "5" not in str(caught.value)  # nothing of the lines is quoted
    with pytest.raises(TableError):
        open_table(tmp_path / "missing.csv", SCHEMA)
    with pytest.raises(TableError):
        open_table(tmp_path, SCHEMA)


def test_a_header_is_read_without_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a, b,y\n" + b"\xff" * 10)
    assert header(tmp_path / "t.csv") == ["a", "b", "y"]
    pq.write_table(pa.table({"u": [1], "v": ["x"]}), tmp_path / "t.parquet")
    assert header(str(tmp_path / "t.parquet")) == ["u", "v"]
    (tmp_path / "n.csv").write_bytes(b"17.5,b,y\n1,2,3\n")
    with pytest.raises(TableError, match="looks like data") as caught:
        header(tmp_path / "n.csv")
    assert "17.5" not in str(caught.value)


def test_empty_tables(tmp_path: Path) -> None:
    empty = pd.DataFrame({name: [] for name in ("a", "b", "c", "y")}, dtype=float)
    empty.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_bytes(b"a,b,c,y")
    wanted = moments(np.empty((0, 3)), np.empty(0))
    assert wanted[1] == 0
    for data in (empty, pl.from_pandas(empty), tmp_path / "t.parquet", tmp_path / "t.csv"):
        assert moments(data) == wanted
        assert list(open_table(data, SCHEMA).blocks()) == []


@pytest.mark.parametrize("odd", [[1, 2], b"\xff", 10**400, {"a": 1}, 1j, "word", (1.0,), None])
def test_odd_cells_in_lists_are_no_errors(odd: Any) -> None:
    """NumPy refuses some of these lists as a whole, because of one cell."""
    rows = [[1.0, 2.0, 0.5], ["x", 1.0, 0.0], [0.5, odd, 0.25]]
    cells = np.empty((3, 3), dtype=object)
    for i, j in np.ndindex(3, 3):
        cells[i, j] = rows[i][j]
    y = np.empty(3, dtype=object)
    y[:] = [1.5, "x", 0.0]
    y[1] = odd
    if isinstance(odd, tuple):  # a column of one
        y[1] = odd[0]
    assert moments(rows, [1.5, odd, 0.0]) == moments(cells, y)
