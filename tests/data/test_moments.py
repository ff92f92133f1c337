"""Moments: exact integer products, the same bytes however the records arrive."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from threadpoolctl import threadpool_limits

import dpsubset
from dpsubset import ArgumentError, DpsubsetError, Moments, Schema, TableError
from dpsubset.data import moments
from dpsubset.data.gram import GramData
from dpsubset.data.moments import LARGEST_N, Accumulator
from dpsubset.data.quantize import STEPS, Quantizer

P = 3
SCHEMA = Schema.from_bounds({"a": (-10, 10), "b": (0, 100), "c": (-1, 1)}, ("y", -50, 30))
ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)
TABLES = hnp.arrays(np.float64, st.tuples(st.integers(0, 40), st.just(P + 1)), elements=ANY)
#: Every dtype that a table of numbers may have; integers up to 100 are the same in all of them.
DTYPES = [
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16,
    np.float32, np.float64, np.longdouble, np.dtype(">f8"), np.dtype(">i4"),
]  # fmt: skip


def oracle(table: np.ndarray, schema: Schema = SCHEMA) -> list[list[int]]:
    """X'X in Python integers, of whatever size."""
    quantized = np.empty(table.shape)
    Quantizer(schema).records(table[:, :-1], table[:, -1], quantized)
    rows = [[int(q) for q in row] for row in quantized]
    width = table.shape[1]
    return [[sum(r[i] * r[j] for r in rows) for j in range(width)] for i in range(width)]


def of(table: np.ndarray, schema: Schema = SCHEMA, constant: int = 0) -> Moments:
    return Moments.from_blocks(schema, [(table[:, :-1], table[:, -1])], constant)


def state(m: Moments) -> tuple[bytes, int, str, int]:
    assert m.products.dtype == np.int64
    return m.products.tobytes(), m.n, m.fingerprint, m.constant


def cut(table: np.ndarray, ends: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    edges = sorted({0, len(table), *(min(e, len(table)) for e in ends)})
    for start, stop in itertools.pairwise(edges):
        yield table[start:stop, :-1], table[start:stop, -1]


@given(TABLES)
def test_products_are_those_of_python_integers(table: np.ndarray) -> None:
    m = of(table)
    assert m.products.tolist() == oracle(table)
    assert (m.n, m.p) == (len(table), P)
    assert m.fingerprint == SCHEMA.fingerprint()


@given(
    table=TABLES,
    ends=st.lists(st.integers(0, 40), max_size=6),
    order=st.randoms(use_true_random=False),
    layout=st.sampled_from("CF"),
    exact_rows=st.sampled_from([1, 2, 7, 2**22]),
    work_bytes=st.sampled_from([1, 100, 2**26]),
    threads=st.sampled_from([1, 2, 4]),
)
def test_the_same_bytes_for_any_way_of_the_records(
    table: np.ndarray, ends: list[int], order: object, layout: str, exact_rows: int,
    work_bytes: int, threads: int,
) -> None:  # fmt: skip
    wanted = state(of(table))
    rows = list(range(len(table)))
    order.shuffle(rows)  # type: ignore[attr-defined]
    shuffled = np.asarray(table[rows], order=layout)
    # Few exact rows: sums move on to int64 all the time. Little work space: many products.
    with (
        mock.patch.object(moments, "_EXACT_ROWS", exact_rows),
        mock.patch.object(moments, "_WORK_BYTES", work_bytes),
        threadpool_limits(threads),
    ):
        assert state(Moments.from_blocks(SCHEMA, cut(shuffled, ends), 0)) == wanted


@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 20), st.just(P + 1)),
               elements=st.integers(0, 100)),
    st.sampled_from(DTYPES),
    st.sampled_from("CF"),
)  # fmt: skip
def test_the_same_bytes_for_any_dtype(table: np.ndarray, dtype: type, layout: str) -> None:
    converted = np.asarray(table, dtype=dtype, order=layout)
    assert state(of(converted)) == state(of(table.astype(np.float64)))


def test_booleans_are_zero_and_one() -> None:
    table = np.array([[True, False, True, True], [False, False, True, False]])
    assert state(of(table)) == state(of(table.astype(np.float64)))


def test_long_doubles_beyond_float64_clip_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    huge = np.array([[1, -1, 1, -1]], dtype=np.longdouble) * np.finfo(np.longdouble).max
    assert state(of(huge)) == state(of(np.array([[1, -1, 1, -1]]) * np.inf))
    assert not recwarn.list


def test_the_same_bytes_for_any_number_of_threads_on_a_large_block() -> None:
    # Large enough for BLAS to share the product among its threads.
    rng = np.random.default_rng(0)
    schema = Schema.from_bounds({f"x{j}": (-3, 3) for j in range(150)}, ("y", -3, 3))
    table = rng.normal(size=(3000, 151))
    states = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            states.add(state(of(table, schema)))
    assert len(states) == 1
    quantized = np.empty(table.shape)
    Quantizer(schema).records(table[:, :-1], table[:, -1], quantized)
    integers = quantized.astype(np.int64)
    np.testing.assert_array_equal(of(table, schema).products, integers.T @ integers)


def test_sums_beyond_float64_are_exact() -> None:
    # An odd sum above 2**53: no float64 is equal to it.
    block, blocks, rest = 2**20, 8, 11_393
    schema = Schema.from_bounds({"a": (-1, 1)}, ("y", -1, 1))
    total = Accumulator(Quantizer(schema))
    ones = np.ones((block, 1))
    for _ in range(blocks):
        total.add(ones, -ones[:, 0])
    total.add(ones[:rest], ones[:rest, 0])
    m = total.moments()
    n = block * blocks + rest
    assert n * STEPS**2 > 2**53
    assert n % 2 == 1
    assert m.products[0, 0] == m.products[1, 1] == n * STEPS**2
    assert m.products[0, 1] == m.products[1, 0] == (2 * rest - n) * STEPS**2
    assert m.n == n


@given(TABLES, TABLES, TABLES)
def test_moments_of_parts_merge_into_those_of_the_whole(
    one: np.ndarray, two: np.ndarray, three: np.ndarray
) -> None:
    whole = state(of(np.vstack([one, two, three])))
    a, b, c = of(one), of(two), of(three)
    assert state((a + b) + c) == whole
    assert state(c.merge(a + b)) == whole
    assert state(a) == state(of(one))  # merging leaves the parts alone


def test_an_empty_table_has_moments() -> None:
    empty = Moments.from_blocks(SCHEMA, [], 0)
    assert empty.n == 0
    assert not empty.products.any()
    table = np.arange(8.0).reshape(2, 4)
    assert empty + of(table) == of(table)
    assert state(of(np.empty((0, 4)))) == state(empty)


def test_moments_of_different_schemas_do_not_merge() -> None:
    other = Schema.from_bounds({"a": (-10, 10), "b": (0, 100), "c": (-1, 2)}, ("y", -50, 30))
    with pytest.raises(ArgumentError, match="different schemas"):
        of(np.ones((1, 4))) + of(np.ones((1, 4)), other)
    assert of(np.ones((1, 4))) != of(np.ones((1, 4)), other)


def test_more_records_than_int64_can_sum_are_refused() -> None:
    products = np.zeros((2, 2), dtype=np.int64)
    almost = Moments(products, LARGEST_N, "f")
    assert (almost + Moments(products, 0, "f")).n == LARGEST_N
    with pytest.raises(TableError, match="rows"):
        almost + Moments(products, 1, "f")
    assert LARGEST_N * STEPS**2 < 2**63


@given(TABLES)
def test_save_and_load(tmp_path_factory: pytest.TempPathFactory, table: np.ndarray) -> None:
    path = tmp_path_factory.getbasetemp() / "moments.npz"
    m = of(table)
    m.save(path)
    assert state(Moments.load(path)) == state(m)


@pytest.mark.parametrize(
    "content",
    [b"", b"moments", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00", b"PK\x05\x06" + b"\0" * 18],
)
def test_loading_what_is_no_file_of_moments(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"m\.npz is not a file of moments"):
        Moments.load(path)
    with pytest.raises(TableError):
        Moments.load(tmp_path / "missing.npz")


@pytest.mark.parametrize(
    "arrays",
    [
        {"products": np.zeros((2, 2))},
        {"products": np.zeros((2, 3), dtype=np.int64)},
        {"products": np.zeros((1, 1), dtype=np.int64)},
        {"products": np.zeros(4, dtype=np.int64)},
        {"n": np.int64(-1)},
        {"n": np.int64(LARGEST_N + 1)},
        {"n": np.zeros(2, dtype=np.int64)},
        {"products": np.array([[None, None], [None, None]])},
    ],
)
def test_loading_arrays_that_are_no_moments(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    sound = {"products": np.zeros((2, 2), dtype=np.int64), "n": np.int64(3), "fingerprint": "f"}
    np.savez(path, **sound)
    assert Moments.load(path).n == 3
    np.savez(path, allow_pickle=True, **(sound | arrays))
    with pytest.raises(TableError):
        Moments.load(path)
    np.save(tmp_path / "m.npy", np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(TableError):
        Moments.load(tmp_path / "m.npy")


def test_repr_hides_private_values() -> None:
    m = of(np.full((17, 4), 0.123))
    text = repr(m)
    assert "17" not in text
    assert str(m.products[0, 0]) not in text


def tampered(change: Callable[[np.ndarray], object], n: int = 30) -> np.ndarray:
    products = of(np.random.default_rng(3).uniform(-1, 1, (n, P + 1))).products.copy()
    change(products)
    return products


def put(*entries: tuple[int, int, int]) -> Callable[[np.ndarray], object]:
    def change(products: np.ndarray) -> None:
        for i, j, value in entries:
            products[i, j] = value

    return change


def collinear(products: np.ndarray) -> None:
    """Two columns that are more alike than equal ones: singular but for one unit."""
    products[0, 0] = products[1, 1] = 10**9
    products[0, 1] = products[1, 0] = 10**9
    products[:2, 2:] = products[2:, :2] = 0
    products[0, 2] = products[2, 0] = 1


MOST = 30 * STEPS**2
IMPOSSIBLE: dict[str, np.ndarray] = {
    "smallest integer": tampered(put((0, 1, -(2**63)), (1, 0, -(2**63)))),
    "smallest on the diagonal": tampered(put((0, 0, -(2**63)))),
    "all smallest": np.full((P + 1, P + 1), -(2**63)),
    "not symmetric": tampered(put((0, 1, 5))),
    "negative square": tampered(put((2, 2, -1))),
    "larger than n records allow": tampered(put((0, 0, MOST + 1))),
    "larger product": tampered(put((0, 1, MOST + 1), (1, 0, MOST + 1))),
    "Cauchy and Schwarz": tampered(put((0, 0, 100), (1, 1, 100), (0, 1, 101), (1, 0, 101))),
    "a zero column with products": tampered(put((0, 0, 0))),
    "a response of zeros": tampered(put((P, P, 0))),
    "indefinite": tampered(
        put(*((i, j, MOST if i == j else 0) for i in range(P + 1) for j in range(P + 1)),
            *((i, j, MOST - 1) for i, j in ((0, 1), (1, 0), (0, 2), (2, 0))))
    ),
    "indefinite by one unit": tampered(collinear),
    "too narrow": tampered(lambda _: None)[1:, 1:],
    "too wide": np.zeros((P + 2, P + 2), dtype=np.int64),
    "no matrix": np.zeros(16, dtype=np.int64),
    "not square": np.zeros((4, 5), dtype=np.int64),
    "floats": tampered(lambda _: None).astype(np.float64),
    "not a number": np.full((P + 1, P + 1), np.nan),
    "short integers": tampered(lambda _: None).astype(np.int32),
    "big-endian": tampered(lambda _: None).astype(">i8"),
    "objects": tampered(lambda _: None).astype(object),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_moments_that_no_table_has_are_refused(name: str, tmp_path: Path) -> None:
    made_up = Moments(IMPOSSIBLE[name], 30, SCHEMA.fingerprint())
    for call in (dpsubset.select, dpsubset.simulate):
        with pytest.raises(TableError):
            call(made_up, SCHEMA, k=1, epsilon=1)
    with pytest.raises(TableError):
        dpsubset.best_subset(made_up, SCHEMA, k=1)
    np.savez(
        tmp_path / "m.npz", allow_pickle=True, products=made_up.products, n=np.int64(30),
        fingerprint=np.array(SCHEMA.fingerprint()),
    )  # fmt: skip
    with pytest.raises(TableError):
        dpsubset.select(Moments.load(tmp_path / "m.npz"), SCHEMA, k=1, epsilon=1)


@pytest.mark.parametrize(
    "n", [0, 1, 29.5, "30", None, True, np.array(30), np.array([30]), -1, 2**40], ids=repr
)
def test_a_number_of_records_that_cannot_be_is_refused(n: Any, tmp_path: Path) -> None:
    products = tampered(lambda _: None)
    with pytest.raises(DpsubsetError):
        dpsubset.select(Moments(products, n, SCHEMA.fingerprint()), SCHEMA, k=1, epsilon=1)
    np.savez(tmp_path / "m.npz", allow_pickle=True, products=products, n=n, fingerprint="f")
    if not (isinstance(n, np.ndarray) and n.ndim == 0):  # which is how 30 is stored
        with pytest.raises(TableError):
            Moments.load(tmp_path / "m.npz")


def test_merging_moments_of_other_widths_is_an_error() -> None:
    one, other = (Moments(np.zeros((w, w), dtype=np.int64), 0, "f") for w in (2, 3))
    with pytest.raises(ArgumentError, match="schemas"):
        one.merge(other)


@given(TABLES, st.lists(st.integers(0, P), min_size=P + 1, max_size=P + 1))
def test_moments_of_tables_are_never_refused(table: np.ndarray, columns: list[int]) -> None:
    for cells in (table, table[:, columns]):  # with copies of columns, exactly singular
        m = of(cells)
        assert state(m.checked()) == state(m)
        turned = Moments(np.asfortranarray(m.products), np.int64(m.n), m.fingerprint)
        assert state(turned.checked()) == state(m)


@pytest.mark.parametrize("width", [12, 160, 161, 400])
@pytest.mark.parametrize("rank", [1, 5])
def test_singular_moments_are_never_refused(width: int, rank: int) -> None:
    rng = np.random.default_rng(width)
    cells = rng.integers(-STEPS, STEPS + 1, (rank, width))
    for weight in (1, 2**30):  # as many copies of each record
        Moments(cells.T @ cells * weight, rank * weight, "f").checked()


# -- the column of a constant -------------------------------------------------------------------


def assert_same(one: GramData, two: GramData) -> None:
    assert (one.p, one.n, one.yy) == (two.p, two.n, two.yy)
    np.testing.assert_array_equal(one.product_rows(), two.product_rows())
    np.testing.assert_array_equal(one.c, two.c)
    np.testing.assert_array_equal(one.diagonal, two.diagonal)


@given(TABLES, st.sampled_from([1, 2, 24575, STEPS]))
def test_any_intercept_follows_from_a_column_of_ones(table: np.ndarray, constant: int) -> None:
    kept, made = of(table, constant=1), of(table, constant=constant)
    assert kept.p == made.p == P
    before = kept.products.copy()
    assert_same(GramData.from_moments(kept, constant), GramData.from_moments(made, constant))
    assert_same(GramData.from_moments(kept), GramData.from_moments(of(table)))
    np.testing.assert_array_equal(kept.products, before)
    quantized = np.empty((len(table), P + 2))
    Quantizer(SCHEMA, constant).records(table[:, :-1], table[:, -1], quantized)
    # Records without a response have 0 in every column, this one included.
    dropped = np.isnan(table[:, -1])
    assert (quantized[:, -2] == np.where(dropped, 0, constant)).all()
    assert kept.counted == made.counted == (~dropped).sum()
    integers = quantized.astype(np.int64)
    np.testing.assert_array_equal(made.products, integers.T @ integers)


def test_without_an_intercept_nothing_is_copied() -> None:
    kept = of(np.ones((3, 4)), constant=1)
    assert np.shares_memory(GramData.from_moments(kept).columns, kept.products)
    assert np.shares_memory(GramData.from_moments(kept, 1).columns, kept.products)


def test_the_largest_sums_of_a_constant_fit() -> None:
    n = LARGEST_N
    products = np.array([[STEPS**2, STEPS, STEPS**2], [STEPS, 1, STEPS],
                         [STEPS**2, STEPS, STEPS**2]]) * n  # fmt: skip
    found = GramData.from_moments(Moments(products, n, "f", 1).checked(), STEPS)
    assert found.product_rows().tolist() == [[n * STEPS**2] * 2] * 2
    assert found.c.tolist() == [n * STEPS**2] * 2


def test_moments_that_users_make_have_the_ones() -> None:
    moments = Moments.from_blocks(SCHEMA, [(np.ones((2, P)), np.ones(2))])
    assert moments.constant == 1
    assert moments.p == P
    assert moments.products[-2, -2] == 2


@pytest.mark.parametrize("held", [0, 2])
def test_moments_without_the_sums_give_no_intercept(held: int) -> None:
    with pytest.raises(ArgumentError, match=r"make them again .* or pass intercept=False"):
        GramData.from_moments(of(np.ones((3, 4)), constant=held), 24575)


@given(TABLES, TABLES)
def test_parts_with_ones_merge_into_the_whole(one: np.ndarray, two: np.ndarray) -> None:
    whole = of(np.vstack([one, two]), constant=1)
    assert state(of(one, constant=1) + of(two, constant=1)) == state(whole)
    with pytest.raises(ArgumentError, match="intercept"):
        of(one, constant=1) + of(two)
    assert of(one, constant=1) != of(one)


@given(TABLES, st.sampled_from([1, 24575]))
def test_moments_with_a_constant_are_kept(
    tmp_path_factory: pytest.TempPathFactory, table: np.ndarray, constant: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "constant.npz"
    m = of(table, constant=constant)
    m.save(path)
    assert state(Moments.load(path)) == state(m)
    # As earlier versions wrote them.
    old = of(table)
    np.savez(path, products=old.products, n=np.int64(old.n), fingerprint=np.array(old.fingerprint))
    assert state(Moments.load(path)) == state(old)


@pytest.mark.parametrize(
    ("place", "value"), [((-2, -2), 29), ((-2, -2), 31), ((0, -2), 10**9), ((-2, -2), 0)]
)
def test_ones_that_are_none_are_refused(place: tuple[int, int], value: int) -> None:
    products = of(np.random.default_rng(3).uniform(-1, 1, (30, P + 1)), constant=1).products
    Moments(products, 30, "f", 1).checked()
    products[place] = products[place[::-1]] = value
    with pytest.raises(TableError):
        Moments(products, 30, "f", 1).checked()


@pytest.mark.parametrize("constant", [-1, 1.5, None, "1", True, STEPS + 1, 2, 2**70])
def test_a_constant_that_cannot_be_is_refused(constant: Any, tmp_path: Path) -> None:
    products = of(np.random.default_rng(3).uniform(-1, 1, (30, P + 1)), constant=1).products
    with pytest.raises(DpsubsetError):
        Moments(products, 30, SCHEMA.fingerprint(), constant).checked()
    np.savez(tmp_path / "m.npz", allow_pickle=True, products=products, n=np.int64(30),
             fingerprint=np.array("f"), constant=constant)  # fmt: skip
    with pytest.raises(TableError):
        Moments.load(tmp_path / "m.npz")


def test_constants_need_a_column() -> None:
    with pytest.raises(TableError):
        Moments(np.zeros((2, 2), dtype=np.int64), 0, "f", 1).checked()


@pytest.mark.parametrize("intercept", [True, False])
def test_a_selection_from_moments_is_one_from_the_table(intercept: bool, tmp_path: Path) -> None:
    table = np.random.default_rng(2).uniform(-10, 30, (50, P + 1))
    of(table, constant=1).save(tmp_path / "m.npz")
    asked: dict[str, Any] = {
        "schema": SCHEMA, "k": 2, "epsilon": 1, "seed": 3, "draws": 200, "intercept": intercept,
        "response_range": "declared",
    }  # fmt: skip
    drawn = dpsubset.simulate(table[:, :-1], y=table[:, -1], **asked)
    assert len(drawn) > 1
    assert dpsubset.simulate(Moments.load(tmp_path / "m.npz"), **asked) == drawn
    old = of(table)
    if intercept:
        with pytest.raises(ArgumentError, match="intercept=False"):
            dpsubset.simulate(old, **asked)
    else:
        assert dpsubset.simulate(old, **asked) == drawn


X2, Y2 = np.zeros((4, P)), np.zeros(4)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ((X2[:, :2], Y2), "3 columns"),
        ((np.zeros((4, P + 1)), Y2), "3 columns"),
        ((X2[:, 0], Y2), "3 columns"),
        ((X2, Y2[:3]), "an entry for each row"),
        ((X2, Y2[:, None]), "an entry for each row"),
        ((X2.astype(object), Y2), "holds object"),
        ((X2, Y2.astype("U8")), "holds str"),
        ((X2.astype(complex), Y2), "holds complex128"),
        ((X2.tolist(), Y2), "of type list"),
        ((pd.DataFrame(X2), Y2), "of type DataFrame"),
        ((X2, pd.Series(Y2)), "of type Series"),
        ((np.ma.masked_array(X2), Y2), "of type MaskedArray"),
        ((X2,), "pair"),
        (X2, "pair"),
    ],
)
def test_a_block_of_another_shape_or_type_is_refused(block: Any, says: str) -> None:
    """The quantizer reads by position without checking: a narrow block would be overrun."""
    for made in (Moments.from_blocks, GramData.from_records):
        with pytest.raises(ArgumentError, match=says):
            made(SCHEMA, [block])
