"""Tuning: the sizes and counts at which a search changes its way.

They decide how long a search takes and never what it finds: the best supports are the same for any
values, and so is the distribution of a draw. Small problems do not get to most of them, so whoever
wants to see a search at work on one turns them down. They are public facts and the same for every
table. Numbers that stand for none of this, such as those of rounding, stay beside the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.errors import ArgumentError


@dataclass(frozen=True)
class Tuning:
    """How a search spends its time. What ends in ``_records`` is for losses of records."""

    #: A region with at most this many supports is listed instead of split.
    short: int = 64

    #: A leaf with at most this many supports that could still matter is listed instead of split.
    listable: int = 2000
    #: No more than this at first where a score takes a pass or more over the records; or than this,
    #: where the loss has no curvature for better bounds.
    listable_records: int = 512
    listable_straight: int = 1024

    #: Up to this many candidates for the last pick are scored one by one: bounds would do, but
    #: scores are exact.
    last_pick: int = 4096
    #: No more than this where a score takes a pass or more over the records.
    last_pick_records: int = 48

    #: After this many splits a search counts as hard, or as very hard: better bounds, which take
    #: time of their own, are worth it from there on.
    hard_after: tuple[int, ...] = (40, 1500)
    #: Bounds by curvature are worth it soon.
    hard_after_records: tuple[int, ...] = (16,)

    #: Most columns in which a dual point moves at a time.
    movers: int = 100
    #: After this many splits that is so too where columns of X'X are multiplied out on demand, and
    #: all of them are at hand from then on; or after so many, if there are more than ``whole``.
    wide_after: int = 4
    wide_after_many: int = 40
    whole: int = 3000

    #: A leaf of the ball with at most this many supports has each of them bounded by itself, which
    #: takes milliseconds, where it would be split.
    solvable: int = 1_000_000
    #: And with at most so many for each split so far: that takes a part of the time spent already.
    solvable_a_split: int = 5_000

    #: Up to this many features every region gets a diagonal of its own (ball, l1).
    small: int = 100
    #: Up to this many an eigenvalue of the whole Gram matrix is worth its time (ball, l1), and a
    #: dual point of p numbers its memory in every region.
    large: int = 1200
    #: A pool with at most this many times k features is an anchor's.
    anchor: int = 2

    #: Most supports that are scored before a search for the R best, as a guess at them. 0: none.
    most_sown: int = 100_000
    #: Whether features that no support within the cutoff picks are left out before a split.
    trim: bool = True

    #: A leaf is split when its rejected proposals have cost about as much as a split would.
    patience: float = 100.0
    #: The same for a leaf with blocks, whose split takes longer.
    patience_blocks: float = 20000.0
    #: After this many splits a race looks for columns that are alike, and if there are so many of
    #: them it starts anew with blocks, where that makes its masses so many times smaller.
    blocks_after: int = 30
    blocks_least: int = 8
    blocks_worth: int = 3
    #: Bits of the masses when a race starts; None for so many that their rounding does not show.
    first_bits: int | None = None

    def __post_init__(self) -> None:
        """Refuse values with which a search would not end.

        A region with one support cannot be split, so it has to be listed; a dual point has to move
        in one column or more; masses have bits.
        """
        for name, value in vars(self).items():
            least = 1 if name in _AT_LEAST_ONE else 0
            for each in value if isinstance(value, tuple) else (value,):
                if each is not None and not each >= least:
                    raise ArgumentError(f"{name} of a Tuning must be at least {least}")


_AT_LEAST_ONE = ("short", "listable", "listable_records", "listable_straight", "movers",
                 "first_bits")  # fmt: skip

#: What every search takes that is not told otherwise.
USUAL = Tuning()
