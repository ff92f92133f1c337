"""Tables to measure on: the synthetic generator of the bars, and three from scikit-learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dpsubset import Bounds

Floats = NDArray[np.float64]

#: Where synthetic rows are clipped.
CLIP = 0.5
BOUNDS = Bounds(x=CLIP, y=CLIP)
#: Variance of the signal over that of the noise.
SNR = 5.0

#: Several times wider than the response, for those who do not know its scale.
WIDE = Bounds(x=CLIP, y=20 * CLIP)

#: What the papers have in the place of defaults: no intercept, and a response whose scale is known.
PUBLISHED: dict[str, Any] = {"intercept": False, "response_range": "declared"}

#: What "box" and "ball" mean in the bars: reach 1 without ridge, and the papers' setting.
SETTINGS: dict[str, dict[str, Any]] = {
    "box": {**PUBLISHED, "constraint": "box"},
    "ball": {**PUBLISHED, "constraint": "ball", "radius": 1.1, "ridge": 480.0},
}

#: The published setting for labels, -1 and 1, which no clipping scales. Prastakos, Behdin and
#: Mazumder 2025 write the ridge as lambda / 2 |b|^2 beside the sum of the losses; lambda = 100 and
#: |b| <= 1.1. Variables are clipped at 0.5 and scaled by it, so b here is 0.5 times theirs: radius
#: 0.55 (reach 1.23), ridge 50 / 0.25 = 200.
PAPERS_BALL: dict[str, Any] = {
    **PUBLISHED, "constraint": "ball", "radius": 1.1 * CLIP, "ridge": 100 / 2 / CLIP**2,
}  # fmt: skip

#: Rows are made this many bytes at a time, so that making a table needs little more than itself.
_BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Shape:
    """Size and correlation of a synthetic table."""

    n: int
    p: int
    k: int = 5
    rho: float = 0.1
    seed: int = 0
    snr: float = SNR
    #: Of the last feature's weight to the first's; those between fall evenly.
    least: float = 1.0

    def __str__(self) -> str:
        return f"n {self.n:,}, p {self.p:,}, k {self.k}, rho {self.rho:g}"

    @property
    def truth(self) -> tuple[int, ...]:
        """The features that y is made from."""
        return tuple(range(0, 2 * self.k, 2))

    def make(self) -> tuple[Floats, Floats]:
        """X with AR(rho) Gaussian rows, y from every second feature, by default weighed alike."""
        rng = np.random.default_rng(self.seed)
        x = np.empty((self.n, self.p))
        step = max(1, _BLOCK_BYTES // (8 * self.p))
        for start in range(0, self.n, step):
            rows = x[start : start + step]
            rng.standard_normal(out=rows)
            rows[:, 1:] *= math.sqrt(1.0 - self.rho**2)
            rows[:] = lfilter([1.0], [1.0, -self.rho], rows, axis=1)
        active = np.array(self.truth)
        if active[-1] >= self.p:
            raise ValueError("every second feature: p must be at least 2 k - 1")
        weights = np.linspace(1.0, self.least, self.k)
        weights /= np.linalg.norm(weights)
        signal = x[:, active] @ weights
        variance = float(weights @ self.rho ** np.abs(active[:, None] - active) @ weights)
        return x, signal + math.sqrt(variance / self.snr) * rng.standard_normal(self.n)


def scaled(values: Floats) -> Floats:
    """Clipped and scaled to [-1, 1]: what the scores are about."""
    return np.clip(values, -CLIP, CLIP) / CLIP


def labels(values: Floats) -> Floats:
    """The signs of a response, as the two ends of its bounds."""
    return np.where(values < 0, -CLIP, CLIP)


def real() -> dict[str, tuple[Floats, Floats]]:
    """Three of scikit-learn's tables in [-1, 1].

    Columns are scaled by their own least and largest value. That is allowed here because a
    benchmark releases nothing; a release needs bounds that are public.
    """
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
    from sklearn.preprocessing import PolynomialFeatures

    tables = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
    }
    x, y = load_diabetes(return_X_y=True)
    tables["diabetes, degree 2"] = (PolynomialFeatures(2, include_bias=False).fit_transform(x), y)
    return {name: (_by_range(x), _by_range(y)) for name, (x, y) in tables.items()}


def _by_range(values: Any) -> Floats:
    values = np.asarray(values, dtype=np.float64)
    low, high = values.min(axis=0), values.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    # A constant column carries nothing: 0.
    return np.where(high > low, 2.0 * (values - low) / width - 1.0, 0.0)
