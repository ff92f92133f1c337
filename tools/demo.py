"""The main job from end to end: a table on disk, its schema, a private selection, its statement.

The table is synthetic, so the true answer is known, and how often it would be found can be shown
without harming anybody. Writes to demo-output/ and ends with an error if anything is wrong.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import dpsubset as dps
from dpsubset.mechanisms import PLAIN

FOLDER = Path("demo-output")
ROWS, K, EPSILON = 20_000, 3, 1
EPSILONS, DRAWS = (0.1, 0.3, 1), 400

# name: (lo, hi) as anybody could declare them without seeing a row
BOUNDS = {
    "age": (0, 100),
    "bmi": (10, 50),
    "systolic": (80, 180),
    "cholesterol": (2, 10),
    "glucose": (2, 12),
    "smoker": (0, 1),
    "exercise_hours": (0, 20),
    "alcohol_units": (0, 40),
    "sleep_hours": (3, 12),
    "household_size": (1, 9),
    "distance_km": (0, 50),
    "visits": (0, 20),
}
RESPONSE = ("yearly_cost", 0, 10_000)
# Effects on the yearly cost; every other column has none.
EFFECTS = {"age": 28.0, "bmi": 55.0, "smoker": 1_300.0}


def synthetic_table(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """People whose yearly cost depends on age, BMI and smoking, and on nothing else.

    Several other columns follow one of the three without an effect of their own: decoys.
    """
    age = rng.normal(50, 18, ROWS)
    bmi = 27 + 0.04 * (age - 50) + rng.normal(0, 5, ROWS)
    smoker = (rng.random(ROWS) < 0.35).astype(float)
    table = {
        "age": age,
        "bmi": bmi,
        "systolic": 128 + 0.3 * (age - 50) + 0.8 * (bmi - 27) + rng.normal(0, 13, ROWS),
        "cholesterol": 5.5 + 0.01 * (age - 50) + rng.normal(0, 1, ROWS),
        "glucose": 5.5 + 0.08 * (bmi - 27) + rng.normal(0, 1, ROWS),
        "smoker": smoker,
        "exercise_hours": rng.gamma(3, 2, ROWS),
        "alcohol_units": rng.gamma(2, 4, ROWS) + 3 * smoker,
        "sleep_hours": rng.normal(7.3, 1, ROWS),
        "household_size": 1 + rng.poisson(1.6, ROWS),
        "distance_km": rng.gamma(2, 8, ROWS),
        "visits": rng.poisson(3 + 0.03 * np.clip(age, 0, 100)),
    }
    effect = sum(weight * (table[name] - np.mean(BOUNDS[name])) for name, weight in EFFECTS.items())
    table[RESPONSE[0]] = 5_000 + effect + rng.gamma(2, 700, ROWS) - 1_400
    return table


def write_csv(table: dict[str, np.ndarray], path: Path, rng: np.random.Generator) -> None:
    """A file as one meets them: some cells are empty, some hold words."""
    cells = [[f"{value:.6g}" for value in column] for column in table.values()]
    for column in cells:
        for row in rng.choice(ROWS, ROWS // 100, replace=False):
            column[row] = "" if row % 2 else "not recorded"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*cells, strict=True))


def rates_of_truth(path: Path, schema: dps.Schema, mechanism: str) -> list[float]:
    """How often a mechanism finds the truth, for each of EPSILONS."""
    truth = tuple(sorted(schema.feature_names.index(name) for name in EFFECTS))
    draws = (
        dps.simulate(path, schema, k=K, epsilon=epsilon, mechanism=mechanism, draws=DRAWS)
        for epsilon in EPSILONS
    )
    return [counts[truth] / DRAWS for counts in draws]


def main() -> int:
    """Run the demo; returns the exit code."""
    console = Console()
    rng = np.random.default_rng(20_240)
    FOLDER.mkdir(exist_ok=True)
    data, bounds = FOLDER / "patients.csv", FOLDER / "patients.schema.yaml"
    write_csv(synthetic_table(rng), data, rng)
    schema = dps.Schema.from_bounds(BOUNDS, RESPONSE, privacy_unit="one patient")
    schema.write(bounds)
    console.print(f"Wrote {data}: {ROWS} synthetic patients.")
    console.print(f"Wrote {bounds}: their public bounds.")
    console.print(f"Truth: {RESPONSE[0]} depends on {', '.join(EFFECTS)} and on nothing else.\n")

    release = dps.select(data, bounds, k=K, epsilon=EPSILON, ledger=False)
    (FOLDER / "release.json").write_text(release.to_json() + "\n", encoding="utf-8")
    (FOLDER / "statement.md").write_text(release.statement(), encoding="utf-8")
    console.rule("Private release")
    console.print(f"Selected: {', '.join(release.features)}")
    console.print(f"Guarantee: {release.guarantee}")
    console.print(f"Written to {FOLDER / 'release.json'} and {FOLDER / 'statement.md'}.\n")
    console.rule("Privacy statement")
    console.print(release.statement(), markup=False, highlight=False, soft_wrap=True)

    console.rule("NOT PRIVATE: simulation on synthetic data")
    console.print(f"Share of {DRAWS} draws that find the truth, {', '.join(EFFECTS)}:")
    rates = {name: rates_of_truth(data, schema, name) for name in PLAIN}
    table = Table("mechanism", *(f"epsilon = {epsilon}" for epsilon in EPSILONS))
    for name, found in rates.items():
        table.add_row(name, *(f"{rate:.0%}" for rate in found))
    console.print(table)

    written = json.loads((FOLDER / "release.json").read_text(encoding="utf-8"))
    expected = {
        "the release is private": written["guarantee"]["private"],
        f"the release names {K} columns": len(set(written["features"]) & set(BOUNDS)) == K,
        "the default mechanism finds the truth": rates[release.mechanism][-1] >= 0.95,
    }
    failed = [what for what, holds in expected.items() if not holds]
    for what in failed:
        console.print(f"FAILED: {what}", style="red")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
