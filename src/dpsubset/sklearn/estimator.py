"""PrivateEstimator: what selector, regressor and classifier share.

Unlike scikit-learn's own validation, nothing here fails because of a cell or quotes one: X and y
are quantized as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar, Unpack

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..api.problem_spec import NO_WIDTH, build_problem_spec, declared_columns
from ..api.request import SelectionOptions, build_request
from ..api.size import Size
from ..base.errors import ArgumentError, TableError
from ..base.renamed import SELECTION, current_names
from ..base.unknown_arguments import check_keywords
from ..data.readers import read_schema
from ..data.readers.arrays import array_of, is_list
from ..data.readers.frames import as_table, is_frame, names_of_frame
from ..ledger.spending import LedgerLike, in_force
from ..models.rule import FitRule
from ..release.release import Release
from ..schema.encoding import Design
from ..schema.schema import Schema, SchemaLike

T = TypeVar("T", bound=type)


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``fit`` makes one private release."""

    def __init__(
        self,
        k: Size = None,
        epsilon: float | Fraction | Decimal | None = None,
        *,
        schema: SchemaLike | None = None,
        rule: FitRule | None = None,
        ledger: LedgerLike = None,
        **options: Unpack[SelectionOptions],
    ) -> None:
        raise NotImplementedError("decorate the class with with_parameters")

    def release_arguments(self) -> dict[str, Any]:
        """Return the arguments of the release: each parameter is an argument of the same name."""
        return dict(self.get_params(deep=False))

    def __sklearn_clone__(self) -> Any:
        """Copy the estimator; refuse if a search starts whose fits exceed the ledger's limit."""
        if in_force(self.ledger):
            from .budget import check_search_budget

            check_search_budget(self)
        return super().__sklearn_clone__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # The schema says how missing and unreadable cells are read.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.non_deterministic = self.seed is None
        return tags


def with_parameters(*, without: str) -> Callable[[T], T]:
    """Give an estimator a constructor with the parameters of `PrivateEstimator` but one.

    The options of a selection and their defaults are those of `build_request` and
    `build_problem_spec`. The constructor stores all parameters unchanged. Its signature lists them,
    which is what ``get_params``, ``set_params`` and ``clone`` of scikit-learn look at.
    """
    own = inspect.signature(PrivateEstimator.__init__)
    shown = {name: p for name, p in own.parameters.items() if p.kind is not p.VAR_KEYWORD}
    for function in (build_request, build_problem_spec):
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY and name not in ("y", without):
                shown.setdefault(name, parameter)
    shown.pop(without, None)
    signature = own.replace(parameters=list(shown.values()))

    def decorate(cls: T) -> T:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            name = type(self).__name__
            kwargs = current_names(kwargs, SELECTION, name)
            check_keywords(kwargs, signature.parameters, name)
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{name}(): {error}") from None
            bound.apply_defaults()
            bound.arguments.pop("self")
            vars(self).update(bound.arguments)

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        return cls

    return decorate


def check_arguments(estimator: Any, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
    """Return X with the declared names, and all other arguments of the release.

    The records of a list are not looked at: it has the columns that are declared.
    """
    if y is None:
        # scikit-learn's wording, which its checks and users look for.
        raise ArgumentError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    missing = [name for name in ("k", "epsilon") if getattr(estimator, name) is None]
    if estimator.max_k is not None and "k" in missing:
        missing.remove("k")  # as k="auto"
    if estimator.bounds is None and estimator.schema is None:
        missing.append("bounds (or a schema)")
    if missing:
        raise ArgumentError(
            f"{type(estimator).__name__} needs {' and '.join(missing)}: the number of columns to "
            "select (or 'auto'), the privacy budget and the public bounds of X and y have no "
            "defaults"
        )
    X = as_table(X)
    width = declared_columns(estimator.schema, estimator.bounds)
    if width is None and is_list(X):
        if estimator.schema is not None:
            read_schema(estimator.schema, X, y)  # raises: its patterns need names
        raise ArgumentError(NO_WIDTH)
    of_form = np.empty((0, width or 0)) if is_list(X) else frame_or_array(X)
    if of_form.shape[1] == 0:
        public = estimator.neighbours == "replace-one"
        rows = of_form.shape[0] if public else ""  # private otherwise
        raise TableError(
            f"X has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required."
        )
    validate_data(estimator, of_form, skip_check_array=True)
    arguments = estimator.release_arguments()
    if estimator.schema is not None:
        arguments["schema"] = read_schema(estimator.schema, X, y)
    return with_declared_names(X, arguments["schema"]), arguments


def support_mask(estimator: Any, release: Release, table: Any) -> NDArray[np.bool_]:
    """Which columns of the table a release selects; of a group all columns."""
    positions = Design.of(release.schema).features_of(release.support or ())
    if is_frame(table):
        # By name: the schema may have another order, and fewer columns.
        names, declared = names_of_frame(table), release.schema.feature_names
        positions = [names.index(declared[j]) for j in positions]
    mask = np.zeros(estimator.n_features_in_, dtype=bool)
    mask[positions] = True
    return mask


def frame_or_array(X: Any) -> Any:
    """Return a frame as it is, anything else as a two-dimensional array or sparse matrix."""
    if not is_frame(X):
        return array_of(X)
    names_of_frame(X)  # refuses a lazy frame
    return X


def with_declared_names(X: Any, schema: Schema | None) -> Any:
    """Return a frame with the names that its schema declares.

    A ColumnTransformer writes "num__age" for age. Where a declared name is missing and exactly one
    column has it after such a prefix, that column is renamed.
    """
    if schema is None or not is_frame(X):
        return X
    names = names_of_frame(X)
    declared = schema.feature_names
    found: dict[str, str] = {}
    for name in (name for name in declared if name not in names):
        prefixed = [other for other in names if other.endswith(f"__{name}")]
        # In the order of the schema: a column that ends in two names is the first of them.
        if len(prefixed) == 1 and prefixed[0] not in (*declared, *found):
            found[prefixed[0]] = name
    return nw.from_native(X).rename(found).to_native() if found else X


def frame_by_name(estimator: Any, X: Any) -> Any:
    """Return a frame with declared names, if the estimator was fitted on a table without names.

    Returns None for anything else: an array or a list has the order of the schema, and a frame may
    have another one.
    """
    if estimator.schema is None or hasattr(estimator, "feature_names_in_") or not is_frame(X):
        return None
    schema = estimator.release_.schema
    named = with_declared_names(X, schema)
    return named if set(names_of_frame(named)) & set(schema.feature_names) else None


def in_declared_order(frame: Any, schema: Schema) -> Any:
    """Return the columns of the features of a schema, in its order."""
    names = names_of_frame(frame)
    missing = [name for name in schema.feature_names if name not in names]
    if missing:
        shown = ", ".join(map(repr, missing[:10])) + (", ..." if missing[10:] else "")
        raise TableError(f"the data frame has no {shown}, which the schema declares")
    return nw.from_native(frame).select(schema.feature_names).to_native()
