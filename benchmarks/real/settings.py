"""The settings side by side: how each draws sets of k choices from a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import dpsubset as dps
from dpsubset.privacy.response_range import default_response_range

from . import peers
from .tables import Loaded
from .utility import Set

#: Stands for no noise where a mechanism wants an epsilon.
NO_NOISE = 1e6

#: Seconds beyond which a draw counts as slow.
SLOW = 5.0

#: Seconds after which a cell gets no more draws: a suite has to end.
ENOUGH = 30.0


@dataclass
class Drawn:
    """Sets, the seconds of the first draw (with reading) and of all, per draw, and a remark."""

    sets: list[Set] = field(default_factory=list)
    first: float = 0.0
    mean: float = 0.0
    slow: bool = False
    note: str = ""


@dataclass(frozen=True)
class Asked:
    """One cell: of how many choices, at which epsilon (None is no noise), how often.

    ``also`` is what is said to `defaults` beside, to try what might become one: for responses with
    bounds, and for labels.
    """

    k: int
    epsilon: float | None
    draws: int
    limit: float
    also: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})

    @property
    def budget(self) -> float:
        """For mechanisms that want one."""
        return NO_NOISE if self.epsilon is None else self.epsilon

    @property
    def count(self) -> int:
        """Without noise all draws are the same."""
        return 1 if self.epsilon is None else self.draws

    def scale(self, table: Loaded) -> dps.ResponseRange:
        """The private scale that peers may use too."""
        said = self.also[0].get("response_range")
        if isinstance(said, dps.ResponseRange):
            return said
        return default_response_range(Fraction(str(self.budget)), table.n, self.k)


Setting = Callable[[Loaded, Asked], Drawn]


def defaults(table: Loaded, asked: Asked) -> Drawn:
    """``dps.simulate`` with a table, a schema, k and epsilon, and nothing else said."""
    return _simulated(table, asked, **asked.also[table.labels])


def papers(table: Loaded, asked: Asked, intercept: bool = False) -> Drawn:
    """The papers' setting: no intercept, declared bounds, and the hinge for labels."""
    said: dict[str, Any] = (
        {"loss": "hinge", "prediction_bound": 2} if table.labels else {"prediction_bound": 1}
    )
    return _simulated(table, asked, intercept=intercept, response_range="declared", **said)


def papers_with_intercept(table: Loaded, asked: Asked) -> Drawn:
    """The same with an intercept."""
    return papers(table, asked, intercept=True)


def peeling(table: Loaded, asked: Asked, scale: dps.ResponseRange | None = None) -> Drawn:
    """Noisy largest correlations of k columns on centred data; labels count as numbers.

    It names columns. Several levels of one category name one choice, and then fewer than k.
    """
    x, y, bounds = peers.centred(table)
    owners = table.coded.owners

    def one(_: int) -> Set:
        counts = dps.simulate(
            x, y=y, bounds=bounds, k=asked.k, epsilon=asked.budget, draws=1, mechanism="peeling",
            intercept=False, response_range="declared" if scale is None else scale,
        )  # fmt: skip
        (columns,) = counts
        return tuple(sorted({int(owners[c]) for c in columns or ()}))

    return _timed(one, asked)


def peeling_with_scale(table: Loaded, asked: Asked) -> Drawn:
    """The same with the response in a private scale, paid for; labels need none."""
    return peeling(table, asked, None if table.labels else asked.scale(table))


def noisy_moments(table: Loaded, asked: Asked, scale: dps.ResponseRange | None = None) -> Drawn:
    """Gaussian noise on all moments, then the best set of choices."""
    return _timed(
        lambda seed: peers.noisy_moments(table, asked.k, asked.epsilon, seed, scale), asked
    )


def moments_with_scale(table: Loaded, asked: Asked) -> Drawn:
    """The same with the response in a private scale, paid for; labels need none."""
    return noisy_moments(table, asked, None if table.labels else asked.scale(table))


def linear_model(table: Loaded, asked: Asked, scale: dps.ResponseRange | None = None) -> Drawn:
    """The choices with the largest coefficients of a private linear model."""

    def one(seed: int) -> Set:
        ranked = peers.largest_coefficients(table, asked.epsilon, seed, scale)
        return tuple(ranked[: asked.k])

    return _timed(one, asked)


def model_with_scale(table: Loaded, asked: Asked) -> Drawn:
    """The same with the response in a private scale, paid for; labels need none."""
    return linear_model(table, asked, None if table.labels else asked.scale(table))


SETTINGS: dict[str, Setting] = {
    "defaults": defaults,
    "papers": papers,
    "papers + intercept": papers_with_intercept,
    "peeling": peeling,
    "peeling + scale": peeling_with_scale,
    "noisy moments": noisy_moments,
    "moments + scale": moments_with_scale,
    "linear model": linear_model,
    "model + scale": model_with_scale,
}


def _simulated(table: Loaded, asked: Asked, **said: Any) -> Drawn:
    """Draws of the package, each on its own: the response may have another scale in each."""

    def one(_: int) -> Set:
        (chosen,) = dps.simulate(
            table.frame, table.schema, k=asked.k, epsilon=asked.budget, draws=1,
            time_limit=asked.limit, **said,
        )  # fmt: skip
        return chosen or ()

    return _timed(one, asked)


def _timed(one: Callable[[int], Set], asked: Asked) -> Drawn:
    """As many draws as asked for. After a slow one there are no more, nor after many seconds.

    Peers get the number of the draw as a seed: what is compared with should stand still.
    """
    drawn, seconds = Drawn(), []
    for seed in range(asked.count):
        start = time.perf_counter()
        try:
            drawn.sets.append(one(seed))
        except dps.SearchLimitError:
            drawn.note = f"draw {seed + 1} not done in {asked.limit:g} s"
        seconds.append(time.perf_counter() - start)
        drawn.slow = bool(drawn.note) or seconds[-1] > SLOW
        if drawn.slow or sum(seconds) > ENOUGH:
            break
    if not drawn.note and len(seconds) < asked.count:
        drawn.note = f"{len(seconds)} of {asked.count} draws"
    drawn.first, drawn.mean = seconds[0], float(np.mean(seconds))
    return drawn
