"""PrivateSubsetRegressor and PrivateSubsetClassifier: linear models on k selected columns.

Both call :func:`dpsubset.fit`: selection and model are one release.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..api.fit import fit
from ..base.errors import ArgumentError
from ..data.readers.arrays import is_array, is_list, of_library
from ..data.readers.features import is_named, rectangle
from ..data.readers.frames import as_table, is_frame
from ..data.type_checks import response_kind
from ..models.rule import FitRule
from ..release.model import Model
from ..release.release import Release
from ..release.target import Of
from ..schema.labels import canonical, check_labels, labels_of_kind, with_booleans
from ..schema.schema import Bounds, Schema
from .caller_checks import check_callers, encodes_labels, warn_of_encoded_labels, warn_of_score
from .estimator import (
    PrivateEstimator,
    check_arguments,
    frame_by_name,
    frame_or_array,
    support_mask,
    with_declared_names,
    with_parameters,
)


@with_parameters(without="intercept")
class Predictor(PrivateEstimator):
    """What regressor and classifier share."""

    _is_classifier = False

    def release_arguments(self) -> dict[str, Any]:
        """Return the arguments of the release; without a rule, the fit that predicts best.

        An estimator shows no intervals, which would take half of the budget of its fit.
        """
        arguments = super().release_arguments()
        if self.rule is None:
            arguments["rule"] = FitRule(intervals=False)
        return arguments

    def fit(self, X: Any, y: Any = None) -> Any:
        """Make one release from X and y. Costs epsilon."""
        check_callers()
        table, arguments = check_arguments(self, X, y)
        if (is_array(y) or of_library(y)) and getattr(y, "ndim", 1) == 2:
            # scikit-learn's wording, which its checks look for.
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected",
                DataConversionWarning,
                stacklevel=2,
            )
        self.check_response(arguments["schema"])
        return self.store_release(fit(table, y=y, **arguments), table, y)

    def store_release(self, release: Release, table: Any, y: Any) -> Any:
        """Store a release and its model. The type of y is looked at, its values are not."""
        if release.model is None:
            raise ArgumentError(
                f"{release.mechanism} released no set of columns, so there is no model. The budget "
                "is spent"
            )
        self.release_, self.support_ = release, support_mask(self, release, table)
        self.coef_ = np.array(list(release.model.coefficients.values()))
        self.coef_names_ = np.array(list(release.model.coefficients), dtype=object)
        self.intercept_ = release.model.intercept
        return self

    @property
    def _model(self) -> Model:
        check_is_fitted(self)
        model = self.release_.model
        assert model is not None  # or `fit` would have said so
        return model

    def check_response(self, schema: Schema | None) -> None:
        """Refuse a response of the wrong kind, and labels that scikit-learn has encoded."""
        labels = self.bounds.labels if schema is None and isinstance(self.bounds, Bounds) else None
        if isinstance(schema, Schema):
            labels = schema.response.labels
        if (labels is not None) != self._is_classifier:
            raise ArgumentError(
                f"{type(self).__name__} needs a response with two labels: declare them in bounds "
                "or in the schema"
                if self._is_classifier
                else f"{type(self).__name__} needs a response with bounds: for labels use "
                "PrivateSubsetClassifier"
            )
        if labels is not None and encodes_labels():
            if set(map(canonical, check_labels(labels, "the response"))) != {0.0, 1.0}:
                raise ArgumentError(
                    "the meta-estimator of scikit-learn that fits this classifier encodes labels "
                    "as 0 and 1: declare labels (0, 1), and pass y with these"
                )
            warn_of_encoded_labels()

    def _rows(self, X: Any) -> Any:
        """Return X in the form that the model reads."""
        if is_named(X) or (is_list(X) and len(X) == 0):
            return X
        X = as_table(X)
        named = frame_by_name(self, X)
        if named is not None:
            return named
        X = frame_or_array(rectangle(X, self.n_features_in_))
        validate_data(self, X, reset=False, skip_check_array=True)
        if is_frame(X):
            if not hasattr(self, "feature_names_in_"):
                return X.to_numpy()
            return with_declared_names(X, self.release_.schema)
        return X


class PrivateSubsetRegressor(RegressorMixin, Predictor):  # type: ignore[misc]
    """A linear model on k columns, under differential privacy.

    Every ``fit`` is a release and costs epsilon, for response range, selection and coefficients
    together; the costs of several fits on the same records add up. Place it on the raw frame: a
    step before it that learns from the data makes the guarantee false. The scores of
    ``GridSearchCV`` and ``cross_val_score``, what they choose, and ``score`` are computed without
    noise and are not private, even if every fit is paid for; :class:`dpsubset.PrivateSearch` is
    private.

    Predictions for other rows than those of the table cost nothing more. Predictions for rows of
    the table are as sensitive as these rows.

    Parameters
    ----------
    k : int or "auto"
        Number of columns to select. Required. With "auto" it is chosen privately, up to ``max_k``.
    epsilon : number
        Privacy budget of one fit. Required.
    bounds : Bounds, optional
        Public bounds of X and y. Either this or ``schema`` is required.
    schema : Schema, path of a bounds file or dict of the same form, optional
        Public description of the columns, as for :class:`dpsubset.PrivateSubsetSelector`.
    rule : FitRule, optional
        How the coefficients are fitted, their fraction of epsilon, and where the response is
        clipped for the fit. The default, ``FitRule(intervals=False)``, predicts best; its model
        has intervals only where the noise is small for the number of rows.
    max_k, delta, mechanism, options, allow_unproven, loss, threshold, constraint, \
prediction_bound, radius, ridge, neighbours, sensitivity, response_range, check_readable, \
always_include, seed, node_limit, time_limit, ledger
        As in :func:`dpsubset.select`.

    Attributes
    ----------
    release_ : Release
        The selection and the model, their guarantee and the privacy statement.
        ``release_.model`` has intervals and R2 with ``rule=FitRule(mechanism="noisy-moments")``.
    support_ : array of bool, shape (n_features_in_,)
        Which columns of X were selected.
    coef_ : array
        Coefficients of the model's columns.
    coef_names_ : array of str
        Names of the model's columns: a category has several.
    intercept_ : float
        Intercept of the model.
    n_features_in_ : int
        Number of columns of X in ``fit``.
    feature_names_in_ : array of str
        Names of the columns of X, if it had names.

    Examples
    --------
    >>> import numpy as np
    >>> import dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> bounds = dps.Bounds(x=1, y=1)
    >>> model = dps.PrivateSubsetRegressor(k=1, epsilon=50, bounds=bounds, ledger=False)
    >>> model.fit(X, X[:, 2] / 2).support_
    array([False, False,  True, False])
    >>> model.predict(X[:5]).shape
    (5,)
    """

    def predict(self, X: Any, of: Of | None = None) -> NDArray[np.float64]:
        """Predict the response, as clipped for the fit (``release_.model.target``).

        Parameters
        ----------
        X : array or data frame
            Rows to predict for.
        of : {"median", "mean"}, optional
            What is predicted of a response that was declared with a transform, as for
            :meth:`dpsubset.Model.predict`. The median by default.

        Returns
        -------
        array
            One prediction a row, in units of the response.
        """
        return self._model.predict(self._rows(X), of)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2 of the predictions for these rows. NOT PRIVATE: it has no noise."""
        warn_of_score()
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise dominates on the small tables of scikit-learn's checks.
        tags.regressor_tags.poor_score = True
        return tags


class PrivateSubsetClassifier(ClassifierMixin, Predictor):  # type: ignore[misc]
    """A linear model of two labels on k columns, under differential privacy.

    Parameters and attributes are those of :class:`PrivateSubsetRegressor`. Labels are declared by
    ``bounds`` or ``schema`` and never come from the data.

    Attributes
    ----------
    classes_ : array
        Both labels, sorted as scikit-learn does. They have the type of y where it has one
        (booleans, integers, floats or text). Otherwise they are as declared; false and true of a
        schema become booleans. ``release_.model`` keeps the declared order: its second label
        counts as 1.
    coef_, intercept_
        Coefficients of ``decision_function``, which is positive for ``classes_[1]``. Their signs
        are opposite to those of ``release_.model`` where sorting changed the order of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> import dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> y = np.where(X[:, 2] > 0, "ill", "well")
    >>> bounds = dps.Bounds(x=1, labels=("well", "ill"))
    >>> model = dps.PrivateSubsetClassifier(k=1, epsilon=50, bounds=bounds, ledger=False)
    >>> model.fit(X, y).support_
    array([False, False,  True, False])
    >>> model.classes_.tolist()
    ['ill', 'well']
    """

    _is_classifier = True

    def store_release(self, release: Release, table: Any, y: Any) -> PrivateSubsetClassifier:
        """Store a release, its model and its labels."""
        super().store_release(release, table, y)
        of_schema = self.release_.schema.response.labels
        assert of_schema is not None
        given = self.bounds.labels if isinstance(self.bounds, Bounds) else None
        declared = with_booleans(of_schema) if given is None else given
        labels = labels_of_kind(of_schema, tuple(declared), response_kind(y))
        order = sorted(range(2), key=lambda i: labels[i]) if _comparable(labels) else [0, 1]
        # Multiplied by this sign, the model's scores are positive for classes_[1].
        self._sign = 1.0 if order == [0, 1] else -1.0
        ordered = [labels[i] for i in order]
        self.classes_ = np.array(ordered, dtype=None if _comparable(labels) else object)
        self.coef_, self.intercept_ = self._sign * self.coef_, self._sign * self.intercept_
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy for these rows. NOT PRIVATE: it has no noise."""
        warn_of_score()
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of both labels, in the order of ``classes_``.

        Those of a linear model are its predictions, clipped to [0, 1].
        """
        second = self._model.probabilities(self._rows(X))
        columns = [1 - second, second]
        return np.column_stack(columns if self._sign > 0 else columns[::-1])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model, positive for ``classes_[1]``."""
        scores = self._model.scores(self._rows(X))  # raises if there has been no fit
        return self._sign * scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the more probable label."""
        second = self.decision_function(X) > 0
        found: NDArray[Any] = self.classes_[second.astype(int)]
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def _comparable(labels: tuple[Any, Any]) -> bool:
    return isinstance(labels[0], str) == isinstance(labels[1], str)
