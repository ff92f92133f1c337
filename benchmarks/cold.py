"""What a user waits for: ``python -m benchmarks.cold [--quick]``.

Each command runs in a process of its own. "Cold" is the first run after an installation, which
compiles kernels into an empty folder; "warm" is the run after it. A row is a ratio within the run:
to the start of Python, to the import of NumPy and SciPy, or to the same selection from an array.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .rows import Row

_TABLES = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.csv
import dpsubset as dps

folder, p = Path(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
n, levels = 400, ("red", "green", "blue", "grey")
columns = {f"v{j}": rng.uniform(size=n) for j in range(20)}
columns |= {f"c{j}": rng.choice(levels, n) for j in range(10)}
columns["y"] = columns["v0"] / 2 + (columns["c0"] == "red") / 4 + rng.uniform(size=n) / 4
pa.csv.write_csv(pa.table(columns), folder / "levels.csv")
declared = {f"v{j}": (0, 1) for j in range(20)}
declared |= {f"c{j}": {"levels": list(levels)} for j in range(10)}
dps.Schema.from_bounds(declared, ("y", 0, 1)).write(folder / "levels.yaml")
x = rng.uniform(size=(300, p))
names = [f"v{j}" for j in range(p)]
y = x[:, 0] / 2 + rng.uniform(size=300) / 2
np.save(folder / "wide.npy", np.column_stack([x, y]))
pq.write_table(pa.table([*x.T, y], [*names, "y"]), folder / "wide.parquet")
dps.Schema.from_bounds(dict.fromkeys(names, (0, 1)), ("y", 0, 1)).write(folder / "wide.json")
"""

_ARRAY = """
import numpy as np, dpsubset as dps
x = np.random.default_rng(0).uniform(-1, 1, (500, 30))
dps.select(x, y=x[:, 0], bounds=dps.Bounds(x=1, y=1), k=3, epsilon=1)
"""

#: Prints the median seconds of a selection from an array and from each kind of table.
_WIDE = """
import sys, time, statistics
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.parquet as pq
import polars as pl
import dpsubset as dps

folder, repeats = Path(sys.argv[1]), int(sys.argv[2])
values = np.load(folder / "wide.npy")
table = pq.read_table(folder / "wide.parquet")
schema = dps.Schema.read(folder / "wide.json")
pa.feather.write_feather(table, folder / "wide.feather")
pa.csv.write_csv(table, folder / "wide.csv")
given = {"schema": schema, "k": 3, "epsilon": 1}
kinds = {
    "array": lambda: dps.select(values[:, :-1], y=values[:, -1], **given),
    "parquet": lambda: dps.select(folder / "wide.parquet", **given),
    "feather": lambda: dps.select(folder / "wide.feather", **given),
    "csv": lambda: dps.select(folder / "wide.csv", **given),
    "pyarrow": lambda: dps.select(table, **given),
    "pandas": lambda: dps.select(frames[0], **given),
    "polars": lambda: dps.select(frames[1], **given),
}
frames = table.to_pandas(), pl.from_arrow(table)
for kind, job in kinds.items():
    times = []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    print(kind, statistics.median(times[1:] or times))
"""

_LEVELS = ("-m", "dpsubset", "select", "levels.csv", "--schema", "levels.yaml", "--k", "3",
           "--epsilon", "1", "--no-ledger")  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A folder with the tables, and what is measured how often."""

    folder: Path
    repeats: int

    def seconds(self, arguments: tuple[str, ...], cache: str) -> float:
        """How long a process takes that keeps compiled code in this folder."""
        start = time.perf_counter()
        self.run(arguments, cache)
        return time.perf_counter() - start

    def run(self, arguments: tuple[str, ...], cache: str) -> str:
        """What a process prints."""
        kept = {**os.environ, "NUMBA_CACHE_DIR": str(self.folder / cache)}
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=kept, check=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ).stdout  # fmt: skip

    def warm(self, arguments: tuple[str, ...], cache: str) -> float:
        """The median of several runs after one that compiles."""
        self.run(arguments, cache)
        return statistics.median(self.seconds(arguments, cache) for _ in range(self.repeats))


def starts(place: Place) -> Iterator[Row]:
    """Imports and commands, cold and warm."""
    python = place.warm(("-c", "pass"), "none")
    scientific = place.warm(("-c", "import numpy, scipy.linalg, pyarrow"), "none")
    floor = (scientific, "import numpy, scipy, pyarrow")
    yield Row("start", "import dpsubset", place.warm(("-c", "import dpsubset"), "none"), "s",
              python, "python -c pass")  # fmt: skip
    yield Row("start", "dpsubset --help", place.warm(("-m", "dpsubset", "--help"), "none"), "s",
              python, "python -c pass")  # fmt: skip
    cases = (
        ("select from an array", ("-c", _ARRAY), "array"),
        ("dpsubset select, CSV with levels", _LEVELS, "levels"),
        ("dpsubset select --dry-run, CSV with levels", (*_LEVELS, "--dry-run"), "dry"),
    )
    warm_select = None
    for about, arguments, cache in cases:
        cold = place.seconds(arguments, cache)
        warm = place.warm(arguments, cache)
        yield Row("cold", about, cold, "s", *floor)
        yield Row("warm", about, warm, "s", *floor)
        if cache == "levels":
            warm_select = warm
        if cache == "dry":
            yield Row("warm", "dry run", warm, "s", warm_select, "the selection itself", 1.0,
                      "ratio")  # fmt: skip


def wide(place: Place, p: int) -> Iterator[Row]:
    """A selection from 300 rows of many columns, by kind of table."""
    place.run(("-c", _TABLES, ".", str(p)), "array")
    lines = place.run(("-c", _WIDE, ".", str(place.repeats)), "array").split()
    times = dict(zip(lines[::2], map(float, lines[1::2]), strict=True))
    for kind, seconds in times.items():
        yield Row("wide", f"300 x {p:,}, {kind}", seconds, "s", times["array"], "an array", 5.0,
                  "ratio")  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.cold", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, fewer columns")
    parser.add_argument("--columns", help="of the wide tables, by commas")
    options = parser.parse_args(arguments)
    widths = options.columns or ("1000,2000" if options.quick else "1000,2000,4000,8000")
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), 1 if options.quick else 3)
        place.run(("-c", _TABLES, ".", "10"), "array")
        for row in starts(place):
            show(row)
        by_width: dict[str, list[tuple[int, float]]] = {}
        for p in map(int, widths.split(",")):
            for row in wide(place, p):
                show(row)
                kind = row.case.rsplit(", ", 1)[1]
                by_width.setdefault(kind, []).append((p, row.measured or np.nan))
        for kind, points in by_width.items():
            if len(points) > 1:
                slope = np.polyfit(*np.log(np.array(points).T), 1)[0]
                print(f"wide    {kind}: time grows with p to the power {slope:.2f}")
    return 0


def show(row: Row) -> None:
    """Print a row."""
    ratio = "" if row.ratio is None else f"{row.ratio:8.2f} x {row.against}"
    print(f"{row.bar:7} {row.case:45} {row.measured:8.3f} s {ratio} {row.verdict}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
