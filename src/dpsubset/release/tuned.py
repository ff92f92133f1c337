"""Tuned: how a private search chose the setting that a release was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..base.validation import as_decimal_fraction
from ..privacy.guarantee import Guarantee, shown_parts, shown_up
from ..privacy.random_stopping import Stopping

Value = int | float | Fraction | str | None


@dataclass(frozen=True)
class Tuned:
    """A grid, the stopping rule of the search over it, and the setting that was released. Public.

    Attributes
    ----------
    grid : tuple of mappings
        The settings, in the order in which they were given: names of arguments and their values.
    chosen : int
        Position of the setting that this release was made with. It is an outcome of the search and
        part of what the guarantee covers.
    stopping : Stopping
        The distribution of the number of runs. How many runs there were is not released.
    run : Guarantee
        What one run with the chosen setting costs. The release costs 2 + eta times the cost of the
        dearest setting.
    """

    grid: tuple[Mapping[str, Value], ...]
    chosen: int
    stopping: Stopping
    run: Guarantee

    @property
    def setting(self) -> dict[str, Value]:
        """The setting that this release was made with."""
        return dict(self.grid[self.chosen])

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "grid": [plain(setting) for setting in self.grid],
            "chosen": plain(self.setting),
            "stopping": "truncated negative binomial",
            "eta": str(self.stopping.eta),
            "gamma": str(self.stopping.gamma),
            "epsilon_of_one_run": str(self.run.epsilon),
            "score": SCORE,
        }

    def lines(self) -> list[str]:
        """For people: the grid, the rule and the total."""
        eta, gamma = self.stopping.eta, self.stopping.gamma
        one = self.run.epsilon or Fraction(0)
        return [
            f"The setting {shown(self.setting)} was chosen by a private search among "
            f"{len(self.grid)} settings that were fixed beforehand: {shown_grid(self.grid)}.",
            "The search made a random number of independent runs, each with a setting picked "
            "uniformly at random, and released the run with the highest score. The score is the "
            f"{SCORE}.",
            "The number of runs has a truncated negative binomial distribution with "
            f"eta = {eta} and gamma = {float(gamma):.6g} (mean {self.stopping.mean:.3g}). It is "
            "not released, but the running time depends on it.",
            f"One run with the chosen setting costs epsilon = {shown_up(one)}: "
            f"{shown_parts(self.run)}. The runs together cost {self.stopping.factor} (2 + eta) "
            "times as much as one run with the dearest setting, however many there were.",
        ]


#: What runs are compared by.
SCORE = (
    "negative sum, over the rows of the table, of the squared error of the run's released model, "
    "each row's error capped, with noise"
)


def plain(setting: Mapping[str, Value]) -> dict[str, int | str | None]:
    """A setting as a file has it: numbers that are not whole are written out exactly."""
    return {name: _plain(value) for name, value in setting.items()}


def _plain(value: Value) -> int | str | None:
    if value is None or isinstance(value, (int, str)):
        return value
    return str(as_decimal_fraction(value))


def shown(setting: Mapping[str, Value]) -> str:
    """A setting for people."""
    return ", ".join(f"{name} = {_shown(value)}" for name, value in setting.items()) or "(none)"


def _shown(value: Value) -> str:
    return f"{float(value):.6g}" if isinstance(value, Fraction) else str(value)


def shown_grid(grid: tuple[Mapping[str, Value], ...]) -> str:
    """All settings for people, of a long grid the first ones."""
    most = 30
    more = f"; ... ({len(grid)} in all)" if len(grid) > most else ""
    return "; ".join(map(shown, grid[:most])) + more
