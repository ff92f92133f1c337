"""ProblemSpec: a problem on a described table. Public, and settled before a value is read.

One list of arguments for all that ask something of a table, private or not: `ProblemOptions` for
editors and type checkers, `state` with the defaults. `takes` shows the list in the signatures of
the functions that pass it on.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar

from ..base.errors import ArgumentError, TableError
from ..base.renamed import SELECTION, current_names
from ..constraints import Name as Constraint
from ..data.moments import Moments
from ..data.readers import read_schema
from ..objective.losses import CLASSIFICATION, LOSSES, REGRESSION
from ..objective.losses import Name as Loss
from ..objective.problem import Problem
from ..privacy.relations import Neighbours
from ..schema.encoding import Design
from ..schema.schema import Bounds, Schema, declared_width
from ..search.engine import Limits

NO_WIDTH = (
    "a list of records does not declare how many columns it has: pass a NumPy array, or bounds "
    "with one entry a column, or a schema"
)


class ProblemOptions(TypedDict, total=False):
    """What may be said of a problem beside k; see :func:`dpsubset.select`."""

    y: Any
    bounds: Bounds | None
    loss: Loss | None
    threshold: float | None
    constraint: Constraint
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
    """A problem, the description of the table it is about, and how long a search may take."""

    schema: Schema
    design: Design
    problem: Problem
    limits: Limits
    #: Whether somebody said how large predictions may be.
    sized: bool

    @property
    def records_for(self) -> str | None:
        """Who needs the records themselves; None if moments are enough."""
        loss = self.problem.loss
        return f"the {loss} loss" if LOSSES[loss].needs_records else None


def build_problem_spec(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    k: int,
    y: Any = None,
    bounds: Bounds | None = None,
    loss: Loss | None = None,
    threshold: float | None = None,
    constraint: Constraint = "box",
    prediction_bound: float | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
    neighbours: Neighbours = "replace-one",
    always_include: Iterable[int | str] = (),
    node_limit: int | None = None,
    time_limit: float | None = None,
) -> ProblemSpec:
    """Check the arguments of a problem and its schema. Of the data only form and names are seen."""
    limits = Limits.of(node_limit, time_limit)
    if isinstance(always_include, str):
        always_include = (always_include,)
    if not isinstance(always_include, Iterable) or getattr(always_include, "ndim", 1) != 1:
        raise ArgumentError("always_include must list names or positions of columns")
    settled = settle_schema(data, y, schema, bounds)
    design = Design.of(settled)
    always = {*design.always, *(design.position(j, "always_include") for j in always_include)}
    labels = settled.response.labels is not None
    usual = CLASSIFICATION if labels else REGRESSION
    problem = Problem.create(
        len(design.choices), k, always_include=always, loss=usual if loss is None else loss,
        threshold=threshold, intercept=intercept, labels=labels, layout=design.layout,
        constraint=constraint, prediction_bound=prediction_bound, radius=radius, ridge=ridge,
        neighbours=neighbours,
    )  # fmt: skip
    sized = prediction_bound is not None or radius is not None
    return ProblemSpec(settled, design, problem, limits, sized)


def declared_columns(schema: Any, bounds: Any) -> int | None:
    """How many columns X has, if schema or bounds say so."""
    if isinstance(schema, (str, Path)):
        return declared_width(schema)
    if isinstance(schema, Schema):
        return len(schema.features)
    return bounds.width if isinstance(bounds, Bounds) else None


P = ParamSpec("P")
R = TypeVar("R")


def with_keywords_of(*listed: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Show the keyword arguments of ``listed`` in place of the ``**`` of a function.

    Calls are compared with the whole list, so that errors name the function that was called.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = inspect.signature(function)
        shown = {name: p for name, p in own.parameters.items() if p.kind is not p.VAR_KEYWORD}
        for other in listed:
            for name, parameter in inspect.signature(other).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    shown.setdefault(name, parameter)
        # Those that must be given first, as in a signature that is written out.
        ordered = sorted(shown.values(), key=lambda p: (p.kind, p.kind is p.KEYWORD_ONLY and
                                                        p.default is not p.empty))  # fmt: skip
        signature = own.replace(parameters=ordered)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            kwargs = current_names(kwargs, SELECTION, function.__name__)  # type: ignore[assignment]
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
            return function(*args, **kwargs)

        called.__signature__ = signature  # type: ignore[attr-defined]
        return called

    return decorate


def settle_schema(
    data: Any, y: Any, schema: Schema | str | Path | None, bounds: Bounds | None
) -> Schema:
    """The schema of a table, from whichever of the arguments says it. No value is seen."""
    from ..data.readers.arrays import check_held

    check_held(data, "X", Moments)
    check_held(y, "y")
    if isinstance(y, (str, bytes)):
        raise ArgumentError(
            "y must hold the values of the response. Where they are a column of the table, leave y "
            "out: the schema names it"
        )
    if isinstance(schema, (str, Path)):
        schema = read_schema(schema, data, y)
    if schema is not None and not isinstance(schema, Schema):
        raise ArgumentError("schema must be a dpsubset.Schema or the path of a bounds file")
    if bounds is None:
        if schema is None:
            raise ArgumentError("pass a schema (or, for arrays, bounds): bounds are public "
                                "knowledge and must not come from the data")  # fmt: skip
        return schema
    if schema is not None:
        raise ArgumentError("pass a schema or bounds, not both")
    if not isinstance(bounds, Bounds):
        raise ArgumentError("bounds must be dpsubset.Bounds(x=..., y=...)")
    if data is None or isinstance(data, (str, Path, Moments)):
        raise ArgumentError("bounds go with arrays and frames; a file or moments need a schema")
    return _schema_of_bounds(data, y, bounds)


def _schema_of_bounds(data: Any, y: Any, bounds: Bounds) -> Schema:
    from ..data.readers.arrays import array_of, is_list
    from ..data.readers.frames import is_frame, names_of_frame

    if is_frame(data):
        if y is None:
            raise ArgumentError("bounds go with X and y=; a frame that holds its response as a "
                                "column needs a schema")  # fmt: skip
        names, response = names_of_frame(data), "y"
        while response in names:
            response += "_"
        return bounds.schema(names, response)
    if is_list(data):
        # Its records have lengths of their own, and one of them could change what they tell.
        width = bounds.width
        if width is None:
            raise ArgumentError(NO_WIDTH)
    else:
        width = array_of(data).shape[1]
    if not width:
        raise TableError("X has no columns: there is nothing to select from")
    return bounds.schema([f"x{j}" for j in range(width)])
