"""What is not read as a table is refused by its kind, with the way out, before it is paid for."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.sparse

import dpsubset as dps
from dpsubset.ledger.ledger import Ledger
from support.ledgers import made

X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
COLUMNS = {"x0": X[:, 0], "x1": X[:, 1], "y": X[:, 0]}
SCHEMA = dps.Schema.from_bounds({"x0": (-1, 1), "x1": (-1, 1)}, ("y", -1, 1))
BOUNDS = dps.Bounds(x=[(-1, 1), (-1, 1)], y=1)
FRAME, TABLE = pd.DataFrame(COLUMNS), pa.table(COLUMNS)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made("sqlite", tmp_path, epsilon=10)


def stand_in(module: str, name: str, *bases: type) -> Any:
    """An object of a library that is not installed here. Whatever is asked of it is an error."""

    def never(self: Any, name: str) -> Any:
        raise AssertionError(f"{name} was looked at")

    return type(name, bases, {"__module__": module, "__getattribute__": never})()


#: Each with a word of its name and what to do about it.
OBJECTS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "polars lazy": (lambda: pl.LazyFrame(COLUMNS), "lazy frame of polars", r"collect\(\)"),
    "batches": (lambda: TABLE.to_reader(), "reader of Arrow record batches", r"read_all\(\)"),
    "scanner": (lambda: pa.dataset.dataset(TABLE).scanner(), "an Arrow dataset", r"to_table\(\)"),
    "duckdb": (lambda: stand_in("duckdb.duckdb", "DuckDBPyRelation"), "DuckDB", "to_arrow_table"),
    "duckdb 1.4": (lambda: stand_in("_duckdb", "DuckDBPyRelation"), "DuckDB", "to_arrow_table"),
    "dask": (lambda: stand_in("dask.dataframe.dask_expr._collection", "DataFrame"), "Dask",
             r"compute\(\)"),
    "dask array": (lambda: stand_in("dask.array.core", "Array"), "Dask", r"compute\(\)"),
    "spark": (lambda: stand_in("pyspark.sql.classic.dataframe", "DataFrame"), "Spark", "toPandas"),
    "ibis": (lambda: stand_in("ibis.expr.types.relations", "Table"), "Ibis", "to_pyarrow"),
    "dict": (lambda: dict(COLUMNS), "X is a dict", r"pandas\.DataFrame"),
    "set": (lambda: {1.0, 2.0}, "X is a set", "list of records"),
    "generator": (lambda: (row for row in X), "an iterator", r"list\("),
    "map": (lambda: map(tuple, X), "an iterator", r"list\("),
    "open file": (lambda: io.StringIO("x0,x1,y\n1,1,1\n"), "an open file", "path of the file"),
    "series": (lambda: FRAME["x0"], "a single column", r"to_frame\(\)"),
    "polars series": (lambda: pl.Series(X[:, 0]), "a single column", r"to_frame\(\)"),
    "schema": (lambda: SCHEMA, "the description of a table", r"select\(data, schema"),
    "bounds": (lambda: BOUNDS, "the description of a table", r"select\(data, schema"),
}  # fmt: skip

CALLS: dict[str, Callable[..., Any]] = {
    "select": lambda x, **more: dps.select(x, SCHEMA, k=1, epsilon=1, **more),
    "fit": lambda x, **more: dps.fit(x, SCHEMA, k=1, epsilon=1, **more),
    "select with y": lambda x, **more: dps.select(
        x, bounds=BOUNDS, y=X[:, 0], k=1, epsilon=1, **more
    ),
    "regressor": lambda x, **more: dps.PrivateSubsetRegressor(1, 1, bounds=BOUNDS, **more).fit(
        x, X[:, 0]
    ),
    "selector by schema": lambda x, **more: dps.PrivateSubsetSelector(
        1, 1, schema=SCHEMA, **more
    ).fit(x, X[:, 0]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", OBJECTS)
def test_a_kind_is_named_with_the_way_out(ledger: Ledger, call: Any, kind: str) -> None:
    make, name, instead = OBJECTS[kind]
    with pytest.raises(dps.TableError, match=f"{name}.*{instead}"):
        call(make(), ledger=ledger)
    assert ledger.history().entries == {}


@pytest.mark.parametrize("kind", ["polars lazy", "batches", "scanner", "duckdb", "dict", "series"])
def test_bounds_and_means_do_the_same(ledger: Ledger, kind: str) -> None:
    make, name, instead = OBJECTS[kind]
    for call in (dps.suggest_bounds, dps.private_mean):
        with pytest.raises(dps.TableError, match=f"{name.removeprefix('X ')}.*{instead}"):
            call(make(), (-5, 5), epsilon=1, ledger=ledger)
    assert ledger.history().entries == {}


def test_a_dict_subclass_that_is_sparse_is_read() -> None:
    dps.price(scipy.sparse.dok_matrix(X), bounds=BOUNDS, y=X[:, 0], k=1, epsilon=1)


def test_a_lazy_y_is_named_too(ledger: Ledger) -> None:
    for kind in ("polars lazy", "duckdb", "dask", "generator"):
        make, name, instead = OBJECTS[kind]
        with pytest.raises(dps.TableError, match=f"^y is .*{name}.*{instead}"):
            dps.select(X, bounds=BOUNDS, y=make(), k=1, epsilon=1, ledger=ledger)
    assert ledger.history().entries == {}


def test_a_release_is_no_table(ledger: Ledger) -> None:
    release = dps.select(FRAME, SCHEMA, k=1, epsilon=1, ledger=False)
    for call in CALLS.values():
        with pytest.raises(dps.TableError, match=r"a release.*fit_released\(release, data"):
            call(release, ledger=ledger)
    assert ledger.history().entries == {}


def test_an_array_of_one_dimension_is_told_how_to_get_two(ledger: Ledger) -> None:
    with pytest.raises(dps.TableError, match=r"Reshape your data.*reshape\(-1, 1\)"):
        dps.select(X[:, 0], bounds=BOUNDS, y=X[:, 0], k=1, epsilon=1, ledger=ledger)


def test_none_is_no_table() -> None:
    with pytest.raises(dps.TableError, match=r"^X is None, which is no table$"):
        dps.select(None, SCHEMA, k=1, epsilon=1)


def test_what_select_refuses_moments_may_read() -> None:
    for kind in ("polars lazy", "batches", "duckdb", "ibis"):
        with pytest.raises(dps.TableError, match=r"dpsubset\.moments\(data, schema\)"):
            dps.price(OBJECTS[kind][0](), SCHEMA, k=1, epsilon=1)


def test_an_arrow_dataset_is_a_table_and_no_response(ledger: Ledger) -> None:
    dataset = pa.dataset.dataset(TABLE)
    with pytest.raises(dps.TableError, match=r"^y is an Arrow dataset\. Pass an array"):
        dps.select(X, bounds=BOUNDS, y=dataset, k=1, epsilon=1, ledger=ledger)
    assert ledger.history().entries == {}


def test_a_list_of_text_is_one_of_files_by_its_extensions(ledger: Ledger, tmp_path: Path) -> None:
    for paths in (["a.csv", "b.csv"], [tmp_path / "a.csv"]):
        with pytest.raises(dps.TableError, match=r"there is no file a\.csv"):
            dps.select(paths, SCHEMA, k=1, epsilon=1, ledger=ledger)
    with pytest.raises(dps.TableError, match="A list of files is a list of Path objects"):
        dps.select(["Ann", "41"], SCHEMA, k=1, epsilon=1, ledger=ledger)
    assert ledger.history().entries == {}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("s3://bucket/secret-token/table.parquet", "a URL.*Download the file"),
        ("https://example.org/table.csv", "a URL"), ("gs://bucket/table.csv", "a URL"),
        ("folder", "the folder folder has no table"),
        ("part-*.parquet", r"no file part-\*.parquet, and no file matches"),
        ("nothing.csv", "there is no file nothing.csv"),
    ],
)  # fmt: skip
def test_paths_that_are_no_files(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for given in (path, Path(path)):
        with pytest.raises(dps.TableError, match=says) as caught:
            dps.select(given, SCHEMA, k=1, epsilon=1, ledger=ledger)
        assert "secret" not in str(caught.value)
    assert ledger.history().entries == {}


@pytest.mark.parametrize("rows", [1, 2000], ids=["short", "longer than a path"])
def test_the_text_of_a_table_is_not_quoted(ledger: Ledger, rows: int) -> None:
    text = "x0,x1,y\n" + "0.25,31337,0.5\n" * rows
    calls = [
        *CALLS.values(),
        *(lambda x, call=call, **more: call(x, (-5, 5), epsilon=1, **more)
          for call in (dps.suggest_bounds, dps.private_mean)),
        lambda x, **_: dps.fit(FRAME, SCHEMA, k=1, epsilon=1, ledger=False).model.predict(x),
    ]  # fmt: skip
    for call in calls:
        for given in (text, Path(text)):
            with pytest.raises(dps.DpsubsetError) as caught:
                call(given, ledger=ledger)
            assert "31337" not in "".join(traceback.format_exception(caught.value))
            if call is CALLS["select"]:
                assert "is text, which may be the table itself" in str(caught.value)
    assert ledger.history().entries == {}


def test_this_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dps.TableError, match=f"^the folder {tmp_path.name} has no table"):
        dps.select(".", SCHEMA, k=1, epsilon=1)


def test_names_of_several_levels(ledger: Ledger) -> None:
    wide = FRAME.copy()
    wide.columns = pd.MultiIndex.from_tuples([("a", "x0"), ("a", "x1"), ("b", "y")])
    for given in ({"schema": SCHEMA}, {"bounds": BOUNDS, "y": X[:, 0]}):
        with pytest.raises(dps.TableError, match=r"MultiIndex.*Join the levels"):
            dps.select(wide, k=1, epsilon=1, ledger=ledger, **given)
    assert ledger.history().entries == {}


def test_a_declared_column_in_the_index(ledger: Ledger) -> None:
    for index in ("x0", ["x0", "x1"]):
        with pytest.raises(dps.TableError, match=r"'x0' in its index.*reset_index\(\)"):
            dps.select(FRAME.set_index(index), SCHEMA, k=1, epsilon=1, ledger=ledger)
    assert ledger.history().entries == {}
