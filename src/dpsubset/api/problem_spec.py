"""The options that define a problem, and the problem and schema that they result in. Public.

The signature of `build_problem_spec` is the only list of these options with their defaults.
`ProblemOptions` is the same list for editors and type checkers. `with_keywords_of` shows the list
in the signatures of the functions that pass it on.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from ..base.errors import ArgumentError, TableError
from ..base.renamed import SELECTION, current_names
from ..base.unknown_arguments import check_keywords
from ..constraints import ConstraintName
from ..data.moments import Moments
from ..data.readers import read_schema
from ..objective.losses import CLASSIFICATION, LOSSES, REGRESSION, LossName
from ..objective.problem import Problem
from ..objective.sensitivity import Sensitivity
from ..privacy.relations import Neighbours
from ..schema.encoding import Design
from ..schema.schema import BOUNDS_BY_NAME, Bounds, Schema, SchemaLike, declared_width
from ..search.engine import Limits
from .sensitive_table import SensitiveTable

#: How far one row moves the scores.
Rule = Literal["sharp", "published", "lemma-2"]

NO_WIDTH = (
    "a list of records does not declare how many columns it has: pass a NumPy array, or bounds "
    "with one entry a column, or a schema"
)


class ProblemOptions(TypedDict, total=False):
    """The options of a problem other than k and the data; see :func:`dpsubset.select`."""

    bounds: Bounds | None
    loss: LossName | None
    threshold: float | None
    constraint: ConstraintName
    prediction_bound: float | None
    radius: float | None
    ridge: float
    intercept: bool
    neighbours: Neighbours
    always_include: Iterable[int | str]
    node_limit: int | None
    time_limit: float | None


@dataclass(frozen=True)
class ProblemSpec:
    """A problem, the schema of its table, and how long a search may take."""

    schema: Schema
    design: Design
    problem: Problem
    limits: Limits
    #: Whether the caller gave a prediction bound; otherwise it follows from the response range.
    bound_is_given: bool
    #: How the sensitivity of the scores is computed.
    rule: Rule = "sharp"

    @property
    def records_for(self) -> str | None:
        """What needs the records, for error messages; None if moments are enough."""
        loss = self.problem.loss
        return f"the {loss} loss" if LOSSES[loss].needs_records else None

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How far one row moves the scores."""
        return Sensitivity.of(self.problem, self.rule)

    def with_default_bound(self, prediction_bound: float) -> ProblemSpec:
        """Return the specification with this prediction bound if the caller gave none."""
        if self.bound_is_given:
            return self
        problem = self.problem.with_prediction_bound(prediction_bound)
        return self if problem == self.problem else replace(self, problem=problem)

    def open(self, data: Any, y: Any = None, records_for: str | None = None) -> SensitiveTable:
        """Open the table and check names and types of its columns. Reads no value."""
        needs = self.records_for if records_for is None else records_for
        return SensitiveTable(data, self.schema, y, records_for=needs)


def build_problem_spec(
    data: Any,
    schema: SchemaLike | None = None,
    *,
    k: int,
    y: Any = None,
    bounds: Bounds | None = None,
    loss: LossName | None = None,
    threshold: float | None = None,
    constraint: ConstraintName = "box",
    prediction_bound: float | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
    neighbours: Neighbours = "replace-one",
    always_include: Iterable[int | str] = (),
    node_limit: int | None = None,
    time_limit: float | None = None,
) -> ProblemSpec:
    """Check the options of a problem and its schema. Of the data, only names and types are used."""
    limits = Limits.of(node_limit, time_limit)
    if isinstance(always_include, str):
        always_include = (always_include,)
    if not isinstance(always_include, Iterable) or getattr(always_include, "ndim", 1) != 1:
        raise ArgumentError("always_include must list names or positions of columns")
    declared = resolve_schema(data, y, schema, bounds)
    design = Design.of(declared)
    always = {*design.always, *(design.position(j, "always_include") for j in always_include)}
    labels = declared.response.labels is not None
    default_loss = CLASSIFICATION if labels else REGRESSION
    problem = Problem.create(
        len(design.choices), k, always_include=always, loss=default_loss if loss is None else loss,
        threshold=threshold, intercept=intercept, labels=labels, layout=design.layout,
        constraint=constraint, prediction_bound=prediction_bound, radius=radius, ridge=ridge,
        neighbours=neighbours,
    )  # fmt: skip
    bound_is_given = prediction_bound is not None or radius is not None
    return ProblemSpec(declared, design, problem, limits, bound_is_given)


def declared_columns(schema: Any, bounds: Any) -> int | None:
    """Return the number of columns of X, if schema or bounds state it."""
    if isinstance(schema, (str, Path, Mapping)):
        return declared_width(schema)
    if isinstance(schema, Schema):
        return len(schema.features)
    return bounds.width if isinstance(bounds, Bounds) else None


P = ParamSpec("P")
R = TypeVar("R")


def with_keywords_of(*listed: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Replace a function's ``**`` in its signature by the keyword arguments of the functions
    ``listed``.

    Each call is checked against the whole list. Errors therefore name the function that was called,
    and an unknown argument is reported before a missing one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = inspect.signature(function)
        shown = {name: p for name, p in own.parameters.items() if p.kind is not p.VAR_KEYWORD}
        for other in listed:
            for name, parameter in inspect.signature(other).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    shown.setdefault(name, parameter)
        # Required arguments come first.
        ordered = sorted(shown.values(), key=lambda p: (p.kind, p.kind is p.KEYWORD_ONLY and
                                                        p.default is not p.empty))  # fmt: skip
        signature = own.replace(parameters=ordered)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            kwargs = current_names(kwargs, SELECTION, function.__name__)  # type: ignore[assignment]
            check_keywords(kwargs, shown, function.__name__)
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                hint = ": pass all but the first ones by name, as in k=..., epsilon=..."
                many = "too many positional" in str(error)
                raise TypeError(f"{function.__name__}(): {error}{hint if many else ''}") from None
            return function(*args, **kwargs)

        called.__signature__ = signature  # type: ignore[attr-defined]
        return called

    return decorate


def resolve_schema(data: Any, y: Any, schema: SchemaLike | None, bounds: Bounds | None) -> Schema:
    """Return the schema of a table, from a schema or from bounds. Reads no value."""
    from ..data.readers.arrays import check_held
    from ..data.readers.parts import has_parts

    check_held(data, "X", Moments)
    check_held(y, "y")
    if isinstance(y, (str, bytes)):
        raise ArgumentError(
            "y must hold the values of the response. Where they are a column of the table, leave y "
            "out: the schema names it"
        )
    declared = None if schema is None else read_schema(schema, data, y)
    if bounds is None:
        if declared is None:
            raise ArgumentError("pass a schema (or, for arrays, bounds): bounds are public "
                                "knowledge and must not come from the data")  # fmt: skip
        return declared
    if declared is not None:
        raise ArgumentError("pass a schema or bounds, not both")
    if not isinstance(bounds, Bounds):
        raise ArgumentError(f"bounds must be dpsubset.Bounds(x=..., y=...). {BOUNDS_BY_NAME}")
    if data is None or isinstance(data, Moments) or has_parts(data, y):
        raise ArgumentError("bounds go with arrays and frames; files or moments need a schema")
    return _schema_of_bounds(data, y, bounds)


def _schema_of_bounds(data: Any, y: Any, bounds: Bounds) -> Schema:
    from ..data.readers.arrays import array_of, is_list, of_library
    from ..data.readers.frames import is_frame, names_of_frame

    if is_frame(data):
        if y is None:
            raise ArgumentError("bounds go with X and y=; a frame that holds its response as a "
                                "column needs a schema")  # fmt: skip
        names, response = names_of_frame(data), "y"
        if of_library(y) and isinstance(name := getattr(y, "name", None), str) and name in names:
            raise ArgumentError(
                "the data frame has a column of the name of y, which would be selected to explain "
                "itself. Leave it out of X, or rename y"
            )
        while response in names:
            response += "_"
        return bounds.schema(names, response)
    if is_list(data):
        # The length of a record is private: the number of columns has to be declared.
        width = bounds.width
        if width is None:
            raise ArgumentError(NO_WIDTH)
    else:
        width = array_of(data).shape[1]
    if not width:
        raise TableError("X has no columns: there is nothing to select from")
    return bounds.schema([f"x{j}" for j in range(width)])
