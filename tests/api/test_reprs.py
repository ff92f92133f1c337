"""No object of the package shows a private value in its repr, whatever a selection is doing."""

from __future__ import annotations

import gc
import pickle
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from dpsubset import Bounds, Moments, Schema
from dpsubset.api.request import build_request
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import MECHANISMS, Data
from dpsubset.objective.losses.certified_rows import Sum
from dpsubset.objective.losses.hinge import Hinge
from dpsubset.privacy.random import Randomness, SeededSource
from dpsubset.search.engine import Flat, Listed
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports
from dpsubset.search.region import Region

#: In the table, and as what the quantizer makes of it: 123456.75 of [-200000, 200000].
MARKER = 123456.75
QUANTISED = round(MARKER / 200_000 * 32767)
ROWS = 7919  # a number that no public fact has
P = 6
SCHEMA = Schema.from_bounds(
    {f"v{j}": (-200_000, 200_000) for j in range(P)}, ("y", -200_000, 200_000)
)


def table() -> tuple[np.ndarray, np.ndarray]:
    """Every record holds the marker, so that all sums are multiples of its square."""
    x = np.random.default_rng(0).choice([-MARKER, MARKER], (ROWS, P))
    return x, x[:, 0] * np.random.default_rng(1).choice([1, 1, 1, -1], ROWS)


X, Y = table()


def private_numbers() -> set[str]:
    """The marker, its image, n, and all sums of products."""
    sums = Moments.from_blocks(SCHEMA, [(X, Y)]).products
    numbers = {str(abs(int(entry))) for entry in sums.ravel() if abs(int(entry)) > 1000}
    return numbers | {"123456", str(QUANTISED), str(ROWS), str(QUANTISED**2)}


PRIVATE = private_numbers()
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def shown(value: object, also: frozenset[str] = frozenset()) -> list[str]:
    """Private numbers in what an object says of itself, digits compared as whole numbers."""
    text = _ADDRESS.sub("", repr(value) + str(value))
    return sorted(set(re.findall(r"\d+", text)) & (PRIVATE | also))


def ours() -> Iterator[object]:
    """All objects whose class is the package's own; not the classes themselves."""
    for value in gc.get_objects():
        if str(type(value).__module__).startswith("dpsubset") and not isinstance(value, type):
            yield value


class Watching(SeededSource):
    """Looks at all objects when bits are asked for: in the middle of a draw."""

    def __init__(self, scores: frozenset[str]) -> None:
        super().__init__(1)
        self.scores = scores
        self.seen: set[str] = set()
        self.leaks: dict[str, list[str]] = {}

    def look(self) -> None:
        for value in ours():
            name = f"{type(value).__module__}.{type(value).__qualname__}"
            self.seen.add(name)
            if value is not self and (found := shown(value, self.scores)):
                self.leaks[name] = found

    def _fetch(self, size: int) -> bytes:
        self.look()
        return super()._fetch(size)


def options(name: str) -> dict[str, Any]:
    return {
        "mistakes": {"anchor": (0, 1)}, "metropolis": {"steps": 40},
        "hard-thresholding": {"rows": 100}, "sample-aggregate": {"blocks": 20},
    }.get(name, {})  # fmt: skip


@pytest.fixture
def _only_new_objects() -> Iterator[None]:
    """What was there before has seen no table, and there may be very much of it."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_only_new_objects")
@pytest.mark.parametrize("loss", ["least-squares", "logistic", "hinge", "huber"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_object_shows_what_is_private(name: str, loss: str) -> None:
    cls = MECHANISMS[name]
    if loss != "least-squares" and not cls.any_loss:
        return
    delta = 0 if cls.takes_delta == "no" else 1e-3
    asked: dict[str, Any] = {"y": Y, "loss": loss, "neighbours": "add-remove"}
    planned = build_request(
        X,
        SCHEMA,
        k=2,
        epsilon=0.5,
        delta=delta,
        mechanism=name,
        options=options(name),
        allow_unproven=True,
        **asked,
    )
    setting, table = planned.setting, planned.open(X, Y)
    data = Data(table.read(setting.problem))
    sampler = planned.mechanism.prepare(data, setting)
    digest = GramData.from_records(SCHEMA, [(X, Y)], setting.problem.layout.constant)
    scores = enumerate_supports(digest, setting.problem, setting.sensitivity.score_step).scores
    source = Watching(frozenset(str(score) for score in scores.tolist()))
    source.look()
    for _ in range(3):
        sampler.draw(Randomness(source))
    source.look()
    assert source.leaks == {}
    assert {
        "dpsubset.api.sensitive_table.SensitiveTable",
        "dpsubset.data.gram.GramData",
    } <= source.seen


@pytest.mark.parametrize("kind", ["array", "list", "frame", "moments", "dataset"])
def test_no_table_shows_its_cells(kind: str) -> None:
    import pandas as pd

    frame = pd.DataFrame({**{f"v{j}": X[:, j] for j in range(P)}, "y": Y})
    moments = Moments.from_blocks(SCHEMA, [(X, Y)])
    data, y = {
        "array": (X, Y), "list": (X[:5].tolist(), Y[:5].tolist()), "frame": (frame, None),
        "moments": (moments, None), "dataset": (ds.dataset(pa.Table.from_pandas(frame)), None),
    }[kind]  # fmt: skip
    planned = build_request(data, SCHEMA, k=2, epsilon=1, y=y)
    for value in (planned, planned.open(data, y), Bounds(x=1, y=1)):
        assert shown(value) == []


def test_a_sealed_table_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(SensitiveTable(X, SCHEMA, Y))


def test_the_test_sees_what_is_shown() -> None:
    assert shown([MARKER])
    assert shown({"n": ROWS})
    assert shown(X)
    assert not shown(GramData.from_moments(Moments.from_blocks(SCHEMA, [(X, Y)])))


def test_objects_that_live_for_a_moment() -> None:
    """Those that no draw above happens to meet, or not for long."""
    listed = Listed([(0, 1)], [ROWS])
    region = Region(np.zeros(1, dtype=np.int8), np.array([ROWS]), (0, 0))
    held = (
        listed, region, Flat(region, ROWS, frozenset({(ROWS,)})),
        ScoredSupports(np.array([[0]]), np.array([ROWS]), Fraction(1)),
        Sum([((QUANTISED,), 1, ROWS)], 1, 1, Hinge(), Fraction(0)),
    )  # fmt: skip
    for value in held:
        assert shown(value) == []


def test_a_seeded_release_states_no_cost() -> None:
    """Whoever reads on below the warning must not find a price."""
    import dpsubset as dps

    x = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    asked: dict[str, Any] = {"y": x[:, 0], "bounds": dps.Bounds(x=1, y=1), "k": 1, "epsilon": 1}
    seeded, private = (dps.select(x, seed=seed, **asked) for seed in (1, None))
    for shown in (str(seeded), seeded._repr_html_()):
        assert "NOT PRIVATE" in shown
        assert "Cost:" not in shown
    assert "Cost:" in str(private)
