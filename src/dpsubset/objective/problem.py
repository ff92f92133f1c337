"""Problem: which loss, how many variables, which coefficients are allowed, who is a neighbour.

All of it is public. The coefficient set C keeps predictions within the *reach* B, |x'b| <= B for
every row x that the door can make, on the columns of k choices and the intercept; the privacy cost
depends on B alone. With W the width of k choices (k, if each is a number or has levels) and v the
intercept's intercept_value (0 without one):

=========== =========================== =======================
constraint  C                           reach B
=========== =========================== =======================
``box``     abs(b_j) <= radius          radius * (W + v)
``ball``    l2 norm <= radius           radius * sqrt(W + v^2)
``l1``      l1 norm <= radius           radius
=========== =========================== =======================
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, get_args

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_float, check_int, check_positive
from ..constraints import CONSTRAINTS, Constraint, Name
from ..privacy.relations import Neighbours
from ..schema.layout import STEPS, Layout

#: Most variables: sums of their integer weights must fit in int64 (see proofs/bounds.md).
LARGEST_P = 2**22 - 1

#: Of the Huber loss, in units of the response's half-range.
DEFAULT_THRESHOLD = 0.25

#: The grid of scores follows the range, and the range the threshold: below the first float64 could
#: certify scores of small tables alone. The error bounds of the kernels are proven up to the
#: second, from where on the loss is least squares for all but the worst residuals.
_THRESHOLDS = (0.01, 1.0)


#: B for labels that count as -1 and 1 under a loss for numbers, where none is asked for.
LABELS_PREDICTION_BOUND = 1.25

#: Most columns of a model: what is computed of one grows with their cube.
LARGEST_MODEL = 2000


def intercept_constant(k: int, labels: bool) -> int:
    """The intercept's value in every row, in steps of the door.

    In the box a tenth of the reach is its part, as long as its value is at most 1: k / 9. Labels
    are not centred, and where one is rare the intercept has more to do. docs/real-tables.md has the
    measurements.
    """
    return STEPS if labels else min(STEPS, round(STEPS * k / 9))


@dataclass(frozen=True)
class Problem:
    """A subset selection problem, checked; build with :meth:`state`."""

    p: int
    k: int
    constraint: Name
    radius: float
    ridge: float
    neighbours: Neighbours
    always_include: tuple[int, ...]
    loss: str
    #: Of the Huber loss alone: residuals beyond count by their size, not by their square.
    threshold: float | None = None
    #: The columns of a model, unless there is one for each of the p choices and no intercept.
    laid_out: Layout | None = None

    @classmethod
    def create(
        cls,
        p: int,
        k: int,
        *,
        constraint: str = "box",
        prediction_bound: float | None = None,
        radius: float | None = None,
        ridge: float = 0.0,
        neighbours: str = "replace-one",
        always_include: Iterable[int] = (),
        loss: str = "least-squares",
        threshold: float | None = None,
        intercept: bool = False,
        labels: bool = False,
        layout: Layout | None = None,
    ) -> Problem:
        """Check the arguments and settle the radius.

        ``reach`` and ``radius`` say the same thing in two ways; at most one is given. ``layout`` is
        of the p choices, without an intercept; by default each is one column. ``labels`` says that
        the response has two, whatever the loss.
        """
        from .losses import LOSSES

        p, k = check_int(p, "p"), check_int(k, "k")
        if k < 1:
            raise ArgumentError("k must be at least 1: the number of variables to select")
        if p > LARGEST_P:
            raise ArgumentError(f"there may be at most {LARGEST_P} variables")
        if k > p:
            grouped = layout is not None and layout.grouped
            raise ArgumentError(
                f"k must be at most {p}, the number of choices: a group counts once, and so does a "
                "column with levels"
                if grouped
                else f"k must be at most p, the number of variables, which is {p}"
            )
        constraint = check_choice(constraint, CONSTRAINTS, "constraint")
        neighbours = check_choice(neighbours, get_args(Neighbours), "neighbours")
        loss = check_choice(loss, LOSSES, "loss")
        threshold = _threshold(threshold, loss, LOSSES[loss].of_threshold is not None)
        always = tuple(sorted({check_int(j, "always_include") for j in always_include}))
        if always and not (always[0] >= 0 and always[-1] < p):
            raise ArgumentError(f"always_include lists positions of columns, 0 to {p - 1}")
        if len(always) > k:
            raise ArgumentError(
                f"always_include lists {len(always)} variables, more than k = {k}: they count in k"
            )
        if not isinstance(intercept, bool):
            raise ArgumentError("intercept must be True or False")
        parts = Layout(p) if layout is None else layout
        columns = replace(parts, constant=intercept_constant(k, labels) if intercept else 0)
        _check_columns(columns, k, always)
        if prediction_bound is not None and radius is not None:
            raise ArgumentError("give reach or radius, not both: they say the same thing")
        if radius is None:
            default = (
                LABELS_PREDICTION_BOUND
                if labels and not LOSSES[loss].labels
                else LOSSES[loss].prediction_bound
            )
            prediction_bound = check_positive(
                default if prediction_bound is None else prediction_bound, "prediction_bound"
            )
            checked = _radius_for(
                prediction_bound, constraint, columns.width(k, always), columns.intercept_value
            )
        else:
            checked = _check_radius(check_positive(radius, "radius"))
        ridge = check_float(ridge, "ridge")
        if not 0 <= ridge <= 1e15:
            raise ArgumentError("ridge must lie between 0 and 1e15, in scaled units")
        return cls(
            p, k, constraint, checked, ridge, neighbours, always, loss, threshold,  # type: ignore[arg-type]
            None if columns == Layout(p) else columns,
        )  # fmt: skip

    @cached_property
    def layout(self) -> Layout:
        """The columns of a model, and the choices that they belong to."""
        return Layout(self.p) if self.laid_out is None else self.laid_out

    def with_prediction_bound(self, prediction_bound: float) -> Problem:
        """The same with another reach."""
        intercept_value = self.layout.intercept_value
        return replace(
            self, radius=_radius_for(prediction_bound, self.constraint, self.width, intercept_value)
        )

    @property
    def coefficients(self) -> Constraint:
        """C: the constraint with its radius."""
        return CONSTRAINTS[self.constraint](self.radius)

    @property
    def prediction_bound(self) -> Fraction:
        """B, rounded up: no prediction of an allowed model is larger."""
        return self.coefficients.prediction_bound(self.width, self.layout.intercept_value)

    @property
    def width(self) -> int:
        """W: how wide k choices may be."""
        return self.layout.width(self.k, self.always_include)

    @property
    def columns(self) -> int:
        """How many columns the models are made of, the intercept's among them."""
        return self.layout.columns

    @property
    def most_columns(self) -> int:
        """How many of them a model has, at most."""
        return self.layout.most_columns(self.k, self.always_include)

    @property
    def free(self) -> tuple[int, ...]:
        """The variables that are not part of every support, in order."""
        always = set(self.always_include)
        return tuple(j for j in range(self.p) if j not in always)

    @property
    def picks(self) -> int:
        """How many of the free variables a support has."""
        return self.k - len(self.always_include)

    def support(self, picked: Iterable[int]) -> tuple[int, ...]:
        """Of variables picked from the free ones: with those that are always part of it."""
        return tuple(sorted([*self.always_include, *picked]))

    @property
    def supports(self) -> int:
        """How many supports there are to choose from."""
        return math.comb(self.p - len(self.always_include), self.picks)

    @property
    def n_is_public(self) -> bool:
        """Whether neighbours have the same number of rows, so that it may be known."""
        return self.neighbours == "replace-one"


def _threshold(value: Any, loss: str, has_one: bool) -> float | None:
    """The threshold as the float that kernels and range both take, or None without one."""
    if not has_one:
        if value is not None:
            raise ArgumentError(f"threshold goes with loss='huber': the {loss} loss has none")
        return None
    checked = check_positive(DEFAULT_THRESHOLD if value is None else value, "threshold")
    least, most = _THRESHOLDS
    if not least <= checked <= most:
        raise ArgumentError(
            f"threshold must lie between {least:g} and {most:g}, in units of the response's "
            "half-range; where larger ones are wanted, take loss='least-squares'"
        )
    return checked


def _radius_for(
    prediction_bound: float, constraint: str, width: int, intercept_value: Fraction
) -> float:
    # What is cut off here is refused then; its square would not fit in a float.
    return _check_radius(
        CONSTRAINTS[constraint].radius_for(min(prediction_bound, 1e100), width, intercept_value)
    )


def _check_radius(radius: float) -> float:
    """Beyond these the float64 kernels could overflow; nobody wants them."""
    if not 1e-9 <= radius <= 1e9:
        raise ArgumentError("radius (reach/k for the box) must lie between 1e-9 and 1e9")
    return radius


def _check_columns(layout: Layout, k: int, always: tuple[int, ...]) -> None:
    if layout.columns > LARGEST_P + 1:
        raise ArgumentError(f"there may be at most {LARGEST_P} columns, levels counted one by one")
    # Only where choices have several columns: k numbers may be as many as there are.
    if layout.grouped and layout.most_columns(k, always) > LARGEST_MODEL:
        raise ArgumentError(
            f"a model of k = {k} choices could have {layout.most_columns(k, always)} columns, more "
            f"than {LARGEST_MODEL}: take a smaller k, or give the groups fewer levels or parts"
        )
