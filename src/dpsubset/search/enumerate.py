"""Enumeration of all supports: the reference implementation.

Lists every support with its score and computes output distributions in closed form. Exact and
simple; feasible up to about a million supports.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..data.gram import GramData
from ..data.moments import Moments
from ..objective.losses import scorer
from ..objective.problem import Problem

#: Most supports that are enumerated.
LARGEST_LIST = 1_000_000


@dataclass(frozen=True)
class ScoredSupports:
    """All supports of a problem, in lexicographic order, with their scores f~ / score_step."""

    supports: NDArray[np.int64]
    scores: NDArray[np.int64] = field(repr=False)
    score_step: Fraction

    def __repr__(self) -> str:
        return f"ScoredSupports({len(self)} supports, private scores hidden)"

    def __len__(self) -> int:
        return len(self.scores)

    def support(self, i: int) -> tuple[int, ...]:
        return tuple(int(j) for j in self.supports[i])

    @property
    def differences(self) -> NDArray[np.int64]:
        """Differences of the scores from the best one, in score steps."""
        return np.asarray(self.scores - self.scores.min())


def check_size(problem: Problem) -> None:
    """Raise `ArgumentError` if a problem has too many supports to list."""
    if problem.supports > LARGEST_LIST:
        raise ArgumentError(
            f"there are {problem.supports} sets of {problem.k} out of {problem.p} variables; "
            f"at most {LARGEST_LIST} can be listed. The search engine has no such limit"
        )


def list_supports(problem: Problem) -> NDArray[np.int64]:
    """Every support as a sorted row, in lexicographic order."""
    check_size(problem)
    always, m = problem.always_include, problem.picks
    flat = itertools.chain.from_iterable(itertools.combinations(problem.free, m))
    chosen = np.fromiter(flat, dtype=np.int64, count=problem.supports * m)
    chosen = chosen.reshape(problem.supports, m)
    if always:
        chosen = np.hstack([np.tile(np.array(always, dtype=np.int64), (len(chosen), 1)), chosen])
        chosen.sort(axis=1)
    return chosen


def enumerate_supports(
    data: Moments | GramData, problem: Problem, score_step: Fraction
) -> ScoredSupports:
    supports = list_supports(problem)
    return ScoredSupports(supports, scorer(data, problem, score_step).scores(supports), score_step)


def _exponents(scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
    return np.asarray(scored.differences * float(eta * scored.score_step), dtype=np.float64)


def log_exponential(scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
    """Log probabilities of the exponential mechanism: proportional to exp(-eta f)."""
    exponents = _exponents(scored, eta)
    return np.asarray(-exponents - np.log(np.exp(-exponents).sum()))


def log_permute_and_flip(scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
    """Log probabilities of permute-and-flip in closed form.

    With q_S = exp(-eta (f(S) - min f)), U_S / q_S is the time at which S would be accepted, and the
    first S wins:

        P(S) = q_S * integral over x in [0, 1] of the product over T != S of (1 - x q_T).

    The integrand is a positive polynomial of degree N - 1, so Gauss-Legendre quadrature with N/2
    nodes is exact, and because its weights are positive nothing cancels. A thousand nodes are
    accurate for any N.
    """
    exponents = _exponents(scored, eta)
    q = np.exp(-exponents)
    nodes, weights = np.polynomial.legendre.leggauss(min(len(q) // 2 + 1, 1000))
    logs = np.log1p(-np.outer((nodes + 1) / 2, q))
    terms = logs.sum(axis=1, keepdims=True) - logs + np.log(weights / 2)[:, None]
    top = terms.max(axis=0)
    return np.asarray(-exponents + top + np.log(np.exp(terms - top).sum(axis=0)))
