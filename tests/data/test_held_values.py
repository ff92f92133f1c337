"""Only tables that hold their values are read, and none of these before the debit.

What an array has yet to compute may fail because of one record. If that were tried before the
debit, the answer would be free; so such arrays are refused by their type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.model_selection import GridSearchCV

import dpsubset as dps
from dpsubset.base.errors import TableError
from dpsubset.data.readers import open_table
from dpsubset.ledger.ledger import Ledger
from support.ledgers import made

N = 30
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (N, 2))
Y = X[:, 0]
LABELS = (Y > 0).astype(int)
BOUNDS = dps.Bounds(x=[(-1, 1), (-1, 1)], y=1)
SCHEMA = BOUNDS.schema(["x0", "x1"])
CLASSES = dps.Bounds(x=[(-1, 1), (-1, 1)], labels=(0, 1))


class Lazy:
    """An array that is computed when it is asked for, as one of dask.array is."""

    ndim, dtype = 2, np.dtype(float)

    def __init__(self, values: Any, fails: bool = False) -> None:
        self._values, self._fails, self.computed = values, fails, 0
        self.shape = values.shape
        self.ndim = values.ndim

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.computed += 1
        if self._fails:
            raise ZeroDivisionError("one record broke the query")
        return self._values

    def __getitem__(self, at: Any) -> Any:
        return type(self)(self._values[at], self._fails)

    def toarray(self) -> Any:
        return self.__array__()

    tocsr = to_numpy = toarray


class Interface(Lazy):
    """The same by the other protocols that NumPy knows."""

    @property
    def __array_interface__(self) -> Any:
        return self.__array__().__array_interface__

    @property
    def __array_struct__(self) -> Any:
        return self.__array__().__array_struct__

    def __dlpack__(self, **_: Any) -> Any:
        return self.__array__().__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.__array__().__dlpack_device__()


class Proxy:
    """Computed as soon as anything but its type is looked at, and then it says it is an array."""

    def __init__(self, values: Any, fails: bool = False) -> None:
        object.__setattr__(self, "_held", Lazy(values, fails))

    def __getattribute__(self, name: str) -> Any:
        if name == "computed":
            return object.__getattribute__(self, "_held").computed
        return getattr(object.__getattribute__(self, "_held").__array__(), name)

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "_held").__array__())

    def __iter__(self) -> Iterator[Any]:
        return iter(object.__getattribute__(self, "_held").__array__())


class Rows(Sequence[Any]):
    """A sequence of records that are fetched when they are asked for."""

    def __init__(self, values: Any, fails: bool = False) -> None:
        self._lazy = Lazy(values, fails)

    @property
    def computed(self) -> int:
        return self._lazy.computed

    def __len__(self) -> int:
        return len(self._lazy.__array__())

    def __getitem__(self, at: Any) -> Any:
        return self._lazy.__array__()[at]


class Framed(Lazy):
    """A frame of a library that narwhals knows by a protocol alone."""

    def __narwhals_dataframe__(self) -> Any:
        return self.__array__()

    def __narwhals_series__(self) -> Any:
        return self.__array__()


KINDS: list[Callable[..., Any]] = [Lazy, Interface, Proxy, Rows, Framed]

Call = Callable[..., Any]
ASKED: dict[str, Any] = {"k": 1, "epsilon": 1}

#: Everything that takes X and y, and spends.
CALLS: dict[str, Call] = {
    "select": lambda x, y, **more: dps.select(x, y=y, bounds=BOUNDS, **ASKED, **more),
    "select by schema": lambda x, y, **more: dps.select(x, SCHEMA, y=y, **ASKED, **more),
    "fit": lambda x, y, **more: dps.fit(x, y=y, bounds=BOUNDS, **ASKED, **more),
    "fit_released": lambda x, y, **more: dps.fit_released(
        dps.select(X, y=Y, bounds=BOUNDS, ledger=False, **ASKED), x, y=y, epsilon=1, **more
    ),
    "sparse_regression": lambda x, y, **more: dps.sparse_regression(
        x, y=y, bounds=BOUNDS, intercept=False, **ASKED, **more
    ),
    "selector": lambda x, y, **more: dps.PrivateSubsetSelector(1, 1, bounds=BOUNDS, **more).fit(
        x, y
    ),
    "regressor": lambda x, y, **more: dps.PrivateSubsetRegressor(1, 1, bounds=BOUNDS, **more).fit(
        x, y
    ),
    "classifier": lambda x, y, **more: dps.PrivateSubsetClassifier(
        1, 1, bounds=CLASSES, **more
    ).fit(x, y),
    "regressor by schema": lambda x, y, **more: dps.PrivateSubsetRegressor(
        1, 1, schema=SCHEMA, **more
    ).fit(x, y),
}  # fmt: skip

#: Those that spend nothing.
FREE: dict[str, Call] = {
    "price": lambda x, y: dps.price(x, y=y, bounds=BOUNDS, **ASKED),
    "price_fit": lambda x, y: dps.price_fit(x, y=y, bounds=BOUNDS, **ASKED),
    "simulate": lambda x, y: dps.simulate(x, y=y, bounds=BOUNDS, draws=1, **ASKED),
    "best_subset": lambda x, y: dps.best_subset(x, y=y, bounds=BOUNDS, k=1),
}

#: Those that take one table of columns.
ALONE: dict[str, Call] = {
    "suggest_bounds": lambda x, **more: dps.suggest_bounds(x, (-5, 5), epsilon=1, **more),
    "private_mean": lambda x, **more: dps.private_mean(x, (-5, 5), epsilon=1, **more),
    "sparse_mean": lambda x, **more: dps.sparse_mean(x, (-5, 5), s=1, epsilon=1, **more),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made("sqlite", tmp_path, epsilon=10)


def refused(
    ledger: Ledger, call: Callable[[], Any], *lazies: Any, match: str = "numpy.asarray"
) -> None:
    with pytest.raises(TableError, match=match) as caught:
        call()
    assert "broke" not in f"{caught.value!r} {caught.value.__context__!r}"
    assert [lazy.computed for lazy in lazies] == [0] * len(lazies)
    assert ledger.history().entries == {}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_has_yet_to_be_computed_is_refused(
    ledger: Ledger, call: Call, kind: Any, fails: bool
) -> None:
    y = LABELS if call is CALLS["classifier"] else Y
    x = kind(X, fails)
    refused(ledger, lambda: call(x, y, ledger=ledger), x)
    late = kind(y, fails)
    refused(ledger, lambda: call(X, late, ledger=ledger), late)
    column = kind(y.reshape(-1, 1), fails)
    refused(ledger, lambda: call(X, column, ledger=ledger), column)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", FREE.values(), ids=FREE)
def test_also_where_nothing_is_spent(ledger: Ledger, call: Call, kind: Any, fails: bool) -> None:
    x, late = kind(X, fails), kind(Y, fails)
    refused(ledger, lambda: call(x, Y), x)
    refused(ledger, lambda: call(X, late), late)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", ALONE.values(), ids=ALONE)
def test_also_where_columns_stand_alone(ledger: Ledger, call: Call, kind: Any, fails: bool) -> None:
    x = kind(X, fails)
    refused(ledger, lambda: call(x, ledger=ledger), x)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_also_where_a_search_is_priced(ledger: Ledger, kind: Any, fails: bool) -> None:
    step = dps.PrivateSubsetRegressor(1, 1, bounds=BOUNDS, ledger=ledger)
    x, late = kind(X, fails), kind(Y, fails)
    search = GridSearchCV(step, {"k": [1, 2]}, cv=2)
    for estimator in (step, search):
        refused(ledger, lambda estimator=estimator: dps.ledger_cost(estimator, x, Y), x)
        refused(ledger, lambda estimator=estimator: dps.ledger_cost(estimator, X, late), late)


def test_lazy_frames_of_polars_are_refused_as_x_and_as_y(ledger: Ledger) -> None:
    frame, y = pl.LazyFrame({"x0": X[:, 0], "x1": X[:, 1]}), pl.LazyFrame({"y": Y})
    call = CALLS["regressor by schema"]
    refused(ledger, lambda: call(frame, Y, ledger=ledger), match="Collect it first")
    refused(ledger, lambda: call(X, y, ledger=ledger), match="Collect it first")


class Watched(np.ndarray):
    """Holds its values; what its own methods do is not asked."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    __getitem__ = __len__ = __array__


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X.view(Watched), Y.view(Watched)), (X.view(np.matrix), Y), (X.astype(object), Y),
        (np.ma.array(X, mask=False), np.ma.array(Y)), (memoryview(X), memoryview(Y)),
        (scipy.sparse.coo_array(X), Y), (scipy.sparse.csc_matrix(X), Y),
        (scipy.sparse.lil_array(X), Y), (X.tolist(), Y.tolist()), (tuple(X), tuple(Y)),
        (pd.DataFrame(X, columns=["x0", "x1"]), pd.Series(Y)),
        (pl.DataFrame(X, schema=["x0", "x1"]), pl.Series(Y)),
        (pa.table({"x0": X[:, 0], "x1": X[:, 1]}), pa.array(Y)),
        ([{"x1": b, "x0": a, "id": 1} for a, b in X.tolist()], pd.Index(Y)),
        (list(map(pd.Series, X)), [[value] for value in Y]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_holds_its_values_is_read(x: Any, y: Any) -> None:
    for call in ("select", "regressor", "regressor by schema"):
        CALLS[call](x, y)
    ((features, response),) = open_table(x, SCHEMA, y).blocks()
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(response, Y)


def test_a_map_of_a_file_is_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    ((features, _),) = open_table(mapped, SCHEMA, Y).blocks()
    np.testing.assert_array_equal(features, X)


class LazyDtype(pd.api.extensions.ExtensionDtype):
    """Of a column whose cells are computed."""

    name, type, kind = "lazy", float, "f"
    na_value = float("nan")

    @classmethod
    def construct_array_type(cls) -> Any:
        return LazyColumn


class LazyColumn(pd.api.extensions.ExtensionArray):
    """A column of a pandas frame by another library."""

    def __init__(self, lazy: Any) -> None:
        self.lazy = lazy

    @property
    def dtype(self) -> Any:
        return LazyDtype()

    def __len__(self) -> int:
        return len(self.lazy)

    def copy(self) -> Any:
        return self

    def __getitem__(self, at: Any) -> Any:
        found = self.lazy[at]
        return LazyColumn(found) if found.ndim else found.__array__()

    @property
    def nbytes(self) -> int:
        return 0

    def isna(self) -> Any:
        return np.isnan(self.lazy.__array__())


def test_columns_of_other_libraries_in_a_pandas_frame_are_refused_by_type(ledger: Ledger) -> None:
    lazy = Lazy(Y, fails=True)
    frame = pd.DataFrame({"x0": pd.Series(LazyColumn(lazy)), "x1": Y})
    call = CALLS["select by schema"]
    refused(ledger, lambda: call(frame, Y, ledger=ledger), lazy, match="column 'x0' holds lazy")
    refused(ledger, lambda: call(X, LazyColumn(lazy), ledger=ledger), lazy, match="holds lazy")
    refused(ledger, lambda: call(X, pd.Series(LazyColumn(lazy)), ledger=ledger), lazy, match="lazy")


@pytest.mark.parametrize("fails", [False, True])
def test_lazy_cells_are_bad_cells_and_are_not_computed(fails: bool) -> None:
    late = Lazy(np.array(0.5), fails)
    objects = X.astype(object)
    objects[0, 0] = late
    wanted = X.copy()
    wanted[0, 0] = np.nan
    frame = pd.DataFrame({f"x{j}": pd.Series(list(objects[:, j]), dtype=object) for j in range(2)})
    tables: list[Any] = [objects, objects.tolist(), frame]
    tables.append(pl.DataFrame([pl.Series(f"x{j}", list(objects[:, j]), dtype=pl.Object)
                                for j in range(2)]))  # fmt: skip
    for table in tables:
        ((features, _),) = open_table(table, SCHEMA, Y).blocks()
        np.testing.assert_array_equal(features, wanted)
    assert late.computed == 0


# -- lists of records ------------------------------------------------------------------------------


class Record(Sequence[float]):
    """Says which of its methods were called, and what the ledger held by then."""

    seen: ClassVar[list[Any]] = []
    ledger: Ledger

    def _note(self) -> None:
        entries = self.ledger.history().entries.values()
        self.seen.append([entry.state for entry in entries])

    def __len__(self) -> int:
        self._note()
        return 2

    def __getitem__(self, at: Any) -> Any:
        self._note()
        return [0.5, 0.25][at]


class Single(Record):
    def __len__(self) -> int:
        self._note()
        return 1


@pytest.fixture
def noting(ledger: Ledger) -> Iterator[list[Any]]:
    Record.ledger = ledger
    Record.seen.clear()
    yield Record.seen
    Record.seen.clear()


LISTED = [Record() for _ in range(3)]
SINGLES = [Single() for _ in range(3)]


@pytest.mark.parametrize("call", FREE.values(), ids=FREE)
def test_a_price_reads_nothing_of_a_list(noting: list[Any], call: Call) -> None:
    call(LISTED, SINGLES)
    assert bool(noting) == (call in (FREE["simulate"], FREE["best_subset"]))


def test_the_cost_of_a_search_reads_nothing_of_a_list(ledger: Ledger, noting: list[Any]) -> None:
    for bounds, schema in ((BOUNDS, None), (None, SCHEMA)):
        step = dps.PrivateSubsetRegressor(1, 1, bounds=bounds, schema=schema, ledger=ledger)
        dps.ledger_cost(GridSearchCV(step, {"k": [1, 2]}, cv=2), LISTED, SINGLES)
    assert noting == []


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("call", [name for name in CALLS if name != "fit_released"])
def test_records_of_a_list_are_read_after_the_debit(
    ledger: Ledger, noting: list[Any], call: str, neighbours: str
) -> None:
    more = {"neighbours": neighbours} if call != "sparse_regression" else {}
    CALLS[call](LISTED, SINGLES, ledger=ledger, **more)
    assert noting
    assert all(state == ["reading"] for state in noting)


@pytest.mark.parametrize("odd", [[1.0], [1, 2, 3], 5.0, None, "x", {"x0": 1}, [], Lazy(X, True)])
def test_a_record_of_any_form_changes_no_price_and_no_error(odd: Any) -> None:
    rows: list[Any] = X.tolist()
    rows[0] = odd
    for neighbours in ("replace-one", "add-remove"):
        asked: dict[str, Any] = {"bounds": BOUNDS, "neighbours": neighbours, **ASKED}
        plain = dps.price(X.tolist(), y=Y.tolist(), **asked)
        assert dps.price(rows, y=[odd, *Y.tolist()[1:]], **asked) == plain
        dps.select(rows, y=[odd, *Y.tolist()[1:]], **asked)


def test_columns_of_a_list_are_those_that_are_declared() -> None:
    model = dps.PrivateSubsetRegressor(1, 1, schema=SCHEMA).fit(X.tolist(), Y.tolist())
    assert model.n_features_in_ == 2
    assert model.support_.shape == (2,)
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X.tolist()).shape == (N,)


def test_a_sparse_matrix_is_converted_after_the_debit() -> None:
    """Only its shape and type are looked at before."""
    matrix = scipy.sparse.coo_array(X)
    matrix.tocsr = lambda *_: pytest.fail("converted")
    dps.price(matrix, y=Y, bounds=BOUNDS, **ASKED)
