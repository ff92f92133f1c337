"""What an experiment is: trials, how one is measured, a figure, claims to be checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What one trial is about. Its values are words and numbers, and name the trial in the file.
Trial = Mapping[str, Any]
#: A line of the file: what the trial was about, and what was measured.
Line = dict[str, Any]
Lines = Sequence[Line]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in the results, and the figures that say so."""

    holds: bool
    figures: str


@dataclass(frozen=True)
class Claim:
    """Something that was published, or that we say, as code that looks at the results.

    Parameters
    ----------
    text
        The claim in words.
    check
        Of all lines of the file.
    reason
        Why it does not hold, where it is known not to.
    """

    text: str
    check: Callable[[Lines], Verdict]
    reason: str = ""

    @property
    def expected(self) -> bool:
        """Whether it is known to hold."""
        return not self.reason


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Parameters
    ----------
    name
        Of the module, and of its files.
    title, source
        For the page.
    published
        What was published, in words.
    caption
        What was run here, what differs from what was published, and why.
    trials
        All trials of the full run, or of the quick one, which are some of the full run's.
    measure
        One trial: a line, or several.
    draw
        The figure, from all lines.
    claims
        Checked against the lines of the file.
    full
        How long a full run takes.
    size
        Of the figure, in inches.
    """

    name: str
    title: str
    source: str
    published: str
    caption: str
    trials: Callable[[bool], Sequence[Trial]]
    measure: Callable[[Trial], Line | list[Line]]
    draw: Callable[[Lines, Figure], None]
    claims: Sequence[Claim] = ()
    full: str = ""
    size: tuple[float, float] = field(default=(9.0, 3.6))
