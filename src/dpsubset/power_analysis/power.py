"""power: how likely a release names the true variables, and how wide the intervals of a model are,
estimated before any table is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, get_args

from ..api.problem_spec import Rule, with_keywords_of
from ..api.request import exact_epsilon
from ..base.errors import ArgumentError
from ..base.validation import (
    check_choice,
    check_float,
    check_int,
    check_positive,
    check_progress,
    check_seed,
)
from ..constraints import ConstraintName
from ..mechanisms import Mechanism
from ..models.rule import FitRule
from ..objective.losses import LossName
from ..privacy.relations import Neighbours
from ..privacy.response_range import ResponseRange
from .expectation import Expectation, expected
from .inverse import Unknown, smallest
from .population import LEAST, Population, Signals
from .scenario import Kind, Scenario
from .simulation import Effort, Progress
from .widths import Shape

#: The largest number of rows.
LARGEST_N = 2**33 - 1


@with_keywords_of()
def power(
    *,
    p: int,
    k: int,
    n: int | None = None,
    epsilon: float | Fraction | Decimal | None = None,
    probability: float | None = None,
    snr: float = 1.0,
    rho: float = 0.0,
    signals: Signals = "linear",
    least: float = LEAST,
    release: Kind = "select",
    rule: FitRule | None = None,
    levels: Sequence[int] = (),
    x_bound: float = 3.0,
    y_bound: float = 3.0,
    labels: bool = False,
    rows_per_unit: int = 1,
    delta: float | Fraction | Decimal = 0,
    mechanism: str | Mechanism = "permute-and-flip",
    options: Mapping[str, Any] | None = None,
    allow_unproven: bool = False,
    loss: LossName | None = None,
    threshold: float | None = None,
    constraint: ConstraintName = "box",
    prediction_bound: float | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
    neighbours: Neighbours = "replace-one",
    sensitivity: Rule = "sharp",
    response_range: Literal["private", "declared"] | ResponseRange | None = None,
    tables: int | None = None,
    seconds: float = 6.0,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Expectation:
    """Estimate how likely a release names the k true variables, and how wide a fit's intervals are.

    No data are read and nothing is spent. Tables with Gaussian columns are simulated, k of the
    columns make up the response, and the mechanism draws once from each table. This is done for
    equal signals, and for unequal ones that explain the same part of the response. With
    `probability`, and without one of `n` and `epsilon`, find the smallest value of that one which
    reaches it with equal signals.

    Parameters
    ----------
    p, k : int
        Number of columns to select from, and how many of them make up the response.
    n : int, optional
        Number of rows.
    epsilon : number, optional
        The privacy budget of the whole release, including a private range of the response.
    probability : float, optional
        The probability to reach, between 0 and 1.
    snr : float
        Signal-to-noise ratio: the variance of the signal over that of the noise.
    rho : float
        Correlation of neighbouring columns; columns i and j have correlation rho^|i - j|.
    signals : {"linear", "geometric", "equal"}
        The profile that is shown beside equal signals: weights fall in equal steps or by equal
        factors. With "equal" none is.
    least : float
        The smallest of these k weights over the largest.
    release : {"select", "fit"}
        The function whose release is simulated. :func:`dpsubset.fit` divides epsilon among a
        response range, a selection and a fit; the expected widths of its intervals are simulated.
    rule : FitRule, optional
        The rule of the fit.
    levels : sequence of int
        The number of levels of each of the k variables of a model that is a category. Each level
        but the first is a column of the fit, and more columns need more noise. A selection treats
        a category as it treats a number, and is simulated with numbers.
    x_bound, y_bound : float
        Declared bounds of columns and response, in standard deviations.
    labels : bool
        Whether the response is one of two labels; always so under "logistic" and "hinge".
    rows_per_unit : int
        How many rows one privacy unit has, as in a schema.
    delta, mechanism, options, allow_unproven, loss, threshold, constraint, prediction_bound
        As for :func:`dpsubset.select`.
    radius, ridge, intercept, neighbours, sensitivity, response_range
        As for :func:`dpsubset.select`.
    tables : int, optional
        How many tables to simulate; by default as many as `seconds` allow, at most 1,000.
    seconds : float
        Approximate time limit.
    seed : int, optional
        Makes the result reproducible, together with `tables`.
    progress : callable, optional
        Called with the completed fraction of the simulation.

    Returns
    -------
    Expectation
        With the estimated `probability` of the whole set, its 95 % confidence `interval` and the
        `expected_found` number of true variables, for equal signals; the same of both profiles in
        `cases`; and the `widths` of a fit's intervals.

    Raises
    ------
    ArgumentError
        If an argument is invalid, or no value reaches the probability.

    Examples
    --------
    >>> import dpsubset as dps
    >>> found = dps.power(n=3000, p=20, k=3, epsilon=5, tables=20, seed=1)
    >>> found.probability
    1.0
    >>> [recovery.expected_found for population, recovery in found.cases]
    [3.0, 2.15]
    """
    check_progress(progress)
    unknown = _unknown(n, epsilon, probability)
    if n is not None and not 2 <= check_int(n, "n") <= LARGEST_N:
        raise ArgumentError(f"n must lie between 2 and {LARGEST_N}: the number of rows")
    if epsilon is not None:
        exact_epsilon(epsilon)
    check_choice(signals, get_args(Signals), "signals")
    population = Population(p, k, snr, rho, "equal", least, x_bound, y_bound, labels)
    shape = Shape.given(population.k, levels)
    if shape.levels and release != "fit":
        raise ArgumentError(
            "levels are for the columns of a fit: they need release='fit' (--release fit)"
        )
    effort = _effort(tables, seconds, seed)
    scenario = Scenario.create(population, {
        "delta": delta, "mechanism": mechanism, "options": options,
        "allow_unproven": allow_unproven, "loss": loss, "threshold": threshold,
        "constraint": constraint, "prediction_bound": prediction_bound, "radius": radius,
        "ridge": ridge, "intercept": intercept, "neighbours": neighbours,
        "sensitivity": sensitivity, "response_range": response_range,
    }, rows_per_unit, release, rule)  # fmt: skip
    if unknown is None:
        assert n is not None
        return expected(scenario, n, epsilon, effort, progress, signals=signals, shape=shape)
    wished = check_float(probability, "probability")
    if not 0 < wished < 1:
        raise ArgumentError("probability must lie between 0 and 1, such as 0.9")
    known = epsilon if unknown == "n" else n
    return smallest(
        scenario, unknown, known, wished, effort, progress, signals=signals, shape=shape
    )


#: The first name of `power`, kept as an alias.
plan = power


def _unknown(n: Any, epsilon: Any, probability: Any) -> Unknown | None:
    """Return which of n and epsilon is to be found; None if both are given."""
    if n is None and epsilon is None:
        raise ArgumentError(
            "give n and epsilon; or one of them and a probability, and the smallest value of the "
            "other one that reaches it is found"
        )
    if n is not None and epsilon is not None:
        if probability is not None:
            raise ArgumentError(
                "give a probability with n or with epsilon, and leave the other one out, which is "
                "what is found; or leave out the probability to estimate it"
            )
        return None
    if probability is None:
        missing = "n" if n is None else "epsilon"
        raise ArgumentError(
            f"{missing} is missing: give it; or give a probability to find the smallest {missing} "
            "that reaches it"
        )
    return "n" if n is None else "epsilon"


def _effort(tables: Any, seconds: Any, seed: Any) -> Effort:
    if tables is not None:
        tables = check_int(tables, "tables")
        if tables < 2:
            raise ArgumentError("tables must be at least 2; a few hundred give a narrow interval")
    limit = check_positive(seconds, "seconds")
    if seed is None:
        return Effort(tables, limit)
    seed = check_seed(seed)
    if seed < 0:
        raise ArgumentError("seed must be 0 or more")
    return Effort(tables, limit, seed)
