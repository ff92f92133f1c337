"""Numbers in odd clothes: each is taken for what it is, or refused with a clear error."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsubset as dps
from dpsubset.objective.problem import Problem

X, Y = np.linspace(-1, 1, 24).reshape(8, 3), np.linspace(-1, 1, 8)
BOUNDS = dps.Bounds(x=1, y=1)


class Angry:
    """Every conversion raises."""

    def __float__(self) -> float:
        raise RuntimeError("no float")

    __index__ = __int__ = __len__ = __iter__ = __float__


class Part(Fraction):
    """A subclass is a number as well."""


class AngryPart(Fraction):
    @property
    def numerator(self) -> int:
        raise RuntimeError("no numerator")


class AngryFloat(float):
    def as_integer_ratio(self) -> tuple[int, int]:
        raise RuntimeError("no ratio")


#: Objects that are no numbers, though some of them convert to 1.
NEVER: list[Any] = [
    True, np.True_, np.str_("1"), "1", b"1", np.bytes_(b"1"), 1j, 1 + 0j, np.complex64(1),
    np.datetime64(1, "D"), np.timedelta64(1, "D"), np.timedelta64(1), np.timedelta64("NaT"),
    datetime.timedelta(1), datetime.date(2000, 1, 1), pd.Timestamp(1), pd.Timedelta(1), pd.NaT,
    pd.NA, np.array(1), np.array(1.0), np.array([1]), np.array([1.0]), np.array([[1.0]]),
    np.array(True), np.array(1, dtype=object), np.void(b"1"), [1], (1,), {1}, {1: 1}, Angry(),
    object(), int, float("nan"), float("inf"), -float("inf"), np.float32("nan"),
    np.longdouble("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"),
    Decimal("1e999999999"), Decimal("-1e999999999"), 10**400, -(10**400), 10**5000,
    Fraction(10**400), Fraction(10**5000), AngryPart(1), AngryFloat(1.0), pd.Series([1]),
]  # fmt: skip

#: And those that are, with the value that they are.
ONE: list[Any] = [
    1, np.int8(1), np.uint64(1), np.int64(1), 1.0, np.float16(1), np.float32(1), np.longdouble(1),
    Fraction(1), Part(1), Decimal(1), Decimal("1.000"),
]  # fmt: skip

ZERO: list[Any] = [0, np.uint8(0), np.float32(0), Fraction(0), Part(0), Decimal("0e999999999")]


def select(**given: Any) -> dps.Release:
    return dps.select(X, y=Y, **{"bounds": BOUNDS, "k": 1, "epsilon": 1, "seed": 1, **given})


def simulate(**given: Any) -> Any:
    return dps.simulate(
        X, y=Y, **{"bounds": BOUNDS, "k": 1, "epsilon": 1, "seed": 1, "draws": 2, **given}
    )


def fit(**given: Any) -> dps.Release:
    given = {"bounds": BOUNDS, "k": 1, "epsilon": 1, "seed": 1, **given}
    return dps.PrivateSubsetSelector(**given).fit(X, Y).release_


def state(**given: Any) -> Problem:
    return Problem.create(**{"p": 3, "k": 1, "intercept": False, **given})


def of_bounds(**given: Any) -> dps.Schema:
    return select(bounds=dps.Bounds(**{"x": 1, "y": 1, **given})).schema


def huber(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **given: call(loss="huber", **given)


#: Where a number goes; what it is there, if it is 1; and whether it has to be a whole one.
PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any] | None, bool]] = {}


def place(
    call: Callable[..., Any],
    name: str,
    read: Callable[[Any], Any] | None = None,
    whole: bool = False,
) -> None:
    def run(value: Any) -> Any:
        return call(**{name: value})

    PLACES[f"{getattr(call, '__name__', 'call')}({name})"] = run, read, whole


for chosen in (select, fit):
    place(chosen, "epsilon", lambda r: r.guarantee.epsilon)
    place(chosen, "k", lambda r: r.problem.k, True)
    place(chosen, "ridge", lambda r: r.problem.ridge)
    place(chosen, "prediction_bound", lambda r: round(float(r.problem.prediction_bound), 9))
    place(chosen, "radius", lambda r: r.problem.radius)
    place(chosen, "seed", None, True)
    place(chosen, "node_limit", None, True)
    place(chosen, "time_limit", None)
for name in ("epsilon", "ridge", "prediction_bound", "radius", "time_limit"):
    place(simulate, name)
for name in ("k", "seed", "draws", "node_limit"):
    place(simulate, name, None, True)
for name in ("ridge", "prediction_bound", "radius"):
    place(state, name, lambda p, name=name: getattr(p, name))
for name in ("p", "k"):
    place(state, name, lambda p, name=name: getattr(p, name), True)
for made in (select, simulate, fit, state):
    PLACES[f"{made.__name__}(threshold)"] = (
        lambda value, made=made: huber(made)(threshold=value), None, False,
    )  # fmt: skip
    PLACES[f"{made.__name__}(always_include)"] = (
        lambda value, made=made: made(always_include=[value]), None, True,
    )  # fmt: skip
for made in (select, simulate, fit):
    PLACES[f"{made.__name__}(delta)"] = (lambda value, made=made: made(delta=value), None, False)
PLACES |= {
    "Bounds(x)": (lambda v: of_bounds(x=v), lambda s: s.columns[0].hi, False),
    "Bounds(x[0])": (lambda v: of_bounds(x=[v, 1, 1]), lambda s: s.columns[0].hi, False),
    "Bounds(x=(lo,))": (lambda v: of_bounds(x=(v, 2)), lambda s: s.columns[0].lo, False),
    "Bounds(x=(,hi))": (lambda v: of_bounds(x=(0, v)), lambda s: s.columns[0].hi, False),
    "Bounds(y)": (lambda v: of_bounds(y=v), lambda s: s.response.hi, False),
    "Bounds(y=(lo,))": (lambda v: of_bounds(y=(v, 2)), lambda s: s.response.lo, False),
    "from_bounds(lo)": (
        lambda v: dps.Schema.from_bounds({"a": (v, 2)}, ("y", 0, 1)),
        lambda s: s.columns[0].lo, False,
    ),
    "from_bounds(a)": (
        lambda v: dps.Schema.from_bounds({"a": v}, ("y", 0, 1)), lambda s: s.columns[0].hi, False,
    ),
    "from_bounds(response)": (
        lambda v: dps.Schema.from_bounds({"a": 1}, ("y", 0, v)), lambda s: s.response.hi, False,
    ),
    "from_dict": (
        lambda v: dps.Schema.from_dict(
            {"columns": {"a": {"lo": v, "hi": 2}}, "response": {"name": "y", "lo": 0, "hi": 1}}
        ),
        lambda s: s.columns[0].lo, False,
    ),
}  # fmt: skip

#: There a whole number of any size is one; 10**400 draws would take a while.
ANY_SIZE = ("seed", "draws", "node_limit", "state(p)")


def refused(run: Callable[[Any], Any], value: Any) -> bool:
    """Whether there is a clear error; anything else that is raised, or warned of, gets through."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            run(value)
        except dps.DpsubsetError:
            return True
    return False


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_number_is_refused(place: str) -> None:
    run = PLACES[place][0]
    values = NEVER
    if any(word in place for word in ANY_SIZE):
        values = [value for value in NEVER if type(value) is not int]
    for i, value in enumerate(values):
        assert refused(run, value), f"{place} took {type(value).__name__}, the {i}-th"


@pytest.mark.parametrize("place", PLACES)
def test_what_is_a_number_is_that_number(place: str) -> None:
    run, read, needs_whole = PLACES[place]
    for value in ZERO if "delta" in place else ONE:  # a delta of 1 is too large
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if needs_whole and not isinstance(value, (int, np.integer)):
                assert refused(run, value), (place, value)
                continue
            found = run(value)
        if read is not None:
            assert read(found) == 1, (place, value)


def test_none_is_refused_where_it_means_nothing() -> None:
    meant = ("prediction_bound", "radius", "seed", "limit", "threshold")
    for place, (run, _, _) in PLACES.items():
        if not any(word in place for word in meant):
            assert refused(run, None), place


def test_numbers_too_long_to_write_out_are_refused_before_the_draw() -> None:
    # Python does not write out more than 4300 digits: the release would be lost after the draw.
    for epsilon in (Fraction(10**5000 + 1, 10**5000), Decimal("0." + "1" * 5000)):
        for call in (select, fit):
            with pytest.raises(dps.ArgumentError, match="epsilon"):
                call(epsilon=epsilon)
        with pytest.raises(dps.ArgumentError, match="seed"):
            select(seed=10**5000)
    long = Fraction(10**1000 + 1, 10**1000)
    assert str(long) in select(epsilon=long).to_json()


@pytest.mark.parametrize("odd", NEVER, ids=lambda value: type(value).__name__)
def test_odd_labels(odd: Any) -> None:
    """Text, flags and numbers are labels; nothing else raises anything but a clear error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels in ((odd, "other"), odd):
            try:
                settled = dps.Bounds(x=1, labels=labels).schema(["a"]).response.labels
            except dps.SchemaError:
                continue
            assert settled is not None
            assert isinstance(odd, (str, bool, np.bool_))
