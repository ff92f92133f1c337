"""What a search over private steps costs, in advance: every fit of it is a release.

The costs are those of the fits. Scores of held-out rows, and what a search of scikit-learn chooses
by them, have no noise and are NOT PRIVATE, whatever was paid: `dpsubset.PrivateSearch` is.

    GridSearchCV with 3 settings, 5 folds and a refit: 3 * 5 + 1 = 16 releases

`ledger_cost` counts them and asks a ledger whether there is room. `reserved` debits all of them in
one transaction, or none, and the fits then draw on that. A plain ``GridSearchCV.fit`` or
``cross_val_score`` over steps with a ledger is refused before its first fit if there is no room for
all (`refuse_early`), and debits fit by fit otherwise.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from types import FrameType
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

from ..base.errors import ArgumentError, DpsubsetError, LedgerError
from ..ledger.composition import Limit, Totals
from ..ledger.event import Event
from ..ledger.ledger import Ledger
from ..ledger.spending import LedgerLike, opened, whole_cost

__all__ = ["LedgerCost", "ledger_cost", "reserved"]


@dataclass(frozen=True)
class LedgerCost:
    """What fits would cost a ledger. Public.

    Attributes
    ----------
    fits : int
        How many releases.
    cost, spent, after : Totals
        Of all of them; what is spent now; what would be spent then.
    limit : Limit
    """

    fits: int
    cost: Totals
    spent: Totals
    limit: Limit

    @property
    def after(self) -> Totals:
        """What would be spent."""
        return self.spent + self.cost

    @property
    def fits_in(self) -> bool:
        """Whether there is room."""
        return self.limit.admits(self.after)

    def __str__(self) -> str:
        room = "there is room" if self.fits_in else "there is NO room"
        return (
            f"{self.fits} releases: {self.limit.shown(self.cost)}; with "
            f"{self.limit.shown(self.spent)} spent already it would be "
            f"{self.limit.shown(self.after)} of {self.limit}: {room}"
            f"{f'. {self.after.proviso}' if self.after.assumes else ''}"
        )


def ledger_cost(
    estimator: Any, X: Any, y: Any, *, cv: Any = None, ledger: LedgerLike = None
) -> LedgerCost:
    """What ``fit`` of an estimator, a pipeline or a search would cost. Spends nothing.

    It is the cost of the fits. The scores of a search or a cross-validation, and ``best_params_``,
    come from held-out rows without noise and are not private, even if every fit is paid for. A
    :class:`dpsubset.PrivateSearch` is private as a whole, and is priced here too.

    Parameters
    ----------
    estimator : estimator
        A private estimator, a Pipeline, FeatureUnion or ColumnTransformer with such steps, or a
        GridSearchCV or RandomizedSearchCV over one.
    X, y
        What it would be fitted on; no value is read.
    cv : int or splitter, optional
        Of a cross-validation of the estimator: its fits are counted once for each fold.
    ledger : path, URL or Ledger, optional
        By default that of the private steps.
    """
    book, events = _asked(estimator, X, y, cv, ledger)
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

    Parameters are those of :func:`ledger_cost`. What it gives is a copy of the estimator whose
    private steps draw on the reservation, in this process or in workers. Paying for the fits does
    not make the scores of a search private, nor what it chooses by them. At the end, debits for
    which nothing was read become void. A refit is reserved at the cost of the dearest setting.
    """
    book, events = _asked(estimator, X, y, cv, ledger)
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
                # Somebody may have claimed it in between: then it stays.
                with suppress(LedgerError):
                    book.void(key, reason="the search ended without this fit")


def refuse_early(step: Any) -> None:
    """Before the first fit of a search that a private step is copied for: is there room for all?

    scikit-learn copies the estimator of a search before the first fit, and tells it nothing. So
    this looks for the search among the callers. Where there is none, or one whose fits cannot be
    counted, fits are debited one by one and the last ones may be refused.
    """
    if getattr(step.ledger, "in_batch", False):
        return
    found = _searching(sys._getframe(2))
    if found is None:
        return
    search, cv, X, y = found
    if cv is not None:
        # It is copied once for each fold.
        if getattr(step, "_counted", None) is cv:
            return
        step._counted = cv
    try:
        book, events = _asked(search, X, y, cv, None)
    except (DpsubsetError, TypeError, ValueError):
        return  # a fit will say it better
    book.check(events)


def _searching(frame: FrameType | None) -> tuple[Any, Any, Any, Any] | None:
    """The search, or the cross-validation, that is about to begin."""
    while frame is not None:
        name, local = frame.f_code.co_name, frame.f_locals
        if name in ("evaluate_candidates", "_fit_and_score", "refuse_early"):
            return None  # it has begun, or is being counted
        if name == "fit" and isinstance(local.get("self"), (GridSearchCV, RandomizedSearchCV)):
            # The refit is copied too, at the end.
            begun = "base_estimator" in local
            return None if begun else (local["self"], None, local.get("X"), local.get("y"))
        if name == "cross_validate" and hasattr(local.get("cv"), "get_n_splits"):
            return local.get("estimator"), local["cv"], local.get("X"), local.get("y")
        frame = frame.f_back
    return None


def _asked(
    estimator: Any, X: Any, y: Any, cv: Any, ledger: LedgerLike
) -> tuple[Ledger, list[Event]]:
    """The ledger, and all releases that a fit would make."""
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


def _is_private(estimator: Any) -> bool:
    from .predictors import Predictor
    from .selector import PrivateSubsetSelector

    return isinstance(estimator, (PrivateSubsetSelector, Predictor))


def _private_steps(estimator: Any) -> list[Any]:
    found = [estimator] if _is_private(estimator) else []
    deep = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return [*found, *{id(value): value for value in deep if _is_private(value)}.values()]


def events_of(estimator: Any) -> list[Event]:
    """All releases of one fit, of an estimator whose private steps have schemas."""
    events = _events(estimator, None, None)
    if not events:
        raise ArgumentError("there is no private step in this estimator")
    return events


def _events(estimator: Any, X: Any, y: Any) -> list[Event]:
    """All releases of one fit. X is None where steps before make another one of it."""
    from .private_search import PrivateSearch

    if _is_private(estimator):
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
            f"how often {type(estimator).__name__} fits its private steps is not known here: count "
            "the fits, and reserve them one by one"
        )
    return []


def _events_of_search(search: Any, X: Any, y: Any) -> list[Event]:
    if isinstance(search, GridSearchCV):
        candidates = list(ParameterGrid(search.param_grid))
    else:
        if not isinstance(search.random_state, int):
            raise ArgumentError(
                "a RandomizedSearchCV needs a whole number for random_state: otherwise what it "
                "will try is not known beforehand"
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
        events += max(each, key=_dearness)
    return events


def _dearness(events: Iterable[Event]) -> Fraction:
    dearest = (max(cost.epsilon for cost in event.costs.values()) for event in events)
    return sum(dearest, start=Fraction(0))


def _folds(cv: Any, X: Any, y: Any) -> int:
    if not isinstance(cv, int) and not hasattr(cv, "get_n_splits") and not isinstance(cv, list):
        raise ArgumentError("cv must be a whole number, a splitter or a list of splits")
    # Without y: the number of folds must not depend on labels.
    return int(check_cv(cv).get_n_splits(X))


def _event(estimator: Any, X: Any, y: Any) -> Event:
    """Of one fit. Pure costs are reserved as a whole: folds may divide them in other ways."""
    from ..api.fit import event_of_fit
    from ..api.select import event_of_select
    from .selector import PrivateSubsetSelector, checked

    price = event_of_select if isinstance(estimator, PrivateSubsetSelector) else event_of_fit
    if X is not None:
        data, asked = checked(clone(estimator), X, y)
        asked["y"] = y
    else:
        if estimator.schema is None:
            raise ArgumentError(
                "a private step that is not the first of its pipeline, or whose table is not "
                "given, needs a schema, for its cost to be known beforehand"
            )
        data, asked = None, estimator.get_params(deep=False)
    asked.pop("ledger")
    event = price(data, **asked)
    costs = {relation: whole_cost(cost) if cost.kind == "pure" else cost
             for relation, cost in event.costs.items()}  # fmt: skip
    return replace(event, costs=costs)
