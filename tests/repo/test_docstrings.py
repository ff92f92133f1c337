"""Docstrings of public functions have the sections of numpydoc, and examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import dpsubset as dps

SECTIONS = ("Parameters", "Returns", "Raises", "Examples")
FUNCTIONS = {
    name: getattr(dps, name) for name in dps.__all__ if inspect.isfunction(getattr(dps, name))
}
#: Functions of the folders whose docstrings are complete.
COMPLETE = [
    name
    for name, function in FUNCTIONS.items()
    if inspect.unwrap(function).__module__.startswith(("dpsubset.api.", "dpsubset.papers."))
]


def test_there_are_functions_to_look_at() -> None:
    assert {"select", "fit", "tune", "suggest_bounds", "private_mean", "best_subset"} <= {*COMPLETE}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_docstring_has_all_sections(name: str) -> None:
    doc = inspect.getdoc(FUNCTIONS[name]) or ""
    headings = [line for line, below in zip(doc.splitlines(), doc.splitlines()[1:], strict=False)
                if below and set(below) == {"-"}]  # fmt: skip
    assert tuple(headings) == SECTIONS
    assert doc.splitlines()[0].endswith(".")


def examples(name: str) -> list[doctest.DocTest]:
    function: Any = inspect.unwrap(FUNCTIONS[name])
    module = importlib.import_module(function.__module__)
    found = doctest.DocTestFinder(recurse=False).find(function, name, module=module, globs={})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSUBSET_LEDGER", raising=False)
    found = examples(name)
    assert found or name not in COMPLETE
    runner, said = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for test in found:
            runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert os.listdir(tmp_path) == []


def test_a_wrong_example_is_caught() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(wrong, out=lambda _: None).failed == 1
