"""The width of the intervals of a fit, before anything is spent: by fits on simulated tables.

The tables have the shape of a model, some numbers and some categories, and each is fitted by the
code of :func:`dpsubset.fit`, with its division of epsilon, its response range, its clip and its
noise. Columns and response have variance 1, so that coefficients are standardised.

The width depends on the sums of products through their means, and noise changes it far more than
sampling does. So a table of more rows than a few thousand is simulated as one of a few thousand
whose every row occurs several times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..api.fit import FitRequest, fit_support, solution_of
from ..api.sensitive_table import SensitiveTable
from ..base.errors import ArgumentError
from ..base.validation import check_int
from ..data.moments import Moments
from ..data.readers.passes import Passes
from ..models.automatic import AutomaticFit
from ..models.noisy_moments import NoisyMoments
from ..privacy.quantiles import RangeInSteps
from ..privacy.random import Randomness, SeededSource
from ..schema.encoding import Design
from ..schema.schema import Column, Schema
from .population import Population
from .scenario import declared
from .simulation import Effort, Progress, simulate

Floats = NDArray[np.float64]

#: About so many rows are drawn, at least so many for each column.
_ROWS, _ROWS_EACH = 4096, 64
#: What the numbers of a printed `Widths` are.
HALF_WIDTHS = (
    "Expected half-widths of the model's 95 % intervals, in standard deviations of the response"
)


@dataclass(frozen=True)
class Shape:
    """The variables of a model: how many numbers, and the levels of each category."""

    numbers: int
    levels: tuple[int, ...] = ()

    @classmethod
    def given(cls, k: int, levels: Any) -> Shape:
        """The shape of k variables of which some are categories; checks the argument ``levels``."""
        if isinstance(levels, (str, bytes)) or not isinstance(levels, Iterable):
            raise ArgumentError("levels must list the number of levels of each category")
        checked = tuple(check_int(each, "levels") for each in levels)
        if any(each < 2 for each in checked):
            raise ArgumentError("levels must be at least 2: a category has at least two levels")
        if len(checked) > k:
            raise ArgumentError(f"levels lists more categories than k, which is {k}")
        return cls(k - len(checked), checked)

    @classmethod
    def of(cls, design: Design, support: Iterable[int]) -> Shape:
        """The shape of a support; a column that indicates missing cells counts as a level."""
        numbers, levels = 0, []
        for place in design.features_of(support):
            feature = design.features[place]
            if feature.levels is None:
                numbers += 1
                levels += [2] * feature.has_indicator
            else:
                levels.append(len(feature.levels) + feature.has_indicator)
        return cls(numbers, tuple(levels))

    @property
    def k(self) -> int:
        """The number of variables."""
        return self.numbers + len(self.levels)

    @property
    def columns(self) -> int:
        """The number of columns of the model: numbers, and levels but for the first of each."""
        return self.numbers + sum(self.levels) - len(self.levels)

    @property
    def is_level(self) -> NDArray[np.bool_]:
        """Which columns of the model are levels."""
        return np.arange(self.columns) >= self.numbers

    def __str__(self) -> str:
        parts = [f"{self.numbers} number{'s' * (self.numbers != 1)}"] if self.numbers else []
        if self.levels:
            listed = ", ".join(map(str, sorted(self.levels)))
            noun = "category" if len(self.levels) == 1 else "categories"
            parts.append(f"{len(self.levels)} {noun} of {listed} levels")
        return " and ".join(parts)

    def schema(self, population: Population) -> Schema:
        """The schema of a simulated table: numbers, then categories, and the response."""
        simulated = declared(replace(population, p=self.k, k=self.k))
        categories = (
            Column(f"x{j}", levels=tuple(range(count)))
            for j, count in enumerate(self.levels, start=self.numbers)
        )
        return replace(simulated, columns=(*simulated.columns[: self.numbers], *categories))

    def table(
        self, population: Population, n: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw rows: a category is a true column cut into levels that are equally frequent."""
        alike = replace(population, p=population.truth[-1] + 1, k=population.k)
        x, y = alike.table(n, rng)
        x = np.array(x[:, alike.truth])
        for j, count in enumerate(self.levels, start=self.numbers):
            x[:, j] = np.minimum(np.floor(ndtr(x[:, j]) * count), count - 1)
        return x, y


@dataclass(frozen=True)
class Widths:
    """The expected width of the intervals of a model.

    Half-widths are medians of half the length of 95 % intervals for the population, noise and
    sampling error included.

    Attributes
    ----------
    shape : Shape
        The variables of the model.
    columns, sums : int
        Columns of the model without its constant, and noisy sums that the fit releases.
    number : float, optional
        The half-width for the coefficient of a number, in standard deviations of the response per
        standard deviation of the number; infinite if half of the intervals or more have no ends.
        None without a number.
    level : float, optional
        The half-width for the difference of a level from the first one, in standard deviations of
        the response. None without a category.
    unbounded : float
        The fraction of intervals without ends.
    tables : int
        The number of simulated fits.
    """

    shape: Shape
    columns: int
    sums: int
    number: float | None
    level: float | None
    unbounded: float
    tables: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; null for a width that is infinite."""
        finite = {
            name: value if value is not None and np.isfinite(value) else None
            for name, value in (("number", self.number), ("level", self.level))
        }
        return {**asdict(self), **finite}

    def __str__(self) -> str:
        shown = []
        if self.number is not None:
            shown.append(f"{_half(self.number)} for one standard deviation of a number")
        if self.level is not None:
            shown.append(f"{_half(self.level)} for a level against the first")
        text = f"{self.shape} ({self.columns} columns): {', '.join(shown)}"
        return text + (
            f"; {self.unbounded:.0%} of the intervals infinite" if self.unbounded else ""
        )


def simulate_widths(
    request: FitRequest,
    shape: Shape,
    population: Population,
    n: int,
    effort: Effort,
    progress: Progress | None = None,
) -> Widths | None:
    """Fit a model of this shape on simulated tables of n rows.

    None if the method of the fit gives no intervals with sampling error.
    """
    if not isinstance(request.noise, (AutomaticFit, NoisyMoments)):
        return None
    request = request.with_rows(n)
    population = replace(population, k=shape.k, p=max(population.p, 2 * shape.k - 1))
    schema = shape.schema(population)
    step = replace(request.fit_step, schema=schema, design=Design.of(schema))
    copies = max(1, round(n / max(_ROWS, _ROWS_EACH * shape.columns)))
    sums = 0

    def one(seed: np.random.SeedSequence, seconds: float) -> Floats:
        nonlocal sums
        bits = Randomness(SeededSource(int(seed.generate_state(1)[0])))
        rows = max(2, round(n / copies))
        table = RepeatedTable(
            *shape.table(population, rows, np.random.default_rng(seed)), schema, copies
        )
        passes, scale = Passes(None, request.n_is_public, 2), None
        if request.selection.response_range is not None:
            _, ranges, _, _ = request.selection.range_sampler(table, passes)
            drawn = ranges.draw(bits)
            scale = drawn if isinstance(drawn, RangeInSteps) else None
        fitted = fit_support(step, table, bits, tuple(range(shape.k)), scale, passes)
        sums = fitted.entries.d
        ends = solution_of(fitted).of_both[: shape.columns]
        return np.asarray((ends[:, 1] - ends[:, 0]) / 2)

    found = np.array(simulate(one, effort, progress))
    number, level = (
        float(np.median(found[:, which])) if which.any() else None
        for which in (~shape.is_level, shape.is_level)
    )
    unbounded = float(np.mean(~np.isfinite(found)))
    return Widths(shape, shape.columns, sums, number, level, unbounded, len(found))


class RepeatedTable(SensitiveTable):
    """A simulated table, for fits: its every row occurs several times."""

    def __init__(self, x: Floats, y: Floats, schema: Schema, copies: int) -> None:
        super().__init__(x, schema, y)
        self._copies = copies

    def count_response(self, passes: Passes | None = None) -> tuple[NDArray[np.int64], int]:
        counts, n = super().count_response(passes)
        return counts * self._copies, n * self._copies

    def read_support(self, *given: Any) -> Moments:
        found = super().read_support(*given)
        products, n = found.products * self._copies, found.n * self._copies
        return Moments(products, n, found.fingerprint, found.constant, found.parts)

    def read_records(self, *given: Any) -> NDArray[np.int16]:
        return np.tile(super().read_records(*given), self._copies)


def _half(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "infinite"
