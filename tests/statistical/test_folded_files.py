"""Small files that stand for gigabytes: an answer, within a gigabyte of memory."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsubset as dps
from support.memory import COMMAND, peak

MEMORY = 1e9  # bytes
CELLS, LENGTH = 2**16, 2**15


def dictionary(folder: Path) -> Path:
    """One text of 32 kB, 65,536 times: as one array of text it would overflow."""
    text = pa.DictionaryArray.from_arrays(np.zeros(CELLS, dtype=np.int32), ["x" * LENGTH])
    zeros = np.zeros(CELLS)
    pq.write_table(pa.table({"a": text, "b": zeros, "y": zeros}), folder / "t.parquet")
    return folder / "t.parquet"


def plain(folder: Path) -> Path:
    """As many different texts, in many row groups: as one dictionary they would overflow."""
    return _different(folder, 2**10)


def plain_at_once(folder: Path) -> Path:
    """The same in one row group."""
    return _different(folder, CELLS)


def _different(folder: Path, group: int) -> Path:
    kinds = pa.schema([("a", pa.string()), ("b", pa.float64()), ("y", pa.float64())])
    path = folder / "t.parquet"
    with pq.ParquetWriter(path, kinds, use_dictionary=False, compression="zstd") as writer:
        for start in range(0, CELLS, group):
            texts = pa.chunked_array(
                pa.array(f"{i:0{LENGTH}}" for i in range(part, part + 2**10))
                for part in range(start, start + group, 2**10)
            )
            zeros = np.zeros(group)
            writer.write_table(pa.table([texts, zeros, zeros], schema=kinds))
    return path


def line(folder: Path) -> Path:
    """A line of 3 GB in 3 MB of gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with open(folder / "t.csv.gz", "wb") as file:
        file.write(packer.compress(b"a,b,y\n1,0,1\n"))
        for _ in range(3 * 2**10):
            file.write(packer.compress(b"1" * 2**20))
        file.write(packer.compress(b"\n1,0,1\n") + packer.flush())
    return folder / "t.csv.gz"


@pytest.mark.statistical
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("make", [dictionary, plain, plain_at_once, line])
def test_files_that_stand_for_gigabytes(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    assert path.stat().st_size < 5e6
    schema = dps.Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, ("y", 0, 1))
    schema.write(tmp_path / "schema.yaml")
    subprocess.run(
        [sys.executable, "-c", COMMAND, "select", path.name, "--schema", "schema.yaml", "--k", "1",
         "--epsilon", "1", "--out", "release.json"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    assert len(json.loads((tmp_path / "release.json").read_text())["features"]) == 1
    print(f"peak memory {peak(tmp_path) / 1e9:.2f} GB")
    assert peak(tmp_path) < MEMORY
