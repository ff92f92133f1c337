"""Static dispatch: values that bring their own kernels (constraints and row losses).

Such a value is a NamedTuple with numeric fields and compiled functions as static methods. A kernel
takes the value as an argument and calls ``own("gain")(value, ...)``; numba compiles the call once
for each type of value that is used. There is no table of function numbers and no branch at run
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

Kernel = Callable[..., Any]


def own(name: str) -> Kernel:
    """A function that calls the static method ``name`` of its first argument's class."""
    return _by_kind(name, lambda kind: getattr(kind, name))


def either(asked: str, yes: Kernel, no: Kernel) -> Kernel:
    """A function that calls one of two kernels, as decided by a static predicate of the first
    argument's class.

    The predicate is a static method without arguments, evaluated when a kernel is compiled; the
    other kernel is not compiled.
    """
    return _by_kind(asked, lambda kind: yes if getattr(kind, asked)() else no)


def _by_kind(name: str, find: Callable[[type], Kernel]) -> Kernel:
    def chosen(value: Any, *args: Any) -> Any:
        return find(type(value))(value, *args)

    def choose(value: Any, *args: Any) -> Kernel | None:
        kind = getattr(value, "instance_class", None)
        if kind is None:  # not a NamedTuple: numba raises a TypingError
            return None
        # The Python function: a call of the compiled one would add a layer of compilation.
        function: Kernel = find(kind).py_func  # type: ignore[attr-defined]
        return function

    chosen.__name__ = chosen.__qualname__ = name
    # Not strict: the kernels chosen from name their arguments differently.
    overload(chosen, strict=False)(choose)
    return chosen
