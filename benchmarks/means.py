"""Errors of private means and regressions against n: ``python -m benchmarks.means [--quick]``.

The settings of Cai, Wang and Zhang 2021, Section 5: l2 error, epsilon = 0.5, delta = 10 / n^1.1.

- *mean*: N(1, I) in d = 50 dimensions;
- *sparse mean*: d = n, s = 20 means of 1, the others 0;
- *regression*: d = 50, entries Bernoulli(0.15), coefficients of 1, noise of 0.5; y within 0 and 16;
- *sparse regression*: d = n, entries Bernoulli(0.15), s = 20 coefficients of 1, noise of 0.5.

Ours against the published algorithm, a published competitor, and no privacy. All get the same
truncation T and the true s. Where a published constant does not give the published guarantee, the
one that does is taken (proofs/means.md), so that all are (epsilon, delta)-private:

- *published*: Gaussian noise by Lemma 3.2.2; Algorithm 3; Algorithm 4 with log(n) rounds. One
  picking noise is charged as they do, though it costs half as much again;
- *published* least squares has noise on its coefficients, as printed in Section 4.3, and is NOT
  PRIVATE on every table; *gaussian-ols* has what its own assumption asks for;
- *noisy gradient*: gradient descent with Gaussian noise (Bassily, Smith and Thakurta 2014);
- *frank-wolfe*: Talwar, Thakurta and Zhang 2015. Both with composition by zCDP, which is kinder to
  them than their own.

Prints means and writes means.csv and means.png to the folder.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpsubset as dps
from dpsubset.privacy.accounting import rho_for

EPSILON, S, LOW_D = 0.5, 20, 50
REPEATS, QUICK_REPEATS = 20, 2
#: Of the response of the regression, whose mean is 3: what truncation leaves whole.
RESPONSE = 10.0
#: The same of the other one, whose mean is 7.5.
OLS_RESPONSE = 16.0
#: Rounds of gradient steps and Frank-Wolfe steps of the competitors.
STEPS = 10

Floats = np.ndarray


@dataclass(frozen=True)
class Table:
    """Made-up records, the truth, and what is public."""

    x: Floats
    y: Floats
    truth: Floats
    bound: float
    delta: float

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def rho(self) -> float:
        return float(rho_for(Fraction(EPSILON), Fraction(self.delta)))


def _delta(n: int) -> float:
    return 10 / n**1.1


def mean_table(n: int, rng: np.random.Generator) -> Table:
    x = rng.normal(1, 1, (n, LOW_D))
    return Table(x, np.zeros(n), np.ones(LOW_D), 2 * math.sqrt(math.log(n)), _delta(n))


def sparse_table(n: int, rng: np.random.Generator) -> Table:
    truth = np.zeros(n)
    truth[:S] = 1
    x = rng.normal(0, 1, (n, n)) + truth
    return Table(x, np.zeros(n), truth, 2 * math.sqrt(math.log(n)), _delta(n))


def ols_table(n: int, rng: np.random.Generator) -> Table:
    x = (rng.random((n, LOW_D)) < 0.15).astype(float)
    truth = np.ones(LOW_D)
    return Table(x, x @ truth + rng.normal(0, 0.5, n), truth, OLS_RESPONSE, _delta(n))


def regression_table(n: int, rng: np.random.Generator) -> Table:
    truth = np.zeros(n)
    truth[:S] = 1
    x = (rng.random((n, n)) < 0.15).astype(float)
    return Table(x, x @ truth + rng.normal(0, 0.5, n), truth, RESPONSE, _delta(n))


def _clip(x: Floats, bound: float) -> Floats:
    return np.clip(x, -bound, bound)


# Ours


def our_mean(t: Table, rng: np.random.Generator) -> Floats:
    within = (-t.bound, t.bound)
    return dps.private_mean(t.x, within, epsilon=EPSILON, delta=t.delta).array


def our_sparse_mean(t: Table, rng: np.random.Generator) -> Floats:
    within = (-t.bound, t.bound)
    return dps.sparse_mean(t.x, within, s=S, epsilon=EPSILON, delta=t.delta).array


def our_regression(t: Table, rng: np.random.Generator) -> Floats:
    # x stays what it is, and coefficients of up to 1.
    return dps.sparse_regression(
        t.x, y=t.y, bounds=dps.Bounds(x=1, y=t.bound), k=S, epsilon=EPSILON, delta=t.delta,
        intercept=False, radius=1 / t.bound, iterations=2, step=3,
    ).array  # fmt: skip


def _fit(t: Table, mechanism: str, **more: Any) -> Floats:
    """All columns, so that next to nothing is left for a selection."""
    rule = dps.FitRule(share=Fraction(999, 1000), mechanism=mechanism)
    columns = {f"x{j}": (0, 1) for j in range(t.x.shape[1])}
    schema = dps.Schema.from_bounds(columns, ("y", 0, t.bound))
    release = dps.fit(
        t.x, schema, y=t.y, k=len(columns), epsilon=EPSILON, rule=rule, response_scale="declared",
        **more,
    )  # fmt: skip
    assert release.model is not None
    return np.array(list(release.model.coefficients.values()))


def noisy_moments(t: Table, rng: np.random.Generator) -> Floats:
    return _fit(t, "noisy-moments", delta=t.delta)


def objective_perturbation(t: Table, rng: np.random.Generator) -> Floats:
    return _fit(t, "objective-perturbation")


def gaussian_ols(t: Table, rng: np.random.Generator) -> Floats:
    return _fit(t, "gaussian-ols", delta=t.delta, allow_unproven=True)


# As published


def published_ols(t: Table, rng: np.random.Generator) -> Floats:
    """Section 4.3, with the variance that is printed there."""
    d = t.x.shape[1]
    scale = math.sqrt(d * math.log(1.25 / t.delta)) * t.bound / (t.n * EPSILON)
    return np.linalg.lstsq(t.x, _clip(t.y, t.bound), rcond=None)[0] + rng.normal(0, scale, d)


def gaussian_mean(t: Table, rng: np.random.Generator) -> Floats:
    moved = 2 * t.bound * math.sqrt(t.x.shape[1]) / t.n
    scale = moved / EPSILON * math.sqrt(2 * math.log(1.25 / t.delta))
    return _clip(t.x, t.bound).mean(axis=0) + rng.normal(0, scale, t.x.shape[1])


def peeled(v: Floats, moved: float, epsilon: float, delta: float, rng: np.random.Generator):
    """Algorithm 2: s rounds of PrivateMax."""
    scale = 2 * moved * 2 * math.sqrt(3 * S * math.log(1 / delta)) / epsilon
    found, left = np.zeros(len(v)), np.abs(v)
    for _ in range(S):
        j = int(np.argmax(left + rng.laplace(0, scale, len(v))))
        found[j] = v[j] + rng.laplace(0, scale)
        left[j] = -np.inf
    return found


def published_sparse_mean(t: Table, rng: np.random.Generator) -> Floats:
    mean = _clip(t.x, t.bound).mean(axis=0)
    return peeled(mean, 2 * t.bound / t.n, EPSILON, t.delta, rng)


def published_lasso(t: Table, rng: np.random.Generator) -> Floats:
    """Algorithm 4. A step of size eta moves by eta times 4 T / n."""
    rounds, eta = max(1, round(math.log(t.n))), 0.5
    b, y = np.zeros(t.x.shape[1]), _clip(t.y, t.bound)
    for _ in range(rounds):
        b = b - eta * t.x.T @ (_clip(t.x @ b, t.bound) - y) / t.n
        b = peeled(b, eta * 4 * t.bound / t.n, EPSILON / rounds, t.delta / rounds, rng)
    return b


# Competitors


def gradient_mean(t: Table, rng: np.random.Generator) -> Floats:
    """Steps 1 / t on the mean of |b - x|^2 / 2: the average of noisy means."""
    d, moved = t.x.shape[1], 2 * t.bound * math.sqrt(t.x.shape[1]) / t.n
    scale = moved * math.sqrt(STEPS / (2 * t.rho))
    mean, b = _clip(t.x, t.bound).mean(axis=0), np.zeros(d)
    for step in range(1, STEPS + 1):
        b -= (b - mean + rng.normal(0, scale, d)) / step
    return b


def gradient_regression(t: Table, rng: np.random.Generator) -> Floats:
    """Gradients of rows are clipped at the size that theirs have at 0, where y is the bound."""
    d, b, most = t.x.shape[1], np.zeros(t.x.shape[1]), t.bound * math.sqrt(0.15 * t.x.shape[1])
    scale = 2 * most / t.n * math.sqrt(STEPS / (2 * t.rho))
    for _ in range(STEPS):
        slopes = t.x * (t.x @ b - _clip(t.y, t.bound))[:, None]
        sizes = np.linalg.norm(slopes, axis=1)
        slope = (slopes * np.minimum(1, most / np.maximum(sizes, 1e-12))[:, None]).mean(axis=0)
        b = b - 0.7 * (slope + rng.normal(0, scale, d))
    return b


def frank_wolfe_mean(t: Table, rng: np.random.Generator) -> Floats:
    """Over the l1 ball of the truth's radius."""
    mean = _clip(t.x, t.bound).mean(axis=0)
    return _frank_wolfe(lambda b: b - mean, len(mean), float(S), 2 * t.bound / t.n, t.rho, rng)


def frank_wolfe_regression(t: Table, rng: np.random.Generator) -> Floats:
    y = _clip(t.y, t.bound)

    def gradient(b: Floats) -> Floats:
        return t.x.T @ (_clip(t.x @ b, t.bound) - y) / t.n

    return _frank_wolfe(gradient, t.x.shape[1], float(S), 4 * t.bound / t.n, t.rho, rng)


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
    return t.x.mean(axis=0)


def plain_sparse_mean(t: Table, rng: np.random.Generator) -> Floats:
    mean = t.x.mean(axis=0)
    return np.where(np.abs(mean) >= np.sort(np.abs(mean))[-S], mean, 0)


def plain_ols(t: Table, rng: np.random.Generator) -> Floats:
    return np.linalg.lstsq(t.x, t.y, rcond=None)[0]


def nothing(t: Table, rng: np.random.Generator) -> Floats:
    return np.zeros(t.x.shape[1])


Estimator = Callable[[Table, np.random.Generator], Floats]
PROBLEMS: dict[str, tuple[Callable[..., Table], tuple[int, ...], dict[str, Estimator]]] = {
    "mean": (
        mean_table,
        (1000, 2000, 5000, 10_000, 20_000),
        {
            "ours": our_mean, "published": gaussian_mean, "noisy gradient": gradient_mean,
            "not private": plain_mean,
        },
    ),
    "sparse mean": (
        sparse_table,
        (500, 1000, 2000),
        {
            "ours": our_sparse_mean, "published": published_sparse_mean,
            "frank-wolfe": frank_wolfe_mean, "not private": plain_sparse_mean, "zero": nothing,
        },
    ),
    "regression": (
        ols_table,
        (1000, 2000, 5000, 10_000, 20_000),
        {
            "noisy-moments": noisy_moments, "objective-perturbation": objective_perturbation,
            "published": published_ols, "gaussian-ols": gaussian_ols,
            "noisy gradient": gradient_regression, "not private": plain_ols, "zero": nothing,
        },
    ),
    "sparse regression": (
        regression_table,
        (500, 1000, 2000),
        {
            "ours": our_regression, "published": published_lasso,
            "frank-wolfe": frank_wolfe_regression, "zero": nothing,
        },
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One point of a figure."""

    problem: str
    n: int
    d: int
    method: str
    repeats: int
    error: float
    deviation: float


def measure(repeats: int, rows: int | None = None, only: str | None = None) -> Iterator[Line]:
    """All points; with ``rows``, tables of that many alone, with ``only`` one problem."""
    for problem, (make, sizes, methods) in PROBLEMS.items():
        if only not in (None, problem):
            continue
        for n in sizes if rows is None else (rows,):
            errors: dict[str, list[float]] = {name: [] for name in methods}
            d = 0
            for seed in range(repeats):
                rng = np.random.default_rng([seed, n])
                t = make(n, rng)
                d = t.x.shape[1]
                for name, estimate in methods.items():
                    errors[name].append(float(np.linalg.norm(estimate(t, rng) - t.truth)))
            for name, found in errors.items():
                mean, spread = float(np.mean(found)), float(np.std(found))
                yield Line(problem, n, d, name, repeats, mean, spread)


def picture(lines: list[Line], path: Path) -> None:
    """One panel a problem."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(line.problem for line in lines))
    figure, panels = plt.subplots(1, len(names), figsize=(5 * len(names), 4), squeeze=False)
    for panel, problem in zip(panels[0], names, strict=True):
        here = [line for line in lines if line.problem == problem]
        for method in dict.fromkeys(line.method for line in here):
            points = [line for line in here if line.method == method]
            panel.plot([p.n for p in points], [p.error for p in points], "o-", label=method)
        panel.set(title=problem, xlabel="n", ylabel="l2 error", yscale="log")
        panel.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="benchmarks.means", description="Errors of means.")
    parser.add_argument("--quick", action="store_true", help="two repeats")
    parser.add_argument("--repeats", type=int, help=f"{REPEATS} by default")
    parser.add_argument("--only", choices=PROBLEMS, help="one problem alone")
    parser.add_argument("--rows", type=int, help="tables of so many rows alone")
    parser.add_argument("--out", default="bench-output", type=Path, help="folder for the files")
    options = parser.parse_args(arguments)
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    options.out.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    with (options.out / "means.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*Line.__dataclass_fields__])
        writer.writeheader()
        for line in measure(repeats, options.rows, options.only):
            lines.append(line)
            writer.writerow(asdict(line))
            text = f"{line.problem:18} n {line.n:6} d {line.d:5} {line.method:15}"
            print(f"{text} {line.error:9.3f} +- {line.deviation:.3f}", flush=True)
    picture(lines, options.out / "means.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
