"""The privacy cost of a search over private steps, in advance: every fit of it is a release.

    GridSearchCV with 3 settings, 5 folds and a refit: 3 * 5 + 1 = 16 releases

`ledger_cost` adds up the cost of the fits and compares it with the limit of a ledger. `reserved`
debits all fits in one transaction, or none, and the fits then draw on that. ``GridSearchCV.fit`` or
``cross_val_score`` over steps with a ledger is refused before its first fit if the ledger does not
cover all fits (`check_search_budget`), and is debited fit by fit otherwise.

These are the costs of the fits. Scores of held-out rows, and what a search of scikit-learn chooses
by them, have no noise and are NOT PRIVATE, whatever was paid: `dpsubset.PrivateSearch` is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)
from sklearn.pipeline import FeatureUnion, Pipeline

from ..base.callers import callers
from ..base.errors import ArgumentError, DpsubsetError, LedgerError
from ..ledger.composition import Limit, Totals
from ..ledger.event import Event
from ..ledger.ledger import Ledger
from ..ledger.spending import LedgerLike, opened, whole_cost
from .estimator import PrivateEstimator, check_arguments

__all__ = ["LedgerCost", "ledger_cost", "reserved"]


@dataclass(frozen=True)
class LedgerCost:
    """The cost of fits for a ledger. Public.

    Attributes
    ----------
    fits : int
        Number of releases.
    cost : Totals
        The cost of all of them.
    spent, after : Totals
        What is spent now, and what would be spent after the fits.
    limit : Limit
        The limit of the ledger.
    """

    fits: int
    cost: Totals
    spent: Totals
    limit: Limit

    @property
    def after(self) -> Totals:
        """What would be spent after the fits."""
        return self.spent + self.cost

    @property
    def fits_in(self) -> bool:
        """Whether the limit admits all fits."""
        return self.limit.admits(self.after)

    def __str__(self) -> str:
        verdict = "the limit allows this" if self.fits_in else "the limit does NOT allow this"
        return (
            f"{self.fits} releases: {self.limit.shown(self.cost)}; with "
            f"{self.limit.shown(self.spent)} spent already it would be "
            f"{self.limit.shown(self.after)} of {self.limit}: {verdict}"
            f"{f'. {self.after.proviso}' if self.after.assumes else ''}"
        )


def ledger_cost(
    estimator: Any, X: Any, y: Any, *, cv: Any = None, ledger: LedgerLike = None
) -> LedgerCost:
    """Return the cost of ``fit`` of an estimator, a pipeline or a search. Spends nothing.

    The cost is that of the fits. The scores of a search or a cross-validation, and
    ``best_params_``, come from held-out rows without noise and are not private, even if every fit
    is paid for. A :class:`dpsubset.PrivateSearch` is private as a whole, and is priced here too.

    Parameters
    ----------
    estimator : estimator
        A private estimator, a Pipeline, FeatureUnion or ColumnTransformer with such steps, or a
        GridSearchCV or RandomizedSearchCV over one.
    X, y
        The data of the fit; no value is read.
    cv : int or splitter, optional
        For a cross-validation of the estimator: its fits are counted once for each fold.
    ledger : path, URL or Ledger, optional
        By default that of the private steps.

    Returns
    -------
    LedgerCost
    """
    book, events = _ledger_and_events(estimator, X, y, cv, ledger)
    standing, declared = book.standing(), book.declaration
    cost = sum((declared.cost_of(event) for event in events), start=Totals())
    return LedgerCost(len(events), cost, standing.current, standing.limit)


@contextmanager
def reserved(
    estimator: Any, X: Any, y: Any, *, cv: Any = None, ledger: LedgerLike = None
) -> Iterator[Any]:
    """Debit all fits at once, or raise `BudgetExceeded` before the first; then fit.

    ::

        with dpsubset.reserved(search, X, y) as paid:
            paid.fit(X, y)

    Parameters are those of :func:`ledger_cost`. The context variable is a copy of the estimator
    whose private steps draw on the reservation, in this process or in workers. Paying for the fits
    does not make the scores of a search private, nor what it chooses by them. At the end, debits
    for which nothing was read become void. A refit is reserved at the cost of the most expensive
    setting.
    """
    book, events = _ledger_and_events(estimator, X, y, cv, ledger)
    if not events:
        raise ArgumentError("there is no private step with a ledger in this estimator")
    batch = uuid.uuid4().hex
    keys = [f"{batch}.{i:05d}" for i in range(len(events))]
    book.reserve_all(events, keys)
    paid = clone(estimator)
    for step in _private_steps(paid):
        step.ledger = book.of_batch(batch)
    try:
        yield paid
    finally:
        for key in keys:
            if book.entry(key).state == "reserved":
                # A fit may have claimed the debit in the meantime: then it stays.
                with suppress(LedgerError):
                    book.void(key, reason="the search ended without this fit")


def check_search_budget(step: Any) -> None:
    """Raise `BudgetExceeded` before the first fit of a search whose fits exceed the limit.

    scikit-learn copies the private steps of a search before the first fit. The copy is where this
    is called, and the search is found among the callers. If there is none, or its fits cannot be
    counted, fits are debited one by one, and late ones may be refused.
    """
    if getattr(step.ledger, "in_batch", False):
        return
    found = _search_that_starts()
    if found is None:
        return
    search, cv, X, y = found
    if cv is not None:
        # The step is copied once for each fold.
        if getattr(step, "_counted", None) is cv:
            return
        step._counted = cv
    try:
        book, events = _ledger_and_events(search, X, y, cv, None)
    except (DpsubsetError, TypeError, ValueError):
        return  # the fit raises a better message
    book.check(events)


def _search_that_starts() -> tuple[Any, Any, Any, Any] | None:
    """Return the search or cross-validation among the callers that has made no fit yet."""
    for module, function, frame in callers():
        if function in ("evaluate_candidates", "_fit_and_score") or (
            (module, function) == (__name__, "_ledger_and_events")
        ):
            return None  # it has made fits, or is being counted
        local = frame.f_locals
        if function == "fit" and isinstance(local.get("self"), (GridSearchCV, RandomizedSearchCV)):
            # The refit, at the end, makes a copy too.
            started = "base_estimator" in local
            return None if started else (local["self"], None, local.get("X"), local.get("y"))
        if function == "cross_validate" and hasattr(local.get("cv"), "get_n_splits"):
            return local.get("estimator"), local["cv"], local.get("X"), local.get("y")
    return None


def _ledger_and_events(
    estimator: Any, X: Any, y: Any, cv: Any, ledger: LedgerLike
) -> tuple[Ledger, list[Event]]:
    """Return the one ledger of the private steps, and all releases that a fit would make."""
    books = {}
    for step in _private_steps(estimator):
        book = opened(step.ledger if ledger is None else ledger)
        if book is not None:
            books[book.address] = book
    if len(books) != 1:
        raise ArgumentError(
            "the private steps of an estimator need one ledger: pass ledger=, to them or here"
        )
    (book,) = books.values()
    events = _events(estimator, X, y)
    if cv is not None:
        events = events * _folds(cv, X, y)
    return book, events


def _private_steps(estimator: Any) -> list[Any]:
    found = [estimator] if isinstance(estimator, PrivateEstimator) else []
    deep = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    steps = {id(value): value for value in deep if isinstance(value, PrivateEstimator)}
    return [*found, *steps.values()]


def events_of(estimator: Any) -> list[Event]:
    """Return all releases of one fit of an estimator whose private steps have schemas."""
    events = _events(estimator, None, None)
    if not events:
        raise ArgumentError("there is no private step in this estimator")
    return events


def _events(estimator: Any, X: Any, y: Any) -> list[Event]:
    """Return all releases of one fit. X is None for a step whose input is not known in advance."""
    from .private_search import PrivateSearch

    if isinstance(estimator, PrivateEstimator):
        return [_event(estimator, X, y)]
    if isinstance(estimator, PrivateSearch):
        return [estimator.event(X, y)]
    if isinstance(estimator, Pipeline):
        found = []
        for i, (_, step) in enumerate(estimator.steps):
            found += _events(step, X if i == 0 else None, y)
        return found
    if isinstance(estimator, FeatureUnion):
        return [event for _, step in estimator.transformer_list for event in _events(step, X, y)]
    if isinstance(estimator, ColumnTransformer):
        return [event for _, step, _ in estimator.transformers for event in _events(step, None, y)]
    if isinstance(estimator, (GridSearchCV, RandomizedSearchCV)):
        return _events_of_search(estimator, X, y)
    if isinstance(estimator, BaseEstimator) and _private_steps(estimator):
        raise ArgumentError(
            f"how often {type(estimator).__name__} fits its private steps is not known here: "
            "reserve the fits one by one"
        )
    return []


def _events_of_search(search: Any, X: Any, y: Any) -> list[Event]:
    if isinstance(search, GridSearchCV):
        candidates = list(ParameterGrid(search.param_grid))
    else:
        if not isinstance(search.random_state, int):
            raise ArgumentError(
                "a RandomizedSearchCV needs an integer random_state: otherwise its settings are "
                "not known in advance"
            )
        candidates = list(
            ParameterSampler(
                search.param_distributions, search.n_iter, random_state=search.random_state
            )
        )
    each = [_events(clone(search.estimator).set_params(**chosen), X, y) for chosen in candidates]
    folds = _folds(5 if search.cv is None else search.cv, X, y)
    events = [event for found in each for event in found * folds]
    if search.refit and each:
        events += max(each, key=_worst_epsilon)
    return events


def _worst_epsilon(events: Iterable[Event]) -> Fraction:
    worst = (max(cost.epsilon for cost in event.costs.values()) for event in events)
    return sum(worst, start=Fraction(0))


def _folds(cv: Any, X: Any, y: Any) -> int:
    if not isinstance(cv, int) and not hasattr(cv, "get_n_splits") and not isinstance(cv, list):
        raise ArgumentError("cv must be an integer, a splitter or a list of splits")
    # Without y, since the number of folds must not depend on labels.
    return int(check_cv(cv).get_n_splits(X))


def _event(estimator: Any, X: Any, y: Any) -> Event:
    """Return the event of one fit.

    Pure costs are reserved as a whole: with another number of rows, as in a fold, a fit may divide
    them in another way.
    """
    from ..api.fit import event_of_fit
    from ..api.select import event_of_select
    from .predictors import Predictor

    event_of = event_of_fit if isinstance(estimator, Predictor) else event_of_select
    if X is not None:
        data, arguments = check_arguments(clone(estimator), X, y)
        arguments["y"] = y
    else:
        if estimator.schema is None:
            raise ArgumentError(
                "a private step that is not the first of its pipeline, or whose table is not "
                "given, needs a schema: otherwise its cost is not known in advance"
            )
        data, arguments = None, estimator.release_arguments()
    arguments.pop("ledger")
    event = event_of(data, **arguments)
    costs = {relation: whole_cost(cost) if cost.kind == "pure" else cost
             for relation, cost in event.costs.items()}  # fmt: skip
    return replace(event, costs=costs)
