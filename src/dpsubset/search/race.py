"""The race: exact draws from the exponential mechanism and from permute-and-flip.

Every leaf carries integer masses that dominate q_S = exp(-eta (f~(S) - ref)) (see `envelope`).

*Exponential mechanism*: propose S in proportion to mass, accept with probability
2**bits q_S / mass(S), otherwise propose again. Exact rejection sampling.

*Permute-and-flip* releases the S with the smallest x_S = U_S / q_S, U_S uniform. x_S is the first
point of a Poisson process with intensity q_S / (1 - x q_S), so the winner is the first point of all
these processes together. Time x is cut into slabs [a, b) with b * peak < 1, peak the largest mass
over 2**bits. Within a slab the intensity of S is at most mass(S) / 2**bits / (1 - b peak): propose
points of that constant intensity and accept each with the ratio of the intensities. The first
accepted point wins.

Proposals rejected in one leaf make it worth splitting. Between proposals (between slabs, for
permute-and-flip) the partition may change freely: what is still to come does not depend on how the
rejected proposals were grouped. Leaves therefore stay as they are from one draw to the next.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from ..objective.problem import Problem
from ..privacy.random import Randomness
from .best import Best
from .block_envelope import BlockEnvelope
from .bounds.base import Bounded
from .chance import Between, Chance, Moment
from .engine import Engine, Flat, Leaf, Listed, Support
from .envelope import LONG_BITS, ClosedEnvelope, FlatEnvelope, OpenEnvelope, Scale
from .region import Region
from .solved_envelope import SolvedEnvelope

_Envelope = OpenEnvelope | BlockEnvelope | SolvedEnvelope | ClosedEnvelope | FlatEnvelope

#: A flat leaf whose bound lies this far below the reference, in the exponent, is narrowed down
#: before the race: all weights would be small beside its mass.
_FAR = 30

#: A leaf whose bound lies this many factors of two below the reference is split before it is used:
#: its supports would hardly ever be accepted, and its integers would only be long.
_LOOSE_BITS = 2048

#: So is one whose gains, times eta, pass this: integer weights of features must fit in int64.
_STEEP = 2.0**48

#: Most proposals at a time: one at first and after a split, since easy races accept it, then more.
_MOST_PROPOSALS = 32

#: A slab of time is at least 2**this ticks long: rounding its ends costs nothing.
_LEAST_SLAB = 256


class Race:
    """Draws from one mechanism on one data set; keeps its leaves from draw to draw.

    Parameters
    ----------
    engine : Engine
    eta : Fraction
        Weight of the scores.
    permute_and_flip : bool
        Which of the two mechanisms.
    leaves : sequence of Leaf, optional
        The partition to start from; all supports of the problem by default.
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
        self._clocked = permute_and_flip
        self._masses = _Masses()
        self._leaves: list[Leaf] = []
        self._envelopes: list[_Envelope] = []
        self._at: dict[int, int] = {}  # id of an open leaf -> its place in the lists
        self._clock = self._ticks = 0
        self._size = 1  # proposals at a time
        self._pending: list[_Candidate] = []
        self._winner: Support = ()
        self._loose: list[Bounded] = []  # leaves whose bound is too far off to be given a mass
        self._root: Bounded | None = None  # if that is all there was in the beginning
        self.start(leaves or [engine.leaf(Region.whole(engine.problem))])

    def draw(self, rng: Randomness) -> Support:
        """One support."""
        self._rng = rng
        self._clock, self._ticks, self._pending, self._size = 0, 0, [], 1
        self._engine.run(self)
        return self._winner

    def diagnostics(self) -> dict[str, int]:
        """Counts of the search so far. They depend on the data: NOT PRIVATE."""
        return self._engine.diagnostics()

    # -- the engine's side ----------------------------------------------------------------------

    def start(self, leaves: Sequence[Leaf]) -> None:
        """Fix the scale of the masses and take in the first leaves."""
        engine = self._engine
        ref = min(itertools.chain.from_iterable(map(self._likely, leaves)))
        for leaf in leaves:
            if isinstance(leaf, Flat):
                while leaf.open and self._eta * engine.unit * (ref - leaf.low) > _FAR:
                    leaf.narrow()
                ref = ref if leaf.open else min(ref, leaf.low)
        bits = engine.tuning.first_bits
        if bits is None:
            bits = _first_bits(engine.problem, sum(map(_count, leaves)))
        self._scale = Scale(self._eta, engine.unit, ref, bits)
        loose = [leaf for leaf in leaves if isinstance(leaf, Bounded) and self._is_loose(leaf)]
        if loose:
            # A guess may be far from the best: weights relative to it could be of any length.
            ref = min(ref, *(Best(engine, leaf.region).find()[0][0] for leaf in loose))
            self._scale = Scale(self._eta, engine.unit, ref, bits)
        if len(leaves) == 1 and isinstance(leaves[0], Bounded):
            self._root = leaves[0]
        for leaf in leaves:
            self._put(leaf, len(self._leaves))

    def _likely(self, leaf: Leaf) -> list[int]:
        """Scores of good supports of the leaf, where they are known."""
        if isinstance(leaf, Flat):
            return [] if leaf.open else [leaf.low]
        if isinstance(leaf, Listed):
            return leaf.scores
        return [self._engine.score(leaf.guess())]

    def next_leaf(self) -> Bounded | None:
        """Propose until a support is accepted (None) or a leaf has wasted too many proposals."""
        if self._loose:
            return self._loose[-1]
        while True:
            leaf = self._flip() if self._clocked else self._reject()
            if leaf is None or not self._solve(leaf):
                return leaf

    def _solve(self, leaf: Bounded) -> bool:
        """Give a leaf masses by each of its supports; False if that does not make them smaller."""
        most = self._engine.tuning.solvable_a_split * self._engine.splits
        if leaf.solved is not None or leaf.region.count() > most:
            return False
        leaf.solved = self._engine.bounder.solve(leaf)
        if leaf.solved is None:
            return False
        leaf.waste = 0.0
        place = self._at[id(leaf)]
        self._put(leaf, place)
        return isinstance(self._envelopes[place], SolvedEnvelope)

    def replace(self, leaf: Bounded, parts: Sequence[Leaf]) -> None:
        """Put the parts where the leaf was."""
        self._size = 1
        place = self._at.pop(id(leaf))
        if self._loose and self._loose[-1] is leaf:
            self._loose.pop()
        self._put(parts[0], place)
        for part in parts[1:]:
            self._put(part, len(self._leaves))
        if self._engine.splits >= self._engine.tuning.blocks_after and self._root is not None:
            root, self._root = self._root, None
            self._regroup(root)

    def _regroup(self, root: Bounded) -> None:
        """Start anew from one leaf with blocks of columns that are alike, if that is worth it.

        Between proposals and between slabs any partition and any masses will do; but the clock must
        not be past the time of the new leaf.
        """
        if self._is_loose(root):
            return
        self._engine.bounder.block(root)
        envelope = self._open(root)
        late = self._clock * envelope.peak >> (self._scale.bits + self._ticks - 1)
        worth = self._engine.tuning.blocks_worth
        if root.blocks is None or late or envelope.total * worth > self._masses.total:
            return
        self._leaves, self._envelopes, self._at, self._loose = [], [], {}, []
        self._masses = _Masses()
        root.waste = 0.0
        self._put(root, 0)

    def _put(self, leaf: Leaf, place: int) -> None:
        envelope: _Envelope
        if isinstance(leaf, Flat):
            envelope = FlatEnvelope(leaf.region, leaf.low, leaf.without, self._scale)
        elif isinstance(leaf, Listed):
            envelope = ClosedEnvelope(leaf.supports, leaf.scores, self._scale)
            self._engine.remember(leaf)
        else:
            self._at[id(leaf)] = place
            if self._is_loose(leaf):
                self._loose.append(leaf)
                envelope = ClosedEnvelope([], [], self._scale)  # until it is split
            else:
                envelope = self._open(leaf)
        if place == len(self._leaves):
            self._leaves.append(leaf)
            self._envelopes.append(envelope)
        else:
            self._leaves[place], self._envelopes[place] = leaf, envelope
        self._masses.set(place, envelope.total, envelope.peak)

    def _open(self, leaf: Bounded) -> OpenEnvelope | BlockEnvelope | SolvedEnvelope:
        """The smallest of what it has, where blocks must not have integers that would be long."""
        scale, blocks, bounder = self._scale, leaf.blocks, self._engine.bounder
        chosen: OpenEnvelope | BlockEnvelope | SolvedEnvelope
        chosen = OpenEnvelope(bounder, leaf, scale)
        if blocks is not None:
            below = scale.eta * (blocks.swing + abs(scale.ref * scale.unit - blocks.base))
            leaf.blocks = None
            if below <= LONG_BITS * math.log(2):
                envelope = BlockEnvelope(blocks, leaf.region, scale)
                if envelope.total < chosen.total:
                    leaf.blocks, chosen = blocks, envelope
        if leaf.solved is not None:
            each = SolvedEnvelope(leaf.solved, leaf, scale, bounder.penalty(leaf.region))
            if 0 < each.total < chosen.total:
                leaf.blocks = None
                return each
            leaf.solved = None
        return chosen

    def _is_loose(self, leaf: Bounded) -> bool:
        scale = self._scale
        below = scale.eta * (scale.ref * scale.unit - leaf.flat)
        steep = scale.eta * (leaf.base - leaf.flat)
        return not (below <= _LOOSE_BITS * math.log(2) and steep <= _STEEP)

    # -- the exponential mechanism --------------------------------------------------------------

    def _reject(self) -> Bounded | None:
        rng = self._rng
        while True:
            self._engine.check_limits()
            # Several at a time are cheaper to score. Those behind an accepted one are thrown away.
            places = [self._masses.find(rng.below(self._masses.total)) for _ in range(self._size)]
            proposals = self._propose(places)
            tired, accepted = None, False
            for place, drawn in zip(places, proposals, strict=True):
                if drawn is None:
                    tired = self._waste(place, 0.5) or tired
                    continue
                support, mass = drawn
                chance = self._chance(place, support, mass)
                accepted = chance.flip(rng)
                if accepted:
                    self._winner = support
                    break
                tired = self._waste(place, chance.approximate) or tired
            for place in places:
                self._tighten(place)
            self._size = min(2 * self._size, _MOST_PROPOSALS)
            if accepted:
                return None
            if tired is not None:
                return tired

    def _propose(self, places: Sequence[int]) -> list[tuple[Support, int] | None]:
        """A support of each of these leaves in proportion to its mass, scored if it has a score."""
        drawn = [self._envelopes[place].draw(self._rng) for place in places]
        self._engine.scores(
            [
                proposal[0]
                for place, proposal in zip(places, drawn, strict=True)
                if proposal is not None and not isinstance(self._leaves[place], Flat)
            ]
        )
        return drawn

    def _chance(
        self, place: int, support: Support, mass: int, moment: Moment | None = None
    ) -> Chance | Between:
        leaf = self._leaves[place]
        if not isinstance(leaf, Flat):
            return Chance(self._scale, self._engine.score(support), mass, moment)
        if leaf.search is not None:
            return Between(self._scale, leaf.search, mass, moment)
        return Chance(self._scale, leaf.low, mass, moment)

    def _tighten(self, place: int) -> None:
        """Give a flat leaf the mass of the bound on its score that a flip has come to know."""
        leaf = self._leaves[place]
        if isinstance(leaf, Flat) and leaf.search is not None:
            self._put(leaf, place)

    def _waste(self, place: int, chance: float) -> Bounded | None:
        """Count a rejected proposal; the leaf, once it is worth splitting."""
        leaf = self._leaves[place]
        if not isinstance(leaf, Bounded):
            return None
        # A hopeless proposal says more than one that was rejected by bad luck.
        leaf.waste += 1.0 - chance + 0.5 * min(-math.log(max(chance, 1e-8)), 16.0)
        tuning = self._engine.tuning
        patience = tuning.patience if leaf.blocks is None else tuning.patience_blocks
        return leaf if leaf.waste >= patience else None

    # -- permute-and-flip -----------------------------------------------------------------------

    def _flip(self) -> Bounded | None:
        rng = self._rng
        while True:
            tired, touched = None, [candidate.place for candidate in self._pending]
            won = False
            while self._pending and not won:
                candidate = self._pending.pop()
                won = candidate.chance.flip(rng)
                if won:
                    self._winner = candidate.support
                else:
                    tired = self._waste(candidate.place, candidate.chance.approximate) or tired
            for place in touched:  # a slab is over: masses may change
                self._tighten(place)
            if won:
                return None
            if tired is not None:
                return tired
            if self._clock * self._masses.peak >> (self._scale.bits + self._ticks - 1):
                # The clock is past half of some leaf's time: only a split can lower its peak.
                leaf = self._leaves[self._masses.highest()]
                if isinstance(leaf, Bounded):
                    return leaf
                if isinstance(leaf, Flat) and leaf.open:
                    leaf.narrow()
                    self._put(leaf, self._masses.highest())
                    continue
                end = 1 << (self._scale.bits + self._ticks)
                if end - self._clock * self._masses.peak < end >> self._scale.bits // 2:
                    self._sharpen()
                    continue
            self._slab(rng)

    def _sharpen(self) -> None:
        """Take twice as many bits for the masses.

        The race ends before 1 / max q, but the clock only gets to 2**bits / peak, where peak is
        max q in integers, rounded up. The gap is crossed by rounding it more finely: an event of
        probability 2**-(bits/2), but one without which a draw could fail to end.
        """
        scale = self._scale
        self._scale = Scale(self._eta, self._engine.unit, scale.ref, 2 * scale.bits)
        for place, leaf in enumerate(self._leaves):
            self._put(leaf, place)

    def _slab(self, rng: Randomness) -> None:
        """Propose the points of one slab of time, latest first.

        Times are integers, in ticks of 2**-ticks, made finer as needed.
        """
        self._engine.check_limits()
        peak, total = self._masses.peak, self._masses.total
        # A slab of so many proposals still takes no more than half of the time left to any leaf.
        size = min(self._size, max(total // peak, 1))
        while True:
            a, end = self._clock, 1 << (self._scale.bits + self._ticks)  # a * peak < end, always
            # b - a = size (1 - a peak) / (2 total) makes about so many proposals a slab.
            length = size * (end - a * peak) // (2 * total)
            if length >> _LEAST_SLAB:
                break
            self._clock <<= _LEAST_SLAB
            self._ticks += _LEAST_SLAB
        b = self._clock = a + length
        # All proposals together have the rate size / (b - a). Of their mass, ``capacity``, the
        # leaves have ``total``; the rest is nobody's.
        capacity = size * (end - b * peak) // length
        count = sum(rng.poisson_one() for _ in range(size))
        points = []
        for time in sorted((rng.uniform() for _ in range(count)), reverse=True):
            at = rng.below(capacity)
            if at < total:
                points.append((time, self._masses.find(at)))
        proposals = self._propose([place for _, place in points])
        for (time, place), drawn in zip(points, proposals, strict=True):
            if drawn is None:
                continue
            support, mass = drawn
            moment = Moment(a, length, self._ticks, time, (capacity * length, size * end))
            chance = self._chance(place, support, mass, moment)
            self._pending.append(_Candidate(support, place, chance))
        self._size = min(2 * self._size, _MOST_PROPOSALS)


class _Candidate:
    def __init__(self, support: Support, place: int, chance: Chance | Between) -> None:
        self.support = support
        self.place = place
        self.chance = chance


def _count(leaf: Leaf) -> int:
    return len(leaf.supports) if isinstance(leaf, Listed) else leaf.region.count()


def _first_bits(problem: Problem, supports: int) -> int:
    """Room for the rounding of every weight, times the number of supports, times a margin."""
    return 44 * problem.k + supports.bit_length() + 128


class _Masses:
    """Masses of the leaves: totals in a Fenwick tree of Python integers, and the largest peak."""

    def __init__(self) -> None:
        self._tree = [0]
        self._values: list[int] = []
        self._peaks: list[int] = []
        self.total = 0
        self.peak = 0

    def set(self, place: int, total: int, peak: int) -> None:
        """Set the mass of a leaf; the next free place appends."""
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
