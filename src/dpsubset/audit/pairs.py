"""Neighbours that are bad for one kind of mechanism in particular."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from ..data.moments import Moments
from ..data.quantize import STEPS
from ..objective.problem import Problem
from .exact import Pair, neighbours_of, shade
from .rows import Records, placed


def flattening_pairs(problem: Problem) -> Iterator[Pair]:
    """Return tables in which column 0 is better than all others by a few records, or by one fewer.

    For mechanisms that flatten scores: column 0 keeps its own, and stays unlikely among so many
    others. Records that agree pin its coefficient at one end, and theirs at the other; a record
    that agrees with one side only then costs the other the whole range.
    """
    first, shaded = np.arange(problem.p) == 0, shade(problem)
    agree = np.append(np.where(first, -shaded, shaded), STEPS)
    for_0 = np.append(np.where(first, -shaded, -STEPS), STEPS)
    against = np.append(np.where(first, STEPS, shaded), STEPS)
    agree, for_0, against = (placed(problem, cells) for cells in (agree, for_0, against))
    for times in (0, 1, 3, 8, 16):
        rest, copies = np.array([agree, for_0]), np.array([400, times])
        yield neighbours_of(problem, rest, copies, for_0, against, f"favoured by {times} records")


def tie_breaking_pairs(problem: Problem) -> Iterator[Pair]:
    """y = (x0 + x1) / 2 = (x2 + x3) / 2, both split by noise, and a record that breaks the tie.

    For mechanisms that compare with the best support of the data: it moves from {0, 1} to {2, 3},
    and with it everything that is near.
    """
    half = STEPS // 2
    rows = []
    for y, e, other in itertools.product((-half, half), repeat=3):
        cells = [y + e, y - e, y + other, y - other]
        rows.append(placed(problem, [*cells, *[0] * (problem.p - 4), y]))
    for_01 = placed(problem, [half, half, -half, -half, *[0] * (problem.p - 4), half])
    for_23 = placed(problem, [-half, -half, half, half, *[0] * (problem.p - 4), half])
    for times in (10, 50, 200):
        copies = np.full(len(rows), times)
        label = f"tipped, {8 * times} records"
        yield neighbours_of(problem, np.array(rows), copies, for_23, for_01, label)


def vote_changing_pairs(problem: Problem) -> Iterator[Pair]:
    """All blocks vote for one column, and a heavy record turns the vote of its own.

    For votes of a few blocks: light records say what theirs votes for only without a heavy one.
    """
    for n, (mine, other) in itertools.product((2, 6, 14), ((1, 0), (0, 1))):
        light, stay, turn = np.zeros((3, problem.p + 1), dtype=np.int64)
        light[[mine, -1]] = STEPS // 300
        stay[[mine, -1]] = STEPS
        turn[[other, -1]] = STEPS
        light, stay, turn = (placed(problem, cells) for cells in (light, stay, turn))
        label = f"turns from {mine} to {other}, {n} others"
        yield neighbours_of(problem, light[None], np.array([n]), turn, stay, label)


def missing_response_pairs(
    problem: Problem, made: Callable[[Problem], Iterable[Pair]], beside: int = 1
) -> Iterator[Pair]:
    """Return neighbours that differ in a record without a readable response, 0 in every column.

    Under replace-one the other has a record with a response in its place, the last one of the pairs
    ``made`` for the problem under add-remove; under add-remove it has nothing. Both have ``beside``
    records without a response beside that.
    """
    for pair in made(replace(problem, neighbours="add-remove")):
        without, missing = _dropped(pair, 0, beside), _dropped(pair, 0, beside + 1)
        present = _dropped(pair, 1, beside)
        first = without if problem.neighbours == "add-remove" else present
        records = None if first[1] is None or missing[1] is None else (first[1], missing[1])
        yield Pair(first[0], missing[0], f"{pair.label}, a response missing", records)


def _dropped(pair: Pair, which: int, rows: int) -> tuple[Moments, Records | None]:
    """Add this number of records that are 0 in every column to a table of a pair."""
    held = (pair.first, pair.second)[which]
    moments = Moments(held.products, held.n + rows, held.fingerprint, held.constant)
    if pair.records is None:
        return moments, None
    records = pair.records[which]
    return moments, np.vstack([records, np.zeros((rows, records.shape[1]), dtype=np.int64)])
