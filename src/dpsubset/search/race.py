"""The race: exact draws from the exponential mechanism and from permute-and-flip.

Every leaf has integer masses that dominate q_S = exp(-eta (f~(S) - ref)) (see `envelope`).

*Exponential mechanism*: propose S in proportion to mass, accept with probability 2**bits q_S /
mass(S), otherwise propose again. Exact rejection sampling.

*Permute-and-flip* releases the S with the smallest x_S = U_S / q_S, U_S uniform. x_S is the first
point of a Poisson process with intensity q_S / (1 - x q_S), so the winner is the first point of all
these processes together. Time x is cut into slabs [a, b) with b * peak < 1, peak the largest mass
over 2**bits. Within a slab the intensity of S is at most mass(S) / 2**bits / (1 - b peak): propose
points of that constant intensity and accept each with the ratio of the intensities. The first
accepted point wins.

Rejected proposals in a leaf make it worth splitting. Between proposals (between slabs, for
permute-and-flip) the partition may change freely: future proposals do not depend on how rejected
ones were grouped. Leaves are therefore kept from one draw to the next.

The *time* of a race is the number x, not that of a clock. Masses, slabs and proposals are private;
the winner is released.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ..objective.problem import Problem
from ..privacy.random import Randomness
from .acceptance import Acceptance, IntervalAcceptance, ProposalTime
from .best import Best
from .block_envelope import BlockEnvelope
from .bounds.base import Node
from .engine import Engine, Flat, Leaf, Listed, Support
from .envelope import LONG_BITS, ExactEnvelope, FlatEnvelope, MassScale, ModularEnvelope
from .region import Region
from .support_envelope import SupportEnvelope

_Envelope = ModularEnvelope | BlockEnvelope | SupportEnvelope | ExactEnvelope | FlatEnvelope

#: A flat leaf whose bound lies this far below the reference, in the exponent, is narrowed before
#: the race: its mass would be too large beside all weights.
_FAR = 30

#: A node whose bound lies this many factors of two below the reference is split before it is used:
#: its supports would hardly ever be accepted, and its integers would be long.
_LOOSE_BITS = 2048

#: So is a node whose gains, times eta, exceed this: integer weights of features must fit in int64.
_STEEP = 2.0**48

#: Most proposals in a batch: one at first and after a split, since easy races accept it, then more.
_MOST_PROPOSALS = 32

#: A slab of time is at least 2**this ticks long: rounding its ends costs nothing.
_LEAST_SLAB = 256


class Race:
    """Draws from one mechanism on one data set; keeps its leaves from draw to draw.

    The mechanism is permute-and-flip or the exponential mechanism, with the weight ``eta`` of the
    scores. ``leaves`` are the initial partition, by default all supports of the problem.
    """

    def __init__(
        self,
        engine: Engine,
        eta: Fraction,
        *,
        permute_and_flip: bool,
        leaves: Sequence[Leaf] | None = None,
    ) -> None:
        self._engine = engine
        self._eta = eta
        self._sample = self._permute_and_flip if permute_and_flip else self._rejection_sample
        self._masses = _MassTree()
        self._leaves: list[Leaf] = []
        self._envelopes: list[_Envelope] = []
        self._at: dict[int, int] = {}  # id of a node -> its place in the lists
        self._clock = self._ticks = 0
        self._size = 1  # proposals per batch
        self._pending: list[_Candidate] = []
        self._winner: Support = ()
        self._loose: list[Node] = []  # nodes whose bound is too loose for a mass
        self._root: Node | None = None  # if it is the whole initial partition
        self.start(leaves or [engine.leaf(Region.whole(engine.problem))])

    def draw(self, rng: Randomness) -> Support:
        self._rng = rng
        self._clock, self._ticks, self._pending, self._size = 0, 0, [], 1
        self._engine.run(self)
        return self._winner

    def diagnostics(self) -> dict[str, int]:
        """Counts of the search so far. They depend on the data: NOT PRIVATE."""
        return self._engine.diagnostics()

    # -- consumer of the engine ------------------------------------------------------------------

    def start(self, leaves: Sequence[Leaf]) -> None:
        """Fix the scale of the masses and add the first leaves."""
        engine = self._engine
        ref = min(itertools.chain.from_iterable(map(self._reference_scores, leaves)))
        for leaf in leaves:
            if isinstance(leaf, Flat):
                while leaf.open and self._eta * engine.score_step * (ref - leaf.low) > _FAR:
                    leaf.narrow()
                ref = ref if leaf.open else min(ref, leaf.low)
        bits = engine.tuning.first_bits
        if bits is None:
            bits = _first_bits(engine.problem, sum(map(_count, leaves)))
        self._scale = MassScale(self._eta, engine.score_step, ref, bits)
        loose = [leaf for leaf in leaves if isinstance(leaf, Node) and self._is_loose(leaf)]
        if loose:
            # An incumbent may be far from the best support: weights relative to it could be very
            # long.
            ref = min(ref, *(Best(engine, leaf.region).find()[0][0] for leaf in loose))
            self._scale = MassScale(self._eta, engine.score_step, ref, bits)
        if len(leaves) == 1 and isinstance(leaves[0], Node):
            self._root = leaves[0]
        for leaf in leaves:
            self._set_leaf(leaf, len(self._leaves))

    def _reference_scores(self, leaf: Leaf) -> list[int]:
        """Scores of good supports of the leaf that are known or cheap."""
        if isinstance(leaf, Flat):
            return [] if leaf.open else [leaf.low]
        if isinstance(leaf, Listed):
            return leaf.scores
        return [self._engine.score(leaf.incumbent())]

    def next_leaf(self) -> Node | None:
        """Propose until a support is accepted (None) or a node has wasted too many proposals."""
        if self._loose:
            return self._loose[-1]
        while True:
            leaf = self._sample()
            if leaf is None or not self._bound_each_support(leaf):
                return leaf

    def _bound_each_support(self, leaf: Node) -> bool:
        """Give a node masses for each of its supports; False if that does not reduce them."""
        most = self._engine.tuning.solvable_per_node * self._engine.nodes
        if leaf.support_bounds is not None or leaf.region.count() > most:
            return False
        leaf.support_bounds = self._engine.bound_oracle.bound_each_support(leaf)
        if leaf.support_bounds is None:
            return False
        leaf.rejection_cost = 0.0
        place = self._at[id(leaf)]
        self._set_leaf(leaf, place)
        return isinstance(self._envelopes[place], SupportEnvelope)

    def replace(self, leaf: Node, parts: Sequence[Leaf]) -> None:
        self._size = 1
        place = self._at.pop(id(leaf))
        if self._loose and self._loose[-1] is leaf:
            self._loose.pop()
        self._set_leaf(parts[0], place)
        for part in parts[1:]:
            self._set_leaf(part, len(self._leaves))
        if self._engine.nodes >= self._engine.tuning.blocks_after and self._root is not None:
            root, self._root = self._root, None
            self._restart_with_blocks(root)

    def _restart_with_blocks(self, root: Node) -> None:
        """Restart from the root with a block bound, if that reduces the masses enough.

        Between proposals and between slabs any partition and any masses are valid, but the clock
        must not be past the time at which the new masses end.
        """
        if self._is_loose(root):
            return
        self._engine.bound_oracle.add_block_bound(root)
        envelope = self._make_envelope(root)
        late = self._clock * envelope.peak >> (self._scale.bits + self._ticks - 1)
        worth = self._engine.tuning.blocks_worth
        if root.block_bound is None or late or envelope.total * worth > self._masses.total:
            return
        self._leaves, self._envelopes, self._at, self._loose = [], [], {}, []
        self._masses = _MassTree()
        root.rejection_cost = 0.0
        self._set_leaf(root, 0)

    def _set_leaf(self, leaf: Leaf, place: int) -> None:
        envelope: _Envelope
        if isinstance(leaf, Flat):
            envelope = FlatEnvelope(leaf.region, leaf.low, leaf.without, self._scale)
        elif isinstance(leaf, Listed):
            envelope = ExactEnvelope(leaf.supports, leaf.scores, self._scale)
            self._engine.cache_scores(leaf)
        else:
            self._at[id(leaf)] = place
            if self._is_loose(leaf):
                self._loose.append(leaf)
                envelope = ExactEnvelope([], [], self._scale)  # until it is split
            else:
                envelope = self._make_envelope(leaf)
        if place == len(self._leaves):
            self._leaves.append(leaf)
            self._envelopes.append(envelope)
        else:
            self._leaves[place], self._envelopes[place] = leaf, envelope
        self._masses.set(place, envelope.total, envelope.peak)

    def _make_envelope(self, leaf: Node) -> ModularEnvelope | BlockEnvelope | SupportEnvelope:
        """Choose the envelope with the smallest total mass among those that the node has.

        A block or support envelope is skipped if its integers would exceed LONG_BITS.
        """
        scale, blocks, bound_oracle = self._scale, leaf.block_bound, self._engine.bound_oracle
        chosen: ModularEnvelope | BlockEnvelope | SupportEnvelope
        chosen = ModularEnvelope(bound_oracle, leaf, scale)
        if blocks is not None:
            below = scale.eta * (blocks.magnitude + abs(scale.ref * scale.score_step - blocks.base))
            leaf.block_bound = None
            if below <= LONG_BITS * math.log(2):
                envelope = BlockEnvelope(blocks, leaf.region, scale)
                if envelope.total < chosen.total:
                    leaf.block_bound, chosen = blocks, envelope
        if leaf.support_bounds is not None:
            each = SupportEnvelope(
                leaf.support_bounds, leaf, scale, bound_oracle.penalty(leaf.region)
            )
            if 0 < each.total < chosen.total:
                leaf.block_bound = None
                return each
            leaf.support_bounds = None
        return chosen

    def _is_loose(self, leaf: Node) -> bool:
        scale = self._scale
        below = scale.eta * (scale.ref * scale.score_step - leaf.lower_bound)
        steep = scale.eta * (leaf.base - leaf.lower_bound)
        return not (below <= _LOOSE_BITS * math.log(2) and steep <= _STEEP)

    # -- the exponential mechanism --------------------------------------------------------------

    def _rejection_sample(self) -> Node | None:
        rng = self._rng
        while True:
            self._engine.check_limits()
            # Scoring a batch is cheaper. Proposals after an accepted one are discarded.
            places = [self._masses.find(rng.below(self._masses.total)) for _ in range(self._size)]
            proposals = self._propose(places)
            exhausted, accepted = None, False
            for place, drawn in zip(places, proposals, strict=True):
                if drawn is None:
                    exhausted = self._add_rejection(place, 0.5) or exhausted
                    continue
                support, mass = drawn
                acceptance = self._acceptance(place, support, mass)
                accepted = acceptance.flip(rng)
                if accepted:
                    self._winner = support
                    break
                exhausted = self._add_rejection(place, acceptance.approximate) or exhausted
            for place in places:
                self._tighten(place)
            self._size = min(2 * self._size, _MOST_PROPOSALS)
            if accepted:
                return None
            if exhausted is not None:
                return exhausted

    def _propose(self, places: Sequence[int]) -> list[tuple[Support, int] | None]:
        """Draw a support of each of these leaves in proportion to its mass, and score it."""
        drawn = [self._envelopes[place].draw(self._rng) for place in places]
        self._engine.scores(
            [
                proposal[0]
                for place, proposal in zip(places, drawn, strict=True)
                if proposal is not None and not isinstance(self._leaves[place], Flat)
            ]
        )
        return drawn

    def _acceptance(
        self, place: int, support: Support, mass: int, time: ProposalTime | None = None
    ) -> Acceptance | IntervalAcceptance:
        leaf = self._leaves[place]
        if not isinstance(leaf, Flat):
            return Acceptance(self._scale, self._engine.score(support), mass, time)
        if leaf.search is not None:
            return IntervalAcceptance(self._scale, leaf.search, mass, time)
        return Acceptance(self._scale, leaf.low, mass, time)

    def _tighten(self, place: int) -> None:
        """Reduce the mass of a flat leaf to the bound on its score that a flip has established."""
        leaf = self._leaves[place]
        if isinstance(leaf, Flat) and leaf.search is not None:
            self._set_leaf(leaf, place)

    def _add_rejection(self, place: int, probability: float) -> Node | None:
        """Add a rejected proposal to the cost of a node; the node if it is worth splitting now."""
        leaf = self._leaves[place]
        if not isinstance(leaf, Node):
            return None
        # A proposal with a small probability indicates more than one that was rejected by chance.
        leaf.rejection_cost += (
            1.0 - probability + 0.5 * min(-math.log(max(probability, 1e-8)), 16.0)
        )
        tuning = self._engine.tuning
        patience = tuning.patience if leaf.block_bound is None else tuning.patience_blocks
        return leaf if leaf.rejection_cost >= patience else None

    # -- permute-and-flip -----------------------------------------------------------------------

    def _permute_and_flip(self) -> Node | None:
        rng = self._rng
        while True:
            exhausted, touched = None, [candidate.place for candidate in self._pending]
            won = False
            while self._pending and not won:
                candidate = self._pending.pop()
                won = candidate.acceptance.flip(rng)
                if won:
                    self._winner = candidate.support
                else:
                    exhausted = (
                        self._add_rejection(candidate.place, candidate.acceptance.approximate)
                        or exhausted
                    )
            for place in touched:  # at the end of a slab masses may change
                self._tighten(place)
            if won:
                return None
            if exhausted is not None:
                return exhausted
            if self._clock * self._masses.peak >> (self._scale.bits + self._ticks - 1):
                # The clock is past half of some leaf's time: only a split can lower its peak.
                leaf = self._leaves[self._masses.highest()]
                if isinstance(leaf, Node):
                    return leaf
                if isinstance(leaf, Flat) and leaf.open:
                    leaf.narrow()
                    self._set_leaf(leaf, self._masses.highest())
                    continue
                end = 1 << (self._scale.bits + self._ticks)
                if end - self._clock * self._masses.peak < end >> self._scale.bits // 2:
                    self._add_bits()
                    continue
            self._propose_slab(rng)

    def _add_bits(self) -> None:
        """Double the bits of the masses.

        The race ends before 1 / max q, but the clock only reaches 2**bits / peak, where peak is max
        q rounded up to an integer. Finer rounding closes the gap: an event of probability
        2**-(bits/2), but without it a draw might not end.
        """
        scale = self._scale
        self._scale = MassScale(self._eta, self._engine.score_step, scale.ref, 2 * scale.bits)
        for place, leaf in enumerate(self._leaves):
            self._set_leaf(leaf, place)

    def _propose_slab(self, rng: Randomness) -> None:
        """Propose the points of one slab of time, latest first.

        Times are integers, in ticks of 2**-ticks, which are refined as needed.
        """
        self._engine.check_limits()
        peak, total = self._masses.peak, self._masses.total
        # A slab of so many proposals still takes at most half of the time left to any leaf.
        size = min(self._size, max(total // peak, 1))
        while True:
            a, end = self._clock, 1 << (self._scale.bits + self._ticks)  # a * peak < end, always
            # b - a = size (1 - a peak) / (2 total) gives about this many proposals per slab.
            length = size * (end - a * peak) // (2 * total)
            if length >> _LEAST_SLAB:
                break
            self._clock <<= _LEAST_SLAB
            self._ticks += _LEAST_SLAB
        b = self._clock = a + length
        # All proposals together have the rate size / (b - a). Of their mass, ``capacity``, the
        # leaves have ``total``; proposals in the rest are discarded.
        capacity = size * (end - b * peak) // length
        count = sum(rng.poisson_one() for _ in range(size))
        points = []
        for v in sorted((rng.uniform() for _ in range(count)), reverse=True):
            at = rng.below(capacity)
            if at < total:
                points.append((v, self._masses.find(at)))
        proposals = self._propose([place for _, place in points])
        for (v, place), drawn in zip(points, proposals, strict=True):
            if drawn is None:
                continue
            support, mass = drawn
            time = ProposalTime(a, length, self._ticks, v, (capacity * length, size * end))
            acceptance = self._acceptance(place, support, mass, time)
            self._pending.append(_Candidate(support, place, acceptance))
        self._size = min(2 * self._size, _MOST_PROPOSALS)


class _Candidate(NamedTuple):
    support: Support
    place: int
    acceptance: Acceptance | IntervalAcceptance


def _count(leaf: Leaf) -> int:
    return len(leaf.supports) if isinstance(leaf, Listed) else leaf.region.count()


def _first_bits(problem: Problem, supports: int) -> int:
    """Enough bits for the rounding of every weight, times the number of supports, with a margin."""
    return 44 * problem.k + supports.bit_length() + 128


class _MassTree:
    """Masses of the leaves: totals in a Fenwick tree of Python integers, and the largest peak."""

    def __init__(self) -> None:
        self._tree = [0]
        self._values: list[int] = []
        self._peaks: list[int] = []
        self.total = 0
        self.peak = 0

    def set(self, place: int, total: int, peak: int) -> None:
        """Set the mass of a leaf; the next unused place appends."""
        if place == len(self._values):
            self._values.append(0)
            self._peaks.append(0)
            i = len(self._tree)
            # A new node sums the places it covers: those of its children so far.
            node, child = 0, 1
            while child < i & -i:
                node += self._tree[i - child]
                child *= 2
            self._tree.append(node)
        change = total - self._values[place]
        self._values[place] = total
        self.total += change
        i = place + 1
        while i < len(self._tree):
            self._tree[i] += change
            i += i & -i
        lowered = self._peaks[place] == self.peak
        self._peaks[place] = peak
        self.peak = max(self._peaks) if lowered else max(self.peak, peak)

    def find(self, at: int) -> int:
        """The leaf in which the at-th unit of mass lies."""
        place, step = 0, 1 << (len(self._tree) - 1).bit_length()
        while step:
            if place + step < len(self._tree) and self._tree[place + step] <= at:
                place += step
                at -= self._tree[place]
            step >>= 1
        return place

    def highest(self) -> int:
        """A leaf with the largest peak."""
        return self._peaks.index(self.peak)
