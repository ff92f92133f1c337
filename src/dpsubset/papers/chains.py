"""Has the chain of `metropolis` mixed? Traces for simulation, NOT PRIVATE, and a bound on steps.

On synthetic data several chains can be watched from independent starts, as in Section 5 of Roy,
Wang and Tewari 2024. A trace shows the data at every step: nothing of it may leave. That chains
agree with each other does not prove that they have mixed; the exact audit has examples where they
have not. `mixing_steps` is the bound of their Theorem 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ..api.problem_spec import (
    ProblemOptions,
    ProblemSpec,
    Rule,
    build_problem_spec,
    with_keywords_of,
)
from ..api.request import exact_epsilon
from ..base.errors import ArgumentError
from ..base.validation import check_float, check_int, check_positive, check_seed
from ..data.gram import GramData
from ..data.quantize import STEPS
from ..mechanisms import Setting
from ..mechanisms.published.metropolis import Metropolis
from ..mechanisms.shared.chain import Chain
from ..privacy.random import Randomness, SeededSource, SystemSource
from ..schema.layout import Layout
from ..schema.schema import SchemaLike


@dataclass(frozen=True, repr=False)
class Traces:
    """Where chains were at some of their steps. NOT PRIVATE.

    Attributes
    ----------
    steps : array of shape (r,)
        When they were looked at; 0 is the start.
    supports : array of shape (chains, r, k)
        The choices they were at.
    explained : array of shape (chains, r)
        R = y' Phi_S y / y'y, the share of y that lies in the span of their columns and of the
        intercept, where there is one.
    f_truth, f_best : arrays of shape (chains, r), f_truth None without a truth
        F-scores against the true support and against ``best``: 2 |S and T| / (|S| + |T|).
    best : tuple of int
        The best support: the one given, else the best that any chain was seen at.
    """

    steps: NDArray[np.int64]
    supports: NDArray[np.int64]
    explained: NDArray[np.float64]
    f_truth: NDArray[np.float64] | None
    f_best: NDArray[np.float64]
    best: tuple[int, ...]


@with_keywords_of(build_problem_spec)
def traces_not_private(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    epsilon: Any,
    chains: int = 10,
    steps: int = 100_000,
    every: int | None = None,
    lazy: bool = False,
    truth: Iterable[int | str] | None = None,
    best: Iterable[int | str] | None = None,
    sensitivity: Rule = "sharp",
    seed: int | None = None,
    y: Any = None,
    **options: Unpack[ProblemOptions],
) -> Traces:
    """Run several chains of `metropolis` from independent uniform starts. NOT PRIVATE.

    For synthetic data.

    Parameters
    ----------
    data, schema, k, epsilon, sensitivity, seed
        As for :func:`dpsubset.select`, and so are all arguments that state the problem, such as
        ``constraint``, ``prediction_bound``, ``ridge`` and ``neighbours``.
    chains, steps, lazy
        How many chains, how long, and whether they stay put half of the time.
    every : int, optional
        Look at them after so many steps each; a hundred times by default.
    truth : names or positions, optional
        The support that the data were made from.
    best : names or positions, optional
        The best support, if known: :func:`dpsubset.best_subset` finds it.

    Returns
    -------
    Traces

    Raises
    ------
    ArgumentError, SchemaError, TableError
        If an argument, the schema, or a name or type in the table is wrong.

    Examples
    --------
    >>> import numpy as np, dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    >>> given = {"y": X[:, 1], "bounds": dps.Bounds(x=1, y=1)}
    >>> traces = dps.traces_not_private(X, k=1, epsilon=9, chains=2, steps=100, **given)
    >>> traces.supports.shape
    (2, 101, 1)
    """
    mechanism = Metropolis(steps, lazy)
    if check_int(chains, "chains") < 1:
        raise ArgumentError("chains must be at least 1")
    every = max(1, steps // 100) if every is None else check_int(every, "every")
    if not 1 <= every <= steps:
        raise ArgumentError("every must lie between 1 and steps")
    budget = exact_epsilon(epsilon)
    spec = replace(build_problem_spec(data, schema, k=k, y=y, **options), rule=sensitivity)
    problem = spec.problem
    mechanism.check(Setting.of(problem, budget, Fraction(1, 2)))
    eta = spec.sensitivity.eta(budget, problem.neighbours)
    true = None if truth is None else _positions(truth, spec, "truth")
    good = None if best is None else _positions(best, spec, "best")
    source = SystemSource() if seed is None else SeededSource(check_seed(seed))

    gram = spec.open(data, y).read(problem)
    chain = Chain(gram, problem, spec.sensitivity.score_step, eta, lazy=mechanism.lazy)
    chain.prefetch_columns(chains * steps)
    rng = Randomness(source)
    looks = [*range(0, steps, every), steps]
    supports = np.empty((chains, len(looks), problem.k), dtype=np.int64)
    scores = np.empty((chains, len(looks)), dtype=np.int64)
    for one in range(chains):
        walk = chain.start(rng)
        for i, at in enumerate(looks):
            if i:
                walk.advance(at - looks[i - 1], rng)
            supports[one, i], scores[one, i] = walk.members, walk.score
    if good is None:
        good = tuple(int(j) for j in supports.reshape(-1, problem.k)[np.argmin(scores)])
    return Traces(
        steps=np.array(looks, dtype=np.int64),
        supports=supports,
        explained=_explained(gram, problem.layout, supports),
        f_truth=None if true is None else f_scores(supports, true),
        f_best=f_scores(supports, good),
        best=good,
    )


def f_scores(supports: NDArray[np.int64], truth: Iterable[int]) -> NDArray[np.float64]:
    """2 |S and T| / (|S| + |T|) for the supports S along the last axis."""
    against = np.array(sorted(set(truth)), dtype=np.int64)
    shared = np.isin(supports, against).sum(axis=-1)
    return np.asarray(2.0 * shared / (supports.shape[-1] + len(against)))


def mixing_steps(
    p: int,
    k: int,
    n: int,
    epsilon: float | Fraction,
    distance: float | Fraction,
    *,
    kappa_minus: float,
    kappa_plus: float,
    b_max: float,
    sigma: float,
    y_max: float = 1.0,
    x_max: float = 1.0,
    constant: float = 1.0,
) -> int:
    """Compute how many steps reach a distance from the target: Theorem 2 of Roy et al. 2024.

        C p k^2 (n epsilon kappa_plus b_max^2 / Psi + log(1 / distance))
        Psi = (y_max + (kappa_plus / kappa_minus) b_max x_max + (sigma / kappa_minus) x_max^2)^2

    A guide, not a guarantee: the universal constant C is not known (``constant`` stands for it),
    and the theorem holds with high probability over data from a sparse linear model with enough
    signal, whose eigenvalues over all supports lie between the two kappas, with coefficients of l1
    norm at most ``b_max`` and noise of scale ``sigma``. Nothing here is taken from data.

    Parameters
    ----------
    p, k, n : int
        Variables, variables to select, and rows.
    epsilon : number
    distance : number
        The largest distance in total variation.
    kappa_minus, kappa_plus, b_max, sigma, y_max, x_max, constant : number
        The quantities of the theorem.

    Returns
    -------
    int

    Raises
    ------
    ArgumentError
        If an argument is wrong.

    Examples
    --------
    >>> import dpsubset as dps
    >>> dps.mixing_steps(10, 2, 100, 1, 0.1, kappa_minus=1, kappa_plus=1, b_max=1, sigma=1)
    537
    """
    for value, name in ((p, "p"), (k, "k"), (n, "n")):
        if check_int(value, name) < 1:
            raise ArgumentError(f"{name} must be at least 1")
    low, high = check_positive(kappa_minus, "kappa_minus"), check_positive(kappa_plus, "kappa_plus")
    size, noise = check_positive(b_max, "b_max"), check_float(sigma, "sigma")
    if noise < 0 or high < low:
        raise ArgumentError("sigma must be at least 0, and kappa_plus at least kappa_minus")
    near = check_positive(distance, "distance")
    x = check_positive(x_max, "x_max")
    psi = (check_positive(y_max, "y_max") + high / low * size * x + noise / low * x**2) ** 2
    peak = n * check_positive(epsilon, "epsilon") * high * size**2 / psi
    return math.ceil(check_positive(constant, "constant") * p * k**2 * (peak + math.log(1 / near)))


def _positions(names: Iterable[int | str], spec: ProblemSpec, what: str) -> tuple[int, ...]:
    positions = tuple(sorted({spec.design.position(name) for name in names}))
    if not positions or positions[0] < 0 or positions[-1] >= spec.problem.p:
        raise ArgumentError(f"{what} lists columns, by name or by position from 0")
    return positions


def _explained(gram: GramData, layout: Layout, supports: NDArray[np.int64]) -> NDArray[np.float64]:
    flat = supports.reshape(-1, supports.shape[-1])
    different, where = np.unique(flat, axis=0, return_inverse=True)
    shares = np.array([_share(gram, layout.of_support(support)) for support in different])
    return np.asarray(shares[where].reshape(supports.shape[:-1]))


def _share(gram: GramData, columns: NDArray[np.int64]) -> float:
    """y' Phi_S y / y'y by least squares on the normal equations; 0 where y is 0."""
    scale = float(STEPS) ** 2
    h = gram.block(np.array(columns, dtype=np.int64)) / scale
    c = gram.c[columns] / scale
    b = np.linalg.lstsq(h, c, rcond=None)[0]
    return float(c @ b) / (gram.yy / scale) if gram.yy else 0.0
