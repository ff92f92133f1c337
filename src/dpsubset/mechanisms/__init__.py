"""Mechanisms: one file each, one proof each in ``dpsubset/proofs``.

To add one, write its file and its proof, and give it its row here; the conformance and audit
suites, the command line and the comparison page take it from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..arguments import exact
from ..errors import ArgumentError
from ..privacy.guarantee import Cost, Guarantee
from .exponential import Exponential
from .frank_wolfe import FrankWolfe
from .hard_thresholding import HardThresholding
from .metropolis import Metropolis
from .mistakes import Mistakes
from .peeling import Peeling
from .penalised import Penalised
from .permute_and_flip import PermuteAndFlip
from .sample_aggregate import SampleAggregate
from .shared.base import Data, Mechanism, Outcome, Sampler, ScoreMechanism, Setting
from .shared.plain import PLAIN
from .stability import Stability
from .top_r import TopR

MECHANISMS: dict[str, type[Mechanism]] = {
    cls.name: cls
    for cls in (
        PermuteAndFlip,
        Exponential,
        TopR,
        Mistakes,
        Metropolis,
        Penalised,
        SampleAggregate,
        Stability,
        Peeling,
        HardThresholding,
        FrankWolfe,
    )
}


def mechanism(chosen: str | Mechanism, options: Mapping[str, Any] | None = None) -> Mechanism:
    """The mechanism of this name with these options, or the one given."""
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
    """An option as the command line has it: NAME=VALUE, lists with commas."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ArgumentError("an option is given as NAME=VALUE, such as R=100")
    if "," in value:
        return name, tuple(_value(part.strip()) for part in value.split(",") if part.strip())
    return name, _value(value)


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        # Not by Fraction alone, which multiplies 1e999999999 out.
        number = Fraction(text) if "/" in text else exact(Decimal(text))
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
    "Exponential",
    "FrankWolfe",
    "Guarantee",
    "HardThresholding",
    "Mechanism",
    "Metropolis",
    "Mistakes",
    "Outcome",
    "Peeling",
    "Penalised",
    "PermuteAndFlip",
    "SampleAggregate",
    "Sampler",
    "ScoreMechanism",
    "Setting",
    "Stability",
    "TopR",
    "mechanism",
    "option",
]
