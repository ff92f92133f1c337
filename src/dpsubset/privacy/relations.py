"""Neighbouring tables: which two tables a guarantee compares."""

from __future__ import annotations

from typing import Literal

Neighbours = Literal["replace-one", "add-remove"]

RELATIONS: tuple[Neighbours, Neighbours] = ("replace-one", "add-remove")
#: Those under which n is the same for neighbours, and a mechanism may depend on it.
PUBLIC_N: tuple[Neighbours] = ("replace-one",)
