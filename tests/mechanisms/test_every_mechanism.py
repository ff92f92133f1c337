"""What holds for every mechanism in the table: odd tables, odd options, truthful guarantees."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset import ArgumentError
from dpsubset.audit.pairs import Pair
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import MECHANISMS, Setting
from dpsubset.mechanisms.published.hard_thresholding import HardThresholding
from dpsubset.mechanisms.published.sample_aggregate import SampleAggregate
from dpsubset.mechanisms.shared.gradient import Gradient
from dpsubset.objective.problem import Problem
from dpsubset.privacy.noise import top_cost_zcdp, top_scale_zcdp
from dpsubset.release.verify import checks
from support.samples import one_in, sample

BOUNDS = dps.Bounds(x=(-1, 1), y=(-1, 1))

#: What a mechanism needs where n is private.
PRIVATE_N: dict[str, dict[str, Any]] = {
    "sample-aggregate": {"blocks": 3},
    "hard-thresholding": {"rows": 5},
}

each_mechanism = pytest.mark.parametrize("name", MECHANISMS)
each_relation = pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])


@pytest.fixture(autouse=True)
def loud() -> Iterator[None]:
    """No warning may escape: its text could quote a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def options(name: str, neighbours: str = "replace-one") -> dict[str, Any]:
    given = {"steps": 40} if name == "metropolis" else {}
    return given if neighbours == "replace-one" else {**given, **PRIVATE_N.get(name, {})}


def delta(name: str) -> Fraction:
    return Fraction(0 if MECHANISMS[name].takes_delta == "no" else Fraction(1, 1000))


def released(name: str, x: Any, y: Any, k: int, neighbours: str, **more: Any) -> dps.Release:
    """A release, after looking at everything that can be made of it."""
    release = dps.select(
        x, y=y, bounds=BOUNDS, k=k, epsilon=1, delta=delta(name), mechanism=name,
        options=options(name, neighbours), neighbours=neighbours, **more,
    )  # fmt: skip
    p, always = release.problem.p, release.problem.always_include
    support = release.support
    if support is None:
        assert name == "stability"
    else:
        assert list(support) == sorted(set(support))
        assert set(always) <= set(support) <= set(range(p))
        sized = name in ("penalised", "choose-size")
        assert len(support) == k or (sized and len(support) <= k)
    written = json.loads(release.to_json())["guarantee"]
    guarantee = release.guarantee
    assert guarantee.proven
    assert guarantee.epsilon <= 1
    assert guarantee.delta <= delta(name)
    assert written["private"] is (guarantee.assumes is None)
    assert written["epsilon"] >= guarantee.epsilon
    for relation in ("replace-one", "add-remove"):
        cost = guarantee.costs.get(relation)
        for number in ("epsilon", "delta"):
            shown = written[f"{number}_if_{relation.replace('-', '_')}"]
            assert (shown is None) if cost is None else shown >= getattr(cost, number)
    assert "Noise is drawn exactly" in release.statement()
    assert ("OpenDP" in release.statement().split("## Provenance")[0]) is not MECHANISMS[
        name
    ].seedable
    return release


def table(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, p)), rng.uniform(-1, 1, n)


@each_mechanism
@each_relation
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(("p", "k"), [(1, 1), (3, 3), (9, 4)])
def test_hardly_any_rows_or_columns(name: str, neighbours: str, n: int, p: int, k: int) -> None:
    released(name, *table(n, p), k, neighbours)


@one_in(2)
@each_mechanism
@each_relation
@pytest.mark.parametrize("constraint", ["box", "ball", "l1"])
@pytest.mark.parametrize("n", [1, 5])
def test_tables_without_information(
    name: str, neighbours: str, constraint: str, n: int, every: int
) -> None:
    """Constant, missing and infinite columns; all columns alike; a response that is one of them."""
    x, _ = table(n, 8)
    odd = x.copy()
    odd[:, 0], odd[:, 1], odd[:, 2], odd[:, 3] = np.nan, np.inf, -1e308, 0.5
    tables = (
        (np.full((n, 8), np.nan), np.full(n, np.nan)),
        (np.full((n, 8), 0.5), np.full(n, 1.0)),
        (np.tile(x[:, :1], 8), x[:, 0]),
        (odd, odd[:, 4]),
    )
    for cells, y in sample(tables, every, name, neighbours, constraint, n):
        released(name, cells, y, 3, neighbours, constraint=constraint)


@each_mechanism
@each_relation
@pytest.mark.parametrize("always", [(2,), (0, 1, 2)])
def test_what_is_always_included(name: str, neighbours: str, always: tuple[int, ...]) -> None:
    x, y = table(6, 6)
    released(name, x, y, 3, neighbours, always_include=always)


@each_mechanism
def test_text_where_numbers_should_be(name: str) -> None:
    x, y = table(6, 4)
    frame = pd.DataFrame(x, columns=list("abcd")).astype(object)
    frame.iloc[0, 0], frame.iloc[1, 1], frame.iloc[2, 2] = "secret", None, "1e999"
    # Objects have no type to be warned of.
    frame["d"] = pd.Series(["nothing but text"] * 6, dtype=object)
    released(name, frame, y, 2, "add-remove")


@each_mechanism
def test_many_columns_without_rows(name: str) -> None:
    """With many columns the records are kept, and X'X is multiplied out of them: here, of none."""
    # The 3,198 best of a million equal supports take top-r a while.
    always = (7,) if name == "top-r" else ()
    for constraint in sample(("box", "ball", "l1"), 3, name):
        x, y = table(0, 1600)
        released(name, x, y, 2, "add-remove", constraint=constraint, always_include=always)


#: Nothing that an option should be; where some of them are, they must work.
ODD = [
    None, True, 0, -1, 1.5, float("nan"), float("inf"), -float("inf"), "x", "", "1/0", "1e400",
    b"x", [], [1, 1], {}, np.int64(3), np.int32(3), np.float32(0.5), np.float64(0.5),
    np.array(3), np.array([0, 1]), Decimal("nan"), Decimal("inf"), Decimal("0.5"), Fraction(1, 2),
    1e-320, object(),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, field.name) for name, cls in MECHANISMS.items() for field in fields(cls)],
)
def test_options_are_refused_or_work(name: str, option: str) -> None:
    """Never an error after values are read, nor a release that cannot be written down."""
    x, y = table(9, 4)
    for value in ODD:
        given = {**options(name), option: value}
        try:
            release = dps.select(
                x, y=y, bounds=BOUNDS, k=2, epsilon=1, delta=delta(name), mechanism=name,
                options=given,
            )  # fmt: skip
        except ArgumentError:
            continue
        json.loads(release.to_json())
        assert release.statement()
        for settled in release.options.values():
            assert not isinstance(settled, (np.generic, np.ndarray))


def test_scales_for_tiny_budgets_are_found() -> None:
    """Where floats are coarse, OpenDP's rounding up is no matter of a few last bits."""
    for budget in (Fraction(1e-300), Fraction(1e-318)):
        scale = top_scale_zcdp(2, budget, sensitivity=1)
        assert top_cost_zcdp(2, scale, sensitivity=1) <= budget


def test_numbers_of_numpy_do_not_overflow() -> None:
    problem = Problem.create(4, 2, intercept=False)
    plain = HardThresholding(step=3, rows=2**39)
    numpy = HardThresholding(step=np.int32(3), rows=np.int64(2**39))
    assert plain == numpy
    setting = Setting.of(problem, 1)
    assert plain._weight(setting) == numpy._weight(setting) > 2**63


@each_mechanism
@each_relation
def test_a_cost_is_stated_under_the_other_relation_unless_n_is_used(
    name: str, neighbours: str
) -> None:
    """Options as they are by default: n is used where it is public, by four mechanisms."""
    problem = Problem.create(5, 2, neighbours=neighbours, intercept=False)
    chosen = MECHANISMS[name](**options(name, neighbours))
    n = 100 if neighbours == "replace-one" else None
    guarantee = chosen.guarantee(Setting.of(problem, 1, delta(name), n))
    covered = {"replace-one", "add-remove"}
    if neighbours == "replace-one" and name in (*PRIVATE_N, "penalised", "choose-size"):
        covered = {"replace-one"}
    assert set(guarantee.costs) == covered
    assert guarantee.epsilon <= 1


def test_one_row_more_may_move_all_blocks() -> None:
    """Why floor(sqrt(n)) blocks cost nothing that is known under add-remove."""
    problem = Problem.create(5, 2, intercept=False)
    chosen = SampleAggregate()
    before, after = (Setting.of(problem, 1, n=n) for n in (15, 16))
    assert chosen.number(before) != chosen.number(after)
    assert set(chosen.guarantee(before).costs) == {"replace-one"}
    assert set(SampleAggregate(blocks=3).guarantee(before).costs) == {"replace-one", "add-remove"}
    with pytest.raises(ArgumentError, match="private"):
        chosen.check(Setting.of(Problem.create(5, 2, neighbours="add-remove", intercept=False), 1))


def test_one_row_more_may_move_all_targets() -> None:
    """Why steps that n decides cost nothing that is known under add-remove."""
    problem = Problem.create(2, 1, intercept=False)
    chosen = HardThresholding(step=Fraction(1, 100))
    b = {0: chosen.GRID}  # what a first round may release
    records = np.zeros((4, 3), dtype=np.int16)
    pair = Pair.of_records(records, np.vstack([records, [[STEPS, 0, 0]]]), "one row more")
    found = []
    for moments in (pair.first, pair.second):
        setting = Setting.of(problem, 1, n=moments.n)
        gradient = Gradient(digest_of(moments), Fraction(problem.radius), 0.0)
        found.append(np.array(chosen.targets(gradient, setting, b), dtype=object))
        assert set(chosen.guarantee(setting).costs) == {"replace-one"}
    # Twice what the noise of a release under replace-one covers, and that fifty times over.
    assert abs(found[1] - found[0]).max() > 20 * chosen.sensitivity(setting, b)
    # With rows given, or a single round, n plays no part.
    for without in (HardThresholding(rows=4), HardThresholding(iterations=1)):
        assert set(without.guarantee(setting).costs) == {"replace-one", "add-remove"}


def digest_of(moments: Any) -> Any:
    from dpsubset.data.gram import GramData

    return GramData.from_moments(moments)


def test_the_statement_says_where_nothing_is_promised() -> None:
    x, y = table(9, 4)
    release = released("sample-aggregate", x, y, 2, "replace-one")
    assert "There is no guarantee for tables that differ by a row" in release.statement()
    release = released("sample-aggregate", x, y, 2, "add-remove")
    assert "There is no guarantee for tables" not in release.statement()
    assert "under add-remove" in release.statement()


def test_a_release_of_a_mechanism_that_was_removed_still_loads_and_verifies(tmp_path: Any) -> None:
    """A release file names its mechanism; nothing looks the name up, or options that are gone."""
    x = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    schema = BOUNDS.schema(["a", "b", "c"])
    made = dps.select(x, y=x[:, 0], schema=schema, k=1, epsilon=1)
    former = replace(
        made,
        mechanism="choose-reach",
        options={"factors": (Fraction(4, 5), Fraction(1)), "share": Fraction(1, 10)},
    )
    assert "choose-reach" not in MECHANISMS
    path = tmp_path / "release.json"
    path.write_text(former.to_json())
    loaded = dps.Release.load(path, schema)
    assert (loaded.mechanism, loaded.support) == ("choose-reach", made.support)
    assert loaded.guarantee.costs == made.guarantee.costs
    assert json.loads(loaded.to_json()) == json.loads(former.to_json())
    assert "choose-reach" in loaded.statement()
    assert all(check.holds is not False for check in checks(path, schema.fingerprint()))
    with pytest.raises(ArgumentError, match="mechanism must be one of"):
        dps.select(x, y=x[:, 0], bounds=BOUNDS, k=1, epsilon=1, mechanism="choose-reach")
