"""Tables of many files, and Arrow datasets: the answers of one file, or a free refusal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset.data.readers import open_table
from dpsubset.data.type_checks import column_kinds
from dpsubset.ledger.ledger import Ledger
from support.ledgers import made

RNG = np.random.default_rng(0)
N = 60
TABLE = pa.table(
    {
        "a": RNG.uniform(-1, 1, N),
        "g": RNG.choice(["u", "v", "w"], N),
        "b": [None, *RNG.integers(0, 9, N - 1).tolist()],
        "y": RNG.uniform(-1, 1, N),
        "year": RNG.choice([2020, 2021], N),
    }
)
SCHEMA = dps.Schema.from_bounds(
    {"a": (-1, 1), "g": {"levels": ["u", "v"]}, "b": (0, 9), "year": (2000, 2030)}, ("y", -1, 1)
)


def moments(data: Any) -> dps.Moments:
    return dps.Moments.from_blocks(SCHEMA, open_table(data, SCHEMA).blocks())


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".parquet": pq.write_table,
    ".feather": pyarrow.feather.write_feather,
    ".csv": lambda table, path: pyarrow.csv.write_csv(table, path),
}


def write(table: pa.Table, path: Path) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    WRITERS[path.suffix](table, path)
    return path


@pytest.fixture
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return made("sqlite", tmp_path_factory.mktemp("ledger"), epsilon=10)


# -- the same table in any parts ---------------------------------------------------------------


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cuts=st.lists(st.integers(0, N), max_size=4).map(sorted),
    order=st.randoms(use_true_random=False),
    suffix=st.sampled_from([*WRITERS]),
    changed=st.none() | st.integers(0, N - 1),
)
def test_any_partition_has_the_moments_of_one_table(
    tmp_path: Path, cuts: list[int], order: Any, suffix: str, changed: int | None
) -> None:
    """Empty parts and parts of one row among them; also after one row of one part is replaced."""
    table = TABLE
    if changed is not None:
        row = pa.Table.from_pylist([{"a": -1.0, "g": "w", "b": 9, "y": None, "year": 2030}],
                                   TABLE.schema)  # fmt: skip
        table = pa.concat_tables([TABLE[:changed], row, TABLE[changed + 1 :]])
    folder = tmp_path / "table"
    shutil.rmtree(folder, ignore_errors=True)
    paths = []
    for place, (start, stop) in enumerate(zip([0, *cuts], [*cuts, N], strict=True)):
        part = table[start:stop]
        names = order.sample(part.column_names, part.num_columns)
        if suffix != ".csv" and order.random() < 0.5:  # a dictionary in one part, text in another
            part = part.set_column(1, "g", part["g"].combine_chunks().dictionary_encode())
        paths.append(write(part.select(names), folder / f"{place}{suffix}"))
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").touch()
    order.shuffle(paths)
    wanted = moments(table)
    sources: list[Any] = [folder, str(folder), f"{folder}/*{suffix}", paths, tuple(map(str, paths))]
    if suffix != ".csv":
        sources.append(ds.dataset(paths, format=suffix[1:]))
    for source in sources:
        assert moments(source) == wanted


def test_rows_are_known_if_all_parts_know_theirs(tmp_path: Path) -> None:
    parquet = [write(TABLE[:9], tmp_path / "a.parquet"), write(TABLE[9:], tmp_path / "b.parquet")]
    assert open_table(parquet, SCHEMA).rows == N
    assert open_table(ds.dataset(parquet), SCHEMA).rows == N
    assert open_table([parquet[0], write(TABLE[9:], tmp_path / "b.csv")], SCHEMA).rows is None


def test_every_function_takes_them_where_it_takes_a_file(tmp_path: Path) -> None:
    one = write(TABLE, tmp_path / "one.parquet")
    write(TABLE[:20], tmp_path / "many" / "1.parquet")
    write(TABLE[20:], tmp_path / "many" / "2.parquet")
    given: dict[str, Any] = {"k": 1, "epsilon": 1, "seed": 1, "ledger": False}
    free: dict[str, Any] = {"k": 1, "epsilon": 1}
    released = dps.select(one, SCHEMA, k=1, epsilon=1, ledger=False)
    model = dps.fit(one, SCHEMA, **given | {"response_range": "declared"}).model
    assert model is not None
    calls: dict[str, Callable[[Any], Any]] = {
        "select": lambda x: dps.select(x, SCHEMA, **given).support,
        "fit": lambda x: dps.fit(x, SCHEMA, **given).support,
        "fit_released": lambda x: dps.fit_released(released, x, SCHEMA, epsilon=1, seed=1).support,
        "bounds": lambda x: dps.suggest_bounds(x, (-5, 3000), epsilon=1, seed=1).bounds,
        "means": lambda x: dps.private_mean(x, (-1, 3000), epsilon=1).names,
        "simulate": lambda x: dps.simulate(x, SCHEMA, draws=3, **free).total(),
        "best_subset": lambda x: dps.best_subset(x, SCHEMA, k=1).support,
        "price": lambda x: str(dps.price(x, SCHEMA, **free)),
        "predict": lambda x: model.predict(x).tolist(),
        "sample": lambda x: [cell.text for cell in dps.read_sample(x, SCHEMA, rows=25).cells],
        "moments": lambda x: dps.moments(x, SCHEMA).products.tolist(),
        "kinds": lambda x: column_kinds(x),
    }
    for name, call in calls.items():
        wanted = call(one)
        for data in (tmp_path / "many", ds.dataset(tmp_path / "many")):
            assert call(data) == wanted, name


def test_patterns_of_a_schema_stand_for_columns_that_all_parts_have(tmp_path: Path) -> None:
    write(TABLE, tmp_path / "1.parquet")
    write(TABLE.drop_columns(["year"]), tmp_path / "2.parquet")
    facts = {"response": {"name": "y", "lo": -1, "hi": 1}, "columns": {"*": {"lo": -1, "hi": 1}}}
    price = dps.price(tmp_path, facts, k=1, epsilon=1)
    assert price.columns == ("a", "g", "b", "y")
    assert any("'g' is text" in warning for warning in price.warnings)
    assert dps.price(ds.dataset(tmp_path), facts, k=1, epsilon=1) == price


# -- what is refused ----------------------------------------------------------------------------


def twice(folder: Path) -> Any:
    path = write(TABLE, folder / "t.parquet")
    (folder / "link.parquet").symlink_to(path)
    return [path, folder / "link.parquet"]


def hard_link(folder: Path) -> Any:
    os.link(write(TABLE, folder / "t.parquet"), folder / "same.parquet")
    return folder


def lacking(folder: Path) -> Any:
    write(TABLE, folder / "good.parquet")
    write(TABLE.drop_columns(["b"]), folder / "lacks.parquet")
    return folder


def mistyped(folder: Path) -> Any:
    write(TABLE, folder / "good.parquet")
    write(TABLE.set_column(0, "a", [[[1.0]] * N]), folder / "listed.parquet")
    return folder


def partitioned(folder: Path) -> Any:
    ds.write_dataset(TABLE, folder, format="parquet", partitioning=["year"],
                     partitioning_flavor="hive")  # fmt: skip
    return folder


def row_groups(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "t.parquet", row_group_size=7)
    (fragment,) = ds.dataset(folder).get_fragments()
    some = [fragment.subset(row_group_ids=[0, 2])]
    return ds.FileSystemDataset(some, TABLE.schema, fragment.format, fragment.filesystem)


def csv_dataset(folder: Path) -> Any:
    return ds.dataset(write(TABLE, folder / "t.csv"), format="csv")


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty folder": (lambda folder: folder, "has no table"),
    "mixed kinds": (
        lambda folder: [write(TABLE, folder / f"t{suffix}") for suffix in WRITERS] and folder,
        r"files of several kinds, such as t\.csv and t\.feather.*by a pattern",
    ),
    "another file": (
        lambda folder: (write(TABLE, folder / "t.csv"), (folder / "about.md").touch()) and folder,
        r"has about\.md, which is no table.*move it out",
    ),
    "folders within": (
        lambda folder: write(TABLE, folder / "more" / "t.csv") and folder,
        r"has folders in it, such as more.*/\*\*/\*\.parquet",
    ),
    "partitions": (partitioned, r"partitioned into folders such as year=2020.*pyarrow\.dataset"),
    "nothing matches": (lambda folder: f"{folder}/*.csv", "no file matches it as a pattern"),
    "pattern of others": (
        lambda folder: (folder / "t.md").touch() or f"{folder}/*",
        r"matches t\.md, which is no table",
    ),
    "twice by link": (twice, r"are the same file, and its rows would count twice"),
    "twice by hard link": (hard_link, "are the same file"),
    "twice by path": (
        lambda folder: [write(TABLE, folder / "t.csv"), f"{folder}/../{folder.name}/t.csv"],
        "are the same file",
    ),
    "twice by folder": (lambda folder: [write(TABLE, folder / "t.csv"), folder], "the same file"),
    "a part lacks a column": (lacking, r"has no column 'b'.*part 2 of 2: .*lacks\.parquet"),
    "a part of another type": (mistyped, r"'a' holds list.*part 2 of 2: .*listed\.parquet"),
    "a damaged part": (
        lambda folder: (folder / "x.parquet").write_bytes(b"Ann,41") and folder,
        r"x\.parquet is not a Parquet file",
    ),
    "filtered dataset": (
        lambda folder: ds.dataset(TABLE).filter(ds.field("a") > 0), "a filtered dataset is not read"
    ),
    "filtered files": (
        lambda folder: ds.dataset(write(TABLE, folder / "t.parquet")).filter(ds.field("a") > 0),
        "a filtered dataset is not read",
    ),
    "dataset of text": (csv_dataset, r"a dataset of CSV files is not read.*dataset\.files"),
    "parts of a file": (row_groups, "some of its row groups only: make a dataset of whole files"),
    "dataset twice": (
        lambda folder: ds.dataset([write(TABLE, folder / "t.parquet")] * 2), "are the same file"
    ),
    "dataset without files": (
        lambda folder: ds.dataset([], schema=TABLE.schema), "has no files|has no column"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_says_why_and_costs_nothing(kind: str, tmp_path: Path, ledger: Ledger) -> None:
    make, says = REFUSED[kind]
    data = make(tmp_path)
    with pytest.raises(dps.TableError, match=says) as caught:
        dps.select(data, SCHEMA, k=1, epsilon=1, ledger=ledger)
    assert ledger.history().entries == {}
    assert "Ann" not in str(caught.value)


def test_other_arguments_beside_files(tmp_path: Path) -> None:
    path = write(TABLE, tmp_path / "t.parquet")
    for data in (ds.dataset(path), tmp_path, path):
        with pytest.raises(dps.ArgumentError, match="y goes with arrays and frames"):
            dps.price(data, SCHEMA, y=TABLE["y"], k=1, epsilon=1)
        with pytest.raises(dps.ArgumentError, match="files or moments need a schema"):
            dps.price(data, bounds=dps.Bounds(x=(-1, 1), y=1), k=1, epsilon=1)


def test_text_beside_a_response_is_a_record() -> None:
    schema = dps.Schema.from_bounds({"file": {"levels": ["a.csv", "b.csv"]}}, ("y", 0, 1))
    dps.price(["a.csv", "b.csv"], schema, y=[0, 1], k=1, epsilon=1)


# -- files that change --------------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("change", ["longer", "touched", "gone"])
def test_a_change_between_passes_ends_the_call_after_its_debit(
    tmp_path: Path, ledger: Ledger, many: bool, change: str
) -> None:
    folder = tmp_path / "table"
    path = write(TABLE, folder / "1.csv")
    if many:
        write(TABLE, folder / "2.csv")

    def between(fraction: float) -> None:
        assert fraction == 0.5  # of two passes, the first
        if change == "longer":
            path.write_text(path.read_text() + "Ann,1,1,1,1\n")
        elif change == "touched":
            os.utime(path, ns=(1, 1))
        else:
            path.unlink()

    with pytest.raises(dps.TableError, match=r"^1\.csv has changed since it was opened.*debited") as caught:  # fmt: skip  # noqa: E501
        dps.select(folder if many else path, SCHEMA, k=1, epsilon=1, ledger=ledger,
                   progress=between)  # fmt: skip
    (entry,) = ledger.history().entries.values()
    assert "Ann" not in f"{caught.value}{entry}"


# -- datasets ------------------------------------------------------------------------------------


def test_partition_columns_are_ordinary_columns(tmp_path: Path) -> None:
    for place, (names, kind) in enumerate(
        [(["year"], "parquet"), (["g", "year"], "feather"), (["year", "y"], "parquet")]
    ):
        folder = tmp_path / str(place)
        ds.write_dataset(TABLE, folder, format=kind, partitioning=names,
                         partitioning_flavor="hive", max_partitions=N)  # fmt: skip
        dataset = ds.dataset(folder, format=kind, partitioning="hive")
        assert moments(dataset) == moments(TABLE), names
        table = open_table(dataset, SCHEMA)
        years = np.concatenate([batch[-1] for batch in table.columns(slice(3, 4))])
        assert sorted(years) == sorted(TABLE["year"].to_pylist())
        responses = np.concatenate(list(table.responses()))
        np.testing.assert_array_equal(np.sort(responses), np.sort(TABLE["y"].to_numpy()))


def test_datasets_of_datasets_and_of_rows_in_memory(tmp_path: Path) -> None:
    files = ds.dataset(write(TABLE[:7], tmp_path / "t.parquet"))
    rest = ds.dataset(TABLE[7:].to_batches(max_chunksize=5))
    assert moments(ds.dataset([files, rest])) == moments(TABLE)


def test_a_file_system_other_than_the_local_one(tmp_path: Path) -> None:
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    write(TABLE[:30], tmp_path / "t" / "1.parquet")
    write(TABLE[30:], tmp_path / "t" / "2.parquet")
    elsewhere = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    dataset = ds.dataset("t", filesystem=elsewhere)
    table = open_table(dataset, SCHEMA)
    assert dps.Moments.from_blocks(SCHEMA, table.blocks()) == moments(TABLE)
    os.utime(tmp_path / "t" / "2.parquet", ns=(1, 1))
    with pytest.raises(dps.TableError, match=r"^2\.parquet has changed"):
        list(table.blocks())
    with pytest.raises(dps.TableError, match="has a file twice"):
        open_table(ds.dataset(["t/1.parquet"] * 2, filesystem=elsewhere), SCHEMA)


def test_cells_are_not_cast_to_the_types_of_a_dataset(tmp_path: Path) -> None:
    """A cast could fail because of one cell, and the types of the first file are those of all."""
    texts = TABLE.set_column(0, "a", [["0.5", "word"] * (N // 2)])
    write(TABLE, tmp_path / "1.parquet")
    write(texts, tmp_path / "2.parquet")
    numbers = texts.set_column(0, "a", [[0.5, None] * (N // 2)])
    assert moments(ds.dataset(tmp_path)) == moments(pa.concat_tables([TABLE, numbers]))
