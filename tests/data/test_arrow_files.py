"""Arrow and Feather files: the answers of other tables, and the checks of Parquet files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dpsubset as dps
from dpsubset.data.moments import Moments
from dpsubset.data.readers import open_table, read_schema
from dpsubset.data.readers.files import header

TABLE = pa.table(
    {
        "age": pa.array([41, None, 900] * 50),
        "kind": pa.array(["a", "b", "?"] * 50).dictionary_encode(),
        "left_out": pa.array([[1]] * 150),
        "cost": pa.array([1.5, 2.5, float("nan")] * 50),
        "text": pa.array(["1.5", "x", None] * 50),
    }
)
SCHEMA = dps.Schema.from_bounds(
    {"age": (0, 110), "kind": {"levels": ["a", "b"]}, "text": (0, 2)}, ("cost", 0, 10)
)


def files(folder: Path) -> list[Path]:
    feather.write_feather(TABLE, folder / "t.feather", chunksize=70)
    feather.write_feather(TABLE, folder / "lz4.ipc", compression="lz4")
    with pa.ipc.new_stream(folder / "t.arrow", TABLE.schema) as stream:
        stream.write_table(TABLE, max_chunksize=40)
    return [folder / "t.feather", folder / "lz4.ipc", folder / "t.arrow"]


def test_an_arrow_file_reads_as_the_table_that_it_holds(tmp_path: Path) -> None:
    wanted = Moments.from_blocks(SCHEMA, open_table(TABLE, SCHEMA).blocks())
    for path in files(tmp_path):
        table = open_table(path, SCHEMA)
        assert Moments.from_blocks(SCHEMA, table.blocks()) == wanted
        responses = np.concatenate(list(table.responses()))
        np.testing.assert_array_equal(responses, TABLE["cost"].to_numpy())
        assert header(path) == TABLE.column_names


def test_a_selection_and_bounds_from_an_arrow_file(tmp_path: Path) -> None:
    path = files(tmp_path)[0]

    def select(data: object) -> object:
        return dps.select(data, SCHEMA, k=1, epsilon=1, seed=3).support

    assert select(path) == select(TABLE)
    bounds = [dps.suggest_bounds(data, {"age": (0, 200)}, epsilon=1, seed=1).bounds
              for data in (path, TABLE)]  # fmt: skip
    assert bounds[0] == bounds[1]


def test_types_and_names_are_checked_as_in_parquet_files(tmp_path: Path) -> None:
    path = files(tmp_path)[0]
    pq.write_table(TABLE, tmp_path / "t.parquet")
    wrong = [({"left_out": (0, 1)}, "holds list, which is not a number"),
             ({"height": (0, 1)}, "no column 'height'")]  # fmt: skip
    for columns, match in wrong:
        schema = dps.Schema.from_bounds(columns, ("cost", 0, 10))
        for file in (path, tmp_path / "t.parquet"):
            with pytest.raises(dps.TableError, match=match):
                open_table(file, schema)


def test_a_damaged_arrow_file_is_an_error_that_does_not_quote_it(tmp_path: Path) -> None:
    whole = files(tmp_path)[0].read_bytes()
    for content in (b"Zaphod" * 9, whole[: len(whole) // 2], b""):
        (tmp_path / "bad.feather").write_bytes(content)
        with pytest.raises(dps.TableError, match="damaged") as found:
            open_table(tmp_path / "bad.feather", SCHEMA)
        assert "Zaphod" not in str(found.value)


def test_patterns_are_expanded_by_the_names_of_an_arrow_file(tmp_path: Path) -> None:
    path = files(tmp_path)[0]
    facts = tmp_path / "schema.yaml"
    facts.write_text(
        "response: {name: cost, lo: 0, hi: 10}\n"
        "columns: {'a*': {lo: 0, hi: 110}, default: {role: ignored}}\n"
    )
    assert read_schema(facts, path).feature_names == ("age",)
