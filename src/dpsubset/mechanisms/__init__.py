"""Mechanisms: one file each, and one proof each in ``dpsubset/proofs``.

To add one, write two files: ``mechanisms/halved.py``, with one `Mechanism` named "halved", and
``proofs/halved.md``. The table `MECHANISMS` is filled from this folder and from ``published/``; the
conformance and audit suites, the command line and the comparison page use the table. ``shared/``
has the code that several mechanisms use.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import as_fraction
from ..privacy.guarantee import Cost, Guarantee
from . import published
from .shared.base import Data, Mechanism, Outcome, Sampler, ScoreMechanism, Setting
from .shared.plain import PLAIN


def _mechanism_in(module: ModuleType) -> type[Mechanism]:
    """The mechanism of a module, which must have the name of the module."""
    own = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Mechanism)
        and thing.__module__ == module.__name__
    ]
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    if [getattr(cls, "name", None) for cls in own] != [name]:
        raise ImportError(f"{module.__name__} must define one mechanism, named {name}")
    return own[0]


def _order(cls: type[Mechanism]) -> tuple[float, str]:
    """Sort by ``place``, without inheriting it; mechanisms without a place come last, by name."""
    return vars(cls).get("place", math.inf), cls.name


#: Every mechanism by its name.
MECHANISMS: dict[str, type[Mechanism]] = {
    cls.name: cls
    for cls in sorted(
        (
            _mechanism_in(import_module(f"{package.__name__}.{entry.name}"))
            for package in (sys.modules[__name__], published)
            for entry in iter_modules(package.__path__)
            if not entry.ispkg
        ),
        key=_order,
    )
}


#: The mechanism of a selection that names none.
DEFAULT = "permute-and-flip"


def mechanism(
    chosen: str | Mechanism | None, options: Mapping[str, Any] | None = None
) -> Mechanism:
    """The mechanism of this name with these options, or the given mechanism."""
    chosen = DEFAULT if chosen is None else chosen
    if isinstance(chosen, Mechanism):
        if options:
            raise ArgumentError("options go with the name of a mechanism, not with an object")
        return chosen
    if not isinstance(chosen, str) or chosen not in MECHANISMS:
        raise ArgumentError(f"mechanism must be one of {', '.join(MECHANISMS)}")
    cls = MECHANISMS[chosen]
    known = [field.name for field in fields(cls)]
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise ArgumentError(
            f"{chosen} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}"
        )
    return cls(**(options or {}))


def option(text: str) -> tuple[str, Any]:
    """Parse an option of the command line, NAME=VALUE; a value with commas is a tuple."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ArgumentError("an option is given as NAME=VALUE, such as R=100")
    if "," in value:
        return name, tuple(_parse_value(part.strip()) for part in value.split(",") if part.strip())
    return name, _parse_value(value)


def _parse_value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        # Fraction(text) would expand 1e999999999.
        number = Fraction(text) if "/" in text else as_fraction(Decimal(text))
    except (ValueError, ArithmeticError):
        return text
    if number is None:
        return text
    return int(number) if number.denominator == 1 else number


__all__ = [
    "MECHANISMS",
    "PLAIN",
    "Cost",
    "Data",
    "Guarantee",
    "Mechanism",
    "Outcome",
    "Sampler",
    "ScoreMechanism",
    "Setting",
    "mechanism",
    "option",
]
