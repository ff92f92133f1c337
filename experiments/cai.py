"""The tables and the methods of Cai, Wang and Zhang 2021, Section 5, which their figures share.

- *mean*: N(1, I);
- *sparse mean*: s means of 1, the others 0;
- *regression*: entries Bernoulli(0.15), coefficients of 1, noise of 0.5;
- *sparse regression*: the same with s coefficients of 1, the others 0.

Where a published constant does not give the published guarantee, the one that does is taken
(proofs/means.md), so that all methods are (epsilon, delta)-private:

- *published*: Gaussian noise by Lemma 3.2.2; Algorithm 3; Algorithm 4 with log(n) rounds. One
  picking noise is charged as they do, though it costs half as much again;
- *published* least squares has noise on its coefficients, as printed in Section 4.3, and is NOT
  PRIVATE on every table; *gaussian-ols* has what its own assumption asks for;
- *noisy gradient*: gradient descent with Gaussian noise (Bassily, Smith and Thakurta 2014);
- *frank-wolfe*: Talwar, Thakurta and Zhang 2015. Both with composition by zCDP, which is kinder to
  them than their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpsubset as dps
from dpsubset.privacy.accounting import rho_for

from .figures import COLOURS

EPSILON, S, LOW_D = 0.5, 20, 50
#: Of a column that is 1.
RATE = 0.15
#: Rounds of gradient steps and Frank-Wolfe steps of the competitors.
STEPS = 10
#: Within which private levels are searched for; means and responses are known to lie there.
WIDE = 50.0

Floats = NDArray[np.float64]

#: By what the methods below are called; those of one problem differ.
STYLES: dict[str, dict[str, Any]] = {
    "ours": {"color": COLOURS["permute-and-flip"]},
    "noisy-moments": {"color": COLOURS["permute-and-flip"]},
    "objective-perturbation": {"color": COLOURS["metropolis"]},
    "gaussian-ols": {"color": COLOURS["sample-aggregate"]},
    "published": {"color": COLOURS["top-r"]},
    "noisy gradient": {"color": COLOURS["mistakes"]},
    "frank-wolfe": {"color": COLOURS["frank-wolfe"]},
    "not private": {"color": COLOURS["not private"]},
    "zero": {"color": "#999999", "linestyle": ":", "marker": ""},
}


@dataclass(frozen=True)
class Table:
    """Records, what is to be estimated, what is public, and the budget.

    Attributes
    ----------
    x, y, truth : arrays
        y is all zeros where means are estimated.
    low, high : float
        Truncation levels: of x for means, of y for regressions.
    epsilon, delta : float
    s : int
        How many are picked, where some are.
    """

    x: Floats
    y: Floats
    truth: Floats
    low: float
    high: float
    epsilon: float
    delta: float
    s: int = S

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def d(self) -> int:
        return self.x.shape[1]

    @property
    def span(self) -> float:
        """How far one value can move."""
        return self.high - self.low

    @property
    def bound(self) -> float:
        """On both sides of 0."""
        return max(abs(self.low), abs(self.high))

    @property
    def rho(self) -> float:
        return float(rho_for(Fraction(self.epsilon), Fraction(self.delta)))

    def clipped(self, v: Floats) -> Floats:
        return np.clip(v, self.low, self.high)


def delta_of(n: int) -> float:
    return 10 / n**1.1


def usual_levels(problem: str, n: int) -> tuple[float, float]:
    """Levels that hardly cut anything, where truncation is not what is asked about."""
    if problem in MEANS:
        return -2 * math.sqrt(math.log(n)), 2 * math.sqrt(math.log(n))
    # The response has a mean of 7.5 or 3, and a deviation of 2.6 or 1.7.
    return (0.0, 16.0) if problem == "regression" else (-10.0, 10.0)


def make(problem: str, n: int, d: int, seed: int, epsilon: float = EPSILON) -> Table:
    """One table of a problem."""
    rng = np.random.default_rng([seed, n])
    truth = np.ones(d)
    if problem in SPARSE:
        truth[S:] = 0
    if problem in MEANS:
        x, y = rng.normal(0, 1, (n, d)) + truth, np.zeros(n)
    else:
        x = (rng.random((n, d)) < RATE).astype(float)
        y = x @ truth + rng.normal(0, 0.5, n)
    return Table(x, y, truth, *usual_levels(problem, n), epsilon, delta_of(n))


def private_levels(
    data: Floats, epsilon: float, rule: dps.QuantileRule | None = None
) -> tuple[float, float]:
    """Two private quantiles of all entries together, within public bounds that are far too wide.

    A record has d entries of n d, and moves as many ranks as one entry of n would.
    """
    each = 1 if data.ndim == 1 else data.shape[1]
    schema = dps.Schema.from_bounds({"other": (0, 1)}, ("value", -WIDE, WIDE), rows_per_unit=each)
    frame = pd.DataFrame({"other": np.zeros(data.size), "value": data.ravel()})
    found = dps.suggest_bounds(
        frame, schema, epsilon=epsilon, columns=["value"], rule=rule, ledger=False
    )
    (column,) = found.columns
    assert column.lo is not None
    assert column.hi is not None
    return float(column.lo), float(column.hi)


Estimator = Callable[[Table, np.random.Generator], Floats]

# Ours


def our_mean(t: Table, rng: np.random.Generator) -> Floats:
    return dps.private_mean(
        t.x, (t.low, t.high), epsilon=t.epsilon, delta=t.delta, ledger=False
    ).array


def our_sparse_mean(t: Table, rng: np.random.Generator) -> Floats:
    # What was not picked is said to be in the middle, which is 0.
    within = (-t.bound, t.bound)
    return dps.sparse_mean(t.x, within, s=t.s, epsilon=t.epsilon, delta=t.delta, ledger=False).array


def our_regression(t: Table, rng: np.random.Generator) -> Floats:
    # x stays what it is, and coefficients of up to 1.
    return dps.sparse_regression(
        t.x, y=t.y, bounds=dps.Bounds(x=1, y=t.bound), k=t.s, epsilon=t.epsilon, delta=t.delta,
        intercept=False, radius=1 / t.bound, iterations=2, step=3, ledger=False,
    ).array  # fmt: skip


def fitted(t: Table, mechanism: str, least: float = 0, **more: Any) -> Floats:
    """All columns, from ``least`` to 1, so that next to nothing is left for a selection."""
    rule = dps.FitRule(budget_fraction=Fraction(999, 1000), mechanism=mechanism)
    columns = {f"x{j}": (least, 1) for j in range(t.d)}
    schema = dps.Schema.from_bounds(columns, ("y", t.low, t.high))
    release = dps.fit(
        t.x,
        schema,
        y=t.y,
        k=t.d,
        epsilon=t.epsilon,
        rule=rule,
        response_range="declared",
        ledger=False,
        **more,
    )
    assert release.model is not None
    return np.array(list(release.model.coefficients.values()))


def noisy_moments(t: Table, rng: np.random.Generator) -> Floats:
    return fitted(t, "noisy-moments", delta=t.delta)


def objective_perturbation(t: Table, rng: np.random.Generator) -> Floats:
    return fitted(t, "objective-perturbation")


def gaussian_ols(t: Table, rng: np.random.Generator) -> Floats:
    return fitted(t, "gaussian-ols", delta=t.delta, allow_unproven=True)


# As published


def published_ols(t: Table, rng: np.random.Generator) -> Floats:
    """Section 4.3, with the variance that is printed there."""
    scale = math.sqrt(t.d * math.log(1.25 / t.delta)) * t.bound / (t.n * t.epsilon)
    return np.linalg.lstsq(t.x, t.clipped(t.y), rcond=None)[0] + rng.normal(0, scale, t.d)


def gaussian_mean(t: Table, rng: np.random.Generator) -> Floats:
    moved = t.span * math.sqrt(t.d) / t.n
    scale = moved / t.epsilon * math.sqrt(2 * math.log(1.25 / t.delta))
    return t.clipped(t.x).mean(axis=0) + rng.normal(0, scale, t.d)


def peeled(
    v: Floats, s: int, moved: float, epsilon: float, delta: float, rng: np.random.Generator
) -> Floats:
    """Algorithm 2: s rounds of PrivateMax."""
    scale = 2 * moved * 2 * math.sqrt(3 * s * math.log(1 / delta)) / epsilon
    found, left = np.zeros(len(v)), np.abs(v)
    for _ in range(s):
        j = int(np.argmax(left + rng.laplace(0, scale, len(v))))
        found[j] = v[j] + rng.laplace(0, scale)
        left[j] = -np.inf
    return found


def published_sparse_mean(t: Table, rng: np.random.Generator) -> Floats:
    return peeled(t.clipped(t.x).mean(axis=0), t.s, t.span / t.n, t.epsilon, t.delta, rng)


def published_lasso(t: Table, rng: np.random.Generator) -> Floats:
    """Algorithm 4. A step of size eta moves by eta times 4 T / n."""
    rounds, eta = max(1, round(math.log(t.n))), 0.5
    b, y = np.zeros(t.d), t.clipped(t.y)
    for _ in range(rounds):
        b = b - eta * t.x.T @ (t.clipped(t.x @ b) - y) / t.n
        moved = eta * 2 * t.span / t.n
        b = peeled(b, t.s, moved, t.epsilon / rounds, t.delta / rounds, rng)
    return b


# Competitors


def gradient_mean(t: Table, rng: np.random.Generator) -> Floats:
    """Steps 1 / t on the mean of |b - x|^2 / 2: the average of noisy means."""
    scale = t.span * math.sqrt(t.d) / t.n * math.sqrt(STEPS / (2 * t.rho))
    average, b = t.clipped(t.x).mean(axis=0), np.zeros(t.d)
    for step in range(1, STEPS + 1):
        b -= (b - average + rng.normal(0, scale, t.d)) / step
    return b


def gradient_regression(t: Table, rng: np.random.Generator) -> Floats:
    """Slopes of rows are clipped at the size that they have at 0, where y is the bound."""
    return gradient_steps(t, t.bound * math.sqrt(RATE * t.d), 0.7, rng)


def gradient_steps(
    t: Table, most: float, size: float, rng: np.random.Generator, steps: int = STEPS
) -> Floats:
    b, y = np.zeros(t.d), t.clipped(t.y)
    scale = 2 * most / t.n * math.sqrt(steps / (2 * t.rho))
    for _ in range(steps):
        slopes = t.x * (t.x @ b - y)[:, None]
        sizes = np.linalg.norm(slopes, axis=1)
        slope = (slopes * np.minimum(1, most / np.maximum(sizes, 1e-12))[:, None]).mean(axis=0)
        b = b - size * (slope + rng.normal(0, scale, t.d))
    return b


def radius_of(t: Table) -> float:
    """Of the l1 ball: that of the truth's s largest entries, which is told to Frank-Wolfe."""
    return float(np.abs(largest(t.truth, t.s)).sum())


def frank_wolfe_mean(t: Table, rng: np.random.Generator) -> Floats:
    average, radius = t.clipped(t.x).mean(axis=0), radius_of(t)
    return _frank_wolfe(lambda b: b - average, t.d, radius, t.span / t.n, t.rho, rng)


def frank_wolfe_regression(t: Table, rng: np.random.Generator) -> Floats:
    y, radius = t.clipped(t.y), radius_of(t)

    def gradient(b: Floats) -> Floats:
        return np.asarray(t.x.T @ (t.clipped(t.x @ b) - y) / t.n)

    return _frank_wolfe(gradient, t.d, radius, 2 * t.span / t.n, t.rho, rng)


def _frank_wolfe(
    gradient: Callable[[Floats], Floats],
    d: int,
    radius: float,
    moved: float,
    rho: float,
    rng: np.random.Generator,
) -> Floats:
    b, scale = np.zeros(d), moved * math.sqrt(STEPS / (2 * rho))
    for step in range(1, STEPS + 1):
        slope = gradient(b)
        noisy = np.concatenate([-slope, slope]) + rng.gumbel(0, scale, 2 * d)
        j = int(np.argmax(noisy))
        corner = np.zeros(d)
        corner[j % d] = radius if j < d else -radius
        b = b + 2 / (step + 1) * (corner - b)
    return b


# Without noise, and nothing at all


def plain_mean(t: Table, rng: np.random.Generator) -> Floats:
    return np.asarray(t.x.mean(axis=0))


def plain_sparse_mean(t: Table, rng: np.random.Generator) -> Floats:
    return largest(t.x.mean(axis=0), t.s)


def plain_ols(t: Table, rng: np.random.Generator) -> Floats:
    return np.linalg.lstsq(t.x, t.y, rcond=None)[0]


def plain_thresholding(t: Table, rng: np.random.Generator) -> Floats:
    """Algorithm 4 without noise: the same number of rounds, on centred columns."""
    centred, y, b = t.x - t.x.mean(axis=0), t.y - t.y.mean(), np.zeros(t.d)
    for _ in range(max(1, round(math.log(t.n)))):
        b = largest(b - centred.T @ (centred @ b - y) / (RATE * (1 - RATE) * t.n), t.s)
    return b


def largest(v: Floats, s: int) -> Floats:
    """The s largest by size; all others are 0."""
    found = np.zeros(len(v))
    kept = np.argsort(-np.abs(v), kind="stable")[:s]
    found[kept] = v[kept]
    return found


def nothing(t: Table, rng: np.random.Generator) -> Floats:
    return np.zeros(t.d)


MEANS = ("mean", "sparse mean")
SPARSE = ("sparse mean", "sparse regression")
#: By problem and label; the label says what is drawn in which colour.
METHODS: dict[str, dict[str, Estimator]] = {
    "mean": {
        "ours": our_mean, "published": gaussian_mean, "noisy gradient": gradient_mean,
        "not private": plain_mean,
    },
    "regression": {
        "noisy-moments": noisy_moments, "objective-perturbation": objective_perturbation,
        "gaussian-ols": gaussian_ols, "published": published_ols,
        "noisy gradient": gradient_regression, "not private": plain_ols, "zero": nothing,
    },
    "sparse mean": {
        "ours": our_sparse_mean, "published": published_sparse_mean,
        "frank-wolfe": frank_wolfe_mean, "not private": plain_sparse_mean, "zero": nothing,
    },
    "sparse regression": {
        "ours": our_regression, "published": published_lasso,
        "frank-wolfe": frank_wolfe_regression, "not private": plain_thresholding, "zero": nothing,
    },
}  # fmt: skip


def error(t: Table, estimate: Floats) -> float:
    """In l2, to the digits that mean something."""
    return round(float(np.linalg.norm(estimate - t.truth)), 5)
