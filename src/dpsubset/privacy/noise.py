"""Noise from OpenDP: the one place that knows it.

=================== ==================================================== ========================
draw                distribution                                         costs
=================== ==================================================== ========================
`noisy_top`         k rounds of permute-and-flip, each among those left  epsilon = k r / scale
`noisy_top_zcdp`    k rounds of the exponential mechanism, likewise      rho = k (r / scale)^2 / 8
`discrete_laplace`  P(z) proportional to exp(-|z| / scale)               epsilon = l1 / scale
`discrete_gaussian` P(z) proportional to exp(-z^2 / (2 scale^2))         rho = (l2 / scale)^2 / 2
=================== ==================================================== ========================

Here r is how far the scores of neighbours move relative to each other: twice the sensitivity, or
the sensitivity itself if all scores move in one direction (monotonic); l1 and l2 are distances
between the values of neighbours. OpenDP takes a scale as a float and computes with its exact
value, so scales are rounded up to a float here and costs are computed back from the float.

OpenDP has no seeds: mechanisms that use it say ``seedable = False``. Its errors could quote what it
was given, so none of them leaves this module.
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

#: Scores and values are clipped to +-LARGEST, well within int64. Clipping moves no two numbers
#: further apart and keeps their order, so it changes no sensitivity and no monotonicity.
LARGEST = 2**62

#: Largest sensitivity whose double fits in int64 with room to spare.
LARGEST_SENSITIVITY = 2**60

#: So many last bits are added to a scale one by one.
_SMALL_STEPS = 64

Measure = Literal["pure", "zcdp"]


def noisy_top(
    scores: Sequence[int],
    k: int,
    epsilon: Fraction,
    *,
    sensitivity: int,
    monotonic: bool = False,
) -> list[int]:
    """Indices of the k noisy largest scores, in the order they were picked: pure epsilon in all.

    Parameters
    ----------
    scores : sequence of int
        Within int64; what lies beyond +-2**62 is clipped.
    k : int
        How many indices; at most as many as there are scores.
    epsilon : Fraction
        The cost of all k picks together, their order included.
    sensitivity : int
        How far one score of neighbours can differ.
    monotonic : bool
        Whether the scores of neighbours all differ in the same direction.
    """
    scale = top_scale(k, epsilon, sensitivity=sensitivity, monotonic=monotonic)
    return _top("pure", scores, k, scale, monotonic)


def noisy_top_zcdp(
    scores: Sequence[int],
    k: int,
    rho: Fraction,
    *,
    sensitivity: int,
    monotonic: bool = False,
) -> list[int]:
    """The same under zero-concentrated differential privacy, with Gumbel noise."""
    scale = top_scale_zcdp(k, rho, sensitivity=sensitivity, monotonic=monotonic)
    return _top("zcdp", scores, k, scale, monotonic)


def noisy_max(
    scores: Sequence[int], epsilon: Fraction, *, sensitivity: int, monotonic: bool = False
) -> int:
    """Index of the noisy largest score: `noisy_top` with k = 1."""
    return noisy_top(scores, 1, epsilon, sensitivity=sensitivity, monotonic=monotonic)[0]


def noisy_max_zcdp(
    scores: Sequence[int], rho: Fraction, *, sensitivity: int, monotonic: bool = False
) -> int:
    """Index of the noisy largest score: `noisy_top_zcdp` with k = 1."""
    return noisy_top_zcdp(scores, 1, rho, sensitivity=sensitivity, monotonic=monotonic)[0]


def top_scale(k: int, epsilon: Fraction, *, sensitivity: int, monotonic: bool = False) -> Fraction:
    """The scale of `noisy_top`: the least float that OpenDP's own map takes for epsilon."""
    reach = _reach(k, epsilon, sensitivity, monotonic)
    return _settled("pure", k, k * reach / epsilon, epsilon, sensitivity, monotonic)


def top_scale_zcdp(k: int, rho: Fraction, *, sensitivity: int, monotonic: bool = False) -> Fraction:
    """The scale of `noisy_top_zcdp`, likewise."""
    reach = _reach(k, rho, sensitivity, monotonic)
    least = sqrt_up_relative(k * reach**2 / (8 * rho))
    return _settled("zcdp", k, least, rho, sensitivity, monotonic)


def top_cost(k: int, scale: Fraction, *, sensitivity: int, monotonic: bool = False) -> Fraction:
    """Epsilon of `noisy_top` at this scale, exactly."""
    return k * _range(sensitivity, monotonic) / scale


def top_cost_zcdp(
    k: int, scale: Fraction, *, sensitivity: int, monotonic: bool = False
) -> Fraction:
    """Rho of `noisy_top_zcdp` at this scale, exactly."""
    return k * (_range(sensitivity, monotonic) / scale) ** 2 / 8


def discrete_laplace(values: Sequence[int], scale: Fraction) -> list[int]:
    """Each value plus an integer z with P(z) proportional to exp(-|z| / scale).

    The scale is rounded up to a float, see `float_scale`; values are clipped to +-2**62, results to
    int64.
    """
    return _add("laplace", values, scale)


def discrete_gaussian(values: Sequence[int], scale: Fraction) -> list[int]:
    """Each value plus an integer z with P(z) proportional to exp(-z^2 / (2 scale^2)), likewise."""
    return _add("gaussian", values, scale)


def float_scale(scale: Fraction) -> Fraction:
    """The least float not below the scale: what the noise really has."""
    if not 0 < scale < 2**1000:
        raise ArgumentError("the scale of noise must be greater than 0 and fit in a float")
    return Fraction(float_up(scale))


def _top(
    measure: Measure, scores: Sequence[int], k: int, scale: Fraction, monotonic: bool
) -> list[int]:
    if k > len(scores):
        raise ArgumentError(f"there are {len(scores)} scores: k must be at most as many")
    if k == 0:
        return []
    clipped = [_clip(score) for score in scores]
    return [int(i) for i in _invoke(_top_k(measure, k, float(scale), monotonic), clipped)]


def _add(kind: Literal["laplace", "gaussian"], values: Sequence[int], scale: Fraction) -> list[int]:
    clipped = [_clip(value) for value in values]
    noise = _additive(kind, float(float_scale(scale)))
    return [int(v) for v in _invoke(noise, clipped)] if clipped else []


@lru_cache(maxsize=1024)
def _settled(
    measure: Measure, k: int, least: Fraction, budget: Fraction, sensitivity: int, monotonic: bool
) -> Fraction:
    """A float from ``least`` on whose cost, as OpenDP has it, is within the budget."""
    if k == 0 or sensitivity == 0:
        return Fraction(1)
    scale = float(float_scale(least))
    # Its map rounds up at every step, so that a few steps of the last bit may be needed; more than
    # that if the budget is so small that floats are coarse there.
    step = math.ulp(scale)
    for tried in itertools.count():
        if Fraction(_top_k(measure, k, scale, monotonic).map(sensitivity)) <= budget:
            break
        step *= 1 if tried < _SMALL_STEPS else 2
        scale += step
    return Fraction(scale)


def _reach(k: int, budget: Fraction, sensitivity: int, monotonic: bool) -> Fraction:
    if k < 0:
        raise ArgumentError("k must not be negative")
    if budget <= 0:
        raise ArgumentError("epsilon or rho must be greater than 0")
    if not 0 <= sensitivity <= LARGEST_SENSITIVITY:
        raise ArgumentError("the sensitivity must lie between 0 and 2**60")
    return _range(sensitivity, monotonic)


def _range(sensitivity: int, monotonic: bool) -> Fraction:
    return Fraction(sensitivity if monotonic else 2 * sensitivity)


def _clip(value: int) -> int:
    return min(max(int(value), -LARGEST), LARGEST)


def _invoke(measurement: Any, values: list[int]) -> Any:
    try:
        return measurement(values)
    except Exception:
        # Its text may quote the values. It is dropped here, and what is raised below has no cause.
        pass
    raise RuntimeError("OpenDP could not draw noise")


@cache
def _opendp() -> Any:
    """OpenDP, when noise is first asked for: it takes a while to load."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=256)
def _top_k(measure: Measure, k: int, scale: float, monotonic: bool) -> Any:
    dp = _opendp()
    return dp.m.make_noisy_top_k(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64", monotonic=monotonic),
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
