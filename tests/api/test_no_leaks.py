"""No release, log, warning or error holds a value of the table.

Marker values are planted in tables of every kind. Whatever comes out of a run, good or bad, is
searched for them: text and repr of results, files, standard streams, log records, warnings, and
errors with everything that hangs on them, including contexts that a traceback would not show.
"""

from __future__ import annotations

import datetime
import gzip
import json
import logging
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from typer.testing import CliRunner

import dpsubset as dps
from dpsubset.cli import app
from dpsubset.data.readers import open_table

NUMBER = 7319.4177
WORD = "Zaphod-Quill"
_MARKERS = re.compile(r"7\W?319|Zaphod|Quill", re.IGNORECASE)
# Addresses of objects, and digests, which change with the date of a release: any digits.
_ADDRESS = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{64}\b")

SCHEMA = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, ("y", 0, 1))
# Seeded: the released scale is public, and by chance its digits could be the marker's.
ASKED: dict[str, Any] = {"k": 2, "epsilon": 1, "seed": 7}


def leaks(text: str) -> list[str]:
    return _MARKERS.findall(_ADDRESS.sub("", text))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all it hangs on, suppressed or not."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += [current.__context__, current.__cause__]


def texts_of_error(error: BaseException) -> list[str]:
    texts = ["".join(traceback.format_exception(error))]
    for link in chain(error):
        texts += [str(link), repr(link), repr(link.args), repr(getattr(link, "__notes__", ""))]
    return texts


class Watch:
    """Runs a call and keeps every text that it produces."""

    def __init__(self, caplog: Any, capfd: Any) -> None:
        self._caplog, self._capfd = caplog, capfd
        self.error: BaseException | None = None

    def run(self, call: Callable[[], Any]) -> Any:
        result: Any = None
        texts = []
        with warnings.catch_warnings(record=True) as warned, self._caplog.at_level(logging.INFO):
            warnings.simplefilter("always")
            try:
                result = call()
                texts += [str(result), repr(result)]
            except Exception as error:
                self.error = error
                texts += texts_of_error(error)
        texts += [repr(w.message) + str(w.message) for w in warned]
        texts += [record.getMessage() + repr(record.args) for record in self._caplog.records]
        texts += self._capfd.readouterr()
        self.check(*texts)
        return result

    @staticmethod
    def check(*texts: str) -> None:
        found = [leak for text in texts for leak in leaks(text)]
        assert found == []


@pytest.fixture
def watch(caplog: Any, capfd: Any) -> Watch:
    return Watch(caplog, capfd)


def numbers(n: int = 30) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    return {name: [NUMBER, *rng.uniform(0, 1, n)] for name in ("a", "b", "c", "y")}


def mixed() -> dict[str, list[Any]]:
    """Markers as numbers out of range and as words among numbers."""
    return {name: [*map(str, cells), WORD, str(NUMBER)] for name, cells in numbers().items()}


def csv_text(columns: dict[str, list[Any]], header: bool = True) -> str:
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([*([",".join(columns)] if header else []), *lines]) + "\n"


def parquet_bytes(columns: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue().to_pybytes()


# --- the search itself ---------------------------------------------------------------------------


def test_the_search_finds_markers_where_they_may_hide() -> None:
    assert leaks(f"value {NUMBER}")
    assert leaks(f"{NUMBER:.3e}")
    assert leaks(repr(WORD.encode()))
    assert not leaks("<object at 0x7319>")

    def hidden() -> None:
        try:
            raise ValueError(NUMBER)
        except ValueError:
            raise dps.TableError("clean") from None

    with pytest.raises(dps.TableError) as caught:
        hidden()
    assert not leaks("".join(traceback.format_exception(caught.value)))
    assert any(leaks(text) for text in texts_of_error(caught.value))


# --- tables that cannot be used ------------------------------------------------------------------


def damaged_parquet() -> bytes:
    content = bytearray(parquet_bytes(numbers(), compression="none", use_dictionary=False))
    content[4:40] = b"\xff" * 36  # the header of the first page; the footer stays whole
    return bytes(content)


RUBBISH = bytes(range(256)) * 20 + WORD.encode() + str(NUMBER).encode()
TIMES = [datetime.datetime(7319, 4, 17)] * 3
ONES = {"b": [1.0] * 3, "c": [1.0] * 3, "y": [1.0] * 3}

FILES: dict[str, bytes] = {
    "rubbish.csv": RUBBISH,
    "rubbish.parquet": RUBBISH,
    "rubbish.csv.gz": RUBBISH,
    "rubbish.csv.zst": RUBBISH,
    "truncated.parquet": parquet_bytes(numbers())[:-50],
    "damaged.parquet": damaged_parquet(),
    "truncated.csv.gz": gzip.compress(csv_text(numbers(3000)).encode())[:-2000],
    "csv-as.parquet": csv_text(mixed()).encode(),
    "parquet-as.csv": parquet_bytes(numbers()),
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "no-header.csv": csv_text(numbers(), header=False).encode(),
    "words-no-header.csv": f"{WORD},{WORD},x,{NUMBER}\n1,2,3,4\n".encode(),
    "utf-16.csv": csv_text(mixed()).encode("utf-16"),
    "long-line.csv": (WORD * 20_000).encode(),
    "missing-column.csv": csv_text({k: v for k, v in mixed().items() if k != "c"}).encode(),
    "no-response.csv": csv_text({k: v for k, v in mixed().items() if k != "y"}).encode(),
    "other-names.csv": csv_text({WORD: [1], str(NUMBER): [2]}).encode(),
    "semicolons.csv": csv_text(mixed()).replace(",", ";").encode(),
    "duplicate-header.csv": f"a,a,b,c,y\n{NUMBER},{WORD},1,1,1\n".encode(),
    "other-names.parquet": parquet_bytes({WORD: [1.0], "a": [2.0]}),
    "times.parquet": parquet_bytes({"a": TIMES, **ONES}),
    "struct.parquet": parquet_bytes({"a": [{WORD: 1}] * 3, **ONES}),
    "list.parquet": parquet_bytes({"a": [[NUMBER]] * 3, **ONES}),
    "table.xlsx": RUBBISH,
    "no-ending": csv_text(mixed()).encode(),
}


@pytest.fixture(params=FILES)
def bad_file(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    path.write_bytes(FILES[request.param])
    return path


def test_bad_files(bad_file: Path, watch: Watch) -> None:
    watch.run(lambda: dps.select(bad_file, SCHEMA, **ASKED))
    assert isinstance(watch.error, dps.TableError)


def test_bad_files_among_good_ones(bad_file: Path, watch: Watch) -> None:
    good = bad_file.with_name("good.parquet")
    good.write_bytes(parquet_bytes(numbers()))
    for data in ([good, bad_file], bad_file.parent, f"{bad_file.parent}/*"):
        watch.error = None
        watch.run(lambda data=data: dps.select(data, SCHEMA, **ASKED))
        assert isinstance(watch.error, dps.TableError)


def test_bad_files_on_the_command_line(
    bad_file: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bad_file.parent)
    SCHEMA.write("schema.yaml")
    copy = Path("copy" + bad_file.suffix)
    copy.write_bytes(bad_file.read_bytes())
    asked = ["--k", "2", "--epsilon", "1", "--out", "release.json"]
    for arguments in (
        ["select", bad_file.name, "--schema", "schema.yaml", *asked],
        ["select", bad_file.name, "--schema", copy.name, *asked],
    ):
        result = watch.run(lambda arguments=arguments: CliRunner().invoke(app, arguments))
        watch.check(result.output, result.stderr)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
    assert not Path("release.json").exists()
    # A header may be sound although the rows are not, so this may succeed.
    check = ["schema", "check", "schema.yaml", bad_file.name]
    result = watch.run(lambda: CliRunner().invoke(app, check))
    watch.check(result.output, result.stderr)


@pytest.mark.parametrize(
    "name",
    [
        "rubbish.csv",
        pytest.param("no-header.csv", marks=pytest.mark.statistical),
        "damaged.parquet",
    ],
)
def test_bad_files_in_a_process_of_their_own(name: str, tmp_path: Path, watch: Watch) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    SCHEMA.write(tmp_path / "schema.yaml")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", "from dpsubset.cli import main; main()", "select", name,
         "--schema", "schema.yaml", "--k", "2", "--epsilon", "1"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    watch.check(done.stdout, done.stderr)


@pytest.mark.parametrize("name", ["no-header.csv", "words-no-header.csv", "rubbish.csv"])
def test_schema_init_takes_no_record_for_a_header(name: str, tmp_path: Path, watch: Watch) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    out = tmp_path / "new.yaml"
    arguments = ["schema", "init", str(tmp_path / name), "--out", str(out)]
    result = watch.run(lambda: CliRunner().invoke(app, arguments))
    watch.check(result.output, result.stderr)
    assert result.exit_code == 2
    assert not out.exists()


@pytest.mark.parametrize("ending", [".csv", ".yaml", ".json"])
@pytest.mark.parametrize(
    "content",
    [
        csv_text(mixed()).encode(),
        parquet_bytes(numbers()),
        RUBBISH,
        json.dumps([numbers()]).encode(),
        f"{WORD}: {NUMBER}: x\n".encode(),
        b"[" * 100_000 + WORD.encode(),
    ],
    ids=["csv", "parquet", "rubbish", "json", "colons", "brackets"],
)
def test_the_table_given_as_its_schema(
    content: bytes, ending: str, tmp_path: Path, watch: Watch
) -> None:
    path = tmp_path / f"table{ending}"
    path.write_bytes(content)
    watch.run(lambda: dps.Schema.read(path))
    assert isinstance(watch.error, dps.SchemaError)


FRAMES: dict[str, Callable[[], Any]] = {
    "missing column": lambda: pd.DataFrame({k: v for k, v in numbers().items() if k != "b"}),
    "cells as names": lambda: pd.DataFrame([[1, 2, 3]], columns=[str(NUMBER), WORD, "y"]),
    "cells as repeated names": lambda: pd.DataFrame([[1, 2]], columns=[WORD, WORD]),
    "repeated name": lambda: pd.DataFrame([[NUMBER] * 5], columns=["a", "a", "b", "c", "y"]),
    "pandas times": lambda: pd.DataFrame({"a": pd.to_datetime(["2019-07-31"] * 3), **ONES}),
    "polars times": lambda: pl.DataFrame({"a": TIMES, **ONES}),
    "polars durations": lambda: pl.DataFrame({"a": [datetime.timedelta(7319)] * 3, **ONES}),
    "struct": lambda: pl.DataFrame({"a": [{WORD: NUMBER}] * 3, **ONES}),
    "list of categories": lambda: pl.DataFrame(
        {"a": pl.Series([[WORD]] * 3, dtype=pl.List(pl.Enum([WORD]))), **ONES}
    ),
    "failing query": lambda: pl.LazyFrame(mixed()).with_columns(pl.col("a").cast(pl.Float64)),
}


@pytest.mark.parametrize("name", FRAMES)
def test_bad_frames(name: str, watch: Watch) -> None:
    watch.run(lambda: dps.select(FRAMES[name](), SCHEMA, **ASKED))
    assert isinstance(watch.error, dps.TableError)


def test_a_failing_query_with_bounds(watch: Watch) -> None:
    frame = pl.LazyFrame(mixed()).select(pl.col(WORD))
    bounds = dps.Bounds(x=1, y=1)
    watch.run(lambda: dps.select(frame, y=[1.0], bounds=bounds, **ASKED))
    assert isinstance(watch.error, dps.TableError)


MATRIX = np.full((4, 3), NUMBER)
ARRAYS: dict[str, tuple[Any, Any]] = {
    "one dimension": (MATRIX[0], [NUMBER] * 3),
    "three dimensions": (MATRIX[None], [NUMBER]),
    "array of lists": (np.array([[NUMBER, 1, 2], [NUMBER]], dtype=object), [NUMBER, NUMBER]),
    "a number": (NUMBER, NUMBER),
    "complex": (MATRIX + 1j, MATRIX[:, 0]),
    "complex y": (MATRIX, MATRIX[:, 0] + 1j),
    "times": (np.full((4, 3), "2019-07-31", dtype="datetime64[D]"), MATRIX[:, 0]),
    "sparse": (scipy.sparse.csr_array(MATRIX + 1j), MATRIX[:, 0]),
    "sparse, narrow": (scipy.sparse.csr_array(MATRIX[:, :2]), MATRIX[:, 0]),
    "columns": (MATRIX[:, :2], MATRIX[:, 0]),
    "rows": (MATRIX, [NUMBER] * 3),
    "matrix y": (MATRIX, MATRIX),
    "no y": (MATRIX, None),
    "record array": (np.array([(NUMBER,)], dtype=[("a", float)]), [NUMBER]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_bad_arrays(name: str, watch: Watch) -> None:
    x, y = ARRAYS[name]
    watch.run(lambda: dps.select(x, SCHEMA, y=y, **ASKED))
    assert isinstance(watch.error, dps.TableError)


ARGUMENTS: list[dict[str, Any]] = [
    {"k": 0},
    {"k": 4},
    {"k": 1.5},
    {"epsilon": 0},
    {"epsilon": float("nan")},
    {"epsilon": "1"},
    {"mechanism": "loud"},
    {"loss": "loud"},
    {"constraint": "cube"},
    {"prediction_bound": -1},
    {"prediction_bound": 1, "radius": 1},
    {"ridge": -1},
    {"neighbours": "friends"},
    {"sensitivity": "low"},
    {"always_include": ["d"]},
    {"always_include": [7]},
    {"always_include": ["a", "b", "c"]},
    {"seed": "x"},
    {"schema": None},
    {"schema": 5},
    {"bounds": dps.Bounds(x=1, y=1)},
    {"threshold": 0.5},
    {"loss": "huber", "threshold": 0},
    {"loss": 5},
]


@pytest.mark.parametrize("wrong", ARGUMENTS, ids=str)
def test_wrong_arguments(wrong: dict[str, Any], watch: Watch) -> None:
    frame = pd.DataFrame(mixed())
    watch.run(lambda: dps.select(frame, **{"schema": SCHEMA, **ASKED, **wrong}))
    assert isinstance(watch.error, dps.DpsubsetError)


# --- the selector --------------------------------------------------------------------------------


def fitted() -> dps.PrivateSubsetSelector:
    x = np.array([numbers()[name] for name in "abc"]).T
    return dps.PrivateSubsetSelector(k=2, epsilon=1, bounds=dps.Bounds(x=1, y=1)).fit(
        x, numbers()["y"]
    )


@pytest.mark.parametrize(
    "name", [name for name in ARRAYS if name not in ("columns", "sparse, narrow")]
)
def test_selector_refuses_bad_arrays(name: str, watch: Watch) -> None:
    x, y = ARRAYS[name]
    watch.run(lambda: dps.PrivateSubsetSelector(
        k=2, epsilon=1, bounds=dps.Bounds(x=1, y=1)).fit(x, y))  # fmt: skip
    assert isinstance(watch.error, dps.DpsubsetError)


@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
@pytest.mark.parametrize(
    "x",
    [
        [NUMBER, NUMBER],
        MATRIX[:, :1],
        MATRIX + 1j,
        (MATRIX + 1j)[:, :2],
        pd.DataFrame(MATRIX + 1j),
        pd.DataFrame({"a": [WORD]}),
        scipy.sparse.csr_array(MATRIX + 1j),
        [[NUMBER, WORD], [NUMBER]],
    ],
    ids=[
        "1-d",
        "narrow",
        "complex",
        "complex, narrow",
        "complex frame",
        "frame",
        "sparse",
        "ragged",
    ],
)
def test_selector_refuses_to_transform(x: Any, method: str, watch: Watch) -> None:
    selector = fitted()
    watch.run(lambda: getattr(selector, method)(x))
    assert isinstance(watch.error, ValueError)


# --- runs that succeed ---------------------------------------------------------------------------


def ragged_csv() -> bytes:
    lines = csv_text(mixed()).splitlines()
    odd = [f"{NUMBER},{WORD}", f'"{WORD},{NUMBER}', f"{WORD}" + "," * 9, "\x00" + WORD, WORD * 999]
    return ("\n".join([*lines, *odd]) + "\n").encode() + b"\xff\xfe" + WORD.encode() + b",1,1,1\n"


GOOD: dict[str, Callable[[Path], Any]] = {
    "numbers.csv": lambda path: path.write_text(csv_text(numbers())),
    "mixed.csv": lambda path: path.write_text(csv_text(mixed())),
    "ragged.csv": lambda path: path.write_bytes(ragged_csv()),
    "mixed.csv.gz": lambda path: path.write_bytes(gzip.compress(ragged_csv())),
    "numbers.parquet": lambda path: path.write_bytes(parquet_bytes(numbers())),
    "mixed.parquet": lambda path: path.write_bytes(parquet_bytes(mixed())),
}


@pytest.fixture(params=GOOD)
def good_file(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    GOOD[request.param](path)
    return path


def check_release(watch: Watch, release: Any) -> None:
    assert watch.error is None
    parts = (release, release.guarantee, release.problem, release.sensitivity, release.schema)
    watch.check(
        release.to_json(),
        release.statement(),
        repr(release.to_dict()),
        *(show(part) for part in parts for show in (str, repr)),
    )


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_files_with_bad_cells(good_file: Path, neighbours: str, watch: Watch) -> None:
    release = watch.run(lambda: dps.select(good_file, SCHEMA, neighbours=neighbours, **ASKED))
    check_release(watch, release)
    watch.check(repr(open_table(good_file, SCHEMA)))


def test_files_with_bad_cells_on_the_command_line(good_file: Path, watch: Watch) -> None:
    folder = good_file.parent
    SCHEMA.write(folder / "schema.yaml")
    watch.run(lambda: CliRunner().invoke(
        app, ["schema", "init", str(good_file), "--out", str(folder / "new.yaml")]))  # fmt: skip
    result = watch.run(lambda: CliRunner().invoke(
        app, ["select", str(good_file), "--schema", str(folder / "schema.yaml"), "--k", "2",
              "--epsilon", "1", "--seed", "7", "--out", str(folder / "release.json"),
              "--statement", str(folder / "statement.md")]))  # fmt: skip
    assert result.exit_code == 0
    watch.check(result.output, result.stderr)
    written = [path for path in folder.iterdir() if path != good_file]
    assert len(written) == 4
    watch.check(*(path.read_text() for path in written))


@pytest.mark.parametrize("columns", [numbers, mixed])
@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame, pl.DataFrame, pa.table,
     lambda columns: pd.DataFrame(columns).astype("category"),
     lambda columns: pd.DataFrame({k: [*v, {WORD}, [NUMBER], None] for k, v in columns.items()}),
     ],
    ids=["pandas", "polars", "arrow", "category", "objects"],
)  # fmt: skip
def test_frames_with_bad_cells(frame: Any, columns: Any, watch: Watch) -> None:
    table = frame(columns())
    check_release(watch, watch.run(lambda: dps.select(table, SCHEMA, **ASKED)))


def test_lists_of_records_of_any_shape(watch: Watch) -> None:
    rows = [[NUMBER, 1, 2], [NUMBER], NUMBER, WORD, [WORD, NUMBER, 1j], np.full(3, NUMBER), None]
    y = [NUMBER, [NUMBER], (WORD,), [NUMBER, 1], None, WORD, NUMBER * 1j]
    check_release(watch, watch.run(lambda: dps.select(rows, SCHEMA, y=y, **ASKED)))
    bounds = dps.Bounds(x=[1, 1, 1], y=1)
    selector = watch.run(lambda: dps.PrivateSubsetSelector(**ASKED, bounds=bounds).fit(rows, y))
    check_release(watch, selector.release_)


@pytest.mark.parametrize("columns", [numbers, mixed])
def test_arrays_selectors_moments_and_simulation(columns: Any, watch: Watch) -> None:
    x = np.array([columns()[name] for name in "abc"], dtype=object).T
    y = np.array(columns()["y"], dtype=object)
    bounds = dps.Bounds(x=1, y=1)
    check_release(watch, watch.run(lambda: dps.select(x, y=y, bounds=bounds, **ASKED)))
    watch.run(lambda: dps.simulate(x, y=y, bounds=bounds, draws=20, **ASKED))
    selector = watch.run(lambda: dps.PrivateSubsetSelector(**ASKED, bounds=bounds).fit(x, y))
    check_release(watch, selector.release_)
    watch.check(selector._repr_html_())
    blocks = open_table(x, SCHEMA, y).blocks()
    watch.run(lambda: dps.Moments.from_blocks(SCHEMA, blocks))


def test_sparse_matrices(watch: Watch) -> None:
    x, bounds = scipy.sparse.csr_array(MATRIX), dps.Bounds(x=1, y=1)
    release = watch.run(lambda: dps.select(x, y=MATRIX[:, 0], bounds=bounds, **ASKED))
    check_release(watch, release)
    selector = watch.run(
        lambda: dps.PrivateSubsetSelector(**ASKED, bounds=bounds).fit(x, MATRIX[:, 0])
    )
    check_release(watch, selector.release_)


#: Whatever is declared of a column, the markers are none of it.
DECLARED = dps.Schema.from_bounds(
    {
        "a": {"levels": ["u", "v"], "missing": {"as": "indicator"}},
        "b": {"lo": 1, "hi": 9, "transform": "log", "missing": {"codes": [5], "as": "low"}},
        "c": {"lo": "2000-01-01", "hi": "2020-01-01", "kind": "date"},
    },
    ("y", 0, 1),
)


def test_levels_dates_and_codes(watch: Watch, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "a": ["u", "v", WORD, str(NUMBER), None] * 8,
        "b": [NUMBER, 5, 1, 2, None] * 8,
        "c": ["7319-04-17", "2010-01-01", WORD, str(NUMBER), "7319-04-17T07:31:09.7319Z"] * 8,
        "y": [NUMBER, 0, 1, 0.5, None] * 8,
    }
    (tmp_path / "t.csv").write_text(csv_text(columns))
    (tmp_path / "t.parquet").write_bytes(parquet_bytes(columns))
    frame = pd.DataFrame(columns)
    dated = pa.table({**columns, "c": pa.array([datetime.date(7319, 4, 17)] * 40)})
    for data in (tmp_path / "t.csv", tmp_path / "t.parquet", frame, frame.astype("category"),
                 pl.DataFrame(columns, strict=False), dated, pl.DataFrame(dated)):  # fmt: skip
        release = watch.run(lambda data=data: dps.select(data, DECLARED, **ASKED))
        check_release(watch, release)
        watch.check(repr(open_table(data, DECLARED)))
    wrong = pa.table({**columns, "c": pa.array([NUMBER] * 40)})
    watch.run(lambda: dps.select(wrong, DECLARED, **ASKED))
    assert isinstance(watch.error, dps.TableError)


def test_a_scale_of_the_response_shows_nothing_but_itself(good_file: Path, watch: Watch) -> None:
    # Seeded: the released number is public, and by chance its digits could be the marker's.
    asked: dict[str, Any] = {**ASKED, "response_range": "private", "seed": 1}
    check_release(watch, watch.run(lambda: dps.select(good_file, SCHEMA, **asked)))
    watch.run(lambda: dps.simulate(good_file, SCHEMA, draws=3, **asked))


def test_a_model_shows_nothing_but_itself(good_file: Path, watch: Watch) -> None:
    asked: dict[str, Any] = {**ASKED, "seed": 1}
    release = watch.run(lambda: dps.fit(good_file, SCHEMA, **asked))
    check_release(watch, release)
    watch.check(release.model.to_json(), repr(release.model), str(release.model))
    watch.check(repr(release.fit))


def test_a_model_on_an_earlier_release_shows_nothing_but_itself(
    good_file: Path, watch: Watch
) -> None:
    first = dps.select(good_file, SCHEMA, **{**ASKED, "epsilon": 1, "seed": None})
    release = watch.run(lambda: dps.fit_released(first, good_file, SCHEMA, epsilon=1, seed=1))
    watch.check(release.to_json(), repr(release), str(release), release.statement())
    watch.check(release.model.to_json(), repr(release.model), repr(release.fit))


LABELLED = dps.Schema.from_bounds(
    {"a": (0, 1), "b": (0, 1), "c": (0, 1)}, "y", labels=("no", "yes")
)


@pytest.mark.parametrize("loss", [None, "hinge", "least-squares", "huber"])
def test_a_class_that_was_not_declared(loss: str | None, watch: Watch, tmp_path: Path) -> None:
    """The marker is a class of its own, in a column of labels."""
    columns = {**numbers(), "y": [*["no", "yes"] * 13, WORD, "yes", WORD, str(NUMBER), " no"]}
    (tmp_path / "t.csv").write_text(csv_text(columns))
    (tmp_path / "t.parquet").write_bytes(parquet_bytes(columns))
    frame = pd.DataFrame(columns)
    for data in (tmp_path / "t.csv", tmp_path / "t.parquet", frame, pl.DataFrame(columns),
                 frame.astype({"y": "category"}), pa.table(columns)):  # fmt: skip
        release = watch.run(lambda data=data: dps.select(data, LABELLED, loss=loss, **ASKED))
        check_release(watch, release)
        watch.check(repr(open_table(data, LABELLED)))
    x, bounds = frame[["a", "b", "c"]], dps.Bounds(x=1, labels=("no", "yes"))
    for y in (columns["y"], np.array(columns["y"]), frame["y"].astype("category")):
        selector = watch.run(
            lambda y=y: dps.PrivateSubsetSelector(**ASKED, loss=loss, bounds=bounds).fit(x, y)
        )
        check_release(watch, selector.release_)
        watch.check(selector._repr_html_())


@pytest.mark.parametrize(
    "y", [TIMES, [[WORD]] * 3, [{WORD: 1}] * 3], ids=["times", "list", "struct"]
)
def test_a_label_column_of_a_wrong_type(y: Any, watch: Watch, tmp_path: Path) -> None:
    columns = {"a": [1.0] * 3, **ONES, "y": y}
    (tmp_path / "t.parquet").write_bytes(parquet_bytes(columns))
    for data in (tmp_path / "t.parquet", pl.DataFrame(columns), pa.table(columns)):
        watch.error = None
        watch.run(lambda data=data: dps.select(data, LABELLED, **ASKED))
        assert isinstance(watch.error, dps.TableError)


def test_moments_show_nothing(watch: Watch, tmp_path: Path) -> None:
    table = pd.DataFrame(numbers())
    moments = watch.run(lambda: dps.Moments.from_blocks(SCHEMA, open_table(table, SCHEMA).blocks()))
    shown = repr(moments) + str(moments)
    assert not any(str(entry) in shown for entry in (moments.n, *moments.products.ravel()))
    other = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1), "c": (0, 2)}, ("y", 0, 1))
    watch.run(lambda: dps.select(moments, other, **ASKED))
    assert isinstance(watch.error, dps.ArgumentError)
    watch.run(lambda: dps.moments(pl.DataFrame(mixed(), strict=False).lazy(), SCHEMA))
    strict = pl.LazyFrame({"a": [WORD], "b": [1], "c": [1], "y": [1]}).with_columns(
        pl.col("a").cast(pl.Float64)
    )
    watch.run(lambda: dps.moments(strict, SCHEMA))
    assert isinstance(watch.error, dps.TableError)
    (tmp_path / "moments.npz").write_bytes(RUBBISH)
    watch.run(lambda: dps.Moments.load(tmp_path / "moments.npz"))
    assert isinstance(watch.error, dps.TableError)
