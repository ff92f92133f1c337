"""Sample and aggregate: blocks vote for variables by the lasso; the most voted win, with noise.

    c_j = number of blocks whose vote contains j;  k rounds of permute-and-flip on c

One record changes one vote, and thus every count by at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...base.errors import ArgumentError
from ...objective.problem import Problem
from ...privacy.guarantee import Cost, Guarantee, shown_up
from ...privacy.noise import noisy_top, top_cost, top_scale
from ...privacy.relations import PUBLIC_N, RELATIONS
from ..shared.base import Outcome, Setting
from ..shared.lasso_votes import Floats, LassoVotes, Vote
from ..shared.rounds import Rounds, over_supports

#: How far one record moves the count of a variable, in either direction.
SENSITIVITY = 1


class SampleAggregate(LassoVotes):
    """Kifer, Smith and Thakurta's vote of lassos on disjoint blocks.

    Attributes
    ----------
    blocks : int, optional
        Number of blocks. By default the square root of n, rounded down. Required if n is private.
    """

    name = "sample-aggregate"
    place = 7
    summary = (
        "Every record is assigned to a block at random. Every block votes for k variables, which a "
        "standard method (lasso path) finds from its own records. Variables with most votes are "
        "picked one after the other, with noise, by permute-and-flip."
    )
    source = "Kifer, Smith and Thakurta 2012; Table 1 of Roy, Wang and Tewari 2024"
    promises = "pure epsilon"
    running_time = "one lasso path a block: tens of milliseconds for thousands of rows"
    use_when = (
        "the lasso is the method to compare with, and each of about 4 k log(p) / epsilon blocks "
        "would find most of the variables by itself"
    )

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if self.blocks is None and not setting.problem.n_is_public:
            raise ArgumentError(
                "sample-aggregate divides the records into floor(sqrt(n)) blocks, but n is private "
                "under add-remove neighbours: give the option blocks, chosen without the data"
            )

    def number(self, setting: Setting) -> int:
        if self.blocks is not None:
            return self.blocks
        if setting.n is None:
            raise ArgumentError("without a public n, sample-aggregate needs the option blocks")
        return max(1, math.isqrt(setting.n))

    def scale(self, setting: Setting) -> Fraction:
        """A variable t votes behind the first is accepted with probability exp(-t / scale)."""
        return top_scale(setting.problem.picks, setting.epsilon, sensitivity=SENSITIVITY)

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """Equal under both relations: either way one vote changes.

        None under add-remove if n determines the number of blocks, which one more record may
        change.
        """
        cost = Cost(top_cost(setting.problem.picks, self.scale(setting), sensitivity=SENSITIVITY))
        covered = RELATIONS if self.blocks is not None else PUBLIC_N
        return Guarantee(setting.problem.neighbours, dict.fromkeys(covered, cost), seeded)

    def choose(self, votes: Sequence[Vote], setting: Setting) -> Outcome:
        problem = setting.problem
        free, counts = tally(votes, problem)
        top = noisy_top(counts, problem.picks, setting.epsilon, sensitivity=SENSITIVITY)
        return problem.support(free[i] for i in top)

    def log_probabilities(self, votes: Sequence[Vote], setting: Setting) -> Floats:
        """Sums over all orders in which the variables of a support can be picked."""
        problem = setting.problem
        _, counts = tally(votes, problem)
        rounds = Rounds("pure", 1, setting.epsilon, Fraction(0))
        found = rounds.log_supports(problem, counts, self.scale(setting))
        return over_supports(problem, found)[1]

    def details(self, setting: Setting) -> list[str]:
        known = self.blocks is not None or setting.n is not None
        number = f"{self.number(setting)}" if known else "floor(sqrt(n))"
        return [
            f"The number of blocks is {number}. A record's block is drawn independently of all "
            "others. The vote of a block depends on its own records alone, so one record that is "
            "added, removed or replaced changes one vote, and the votes for a variable by at most "
            f"{SENSITIVITY}.",
            f"Variables are picked in {setting.problem.picks} rounds, with noise of scale "
            f"{shown_up(self.scale(setting))} votes. Limits of coefficients and the ridge play no "
            "part.",
            *self.models(setting),
        ]


def tally(votes: Sequence[Vote], problem: Problem) -> tuple[tuple[int, ...], list[int]]:
    """The free choices, and the number of votes that contain each."""
    free = problem.free
    counts = np.zeros(problem.p, dtype=np.int64)
    for vote in votes:
        counts[list(vote)] += 1
    return free, counts[list(free)].tolist()
