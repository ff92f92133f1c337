"""The examples in the docstrings of the public estimators run."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import dpsubset as dps

PUBLIC = (
    dps.PrivateSubsetSelector,
    dps.PrivateSubsetRegressor,
    dps.PrivateSubsetClassifier,
    dps.PrivateSearch,
)


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_the_example_of_a_class_runs(cls: Any) -> None:
    found = doctest.DocTestFinder(recurse=False).find(cls, cls.__name__)
    (example,) = found
    assert example.examples
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
