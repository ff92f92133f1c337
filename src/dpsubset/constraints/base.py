"""The interface of a constraint.

A constraint with its radius is a value: a NamedTuple with the field ``radius`` that stands for a
convex set C of coefficient vectors, none of which has an entry larger than the radius in absolute
value. C is symmetric: with b it contains -b and every vector whose entries are no larger in
absolute value. Mechanisms that treat variables one by one rely on this, and so do the neighbouring
tables of the audits.

Methods use exact numbers: the prediction bound, the projection of a point into C, the support
function of C, a barrier. Static methods are kernels in float64, which numba compiles for the
constraint: `shrink` and those below it. Everything about a constraint is in its module.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

import flint

from ..base.kernels.arrays import Array
from ..base.kernels.values import own

Vector = list[flint.arb]


class Constraint(Protocol):
    """C, for exact arithmetic. Balls are those of flint, at the working precision."""

    def __init__(self, radius: float) -> None: ...

    @property
    @abstractmethod
    def radius(self) -> float:
        """The radius of C."""

    @staticmethod
    @abstractmethod
    def radius_for(prediction_bound: float, width: int, level: Fraction) -> float:
        """The largest float radius whose prediction bound does not exceed ``prediction_bound``."""

    @abstractmethod
    def prediction_bound(self, width: int, level: Fraction) -> Fraction:
        """The prediction bound B, rounded up: |x'b| <= B for b in C and x with entries in [-1, 1].

        The absolute values of x sum to at most ``width``, not counting the intercept's, which is
        ``level``.
        """

    @abstractmethod
    def project(self, b: Sequence[Fraction], bits: int) -> list[Fraction]:
        """A point of C: b itself if it is in C, and a point near b if b is almost in C."""

    @abstractmethod
    def gauge(self, b: Sequence[int]) -> int:
        """The smallest integer t such that b lies in t / radius times C, or t + 1."""

    @abstractmethod
    def support_function(self, g: Sequence[Fraction], bits: int) -> Fraction:
        """An upper bound on the maximum of g'v over v in C, tight for large ``bits``."""

    @abstractmethod
    def support_function_ball(self, g: Vector) -> flint.arb:
        """The maximum of g'v over v in C as a ball whose upper end is an upper bound."""

    @abstractmethod
    def start(self, k: int) -> Vector:
        """A point inside C in units of the radius, followed by the barrier's own variables."""

    @abstractmethod
    def barrier(self, z: Vector, k: int, gradient: Vector, hessian: list[Vector]) -> None:
        """Add the barrier's derivatives at z."""

    @abstractmethod
    def slacks(self, z: Vector, k: int) -> Vector:
        """The arguments of the logarithms in the barrier: all positive inside C."""

    @abstractmethod
    def interior(self, h: Array, g: Array) -> Interior | None:
        """A solver for the minimum of a quadratic with gradient g at 0 and Hessian h.

        Both are in units of the radius. None if float64 has no solver; the barrier method then
        works alone.
        """

    @abstractmethod
    def gain_error(
        self, k: int, highest: float, error: float, stiffness: Callable[[], float]
    ) -> float:
        """A bound on the error of k gains, none above ``highest``, if every w is off by ``error``.

        ``stiffness`` is the smallest d + mu.
        """

    # -- properties that are evaluated when kernels are compiled ----------------------------------

    @staticmethod
    @abstractmethod
    def is_joint() -> bool:
        """Whether one bound holds for all coefficients together.

        If so, a search must choose multipliers, and the diagonal that can be subtracted from H
        decides how hard it is.
        """

    @staticmethod
    @abstractmethod
    def is_softened() -> bool:
        """Whether mu smooths a kink of the gains; a search reduces it step by step."""


class Interior(Protocol):
    """Steps from a point z, in integers over ``one``; see `interior`."""

    def step(self, g: Array, z: list[int], one: int, target: float) -> list[int]:
        """The next point, from the gradient at z."""


# -- kernels: each is the static method of this name; its first argument is the constraint -----

#: (C, b) -> bool. Moves b into C, rounding included; False if an entry of b is not finite.
shrink = own("shrink")
#: (C, h, c, target) -> b near the minimum of b'Hb - 2c'b over C; may be inexact, or outside C. A
#: duality gap of ``target`` is sufficient.
solve = own("solve")
#: (C, g) -> the maximum of -g'v over v in C, divided by the radius, as computed: the dual norm of
#: g.
dual_norm = own("dual_norm")
#: (C, k) -> the largest l1 norm of a vector with k entries in C.
max_l1_norm = own("max_l1_norm")

# Kernels of the search, see `search.bounds.kernels`. mu and nu are the multipliers of |b|^2 and
# |b|_1.

#: (C, w, d, mu, nu) -> the gain g, and the coefficient v at which it is attained.
gain = own("gain")
coefficient = own("coefficient")
#: (C, mu, nu) -> the part of the bound that does not depend on the features.
extra = own("extra")
#: (C, w, pi, d, mu) -> the mu and nu that are best for columns with the inclusion probabilities pi;
#: joint constraints only. A constraint without a rule for mu keeps the mu given, or chooses one if
#: it is 0.
best_multipliers = own("best_multipliers")


def scale_to_radius(b: Sequence[Fraction], radius: float, size: Fraction) -> list[Fraction]:
    """b, scaled down to the radius if its size is larger."""
    bound = Fraction(radius)
    return [x * bound / size for x in b] if size > bound else list(b)
