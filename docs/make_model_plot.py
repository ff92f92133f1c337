"""Make docs/model-plot.png: the picture of a model of simulated patients."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import dpsubset as dps

COLUMNS = {
    "age": (0, 110),
    "nights": (0, 30),
    "ward": {"levels": ["medicine", "surgery"]},
    "distance": (0, 500),
}


def main(path: Path) -> None:
    """Write the picture."""
    mpl.use("Agg")
    rng, n = np.random.default_rng(0), 4000
    table = pd.DataFrame(
        {
            "age": rng.uniform(0, 110, n),
            "nights": rng.uniform(0, 30, n),
            "ward": rng.choice(["medicine", "surgery"], n),
            "distance": rng.uniform(0, 500, n),
        }
    )
    surgery = table["ward"] == "surgery"
    table["cost"] = 100 + 3 * table["age"] + 20 * table["nights"] + 80 * surgery
    table["cost"] += rng.normal(0, 150, n)
    schema = dps.Schema.from_bounds(COLUMNS, ("cost", 0, 2000))
    release = dps.fit(table, schema, k=4, epsilon=1, seed=1, ledger=False)
    release.model.plot().figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).with_name("model-plot.png")))
