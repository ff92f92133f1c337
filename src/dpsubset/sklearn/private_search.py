"""scikit-learn: a search over settings of a private estimator that is private as a whole.

Thin over :func:`dpsubset.tune`.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..api.tune import ETA, Grid, event_of_tune, rule_of, tune
from ..base.callers import check_callers
from ..base.errors import ArgumentError
from ..ledger.event import Event
from .predictors import Predictor
from .selector import checked


class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose among settings of a private regressor or classifier, under one total epsilon.

    What ``GridSearchCV`` chooses by are scores of held-out rows without noise, which are not
    private, whatever the fits have cost. Here the whole search is one release of
    :func:`dpsubset.tune`: the chosen setting, its model and everything else that ``fit`` stores
    below is covered by its guarantee, and its ledger, that of the estimator, is debited once,
    before a value is read. At the same total a fixed, sensible k often gives the better model:
    docs/tuning.md compares them.

    Parameters
    ----------
    estimator : PrivateSubsetRegressor or PrivateSubsetClassifier
        Everything that the settings have in common. Its own epsilon is not used.
    param_grid : mapping from names to lists of values, or a list of such mappings
        The grid of :func:`dpsubset.tune`: k, mechanism, loss, threshold, constraint,
        prediction_bound, radius, ridge; fit, budget_fraction and width stand for the mechanism,
        budget_fraction and width of the FitRule.
    epsilon : number
        The privacy budget of the whole search. Has to be given.
    runs : number, optional
        The mean number of runs; by default the number of settings.
    eta : number
        The shape of the distribution of the number of runs, above -1 and at most 1.

    Attributes
    ----------
    best_params_ : dict
        The chosen setting. Private: part of the release.
    best_estimator_ : estimator
        The estimator with the released model. Its epsilon is what its run alone cost, so that
        fitting it again costs that.
    release_ : Release
        What was released, with the guarantee of the whole search and the privacy statement.
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
        found, named, asked = self._asked(X, y)
        release = tune(named, y=y, **asked)
        setting = {} if release.tuned is None else release.tuned.setting
        spent = None if release.tuned is None else release.tuned.run.epsilon
        found.set_params(
            epsilon=spent,
            rule=rule_of(found.rule, setting),
            **{name: value for name, value in setting.items() if name in found.get_params()},
        )
        self.best_estimator_ = found.keep(release, named, y)
        self.best_params_, self.release_ = setting, release
        return self

    def event(self, X: Any, y: Any) -> Event:
        """What a ledger would note of ``fit``. Reads no value."""
        _, named, asked = self._asked(X, y)
        asked.pop("ledger")
        return event_of_tune(named, y=y, **asked)

    def _asked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        """A copy of the estimator, X with the declared names, and all other arguments."""
        if not isinstance(self.estimator, Predictor):
            raise ArgumentError(
                "PrivateSearch needs a PrivateSubsetRegressor or a PrivateSubsetClassifier: other "
                "estimators release no model that a run could be scored by"
            )
        if self.epsilon is None:
            raise ArgumentError("PrivateSearch needs epsilon: what the whole search may cost")
        found = clone(self.estimator).set_params(epsilon=self.epsilon)
        own_k = found.k
        if own_k is None:
            found.set_params(k=1)  # each setting of the grid has its own
        named, asked = checked(found, X, y)
        found.refuse_other_responses(asked["schema"])
        found.set_params(k=own_k)
        more = {"grid": self.param_grid, "runs": self.runs, "eta": self.eta, "k": own_k}
        return found, named, {**asked, **more}

    def predict(self, X: Any) -> Any:
        """Predictions of the released model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Of both labels, where the estimator is a classifier."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """NOT PRIVATE: the estimator's score of these rows, without noise."""
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
