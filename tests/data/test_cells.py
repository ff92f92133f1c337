"""What a cell reads as depends on that cell alone, in every source and container.

For tables of hostile cells: reading the whole is reading each row in a table of its own, and
replacing one row changes the reading of no other, bit for bit, without an error or a warning. A
hundred and more rows may stand in front, behind which types were once inferred; in dictionaries so
many that text would overflow.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.containers import CONTAINERS, Container
from support.reading import RICH, SCHEMAS, Drawn, check, tables

#: Tables a container: a sample, and all.
SAMPLE, ALL = 6, 160


def test_there_are_at_least_20000_tables() -> None:
    assert len(CONTAINERS) * ALL >= 20_000
    assert len({container.name for container in CONTAINERS}) == len(CONTAINERS)


def differential(container: Container, folder: Path, examples: int) -> None:
    counts = [0, 0, 0, 120] + ([2**16] if container.tall else [])

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(tables(container, SCHEMAS + RICH), st.sampled_from(counts))
    def rows_are_read_each_by_itself(drawn: Drawn, count: int) -> None:
        check(container, drawn, count, folder)

    rows_are_read_each_by_itself()


@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_rows_are_read_each_by_itself_in_a_sample(container: Container, tmp_path: Path) -> None:
    differential(container, tmp_path, SAMPLE)


@pytest.mark.statistical
@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_rows_are_read_each_by_itself(container: Container, tmp_path: Path) -> None:
    differential(container, tmp_path, ALL)
