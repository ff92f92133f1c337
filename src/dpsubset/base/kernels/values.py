"""Values that bring their own kernels: constraints and row losses.

Such a value is a NamedTuple whose fields are numbers, with compiled functions as static methods. A
kernel takes the value as an argument and calls ``own("gain")(value, ...)``: numba compiles it once
for each kind of value, and for those alone that somebody uses. There is no table of numbers to keep
in step, and no branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

Kernel = Callable[..., Any]


def own(name: str) -> Kernel:
    """A function that calls the static method of this name of its first argument's class."""
    return _by_kind(name, lambda kind: getattr(kind, name))


def either(asked: str, yes: Kernel, no: Kernel) -> Kernel:
    """One of two kernels, by what the first argument's class answers to a question.

    That is a static method without arguments, in Python: it is settled when a kernel is compiled,
    and the other one is not even looked at.
    """
    return _by_kind(asked, lambda kind: yes if getattr(kind, asked)() else no)


def _by_kind(name: str, find: Callable[[type], Kernel]) -> Kernel:
    def chosen(value: Any, *args: Any) -> Any:
        return find(type(value))(value, *args)

    def choose(value: Any, *args: Any) -> Kernel | None:
        kind = getattr(value, "instance_class", None)
        if kind is None:  # not a NamedTuple: numba says so
            return None
        # The function itself: a call of the compiled one would be compiled, too.
        function: Kernel = find(kind).py_func  # type: ignore[attr-defined]
        return function

    chosen.__name__ = chosen.__qualname__ = name
    # Not strict: what is chosen from have names of their own for their arguments.
    overload(chosen, strict=False)(choose)
    return chosen
