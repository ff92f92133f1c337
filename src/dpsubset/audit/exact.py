"""The exact audit: largest |log P(S | D) - log P(S | D')| over supports S and neighbours D, D'.

Every support of a small problem is listed and scored by the program's own scorer; the output
distributions come from the mechanism's closed form, so no sampling error hides a leak or feigns
one. What it audits is the arithmetic of the guarantee: scores, their certified error, sensitivity
and eta, as the program computes them. That the sampler draws from the closed form is the business
of the statistical tests.

An audit can only contradict a guarantee, not prove it; its worth is that of its pairs. So
`contrary_pairs` builds pairs that come as close to epsilon as one likes, and a mechanism with twice
the eta, or half the sensitivity, fails on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..door import STEPS
from ..errors import ArgumentError
from ..mechanisms import Mechanism
from ..mechanisms.exponential import Exponential
from ..mechanisms.permute_and_flip import PermuteAndFlip
from ..moments import Moments
from ..problem import Problem
from ..search.enumerate import ScoredSupports, enumerate_supports
from ..sensitivity import Sensitivity

#: Quantised records, one a row: p variables, then the response; integers with |q| <= STEPS.
Records = NDArray[np.int64]

#: Rounding granted to the float64 evaluation of a log ratio.
SLACK = 1e-9

#: Below this a probability that was not computed as a logarithm has lost digits.
_SMALLEST = 1e-290


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets, as their moments, and a word on how they were made."""

    first: Moments
    second: Moments
    label: str

    @classmethod
    def of_records(cls, first: Any, second: Any, label: str) -> Pair:
        """From quantised records."""
        return cls(moments_of_records(first), moments_of_records(second), label)


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes
    ----------
    worst : float
        The largest |log ratio| met.
    epsilon : Fraction
        What was promised.
    pair, support
        Where ``worst`` is attained; None if no pair was audited.
    pairs : int
        How many pairs were audited.
    """

    worst: float
    epsilon: Fraction
    pair: Pair | None
    support: tuple[int, ...] | None
    pairs: int

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts epsilon."""
        return self.worst <= float(self.epsilon) + SLACK


def audit_exact(
    mechanism: Mechanism,
    problem: Problem,
    epsilon: Fraction,
    pairs: Iterable[Pair],
    *,
    sensitivity: Sensitivity | None = None,
) -> Audit:
    """Audit a mechanism that promises ``epsilon`` on pairs of neighbours.

    Parameters
    ----------
    mechanism : Mechanism
        Any; also one that is broken on purpose.
    problem : Problem
        Small enough for all its supports to be listed.
    epsilon : Fraction
        The budget that the mechanism is given and must keep.
    pairs : iterable of Pair
        Neighbours under ``problem.neighbours``; the audit takes the caller's word for it.
    sensitivity : Sensitivity, optional
        What the mechanism is told; the right one by default.
    """
    if sensitivity is None:
        sensitivity = Sensitivity.of(problem)
    eta = mechanism.eta(problem, sensitivity, epsilon)
    worst, where, support, count = 0.0, None, None, 0
    for pair in pairs:
        count += 1
        first = enumerate_supports(pair.first, problem, sensitivity.unit)
        second = enumerate_supports(pair.second, problem, sensitivity.unit)
        ratios = log_probabilities(mechanism, first, eta)
        ratios -= log_probabilities(mechanism, second, eta)
        i = int(np.argmax(np.abs(ratios)))
        if where is None or abs(ratios[i]) > worst:
            worst, where, support = float(abs(ratios[i])), pair, first.support(i)
    return Audit(worst, epsilon, where, support, count)


def log_probabilities(
    mechanism: Mechanism, scored: ScoredSupports, eta: Fraction
) -> NDArray[np.float64]:
    """Logarithms of ``mechanism.probabilities``, free of underflow where the form is known."""
    form = type(mechanism).probabilities
    if form in _LOG_FORMS:
        return _LOG_FORMS[form](np.asarray(scored.differences * float(eta * scored.unit)))
    probabilities = mechanism.probabilities(scored, eta)
    if probabilities.min() < _SMALLEST:
        raise ArgumentError(
            "a probability is too small for a float64 audit: take fewer records or a smaller "
            "epsilon, or give the audit the mechanism's closed form in logarithms"
        )
    return np.asarray(np.log(probabilities))


def _log_exponential(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-exponents - np.log(np.exp(-exponents).sum()))


def _log_permute_and_flip(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    # log P(S) = log q_S + log of the integral of a positive polynomial, by a quadrature that is
    # exact for its degree and has positive weights: nothing cancels.
    q = np.exp(-exponents)
    nodes, weights = np.polynomial.legendre.leggauss(min(len(q) // 2 + 1, 1000))
    logs = np.log1p(-np.outer((nodes + 1) / 2, q))
    terms = logs.sum(axis=1, keepdims=True) - logs + np.log(weights / 2)[:, None]
    top = terms.max(axis=0)
    return np.asarray(-exponents + top + np.log(np.exp(terms - top).sum(axis=0)))


#: Closed forms in logarithms, by the closed form that a mechanism says is its own. A subclass that
#: overrides `probabilities` is audited by what it overrides it with.
_LOG_FORMS: dict[Any, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    Exponential.probabilities: _log_exponential,
    PermuteAndFlip.probabilities: _log_permute_and_flip,
}


def moments_of_records(records: Any, copies: Any = 1) -> Moments:
    """Moments of quantised records, each counted ``copies`` times."""
    records = np.asarray(records, dtype=np.int64)
    counts = np.broadcast_to(np.asarray(copies, dtype=np.int64), records.shape[:1])
    products = (records * counts[:, None]).T @ records
    return Moments(products, int(counts.sum()), "audit")


def neighbouring_pairs(problem: Problem, count: int, rng: np.random.Generator) -> Iterator[Pair]:
    """``count`` random and adversarial neighbours, of many kinds in turn.

    Records anywhere or in the corners of the cube, y at +-1 or anywhere, tied columns, one heavy
    record among light ones, no data at all (add-remove).
    """
    for i in range(count):
        kind = ("random", "corners", "ties", "heavy", "few")[i % 5]
        n = int(rng.integers(0, 3)) if kind == "few" else int(rng.integers(1, 40))
        records = _records(problem.p, n + 2, rng, corners=kind != "random" or i % 2 == 0)
        copies = np.ones(n, dtype=np.int64)
        if kind == "ties":
            # Columns equal or opposite to the first: many supports score the same.
            tied = rng.integers(0, 2, size=problem.p, dtype=np.int64) * 2 - 1
            some = rng.random(problem.p) < 0.7
            records[:n, :-1] = np.where(some, tied * records[:n, :1], records[:n, :-1])
        elif kind == "heavy" and n:
            copies[0] = int(rng.integers(2, 2000))
        rest, one, other = records[:n], records[n], records[n + 1]
        yield _neighbours(problem, rest, copies, one, other, kind)


def contrary_pairs(problem: Problem, copies: int = 20_000) -> Iterator[Pair]:
    """Neighbours whose log ratio comes close to epsilon.

    With reach B, the data agree with a model that predicts y on every column but the first k (the
    contrary ones), and with one that predicts -y on those, both at the border of C; records that
    only the former explain make every support with a contrary column unlikely. A record with
    y = 1 then costs the contrary support (1 + B)^2, and the others (1 - B)^2 or, if B > 1,
    nothing: just the range apart. Its mirror image costs them the other way round.
    """
    p, k = problem.p, problem.k
    reach = float(problem.reach)
    # At the border of C the prediction is +-B; with B > 1 it must not pass y = 1.
    shade = 1.0 if reach <= 1 else 1 / reach
    contrary = np.arange(p) < k
    full = np.full(p, STEPS)
    shaded = np.full(p, round(STEPS * shade))
    agree = np.append(np.where(contrary, -shaded, shaded), STEPS)
    blind = np.append(np.where(contrary, 0, shaded), STEPS)
    costly = np.append(np.where(contrary, full, shaded), STEPS)
    mirror = np.append(np.where(contrary, -shaded, -full), STEPS)
    for weight in (0, copies // 50, copies // 10):
        rest, times = np.array([agree, blind]), np.array([copies, weight])
        label = f"contrary, {weight} blind records"
        yield _neighbours(problem, rest, times, costly, mirror, label)
        yield _neighbours(problem, rest, times, mirror, costly, label + ", mirrored")


def _records(p: int, n: int, rng: np.random.Generator, *, corners: bool) -> Records:
    if corners:
        records = STEPS * rng.integers(-1, 2, size=(n, p + 1))
        records[:, -1] = STEPS * (2 * rng.integers(0, 2, size=n) - 1)
    else:
        records = rng.integers(-STEPS, STEPS + 1, size=(n, p + 1))
    return np.asarray(records, dtype=np.int64)


def _neighbours(
    problem: Problem, rest: Records, copies: Records, one: Records, other: Records, label: str
) -> Pair:
    """The rest with ``one``, and with ``other`` in its place or with nothing."""
    base, added = moments_of_records(rest, copies), moments_of_records([one])
    if problem.neighbours == "add-remove":
        return Pair(base, base + added, label)
    return Pair(base + added, base + moments_of_records([other]), label)
