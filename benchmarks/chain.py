"""Steps a second of the Metropolis-Hastings chain at a published size, beside bare scores.

    python -m benchmarks.chain

The size is that of Section 5 of Roy, Wang and Tewari 2024: n 900, p 2000, k 4, entries uniform on
(-1, 1), noise on (-0.1, 0.1), strong signal, l1 radius 2. A step of a chain that moves all the time
has to score a support it has not seen; one that stays where it is asks again for scores it knows.
Everything is counted: random words, rationals, and for the first figure of a row the columns of X'X
that are multiplied out.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np

from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import Data, Setting
from dpsubset.mechanisms.published.metropolis import Metropolis
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SystemSource

GOAL = 200_000
N, P, K, RADIUS = 900, 2000, 4, 2.0


def digest(rng: np.random.Generator) -> GramData:
    """The table of Section 5 of Roy, Wang and Tewari 2024."""
    beta = 2 * math.sqrt(K * math.log(P) / N)
    x = rng.uniform(-1, 1, size=(N, P))
    y = beta * x[:, :K].sum(axis=1) + rng.uniform(-0.1, 0.1, N)
    cells = np.rint(np.column_stack([x, y / (beta * K + 0.1)]) * STEPS).astype(np.int16)
    return GramData.of_cells(np.ascontiguousarray(cells.T), "benchmark")


def bare_scores(
    table: GramData, problem: Problem, unit: Fraction, rng: np.random.Generator
) -> float:
    """Supports scored in a second, in one call, without a chain."""
    supports = np.sort([rng.choice(P, K, replace=False) for _ in range(20_000)], axis=1)
    scorer = Scorer(table, problem, unit)
    scorer.scores(supports[:10])
    start = time.perf_counter()
    scorer.scores(supports)
    return len(supports) / (time.perf_counter() - start)


def main() -> None:
    """One row for each epsilon."""
    rng = np.random.default_rng(0)
    problem = Problem.create(
        P, K, constraint="l1", radius=RADIUS, neighbours="add-remove", intercept=False
    )
    published = Sensitivity.of(problem, "published")
    scores = bare_scores(digest(rng), problem, published.score_step, rng)
    print(f"bare scores: {scores:,.0f} a second")
    for epsilon in ("0.5", "3", "10"):
        setting = Setting(problem, published, Fraction(epsilon), Fraction(1, 10**6))
        mechanism = Metropolis(steps=400_000)
        table = digest(rng)
        Metropolis(10).prepare(Data(table), setting).draw(Randomness(SystemSource()))  # compiled
        start = time.perf_counter()
        sampler = mechanism.prepare(Data(table), setting)
        ready = time.perf_counter()
        sampler.draw(Randomness(SystemSource()))
        end = time.perf_counter()
        rate, all_in = mechanism.steps / (end - ready), mechanism.steps / (end - start)
        work = sampler.diagnostics()
        print(
            f"epsilon {epsilon}: {all_in:,.0f} steps a second with preparation, {rate:,.0f} without"
            f" ({rate / GOAL:.2f} of the goal, {rate / scores:.2f} of bare scores); "
            f"{work['accepted'] / work['steps']:.1%} accepted, {work['by_hand']} by hand"
        )


if __name__ == "__main__":
    main()
