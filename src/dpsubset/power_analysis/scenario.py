"""Scenario: a population and the options of a selection; n and epsilon vary between simulations.

For each n and epsilon, the scenario builds the request that `select` or `fit` would build, so that
the released range of the response and the division of epsilon are those of a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from ..api.fit import FitRequest, build_fit_request
from ..api.request import SelectionRequest, build_request
from ..base.errors import ArgumentError
from ..base.validation import check_choice
from ..models.rule import FitRule
from ..objective.losses import LOSSES
from ..schema.schema import Bounds, Schema
from .population import Population

Kind = Literal["select", "fit"]


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
    release : {"select", "fit"}
        The function whose release is simulated.
    rule : FitRule, optional
        The rule of a fit.
    """

    population: Population
    options: Mapping[str, Any] = field(default_factory=dict)
    rows_per_unit: int = 1
    release: Kind = "select"
    rule: FitRule | None = None

    @classmethod
    def create(
        cls,
        population: Population,
        options: Mapping[str, Any],
        rows_per_unit: int = 1,
        release: Kind = "select",
        rule: FitRule | None = None,
    ) -> Scenario:
        """Drop options that are None, and use labels if the loss requires them."""
        check_choice(release, get_args(Kind), "release")
        if rule is not None and release != "fit":
            raise ArgumentError("rule is the rule of a fit: it needs release='fit'")
        given = {name: value for name, value in options.items() if value is not None}
        loss = given.get("loss")
        if isinstance(loss, str) and loss in LOSSES and LOSSES[loss].labels:
            population = replace(population, labels=True)
        return cls(population, given, rows_per_unit, release, rule)

    @cached_property
    def schema(self) -> Schema:
        """The schema of a simulated table."""
        return declared(self.population, self.rows_per_unit)

    def request(self, n: int | None, epsilon: Any) -> SelectionRequest:
        """Build the request of the selection for a table of n rows; every option is checked."""
        if self.release == "fit":
            return self.fit_request(self.schema, n, epsilon).selection
        found = build_request(
            None, self.schema, k=self.population.k, epsilon=epsilon, **self.options
        )
        return found.with_rows(n)

    def fit_request(self, schema: Schema, n: int | None, epsilon: Any) -> FitRequest:
        """Build the request of a fit for a table of this schema."""
        found = build_fit_request(
            None, schema, k=self.population.k, epsilon=epsilon, rule=self.rule, **self.options
        )
        return found.with_rows(n)

    def with_population(self, population: Population) -> Scenario:
        """The same release of tables of another population."""
        return replace(self, population=population)


def declared(population: Population, rows_per_unit: int = 1) -> Schema:
    """The schema of a table of a population."""
    names = [f"x{j}" for j in range(population.p)]
    response = {"labels": (-1, 1)} if population.labels else {"y": population.y_bound}
    schema = Bounds(x=population.x_bound, **response).schema(names)
    return replace(schema, rows_per_unit=rows_per_unit)
