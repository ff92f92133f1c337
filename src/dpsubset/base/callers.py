"""Who calls: the only way to learn that a part of scikit-learn makes a fit.

scikit-learn passes an estimator the same arguments whether a user, a search or a bootstrap fits it.
Its callbacks (version 1.9) reach only estimators with a registered callback, and not from bagging,
stacking or calibration. The stack of calls differs, also in worker processes, so this module walks
it. What is looked at are functions and local variables of scikit-learn, never values of a table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

#: Modules of scikit-learn that score or predict held-out rows without noise.
_USE_HELD_OUT_ROWS = (
    "sklearn.model_selection",
    "sklearn.calibration",
    "sklearn.ensemble._stacking",
)


def callers() -> Iterator[tuple[str, str, FrameType]]:
    """Yield the module, the function and the frame of each call on the stack, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")), frame.f_code.co_name, frame
        frame = frame.f_back


def in_search() -> bool:
    """Whether the call comes from a part of scikit-learn that uses held-out rows."""
    return any(module.startswith(_USE_HELD_OUT_ROWS) for module, _, _ in callers())
