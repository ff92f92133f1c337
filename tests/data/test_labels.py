"""Labels: declared, canonical, read cell by cell, and the same from every kind of table."""

from __future__ import annotations

import csv
import decimal
import fractions
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpsubset as dps
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.data.readers import open_table
from dpsubset.data.readers.cells import from_objects
from dpsubset.data.readers.labelled import LabelReader
from dpsubset.objective.losses import CLASSIFICATION, LOSSES
from dpsubset.schema.bounds_file import template
from dpsubset.schema.labels import canonical, check_labels
from dpsubset.schema.schema import Column, Schema

NAMES = ["a", "b", "c"]


def schema(labels: Any = ("no", "yes"), rule: Any = None) -> Schema:
    missing = None if rule is None else {"as": rule}
    explained = {"name": "y", "labels": labels, "missing": missing}
    return Schema.from_bounds(dict.fromkeys(NAMES, (-1, 1)), explained)


def response(data: Any, y: Any = None, **options: Any) -> list[int]:
    """The quantized response of a table, in STEPS."""
    declared = schema(**options)
    digest = GramData.from_records(declared, open_table(data, declared, y).blocks())
    assert {int(q) for q in digest.response} <= {-STEPS, 0, STEPS}
    return [int(q) // STEPS for q in digest.response]


# -- declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("no", "yes"), ("no", "yes")),
        ([" no", "yes\t"], ("no", "yes")),
        ((0, 1), (0, 1)),
        ((0.0, np.float32(1)), (0, 1)),
        ((np.int64(2), 1.5), (2, 1.5)),
        ((False, np.True_), ("false", "true")),
        (np.array(["no", "yes"]), ("no", "yes")),
        (("1", "01x"), ("1", "01x")),
        ((0, "none"), (0, "none")),
        ((2**60, 0), (2.0**60, 0)),
    ],
)
def test_labels_have_one_form(given: Any, kept: tuple[Any, Any]) -> None:
    labels = Column("y", labels=given).labels
    assert labels == kept
    assert labels is not None
    assert [type(label) for label in labels] == [type(label) for label in kept]


def repr_of(labels: Any) -> str:
    """A name for a case: the same in every process, whatever the order of a set."""
    return str(sorted(labels)) if isinstance(labels, set) else str(labels)


@pytest.mark.parametrize(
    "labels",
    [
        "no", "ab", b"ab", (), ("no",), ("no", "yes", "maybe"), {"no", "yes"}, 2, {"n": -1, "y": 1},
        ("", "yes"), (" ", "yes"), (None, "yes"), (math.nan, 1), (0, math.inf), ("inf", 0),
        ("no", "no "), (1, True), (1, "1.0"), ("True", 1), (0, -0.0), (10**400, 0), (1j, 0),
        (b"no", b"yes"), (["no"], "yes"), ("a\ud800", "b"), (2**53, 2**53 + 1), ("a" * 1001, "b"),
    ],
    ids=repr_of,
)  # fmt: skip
def test_wrong_labels_are_refused(labels: Any) -> None:
    for declare in (
        lambda: Column("y", labels=labels),
        lambda: dps.Bounds(x=1, labels=labels),
        lambda: schema(labels),
        lambda: Schema.from_dict(
            {"columns": {"a": [0, 1]}, "response": {"name": "y", "labels": labels}}
        ),
    ):
        with pytest.raises(dps.SchemaError, match="label"):
            declare()


def test_labels_are_the_response_s_alone_and_in_place_of_bounds() -> None:
    with pytest.raises(dps.SchemaError, match="only the response"):
        Schema((Column("a", labels=("n", "y")), Column("b", 0, 1)), Column("y", 0, 1))
    with pytest.raises(dps.SchemaError, match="only the response"):
        Schema.from_dict({"columns": {"a": {"labels": ["n", "y"]}, "b": [0, 1]},
                          "response": {"name": "y", "lo": 0, "hi": 1}})  # fmt: skip
    with pytest.raises(dps.SchemaError, match="one of them"):
        Column("y", 0, 1, labels=("n", "y"))
    with pytest.raises(dps.SchemaError, match="must not come from the data"):
        dps.Bounds(x=1)
    with pytest.raises(dps.SchemaError, match="not both"):
        dps.Bounds(x=1, y=1, labels=("n", "y"))
    with pytest.raises(dps.SchemaError, match="must not come from the data"):
        Schema.from_bounds({"a": (0, 1)}, "y")
    with pytest.raises(dps.SchemaError, match="its name"):
        Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1), labels=("n", "y"))


LABEL = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.sampled_from(["yes", "no", "on", "off", "true", "False", "null", "~", "1e3", "12:30",
                       "1_0", "2020-01-01", "0x1F", "#", "- a", 'a "b"', "\x85", "1.0", "~n"])
)  # fmt: skip


@given(st.tuples(LABEL, LABEL), st.sampled_from(["s.yaml", "s.json"]))
def test_a_bounds_file_gives_the_same_labels_again(
    tmp_path_factory: pytest.TempPathFactory, labels: Any, name: str
) -> None:
    try:
        declared = schema(labels)
    except dps.SchemaError:
        return
    path = tmp_path_factory.getbasetemp() / name
    declared.write(path)
    again = Schema.read(path)
    assert again == declared
    assert again.fingerprint() == declared.fingerprint()
    assert again.response.labels is not None
    assert [*map(type, again.response.labels)] == [*map(type, declared.response.labels or ())]
    assert check_labels(again.response.labels, "") == again.response.labels


def test_yaml_s_other_booleans_are_words(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    for text, labels in (("no, yes", ("no", "yes")), ("Off, On", ("Off", "On")),
                         ("false, true", ("false", "true")), ("0, 1", (0, 1))):  # fmt: skip
        path.write_text(f"response: {{name: y, labels: [{text}]}}\ncolumns: {{yes: [0, 1]}}\n")
        read = Schema.read(path)
        assert read.response.labels == labels
        assert read.feature_names == ("yes",)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_template_is_filled_in_with_labels(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"s.{ending}"
    template(["a", "y"], path)
    text = path.read_text()
    assert "labels: [negative, positive]" in text or ending == "json"
    text = text.replace("{name: null, lo: null", "{name: y, labels: [no, yes], lo: null")
    text = text.replace('"name": null', '"name": "y", "labels": ["no", "yes"]')
    text = text.replace("a: {lo: null, hi: null}", "a: [0, 1]")
    text = text.replace('"a": {\n      "lo": null,\n      "hi": null\n    }', '"a": [0, 1]')
    path.write_text(text)
    assert Schema.read(path).response == Column("y", labels=("no", "yes"))


def test_fingerprints_tell_labels_apart_and_those_of_bounds_are_as_they_were() -> None:
    declared = [("no", "yes"), ("yes", "no"), (0, 1), ("0", "1"), (False, True)]
    prints = {schema(labels).fingerprint() for labels in declared}
    assert len(prints) == len(declared)
    assert schema((0, 1)).fingerprint() == schema((0.0, 1.0)).fingerprint()
    # Saved moments and releases remember this one.
    plain = Schema.from_bounds({"a": (0, 1)}, ("y", 0, 1))
    assert plain.fingerprint() == PLAIN


PLAIN = "e66bb823fee4c7c91f98827b871c87935dcd9d9b07697f5d95c5b243cf9125e2"


# -- cells ----------------------------------------------------------------------------------------


def oracle(labels: tuple[Any, Any], cell: Any) -> float:
    """What one cell counts as, by the definition, in plain Python."""
    if isinstance(cell, bytes):
        cell = cell.decode("latin-1") if not cell.isascii() else cell.decode()
    if isinstance(cell, str):
        text = cell.strip(" \t")
        read: Any = canonical(text)
    elif isinstance(cell, (bool, int, float, decimal.Decimal, fractions.Fraction)):
        read = float(cell) if abs(cell) < 10**300 else None
    else:
        read = None
    for label, image in zip(labels, (-1.0, 1.0), strict=True):
        wanted = canonical(label)
        if type(read) is type(wanted) and read == wanted:
            return image
    return math.nan


CELLS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(-1e300, 1e300)
    | st.sampled_from([0.0, 1.0, 2.0, math.nan, 10**400, -(10**400)])
    | st.text(max_size=3)
    | st.sampled_from(["no", "yes", " yes\t", "Yes", "yes\n", "yes\0", "yes ", "no.", "n.o", "1",
                       "1.0", "01", " +1e0 ", "true", "TRUE ", "False", "falsch", "nö", "a?",
                       "a\ud800", "(", ""])
    | st.sampled_from([b"no", b"yes", b" yes ", b"1", b"\xff", b"n\xc3\xb6", b"true", b""])
    | st.builds(object)
    | st.decimals(-2, 2, places=1)
    | st.fractions(-2, 2)
    | st.lists(st.integers(), min_size=2, max_size=3)  # of one, it would be a column's cell
)  # fmt: skip
PAIRS = st.sampled_from(
    [
        ("no", "yes"),
        ("yes", "no"),
        (0, 1),
        (2, 1),
        ("false", "true"),
        ("n.o", "("),
        ("nö", "a?"),
        ("1", "no"),
        (1.5, 0.5),
        ("01", "00"),
    ]
)


@given(PAIRS, st.lists(CELLS, max_size=12))
@example(("nö", "no"), [b"n\xf6", b"n\xc3\xb6", "nö"])
def test_a_cell_s_image_depends_on_itself_alone(labels: Any, cells: list[Any]) -> None:
    read = LabelReader(check_labels(labels, "y"))
    images = from_objects(cells, read)
    alone = [from_objects([cell], read)[0] for cell in cells]
    np.testing.assert_array_equal(images, alone)
    known = [i for i, cell in enumerate(cells) if not isinstance(cell, bytes) or cell.isascii()]
    wanted = [oracle(labels, cells[i]) for i in known]
    np.testing.assert_array_equal(images[known], wanted)
    # All rules send what is left to a place that depends on nothing else.
    x = np.zeros((len(cells) + 1, 3))
    for rule, place in (("low", -1), ("middle", 0), ("high", 1), (None, 0)):
        sent = response(x, [*cells, labels[1]], labels=labels, rule=rule)
        assert sent == [*(place if math.isnan(image) else int(image) for image in images), 1]


@given(
    PAIRS, st.lists(st.binary(max_size=6) | st.sampled_from([b"no", b"yes", b" 1 "]), max_size=9)
)
def test_lines_of_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, labels: Any, cells: list[bytes]
) -> None:
    """One line, one record, whatever its label field holds; nothing raises."""
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    path.write_bytes(b"a,b,c,y\n" + b"".join(b"0,0,0," + cell + b"\n" for cell in cells))
    lines = [line for line in path.read_bytes().split(b"\n")[1:] if line.rstrip(b"\r")]
    found = response(path, labels=labels)
    assert len(found) == len(lines)
    for line, image in zip(lines, found, strict=True):
        path.write_bytes(b"a,b,c,y\n" + line + b"\n")
        assert response(path, labels=labels) == [image]


def test_texts_are_compared_byte_by_byte() -> None:
    cells = ["nö", "nö".encode(), "nö".encode("latin-1"), "no\u0308", "ö" * 1000, "ö" * 999]
    read = LabelReader(check_labels(("nö", "ö" * 1000), "y"))
    assert from_objects(cells, read).tolist()[:2] == [-1, -1]
    assert np.isnan(from_objects(cells, read)[[2, 3, 5]]).all()
    assert from_objects(cells, read)[4] == 1


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1)])
def test_tables_without_rows(labels: Any, tmp_path: Path) -> None:
    empty: dict[str, list[Any]] = {name: [] for name in (*NAMES, "y")}
    made = arrow(empty, pa.string() if labels == ("no", "yes") else pa.bool_())
    for name, clothe in CLOTHES.items():
        data, y = clothe(empty, made, tmp_path)
        if "array" in name or "list" in name:
            data = np.empty((0, 3))
        release = dps.select(data, schema(labels), y=y, k=1, epsilon=1, neighbours="add-remove")
        assert release.support is not None, name


def test_one_record_of_another_shape_does_not_change_how_the_others_are_read() -> None:
    column = [["no"], ["yes"], ["yes"]]
    assert response(np.zeros((3, 3)), column) == [-1, 1, 1]
    for cell in ("yes", ["yes", 1], [], [["yes"]], b"\xff", 10**400, 1j, np.zeros(2)):
        changed = response(np.zeros((3, 3)), [["no"], cell, ["yes"]])
        assert changed == [-1, 1 if isinstance(cell, str) else 0, 1]


def test_quotes_within_quotes(tmp_path: Path) -> None:
    cells = ['5" pipe', 'say "x"', "a,b", "a"]
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([[*NAMES, "y"], *([0, 0, 0, cell] for cell in cells)])
    assert response(tmp_path / "t.csv", labels=cells[:2]) == [-1, 1, 0, 0]
    assert response(tmp_path / "t.csv", labels=cells[2:]) == [0, 0, -1, 1]


# -- one table in all clothes ---------------------------------------------------------------------

#: Kinds of label columns: labels, cells (None is missing), and the Arrow type that holds them.
COLUMNS: dict[str, tuple[Any, list[Any], pa.DataType]] = {
    "text": (("no", "yes"), ["no", "yes", "maybe", None, " yes", "No", "1"], pa.string()),
    "numbers": ((0, 1), [0, 1, 2, None, 1, -1, 0], pa.int64()),
    "quoted numbers": (("2", "1"), [2, 1, 2, None, 1, 3, 0], pa.int8()),
    "floats": ((0.5, 1.5), [0.5, 1.5, 1.0, None, math.nan, math.inf, 0.5], pa.float64()),
    "booleans": ((False, True), [False, True, True, None, False, False, True], pa.bool_()),
    "words": (("False", "True"), ["False", "true", "TRUE", None, "f", "0", "1"], pa.string()),
}


def table(cells: list[Any], n: int = 400) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (n, 3))
    pick = rng.integers(0, len(cells), n)
    pick[: len(cells)] = range(len(cells))
    # The first two cells are the labels: mostly they follow the second variable.
    pick = np.where(rng.uniform(size=n) < 0.8, (x[:, 1] > 0).astype(int), pick)
    return {name: x[:, j].tolist() for j, name in enumerate(NAMES)} | {
        "y": [cells[i] for i in pick]
    }


def arrow(columns: dict[str, list[Any]], kind: pa.DataType) -> pa.Table:
    kinds = {name: pa.float64() for name in NAMES} | {"y": kind}
    return pa.table({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})


def delimited(columns: dict[str, list[Any]], path: Path) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([repr(cell) if isinstance(cell, float) else cell for cell in row])
    return path


def parquet(made: pa.Table, path: Path) -> Path:
    pq.write_table(made, path, row_group_size=100)
    return path


def encoded(made: pa.Table) -> pa.Table:
    return made.set_column(3, "y", made["y"].combine_chunks().dictionary_encode())


def x_of(columns: dict[str, list[Any]]) -> np.ndarray:
    return np.array([columns[name] for name in NAMES]).T


#: What a table looks like: its columns, its Arrow form and a folder, to data and y.
CLOTHES: dict[str, Callable[[dict[str, list[Any]], pa.Table, Path], tuple[Any, Any]]] = {
    "csv": lambda t, a, d: (delimited(t, d / "t.csv"), None),
    "tsv": lambda t, a, d: (delimited(t, d / "t.tsv"), None),
    "parquet": lambda t, a, d: (parquet(a, d / "t.parquet"), None),
    "parquet dictionary": lambda t, a, d: (parquet(encoded(a), d / "d.parquet"), None),
    "pyarrow": lambda t, a, d: (a, None),
    "pyarrow dictionary": lambda t, a, d: (encoded(a), None),
    "pandas": lambda t, a, d: (a.to_pandas(), None),
    "pandas objects": lambda t, a, d: (pd.DataFrame(t, dtype=object), None),
    "pandas nullable": lambda t, a, d: (a.to_pandas().convert_dtypes(), None),
    "pandas arrow": lambda t, a, d: (a.to_pandas(types_mapper=pd.ArrowDtype), None),
    "pandas category": lambda t, a, d: (a.to_pandas().astype({"y": "category"}), None),
    "polars": lambda t, a, d: (pl.from_arrow(a), None),
    "polars objects": lambda t, a, d: (
        pl.DataFrame({**t, "y": pl.Series(t["y"], dtype=pl.Object)}), None),
    "array, list": lambda t, a, d: (x_of(t), t["y"]),
    "array, objects": lambda t, a, d: (x_of(t), np.array(t["y"], dtype=object)),
    "array, pandas": lambda t, a, d: (x_of(t), a.to_pandas()["y"]),
    "array, category": lambda t, a, d: (x_of(t), a.to_pandas()["y"].astype("category")),
    "array, nullable": lambda t, a, d: (x_of(t), a.to_pandas().convert_dtypes()["y"]),
    "array, polars": lambda t, a, d: (x_of(t), pl.from_arrow(a)["y"]),
    "array, pyarrow": lambda t, a, d: (x_of(t), a["y"]),
    "array, column": lambda t, a, d: (x_of(t), np.array(t["y"], dtype=object)[:, None]),
    "lists": lambda t, a, d: (x_of(t).tolist(), t["y"]),
    "frame, list": lambda t, a, d: (pd.DataFrame(t)[NAMES], t["y"]),
    "frame, series": lambda t, a, d: (pd.DataFrame(t)[NAMES], pd.Series(t["y"], dtype=object)),
    "frame, category": lambda t, a, d: (
        pl.DataFrame(t, strict=False)[NAMES], a.to_pandas()["y"].astype("category")),
    "frame, frame": lambda t, a, d: (pl.from_arrow(a)[NAMES], pl.from_arrow(a)[["y"]]),
}  # fmt: skip


@pytest.mark.parametrize("rule", ["middle", "low", "drop", None])
@pytest.mark.parametrize("kind", COLUMNS)
def test_the_same_labels_in_any_clothes(kind: str, rule: str | None, tmp_path: Path) -> None:
    labels, cells, arrow_kind = COLUMNS[kind]
    columns = table(cells)
    declared = schema(labels, rule)
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "seed": 11}
    expected = [0 if math.isnan(v) else int(v) for v in (oracle(
        check_labels(labels, ""), cell) for cell in columns["y"])]  # fmt: skip
    if rule == "low":
        expected = [image or -1 for image in expected]
    assert {-1, 1} <= set(expected)
    records, releases = set(), []
    for name, clothe in CLOTHES.items():
        data, y = clothe(columns, arrow(columns, arrow_kind), tmp_path)
        digest = GramData.from_records(declared, open_table(data, declared, y).blocks())
        assert (digest.response // STEPS).tolist() == expected, name
        records.add(digest.records.tobytes())
        releases.append(dps.select(data, declared, y=y, **asked))
    assert len(records) == 1
    assert all(release == releases[0] for release in releases)
    assert releases[0].features == ["b"]


@pytest.mark.parametrize("kind", ["U", "S", "T", "bool", "uint8", "float32"])
def test_arrays_of_one_type(kind: str) -> None:
    if kind in ("U", "S", "T"):
        y: Any = np.array(["no", "yes", "x", "yes"])
        y = y.astype(np.dtypes.StringDType() if kind == "T" else kind)
        assert response(np.zeros((4, 3)), y) == [-1, 1, 0, 1]
    else:
        y = np.array([0, 1, 1, 0]).astype(kind)
        assert response(np.zeros((4, 3)), y, labels=(0, 1)) == [-1, 1, 1, -1]
        with pytest.raises(dps.TableError, match="no cell of it could be read"):
            response(np.zeros((4, 3)), y, labels=("no", "yes"))


def test_a_polars_enum_and_categorical() -> None:
    for kind in (pl.Enum(["no", "yes", "x"]), pl.Categorical):
        frame = pl.DataFrame({**dict.fromkeys(NAMES, 0.0), "y": pl.Series(["no", "x", None, "yes"],
                                                                         dtype=kind)})  # fmt: skip
        assert response(frame) == [-1, 0, 0, 1]


# -- releases -------------------------------------------------------------------------------------


def words(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, 5))
    return x, np.where(x[:, 1] - x[:, 3] + 0.2 * rng.normal(size=n) > 0, "yes", "no")


BOUNDS = dps.Bounds(x=1, labels=("no", "yes"))


@pytest.mark.parametrize("loss", [None, *LOSSES])
def test_every_loss_takes_labels(loss: str | None) -> None:
    x, y = words()
    release = dps.select(x, y=y, bounds=BOUNDS, k=2, epsilon=1000, loss=loss)
    assert release.support == (1, 3)
    assert release.problem.loss == (CLASSIFICATION if loss is None else loss)
    # The same as with numbers that were mapped by hand.
    sign = np.where(y == "yes", 1.0, -1.0)
    asked: dict[str, Any] = {"k": 2, "epsilon": 1, "draws": 20, "seed": 4,
                             "loss": CLASSIFICATION if loss is None else loss}  # fmt: skip
    by_hand = dps.simulate(x, y=sign, bounds=dps.Bounds(x=1, y=1), **asked)
    assert dps.simulate(x, y=y, bounds=BOUNDS, **asked) == by_hand
    assert dps.best_subset(x, y=y, bounds=BOUNDS, k=2, loss=loss).support == (1, 3)


def test_the_default_loss_goes_by_the_response() -> None:
    x, y = words(50)
    numbers = dps.select(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1)
    assert numbers.problem.loss == "least-squares"
    assert dps.select(x, y=y, bounds=BOUNDS, k=1, epsilon=1).problem.loss == CLASSIFICATION
    one = dps.top_supports(x, y=y, bounds=BOUNDS, k=1, count=1)[0]
    assert one == dps.best_subset(x, y=y, bounds=BOUNDS, k=1, loss=CLASSIFICATION)


def test_what_is_for_least_squares_says_so() -> None:
    x, y = words(50)
    with pytest.raises(dps.ArgumentError, match="loss='least-squares'"):
        dps.select(x, y=y, bounds=BOUNDS, k=1, epsilon=1, mechanism="peeling", loss="hinge")
    assert dps.select(x, y=y, bounds=BOUNDS, k=1, epsilon=1, mechanism="peeling",
                      loss="least-squares").features  # fmt: skip
    declared = BOUNDS.schema([f"x{j}" for j in range(5)])
    moments = dps.Moments.from_blocks(declared, open_table(x, declared, y).blocks())
    with pytest.raises(dps.ArgumentError, match="loss='least-squares'"):
        dps.select(moments, declared, k=1, epsilon=1, loss="logistic")
    asked: dict[str, Any] = {"k": 1, "epsilon": 1, "seed": 1, "loss": "least-squares"}
    again = dps.select(moments, declared, **asked)
    assert again == dps.select(x, declared, y=y, **asked, response_range="declared")


@pytest.mark.parametrize(
    ("rule", "loss", "place"),
    [
        ("middle", None, "counts as 0"), ("middle", "hinge", "counts as yes"),
        ("middle", "least-squares", "counts as 0"), ("middle", "huber", "counts as 0"),
        ("low", None, "counts as no"), ("high", "least-squares", "counts as yes"),
        ("drop", "hinge", "cannot be read"), (None, None, "cannot be read"),
    ],
)  # fmt: skip
def test_a_release_says_how_labels_count(rule: str | None, loss: str | None, place: str) -> None:
    x, y = words(50)
    release = dps.select(x[:, :3], schema(rule=rule), y=y, k=1, epsilon=1, loss=loss)
    statement = release.statement()
    assert ("`y` contribute nothing" in statement) == (rule in (None, "drop"))
    assert "no counts as -1, yes as 1" in statement
    assert f"a cell with neither {place}" in statement
    assert "| y | no | yes |" in statement
    assert f"smallest {loss or CLASSIFICATION} objective" in statement
    stated = release.to_dict()["parameters"]
    assert stated["labels"] == [
        {"label": "no", "counts_as": -1}, {"label": "yes", "counts_as": 1}
    ]  # fmt: skip
    assert stated["loss"] == release.problem.loss


def test_a_release_without_labels_has_none() -> None:
    x, _ = words(50)
    release = dps.select(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1)
    assert release.to_dict()["parameters"]["labels"] is None
    assert "label" not in release.statement()


def test_where_bad_cells_go_is_what_the_statement_says() -> None:
    """Unknown classes at the middle count as the second label for the losses of labels."""
    x, y = words()
    other = y.astype(object)
    other[::7] = "unknown"
    filled = np.where(other == "unknown", "yes", other)
    for loss in ("logistic", "hinge"):
        declared = Schema.from_bounds(
            {f"x{j}": (-1, 1) for j in range(x.shape[1])},
            {"name": "y", "labels": ("no", "yes"), "missing": {"as": "middle"}},
        )
        asked: dict[str, Any] = {"schema": declared, "k": 2, "count": 10, "loss": loss}
        assert dps.top_supports(x, y=other, **asked) == dps.top_supports(x, y=filled, **asked)
