"""The distribution that simulated tables are drawn from.

p Gaussian columns of variance 1, where columns i and j have correlation ``rho**|i - j|``, and a
response that is a weighted sum of k of them plus Gaussian noise, scaled to variance 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_float, check_int, check_positive

Floats = NDArray[np.float64]

#: Profiles of the weights of the true variables, from the largest to the smallest.
Signals = Literal["equal", "linear", "geometric"]
#: The smallest weight over the largest where they are unequal: as in the simulations of Hastie,
#: Tibshirani and Tibshirani 2020, whose weights fall linearly from 10 to 0.5.
LEAST = 0.05


@dataclass(frozen=True)
class Population:
    """The distribution of simulated rows, and the bounds that are declared for them.

    Parameters
    ----------
    p, k : int
        Number of columns, and how many of them have a nonzero weight.
    snr : float
        Signal-to-noise ratio: the variance of the weighted sum over that of the noise.
    rho : float
        Correlation of neighbouring columns; 0 makes all columns independent.
    signals : {"equal", "linear", "geometric"}
        Profile of the weights: all equal, or falling in equal steps or by equal factors.
    least : float
        The smallest weight over the largest, unless they are equal.
    x_bound, y_bound : float
        Declared bounds of columns and response, in standard deviations on either side.
    labels : bool
        Whether only the sign of the response is observed.
    """

    p: int
    k: int
    snr: float = 1.0
    rho: float = 0.0
    signals: Signals = "equal"
    least: float = LEAST
    x_bound: float = 3.0
    y_bound: float = 3.0
    labels: bool = False

    def __post_init__(self) -> None:
        p, k = check_int(self.p, "p"), check_int(self.k, "k")
        if k < 1:
            raise ArgumentError("k must be at least 1: the number of variables to select")
        if k > p:
            raise ArgumentError(f"k must be at most p, the number of variables, which is {p}")
        checked = {name: check_float(getattr(self, name), name) for name in ("rho", "least")}
        if not 0 <= checked["rho"] < 1:
            raise ArgumentError(
                "rho must lie between 0 (independent columns) and below 1: the correlation of "
                "neighbouring columns"
            )
        if not 0 < checked["least"] <= 1:
            raise ArgumentError("least must be above 0 and at most 1 (all signals equal)")
        check_choice(self.signals, get_args(Signals), "signals")
        for name in ("snr", "x_bound", "y_bound"):
            checked[name] = check_positive(getattr(self, name), name)
            if not 1e-6 <= checked[name] <= 1e6:
                raise ArgumentError(f"{name} must lie between 1e-6 and 1e6")
        if not isinstance(self.labels, bool):
            raise ArgumentError("labels must be True or False")
        for name, value in ({"p": p, "k": k} | checked).items():
            object.__setattr__(self, name, value)

    @cached_property
    def truth(self) -> tuple[int, ...]:
        """The true support: every second column from the first, or adjacent ones if p < 2k - 1."""
        step = 2 if self.p >= 2 * self.k - 1 else 1
        return tuple(range(0, step * self.k, step))

    @cached_property
    def weights(self) -> Floats:
        """The weights of the true variables, scaled so that the response has variance 1."""
        spaced = np.geomspace if self.signals == "geometric" else np.linspace
        weights = spaced(1.0, 1.0 if self.signals == "equal" else self.least, self.k)
        places = np.array(self.truth)
        correlations = self.rho ** np.abs(places[:, None] - places) if self.rho else np.eye(self.k)
        return np.asarray(
            weights / math.sqrt(weights @ correlations @ weights * (1 + 1 / self.snr))
        )

    @property
    def noise(self) -> float:
        """The standard deviation of the response's noise."""
        return 1 / math.sqrt(1 + self.snr)

    @cached_property
    def correlations(self) -> Floats:
        """The correlation of each column with the response, before the response is thresholded."""
        distances = np.abs(np.arange(self.p)[:, None] - np.array(self.truth))
        between = self.rho**distances if self.rho else (distances == 0).astype(np.float64)
        return np.asarray(between @ self.weights)

    def columns(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n rows of the columns."""
        x = rng.standard_normal((self.p, n)).T  # Fortran order: each column is contiguous
        if self.rho:
            innovation = math.sqrt(1 - self.rho**2)
            for j in range(1, self.p):
                x[:, j] = self.rho * x[:, j - 1] + innovation * x[:, j]
        return x

    def response(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Draw the response of rows x."""
        y = x[:, self.truth] @ self.weights + self.noise * rng.standard_normal(len(x))
        return np.asarray(np.where(y < 0, -1.0, 1.0) if self.labels else y)

    def table(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw n rows with their response."""
        x = self.columns(n, rng)
        return x, self.response(x, rng)

    def profiles(self, signals: Signals) -> list[Population]:
        """Equal signals, and these if they differ."""
        found = [replace(self, signals="equal")]
        if signals != "equal" and self.k > 1 and self.least < 1:
            found.append(replace(self, signals=signals))
        return found

    @property
    def profile(self) -> str:
        """The profile of the weights, in words."""
        if self.signals == "equal":
            return "equal signals"
        how = "linearly" if self.signals == "linear" else "geometrically"
        return f"signals falling {how} to {self.least:g} of the largest"

    def __str__(self) -> str:
        columns = "independent columns" if not self.rho else f"correlation {self.rho:g}^|i - j|"
        response = "labels" if self.labels else f"the response at {self.y_bound:g}"
        return (
            f"Gaussian columns, {columns}, SNR {self.snr:g}; columns clipped at "
            f"{self.x_bound:g} standard deviations, {response}"
        )
