"""Lines in a CSV file, which a run that was interrupted goes on with."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .experiment import Line, Trial


class Results:
    """The lines of one file. Those of a trial are written together, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = read(path)

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Results:
        """Lines that were read already."""
        made = cls.__new__(cls)
        made.lines = list(lines)
        return made

    def missing(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those of the trials that have no line."""
        done = {_texts(line, names) for names in _names(trials) for line in self.lines}
        return [trial for trial in trials if _texts(trial) not in done]

    def keep(self, trials: Sequence[Trial]) -> None:
        """Forget what belongs to none of the trials: an older program had other ones."""
        asked = {_texts(trial) for trial in trials}
        names = _names(trials)
        self.lines = [
            line for line in self.lines if any(_texts(line, name) in asked for name in names)
        ]

    def add(self, lines: Iterable[Line]) -> None:
        """Write the lines of a trial."""
        self.lines += lines
        names = list(dict.fromkeys(name for line in self.lines for name in line))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.lines)
        os.replace(part, self.path)


def read(path: Path) -> list[Line]:
    """What was written, with numbers as numbers and None for empty cells."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: _value(cell) for name, cell in line.items()} for line in csv.DictReader(file)
        ]


def _names(trials: Iterable[Trial]) -> set[tuple[str, ...]]:
    return {tuple(trial) for trial in trials}


def _texts(line: Trial, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """What tells trials apart: 1 and 1.0 are the same, as they are in a file."""
    return tuple(f"{name}={_value(str(line.get(name)))}" for name in names or line)


def _value(cell: str) -> Any:
    if cell in ("", "None"):
        return None
    if cell in ("True", "False"):
        return cell == "True"
    try:
        number = float(cell)
    except ValueError:
        return cell
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
