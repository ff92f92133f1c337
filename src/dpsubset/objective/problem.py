"""Problem: the loss, the number of variables, the coefficient set and the neighbouring relation.

All of it is public. The coefficient set C bounds predictions: |x'b| <= B for every row x that the
quantizer can produce, on the columns of k choices and the intercept. B is the *prediction bound*,
and the privacy cost depends on B alone. With W the width of k choices (k, if each is a number or
has levels) and v the value of the intercept's column (0 without one):

=========== =========================== =======================
constraint  C                           prediction bound B
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
from ..constraints import CONSTRAINTS, Constraint, ConstraintName
from ..privacy.relations import Neighbours
from ..schema.layout import STEPS, Layout

#: Largest number of variables: sums of their integer weights must fit in int64 (proofs/bounds.md).
LARGEST_P = 2**22 - 1

#: Default threshold of the Huber loss, in units of the response's half-range.
DEFAULT_THRESHOLD = 0.25

#: Allowed thresholds. The grid of scores is proportional to the range, which is proportional to the
#: threshold: below the first value float64 could certify scores of small tables only. The error
#: bounds of the kernels are proven up to the second, beyond which the loss equals least squares
#: for all but the largest residuals.
_THRESHOLDS = (0.01, 1.0)

#: Default B for labels, coded as -1 and 1, under a loss for numeric responses.
LABELS_PREDICTION_BOUND = 1.25

#: Largest number of columns of a model; the cost of a score grows with its cube.
LARGEST_MODEL = 2000


def intercept_constant(k: int, labels: bool) -> int:
    """The value of the intercept's column in every row, in steps of the quantizer.

    In the box, the value k / 9 (at most 1) gives the intercept a tenth of the prediction bound.
    Labels are not centred, and where one label is rare the intercept needs more;
    docs/developers.md has the measurements.
    """
    return STEPS if labels else min(STEPS, round(STEPS * k / 9))


@dataclass(frozen=True)
class Problem:
    """A checked subset selection problem; build it with :meth:`create`."""

    p: int
    k: int
    constraint: ConstraintName
    radius: float
    ridge: float
    neighbours: Neighbours
    always_include: tuple[int, ...]
    loss: str
    #: For the Huber loss: residuals beyond it count linearly. None for other losses.
    threshold: float | None = None
    #: The layout of the columns; None if each of the p choices is one column, without intercept.
    laid_out: Layout | None = None

    @classmethod
    def create(
        cls,
        p: int,
        k: int,
        *,
        intercept: bool,
        constraint: str = "box",
        prediction_bound: float | None = None,
        radius: float | None = None,
        ridge: float = 0.0,
        neighbours: str = "replace-one",
        always_include: Iterable[int] = (),
        loss: str = "least-squares",
        threshold: float | None = None,
        labels: bool = False,
        layout: Layout | None = None,
    ) -> Problem:
        """Check the arguments and derive the radius.

        ``prediction_bound`` and ``radius`` determine each other; give at most one. ``layout``
        describes the p choices, without an intercept; by default each is one column. ``labels``
        says that the response has two labels, whatever the loss.
        """
        from .losses import LOSSES

        p, k = check_int(p, "p"), _whole_k(k)
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
                f"always_include lists {len(always)} variables, more than k = {k}: they count in "
                "k, and in max_k"
            )
        if not isinstance(intercept, bool):
            raise ArgumentError("intercept must be True or False")
        parts = Layout(p) if layout is None else layout
        columns = replace(parts, constant=intercept_constant(k, labels) if intercept else 0)
        _check_columns(columns, k, always)
        if prediction_bound is not None and radius is not None:
            raise ArgumentError(
                "give prediction_bound or radius, not both: each determines the other"
            )
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
        """Return the same problem with another prediction bound."""
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
        """B, rounded up: a bound on every prediction of an allowed model."""
        return self.coefficients.prediction_bound(self.width, self.layout.intercept_value)

    @property
    def width(self) -> int:
        """W: the largest width of k choices."""
        return self.layout.width(self.k, self.always_include)

    @property
    def columns(self) -> int:
        """The number of columns that models are made of, including the intercept's."""
        return self.layout.columns

    @property
    def most_columns(self) -> int:
        """The largest number of columns of one model."""
        return self.layout.most_columns(self.k, self.always_include)

    @property
    def free(self) -> tuple[int, ...]:
        """The variables that are not part of every support, in order."""
        always = set(self.always_include)
        return tuple(j for j in range(self.p) if j not in always)

    @property
    def picks(self) -> int:
        """The number of free variables in a support."""
        return self.k - len(self.always_include)

    def support(self, picked: Iterable[int]) -> tuple[int, ...]:
        """The sorted support of these free variables and those that are always included."""
        return tuple(sorted([*self.always_include, *picked]))

    @property
    def supports(self) -> int:
        """The number of supports to choose from."""
        return math.comb(self.p - len(self.always_include), self.picks)

    @property
    def n_is_public(self) -> bool:
        """Whether neighbouring tables have the same number of rows, so that it may be published."""
        return self.neighbours == "replace-one"


def _whole_k(k: Any) -> int:
    try:
        return check_int(k, "k")
    except ArgumentError as error:
        if isinstance(k, float) or (isinstance(k, str) and k.strip().isdecimal()):
            raise
        raise ArgumentError(
            f"{error}. To have it chosen privately, give select or fit k='auto', or dpsubset.tune "
            "a grid of several"
        ) from None


def _threshold(value: Any, loss: str, has_one: bool) -> float | None:
    """The threshold as the float that kernels and range both use; None without one."""
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
    # A prediction bound above 1e100 is refused in any case; its square would overflow.
    return _check_radius(
        CONSTRAINTS[constraint].radius_for(min(prediction_bound, 1e100), width, intercept_value)
    )


def _check_radius(radius: float) -> float:
    """Refuse radii at which the float64 kernels could overflow."""
    if not 1e-9 <= radius <= 1e9:
        raise ArgumentError(
            "radius (prediction_bound / k for the box) must lie between 1e-9 and 1e9"
        )
    return radius


def _check_columns(layout: Layout, k: int, always: tuple[int, ...]) -> None:
    if layout.columns > LARGEST_P + 1:
        raise ArgumentError(f"there may be at most {LARGEST_P} columns, levels counted one by one")
    # For choices of several columns only: k single columns may be as many as there are.
    if layout.grouped and layout.most_columns(k, always) > LARGEST_MODEL:
        raise ArgumentError(
            f"a model of k = {k} choices could have {layout.most_columns(k, always)} columns, more "
            f"than {LARGEST_MODEL}: take a smaller k, or give the groups fewer levels or parts"
        )
