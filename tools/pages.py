"""Run the pages that are transcripts, and renew what they show: python tools/pages.py [PAGE ...]

A page is run from top to bottom in a folder of its own:

- ```python blocks run one after another in one namespace. If a ```text block follows, it is what
  was printed;
- lines of ```console blocks that begin with "$ " run as commands, `dpsubset` and `python` with this
  interpreter. What they print, errors included, follows in the block;
- a ```yaml block whose first line is a comment with the name of a file is written to that file.

A line "..." in what is shown stands for any lines. tests/repo/test_pages.py compares.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from dpsubset.base.kernels.first_run import NOTE

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "docs/walkthrough.md",
    "docs/command-line.md",
    "docs/ledger.md",
    "docs/many-files.md",
    "docs/officer.md",
    "docs/papers.md",
    "docs/planning.md",
)

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
_FILE = re.compile(r"# ([\w.-]+\.yaml)\n")


def run(page: str, folder: Path) -> str:
    """The text of a page with what its examples print now."""
    parts: list[str] = []
    end, names, printed = 0, {}, None
    with contextlib.chdir(folder):
        for block in _BLOCK.finditer(page):
            parts.append(page[end : block.start(2)])
            kind, shown = block.groups()
            if kind == "text" and printed is not None:
                shown = shown if alike(shown, printed) else printed
            elif kind == "console":
                shown = _commands(shown)
            elif kind == "yaml" and (name := _FILE.match(shown)):
                Path(name[1]).write_text(shown, encoding="utf-8")
            printed = _python(shown, names) if kind == "python" else None
            parts.append(shown)
            end = block.end(2)
    return "".join([*parts, page[end:]])


def alike(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, perhaps with some lines left out."""
    lines = shown.splitlines(keepends=True)
    pattern = "".join("(?:.*\n)*" if line == "...\n" else re.escape(line) for line in lines)
    return re.fullmatch(pattern, printed) is not None


def _python(code: str, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def _commands(block: str) -> str:
    """A block with what its commands print now."""
    parts = []
    for command, shown in _COMMAND.findall(block):
        printed = _command(command.replace("\\\n", " "))
        parts.append(f"$ {command}{shown if alike(shown, printed) else printed}")
    return "".join(parts)


def _command(line: str) -> str:
    program, *arguments = shlex.split(line)
    started = {"dpsubset": [sys.executable, "-m", "dpsubset"], "python": [sys.executable]}
    if program == "python":
        arguments[0] = str(ROOT / arguments[0])
    # The ledger of the environment is not used.
    known = {name: value for name, value in os.environ.items() if name != "DPSUBSET_LEDGER"}
    done = subprocess.run(
        [*started.get(program, [program]), *arguments],
        env={**known, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
    )  # fmt: skip
    return done.stdout.replace(f"{NOTE}\n", "")


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        path = ROOT / name
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(run(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
