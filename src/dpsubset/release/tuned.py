"""Tuned: how a private search chose the setting of a release."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
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
        The settings in the order given: names of arguments and their values.
    chosen : int
        Position of the chosen setting. It is an outcome of the search and covered by the guarantee.
    stopping : Stopping
        The distribution of the number of runs. How many runs there were is not released.
    run : Guarantee
        The cost of one run with the chosen setting. The release costs 2 + eta times the cost of
        the most expensive setting.
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
            "grid": [setting_to_dict(setting) for setting in self.grid],
            "chosen": setting_to_dict(self.setting),
            "stopping": "truncated negative binomial",
            "eta": str(self.stopping.eta),
            "gamma": str(self.stopping.gamma),
            "epsilon_of_one_run": str(self.run.epsilon),
            "run": self.run.to_dict(),
            "score": SCORE,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Tuned:
        """Read what :meth:`to_dict` wrote."""
        grid = tuple(map(_setting_from_dict, facts["grid"]))
        return cls(
            grid,
            grid.index(_setting_from_dict(facts["chosen"])),
            Stopping(Fraction(facts["eta"]), Fraction(facts["gamma"])),
            Guarantee.from_dict(facts["run"]),
        )

    def lines(self) -> list[str]:
        """Describe the grid, the stopping rule and the cost in sentences."""
        eta, gamma = self.stopping.eta, self.stopping.gamma
        one = self.run.epsilon or Fraction(0)
        return [
            f"The setting {setting_as_text(self.setting)} was chosen by a private search among "
            f"{len(self.grid)} settings that were fixed beforehand: {_grid_as_text(self.grid)}.",
            "The search made a random number of independent runs, each with a setting picked "
            "uniformly at random, and released the run with the highest score. For the score, the "
            "squared errors of the run's released model are added up over the rows of the table, "
            "each up to a cap, with noise. A smaller sum is a higher score.",
            "The number of runs was drawn at random, by a truncated negative binomial distribution "
            f"with eta = {eta} and gamma = {float(gamma):.6g}: {self.stopping.mean:.3g} runs on "
            "average. It is not released, but the running time depends on it.",
            f"One run with the chosen setting costs epsilon = {shown_up(one)}: "
            f"{shown_parts(self.run)}. The runs together cost {self.stopping.factor} (2 + eta) "
            "times as much as one run with the most expensive setting, whatever their number was.",
        ]


#: Settings of a grid that are listed for people.
_MAX_SETTINGS = 30

#: What runs are compared by.
SCORE = (
    "negative sum, over the rows of the table, of the squared error of the run's released model, "
    "each row's error capped, with noise"
)


def setting_to_dict(setting: Mapping[str, Value]) -> dict[str, int | str | None]:
    """Return a setting as plain values: numbers that are not integers become exact text."""
    return {
        name: value if value is None or isinstance(value, (int, str))
        else str(as_decimal_fraction(value))
        for name, value in setting.items()
    }  # fmt: skip


def _setting_from_dict(facts: Mapping[str, Any]) -> dict[str, Value]:
    """Read what `setting_to_dict` returned: text that is a rational is a number."""

    def value(given: Value) -> Value:
        with suppress(ValueError):
            return Fraction(given) if isinstance(given, str) else given
        return given

    return {name: value(given) for name, given in facts.items()}


def setting_as_text(setting: Mapping[str, Value]) -> str:
    """Write a setting for people."""
    entries = (
        f"{name} = {f'{float(value):.6g}' if isinstance(value, (float, Fraction)) else value}"
        for name, value in setting.items()
    )
    return ", ".join(entries) or "(none)"


def _grid_as_text(grid: tuple[Mapping[str, Value], ...]) -> str:
    more = f"; ... ({len(grid)} in all)" if len(grid) > _MAX_SETTINGS else ""
    return "; ".join(map(setting_as_text, grid[:_MAX_SETTINGS])) + more
