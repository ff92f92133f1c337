"""The double-swap Metropolis-Hastings chain over supports, run exactly.

    S' = S without one member, with one outsider, both uniform;
    accepted with probability min(1, pi(S') / pi(S)),   pi(S) proportional to exp(-eta f~(S))

(Roy, Wang and Tewari 2024, Section 4). Proposals are exact uniform integers, acceptances are exact
comparisons of a lazily refined uniform number, and scores are the integers of the scorer. The chain
therefore has exactly the transition matrix `transition_matrix`. Members are choices, whatever
columns they stand for.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.losses.least_squares import Scorer
from ...objective.problem import Problem
from ...privacy.random import Randomness
from ...privacy.random.draws import exp_interval
from ...search.enumerate import ScoredSupports
from . import chain_kernels as kernels

_SCALE = float(STEPS) ** 2

#: Largest number of random words fetched at a time.
_WORDS = 2**13

#: Rows of the table of scores, and its largest size in bytes.
_ROWS, _TABLE_BYTES = 2**16, 2**24

#: All columns of X'X are computed beforehand if they take no more bytes than this ...
_WHOLE_BYTES = 2**29
#: ... and if the walk may need at least 1/_BULK of their entries: a matrix product is faster for
#: each entry, but a walk that rejects most proposals needs few entries.
_BULK = 2
#: Bytes of the float64 work block of that product.
_WORK_BYTES = 2**27


class Chain:
    """The chain on one table. Contains private data.

    ``eta`` is the weight of the scores. A ``lazy`` chain stays with probability 1/2 at every step,
    whatever the proposal. The table of scores has at most ``rows`` rows.
    """

    def __init__(
        self,
        gram: GramData,
        problem: Problem,
        score_step: Fraction,
        eta: Fraction,
        *,
        lazy: bool,
        rows: int = _ROWS,
    ) -> None:
        self.problem, self.lazy = problem, lazy
        self.weight = eta * score_step
        self._gram, self._score_step = gram, score_step
        self._scorer = Scorer(gram, problem, score_step)
        self._free = np.array(problem.free, dtype=np.int64)
        self._members = problem.picks
        layout = problem.layout
        #: For the kernels: empty if each choice is one column; -1 without an intercept.
        self._starts = layout.starts if layout.grouped else np.empty(0, dtype=np.int64)
        self._intercept = layout.columns - 1 if layout.has_intercept else -1
        pairs = self._members * (len(self._free) - self._members)
        #: Pairs of a member and an outsider; twice as many for the lazy chain, half of which stay.
        self._pairs = pairs * (2 if lazy else 1)
        rows = min(rows, _TABLE_BYTES // (8 * (problem.k + 1)))
        rows = 2 ** max(0, rows.bit_length() - 1)
        self._known = np.full((rows, problem.k), -1, dtype=np.int64)
        self._remembered = np.zeros(rows, dtype=np.int64)
        self._counts = dict.fromkeys(("steps", "accepted", "scored", "by_hand"), 0)

    def prefetch_columns(self, steps: int, work_bytes: int = _WORK_BYTES) -> None:
        """Compute X'X at once where that is faster than entry by entry in this many steps."""
        gram, p, most = self._gram, self.problem.columns, self.problem.most_columns
        entries = steps * (most * (most - 1) // 2)
        if gram.whole or 8 * p * p > _WHOLE_BYTES or entries * _BULK < p * p:
            return
        batch = max(1, work_bytes // (8 * max(1, gram.n)))
        for start in range(0, p, batch):
            gram.fetch(range(start, min(p, start + batch)))

    def start(self, rng: Randomness) -> Walk:
        """A walk from a uniformly random support."""
        chosen = rng.subset(len(self._free), self._members)
        return Walk(self, self._free[chosen], np.delete(self._free, chosen))

    def score(self, support: NDArray[np.int64]) -> int:
        """f~ / score_step of a support, from the table or by the scorer."""
        row = kernels.place(support, len(self._known))
        if not kernels.same(self._known, row, support):
            self._remembered[row] = self._scorer.scores(support.reshape(1, -1))[0]
            self._known[row] = support
        return int(self._remembered[row])

    def advance(self, walk: Walk, steps: int, rng: Randomness) -> None:
        """Advance a walk by this many steps; unused random words are discarded."""
        if self._pairs == 0:  # a single support
            return
        state, gram, problem = walk.state, self._gram, self.problem
        state[kernels.LEFT] = steps
        # Words up to here are uniform modulo the number of pairs; larger ones are redrawn.
        last = np.uint64(2**64 - 2**64 % self._pairs - 1)
        bits = min(rng.start_bits, 64)
        halt, words = kernels.NO_WORDS, np.empty(0, dtype=np.uint64)
        while halt != kernels.DONE:
            if halt == kernels.NO_WORDS:
                fresh = self._fetch(int(state[kernels.LEFT]), rng)
                words = np.concatenate([words[state[kernels.USED] :], fresh])
                state[kernels.USED] = 0
            elif halt == kernels.NO_SCORE:
                self.score(walk.trial)  # adds the score to the table
                self._counts["by_hand"] += 1
            else:
                self._decide(walk, words[state[kernels.USED] - 1], bits, rng)
            halt = kernels.walk(
                gram.products, gram.c, gram.yy, problem.coefficients, problem.ridge, _SCALE,
                float(self._score_step), float(self.weight), self._pairs, last, self.lazy, bits,
                words, self._starts, self._intercept, walk.inside, walk.outside, walk.members,
                walk.trial, state, self._known, self._remembered,
            )  # fmt: skip
        state[kernels.USED] = 0
        self._counts["steps"] += steps
        for name, at in (("accepted", kernels.ACCEPTED), ("scored", kernels.SCORED)):
            self._counts[name] += int(state[at])
            state[at] = 0

    def diagnostics(self) -> dict[str, int]:
        """Steps, moves, scores computed, and steps decided in rationals so far. NOT PRIVATE."""
        return dict(self._counts)

    @staticmethod
    def _fetch(steps: int, rng: Randomness) -> NDArray[np.uint64]:
        count = min(_WORDS, 2 * steps + 8)
        block = rng.source.bits(64 * count).to_bytes(8 * count, "little")
        return np.frombuffer(block, dtype="<u8").astype(np.uint64)

    def _decide(self, walk: Walk, word: np.uint64, bits: int, rng: Randomness) -> None:
        """Decide a step that float64 could not, with the same uniform number."""
        member, outsider, difference = (
            int(walk.state[at]) for at in (kernels.MEMBER, kernels.OUTSIDER, kernels.DIFFERENCE)
        )
        if _below(int(word) >> (64 - bits), bits, self.weight * difference, rng):
            kernels.move(
                walk.inside, walk.outside, walk.members, walk.trial, walk.state,
                member, outsider, difference,
            )  # fmt: skip
        walk.state[kernels.LEFT] -= 1
        self._counts["by_hand"] += 1


class Walk:
    """The state of one walk of a chain. Private."""

    def __init__(self, chain: Chain, inside: NDArray[np.int64], outside: NDArray[np.int64]) -> None:
        self._chain = chain
        self.inside, self.outside = inside, outside
        always = np.array(chain.problem.always_include, dtype=np.int64)
        self.members = np.sort(np.concatenate([always, inside]))
        self.trial = self.members.copy()
        self.state = np.zeros(8, dtype=np.int64)
        self.state[kernels.SCORE] = chain.score(self.members)

    @property
    def support(self) -> tuple[int, ...]:
        return tuple(int(j) for j in self.members)

    @property
    def score(self) -> int:
        """f~ / score_step of the current support."""
        return int(self.state[kernels.SCORE])

    def advance(self, steps: int, rng: Randomness) -> None:
        self._chain.advance(self, steps, rng)


def _below(value: int, bits: int, x: Fraction, rng: Randomness) -> bool:
    """Whether U < exp(-x), where value <= U * 2**bits < value + 1; bits are added as needed."""
    while True:
        low, high = exp_interval(x, bits + 16)
        if (value + 1) << 16 <= low:
            return True
        if value << 16 >= high:
            return False
        value = (value << bits) | rng.source.bits(bits)
        bits *= 2


def transition_matrix(
    scored: ScoredSupports, problem: Problem, eta: Fraction, *, lazy: bool
) -> NDArray[np.float64]:
    """The matrix of the chain over all supports (Roy, Wang and Tewari 2024, Equation 10)."""
    count = len(scored)
    has = np.zeros((count, problem.p))
    has[np.arange(count)[:, None], scored.supports] = 1.0
    adjacent = has @ has.T == problem.k - 1
    exponents = scored.differences * float(eta * scored.score_step)
    uphill = np.maximum(exponents[None, :] - exponents[:, None], 0.0)
    matrix = np.where(adjacent, np.exp(-uphill), 0.0)
    # A sum of rejection probabilities, not 1 minus acceptances: no cancellation.
    matrix[np.diag_indices(count)] = np.where(adjacent, -np.expm1(-uphill), 0.0).sum(axis=1)
    if count == 1:  # nothing to exchange
        matrix[:] = 1.0
    # Every support has the same number of neighbours.
    matrix /= max(1, int(adjacent[0].sum()))
    return np.asarray((matrix + np.eye(count)) / 2 if lazy else matrix)


def distribution_after(matrix: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The distribution after this many steps from a uniformly random support."""
    at = np.full(len(matrix), 1.0 / len(matrix))
    power = matrix
    while steps:
        if steps & 1:
            at = at @ power
        steps >>= 1
        if steps:
            power = power @ power
            # Renormalised, so that rounding does not grow with the number of steps.
            power = power / power.sum(axis=1, keepdims=True)
    return np.asarray(at / at.sum())
