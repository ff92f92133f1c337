"""Work that grows with the number of columns is done once, not once for each column.

A call of an operation on all columns is one that returns something with an entry for each column,
or that searches a list of all columns. Its number must not depend on the number of columns: time
would otherwise grow with their square.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpsubset as dps
from dpsubset.api import sensitive_table
from dpsubset.api.request import build_request
from dpsubset.data.column_selection import select_columns
from dpsubset.data.gram import GramData

ROWS, WIDTHS = 5, (100, 200)

#: Methods that look at each entry of a list.
_SEARCHES = ("index", "count")


def arrow_table(p: int, text: bool = False) -> pa.Table:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"v{j}": rng.uniform(size=ROWS) for j in range(p)}
    if text:
        columns = {name: [f"{cell:.3f}" for cell in cells] for name, cells in columns.items()}
    return pa.table({**columns, "y": rng.uniform(size=ROWS)})


def written(write: Callable[[Any, Path], Any], name: str, text: bool = False) -> Any:
    def build(p: int, folder: Path) -> Path:
        path = folder / f"{p}{name}"
        write(arrow_table(p, text), path)
        return path

    return build


def in_deltas(table: pa.Table, path: Path) -> None:
    """Write text in an encoding that cannot be read as a dictionary: columns are read by
    themselves.
    """
    encoding = {name: "DELTA_BYTE_ARRAY" for name in table.column_names if name != "y"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)


TABLES: dict[str, Callable[[int, Path], Any]] = {
    "pandas": lambda p, _: arrow_table(p).to_pandas(),
    "pandas, pyarrow types": lambda p, _: arrow_table(p).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda p, _: pl.from_arrow(arrow_table(p)),
    "pyarrow": lambda p, _: arrow_table(p),
    "parquet": written(pq.write_table, ".parquet"),
    "parquet of text": written(pq.write_table, ".parquet", text=True),
    "parquet of text in deltas": written(in_deltas, ".parquet", text=True),
    "feather": written(lambda t, path: pa.feather.write_feather(t, path), ".feather"),
    "csv": written(lambda t, path: pa.csv.write_csv(t, path), ".csv"),
}


def calls_on_all_columns(job: Callable[[], Any], p: int) -> Counter[str]:
    """Count the calls of a job that handle at least p entries at once."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, value: Any) -> None:
        if event == "return":
            if isinstance(value, (list, tuple, dict, pa.Schema)) and len(value) >= p:
                found[frame.f_code.co_qualname] += 1
        elif event == "c_call" and getattr(value, "__name__", "") in _SEARCHES:
            owner = getattr(value, "__self__", None)
            if isinstance(owner, (list, tuple)) and len(owner) >= p:
                found[f"{type(owner).__name__}.{value.__name__}"] += 1

    job()  # compiles and imports
    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    return found


def assert_independent_of_width(job_of: Callable[[int], Callable[[], Any]]) -> None:
    few, many = (calls_on_all_columns(job_of(p), p) for p in WIDTHS)
    grown = {name: (few[name], count) for name, count in many.items() if count > few[name]}
    assert many
    assert not grown


@pytest.mark.parametrize("kind", TABLES)
def test_reading_handles_all_columns_equally_often_at_any_width(kind: str, tmp_path: Path) -> None:
    def job_of(p: int) -> Callable[[], Any]:
        data = TABLES[kind](p, tmp_path)
        bounds = tmp_path / f"{p}.yaml"
        dps.Schema.from_bounds({f"v{j}": (0, 1) for j in range(p)}, ("y", 0, 1)).write(bounds)

        def job() -> None:
            request = build_request(data, bounds, k=2, epsilon=1)
            table = request.open(data)
            request.type_mismatches(data)
            assert request.guarantee.proven
            table.count_response()
            gram = table.read(request.problem)
            assert gram.n == ROWS
            assert (np.diagonal(gram.columns)[:p] > 0).all()

        return job

    assert_independent_of_width(job_of)


@pytest.mark.parametrize("kind", ["pyarrow", "parquet", "feather", "csv"])
def test_few_rows_are_kept_and_all_products_are_not_computed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of products grows with the square of the number of columns."""
    p = WIDTHS[0]
    schema = dps.Schema.from_bounds({f"v{j}": (0, 1) for j in range(p)}, ("y", 0, 1))
    data = TABLES[kind](p, tmp_path)
    request = build_request(data, schema, k=2, epsilon=1)

    def read() -> GramData:
        table = request.open(data)
        table.count_response()
        return table.read(request.problem)

    whole = read()
    assert whole.whole
    monkeypatch.setattr(sensitive_table, "_MANY_VARIABLES", p - 1)
    kept = read()
    assert kept.records.shape == (p + 1, ROWS)
    assert not len(kept.columns)
    kept.fetch(range(p + 1))
    assert (kept.product_rows() == whole.product_rows()).all()
    assert (kept.c == whole.c).all()
    if kind in ("feather", "csv"):  # whose number of rows is known once they are read
        for rows, is_whole in ((ROWS, False), (ROWS - 1, True)):
            monkeypatch.setattr(sensitive_table, "_KEPT_BYTES", 8 * rows * (p + 2))
            found = read()
            assert found.whole is is_whole
            assert found.n == ROWS


def test_selecting_columns_searches_no_list_of_them() -> None:
    def job_of(p: int) -> Callable[[], Any]:
        x = np.zeros((ROWS, p))
        return lambda: select_columns(x, {f"x{j}": (0, 1) for j in range(p)}).open(x)

    assert_independent_of_width(job_of)


def test_a_release_is_written_with_all_columns_equally_often() -> None:
    def job_of(p: int) -> Callable[[], Any]:
        table = arrow_table(p)
        schema = dps.Schema.from_bounds({f"v{j}": (0, 1) for j in range(p)}, ("y", 0, 1))
        release = dps.select(table, schema, k=2, epsilon=1, seed=0)

        def job() -> None:
            again = dps.Release.from_json(release.to_json(), schema)
            assert again.features == release.features
            assert all((str(release), repr(release), release._repr_html_()))
            for form in ("markdown", "html", "json", "yaml"):
                assert release.statement(form=form)

        return job

    assert_independent_of_width(job_of)
