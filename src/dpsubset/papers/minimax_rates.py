"""cost_of_privacy: Cai, Wang and Zhang's minimax rates, statistical error and privacy side by side.

The l2 error of the best (epsilon, delta)-private estimator on its worst population, up to constants
that are not known (they are 1 here), with L = log(1/delta):

====================  ====================  ============================  =========================
problem               sampling              privacy, at least             privacy, at most
====================  ====================  ============================  =========================
"mean"                sqrt(d / n)           d sqrt(L) / (n e)             times sqrt(log n)
"sparse-mean"         sqrt(s log d / n)     s log(d / s) sqrt(L) / (n e)  s log d sqrt(L log n)
                                                                          / (n e)
"regression"          sqrt(d / n)           d sqrt(L) / (n e), up to 1    times sqrt(log n)
"sparse-regression"   sqrt(s log d / n)     s log(d / s) sqrt(L) / (n e), s log d sqrt(L)
                                            up to 1                       log(n)^(3/2) / (n e)
====================  ====================  ============================  =========================

all times sigma: Theorems 2.2, 3.1, 4.1 and 4.3, and 3.2, 3.3, 4.2 and 4.4 in the last column. If
the population is bounded, means lose sqrt(log n). They compare designs and show where privacy
costs more than sampling; they are no error bars.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_int, check_positive

Problem = Literal["mean", "sparse-mean", "regression", "sparse-regression"]


@dataclass(frozen=True)
class CostOfPrivacy:
    """Rates of one problem, up to constants.

    Attributes
    ----------
    sampling : float
        What any estimator errs by, private or not.
    at_least, at_most : float
        What privacy adds: by the lower bound, and by the published algorithm.
    """

    sampling: float
    at_least: float
    at_most: float

    @property
    def lower(self) -> float:
        """The lower bound on the whole error."""
        return self.sampling + self.at_least

    @property
    def upper(self) -> float:
        """What the published algorithm attains."""
        return self.sampling + self.at_most

    @property
    def dominates(self) -> bool:
        """Whether privacy costs more than sampling, by the lower bound."""
        return self.at_least > self.sampling


def cost_of_privacy(
    n: int,
    d: int,
    s: int | None = None,
    *,
    epsilon: Any,
    delta: Any,
    problem: Problem | None = None,
    sigma: Any = 1.0,
    bounded: bool = False,
) -> CostOfPrivacy:
    """Compute the rates for n records in d dimensions, of which s matter.

    Parameters
    ----------
    n, d : int
        Records and dimensions.
    s : int, optional
        Sparsity, for the sparse problems.
    epsilon, delta : number
        The theorems take epsilon for bounded and delta for much smaller than 1 / n.
    problem : str, optional
        By default "mean", or "sparse-mean" if there is an s.
    sigma : float
        The scale of the population, or of the noise of a regression.
    bounded : bool
        Whether the population is bounded, so that nothing need be truncated; for means.

    Returns
    -------
    CostOfPrivacy

    Raises
    ------
    ArgumentError
        If an argument is wrong.

    Examples
    --------
    >>> import dpsubset as dps
    >>> rates = dps.cost_of_privacy(100_000, 20, epsilon=1, delta=1e-6)
    >>> rates.at_least < rates.sampling
    True
    """
    n, d = check_int(n, "n"), check_int(d, "d")
    if n < 2 or d < 1:
        raise ArgumentError("n must be at least 2, and d at least 1")
    chosen = check_choice(
        problem or ("mean" if s is None else "sparse-mean"), get_args(Problem), "problem"
    )
    eps, chance = check_positive(epsilon, "epsilon"), check_positive(delta, "delta")
    scale = check_positive(sigma, "sigma")
    if chance >= 1:
        raise ArgumentError("delta must lie between 0 and 1")
    root, log_n = math.sqrt(math.log(1 / chance)), math.log(n)
    if chosen.startswith("sparse"):
        if s is None:
            raise ArgumentError(f"{chosen} needs s, how many dimensions matter")
        s = check_int(s, "s")
        if not 1 <= s < d:
            raise ArgumentError("s must lie between 1 and d - 1")
        sampling = math.sqrt(s * math.log(d) / n)
        at_least, at_most = (s * f * root / (n * eps) for f in (math.log(d / s), math.log(d)))
    else:
        if s is not None:
            raise ArgumentError(f"{chosen} has no s: all dimensions count")
        sampling = math.sqrt(d / n)
        at_least = at_most = d * root / (n * eps)
    if chosen == "sparse-regression":
        at_most *= log_n**1.5
    elif chosen == "regression" or not bounded:
        at_most *= math.sqrt(log_n)
    if chosen.endswith("regression"):
        at_least = min(at_least, 1.0)
    return CostOfPrivacy(scale * sampling, scale * at_least, scale * at_most)
