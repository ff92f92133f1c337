"""Noisy iterative hard thresholding: gradient steps, each followed by peeling.

    u = b - step / rows * (X'X b - X'y + ridge b),   S = noisy top k of |u|,   b_S = u_S + noise

Values of u are released between rounds; the support of the last round is the outcome. A choice of
several columns is kept or dropped as a whole, by its largest |u|. The intercept is always kept, and
k does not count it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ...base.errors import ArgumentError
from ...base.validation import check_fraction, check_int
from ...data.quantize import STEPS
from ...objective.problem import Problem
from ...privacy.budget import RECORDS
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.random import Randomness
from ...privacy.relations import PUBLIC_N
from ..shared.base import OPENDP_NOISE, Data, Distribution, Mechanism, Outcome, Sampler, Setting
from ..shared.gradient import Gradient, divided_change, divisor_for, record_change
from ..shared.rounds import Rounds, add_log, over_supports

#: Coefficients by column, in multiples of radius / GRID; zeros left out.
Coefficients = dict[int, int]

#: The support and the coefficients of each round; after the last round, no coefficients.
Transcript = tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...]

#: Largest number of coefficient vectors that the closed form enumerates.
_LARGEST_WALK = 20_000


@dataclass(frozen=True)
class HardThresholding(Mechanism):
    """Cai, Wang and Zhang's Algorithm 4, from moments.

    Attributes
    ----------
    iterations : int
        Number of rounds, the constant N0 of the paper.
    step : number
        Size of the gradient steps. 2 suits nearly uncorrelated columns with a uniform distribution
        over their bounds. Steps above 2 / (largest eigenvalue of X'X / n) overshoot.
    share : number
        Fraction of the budget for the choice of variables; the rest is for values of coefficients.
    rows : int, optional
        A public estimate of the number of rows, which scales the steps. Required under add-remove,
        where the number of rows is private. Under replace-one the default is the number of rows.
    """

    iterations: int = 3
    step: Any = 2
    share: Any = Fraction(1, 2)
    rows: int | None = None

    #: Coefficients are integer multiples of radius / GRID.
    GRID: ClassVar[int] = 2**15

    name = "hard-thresholding"
    place = 10
    summary = (
        "Coefficients are improved step by step (gradient steps). After each step the k largest, "
        "as they appear after noise, are kept, with noise, and all others are set to 0. The "
        "variables of the last step are released."
    )
    source = "Cai, Wang and Zhang 2021, Algorithm 4; exact integers and constants are ours"
    promises = "pure epsilon, or (epsilon, delta) where that needs less noise"
    running_time = "milliseconds to seconds, for any p: a few columns of X'X"
    use_when = (
        "p is very large, n is large and a delta is acceptable; to compare with the literature"
    )
    takes_delta = "may"
    takes_groups = takes_intercept = True
    on_groups = "a choice is kept, with all of its columns, by its largest coefficient"
    on_intercept = "one more coefficient, always kept, whose value is released with the others"
    seedable = False
    randomness = OPENDP_NOISE

    def __post_init__(self) -> None:
        iterations = check_int(self.iterations, "iterations")
        rows = None if self.rows is None else check_int(self.rows, "rows")
        if not 1 <= iterations <= 1000:
            raise ArgumentError("iterations must lie between 1 and 1000")
        step, share = check_fraction(self.step, "step"), check_fraction(self.share, "share")
        if not Fraction(1, 10**6) <= step <= 10**6:
            raise ArgumentError("step must lie between 1e-6 and 1e6")
        if not Fraction(1, 10**6) <= share <= 1 - Fraction(1, 10**6):
            raise ArgumentError("share must lie between 1e-6 and 1 - 1e-6")
        if rows is not None and not 1 <= rows < 2**40:
            raise ArgumentError("rows must be at least 1: a public estimate of the number of rows")
        self._set_options(iterations=iterations, step=step, share=share, rows=rows)

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if self.rows is None and not setting.problem.n_is_public:
            raise ArgumentError(
                f"{self.name} needs rows, a public estimate of the number of rows: under "
                "add-remove the number itself is private"
            )

    def rounds(self, setting: Setting) -> Rounds:
        """N0 rounds with one pick for each free variable, with values between them."""
        return Rounds.of(setting, self.iterations, setting.problem.picks, self.share)

    def sensitivity(self, setting: Setting, b: Coefficients) -> int:
        """How far neighbouring tables can move an entry of `targets`."""
        moved = self._change(setting.problem, b)
        return RECORDS[setting.problem.neighbours] * divided_change(moved)

    def _change(self, problem: Problem, b: Coefficients) -> int:
        """How far one record moves an entry of the gradient."""
        return record_change(problem.layout, _radius(problem), b, self.GRID)

    def targets(self, gradient: Gradient, setting: Setting, b: Coefficients) -> list[int]:
        """u in integers; targets * divisor / weight is u in units of radius / GRID.

        One for each column, the intercept's last. The divisor is `divisor_for` the change by a
        record, the weight the public number `_weight`.
        """
        divisor = divisor_for(self._change(setting.problem, b))
        entries = gradient.at(b, self.GRID)
        weight = self._weight(setting)
        for column, value in b.items():
            entries[column] += weight * value
        return [entry // divisor for entry in entries]

    def next_coefficients(
        self, setting: Setting, b: Coefficients, columns: Iterable[int], noisy: Iterable[int]
    ) -> Coefficients:
        """The next b: noisy targets rounded to the grid and shrunk into the coefficient set."""
        divisor = divisor_for(self._change(setting.problem, b))
        weight = self._weight(setting)
        values = [_rounded(value * divisor, weight) for value in noisy]
        return self.shrunk(setting.problem, dict(zip(columns, values, strict=True)))

    def target_step(self, setting: Setting, b: Coefficients) -> Fraction:
        """One step of `targets` as a coefficient, in units of radius / GRID."""
        return Fraction(divisor_for(self._change(setting.problem, b)), self._weight(setting))

    def shrunk(self, problem: Problem, values: Mapping[int, int]) -> Coefficients:
        """Coefficients clipped to the box, then scaled into the coefficient set."""
        grid = self.GRID
        b = {j: min(max(value, -grid), grid) for j, value in values.items()}
        norm = problem.coefficients.gauge(list(b.values()))
        if norm > grid:
            b = {j: (abs(v) * grid // norm) * (1 if v > 0 else -1) for j, v in b.items()}
        return {j: value for j, value in b.items() if value}

    def _weight(self, setting: Setting) -> int:
        """rows / step in the units of the gradient, rounded; the rounded value defines the step."""
        rows = self.rows if self.rows is not None else max(1, setting.n or 0)
        exact = STEPS**2 * _radius(setting.problem).numerator * rows / Fraction(self.step)
        return max(1, round(exact))

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """The cost of the rounds; none is known under add-remove if n determines the steps."""
        found = self.rounds(setting).guarantee(setting, seeded)
        if self.rows is not None or self.iterations == 1:
            return found
        return found.limited_to(PUBLIC_N)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        return _Descent(self, data, setting)

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """Sums over all transcripts, where these are few."""
        transcripts = self.transcripts(data, setting)
        if transcripts is None:
            return None
        found: dict[tuple[int, ...], float] = {}
        for transcript, log in transcripts.items():
            add_log(found, transcript[-1][0], log)
        return over_supports(setting.problem, found)

    def transcripts(self, data: Data, setting: Setting) -> dict[Transcript, float] | None:
        """All transcripts and the logarithms of their probabilities; the guarantee covers these."""
        problem, rounds = setting.problem, self.rounds(setting)
        between = problem.supports * (2 * self.GRID + 1) ** problem.most_columns
        if self.iterations > 1 and (
            rounds.measure == "zcdp" or between ** (self.iterations - 1) > _LARGEST_WALK
        ):
            return None
        gradient = Gradient(data.gram, _radius(problem), problem.ridge)
        runs: dict[Transcript, float] = {(): 0.0}
        for left in range(self.iterations - 1, -1, -1):
            longer: dict[Transcript, float] = {}
            for run, so_far in runs.items():
                b = dict(run[-1][1]) if run else {}
                targets = self.targets(gradient, setting, b)
                sensitivity = self.sensitivity(setting, b)
                scores = _scores(problem, targets)
                pick_scale = rounds.pick_scale(problem.picks, sensitivity)
                for support, log in rounds.log_supports(problem, scores, pick_scale).items():
                    if not left:
                        longer[(*run, (support, ()))] = so_far + log
                        continue
                    columns = problem.layout.of_support(support).tolist()
                    scale = rounds.value_scale(len(columns), sensitivity)
                    for after, more in self._log_next(setting, b, columns, targets, scale):
                        add_log(longer, (*run, (support, after)), so_far + log + more)
            runs = longer
        return runs

    def _log_next(
        self,
        setting: Setting,
        b: Coefficients,
        columns: list[int],
        targets: list[int],
        scale: Fraction,
    ) -> Iterable[tuple[tuple[tuple[int, int], ...], float]]:
        """Every next b on these columns with its log probability; b may occur more than once."""
        grid = self.GRID
        divisor = divisor_for(self._change(setting.problem, b))
        weight = self._weight(setting)
        cells = []
        for j in columns:
            # The smallest noisy target that rounds to q or more.
            starts = [-(-weight * (2 * q - 1) // (2 * divisor)) for q in range(1 - grid, grid + 1)]
            edges = [None, *(start - targets[j] for start in starts), None]
            logs = [_log_laplace(low, high, scale) for low, high in itertools.pairwise(edges)]
            cells.append(list(zip(range(-grid, grid + 1), logs, strict=True)))
        for choice in itertools.product(*cells):
            values = {j: value for j, (value, _) in zip(columns, choice, strict=True)}
            after = self.shrunk(setting.problem, values)
            yield tuple(sorted(after.items())), sum(log for _, log in choice)

    def details(self, setting: Setting) -> list[str]:
        prediction_bound = setting.problem.prediction_bound
        rows = "" if self.rows is None else f", taken to be {self.rows}"
        layout = setting.problem.layout
        kept = "; a variable is kept by the largest of its columns' coefficients" * layout.grouped
        if layout.has_intercept:
            kept += "; the intercept's is one more coefficient, always kept"
        return [
            f"{self.iterations} gradient steps of size {float(self.step):.6g} over the number of "
            f"rows{rows}, coefficients in the {setting.problem.constraint} of radius "
            f"{setting.problem.radius:.6g}, scaled units{kept}; {float(self.share):.4g} of the "
            "budget for picks if there is more than one step.",
            "A row that is added or removed changes an entry of the gradient by at most "
            f"{shown_up(1 + prediction_bound)}, a row that is replaced by at most "
            f"{shown_up(2 * (1 + prediction_bound))}.",
            self.rounds(setting).details(),
        ]


class _Descent(Sampler):
    def __init__(self, mechanism: HardThresholding, data: Data, setting: Setting) -> None:
        self._mechanism, self._setting, self._rounds = mechanism, setting, mechanism.rounds(setting)
        problem = setting.problem
        self._gradient = Gradient(data.gram, _radius(problem), problem.ridge)

    def draw(self, rng: Randomness) -> Outcome:
        mechanism, setting, rounds = self._mechanism, self._setting, self._rounds
        problem = setting.problem
        free, layout = problem.free, problem.layout
        b: Coefficients = {}
        support: tuple[int, ...] = ()
        for left in range(mechanism.iterations - 1, -1, -1):
            targets = mechanism.targets(self._gradient, setting, b)
            sensitivity = mechanism.sensitivity(setting, b)
            picks = rounds.pick(_scores(problem, targets), problem.picks, sensitivity)
            support = problem.support(free[i] for i in picks)
            if left:
                columns = layout.of_support(support).tolist()
                noisy = rounds.release([targets[i] for i in columns], sensitivity)
                b = mechanism.next_coefficients(setting, b, columns, noisy)
        return support


def _scores(problem: Problem, targets: list[int]) -> list[int]:
    """|u| of the free choices; the largest of several columns."""
    if not problem.layout.grouped:
        return [abs(targets[j]) for j in problem.free]
    starts = problem.layout.starts.tolist()
    return [max(map(abs, targets[starts[j] : starts[j + 1]])) for j in problem.free]


def _log_laplace(low: int | None, high: int | None, scale: Fraction) -> float:
    """log P(low <= z < high) for discrete Laplace noise z; None stands for no bound."""
    if low is not None and high is not None and low >= high:
        return -math.inf
    if high is not None and high <= 0:
        # By symmetry, with both ends above 0.
        low, high = 1 - high, None if low is None else 1 - low
    if low is not None and low > 0:
        gap = math.inf if high is None else float((high - low) / scale)
        return _log_tail(low, scale) + math.log1p(-math.exp(-gap))
    outside = 0.0 if high is None else math.exp(_log_tail(high, scale))
    outside += 0.0 if low is None else math.exp(_log_tail(1 - low, scale))
    return math.log1p(-outside) if outside < 1 else -math.inf


def _log_tail(start: int, scale: Fraction) -> float:
    """log P(z >= start), start > 0."""
    return -float(start / scale) - math.log1p(math.exp(-float(1 / scale)))


def _rounded(numerator: int, denominator: int) -> int:
    """The nearest integer to a quotient; halves round up."""
    return (2 * numerator + denominator) // (2 * denominator)


def _radius(problem: Problem) -> Fraction:
    return Fraction(problem.radius)
