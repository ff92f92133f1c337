"""Votes of blocks: every record is in one random block, and every block has one lasso vote.

    block of a record   an independent uniform draw, regardless of its position
    vote of a block     the variables on the lasso path of its own records where k are active

The intercept is in every block's model, unpenalised, like a column that is always included. A
choice of several columns is active where one of them is.

A record added, removed or replaced is in one block and changes one vote, whatever its values: no
other record moves, and a vote does not depend on other blocks. The mechanisms aggregate the votes:
sample-aggregate counts variables, stability counts whole supports.
"""

from __future__ import annotations

import itertools
import math
import threading
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...base.validation import check_int
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.problem import Problem
from ...privacy.random import Randomness
from ...search.bounds.linear_algebra import single_threaded_blas
from ...search.enumerate import list_supports
from .base import OPENDP_NOISE, Data, Distribution, Mechanism, Outcome, Sampler, Setting

#: Sorted positions of at most k choices, those always included left out.
Vote = tuple[int, ...]

Floats = NDArray[np.float64]

#: A path stops after at most this many steps for each column wanted; columns that leave the path
#: take steps too.
STEPS_PER_COLUMN = 8

#: Largest number of assignments of records to blocks that are enumerated.
MOST_ASSIGNMENTS = 20_000

#: Tables of at most this many records cache votes.
_LARGEST_CACHED = 64

#: Relative norm below which a residual column is rounding error.
_ROUNDING = 1e-10

#: Warning filters are global: draws in two threads must not restore each other's.
_QUIET = threading.Lock()


@dataclass(frozen=True)
class LassoVotes(Mechanism):
    """A mechanism that depends on the data only through the votes of blocks."""

    blocks: int | None = None

    needs_records = True
    takes_groups = takes_intercept = True
    on_groups = (
        "a choice is in the vote if one of its columns is active, ranked by the largest coefficient"
    )
    on_intercept = "part of every block's model, without a penalty"
    seedable = False
    randomness = OPENDP_NOISE + " Blocks are drawn from the operating system's own."

    def __post_init__(self) -> None:
        if self.blocks is None:
            return
        self._set_options(blocks=check_int(self.blocks, "blocks"))
        if self.blocks < 1:
            raise ArgumentError("blocks must be at least 1: into how many the records are divided")

    @abstractmethod
    def number(self, setting: Setting) -> int:
        """The number of blocks. Public."""

    @abstractmethod
    def choose(self, votes: Sequence[Vote], setting: Setting) -> Outcome:
        """The noisy outcome. ``votes`` are those of the blocks that have a record."""

    @abstractmethod
    def log_probabilities(self, votes: Sequence[Vote], setting: Setting) -> Floats:
        """The logarithms of the distribution of `choose` over `listed`."""

    def models(self, setting: Setting) -> list[str]:
        """Sentences on blocks' models, where choices are not single columns."""
        layout, sentences = setting.problem.layout, []
        if layout.grouped:
            sentences.append("A variable of several columns counts with the largest coefficient.")
        if layout.has_intercept:
            sentences.append("Every block's model has an intercept, which is not penalised.")
        return sentences

    def assign(self, n: int, blocks: int, rng: Randomness) -> list[int]:
        """Draw the block of each record, independently and uniformly."""
        return [rng.below(blocks) for _ in range(n)]

    def assignments(self, n: int, blocks: int) -> Iterable[tuple[int, ...]]:
        """All outcomes of `assign`, which are equally likely."""
        return itertools.product(range(blocks), repeat=n)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """Compute nothing yet: every draw has new blocks and new votes."""
        return _Draws(self, data.gram, setting)

    def listed(self, setting: Setting) -> list[Outcome]:
        return [tuple(row) for row in list_supports(setting.problem).tolist()]

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """Average over all assignments of records to blocks, where these can be listed."""
        blocks, n = self.number(setting), data.gram.n
        if n * math.log(blocks) > math.log(MOST_ASSIGNMENTS):
            return None
        box = BlockVotes(data.gram, setting.problem)
        tables = Counter(tuple(sorted(box.votes(a))) for a in self.assignments(n, blocks))
        logs = [self.log_probabilities(votes, setting) for votes in tables]
        shares = np.log(np.array(list(tables.values())) / tables.total())
        return self.listed(setting), np.logaddexp.reduce(np.array(logs) + shares[:, None], axis=0)

    def outcomes_given(
        self, data: Data, setting: Setting, assignment: Sequence[int]
    ) -> Distribution:
        """All outcomes and their log probabilities, given the block of each record.

        For any number of records. The guarantee holds for each assignment by itself.
        """
        votes = BlockVotes(data.gram, setting.problem).votes(assignment)
        return self.listed(setting), self.log_probabilities(votes, setting)


class _Draws(Sampler):
    def __init__(self, mechanism: LassoVotes, gram: GramData, setting: Setting) -> None:
        self._mechanism, self._setting, self._n = mechanism, setting, gram.n
        self._blocks = mechanism.number(setting)
        self._box = BlockVotes(gram, setting.problem)

    def draw(self, rng: Randomness) -> Outcome:
        assignment = self._mechanism.assign(self._n, self._blocks, rng)
        return self._mechanism.choose(self._box.votes(assignment), self._setting)


class BlockVotes:
    """The votes of blocks of one table."""

    def __init__(self, gram: GramData, problem: Problem) -> None:
        self._problem = problem
        self._rows = np.empty((gram.n, gram.p + 1), dtype=np.int16)
        self._rows[:, :-1], self._rows[:, -1] = gram.records.T, gram.response
        # In a small table the same blocks recur.
        self._vote = lru_cache(maxsize=4096 if gram.n <= _LARGEST_CACHED else 0)(self._cast)

    def votes(self, assignment: Sequence[int]) -> list[Vote]:
        """One vote for each block that has a record, in the order of the blocks."""
        members: dict[int, list[int]] = {}
        for row, block in enumerate(assignment):
            members.setdefault(block, []).append(row)
        return [self._vote(self._records(members[block])) for block in sorted(members)]

    def _records(self, rows: list[int]) -> tuple[bytes, ...]:
        """The records, sorted: rounding may depend on their order, and a vote must not."""
        return tuple(sorted(self._rows[i].tobytes() for i in rows))

    def _cast(self, records: tuple[bytes, ...]) -> Vote:
        """A function of these records and of the problem alone."""
        cells = np.frombuffer(b"".join(records), dtype=np.int16).reshape(len(records), -1)
        scaled = cells / float(STEPS)
        return vote(scaled[:, :-1], scaled[:, -1], self._problem)


def vote(x: Floats, y: Floats, problem: Problem) -> Vote:
    """The choices at the first knot of the lasso path with k active choices.

    A choice is active if one of its columns is; its coefficient is the largest of theirs. Choices
    that are always included count in k, are not penalised, and are not part of the vote; nor is the
    intercept, which k does not count. If more become active at one knot (ties), the largest
    coefficients win, then the lowest positions. If there are never so many, the knot with the most
    is used. No value can raise an error or a warning: where the path fails, the vote is empty.
    """
    wanted, layout = problem.picks, problem.layout
    if wanted == 0:
        return ()
    # Columns of every model: those of choices always included, and the intercept's.
    fixed = layout.of_support(problem.always_include)
    free = np.delete(np.arange(layout.columns), fixed)
    owners = layout.owners[free]
    # Outside of the try block: an import error is public and must be raised.
    lars_path = _lars_path()
    try:
        with (
            _QUIET,
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            single_threaded_blas(),
        ):
            warnings.simplefilter("ignore")
            x, y = _residuals(x[:, fixed], x[:, free], y)
            chosen = _active_choices(lars_path, x, y, owners, wanted)
        return tuple(int(j) for j in chosen)
    except Exception:
        return ()


def _residuals(fixed: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The residuals on the columns of every model: the lasso that does not penalise these."""
    if fixed.shape[1] == 0:
        return x, y
    both = np.column_stack([x, y])
    left = both - fixed @ np.linalg.lstsq(fixed, both, rcond=None)[0]
    left[:, np.linalg.norm(left, axis=0) <= _ROUNDING * np.linalg.norm(both, axis=0)] = 0.0
    return left[:, :-1], left[:, -1]


def _active_choices(
    lars_path: Any, x: Floats, y: Floats, owners: NDArray[np.int64], wanted: int
) -> NDArray[np.int64]:
    """The sorted choices of the vote, among those that own the columns."""
    choices, firsts, counts = np.unique(owners, return_index=True, return_counts=True)
    limit = STEPS_PER_COLUMN * wanted * int(counts.max())
    for steps in _step_limits(wanted, limit):
        _, _, path = lars_path(x, y, method="lasso", Gram=None, max_iter=steps)
        size = np.where(np.abs(path) > 0, np.abs(path), 0.0)  # NaN becomes 0
        size = np.maximum.reduceat(size, firsts, axis=0)  # columns of a choice are adjacent
        sizes = np.count_nonzero(size, axis=0)
        if sizes.max() >= wanted or path.shape[1] <= steps:
            break
    enough = sizes >= wanted
    knot = size[:, int(np.argmax(enough if enough.any() else sizes))]
    largest = np.argsort(-knot, kind="stable")[:wanted]
    return np.asarray(choices[np.sort(largest[knot[largest] > 0])])


def _step_limits(start: int, limit: int) -> Iterator[int]:
    """Doubling limits; ``start`` steps suffice if no variable leaves the path."""
    while start <= limit:
        yield start
        start *= 2


@cache
def _lars_path() -> Any:
    """Imported when a vote is first cast, since scikit-learn takes long to load."""
    from sklearn.linear_model import lars_path

    return lars_path
