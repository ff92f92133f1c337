"""One private quantile, as a rule of one quantile draws it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsubset.privacy.quantiles import QuantileRule, QuantileSampler
from dpsubset.privacy.random import Randomness
from dpsubset.privacy.relations import Neighbours


def quantile(
    counts: np.ndarray, prob: Fraction, epsilon: Fraction, neighbours: Neighbours, rng: Randomness
) -> int:
    """A value of the grid -m, ..., m, where ``counts`` has 2 m + 1 entries."""
    rule = QuantileRule((prob,))
    (found,) = QuantileSampler(counts, rule, epsilon, neighbours).draw(rng).quantiles
    return found
