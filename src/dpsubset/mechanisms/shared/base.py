"""The interface of a mechanism: its public setting, its private data, its guarantee and its
sampler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...data.gram import GramData
from ...objective.problem import Problem
from ...objective.sensitivity import Sensitivity
from ...privacy.guarantee import Guarantee, shown_up
from ...privacy.random import Randomness
from ...search.engine import Engine, Limits
from ...search.enumerate import ScoredSupports, enumerate_supports
from ...search.tuning import USUAL, Tuning

#: The outcome of a draw: a support, or None if nothing is released.
Outcome = tuple[int, ...] | None

#: All outcomes, and the logarithms of their probabilities.
Distribution = tuple[list[Outcome], NDArray[np.float64]]

SYSTEM_NOISE = "Noise is drawn exactly, from the operating system's cryptographic generator."
#: For the privacy statement, of noise whose probability depends on its largest entry alone.
JOINT_NOISE = (
    "The noise of all these numbers was drawn together. A draw is less likely, the larger its "
    "largest value is, whatever the sign."
)
OPENDP_NOISE = (
    "Noise is drawn exactly, by OpenDP, from OpenSSL's cryptographic generator, which the "
    "operating system seeds."
)


@dataclass(frozen=True)
class Setting:
    """What is public about a selection: all that a mechanism may use before it sees data."""

    problem: Problem
    sensitivity: Sensitivity
    #: The budget of the release.
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    #: Number of rows where it is public and known: under replace-one, once the table is read.
    n: int | None = None

    @classmethod
    def of(cls, problem: Problem, epsilon: Any, delta: Any = 0, n: int | None = None) -> Setting:
        """A setting with the sharp sensitivity, for tests and audits."""
        sensitivity = Sensitivity.of(problem)
        return cls(problem, sensitivity, Fraction(epsilon), Fraction(delta), n)

    def with_rows(self, n: int) -> Setting:
        """The setting of a table with n rows, which it contains only where n is public."""
        return replace(self, n=n if self.problem.n_is_public else None)


@dataclass(frozen=True)
class Data:
    """The private data: a quantized table.

    Limits and tuning are public, and equal for every table.
    """

    gram: GramData = field(repr=False)
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = USUAL

    def engine(self, setting: Setting, eta: Fraction | float, penalty: int = 0) -> Engine:
        """The search engine on this table, with bounds suited to weights of eta.

        ``penalty`` steps of the grid of scores are added for every variable.
        """
        score_step = setting.sensitivity.score_step
        return Engine(
            self.gram, setting.problem, score_step, float(eta), self.limits, penalty, self.tuning
        )


class Sampler(Protocol):
    """Draws from one mechanism on one data set. Contains private data."""

    def draw(self, rng: Randomness) -> Outcome:
        """One support, or None."""

    def diagnostics(self) -> dict[str, int]:
        """Counts of the work so far. They depend on the data: NOT PRIVATE."""
        return {}


@dataclass(frozen=True)
class Mechanism(ABC):
    """A selection mechanism: its declarations, its guarantee and its sampler.

    The fields of a subclass are its options. They are public and its only state.
    """

    name: ClassVar[str]
    #: Position in listings, smallest first; mechanisms without one come last.
    place: ClassVar[float]
    #: One or two sentences for the privacy statement.
    summary: ClassVar[str]
    #: For the comparison page: origin, guarantee, assumptions, running time, when to use it.
    source: ClassVar[str]
    promises: ClassVar[str]
    assumes: ClassVar[str] = "nothing beyond the bounds of the schema"
    running_time: ClassVar[str]
    use_when: ClassVar[str]

    #: Whether epsilon comes with a delta.
    takes_delta: ClassVar[Literal["no", "may", "must"]] = "no"
    #: Whether it sees the data through scores alone, so that it supports every loss.
    any_loss: ClassVar[bool] = False
    #: Whether it needs the records themselves; otherwise X'X and X'y are enough.
    needs_records: ClassVar[bool] = False
    #: Whether it supports choices of several columns, and an intercept as the last column.
    #: Otherwise such problems are refused, because its calibration might be wrong.
    takes_groups: ClassVar[bool] = False
    takes_intercept: ClassVar[bool] = False
    #: Whether it also chooses the number of variables, up to k.
    chooses_size: ClassVar[bool] = False
    #: For the comparison page: how it treats them.
    on_groups: ClassVar[str] = ""
    on_intercept: ClassVar[str] = ""
    #: Whether a seed reproduces its draws; OpenDP takes no seed.
    seedable: ClassVar[bool] = True
    #: For the privacy statement: the source of randomness without a seed.
    randomness: ClassVar[str] = SYSTEM_NOISE

    def _set_options(self, **options: Any) -> None:
        """Store checked options as plain Python numbers."""
        for name, value in options.items():
            object.__setattr__(self, name, value)

    def check(self, setting: Setting) -> None:
        """Refuse an unsupported problem, before any value is read."""
        if not self.any_loss and setting.problem.loss != "least-squares":
            from .. import MECHANISMS  # here, since its modules import this one

            *others, last = (name for name, cls in MECHANISMS.items() if cls.any_loss)
            raise ArgumentError(
                f"{self.name} is for least squares; for the {setting.problem.loss} loss there are "
                f"{', '.join(others)} and {last}. loss='least-squares' is for labels too: they "
                "count as -1 and 1"
            )
        layout = setting.problem.layout
        if layout.grouped and not self.takes_groups:
            raise ArgumentError(
                f"{self.name} scores single columns and cannot select levels or groups as a whole; "
                "use permute-and-flip"
            )
        if layout.has_intercept and not self.takes_intercept:
            raise ArgumentError(
                f"{self.name} does not support an intercept; leave it out, or use permute-and-flip"
            )
        if self.takes_delta == "no" and setting.delta:
            raise ArgumentError(f"{self.name} is purely private: leave delta at 0")
        if self.takes_delta == "must" and not setting.delta:
            raise ArgumentError(f"{self.name} needs a delta greater than 0, such as 1e-6")

    @abstractmethod
    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        """The guarantee of a release, computed from the constants that the draw uses."""

    def priced_by_rows(self, setting: Setting) -> bool:
        """Whether the guarantee depends on the number of rows, which is public in this case."""
        return False

    @abstractmethod
    def prepare(self, data: Data, setting: Setting) -> Sampler:
        """Do everything but the noise. Must not fail because of a value."""

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        """All outcomes and the logarithms of their probabilities; None without a closed form.

        Computed by enumeration, for small problems: the oracle of tests and audits.
        """
        return None

    @property
    def proven(self) -> bool:
        """Whether the mechanism has a guarantee; without one it must be allowed by name."""
        return True

    def named(self, position: Callable[[int | str], int]) -> Mechanism:
        """The same mechanism with column names in its options replaced by positions."""
        return self

    def options(self) -> dict[str, Any]:
        """The options as plain values."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def details(self, setting: Setting) -> list[str]:
        """Sentences for the privacy statement on what the noise is calibrated to."""
        return []


class Scored(Mechanism):
    """A mechanism that sees the data through the scores alone."""

    any_loss = True
    takes_groups = takes_intercept = True
    on_groups = "a model has all columns of a choice, or none of them"
    on_intercept = "part of every model, with a coefficient in the same set as the others"


class ScoreMechanism(Scored):
    """A mechanism that draws from the scores, weighted by eta."""

    def eta(self, setting: Setting) -> Fraction:
        """The weight of the scores at which the mechanism is epsilon-private."""
        return setting.sensitivity.eta(setting.epsilon, setting.problem.neighbours)

    def guarantee(self, setting: Setting, *, seeded: bool = False) -> Guarantee:
        eta = self.eta(setting)
        return Guarantee.of_weight(
            eta, setting.sensitivity.score_range, setting.problem.neighbours, seeded
        )

    def prepare(self, data: Data, setting: Setting) -> Sampler:
        eta = self.eta(setting)
        return self.race(data.engine(setting, eta), eta)

    def outcomes(self, data: Data, setting: Setting) -> Distribution | None:
        scored = enumerate_supports(data.gram, setting.problem, setting.sensitivity.score_step)
        supports: list[Outcome] = [tuple(row) for row in scored.supports.tolist()]
        return supports, self.log_probabilities(scored, self.eta(setting))

    def details(self, setting: Setting) -> list[str]:
        """The score, and how far a row moves it."""
        problem, s = setting.problem, setting.sensitivity
        beyond = "" if problem.threshold is None else f" (threshold {problem.threshold:.6g})"
        return [
            "The score f(S) of a set S of variables says how badly the best model with these "
            f"variables fits: it is the smallest {problem.loss} objective{beyond} of all models on "
            f"S, in scaled units, with ridge {problem.ridge:.6g} and coefficients in the "
            f"{problem.constraint} of radius {problem.radius:.6g} (prediction bound "
            f"{shown_up(problem.prediction_bound)}).",
            *_columns(problem),
            "A row that is added or removed changes the difference of two scores by at most "
            f"{shown_up(s.range)}, a row that is replaced by at most {shown_up(2 * s.range)} "
            f"(rule: {s.rule}). The numerical error of a score is proven to be below "
            f"{shown_up(s.tau, 3)}, and the guarantee accounts for it.",
        ]

    @abstractmethod
    def race(self, engine: Engine, eta: Fraction) -> Sampler:
        """Draws over all supports, without enumerating them, by the search engine."""

    @abstractmethod
    def sampler(self, scored: ScoredSupports, eta: Fraction) -> Sampler:
        """Draws over an explicit list of scored supports, by the definition: the oracle."""

    @abstractmethod
    def log_probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        """The output distribution in closed form, as logarithms."""

    def probabilities(self, scored: ScoredSupports, eta: Fraction) -> NDArray[np.float64]:
        """The output distribution."""
        return np.asarray(np.exp(self.log_probabilities(scored, eta)))


def _columns(problem: Problem) -> list[str]:
    """Sentences on the columns of a model, where these are more than k single columns."""
    layout, k, sentences = problem.layout, problem.k, []
    if layout.grouped:
        most = problem.most_columns - layout.has_intercept
        sentences.append(
            f"The {problem.p} variables have {layout.columns - layout.has_intercept} columns, "
            "because levels and groups are selected as a whole. A model on "
            f"{k} of them has up to {most} columns."
        )
    if layout.has_intercept:
        sentences.append(
            "Every model has an intercept beside its variables: a column with the value "
            f"{float(layout.intercept_value):.6g} in every row that counts. Its coefficient has "
            "the same limits and the same ridge as the others."
        )
    return sentences
