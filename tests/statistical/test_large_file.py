"""A table larger than the memory it is read with: 5 million rows, 40 columns, on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsubset as dps
from support.memory import COMMAND, peak

ROWS, BLOCK, VARIABLES = 5_000_000, 100_000, 39
MEMORY = 1.5e9  # bytes; the columns take 1.6e9
TRUTH = ["v05", "v17", "v30"]


def write_table(path: Path) -> None:
    names = [f"v{j:02d}" for j in range(VARIABLES)]
    rng = np.random.default_rng(3)
    kinds = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with pq.ParquetWriter(path, kinds, compression="none", use_dictionary=False) as writer:
        for _ in range(ROWS // BLOCK):
            x = rng.random((VARIABLES, BLOCK))
            y = sum(x[names.index(name)] for name in TRUTH) / 3
            columns = [pa.array(column) for column in (*x, y)]
            writer.write_table(pa.Table.from_arrays(columns, schema=kinds))


def read_all(terminal: int) -> str:
    pieces = []
    try:
        while piece := os.read(terminal, 2**16):
            pieces.append(piece)
    except OSError:  # how Linux reports that the other end is closed
        pass
    return b"".join(pieces).decode()


@pytest.mark.statistical
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_five_million_rows_in_bounded_memory_with_a_moving_bar(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    write_table(table)
    assert table.stat().st_size > MEMORY
    columns = {f"v{j:02d}": (0, 1) for j in range(VARIABLES)}
    dps.Schema.from_bounds(columns, ("y", 0, 1)).write(tmp_path / "schema.yaml")

    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "select", "table.parquet",
         "--schema", "schema.yaml", "--k", "3", "--epsilon", "1", "--out", "release.json",
         "--statement", "statement.md"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(terminal)
    shown = read_all(screen)
    os.close(screen)
    assert process.stdout is not None
    out = process.stdout.read()
    process.wait()

    table.unlink()
    percentages = [int(number) for number in re.findall(r"(\d+)%", shown)]
    print(f"peak memory {peak(tmp_path) / 1e9:.2f} GB, percentages shown {len(set(percentages))}")
    assert process.returncode == 0, shown
    assert [line.strip() for line in out.splitlines()[1:4]] == TRUTH
    assert peak(tmp_path) < MEMORY
    assert len(set(percentages)) >= 10
    assert percentages[-1] == 100
    # Rows may be private: neither their number nor that of the batches is shown.
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.findall(r"\d{4,}", plain) == []
