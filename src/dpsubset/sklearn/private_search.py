"""PrivateSearch: a scikit-learn search over settings that is private as a whole."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..api.tune import ETA, Grid, event_of_tune, rule_of, tune
from ..base.errors import ArgumentError
from ..ledger.event import Event
from .caller_checks import check_callers
from .estimator import check_arguments
from .predictors import Predictor


class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose among settings of a private regressor or classifier, under one total epsilon.

    ``GridSearchCV`` chooses by scores of held-out rows without noise, which are not private,
    whatever the fits have cost. Here the whole search is one release of :func:`dpsubset.tune`: its
    guarantee covers the chosen setting, its model and everything else that ``fit`` stores. The
    ledger of the estimator is debited once, before a value is read. At the same total epsilon a
    fixed, sensible k often gives the better model: docs/tuning.md compares them.

    Parameters
    ----------
    estimator : PrivateSubsetRegressor or PrivateSubsetClassifier
        The estimator with the parameters that all settings share. Its own epsilon is not used.
    param_grid : mapping from names to lists of values, or a list of such mappings
        The grid of :func:`dpsubset.tune`: k, mechanism, loss, threshold, constraint,
        prediction_bound, radius, ridge; fit, budget_fraction and width set the mechanism,
        budget_fraction and width of the FitRule.
    epsilon : number
        The privacy budget of the whole search. Required.
    runs : number, optional
        The mean number of runs; by default the number of settings.
    eta : number
        The shape of the distribution of the number of runs, above -1 and at most 1.

    Attributes
    ----------
    best_params_ : dict
        The chosen setting. Private: part of the release.
    best_estimator_ : estimator
        The estimator with the released model. Its epsilon is the cost of its run alone, which is
        what fitting it again costs.
    release_ : Release
        The release, with the guarantee of the whole search and the privacy statement.

    Examples
    --------
    >>> import numpy as np
    >>> import dpsubset as dps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> inner = dps.PrivateSubsetRegressor(bounds=dps.Bounds(x=1, y=1), ledger=False)
    >>> search = dps.PrivateSearch(inner, {"k": [1, 2]}, epsilon=20).fit(X, X[:, 2] / 2)
    >>> search.best_params_["k"] in (1, 2)
    True
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Grid,
        epsilon: float | Fraction | Decimal | None = None,
        *,
        runs: float | None = None,
        eta: float | Fraction = ETA,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.runs = runs
        self.eta = eta

    def fit(self, X: Any, y: Any = None) -> PrivateSearch:
        """Make one release from X and y. Costs epsilon, of all runs together."""
        check_callers()
        found, table, arguments = self._arguments(X, y)
        release = tune(table, y=y, **arguments)
        setting = {} if release.tuned is None else release.tuned.setting
        spent = None if release.tuned is None else release.tuned.run.epsilon
        found.set_params(
            epsilon=spent,
            rule=rule_of(arguments["rule"], setting),
            **{name: value for name, value in setting.items() if name in found.get_params()},
        )
        self.best_estimator_ = found.store_release(release, table, y)
        self.best_params_, self.release_ = setting, release
        return self

    def event(self, X: Any, y: Any) -> Event:
        """Return the event that ``fit`` would write to a ledger. Reads no value."""
        _, table, arguments = self._arguments(X, y)
        arguments.pop("ledger")
        return event_of_tune(table, y=y, **arguments)

    def _arguments(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Return a copy of the estimator, X with the declared names, and all other arguments."""
        if not isinstance(self.estimator, Predictor):
            raise ArgumentError(
                "PrivateSearch needs a PrivateSubsetRegressor or a PrivateSubsetClassifier: other "
                "estimators release no model by which a run could be scored"
            )
        if self.epsilon is None:
            raise ArgumentError("PrivateSearch needs epsilon, the budget of the whole search")
        found = clone(self.estimator).set_params(epsilon=self.epsilon)
        own_k = found.k
        if own_k is None and found.max_k is None:
            found.set_params(k=1)  # each setting of the grid has its own
        table, arguments = check_arguments(found, X, y)
        found.check_response(arguments["schema"])
        found.set_params(k=own_k)
        more = {"grid": self.param_grid, "runs": self.runs, "eta": self.eta, "k": own_k}
        return found, table, {**arguments, **more}

    def predict(self, X: Any) -> Any:
        """Predict with the released model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of both labels, where the estimator is a classifier."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the estimator's score of these rows. NOT PRIVATE: it has no noise."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    @property
    def classes_(self) -> Any:
        """Both labels, where the estimator is a classifier."""
        return self.best_estimator_.classes_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags
