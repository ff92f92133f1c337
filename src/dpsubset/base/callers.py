"""Detect which parts of scikit-learn are calling an estimator, and warn where they break privacy.

Searches, cross-validation, calibration and stacking use held-out rows without noise. A bootstrap
repeats rows. Some meta-estimators encode the labels of y as 0 and 1. All of this is recognised by
the functions on the call stack, never by the data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType

from .errors import ArgumentError, NotPrivateWarning

#: Modules that use held-out rows without noise.
_SEARCHES = ("sklearn.model_selection", "sklearn.calibration", "sklearn.ensemble._stacking")

_BAGGING = "sklearn.ensemble._bagging"

#: Functions that fit on y encoded as 0 and 1, in worker processes too: in bagging, in voting and
#: stacking, and in one-against-the-rest classifiers.
_ENCODERS = {
    (_BAGGING, "_parallel_build_estimators"),
    ("sklearn.ensemble._base", "_fit_single_estimator"),
    ("sklearn.multiclass", "_fit_binary"),
    ("sklearn.multiclass", "_fit_ovo_binary"),
}
#: cross_val_predict encodes the labels for these methods.
_PREDICTS = ("sklearn.model_selection._validation", "_fit_and_predict")
_ENCODED = ("decision_function", "predict_proba", "predict_log_proba")

IN_SEARCH = (
    "NOT PRIVATE: a private estimator is being fitted by a search, a cross-validation, a "
    "calibration or a stacking of scikit-learn. Each fit is private and is paid for, but the "
    "scores and predictions that follow are of held-out rows without noise: neither they nor what "
    "is chosen or fitted by them (best_params_, best_estimator_, a calibration, final_estimator_) "
    "is private. dpsubset.PrivateSearch and dpsubset.tune choose privately"
)
ENCODES = (
    "NOT PRIVATE in every case: scikit-learn encodes the labels of y by those that it finds there. "
    "If a single row can decide which labels are found, it decides how all other rows are read, "
    "and the guarantee does not cover that. It holds where y has both declared labels and no "
    "other, whatever any single row holds"
)
SCORED = (
    "NOT PRIVATE: score() compares predictions with the rows it is given, without noise. If these "
    "rows are sensitive, as those of the fit are, the number must not be published"
)


def in_search() -> bool:
    """Return whether a part of scikit-learn that uses held-out rows is on the call stack."""
    return any(_module(frame).startswith(_SEARCHES) for frame in _callers())


def encodes_labels() -> bool:
    """Return whether scikit-learn has encoded the labels of y as 0 and 1."""
    for frame in _callers():
        place = _module(frame), frame.f_code.co_name
        if place in _ENCODERS or (
            place == _PREDICTS and frame.f_locals.get("method", _ENCODED[0]) in _ENCODED
        ):
            return True
    return False


def check_callers() -> None:
    """Refuse a bootstrap and warn of a search around the fit of an estimator.

    Called before anything is read; the result does not depend on the data.
    """
    bagging = [frame.f_locals for frame in _callers() if _module(frame) == _BAGGING]
    drawn = [found["bootstrap"] for found in bagging if "bootstrap" in found]
    if bagging and (any(drawn) or not drawn):
        raise ArgumentError(
            "a bootstrap repeats rows, and a row that occurs m times costs m times epsilon: the "
            "guarantee of the fit would be false. Pass bootstrap=False (with max_samples, which "
            "then draws rows without repeating them)"
        )
    if in_search():
        warnings.warn(IN_SEARCH, NotPrivateWarning, stacklevel=3)


def warn_of_encoding() -> None:
    """Warn that the labels a classifier is fitted on were encoded by scikit-learn."""
    warnings.warn(ENCODES, NotPrivateWarning, stacklevel=4)


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def warn_of_score() -> None:
    """Warn that the score of an estimator is not private."""
    warnings.warn(SCORED, NotPrivateWarning, stacklevel=3)
