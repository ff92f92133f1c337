"""Tuning: the sizes and counts at which a search changes its strategy.

They decide how long a search takes and never what it finds: the best supports are the same for all
values, and so is the distribution of a draw. They are public and do not depend on the data. Small
problems do not reach most of them; to test the strategies on small problems, reduce them. Constants
of another kind, such as those of rounding, are defined beside the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.errors import ArgumentError


@dataclass(frozen=True)
class Tuning:
    """How a search spends its time. Fields that end in ``_records`` are for losses of records."""

    #: A region with at most this many supports is listed instead of bounded.
    short: int = 64

    #: A node with at most this many supports that its bound does not rule out is enumerated.
    listable: int = 2000
    #: The same at the start of a search in which a score takes a pass or more over the records, and
    #: in which the loss moreover has no curvature for better bounds.
    listable_records: int = 512
    listable_straight: int = 1024

    #: Up to this many candidates for the last pick are scored: bounds would be valid, but scores
    #: are exact.
    last_pick: int = 4096
    #: The same where a score takes a pass or more over the records.
    last_pick_records: int = 48

    #: After this many nodes a search counts as hard, and as very hard: better bounds, which take
    #: more time, are worth it from there on.
    hard_after: tuple[int, ...] = (40, 1500)
    #: The same for losses of records, whose curved bounds are worth their time soon.
    hard_after_records: tuple[int, ...] = (16,)

    #: Most columns in which a dual point moves at a time.
    working_set: int = 100
    #: After this many nodes this also applies where columns of X'X are computed on demand, and all
    #: of them are computed; ``wide_after_many`` if there are more than ``whole`` columns.
    wide_after: int = 4
    wide_after_many: int = 40
    whole: int = 3000

    #: For the ball: a node with at most this many supports gets one bound for each of them, which
    #: takes milliseconds, instead of being split.
    solvable: int = 1_000_000
    #: And with at most this many for each node so far, so that this takes only a part of the time
    #: spent already.
    solvable_per_node: int = 5_000

    #: Up to this many columns every region gets a diagonal of its own (ball, l1).
    small: int = 100
    #: Up to this many columns an eigenvalue of the whole Gram matrix is worth its time (ball, l1),
    #: and so is the memory of a dual point in every region.
    large: int = 1200
    #: A pool with at most this many times k features is taken for an anchor's.
    anchor: int = 2

    #: Most supports that are scored before a search for the R best, to start from a good cutoff; 0
    #: turns this off.
    warm_start_size: int = 100_000
    #: Whether features that no support within the cutoff contains are forced out before branching.
    fix_variables: bool = True

    #: A node is split when its rejected proposals have cost about as much as a split would.
    patience: float = 100.0
    #: The same for a node with a block bound, whose split takes longer.
    patience_blocks: float = 20000.0
    #: After this many nodes a race looks for highly correlated columns. If there are at least
    #: ``blocks_least`` of them it restarts with a block bound, provided that this reduces its
    #: masses by a factor of at least ``blocks_worth``.
    blocks_after: int = 30
    blocks_least: int = 8
    blocks_worth: int = 3
    #: Bits of the masses when a race starts; None for enough that their rounding is negligible.
    first_bits: int | None = None

    def __post_init__(self) -> None:
        """Refuse values with which a search would not end.

        A region with one support cannot be split, so it must be listed; a dual point must move in
        at least one column; masses have at least one bit.
        """
        for name, value in vars(self).items():
            least = 1 if name in _AT_LEAST_ONE else 0
            for each in value if isinstance(value, tuple) else (value,):
                if each is not None and not each >= least:
                    raise ArgumentError(f"{name} of a Tuning must be at least {least}")


_AT_LEAST_ONE = ("short", "listable", "listable_records", "listable_straight", "working_set",
                 "first_bits")  # fmt: skip

#: The default of every search.
USUAL = Tuning()
