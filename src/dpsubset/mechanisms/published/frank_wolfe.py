"""Private Frank-Wolfe: T noisy steps towards vertices of the l1 ball, then the k largest.

    b_t = b_(t-1) + 2 / (t + 1) * (v_t - b_(t-1)),   v_t a noisy best vertex for the gradient there

From b_0 = 0 this is b_t = (1 v_1 + 2 v_2 + ... + t v_t) / (1 + 2 + ... + t): the radius times
integers over a public integer.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import ArgumentError
from ...base.validation import check_int
from ...privacy.budget import RECORDS
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.random import Randomness
from ..shared.base import OPENDP_NOISE, Data, Distribution, Mechanism, Outcome, Sampler, Setting
from ..shared.gradient import Gradient, choice_of_column, divided_change, divisor_for, record_change
from ..shared.rounds import Rounds, add_log, over_supports

#: Largest number of sequences of vertices that the closed form enumerates.
_LARGEST_WALK = 100

#: Weights of the vertices visited so far, by column: b in integers.
Weights = dict[int, int]


@dataclass(frozen=True)
class FrankWolfe(Mechanism):
    """Talwar, Thakurta and Zhang's algorithm; the support is that of the largest coefficients.

    Attributes
    ----------
    iterations : int, optional
        Number of steps; by default twice k, and two more with an intercept.
    """

    iterations: int | None = None

    name = "frank-wolfe"
    place = 11
    summary = (
        "Coefficients are improved step by step. Each step goes towards the corner of an l1 ball "
        "that looks best after noise. The variables with the largest coefficients are released."
    )
    source = "Talwar, Thakurta and Zhang 2015; exact integers and constants are ours"
    promises = "pure epsilon, or (epsilon, delta) where that needs less noise"
    running_time = "milliseconds to seconds, for any p: a few columns of X'X"
    use_when = "p is very large and variables are correlated, or to compare with the literature"
    takes_delta = "may"
    takes_groups = takes_intercept = True
    on_groups = "a choice has the largest coefficient of its columns"
    on_intercept = "one more coordinate of the ball, not counted in k"
    seedable = False
    randomness = OPENDP_NOISE

    def __post_init__(self) -> None:
        if self.iterations is None:
            return
        self._set_options(iterations=check_int(self.iterations, "iterations"))
        if not 1 <= self.iterations <= 1000:
            raise ArgumentError("iterations must lie between 1 and 1000")

    def steps(self, setting: Setting) -> int:
        """T, the number of steps."""
        problem = setting.problem
        return self.iterations or min(2 * (problem.k + problem.layout.has_intercept), 1000)

    def rounds(self, setting: Setting) -> Rounds:
        """T rounds of a single pick."""
        return Rounds.of(setting, self.steps(setting), 1)

    def sensitivity(self, setting: Setting, weights: Weights, taken: int) -> int:
        """How far neighbouring tables can move a score after ``taken`` steps."""
        moved = _change(setting, weights, taken)
        return RECORDS[setting.problem.neighbours] * divided_change(moved)

    def scores(
        self, gradient: Gradient, setting: Setting, weights: Weights, taken: int
    ) -> list[int]:
        """Scores of the vertices +e_0, +e_1, ..., then -e_0, -e_1, ...: two for each column."""
        divisor = divisor_for(_change(setting, weights, taken))
        entries = gradient.at(weights, _weight_sum(taken))
        return [entry // divisor for entry in entries] + [-entry // divisor for entry in entries]

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        return self.rounds(setting).guarantee(setting, seeded)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        return _Walk(self, data, setting)

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """Sums over all sequences of vertices, where these are few."""
        problem, steps = setting.problem, self.steps(setting)
        if (2 * problem.columns) ** (steps - 1) > _LARGEST_WALK:
            return None
        rounds, gradient = self.rounds(setting), _gradient_in_ball(data, setting)
        # Walks that end in the same weights have the same continuations.
        walks: dict[tuple[tuple[int, int], ...], float] = {(): 0.0}
        for taken in range(steps):
            longer: dict[tuple[tuple[int, int], ...], float] = {}
            for key, so_far in walks.items():
                weights = dict(key)
                scale = rounds.pick_scale(1, self.sensitivity(setting, weights, taken))
                logs = rounds.log_pick(self.scores(gradient, setting, weights, taken), scale)
                for vertex, log in enumerate(logs.tolist()):
                    further = after_step(weights, vertex, taken, problem.columns)
                    add_log(longer, tuple(sorted(further.items())), so_far + log)
            walks = longer
        found: dict[tuple[int, ...], float] = {}
        for key, log in walks.items():
            add_log(found, largest_choices(dict(key), setting), log)
        return over_supports(problem, found)

    def details(self, setting: Setting) -> list[str]:
        prediction_bound, layout = setting.problem.prediction_bound, setting.problem.layout
        intercept = ", the intercept's coordinate among them" if layout.has_intercept else ""
        group = "; a variable has the largest of its columns' coefficients" * layout.grouped
        added, replaced = shown_up(1 + prediction_bound), shown_up(2 * (1 + prediction_bound))
        return [
            f"{self.steps(setting)} steps in the l1 ball of radius {shown_up(prediction_bound)}, "
            f"scaled units{intercept}{group}. A row that is added or removed changes an entry of "
            f"the gradient by at most {added}, a row that is replaced by at most {replaced}.",
            "If fewer than k variables were visited, the support is filled up with the first "
            "variables of the table, which carry no information.",
            self.rounds(setting).details(),
        ]


class _Walk(Sampler):
    def __init__(self, mechanism: FrankWolfe, data: Data, setting: Setting) -> None:
        self._mechanism, self._setting = mechanism, setting
        self._rounds, self._gradient = mechanism.rounds(setting), _gradient_in_ball(data, setting)

    def draw(self, rng: Randomness) -> Outcome:
        mechanism, setting = self._mechanism, self._setting
        weights: Weights = {}
        for taken in range(mechanism.steps(setting)):
            scores = mechanism.scores(self._gradient, setting, weights, taken)
            sensitivity = mechanism.sensitivity(setting, weights, taken)
            [vertex] = self._rounds.pick(scores, 1, sensitivity)
            weights = after_step(weights, vertex, taken, setting.problem.columns)
        return largest_choices(weights, setting)


def after_step(weights: Weights, vertex: int, taken: int, columns: int) -> Weights:
    """The weights after one more step: the t-th vertex has weight t."""
    sign, column = (1, vertex) if vertex < columns else (-1, vertex - columns)
    after = {**weights, column: weights.get(column, 0) + sign * (taken + 1)}
    return {j: weight for j, weight in after.items() if weight}


def largest_choices(weights: Weights, setting: Setting) -> tuple[int, ...]:
    """Choices always included, then those of largest weight; ties go to the first.

    A choice has the largest weight of its columns; the intercept is not a choice.
    """
    problem = setting.problem
    always = set(problem.always_include)
    most = [0] * (problem.p + 1)
    for column, weight in weights.items():
        j = choice_of_column(problem.layout, column)
        most[j] = max(most[j], abs(weight))
    order = sorted(range(problem.p), key=lambda j: (j not in always, -most[j], j))
    return tuple(sorted(order[: problem.k]))


def _change(setting: Setting, weights: Weights, taken: int) -> int:
    """How far one record moves an entry of the gradient."""
    problem = setting.problem
    return record_change(problem.layout, problem.prediction_bound, weights, _weight_sum(taken))


def _weight_sum(taken: int) -> int:
    """1 + 2 + ... + taken; any positive number before the first step, where b = 0."""
    return max(1, taken * (taken + 1) // 2)


def _gradient_in_ball(data: Data, setting: Setting) -> Gradient:
    return Gradient(data.gram, setting.problem.prediction_bound, setting.problem.ridge)
