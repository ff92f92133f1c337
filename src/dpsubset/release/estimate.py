"""Estimate: released numbers, one for each column, with what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.rounding import float_up
from ..base.text import escape_for_terminal
from ..ledger.receipt import Receipt
from ..privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Estimate:
    """Noisy numbers by column. Public.

    Attributes
    ----------
    what : str
        What they estimate, in words.
    names : tuple of str
    values : tuple of float
        In units of the columns.
    deviations : tuple of float
        Standard deviation of the noise alone; nothing of the sampling error. 0 where a value was
        not released but follows from public facts.
    picked : tuple of int, optional
        Of a sparse estimate: positions that were picked, in the order of picks.
    guarantee : Guarantee
    unit : str
        Whom it protects, in words.
    receipt : Receipt, optional
        Its entry in a ledger.
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
        g = self.guarantee
        return {
            "format": "dpsubset estimate 1",
            "what": self.what,
            "values": dict(zip(self.names, self.values, strict=True)),
            "noise": dict(zip(self.names, self.deviations, strict=True)),
            **({} if self.picked is None else {"picked": [self.names[j] for j in self.picked]}),
            "guarantee": {
                "private": g.private,
                "epsilon": None if g.epsilon is None else float_up(g.epsilon),
                "epsilon_exact": str(g.epsilon),
                "delta": float_up(g.delta),
                "assumes": g.assumes,
                "neighbours": g.neighbours,
                "unit": self.unit,
            },
            **({} if self.receipt is None else {"ledger": self.receipt.to_dict()}),
        }

    def __str__(self) -> str:
        """The numbers and what they cost; of a sparse estimate, those that were picked."""
        shown = range(len(self.names)) if self.picked is None else self.picked
        lines = [
            f"  {self.names[j]}: {self.values[j]:.6g} (noise +- {self.deviations[j]:.2g})"
            for j in shown
        ]
        heading = f"{self.what}, {len(lines)} of {len(self.names)} columns:"
        cost = f"Guarantee: {self.guarantee}; unit of privacy: {self.unit}"
        return "\n".join(map(escape_for_terminal, [heading, *lines, cost]))
