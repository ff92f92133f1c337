"""Run a test on a sample of its problems in `make test`, and on all of them in `make statistical`.

A test that takes ``every`` looks at ``problems[::every]``. Neighbours in a table of problems differ
in their seeds, so that a slice has problems of every kind.
"""

from __future__ import annotations

import pytest


def one_in(every: int) -> pytest.MarkDecorator:
    """Parametrise ``every``: this number, and 1 in the statistical suite."""
    whole = pytest.param(1, marks=pytest.mark.statistical)
    return pytest.mark.parametrize("every", [every, whole], ids=["sample", "all"])
