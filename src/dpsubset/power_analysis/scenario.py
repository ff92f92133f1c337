"""Scenario: a population and the options of a selection; n and epsilon vary between simulations.

For each n and epsilon, the scenario builds the request that `select` would build, so that the
released range of the response and the budget that is left for the selection are those of a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..api.request import SelectionRequest, build_request
from ..objective.losses import LOSSES
from ..schema.schema import Bounds, Schema
from .population import Population


@dataclass(frozen=True)
class Scenario:
    """What is simulated, except n and epsilon.

    Parameters
    ----------
    population : Population
        The distribution of the rows.
    options : mapping
        Keyword arguments of :func:`dpsubset.select` other than k and epsilon.
    rows_per_unit : int
        How many rows one privacy unit has.
    """

    population: Population
    options: Mapping[str, Any] = field(default_factory=dict)
    rows_per_unit: int = 1

    @classmethod
    def create(
        cls, population: Population, options: Mapping[str, Any], rows_per_unit: int = 1
    ) -> Scenario:
        """Drop options that are None, and use labels if the loss requires them."""
        given = {name: value for name, value in options.items() if value is not None}
        loss = given.get("loss")
        if isinstance(loss, str) and loss in LOSSES and LOSSES[loss].labels:
            population = replace(population, labels=True)
        return cls(population, given, rows_per_unit)

    @cached_property
    def schema(self) -> Schema:
        """The schema of a simulated table."""
        population = self.population
        names = [f"x{j}" for j in range(population.p)]
        response = {"labels": (-1, 1)} if population.labels else {"y": population.y_bound}
        schema = Bounds(x=population.x_bound, **response).schema(names)
        return replace(schema, rows_per_unit=self.rows_per_unit)

    def request(self, n: int | None, epsilon: Any) -> SelectionRequest:
        """Build the request for a table of n rows; every option is checked."""
        found = build_request(
            None, self.schema, k=self.population.k, epsilon=epsilon, **self.options
        )
        return found.with_rows(n)
