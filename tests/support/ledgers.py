"""Ledgers for tests: events of a given cost, and both databases."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsubset as dps
from dpsubset.ledger.event import Event
from dpsubset.privacy.guarantee import Cost

#: Set by tools/postgres.py.
POSTGRES = os.environ.get("DPSUBSET_TEST_POSTGRES")
BACKENDS = ["sqlite", "postgresql"]


def event(epsilon: Any = 1, cost: Cost | None = None, **changes: Any) -> Event:
    """A release that costs epsilon under both relations."""
    cost = Cost(Fraction(epsilon)) if cost is None else cost
    facts: dict[str, Any] = {
        "what": "select", "mechanism": "permute-and-flip", "options": {"k": 2},
        "costs": {"replace-one": cost, "add-remove": cost}, "unit": "one row", "rows_per_unit": 1,
        "schema": "0" * 64,
    }  # fmt: skip
    return Event(**{**facts, **changes})


def address_of(backend: str, folder: Path, data_set: str | None = None) -> tuple[str, str]:
    """Where a new ledger may be, and the name of its data set."""
    name = f"{data_set or 'patients'} {uuid.uuid4().hex[:8]}"
    if backend == "sqlite":
        return str(folder / f"{uuid.uuid4().hex[:8]}.db"), name
    if POSTGRES is None:
        pytest.skip("no PostgreSQL server: tools/postgres.py starts one")
    return f"{POSTGRES}#{name}", name


def made(backend: str, folder: Path, **declared: Any) -> dps.Ledger:
    """A new ledger, with a limit of epsilon = 10 unless another is given."""
    address, name = address_of(backend, folder)
    if "rho" not in declared:
        declared.setdefault("epsilon", 10)
    facts = {"data_set": name, "owner": "Ann", "purpose": "tests", **declared}
    return dps.Ledger.create(address, **facts)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a database that is there."""
    if request.param == "postgresql" and POSTGRES is None:
        pytest.skip("no PostgreSQL server: tools/postgres.py starts one")
    return str(request.param)


@pytest.fixture
def ledger(backend: str, tmp_path: Path) -> Iterator[dps.Ledger]:
    """A ledger with room for epsilon = 10."""
    book = made(backend, tmp_path)
    yield book
    book.close()
