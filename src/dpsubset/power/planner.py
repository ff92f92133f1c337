"""plan: how likely a release names the variables that matter, before anybody touches a table."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from ..api.problem_spec import Rule
from ..api.request import exact_epsilon
from ..base.errors import ArgumentError
from ..base.validation import check_float, check_int, check_positive, check_progress, check_seed
from ..constraints import Name as Constraint
from ..mechanisms import Mechanism
from ..objective.losses import Name as Loss
from ..privacy.relations import Neighbours
from ..privacy.response_range import ResponseRange
from .expectation import Expectation
from .expected import Method, expected
from .population import Population
from .question import Question
from .simulated import Effort, Progress
from .smallest import Unknown, smallest

#: The largest table that is planned for.
LARGEST_N = 2**33 - 1


def plan(
    *,
    p: int,
    k: int,
    n: int | None = None,
    epsilon: float | Fraction | Decimal | None = None,
    probability: float | None = None,
    snr: float = 1.0,
    rho: float = 0.0,
    least: float = 1.0,
    x_bound: float = 3.0,
    y_bound: float = 3.0,
    labels: bool = False,
    rows_per_unit: int = 1,
    delta: float | Fraction | Decimal = 0,
    mechanism: str | Mechanism = "permute-and-flip",
    options: Mapping[str, Any] | None = None,
    allow_unproven: bool = False,
    loss: Loss | None = None,
    threshold: float | None = None,
    constraint: Constraint = "box",
    prediction_bound: float | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
    neighbours: Neighbours = "replace-one",
    sensitivity: Rule = "sharp",
    response_range: Literal["private", "declared"] | ResponseRange | None = None,
    method: Method = "auto",
    tables: int | None = None,
    seconds: float = 6.0,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Expectation:
    """The probability that a release names exactly the k variables that matter. Spends nothing.

    No data are read: it is about made-up tables with Gaussian columns, of which k make up the
    response. With ``probability``, and without one of ``n`` and ``epsilon``, the smallest value of
    that one which reaches it.

    Parameters
    ----------
    p, k : int
        Columns to choose from, and how many of them matter.
    n : int, optional
        Rows.
    epsilon : number, optional
        The privacy budget of the whole release, a private scale of the response included.
    probability : float, optional
        What is wished for, between 0 and 1.
    snr : float
        Variance of the signal over that of the noise.
    rho : float
        Correlation of neighbouring columns: of columns i and j it is rho^|i - j|.
    least : float
        The smallest of the k weights over the largest; 1 makes all signals equal.
    x_bound, y_bound : float
        Where the declared bounds of columns and response are, in standard deviations.
    labels : bool
        Whether the response is one of two labels; under "logistic" and "hinge" it is.
    rows_per_unit : int
        As in a schema: how many rows the guarantee is for.
    delta, mechanism, options, allow_unproven, loss, threshold, constraint, reach, radius, ridge,
    intercept, neighbours, sensitivity, response_range
        As for :func:`dpsubset.select`.
    method : {"auto", "closed", "simulated"}
        "auto": by the closed form for least squares in the box or the ball, independent columns,
        and permute-and-flip or the exponential mechanism; by simulation otherwise, and where a
        number of ``tables`` is asked for.
    tables : int, optional
        How many made-up tables to simulate; by default as many as there is time for.
    seconds : float
        Roughly how long a simulation may take.
    seed : int, optional
        Makes a simulation reproducible, together with ``tables``. The closed form always is.
    progress : callable, optional
        Called with the fraction of a simulation that is done.

    Returns
    -------
    Expectation
    """
    check_progress(progress)
    unknown = _unknown(n, epsilon, probability)
    wished = None if probability is None else _share(probability)
    if n is not None and not 2 <= check_int(n, "n") <= LARGEST_N:
        raise ArgumentError(f"n must lie between 2 and {LARGEST_N}: the number of rows")
    if epsilon is not None:
        exact_epsilon(epsilon)
    if not isinstance(labels, bool):
        raise ArgumentError("labels must be True or False")
    population = Population(p, k, snr, rho, least, x_bound, y_bound, labels)
    effort = _effort(tables, seconds, seed)
    question = Question.of(
        population,
        rows_per_unit,
        {
            "delta": delta,
            "mechanism": mechanism,
            "options": options,
            "allow_unproven": allow_unproven,
            "loss": loss,
            "threshold": threshold,
            "constraint": constraint,
            "prediction_bound": prediction_bound,
            "radius": radius,
            "ridge": ridge,
            "intercept": intercept,
            "neighbours": neighbours,
            "sensitivity": sensitivity,
            "response_range": response_range,
        },
    )
    if unknown is None or wished is None:
        assert n is not None
        return expected(question, n, epsilon, method, effort, progress)
    known = epsilon if unknown == "n" else n
    return smallest(question, unknown, known, wished, method, effort, progress)


def _unknown(n: Any, epsilon: Any, probability: Any) -> Unknown | None:
    """Which of n and epsilon is to be found."""
    if n is None and epsilon is None:
        raise ArgumentError(
            "give n and epsilon; or one of them and the probability that is wished for, and the "
            "smallest value of the other one is found"
        )
    if n is not None and epsilon is not None:
        if probability is not None:
            raise ArgumentError(
                "give a probability with n or with epsilon, and leave the other one out: it is "
                "what is found. Leave the probability out to find that"
            )
        return None
    if probability is None:
        missing = "n" if n is None else "epsilon"
        raise ArgumentError(
            f"{missing} is missing: give it, or a probability, and the smallest {missing} for that "
            "is found"
        )
    return "n" if n is None else "epsilon"


def _share(probability: Any) -> float:
    found = check_float(probability, "probability")
    if not 0 < found < 1:
        raise ArgumentError("probability must lie between 0 and 1, such as 0.9")
    return found


def _effort(tables: Any, seconds: Any, seed: Any) -> Effort:
    if tables is not None:
        tables = check_int(tables, "tables")
        if tables < 2:
            raise ArgumentError("tables must be at least 2, so that they can differ; 100 are many")
    if seed is not None:
        seed = check_seed(seed)
        if seed < 0:
            raise ArgumentError("seed must be 0 or more")
    return Effort(tables, check_positive(seconds, "seconds"), seed)
