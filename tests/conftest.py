"""One profile for all property tests: machines differ in speed, properties do not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import dpsubset
from dpsubset.base.kernels.compiled import SOURCES

settings.register_profile(
    "dpsubset", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# pytest --hypothesis-profile=thorough, when a module has changed a lot.
settings.register_profile("thorough", settings.get_profile("dpsubset"), max_examples=1500)
settings.load_profile("dpsubset")

# Tests release thousands of times from made-up tables, which no ledger must pay for.
os.environ.pop("DPSUBSET_LEDGER", None)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Throw away what was compiled from sources that are not there any more: it adds up."""
    if hasattr(session.config, "workerinput"):  # the main process has done it
        return
    for path in Path(dpsubset.__file__).parent.rglob("__pycache__/*.nb[ic]"):
        key = re.search(r"-([0-9a-f]{12})-", path.name)
        if key is None or key.group(1) != SOURCES:
            path.unlink(missing_ok=True)
