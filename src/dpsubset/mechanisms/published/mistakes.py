"""Mistakes: every support has the best score of its bucket around an anchor.

Bucket i contains the supports with i mistakes relative to the anchor, that is, with i of its
features replaced. A bucket is drawn, then a support uniformly within it.

In the published version the anchor is the best support of the data itself. Then one record that
changes the best support changes all buckets at once, and no epsilon holds: see proofs/mistakes.md.
Here the anchor does not depend on the scores that are then drawn from: it is public, or released
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...base.validation import check_fraction, check_int
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.random import Randomness
from ...search.best import Best, best_supports
from ...search.engine import Engine, Flat
from ...search.enumerate import ScoredSupports, enumerate_supports
from ...search.race import Race
from ...search.region import Region
from ..permute_and_flip import PermuteAndFlip
from ..shared.base import (
    Data,
    Distribution,
    Mechanism,
    Outcome,
    Sampler,
    Scored,
    ScoreMechanism,
    Setting,
)
from ..shared.plain import PLAIN, check_form, flips

Support = tuple[int, ...]


@dataclass(frozen=True)
class Mistakes(Scored):
    """Prastakos, Behdin and Mazumder's mechanism, with an anchor for which the guarantee holds.

    Attributes
    ----------
    anchor : "private", "data", or k variables
        The anchor. Variables by name or position are a public anchor, which costs nothing.
        "private" releases an anchor first, by permute-and-flip. "data" is the published version,
        which has no guarantee.
    share : Fraction
        Fraction of epsilon for a private anchor.
    form : {"exponential", "permute-and-flip"}
        The mechanism that draws from the scores of the buckets.
    """

    anchor: Any = "private"
    share: Fraction = field(default=Fraction(1, 2))
    form: str = "exponential"

    name = "mistakes"
    place = 4
    summary = (
        "Sets of variables are grouped by the number of variables in which they differ from one "
        "given set, the anchor. Each set counts with the best score of its group. One set is drawn "
        "by these scores, and sets of one group are equally likely."
    )
    source = "Prastakos, Behdin and Mazumder 2025; the anchor independent of the scores is ours"
    promises = "pure epsilon with a public or private anchor; no guarantee with the published one"
    running_time = "a certified search in each of the k + 1 buckets: milliseconds to seconds"
    use_when = "a good estimate of the support is public, or figures are to be reproduced"

    def __post_init__(self) -> None:
        check_form(self.form)
        if not isinstance(self.anchor, str):
            self._set_options(anchor=_variables(self.anchor))
        elif self.anchor not in ("private", "data"):
            # The name of a single variable, from the command line with k = 1.
            self._set_options(anchor=(self.anchor,))
        self._set_options(share=check_fraction(self.share, "share"))
        if not 0 < self.share < 1:
            raise ArgumentError("share must lie between 0 and 1, both excluded")

    @property
    def proven(self) -> bool:
        return bool(self.anchor != "data")

    def named(self, position: Callable[[int | str], int]) -> Mechanism:
        if isinstance(self.anchor, str):
            return self
        return replace(self, anchor=tuple(sorted(position(name) for name in self.anchor)))

    def check(self, setting: Setting) -> None:
        super().check(setting)
        if isinstance(self.anchor, str):
            return
        problem = setting.problem
        anchor = {check_int(j, "anchor") for j in self.anchor}
        if len(anchor) != problem.k or not all(0 <= j < problem.p for j in anchor):
            raise ArgumentError(f"anchor must name k = {problem.k} different variables")
        if not anchor.issuperset(problem.always_include):
            raise ArgumentError("anchor must name the variables that are always included")

    def etas(self, setting: Setting) -> tuple[Fraction, Fraction]:
        """Weights of the scores for the anchor and for the buckets."""
        share = self.share if self.anchor == "private" else Fraction(0)
        neighbours = setting.problem.neighbours
        whole_weight = setting.sensitivity.eta(setting.epsilon, neighbours)
        return share * whole_weight, (1 - share) * whole_weight

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """The cost of anchor and buckets; none with the data's own anchor."""
        neighbours = setting.problem.neighbours
        if not self.proven:
            return Guarantee(neighbours, {}, seeded)
        weight = sum(self.etas(setting), Fraction(0))
        return Guarantee.of_weight(weight, setting.sensitivity.score_range, neighbours, seeded)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """Two races on the engine: for the anchor, then over buckets of one score each."""
        for_anchor, for_buckets = self.etas(setting)
        engine = data.engine(setting, math.inf)  # for optimisation
        buckets = _Buckets(engine, for_buckets, flips(self.form))
        if self.anchor == "private":
            return _Anchored(PermuteAndFlip().race(data.engine(setting, for_anchor), for_anchor),
                             buckets)  # fmt: skip
        anchor = best_supports(engine, 1)[0][1] if self.anchor == "data" else self.anchor
        return buckets.around(tuple(anchor))

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        scored = enumerate_supports(data.gram, setting.problem, setting.sensitivity.score_step)
        supports = [scored.support(i) for i in range(len(scored))]
        form, (for_anchor, for_buckets) = PLAIN[self.form](), self.etas(setting)

        def around(anchor: Support) -> NDArray[np.float64]:
            return form.log_probabilities(bucketed(scored, anchor), for_buckets)

        listed: list[Outcome] = list(supports)
        if self.anchor == "data":
            return listed, around(supports[int(np.argmin(scored.scores))])
        if self.anchor != "private":
            return listed, around(self.anchor)
        anchors = PermuteAndFlip().log_probabilities(scored, for_anchor)
        logs = np.array([a + around(s) for a, s in zip(anchors, supports, strict=True)])
        return listed, np.asarray(np.logaddexp.reduce(logs, axis=0))

    def details(self, setting: Setting) -> list[str]:
        epsilon = setting.epsilon
        origin = {
            "private": f"The anchor was released by permute-and-flip at {self.share} of epsilon "
            f"= {shown_up(epsilon)} and is not published.",
            "data": "The anchor was the best support of the data, which voids the guarantee.",
        }
        stated = origin.get(self.anchor) if isinstance(self.anchor, str) else None
        sentences = ScoreMechanism.details(PLAIN[self.form](), setting)
        return [*sentences, stated or "The anchor was public knowledge."]


def _variables(anchor: Any) -> tuple[Any, ...]:
    """Several names or positions or, as on the command line for k = 1, a single one."""
    if isinstance(anchor, Iterable):
        try:
            return tuple(anchor)
        except TypeError:  # an array that is a single number
            pass
    return (check_int(anchor, "anchor"),)


def bucketed(scored: ScoredSupports, anchor: Support) -> ScoredSupports:
    """Every support with the best score of its bucket."""
    mistakes = (~np.isin(scored.supports, anchor)).sum(axis=1)
    scores = scored.scores.copy()
    for bucket in np.unique(mistakes):
        here = mistakes == bucket
        scores[here] = scored.scores[here].min()
    return ScoredSupports(scored.supports, scores, scored.score_step)


class _Buckets:
    """Races over the buckets around an anchor, reused between draws."""

    def __init__(self, engine: Engine, eta: Fraction, permute_and_flip: bool) -> None:
        self._engine, self._eta, self._flip = engine, eta, permute_and_flip
        self._races: dict[Support, Race] = {}

    def around(self, anchor: Support) -> Race:
        if anchor not in self._races:
            problem = self._engine.problem
            leaves: list[Flat] = []
            for mistakes in range(problem.k + 1):
                region = Region.bucket(problem, anchor, mistakes)
                if region is not None:
                    # Searched as far as the race needs, which is seldom to the end.
                    leaves.append(Flat(region, search=Best(self._engine, region)))
                    leaves[-1].narrow()
            self._races[anchor] = Race(
                self._engine, self._eta, permute_and_flip=self._flip, leaves=leaves
            )
        return self._races[anchor]


class _Anchored(Sampler):
    """A released anchor, then the buckets around it."""

    def __init__(self, anchors: Sampler, buckets: _Buckets) -> None:
        self._anchors, self._buckets = anchors, buckets

    def draw(self, rng: Randomness) -> Outcome:
        anchor = self._anchors.draw(rng)
        assert anchor is not None
        return self._buckets.around(anchor).draw(rng)
