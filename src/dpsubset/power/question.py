"""Question: a population, and what would be asked of a table from it. Public, all of it.

It becomes a `api.request:SelectionRequest`, the one that `select` would make, for each n and
epsilon that are tried: reach, scale of the response and what that leaves of epsilon are as in a
release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from ..api.request import SelectionRequest, build_request
from ..mechanisms.exponential import Exponential
from ..mechanisms.permute_and_flip import PermuteAndFlip
from ..objective.losses import LOSSES
from ..schema.schema import Bounds, Schema
from .population import Population


@dataclass(frozen=True)
class Question:
    """What is asked, but for n and epsilon.

    Attributes
    ----------
    population : Population
        Where the table comes from.
    selection : mapping
        Arguments of :func:`dpsubset.select` beside k and epsilon.
    rows_per_unit : int
        How many rows the guarantee is for.
    """

    population: Population
    selection: Mapping[str, Any] = field(default_factory=dict)
    rows_per_unit: int = 1

    @classmethod
    def of(
        cls, population: Population, rows_per_unit: int, selection: Mapping[str, Any]
    ) -> Question:
        """With labels where the loss is for them, and what was left out left out."""
        given = {name: value for name, value in selection.items() if value is not None}
        loss = given.get("loss")
        if isinstance(loss, str) and loss in LOSSES and LOSSES[loss].labels:
            population = replace(population, labels=True)
        return cls(population, given, rows_per_unit)

    @cached_property
    def schema(self) -> Schema:
        """Of the made-up table."""
        made_up = self.population
        names = [f"x{j}" for j in range(made_up.p)]
        response = {"labels": (-1, 1)} if made_up.labels else {"y": made_up.y_bound}
        schema = Bounds(x=made_up.x_bound, **response).schema(names)
        return replace(schema, rows_per_unit=self.rows_per_unit)

    def planned(self, n: int | None, epsilon: Any) -> SelectionRequest:
        """What `select` would do with n rows; every argument is checked on the way."""
        found = build_request(
            None, self.schema, k=self.population.k, epsilon=epsilon, **self.selection
        )
        return found.with_rows(n)

    def weighs_scores(self, planned: SelectionRequest) -> bool:
        """Whether the mechanism is one of the two whose closed forms are known here."""
        return type(planned.mechanism) in (Exponential, PermuteAndFlip)

    def why_simulated(self, planned: SelectionRequest) -> str | None:
        """Why there is no closed form, if there is none."""
        problem, made_up = planned.setting.problem, self.population
        if not self.weighs_scores(planned):
            return f"the mechanism {planned.mechanism.name}"
        if problem.loss != "least-squares":
            return f"the {problem.loss} loss"
        if made_up.rho:
            return "correlated columns"
        if problem.constraint == "l1":
            return "the l1 constraint"
        if made_up.least != 1 and problem.constraint != "box":
            return f"unequal signals in the {problem.constraint}"
        return None

    @cached_property
    def simplified(self) -> Question:
        """The nearest question that has a closed form: where to begin a search."""
        kept = {"neighbours", "intercept", "sensitivity", "response_range"}
        selection = {name: value for name, value in self.selection.items() if name in kept}
        population = replace(self.population, rho=0.0, least=1.0)
        # Its closed form is the quicker one.
        return Question(population, {**selection, "mechanism": "exponential"}, self.rows_per_unit)

    def eta(self, planned: SelectionRequest) -> Fraction:
        """The weight of a score, where there is a closed form."""
        assert isinstance(planned.mechanism, (Exponential, PermuteAndFlip))
        return planned.mechanism.eta(planned.setting)
