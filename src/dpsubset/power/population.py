"""Population: what a plan assumes of a table that nobody has looked at. Made up, hence public.

p columns, Gaussian with variance 1, where columns i and j have correlation rho^|i - j|; a response
that is a weighted sum of k of them and of Gaussian noise, with ``snr`` the variance of the sum over
that of the noise, scaled to variance 1. Bounds are at so many standard deviations on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.validation import check_float, check_int, check_positive

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Population:
    """Where made-up rows come from.

    Attributes
    ----------
    p, k : int
        Columns, and how many of them matter.
    snr : float
        Variance of the signal over that of the noise.
    rho : float
        Correlation of neighbouring columns; 0 makes all of them independent.
    least : float
        The smallest weight over the largest; those between fall evenly.
    x_bound, y_bound : float
        Where columns and response are clipped, in standard deviations.
    labels : bool
        Whether the response counts by its sign alone.
    """

    p: int
    k: int
    snr: float = 1.0
    rho: float = 0.0
    least: float = 1.0
    x_bound: float = 3.0
    y_bound: float = 3.0
    labels: bool = False

    def __post_init__(self) -> None:
        p, k = check_int(self.p, "p"), check_int(self.k, "k")
        if k < 1:
            raise ArgumentError("k must be at least 1: the number of variables to select")
        if k > p:
            raise ArgumentError(f"k must be at most p, the number of variables, which is {p}")
        settled = {"p": p, "k": k}
        checked = {name: check_float(getattr(self, name), name) for name in ("rho", "least")}
        if not 0 <= checked["rho"] < 1:
            raise ArgumentError(
                "rho must lie between 0 (independent columns) and below 1: the correlation of "
                "neighbouring columns"
            )
        if not 0 < checked["least"] <= 1:
            raise ArgumentError("least must be above 0 and at most 1 (all signals equal)")
        for name in ("snr", "x_bound", "y_bound"):
            checked[name] = check_positive(getattr(self, name), name)
            if not 1e-6 <= checked[name] <= 1e6:
                raise ArgumentError(f"{name} must lie between 1e-6 and 1e6")
        for name, value in (settled | checked).items():
            object.__setattr__(self, name, value)

    @cached_property
    def truth(self) -> tuple[int, ...]:
        """The columns that matter: every second one, as long as there is room for that."""
        step = 2 if self.p >= 2 * self.k - 1 else 1
        return tuple(range(0, step * self.k, step))

    @cached_property
    def weights(self) -> Floats:
        """Of these columns in the response, whose variance is 1."""
        weights = np.linspace(1.0, self.least, self.k)
        places = np.array(self.truth)
        shared = self.rho ** np.abs(places[:, None] - places) if self.rho else np.eye(self.k)
        return np.asarray(weights / math.sqrt(weights @ shared @ weights * (1 + 1 / self.snr)))

    @property
    def noise(self) -> float:
        """Standard deviation of the response's noise."""
        return 1 / math.sqrt(1 + self.snr)

    def columns(self, n: int, count: int, rng: np.random.Generator) -> Floats:
        """n rows of the first ``count`` columns."""
        x = rng.standard_normal((count, n)).T  # a column lies in one piece
        if self.rho:
            fresh = math.sqrt(1 - self.rho**2)
            for j in range(1, count):
                x[:, j] = self.rho * x[:, j - 1] + fresh * x[:, j]
        return x

    def response(self, x: Floats, rng: np.random.Generator) -> Floats:
        """The response of rows that have the columns that matter."""
        found = x[:, self.truth] @ self.weights + self.noise * rng.standard_normal(len(x))
        return np.asarray(np.where(found < 0, -1.0, 1.0) if self.labels else found)

    def table(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """n rows of all columns, and their response."""
        x = self.columns(n, self.p, rng)
        return x, self.response(x, rng)

    def __str__(self) -> str:
        columns = "independent columns" if not self.rho else f"correlation {self.rho:g}^|i - j|"
        signals = "equal signals" if self.least == 1 else f"signals falling to {self.least:g}"
        response = "labels" if self.labels else f"the response at {self.y_bound:g}"
        return (
            f"Gaussian columns, {columns}, {signals}, SNR {self.snr:g}; columns clipped at "
            f"{self.x_bound:g} standard deviations, {response}"
        )
