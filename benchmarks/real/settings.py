"""The settings side by side: how each draws sets of k columns from a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dpsubset as dps

from . import peers
from .tables import Loaded
from .utility import Set

#: Stands for no noise where a mechanism wants an epsilon.
NO_NOISE = 1e6

#: Seconds beyond which a draw counts as slow.
SLOW = 5.0


@dataclass
class Drawn:
    """Sets, the seconds of the first draw (with reading) and of all, per draw, and a remark."""

    sets: list[Set] = field(default_factory=list)
    first: float = 0.0
    mean: float = 0.0
    note: str = ""

    @property
    def slow(self) -> bool:
        """Whether a user would have had to wait."""
        return max(self.first, self.mean) > SLOW


@dataclass(frozen=True)
class Asked:
    """One cell: of how many columns, at which epsilon (None is no noise), how often."""

    k: int
    epsilon: float | None
    draws: int
    limit: float

    @property
    def budget(self) -> float:
        """For mechanisms that want one."""
        return NO_NOISE if self.epsilon is None else self.epsilon

    @property
    def count(self) -> int:
        """Without noise all draws are the same."""
        return 1 if self.epsilon is None else self.draws


Setting = Callable[[Loaded, Asked], Drawn]


def defaults(table: Loaded, asked: Asked) -> Drawn:
    """Today's defaults: ``dps.simulate`` with nothing said but bounds, k and epsilon."""
    return _simulated(table.x, table.y, table.declared(), asked)


def with_ones(table: Loaded, asked: Asked) -> Drawn:
    """The same with a column of ones that is part of every set, and not one of the k."""
    x = np.column_stack([table.x, np.ones(table.n)])
    declared = table.declared()
    bounds = dps.Bounds(x=[*declared.x, (-1.0, 1.0)], y=declared.y, labels=declared.labels)
    drawn = _simulated(x, table.y, bounds, asked, extra=1, always_include=[table.p])
    drawn.sets = [tuple(j for j in chosen if j != table.p) for chosen in drawn.sets]
    return drawn


def peeling(table: Loaded, asked: Asked) -> Drawn:
    """Noisy largest correlations on centred data; labels count as numbers."""
    x, y, bounds = peers.centred(table)
    return _simulated(x, y, bounds, asked, mechanism="peeling")


def noisy_moments(table: Loaded, asked: Asked) -> Drawn:
    """Gaussian noise on all moments, then the best subset."""
    return _timed(lambda seed: peers.noisy_moments(table, asked.k, asked.epsilon, seed), asked)


def linear_model(table: Loaded, asked: Asked) -> Drawn:
    """The largest coefficients of a private linear model."""
    return _timed(
        lambda seed: tuple(peers.largest_coefficients(table, asked.epsilon, seed)[: asked.k]), asked
    )


SETTINGS: dict[str, Setting] = {
    "defaults": defaults,
    "+ ones": with_ones,
    "peeling": peeling,
    "noisy moments": noisy_moments,
    "linear model": linear_model,
}


def _simulated(
    x: Any, y: Any, bounds: dps.Bounds, asked: Asked, extra: int = 0, **setting: Any
) -> Drawn:
    """One draw on its own for its time, then the others, which share their work.

    After a slow one there are no others: a suite has to end.
    """
    drawn = Drawn()

    def draw(count: int) -> float:
        start = time.perf_counter()
        counts = dps.simulate(
            x, y=y, bounds=bounds, k=asked.k + extra, epsilon=asked.budget, draws=count,
            time_limit=asked.limit, **setting,
        )  # fmt: skip
        drawn.sets += [tuple(chosen or ()) for chosen in counts.elements()]
        return time.perf_counter() - start

    start = time.perf_counter()
    try:
        drawn.first = drawn.mean = draw(1)
        if drawn.slow:
            drawn.note = "one draw only"
        elif asked.count > 1:
            drawn.mean = draw(asked.count - 1) / (asked.count - 1)
    except dps.SearchLimitError:
        drawn.note = f"{'other draws ' * bool(drawn.sets)}not done in {asked.limit:g} s"
        if not drawn.sets:
            drawn.first = time.perf_counter() - start
    return drawn


def _timed(one: Callable[[int], Set], asked: Asked) -> Drawn:
    """Draws of a peer, with a seed: what is compared with should stand still."""
    drawn, seconds = Drawn(), []
    for seed in range(asked.count):
        start = time.perf_counter()
        drawn.sets.append(one(seed))
        seconds.append(time.perf_counter() - start)
    drawn.first, drawn.mean = seconds[0], float(np.mean(seconds))
    return drawn
