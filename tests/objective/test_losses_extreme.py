"""Losses of records at the ends of what a problem may be: radius, ridge, n, contrary data."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import flint
import numba
import numpy as np
import pytest
from benchmarks.data import Shape

from dpsubset import Bounds, select
from dpsubset.data.gram import GramData
from dpsubset.data.quantize import STEPS
from dpsubset.objective.losses import LOSSES, certified, certified_rows, loss_of, scorer
from dpsubset.objective.losses import rows as rows_module
from dpsubset.objective.losses.base import ENTROPIES, SLOPES, RowLoss, minimise
from dpsubset.objective.losses.certified_rows import Sum, bracket, minimum
from dpsubset.objective.losses.hinge import Hinge
from dpsubset.objective.losses.huber import Huber
from dpsubset.objective.losses.logistic import entropies
from dpsubset.objective.losses.row_kernels import certify, scaled_rows, score_all
from dpsubset.objective.losses.rows import FromRecords
from dpsubset.objective.problem import Problem
from dpsubset.objective.sensitivity import Sensitivity
from dpsubset.search.bounds.kernels import FREE
from dpsubset.search.engine import Engine
from dpsubset.search.enumerate import list_supports
from dpsubset.search.tuning import Tuning
from support.recipes import CONSTRAINTS
from support.regions import random_path, random_region

ROW_LOSSES = [name for name, loss in LOSSES.items() if loss.needs_records]
each_loss = pytest.mark.parametrize("loss", ROW_LOSSES)


@pytest.fixture
def many_bits() -> Iterator[None]:
    saved, flint.ctx.prec = flint.ctx.prec, 256
    yield
    flint.ctx.prec = saved


def digest_of(records: np.ndarray) -> GramData:
    return GramData.of_cells(np.asarray(records.T, dtype=np.int16, order="C"), "test")


def contrary(rng: np.random.Generator, p: int, most: int = 40) -> np.ndarray:
    """Records that are empty, constant, duplicated, tiny, separable, balanced, or of one label."""
    n = int(rng.choice([0, 1, 2, 7, most]))
    x = rng.integers(-STEPS, STEPS + 1, (n, p))
    kind = int(rng.integers(7))
    if kind == 1:
        x[:] = 0
    elif kind == 2:
        x[:] = rng.choice([-STEPS, STEPS], (n, p))
    elif kind == 3:
        x[:] = x[:, :1]
    elif kind == 4:
        x[:] = rng.integers(-2, 3, (n, p))
    elif kind == 5:
        x[: n // 2] = -x[n - n // 2 :]
    y = [
        np.where(x @ rng.normal(size=p) < 0, -STEPS, STEPS),
        np.full(n, STEPS),
        rng.choice([-STEPS, 0, STEPS], n),
        rng.integers(-STEPS, STEPS + 1, n),
    ][int(rng.integers(4))]
    return np.column_stack([x, y]).astype(np.int64)


def extreme(rng: np.random.Generator, loss: str, p: int, neighbours: str) -> Problem:
    radius = rng.choice([1e-9, 1e9, 10 ** rng.uniform(-9, 9), 10 ** rng.uniform(-1, 1)])
    ridge = rng.choice([0.0, 0.0, 1e15, 10 ** rng.uniform(-12, 15)])
    return Problem.create(p, int(rng.integers(1, min(p, 3) + 1)), loss=loss,
                         constraint=str(rng.choice(CONSTRAINTS)), radius=float(radius),
                         ridge=float(ridge), neighbours=neighbours)  # fmt: skip


def of_records(records: np.ndarray, problem: Problem, unit: Fraction) -> FromRecords:
    found = scorer(digest_of(records), problem, unit)
    assert isinstance(found, FromRecords)
    return found


# -- scores ---------------------------------------------------------------------------------------


def of(problem: Problem) -> RowLoss:
    """The row loss of a problem."""
    rows = loss_of(problem).rows
    assert rows is not None
    return rows(problem.prediction_bound)


@pytest.mark.parametrize("constraint", range(3))
@each_loss
@pytest.mark.usefixtures("many_bits")
def test_a_certificate_covers_the_rounding_of_its_own_value(loss: str, constraint: int) -> None:
    """Equal rows: the minimum is at the end of C, with no gap, and float64 cannot write it down."""
    n, k = 1000, 3
    radius = 0.3 / k
    problem = Problem.create(k, k, loss=loss, constraint=CONSTRAINTS[constraint], radius=radius)
    rounded = 0
    for cell in range(1, STEPS, 1500):
        end = np.full(k, (radius, radius / 3**0.5, radius / 3)[constraint])
        # One by one, or some together.
        rows = n if cell % 2 else 8
        z, counts = np.full((rows, k), cell / STEPS), np.full(rows, n / rows)
        value, width = certify(
            of(problem), problem.coefficients, z, np.ones(rows), counts, 0.0, end
        )
        t = flint.arb(cell) / STEPS * flint.arb(radius) * (3, flint.arb(3).sqrt(), 1)[constraint]
        d = flint.arb(1) / 4
        change = {
            "logistic": ((-t).exp().log1p() - flint.arb(2).log()),
            "hinge": -t,
            "huber": -2 * d * t,
        }[loss]
        assert abs(flint.arb(value) - n * change) <= flint.arb(width)
        assert width < 1e-13 * n * radius * k
        rounded += flint.arb(value) != n * change
    assert rounded


@pytest.mark.parametrize("function", ["expm1", "log1p"])
@pytest.mark.usefixtures("many_bits")
def test_functions_are_as_good_as_the_proof_takes_them_to_be(function: str) -> None:
    """Compiled as the kernels compile them, in a loop: within 2**-50 of their size."""
    rng = np.random.default_rng(17)
    called = {"expm1": np.expm1, "log1p": np.log1p}[function]

    @numba.njit
    def all_of(x: np.ndarray) -> np.ndarray:
        found = np.empty_like(x)
        for i in range(len(x)):
            found[i] = called(x[i])
        return found

    sizes = np.concatenate([10.0 ** rng.uniform(-320, 0, 4000), rng.uniform(0, 1, 20_000)])
    x = -np.concatenate([sizes, sizes * 40, [1e9, 745.2, 1e-300]])
    x = x / 2 if function == "expm1" else -np.fmod(-x, 0.5)
    for at, found in zip(x.tolist(), all_of(x).tolist(), strict=True):
        exact = getattr(flint.arb(at), function)()
        assert abs(flint.arb(found) - exact) <= abs(exact) * 2.0**-50 + 2.0**-1074, at


@each_loss
@pytest.mark.usefixtures("many_bits")
def test_losses_at_zero_are_exact(loss: str) -> None:
    rng = np.random.default_rng(18)
    for threshold in (0.01, 0.25, 1 / 3, 1.0):
        asked = {"threshold": threshold} if loss == "huber" else {}
        row_loss = of(Problem.create(2, 1, loss=loss, **asked))
        edge = int(threshold * STEPS)
        response = np.concatenate([rng.integers(-STEPS, STEPS + 1, 200),
                                   [edge, -edge, edge + 1, 0, STEPS, -STEPS]])  # fmt: skip
        found = row_loss.at_zero(response.astype(np.int16))
        if loss == "huber":
            d, r = Fraction(threshold), [abs(Fraction(int(y), STEPS)) for y in response]
            assert found == sum(x**2 if x <= d else 2 * d * x - d**2 for x in r)
        elif loss == "hinge":
            assert found == len(response)
        else:
            written = flint.arb(found.numerator) / found.denominator
            assert abs(len(response) * flint.arb(2).log() - written) < 2.0**-100


@each_loss
def test_float64_answers_only_where_its_width_is_half_a_unit(loss: str) -> None:
    problem, n = Problem.create(2, 2, loss=loss, radius=0.4), 200
    row_loss, c = of(problem), problem.coefficients
    records = np.random.default_rng(10).integers(-STEPS, STEPS + 1, (3, n)).astype(np.int16)
    z, o, support = np.empty((n, 2)), np.empty(n), np.array([0, 1])
    every, ones = np.arange(n), np.ones(n)
    scaled_rows(records[:2], records[2], support, every, row_loss.labels, float(STEPS), z, o)
    # A target that is never met: as good as it gets.
    _, width = minimise(row_loss, c, z, o.copy(), ones, 0.0, 0.0, np.inf)
    for unit, right in ((1.9 * width, False), (3.0 * width, True)):
        _, here = minimise(row_loss, c, z, o.copy(), ones, 0.0, 0.499 * unit, np.inf)
        done = score_all(records[:2], records[2], support[None], row_loss, c, 0.0, float(STEPS),
                         unit, 0, 0.0, np.inf, np.empty(1, dtype=np.int64))  # fmt: skip
        assert bool(done[0]) == (here <= 0.499 * unit) == right


def forbid_ball_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(self: FromRecords, support: object) -> int:
        raise AssertionError("float64 should have certified this")

    monkeypatch.setattr(FromRecords, "_exactly", called)


@each_loss
def test_float64_certifies_large_tables_at_any_reach(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_ball_arithmetic(monkeypatch)
    rng = np.random.default_rng(19)
    n, k = 200_000, 3
    records = rng.integers(-STEPS, STEPS + 1, (n, k + 1))
    records[:, -1] = np.clip(records[:, 0] + rng.integers(-STEPS, STEPS + 1, n), -STEPS, STEPS)
    for constraint, prediction_bound in (("box", 1e-8), ("l1", 1e-4), ("ball", 1e-3), ("box", 0.1),
                              ("ball", 1.0), ("l1", 1e3), ("box", 1e6)):  # fmt: skip
        problem = Problem.create(
            k, k, loss=loss, constraint=constraint, prediction_bound=prediction_bound
        )
        one = of_records(records, problem, Sensitivity.of(problem).score_step)
        assert one.scores(np.arange(k)[None])[0] > 0


def test_the_solver_gets_on_where_the_decrease_drowns(monkeypatch: pytest.MonkeyPatch) -> None:
    """200,000 terms of a naive sum hide the last steps along an edge of the l1 ball."""
    forbid_ball_arithmetic(monkeypatch)
    rng = np.random.default_rng(0)
    x = rng.integers(-STEPS, STEPS + 1, (200_000, 4))
    y = np.where(x @ rng.normal(size=4) + rng.normal(size=len(x)) * 20_000 > 0, STEPS, -STEPS)
    problem = Problem.create(4, 4, loss="huber", constraint="l1", prediction_bound=1.0)
    one = of_records(np.column_stack([x, y]), problem, Sensitivity.of(problem).score_step)
    assert one.scores(np.arange(4)[None])[0] > 0


def test_float64_certifies_the_hinge_of_discrete_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows at the kink: their slopes are found, not approached."""
    forbid_ball_arithmetic(monkeypatch)
    rng = np.random.default_rng(20)
    for _ in range(150):
        k, n = int(rng.choice([1, 2, 4, 8])), int(rng.choice([20, 200, 1000]))
        cells = [[-STEPS, STEPS], [0, STEPS], [-STEPS, 0, STEPS]][int(rng.integers(3))]
        x = rng.choice(cells, (n, k))
        y = np.where(x @ rng.normal(size=k) + rng.choice([0, 3e4]) * rng.normal(size=n) < 0, -1, 1)
        problem = Problem.create(k, k, loss="hinge", constraint=str(rng.choice(CONSTRAINTS)),
                                radius=float(10 ** rng.uniform(-1, 1.5)),
                                ridge=float(rng.choice([0.0, 1e-5, 1.0])))  # fmt: skip
        one = of_records(
            np.column_stack([x, y * STEPS]), problem, Sensitivity.of(problem).score_step
        )
        assert one.scores(np.arange(k)[None])[0] >= 0


def test_a_residual_at_the_threshold_gets_both_formulas() -> None:
    for side in (1, -1):
        at = flint.arb(-side * 0.25, 0.125)
        value, slope, _ = Huber(0.25).exact(flint.arb(0), at, flint.arb(1))
        for r in (0.125, 0.25, 0.375):
            assert value.contains(r * r if r <= 0.25 else 0.25 * (2 * r - 0.25))
            assert slope.contains(-2 * side * min(r, 0.25))


@each_loss
def test_ball_arithmetic_is_asked_for_half_a_unit(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = np.random.default_rng(21).integers(-STEPS, STEPS + 1, (12, 3))
    problem, unit, asked = (
        Problem.create(2, 2, loss=loss, prediction_bound=3),
        Fraction(1, 2**10),
        [],
    )

    def watched(*arguments):  # type: ignore[no-untyped-def]
        asked.append(arguments[-1])
        return minimum(*arguments)

    monkeypatch.setattr(rows_module, "minimum", watched)
    one = of_records(records, problem, unit)
    low, high = minimum(one.objective(np.array([0, 1])), problem.coefficients, unit / 2**20)
    assert abs(one.exact_score([0, 1]) * unit - (low + high) / 2) <= unit * Fraction(3, 4)
    assert asked == [unit / 2]


@each_loss
def test_a_bracket_holds_from_any_point(loss: str) -> None:
    """Also from points outside of C, and for any smoothing of the hinge."""
    rng = np.random.default_rng(11)
    told = 0
    for _ in range(24):
        records = contrary(rng, 3, 9)
        problem = Problem.create(3, 3, loss=loss, constraint=str(rng.choice(CONSTRAINTS)),
                                radius=float(10 ** rng.uniform(-1, 1)),
                                ridge=float(rng.choice([0.0, 0.3])))  # fmt: skip
        total = of_records(records, problem, Fraction(1, 2**20)).objective(np.array([0, 1, 2]))
        tight = minimum(total, problem.coefficients, Fraction(1, 2**30))
        for _ in range(6):
            size = problem.radius * 10 ** rng.uniform(-2, 1)
            b = [Fraction(float(v)) for v in rng.normal(size=3) * size]
            smoothing = flint.arb(float(10 ** rng.uniform(-2, 6)))
            low, high = bracket(total, problem.coefficients, b, smoothing)
            assert low <= tight[1]
            assert high >= tight[0]
            told += high - low > Fraction(1, 100)
    assert told


@each_loss
def test_both_ways_to_a_score_agree_on_contrary_data(loss: str) -> None:
    rng = np.random.default_rng(12)
    for _ in range(25):
        records = contrary(rng, 2, 9)
        problem = Problem.create(2, 2, loss=loss, constraint=str(rng.choice(CONSTRAINTS)),
                                radius=float(10 ** rng.uniform(-2, 2)),
                                ridge=float(rng.choice([0.0, 1e-6, 1.0, 1e6])))  # fmt: skip
        unit = Sensitivity.of(problem).score_step
        one = of_records(records, problem, unit)
        low, high = minimum(one.objective(np.array([0, 1])), problem.coefficients, unit / 2**10)
        for score in (one.exact_score([0, 1]), int(one.scores(np.array([[0, 1]]))[0])):
            assert low - unit <= score * unit <= high + unit


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_middle_counts_as_above_in_ball_arithmetic_too(loss: str) -> None:
    rng = np.random.default_rng(13)
    records = rng.integers(-STEPS, STEPS + 1, (12, 3))
    records[:6, -1] = 0
    signs = records.copy()
    signs[:, -1] = np.where(records[:, -1] < 0, -STEPS, STEPS)
    problem = Problem.create(2, 2, loss=loss, prediction_bound=3)
    both = [
        of_records(r, problem, Fraction(1, 2**20)).exact_score([0, 1]) for r in (records, signs)
    ]
    assert both[0] == both[1]


# -- ball arithmetic always answers ---------------------------------------------------------------


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@each_loss
def test_balanced_rows_have_a_minimum(loss: str, constraint: str) -> None:
    """G is 0 up to the radius of a ball, and its square might be negative."""
    tolerance = Fraction(1, 2**30)
    problem = Problem.create(2, 2, loss=loss, constraint=constraint, radius=3.0)
    cells = [((12345, 7), 1, 3), ((-12345, -7), 1, 3)]
    total = Sum(cells, 2, STEPS, of(problem), Fraction(0))
    low, high = minimum(total, problem.coefficients, tolerance)
    assert 0 <= high - low <= tolerance


@each_loss
def test_balanced_data_and_their_neighbours_have_a_release(loss: str) -> None:
    n = 40_000
    x = np.tile([0.37, 0.11, -0.2], (n, 1))
    for first in (0.0, 1.0):
        y = np.where(np.arange(n) % 2, 1.0, 0.0)
        y[0] = first
        release = select(x, y=y, bounds=Bounds(x=(-1, 1), y=(0, 1)), k=1, epsilon=1, loss=loss,
                         constraint="ball", prediction_bound=1e-4)  # fmt: skip
        assert release.support is not None


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@each_loss
def test_a_coarse_tolerance_is_met(
    loss: str, constraint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The easiest problem is finer than the goal: a step is taken all the same."""
    barrier = certified_rows._barrier

    def guarded(*arguments):  # type: ignore[no-untyped-def]
        assert arguments[-1] <= 1024, "more and more bits, and no progress"
        return barrier(*arguments)

    monkeypatch.setattr(certified_rows, "_barrier", guarded)
    for ridge in (Fraction(0), Fraction(1e-300), Fraction(10**15)):
        for radius in (1e-9, 1.0, 1e9):
            problem = Problem.create(1, 1, loss=loss, constraint=constraint, radius=radius)
            total = Sum([((STEPS,), 1, 1)], 1, STEPS, of(problem), ridge)
            low, high = minimum(total, problem.coefficients, Fraction(4096))
            assert high - low <= 4096


@pytest.mark.parametrize("error", [ValueError("12345"), ZeroDivisionError(), OverflowError()])
def test_what_fails_at_one_precision_is_tried_at_the_next(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that depends on values leaves `exact_score` but the score."""
    records = np.random.default_rng(16).integers(-STEPS, STEPS + 1, (9, 3))
    for loss in ("logistic", "least-squares"):
        problem = Problem.create(2, 2, loss=loss)
        unit = Sensitivity.of(problem).score_step
        module = certified if loss == "least-squares" else certified_rows
        barrier, bits = module._barrier, []

        def failing(*arguments, barrier=barrier, bits=bits):  # type: ignore[no-untyped-def]
            bits.append(arguments[-1])
            if len(bits) < 3:
                raise error
            return barrier(*arguments)

        one = scorer(digest_of(records), problem, unit)
        expected = one.exact_score([0, 1])  # type: ignore[attr-defined]
        with monkeypatch.context() as patch:
            patch.setattr(module, "_barrier", failing)
            patch.setattr(certified, "points", lambda *_: ())
            assert one.exact_score([0, 1]) == expected  # type: ignore[attr-defined]
        assert bits == [128, 256, 512]


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_tiny_ridge_does_not_send_the_hinge_to_ball_arithmetic(constraint: str) -> None:
    c = Problem.create(3, 3, constraint=constraint, radius=2.0).coefficients
    z = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    for ridge in (1e-140, 1e-300):
        _, width = minimise(Hinge(), c, z, np.ones(50), np.ones(50), ridge, 2.0**-16, np.inf)
        assert width <= 2.0**-16, ridge


# -- sensitivity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@each_loss
def test_no_record_moves_scores_by_more_than_the_spread(loss: str, neighbours: str) -> None:
    rng = np.random.default_rng(14)
    seen = 0
    while seen < 120:
        p = int(rng.integers(2, 6))
        records, problem = contrary(rng, p), extreme(rng, loss, p, neighbours)
        z = rng.choice([-STEPS, 0, STEPS], p + 1)
        if neighbours == "add-remove":
            other = np.vstack([records, z])
        elif len(records):
            other = np.vstack([records[1:], z])
        else:
            continue
        s, supports = Sensitivity.of(problem), list_supports(problem)
        before, after = (
            of_records(r, problem, s.score_step).scores(supports) for r in (records, other)
        )
        assert int(np.ptp(after - before)) * s.score_step <= s.score_range(problem.neighbours), (
            problem
        )
        seen += 1


# -- bounds ---------------------------------------------------------------------------------------


def test_entropies_are_rounded_down_and_by_little() -> None:
    table = entropies()
    assert table[0] == table[-1] == 0
    for q in range(1, SLOPES):
        a = flint.arb(q) / SLOPES
        exact = -(a * a.log() + (1 - a) * (1 - a).log()) * ENTROPIES
        assert flint.arb(int(table[q])) <= exact
        assert flint.arb(int(table[q]) + 3) >= exact


@each_loss
def test_bounds_are_below_every_score_at_the_extremes(loss: str) -> None:
    rng = np.random.default_rng(15)
    tested = 0
    for _ in range(60):
        p = int(rng.integers(2, 7))
        records, problem = contrary(rng, p), extreme(rng, loss, p, "add-remove")
        unit = Sensitivity.of(problem).score_step
        engine = Engine(digest_of(records), problem, unit, float(10 ** rng.uniform(-6, 6)),
                        penalty=int(rng.choice([0, 5])), tuning=Tuning(last_pick=0))  # fmt: skip
        for _ in range(2):
            region, rounds = random_region(problem, rng), int(rng.choice([0, 1, 20]))
            for bound in random_path(engine.bound_oracle, region, rng, rounds):
                g = [Fraction(float(gain)) for gain in engine.bound_oracle.gains(bound)]
                for support in map(tuple, bound.region.supports().tolist()):
                    picked = [j for j in support if bound.region.status[j] >= FREE]
                    own = Fraction(bound.base) - sum((g[j] for j in picked), Fraction(0))
                    score = engine.score(support) * unit
                    assert own <= score, (problem, support)
                    assert Fraction(bound.lower_bound) <= score
                    tested += 1
    assert tested > 500


def test_the_hinge_is_certified_where_lines_lose_their_way() -> None:
    """Supports of a plain table that two of the three ways to the minimum fail on."""
    x, y = Shape(3000, 1000).make()
    supports = np.array([[0, 2, 4, 8, 262], [0, 4, 6, 8, 138], [2, 4, 6, 8, 949]])
    used = np.unique(supports)
    cells = np.rint(np.clip(2 * np.column_stack([x[:, used], y]), -1, 1) * STEPS)
    problem = Problem.create(len(used), 5, loss="hinge", prediction_bound=2)
    digest = digest_of(cells)
    scores = np.empty(3, dtype=np.int64)
    unit = float(Sensitivity.of(problem).score_step)
    certified = score_all(
        digest.records, digest.response, np.searchsorted(used, supports), Hinge(),
        problem.coefficients, 0.0, float(STEPS), unit, 0, 0.0, np.inf, scores,
    )  # fmt: skip
    assert certified.all()
