"""Make the table of docs/command-line.md: visits.csv and visits.parquet, with the same rows.

The table is simulated and the same at every run. A patient has up to three visits. The cost of a
visit depends on the ward, on age and on smoking only. In every column except the patient's number
and the cost 30 % of the cells are missing: empty, or in `age` and `smoker` also -9.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

PATIENTS, MISSING = 5_000, 0.3
WARDS = {"surgery": 1.2, "medicine": 0.2, "psychiatry": -0.6, "day care": -1.0}


def visits() -> pa.Table:
    """The table."""
    rng = np.random.default_rng(7)
    patient = np.repeat(np.arange(PATIENTS), rng.integers(1, 4, PATIENTS))
    rows = len(patient)
    age = np.clip(rng.normal(50, 18, PATIENTS).round(), 0, 105)[patient]
    smoker = (rng.random(PATIENTS) < 0.3)[patient]
    sex = rng.choice(["female", "male"], PATIENTS)[patient]
    insured = (rng.random(PATIENTS) < 0.8)[patient]
    ward = rng.choice(list(WARDS), rows)
    height = rng.normal(170, 9, PATIENTS)[patient].round()
    weight = (height - 98 + rng.normal(0, 12, rows)).round(1)
    seen = np.datetime64("2021-01-01") + rng.integers(0, 1461, rows)
    distance = rng.gamma(2, 8, rows).round(1)
    effect = 0.03 * (age - 50) + 0.9 * smoker + np.vectorize(WARDS.get)(ward)
    cost = np.exp(6.5 + effect + rng.normal(0, 0.8, rows)).round(2)

    def gone(share: float) -> np.ndarray:
        return rng.random(rows) < share

    coded = {"age": gone(0.1), "smoker": gone(0.1)}
    left = MISSING - 0.1  # of cells, so that codes and empty cells are 30 % together
    empty = {name: gone(left / 0.9) for name in coded}
    columns = {
        "patient": pa.array(patient + 100_000),
        "seen": pa.array(seen, mask=gone(MISSING)),
        "ward": pa.array(ward, mask=gone(MISSING)),
        "age": pa.array(np.where(coded["age"], -9, age).astype(int), mask=empty["age"]),
        "sex": pa.array(sex, mask=gone(MISSING)),
        "smoker": pa.array(
            np.where(coded["smoker"], "-9", np.where(smoker, "yes", "no")), mask=empty["smoker"]
        ),
        "insured": pa.array(insured, mask=gone(MISSING)),
        "height": pa.array(height.astype(int), mask=gone(MISSING)),
        "weight": pa.array(weight, mask=gone(MISSING)),
        "distance": pa.array(distance, mask=gone(MISSING)),
        "cost": pa.array(cost),
    }
    return pa.table(columns)


if __name__ == "__main__":
    table = visits()
    pa.csv.write_csv(table, "visits.csv")
    pa.parquet.write_table(table, "visits.parquet")
    print(f"visits.csv, visits.parquet: {table.num_rows} rows, {table.num_columns} columns")
