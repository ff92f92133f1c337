"""Run a test on a sample of its problems in `make test`, and on all of them in `make statistical`.

A test that takes ``every`` looks at ``problems[::every]``, or at ``sample(problems, every, ...)``
where every case has few problems. ``every`` should have no factor in common with the number of
seeds, so that the sample has problems of every kind.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")


def one_in(every: int) -> pytest.MarkDecorator:
    """Parametrise ``every``: this number, and 1 in the statistical suite."""
    whole = pytest.param(1, marks=pytest.mark.statistical)
    return pytest.mark.parametrize("every", [every, whole], ids=["sample", "all"])


def sample(problems: Sequence[T], every: int, *case: object) -> Sequence[T]:
    """Each so many-th problem, from a start that differs from case to case."""
    return problems[zlib.crc32(repr(case).encode()) % every :: every]
