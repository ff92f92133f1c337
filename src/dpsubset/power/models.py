"""The best model on the true variables of a population, and what losing one of them costs.

All by row: times n they are scores. Columns are independent with variance v, the response has
covariance c_i with them, and the intercept's column has the value L in every row.

*Box.* Every coefficient has bounds of its own, |b| <= radius: variables gain one by one.

*Ball.* They share the radius with the intercept. For m equal true variables the best model has

    b = c / (v + lambda),   b_0 = L mean / (L^2 + lambda),   m b^2 + b_0^2 <= radius^2

with the least lambda >= 0 that allows it. G(m) is what they gain over the intercept alone; swaps of
several are dearer or cheaper than swaps of one (`curve`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..objective.problem import Problem

Floats = NDArray[np.float64]

#: Halvings in the search for a multiplier, from its largest possible value down.
_HALVINGS = 60


@dataclass(frozen=True)
class Model(ABC):
    """Of one population, or of several whose responses count differently.

    Attributes
    ----------
    c : array of shape (populations, k)
        Covariances with the response.
    v, ridge : float
        The variance of a column, and what the ridge adds to it a row.
    mean, spread : arrays of shape (populations,)
        Of the response: its mean, and its variance.
    level : float
        L, 0 without an intercept.
    radius : float
        Of the constraint.
    """

    c: Floats
    v: float
    ridge: float
    mean: Floats
    spread: Floats
    level: float
    radius: float

    @property
    def k(self) -> int:
        """How many variables matter."""
        return int(self.c.shape[1])

    @property
    @abstractmethod
    def b(self) -> Floats:
        """Coefficients of the best model, of the same shape as c."""

    @property
    @abstractmethod
    def offset(self) -> Floats:
        """What the intercept cannot take of the response's mean."""

    @property
    @abstractmethod
    def alone(self) -> Floats:
        """What swaps of single variables cost, of the same shape as c."""

    @abstractmethod
    def curve(self, most: int) -> Floats:
        """What j swaps gain beyond j single ones, for j = 0, ..., most."""

    @abstractmethod
    def true_gains(self, products: Floats, squares: Floats) -> Floats:
        """Of true variables whose products and squares came out like this, by table."""

    @abstractmethod
    def other_gains(self, products: Floats) -> Floats:
        """Of variables that do not matter."""

    @cached_property
    def _parts(self) -> Floats:
        return np.asarray(2 * self.b * self.c - self.b**2 * self.v)

    @cached_property
    def rest(self) -> Floats:
        """What the best model leaves of the response, squared, by population."""
        left = self.spread + self.offset**2 - self._parts.sum(axis=1)
        return np.asarray(np.maximum(left, 0.0))

    @property
    def beside(self) -> Floats:
        """The same with x_i at its best coefficient, whatever is allowed."""
        left = self.rest[:, None] + self._parts - self.c**2 / self.v
        return np.maximum(left, 0.0)

    @property
    def without_one(self) -> Floats:
        """What a model leaves that has lost a true variable."""
        return np.asarray(self.rest + self.alone.mean(axis=1))


class BoxModel(Model):
    """Every coefficient for itself."""

    @cached_property
    def b(self) -> Floats:
        """The best ones, clipped."""
        return np.clip(self.c / (self.v + self.ridge), -self.radius, self.radius)

    @property
    def offset(self) -> Floats:
        """What is beyond the largest intercept."""
        return np.maximum(np.abs(self.mean) - self.radius * self.level, 0.0)

    @property
    def alone(self) -> Floats:
        """Their own gains."""
        return np.asarray(self._parts - self.ridge * self.b**2)

    def curve(self, most: int) -> Floats:
        """Nothing."""
        return np.zeros((1, most + 1))

    def true_gains(self, products: Floats, squares: Floats) -> Floats:
        """The largest 2 b c - b^2 v that is allowed."""
        return self._largest(products, squares + self.ridge)

    def other_gains(self, products: Floats) -> Floats:
        """The same."""
        return self._largest(products, self.v + self.ridge)

    def _largest(self, products: Floats, squares: Floats | float) -> Floats:
        b = np.clip(products / squares, -self.radius, self.radius)
        return np.asarray(2 * b * products - b**2 * squares)


class BallModel(Model):
    """Equal variables that share a radius with the intercept."""

    @cached_property
    def _lambdas(self) -> Floats:
        """The multiplier for m = 0, ..., k true variables, by population."""
        m = np.arange(self.k + 1)
        c, mean = self.c.mean(axis=1)[:, None], self.mean[:, None]
        low = np.zeros((len(self.c), self.k + 1))
        high = np.broadcast_to(
            (np.abs(c) * np.sqrt(self.k) + np.abs(mean) * self.level) / self.radius, low.shape
        ).copy()
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self._norm(m, middle) <= self.radius**2
            high, low = np.where(inside, middle, high), np.where(inside, low, middle)
        return np.where(self._norm(m, np.zeros(1)) <= self.radius**2, 0.0, high)

    def _norm(self, m: NDArray[np.int64], multiplier: Floats) -> Floats:
        b, first = self._coefficients(multiplier)
        return np.asarray(m * b**2 + first**2)

    def _coefficients(self, multiplier: Floats) -> tuple[Floats, Floats]:
        """Of a true variable, and of the intercept."""
        c, mean = self.c.mean(axis=1)[:, None], self.mean[:, None]
        b = c / (self.v + self.ridge + multiplier)
        weight = self.level**2 + self.ridge + multiplier
        first = self.level * mean / np.where(weight > 0, weight, 1.0)
        return b, np.asarray(first)

    @cached_property
    def _gains(self) -> Floats:
        """G(m) for m = 0, ..., k, by population."""
        b, first = self._coefficients(self._lambdas)
        c, mean = self.c.mean(axis=1)[:, None], self.mean[:, None]
        m = np.arange(self.k + 1)
        own = m * (2 * b * c - b**2 * (self.v + self.ridge))
        return np.asarray(
            own + 2 * first * self.level * mean - first**2 * (self.level**2 + self.ridge)
        )

    @cached_property
    def b(self) -> Floats:
        """Alike."""
        b, _ = self._coefficients(self._lambdas[:, -1:])
        return np.broadcast_to(b, self.c.shape)

    @property
    def offset(self) -> Floats:
        """What the intercept leaves, beside all true variables."""
        _, first = self._coefficients(self._lambdas[:, -1:])
        return np.asarray(self.mean - self.level * first[:, 0])

    @property
    def alone(self) -> Floats:
        """G(k) - G(k - 1)."""
        step = self._gains[:, -1:] - self._gains[:, -2:-1]
        return np.broadcast_to(step, self.c.shape)

    def curve(self, most: int) -> Floats:
        """j (G(k) - G(k - 1)) - (G(k) - G(k - j))."""
        fewer = self._gains[:, self.k - np.arange(most + 1)]
        return np.asarray(np.arange(most + 1) * self.alone[:, :1] - self._gains[:, -1:] + fewer)

    def true_gains(self, products: Floats, squares: Floats) -> Floats:
        """By the envelope theorem: what small errors of sums do to the minimum."""
        return np.asarray(
            self.alone + 2 * self.b * (products - self.c) - self.b**2 * (squares - self.v)
        )

    def other_gains(self, products: Floats) -> Floats:
        """At what the best model is charged for a coefficient."""
        return np.asarray(products**2 / (self.v + self.ridge + self._lambdas[:, -1:]))


def model_of(problem: Problem, n: int, c: Floats, v: float, mean: Floats, spread: Floats) -> Model:
    """The best model of a problem on n rows of a population."""
    kind = {"box": BoxModel, "ball": BallModel}[problem.constraint]
    return kind(
        c, v, problem.ridge / n, mean, spread, float(problem.layout.intercept_value), problem.radius
    )
