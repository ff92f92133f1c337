"""The features of a table without a response: for predictions.

Cells read as they do for a fit. Predictions are not private, and nobody is protected here, but no
cell stops them either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TableError
from ...public.schema import Column, Schema
from . import Table, open_table
from .arrays import as_matrix, is_list


def feature_blocks(
    data: Any, schema: Schema, positions: Sequence[int], width: int
) -> Iterator[NDArray[Any]]:
    """What the cells of a schema's features read as.

    An array has ``width`` columns, of which the features are at ``positions``, or the features
    alone.
    """
    for x, _ in _open(data, schema, positions, width).blocks():
        yield x


def _open(data: Any, schema: Schema, positions: Sequence[int], width: int) -> Table:
    from .files import open_file
    from .frames import column_names, is_frame

    if isinstance(data, (str, Path)):
        return open_file(Path(data), _beside(schema, ()), beside=True)
    if is_frame(data):
        if not hasattr(data, "shape"):
            raise TableError("this frame is lazy: collect it first")
        return open_table(data, _beside(schema, column_names(data)), np.zeros(data.shape[0]))
    x = as_matrix(data, width if is_list(data) else None)
    if x.shape[1] == width:
        x = x[:, list(positions)]
    elif x.shape[1] != len(schema.features):
        raise TableError(
            f"X has {x.shape[1]} columns, but the model was fitted on a table with {width}: pass "
            f"as many, or the model's own {len(schema.features)}"
        )
    return open_table(x, _beside(schema, ()), np.zeros(x.shape[0]))


def _beside(schema: Schema, taken: Sequence[str]) -> Schema:
    """With a response of its own, that no table has as a column."""
    name = schema.response.name
    while name in taken or name in schema.feature_names:
        name += "_"
    return replace(schema, response=Column(name, 0, 1))
