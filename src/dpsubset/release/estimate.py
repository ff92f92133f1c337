"""Estimate: released numbers, one for each column, with their privacy cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.text import escape_for_terminal
from ..ledger.receipt import Receipt
from ..privacy.guarantee import Guarantee

#: What a file of estimates states of their guarantee.
_STATED = ("private", "epsilon", "epsilon_exact", "delta", "assumes", "neighbours", "unit")


@dataclass(frozen=True)
class Estimate:
    """Noisy estimates, one for each column. Public.

    Attributes
    ----------
    what : str
        Description of the estimated quantity.
    names : tuple of str
        The columns.
    values : tuple of float
        In units of the columns.
    deviations : tuple of float
        Standard deviation of the noise alone, without sampling error. 0 where a value was not
        released but follows from public facts.
    picked : tuple of int, optional
        Positions that a sparse estimate has picked, in the order of picks.
    guarantee : Guarantee
    unit : str
        The unit of privacy, in words.
    receipt : Receipt, optional
        The release's entry in a ledger.
    """

    what: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    deviations: tuple[float, ...]
    guarantee: Guarantee
    unit: str
    picked: tuple[int, ...] | None = None
    receipt: Receipt | None = None

    @property
    def array(self) -> NDArray[np.float64]:
        """The values as an array."""
        return np.array(self.values)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        guarantee = self.guarantee.to_dict(unit=self.unit)
        return {
            "format": "dpsubset estimate 1",
            "what": self.what,
            "values": dict(zip(self.names, self.values, strict=True)),
            "noise": dict(zip(self.names, self.deviations, strict=True)),
            **({} if self.picked is None else {"picked": [self.names[j] for j in self.picked]}),
            "guarantee": {key: guarantee[key] for key in _STATED},
            **({} if self.receipt is None else {"ledger": self.receipt.to_dict()}),
        }

    def __str__(self) -> str:
        """The estimates and their cost; of a sparse estimate only what was picked."""
        shown = range(len(self.names)) if self.picked is None else self.picked
        lines = [
            f"  {self.names[j]}: {self.values[j]:.6g} (noise +- {self.deviations[j]:.2g})"
            for j in shown
        ]
        heading = f"{self.what}, {len(lines)} of {len(self.names)} columns:"
        cost = f"Guarantee: {self.guarantee}; unit of privacy: {self.unit}"
        return "\n".join(map(escape_for_terminal, [heading, *lines, cost]))
