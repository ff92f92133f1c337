"""simulate counts supports by position, and says their names."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import numpy as np
import pandas as pd

import dpsubset as dps

X = np.tile([[-1.0, 1.0], [1.0, 1.0]], (500, 1))
SCHEMA = dps.Schema.from_dict(
    {"response": {"name": "cost", "lo": -1, "hi": 1},
     "columns": {"stay": [-1, 1], "a": {"lo": -1, "hi": 1, "group": "lab"},
                 "b": {"lo": -1, "hi": 1, "group": "lab"}}}
)  # fmt: skip
TABLE = pd.DataFrame({"stay": X[:, 1], "a": X[:, 0], "b": X[:, 1], "cost": X[:, 0]})


def test_counts_by_position_and_by_name() -> None:
    counts = dps.simulate(TABLE, SCHEMA, k=1, epsilon=5, draws=20, seed=1)
    assert counts == Counter({(1,): 20})
    assert counts.features == Counter({("lab",): 20})
    assert "20 of 20  lab" in str(counts)
    assert "NOT PRIVATE" in str(counts)


def test_draws_that_released_nothing_have_no_names() -> None:
    counts = dps.simulate(
        np.zeros((200, 2)), y=np.zeros(200), bounds=dps.Bounds(x=1, y=1), k=1, epsilon=1,
        mechanism="stability", options={"blocks": 5}, delta=1e-9, draws=5,
        allow_unproven=True, response_range="declared",
    )  # fmt: skip
    assert counts.features == Counter({None: 5}) == counts
    assert "released nothing" in str(counts)


def test_copies_keep_the_names() -> None:
    counts = dps.simulate(TABLE, SCHEMA, k=1, epsilon=5, draws=20)
    for same in (copy.copy(counts), counts.copy(), pickle.loads(pickle.dumps(counts))):
        assert same == counts
        assert same.features == counts.features
