"""AutomaticFit: one price for sums, coefficients or both, and what follows from public facts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpsubset as dps
from dpsubset.data.quantize import STEPS
from dpsubset.models import automatic
from dpsubset.models.automatic import AutomaticFit
from dpsubset.models.entries import Entries, products_of
from dpsubset.models.noisy_moments import NoisyMoments
from dpsubset.models.objective_perturbation import ObjectivePerturbation
from dpsubset.models.smooth import LABEL_SQUARES, LEAST_SQUARES
from dpsubset.models.solve import solve
from dpsubset.privacy.random import Randomness, SystemSource
from dpsubset.privacy.relations import RELATIONS, Neighbours
from dpsubset.schema.encoding import Design
from models.test_objective_perturbation import COARSE, PAIRS, law

each_relation = pytest.mark.parametrize("neighbours", RELATIONS)
X = np.random.default_rng(0).uniform(-1, 1, (50_000, 4))
Y = X @ [0.5, 0.3, 0.2, 0.0] + np.random.default_rng(1).normal(0, 0.2, len(X))


def entries_of(columns: int, counted: bool = True) -> Entries:
    schema = dps.Bounds(x=1, y=1).schema([f"x{j}" for j in range(columns)])
    return Entries.of(Design.of(schema), counted)


def names(parts: automatic.Parts) -> tuple[str, ...]:
    return tuple(part.name for part in parts if part is not None)


SUMS, COEFFICIENTS = "noisy-moments", "objective-perturbation"


@each_relation
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(3, 5), Fraction(10**5)])
@pytest.mark.parametrize("loss", [LEAST_SQUARES, LABEL_SQUARES], ids=str)
def test_one_price_covers_every_choice(
    neighbours: Neighbours, epsilon: Fraction, loss: Any
) -> None:
    fit = AutomaticFit(epsilon, neighbours, loss, 20)
    promised = fit.guarantee()
    assert promised.epsilon == epsilon
    assert ("add-remove" in promised.costs) == (neighbours == "add-remove")
    assert [names(parts) for parts in fit.choices] == [
        (SUMS,), (SUMS, COEFFICIENTS), (COEFFICIENTS,)
    ]  # fmt: skip
    for parts in fit.choices:
        for relation, cost in promised.costs.items():
            made = sum(p.guarantee().costs[relation].epsilon for p in parts if p is not None)
            assert made <= cost.epsilon
            assert relation != neighbours or made == cost.epsilon == epsilon


def test_the_choice_follows_from_public_facts() -> None:
    def chosen(columns: int, n: int | None, epsilon: float, relation: Any = "replace-one") -> Any:
        fit = AutomaticFit(Fraction(epsilon), relation, LEAST_SQUARES, columns)
        return names(fit.parts(entries_of(columns), n))

    assert chosen(3, 10**6, 0.6) == (SUMS,)
    assert chosen(3, 5000, 0.6) == (SUMS, COEFFICIENTS)
    assert chosen(3, 500, 0.6) == (COEFFICIENTS,)
    assert chosen(30, 5000, 0.6) == (COEFFICIENTS,)
    assert chosen(3, 5000, 6) == chosen(3, 50_000, 0.6)
    assert chosen(3, 0, 0.6) == (COEFFICIENTS,)
    for columns, n, made in ((3, 10**6, SUMS), (3, 5000, COEFFICIENTS), (3, None, COEFFICIENTS)):
        fit = AutomaticFit(Fraction(3, 5), "replace-one", LEAST_SQUARES, 3, intervals=False)
        assert names(fit.parts(entries_of(columns), n)) == (made,)
    # A private number of rows is not looked at.
    assert chosen(10, None, 0.001, "add-remove") == (SUMS, COEFFICIENTS)
    assert chosen(11, None, 1000, "add-remove") == (COEFFICIENTS,)


# -- audit: every linear term and every outcome of the coefficients, the worst of the sums ---------


def worst_of_both(fit: AutomaticFit, columns: int = 1) -> float:
    """The largest log ratio of sums and coefficients together, on two tables of one record.

    Both have noise of their own, so the worst outcome of one and that of the other occur together.
    """
    sums, coefficients = fit.choices[1]
    assert sums is not None
    assert coefficients is not None
    coarse = ObjectivePerturbation(
        coefficients.epsilon, coefficients.neighbours, coefficients.loss, **COARSE
    )
    tables = PAIRS[fit.loss.name]
    logs = [law(coarse, *table) for table in tables]
    values = []
    for rows, response in tables:
        # The column of the pair is constant, like the constant of a model.
        cells = np.array([rows, [STEPS] * len(rows), response], dtype=np.int16)
        values.append(entries_of(1).values(products_of(cells)))
    far = max(abs(v - w) for v, w in zip(*values, strict=True))
    return float(np.abs(logs[0] - logs[1]).max()) + float(sums.eta * far)


def test_both_together_keep_epsilon_by_enumeration() -> None:
    fit = AutomaticFit(Fraction(2), "replace-one", LEAST_SQUARES, 1)
    assert 1.5 < worst_of_both(fit) <= fit.guarantee().epsilon == 2


def test_the_audit_catches_two_fits_for_the_price_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = AutomaticFit.choices.func
    monkeypatch.setattr(
        AutomaticFit,
        "choices",
        property(lambda self: (*(c := right(self))[:1], (c[0][0], c[2][1]), c[2])),
    )
    fit = AutomaticFit(Fraction(2), "replace-one", LEAST_SQUARES, 1)
    assert worst_of_both(fit) > 2
    # Its price would tell: that of both is the largest.
    assert fit.guarantee().epsilon == 4


# -- releases --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "more", "made"),
    [
        (50_000, {"epsilon": 2}, (SUMS,)),
        (5_000, {}, (SUMS, COEFFICIENTS)),
        (500, {}, (COEFFICIENTS,)),
        (5_000, {"neighbours": "add-remove"}, (SUMS, COEFFICIENTS)),
        (5_000, {"delta": 1e-6}, (SUMS,)),
        (500, {"loss": "huber"}, (COEFFICIENTS,)),
    ],
)
def test_releases(n: int, more: dict[str, Any], made: tuple[str, ...]) -> None:
    asked: dict[str, Any] = {"bounds": dps.Bounds(x=1, y=2), "k": 3, "epsilon": 1, **more}
    release = dps.fit(X[:n], y=Y[:n], **asked)
    fit, model = release.fit, release.model
    assert tuple(part.mechanism for part in fit.released_fits) == made
    assert release.guarantee == dps.price_fit(X[:n], y=Y[:n], **asked).guarantee
    assert (model.r2 is None) == (SUMS not in made)
    if len(made) == 2:
        scaled = [value * 2 / (fit.span[1] - fit.span[0]) for value in model.coefficients.values()]
        np.testing.assert_allclose(scaled, fit.minimum.theta[:-1], rtol=1e-12)
        assert fit.minimum.clip == fit.clip
    read = type(fit).from_dict(
        fit.to_dict(), release.schema, release.support, release.scale, release.problem.neighbours,
        fit.n,
    )  # fmt: skip
    assert read == fit
    text = release.statement()
    for name in (SUMS, COEFFICIENTS):
        assert (f"`{name}`" in text) == (name in made)
    assert ("Intervals cannot be computed" in text) == (SUMS not in made)


def test_moments_and_the_hinge_loss_have_sums() -> None:
    schema = dps.Schema.from_bounds({f"x{j}": (-1, 1) for j in range(4)}, ("y", -2, 2))
    moments = dps.Moments.from_blocks(schema, [(X[:500], Y[:500])])
    assert dps.fit(moments, schema, k=2, epsilon=1).fit.mechanism == SUMS
    labels = dps.Bounds(x=1, labels=(0, 1))
    y = (Y[:500] > 0).astype(int)
    assert dps.fit(X[:500], y=y, bounds=labels, k=2, epsilon=1, loss="hinge").fit.step is None
    assert dps.fit(X[:500], y=y, bounds=labels, k=2, epsilon=1).fit.mechanism == COEFFICIENTS


def test_products_are_exact() -> None:
    cells = np.random.default_rng(0).integers(-STEPS, STEPS + 1, (4, 3000)).astype(np.int16)
    cells[1] = STEPS
    exact = cells.astype(object) @ cells.T.astype(object)
    assert (products_of(cells) == exact).all()
    assert (products_of(cells[:, :0]) == 0).all()


def test_r2_of_other_coefficients_is_unbiased() -> None:
    """Coefficients that are not the table's own, with an intercept that does not match the means.

    The mean of 400 releases has a standard error of a 20th of the noise of one, 0.004 or less: the
    bound is 6 of them.
    """
    x = np.rint(X[:4000, :3] * STEPS) / STEPS
    y = np.clip(x @ [0.5, 0.3, 0.2] + 0.1 + np.random.default_rng(2).normal(0, 0.3, len(x)), -1, 1)
    columns = np.column_stack([x, np.ones(len(x)), y])
    entries = entries_of(3, counted=False)
    values = entries.values(np.rint(columns.T @ columns * STEPS**2).astype(np.int64))
    theta = np.array([0.4, 0.4, 0.1, 0.0])
    true = 1 - ((y - x @ theta[:3]) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    noise = NoisyMoments(Fraction(1), Fraction(0), "replace-one", 3)
    rng = Randomness(SystemSource())
    found = [
        solve(entries, noise.draw(values, rng), len(x), noise.deviation(entries.d), None, theta).r2
        for _ in range(400)
    ]
    assert np.mean(found) == pytest.approx(true, abs=6 * np.std(found) / 20)
    assert np.std(found) < 0.08
    assert solve(entries, values, len(x), 0.0, None, theta).r2 == pytest.approx(true, abs=1e-3)
