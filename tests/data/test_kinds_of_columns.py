"""Columns of levels, booleans, dates and codes: the same in every kind of table, cell by cell."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset import Schema, TableError
from dpsubset.data.gram import GramData
from dpsubset.data.moments import Moments
from dpsubset.data.readers import open_table
from dpsubset.data.readers.arrow import from_arrow
from dpsubset.data.readers.cells import from_array, from_objects, reader
from dpsubset.schema.column import Column, Missing
from dpsubset.schema.dates import days

DATE = Column("d", dt.date(1990, 1, 1), dt.date(2025, 12, 31))
DATES = reader(DATE)
CITY = ("Bern", "Zürich", 'the "old" town', "St. Gallen")
SCHEMA = Schema(
    (
        Column("city", levels=CITY, missing=Missing(codes=("unknown",), rule="indicator")),
        Column("grade", levels=(1, 2, 3), missing=Missing(rule="value", value=2)),
        Column("age", 0, 110, missing=Missing(codes=(-9, 999), rule="indicator")),
        Column("pay", 1, 1e6, transform="log", missing=Missing(codes=("none",), rule="low")),
        Column("born", dt.date(1920, 1, 1), dt.date(2020, 1, 1),
               missing=Missing(codes=("1900-01-01",), rule="value", value=dt.date(1970, 1, 1))),
        Column("seen", dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)),
        Column("smokes", kind="boolean"),
    ),
    Column("cost", 0, 5000, transform="sqrt", missing=Missing(codes=(-1,), rule="high")),
)  # fmt: skip


def digest(data: Any, y: Any = None, schema: Schema = SCHEMA, constant: int = 0) -> GramData:
    return GramData.from_records(schema, open_table(data, schema, y).blocks(), constant)


def cells_of(found: GramData) -> np.ndarray:
    return np.vstack([found.records, found.response[None]])


# -- one table in every container ---------------------------------------------------------------


def table(rows: int = 400, missing: float = 0.3) -> dict[str, list[Any]]:
    """As Python holds it, None where a cell is missing."""
    rng = np.random.default_rng(5)
    moment = dt.datetime(2019, 12, 1)
    columns: dict[str, list[Any]] = {
        "city": rng.choice([*CITY, "unknown", "Basel"], rows).tolist(),
        "grade": rng.integers(0, 5, rows).tolist(),
        "age": rng.choice([-9, 999, 17, 45, 81, 200], rows).tolist(),
        "pay": rng.choice([0.5, 1.0, 333.25, 1e5, 2e6], rows).tolist(),
        "born": [dt.date(1900, 1, 1) if i % 9 == 0 else dt.date(1890 + int(i) % 140, 2, 28)
                 for i in rng.integers(0, 999, rows)],
        "seen": [moment + dt.timedelta(microseconds=int(us)) for us in
                 rng.integers(0, 4 * 10**13, rows)],
        "smokes": rng.choice([True, False], rows).tolist(),
        "cost": rng.choice([-1.0, 0.0, 17.5, 4999.0, 1e4], rows).tolist(),
    }  # fmt: skip
    hidden = rng.random((len(columns), rows)) < missing
    return {
        name: [None if gone else cell for cell, gone in zip(cells, row, strict=True)]
        for row, (name, cells) in zip(hidden, columns.items(), strict=True)
    }


TABLE = table()
TYPES = {
    "city": pa.string(), "grade": pa.int64(), "age": pa.int32(), "pay": pa.float64(),
    "born": pa.date32(), "seen": pa.timestamp("us"), "smokes": pa.bool_(), "cost": pa.float64(),
}  # fmt: skip
NAMES = list(TYPES)


def arrow(types: dict[str, pa.DataType] | None = None) -> pa.Table:
    plain = {name: pa.array(TABLE[name], kind) for name, kind in TYPES.items()}
    for name, kind in (types or {}).items():
        folded = pa.types.is_dictionary(kind)
        plain[name] = plain[name].dictionary_encode() if folded else plain[name].cast(kind)
    return pa.table(plain)


def csv(path: Path, write: Callable[[str, Any], str]) -> Path:
    lines = [",".join(NAMES)]
    for i in range(len(TABLE["age"])):
        lines.append(",".join("" if TABLE[name][i] is None else write(name, TABLE[name][i])
                              for name in NAMES))  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def written(name: str, cell: Any) -> str:
    text = str(cell)
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


def parquet(types: dict[str, pa.DataType], path: Path) -> Path:
    pq.write_table(arrow(types), path)
    return path


FOLDED = {
    "city": pa.dictionary(pa.int32(), pa.string()),
    "grade": pa.dictionary(pa.int32(), pa.int64()),
    "born": pa.dictionary(pa.int32(), pa.date32()),
    "age": pa.decimal128(12, 2),
}
OTHERS = {
    "city": pa.large_string(), "grade": pa.float32(), "age": pa.float64(), "born": pa.date64(),
    "seen": pa.timestamp("ns", "UTC"), "smokes": pa.int8(),
}  # fmt: skip


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.map(lambda cell: None if cell is None else str(cell))


CONTAINERS: dict[str, Callable[[Path], Any]] = {
    "csv": lambda d: csv(d / "t.csv", written),
    "csv, other words": lambda d: csv(
        d / "t.csv",
        lambda name, cell: f" {str(cell).upper()} " if name == "smokes" else written(name, cell),
    ),
    "csv, ISO": lambda d: csv(
        d / "t.csv", lambda n, c: c.isoformat() if n in ("born", "seen") else written(n, c)
    ),
    "csv, a zone": lambda d: csv(
        d / "t.csv",
        lambda n, c: (c + dt.timedelta(hours=2)).isoformat() + "+02:00" if n == "seen"
        else written(n, c),
    ),
    "parquet": lambda d: parquet({}, d / "t.parquet"),
    "parquet, folded": lambda d: parquet(FOLDED, d / "t.parquet"),
    "parquet, other types": lambda d: parquet(OTHERS, d / "t.parquet"),
    "arrow": lambda d: arrow(),
    "arrow, folded": lambda d: arrow(FOLDED),
    "arrow, other types": lambda d: arrow(OTHERS),
    "polars": lambda d: pl.from_arrow(arrow()),
    "polars, categorical": lambda d: pl.from_arrow(arrow()).with_columns(
        pl.col("city").cast(pl.Categorical), pl.col("seen").dt.replace_time_zone("UTC")
    ),
    "pandas, objects": lambda d: pd.DataFrame({n: pd.Series(c, dtype=object)
                                               for n, c in TABLE.items()}),
    "pandas": lambda d: arrow().to_pandas(),
    "pandas, arrow": lambda d: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, a zone": lambda d: arrow().to_pandas().assign(
        seen=lambda f: f["seen"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        born=lambda f: f["born"].astype("category"),
        city=lambda f: f["city"].astype("category"),
        smokes=lambda f: f["smokes"].astype("boolean"),
        grade=lambda f: f["grade"].astype("Int64"),
    ),
    "pandas, text": lambda d: as_text(
        pd.DataFrame({n: pd.Series(c, dtype=object) for n, c in TABLE.items()})
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_same_digest_from_every_container(kind: str, tmp_path: Path) -> None:
    rows = zip(*TABLE.values(), strict=True)
    wanted = digest([row[:-1] for row in rows], TABLE["cost"])
    found = digest(CONTAINERS[kind](tmp_path))
    np.testing.assert_array_equal(cells_of(found), cells_of(wanted))
    assert found.p == wanted.p == 4 + 1 + 3 + 2 + 1 + 1 + 1 + 1


def test_what_the_cells_of_that_table_become() -> None:
    steps = 2**15 - 1
    row = {
        "city": 'the "old" town', "grade": 9, "age": 999, "pay": "none", "born": "1900-01-01",
        "seen": dt.datetime(2020, 7, 2), "smokes": "True", "cost": -1,
    }  # fmt: skip
    found = cells_of(digest([list(row.values())[:-1]], [row["cost"]]))[:, 0].tolist()
    born = round(steps * (days("1970-01-01") * 2 - days("1920-01-01") - days("2020-01-01"))
                 / (days("2020-01-01") - days("1920-01-01")))  # fmt: skip
    assert found == [0, 0, steps, 0, 0, 0, steps, 0, 0, steps, -steps, born, 0, steps, steps]


# -- cells --------------------------------------------------------------------------------------


@given(st.datetimes(), st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=-9.5))]))
def test_a_moment_is_the_same_number_in_every_form(moment: dt.datetime, zone: Any) -> None:
    moment = moment.replace(tzinfo=zone)
    wanted = days(moment)
    if wanted is None:  # beyond the first or last year in universal time
        return
    utc = moment if zone is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
    cells: list[Any] = [
        moment, moment.isoformat(), moment.isoformat(" ").encode(), np.datetime64(utc, "us"),
        pd.Timestamp(moment),
    ]  # fmt: skip
    found = from_objects(cells, DATES)
    # To a unit in the last place: the quotient is rounded once, or twice in far years.
    assert len(set(found.tolist())) == 1
    assert abs(found[0] - wanted) <= math.ulp(wanted)
    if 1700 <= utc.year < 2250:
        assert found[0] == wanted
    array = np.array([utc], dtype="M8[us]")
    assert from_array(array, DATES)[0] == found[0]
    for kind in (pa.timestamp("us"), pa.timestamp("us", "Asia/Tokyo")):
        assert from_arrow(pa.array(array, kind), DATES)[0] == found[0]
    if 1700 <= utc.year < 2250:
        assert from_arrow(pa.array(array.astype("M8[ns]")), DATES)[0] == found[0]
    assert from_objects([moment.date()], DATES)[0] == days(moment.date())


@given(st.dates())
def test_days_count_from_1970(day: dt.date) -> None:
    wanted = float((day - dt.date(1970, 1, 1)).days)
    for cell in (day, day.isoformat(), f" {day}\t", np.datetime64(day), np.datetime64(day, "s")):
        assert from_objects([cell], DATES)[0] == wanted
    assert from_arrow(pa.array([day], pa.date32()), DATES)[0] == wanted
    assert from_arrow(pa.array([day], pa.date64()), DATES)[0] == wanted


@pytest.mark.parametrize("text", [
    "", "2020", "2020-01", "20200101", "2020-1-1", "2020-01-00", "2020-00-01", "2020-13-01",
    "2020-04-31", "2021-02-29", "1900-02-29", "0000-01-01", "-2020-01-01", "2020-01-01T",
    "2020-01-01T12", "2020-01-01T24:00", "2020-01-01T12:60", "2020-01-01T12:00:60", "2020-01-01x",
    "2020-01-01T12:00:00.", "2020-01-01T12:00+", "2020-01-01T12:00+24:00", "2020-01-01T12:00+1:00",
    "2020-01-01T12:00ZZ", "01/02/2020", "2020/01/02", "today", "2020-01-01T12:00 Z", "NaT",
    "\u0662\u0660\u0662\u0660-01-01", "2020-01-01\n", "2020-01-01\x00", "12020-01-01",
])  # fmt: skip
def test_text_that_is_no_date(text: str) -> None:
    assert math.isnan(from_objects([text], DATES)[0])


@given(st.text("0123456789-:T.+Z ", max_size=30) | st.text(max_size=12) | st.binary(max_size=30))
def test_text_reads_as_python_reads_it_or_not_at_all(text: Any) -> None:
    found = from_objects([text, "2020-01-01"], DATES)
    assert found[1] == 18262
    if not math.isnan(found[0]):
        assert found[0] == days(text if isinstance(text, str) else text.decode())


HOSTILE: list[Any] = [
    None, 3, 2.5, True, math.nan, math.inf, 10**400, Decimal("NaN"), Decimal(10) ** 9, 1j, "",
    "word", b"\xff", "\ud800", pd.NaT, pd.NA, np.datetime64("NaT"), np.datetime64(2**62, "Y"),
    dt.date.min,
    dt.datetime.max, np.timedelta64(1, "s"), dt.timedelta(1), pd.Period("2000"), object(), [1], {},
    np.datetime64(-(2**63) + 1, "as"), np.datetime64(5, "25W"), pd.Timestamp.max, "9" * 5000,
    dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=23, minutes=59))),
]  # fmt: skip
READERS = [reader(column) for column in (*SCHEMA.columns, SCHEMA.response, Column("x", 0, 1))]


@given(st.lists(st.sampled_from(range(len(HOSTILE))), max_size=20), st.sampled_from(READERS))
def test_no_cell_raises_and_none_matters_to_another(which: list[int], read: Any) -> None:
    cells = [HOSTILE[i] for i in which]
    np.testing.assert_array_equal(
        from_objects(cells, read), [from_objects([cell], read)[0] for cell in cells]
    )


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs",
                                  "as", "25s", "3M"])  # fmt: skip
def test_every_unit_of_numpy(unit: str) -> None:
    counts = np.array([-1, 0, 1, 50, 2**63 - 1, -(2**63) + 1, -(2**63)])
    found = from_array(counts.view(f"M8[{unit}]"), DATES)
    assert np.isnan(found[-1])
    assert not np.isnan(found[:-1]).any()
    assert (np.diff(found[:-1][[5, 0, 1, 2, 3, 4]]) >= 0).all()
    wanted = np.array([0, 50]).view(f"M8[{unit}]").astype("M8[us]").view(np.int64) / 86400e6
    np.testing.assert_allclose(found[[1, 3]], wanted, rtol=1e-15)


@given(st.lists(st.text(min_size=1, max_size=4).map(str.strip).filter(
    lambda t: t.isalpha() and t.lower() not in ("inf", "infinity", "true", "false")),
    min_size=2, max_size=40, unique=True), st.data())  # fmt: skip
def test_levels_are_found_by_their_text(levels: list[str], data: st.DataObject) -> None:
    read = reader(Column("x", levels=tuple(levels)))
    other = st.text(max_size=4).filter(lambda text: text.strip(" \t") not in levels)
    cells = data.draw(st.lists(st.sampled_from(levels) | other, max_size=30))
    wanted = [levels.index(c) if c in levels else math.nan for c in (t.strip(" \t") for t in cells)]
    np.testing.assert_array_equal(from_objects(cells, read), wanted)
    column = pa.array([None, *(c.encode("utf-8", "surrogatepass") for c in cells)], pa.binary())
    np.testing.assert_array_equal(from_arrow(column, read)[1:], wanted)
    np.testing.assert_array_equal(from_arrow(column.slice(1), read), wanted)


@given(st.lists(st.floats(-10, 10) | st.integers(-5, 5), min_size=2, max_size=9, unique_by=float),
       st.data())  # fmt: skip
def test_levels_are_found_by_their_number(levels: list[float], data: st.DataObject) -> None:
    read = reader(Column("x", levels=tuple(levels)))
    cells = data.draw(st.lists(st.sampled_from(levels) | st.floats(), max_size=20))
    wanted = [[float(v) for v in levels].index(c) if c in levels else math.nan for c in cells]
    np.testing.assert_array_equal(from_array(np.array(cells, dtype=np.float64), read), wanted)
    np.testing.assert_array_equal(from_objects([repr(c) for c in cells], read), wanted)


def test_codes_are_missing_and_other_cells_are_not() -> None:
    read = reader(Column("x", -100, 100, missing=Missing(codes=(-9, "99.0", "NA", True))))
    cells = [-9, "-9.0", " 99", 99.5, "NA", 1, True, "true", 2, "2", Decimal(-9), np.int8(-9)]
    wanted = [*[math.nan] * 3, 99.5, *[math.nan] * 4, 2, 2, math.nan, math.nan]
    np.testing.assert_array_equal(from_objects(cells, read), wanted)
    dates = reader(Column("d", dt.date(1990, 1, 1), dt.date(2020, 1, 1),
                          missing=Missing(codes=("9999-12-31", "2000-01-01T12:00"))))  # fmt: skip
    cells = ["9999-12-31", dt.date(9999, 12, 31), "2000-01-01T14:00+02:00", "2000-01-01"]
    np.testing.assert_array_equal(from_objects(cells, dates), [*[math.nan] * 3, 10957])


# -- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [
    pa.int64(), pa.float32(), pa.bool_(), pa.decimal128(9, 2), pa.time32("s"), pa.duration("s"),
    pa.list_(pa.date32()), pa.dictionary(pa.int8(), pa.int64()),
], ids=str)  # fmt: skip
def test_types_that_hold_no_dates_are_refused(kind: pa.DataType, tmp_path: Path) -> None:
    schema = Schema((DATE,), Column("y", 0, 1))
    held = pa.table({"d": pa.array([None], kind), "y": [0.5]})
    tables: list[Any] = [held, held.to_pandas(types_mapper=pd.ArrowDtype)]
    if not pa.types.is_nested(kind):
        tables.append(pl.from_arrow(held))
    if kind != pa.duration("s"):
        pq.write_table(held, tmp_path / "t.parquet")
        tables.append(tmp_path / "t.parquet")
    for data in tables:
        with pytest.raises(TableError, match="which is not a date, as declared"):
            open_table(data, schema)


def test_arrays_are_refused_by_their_type_and_lists_are_not() -> None:
    dates, numbers = Schema((DATE,), Column("y", 0, 1)), Schema((Column("x", 0, 1),), DATE)
    stamps, ones = np.zeros(2, dtype="M8[D]"), np.ones(2)
    for x, y, schema in (
        (ones[:, None], ones, dates),
        (scipy.sparse.csr_array(ones[:, None]), ones, dates),
        (stamps[:, None], stamps, numbers),
        (ones[:, None], ones, numbers),
        (stamps[:, None], stamps, dates),
    ):
        with pytest.raises(TableError, match=r"dates are declared|must hold real numbers"):
            open_table(x, schema, y)
    assert digest(stamps[:, None], ones, dates).n == digest(ones[:, None], stamps, numbers).n == 2
    # Numbers among dates are bad cells of a list, which has no type.
    assert digest([[1.0], [2.0]], [0, 1], dates).records.tolist() == [[0, 0]]
    assert digest([[0.0], [1]], ["1990-01-01", 3], numbers).response.tolist() == [-32767, 0]


# -- sparse matrices ----------------------------------------------------------------------------

X = Schema.from_bounds({f"x{j}": (-2, 3) for j in range(40)}, ("y", 0, 1))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "g"])
@pytest.mark.parametrize(
    "kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix",
             "lil_array", "bsr_array"]
)  # fmt: skip
def test_sparse_is_as_dense(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    dense = (rng.integers(0, 4, (300, 40)) * (rng.random((300, 40)) < 0.1)).astype(dtype)
    if dtype == "f8":
        dense[7, 3], dense[8, 4], dense[9, 5] = np.nan, np.inf, -np.inf
    y = rng.random(300)
    sparse = getattr(scipy.sparse, kind)(dense)
    before = sparse.copy()
    np.testing.assert_array_equal(cells_of(digest(sparse, y, X)), cells_of(digest(dense, y, X)))
    assert type(before) is type(sparse)
    np.testing.assert_array_equal(before.toarray(), sparse.toarray())


def test_entries_of_one_place_add_up_in_each_record_by_itself() -> None:
    places = (np.array([0, 0, 2]), np.array([1, 1, 0]))
    sparse = scipy.sparse.coo_array((np.array([0.5, 0.25, 1]), places), shape=(3, 40))
    found = digest(sparse, np.zeros(3), X)
    np.testing.assert_array_equal(found.records, digest(sparse.toarray(), np.zeros(3), X).records)


def test_a_sparse_matrix_is_not_unfolded() -> None:
    # 2.4 GB as an array.
    schema = Schema.from_bounds({f"x{j}": (0, 1) for j in range(300)}, ("y", 0, 1))
    sparse = scipy.sparse.csr_array((10**6, 300))
    for x, _ in open_table(sparse, schema, np.zeros(10**6)).blocks():
        assert x.nbytes < 2**27
        break


def test_levels_in_a_sparse_matrix() -> None:
    schema = Schema((Column("a", levels=(0, 1, 2)), Column("b", 0, 1)), Column("y", 0, 1))
    dense = np.array([[0, 1], [2, 0], [5, 0]])
    found = digest(scipy.sparse.csc_array(dense), np.zeros(3), schema)
    np.testing.assert_array_equal(found.records, digest(dense, np.zeros(3), schema).records)
    assert (found.records[:3] > 0).tolist() == [[True, False, False], [False] * 3,
                                                [False, True, False]]  # fmt: skip


@pytest.mark.parametrize("x", [
    scipy.sparse.coo_array(np.ones(3)), scipy.sparse.csr_array(np.ones((3, 40), dtype=complex)),
    scipy.sparse.csr_array(np.ones((3, 39))),
], ids=["one dimension", "complex", "too narrow"])  # fmt: skip
def test_sparse_of_another_shape_or_type_is_refused(x: Any) -> None:
    with pytest.raises(TableError):
        open_table(x, X, np.zeros(3))


def test_the_estimator_takes_sparse_matrices() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((200, 5)) * (rng.random((200, 5)) < 0.5)
    y = x[:, 2]
    kept = {}
    for data in (x, scipy.sparse.csr_array(x), scipy.sparse.coo_array(x)):
        selector = dps.PrivateSubsetSelector(
            k=2, epsilon=1000, bounds=dps.Bounds(x=1, y=1), seed=1
        ).fit(data, y)
        kept[type(data)] = selector.get_support().tolist()
        few = selector.transform(data)
        back = selector.inverse_transform(few)
        assert few.shape == (200, 2)
        assert back.shape == (200, 5)
        dense = back.toarray() if scipy.sparse.issparse(back) else back
        np.testing.assert_array_equal(dense, np.where(selector.get_support(), x, 0))
    assert len(set(map(tuple, kept.values()))) == 1


# -- moments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0, 1, 24575])
def test_moments_are_those_of_records(constant: int) -> None:
    records = digest(arrow(), constant=constant)
    moments = Moments.from_blocks(SCHEMA, open_table(arrow(), SCHEMA).blocks(), constant)
    found = GramData.from_moments(moments, constant)
    assert moments.p == 14
    assert found.p == records.p == 14 + (constant != 0)
    records.fetch(range(records.p))
    np.testing.assert_array_equal(found.product_rows(), records.product_rows())
    np.testing.assert_array_equal(found.c, records.c)
    np.testing.assert_array_equal(found.diagonal, records.diagonal)
    assert (found.yy, found.n) == (records.yy, records.n)
    assert moments.checked() == moments
