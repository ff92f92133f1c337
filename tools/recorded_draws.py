"""Seeded draws on recorded problems: whoever rebuilds the inside shows that no draw has changed.

    python tools/recorded_draws.py --write    record what the code draws now
    python tools/recorded_draws.py            compare, and say which cases differ

Mechanisms x losses x constraints x relations x kinds of table, small and searched. A difference is
not an error in itself: a search that takes another way asks for other bits. It has to be explained.
The record is of one machine: another one's float64 functions may guide a search differently.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpsubset as dps
from dpsubset.data.readers import open_table

RECORD = Path(__file__).resolve().parent.parent / "tests" / "support" / "recorded_draws.json"

MECHANISMS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("permute-and-flip", {}, {}),
    ("exponential", {}, {}),
    ("top-r", {"R": 5}, {}),
    ("top-r", {"R": 8, "form": "permute-and-flip"}, {}),
    ("mistakes", {}, {}),
    ("penalised", {"phi": 0.01}, {}),
    ("metropolis", {"steps": 300}, {"delta": 1e-3}),
]
LOSSES = ["least-squares", "logistic", "hinge", "huber"]
CONSTRAINTS = ["box", "ball", "l1"]
RELATIONS = ["replace-one", "add-remove"]
TABLES = ["array", "list", "pandas", "csv", "parquet", "moments"]
#: Variables, how many of them, rows: all supports listed, and searched.
SIZES = [(6, 2, 40), (40, 3, 200)]
DRAWS = 5


def cases() -> Iterator[dict[str, Any]]:
    combined = itertools.product(MECHANISMS, LOSSES, CONSTRAINTS, RELATIONS, SIZES)
    for i, ((name, options, budget), loss, constraint, relation, size) in enumerate(combined):
        if name == "metropolis" and loss != "least-squares":
            continue
        table = TABLES[i % (6 if loss == "least-squares" else 5)]
        yield {"mechanism": name, "options": options, **budget, "loss": loss,
               "constraint": constraint, "neighbours": relation, "size": size, "table": table,
               "ridge": [0.0, 1.0][i % 2], "epsilon": [1.0, 10.0][i // 2 % 2],
               "seed": i}  # fmt: skip


def drawn(case: dict[str, Any], folder: Path) -> list[list[Any]]:
    """How often each support was drawn, in order."""
    asked = {key: value for key, value in case.items() if key not in ("size", "table")}
    (p, k, n), names = case["size"], [f"v{j:02d}" for j in range(case["size"][0])]
    rng = np.random.default_rng(case["seed"])
    x = rng.uniform(-1, 1, (n, p))
    y = np.clip(x[:, :k].sum(axis=1) / k + rng.normal(0, 0.2, n), -1, 1)
    if case["loss"] in ("logistic", "hinge"):
        y = np.where(y < 0, -1.0, 1.0)
    schema = dps.Schema.from_bounds(dict.fromkeys(names, (-1, 1)), ("y", -1, 1))
    frame = pd.DataFrame(x, columns=names).assign(y=y)
    data: Any = frame
    if case["table"] in ("array", "list"):
        data = x if case["table"] == "array" else x.tolist()
        asked["y"] = y if case["table"] == "array" else y.tolist()
    elif case["table"] in ("csv", "parquet"):
        data = folder / f"table.{case['table']}"
        getattr(frame, f"to_{case['table']}")(data, index=False)
    elif case["table"] == "moments":
        data = dps.Moments.from_blocks(schema, open_table(frame, schema).blocks())
    # The draws were recorded before there were intercepts and scales of the response.
    former = {"intercept": False, "response_range": "declared"}
    counts = dps.simulate(data, schema, k=k, draws=DRAWS, **asked, **former)
    return sorted([list(outcome or ()), count] for outcome, count in counts.items())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {json.dumps(case): drawn(case, Path(folder)) for case in cases()}
    if "--write" in sys.argv:
        lines = (f"{json.dumps(case)}: {json.dumps(draws)}" for case, draws in found.items())
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(f"recorded {len(found)} cases")
        return
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    differ = [case for case in recorded if found.get(case) != recorded[case]]
    print("\n".join(differ) or "every draw is the recorded one", f"({len(recorded)} cases)")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
