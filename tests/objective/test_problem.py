"""Problem: public arguments, checked before anything is read."""

from __future__ import annotations

import math
from fractions import Fraction
from inspect import Parameter, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset import ArgumentError
from dpsubset.api.problem_spec import build_problem_spec
from dpsubset.constraints import CONSTRAINTS as CONSTRAINTS_BY_NAME
from dpsubset.objective.problem import Problem
from dpsubset.search.enumerate import list_supports
from support.recipes import CONSTRAINTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"k": -1}, "k must be at least 1"),
        ({"k": 6}, "k must be at most p"),
        ({"k": 2.0}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"k": "2"}, "k must be a whole number"),
        ({"k": None}, "k must be a whole number"),
        ({"p": 5.5}, "p must be a whole number"),
        ({"p": 2**22}, "at most 4194303 variables"),
        ({"constraint": "cube"}, "constraint must be one of box, ball, l1"),
        ({"neighbours": "add"}, "neighbours must be one of"),
        ({"loss": "absolute"}, "loss must be one of"),
        ({"prediction_bound": 1.0, "radius": 1.0}, "not both"),
        ({"prediction_bound": 0.0}, "prediction_bound must be greater than 0"),
        ({"prediction_bound": -1.0}, "prediction_bound must be greater than 0"),
        ({"prediction_bound": math.nan}, "prediction_bound must be a finite number"),
        ({"prediction_bound": math.inf}, "prediction_bound must be a finite number"),
        ({"prediction_bound": "1"}, "prediction_bound must be a finite number"),
        ({"prediction_bound": True}, "prediction_bound must be a finite number"),
        ({"prediction_bound": 1e300}, "radius"),
        ({"prediction_bound": 1e300, "constraint": "ball"}, "radius"),
        ({"prediction_bound": 5e-324, "constraint": "ball"}, "radius"),
        ({"radius": 0}, "radius must be greater than 0"),
        ({"radius": math.nan}, "radius must be a finite number"),
        ({"radius": 1e-10}, "radius"),
        ({"radius": 1e10}, "radius"),
        ({"radius": 10**400}, "radius must be a finite number"),
        ({"ridge": -1.0}, "ridge must lie between"),
        ({"ridge": 1e16}, "ridge must lie between"),
        ({"ridge": math.nan}, "ridge must be a finite number"),
        ({"ridge": None}, "ridge must be a finite number"),
        ({"always_include": [5]}, "always_include lists positions"),
        ({"always_include": [-1]}, "always_include lists positions"),
        ({"always_include": [0, 1, 2]}, "more than k = 2"),
        ({"always_include": [0.5]}, "always_include must be a whole number"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Problem.create(**({"p": 5, "k": 2, "intercept": False} | arguments))  # type: ignore[arg-type]


def test_numbers_of_any_type() -> None:
    one = Problem.create(
        np.int64(5),
        np.uint8(2),
        prediction_bound=np.float32(0.5),
        ridge=np.int8(3),
        intercept=False,
    )
    two = Problem.create(5, 2, prediction_bound=Fraction(1, 2), ridge=3, intercept=False)  # type: ignore[arg-type]
    assert one == two
    assert (one.ridge, one.radius) == (3.0, 0.25)


def test_the_edges_are_ordinary() -> None:
    assert Problem.create(1, 1, intercept=False).supports == 1
    assert Problem.create(5, 5, intercept=False).supports == 1
    assert Problem.create(5, 1, intercept=False).supports == 5
    assert Problem.create(2**22 - 1, 1, intercept=False).supports == 2**22 - 1
    assert Problem.create(5, 3, always_include=[4, 0, 4], intercept=False).always_include == (0, 4)
    assert Problem.create(5, 2, always_include=[4, 0], intercept=False).supports == 1


@given(
    st.integers(1, 7), st.data(), st.sampled_from(CONSTRAINTS)
)  # fmt: skip
def test_supports_are_counted_and_listed(p: int, data: st.DataObject, constraint: str) -> None:
    k = data.draw(st.integers(1, p))
    always = data.draw(st.lists(st.integers(0, p - 1), max_size=k, unique=True))
    problem = Problem.create(p, k, constraint=constraint, always_include=always, intercept=False)
    supports = [tuple(row) for row in list_supports(problem).tolist()]
    assert len(supports) == problem.supports == len(set(supports))
    assert supports == sorted(supports)
    for support in supports:
        assert list(support) == sorted(set(support))
        assert len(support) == k
        assert set(always) <= set(support) <= set(range(p))


@given(st.floats(1e-6, 1e6), st.integers(1, 60), st.sampled_from(CONSTRAINTS))
def test_the_radius_keeps_the_prediction_bound_and_wastes_nothing(
    prediction_bound: float, k: int, constraint: str
) -> None:
    problem = Problem.create(
        60, k, constraint=constraint, prediction_bound=prediction_bound, intercept=False
    )

    def passes(radius: float) -> bool:
        """Whether some model of this radius predicts more than the bound, in exact arithmetic."""
        exact = Fraction(radius)
        if constraint == "ball":
            return exact**2 * k > Fraction(prediction_bound) ** 2
        return exact * (k if constraint == "box" else 1) > Fraction(prediction_bound)

    assert not passes(problem.radius)
    assert passes(math.nextafter(problem.radius, math.inf))
    # And the prediction bound that enters the sensitivity is an upper bound for this radius.
    if constraint == "ball":
        assert problem.prediction_bound**2 >= Fraction(problem.radius) ** 2 * k
        assert problem.prediction_bound <= Fraction(prediction_bound) + Fraction(1, 2**60)
    else:
        assert problem.prediction_bound <= Fraction(prediction_bound)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_an_intercept_counts_in_the_radius(constraint: str) -> None:
    """No more than the declared prediction bound, and nearly all of it."""
    problem = Problem.create(5, 2, constraint=constraint, prediction_bound=1.25, intercept=True)
    bound = problem.prediction_bound
    assert Fraction(5, 4) * (1 - Fraction(1, 2**40)) <= bound <= Fraction(5, 4) + Fraction(1, 2**60)


@given(st.floats(1e-9, 1e9), st.integers(1, 50))
def test_a_radius_is_taken_as_it_is(radius: float, k: int) -> None:
    assert Problem.create(50, k, radius=radius, intercept=False).radius == radius
    assert (
        Problem.create(50, k, radius=radius, intercept=False).prediction_bound
        == Fraction(radius) * k
    )
    assert Problem.create(
        50, k, constraint="l1", radius=radius, intercept=False
    ).prediction_bound == Fraction(radius)


def test_the_intercept_has_one_default() -> None:
    """That of the public functions; what builds problems says which it means."""
    assert signature(build_problem_spec).parameters["intercept"].default is True
    assert signature(Problem.create).parameters["intercept"].default is Parameter.empty


@pytest.mark.parametrize("name", CONSTRAINTS)
@given(data=st.data())
def test_sets_are_symmetric_in_every_coordinate(name: str, data: st.DataObject) -> None:
    """Bounds and audits rely on it: the sign of a coefficient changes nothing."""
    entries = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=5)
    b = data.draw(entries)
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(b), max_size=len(b)))
    other = [sign * x for sign, x in zip(signs, b, strict=True)]
    c = CONSTRAINTS_BY_NAME[name](0.75)
    assert c.gauge(other) == c.gauge(b)
    exact, flipped = [Fraction(x, 999) for x in b], [Fraction(x, 999) for x in other]
    assert c.support_function(flipped, 64) == c.support_function(exact, 64)
    projected = [sign * x for sign, x in zip(signs, c.project(exact, 64), strict=True)]
    assert c.project(flipped, 64) == projected
