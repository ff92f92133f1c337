"""Whether a call comes from a search or a cross-validation of scikit-learn, which tell nobody."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from .errors import NotPrivateWarning

_SEARCHES = "sklearn.model_selection"

IN_SEARCH = (
    "NOT PRIVATE: a private estimator is being fitted by a search or a cross-validation of "
    "scikit-learn. Each fit is private and is paid for, but the scores come from held-out rows "
    "without noise: neither they nor what is chosen by them (best_params_, best_estimator_) is "
    "private. dpsubset.PrivateSearch and dpsubset.tune choose privately"
)
SCORED = (
    "NOT PRIVATE: score() compares predictions with the rows it is given without noise. Of rows "
    "that are sensitive, above all those of the fit, the number must not be published"
)


def in_search() -> bool:
    """Whether a function of scikit-learn's model selection is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_SEARCHES):
            return True
        frame = frame.f_back
    return False


def warn_in_search() -> None:
    """For the fit of an estimator: before anything is read, and whatever the data are."""
    if in_search():
        warnings.warn(IN_SEARCH, NotPrivateWarning, stacklevel=3)


def warn_of_score() -> None:
    """For the score of an estimator."""
    warnings.warn(SCORED, NotPrivateWarning, stacklevel=3)
