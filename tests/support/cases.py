"""Small problems on which draws are compared with closed forms.

Together they hold what may break a sampler: collinear, constant and duplicated columns (exact
ties), ridge 0 and above, all three coefficient sets with the constraint active and not, both
neighbour relations, columns that are always included, no data at all. Each comes with an epsilon
at which 50,000 draws tell eta from 0.9 eta and 1.1 eta.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsubset.audit.exact import moments_of_records
from dpsubset.data.moments import Moments
from dpsubset.data.quantize import STEPS
from dpsubset.mechanisms import ScoreMechanism, Setting
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports


@dataclass(frozen=True)
class Case:
    """A data set, a problem, an epsilon."""

    name: str
    moments: Moments
    problem: Problem
    epsilon: Fraction
    active: bool | None  # whether the constraint binds on the best support; None: either

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of(self.problem)

    @property
    def scored(self) -> ScoredSupports:
        return enumerate_supports(self.moments, self.problem, self.sensitivity.score_step)

    @property
    def supports(self) -> list[tuple[int, ...]]:
        scored = self.scored
        return [scored.support(i) for i in range(len(scored))]

    def eta(self, mechanism: ScoreMechanism) -> Fraction:
        return mechanism.eta(Setting(self.problem, self.sensitivity, self.epsilon))

    def probabilities(
        self, mechanism: ScoreMechanism, factor: Fraction = Fraction(1)
    ) -> np.ndarray:
        """Closed form at ``factor`` times the right eta."""
        return mechanism.probabilities(self.scored, factor * self.eta(mechanism))

    def draw(
        self, mechanism: ScoreMechanism, rng: Randomness, draws: int, factor: Fraction = Fraction(1)
    ) -> Counter[tuple[int, ...]]:
        """Supports drawn by the mechanism at ``factor`` times the right eta."""
        sampler = mechanism.sampler(self.scored, factor * self.eta(mechanism))
        return Counter(sampler.draw(rng) for _ in range(draws))


def data(p: int, n: int, seed: int, kind: str, strength: float) -> np.ndarray:
    """Quantized records: y follows the first two columns, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, p))
    if kind == "duplicated":
        x[:, 2] = x[:, 0]
        x[:, 3] = -x[:, 1]
    elif kind == "constant":
        x[:, 0] = 1.0
        x[:, 3] = 0.0
        x[:, 4] = 0.25
    elif kind == "collinear":
        x[:, 2] = (x[:, 0] + x[:, 1]) / 2
        x[:, 3] = (x[:, 0] - x[:, 1]) / 2
    noise = rng.uniform(-1, 1, size=n) * (1 - strength)
    y = strength * (x[:, 0] + 0.7 * x[:, 1]) / 1.7 + noise
    return np.rint(np.column_stack([x, y]) * STEPS).astype(np.int64)


def case(name: str, p: int, k: int, n: int, epsilon: object, active: bool | None = None,
         kind: str = "plain", strength: float = 0.5, **stated: object) -> Case:  # fmt: skip
    problem = Problem.create(p, k, **{"intercept": False, **stated})  # type: ignore[arg-type]
    seed = sum(map(ord, name))
    records = data(p, n, seed, kind, strength)
    return Case(name, moments_of_records(records), problem, Fraction(str(epsilon)), active)


CASES = [
    case("box, active", 8, 2, 150, 4, True, prediction_bound=0.3),
    case("box, not active, add-remove", 8, 2, 90, 50, False, prediction_bound=4,
         neighbours="add-remove"),
    case("box, duplicated, add-remove", 6, 3, 400, 8, kind="duplicated", strength=0.7,
         neighbours="add-remove"),
    case("box, collinear, ridge", 7, 3, 300, 20, kind="collinear", strength=0.7, ridge=5.0),
    case("ball, active", 10, 1, 200, 1.5, True, constraint="ball", prediction_bound=0.2),
    case("ball, not active, add-remove", 6, 2, 60, 16, False, constraint="ball", prediction_bound=3,
         neighbours="add-remove"),
    case("ball, constant", 7, 2, 80, 20, kind="constant", constraint="ball"),
    case("ball, collinear, ridge, add-remove", 8, 3, 300, 6, kind="collinear", strength=0.7,
         constraint="ball", ridge=0.5, neighbours="add-remove"),
    case("l1, active", 7, 3, 120, 6, True, constraint="l1", prediction_bound=0.25),
    case("l1, not active, add-remove", 6, 2, 60, 24, False, constraint="l1", prediction_bound=3,
         neighbours="add-remove"),
    case("l1, duplicated, ridge", 8, 2, 90, 16, kind="duplicated", constraint="l1", ridge=2.0),
    case("l1, constant, add-remove", 7, 4, 60, 32, kind="constant", constraint="l1",
         neighbours="add-remove"),
    case("always included", 9, 3, 80, 8, always_include=[7, 2], prediction_bound=0.8),
    case("widest", 10, 4, 100, 16, constraint="box", prediction_bound=1.2),
]  # fmt: skip

#: No data, and ties only: every support is as likely as any other, whatever epsilon is.
UNIFORM = [
    case("no data", 6, 2, 0, 4, neighbours="add-remove"),
    Case("all columns alike", moments_of_records(np.full((20, 6), STEPS)),
         Problem.create(5, 2, constraint="l1", ridge=0.0, intercept=False), Fraction(50), None),
]  # fmt: skip
