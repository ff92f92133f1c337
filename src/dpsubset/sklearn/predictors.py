"""scikit-learn: a regressor and a classifier on k columns, selected and fitted in one release.

Thin over :func:`dpsubset.fit`. As in the selector, nothing in ``fit`` fails because of a cell or
quotes one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..api.fit import fit
from ..base.callers import check_callers, encodes_labels, warn_of_encoding, warn_of_score
from ..base.errors import ArgumentError
from ..base.renamed import SELECTION, renamed_arguments
from ..data.readers.arrays import is_array, is_list, of_library
from ..data.readers.features import is_named, rectangle
from ..data.readers.frames import as_table, is_frame
from ..data.type_checks import response_kind
from ..ledger.spending import LedgerLike, in_force
from ..mechanisms import Mechanism
from ..models.rule import FitRule
from ..privacy.response_range import ResponseRange
from ..release.model import Model
from ..release.release import Release
from ..release.target import Of
from ..schema.labels import canonical, check_labels, labels_of_kind, with_booleans
from ..schema.schema import Bounds, Schema
from .selector import as_declared, by_name, checked, mask, table


@renamed_arguments(**SELECTION)
class Predictor(BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share."""

    def __init__(
        self,
        k: int | None = None,
        epsilon: float | Fraction | Decimal | None = None,
        *,
        bounds: Bounds | None = None,
        schema: Schema | str | Path | None = None,
        rule: FitRule | None = None,
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
        self.rule = rule
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

    #: Whether the response has labels.
    _of_labels = False

    def fit(self, X: Any, y: Any = None) -> Any:
        """Make one release from X and y. Costs epsilon."""
        check_callers()
        named, asked = checked(self, X, y)
        if (is_array(y) or of_library(y)) and getattr(y, "ndim", 1) == 2:
            # scikit-learn's own words, which its checks look for.
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected",
                DataConversionWarning,
                stacklevel=2,
            )
        self.refuse_other_responses(asked["schema"])
        return self.keep(fit(named, y=y, **asked), named, y)

    def keep(self, release: Release, named: Any, y: Any) -> Any:
        """Take the model of a release for that of this estimator; of y its type alone is used."""
        if release.model is None:
            raise ArgumentError(
                f"{release.mechanism} released no set of columns, so there is no model. What it "
                "would have cost is spent"
            )
        self.release_, self.support_ = release, mask(self, release, named)
        self.coef_ = np.array(list(release.model.coefficients.values()))
        self.coef_names_ = np.array(list(release.model.coefficients), dtype=object)
        self.intercept_ = release.model.intercept
        return self

    @property
    def _model(self) -> Model:
        model = self.release_.model
        assert model is not None  # or `fit` would have said so
        return model

    def refuse_other_responses(self, schema: Schema | None) -> None:
        """An error if the response has labels and this is no classifier, or the other way; or if
        scikit-learn has encoded the labels, and they were declared otherwise.
        """
        labels = self.bounds.labels if schema is None and isinstance(self.bounds, Bounds) else None
        if isinstance(schema, Schema):
            labels = schema.response.labels
        if (labels is not None) != self._of_labels:
            raise ArgumentError(
                f"{type(self).__name__} needs a response with two labels: declare them"
                if self._of_labels
                else f"{type(self).__name__} is for a response with bounds; for labels there is "
                "PrivateSubsetClassifier"
            )
        if labels is not None and encodes_labels():
            if set(map(canonical, check_labels(labels, "the response"))) != {0.0, 1.0}:
                raise ArgumentError(
                    "the part of scikit-learn that fits this estimator encodes the labels as 0 and "
                    "1: declare labels (0, 1), and pass y with these"
                )
            warn_of_encoding()

    def _rows(self, X: Any) -> Any:
        """X as the model takes it."""
        check_is_fitted(self)
        if is_named(X) or (is_list(X) and len(X) == 0):
            return X
        X = as_table(X)
        named = by_name(self, X)
        if named is not None:
            return named
        X = table(rectangle(X, self.n_features_in_))
        validate_data(self, X, reset=False, skip_check_array=True)
        if is_frame(X):
            if not hasattr(self, "feature_names_in_"):
                return X.to_numpy()
            return as_declared(X, self.release_.schema)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Missing and unreadable cells go where the schema's rule says.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.non_deterministic = self.seed is None
        return tags


class PrivateSubsetRegressor(RegressorMixin, Predictor):  # type: ignore[misc]
    """A linear model on k columns, under differential privacy.

    Every ``fit`` is a release and costs epsilon, of scale, selection and coefficients together; the
    costs of several fits on the same records add up. Place it on the raw frame: a step before it
    that learns from the data makes the guarantee false. The scores of ``GridSearchCV`` and
    ``cross_val_score``, what they choose, and ``score`` come from rows without noise and are not
    private, even if every fit is paid for; :class:`dpsubset.PrivateSearch` is.

    Predictions for rows that are not the table's cost nothing more; for the table's own they are as
    private as the rows they are of.

    Parameters
    ----------
    k : int
        How many columns to select. Has to be given.
    epsilon : number
        The privacy budget of one fit. Has to be given.
    bounds : Bounds, optional
        Public bounds of X and y. Either this or ``schema`` has to be given.
    schema : Schema or path of a bounds file, optional
        Public description of the columns, as for :class:`dpsubset.PrivateSubsetSelector`.
    rule : FitRule, optional
        How coefficients are fitted, how much of epsilon they take, and how wide the response is
        clipped for them.
    delta, mechanism, options, allow_unproven, loss, threshold, constraint, prediction_bound, \
radius, ridge, neighbours, sensitivity, response_range, check_readable, always_include, seed, \
node_limit, time_limit, ledger
        As in :func:`dpsubset.select`.

    Attributes
    ----------
    release_ : Release
        What was released, with its guarantee and the privacy statement; ``release_.model`` has the
        intervals.
    support_ : array of bool, shape (n_features_in_,)
        Which columns of X were selected.
    coef_ : array
        Coefficients of the model's columns, whose names are in ``coef_names_``: a category has
        several.
    intercept_ : float
    n_features_in_ : int
    feature_names_in_ : array of str
        Names of the columns of X, if it had names.
    """

    def predict(self, X: Any, of: Of | None = None) -> NDArray[np.float64]:
        """Predictions in units of the response, as clipped for the fit (``release_.model.target``).

        Parameters
        ----------
        X : array or data frame
        of : {"median", "mean"}, optional
            Of a response that was declared with a transform, as for :meth:`dpsubset.Model.predict`.
            By default its median.
        """
        rows = self._rows(X)
        return self._model.predict(rows, of)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """NOT PRIVATE: R2 of the predictions for these rows, without noise."""
        warn_of_score()
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Under noise, on the small tables of scikit-learn's checks.
        tags.regressor_tags.poor_score = True
        return tags


class PrivateSubsetClassifier(ClassifierMixin, Predictor):  # type: ignore[misc]
    """A linear model of two labels on k columns, under differential privacy.

    Takes the parameters of :class:`PrivateSubsetRegressor` and has its attributes; labels are
    declared, by ``bounds`` or ``schema``, and never come from the data.

    Attributes
    ----------
    classes_ : array
        Both labels, sorted, as scikit-learn has them: in the type of y where that has one
        (booleans, integers, floats or text), else as they were declared, false and true of a
        schema as booleans. ``release_.model`` keeps the order that they were declared in: its
        second label counts as 1.
    coef_, intercept_
        Of ``decision_function``, hence towards ``classes_[1]``: with the opposite sign of those of
        ``release_.model`` where sorting has changed the order of the labels.
    """

    _of_labels = True

    def keep(self, release: Release, named: Any, y: Any) -> PrivateSubsetClassifier:
        """Take the model of a release for that of this estimator, and its labels."""
        super().keep(release, named, y)
        settled = self.release_.schema.response.labels
        assert settled is not None
        given = self.bounds.labels if isinstance(self.bounds, Bounds) else None
        declared = with_booleans(settled) if given is None else given
        labels = labels_of_kind(settled, tuple(declared), response_kind(y))
        order = sorted(range(2), key=lambda i: labels[i]) if _comparable(labels) else [0, 1]
        #: What the model's scores are multiplied by, so that they are above 0 for classes_[1].
        self._sign = 1.0 if order == [0, 1] else -1.0
        ordered = [labels[i] for i in order]
        self.classes_ = np.array(ordered, dtype=None if _comparable(labels) else object)
        self.coef_, self.intercept_ = self._sign * self.coef_, self._sign * self.intercept_
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """NOT PRIVATE: the share of these rows whose label is predicted, without noise."""
        warn_of_score()
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Of both labels, in the order of ``classes_``: of a logistic model, or of a linear one,
        clipped.
        """
        rows = self._rows(X)
        second = self._model.probabilities(rows)
        columns = [1 - second, second]
        return np.column_stack(columns if self._sign > 0 else columns[::-1])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Above 0 for ``classes_[1]``."""
        rows = self._rows(X)
        return self._sign * self._model.scores(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier label."""
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
