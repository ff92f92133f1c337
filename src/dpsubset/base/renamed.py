"""Accept former names of keyword arguments, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

#: Former and current names of the arguments of a selection.
SELECTION = {"reach": "prediction_bound", "response_scale": "response_range"}

T = TypeVar("T", bound=type)


def current_names(
    given: Mapping[str, Any], former: Mapping[str, str], function: str
) -> dict[str, Any]:
    """Return keyword arguments under their current names, and warn of each former one.

    Raises
    ------
    TypeError
        If an argument is given under both of its names.
    """
    found = dict(given)
    for old in [name for name in given if name in former]:
        new = former[old]
        if new in found:
            raise TypeError(f"{function}() got {new} twice: {old} is its former name")
        warnings.warn(
            f"{function}(): the argument {old} is called {new} now", FutureWarning, stacklevel=3
        )
        found[new] = found.pop(old)
    return found


def renamed_arguments(**former: str) -> Callable[[T], T]:
    """Let the constructor of a class accept arguments by their former names, with a warning."""

    def decorate(cls: T) -> T:
        construct = cls.__init__  # type: ignore[misc]

        @functools.wraps(construct)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            construct(self, *args, **current_names(kwargs, former, cls.__name__))

        cls.__init__ = init  # type: ignore[misc]
        return cls

    return decorate
