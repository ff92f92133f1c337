"""Power analyses of fits: the division of epsilon, and the width of intervals against real fits."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpsubset as dps
from dpsubset.models.automatic import AutomaticFit
from dpsubset.power_analysis.population import Population
from dpsubset.power_analysis.scenario import Scenario
from dpsubset.power_analysis.simulation import Effort, simulate_recovery
from dpsubset.power_analysis.widths import Shape


def fitted(**options: Any) -> dps.Expectation:
    asked: dict[str, Any] = {"n": 3000, "p": 8, "k": 3, "epsilon": 1, "tables": 10, "seed": 1}
    return dps.power(**{**asked, "release": "fit", **options})


@pytest.mark.parametrize("rule", [None, dps.FitRule(budget_fraction=0.4)])
@pytest.mark.parametrize("options", [{}, {"labels": True}, {"neighbours": "add-remove"}], ids=str)
def test_epsilon_is_divided_as_a_fit_divides_it(rule: Any, options: dict[str, Any]) -> None:
    found = fitted(rule=rule, epsilon=0.7, **options)
    schema = dps.Bounds(x=3, labels=(-1, 1)) if "labels" in options else dps.Bounds(x=3, y=3)
    asked = {name: value for name, value in options.items() if name != "labels"}
    price = dps.price_fit(
        None, schema.schema([f"x{j}" for j in range(8)]), k=3, epsilon=0.7, rule=rule, **asked
    )
    assert price.guarantee is not None
    parts = dict(price.guarantee.parts)
    relation = price.guarantee.neighbours
    assert found.epsilon_left == parts["the selection"].costs[relation].epsilon
    assert found.epsilon_of_fit == parts["the fit"].costs[relation].epsilon
    assert found.epsilon == Fraction(7, 10)
    assert (found.release, found.fit) == ("fit", AutomaticFit.name)


def test_a_fit_names_the_truth_as_its_own_selection_does() -> None:
    """Its selection has 0.3 of epsilon, after a range that has 0.1 of the whole."""
    population = Population(20, 3, 2.0)
    alone, whole = (Scenario.create(population, {}, 1, release) for release in ("select", "fit"))
    assert whole.request(3000, 1).setting.epsilon == Fraction(3, 10)
    assert whole.request(3000, 1).range_epsilon == Fraction(1, 10)
    effort = Effort(tables=40, seed=1)
    chances = [
        simulate_recovery(scenario, 3000, 0.6, effort).probability for scenario in (alone, whole)
    ]
    assert chances[0] > chances[1] + 0.2


@pytest.mark.parametrize("known", [{"n": 2000}, {"epsilon": 2}])
def test_the_smallest_value_of_a_fit_is_larger(known: dict[str, Any]) -> None:
    options: dict[str, Any] = {"p": 8, "k": 2, "snr": 2, "tables": 20, "seed": 1}
    options |= {**known, "probability": 0.8}
    alone, whole = (dps.power(**options, release=release) for release in ("select", "fit"))
    assert alone.solved is not None
    assert getattr(whole, alone.solved) > 1.5 * getattr(alone, alone.solved)
    assert whole.widths


# -- the width of intervals against real fits ------------------------------------------------------


def real_half_widths(
    n: int, numbers: int, levels: tuple[int, ...], epsilon: float, fits: int, seeded: bool,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Half-widths of numbers and of levels, of `dps.fit` on tables that are drawn here.

    All variables are selected, so that every fit has the same columns.
    """
    k, found = numbers + len(levels), []
    columns: dict[str, Any] = {f"number {j}": (-3, 3) for j in range(numbers)}
    columns |= {f"level {j}": {"levels": list(range(c))} for j, c in enumerate(levels)}
    schema = dps.Schema.from_bounds(columns, ("y", -3, 3))
    for seed in range(fits):
        rng = np.random.default_rng([n, seed] if seeded else None)
        x = rng.standard_normal((n, k))
        y = np.sqrt(0.5 / k) * x.sum(axis=1) + np.sqrt(0.5) * rng.standard_normal(n)
        table = pd.DataFrame(x, columns=list(columns))
        for name, count in zip(list(columns)[numbers:], levels, strict=True):
            table[name] = np.floor(norm.cdf(table[name]) * count).astype(int)
        table["y"] = y
        release = dps.fit(
            table, schema, k=k, epsilon=epsilon, seed=seed if seeded else None, **options
        )
        assert release.model is not None
        ends = release.model.intervals
        of = {name: (high - low) / 2 for name, (low, high) in ends.items()}
        found.append([[of[name] for name in of if name.startswith(what)]
                      for what in ("number", "level")])  # fmt: skip
    return tuple(np.array([each[i] for each in found]) for i in (0, 1))  # type: ignore[return-value]


#: n, numbers, levels, epsilon and options.
FITS: list[tuple[int, int, tuple[int, ...], float, dict[str, Any]]] = [
    (3000, 3, (), 1.0, {}),
    (6000, 2, (6,), 1.0, {}),
    (20_000, 1, (4, 3), 0.5, {"neighbours": "add-remove"}),
    # The default fit would release coefficients alone here.
    (9000, 4, (), 0.5, {"rule": dps.FitRule(budget_fraction=0.4, mechanism="noisy-moments")}),
]


def compared(
    setting: tuple[int, int, tuple[int, ...], float, dict[str, Any]], fits: int, tables: int,
    seeded: bool,
) -> tuple[list[float], list[float]]:  # fmt: skip
    """Quotients of expected and of real half-widths; and of those of the twin, half of epsilon."""
    n, numbers, levels, epsilon, options = setting
    real = real_half_widths(n, numbers, levels, epsilon, fits, seeded, **options)
    quotients = []
    for part in (1, 0.5):
        found = dps.power(
            n=n, p=numbers + len(levels), k=numbers + len(levels), epsilon=epsilon * part,
            release="fit", levels=levels, tables=tables, seed=2 if seeded else None, **options,
        )  # fmt: skip
        shown = found.widths[-1]
        assert shown.columns == numbers + sum(levels) - len(levels)
        quotients.append([
            float(expected) / float(np.median(seen))
            for expected, seen in zip((shown.number, shown.level), real, strict=True)
            if expected is not None
        ])  # fmt: skip
    return quotients[0], quotients[1]


@pytest.mark.parametrize("setting", FITS[:2], ids=str)
def test_widths_are_those_of_real_fits(setting: Any) -> None:
    """With fixed seeds: medians of 12 fits and 30 simulated ones agree within a fifth."""
    found, twin = compared(setting, 12, 30, seeded=True)
    assert found == pytest.approx([1.0] * len(found), abs=0.2)
    assert min(twin) > 1.4


@pytest.mark.statistical
@pytest.mark.parametrize("setting", FITS, ids=str)
def test_widths_are_those_of_fresh_fits(setting: Any) -> None:
    """Medians of 60 fits and 200 simulated ones agree within 0.15."""
    found, twin = compared(setting, 60, 200, seeded=False)
    print(setting, found, twin)
    assert found == pytest.approx([1.0] * len(found), abs=0.15)
    assert min(twin) > 1.4


def test_levels_widen_intervals_of_numbers() -> None:
    without, with_levels = fitted(levels=[12], n=20_000).widths
    assert (without.columns, with_levels.columns) == (3, 13)
    assert without.level is None
    assert with_levels.level is not None
    assert with_levels.number is not None
    assert without.number is not None
    assert with_levels.number > 3 * without.number
    # Of each level: its sum, its product with the response and with each of the two numbers.
    assert with_levels.sums == 10 + 11 * 4  # two numbers alone have 10


def test_what_is_said_of_a_fit() -> None:
    found = fitted(levels=[4])
    text = str(found)
    assert "epsilon 1 (0.3 of it for the selection, 0.6 for the fit)" in text
    assert "fitted by noisy-moments, objective-perturbation or both" in text
    assert "3 numbers (3 columns): " in text
    assert "2 numbers and 1 category of 4 levels (5 columns): " in text
    assert "standard deviations of the response" in text
    facts = json.loads(found.to_json())
    assert facts["epsilon_of_the_fit"] == 0.6
    assert [each["columns"] for each in facts["interval_half_widths"]] == [3, 5]
    # Where noise hides everything, an interval has no ends, and JSON has no infinity.
    hidden = fitted(n=60, epsilon=0.1)
    assert hidden.widths[0].number == np.inf
    assert hidden.widths[0].unbounded > 0.5
    assert "infinite" in str(hidden)
    assert json.loads(hidden.to_json())["interval_half_widths"][0]["number"] is None


def test_a_fit_without_intervals() -> None:
    found = fitted(n=300, p=4, k=2, loss="logistic", tables=3)
    assert found.fit == "objective-perturbation"
    assert found.widths == ()
    assert "Intervals: objective-perturbation gives none" in str(found)


def test_shapes_are_those_of_models() -> None:
    """The columns of a shape are those of a fit on the same variables."""
    schema = dps.Schema.from_bounds(
        {
            "a": (0, 1), "b": {"lo": 0, "hi": 1, "missing": {"codes": [-9], "as": "indicator"}},
            "c": {"levels": ["x", "y", "z"]},
            "d": {"levels": ["x", "y"], "missing": {"as": "indicator"}},
        },
        ("y", 0, 1),
    )  # fmt: skip
    from dpsubset.models.entries import model_columns
    from dpsubset.schema.encoding import Design

    design = Design.of(schema)
    shape = Shape.of(design, range(4))
    assert shape == Shape(2, (2, 3, 3))
    assert shape.columns == len(model_columns(design))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"release": "tune"}, "release must be one of select, fit"),
        ({"release": "select", "levels": [3]}, r"need release='fit' \(--release fit\)"),
        ({"release": "select", "rule": dps.FitRule()}, "needs release='fit'"),
        ({"rule": 0.5}, "rule must be a dpsubset.FitRule"),
        ({"levels": [1]}, "at least 2"),
        ({"levels": [2, 2, 2, 2]}, "more categories than k"),
        ({"levels": 3}, "levels must list"),
        ({"levels": ["a"]}, "levels must be a whole number"),
        ({"intercept": False}, "leave intercept at True"),
    ],
    ids=str,
)
def test_invalid_arguments_of_a_fit_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(dps.ArgumentError, match=says):
        fitted(**wrong)


def test_progress_of_all_parts_goes_up_to_one() -> None:
    for options in ({"levels": [3]}, {"epsilon": None, "probability": 0.5}):
        seen: list[float] = []
        fitted(tables=3, progress=seen.append, **options)
        assert seen == sorted(seen)
        assert seen[-1] == pytest.approx(1)
