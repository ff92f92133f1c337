"""What a response counts as on made-up tables: h(y) in [-1, 1], by its bounds or by a drawn scale.

=================  ============================================================
labels             the sign of y
declared           y over its bound, clipped
a released scale   (y - centre) over the half-width, clipped; centre and width as
                   the mechanism of `privacy.scale` draws them from n made-up rows
=================  ============================================================
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..api.request import SelectionRequest
from ..privacy.quantiles import QuantileSampler, RangeInSteps, histogram, log_probabilities
from ..schema.layout import STEPS
from .population import Population

Floats = NDArray[np.float64]

#: Of how many made-up responses scales are drawn: they differ little, unless rows are few.
_RESPONSES = 6


def sampler(planned: SelectionRequest, cells: NDArray[np.int64]) -> QuantileSampler:
    """Draws scales of a quantised response, as a release would."""
    assert planned.scale is not None
    rule, neighbours = planned.scale.rule, planned.setting.problem.neighbours
    return QuantileSampler(histogram(cells, STEPS), rule, planned.scale_epsilon, neighbours)


def drawn_scales(
    planned: SelectionRequest, population: Population, n: int, count: int, rng: np.random.Generator
) -> list[RangeInSteps | None]:
    """Scales of made-up responses; one None for the declared one.

    From the closed form of their mechanism, in floats: nobody's values are in them.
    """
    if planned.scale is None:
        return [None]
    rule = planned.scale.rule
    weight = rule.weight(planned.scale_epsilon, planned.setting.problem.neighbours)
    each = -(-count // _RESPONSES)
    found: list[RangeInSteps | None] = []
    for _ in range(_RESPONSES):
        counts = rng.multinomial(n, _masses(population.y_bound)).astype(np.int64)
        quantiles = []
        for share in rule.probs:
            chances = np.exp(log_probabilities(counts, share, weight)).cumsum()
            places = np.searchsorted(chances, rng.random(each) * chances[-1])
            quantiles.append(np.minimum(places, 2 * STEPS) - STEPS)
        found += [rule.range_of(row) for row in np.stack(quantiles, axis=1).tolist()]
    return found[:count]


def counted(scale: RangeInSteps | None, population: Population, y: Floats) -> Floats:
    """What responses count as."""
    if population.labels:
        return np.asarray(np.where(y < 0, -1.0, 1.0))
    scaled = y / population.y_bound
    if scale is None:
        return np.asarray(np.clip(scaled, -1, 1))
    steps = (np.clip(scaled, -1, 1) * STEPS - float(scale.centre)) / float(scale.half_width)
    return np.asarray(np.clip(steps, -1, 1))


@cache
def _masses(bound: float) -> Floats:
    """The probability of each value of the grid, of a standard Gaussian clipped at the bound."""
    edges = (np.arange(-STEPS, STEPS) + 0.5) / STEPS * bound
    below = np.concatenate([[0.0], ndtr(edges), [1.0]])
    masses = np.diff(below)
    return np.asarray(masses / masses.sum())
