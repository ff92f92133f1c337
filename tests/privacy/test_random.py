"""Exact randomness, checked exactly: every bit string is tried, and its probability counted."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsubset.privacy.random import Randomness, SeededSource, SystemSource
from dpsubset.privacy.random.draws import Categorical, exp_interval


class Exhausted(Exception):
    """The script is over and the draw is not."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted


class Script:
    """A source that hands out prescribed bits, and says how many it lacks."""

    secure = False

    def __init__(self, value: int, length: int) -> None:
        self._value, self._left = value, length

    def bits(self, count: int) -> int:
        if count > self._left:
            raise Exhausted(count - self._left)
        self._left -= count
        return (self._value >> self._left) & ((1 << count) - 1)


def distribution(
    draw: Callable[[Randomness], Hashable], start_bits: int = 64, limit: int = 16
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """Exact probabilities of what ``draw`` decides within ``limit`` bits, and what it leaves open.

    Follows every bit string up to the point where the draw needs no more bits.
    """
    decided: Counter[Hashable] = Counter()
    undecided = Fraction(0)
    todo = [(0, 0)]
    while todo:
        value, length = todo.pop()
        try:
            outcome = draw(Randomness(Script(value, length), start_bits))
        except Exhausted as lack:
            if length + lack.wanted > limit:
                undecided += Fraction(1, 2**length)
            else:
                todo += [
                    ((value << lack.wanted) | tail, length + lack.wanted)
                    for tail in range(2**lack.wanted)
                ]
        else:
            decided[outcome] += Fraction(1, 2**length)
    return dict(decided), undecided


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 31, 33])
def test_below_is_exactly_uniform(n: int) -> None:
    decided, undecided = distribution(lambda rng: rng.below(n))
    assert set(decided) == set(range(n))
    assert len(set(decided.values())) == 1
    assert sum(decided.values()) + undecided == 1
    assert undecided < Fraction(1, 4)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 0), (4, 4), (5, 2), (4, 3), (6, 1)])
def test_subsets_are_exactly_uniform(n: int, m: int) -> None:
    decided, undecided = distribution(lambda rng: tuple(rng.subset(n, m)), limit=14)
    assert len(decided) == math.comb(n, m)
    assert len(set(decided.values())) == 1
    assert sum(decided.values()) + undecided == 1
    for subset in decided:
        assert list(subset) == sorted(set(subset))
        assert len(subset) == m
        assert set(subset) <= set(range(n))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_permutations_are_exactly_uniform(n: int) -> None:
    decided, undecided = distribution(lambda rng: tuple(rng.permutation(n)), limit=14)
    assert len(decided) == math.factorial(n)
    assert len(set(decided.values())) == 1
    assert sum(decided.values()) + undecided == 1
    for order in decided:
        assert sorted(order) == list(range(n))


def test_a_permutation_is_drawn_as_it_is_asked_for() -> None:
    with pytest.raises(Exhausted):
        list(Randomness(Script(0, 10)).permutation(10**6))
    assert next(Randomness(Script(5, 20)).permutation(10**6)) == 5


def power(x: Fraction) -> tuple[Fraction, Fraction]:
    """A narrow bracket of exp(-x)."""
    low, high = exp_interval(x, 200)
    return Fraction(low, 2**200), Fraction(high, 2**200)


@pytest.mark.parametrize(
    ("weight", "times"),
    [
        (Fraction(1, 3), 1), (Fraction(1, 3), 7), (Fraction(1, 10**30), 1), (Fraction(1), 1),
        (Fraction(9, 2), 1), (Fraction(30), 1), (Fraction(693147180559945, 10**15), 1),
        (Fraction(1, 10**9), 10**9), (Fraction(1000), 1000),
    ],
)  # fmt: skip
def test_flips_have_probability_exp_minus_x(weight: Fraction, times: int) -> None:
    """Starting from 1 to 8 bits: the decided part brackets exp(-x), and closes in on it."""
    low, high = power(weight * times)
    for start_bits in (1, 2, 5, 8):
        decided, undecided = distribution(
            lambda rng: rng.bernoulli_exp(weight, times), start_bits, limit=16
        )
        heads = decided.get(True, Fraction(0))
        assert heads <= high
        assert low <= heads + undecided
        assert undecided <= Fraction(1, 2**7)


def test_a_flip_with_nothing_to_decide_takes_no_bits() -> None:
    nothing = Randomness(Script(0, 0))
    assert nothing.bernoulli_exp(Fraction(3), 0) is True
    assert nothing.bernoulli_exp(Fraction(0), 5) is True


@given(
    st.fractions(Fraction(1, 10**6), 60),
    st.integers(1, 50),
    st.one_of(st.integers(-5, 5), st.integers(-(2**20), 2**20), st.integers(-(2**40), 2**40)),
)
def test_64_bits_close_to_the_border_are_decided_rightly(
    weight: Fraction, times: int, offset: int
) -> None:
    """U starts as exp(-x) give or take a few ulps: float64 must not decide what it cannot know."""
    low, high = exp_interval(weight * times, 64)
    value = min(max(low + offset, 0), 2**64 - 1)
    # Zeros and ones follow: the least and the largest U with these first 64 bits.
    tail = 2**14
    zeros = Randomness(Script(value << tail, 64 + tail)).bernoulli_exp(weight, times)
    ones = Randomness(Script((value << tail) | (2**tail - 1), 64 + tail)).bernoulli_exp(
        weight, times
    )
    if value + 1 <= low:
        assert zeros
        assert ones
    elif value >= high:
        assert not zeros
        assert not ones
    else:
        # The border runs through this interval of width 2**-64.
        assert zeros
        assert not ones


def poisson_border(count: int, bits: int) -> tuple[int, int]:
    """Integers below and above P(N <= count) * 2**bits for a Poisson variable with mean 1."""
    terms = sum(Fraction(1, math.factorial(i)) for i in range(count + 1))
    low, high = exp_interval(Fraction(1), bits + 32)
    return math.floor(terms * low / 2**32), math.ceil(terms * high / 2**32)


@pytest.mark.parametrize("bits", [30, 52, 64, 90, 200, 1000])
@pytest.mark.parametrize("count", [0, 1, 4, 20])
def test_poisson_counts_close_to_their_borders_are_decided_rightly(bits: int, count: int) -> None:
    """U agrees with a value of the distribution function in this many bits."""
    low, high = poisson_border(count, bits)
    tail = 2**13 - bits
    for offset in (1, 2, 1000):
        below = Randomness(Script((low - offset) << tail, 2**13)).poisson_one()
        assert below <= count
        if high + offset < 2**bits:
            above = Randomness(Script((high + offset) << tail, 2**13)).poisson_one()
            assert above == count + 1 or (offset == 1000 and above > count)


@pytest.mark.parametrize("start_bits", [1, 4, 8])
def test_poisson_counts_are_exact(start_bits: int) -> None:
    decided, undecided = distribution(lambda rng: rng.poisson_one(), start_bits, limit=16)
    for count in range(6):
        mass = decided.get(count, Fraction(0))
        low, high = power(Fraction(1))
        assert mass <= high / math.factorial(count)
        assert low / math.factorial(count) <= mass + undecided
    assert undecided < Fraction(1, 16)


@given(st.integers(0, 2**8 - 1), st.integers(0, 2**8 - 1), st.integers(0, 2**16 - 1))
def test_lazy_uniforms_sort_by_their_value(one: int, other: int, tails: int) -> None:
    rng = Randomness(Script((one << 24) | (other << 16) | tails, 32), start_bits=8)
    u, v = rng.uniform(), rng.uniform()
    try:
        smaller = u < v
    except Exhausted:
        assert one == other  # alike as far as the script goes
        return
    if one != other:
        assert smaller == (one < other)
        assert u.bits == v.bits == 8
    assert smaller == (Fraction(u.value, 2**u.bits) < Fraction(v.value, 2**v.bits))


@given(st.fractions(0, 3000), st.integers(1, 300))
def test_exp_interval_holds_the_exponential(x: Fraction, precision: int) -> None:
    low, high = exp_interval(x, precision)
    assert 0 <= low <= high <= low + 2
    saved = flint.ctx.prec
    flint.ctx.prec = precision + 10_000
    try:
        value = (-(flint.arb(x.numerator) / x.denominator)).exp() * flint.arb(2) ** precision
        assert value >= low
        assert value <= high
    finally:
        flint.ctx.prec = saved
    assert flint.ctx.prec == saved


@pytest.mark.parametrize("start_bits", [1, 3, 8])
@pytest.mark.parametrize("differences", [[0], [0, 0, 0], [0, 1, 5], [7, 0, 3, 0, 900], [10**12, 0]])
def test_categorical_draws_are_exact(differences: list[int], start_bits: int) -> None:
    eta = Fraction(2, 7)
    categorical = Categorical(differences, eta)
    decided, undecided = distribution(categorical.draw, start_bits, limit=14)
    brackets = [power(eta * d) for d in differences]
    total_low, total_high = sum(b[0] for b in brackets), sum(b[1] for b in brackets)
    for i, (low, high) in enumerate(brackets):
        mass = decided.get(i, Fraction(0))
        assert mass <= high / total_low
        assert low / total_high <= mass + undecided
    assert undecided <= Fraction(len(differences), 2**6)


@given(st.lists(st.integers(0, 70), max_size=40), st.integers(-5, 5))
def test_seeded_bits_are_reproducible_however_they_are_cut(counts: list[int], seed: int) -> None:
    pieces, whole = SeededSource(seed), SeededSource(seed)
    value = length = 0
    for count in counts:
        bits = pieces.bits(count)
        assert 0 <= bits < 2**count
        value |= bits << length
        length += count
    assert whole.bits(length) == value


def test_seeds_give_different_bits() -> None:
    streams = {SeededSource(seed).bits(256) for seed in range(-20, 20)}
    assert len(streams) == 40
    assert SeededSource(1).bits(256) == SeededSource(1).bits(256)
    assert not SeededSource(1).secure
    assert SystemSource().secure


def test_system_bits_are_each_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    handed_out = bytearray()

    def urandom(size: int) -> bytes:
        fresh = bytes((len(handed_out) + i) * 37 % 256 for i in range(size))
        handed_out.extend(fresh)
        return fresh

    monkeypatch.setattr(os, "urandom", urandom)
    source = SystemSource()
    stream = length = 0
    for count in [1, 7, 64, 0, 3, 5000, 13, 4096, 1, 2]:
        stream |= source.bits(count) << length
        length += count
    assert stream == int.from_bytes(handed_out, "little") & (2**length - 1)


def test_system_bits_do_not_repeat() -> None:
    source, other = SystemSource(), SystemSource()
    draws = [source.bits(128) for _ in range(500)] + [other.bits(128) for _ in range(500)]
    assert len(set(draws)) == 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_repeat_its_parents_bits() -> None:
    source = SystemSource()
    source.bits(8)  # now unused bits wait in the pool
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(writer, source.bits(256).to_bytes(32, "little"))
        os._exit(0)
    os.close(writer)
    theirs = int.from_bytes(os.read(reader, 32), "little")
    os.close(reader)
    os.waitpid(child, 0)
    ours = source.bits(256)
    assert theirs != ours
    # Not even shifted: no run of 64 bits in common.
    runs = {(ours >> i) & (2**64 - 1) for i in range(193)}
    assert not runs & {(theirs >> i) & (2**64 - 1) for i in range(193)}
