"""Stability: blocks vote for supports by the lasso; a winner with a large lead is released without
change.

    gap = votes of the first support - votes of the second
    release the first iff gap + Z > threshold,  P(Z = z) proportional to exp(-|z| / scale)

One record changes one vote, and thus the gap by at most 2; it changes the winner only if the gap is
at most 2. The noise hides the change of the gap, and the threshold makes a release at a gap of at
most 2 less likely than delta.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...base.rounding import float_up
from ...privacy.guarantee import Cost, Guarantee, shown_up
from ...privacy.noise import discrete_laplace, float_scale
from ...privacy.random.draws import exp_interval
from ...privacy.relations import RELATIONS
from ..shared.base import Outcome, Setting
from ..shared.lasso_votes import Floats, LassoVotes, Vote

#: How far one record moves the gap.
SENSITIVITY = 2
#: Largest gap at which one record can change the winner.
LARGEST_UNSTABLE_GAP = 2
#: Largest probability that a unanimous vote of the smallest useful number of blocks fails.
FAILURE_PROBABILITY = Fraction(1, 100)
#: Default number of blocks as a multiple of that number. With fewer blocks no vote may dissent;
#: with more they are too small to agree. In simulations of many sizes 3/2 passed most often, and
#: floor(sqrt(n)) blocks rarely did.
BLOCKS_FACTOR = Fraction(3, 2)

#: Bits for tail probabilities of the noise; relevant ones are above 1e-100 > 2**-333.
_BITS = 512


class Stability(LassoVotes):
    """Thakurta and Smith's test of stability, on disjoint random blocks; may release nothing.

    Attributes
    ----------
    blocks : int, optional
        Number of blocks. By default 1.5 times the number at which a unanimous vote passes the test
        with probability 0.99.
    """

    name = "stability"
    place = 8
    summary = (
        "Every record is assigned to a block at random. Every block votes for one set of "
        "variables, which a standard method (lasso path) finds from its own records. The set with "
        "most votes is released if its lead over the second passes a test with noise, and no set "
        "otherwise."
    )
    source = (
        "Thakurta and Smith 2013; Table 1 of Roy, Wang and Tewari 2024; disjoint blocks in place "
        "of overlapping subsamples, which would need millions of lasso paths"
    )
    promises = "(epsilon, delta); may release nothing"
    running_time = "one lasso path a block: tens of milliseconds for thousands of rows"
    use_when = (
        "the signal is so strong that most of about 4 log(1/delta) / epsilon blocks would find the "
        "same support, and no release is better than an unreliable one"
    )
    takes_delta = "must"

    def number(self, setting: Setting) -> int:
        """The option, or half as many again as a unanimous vote needs to pass."""
        if self.blocks is not None:
            return self.blocks
        return math.ceil(
            BLOCKS_FACTOR
            * (self.threshold(setting) + tail_quantile(self.scale(setting), FAILURE_PROBABILITY))
        )

    def scale(self, setting: Setting) -> Fraction:
        return float_scale(SENSITIVITY / setting.epsilon)

    def threshold(self, setting: Setting) -> int:
        """The noisy gap must exceed this; an unstable one does so with probability below delta."""
        return LARGEST_UNSTABLE_GAP + tail_quantile(self.scale(setting), setting.delta) - 1

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """Equal under both relations: either way one vote changes."""
        scale = self.scale(setting)
        tail = tail_up(scale, self.threshold(setting) + 1 - LARGEST_UNSTABLE_GAP)
        rounded = Fraction(float_up(tail))
        cost = Cost(SENSITIVITY / scale, rounded if rounded <= setting.delta else tail)
        return Guarantee(setting.problem.neighbours, dict.fromkeys(RELATIONS, cost), seeded)

    def choose(self, votes: Sequence[Vote], setting: Setting) -> Outcome:
        winner, gap = leader(votes, setting.problem.picks)
        (noisy,) = discrete_laplace([gap], self.scale(setting))
        if winner is None or noisy <= self.threshold(setting):
            return None
        return setting.problem.support(winner)

    def listed(self, setting: Setting) -> list[Outcome]:
        return [*super().listed(setting), None]

    def log_probabilities(self, votes: Sequence[Vote], setting: Setting) -> Floats:
        winner, gap = leader(votes, setting.problem.picks)
        needed = self.threshold(setting) + 1 - gap
        scale = self.scale(setting)
        listed = self.listed(setting)
        logs = np.full(len(listed), -np.inf)
        if winner is None:
            logs[-1] = 0.0
            return logs
        support = setting.problem.support(winner)
        logs[listed.index(support)] = log_tail(scale, needed)
        logs[-1] = log_tail(scale, 1 - needed)
        return logs

    def details(self, setting: Setting) -> list[str]:
        return [
            f"The number of blocks is {self.number(setting)}. A record's block is drawn "
            "independently of all others. The vote of a block depends on its own records alone, so "
            f"one record changes one vote, the lead by at most {SENSITIVITY}, and the winner only "
            f"if the lead is at most {LARGEST_UNSTABLE_GAP}.",
            "The winner is released if its lead plus discrete Laplace noise of scale "
            f"{shown_up(self.scale(setting))} is above {self.threshold(setting)}. Limits of "
            "coefficients and the ridge play no part.",
            *self.models(setting),
        ]


def leader(votes: Sequence[Vote], size: int) -> tuple[Vote | None, int]:
    """The support with most votes (first of equals) and its lead; None without votes.

    Votes for fewer variables than required do not count.
    """
    counts = Counter(vote for vote in votes if len(vote) == size)
    if not counts:
        return None, 0
    first = min(counts, key=lambda support: (-counts[support], support))
    return first, counts.pop(first) - max(counts.values(), default=0)


@lru_cache(maxsize=256)
def tail_quantile(scale: Fraction, chance: Fraction) -> int:
    """The smallest r >= 1 that discrete Laplace noise reaches with at most this probability."""
    alpha = math.exp(-1 / scale)
    r = max(1, math.ceil(-float(scale) * (_log(chance) + math.log1p(alpha))))
    while tail_up(scale, r) > chance:
        r += 1
    while r > 1 and tail_up(scale, r - 1) <= chance:
        r -= 1
    return r


def tail_up(scale: Fraction, r: int) -> Fraction:
    """P(Z >= r) = alpha^r / (1 + alpha), alpha = exp(-1/scale), for r >= 0, rounded up."""
    _, above = exp_interval(r / scale, _BITS)
    below, _ = exp_interval(1 / scale, _BITS)
    return Fraction(above, 2**_BITS + below)


def log_tail(scale: Fraction, r: int) -> float:
    """log P(Z >= r) for any r."""
    if r < 1:
        return math.log1p(-math.exp(log_tail(scale, 1 - r)))
    return -float(r / scale) - math.log1p(math.exp(-1 / scale))


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)
