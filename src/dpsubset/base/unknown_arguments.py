"""Refuse keyword arguments that a function does not have, and name those that were meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

#: What other libraries call our arguments.
_OTHER_NAMES = {
    **dict.fromkeys(("eps", "budget", "privacy_budget"), "epsilon"),
    **dict.fromkeys(("n_features_to_select", "n_features", "max_features", "k_features"), "k"),
    **dict.fromkeys(("random_state", "random_seed", "rng"), "seed"),
    **dict.fromkeys(("target", "label", "response", "Y"), "y"),
    **dict.fromkeys(("X", "x", "df", "table", "path"), "data"),
    **dict.fromkeys(("bound", "limits"), "bounds"),
    **dict.fromkeys(("alpha", "l2", "lam", "lambda_", "regularization"), "ridge"),
    **dict.fromkeys(("budget_fraction", "share", "width"), "rule"),
    "fit_intercept": "intercept",
    "neighbors": "neighbours",
    "method": "mechanism",
    "verbose": "progress",
}

#: What to know of an argument before it is taken for the one that was meant.
_NOTES = {
    "seed": " (a seed is for tests: a draw with one is not private)",
    "rule": " (as in rule=dpsubset.FitRule(budget_fraction=0.5))",
    "y": " (the values; where they are a column of the table, the schema names it)",
}

#: What to do where the argument that was meant is none of the function's.
_ELSEWHERE = {
    "y": ": the response is passed to fit(X, y)",
    "data": ": the table is passed to fit(X, y)",
}


def check_keywords(given: Iterable[str], known: Collection[str], function: str) -> None:
    """Raise TypeError for the first keyword argument that is not known."""
    for name in given:
        if name not in known:
            raise TypeError(f"{function}(): unknown argument {name}{_meant(name, known)}")


def _meant(name: str, known: Collection[str]) -> str:
    meant = _OTHER_NAMES.get(name)
    has_table = "tables" not in known  # a power analysis simulates its tables, and its seed is fine
    if meant is not None and meant not in known:
        return _ELSEWHERE.get(meant, "") if has_table else ""
    close = [meant] if meant is not None else get_close_matches(name, known, 1)
    note = _NOTES.get(close[0], "") if close and has_table else ""
    return f"; did you mean {close[0]}?{note}" if close else ""
