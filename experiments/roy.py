"""The tables and the mechanism of Section 5 of Roy, Wang and Tewari 2024.

    exp(-epsilon L_K(S) / (r + K)^2),   L_K(S) = min |y - X_S b|^2 over |b|_1 <= K,

which their chain tends to and `exponential` draws from exactly: add-remove neighbours, for which
the score is monotone, so that the sensitivity counts once. One table serves both here, so that the
two have the same scores to the last bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from benchmarks.data import PUBLISHED, Floats

import dpsubset as dps
from dpsubset.api.problem_spec import build_problem_spec
from dpsubset.api.sensitive_table import SensitiveTable
from dpsubset.data.gram import GramData
from dpsubset.mechanisms import Data, Mechanism, Setting
from dpsubset.mechanisms.published.metropolis import Metropolis
from dpsubset.mechanisms.shared.chain import Chain
from dpsubset.objective.losses.least_squares import Scorer
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.search.engine import Limits

N, P, S = 900, 2000, 4
SIGNALS = ("strong", "weak")
RADII = (0.5, 2.0, 3.0, 3.5)
EPSILONS = (0.5, 1.0, 3.0, 5.0, 10.0)
TRUTH = tuple(range(S))
NOISE = 0.1
#: In steps: they ran about 50 p.
LENGTH = 50 * P

#: Exact draws from a table, and seconds they may take together.
DRAWS, SECONDS = 40, 60.0
#: Fewer where draws take longer: strong or weak, K, epsilon.
FEW = {
    ("strong", 3.5, 5.0): 5, ("weak", 2.0, 5.0): 5,
    ("weak", 2.0, 3.0): 10, ("weak", 2.0, 10.0): 10,
}  # fmt: skip
#: One where that takes about as long as it may.
HARD = set(itertools.product(("weak",), (3.0, 3.5), (5.0, 10.0)))

Support = tuple[int, ...]


def planned(signal: str, K: float, epsilon: float) -> int:
    """How many exact draws are made from a table in a cell."""
    place = (signal, K, epsilon)
    return 1 if place in HARD else FEW.get(place, DRAWS)


def strength(signal: str) -> float:
    """The coefficient of each of the s active columns."""
    return 2 * math.sqrt((S if signal == "strong" else 1) * math.log(P) / N)


def allowed(signal: str) -> float:
    """The largest response that the model allows."""
    return S * strength(signal) + NOISE


def make(signal: str, seed: int) -> tuple[Floats, Floats]:
    """Columns uniform on (-1, 1), the first s of them active, uniform noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (N, P))
    return x, strength(signal) * x[:, :S].sum(axis=1) + rng.uniform(-NOISE, NOISE, N)


@dataclass(frozen=True)
class Cell:
    """One cell of their table, on one made-up table.

    Parameters
    ----------
    r
        Bound on the response; the largest one that the table has, if none is given. They do not
        print theirs.
    """

    signal: str
    K: float
    epsilon: float
    seed: int
    r: float | None = None

    @cached_property
    def read(self) -> tuple[GramData, Setting]:
        """The table behind the quantizer, and what a mechanism is told."""
        x, y = make(self.signal, self.seed)
        r = float(np.abs(y).max()) if self.r is None else self.r
        stated = build_problem_spec(
            x, y=y, bounds=dps.Bounds(x=1, y=r), k=S, constraint="l1", radius=self.K / r,
            neighbours="add-remove", intercept=PUBLISHED["intercept"],
        )  # fmt: skip
        sensitivity = Sensitivity.of(stated.problem, "published")
        table = SensitiveTable(x, stated.schema, y, records_for=stated.records_for)
        setting = Setting(stated.problem, sensitivity, Fraction(str(self.epsilon)))
        return table.read(stated.problem), setting

    def draws(
        self, mechanism: Mechanism, count: int, seconds: float = SECONDS
    ) -> list[Support] | None:
        """Independent draws that share work; None if they took longer."""
        digest, setting = self.read
        rng = Randomness(SystemSource())
        try:
            sampler = mechanism.prepare(Data(digest, Limits(seconds=seconds)), setting)
            return [sampler.draw(rng) or () for _ in range(count)]
        except dps.SearchLimitError:
            return None

    def walks(self, chains: int, looks: Sequence[int]) -> list[list[Support]]:
        """Where chains from uniformly random starts are after so many steps: a list for each."""
        digest, setting = self.read
        sensitivity = setting.sensitivity
        eta = Metropolis().eta(setting)
        chain = Chain(digest, setting.problem, sensitivity.score_step, eta, lazy=False)
        chain.prefetch_columns(chains * looks[-1])
        rng = Randomness(SystemSource())
        found = []
        for _ in range(chains):
            walk, seen, at = chain.start(rng), [], 0
            for look in looks:
                walk.advance(look - at, rng)
                seen.append(walk.support)
                at = look
            found.append(seen)
        return found

    def exponents(self, supports: Sequence[Support]) -> Floats:
        """eta (L(S) - L(truth)): how many times e a support is less likely than the true one."""
        digest, setting = self.read
        unit = setting.sensitivity.score_step
        listed = np.array([TRUTH, *supports], dtype=np.int64)
        scores = np.asarray(Scorer(digest, setting.problem, unit).scores(listed), dtype=np.int64)
        return np.asarray((scores[1:] - scores[0]) * float(Metropolis().eta(setting) * unit))

    def swaps(self) -> float:
        """The weight of all supports that differ from the true one in one variable, beside it."""
        others = [
            tuple(sorted({*TRUTH} - {out} | {new})) for out in TRUTH for new in range(S, P)
        ]  # fmt: skip
        return float(np.exp(-self.exponents(others)).sum())

    def explained(self, supports: Sequence[Support]) -> Floats:
        """R = y' Phi_S y / y'y, the share of y in the span of the columns of S."""
        x, y = make(self.signal, self.seed)
        return np.array([_share(x[:, list(support)], y) for support in supports])


def _share(x: Floats, y: Floats) -> float:
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(fitted @ fitted / (y @ y))


def overlaps(supports: Sequence[Support]) -> list[int]:
    """How many of the supports have 0, 1, ... s of the true variables."""
    shared = [len(set(support) & set(TRUTH)) for support in supports]
    return [shared.count(many) for many in range(S + 1)]


def not_there(steps: int, p: int = P, s: int = S) -> float:
    """A lower bound, on any table, on the probability that a walk has not met the true support.

    A walk that lacks m of its s variables has m others, and proposes to exchange one of these for
    one of those with probability m^2 / (s (p - s)) at a step. What is proposed counts as accepted
    here, and what is found as kept: no walk is sooner there. It starts at a uniform support.
    """
    ways = [math.comb(s, m) * math.comb(p - s, m) for m in range(s + 1)]
    at = np.array(ways) / math.comb(p, s)
    move = np.arange(s + 1) ** 2 / (s * (p - s))
    matrix = np.diag(1 - move) + np.diag(move[1:], -1)
    return float((at @ np.linalg.matrix_power(matrix, steps))[1:].sum())


def total_variation(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """Half the sum of |a_i / a - b_i / b|: between two distributions, from counts of each."""
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    return float(np.abs(a / a.sum() - b / b.sum()).sum() / 2)


def by_chance(
    ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]], level: float
) -> float:
    """The distance of summed counts that sampling alone passes with a probability of 1 - level.

    If both have one law on each table, which of its draws are ours is a matter of chance.
    """
    rng = np.random.default_rng(0)
    shuffles = 4000
    first, second = np.zeros((2, shuffles, len(ours[0])))
    for a, b in zip(ours, theirs, strict=True):
        both = np.add(a, b)
        drawn = rng.multivariate_hypergeometric(both, int(np.sum(a)), size=shuffles)
        first += drawn
        second += both - drawn
    shares = [counts / counts.sum(axis=1, keepdims=True) for counts in (first, second)]
    return float(np.quantile(np.abs(shares[0] - shares[1]).sum(axis=1) / 2, level))
