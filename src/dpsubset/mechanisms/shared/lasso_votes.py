"""Votes of blocks: every record is in one random block, and every block has one lasso vote.

    block of a record   an independent uniform draw of its own, never its position
    vote of a block     the variables on the lasso path of its own records where k are active

The intercept is in every block's model, unpenalised, like a column that is always included; a
choice of several columns is active where one of them is.

A record added, removed or replaced is then in one block and changes one vote, whatever its values:
no other record moves, and a vote knows nothing of other blocks. What becomes of the votes is up to
the mechanisms: sample-and-aggregate counts variables, stability counts whole supports.
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
from threadpoolctl import ThreadpoolController

from ...base.errors import ArgumentError
from ...base.validation import check_int
from ...data.gram import GramData
from ...data.quantize import STEPS
from ...objective.problem import Problem
from ...privacy.random import Randomness
from ...search.enumerate import list_supports
from .base import OPENDP_NOISE, Data, Mechanism, Outcome, Sampler, Setting

#: Sorted positions of at most k choices, those always included left out.
Vote = tuple[int, ...]

Floats = NDArray[np.float64]

#: A path stops after at most this many steps for each column that is asked for: columns that leave
#: the path again cost steps too.
STEPS_PER_COLUMN = 8

#: Most assignments of records to blocks that are listed one by one.
MOST_ASSIGNMENTS = 20_000

#: Tables of at most this many records remember votes.
_FEW = 64

#: What is left of a column that the columns always included explain; below this it is rounding.
_ROUNDING = 1e-10

#: Filters of warnings belong to the process: draws in two threads must not restore each other's.
_QUIET = threading.Lock()


@dataclass(frozen=True)
class LassoVotes(Mechanism):
    """A mechanism that sees the data through the votes of blocks alone."""

    blocks: int | None = None

    needs_records = True
    takes_groups = takes_intercept = True
    on_groups = "a choice is in the vote where the path has one of its columns, by the largest"
    on_intercept = "part of every block's model, without a penalty"
    seedable = False
    randomness = OPENDP_NOISE + " Blocks are drawn from the operating system's own."

    def __post_init__(self) -> None:
        if self.blocks is None:
            return
        self._set_options(blocks=check_int(self.blocks, "blocks"))
        if self.blocks < 1:
            raise ArgumentError("blocks must be at least 1: into how many the records are divided")

    def check(self, setting: Setting) -> None:
        """Votes are cast by the lasso, whose loss is least squares."""
        super().check(setting)
        if setting.problem.loss != "least-squares":
            raise ArgumentError(f"{self.name} votes by the lasso: for loss least-squares only")

    @abstractmethod
    def number(self, setting: Setting) -> int:
        """How many blocks: public."""

    @abstractmethod
    def choose(self, votes: Sequence[Vote], setting: Setting) -> Outcome:
        """What is released, with noise. ``votes`` are those of the blocks that hold a record."""

    @abstractmethod
    def log_probabilities(self, votes: Sequence[Vote], setting: Setting) -> Floats:
        """The distribution of `choose`, in logarithms, over `listed`."""

    def models(self, setting: Setting) -> list[str]:
        """Sentences on what a vote is made of, where choices are not columns."""
        layout, told = setting.problem.layout, []
        if layout.grouped:
            told.append("A variable of several columns counts with the largest coefficient.")
        if layout.has_intercept:
            told.append("Every block's model has an intercept, which is not penalised.")
        return told

    def assign(self, n: int, blocks: int, rng: Randomness) -> list[int]:
        """The block of each record: independent and uniform."""
        return [rng.below(blocks) for _ in range(n)]

    def assignments(self, n: int, blocks: int) -> Iterable[tuple[int, ...]]:
        """All that `assign` can draw, each as likely as the others."""
        return itertools.product(range(blocks), repeat=n)

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """Nothing yet: blocks are drawn, and so are the votes, with every draw afresh."""
        return _Draws(self, data.gram, setting)

    def listed(self, setting: Setting) -> list[Outcome]:
        """All outcomes."""
        return [tuple(row) for row in list_supports(setting.problem).tolist()]

    def outcomes(self, data: Data, setting: Setting) -> tuple[list[Outcome], Floats] | None:
        """The mean over all assignments of records to blocks, where they can be listed."""
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
    ) -> tuple[list[Outcome], Floats]:
        """All outcomes and their log probabilities when the block of each record is known.

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
        # In a small table the same blocks come up again and again.
        self._vote = lru_cache(maxsize=4096 if gram.n <= _FEW else 0)(self._cast)

    def votes(self, assignment: Sequence[int]) -> list[Vote]:
        """One for each block that holds a record, in the order of the blocks."""
        members: dict[int, list[int]] = {}
        for row, block in enumerate(assignment):
            members.setdefault(block, []).append(row)
        return [self._vote(self._records(members[block])) for block in sorted(members)]

    def _records(self, rows: list[int]) -> tuple[bytes, ...]:
        """Sorted: rounding may depend on the order of records, and a vote must not."""
        return tuple(sorted(self._rows[i].tobytes() for i in rows))

    def _cast(self, records: tuple[bytes, ...]) -> Vote:
        """A function of these records and of the problem, both of which are all it is given."""
        cells = np.frombuffer(b"".join(records), dtype=np.int16).reshape(len(records), -1)
        scaled = cells / float(STEPS)
        return vote(scaled[:, :-1], scaled[:, -1], self._problem)


def vote(x: Floats, y: Floats, problem: Problem) -> Vote:
    """The choices at the first knot of the lasso path at which k are active.

    A choice is active if one of its columns is, and its coefficient is the largest of theirs. Those
    always included count in k, are not penalised, and are no part of the vote; nor is the
    intercept, which k does not count. Where more become active at one knot (ties), the largest
    coefficients count, then the lowest positions; where there are never so many, the knot with the
    most. Nothing that the data hold makes it fail or speak: where the path fails, the vote is
    empty.
    """
    wanted, layout = problem.picks, problem.layout
    if wanted == 0:
        return ()
    # Columns of every model: of choices that are always included, and the intercept's.
    fixed = layout.of_support(problem.always_include)
    free = np.delete(np.arange(layout.columns), fixed)
    owners = layout.owners[free]
    # What is missing or broken about the libraries is public, and an error.
    lars_path, blas = _libraries()
    try:
        with (
            _QUIET,
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            # Blocks are small: threads of the linear algebra would wait longer than they work.
            blas.limit(limits=1, user_api="blas"),
        ):
            warnings.simplefilter("ignore")
            x, y = _residuals(x[:, fixed], x[:, free], y)
            chosen = _active_choices(lars_path, x, y, owners, wanted)
        return tuple(int(j) for j in chosen)
    except Exception:
        return ()


def _residuals(fixed: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """What the columns of every model do not explain: the lasso that does not penalise them."""
    if fixed.shape[1] == 0:
        return x, y
    both = np.column_stack([x, y])
    left = both - fixed @ np.linalg.lstsq(fixed, both, rcond=None)[0]
    left[:, np.linalg.norm(left, axis=0) <= _ROUNDING * np.linalg.norm(both, axis=0)] = 0.0
    return left[:, :-1], left[:, -1]


def _active_choices(
    lars_path: Any, x: Floats, y: Floats, owners: NDArray[np.int64], wanted: int
) -> NDArray[np.int64]:
    """Of the choices that own the columns, sorted: those of the vote."""
    choices, firsts, counts = np.unique(owners, return_index=True, return_counts=True)
    limit = STEPS_PER_COLUMN * wanted * int(counts.max())
    for steps in _step_limits(wanted, limit):
        _, _, path = lars_path(x, y, method="lasso", Gram=None, max_iter=steps)
        size = np.where(np.abs(path) > 0, np.abs(path), 0.0)  # not those that are no number
        size = np.maximum.reduceat(size, firsts, axis=0)  # columns of a choice are neighbours
        sizes = np.count_nonzero(size, axis=0)
        if sizes.max() >= wanted or path.shape[1] <= steps:
            break
    enough = sizes >= wanted
    knot = size[:, int(np.argmax(enough if enough.any() else sizes))]
    largest = np.argsort(-knot, kind="stable")[:wanted]
    return np.asarray(choices[np.sort(largest[knot[largest] > 0])])


def _step_limits(start: int, limit: int) -> Iterator[int]:
    """Without variables that leave the path, as many steps are enough as variables are wanted."""
    while start <= limit:
        yield start
        start *= 2


@cache
def _libraries() -> tuple[Any, ThreadpoolController]:
    """When a vote is first cast: scikit-learn takes a while to load."""
    from sklearn.linear_model import lars_path

    return lars_path, ThreadpoolController()
