"""What a constraint must say of itself.

A constraint with its radius is a value: a NamedTuple with the field ``radius`` that stands for a
convex set C of coefficient vectors, none with an entry above the radius in size. With b it holds -b
and every vector whose entries are nearer to 0: mechanisms that look at variables one by one count
on it, and so do the neighbours of the audits.

Its methods are about exact numbers: the reach, how a point is moved into C, the largest product of
a vector with a point of C, a barrier. Its static methods are kernels in float64, which numba
compiles for it: `shrink` and those below. All there is to know of a constraint is in its module.
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
    """C, for exact arithmetic. Balls are flint's, at the working precision."""

    def __init__(self, radius: float) -> None: ...

    @property
    @abstractmethod
    def radius(self) -> float:
        """Of C."""

    @staticmethod
    @abstractmethod
    def radius_for(prediction_bound: float, width: int, level: Fraction) -> float:
        """The largest float radius whose reach does not pass the one given."""

    @abstractmethod
    def prediction_bound(self, width: int, level: Fraction) -> Fraction:
        """B, rounded up: no b in C has |x'b| > B, for an x with entries in [-1, 1].

        But for the intercept's, which is ``level``, their sizes sum up to ``width`` at most.
        """

    @abstractmethod
    def into(self, b: Sequence[Fraction], bits: int) -> list[Fraction]:
        """A point of C: b itself if it is one, and near it if it is almost one."""

    @abstractmethod
    def gauge(self, b: Sequence[int]) -> int:
        """The least whole number t such that b lies in t / radius times C, or one above it."""

    @abstractmethod
    def farthest(self, g: Sequence[Fraction], bits: int) -> Fraction:
        """At least the largest g'v over v in C, and next to it with enough bits."""

    @abstractmethod
    def farthest_ball(self, g: Vector) -> flint.arb:
        """The same for balls: a ball with an upper end that is large enough."""

    @abstractmethod
    def start(self, k: int) -> Vector:
        """A point inside of C in units of the radius, and the barrier's own variables behind it."""

    @abstractmethod
    def barrier(self, z: Vector, k: int, gradient: Vector, hessian: list[Vector]) -> None:
        """Add the barrier's derivatives at z."""

    @abstractmethod
    def rooms(self, z: Vector, k: int) -> Vector:
        """What the barrier takes the logarithms of: all above 0 inside of C."""

    @abstractmethod
    def interior(self, h: Array, g: Array) -> Interior | None:
        """Steps to the minimum of a quadratic with gradient g at 0 and Hessian h, both in units of
        the radius. None if float64 has none to offer: the barrier then does it alone.
        """

    @abstractmethod
    def gain_error(
        self, k: int, highest: float, error: float, stiffness: Callable[[], float]
    ) -> float:
        """How far k gains, none above ``highest``, can be off if every w is off by ``error``.

        ``stiffness`` is the least d + mu.
        """

    # -- questions that are settled when kernels are compiled ------------------------------------

    @staticmethod
    @abstractmethod
    def is_joint() -> bool:
        """Whether one bound holds for all coefficients together.

        If so, a search has multipliers to settle, and what can be taken out of H as a diagonal
        decides how hard it is.
        """

    @staticmethod
    @abstractmethod
    def is_softened() -> bool:
        """Whether mu is there to soften a kink of the gains, which a search does less and less."""


class Interior(Protocol):
    """Steps from a point z, in integers over ``one``; see `interior`."""

    def step(self, g: Array, z: list[int], one: int, target: float) -> list[int]:
        """The next point, from the gradient at z."""


# -- kernels: each is the static method of this name, its first argument is the constraint -------

#: (C, b) -> bool. Moves b into C, rounding included; False if b is no vector of numbers.
shrink = own("shrink")
#: (C, h, c, target) -> b, near the minimum of b'Hb - 2c'b over C; may be off, or outside of C.
#: A duality gap of ``target`` is good enough.
solve = own("solve")
#: (C, g) -> the largest -g'v over v in C, over the radius, as computed.
pull = own("pull")
#: (C, k) -> the largest l1 norm in C.
length = own("length")

# Of the search, see `search.bounds.kernels`. mu and nu are the multipliers of |b|^2 and |b|_1.

#: (C, w, d, mu, nu) -> g, and the coefficient v at which it is attained.
gain = own("gain")
coefficient = own("coefficient")
#: (C, mu, nu) -> the part of the bound that no feature carries.
extra = own("extra")
#: (C, w, share, d, mu) -> the mu and nu that are best for columns with these inclusion
#: probabilities; of joint constraints. One that cannot tell the best mu takes the one given, or
#: guesses where it is 0.
settle = own("settle")


def scaled(b: Sequence[Fraction], radius: float, size: Fraction) -> list[Fraction]:
    """b, shrunk to the radius if its size is larger."""
    bound = Fraction(radius)
    return [x * bound / size for x in b] if size > bound else list(b)
