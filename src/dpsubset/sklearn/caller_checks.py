"""Refuse or warn of parts of scikit-learn under which the guarantee of a fit says less or fails.

Searches, cross-validation, calibration and stacking use held-out rows without noise. A bootstrap
repeats rows. Some meta-estimators encode the labels of y as 0 and 1. All of these are recognised by
the calling functions (`base.callers`), never by the data.
"""

from __future__ import annotations

import warnings

from ..base.callers import callers, in_search
from ..base.errors import ArgumentError, NotPrivateWarning

_BAGGING = "sklearn.ensemble._bagging"

#: Functions that fit on y encoded as 0 and 1, also in worker processes: of bagging, of voting and
#: stacking, of one class against the others.
_ENCODE_LABELS = {
    (_BAGGING, "_parallel_build_estimators"),
    ("sklearn.ensemble._base", "_fit_single_estimator"),
    ("sklearn.multiclass", "_fit_binary"),
    ("sklearn.multiclass", "_fit_ovo_binary"),
}
#: The function of cross_val_predict, which encodes labels for some methods.
_FIT_AND_PREDICT = ("sklearn.model_selection._validation", "_fit_and_predict")
_ENCODED_METHODS = ("decision_function", "predict_proba", "predict_log_proba")

IN_SEARCH = (
    "NOT PRIVATE: a search, cross-validation, calibration or stacking of scikit-learn is fitting "
    "this estimator. Each fit is private and is paid for. The scores and predictions that follow "
    "are of held-out rows without noise, so neither they nor what is chosen or fitted by them "
    "(best_params_, best_estimator_, a calibration, final_estimator_) is private. "
    "dpsubset.PrivateSearch and dpsubset.tune choose privately"
)
ENCODED_LABELS = (
    "NOT PRIVATE in every case: scikit-learn encodes the labels of y by those that it finds there. "
    "If a single row decides which labels are found, it decides how all other rows are read, and "
    "the guarantee does not cover that. The guarantee holds if y contains both declared labels and "
    "no other, whatever any single row contains"
)
SCORED = (
    "NOT PRIVATE: score() compares predictions with the given rows without noise. If these rows "
    "are sensitive, above all if they are those of the fit, do not publish the score"
)


def check_callers() -> None:
    """Refuse bootstraps and warn of searches, before anything is read.

    Raises
    ------
    ArgumentError
        If bagging with a bootstrap is among the callers.
    """
    bagging = [frame.f_locals for module, _, frame in callers() if module == _BAGGING]
    bootstraps = [variables["bootstrap"] for variables in bagging if "bootstrap" in variables]
    if bagging and (any(bootstraps) or not bootstraps):
        raise ArgumentError(
            "a bootstrap repeats rows, and a row that occurs m times costs m times epsilon, so the "
            "guarantee of the fit would be false. Pass bootstrap=False (with max_samples, which "
            "then draws rows without repeating them)"
        )
    if in_search():
        warnings.warn(IN_SEARCH, NotPrivateWarning, stacklevel=3)


def encodes_labels() -> bool:
    """Whether scikit-learn has encoded the labels of y as 0 and 1."""
    return any(
        (module, function) in _ENCODE_LABELS
        or (
            (module, function) == _FIT_AND_PREDICT
            and frame.f_locals.get("method", _ENCODED_METHODS[0]) in _ENCODED_METHODS
        )
        for module, function, frame in callers()
    )


def warn_of_encoded_labels() -> None:
    """Warn that scikit-learn has encoded the labels by those that it found."""
    warnings.warn(ENCODED_LABELS, NotPrivateWarning, stacklevel=4)


def warn_of_score() -> None:
    """Warn that a score has no noise."""
    warnings.warn(SCORED, NotPrivateWarning, stacklevel=3)
