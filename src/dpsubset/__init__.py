"""dpsubset: which k of p variables matter, under pure differential privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        ArgumentError,
        BudgetExceeded,
        ColumnTypeWarning,
        DpsubsetError,
        LedgerError,
        NotPrivateWarning,
        SchemaError,
        SearchLimitError,
        TableError,
    )
    from .estimates.means import private_mean, sparse_mean
    from .estimates.regression import sparse_regression
    from .estimators import PrivateSubsetSelector
    from .fitting import fit, price_fit
    from .ledger.ledger import Ledger
    from .mechanisms import MECHANISMS, Mechanism
    from .models.rule import FitRule
    from .optimum import best_in_bucket, best_subset, top_supports
    from .planning import Expectation, Population, plan
    from .predictors import PrivateSubsetClassifier, PrivateSubsetRegressor
    from .privacy.guarantee import Guarantee
    from .privacy.scale import ScaleRule
    from .private_search import PrivateSearch
    from .public.response_scale import ResponseScale
    from .public.schema import Bounds, Schema
    from .refitting import fit_released
    from .release.about import About
    from .release.bounds import SuggestedBounds
    from .release.estimate import Estimate
    from .release.model import Model
    from .release.release import Release
    from .research.chains import mixing_steps, traces_not_private
    from .research.cost import cost_of_privacy
    from .sample import Sample, read_sample
    from .searches import ledger_cost, reserved
    from .selection import Price, price, select, simulate
    from .suggestion import suggest_bounds
    from .table.moments import Moments
    from .tuning import price_tune, tune

__version__ = "0.1.0"

# Imported when first used: numba and scikit-learn would make `dpsubset --help` slow.
_HOMES = {
    "About": "release.about",
    "ArgumentError": "errors",
    "Bounds": "public.schema",
    "BudgetExceeded": "errors",
    "ColumnTypeWarning": "errors",
    "DpsubsetError": "errors",
    "FitRule": "models.rule",
    "Estimate": "release.estimate",
    "Expectation": "planning",
    "Guarantee": "privacy.guarantee",
    "Ledger": "ledger.ledger",
    "LedgerError": "errors",
    "MECHANISMS": "mechanisms",
    "Mechanism": "mechanisms",
    "Model": "release.model",
    "Moments": "table.moments",
    "NotPrivateWarning": "errors",
    "Population": "planning",
    "Price": "selection",
    "PrivateSearch": "private_search",
    "PrivateSubsetClassifier": "predictors",
    "PrivateSubsetRegressor": "predictors",
    "PrivateSubsetSelector": "estimators",
    "Release": "release.release",
    "ResponseScale": "public.response_scale",
    "ScaleRule": "privacy.scale",
    "Sample": "sample",
    "Schema": "public.schema",
    "SchemaError": "errors",
    "SearchLimitError": "errors",
    "TableError": "errors",
    "SuggestedBounds": "release.bounds",
    "best_in_bucket": "optimum",
    "best_subset": "optimum",
    "fit": "fitting",
    "fit_released": "refitting",
    "mixing_steps": "research.chains",
    "plan": "planning",
    "price": "selection",
    "price_fit": "fitting",
    "price_tune": "tuning",
    "cost_of_privacy": "research.cost",
    "ledger_cost": "searches",
    "private_mean": "estimates.means",
    "read_sample": "sample",
    "reserved": "searches",
    "select": "selection",
    "simulate": "selection",
    "sparse_mean": "estimates.means",
    "sparse_regression": "estimates.regression",
    "suggest_bounds": "suggestion",
    "top_supports": "optimum",
    "traces_not_private": "research.chains",
    "tune": "tuning",
}

__all__ = [
    "MECHANISMS",
    "About",
    "ArgumentError",
    "Bounds",
    "BudgetExceeded",
    "ColumnTypeWarning",
    "DpsubsetError",
    "Estimate",
    "Expectation",
    "FitRule",
    "Guarantee",
    "Ledger",
    "LedgerError",
    "Mechanism",
    "Model",
    "Moments",
    "NotPrivateWarning",
    "Population",
    "Price",
    "PrivateSearch",
    "PrivateSubsetClassifier",
    "PrivateSubsetRegressor",
    "PrivateSubsetSelector",
    "Release",
    "ResponseScale",
    "Sample",
    "ScaleRule",
    "Schema",
    "SchemaError",
    "SearchLimitError",
    "SuggestedBounds",
    "TableError",
    "best_in_bucket",
    "best_subset",
    "cost_of_privacy",
    "fit",
    "fit_released",
    "ledger_cost",
    "mixing_steps",
    "plan",
    "price",
    "price_fit",
    "price_tune",
    "private_mean",
    "read_sample",
    "reserved",
    "select",
    "simulate",
    "sparse_mean",
    "sparse_regression",
    "suggest_bounds",
    "top_supports",
    "traces_not_private",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
