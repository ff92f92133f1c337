"""SupportCounts: how often simulated selections released each support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.text import escape_for_terminal
from ..mechanisms import Outcome


class SupportCounts(Counter[Outcome]):
    """The number of draws of each support, by positions. NOT PRIVATE.

    A support is a tuple of positions, as in `Release.support`. None stands for a draw that released
    nothing.

    Parameters
    ----------
    counts : mapping
        The number of draws of each support.
    names : sequence of str
        The names of the choices, by position.
    """

    def __init__(self, counts: Mapping[Outcome, int] | None = None, names: Sequence[str] = ()):
        super().__init__({} if counts is None else counts)
        self._names = tuple(names)

    @property
    def features(self) -> Counter[tuple[str, ...] | None]:
        """The same counts by names, as in `Release.features`."""
        found: Counter[tuple[str, ...] | None] = Counter()
        for support, count in self.items():
            found[None if support is None else tuple(self._names[j] for j in support)] += count
        return found

    def copy(self) -> SupportCounts:
        """Return a copy with the same names."""
        return SupportCounts(self, self._names)

    __copy__ = copy

    def __reduce__(self) -> Any:
        return SupportCounts, (dict(self), self._names)

    def __str__(self) -> str:
        """The supports by name, the most frequent first."""
        draws = self.total()
        lines = [
            f"  {count} of {draws}  {'released nothing' if names is None else ', '.join(names)}"
            for names, count in self.features.most_common()
        ]
        return "\n".join(
            map(escape_for_terminal, ["NOT PRIVATE: supports of simulated draws", *lines])
        )
