"""The double-swap chain in float64, thousands of steps at a time, with every decision certified.

A step draws a uniform pair (a member, an outsider), scores the support with the two exchanged and
accepts it with probability min(1, exp(-weight * difference)). Random words
are drawn before and passed as an argument. Scores are the integers of
`objective.losses.quadratic_kernels.score_one`. Where it cannot certify a score, or where the error
bounds cannot compare a uniform number with its threshold, the walk halts and Python decides in
rationals.

A table caches supports and their scores: most proposals are rejected and recur. It changes no
score.

The walk is over choices; scores are of the columns that they stand for, with the intercept's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...base.kernels.arrays import Ints, put
from ...base.kernels.compiled import kernel
from ...constraints import Constraint
from ...data.products import Products
from ...objective.losses.quadratic_kernels import score_one

Words = NDArray[np.uint64]

#: Reasons for a walk to halt.
DONE, NO_WORDS, NO_SCORE, UNDECIDED = 0, 1, 2, 3

#: Indices of a walk's state array: the score of its support, words used, steps left; the proposal
#: at which it halted (position of the member, of the outsider, difference of scores); and counts.
SCORE, USED, LEFT, MEMBER, OUTSIDER, DIFFERENCE, ACCEPTED, SCORED = range(8)

#: Bound on the relative error of exp, as in `privacy.random.draws`.
_EXP_ERROR = 2.0**-45


@kernel
def walk(
    x: Products, xy: Ints, y_square: int, constraint: Constraint, ridge: float, scale: float,
    score_step: float, weight: float, pairs: int, last: np.uint64, lazy: bool, bits: int,
    words: Words, starts: Ints, intercept: int, inside: Ints, outside: Ints, support: Ints,
    trial: Ints, state: Ints, known: Ints, remembered: Ints,
) -> int:  # fmt: skip
    """Walk until all steps are done or something is missing; return the reason.

    Parameters
    ----------
    x, ..., score_step
        As in `score_one`.
    weight : float
        eta * score_step, rounded to nearest.
    pairs, last
        A word at most ``last`` gives, modulo ``pairs``, a uniform number: the pair, and for the
        lazy chain in its last bit whether to stay.
    bits : int
        Leading bits of a word that are used as a uniform number.
    starts, intercept
        As in `columns_of`.
    inside, outside, support, state
        The walk: free members, free outsiders, all members in order, its numbers.
    trial : int64 array
        The support proposed when it halts.
    known, remembered
        The table of scores: supports (-1 where empty) and scores.
    """
    columns = columns_of(support, starts, intercept)
    h = np.empty((columns.shape[0], columns.shape[0]))
    c = np.empty(columns.shape[0])
    members = np.int64(inside.shape[0])
    while state[LEFT] > 0:
        if state[USED] + 2 > words.shape[0]:
            return NO_WORDS
        word = words[state[USED]]
        if word > last:
            state[USED] += 1
            continue
        pick = np.int64(word % np.uint64(pairs))
        if lazy:
            if pick & 1:
                state[USED] += 1
                state[LEFT] -= 1
                continue
            pick >>= 1
        member, outsider = pick % members, pick // members
        exchange(support, inside[member], outside[outsider], trial)
        row = place(trial, known.shape[0])
        if not same(known, row, trial):
            columns = columns_of(trial, starts, intercept)
            if columns.shape[0] != c.shape[0]:  # choices may have different numbers of columns
                h = np.empty((columns.shape[0], columns.shape[0]))
                c = np.empty(columns.shape[0])
            certified, score = score_one(
                x, xy, y_square, columns, constraint, ridge, scale, score_step, h, c
            )
            state[SCORED] += 1
            if not certified:
                # The word is kept: it repeats the proposal once the score is known.
                return NO_SCORE
            known[row] = trial
            remembered[row] = score
        state[USED] += 1
        difference = remembered[row] - state[SCORE]
        accept = difference <= 0
        if not accept:
            verdict = below(words[state[USED]], bits, weight * difference)
            state[USED] += 1
            if verdict < 0:
                state[MEMBER], state[OUTSIDER] = member, outsider
                state[DIFFERENCE] = difference
                return UNDECIDED
            accept = verdict > 0
        if accept:
            move(inside, outside, support, trial, state, member, outsider, difference)
        state[LEFT] -= 1
    return DONE


@kernel
def move(
    inside: Ints, outside: Ints, support: Ints, trial: Ints, state: Ints, member: np.int64 | int,
    outsider: np.int64 | int, difference: np.int64 | int,
) -> None:  # fmt: skip
    """Accept the proposal."""
    inside[member], outside[outsider] = outside[outsider], inside[member]
    put(support, trial)
    state[SCORE] += difference
    state[ACCEPTED] += 1


@kernel
def below(word: np.uint64, bits: int, exponent: float) -> int:
    """1 if U < exp(-x), 0 if not, -1 where float64 cannot decide.

    U lies in [v, v + 1) / 2**bits, where v is the leading bits of the word; ``exponent`` is x with
    a relative error below 2**-50.
    """
    u = np.float64(word >> np.uint64(64 - bits)) * 2.0**-bits
    chance = math.exp(-exponent) if exponent < 600.0 else 0.0
    slack = chance * (1.0 + exponent) * _EXP_ERROR + 2.0**-800 + u * 2.0**-50 + 2.0**-bits
    if u + slack < chance:
        return 1
    if u - slack > chance:
        return 0
    return -1


@kernel
def exchange(support: Ints, leaves: int, enters: int, trial: Ints) -> None:
    """Write the sorted support with one member exchanged into ``trial``."""
    k = support.shape[0]
    at = 0
    placed = False
    for i in range(k):
        j = support[i]
        if j == leaves:
            continue
        if not placed and enters < j:
            trial[at] = enters
            at += 1
            placed = True
        trial[at] = j
        at += 1
    if not placed:
        trial[at] = enters


@kernel
def columns_of(support: Ints, starts: Ints, intercept: int) -> Ints:
    """The columns of a support's models in order, as in `schema.layout.Layout.of_support`.

    Choice j has columns starts[j] to starts[j + 1] or, if ``starts`` is empty, column j alone.
    ``intercept`` is one more column, unless it is negative.
    """
    count = np.int64(1 if intercept >= 0 else 0)
    for j in support:
        count += starts[j + 1] - starts[j] if starts.shape[0] > 0 else 1
    columns = np.empty(count, dtype=np.int64)
    at = 0
    for j in support:
        first, last = (starts[j], starts[j + 1]) if starts.shape[0] > 0 else (j, j + 1)
        for column in range(first, last):
            columns[at] = column
            at += 1
    if intercept >= 0:
        columns[at] = intercept
    return columns


@kernel
def place(support: Ints, rows: int) -> np.int64:
    """The row of a support in a hash table whose length is a power of two."""
    mixed = np.uint64(0)
    for i in range(support.shape[0]):
        mixed = (mixed ^ np.uint64(support[i])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(rows - 1))


@kernel
def same(known: Ints, row: np.int64, support: Ints) -> bool:
    """Whether the table has this support in this row."""
    different = 0
    for i in range(support.shape[0]):
        different += known[row, i] != support[i]
    return different == 0
