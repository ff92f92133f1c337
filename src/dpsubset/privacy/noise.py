"""Noise from OpenDP, which only this module uses.

=================== ==================================================== ========================
draw                distribution                                         costs
=================== ==================================================== ========================
`noisy_top`         k rounds of permute-and-flip, each among those left  epsilon = k r / scale
`noisy_top_zcdp`    k rounds of the exponential mechanism, as above     rho = k (r / scale)^2 / 8
`discrete_laplace`  P(z) proportional to exp(-|z| / scale)               epsilon = l1 / scale
`discrete_gaussian` P(z) proportional to exp(-z^2 / (2 scale^2))         rho = (l2 / scale)^2 / 2
=================== ==================================================== ========================

Here r is how far the scores of neighbours move relative to each other, twice the sensitivity; l1
and l2 are distances between the values of neighbours. OpenDP takes a scale as a float and computes
with its exact value, so scales are rounded up to a float here and costs are computed back from the
float.

OpenDP has no seeds: mechanisms that use it have ``seedable = False``. Its errors may quote values,
so none of them leaves this module.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Literal

from ..base.errors import ArgumentError
from ..base.rounding import float_up, sqrt_up_relative

#: Scores and values are clipped to +-LARGEST, well within int64. Clipping increases no distance, so
#: the sensitivity holds.
LARGEST = 2**62

#: Largest sensitivity; twice that is well within int64.
LARGEST_SENSITIVITY = 2**60

#: Number of times that a scale is increased by its last bit, before the step doubles.
_SMALL_STEPS = 64

Measure = Literal["pure", "zcdp"]


def noisy_top(scores: Sequence[int], k: int, epsilon: Fraction, *, sensitivity: int) -> list[int]:
    """Indices of the k noisy largest scores, in the order of selection.

    ``epsilon`` is the cost of all k together, their order included; ``sensitivity`` is the largest
    change of one score between neighbours. Scores are clipped to +-2**62.
    """
    return _top("pure", scores, k, top_scale(k, epsilon, sensitivity=sensitivity))


def noisy_top_zcdp(scores: Sequence[int], k: int, rho: Fraction, *, sensitivity: int) -> list[int]:
    """As `noisy_top`, under zero-concentrated differential privacy, with Gumbel noise."""
    return _top("zcdp", scores, k, top_scale_zcdp(k, rho, sensitivity=sensitivity))


def top_scale(k: int, epsilon: Fraction, *, sensitivity: int) -> Fraction:
    """Scale of `noisy_top`: the smallest float for which OpenDP's own map is within epsilon."""
    _check_top(k, epsilon, sensitivity)
    return _affordable_scale("pure", k, k * 2 * sensitivity / epsilon, epsilon, sensitivity)


def top_scale_zcdp(k: int, rho: Fraction, *, sensitivity: int) -> Fraction:
    """Scale of `noisy_top_zcdp`: the smallest float for which OpenDP's own map is within rho."""
    _check_top(k, rho, sensitivity)
    least = sqrt_up_relative(k * sensitivity**2 / (2 * rho))
    return _affordable_scale("zcdp", k, least, rho, sensitivity)


def top_cost(k: int, scale: Fraction, *, sensitivity: int) -> Fraction:
    """Epsilon of `noisy_top` at this scale, exactly."""
    return k * 2 * sensitivity / scale


def top_cost_zcdp(k: int, scale: Fraction, *, sensitivity: int) -> Fraction:
    """Rho of `noisy_top_zcdp` at this scale, exactly."""
    return k * (sensitivity / scale) ** 2 / 2


def discrete_laplace(values: Sequence[int], scale: Fraction) -> list[int]:
    """Each value plus an integer z with P(z) proportional to exp(-|z| / scale).

    The scale is rounded up to a float, see `float_scale`; values are clipped to +-2**62, results to
    int64.
    """
    return _add("laplace", values, scale)


def discrete_gaussian(values: Sequence[int], scale: Fraction) -> list[int]:
    """Each value plus an integer z with P(z) proportional to exp(-z^2 / (2 scale^2)).

    Scale and values are rounded and clipped as in `discrete_laplace`.
    """
    return _add("gaussian", values, scale)


def float_scale(scale: Fraction) -> Fraction:
    """The smallest float that is not below the scale, which is the scale of the noise."""
    if not 0 < scale < 2**1000:
        raise ArgumentError("the scale of noise must be greater than 0 and fit in a float")
    return Fraction(float_up(scale))


def _top(measure: Measure, scores: Sequence[int], k: int, scale: Fraction) -> list[int]:
    if k > len(scores):
        raise ArgumentError(f"there are {len(scores)} scores: k must be at most as many")
    if k == 0:
        return []
    clipped = [_clip(score) for score in scores]
    return [int(i) for i in _invoke(_top_k(measure, k, float(scale)), clipped)]


def _add(kind: Literal["laplace", "gaussian"], values: Sequence[int], scale: Fraction) -> list[int]:
    clipped = [_clip(value) for value in values]
    noise = _additive(kind, float(float_scale(scale)))
    return [int(v) for v in _invoke(noise, clipped)] if clipped else []


@lru_cache(maxsize=1024)
def _affordable_scale(
    measure: Measure, k: int, least: Fraction, budget: Fraction, sensitivity: int
) -> Fraction:
    """The scale ``least``, increased until its cost by OpenDP's map is within the budget."""
    if k == 0 or sensitivity == 0:
        return Fraction(1)
    scale = float(float_scale(least))
    # OpenDP's map rounds up, so that a few steps of the last bit may be needed, and more for a very
    # small budget.
    step = math.ulp(scale)
    for tried in itertools.count():
        if Fraction(_top_k(measure, k, scale).map(sensitivity)) <= budget:
            break
        step *= 1 if tried < _SMALL_STEPS else 2
        scale += step
    return Fraction(scale)


def _check_top(k: int, budget: Fraction, sensitivity: int) -> None:
    if k < 0:
        raise ArgumentError("k must not be negative")
    if budget <= 0:
        raise ArgumentError("epsilon or rho must be greater than 0")
    if not 0 <= sensitivity <= LARGEST_SENSITIVITY:
        raise ArgumentError("the sensitivity must lie between 0 and 2**60")


def _clip(value: int) -> int:
    return min(max(int(value), -LARGEST), LARGEST)


def _invoke(measurement: Any, values: list[int]) -> Any:
    try:
        return measurement(values)
    except Exception:
        # Its text may quote the values, so the error below has no cause.
        pass
    raise RuntimeError("OpenDP could not draw noise")


@cache
def _opendp() -> Any:
    """OpenDP, loaded at the first use since that takes a while."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=256)
def _top_k(measure: Measure, k: int, scale: float) -> Any:
    dp = _opendp()
    return dp.m.make_noisy_top_k(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64"),
        dp.max_divergence() if measure == "pure" else dp.zero_concentrated_divergence(),
        k=k,
        scale=scale,
    )


@lru_cache(maxsize=256)
def _additive(kind: Literal["laplace", "gaussian"], scale: float) -> Any:
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
