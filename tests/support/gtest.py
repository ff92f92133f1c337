"""The G-test: do draws agree with a distribution known in closed form?

    G = 2 * sum over cells of observed * log(observed / expected)

is asymptotically chi-square with (cells - 1) degrees of freedom. Cells with fewer than `LEAST`
expected draws are pooled, and Williams' correction brings the statistic closer to its limit. Its
far tail obeys a large-deviation bound, P(G > g) <= polynomial * exp(-g / 2), so that very small
levels mean what they say.

`LEVEL` is the level of one test. A run of up to a thousand tests then raises a false alarm with
probability below 1e-6. A test must also have power: `miss` is the probability that it fails to
reject a wrong distribution, and tests demand that it be below `LEVEL` too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2, ncx2

#: False-alarm rate of one test.
LEVEL = 1e-9
#: Least expected number of draws in a cell.
LEAST = 10.0


def g_test(
    counts: Counter[tuple[int, ...]],
    supports: Sequence[tuple[int, ...]],
    probabilities: np.ndarray,
) -> float:
    """p-value of the draws in ``counts`` under ``probabilities`` of ``supports``."""
    if set(counts) - set(supports):
        return 0.0
    observed = np.array([counts[support] for support in supports], dtype=float)
    total = observed.sum()
    cells = pool(probabilities * total)
    seen = np.bincount(cells, observed)
    expected = np.bincount(cells, probabilities) * total
    if np.any(seen[expected == 0] > 0):
        return 0.0
    if len(seen) == 1:
        return 1.0
    terms = np.zeros(len(seen))
    hit = seen > 0
    terms[hit] = seen[hit] * np.log(seen[hit] / expected[hit])
    return float(chi2.sf(2 * terms.sum() / _williams(expected), len(seen) - 1))


def miss(truth: np.ndarray, claimed: np.ndarray, draws: int, level: float = LEVEL) -> float:
    """Probability that draws from ``truth`` are not rejected as draws from ``claimed``.

    By the non-central chi-square limit, with 2 * draws * KL(truth, claimed) over the pooled cells.
    """
    cells = pool(claimed * draws)
    p, q = np.bincount(cells, truth), np.bincount(cells, claimed)
    if len(p) == 1:
        return 1.0
    divergence = float((p * np.log(p / q)).sum())
    threshold = chi2.isf(level, len(p) - 1) * _williams(q * draws)
    return float(ncx2.cdf(threshold, len(p) - 1, 2 * draws * divergence))


def pool(expected: np.ndarray) -> np.ndarray:
    """Number of the pooled cell of each cell: smallest first, until `LEAST` are expected."""
    cells = np.zeros(len(expected), dtype=np.int64)
    cell, held = 0, 0.0
    order = np.argsort(expected, kind="stable")
    left = float(expected.sum())
    for i in order:
        cells[i] = cell
        held += expected[i]
        left -= expected[i]
        # What is left over joins the last cell if it could not fill one of its own.
        if held >= LEAST and left >= LEAST:
            cell, held = cell + 1, 0.0
    return cells


def _williams(expected: np.ndarray) -> float:
    total, cells = expected.sum(), len(expected)
    return float(1 + ((total / expected).sum() - 1) / (6 * total * (cells - 1)))
