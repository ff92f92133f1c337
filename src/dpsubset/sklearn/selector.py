"""scikit-learn: a selector that keeps the k columns which a private release names.

Thin over :func:`dpsubset.select`. Unlike scikit-learn's own validation, nothing here fails because
of a cell or quotes one: X and y go through the door as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..api.problem_spec import NO_WIDTH, declared_columns
from ..api.select import select
from ..base.callers import check_callers
from ..base.errors import ArgumentError, TableError
from ..base.renamed import SELECTION, renamed_arguments
from ..data.readers import read_schema
from ..data.readers.arrays import array_of, by_rows, is_list
from ..data.readers.cells import quietly
from ..data.readers.features import rectangle
from ..data.readers.frames import as_table, is_frame, names_of_frame
from ..ledger.spending import LedgerLike, in_force
from ..mechanisms import Mechanism
from ..privacy.response_range import ResponseRange
from ..release.release import Release
from ..schema.encoding import Design
from ..schema.schema import Bounds, Schema


@renamed_arguments(**SELECTION)
class PrivateSubsetSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select k columns under differential privacy; pure epsilon by default.

    Every ``fit`` is a release and costs epsilon; the costs of several fits on the same records add
    up. ``GridSearchCV`` with 3 values and 5 folds fits 16 times; with a ledger it is refused before
    the first fit if there is no room for all. Paying for the fits does not make a search or a
    cross-validation private: its scores, and so ``best_params_``, come from held-out rows without
    noise, and a `NotPrivateWarning` says so. :class:`dpsubset.PrivateSearch` is private. What
    ``transform`` returns are columns of the table itself: only *which* columns they are is private.

    Place it *first* in a pipeline, on the raw frame: it reads text columns with declared levels,
    dates and codes for missing cells, and scales by the declared bounds. A step before it that
    learns from the data (StandardScaler, OneHotEncoder, an imputer) makes the guarantee false,
    because one record then changes what is read of all others; the program cannot see that. Steps
    that learn nothing (FunctionTransformer, a ColumnTransformer that passes columns on) do no harm,
    and neither do any steps after it.

    Parameters
    ----------
    k : int
        How many columns to select. Has to be given.
    epsilon : number
        The privacy budget of one fit. Has to be given.
    bounds : Bounds, optional
        Public bounds of X and y, or of X and the labels of y if that has two classes. Either this
        or ``schema`` has to be given.
    schema : Schema or path of a bounds file, optional
        Public description of the columns. A frame's columns are found by name, and those that the
        schema does not declare are never selected; an array has the schema's features in order.
    delta, mechanism, options, allow_unproven, loss, threshold, constraint, prediction_bound, \
radius, ridge, intercept, neighbours, sensitivity, response_range, check_readable, \
always_include, seed, node_limit, time_limit, ledger
        As in :func:`dpsubset.select`.

    Attributes
    ----------
    release_ : Release
        The selected names, their guarantee and the privacy statement.
    support_ : array of bool, shape (n_features_in_,)
        Which columns of X were selected.
    n_features_in_ : int
        Number of columns of X in ``fit``.
    feature_names_in_ : array of str
        Their names, if X had names.
    """

    def __init__(
        self,
        k: int | None = None,
        epsilon: float | Fraction | Decimal | None = None,
        *,
        bounds: Bounds | None = None,
        schema: Schema | str | Path | None = None,
        delta: float | Fraction | Decimal = 0,
        mechanism: str | Mechanism = "permute-and-flip",
        options: Mapping[str, Any] | None = None,
        allow_unproven: bool = False,
        loss: str | None = None,
        threshold: float | None = None,
        constraint: str = "box",
        prediction_bound: float | None = None,
        radius: float | None = None,
        ridge: float = 0.0,
        intercept: bool = True,
        neighbours: str = "replace-one",
        sensitivity: str = "sharp",
        response_range: str | ResponseRange | None = None,
        check_readable: bool | float | Fraction | Decimal | None = None,
        always_include: Iterable[int | str] = (),
        seed: int | None = None,
        node_limit: int | None = None,
        time_limit: float | None = None,
        ledger: LedgerLike = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.bounds = bounds
        self.schema = schema
        self.delta = delta
        self.mechanism = mechanism
        self.options = options
        self.allow_unproven = allow_unproven
        self.loss = loss
        self.threshold = threshold
        self.constraint = constraint
        self.prediction_bound = prediction_bound
        self.radius = radius
        self.ridge = ridge
        self.intercept = intercept
        self.neighbours = neighbours
        self.sensitivity = sensitivity
        self.response_range = response_range
        self.check_readable = check_readable
        self.always_include = always_include
        self.seed = seed
        self.node_limit = node_limit
        self.time_limit = time_limit
        self.ledger = ledger

    def __sklearn_clone__(self) -> Any:
        """A copy, for a search if there is one: whether its ledger has room for all fits."""
        if in_force(self.ledger):
            from .budget import refuse_early

            refuse_early(self)
        return super().__sklearn_clone__()

    def fit(self, X: Any, y: Any = None) -> PrivateSubsetSelector:
        """Make one release from X and y. Costs epsilon.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            The columns to choose from. Their number is public. A list of records does not declare
            it: it needs bounds with one entry a column, or a schema.
        y : array of shape (n,)
            The response: numbers, or cells of any kind where labels were declared.

        Returns
        -------
        PrivateSubsetSelector
            This object.
        """
        check_callers()
        named, asked = checked(self, X, y)
        release = select(named, y=y, **asked)
        self.release_, self.support_ = release, mask(self, release, named)
        return self

    def transform(self, X: Any) -> Any:
        """Keep the selected columns of X. What it returns are cells, so nothing here is private."""
        check_is_fitted(self)
        X = as_table(X)
        named = by_name(self, X)
        if named is not None:
            X = in_declared_order(named, self.release_.schema)
        X = table(rectangle(X, self.n_features_in_))
        validate_data(self, X, reset=False, skip_check_array=True)
        with suppress(Exception), quietly():
            # scikit-learn refuses an array without rows; here it is an ordinary one.
            X = by_rows(X)
            return super().transform(X) if X.shape[0] else self._transform(np.asarray(X))
        # scikit-learn's message would quote cells.
        raise TableError("X must be a data frame or an array of real numbers")

    def inverse_transform(self, X: Any) -> Any:
        """Put the selected columns back in their places, with zeros in all others."""
        check_is_fitted(self)
        X = rectangle(X, int(self.support_.sum()))
        X = by_rows(array_of(np.asarray(X) if is_frame(X) else X))
        if X.shape[1] != self.support_.sum():
            raise TableError("X has a different shape than during fitting.")
        shape = (X.shape[0], self.support_.size)
        if sparse.issparse(X):
            places = np.flatnonzero(self.support_)[X.indices]
            return type(X)((X.data, places, X.indptr), shape=shape)
        full = np.zeros(shape, dtype=X.dtype)
        full[:, self.support_] = X
        return full

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask: NDArray[np.bool_] = self.support_
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Missing and unreadable cells go where the schema's rule says.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.non_deterministic = self.seed is None
        return tags


def checked(estimator: Any, X: Any, y: Any) -> tuple[Any, dict[str, Any]]:
    """X with the names that are declared, and everything else that was asked for.

    Of a list, nothing is looked at: it has the columns that are declared.
    """
    if y is None:
        # scikit-learn's own words, which its checks and users look for.
        raise ArgumentError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    missing = [name for name in ("k", "epsilon") if getattr(estimator, name) is None]
    if estimator.bounds is None and estimator.schema is None:
        missing.append("bounds (or a schema)")
    if missing:
        raise ArgumentError(
            f"{type(estimator).__name__} needs {' and '.join(missing)}: how many columns to "
            "select, what it may cost, and the public bounds of X and y have no defaults"
        )
    X = as_table(X)
    width = declared_columns(estimator.schema, estimator.bounds)
    if width is None and is_list(X):
        if isinstance(estimator.schema, (str, Path)):
            read_schema(estimator.schema, X, y)  # its patterns need names: the error says so
        raise ArgumentError(NO_WIDTH)
    of_form = np.empty((0, width or 0)) if is_list(X) else table(X)
    if of_form.shape[1] == 0:
        public = estimator.neighbours == "replace-one"
        rows = of_form.shape[0] if public else ""  # private otherwise
        raise TableError(
            f"X has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required."
        )
    validate_data(estimator, of_form, skip_check_array=True)
    # Everything but the data is a parameter of the same name.
    asked = estimator.get_params(deep=False)
    if isinstance(estimator.schema, (str, Path)):
        asked["schema"] = read_schema(estimator.schema, X, y)
    return as_declared(X, asked["schema"]), asked


def mask(estimator: Any, release: Release, named: Any) -> NDArray[np.bool_]:
    """Which columns of X a release names."""
    # A group is all of its columns.
    positions = Design.of(release.schema).features_of(release.support or ())
    if is_frame(named):
        # By name: the schema may order the columns in another way, or leave some out.
        names, declared = names_of_frame(named), release.schema.feature_names
        positions = [names.index(declared[j]) for j in positions]
    mask = np.zeros(estimator.n_features_in_, dtype=bool)
    mask[positions] = True
    return mask


def table(X: Any) -> Any:
    """A frame as it is, anything else as a two-dimensional array or sparse matrix."""
    if not is_frame(X):
        return array_of(X)
    names_of_frame(X)  # refuses a lazy frame
    return X


def as_declared(X: Any, schema: Schema | None) -> Any:
    """A frame with the names that its schema declares.

    A ColumnTransformer writes "num__age" for age. Where a declared name is missing and one column
    alone ends in it so, that column is meant.
    """
    if schema is None or not is_frame(X):
        return X
    names = names_of_frame(X)
    declared = schema.feature_names
    found: dict[str, str] = {}
    for name in (name for name in declared if name not in names):
        alike = [other for other in names if other.endswith(f"__{name}")]
        # In the order of the schema: a column that ends in two names is the first of them.
        if len(alike) == 1 and alike[0] not in (*declared, *found):
            found[alike[0]] = name
    return nw.from_native(X).rename(found).to_native() if found else X


def by_name(estimator: Any, X: Any) -> Any:
    """A frame with names that are declared, for an estimator that was fitted on a table without
    names; None for anything else.

    An array or a list is read in the order of the schema. That of a frame may be another.
    """
    if estimator.schema is None or hasattr(estimator, "feature_names_in_") or not is_frame(X):
        return None
    schema = estimator.release_.schema
    named = as_declared(X, schema)
    return named if set(names_of_frame(named)) & set(schema.feature_names) else None


def in_declared_order(frame: Any, schema: Schema) -> Any:
    """The columns of a schema's features, in its order."""
    names = names_of_frame(frame)
    lacking = [name for name in schema.feature_names if name not in names]
    if lacking:
        shown = ", ".join(map(repr, lacking[:10])) + (", ..." if lacking[10:] else "")
        raise TableError(f"the data frame has no {shown}, which the schema declares")
    return nw.from_native(frame).select(schema.feature_names).to_native()
