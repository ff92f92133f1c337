"""The command in a process of its own, and the memory that it took at most.

What the system says of a child's memory counts that of the process it came from, too: so the child
says it.
"""

from __future__ import annotations

import re
from pathlib import Path

#: To be run with python -c, in a folder of its own.
COMMAND = """
from pathlib import Path
from dpsubset.cli import main
try:
    main()
finally:
    Path("status.txt").write_text(Path("/proc/self/status").read_text())
"""


def peak(folder: Path) -> int:
    """In bytes, of the command that ran there."""
    found = re.search(r"VmHWM:\s+(\d+) kB", (folder / "status.txt").read_text())
    assert found is not None
    return int(found[1]) * 1024
