"""A small audit of any mechanism: problems, neighbours, both audits, a verdict.

Every mechanism of the table can be audited without being named here: on two small problems, and on
three with an intercept or groups, under every loss that it can do and both relations of neighbours,
with random and contrary pairs.
`RECIPES` says what is special about some of them. All data are made up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

import numpy as np

from ..base.errors import ArgumentError
from ..base.validation import check_choice, check_progress
from ..mechanisms import Mechanism, Setting, mechanism
from ..objective.losses import LOSSES
from ..objective.problem import Problem
from ..privacy.guarantee import Cost
from ..privacy.relations import RELATIONS
from ..schema.layout import Layout
from .empirical import RUNS, audit_empirical
from .exact import Pair, audit_exact, label_pairs, random_pairs, worst_case_pairs
from .findings import Audit, Finding, Report
from .pairs import flattening_pairs, missing_response_pairs, tie_breaking_pairs, vote_changing_pairs
from .rows import is_plain

#: Called with the fraction of the work that is done.
Progress = Callable[[float], None]

#: Random pairs of each problem.
_RANDOM = 40
#: Pairs of each kind one of which lacks a response.
_DROPPED = 4
#: Copies of the records behind a contrary pair: enough for extreme ratios, and few enough for
#: outcomes to be seen in draws.
_MANY, _FEW = 2000, 100
#: Delta of mechanisms that need one.
DELTA = Fraction(1, 1000)
#: Default number of seconds for the draws under one loss and one relation.
SECONDS = 2.0


@dataclass(frozen=True)
class LayoutCase:
    """A problem whose choices are not columns, for supports of one choice."""

    #: Columns of each choice, and how wide it is.
    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    #: "numbers" or "labels": with the intercept of such a response; None for no intercept.
    intercept: str | None
    #: As a multiple of the loss's own: one at which contrary pairs come close to epsilon.
    prediction_bound: float


#: Numbers and groups of them with an intercept; levels, with one and without.
LAYOUTS = (
    LayoutCase((1, 1, 1), (1, 1, 1), "numbers", 0.9),
    LayoutCase((3, 3, 3), (3, 3, 3), "labels", 0.9),
    LayoutCase((3, 3, 3), (1, 1, 1), "numbers", 0.45),
    LayoutCase((3, 3, 3), (1, 1, 1), None, 0.45),
)


def few_worst_case_pairs(problem: Problem) -> Iterator[Pair]:
    """Contrary pairs whose outcomes are all likely enough to be seen."""
    return worst_case_pairs(problem, _FEW)


@dataclass(frozen=True)
class Recipe:
    """How a mechanism is audited, where that differs from the others."""

    #: Options of the mechanism: a variant of it.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: (p, k, prediction bound) of the problems, the bound as a multiple of the loss's own; draws
    #: are made on the first.
    shapes: tuple[tuple[int, int, float], ...] = ((4, 1, 0.5), (5, 2, 1.0))
    #: Problems with an intercept or groups, for exact audits.
    layouts: tuple[LayoutCase, ...] = LAYOUTS
    #: Which coefficients are allowed.
    constraint: str = "box"
    #: Neighbours to draw from, for a problem: few, and with outcomes that are not too rare.
    pairs: Callable[[Problem], Iterable[Pair]] = few_worst_case_pairs
    #: By default 0, or `DELTA` where there must be one.
    delta: Fraction | None = None
    #: Most records of a pair, where a closed form is a sum over assignments of records.
    most: int | None = None


def variants(name: str) -> list[tuple[Mechanism, Recipe]]:
    """Return the variants of a mechanism to audit: with the options of each of its recipes."""
    recipes = RECIPES.get(name, (Recipe(),))
    return [(mechanism(name, recipe.options), recipe) for recipe in recipes]


def recipe_of(chosen: Mechanism) -> Recipe:
    """The recipe that agrees with most of its options, the first of equals."""
    options = chosen.options()
    fitting = [
        recipe
        for recipe in RECIPES.get(chosen.name, ())
        if recipe.options.items() <= options.items()
    ]
    return max(fitting, key=lambda recipe: len(recipe.options), default=Recipe())


def audit(
    chosen: str | Mechanism,
    epsilon: Fraction = Fraction(1),
    delta: Fraction | None = None,
    *,
    loss: str | Sequence[str] | None = None,
    recipe: Recipe | None = None,
    runs: int = RUNS,
    seconds: float | None = SECONDS,
    progress: Progress | None = None,
) -> Report:
    """Audit a mechanism on simulated data: exactly where it has a closed form, and by draws.

    Parameters
    ----------
    chosen : str or Mechanism
        A name from `MECHANISMS`, or a mechanism with its options.
    epsilon, delta : Fraction
        The budget it is given; delta by default as the recipe has it.
    loss : str or list of str, optional
        Names from `LOSSES`; by default every loss that the mechanism can do.
    recipe : Recipe, optional
        By default what the table has for it.
    runs, seconds
        Most draws, and about the most time, under one loss and one relation of neighbours.
    progress : callable, optional
        Called with the fraction of the work that is done.
    """
    if isinstance(chosen, str):
        chosen, usual = variants(chosen)[0]
        recipe = recipe or usual
    check_progress(progress)
    recipe = recipe or recipe_of(chosen)
    if delta is None:
        delta = recipe.delta
    if delta is None:
        delta = DELTA if chosen.takes_delta == "must" else Fraction(0)
    wanted = _losses(loss)
    settings = [Setting.of(problem, epsilon, delta) for problem in _problems(recipe, wanted)]
    reasons = [_refusal(chosen, setting) for setting in settings]
    able = [setting for setting, reason in zip(settings, reasons, strict=True) if reason is None]
    if not able:
        raise ArgumentError("; ".join(dict.fromkeys(filter(None, reasons))))
    audited = {setting.problem.loss for setting in able}
    exact, empirical = list[Finding](), list[Finding]()
    assumes: set[str | None] = set()
    for done, setting in enumerate(able):
        problem = setting.problem
        for promise, pairs in _by_promise(chosen, setting, _listed(problem, recipe)):
            assumes.add(promise.assumes)
            listed = audit_exact(
                chosen, problem, epsilon, pairs, delta=delta, promised=promise.cost, skip=True
            )
            if listed.pairs:
                exact.append(_finding(listed, problem, promise))
        first = (problem.p, problem.k) == recipe.shapes[0][:2] and is_plain(problem.layout)
        if first:  # draws are for the first shape
            promises = _by_promise(chosen, setting, recipe.pairs(problem))
            for promise, pairs in promises:
                drawn = audit_empirical(
                    chosen,
                    problem,
                    epsilon,
                    pairs,
                    delta=delta,
                    promised=promise.cost,
                    runs=runs,
                    seconds=None if seconds is None else seconds / len(promises),
                )
                empirical.append(_finding(drawn, problem, promise))
        if progress is not None:
            progress((done + 1) / len(able))
    refused = {
        f"{setting.problem.neighbours}: {reason}": None
        for setting, reason in zip(settings, reasons, strict=True)
        if reason is not None and setting.problem.loss in audited
    }
    return Report(
        _name(chosen),
        (*exact, *empirical),
        epsilon,
        delta,
        mechanism=chosen.name,
        options=chosen.options(),
        assumes="; ".join(sorted(text for text in assumes if text)) or None,
        refused=tuple(refused),
        unable=tuple(name for name in wanted if name not in audited),
    )


def _name(chosen: Mechanism) -> str:
    """The name of a mechanism, with the options that are not the default."""
    special = [
        f"{option.name}={_option_text(value)}"
        for option in fields(chosen)
        if (value := getattr(chosen, option.name)) != option.default
    ]
    return chosen.name + (f" ({', '.join(special)})" if special else "")


def _finding(audited: Audit, problem: Problem, promise: _Promise) -> Finding:
    return Finding(audited, problem.neighbours, problem.neighbours, problem, promise.claimed)


def _losses(given: str | Sequence[str] | None) -> list[str]:
    if given is None:
        return [*LOSSES]
    return [
        check_choice(name, LOSSES, "loss")
        for name in ([given] if isinstance(given, str) else given)
    ]


def _problems(recipe: Recipe, losses: Iterable[str]) -> Iterator[Problem]:
    losses = list(losses)
    for loss, (p, k, prediction_bound), relation in itertools.product(
        losses, recipe.shapes, RELATIONS
    ):
        yield Problem.create(
            p,
            k,
            loss=loss,
            prediction_bound=prediction_bound * LOSSES[loss].prediction_bound,
            constraint=recipe.constraint,
            neighbours=relation,
            intercept=False,
        )
    for loss, laid, relation in itertools.product(losses, recipe.layouts, RELATIONS):
        yield Problem.create(
            len(laid.sizes),
            1,
            loss=loss,
            prediction_bound=laid.prediction_bound * LOSSES[loss].prediction_bound,
            constraint=recipe.constraint,
            neighbours=relation,
            intercept=laid.intercept is not None,
            labels=laid.intercept == "labels",
            layout=Layout.of(laid.sizes, laid.widths),
        )


def _refusal(chosen: Mechanism, setting: Setting) -> str | None:
    """Return why a mechanism refuses to run; None if it does not."""
    try:
        chosen.check(setting)
    except ArgumentError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class _Promise:
    cost: Cost
    claimed: bool
    assumes: str | None


def _by_promise(
    chosen: Mechanism, setting: Setting, pairs: Iterable[Pair]
) -> list[tuple[_Promise, list[Pair]]]:
    """Pairs of one promise together: where n is public, a promise may depend on it."""
    groups: dict[_Promise, list[Pair]] = {}
    relation = setting.problem.neighbours
    for pair in pairs:
        records = chosen.needs_records or LOSSES[setting.problem.loss].needs_records
        if records and pair.records is None:
            continue
        guarantee = chosen.guarantee(setting.with_rows(pair.first.n))
        claimed = relation in guarantee.costs
        cost = guarantee.costs[relation] if claimed else Cost(setting.epsilon, setting.delta)
        groups.setdefault(_Promise(cost, claimed, guarantee.assumes), []).append(pair)
    return list(groups.items())


def _listed(problem: Problem, recipe: Recipe) -> Iterator[Pair]:
    """Neighbours for the exact audit: the same ones every time."""
    everywhere = random_pairs(problem, _RANDOM, np.random.default_rng(1))
    special = worst_case_pairs(problem, _MANY), label_pairs(problem, _MANY), recipe.pairs(problem)
    made: tuple[Callable[[Problem], Iterable[Pair]], ...] = (
        lambda p: random_pairs(p, _DROPPED, np.random.default_rng(2)),
        lambda p: worst_case_pairs(p, _MANY),
        recipe.pairs,
    )
    dropped = (itertools.islice(missing_response_pairs(problem, each), _DROPPED) for each in made)
    for pair in itertools.chain(everywhere, *special, *dropped):
        if recipe.most is None or pair.second.n <= recipe.most:
            yield pair


def _option_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


#: Those that are not audited like all others; the first recipe of a mechanism is its usual one.
RECIPES: dict[str, tuple[Recipe, ...]] = {
    "top-r": (
        # R = 2 flattens something; the default would keep all scores of so small a problem.
        Recipe({"R": 2}, shapes=((12, 1, 1.0), (5, 2, 1.0)), pairs=flattening_pairs),
    ),
    "mistakes": (
        Recipe(shapes=((12, 1, 1.0), (5, 2, 1.0)), pairs=flattening_pairs),
        Recipe({"anchor": (0,)}, shapes=((12, 1, 1.0),), pairs=flattening_pairs),
        Recipe({"anchor": "data"}, shapes=((6, 2, 1.0),), pairs=tie_breaking_pairs),
    ),
    # The empty set is likely, and one column gains on it and on all others.
    "choose-size": (
        Recipe(),
        Recipe({"phi": 1000}, shapes=((12, 1, 1.0), (5, 2, 1.0)), pairs=flattening_pairs),
    ),
    # With a delta, and picks enough for it to save noise.
    "peeling": (Recipe(), Recipe(shapes=((6, 3, 1.0),), delta=Fraction(1, 20))),
    # One round has a closed form; more are audited by draws.
    "hard-thresholding": (
        Recipe({"rows": 100}),
        Recipe({"rows": 100, "iterations": 1}),
        Recipe({"rows": 100, "iterations": 1}, shapes=((6, 3, 1.0),), delta=Fraction(1, 20)),
    ),
    "frank-wolfe": (Recipe(), Recipe({"iterations": 1})),
    # On a few supports so many steps are enough, and the closed form knows it.
    "metropolis": (Recipe({"steps": 300}),),
    # Two blocks, so that one vote counts; with few records all assignments can be listed.
    "sample-aggregate": (
        Recipe({"blocks": 2}, shapes=((2, 1, 1.0), (4, 2, 1.0)), pairs=vote_changing_pairs, most=7),
    ),
    "stability": (
        Recipe(
            {"blocks": 2},
            shapes=((2, 1, 1.0), (4, 2, 1.0)),
            pairs=vote_changing_pairs,
            delta=Fraction(1, 20),
            most=7,
        ),
        # Nearly as many blocks with a record as there are records: gaps that may pass the test.
        Recipe({"blocks": 100}, shapes=((2, 1, 1.0),), pairs=vote_changing_pairs, most=1),
    ),
}
