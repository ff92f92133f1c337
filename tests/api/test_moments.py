"""`dps.moments`: the sums of any table, also of what has to be computed first; never a release."""

from __future__ import annotations

import os
import stat
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsubset as dps

N = 500
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "a": RNG.uniform(-1, 1, N),
        "g": RNG.choice(["u", "v"], N),
        "left_out": [[1]] * N,
        "y": [None, *RNG.uniform(-1, 1, N - 1)],
    }
)
SCHEMA = dps.Schema.from_bounds({"a": (-1, 1), "g": {"levels": ["u", "v"]}}, ("y", -1, 1))
FRAME = pl.DataFrame(TABLE)
SECRET = "planted-4711"


class Exporter:
    """An object that has an Arrow stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Query:
    """The part of an Ibis table that is used."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def to_pyarrow_batches(self, *, chunk_size: int) -> pa.RecordBatchReader:
        return self.table.to_reader(chunk_size)


Query.__module__ = "ibis.expr.types.relations"


def duckdb_relation(query: str) -> Any:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("held", TABLE.drop_columns(["left_out"]))
    return connection.sql(query)


SOURCES: dict[str, Callable[[], Any]] = {
    "reader": lambda: TABLE.to_reader(70),
    "empty batches": lambda: pa.RecordBatchReader.from_batches(
        TABLE.schema, [*TABLE[:0].to_batches(), *TABLE.to_batches(), *TABLE[:0].to_batches()]
    ),
    "arrow stream": lambda: Exporter(TABLE),
    "lazy": lambda: FRAME.lazy(),
    "lazy query": lambda: FRAME.lazy().filter(pl.col("a") > -2).select("y", "g", "a"),
    "lazy categories": lambda: FRAME.lazy().with_columns(pl.col("g").cast(pl.Categorical)),
    "lazy of narwhals": lambda: nw.from_native(FRAME.lazy()),
    "ibis": lambda: Query(TABLE),
    "duckdb": lambda: duckdb_relation("select y, g, a from held"),
    "table": lambda: TABLE,
    "frame": lambda: FRAME,
    "pandas": lambda: TABLE.to_pandas(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_moments_of_one_table_from_any_source(kind: str) -> None:
    wanted = dps.Moments.from_blocks(SCHEMA, dps_blocks())
    assert dps.moments(SOURCES[kind](), SCHEMA) == wanted


def dps_blocks() -> Any:
    from dpsubset.data.readers import open_table

    return open_table(TABLE, SCHEMA).blocks()


def test_patterns_and_warnings_come_from_names_and_types() -> None:
    facts = {"response": {"name": "y", "lo": -1, "hi": 1}, "columns": {"[ag]": {"lo": 0, "hi": 1}}}
    with pytest.warns(dps.ColumnTypeWarning, match="'g' is text") as caught:
        found = dps.moments(FRAME.lazy(), facts)
    assert found.p == 2
    assert caught[0].filename == __file__


def test_arrays_and_y() -> None:
    x, y = RNG.uniform(-1, 1, (9, 2)), RNG.uniform(-1, 1, 9)
    schema = dps.Schema.from_bounds({"a": (-1, 1), "b": (-1, 1)}, ("y", -1, 1))
    assert dps.moments(x, schema, y=y) == dps.Moments.from_blocks(schema, [(x, y)])
    with pytest.raises(dps.ArgumentError, match="a query or stream holds its response"):
        dps.moments(FRAME.lazy(), SCHEMA, y=y)
    with pytest.raises(dps.ArgumentError, match="these are moments already"):
        dps.moments(dps.moments(TABLE, SCHEMA), SCHEMA)


def broken() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches()
    raise ValueError(SECRET)


FAILING: dict[str, tuple[Callable[[], Any], str]] = {
    "lazy": (
        lambda: FRAME.lazy().with_columns(a=pl.lit(SECRET).cast(pl.Float64)),
        "InvalidOperationError",
    ),
    "lazy types": (lambda: FRAME.lazy().select(pl.col(SECRET)), "ColumnNotFoundError"),
    "reader": (lambda: pa.RecordBatchReader.from_batches(TABLE.schema, broken()), "ValueError"),
    "duckdb": (
        lambda: duckdb_relation(
            f"select case when a > 0 then '{SECRET}' else '1' end::double a, g, y from held"
        ),
        "ConversionException",
    ),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_query_that_fails_quotes_no_cell(kind: str) -> None:
    make, name = FAILING[kind]
    with pytest.raises(dps.TableError, match=f"its query ended with {name}") as caught:
        dps.moments(make(), SCHEMA)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_an_interrupt_is_no_error_of_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Query, "to_pyarrow_batches", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dps.moments(Query(TABLE), SCHEMA)


def test_an_ibis_table_of_a_backend() -> None:
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("pyarrow_hotfix")  # what its backend of polars needs
    held = ibis.polars.connect({"t": FRAME.drop("left_out")}).table("t")
    wanted = dps.moments(FRAME, SCHEMA)
    assert dps.moments(held, SCHEMA) == wanted
    assert dps.moments(held.filter(ibis._.a < -2), SCHEMA).n == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (FRAME["a"], "a single column"),
        (TABLE["a"], "must be two-dimensional"),
        ((row for row in [1]), "an iterator"),
        (None, "X is None"),
        (FRAME.lazy().select("a", "g"), "has no column 'y'"),
        (FRAME.lazy().with_columns(a=pl.col("left_out")), "'a' holds List"),
        (TABLE.drop_columns(["y"]).to_reader(), "has no column 'y'"),
    ],
)
def test_what_is_no_such_table_is_refused(data: Any, says: str) -> None:
    with pytest.raises(dps.TableError, match=says):
        dps.moments(data, SCHEMA)


def test_a_stream_is_not_read_before_its_columns_are_checked() -> None:
    reader = TABLE.drop_columns(["y"]).to_reader(50)
    with pytest.raises(dps.TableError):
        dps.moments(reader, SCHEMA)
    assert reader.read_next_batch().num_rows == 50


def test_progress_is_the_same_for_any_number_of_rows(tmp_path: Path) -> None:
    reports: list[list[float]] = []
    for rows in (1, 99, N):
        pq.write_table(TABLE[:rows], tmp_path / f"{rows}.parquet")
        seen: list[float] = []
        dps.moments(tmp_path / f"{rows}.parquet", SCHEMA, progress=seen.append)
        reports.append(seen)
    assert reports[0] == reports[1] == reports[2] == [step / 100 for step in range(1, 101)]
    seen = []
    dps.moments(FRAME.lazy(), SCHEMA, progress=seen.append)
    assert seen == [1.0]


def test_a_file_of_moments_is_for_its_owner(tmp_path: Path) -> None:
    found, path = dps.moments(TABLE, SCHEMA), tmp_path / "part.npz"
    old = os.umask(0)
    try:
        found.save(path)
        path.chmod(0o644)
        found.save(path)  # also if other users could read it before
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert dps.Moments.load(path) == found
    assert SECRET not in repr(found)
