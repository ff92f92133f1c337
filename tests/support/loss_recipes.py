"""Small problems under losses of records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpsubset.data.gram import GramData
from dpsubset.objective.problem import Problem
from dpsubset.search.enumerate import ScoredSupports, enumerate_supports
from support.recipes import CONSTRAINTS, DESIGNS, Recipe, recipes


def digest_of(records: np.ndarray) -> GramData:
    return GramData.of_cells(np.asarray(records.T, dtype=np.int16, order="C"), "test")


@dataclass(frozen=True)
class LossRecipe(Recipe):
    """The same problem under another loss."""

    loss: str = "logistic"

    @cached_property
    def problem(self) -> Problem:
        return replace(super().problem, loss=self.loss)

    @cached_property
    def digest(self) -> GramData:
        return digest_of(self.records)

    @cached_property
    def scored(self) -> ScoredSupports:
        return enumerate_supports(self.digest, self.problem, self.sensitivity.score_step)


def loss_recipes(loss: str, seeds: range, constraints: tuple[str, ...] = CONSTRAINTS) -> list:
    return [
        LossRecipe(r.design, r.constraint, r.size, r.ridge, r.seed, r.p, loss)
        for r in recipes(DESIGNS, constraints, seeds)
    ]
