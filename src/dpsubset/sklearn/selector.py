"""PrivateSubsetSelector: a scikit-learn selector that keeps the columns of a private release."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..api.select import select
from ..base.errors import TableError
from ..data.readers.arrays import array_of, by_rows
from ..data.readers.cells import quietly
from ..data.readers.features import rectangle
from ..data.readers.frames import as_table, is_frame
from .caller_checks import check_callers
from .estimator import (
    PrivateEstimator,
    check_arguments,
    frame_by_name,
    frame_or_array,
    in_declared_order,
    support_mask,
    with_parameters,
)


@with_parameters(without="rule")
class PrivateSubsetSelector(SelectorMixin, PrivateEstimator):  # type: ignore[misc]
    """Select k columns under differential privacy; pure epsilon by default.

    Every ``fit`` is a release and costs epsilon; the costs of several fits on the same records add
    up. ``GridSearchCV`` with 3 values and 5 folds fits 16 times; with a ledger it is refused before
    the first fit if the budget does not cover all of them. Paying for the fits does not make a
    search or a cross-validation private: its scores, and so ``best_params_``, come from held-out
    rows without noise, and a `NotPrivateWarning` says so. :class:`dpsubset.PrivateSearch` is
    private. ``transform`` returns columns of the table itself: only *which* columns is private.

    Place it *first* in a pipeline, on the raw frame. It reads text columns with declared levels,
    dates and codes for missing cells, and scales by the declared bounds. A step before it that
    learns from the data (StandardScaler, OneHotEncoder, an imputer) makes the guarantee false,
    because one record then changes how all others are read; the program cannot detect that. Steps
    that learn nothing (FunctionTransformer, a ColumnTransformer that passes columns on) are safe,
    and so are all steps after it.

    Parameters
    ----------
    k : int or "auto"
        Number of columns to select. Required. With "auto" it is chosen privately, up to ``max_k``.
    epsilon : number
        Privacy budget of one fit. Required.
    bounds : Bounds, optional
        Public bounds of X and y, or of X and the labels of y if that has two classes. Either this
        or ``schema`` is required.
    schema : Schema, path of a bounds file or dict of the same form, optional
        Public description of the columns. A frame's columns are found by name, and those that the
        schema does not declare are never selected; an array has the schema's features in order.
    max_k, delta, mechanism, options, allow_unproven, loss, threshold, constraint, \
prediction_bound, radius, ridge, intercept, neighbours, sensitivity, response_range, \
check_readable, always_include, seed, node_limit, time_limit, ledger
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

    Examples
    --------
    >>> import numpy as np
    >>> import dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 4))
    >>> bounds = dps.Bounds(x=1, y=1)
    >>> selector = dps.PrivateSubsetSelector(k=1, epsilon=50, bounds=bounds, ledger=False)
    >>> selector.fit(X, X[:, 2] / 2).get_support()
    array([False, False,  True, False])
    """

    def fit(self, X: Any, y: Any = None) -> PrivateSubsetSelector:
        """Make one release from X and y. Costs epsilon.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            The columns to select from. Their number is public. A list of records does not declare
            it: it needs bounds with one entry a column, or a schema.
        y : array of shape (n,)
            The response: numbers, or cells of any kind where labels were declared.

        Returns
        -------
        PrivateSubsetSelector
            This object.
        """
        check_callers()
        table, arguments = check_arguments(self, X, y)
        release = select(table, y=y, **arguments)
        self.release_, self.support_ = release, support_mask(self, release, table)
        return self

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X. They are the cells themselves, hence not private."""
        check_is_fitted(self)
        X = as_table(X)
        named = frame_by_name(self, X)
        if named is not None:
            X = in_declared_order(named, self.release_.schema)
        X = frame_or_array(rectangle(X, self.n_features_in_))
        validate_data(self, X, reset=False, skip_check_array=True)
        with suppress(Exception), quietly():
            # scikit-learn refuses an array without rows; here it is an ordinary one.
            X = by_rows(X)
            return super().transform(X) if X.shape[0] else self._transform(np.asarray(X))
        # scikit-learn's message would quote cells.
        raise TableError("X must be a data frame or an array of real numbers")

    def inverse_transform(self, X: Any) -> Any:
        """Return an array with the selected columns in their places and zeros in all others."""
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
