"""Whole selections from tables that differ in one row, in every container.

The distribution of the answer is known by enumeration, from the table as its source reads it: its
log ratio between neighbours stays below epsilon, and what `simulate` draws, which reads the table
for itself, agrees with it.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import dpsubset as dps
from dpsubset.audit.exact import SLACK
from dpsubset.data.gram import GramData
from dpsubset.data.readers import open_table
from dpsubset.mechanisms import Data, Setting, mechanism
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from support.containers import CONTAINERS, Container
from support.reading import Drawn, tables

EPSILON = 1

#: Copies of each row: many enough for an answer that is all but certain, one way or the other.
COPIES = 25

DRAWS = 200

#: Of one test of draws: there are up to 10,000 a run.
LEVEL = 1e-11

#: Pairs a container: a sample, and all.
SAMPLE, ALL = 2, 20


def exact(data: Any, y: Any, schema: dps.Schema, relation: str) -> tuple[list[Any], np.ndarray]:
    """Supports and the logarithms of their probabilities."""
    digest = GramData.from_records(schema, open_table(data, schema, y).blocks())
    problem = Problem.create(2, 1, neighbours=relation, intercept=False)
    setting = Setting(problem, Sensitivity.of(problem), Fraction(EPSILON), Fraction(0))
    outcomes = mechanism("permute-and-flip").outcomes(Data(digest), setting)
    assert outcomes is not None
    return outcomes


def agree(first: int, chance: float) -> bool:
    """Whether so many draws of the first of two supports go with its probability."""
    return bool(binomtest(first, DRAWS, min(chance, 1.0)).pvalue > LEVEL)


@pytest.mark.parametrize(("truth", "claimed"), [(0.99, 0.01), (0.99, 0.5), (0.5, 0.01)])
def test_draws_tell_an_answer_that_has_flipped(truth: float, claimed: float) -> None:
    missed = [i for i in range(DRAWS + 1) if agree(i, claimed)]
    assert binom.pmf(missed, DRAWS, truth).sum() < 1e-9


def neighbours(container: Container, folder: Path, pairs: int) -> None:
    @settings(
        max_examples=pairs,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(
        tables(container), st.sampled_from(["replace-one", "add-remove"]), st.sampled_from([0, 120])
    )
    def one_row_moves_the_answer_by_epsilon(drawn: Drawn, relation: str, count: int) -> None:
        table = [*[drawn.pad] * count, *drawn.rows * COPIES]
        at = count + drawn.place
        swapped = [drawn.other] if relation == "replace-one" else []
        changed = [*table[:at], *swapped, *table[at + 1 :]]
        logs = []
        for part in (table, changed):
            data, y = container.build(part, drawn.how, folder)
            try:
                supports, found = exact(data, y, drawn.schema, relation)
            except dps.TableError:
                # By its type, so whatever it holds; `test_reading` sees to that.
                return
            counts = dps.simulate(
                data, drawn.schema, y=y, k=1, epsilon=EPSILON, draws=DRAWS, loss="least-squares",
                neighbours=relation, intercept=False, response_range="declared", prediction_bound=1,
            )  # fmt: skip
            assert agree(counts[supports[0]], float(np.exp(found[0])))
            logs.append(found)
        assert np.abs(logs[0] - logs[1]).max() <= EPSILON + SLACK

    one_row_moves_the_answer_by_epsilon()


@pytest.mark.filterwarnings("ignore")  # of what builds the tables
@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_one_row_moves_the_answer_by_epsilon_in_a_sample(
    container: Container, tmp_path: Path
) -> None:
    neighbours(container, tmp_path, SAMPLE)


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_one_row_moves_the_answer_by_epsilon(container: Container, tmp_path: Path) -> None:
    neighbours(container, tmp_path, ALL)
