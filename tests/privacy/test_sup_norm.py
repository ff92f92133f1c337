"""Noise that falls with the largest entry: every way of a draw is followed and counted."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import pytest

from dpsubset.privacy import sup_norm
from dpsubset.privacy.random import Randomness, SeededSource, SystemSource
from support.sup_norms import log_weights


class Lacking(Exception):
    """The draw asks for one more number below n."""

    def __init__(self, n: int) -> None:
        self.n = n


class Scripted(Randomness):
    """Hands out prescribed numbers, and knows nothing but `below`."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = list(script)

    def below(self, n: int) -> int:
        if not self._script:
            raise Lacking(n)
        return self._script.pop(0)

    def uniform(self) -> Any:
        raise AssertionError("a float may take part in it")

    def bernoulli_exp(self, weight: Fraction, times: int = 1) -> bool:
        raise AssertionError("a float may take part in it")


def law(
    draw: Callable[[Randomness], Hashable], least: Fraction
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """Exact probabilities of all ways that are likelier than ``least``, and of the rest."""
    decided: Counter[Hashable] = Counter()
    open_ = Fraction(0)
    todo: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while todo:
        script, chance = todo.pop()
        try:
            outcome = draw(Scripted(script))
        except Lacking as lack:
            each = chance / lack.n
            if each < least:
                open_ += chance
            else:
                todo += [((*script, i), each) for i in range(lack.n)]
        else:
            decided[outcome] += chance
    return dict(decided), open_


def agrees(found: dict[Any, Fraction], open_: Fraction, right: dict[Any, float]) -> bool:
    """Whether nothing is likelier than it should be, nor could be less likely."""
    slack = 1e-12
    return all(
        float(found.get(z, 0)) <= p + slack and p <= float(found.get(z, 0) + open_) + slack
        for z, p in right.items()
    ) and set(found) <= set(right)


def closed_form(d: int, eta: Fraction, most: int) -> dict[tuple[int, ...], float]:
    """P(z), normalised over shells up to 400, far beyond what can be drawn here."""
    total = sum(map(math.exp, log_weights(d, float(eta), 400)))
    vectors = itertools.product(range(-most, most + 1), repeat=d)
    return {z: math.exp(-float(eta) * max(map(abs, z))) / total for z in vectors}


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)], ids=str)
def test_coins_fall_as_often_as_they_say(x: Fraction) -> None:
    found, open_ = law(lambda rng: sup_norm.coin(x, rng), Fraction(1, 10**5))
    assert float(found.get(True, 0)) <= math.exp(-x) + 1e-12
    assert math.exp(-x) <= float(found.get(True, 0) + open_) + 1e-12
    assert open_ < Fraction(1, 50)


@pytest.mark.parametrize("eta", [Fraction(1, 2), Fraction(3, 2), Fraction(2)], ids=str)
def test_geometric_numbers_are_exact(eta: Fraction) -> None:
    found, open_ = law(lambda rng: sup_norm.geometric(eta, rng), Fraction(1, 10**5))
    right = {g: -math.expm1(-eta) * math.exp(-eta * g) for g in range(60)}
    assert open_ < Fraction(1, 10)
    assert agrees(found, open_, right)
    wrong = {g: -math.expm1(-2 * eta) * math.exp(-2 * eta * g) for g in range(60)}
    assert not agrees(found, open_, wrong)


def eulerian(d: int) -> list[int]:
    """Signed permutations of 1, ..., d by their descents, a 0 before them, counted one by one."""
    counts = [0] * (d + 1)
    for order in itertools.permutations(range(1, d + 1)):
        for signs in itertools.product((-1, 1), repeat=d):
            signed = [0, *(s * i for s, i in zip(signs, order, strict=True))]
            counts[sum(a > b for a, b in itertools.pairwise(signed))] += 1
    return counts


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_descents_are_those_of_signed_permutations(d: int) -> None:
    found, open_ = law(lambda rng: sup_norm.descents(d, rng), Fraction(1, 10**6))
    assert open_ == 0
    counts = eulerian(d)
    assert found == {j: Fraction(c, sum(counts)) for j, c in enumerate(counts)}


@pytest.mark.parametrize("d", range(1, 6))
def test_powers_of_odd_numbers_are_sums_of_binomials(d: int) -> None:
    counts = eulerian(d)
    for r in range(12):
        parts = (c * math.comb(r + d - j, d) for j, c in enumerate(counts) if r >= j)
        assert sum(parts) == (2 * r + 1) ** d


@pytest.mark.parametrize("eta", [Fraction(2), Fraction(1)], ids=str)
def test_single_entries_are_exact_by_counting(eta: Fraction) -> None:
    found, open_ = law(lambda rng: tuple(sup_norm.draw(1, eta, rng)), Fraction(1, 50_000))
    right = closed_form(1, eta, 40)
    assert open_ < Fraction(1, 2)
    assert agrees(found, open_, right)
    # Another weight is not within what is left open.
    assert not agrees(found, open_, closed_form(1, 3 * eta, 40))


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_parts_make_the_law_of_vectors(d: int) -> None:
    """What is counted above, put together: r, then a uniform vector of its cube."""
    eta, most = 0.8, 300
    q = math.exp(-eta)
    start = [c * q**j for j, c in enumerate(eulerian(d))]
    radii = [
        sum(s * math.comb(r - j + d, d) * q ** (r - j) for j, s in enumerate(start) if r >= j)
        for r in range(most)
    ]
    for r in range(20):
        assert radii[r] / radii[0] == pytest.approx((2 * r + 1) ** d * q**r)
    total = sum(radii)
    shells = log_weights(d, eta, most)
    all_shells = sum(map(math.exp, shells))
    for m in range(10):
        size = (2 * m + 1) ** d - max(2 * m - 1, 0) ** d
        held = sum(radii[r] / total * size / (2 * r + 1) ** d for r in range(m, most))
        assert held == pytest.approx(math.exp(shells[m]) / all_shells)


@pytest.mark.parametrize(("d", "delta"), [(1, 3), (2, 2), (3, 1)])
def test_neighbours_differ_by_epsilon_exactly(d: int, delta: int) -> None:
    """The largest log ratio of two vectors that are Delta apart in every entry."""
    epsilon = 0.7
    eta = epsilon / delta
    points = list(itertools.product(range(-6, 7), repeat=d))

    def log_ratio(z: tuple[int, ...], scale: float) -> float:
        moved = max(abs(a - delta) for a in z)
        return scale * abs(moved - max(map(abs, z)))

    assert max(log_ratio(z, eta) for z in points) == pytest.approx(epsilon, abs=1e-12)
    # Twins: made for half of Delta, and for a sum over entries instead of the largest.
    assert max(log_ratio(z, 2 * eta) for z in points) > epsilon + 0.5
    laplace = max(eta * abs(sum(abs(a - delta) - abs(a) for a in z)) for z in points)
    assert laplace == pytest.approx(d * epsilon)


def test_nothing_to_add_noise_to() -> None:
    assert sup_norm.draw(0, Fraction(1), Randomness(SeededSource(0))) == []
    assert sup_norm.add_noise([], Fraction(1), Randomness(SeededSource(0))) == []


def test_large_vectors_and_tiny_weights_take_milliseconds() -> None:
    rng, eta = Randomness(SystemSource()), Fraction(1, 10**12 + 7)
    start = time.perf_counter()
    for _ in range(5):
        z = sup_norm.draw(250, eta, rng)
    assert (time.perf_counter() - start) / 5 < 0.25  # some 3 ms on an idle machine
    assert max(map(abs, z)) > 10**13
    # 250 entries, each uniform: their root mean square is close to what is stated.
    size = math.sqrt(sum(a * a for a in z) / len(z))
    assert size == pytest.approx(sup_norm.deviation(250, eta), rel=0.5)


def test_there_is_no_float_on_the_way_of_a_draw() -> None:
    drawing = [sup_norm.draw, sup_norm.radius, sup_norm.descents, sup_norm.geometric,
               sup_norm.coin, sup_norm._small_coin, sup_norm.add_noise]  # fmt: skip
    for function in drawing:
        tree = ast.parse(inspect.getsource(function))
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
            assert not isinstance(node, ast.Div)
            assert not (isinstance(node, ast.Name) and node.id in ("float", "math"))
